"""Visualization, inspection and timing for notebooks and terminals.

Defines: `mx.explain`, `mx.show`, `mx.viz`, `mx.bench`, and notebook views of nets and symbols.
"""

from minihybrid.core import lazy
from minihybrid.core.hooks import own_names

__getattr__ = lazy.face(globals(), {})

__all__ = ["bench", "explain", "show", "summary", "viz"]

__dir__ = own_names(globals())
