"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import Any, TypeVar

Same = TypeVar("Same")

from minihybrid.core.array import NDArray
from minihybrid.core.sym import Symbol

class Numpy:
    """What np's arrays and symbols share, on top of NDArray and Symbol."""

    is_np: Any
    def __hash__(self) -> int: ...
    def __neg__(self: Same) -> Same: ...
    def __abs__(self: Same) -> Same: ...
    def __matmul__(self: Same, other) -> Same: ...
    def __invert__(self: Same) -> Same: ...
    def reshape(self: Same, *shape, order: Any = "C") -> Same:
        """The same numbers under another shape; one length may be -1."""
    def flatten(self: Same, order: Any = "C") -> Same:
        """The same numbers along one axis; order="F": column by column."""
    def ravel(self: Same, order: Any = "C") -> Same:
        """The same numbers along one axis; order="F": column by column."""
    def transpose(self: Same, *axes) -> Same:
        """The axes in another order, reversed unless given."""
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
        """The same numbers in a dtype; with copy=False this array, if it has that dtype."""
    def clip(self: Same, min=None, max=None, out=None) -> Same:
        """The same numbers, but not below min and not above max."""
    def copy(self: Same, order: Any = "C") -> Same:
        """The same numbers in memory of their own."""
    def nonzero(self) -> tuple[Any, ...]:
        """Where the numbers are not 0: for each axis, an array of places."""
    def expand_dims(self: Same, axis) -> Same:
        """Put in an axis of length 1."""
    def part(self: Same, key, shape) -> Same:
        """`x[key]` by operators, with np's shapes; also for arrays of indices."""
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
        """The mean square distance from the mean, over the axes."""
    def std(a: Same, axis=None, dtype=None, ddof: Any = 0, keepdims: Any = False) -> Same:
        """The square root of the variance, over the axes."""
    def argmax(a: Same, axis=None, keepdims: Any = False) -> Same:
        """The place of the largest number, as int64; of the flat array without an axis."""
    def argmin(a: Same, axis=None, keepdims: Any = False) -> Same:
        """The place of the smallest number, as int64; of the flat array without an axis."""
    def dot(a: Same, b) -> Same:
        """Vectors: their inner product; else over a's last and b's last but one axis."""
    def squeeze(a: Same, axis=None) -> Same:
        """Take out axes of length 1, all of them unless told."""
    def swapaxes(a: Same, axis1, axis2) -> Same:
        """Exchange two axes."""
    def repeat(a: Same, repeats, axis=None) -> Same:
        """Each element `repeats` times; without an axis, of a laid out flat."""
    def take(a: Same, indices, axis=None, mode: Any = "raise") -> Same:
        """The parts of a at places of an axis; without an axis, of a laid out flat."""
    def sort(a: Same, axis: Any = -1, kind=None, order=None) -> Same:
        """The numbers of each line in order; `axis=None` lays them out flat."""
    def argsort(a: Same, axis: Any = -1, kind=None, order=None) -> Same:
        """The places of the numbers of each line in order, as int64."""
    def cumsum(a: Same, axis=None, dtype=None) -> Same:
        """The sum of all numbers up to each one; without an axis, laid out flat."""
    def round(x: Same, decimals: Any = 0) -> Same:
        """The nearest number with so many decimals; a half goes to the even one."""
    def flip(m: Same, axis=None) -> Same:
        """Axes read from back to front, all of them unless told."""
    def tile(A: Same, reps) -> Same:
        """The whole array `reps` times along each axis."""
    def diag(v: Same, k: Any = 0) -> Same:
        """The diagonal k of a matrix, or a matrix with a vector on its diagonal k."""
    def diagonal(a: Same, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Same:
        """The diagonal of two axes, as the last axis."""
    def trace(a, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
        """The sum of a diagonal."""
    def broadcast_to(array: Same, shape) -> Same:
        """Repeat axes of length 1 up to a shape."""

class ndarray(Numpy, NDArray):
    """An array with np's rules; `mx.np.array` makes it."""

    composed: Any
    def as_np_ndarray(self: Same) -> Same:
        """This array."""
    def as_nd_ndarray(self: Same) -> Same:
        """The legacy array with the same memory and place on the tape."""
    @staticmethod
    def constant(values: Same) -> Same:
        """NumPy numbers as an array beside this one."""
    def on_device(self: Same, values) -> Same:
        """NumPy numbers as an array on this one's device."""
    def convert(self: Same, other, op) -> Same:
        """A NumPy array beside an np.ndarray becomes one."""
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    @property
    def dtype(self) -> Any: ...
    def item(self, *args) -> Any:
        """One number as Python's: of a flat place or places, or of an array of one."""
    def tolist(self) -> Any:
        """The numbers as nested lists."""
    def __getitem__(self: Same, key) -> Same: ...
    def __setitem__(self, key, value) -> None: ...
    @property
    def grad(self: Same) -> Same: ...
    kind: Any

class _Symbol(Numpy, Symbol):
    """The symbol of an np.ndarray."""
    @staticmethod
    def interpret(op, inputs, attrs, name=None) -> Any:
        """Write the application down; the results are np's symbols."""
    def as_np_ndarray(self: Same) -> Same:
        """This symbol."""
    def as_nd_ndarray(self: Same) -> Same:
        """The legacy symbol of the same value."""
    @staticmethod
    def constant(values: Same) -> Same:
        """NumPy numbers as a constant of the graph that is being traced."""
    @staticmethod
    def beside(values: Same) -> Same:
        """NumPy numbers as a constant of the graph that is being traced."""
