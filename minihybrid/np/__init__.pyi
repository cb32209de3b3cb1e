"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import Any, TypeVar

Same = TypeVar("Same")

FUNCTIONS: Any

def abs(x, dtype=None) -> ndarray:
    """The absolute value."""

def absolute(x, dtype=None) -> ndarray:
    """The absolute value."""

def add(x1, x2, dtype=None) -> ndarray:
    """y = a + b."""

def all(a, axis=None, keepdims: Any = False) -> ndarray:
    """Whether all are not 0."""

def allclose(*args, **kwargs) -> Any:
    """NumPy's `allclose`, outside of tapes and traces."""

def amax(a, axis=None, keepdims: Any = False) -> ndarray:
    """The largest over the axes."""

def amin(a, axis=None, keepdims: Any = False) -> ndarray:
    """The smallest over the axes."""

def any(a, axis=None, keepdims: Any = False) -> ndarray:
    """Whether any is not 0."""

def append(arr, values, axis=None) -> ndarray:
    """Append the second array to the first."""

def arange(start, stop=None, step: Any = 1, dtype=None, ctx=None) -> ndarray:
    """Return start, start + step, ... below stop. A single argument is the stop."""

def arccos(x, dtype=None) -> ndarray:
    """The angle whose cosine is a."""

def arccosh(x, dtype=None) -> ndarray:
    """The inverse of cosh."""

def arcsin(x, dtype=None) -> ndarray:
    """The angle whose sine is a."""

def arcsinh(x, dtype=None) -> ndarray:
    """The inverse of sinh."""

def arctan(x, dtype=None) -> ndarray:
    """The angle whose tangent is a."""

def arctan2(x1, x2, dtype=None) -> ndarray:
    """The angle of the point (b, a)."""

def arctanh(x, dtype=None) -> ndarray:
    """The inverse of tanh."""

def argmax(a, axis=None, keepdims: Any = False) -> ndarray:
    """Return the index of the largest element, int64, by default in the flattened array."""

def argmin(a, axis=None, keepdims: Any = False) -> ndarray:
    """Return the index of the smallest element, int64, by default in the flattened array."""

def argsort(a, axis: Any = -1, kind=None, order=None) -> ndarray:
    """Return the indices that would sort along an axis, int64."""

def argwhere(*args, **kwargs) -> ndarray:
    """NumPy's `argwhere`, outside of tapes and traces."""

def around(x, decimals: Any = 0) -> ndarray:
    """Round to `decimals` decimal places, with halves to even."""

def array(object, dtype=None, ctx=None) -> ndarray:
    """Create an array of the given elements, float32 unless the source has a dtype."""

def array_equal(*args, **kwargs) -> Any:
    """NumPy's `array_equal`, outside of tapes and traces."""

def array_split(ary, indices_or_sections, axis: Any = 0) -> Any:
    """Like split, but the first parts may be longer by one."""

def atleast_1d(*arys) -> ndarray:
    """Copies of the arrays with at least 1 axes."""

def atleast_2d(*arys) -> ndarray:
    """Copies of the arrays with at least 2 axes."""

def atleast_3d(*arys) -> ndarray:
    """Copies of the arrays with at least 3 axes."""

def average(a, axis=None, weights=None, returned: Any = False) -> Any:
    """Return the mean, weighted per element or along one axis. `returned` adds their sum."""

def bincount(*args, **kwargs) -> ndarray:
    """NumPy's `bincount`, outside of tapes and traces."""

def bitwise_and(x1, x2, dtype=None) -> ndarray:
    """The bits of a and b; of bools, true or false."""

def bitwise_or(x1, x2, dtype=None) -> ndarray:
    """The bits of a or b; of bools, true or false."""

def bitwise_xor(x1, x2, dtype=None) -> ndarray:
    """The bits of a xor b; of bools, true or false."""

from builtins import bool as bool

def broadcast_to(array, shape) -> ndarray:
    """Broadcast an array to a shape."""

