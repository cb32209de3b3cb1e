"""Interactive figures for notebooks and pages.

`mx.explain` shows the hybrid view (`view.hybrid_view`), `course.passes` a graph after each
pass, `course.packing` draggable buffers, and `course.walk_back` a backward pass over a tape,
step by step; `course.canvas` recognizes a digit that the reader draws, with an exported net;
`course.elsewhere` shows the same concept in other libraries. `course.figures` draws static
figures; only the chapters that use it import it. The text forms of graphs and plans
(`view.text`), layers (`view.layers`) and call errors (`core.call_errors`) load on demand.
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


# The engine is imported lazily, so that teachers' tools also run without NumPy.
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from minihybrid.core import lazy

    return lazy.face(globals(), LATER)(name)


def __dir__():
    from minihybrid.core.hooks import own_names

    return own_names(globals())()
