"""Drafts: lists of ONNX operators, before they become a file.

Defines: `Draft`, `Value`, `Step`, `ExportError`, and `agreed`, which merges drafts into one
         program for any batch size.

A draft is specialized to one batch size: a reshape to (4, 30) contains 4. An ONNX file
should serve any batch size. So a graph is drafted for several sizes, and the differences
between the drafts show what depends on the size. If such a value is a list of integers
affine in the batch size, the program computes it from the shape of its input; anything
else is an error, never a wrong model.
Not supported: more than one free length.
"""

from typing import NamedTuple

import numpy as np

from minihybrid.core.op import HybridError


class ExportError(HybridError, ValueError):
    """Raised for a graph that ONNX can't express: names the operator, the node and a remedy."""


class Value(NamedTuple):
    """A step's output: its name in the file, and its dtype.

    An ndarray in place of a Value is a constant.
    """

    name: str
    dtype: np.dtype


class Step(NamedTuple):
    """One application of an ONNX operator."""

    kind: str  # the ONNX operator type
    inputs: tuple  # names, ndarrays, or "" for an omitted one
    outputs: tuple  # names
    attrs: dict
    source: str  # the node of our graph that it implements


class Body(NamedTuple):
    """A subgraph in an attribute of a step; it captures outer values by name.

    shapes:  of the outputs; `None` for a length that depends on the batch size.
    scalars: how many of the first inputs are scalars.
    """

    steps: list
    inputs: list  # Values
    outputs: list
    shapes: list
    scalars: int = 0


def operand(value, like):
    """Return an input of `Draft.add` as in a Step: a name or an ndarray."""
    match value:
        case None:
            return ""
        case Value():
            return value.name
        case tuple() | list():
            return whole(value)
        case np.ndarray():
            return value
    return np.asarray(value, like)


# ONNX operator -> dtype of its outputs, if that isn't the inputs'.
DTYPES = {
    **dict.fromkeys(
        "And Equal Greater GreaterOrEqual IsNaN Less LessOrEqual Not Or".split(), "bool"
    ),
    **dict.fromkeys(("ArgMax", "ArgMin", "Shape"), "int64"),
    "DequantizeLinear": "float32",
    "QuantizeLinear": "int8",
}


class Draft:
    """Steps in order, with unique output names.

    >>> draft = Draft()
    >>> draft.source = "relu 'y'"; draft.name = "y"
    >>> draft.add("Relu", Value("x", np.dtype("float32")))
    Value(name='y_relu', dtype=dtype('float32'))
    """

    def __init__(self, used=()):
        self.steps, self.used = [], set(used)
        self.name, self.source = "", ""  # of the node being exported

    def add(self, kind, *inputs, dtype=None, count=1, **attrs):
        """Append a step; return its Value, or a tuple of them if `count` isn't 1.

        inputs:  Values, ndarrays, numbers of the first array's dtype, tuples of int64, or
                 `None` for an omitted one.
        dtype:   of the outputs; by default what `DTYPES` says, else that of the first array.
        """
        arrays = inputs[1:] if kind == "Where" else inputs
        like = next((v.dtype for v in arrays if hasattr(v, "dtype")), None)
        dtype = np.dtype(dtype or DTYPES.get(kind, like))
        outs = tuple(Value(self.unique(f"{self.name}_{kind.lower()}"), dtype) for _ in range(count))
        operands = tuple(operand(v, like) for v in inputs)
        names = tuple(v.name for v in outs)
        self.steps.append(Step(kind, operands, names, attrs, self.source))
        return outs if count > 1 else outs[0]

    def unique(self, base):
        """Return the name, with a numeric suffix if it's taken."""
        return free_name(base, self.used)

    def cast(self, value, dtype):
        """Cast a value to a dtype."""
        if value.dtype == dtype:
            return value
        if isinstance(value, np.ndarray):
            return value.astype(dtype)
        return self.add("Cast", value, dtype=dtype, to=np.dtype(dtype))

    def reshape(self, value, shape):
        """Reshape a value to a static shape."""
        attrs = {"allowzero": 1} if 0 in shape else {}
        return self.add("Reshape", value, tuple(shape), **attrs)

    def filled(self, shape, value):
        """Return an array of equal elements; `value` is an array with one element."""
        return self.add("ConstantOfShape", shape, dtype=value.dtype, value=value)

    def refuse(self, why):
        """Raise an ExportError about the node being exported."""
        raise ExportError(f"export of {self.source} to ONNX: {why}")


def bodies(step):
    """Return the subgraphs in a step's attributes."""
    return [value for value in step.attrs.values() if isinstance(value, Body)]


def all_steps(steps):
    """Yield all steps, each after those of its subgraphs."""
    for step in steps:
        for body in bodies(step):
            yield from all_steps(body.steps)
        yield step


def renamed(steps, new):
    """Return the steps with values renamed by the dict `new`."""

    def names(some):
        return tuple(new.get(n, n) if isinstance(n, str) else n for n in some)

    def attr(value):
        return value._replace(steps=renamed(value.steps, new)) if type(value) is Body else value

    return [
        step._replace(
            inputs=names(step.inputs),
            outputs=names(step.outputs),
            attrs={k: attr(v) for k, v in step.attrs.items()},
        )
        for step in steps
    ]


