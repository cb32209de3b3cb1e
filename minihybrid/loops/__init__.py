"""Loops in graphs: MXNet's `foreach` as one node, and the primitive below it.

Takes:   the body of a loop, as a graph.
Gives:   `turns`, the primitive that runs it, and its gradient; `foreach`, MXNet's operator.
"""

from minihybrid import faces

__getattr__ = faces.face(globals(), {})

__all__ = ["foreach", "turns"]
