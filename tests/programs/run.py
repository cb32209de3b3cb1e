"""Programs as data: how they are written down, run and printed.

    program = Program.from_json(text)
    outs = run(F, program, [F.array(a) for a in arrays_of(program)])
    print(source(program))

`F` is `nd` or `sym` of minihybrid or of MXNet; this module needs NumPy only, so that a
Python that has the one and not the other can run the same file.

A value is a number: first come the inputs, then the outputs of each step in order. The
operator of a step is a name in `F`, such as "softmax" or "linalg.gemm2", or an infix
sign, "+", which takes two values, or one and the attribute `scalar` (`reversed` says
that the number stands on the left). In the world of `mx.np` it may be "np.sum" or
"npx.relu", too, or "[]", whose `key` is spelled in words.
"""

import json
import operator
from dataclasses import asdict, dataclass, field, replace

import numpy as np

INFIX = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "**": operator.pow,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

NO_GRADIENT = set(
    "argmax argmin argmax_channel argsort one_hot shape_array size_array "
    "BlockGrad stop_gradient zeros_like ones_like "
    "multi_all_finite all_finite".split()
)
LISTS = {
    f"np.{name}"
    for name in (  # of functions that take their arrays as a list
        "concatenate",
        "stack",
        "vstack",
        "hstack",
        "dstack",
        "column_stack",
    )
}


@dataclass(frozen=True)
class Input:
    """An array that the program is given.

    role:    "data" of a call, "param" of a net, or "state", which the program changes.
    values:  its numbers in order, flat.
    """

    shape: tuple
    dtype: str
    values: tuple
    role: str = "data"

    def array(self):
        """As NumPy has it."""
        return (
            np.array(self.values, np.float64 if self.dtype.startswith("f") else np.int64)
            .astype(self.dtype)
            .reshape(self.shape)
        )


@dataclass(frozen=True)
class Step:
    """One operator applied to values, by their numbers."""

    op: str
    inputs: tuple
    attrs: dict = field(default_factory=dict)
    n_outputs: int = 1


@dataclass(frozen=True)
class Program:
    """What is computed: inputs, steps, and which values are the answer.

    train:   whether it is also run with gradients recorded, in training mode.
    exact:   all its operators are exact, so that every answer has the same bits.
    world:   "nd", or "np" where inputs are arrays of `mx.np`.
    second:  whether the gradient's gradient is asked for, too.
    """

    inputs: tuple
    steps: tuple
    outputs: tuple
    train: bool = False
    exact: bool = False
    seed: int | None = None
    title: str = ""
    world: str = "nd"
    second: bool = False

    def to_json(self):
        """One line of text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text):
        """What `to_json` has written."""
        fields = json.loads(text)
        fields["inputs"] = tuple(
            Input(tuple(i["shape"]), i["dtype"], tuple(i["values"]), i["role"])
            for i in fields["inputs"]
        )
        fields["steps"] = tuple(
            Step(
                s["op"],
                tuple(s["inputs"]),
                {k: tupled(v) for k, v in s["attrs"].items()},
                s["n_outputs"],
            )
            for s in fields["steps"]
        )
        fields["outputs"] = tuple(fields["outputs"])
        return Program(**fields)

    def but(self, **changes):
        """The same program with some fields changed."""
        return replace(self, **changes)


def tupled(value):
    """Lists as tuples, also inside: JSON has no tuples."""
    return tuple(map(tupled, value)) if isinstance(value, list) else value


def arrays_of(program):
    """The inputs as NumPy arrays."""
    return [i.array() for i in program.inputs]


def apply(F, step, given):
    """The outputs of one step, as a list."""
    if step.op == "[]":
        out = given[0][index_of(step.attrs["key"])]
    elif step.op not in INFIX:
        function, attrs = F, dict(step.attrs)
        for name in step.op.split("."):
            function = getattr(function, name)
        given = [given] if step.op in LISTS else given
        given = [attrs.pop("subscripts"), *given] if "subscripts" in attrs else given
        out = function(*given, **attrs)
    elif len(given) == 2:
        out = INFIX[step.op](*given)
    elif step.attrs.get("reversed"):
        out = INFIX[step.op](step.attrs["scalar"], given[0])
    else:
        out = INFIX[step.op](given[0], step.attrs["scalar"])
    return (
        [out[i] for i in range(step.n_outputs)]
        if step.n_outputs > 1
        else [out[0] if isinstance(out, (list, tuple)) else out]
    )


def index_of(key):
    """What stands between the brackets, from its words."""
    kinds = {"int": lambda i: i, "slice": slice, "new": lambda: None, "...": lambda: Ellipsis}
    return tuple(kinds[kind](*rest) for kind, *rest in key)


def run(F, program, values, before=None, after=None):
    """The answers of a program on values of `F`, as a list.

    before, after:  (step, inputs or outputs) -> what stands in their place.
    """
    values = list(values)
    for step in program.steps:
        given = [values[i] for i in step.inputs]
        outs = apply(F, step, before(step, given) if before else given)
        if program.world == "np" and not given:  # F.zeros makes an array of mx.nd
            outs = [out.as_np_ndarray() for out in outs]
        values += after(step, outs) if after else outs
    return [values[i] for i in program.outputs]


def heads(program):
    """Which outputs have a gradient: floats go in, and the output is made of them.

    Their dtypes are for who runs the program to look at.
    """
    from_floats = {
        i for i, each in enumerate(program.inputs) if each.dtype[0] == "f" and each.role != "state"
    }
    number = len(program.inputs)
    for step in program.steps:
        outs = range(number, number + step.n_outputs)
        if from_floats & set(step.inputs) and step.op not in NO_GRADIENT:
            from_floats |= set(outs)
        number += step.n_outputs
    return [k for k, i in enumerate(program.outputs) if i in from_floats]


def first_of(program, number):
    """The number of a step's first output."""
    return len(program.inputs) + sum(s.n_outputs for s in program.steps[:number])


