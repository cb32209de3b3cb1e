"""Ways of writing one program: rewrites that leave its answers as they are.

    rewritten(program, (("transposed product", 3),))

A rewrite is one small function. It looks at a step or a value, and adds steps to an
`Edit` whose result stands for it; `None` says that it does not fit there. `EXACT` ones
keep every bit of a prediction; the others may round once more. A drawn rewrite is a name
and a number, which chooses the place and the details, so it also applies to a smaller
program: what is shrunk is the pair (program, rewrites).
Left out: ways of calling a program, which are in `metamorphic`.
"""

import itertools
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from programs.rules import BY_NAME, public_names
from programs.run import INFIX, NO_GRADIENT, Input, Program, Step, first_of, heads
from programs.shrink import values_of

FRESH = 10**6  # numbers of new values begin here


class Rewrite(NamedTuple):
    """One way of writing a step or a value.

    make:   (Edit, step or number of a value) -> number(s) of what stands for it, or `None`.
    exact:  whether each answer keeps its bits.
    steps:  whether it stands for a step; else for a value.
    ops:    the operators of such steps; any if there is none.
    """

    name: str
    make: Callable
    exact: bool
    steps: bool
    ops: tuple[str, ...] = ()


class Unfit(Exception):
    """A rewrite has no place in a program."""


class Edit:
    """New steps for one place of a program; calling it adds one and gives its value.

    For example `edit("+", v, v)`, of an infix operator or a name in `F`.
    """

    def __init__(self, program: Program, values: list[np.ndarray], rng: random.Random) -> None:
        self.program, self.arrays, self.rng = program, values, rng
        self.steps: list[tuple[Step, list[int]]] = []
        self.inputs: dict[int, Input] = {}
        self.numbers = itertools.count(FRESH)
        self.is_np = program.world == "np"

    def __call__(self, op: str, *inputs: int, n_outputs: int = 1, **attrs) -> int | list[int]:
        outs = [next(self.numbers) for _ in range(n_outputs)]
        self.steps.append((Step(op, inputs, attrs, n_outputs), outs))
        return outs if n_outputs > 1 else outs[0]

    def constant(self, array: np.ndarray) -> int:
        """A new input, which has no gradient."""
        number = next(self.numbers)
        self.inputs[number] = Input(array.shape, array.dtype.name, tuple(array.ravel().tolist()))
        return self("BlockGrad", number) if array.dtype.kind == "f" else number

    # -- what is known of the program's values
    def shape(self, v: int) -> tuple[int, ...]:
        return self.arrays[v].shape

    def kind(self, v: int) -> str:
        return self.arrays[v].dtype.kind

    def axis(self, v: int) -> int | None:
        """An axis of a value."""
        return self.rng.randrange(self.arrays[v].ndim) if self.arrays[v].ndim else None

    # -- what both worlds have, under their names
    def reshape(self, v: int, shape: tuple[int, ...]) -> int:
        return (
            self("np.reshape", v, newshape=shape) if self.is_np else self("reshape", v, shape=shape)
        )

    def transpose(self, v: int, axes: tuple[int, ...]) -> int:
        return self("np.transpose" if self.is_np else "transpose", v, axes=axes)

    def swap(self, v: int, one: int, two: int) -> int:
        name, keys = (
            ("np.swapaxes", ("axis1", "axis2")) if self.is_np else ("SwapAxis", ("dim1", "dim2"))
        )
        return self(name, v, **dict(zip(keys, (one, two), strict=True)))

    def flip(self, v: int, axis: int) -> int:
        return self("np.flip" if self.is_np else "reverse", v, axis=axis)

    def concat(self, parts: list[int], axis: int) -> int:
        return (
            self("np.concatenate", *parts, axis=axis)
            if self.is_np
            else self("concat", *parts, dim=axis)
        )

    def part(self, v: int, axis: int, begin: int, end: int) -> int:
        """A slice along one axis."""
        if self.is_np or self.rng.random() < 0.3:
            key = (("slice", None, None, None),) * axis + (("slice", begin, end, None),)
            return self("[]", v, key=key)
        return self("slice_axis", v, axis=axis, begin=begin, end=end)

    def expand(self, v: int, axis: int) -> int:
        return self("np.expand_dims" if self.is_np else "expand_dims", v, axis=axis)

    def squeeze(self, v: int, axis: int) -> int:
        return self("np.squeeze" if self.is_np else "squeeze", v, axis=axis)

    def sum(self, v: int, axis: int | tuple[int, ...], keepdims: bool = False) -> int:
        return self("np.sum" if self.is_np else "sum", v, axis=axis, keepdims=keepdims)

    def negative(self, v: int) -> int:
        return self("np.negative" if self.is_np else "negative", v)