def cbrt(x, dtype=None) -> ndarray:
    """The cube root; of a negative number, too."""

def ceil(x, dtype=None) -> ndarray:
    """The next whole number above."""

def clip(a, a_min=None, a_max=None) -> ndarray:
    """Clip a to [a_min, a_max]. `None` means no limit."""

def column_stack(arrays) -> ndarray:
    """Join vectors as columns."""

def concatenate(seq, axis: Any = 0) -> ndarray:
    """Concatenate arrays along an axis. `None` flattens them first."""

def copy(a, order: Any = "C") -> ndarray:
    """Return a copy."""

def copysign(x1, x2) -> ndarray:
    """Return |x1| with the sign of x2 (zeros are signed); integers become floats."""

def corrcoef(*args, **kwargs) -> ndarray:
    """NumPy's `corrcoef`, outside of tapes and traces."""

def cos(x, dtype=None) -> ndarray:
    """The cosine."""

def cosh(x, dtype=None) -> ndarray:
    """The hyperbolic cosine."""

def count_nonzero(*args, **kwargs) -> ndarray:
    """NumPy's `count_nonzero`, outside of tapes and traces."""

def cov(*args, **kwargs) -> ndarray:
    """NumPy's `cov`, outside of tapes and traces."""

def cumsum(a, axis=None, dtype=None) -> ndarray:
    """The sum of all numbers up to each one; without an axis, of the flattened array."""

def deg2rad(x, dtype=None) -> ndarray:
    """An angle in radians."""

def degrees(x, dtype=None) -> ndarray:
    """An angle in degrees."""

def diag(v, k: Any = 0) -> ndarray:
    """Return the diagonal k of a matrix, or a matrix with a vector on its diagonal k."""

