"""Targets: what makes a function of an optimised graph.

Takes:   what enters itself: NumPy here, compiled code and devices from elsewhere.
Gives:   `TARGETS`, a `Target` a name; `best_target`, the usual one, and `target_of`,
         the one for an array; `Table`, what a plan reads by address; `Call`.

What is left out: one graph on several targets.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Target(NamedTuple):
    """What the pipeline and a plan ask of a target.

    generate:    (graph, memory, inputs) -> what the target makes of a graph: `text`,
                 `kernels`, `n_kernels`, `table`, `steps`, `nbytes_helpers`.
    load:        what was made -> its function; compiled, or loaded from the cache.
    call:        (plan, arrays, key) -> the text of a call of that function; the key of
                 random numbers is empty where there are none.
    bound:       (arrays, constants, device) -> the table of both, by which a call reads
                 them, and what must live as long.
    tiers:       (job, wait) -> the plans of a job, of which one is in force.
    unsupported: graph -> why the target cannot run it; `None` if it can.
    passes:      those after `dce`.
    scratch_of:  node -> what its loops need beside.
    usable:      () -> whether it may be the usual target, if it is `here`.
    here:        whether it reads arrays in the processor's memory.
    names:       what the text of `call` uses.
    runner:      plan -> (function, `run(arrays, bound)`, which gives the outputs), of a
                 target that needs no such text.
    """

    generate: Callable
    load: Callable | None
    call: Callable | None
    bound: Callable
    tiers: Callable
    unsupported: Callable = lambda graph: None
    passes: tuple = ()
    scratch_of: Callable | None = None
    usable: Callable = lambda: True
    here: bool = True
    names: dict = {}
    runner: Callable | None = None


TARGETS = {}  # name -> Target; those that serve better come later


def best_target():
    """The target that is used unless another is asked for: what is installed."""
    return next(n for n in reversed(TARGETS) if TARGETS[n].here and TARGETS[n].usable())


def target_of(array, target=None):
    """The target of a plan that reads an array: a device runs its own kernels.

    target:  for arrays in the processor's memory; unless given, the best.
    """
    return target or best_target() if isinstance(array.device, str) else array.device


def in_order(arrays, constants):
    """Arrays of the processor's, each as one block without gaps."""
    return [np.asarray(a, order="C") for a in (*arrays, *constants)]  # keeps 0 axes


class Call(NamedTuple):
    """One line of a plan's text, and whose it is; the text ends in these lines.

    node:    the node of the graph that is computed there.
    kernel:  the name of the function that is called; "" for one of NumPy's.
    made:    line of that function's body -> which of the fused nodes it computes.
    """

    node: Any
    kernel: str = ""
    made: dict = {}


class Table:
    """Which parameters and constants a plan reads by address, in order."""

    def __init__(self, graph, inputs):
        self.inputs = list(inputs)
        given = set(self.inputs)
        self.params = [n for n in graph.variables if n.name not in given]
        self.constants = [n for n in graph.nodes if n.op is None and n.values is not None]