# -- where a rewrite goes --------------------------------------------------------------
def spliced(edit: Edit, at: int, removed: int, renamed: dict[int, int]) -> Program:
    """The program with an edit's steps before step `at`, in place of `removed` ones.

    renamed:  old value -> new value, for steps behind and for outputs.
    """
    program = edit.program
    rows = [
        (step, list(range(first_of(program, k), first_of(program, k) + step.n_outputs)))
        for k, step in enumerate(program.steps)
    ]
    behind = [
        (replace(s, inputs=tuple(renamed.get(i, i) for i in s.inputs)), outs)
        for s, outs in rows[at + removed :]
    ]
    order = [*range(len(program.inputs)), *edit.inputs]
    rows = rows[:at] + edit.steps + behind
    order += [number for _, outs in rows for number in outs]
    places = {number: place for place, number in enumerate(order)}
    return program.but(
        inputs=program.inputs + tuple(edit.inputs.values()),
        steps=tuple(replace(s, inputs=tuple(places[i] for i in s.inputs)) for s, _ in rows),
        outputs=tuple(places[renamed.get(i, i)] for i in program.outputs),
    )


def at_step(rewrite: Rewrite, edit: Edit, k: int) -> Program | None:
    """The program with step `k` written in another way."""
    step, first = edit.program.steps[k], first_of(edit.program, k)
    made = rewrite.make(edit, step)
    if made is None:
        return None
    made = made if isinstance(made, list) else [made]
    return spliced(edit, k, 1, dict(zip(range(first, first + step.n_outputs), made, strict=True)))


def at_value(rewrite: Rewrite, edit: Edit, v: int) -> Program | None:
    """The program in which steps behind a value read it in another way."""
    program = edit.program
    if v < len(program.inputs) and program.inputs[v].role == "state":
        return None
    made = rewrite.make(edit, v)
    if made is None:
        return None
    ends = [first_of(program, k) + s.n_outputs for k, s in enumerate(program.steps)]
    return spliced(edit, sum(end <= v for end in ends) + (v >= len(program.inputs)), 0, {v: made})


def rewritten(program: Program, rewrites: tuple[tuple[str, int], ...]) -> Program:
    """The program written in another way: all rewrites, one after another.

    Raises:  Unfit if one has no place.
    """
    for name, number in rewrites:
        new = once(program, TABLE[name], number, quiet_values_of(program))
        if new is None:
            raise Unfit(name)
        program = new
    return program


def once(
    program: Program, rewrite: Rewrite, number: int, values: list[np.ndarray]
) -> Program | None:
    """The program after one rewrite; `None` if it has no place."""
    count = len(program.steps) if rewrite.steps else len(values)
    make = at_step if rewrite.steps else at_value
    for k in range(count):
        edit = Edit(program, values, random.Random(number))
        new = make(rewrite, edit, (number + k) % count)
        if new is not None:
            return new.but(exact=program.exact and rewrite.exact)
    return None


def drawn(program: Program, seed: int, first: str) -> tuple[tuple[str, int], ...]:
    """Some rewrites of a program, by a seed.

    first:   the name of the one that is tried before others.
    """
    rng, some = random.Random(seed), []
    names, required = sorted(TABLE), rng.choice((1, 1, 2, 2, 3, 4))
    values = quiet_values_of(program)
    for k in range(4 * required):
        name, number = rng.choice(names) if k else first, rng.randrange(1000)
        new = once(program, TABLE[name], number, values)
        if new is None:
            continue
        program = new
        some.append((name, number))
        if len(some) == required:
            break
        values = quiet_values_of(program)
    return tuple(some)


def quiet_values_of(program: Program) -> list[np.ndarray]:
    """Every value of a program, eagerly; floats that differ in training are NaN here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = values_of(program)
    modal: set[int] = set()
    for k, step in enumerate(program.steps):
        first = first_of(program, k)
        if program.train and (is_modal(step) or modal & {*step.inputs}):
            modal |= {*range(first, first + step.n_outputs)}
    return [
        np.full_like(v, np.nan) if k in modal and v.dtype.kind == "f" else v
        for k, v in enumerate(values)
    ]


def is_modal(step: Step) -> bool:
    """Whether a step's results differ in training."""
    return step.op in BY_NAME and BY_NAME[step.op].modal


# -- the table -------------------------------------------------------------------------
TABLE: dict[str, Rewrite] = {}


# They multiply gradients by 0, NaN included.
MIXING = {"rows by a product", "padded batch", "relu by where"}


def of_step(name: str, *ops: str, exact: bool = False) -> Callable:
    """Enter a rewrite of steps with these operators; of any if none is named."""

    def enter(make: Callable) -> Callable:
        def fitting(edit: Edit, step: Step) -> int | list[int] | None:
            return make(edit, step) if not ops or step.op in ops else None

        TABLE[name] = Rewrite(name, fitting, exact, True, ops)
        return make

    return enter


def of_value(name: str, exact: bool = True) -> Callable:
    """Enter a rewrite of values: a chain of steps that gives the value again."""

    def enter(make: Callable) -> Callable:
        TABLE[name] = Rewrite(name, make, exact, False)
        return make

    return enter