def diagonal(a, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> ndarray:
    """Return the diagonal over two axes, as the last axis."""

def diff(a, n: Any = 1, axis: Any = -1) -> ndarray:
    """Return the n-th difference of adjacent elements."""

def divide(x1, x2, dtype=None) -> ndarray:
    """y = a / b; of whole numbers cut towards zero, and 0 where b is 0."""

def dot(a, b) -> ndarray:
    """The product over the last axis of a and the last but one of b."""

def dstack(arrays) -> ndarray:
    """Join arrays along the third axis."""

e: Any

def einsum(subscripts, *operands, optimize: Any = False) -> ndarray:
    """Sum products in Einstein notation: 'ij,jk->ik' is a matrix product."""

def empty(shape, dtype=None, order: Any = "C", ctx=None) -> ndarray:
    """Return zeros, for an array that will be overwritten."""

def empty_like(a, fill_value: Any = 0, dtype=None, order: Any = "C", ctx=None) -> ndarray:
    """Return a constant with the shape of a and, by default, its dtype."""

def equal(x1, x2, dtype=None) -> ndarray:
    """1 where a == b, else 0, in the dtype of a."""

def exp(x, dtype=None) -> ndarray:
    """y = e to the power a."""

def expand_dims(a, axis) -> ndarray:
    """Insert an axis of length 1."""

def expm1(x, dtype=None) -> ndarray:
    """e to the power a, minus 1, exact for small a."""

def eye(N, M=None, k: Any = 0, dtype=None, ctx=None) -> ndarray:
    """Return ones on a diagonal, zeros elsewhere."""

def fabs(x, dtype=None) -> ndarray:
    """The absolute value."""

def fix(x, dtype=None) -> ndarray:
    """The whole part: towards 0."""

def flip(m, axis=None) -> ndarray:
    """Reverse axes, by default all."""

def fliplr(m) -> ndarray:
    """Reverse the second axis."""

def flipud(m) -> ndarray:
    """Reverse the first axis."""

from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64

def floor(x, dtype=None) -> ndarray:
    """The next whole number below."""

def floor_divide(*args, **kwargs) -> ndarray:
    """NumPy's `floor_divide`, outside of tapes and traces."""

def full(shape, fill_value, dtype=None, order: Any = "C", ctx=None, out=None) -> ndarray:
    """Return an array filled with one value."""

def full_like(a, fill_value: Any = 0, dtype=None, order: Any = "C", ctx=None) -> ndarray:
    """Return a constant with the shape of a and, by default, its dtype."""

def greater(x1, x2, dtype=None) -> ndarray:
    """1 where a > b, else 0, in the dtype of a."""

def greater_equal(x1, x2, dtype=None) -> ndarray:
    """1 where a >= b, else 0, in the dtype of a."""

def histogram(*args, **kwargs) -> ndarray:
    """NumPy's `histogram`, outside of tapes and traces."""

def hsplit(ary, indices_or_sections) -> Any:
    """Split along the second axis, or a vector along its only axis."""

def hstack(arrays) -> ndarray:
    """Join arrays along the second axis; vectors along their only one."""

def hypot(x1, x2, dtype=None) -> ndarray:
    """sqrt(a * a + b * b), without overflow."""

def identity(n, dtype=None, ctx=None) -> ndarray:
    """Return the identity matrix."""

def indices(dimensions, dtype: Any = "int32", ctx=None) -> ndarray:
    """Return the coordinates of all positions of a shape, one array per axis."""

inf: Any

def inner(a, b) -> ndarray:
    """Return the inner product over the last axes, or the product with a scalar."""

from numpy import int8 as int8
from numpy import int32 as int32
from numpy import int64 as int64

def interp(*args, **kwargs) -> ndarray:
    """NumPy's `interp`, outside of tapes and traces."""

def isclose(*args, **kwargs) -> ndarray:
    """NumPy's `isclose`, outside of tapes and traces."""

def isfinite(x, dtype=None) -> ndarray:
    """True where it is a number and not infinite."""

def isin(*args, **kwargs) -> ndarray:
    """NumPy's `isin`, outside of tapes and traces."""

def isinf(x, dtype=None) -> ndarray:
    """True where it is infinite."""

def isnan(x, dtype=None) -> ndarray:
    """True where it is not a number."""

def isneginf(x, dtype=None) -> ndarray:
    """True where it is negative infinity."""

def isposinf(x, dtype=None) -> ndarray:
    """True where it is positive infinity."""

def lcm(*args, **kwargs) -> ndarray:
    """NumPy's `lcm`, outside of tapes and traces."""

def ldexp(x1, x2) -> ndarray:
    """Return x1 * 2 ** x2."""

def less(x1, x2, dtype=None) -> ndarray:
    """1 where a < b, else 0, in the dtype of a."""

def less_equal(x1, x2, dtype=None) -> ndarray:
    """1 where a <= b, else 0, in the dtype of a."""

class _linalg:
    @staticmethod
    def cholesky(a) -> ndarray:
        """Return the Cholesky factor L of positive definite matrices A = L L^T."""
    @staticmethod
    def cond(*args, **kwargs) -> Any:
        """NumPy's `cond`, outside of tapes and traces."""
    @staticmethod
    def det(a) -> ndarray:
        """Return the determinant of square matrices (..., N, N)."""
    @staticmethod
    def eigh(*args, **kwargs) -> ndarray:
        """NumPy's `eigh`, outside of tapes and traces."""
    @staticmethod
    def eigvals(*args, **kwargs) -> ndarray:
        """NumPy's `eigvals`, outside of tapes and traces."""
    @staticmethod
    def inv(a) -> ndarray:
        """Return the inverse of square matrices (..., N, N)."""
    @staticmethod
    def matrix_rank(*args, **kwargs) -> ndarray:
        """NumPy's `matrix_rank`, outside of tapes and traces."""
    @staticmethod
    def norm(x, ord=None, axis=None, keepdims: Any = False) -> ndarray:
        """Return the norm of a vector or matrix: `np.linalg.norm`."""
    @staticmethod
    def pinv(*args, **kwargs) -> ndarray:
        """NumPy's `pinv`, outside of tapes and traces."""
    @staticmethod
    def qr(*args, **kwargs) -> ndarray:
        """NumPy's `qr`, outside of tapes and traces."""
    @staticmethod
    def slogdet(a) -> ndarray:
        """Return the sign of the determinant and the logarithm of its absolute value."""
    @staticmethod
    def solve(a, b) -> ndarray:
        """Solve A X = B for X: (..., M, M) and (M,) or (..., M, K)."""
    @staticmethod
    def svd(a, full_matrices: Any = False, compute_uv: Any = True) -> ndarray:
        """Return U, the singular values S, and V^T of A = U S V^T, reduced as in MXNet."""

linalg: _linalg

def linspace(
    start,
    stop,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype=None,
    axis: Any = 0,
    ctx=None,
) -> ndarray:
    """Return `num` evenly spaced values from start to stop."""

def log(x, dtype=None) -> ndarray:
    """The natural logarithm."""

def log10(x, dtype=None) -> ndarray:
    """The logarithm to base 10."""

def log1p(x, dtype=None) -> ndarray:
    """The logarithm of 1 + a, exact for small a."""

def log2(x, dtype=None) -> ndarray:
    """The logarithm to base 2."""

def logical_and(x1, x2) -> ndarray:
    """1 where a and b is not 0, else 0, in the dtype of a."""

def logical_not(x, dtype=None) -> ndarray:
    """True where the number is 0."""

def logical_or(x1, x2) -> ndarray:
    """1 where a or b is not 0, else 0, in the dtype of a."""

def logical_xor(x1, x2) -> ndarray:
    """1 where a xor b is not 0, else 0, in the dtype of a."""

def logspace(
    start,
    stop,
    num: Any = 50,
    endpoint: Any = True,
    base: Any = 10.0,
    dtype=None,
    axis: Any = 0,
    ctx=None,
) -> ndarray:
    """Return `num` powers of a base with evenly spaced exponents."""

def matmul(a, b) -> ndarray:
    """Products of the matrices in the last two axes; others broadcast."""

def max(a, axis=None, keepdims: Any = False) -> ndarray:
    """The largest over the axes."""

def maximum(x1, x2, dtype=None) -> ndarray:
    """The larger of a and b; NaN if either is."""

def mean(a, axis=None, dtype=None, keepdims: Any = False) -> ndarray:
    """The mean over the axes."""

def median(*args, **kwargs) -> ndarray:
    """NumPy's `median`, outside of tapes and traces."""

def meshgrid(*xi, indexing: Any = "xy") -> Any:
    """Return the coordinate arrays of a grid, one per vector, all of the same shape."""

def min(a, axis=None, keepdims: Any = False) -> ndarray:
    """The smallest over the axes."""

def minimum(x1, x2, dtype=None) -> ndarray:
    """The smaller of a and b; NaN if either is."""

def mod(x1, x2, dtype=None) -> ndarray:
    """The remainder of a / b, with b's sign."""

def moveaxis(a, source, destination) -> ndarray:
    """Move axes to other positions. The others keep their order."""

def multiply(x1, x2, dtype=None) -> ndarray:
    """y = a * b, element by element."""

nan: Any

def nan_to_num(data, copy: Any = True, nan: Any = 0.0, posinf=None, neginf=None) -> ndarray:
    """Replace NaN and infinities, by default by the largest finite numbers."""

from minihybrid.np.array import ndarray as ndarray

def ndim(a) -> int:
    """Return the number of axes."""

def negative(x, dtype=None) -> ndarray:
    """y = -a."""

newaxis: Any

def nonzero(*args, **kwargs) -> tuple[Any, ...]:
    """NumPy's `nonzero`, outside of tapes and traces."""

def not_equal(x1, x2, dtype=None) -> ndarray:
    """1 where a != b, else 0, in the dtype of a."""

def ones(shape, dtype=None, order: Any = "C", ctx=None) -> ndarray:
    """Return ones."""

def ones_like(a, dtype=None, order: Any = "C", ctx=None) -> ndarray:
    """Return ones with the shape of a."""

def outer(a, b) -> ndarray:
    """Return the outer product of two flattened arrays."""

def pad(x, pad_width, mode: Any = "constant", constant_values: Any = 0) -> ndarray:
    """Pad the ends of axes with a constant, the edge or a reflection."""

def percentile(*args, **kwargs) -> ndarray:
    """NumPy's `percentile`, outside of tapes and traces."""

pi: Any

def power(x1, x2, dtype=None) -> ndarray:
    """y = a to the power b."""

def prod(a, axis=None, dtype=None, keepdims: Any = False, initial=None) -> ndarray:
    """The product over the axes."""

def quantile(*args, **kwargs) -> ndarray:
    """NumPy's `quantile`, outside of tapes and traces."""

def rad2deg(x, dtype=None) -> ndarray:
    """An angle in degrees."""

def radians(x, dtype=None) -> ndarray:
    """An angle in radians."""

class _random:
    @staticmethod
    def choice(a, size=None, replace: Any = True, p=None, ctx=None, out=None) -> ndarray:
        """Draw elements of an array, or of 0 to a - 1, with probabilities `p`."""
    @staticmethod
    def exponential(scale: Any = 1.0, size=None, ctx=None, out=None) -> ndarray:
        """Draw from the exponential distribution with mean `scale`."""
    @staticmethod
    def gamma(shape, scale: Any = 1.0, size=None, dtype=None, ctx=None, out=None) -> ndarray:
        """Draw from the gamma distribution."""
    @staticmethod
    def multinomial(n, pvals, size=None) -> ndarray:
        """Return the count of each outcome in n draws with probabilities `pvals`."""
    @staticmethod
    def normal(
        loc: Any = 0.0, scale: Any = 1.0, size=None, dtype=None, ctx=None, out=None
    ) -> ndarray:
        """Draw from the normal distribution."""
    @staticmethod
    def permutation(x) -> ndarray:
        """Return a random permutation of an array's rows, or of 0 to x - 1."""
    @staticmethod
    def rand(*size, dtype=None, ctx=None) -> ndarray:
        """Draw uniformly from [0, 1); the lengths are separate arguments."""
    @staticmethod
    def randint(low, high=None, size=None, dtype: Any = "int64", ctx=None, out=None) -> ndarray:
        """Draw integers uniformly from [low, high), or from [0, low)."""
    @staticmethod
    def randn(*size, dtype=None, ctx=None) -> ndarray:
        """Draw from the standard normal; the lengths are separate arguments."""
    @staticmethod
    def seed(seed_state, ctx: Any = "all") -> None:
        """Seed the generator: the same seed reproduces the same samples."""
    @staticmethod
    def shuffle(x) -> ndarray:
        """Shuffle the rows of an array in place."""
    @staticmethod
    def uniform(
        low: Any = 0.0, high: Any = 1.0, size=None, dtype=None, ctx=None, out=None
    ) -> ndarray:
        """Draw from the uniform distribution over [low, high)."""

random: _random

def ravel(a, order: Any = "C") -> ndarray:
    """Flatten to one axis, in column-major order for order="F"."""

def reciprocal(x, dtype=None) -> ndarray:
    """y = 1 / a."""

def remainder(x1, x2, dtype=None) -> ndarray:
    """The remainder of a / b, with b's sign."""

def repeat(a, repeats, axis=None) -> ndarray:
    """Repeat each element along an axis, by default of the flattened array."""

def reshape(a, newshape, reverse: Any = False, order: Any = "C") -> ndarray:
    """Return the same elements with another shape; one length may be -1."""

def rint(x, dtype=None) -> ndarray:
    """The nearest whole number; halves go down."""

def roll(a, shift, axis=None) -> ndarray:
    """Shift the elements cyclically by `shift`."""

def round(x, decimals: Any = 0) -> ndarray:
    """Round to `decimals` decimal places, with halves to even."""

def round_(x, decimals: Any = 0) -> ndarray:
    """Round to `decimals` decimal places, with halves to even."""

def row_stack(arrays) -> ndarray:
    """Join arrays as rows."""

def searchsorted(*args, **kwargs) -> ndarray:
    """NumPy's `searchsorted`, outside of tapes and traces."""

def shape(a) -> tuple[int, ...]:
    """Return the length of each axis."""

def sign(x, dtype=None) -> ndarray:
    """-1, 0 or 1; NaN stays NaN."""

def sin(x, dtype=None) -> ndarray:
    """The sine."""

def sinh(x, dtype=None) -> ndarray:
    """The hyperbolic sine."""

def size(a) -> int:
    """Return the number of elements."""

def sort(a, axis: Any = -1, kind=None, order=None) -> ndarray:
    """Sort along an axis. `axis=None` flattens first."""

def split(ary, indices_or_sections, axis: Any = 0) -> Any:
    """Split into equal parts, or at the given indices."""

def sqrt(x, dtype=None) -> ndarray:
    """The square root."""

def square(x, dtype=None) -> ndarray:
    """y = a * a."""

def squeeze(a, axis=None) -> ndarray:
    """Remove axes of length 1, by default all."""

def stack(arrays, axis: Any = 0) -> ndarray:
    """Join arrays along a new axis."""

def std(a, axis=None, dtype=None, ddof: Any = 0, keepdims: Any = False) -> ndarray:
    """Return the standard deviation over the axes."""

def subtract(x1, x2, dtype=None) -> ndarray:
    """y = a - b."""

def sum(a, axis=None, dtype=None, keepdims: Any = False, initial=None) -> ndarray:
    """The sum over the axes."""

def swapaxes(a, axis1, axis2) -> ndarray:
    """Exchange two axes."""

def take(a, indices, axis=None, mode: Any = "raise") -> ndarray:
    """Select elements at indices along an axis, by default of the flattened array."""

def tan(x, dtype=None) -> ndarray:
    """The tangent."""

def tanh(x, dtype=None) -> ndarray:
    """The hyperbolic tangent."""

def tensordot(a, b, axes: Any = 2) -> ndarray:
    """Contract pairs of axes: the last `axes` of a and the first of b, or two lists."""

def tile(A, reps) -> ndarray:
    """Tile the array along each axis."""

def trace(a, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """Return the sum of a diagonal."""

def transpose(a, axes=None) -> ndarray:
    """Permute the axes, by default in reverse."""

def tril(m, k: Any = 0) -> ndarray:
    """Return the lower triangle, with zeros elsewhere."""

def triu(m, k: Any = 0) -> ndarray:
    """Return the upper triangle, with zeros elsewhere."""

def true_divide(x1, x2, dtype=None) -> ndarray:
    """y = a / b; of whole numbers cut towards zero, and 0 where b is 0."""

def trunc(x, dtype=None) -> ndarray:
    """The whole part: towards 0."""

from numpy import uint8 as uint8

def unique(*args, **kwargs) -> Any:
    """NumPy's `unique`, outside of tapes and traces."""

def var(a, axis=None, dtype=None, ddof: Any = 0, keepdims: Any = False) -> ndarray:
    """Return the variance over the axes."""

def vdot(a, b) -> ndarray:
    """Return the inner product of two flattened arrays."""

def vsplit(ary, indices_or_sections) -> Any:
    """Split along the first axis."""

def vstack(arrays) -> ndarray:
    """Join arrays as rows."""

def where(condition, x=None, y=None) -> ndarray:
    """Select x where the condition isn't 0, else y. Each may be a scalar."""

def zeros(shape, dtype=None, order: Any = "C", ctx=None) -> ndarray:
    """Return zeros."""

def zeros_like(a, dtype=None, order: Any = "C", ctx=None) -> ndarray:
    """Return zeros with the shape of a."""