def trimmed(program):
    """Without the steps and inputs that no answer needs."""
    needed, keep = set(program.outputs), []
    for k in range(len(program.steps) - 1, -1, -1):
        step, first = program.steps[k], first_of(program, k)
        if needed & set(range(first, first + step.n_outputs)):
            keep.insert(0, k)
            needed |= set(step.inputs)
    ins = [i for i in range(len(program.inputs)) if i in needed]
    roles = [each.role for each in program.inputs]
    if not any(roles[i] == "data" for i in ins):  # one is passed with each call
        some = [i for i in ins if roles[i] == "param"] or [roles.index("data")]
        roles[some[0]], ins = "data", sorted({*ins, some[0]})
    places = {old: new for new, old in enumerate(sorted(ins))}
    for k in keep:
        first = first_of(program, k)
        for i in range(first, first + program.steps[k].n_outputs):
            places[i] = len(places)
    return program.but(
        inputs=tuple(replace(program.inputs[i], role=roles[i]) for i in sorted(ins)),
        steps=tuple(
            replace(s, inputs=tuple(places[i] for i in s.inputs))
            for s in (program.steps[k] for k in keep)
        ),
        outputs=tuple(places[i] for i in program.outputs),
    )


# -- printing --------------------------------------------------------------------------
def number(value):
    """A value as Python's text: also infinity and NaN."""
    if isinstance(value, (tuple, list)):
        return "(" + "".join(f"{number(v)}, " for v in value).rstrip(" ") + ")"
    return repr(value)  # also inf and nan, which are imported


def line(step, names, outs):
    """One step as a line of Python."""
    given = [names[i] for i in step.inputs]
    if step.op in INFIX:
        given += [number(step.attrs[k]) for k in ("scalar",) if k in step.attrs]
        if step.attrs.get("reversed"):
            given.reverse()
        return f"{outs[0]} = {given[0]} {step.op} {given[1]}"
    if step.op == "[]":
        return f"{outs[0]} = {given[0]}[{index_of(step.attrs['key'])}]"
    attrs = dict(step.attrs)
    given = [f"[{', '.join(given)}]"] if step.op in LISTS else given
    given = [repr(attrs.pop("subscripts")), *given] if "subscripts" in attrs else given
    given += [f"{k}={number(v)}" for k, v in attrs.items()]
    return f"{', '.join(outs)} = F.{step.op}({', '.join(given)})"


def source(program):
    """The program as Python that can be pasted: `arrays`, and `f(F, x0, x1, ...)`."""
    inputs = [f"x{i}" for i in range(len(program.inputs))]
    names, lines = list(inputs), []
    for step in program.steps:
        outs = [f"t{len(names) + k}" for k in range(step.n_outputs)]
        lines.append(line(step, names, outs))
        names += outs
    words = [f"# seed {program.seed}"] * (program.seed is not None)
    words += [f"# {program.title}"] * bool(program.title)
    arrays = [
        f"    array({list(i.values)!r}, {i.dtype!r}).reshape({i.shape}),  # {i.role}"
        for i in program.inputs
    ]
    return "\n".join(
        [
            *words,
            "from numpy import array, inf, nan\n",
            "arrays = [",
            *arrays,
            "]\n",
            f"def f(F, {', '.join(inputs)}):",
            *(f"    {text}" for text in lines),
            f"    return [{', '.join(names[i] for i in program.outputs)}]",
            f"# train={program.train} exact={program.exact} world={program.world} "
            f"second={program.second}",
        ]
    )
