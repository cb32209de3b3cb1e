"""Check that a net and its inputs are on one device.

Defines: `check_places`, which a hybrid function calls after tracing. Nothing is moved
automatically.
"""

from collections.abc import Sequence

from minihybrid.core.array import NDArray
from minihybrid.core.cache_entry import CacheEntry
from minihybrid.core.op import HybridError


def check_places(title: str, entry: CacheEntry, arrays: Sequence[NDArray]) -> None:
    """Raise HybridError unless all inputs and parameters are on the first input's device."""
    for name, other in zip(entry.names, arrays, strict=True):
        if other.context != entry.context:
            raise HybridError(
                f"{title}: its input '{entry.names[0]}' is on {arrays[0].context}, but '{name}' is "
                f"on {other.context}; bring both to one device, for example by x.as_in_context(...)"
            )