ADD = ("+", "elemwise_add", "broadcast_add", "np.add")
SUBTRACT = ("-", "elemwise_sub", "broadcast_sub", "np.subtract")
MULTIPLY = ("*", "elemwise_mul", "broadcast_mul", "np.multiply")
DIVIDE = ("/", "elemwise_div", "broadcast_div", "np.true_divide")
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
NAMES_OF_SIGNS = {  # infix -> names in nd, in np
    "+": ("broadcast_add", "np.add"),
    "-": ("broadcast_sub", "np.subtract"),
    "*": ("broadcast_mul", "np.multiply"),
    "/": ("broadcast_div", "np.true_divide"),
    "**": ("broadcast_power", "np.power"),
    "%": ("broadcast_mod", "np.mod"),
    "==": ("broadcast_equal", "np.equal"),
    "!=": ("broadcast_not_equal", "np.not_equal"),
    "<": ("broadcast_lesser", "np.less"),
    "<=": ("broadcast_lesser_equal", "np.less_equal"),
    ">": ("broadcast_greater", "np.greater"),
    ">=": ("broadcast_greater_equal", "np.greater_equal"),
}


def bounded(array: np.ndarray, low: float, high: float) -> bool:
    """Whether the size of every element is between two bounds: none is 0, inf or NaN."""
    size = np.abs(array.astype(np.float64))
    return array.dtype.kind == "f" and bool(((size >= low) & (size <= high)).all())


def is_smooth(array: np.ndarray) -> bool:
    """Whether no element is where a function has a pole or an edge: 0, 1, -1, or far away."""
    return array.dtype.kind != "f" or bounded(array, 1e-6, 1e6) and not (np.abs(array) == 1).any()


def literal(step: Step) -> float | int | None:
    """The number beside an array, if the step has one on its right."""
    if len(step.inputs) == 1 and not step.attrs.get("reversed"):
        return step.attrs.get("scalar", step.attrs.get("x2"))
    return None


# -- arithmetic ------------------------------------------------------------------------
@of_step("sum of itself", *MULTIPLY, exact=True)
def doubled(e, step):
    """x * 2 as x + x."""
    x = step.inputs[0]
    if literal(step) == 2 and e.kind(x) == "f":
        return e("+", x, x)


@of_step("operands swapped", *ADD, *MULTIPLY, exact=True)
def swapped(e, step):
    if len(step.inputs) == 2:
        return e(step.op, *step.inputs[::-1], **step.attrs)


@of_step("comparison mirrored", *MIRRORED, exact=True)
def mirrored(e, step):
    if len(step.inputs) == 2:
        return e(MIRRORED[step.op], *step.inputs[::-1])
    if e.kind(step.inputs[0]) == "f":  # 2 < x for x > 2
        reverse = not step.attrs.get("reversed", False)
        return e(MIRRORED[step.op], *step.inputs, **{**step.attrs, "reversed": reverse})


@of_step("sum with the negative", *SUBTRACT, exact=True)
def subtracted(e, step):
    """a - b as a + (-b)."""
    if any(e.kind(i) not in "fi" for i in step.inputs):
        return None
    if len(step.inputs) == 2:
        return e("+", step.inputs[0], e.negative(step.inputs[1]))
    if e.kind(step.inputs[0]) == "f" and "scalar" in step.attrs:
        x, s = step.inputs[0], step.attrs["scalar"]
        if step.attrs.get("reversed"):
            return e("+", e.negative(x), scalar=s)
        return e("+", x, scalar=-s)


@of_step("product with the reciprocal", *DIVIDE)
def divided(e, step):
    """a / b as a * (1 / b), where 1 / b is neither large nor small."""
    x = step.inputs[0]
    if len(step.inputs) == 1 and e.kind(x) == "f":
        s = literal(step)
        return e("*", x, scalar=1 / s) if s is not None and 1e-3 <= abs(s) <= 1e3 else None
    if len(step.inputs) == 2 and e.kind(x) == "f" and bounded(e.arrays[step.inputs[1]], 1e-3, 1e3):
        return e("*", x, e("/", step.inputs[1], scalar=1.0, reversed=True))


@of_step("literal as an array", *"+-*/<>", "<=", ">=", "==", "!=", exact=True)
def as_array(e, step):
    """x * 3 as x * (ones_like(x) * 3): a literal takes the array's dtype."""
    x = step.inputs[0]
    if len(step.inputs) == 1 and e.kind(x) == "f":
        s = step.attrs["scalar"]
        s = float(np.asarray(s, e.arrays[x].dtype))
        if e.is_np and e.rng.random() < 0.5:
            other = e("np.full_like", x, fill_value=s)
        else:
            other = e("*", e("np.ones_like" if e.is_np else "ones_like", x), scalar=s)
        both = (other, x) if step.attrs.get("reversed") else (x, other)
        return e(step.op, *both)


@of_step("literal as an input", *"+-*/<>", "<=", ">=", "==", "!=", exact=True)
def as_input(e, step):
    """x * 3 as x * y, where y is an input of one element; 0-d in the world of `mx.np`."""
    x = step.inputs[0]
    if len(step.inputs) == 1 and e.kind(x) == "f" and e.arrays[x].ndim:
        shape = () if e.is_np else (1,) * e.arrays[x].ndim
        other = e.constant(np.full(shape, step.attrs["scalar"], e.arrays[x].dtype))
        both = (other, x) if step.attrs.get("reversed") else (x, other)
        return e(step.op, *both)


