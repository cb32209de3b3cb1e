"""Specialized eager calls of composite operators.

Defines: `steps_of`, which records an operator's decomposition for given specs and
         attributes; `specialize`, the NumPy function of a step; `at_once`, a function
         that runs all steps.

Not supported: operators that draw random numbers or have states.
"""

import ctypes
import sys
from contextvars import copy_context
from functools import cache, partial
from operator import methodcaller
from typing import NamedTuple

import numpy as np

from minihybrid.core.op import UNEXPECTED, Constant, HybridError, Node, Spec, ndarray
from minihybrid.core.placement import Elsewhere
from minihybrid.ops.infix import Value

LARGE = 2**17  # bytes: malloc keeps smaller blocks anyway
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h

with np.errstate(all="ignore"):  # NaN and infinity are valid results
    QUIET = copy_context()


def specs_of(datas):
    """Return the specs of arrays."""
    return tuple([Spec(d.shape, d.dtype) for d in datas])


class Step(NamedTuple):
    """A primitive operator, with the specs and slots of its inputs and the slots of its
    outputs. The first slots hold the inputs of all steps."""

    op: object
    attrs: dict
    specs: list
    places: list
    outs: list


class Recorder(Value):
    """A tracer: a placeholder for an array while `steps_of` records."""

    __slots__ = ("place", "recording", "spec")
    level = 2

    def __init__(self, recording, spec):
        self.recording, self.spec, self.place = recording, spec, recording.n_places
        recording.n_places += 1

    @property
    def shape(self):
        """The length of each axis."""
        return self.spec.shape

    def lines_up(self, other):
        """Return whether an elementwise operator needs no broadcasting."""
        return self.shape == other.shape

    def interpret(self, op, inputs, attrs, name=None):
        """Record a primitive; decompose any other operator."""
        recording, specs = self.recording, [v.spec for v in inputs]
        outs = op.specs_of(specs, attrs)[1]
        if op.is_made(specs, attrs):
            return op.expanded(specs, inputs, attrs, recording.training)
        if op.random:
            raise LookupError("each call draws other numbers")
        outs = tuple([Recorder(recording, spec) for spec in outs])
        recording.append(Step(op, attrs, specs, [v.place for v in inputs], [v.place for v in outs]))
        return outs if len(outs) > 1 else outs[0]


class Recording(list):
    """The steps so far, the number of slots, and the mode."""

    def __init__(self, training):
        self.training, self.n_places = training, 0


def steps_of(op, specs, attrs):
    """Return (steps, output slots) of an operator, where each step is a primitive.

    There are no steps if it does more than apply operators, or differs while training.

    >>> from minihybrid.core.op import Spec
    >>> from minihybrid.ops import OPS
    >>> steps, outs = steps_of(
    ...     OPS["mean"], [Spec((2, 4), np.dtype("float32"))], OPS["mean"].normalize({})
    ... )
    >>> [(step.op.name, step.places, step.outs) for step in steps], outs
    ([('sum', [0], [1]), ('_mul_scalar', [1], [2])], [2])
    """
    by_mode = [_steps(op, specs, attrs, training) for training in (False, True)[: 1 + op.modal]]
    return by_mode[0] if by_mode[0] == by_mode[-1] else ([], [])


def _steps(op, specs, attrs, training):
    recording = Recording(training)
    inputs = [Recorder(recording, spec) for spec in specs]
    try:
        out = inputs[0].interpret(op, inputs, attrs)
        outs = [v.place for v in (out if isinstance(out, tuple) else (out,))]
    except (AttributeError, HybridError, *UNEXPECTED):
        return [], []
    if op.aux or min(outs) < len(inputs):  # states, or an output that is an input
        return [], []
    steps, read = [], {*outs}
    for step in reversed(recording):
        if not read.isdisjoint(step.outs):
            steps.insert(0, step)
            read.update(step.places)
    return steps, outs


@cache
def keep_freed_memory() -> None:
    """Let glibc keep up to 1 GB of freed memory, in blocks of up to 32 MB each.

    Otherwise, large eager results are fresh pages, which the system zeroes one by one: a
    chain of operators on 4 MB takes 4 times as long, and each training step starts with
    fresh pages again.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt:  # glibc
        for option, nbytes in ((M_MMAP_THRESHOLD, 2**25), (M_TRIM_THRESHOLD, 2**30)):
            mallopt(option, nbytes)


def specialize(step):
    """Return a step's NumPy function, specialized for its specs."""
    op, attrs, specs, *_ = step
    outs = op.specs_of(specs, attrs)[1]
    if any(spec.known and spec.nbytes >= LARGE for spec in (*specs, *outs)):
        keep_freed_memory()
    if op.view:
        return methodcaller("reshape", outs[0].shape) if outs[0].shape else ndarray.squeeze
    run = op.settled and QUIET.copy().run(partial(op.settled, *specs, **attrs))
    return run or (partial(op.eager, **attrs) if attrs else op.eager)


