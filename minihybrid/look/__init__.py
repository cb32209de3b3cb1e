"""Looking instead of reading: pictures with parts to point at, for notebooks and pages.

`mx.explain` shows the hybrid view (`look.view`), `look.passes` graphs pass by pass,
`look.packing` boxes to drag, and `look.walk_back` a tape, step by step. Texts of graphs
and plans (`look.text`) and of layers (`look.layers`) enter themselves into the core.
"""

from minihybrid.look import layers, places, text
from minihybrid.look.boxes import packing
from minihybrid.look.tape import walk_back
from minihybrid.look.view import passes

__all__ = ["layers", "packing", "passes", "places", "text", "walk_back"]