@of_step("literal in two factors", *MULTIPLY, exact=True)
def factored(e, step):
    """x * s as (x * 2s) * 0.5: powers of two are exact."""
    x, s = step.inputs[0], literal(step)
    if s is not None and bounded(e.arrays[x], 1e-9, 1e9) and 1e-9 < abs(s) < 1e9:
        return e("*", e("*", x, scalar=2 * s), scalar=0.5)


@of_step("operands stretched by hand", *ADD, *SUBTRACT, *MULTIPLY, *DIVIDE, exact=True)
def stretched(e, step):
    """Broadcasting written out."""
    if len(step.inputs) != 2 or step.op.startswith("elemwise"):
        return None
    shape = np.broadcast_shapes(*map(e.shape, step.inputs))
    if not shape or not e.is_np and 0 in shape or len({e.arrays[i].ndim for i in step.inputs}) > 1:
        return None
    name = "np.broadcast_to" if e.is_np else "broadcast_to"
    return e(step.op, *(e(name, i, shape=shape) for i in step.inputs))


@of_step("another name", exact=True)
def renamed(e, step):
    """An operator by another of its public names."""
    if step.op in NAMES_OF_SIGNS:
        name = NAMES_OF_SIGNS[step.op][e.is_np]
        return e(name, *step.inputs) if len(step.inputs) == 2 else None
    others = (
        [n for n in public_names(BY_NAME[step.op]) if n != step.op] if step.op in BY_NAME else []
    )
    if others:
        return e(e.rng.choice(others), *step.inputs, n_outputs=step.n_outputs, **step.attrs)


# -- functions by other functions ------------------------------------------------------
@of_step("product with itself", "square", "np.square", exact=True)
def squared(e, step):
    return e("*", step.inputs[0], step.inputs[0])


@of_step("square of the factor", *MULTIPLY, exact=True)
def as_square(e, step):
    if len(step.inputs) == 2 and step.inputs[0] == step.inputs[1]:
        return e("square", step.inputs[0])


@of_step("power by hand", "**")
def power(e, step):
    x, s = step.inputs[0], literal(step)
    if e.kind(x) == "f" and bounded(e.arrays[x], 1e-2, 1e4):
        if s == 2:
            return e("*", x, x)
        if s == 3:
            return e("*", e("*", x, x), x)
        if s == 0.5 and (e.arrays[x] > 0).all():
            return e("sqrt", x)


@of_step("sigmoid by exp", "sigmoid", "npx.sigmoid")
def by_exp(e, step):
    x = step.inputs[0]
    if bounded(e.arrays[x], 0, 20):
        return e("/", e("+", e("exp", e.negative(x)), scalar=1.0), scalar=1.0, reversed=True)


@of_step("tanh by sigmoid", "tanh", "np.tanh")
def by_sigmoid(e, step):
    x = step.inputs[0]
    if bounded(e.arrays[x], 0, 5):
        s = e("sigmoid", e("*", x, scalar=2.0))
        return e("-", e("*", s, scalar=2.0), scalar=1.0)


@of_step("relu by where", "relu", "npx.relu", exact=True)
def relu(e, step):
    x = step.inputs[0]
    if np.isfinite(e.arrays[x]).all() and e.kind(x) == "f":
        return e("where", e(">", x, scalar=0), x, e("zeros_like", x))


@of_step("abs by sign", "abs", "np.absolute", exact=True)
def absolute(e, step):
    x = step.inputs[0]
    if bounded(e.arrays[x], 1e-30, 1e30):
        return e("*", x, e("sign", x))


@of_step("clip by maximum and minimum", "clip", "np.clip", exact=True)
def clipped(e, step):
    x, low, high = step.inputs[0], step.attrs["a_min"], step.attrs["a_max"]
    array = e.arrays[x]
    if bounded(array, 1e-9, 1e9) and np.isfinite([low, high]).all() and low and high:
        if not np.isin(array, np.asarray([low, high], array.dtype)).any():  # kinks
            if e.is_np:
                return e("np.minimum", e("np.maximum", x, x2=low), x2=high)
            ones = e("ones_like", x)
            low, high = (e("*", ones, scalar=s) for s in (low, high))
            return e("broadcast_minimum", e("broadcast_maximum", x, low), high)


@of_step("where of the opposite", "where", "np.where", exact=True)
def opposite(e, step):
    condition, x, y = step.inputs
    if e.kind(condition) != "b":
        return e(step.op, e("==", condition, scalar=0), y, x)


@of_step("maximum by minimum", "broadcast_maximum", "np.maximum", "maximum")
def by_minimum(e, step):
    if len(step.inputs) == 2 and all(bounded(e.arrays[i], 0, 1e30) for i in step.inputs):
        other = step.op.replace("maximum", "minimum")
        return e.negative(e(other, *map(e.negative, step.inputs)))


@of_step("largest by smallest", "max", "np.max")
def largest(e, step):
    x = step.inputs[0]
    if e.kind(x) == "f" and e.arrays[x].size and np.isfinite(e.arrays[x]).all():
        other = step.op.replace("max", "min")
        return e.negative(e(other, e.negative(x), **step.attrs))


@of_step("argmax by argmin", "argmax", "np.argmax", exact=True)
def place(e, step):
    x = step.inputs[0]
    if e.kind(x) == "f" and e.arrays[x].size:
        return e(step.op.replace("max", "min"), e.negative(x), **step.attrs)