def at_once(kind, op, attrs, steps, outs, n, state, refs_of):
    """Return a function that runs all steps: (inputs, their ndarrays) -> outputs.

    kind:    the class of the outputs.
    state:   whether operators are recorded;  refs_of: arrays -> tape references.
    """
    write = partial(unroll, steps, [*map(specialize, steps)], n, outs, kind)
    usual = (Node,) * n if state.recording else ()
    written = {usual: write(usual)}  # types of tape references -> function

    def path(inputs, datas):
        refs, kinds = refs_of(inputs[:n]) if state.recording else (), ()
        for node, _ in refs:
            kinds += (type(node),)
        run = written.get(kinds)
        if run is None:
            run = written[kinds] = write(kinds)
        try:
            return QUIET.copy().run(run, *datas, *refs)
        except HybridError:
            raise
        except UNEXPECTED as error:
            raise op.sentence(HybridError, specs_of(datas), attrs, error) from None

    return path


def unroll(steps, runs, n, outs, kind, on):
    """Generate a function that runs steps on `n` NumPy arrays, unrolled.

    kind:    the class of its results.
    on:      types of the inputs' tape references, if some input isn't constant. The function
             then also takes these references, and records the steps:

        def run(x0, r0):
            x1 = step0(x0)
            n0 = Node(op0, (r0,), attrs0, "", None, (x1,))
            x2 = step1(x1).copy()
            n1 = Node(op1, ((n0, 0),), attrs1, "", None, (x2,))
            return kind(x2, n1, 0)
    """
    stored = [i for step in steps for i in step.outs] if on else outs  # in separate memory
    source = dict.fromkeys(range(n))  # slot -> slot of the array that owns its memory
    for op, _, _, places, slots in steps:
        source |= {i: source[places[0]] if op.view else i for i in slots}
    owners = [source[i] for i in stored]
    refs = {i: f"r{i}" for i in range(n) if on and on[i] is not Constant}  # on the tape
    all_refs = {i: f"r{i}" for i in range(n)}  # including constants
    scope = {"compact": _compact, "own": fresh, "kind": kind, "Node": Node, "Constant": Constant}
    takes = [_names(range(n)), *([_names(range(n), "r")] if on else ())]
    lines = [f"def run({', '.join(takes)}):\n"]
    for k, (op, attrs, _, places, slots) in enumerate(steps):
        scope |= {f"step{k}": runs[k], f"op{k}": op, f"attrs{k}": attrs}
        value, at = f"step{k}({_names(places)})", source[slots[0]]
        if op.view and not {*slots}.isdisjoint(stored) and (at is None or owners.count(at) > 1):
            value += ".copy()"
        elif not (op.view or op.gives_own):
            value = f"{'compact' if {*slots}.isdisjoint(owners) else 'own'}({value})"
        lines.append(f"    {_names(slots)} = {value}\n")
        if on and op.grad and not refs.keys().isdisjoint(places):
            inputs = "".join([all_refs[i] + ", " for i in places])
            lines.append(
                f"    n{k} = Node(op{k}, ({inputs}), attrs{k}, '', None, ({_names(slots)},))\n"
            )
            refs |= {i: f"(n{k}, {j})" for j, i in enumerate(slots)}
        elif on:
            lines += [f"    r{i} = Constant(x{i}), 0\n" for i in slots]
        all_refs |= {i: refs.get(i, f"r{i}") for i in slots}
    results = [f"kind(x{i}, {refs[i][1:-1]})" if i in refs else f"kind(x{i})" for i in outs]
    exec(f"{''.join(lines)}    return {', '.join(results)}", scope)
    return scope.pop("run")


def _names(places, letter="x"):
    return ", ".join([f"{letter}{i}" for i in places])


def _compact(out):
    """Make an array contiguous, because NumPy sums other layouts in another order."""
    return out if type(out) is ndarray and out.flags.c_contiguous else fresh(out)


def fresh(out):
    """Return an array, or a tuple of them, in fresh contiguous memory, like a device's
    results."""
    if type(out) is ndarray:
        return out if out.base is None and out.flags.c_contiguous else out.copy()
    if type(out) is tuple:
        return tuple(map(fresh, out))
    return out if isinstance(out, Elsewhere) else np.array(out, order="C")
