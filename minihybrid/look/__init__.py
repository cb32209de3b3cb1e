"""Looking instead of reading: pictures with parts to point at, for notebooks and pages.

`mx.explain` shows the hybrid view (`look.view`), `look.passes` graphs pass by pass,
`look.packing` boxes to drag, and `look.walk_back` a tape, step by step; `look.canvas` is
one to draw a digit on, which an exported net reads; `look.elsewhere` shows the same idea
in other libraries. `look.figures` draws what stands still; only the chapters that use it
import it. Texts of graphs and plans (`look.text`), of layers (`look.layers`) and of wrong
calls (`look.misfit`) are brought when the core asks for them.
"""

from minihybrid import faces
from minihybrid.core.hooks import own_names
from minihybrid.look.boxes import packing
from minihybrid.look.canvas import canvas
from minihybrid.look.elsewhere import elsewhere
from minihybrid.look.tape import walk_back
from minihybrid.look.view import passes

__getattr__ = faces.face(globals(), {})

__all__ = ["canvas", "elsewhere", "packing", "passes", "walk_back"]


def __dir__():
    return own_names(globals())