@of_step("softmax by log_softmax", "softmax", "npx.softmax")
def softmax(e, step):
    x = step.inputs[0]
    if len(step.inputs) == 1 and bounded(e.arrays[x], 0, 20):
        return e("exp", e(step.op.replace("softmax", "log_softmax"), x, **step.attrs))


@of_step("LayerNorm by mean and variance", "LayerNorm", "npx.layer_norm")
def layer_norm(e, step):
    x, gamma, beta = step.inputs
    array, axis = e.arrays[x], step.attrs.get("axis", -1)
    if axis % max(array.ndim, 1) != array.ndim - 1 or array.ndim < 2 or not array.size:
        return None
    if step.attrs.get("output_mean_var") or not bounded(array, 0, 1e3):
        return None
    mean, sub, mul, div, add = (
        ("np.mean", "-", "*", "/", "+")
        if e.is_np
        else ("mean", "broadcast_sub", "broadcast_mul", "broadcast_div", "broadcast_add")
    )
    apart = e(sub, x, e(mean, x, axis=-1, keepdims=True))
    variance = e(mean, e("*", apart, apart), axis=-1, keepdims=True)
    scaled = e(div, apart, e("sqrt", e("+", variance, scalar=step.attrs.get("eps", 1e-5))))
    row = (1,) * (array.ndim - 1) + (array.shape[-1],)
    return e(add, e(mul, scaled, e.reshape(gamma, row)), e.reshape(beta, row))


# -- sums and products -----------------------------------------------------------------
@of_step("sum in two parts", "sum", "np.sum")
def halves(e, step):
    x, axis = step.inputs[0], step.attrs.get("axis")
    array = e.arrays[x]
    attrs = {k: v for k, v in step.attrs.items() if k in ("axis", "keepdims", "dtype")}
    if not isinstance(axis, int) or attrs != step.attrs or not array.ndim:
        return None
    if array.ndim == 1 and not e.is_np:
        return None  # whose sum has one axis, of length 1
    n = array.shape[axis]
    if n > 1:
        k = e.rng.randrange(1, n)
        parts = (e.part(x, axis % array.ndim, *ends) for ends in ((0, k), (k, n)))
        return e("+", *(e(step.op, part, **attrs) for part in parts))


@of_step("mean by sum", "mean", "np.mean")
def mean(e, step):
    x = step.inputs[0]
    if e.kind(x) == "f" and e.arrays[x].size and not step.attrs.get("exclude"):
        axis = step.attrs.get("axis")
        axes = range(e.arrays[x].ndim) if axis is None or axis == () else np.atleast_1d(axis)
        n = int(np.prod([e.shape(x)[a] for a in axes]))
        return e("/", e(step.op.replace("mean", "sum"), x, **step.attrs), scalar=float(n))


@of_step("transposed product", "dot", "batch_dot", "linalg.gemm2", "np.dot", "np.matmul")
def transposed(e, step):
    """(a b)' = b' a'."""
    a, b = step.inputs
    n = e.arrays[a].ndim
    if n != e.arrays[b].ndim or n < 2 or step.op in ("dot", "np.dot") and n > 2:
        return None
    if step.op.startswith("np."):
        if e.shape(a)[:-2] != e.shape(b)[:-2]:
            return None
        a, b = (e.swap(v, n - 1, n - 2) for v in (a, b))
        return e.swap(e(step.op, b, a), n - 1, n - 2)
    flags = {
        "transpose_a": not step.attrs.get("transpose_b", False),
        "transpose_b": not step.attrs.get("transpose_a", False),
    }
    return e.swap(e(step.op, b, a, **{**step.attrs, **flags}), n - 1, n - 2)


@of_step("transposed operand", "dot", "batch_dot", "linalg.gemm2")
def other_flag(e, step):
    """A flag instead of a transposition, or the other way round."""
    flag, at = e.rng.choice((("transpose_a", 0), ("transpose_b", 1)))
    n = e.arrays[step.inputs[at]].ndim
    if n != (2 if step.op == "dot" else 3) or e.arrays[step.inputs[1]].ndim != n:
        return None
    ins = list(step.inputs)
    ins[at] = e.swap(ins[at], n - 1, n - 2)
    return e(step.op, *ins, **{**step.attrs, flag: not step.attrs.get(flag, False)})


@of_step("product by a sum", "dot", "np.dot", "np.matmul")
def by_sum(e, step):
    """A product of matrices as a sum over a third axis; NumPy's sum of booleans counts them."""
    a, b = step.inputs
    if e.is_np and e.arrays[a].dtype == "bool":
        return None
    if e.arrays[a].ndim != 2 or e.arrays[b].ndim != 2 or e.arrays[a].size * e.shape(b)[1] > 500:
        return None
    if step.attrs.get("transpose_a"):
        a = e.transpose(a, (1, 0))
    if step.attrs.get("transpose_b"):
        b = e.transpose(b, (1, 0))
    cells = e("*" if e.is_np else "broadcast_mul", e.expand(a, 2), e.expand(b, 0))
    return e.sum(cells, axis=1)


