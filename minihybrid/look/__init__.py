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

# A trace asks this package for lines of Python and needs none of its pictures.
LATER = {
    "canvas": "look.digit_canvas:canvas",
    "elsewhere": "look.other_libraries:elsewhere",
    "packing": "look.boxes:packing",
    "passes": "look.view:passes",
    "walk_back": "look.tape:walk_back",
}
__getattr__ = faces.face(globals(), LATER)

__all__ = ["canvas", "elsewhere", "packing", "passes", "walk_back"]


def __dir__():
    return own_names(globals())
