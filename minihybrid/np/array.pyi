"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import Any, TypeVar

Same = TypeVar("Same")

from minihybrid.core.array import NDArray
from minihybrid.core.sym import Symbol

class Numpy:
    """The base class of np's arrays and symbols."""

    is_np: Any
    def __add__(self: Same, other) -> Same: ...
    def __radd__(self: Same, other) -> Same: ...
    def __sub__(self: Same, other) -> Same: ...
    def __rsub__(self: Same, other) -> Same: ...
    def __mul__(self: Same, other) -> Same: ...
    def __rmul__(self: Same, other) -> Same: ...
    def __truediv__(self: Same, other) -> Same: ...
    def __rtruediv__(self: Same, other) -> Same: ...
    def __mod__(self: Same, other) -> Same: ...
    def __rmod__(self: Same, other) -> Same: ...
    def __pow__(self: Same, other) -> Same: ...
    def __rpow__(self: Same, other) -> Same: ...
    def __and__(self: Same, other) -> Same: ...
    def __rand__(self: Same, other) -> Same: ...
    def __or__(self: Same, other) -> Same: ...
    def __ror__(self: Same, other) -> Same: ...
    def __xor__(self: Same, other) -> Same: ...
    def __rxor__(self: Same, other) -> Same: ...
    def __eq__(self: Same, other) -> Same:  # type: ignore
        ...
    def __ne__(self: Same, other) -> Same:  # type: ignore
        ...
    def __gt__(self: Same, other) -> Same: ...
    def __ge__(self: Same, other) -> Same: ...
    def __lt__(self: Same, other) -> Same: ...
    def __le__(self: Same, other) -> Same: ...
    def __hash__(self) -> int: ...
    def __neg__(self: Same) -> Same: ...
    def __abs__(self: Same) -> Same: ...
    def __matmul__(self: Same, other) -> Same: ...
    def __invert__(self: Same) -> Same: ...
    def reshape(self: Same, *shape, order: Any = "C") -> Same:
        """Return the same elements with another shape; one length may be -1."""
    def flatten(self: Same, order: Any = "C") -> Same:
        """Flatten to one axis, in column-major order for order="F"."""
    def ravel(self: Same, order: Any = "C") -> Same:
        """Flatten to one axis, in column-major order for order="F"."""
    def transpose(self: Same, *axes) -> Same:
        """Permute the axes, by default in reverse."""
    @property
    def T(self: Same) -> Same: ...
    def astype(
        self: Same,
        dtype,
        order: Any = "K",
        casting: Any = "unsafe",
        subok: Any = True,
        copy: Any = True,
    ) -> Same:
        """Convert to a dtype. With copy=False, return this array if it has that dtype."""
    def clip(self: Same, min=None, max=None, out=None) -> Same:
        """Clip the elements to [min, max]."""
    def nonzero(self) -> tuple[Any, ...]:
        """Return the indices of nonzero elements: one array per axis."""
    def part(self: Same, key, shape) -> Same:
        """Return `x[key]`, built of operators, with np's shapes and index arrays."""
    def sum(a: Same, axis=None, dtype=None, keepdims: Any = False, initial=None) -> Same:
        """The sum over the axes."""
    def prod(a: Same, axis=None, dtype=None, keepdims: Any = False, initial=None) -> Same:
        """The product over the axes."""
    def mean(a: Same, axis=None, dtype=None, keepdims: Any = False) -> Same:
        """The mean over the axes."""
    def max(a: Same, axis=None, keepdims: Any = False) -> Same:
        """The largest over the axes."""
    def min(a: Same, axis=None, keepdims: Any = False) -> Same:
        """The smallest over the axes."""
    def any(a: Same, axis=None, keepdims: Any = False) -> Same:
        """Whether any is not 0."""
    def all(a: Same, axis=None, keepdims: Any = False) -> Same:
        """Whether all are not 0."""
    def var(a: Same, axis=None, dtype=None, ddof: Any = 0, keepdims: Any = False) -> Same:
        """Return the variance over the axes."""
    def std(a: Same, axis=None, dtype=None, ddof: Any = 0, keepdims: Any = False) -> Same:
        """Return the standard deviation over the axes."""
    def argmax(a: Same, axis=None, keepdims: Any = False) -> Same:
        """Return the index of the largest element, int64, by default in the flattened array."""
    def argmin(a: Same, axis=None, keepdims: Any = False) -> Same:
        """Return the index of the smallest element, int64, by default in the flattened array."""
    def dot(a: Same, b) -> Same:
        """The product over the last axis of a and the last but one of b."""
    def copy(a: Same, order: Any = "C") -> Same:
        """Return a copy."""
    def expand_dims(a: Same, axis) -> Same:
        """Insert an axis of length 1."""
    def squeeze(a: Same, axis=None) -> Same:
        """Remove axes of length 1, by default all."""
    def swapaxes(a: Same, axis1, axis2) -> Same:
        """Exchange two axes."""
    def repeat(a: Same, repeats, axis=None) -> Same:
        """Repeat each element along an axis, by default of the flattened array."""
    def take(a: Same, indices, axis=None, mode: Any = "raise") -> Same:
        """Select elements at indices along an axis, by default of the flattened array."""
    def sort(a: Same, axis: Any = -1, kind=None, order=None) -> Same:
        """Sort along an axis. `axis=None` flattens first."""
    def argsort(a: Same, axis: Any = -1, kind=None, order=None) -> Same:
        """Return the indices that would sort along an axis, int64."""
    def cumsum(a: Same, axis=None, dtype=None) -> Same:
        """The sum of all numbers up to each one; without an axis, of the flattened array."""
    def round(x: Same, decimals: Any = 0) -> Same:
        """Round to `decimals` decimal places, with halves to even."""
    def flip(m: Same, axis=None) -> Same:
        """Reverse axes, by default all."""
    def tile(A: Same, reps) -> Same:
        """Tile the array along each axis."""
    def diag(v: Same, k: Any = 0) -> Same:
        """Return the diagonal k of a matrix, or a matrix with a vector on its diagonal k."""
    def diagonal(a: Same, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Same:
        """Return the diagonal over two axes, as the last axis."""
    def trace(a, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
        """Return the sum of a diagonal."""
    def broadcast_to(array: Same, shape) -> Same:
        """Broadcast an array to a shape."""

class ndarray(Numpy, NDArray):
    """An array with np's semantics. Create it with `mx.np.array`."""

    composed: Any
    def as_np_ndarray(self: Same) -> Same:
        """Return this array."""
    def as_nd_ndarray(self: Same) -> Same:
        """Return an nd array with the same memory and node on the tape."""
    @staticmethod
    def constant(values: Same) -> Same:
        """Return a constant as an array of this class."""
    def on_device(self: Same, values) -> Same:
        """Return a constant as an array on this array's device."""
    def convert(self: Same, other, op) -> Same:
        """Convert a NumPy operand to an np.ndarray."""
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    @property
    def dtype(self) -> Any: ...
    def item(self, *args) -> Any:
        """Return one element as a Python scalar; a one-element array needs no index."""
    def tolist(self) -> Any:
        """Return the elements as nested lists."""
    def __getitem__(self: Same, key) -> Same: ...
    def __setitem__(self, key, value) -> None: ...
    @property
    def grad(self: Same) -> Same: ...
    kind: Any

class _Symbol(Numpy, Symbol):
    """The symbol of an np.ndarray."""
    @staticmethod
    def interpret(op, inputs, attrs, name=None) -> Any:
        """Record the application and return np's symbols."""
    def as_np_ndarray(self: Same) -> Same:
        """Return this symbol."""
    def as_nd_ndarray(self: Same) -> Same:
        """Return the nd symbol of the same value."""
    @staticmethod
    def constant(values: Same) -> Same:
        """Return a constant of the graph being traced."""
    @staticmethod
    def beside(values: Same) -> Same:
        """Return a constant of the graph being traced."""
    def on_device(self: Same, values) -> Same:
        """Return a constant of the graph being traced."""