@of_step("layer by a product", "FullyConnected", "npx.fully_connected")
def by_product(e, step):
    x, weight, *bias = step.inputs
    shape, (n, k) = e.shape(x), e.shape(weight)
    flat = step.attrs.get("flatten", True)
    if len(shape) < 2 or 0 in shape or 0 in (n, k):
        return None
    data = e.reshape(x, (shape[0] if flat else int(np.prod(shape[:-1])), k))
    out = e("np.dot" if e.is_np else "dot", data, e.transpose(weight, (1, 0)))
    if bias:
        out = e("+" if e.is_np else "broadcast_add", out, e.reshape(bias[0], (1, n)))
    return out if flat else e.reshape(out, (*shape[:-1], n))


@of_step("outer product by broadcasting", "np.outer", exact=True)
def outer(e, step):
    a, b = step.inputs
    sizes = [e.arrays[v].size for v in (a, b)]
    return e("*", e.reshape(a, (sizes[0], 1)), e.reshape(b, (1, sizes[1])))


@of_step("inner product by a sum", "np.vdot")
def inner(e, step):
    return e("np.sum", e("*", *step.inputs))


@of_step("rows by a product", "Embedding", "npx.embedding")
def embedded(e, step):
    index, weight = step.inputs
    places, (n, m) = e.arrays[index], e.shape(weight)
    if not places.size or not ((0 <= places) & (places < n)).all() or not m:
        return None
    if not np.isfinite(e.arrays[weight]).all():
        return None
    cells = e("one_hot", e.reshape(index, (places.size,)), depth=n)
    return e.reshape(e("dot", cells, weight), (*places.shape, m))


@of_step("rows by take", "Embedding", exact=True)
def taken(e, step):
    index, weight = step.inputs
    places = e.arrays[index]
    if ((places >= 0) & (places < e.shape(weight)[0])).all() and places.size:
        return e("take", weight, index)


# -- joining and moving ----------------------------------------------------------------
@of_step("concatenated one by one", "Concat", "concat", "np.concatenate", exact=True)
def one_by_one(e, step):
    if len(step.inputs) < 2 or step.attrs.get("axis", 0) is None:
        return None
    out = step.inputs[0]
    for other in step.inputs[1:]:
        out = e(step.op, out, other, **step.attrs)
    return out


@of_step("stack by concatenation", "stack", "np.stack", exact=True)
def stacked(e, step):
    n = e.arrays[step.inputs[0]].ndim + 1
    axis = step.attrs.get("axis", 0) % n
    return e.concat([e.expand(i, axis) for i in step.inputs], axis)


@of_step("transposition by swaps", "transpose", "np.transpose", exact=True)
def by_swaps(e, step):
    x = step.inputs[0]
    n = e.arrays[x].ndim
    order = list(step.attrs.get("axes") or range(n)[::-1])
    now = list(range(n))
    for k in range(n):
        at = now.index(order[k] % n)
        if at != k:
            x = e.swap(x, k, at)
            now[k], now[at] = now[at], now[k]
    return x if x != step.inputs[0] else None


@of_step("two reshapes", "reshape", "np.reshape", exact=True)
def two_reshapes(e, step):
    x = step.inputs[0]
    shape = step.attrs.get("shape", step.attrs.get("newshape"))
    if not e.arrays[x].size or step.attrs.get("reverse") or any(n < -1 or n == 0 for n in shape):
        return None
    return e.reshape(e.reshape(x, (e.arrays[x].size,)), shape)


def reached(program: Program) -> set[int]:
    """The values that a backward pass writes gradients of, zeros included."""
    needed = {program.outputs[k] for k in heads(program)}
    for k in range(len(program.steps) - 1, -1, -1):
        step, first = program.steps[k], first_of(program, k)
        op = BY_NAME.get(step.op)
        on_tape = not op or op.grad is not None or op.expand is not None
        if on_tape and needed & {*range(first, first + step.n_outputs)}:
            needed |= {*step.inputs}
    return {i for i in needed if i < len(program.inputs)}


# -- parts of a batch ------------------------------------------------------------------
ROWS_OF = {  # operator -> which inputs have the batch as their first axis
    "FullyConnected": (0,),
    "Convolution": (0,),
    "Deconvolution": (0,),
    "Pooling": (0,),
    "InstanceNorm": (0,),
    "Embedding": (0,),
    "one_hot": (0,),
    "batch_dot": (0, 1),
    "linalg.gemm2": (0, 1),
    "npx.fully_connected": (0,),
    "npx.one_hot": (0,),
}
ALONG = ("softmax", "log_softmax", "softmin", "LayerNorm", "npx.softmax", "npx.log_softmax")
OF_ONE = set(
    "exp expm1 log log10 log2 log1p sqrt cbrt square reciprocal sin cos tan arcsin arccos arctan "
    "sinh cosh tanh arcsinh arccosh arctanh degrees radians sign negative floor ceil trunc rint "
    "fix absolute logical_not isnan isinf isfinite".split()
)


