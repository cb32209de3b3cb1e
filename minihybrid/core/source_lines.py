"""Source locations of traced nodes.

Defines: `is_ours`, whether a frame is the engine's; `lines_above`, the source lines that
         the trace records for each node; `file_of`, the file name for errors.

Limits: lines that only prepare arguments aren't recorded.
"""

import sys
from types import CodeType, FrameType

PACKAGES = ("minihybrid", "minihybrid_course")


def is_ours(frame: FrameType) -> bool:
    """Return whether a frame runs code of the engine or the course."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in PACKAGES


def lines_above(below: CodeType) -> tuple[tuple[CodeType, int], ...]:
    """Return the active source lines of the traced program, outermost first.

    These are lines of user functions or, if there are none, of the layer's forward.
    below:   the code object of the frame to stop at.
    Returns: ((code object, line), ...).
    """
    frame: FrameType | None
    users, layers, frame = [], [], sys._getframe(1)
    while frame and frame.f_code is not below:
        place = frame.f_code, frame.f_lineno
        if not is_ours(frame):
            users.append(place)
        elif place[0].co_name in ("forward", "hybrid_forward"):
            layers.append(place)
        frame = frame.f_back
    return tuple(reversed(users or layers[:1]))


def file_of(frame: FrameType) -> str:
    """Return the file of a frame's code; `Cell In[3]` in a notebook."""
    file, get_ipython = frame.f_code.co_filename, frame.f_globals.get("get_ipython")
    if get_ipython is None:
        return file
    shell = get_ipython()
    if hasattr(shell.compile, "format_code_name"):
        return " ".join(shell.compile.format_code_name(file) or [file])
    import linecache  # slow to import

    # IPython 7 doesn't name cells: find the cell by its source.
    text = "".join(linecache.getlines(file)).strip()
    cells = [n for n, cell in enumerate(shell.user_ns["_ih"]) if text and cell.strip() == text]
    return f"Cell In[{cells[-1]}]" if cells else file
