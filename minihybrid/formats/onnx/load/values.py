"""Abstract values of an ONNX graph during import: known arrays, or symbols.

Defines: `Value`, `Scope` (the state of the import) and `Call` (one node with its inputs and
         attributes), the interface for the tables of operators.

A file computes shapes with operators (Shape, Gather, Concat, Reshape), while our graphs
need static ones. So arrays computed from shapes are constant-folded. A dynamic axis is
evaluated twice, with two different trial lengths: results that agree are static; the
others depend on the axis.
Not supported: graphs whose shapes depend on the values of the data.
"""

import math
import re
from dataclasses import dataclass

import numpy as np

from minihybrid.core import sym
from minihybrid.core.array import NDArray
from minihybrid.core.files import FileError
from minihybrid.core.op import ShapeError, Spec
from minihybrid.core.sym import Symbol
from minihybrid.formats.onnx.export.draft import free_name
from minihybrid.formats.onnx.load.file import attribute, import_onnx
from minihybrid.ops import OPS

# The elements that may be folded during import: ALLOWED, plus MORE for each element in
# the file. Otherwise, a short file could exhaust memory.
ALLOWED, MORE = 1 << 22, 8


@dataclass(eq=False)
class Value:
    """A value: its arrays in both trials if known, else its symbol.

    trained: whether it is a trainable weight.
    """

    name: str
    arrays: tuple | None = None
    symbol: Symbol | None = None
    trained: bool = False

    @property
    def fixed(self):
        """The array, if it is known and equal in both trials; else `None`."""
        if self.arrays is None:
            return None
        first, second = self.arrays
        same = first is second or np.array_equal(first, second)
        return first if same else None


def trial_lengths(number):
    """Return the two trial lengths of the dynamic axis `number`: one even, one odd.

    >>> trial_lengths(0), trial_lengths(1)
    ((1202, 1999), (1236, 2057))
    """
    return 1202 + 34 * number, 1999 + 58 * number


class Scope:
    """The state of an import: values by name, specs of symbols, parameters.

    walk:    (graph, scope, symbols for its inputs) -> symbols of its outputs.
    """

    def __init__(self, model, walk):
        self.model, self.walk, self.values, self.specs = model, walk, {}, {}
        self.arrays, self.frozen, self.inputs = {}, set(), []
        self.param_symbols, self.used_names = {}, set()
        self.left = ALLOWED + MORE * sum(a.size for a in model.arrays.values())
        self.numbers = {}  # a dynamic axis's name -> its number
        for name, dtype, shape in model.inputs:
            symbol, shapes = sym.var(self.unique(name), dtype=dtype), (None, None)
            if shape is not None:
                pairs = [self.lengths(n, f"axis {i} of {name}") for i, n in enumerate(shape)]
                shapes = [tuple(pair[k] for pair in pairs) for k in (0, 1)]
            kind = dtype and np.dtype(dtype)
            self.specs[symbol.refs[0][0]] = [[Spec(s, kind)] for s in shapes]
            self.inputs.append(symbol)

    def lengths(self, length, axis):
        """Return the length of an input's axis in both trials."""
        if isinstance(length, int):
            return length, length
        return trial_lengths(self.numbers.setdefault(length or axis, len(self.numbers)))

    def known(self, array):
        """Return an array on which operators run; sizes of results are checked first."""
        out = Known(np.asarray(array, order="C"))
        out.scope = self
        return out

    def fits(self, shape):
        """Return the shape of an array to compute during import, if its size is allowed."""
        count = math.prod(shape)
        if any(n < 0 for n in shape) or count > self.left:
            raise ShapeError(
                f"an array of shape {tuple(shape)!s:.80} would be made while the file is read, "
                f"but only {self.left} more elements are allowed"
            )
        self.left -= count
        return tuple(shape)

    def explained(self, text):
        """Return an error message, with the names of the trial lengths in it."""
        legend = [
            f"{n} stands for {name!r:.40}"
            for name, number in self.numbers.items()
            for n in trial_lengths(number)
            if re.search(rf"\b{n}\b", text)
        ]
        return f"{text} ({', '.join(legend)})" if legend else text

    def unique(self, name):
        """Return the name, with a numeric suffix if it's taken."""
        return free_name(name, self.used_names, "_")

    def parameter(self, value, layout="", change=None):
        """Return the symbol of a known array: one parameter for all users of a layout.

        layout:  a name for what `change` does to the array; "": unchanged.
        """
        if (value, layout) in self.param_symbols:
            return self.param_symbols[value, layout]
        numbers = value.fixed if change is None else change(value.fixed)
        if not numbers.size:  # in a parameter's shape, 0 means unknown
            raise FileError(
                f"{self.model.source}: {value.name!r:.60} has shape "
                f"{numbers.shape}, but an array with numbers is needed"
            )
        name, wide = self.unique(value.name), numbers.reshape(numbers.shape or 1)
        symbol, spec = sym.var(name), Spec(wide.shape, wide.dtype)
        self.specs[symbol.refs[0][0]] = [[spec], [spec]]
        self.arrays[name] = wide
        if not value.trained:
            self.frozen.add(name)
        if not numbers.ndim:  # a parameter needs at least one axis
            symbol = OPS["_np_reshape"](symbol, newshape=())
        self.param_symbols[value, layout] = symbol
        return symbol

    def spec(self, symbol):
        """Return the specs of a symbol in both trials, inferring those of new nodes."""
        ((last, index),) = symbol.refs
        stack = [last]
        while stack:
            node = stack[-1]
            waiting = [n for n, _ in node.inputs if n not in self.specs]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if node not in self.specs:
                self.specs[node] = [
                    node.op.specs_of([self.specs[n][k][i] for n, i in node.inputs], node.attrs)[1]
                    for k in (0, 1)
                ]
        return [trial[index] for trial in self.specs[last]]