def cuts(e: Edit, step: Step) -> tuple[int, tuple[int, ...]] | None:
    """(axis, which inputs have it): an axis along which a step computes part by part."""
    shapes = [e.shape(i) for i in step.inputs]
    if not shapes or not shapes[0] or step.n_outputs > 1:
        return None
    ndim = len(shapes[0])
    if step.op in ROWS_OF:
        return (0, ROWS_OF[step.op]) if ndim > 1 or step.op.endswith(("Embedding", "hot")) else None
    if step.op in ALONG:
        axis = step.attrs.get("axis", -1) % ndim
        others = [a for a in range(ndim) if a != axis]
        return (e.rng.choice(others), (0,)) if others and len(step.inputs) in (1, 3) else None
    if step.op == "dot" and not step.attrs.get("transpose_a") and ndim == 2:
        return 0, (0,)
    elementwise = (
        step.op in INFIX
        or step.op in BY_NAME
        and BY_NAME[step.op].expr is not None
        or step.op.startswith("np.")
        and step.op[3:] in OF_ONE
    )
    if elementwise and len(set(shapes)) == 1:
        return e.rng.randrange(ndim), tuple(range(len(shapes)))
    return None


@of_step("batch in two parts")
def in_parts(e, step):
    """f of a batch as f of two parts, joined."""
    where = cuts(e, step)
    if where is None:
        return None
    axis, cut = where
    n = e.shape(step.inputs[0])[axis]
    if n < 2:
        return None
    k, parts = e.rng.randrange(1, n), []
    for begin, end in ((0, k), (k, n)):
        ins = [e.part(v, axis, begin, end) if i in cut else v for i, v in enumerate(step.inputs)]
        parts.append(e(step.op, *ins, **step.attrs))
    return e.concat(parts, axis)


@of_step("padded batch")
def padded(e, step):
    """f of a batch as a part of f of a longer batch, which repeats its first rows.

    Their gradient is 0 only where it is finite.
    """
    where = cuts(e, step)
    if where is None or not all(is_smooth(e.arrays[i]) for i in step.inputs):
        return None
    axis, cut = where
    n = e.shape(step.inputs[0])[axis]
    if not n:
        return None
    k, ins = e.rng.randint(1, n), list(step.inputs)
    for i in cut:
        ins[i] = e.concat([ins[i], e.part(ins[i], axis, 0, k)], axis)
    return e.part(e(step.op, *ins, **step.attrs), axis, 0, n)


@of_step("folded by hand", exact=True)
def folded(e, step):
    """A step that no gradient passes, as an input: its value, computed eagerly."""
    program = e.program
    at = next(k for k, s in enumerate(program.steps) if s is step)
    if step.n_outputs > 1 or any(map(is_modal, program.steps)):
        return None
    behind, needed = [], set(step.inputs)
    for k in range(at - 1, -1, -1):
        first, other = first_of(program, k), program.steps[k]
        if needed & set(range(first, first + other.n_outputs)):
            behind.append(other)
            needed |= set(other.inputs)
    sources = [program.inputs[i] for i in needed if i < len(program.inputs)]
    if any(s.role == "state" for s in sources):
        return None
    cut = [replace(s, inputs=()) if s is step else s for s in program.steps]
    if reached(program) != reached(program.but(steps=tuple(cut))):
        return None  # an input that nothing else reads would keep its old gradient
    if step.op in NO_GRADIENT or all(s.dtype[0] in "iu" for s in sources):
        array = e.arrays[first_of(program, at)]
        return e.constant(array) if array.dtype.kind in "fiu" else None


# -- chains that give a value again ----------------------------------------------------
@of_value("reshaped and back")
def reshaped(e, v):
    shape = e.shape(v)
    if shape and e.arrays[v].size:
        flat = e.rng.choice(((-1,), (e.arrays[v].size, 1), shape[::-1]))
        return e.reshape(e.reshape(v, flat), shape)


@of_value("transposed and back")
def transposed_twice(e, v):
    n = e.arrays[v].ndim
    if n > 1:
        axes = tuple(e.rng.sample(range(n), n))
        return e.transpose(e.transpose(v, axes), tuple(int(k) for k in np.argsort(axes)))


@of_value("swapped and back")
def swapped_twice(e, v):
    n = e.arrays[v].ndim
    if n > 1:
        one, two = e.rng.sample(range(n), 2)
        return e.swap(e.swap(v, one, two), two - n, one)


@of_value("flipped and back")
def flipped(e, v):
    axis = e.axis(v)
    if axis is not None:
        return e.flip(e.flip(v, axis), axis - e.arrays[v].ndim)


@of_value("split and joined")
def split(e, v):
    axis = e.axis(v)
    if axis is None or (n := e.shape(v)[axis]) < 2:
        return None
    if n in (2, 3) and not e.is_np and e.rng.random() < 0.5:
        return e.concat(e("split", v, num_outputs=n, axis=axis, n_outputs=n), axis)
    k = e.rng.randrange(1, n)
    return e.concat([e.part(v, axis, *ends) for ends in ((0, k), (k, n))], axis)


@of_value("joined with nothing")
def with_nothing(e, v):
    """Concatenated with a part of length 0."""
    axis = e.axis(v)
    if axis is not None and e.is_np:
        key = [("slice", None, None, None)] * e.arrays[v].ndim
        key[axis] = ("slice", 0, 0, None)
        parts = [e("[]", v, key=tuple(key)), v]
        return e.concat(parts[:: e.rng.choice((1, -1))], axis)


