"""A net and its inputs lie on one device, or the call is refused.

Takes:   what was traced for a call, and the call's arrays.
Gives:   `check_places`, which a hybrid function calls after it has traced.

What is left out: bringing them together; that is the user's to say.
"""

from collections.abc import Sequence

from minihybrid.core import hooks
from minihybrid.core.array import NDArray
from minihybrid.core.cache_entry import CacheEntry
from minihybrid.core.op import HybridError


@hooks.check_places.implement
def check_places(title: str, entry: CacheEntry, arrays: Sequence[NDArray]) -> None:
    """Raise an error if an input or a parameter is not where the first input is."""
    for name, other in zip(entry.names, arrays, strict=True):
        if other.context != entry.context:
            raise HybridError(
                f"{title}: its input '{entry.names[0]}' is on {arrays[0].context}, but "
                f"'{name}' is on {other.context}; bring both to one device, for "
                "example by x.as_in_context(...)"
            )
