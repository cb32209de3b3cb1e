"""Chapter 13. The current trace, to which operations on symbols are appended.

Defines: `Trace`, `tracing`, and `user_line`, which locates an error in user code.
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
    """A symbol was used where only an array will do."""


class Trace:
    """The nodes recorded while a function is traced.

    lower:   decompose composite operators while recording. Otherwise the user's program
             is traced, and `places` keeps the source lines of each node:
             node -> ((code object, line), ...), outermost first.
    """

    def __init__(self, lower=False, training=False):
        self.nodes, self.known, self.params, self.places = [], set(), {}, {}
        self.lower, self.training, self.n_streams = lower, training, 0
        self.below = sys._getframe(1).f_code  # the frame at which `lines_above` stops

    def add(self, node):
        """Append a node and infer its specs as far as its inputs' specs are known."""
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
    """The trace of this thread."""

    trace: Trace | None = None
    direct = False  # whether a plain `forward` is running on symbols


CURRENT = Current()


@contextmanager
def tracing(trace):
    """Record operations on symbols inside this `with` block in the trace."""
    with scoped(CURRENT, trace=trace):
        yield trace


def direct(active=True):
    """Inside this `with` block, a `forward` without F runs on symbols.

    Symbols then have known shapes, and parameters and new arrays are symbols.
    """
    return scoped(CURRENT, direct=active)


def is_direct():
    """Return whether a `forward` without F is running on symbols."""
    return CURRENT.direct


def is_tracing():
    """Return whether a function is being traced in this thread."""
    return CURRENT.trace is not None


def user_line():
    """Return the current location in user code, as in ` (file.py, line 3)`."""
    frame = sys._getframe(1)
    while frame and is_ours(frame):
        frame = frame.f_back
    return f" ({file_of(frame)}, line {frame.f_lineno})" if frame else ""