@of_value("padded and sliced")
def padded_value(e, v):
    axis = e.axis(v)
    if axis is None:
        return None
    n, ndim = e.shape(v)[axis], e.arrays[v].ndim
    if e.is_np and e.kind(v) == "f":
        before, after = e.rng.randint(0, 2), e.rng.randint(0, 2)
        width = [(0, 0)] * ndim
        width[axis] = (before, after)
        long = e("np.pad", v, pad_width=tuple(width), mode="constant", constant_values=1.5)
        return e.part(long, axis, before, before + n)
    if n:
        long = e.concat([v, e("np.zeros_like" if e.is_np else "zeros_like", v)], axis)
        return e.part(long, axis, 0, n)


@of_value("tiled and sliced")
def tiled(e, v):
    axis = e.axis(v)
    if axis is not None and e.shape(v)[axis]:
        n, ndim = e.shape(v)[axis], e.arrays[v].ndim
        reps = [1] * ndim
        reps[axis] = 2
        long = e("np.tile" if e.is_np else "tile", v, reps=tuple(reps))
        k = e.rng.choice((0, n))
        return e.part(long, axis, k, k + n)


@of_value("repeated and skipped")
def repeated(e, v):
    axis = e.axis(v)
    if axis is not None and e.shape(v)[axis]:
        long = e("np.repeat" if e.is_np else "repeat", v, repeats=2, axis=axis)
        key = [("slice", None, None, None)] * e.arrays[v].ndim
        key[axis] = ("slice", e.rng.randint(0, 1), None, 2)
        if e.is_np:
            return e("[]", long, key=tuple(key))
        begin, end, step = (tuple(part[k] for part in key) for k in (1, 2, 3))
        return e("slice", long, begin=begin, end=end, step=step)


@of_value("one more axis and back")
def one_more(e, v):
    axis = e.rng.randint(0, e.arrays[v].ndim)
    return e.squeeze(e.expand(v, axis), axis)


@of_value("sum over one", exact=False)
def sum_over_one(e, v):
    if e.kind(v) == "f" and e.arrays[v].ndim:
        axis = e.rng.randint(0, e.arrays[v].ndim)
        return e.sum(e.expand(v, axis), axis)


@of_value("one of two")
def one_of_two(e, v):
    """Stacked with itself, and one of both taken."""
    if not e.arrays[v].ndim:
        return None
    axis, k = e.rng.randint(0, e.arrays[v].ndim), e.rng.randint(0, 1)
    both = e("np.stack" if e.is_np else "stack", v, v, axis=axis)
    return e.squeeze(e.part(both, axis, k, k + 1), axis)


@of_value("every row taken")
def rows_taken(e, v):
    axis = e.axis(v)
    if axis is not None and (n := e.shape(v)[axis]):
        places = e.constant(np.arange(n, dtype=np.int32))
        return e("np.take" if e.is_np else "take", v, places, axis=axis, mode="clip")


@of_value("one row from 0-d")
def from_scalar(e, v):
    """An array of one element, as one without axes and back."""
    if e.is_np and e.arrays[v].size == 1:
        return e.reshape(e.reshape(v, ()), e.shape(v))


@of_value("times one")
def times_one(e, v):
    if e.kind(v) == "f":
        return e(e.rng.choice("*/"), v, scalar=1.0)


@of_value("minus zero")
def minus_zero(e, v):
    if e.kind(v) == "f":
        return e("-", v, scalar=0.0)


@of_value("negated twice")
def negated(e, v):
    if e.kind(v) in "fi":
        return e.negative(e.negative(v))


@of_value("half of twice")
def half_of_twice(e, v):
    if bounded(e.arrays[v], 1e-30, 1e30):
        return e("*", e("+", v, v), scalar=0.5)


@of_value("wider and back")
def wider(e, v):
    """Cast to a wider dtype and back."""
    dtype = e.arrays[v].dtype.name
    wide = {"float32": "float64", "int32": "int64", "int8": "int32", "uint8": "int32"}.get(dtype)
    if wide:
        return e("cast", e("cast", v, dtype=wide), dtype=dtype)


@of_value("where of ones")
def where_ones(e, v):
    if e.kind(v) == "f" and e.arrays[v].ndim:
        ones = e("np.ones_like" if e.is_np else "ones_like", v)
        return e("np.where" if e.is_np else "where", ones, v, e("*", v, scalar=3.0))


@of_value("rolled and back")
def rolled(e, v):
    if e.is_np and e.arrays[v].ndim:
        axis, k = e.rng.choice((None, e.axis(v))), e.rng.randint(-2, 3)
        return e("np.roll", e("np.roll", v, shift=k, axis=axis), shift=-k, axis=axis)


@of_value("three thirds", exact=False)
def three_thirds(e, v):
    if bounded(e.arrays[v], 0, 1e30):
        return e("/", e("*", v, scalar=3.0), scalar=3.0)


@of_value("logarithm undone", exact=False)
def log_undone(e, v):
    if bounded(e.arrays[v], 1e-2, 1e2) and (e.arrays[v] > 0).all():
        return e("exp", e("log", v))
