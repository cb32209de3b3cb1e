"""Chapter 09. Which lines of a program made a node, for pictures that show both.

Takes:   the frames that run while a function is traced.
Gives:   `lines_above`, which the trace keeps for each node.

What is left out: lines that only prepare arguments.
"""

import sys

from minihybrid.core import hooks
from minihybrid.core.tracing import is_ours


@hooks.lines_above.brought
def lines_above(below):
    """The lines of the traced program that are running, outermost first.

    Those of the user's functions; if there are none, of the layer's own forward.
    Returns: ((code object, line), ...);  below: the code of the frame to stop at.
    """
    users, layers, frame = [], [], sys._getframe(1)
    while frame and frame.f_code is not below:
        place = frame.f_code, frame.f_lineno
        if not is_ours(frame):
            users.append(place)
        elif place[0].co_name in ("forward", "hybrid_forward"):
            layers.append(place)
        frame = frame.f_back
    return tuple(reversed(users or layers[:1]))
