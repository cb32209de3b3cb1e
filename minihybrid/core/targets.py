"""Targets: the back ends that turn an optimized graph into a function.

Defines: `TARGETS`, name -> `Target`; `best_target`, the default, and `target_of`, that of
         an array; `Table`, the arrays that a plan reads by address; `Call`.

Not supported: one graph on several targets.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Target(NamedTuple):
    """The interface of a back end.

    generate:    (graph, memory, inputs) -> its code object, with `text`, `kernels`,
                 `n_kernels`, `table`, `launches`, `nbytes_helpers`.
    load:        code object -> function, compiled or loaded from the cache.
    call:        (plan, arrays, key) -> source of a call of that function; `key`, of the
                 random stream, may be empty.
    bound:       (arrays, constants, device) -> (table of their addresses, objects to keep
                 alive with it).
    tiers:       (job, wait) -> the `ActivePlan` of a job.
    unsupported: graph -> why the target can't run it; `None` if it can.
    passes:      to run after `dce`.
    scratch_of:  node -> scratch memory of its loops.
    usable:      () -> whether it can be the default target, if it is `here`.
    here:        whether it reads arrays in the CPU's memory.
    names:       globals of the source that `call` returns.
    runner:      plan -> (function, `run(arrays, bound)` -> outputs), for a target that
                 needs no generated caller.
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


TARGETS = {}  # name -> Target, in order of preference, best last


def best_target():
    """Return the default target: the best one installed."""
    return next(n for n in reversed(TARGETS) if TARGETS[n].here and TARGETS[n].usable())


def target_of(array, target=None):
    """Return the target of a plan that reads an array: for a device array, its device.

    target:  for arrays in the CPU's memory; by default, the best.
    """
    return target or best_target() if isinstance(array.device, str) else array.device


def in_order(arrays, constants):
    """Return CPU arrays, each contiguous."""
    return [np.asarray(a, order="C") for a in (*arrays, *constants)]  # keeps 0 axes


class Call(NamedTuple):
    """Debug information of one line among the last lines of a plan's source.

    node:    the graph node that the line computes.
    kernel:  the name of the called function; "" for one of NumPy's.
    made:    line of that function's body -> the fused node that it computes.
    """

    node: Any
    kernel: str = ""
    made: dict = {}


class Table:
    """The parameters and constants that a plan reads by address, in order."""

    def __init__(self, graph, inputs):
        self.inputs = list(inputs)
        names = set(self.inputs)
        self.params = [n for n in graph.variables if n.name not in names]
        self.constants = [n for n in graph.nodes if n.op is None and n.values is not None]
