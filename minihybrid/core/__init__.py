"""The core: what one call runs through; it needs NumPy and the records.

Takes:   the operators' records (minihybrid/ops).
Gives:   arrays and their tape, symbols and graphs, the passes that every target needs,
         a plan for NumPy, blocks and parameters, and two files out and in.

All else (compiled code, devices, other formats, pictures) enters itself here, by a hook
(hooks.py) or a registry, and can be taken away: tests/engine/test_core.py does so.
"""

from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})  # imports a module at its first use
