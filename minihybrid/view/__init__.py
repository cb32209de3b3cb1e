"""Pictures and texts of what the engine does, for notebooks and terminals.

Takes:   nets, symbols, plans.
Gives:   `mx.explain`, `mx.show`, `mx.viz`, `mx.bench`, and what a notebook shows of a net.
"""

from minihybrid.core import lazy
from minihybrid.core.hooks import own_names

__getattr__ = lazy.face(globals(), {})

__all__ = ["bench", "explain", "show", "summary", "viz"]


def __dir__() -> list[str]:
    return own_names(globals())
