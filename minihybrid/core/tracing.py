"""Chapter 13. The trace in progress: what symbols do is appended to it.

Takes:   nodes, one by one, as Python makes them.
Gives:   `Trace`, `tracing`, and the line of the user's code that an error is about.
"""

import sys
import threading
from contextlib import contextmanager

from minihybrid.core.graph import refine
from minihybrid.core.op import UNKNOWN, HybridError
from minihybrid.core.source_lines import file_of, is_ours, lines_above
from minihybrid.core.switches import scoped

IMPERATIVE = "or leave this block imperative, without hybridize()"


class TraceError(HybridError, TypeError):
    """Python asked a symbol for something that only an array has."""


class Trace:
    """The nodes that Python's operators append while a function is traced.

    With `lower`, operators made of simpler ones are replaced by those at once. Else it
    is the user's program that runs, and `places` keeps which lines made a node:
    node -> ((code object, line), ...), from the function that is traced inwards.
    """

    def __init__(self, lower=False, training=False):
        self.nodes, self.known, self.named, self.places = [], set(), {}, {}
        self.lower, self.training, self.n_streams = lower, training, 0
        self.below = sys._getframe(1).f_code  # whose frame ends the way outwards

    def add(self, node):
        """Append a node and find its specs, as far as its inputs' are known."""
        if node.op is not None:
            for source, _ in node.inputs:
                if source not in self.known:
                    raise TraceError(
                        f"{node.op.name}: '{source.name}' was made outside of the function that "
                        f"is being traced{user_line()}; pass it in as an argument"
                    )
            ins = [n.specs[i] if n.specs else UNKNOWN for n, i in node.inputs]
            new_ins, outs = node.op.specs_of(ins, node.attrs)
            for (source, _), spec in zip(node.inputs, new_ins, strict=True):
                if source.op is None and source.values is None:
                    source.specs = (refine(source.name, source.specs[0], spec),)
            node.specs = tuple(outs)
            if not self.lower:
                self.places[node] = lines_above(self.below)
        self.nodes.append(node)
        self.known.add(node)


class Current(threading.local):
    """What is being traced in this thread."""

    trace: Trace | None = None
    direct = False  # whether a plain `forward` is running on symbols


CURRENT = Current()


@contextmanager
def tracing(trace):
    """Append what symbols do inside this `with` block to the trace."""
    with scoped(CURRENT, trace=trace):
        yield trace


def direct(active=True):
    """Inside this `with` block, a `forward` without F runs on symbols.

    The plan is for one signature, so symbols tell the shapes that are known, and
    parameters and new arrays are symbols.
    """
    return scoped(CURRENT, direct=active)


def is_direct():
    """Whether a `forward` without F is running on symbols."""
    return CURRENT.direct


def is_tracing():
    """Whether a function is being traced in this thread."""
    return CURRENT.trace is not None


def user_line():
    """Where in the user's own code we are: ` (file.py, line 3)`."""
    frame = sys._getframe(1)
    while frame and is_ours(frame):
        frame = frame.f_back
    return f" ({file_of(frame)}, line {frame.f_lineno})" if frame else ""
