"""Looking instead of reading: pictures with parts to point at, for notebooks and pages.

`mx.explain` shows the hybrid view (`look.view`), `look.passes` graphs pass by pass,
`look.packing` boxes to drag, and `look.walk_back` a tape, step by step.
"""

from minihybrid.look.boxes import packing
from minihybrid.look.tape import walk_back
from minihybrid.look.view import passes

__all__ = ["packing", "passes", "walk_back"]