def live(steps, names):
    """Return the steps that the outputs need; for example, none for the labels of a loss."""
    result, needed = [], set(names)
    for step in reversed(steps):
        if not needed.isdisjoint(step.outputs):
            for each in all_steps([step]):
                needed.update(name for name in each.inputs if isinstance(name, str))
            for body in bodies(step):
                needed.update(value.name for value in body.outputs)
            result.append(step)
    return result[::-1]


def free_name(name, used, mark=""):
    """Return the name, with a mark and a number if it's taken, and add it to `used`.

    >>> used = {"fc"}
    >>> free_name("fc", used), free_name("fc", used, "_"), free_name("out", used)
    ('fc1', 'fc_1', 'out')
    """
    free, count = name, 0
    while free in used:
        count += 1
        free = f"{name}{mark}{count}"
    used.add(free)
    return free


def whole(numbers):
    """Return integers as int64, as ONNX needs in shapes and indices.

    >>> whole((2, 3)).dtype
    dtype('int64')
    """
    return np.array(numbers, np.int64).reshape(len(numbers))


# -- one program for all batches -------------------------------------------------------
def agreed(drafts, sizes, data):
    """Merge drafts into steps for any batch size.

    sizes:   the batch size of each draft.
    data:    the name of an input whose first axis is the batch.
    Raises:  ExportError naming a node that depends on the batch size in another way.
    """
    merged = Merged(drafts, sizes, data)
    for parts in zip(*(d.steps for d in drafts), strict=False):
        merged.steps.append(merged.part(parts))
    if len({len(d.steps) for d in drafts}) > 1:
        merged.refuse(drafts[0].steps[-1])
    return merged.steps


class Merged:
    """The merged steps of several drafts."""

    def __init__(self, drafts, sizes, data):
        self.draft = Draft(set().union(*(d.used for d in drafts)))
        self.steps, self.sizes = self.draft.steps, sizes
        self.data, self.length, self.cache = data, None, {}

    def refuse(self, step):
        """Raise an ExportError about a step that differs between batch sizes."""
        raise ExportError(
            f"export of {step.source} to ONNX: what it does depends on the length of the batch "
            f"(compared: {', '.join(map(str, self.sizes))}) in a way that a file for all batches "
            "cannot say; mx.onnx.export_model with dynamic=False writes a file for one length"
        )

    def part(self, parts, step=None):
        """Merge the same part of a step in all drafts; values of the batch size stay outside."""
        first = parts[0]
        if isinstance(first, Step):  # of operators that may differ, such as a sum without broadcast
            step, parts = first, [p._replace(source=first.source) for p in parts]
        if isinstance(first, np.ndarray):
            return self.array(parts, step)
        if isinstance(first, Body):
            shapes = [
                tuple(n[0] if len({*n}) == 1 else None for n in zip(*shapes, strict=True))
                for shapes in zip(*(p.shapes for p in parts), strict=True)
            ]
            parts = [p._replace(shapes=shapes) for p in parts]
        if isinstance(first, dict):
            values = self.part([tuple(p.items()) for p in parts], step)
            return dict(values)
        if not isinstance(first, (tuple, list)):
            if any(type(p) is not type(first) or p != first for p in parts):
                self.refuse(step)
            return first
        if any(type(p) is not type(first) or len(p) != len(first) for p in parts):
            self.refuse(step)
        items = [self.part(some, step) for some in zip(*parts, strict=True)]
        return first._make(items) if hasattr(first, "_make") else type(first)(items)

    def array(self, arrays, step):
        """Merge a constant of all drafts: equal, or computed from the batch size."""
        first = arrays[0]
        if any(
            type(a) is not np.ndarray or (a.dtype, a.shape) != (first.dtype, first.shape)
            for a in arrays
        ):
            self.refuse(step)
        if all(np.array_equal(a, first, first.dtype.kind == "f") for a in arrays):
            return first
        if first.dtype != np.int64:
            self.refuse(step)
        (m, n), more = self.sizes[:2], arrays[1] - first
        slope = more // (n - m)
        start = first - slope * m
        if any((start + slope * n != a).any() for n, a in zip(self.sizes, arrays, strict=True)):
            self.refuse(step)
        is_shape = step.kind == "Reshape" and first is step.inputs[1]
        if is_shape and np.count_nonzero(slope) == 1 and (first > 0).all():
            return np.where(slope != 0, -1, first)  # ONNX infers one length
        return self.computed(start, slope)

    def computed(self, start, slope):
        """Return the name of start + slope * (batch size)."""
        key = start.shape, start.tobytes(), slope.tobytes()
        if key not in self.cache:
            draft, draft.name = self.draft, "batch"
            if self.length is None:
                draft.source = f"the input '{self.data}'"
                self.length = draft.add("Shape", Value(self.data, None), start=0, end=1)
            length = self.length if start.ndim else draft.add("Squeeze", self.length)
            value = draft.add("Mul", length, slope)
            self.cache[key] = draft.add("Add", value, start)
        return self.cache[key].name
