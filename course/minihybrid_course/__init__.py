"""Looking instead of reading: pictures with parts to point at, for notebooks and pages.

`mx.explain` shows the hybrid view (`view.hybrid_view`), `course.passes` graphs pass by pass,
`course.packing` boxes to drag, and `course.walk_back` a tape, step by step; `course.canvas`
is one to draw a digit on, which an exported net reads; `course.elsewhere` shows the same idea
in other libraries. `course.figures` draws what stands still; only the chapters that use it
import it. Texts of graphs and plans (`view.text`), of layers (`view.layers`) and of wrong
calls (`core.call_errors`) are brought when the core asks for them.
"""

from pathlib import Path

from minihybrid.core import lazy
from minihybrid.core.hooks import own_names

# A trace asks this package for lines of Python and needs none of its pictures.
LATER = {
    "canvas": "minihybrid_course.digit_canvas:canvas",
    "elsewhere": "minihybrid_course.other_libraries:elsewhere",
    "packing": "minihybrid_course.boxes:packing",
    "passes": "view.hybrid_view:passes",
    "walk_back": "minihybrid_course.tape:walk_back",
}
HERE = Path(__file__).parent
__getattr__ = lazy.face(globals(), LATER)

__all__ = ["canvas", "elsewhere", "packing", "passes", "walk_back"]


def __dir__():
    return own_names(globals())