class Known(NDArray):
    """A known array, on which operators compute within the limit of its scope."""

    __slots__ = ("scope",)

    @classmethod
    def interpret(cls, op, inputs, attrs, name=None):
        """Run an operator if the sizes of its results are allowed."""
        scope = next(x.scope for x in inputs if isinstance(x, Known))
        for spec in op.specs_of([Spec(x.data.shape, x.data.dtype) for x in inputs], attrs)[1]:
            scope.fits(spec.shape)
        return scope.known(super().interpret(op, inputs, attrs, name).data)

    @classmethod
    def path(cls, op, datas, attrs):
        """Cache no path, because each call counts."""


class Call:
    """A node and its inputs, the argument of the import rules.

    The schema of the operator in this opset, which the library `onnx` has, determines how many
    inputs there are, and the types and defaults of the attributes. Attributes that the rule
    didn't read are refused.
    """

    def __init__(self, node, scope):
        self.node, self.scope, self.opset = node, scope, scope.model.opset
        self.inputs = [scope.values[name] if name else None for name in node.inputs]
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()
        self.read = set()
        self.fail = node.fail
        defs = import_onnx().defs
        try:
            self.schema = defs.get_schema(node.op, self.opset)
        except defs.SchemaError:
            self.schema = None
        if self.schema is None or self.schema.deprecated:
            self.fail(f"opset {self.opset} has no such operator")
        least, most = self.schema.min_input, self.schema.max_input
        if not least <= len(self.inputs) <= most:
            self.fail(
                f"{len(self.inputs)} inputs, but the operator takes {least}"
                + f" to {most}" * (least < most)
            )

    # -- attributes
    def attr(self, name):
        """Return an attribute: its value in the file, or its default, or `None`."""
        self.read.add(name)
        declared, value = self.schema.attributes.get(name), self.node.attrs.get(name)
        if declared is None:  # of another opset
            return value
        if name not in self.node.attrs:
            if declared.required:
                self.fail(f"the attribute {name} is missing")
            default = attribute(declared.default_value, self.node.where, None)
            # 1e-5, where the schema has the float32 next to it.
            return float(f"{default:.7g}") if isinstance(default, float) else default
        if self.node.kinds[name] != declared.type.value:
            kind = declared.type.name.lower()
            self.fail(f"the attribute {name} is {value!r:.60}, but {kind} is needed")
        return value

    def check_attributes(self):
        """Refuse attributes that weren't read, as ignoring them could change the result."""
        left = self.node.attrs.keys() - self.read
        if left:
            self.fail(f"the attribute {min(left)!r:.40} is not supported")

    def setting(self, name, since, place, read):
        """Return a setting: an attribute, or an input since an opset; `None` if it's omitted.

        read:    the method for the input, such as `numbers`.
        """
        if self.opset < since:
            return self.attr(name) if name in self.node.attrs else None
        return None if self.get(place) is None else read(place, f"the {name}")

    # -- inputs
    def get(self, i):
        """Return an input, or `None` if it's omitted."""
        return self.inputs[i] if i < len(self.inputs) else None

    def need(self, i):
        """Return a required input."""
        value = self.get(i)
        if value is None:
            self.fail(f"input {i} is missing")
        return value

    def sym(self, i):
        """Return an input as a symbol; a known array becomes a parameter."""
        return self.symbol_of(self.need(i))

    def symbol_of(self, value):
        """Return a value as a symbol."""
        if value.arrays is None:
            return value.symbol
        if value.fixed is None:
            self.fail(
                f"the numbers of {value.name!r:.60} follow from a length that "
                "the file leaves open; fix it when exporting (no dynamic axes)"
            )
        return self.scope.parameter(value)

    def fixed(self, i, what):
        """Return the known array of an input; `what` names it in errors."""
        numbers = self.need(i).fixed
        if numbers is None:
            self.fail(
                f"{what} must be known when the file is read, but {self.need(i).name!r:.60} "
                "depends on the data or on a length that the file leaves open"
            )
        return numbers

    def scalar(self, i, what):
        """Return the known float of an input."""
        return float(self.fixed(i, what).ravel()[0])

    def numbers(self, i, what):
        """Return the known integers of an input, as a tuple of `int`."""
        return self.whole(self.fixed(i, what), what)

    def trials(self, i, what):
        """Return the integers of an input in both trials."""
        arrays = self.need(i).arrays or [self.fixed(i, what)]
        return [self.whole(a, what) for a in arrays]

    def whole(self, array, what):
        """Return at most 32 integers of an array as a tuple of `int`."""
        if array.dtype.kind not in "iu" or array.ndim > 1 or array.size > 32:
            self.fail(
                f"{what} is {array.dtype} of shape {array.shape}, but at most 32 "
                "whole numbers in a row are needed"
            )
        return tuple(array.ravel().tolist())

    def shapes(self, i):
        """Return the shape of an input in both trials."""
        value = self.need(i)
        if value.arrays is not None:
            return [a.shape for a in value.arrays]
        shapes = [s.shape for s in self.scope.spec(value.symbol)]
        if any(s is None or -1 in s for s in shapes):
            self.fail(
                f"the shape of {value.name!r:.60} must be known, but the file "
                "does not tell that of its inputs"
            )
        return shapes

    def shape(self, i):
        """Return the shape of an input, with -1 for a dynamic length."""
        return tuple(m if m == n else -1 for m, n in zip(*self.shapes(i), strict=True))

    def agreed(self, what, values):
        """Return the value in both trials, if it's the same; `what` names it in errors."""
        first, second = values
        if first != second:
            self.fail(
                f"{what} follows from a length that the file leaves open; fix it when exporting "
                "(no dynamic axes)"
            )
        return first

    def ndim(self, i):
        """Return the number of axes of an input."""
        return len(self.shapes(i)[0])

    def dtype(self, i):
        """Return the dtype of an input, or `None`."""
        value = self.need(i)
        if value.arrays is not None:
            return value.arrays[0].dtype
        return self.scope.spec(value.symbol)[0].dtype

    def axis(self, axis, ndim):
        """Return an axis as a nonnegative index, checked."""
        if not -ndim <= axis < ndim:
            self.fail(f"axis {axis} does not exist in {ndim} dimensions")
        return axis % ndim
