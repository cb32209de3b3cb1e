"""Looking instead of reading: pictures with parts to point at, for notebooks and pages.

`mx.explain` shows the hybrid view (`look.view`), `look.packing` boxes to drag, and
`look.walk_back` a tape, step by step.
"""

from minihybrid.look.boxes import packing
from minihybrid.look.tape import walk_back

__all__ = ["packing", "walk_back"]
