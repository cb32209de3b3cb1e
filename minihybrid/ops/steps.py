"""Chapter 12. The steps of an operator that is made of others, written down once.

Takes:   records, and the specs and attributes of an application.
Gives:   `steps_of`, for whoever wants to go to those operators at once; `quickly`, what
         computes a step; `one_by_one` and `straight`, which go through all, on the tape
         and off it.

What is left out: operators that draw random numbers, or have states.
"""

import sys
from contextvars import copy_context
from functools import cache, partial
from operator import methodcaller
from typing import NamedTuple

import numpy as np

from minihybrid.core.op import UNEXPECTED, Spec, ndarray
from minihybrid.ops.infix import Value

LARGE = 2**17  # bytes: smaller blocks the C library keeps as it is

with np.errstate(all="ignore"):  # NaN and infinity are answers, too
    QUIET = copy_context()


def specs_of(datas):
    """What a shape rule has to know of arrays."""
    return tuple([Spec(d.shape, d.dtype) for d in datas])


class Step(NamedTuple):
    """An operator that computes itself; the specs and the places of its inputs, and the
    places of its outputs. The first places are those of what all steps begin with."""

    op: object
    attrs: dict
    specs: list
    places: list
    outs: list


class Probe(Value):
    """Stands for an array where `steps_of` looks at what is done with it."""

    __slots__ = ("noted", "place", "spec")
    level = 2

    def __init__(self, noted, spec):
        self.noted, self.spec, self.place = noted, spec, noted.n_places
        noted.n_places += 1

    @property
    def shape(self):
        """The length of each axis."""
        return self.spec.shape

    def lines_up(self, other):
        """Whether an elementwise operator fits without broadcasting."""
        return self.shape == other.shape

    def interpret(self, op, inputs, attrs, name=None):
        """Note down what is applied to what; if it is made of others, those."""
        noted, specs = self.noted, [v.spec for v in inputs]
        outs = op.specs_of(specs, attrs)[1]
        if op.eager is None:
            return op.expanded(specs, inputs, attrs, noted.training)
        if op.random:
            raise LookupError("each call draws other numbers")
        made = tuple([Probe(noted, spec) for spec in outs])
        noted.append(Step(op, attrs, specs, [v.place for v in inputs], [v.place for v in made]))
        return made if len(made) > 1 else made[0]


class Noted(list):
    """The steps so far, how many places they and the inputs take, and the mode."""

    def __init__(self, training):
        self.training, self.n_places = training, 0


def steps_of(op, specs, attrs):
    """(steps, places of the outputs) of an operator, of which each step computes itself.

    There are no steps if it does more than apply operators, or other things in training.

    >>> from minihybrid.core.op import Spec
    >>> from minihybrid.ops import OPS
    >>> steps, outs = steps_of(
    ...     OPS["mean"], [Spec((2, 4), np.dtype("float32"))], OPS["mean"].normalize({})
    ... )
    >>> [(step.op.name, step.places, step.outs) for step in steps], outs
    ([('sum', [0], [1]), ('_mul_scalar', [1], [2])], [2])
    """
    found = [_steps(op, specs, attrs, training) for training in (False, True)[: 1 + op.modal]]
    return found[0] if found[0] == found[-1] else ([], [])


def _steps(op, specs, attrs, training):
    noted = Noted(training)
    inputs = [Probe(noted, spec) for spec in specs]
    try:
        out = inputs[0].interpret(op, inputs, attrs)
        outs = [v.place for v in (out if isinstance(out, tuple) else (out,))]
    except (AttributeError, *UNEXPECTED):
        return [], []
    if op.aux or min(outs) < len(inputs):  # states, or an array that is no new one
        return [], []
    steps, read = [], {*outs}
    for step in reversed(noted):
        if not read.isdisjoint(step.outs):
            steps.insert(0, step)
            read.update(step.places)
    return steps, outs


@cache
def keep_freed_memory() -> None:
    """Let Linux's C library keep blocks of up to 32 MB that are freed for the next arrays.

    It raises its limit to the largest block that it saw freed. Below that limit a result
    of eager code reuses memory; above it each result is new memory, whose pages the
    system fills with zeros one by one. A chain of operators on 4 MB takes 4 times as long.
    """
    np.empty(2**25 - 2**13 if sys.platform == "linux" else 0, np.int8)


def quickly(step):
    """NumPy's function of a step, with all choices made that its specs allow."""
    op, attrs, specs, *_ = step
    if any(spec.nbytes >= LARGE for spec in specs):
        keep_freed_memory()
    if op.view:
        return methodcaller("reshape", op.specs_of(specs, attrs)[1][0].shape)
    run = op.settled and QUIET.copy().run(partial(op.settled, *specs, **attrs))
    return run or (partial(op.eager, **attrs) if attrs else op.eager)


def one_by_one(steps, paths, outs):
    """What applies each step's path to the arrays at its places, and gives those at `outs`."""
    last = steps[-1].outs[-1]

    def path(inputs, datas):
        values = [*inputs[: len(datas)]]
        values += [None] * (last + 1 - len(values))
        for step, one in zip(steps, paths, strict=True):
            given = [values[i] for i in step.places]
            out = one(given, [v.data for v in given])
            values[step.outs[0] : step.outs[-1] + 1] = out if type(out) is tuple else (out,)
        return tuple([values[i] for i in outs]) if len(outs) > 1 else values[outs[0]]

    return path


def straight(steps, runs, outs, n):
    """The same of `n` arrays of NumPy's, written out: only the last ones become others."""
    scope = {"compact": _compact} | {f"step{k}": run for k, run in enumerate(runs)}
    lines = []
    for k, step in enumerate(steps):
        out = f"step{k}({_named(step.places)})"
        lines.append(f"    {_named(step.outs)} = {out if step.op.view else f'compact({out})'}\n")
    exec(f"def run({_named(range(n))}):\n{''.join(lines)}    return {_named(outs)}", scope)
    return scope.pop("run")


def _named(places):
    return ", ".join([f"x{i}" for i in places])


def _compact(out):
    """In one piece, as the next step finds it elsewhere: NumPy adds up others otherwise."""
    if type(out) is tuple:
        return tuple(map(_compact, out))
    return out if type(out) is ndarray and out.flags.c_contiguous else np.array(out, order="C")
