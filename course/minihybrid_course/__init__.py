"""Looking instead of reading: pictures with parts to point at, for notebooks and pages.

`mx.explain` shows the hybrid view (`view.hybrid_view`), `course.passes` graphs pass by pass,
`course.packing` boxes to drag, and `course.walk_back` a tape, step by step; `course.canvas`
is one to draw a digit on, which an exported net reads; `course.elsewhere` shows the same idea
in other libraries. `course.figures` draws what stands still; only the chapters that use it
import it. Texts of graphs and plans (`view.text`), of layers (`view.layers`) and of wrong
calls (`core.call_errors`) are brought when the core asks for them.
"""

from pathlib import Path

HERE = Path(__file__).parent
LATER = {
    "canvas": "minihybrid_course.digit_canvas:canvas",
    "elsewhere": "minihybrid_course.other_libraries:elsewhere",
    "packing": "minihybrid_course.boxes:packing",
    "passes": "view.hybrid_view:passes",
    "walk_back": "minihybrid_course.tape:walk_back",
}

__all__ = ["canvas", "elsewhere", "packing", "passes", "walk_back"]


# The engine is imported here and not above: teachers' tools start where NumPy is missing.
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from minihybrid.core import lazy

    return lazy.face(globals(), LATER)(name)


def __dir__():
    from minihybrid.core.hooks import own_names

    return own_names(globals())
