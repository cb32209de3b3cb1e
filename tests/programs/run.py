"""Programs as data: how they are written down, run and printed.

    program = Program.from_json(text)
    outs = run(F, program, [F.array(a) for a in arrays_of(program)])
    print(source(program))

`F` is `nd` or `sym` of minihybrid or of MXNet; this module needs NumPy only, so that a
Python that has the one and not the other can run the same file.

A value is a number: first come the inputs, then the outputs of each step in order. The
operator of a step is a name in `F`, such as "softmax" or "linalg.gemm2", or an infix
sign, "+", which takes two values, or one and the attribute `scalar` (`reversed` says
says that the number stands on the left). In the world of `mx.np` it may be "np.sum" or
"npx.relu", too, or "[]", whose `key` is spelled in words. A step of `CONTROL` is a branch or
a loop: its attribute `bodies` holds programs without inputs, whose first values are what the
step reads.
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
        return Program.of(json.loads(text))

    @staticmethod
    def of(fields):
        """A program of dicts and lists."""
        fields["inputs"] = tuple(
            Input(tuple(i["shape"]), i["dtype"], tuple(i["values"]), i["role"])
            for i in fields["inputs"]
        )
        fields["steps"] = tuple(
            Step(
                s["op"],
                tuple(s["inputs"]),
                {k: parts(v) if k == "bodies" else tupled(v) for k, v in s["attrs"].items()},
                s["n_outputs"],
            )
            for s in fields["steps"]
        )
        fields["outputs"] = tuple(fields["outputs"])
        return Program(**fields)

    def but(self, **changes):
        """The same program with some fields changed."""
        return replace(self, **changes)


def parts(bodies):
    """The programs inside of a step."""
    return tuple(map(Program.of, bodies))


def tupled(value):
    """Lists as tuples, also inside: JSON has no tuples."""
    return tuple(map(tupled, value)) if isinstance(value, list) else value


def arrays_of(program):
    """The inputs as NumPy arrays."""
    return [i.array() for i in program.inputs]


# -- branches and loops ----------------------------------------------------------------
def cond(F, given, call, limit):
    """Which branch is taken depends on the mean of the first value."""
    return F.contrib.cond(F.mean(given[0]) > limit, lambda: call(0, given), lambda: call(1, given))


def foreach(F, given, call, n_rows, n_states):
    """The first values are looped over, the next ones are states, the others are captured."""
    end = n_rows + n_states

    def body(rows, states):
        outs = call(0, [*rows, *states, *given[end:]])
        return outs[:-n_states], outs[-n_states:]

    outs, last = F.contrib.foreach(body, given[:n_rows], given[n_rows:end])
    return [*outs, *last]


def while_loop(F, given, call, n_states, most, limit):
    """The first values are loop variables; the output of an iteration is like the first one."""

    def func(*states):
        outs = call(0, [*states, *given[n_states:]])
        return outs[:-n_states], outs[-n_states:]

    outs, last = F.contrib.while_loop(
        lambda *states: F.mean(states[0]) < limit, func, given[:n_states], max_iterations=most
    )
    none = [F.stack(*[F.zeros_like(given[0])] * most)]  # arrays that take no step
    return [*(outs or none), *last]


CONTROL = {f"contrib.{function.__name__}": function for function in (cond, foreach, while_loop)}


def all_steps(program):
    """The steps, and those of programs inside of them."""
    for step in program.steps:
        yield step
        for body in step.attrs.get("bodies", ()):
            yield from all_steps(body)


def with_attributes(program, change):
    """The program whose attributes have other values, those of programs inside as well."""

    def new(key, value):
        if key == "bodies":
            return tuple(with_attributes(body, change) for body in value)
        return change(value)

    return program.but(
        steps=tuple(
            replace(s, attrs={k: new(k, v) for k, v in s.attrs.items()}) for s in program.steps
        )
    )


def apply(F, step, given, before=None, after=None):
    """The outputs of one step, as a list; the hooks are those of `run`."""
    if step.op in CONTROL:
        attrs = dict(step.attrs)
        bodies = attrs.pop("bodies")
        return CONTROL[step.op](
            F, given, lambda k, values: run(F, bodies[k], values, before, after), **attrs
        )
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
        outs = apply(F, step, before(step, given) if before else given, before, after)
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
    if step.op in CONTROL:
        return f"{', '.join(outs)} = apply(F, {step!r}, [{', '.join(given)}])"
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
            *["from programs.run import Program, Step, apply\n"]
            * any(step.op in CONTROL for step in program.steps),
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
