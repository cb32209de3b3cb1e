"""Which lines of a program made a node, and what their file is called.

Takes:   the frames that run while a function is traced.
Gives:   `is_ours`, whether a frame is the engine's; `lines_above`, which the trace keeps for
         each node, so that pictures show both; `file_of`, which errors name.

What is left out: lines that only prepare arguments.
"""

import sys
from types import CodeType, FrameType

PACKAGES = ("minihybrid", "minihybrid_course")


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs code of the engine or of its course."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in PACKAGES


def lines_above(below: CodeType) -> tuple[tuple[CodeType, int], ...]:
    """The lines of the traced program that are running, outermost first.

    Those of the user's functions; if there are none, of the layer's own forward.
    Returns: ((code object, line), ...);  below: the code of the frame to stop at.
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
    """The file of a frame's code; `Cell In[3]` in a notebook."""
    file, get_ipython = frame.f_code.co_filename, frame.f_globals.get("get_ipython")
    if get_ipython is None:
        return file
    shell = get_ipython()
    if hasattr(shell.compile, "format_code_name"):
        return " ".join(shell.compile.format_code_name(file) or [file])
    import linecache  # which loads the tokenizer

    # IPython 7 has no names of cells: they are found by their text.
    text = "".join(linecache.getlines(file)).strip()
    cells = [n for n, cell in enumerate(shell.user_ns["_ih"]) if text and cell.strip() == text]
    return f"Cell In[{cells[-1]}]" if cells else file
