"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import Any, TypeVar

Same = TypeVar("Same")

class Value:
    """Base class of NDArray and Symbol, which implement `interpret`, `convert`, `lines_up`."""

    level: Any
    is_np: Any
    def __getattr__(self: Same, name) -> Same: ...
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
    def __eq__(self: Same, other) -> Same:  # type: ignore
        ...
    def __ne__(self: Same, other) -> Same:  # type: ignore
        ...
    def __gt__(self: Same, other) -> Same: ...
    def __ge__(self: Same, other) -> Same: ...
    def __lt__(self: Same, other) -> Same: ...
    def __le__(self: Same, other) -> Same: ...
    def __hash__(self) -> int: ...
    def as_nd_ndarray(self: Same) -> Same:
        """Return this value as an nd array or symbol, which it is."""
    def __neg__(self: Same) -> Same: ...
    def __abs__(self: Same) -> Same: ...
    def reshape(self: Same, *shape, **kwargs) -> Same:
        """Return the elements in another shape: `reshape(2, 3)`, `reshape((2, 3))`."""
    def transpose(self: Same, *axes, **kwargs) -> Same:
        """Permute the axes; by default, reverse them."""
    def astype(self: Same, dtype, copy: Any = True) -> Same:
        """Convert to a dtype; with copy=False, return this array if it has that dtype."""
    def copy(self: Same) -> Same:
        """Return a copy."""
    def part(self: Same, key, shape) -> Same:
        """Compute `x[key]` with operators, so that it can be traced and differentiated."""
    def __format__(self, form) -> str: ...
    def detach(self: Same) -> Same:
        """Return the same values without gradient."""
    def expand_dims(self: Same, axis, inplace: Any = False) -> Same:
        """Insert an axis of length 1; the result is a copy."""
    def squeeze(self: Same, axis=None, inplace: Any = False) -> Same:
        """Remove axes of length 1; the result is a copy."""
    def flatten(self: Same, inplace: Any = False) -> Same:
        """Flatten (N, a, b, ...) to (N, a * b * ...); the result is a copy."""
    def split_v2(self, indices_or_sections, axis: Any = 0, squeeze_axis: Any = False) -> Any:
        """Split into equal parts (an integer), or at indices (a tuple)."""
    @property
    def T(self: Same) -> Same: ...
    def elemwise_add(self: Same, rhs) -> Same:
        """y = a + b."""
    def broadcast_add(self: Same, rhs) -> Same:
        """y = a + b."""
    def elemwise_sub(self: Same, rhs) -> Same:
        """y = a - b."""
    def broadcast_sub(self: Same, rhs) -> Same:
        """y = a - b."""
    def elemwise_mul(self: Same, rhs) -> Same:
        """y = a * b, element by element."""
    def broadcast_mul(self: Same, rhs) -> Same:
        """y = a * b, element by element."""
    def elemwise_div(self: Same, rhs) -> Same:
        """y = a / b; of whole numbers cut towards zero, and 0 where b is 0."""
    def broadcast_div(self: Same, rhs) -> Same:
        """y = a / b; of whole numbers cut towards zero, and 0 where b is 0."""
    def broadcast_mod(self: Same, rhs) -> Same:
        """The remainder of a / b, with b's sign."""
    def broadcast_power(self: Same, rhs) -> Same:
        """y = a to the power b."""
    def broadcast_maximum(self: Same, rhs) -> Same:
        """The larger of a and b; NaN if either is."""
    def broadcast_minimum(self: Same, rhs) -> Same:
        """The smaller of a and b; NaN if either is."""
    def broadcast_equal(self: Same, rhs) -> Same:
        """1 where a == b, else 0, in the dtype of a."""
    def broadcast_not_equal(self: Same, rhs) -> Same:
        """1 where a != b, else 0, in the dtype of a."""
    def broadcast_greater(self: Same, rhs) -> Same:
        """1 where a > b, else 0, in the dtype of a."""
    def broadcast_greater_equal(self: Same, rhs) -> Same:
        """1 where a >= b, else 0, in the dtype of a."""
    def broadcast_lesser(self: Same, rhs) -> Same:
        """1 where a < b, else 0, in the dtype of a."""
    def broadcast_lesser_equal(self: Same, rhs) -> Same:
        """1 where a <= b, else 0, in the dtype of a."""
    def exp(self: Same) -> Same:
        """y = e to the power a."""
    def log(self: Same) -> Same:
        """The natural logarithm."""
    def expm1(self: Same) -> Same:
        """e to the power a, minus 1, exact for small a."""
    def log1p(self: Same) -> Same:
        """The logarithm of 1 + a, exact for small a."""
    def sqrt(self: Same) -> Same:
        """The square root."""
    def rsqrt(self: Same) -> Same:
        """One over the square root."""
    def square(self: Same) -> Same:
        """y = a * a."""
    def reciprocal(self: Same) -> Same:
        """y = 1 / a."""
    def sin(self: Same) -> Same:
        """The sine."""
    def cos(self: Same) -> Same:
        """The cosine."""
    def tanh(self: Same) -> Same:
        """The hyperbolic tangent."""
    def sigmoid(self: Same) -> Same:
        """y = 1 / (1 + exp(-a))."""
    def relu(self: Same) -> Same:
        """y = max(a, 0); NaN stays NaN."""
    def softrelu(self: Same) -> Same:
        """y = log(1 + exp(a)), without overflow."""
    def softsign(self: Same) -> Same:
        """y = a / (1 + |a|)."""
    def abs(self: Same) -> Same:
        """The absolute value."""
    def sign(self: Same) -> Same:
        """-1, 0 or 1; NaN stays NaN."""
    def negative(self: Same) -> Same:
        """y = -a."""
    def floor(self: Same) -> Same:
        """The next whole number below."""
    def ceil(self: Same) -> Same:
        """The next whole number above."""
    def logical_not(self: Same) -> Same:
        """1 where a is 0, else 0."""
    def clip(self: Same, a_min, a_max) -> Same:
        """a, but not below a_min and not above a_max."""
    def where(self: Same, x, y) -> Same:
        """x where the condition is not 0, else y; a vector of conditions chooses rows."""
    def cast(self: Same, dtype) -> Same:
        """The same numbers in a dtype."""
    def identity(self: Same) -> Same:
        """The same values in memory of their own."""
    def amp_cast(self: Same, dtype) -> Same:
        """The same numbers in a dtype if they are float16 or float32; others stay."""
    def stop_gradient(self: Same) -> Same:
        """The same values; no gradient passes."""
    def zeros_like(self: Same) -> Same:
        """An array of 0 in the shape and dtype of the input."""
    def ones_like(self: Same) -> Same:
        """An array of 1 in the shape and dtype of the input."""
    def reshape_like(
        self: Same, rhs, lhs_begin=None, lhs_end=None, rhs_begin=None, rhs_end=None
    ) -> Same:
        """The numbers of lhs under the shape of rhs, or with a range of its axes."""
    def swapaxes(self: Same, dim1: Any = 0, dim2: Any = 0) -> Same:
        """Exchange two axes."""
    def broadcast_to(self: Same, shape) -> Same:
        """Repeat axes of length 1 up to a shape."""
    def broadcast_like(self: Same, rhs, lhs_axes=None, rhs_axes=None) -> Same:
        """Repeat axes of length 1 up to the shape of rhs, or only lhs_axes up to rhs_axes."""
    def slice(self: Same, begin, end, step: Any = ()) -> Same:
        """The part between begin and end, one range for each axis; None is the edge."""
    def slice_axis(self: Same, axis, begin, end) -> Same:
        """The part between begin and end of one axis."""
    def sum(self: Same, axis=None, keepdims: Any = False, exclude: Any = False) -> Same:
        """The sum over the axes."""
    def sum_axis(self: Same, axis=None, keepdims: Any = False, exclude: Any = False) -> Same:
        """The sum over the axes."""
    def prod(self: Same, axis=None, keepdims: Any = False, exclude: Any = False) -> Same:
        """The product over the axes."""
    def max(self: Same, axis=None, keepdims: Any = False, exclude: Any = False) -> Same:
        """The largest along the axes."""
    def max_axis(self: Same, axis=None, keepdims: Any = False, exclude: Any = False) -> Same:
        """The largest along the axes."""
    def min(self: Same, axis=None, keepdims: Any = False, exclude: Any = False) -> Same:
        """The smallest along the axes."""
    def min_axis(self: Same, axis=None, keepdims: Any = False, exclude: Any = False) -> Same:
        """The smallest along the axes."""
    def mean(self: Same, axis=None, keepdims: Any = False, exclude: Any = False) -> Same:
        """The sum over the axes divided by their length."""
    def argmax(self: Same, axis=None, keepdims: Any = False) -> Same:
        """The place of the maximum along one axis, as float32."""
    def argmin(self: Same, axis=None, keepdims: Any = False) -> Same:
        """The place of the minimum along one axis, as float32."""
    def norm(self: Same, ord: Any = 2, axis=None, out_dtype=None, keepdims: Any = False) -> Same:
        """The root of the sum of squares along the axes, or with ord=1 the sum of absolute values."""
    def nansum(self: Same, axis=None, keepdims: Any = False, exclude: Any = False) -> Same:
        """The sum over the axes. NaN is left out."""
    def nanprod(self: Same, axis=None, keepdims: Any = False, exclude: Any = False) -> Same:
        """The product over the axes. NaN is left out."""
    def all_finite(self: Same, init_output: Any = True) -> Same:
        """1 if no number is infinite or NaN, else 0."""
    def multi_all_finite(
        self: Same, /, *data, num_arrays: Any = 0, init_output: Any = True
    ) -> Same:
        """1 if no number is infinite or NaN, else 0."""
    def multi_sum_sq(self: Same, /, *data, num_arrays: Any = 0) -> Same:
        """The sum of squares of each array, as float32."""
    def take(self: Same, indices, axis: Any = 0, mode: Any = "clip") -> Same:
        """The parts of `a` at given places of one axis; mode clip, wrap or raise."""
    def pick(self: Same, index, axis: Any = -1, keepdims: Any = False, mode: Any = "clip") -> Same:
        """One element of each line along an axis: data[i, index[i]]."""
    def choose_element_0index(
        self: Same, index, axis: Any = -1, keepdims: Any = False, mode: Any = "clip"
    ) -> Same:
        """One element of each line along an axis: data[i, index[i]]."""
    def batch_take(self: Same, indices) -> Same:
        """One element of each row: a[i, indices[i]]."""
    def gather_nd(self: Same, indices) -> Same:
        """data[indices[0], indices[1], ...]: a column of indices tells one place."""
    def scatter_nd(self: Same, indices, shape) -> Same:
        """Zeros, with the data where gather_nd reads; what meets at one place is added."""
    def ravel_multi_index(self: Same, shape) -> Same:
        """(axes, N) indices -> (N,) places in row-major order."""
    def unravel_index(self: Same, shape) -> Same:
        """(N,) places in row-major order -> (axes, N) indices."""
    def one_hot(
        self: Same, depth, on_value: Any = 1.0, off_value: Any = 0.0, dtype: Any = "float32"
    ) -> Same:
        """A line of `depth` numbers for each index: on at the index, off elsewhere."""
    def fill_element_0index(self: Same, mhs, rhs) -> Same:
        """lhs, with mhs[i] at the place rhs[i] of row i."""
    def concat(self: Same, /, *data, dim: Any = 1) -> Same:
        """Join arrays along an existing axis."""
    def stack(self: Same, /, *data, axis: Any = 0) -> Same:
        """Join arrays along a new axis."""
    def add_n(self: Same, /, *data) -> Same:
        """The sum of arrays of one shape."""
    def repeat(self: Same, repeats, axis=None) -> Same:
        """Each element `repeats` times; without an axis, of the flattened array."""
    def tile(self: Same, reps) -> Same:
        """The whole array `reps` times along each axis; axes line up from the right."""
    def broadcast_axis(self: Same, axis: Any = (), size: Any = ()) -> Same:
        """Repeat axes of length 1 up to sizes."""
    def broadcast_axes(self: Same, axis: Any = (), size: Any = ()) -> Same:
        """Repeat axes of length 1 up to sizes."""
    def pad(self: Same, mode, pad_width, constant_value: Any = 0.0) -> Same:
        """More at the ends of axes: one value, the edge's, or the inside mirrored."""
    def slice_like(self: Same, shape_like, axes: Any = ()) -> Same:
        """The first part of each axis, as long as in `shape_like`."""
    def split(self, num_outputs, axis: Any = 1, squeeze_axis: Any = False) -> Any:
        """Cut an axis into equal parts."""
    def reverse(self: Same, axis) -> Same:
        """Axes read from back to front."""
    def flip(self: Same, axis) -> Same:
        """Axes read from back to front."""
    def moveaxis(self: Same, source, destination) -> Same:
        """Axes moved to other places; the rest stay in order."""
    def depth_to_space(self: Same, block_size) -> Same:
        """(N, C b b, H, W) -> (N, C, H b, W b): channels become blocks of pixels."""
    def space_to_depth(self: Same, block_size) -> Same:
        """(N, C, H b, W b) -> (N, C b b, H, W): blocks of pixels become channels."""
    def diag(self: Same, k: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Same:
        """The diagonal k of a matrix, or a matrix with a vector on its diagonal k."""
    def shape_array(self: Same) -> Same:
        """The length of each axis, as int64."""
    def size_array(self: Same) -> Same:
        """The number of elements, as int64."""
    def sort(self: Same, axis: Any = -1, is_ascend: Any = True) -> Same:
        """The numbers of each line in order; without an axis, of the flattened array."""
    def argsort(self: Same, axis: Any = -1, is_ascend: Any = True, dtype: Any = "float32") -> Same:
        """The places of the numbers of each line in order, as float32 unless told."""
    def topk(
        self: Same,
        axis: Any = -1,
        k: Any = 1,
        ret_typ: Any = "indices",
        is_ascend: Any = False,
        dtype: Any = "float32",
    ) -> Same:
        """The k largest of each line (0 means all), or smallest: their places, their values, both, or ones where they stand."""
    def argmax_channel(self: Same) -> Same:
        """The place of the largest along axis 1, as float32."""
    def cumsum(self: Same, axis=None, dtype=None) -> Same:
        """The sum of all numbers up to each one; without an axis, of the flattened array."""
    def dot(self: Same, rhs, transpose_a: Any = False, transpose_b: Any = False) -> Same:
        """The product over the last axis of lhs and the first of rhs."""
    def batch_dot(self: Same, rhs, transpose_a: Any = False, transpose_b: Any = False) -> Same:
        """(..., M, K) times (..., K, N) -> (..., M, N), one product for each sample."""
    def softmax(
        self: Same,
        length=None,
        axis: Any = -1,
        temperature=None,
        dtype=None,
        use_length: Any = False,
    ) -> Same:
        """exp(a) / sum(exp(a)) along an axis; with `use_length`, over as many numbers of each line as `length` says, and 0 behind them."""
    def log_softmax(self: Same, axis: Any = -1, temperature=None, dtype=None) -> Same:
        """a - log(sum(exp(a))) along an axis."""
    def softmax_cross_entropy(self: Same, label) -> Same:
        """The sum over the batch of -log(softmax(data)[label])."""
    def scaled_dot_product_attention(
        self: Same, key, value=None, mask=None, is_causal: Any = False, scale=None, use_mask=None
    ) -> Same:
        """softmax(query key^T scale) value: (..., L, E), (..., S, E), (..., S, V) -> (..., L, V). `scale` is 1 / sqrt(E) by default. A query doesn't see the keys where the mask, which broadcasts to (..., L, S), is 0; nor, with `is_causal`, key j > i from query i. If it sees none, the result is 0. Unlike PyTorch's, a mask of floats isn't added to the scores. The matrix of scores is never stored."""
    def ctc_loss(
        self: Same,
        label,
        data_lengths=None,
        label_lengths=None,
        use_data_lengths: Any = False,
        use_label_lengths: Any = False,
        blank_label: Any = "first",
    ) -> Same:
        """-log of the probability of each word (N, L), from scores (T, N, C). The blank is the first character, and 0 ends shorter words, or the last one, and -1 does."""
    def tan(self: Same) -> Same:
        """The tangent."""
    def arcsin(self: Same) -> Same:
        """The angle whose sine is a."""
    def arccos(self: Same) -> Same:
        """The angle whose cosine is a."""
    def arctan(self: Same) -> Same:
        """The angle whose tangent is a."""
    def sinh(self: Same) -> Same:
        """The hyperbolic sine."""
    def cosh(self: Same) -> Same:
        """The hyperbolic cosine."""
    def arcsinh(self: Same) -> Same:
        """The inverse of sinh."""
    def arccosh(self: Same) -> Same:
        """The inverse of cosh."""
    def arctanh(self: Same) -> Same:
        """The inverse of tanh."""
    def degrees(self: Same) -> Same:
        """An angle in degrees."""
    def radians(self: Same) -> Same:
        """An angle in radians."""
    def cbrt(self: Same) -> Same:
        """The cube root; of a negative number, too."""
    def rcbrt(self: Same) -> Same:
        """One over the cube root."""
    def log2(self: Same) -> Same:
        """The logarithm to base 2."""
    def log10(self: Same) -> Same:
        """The logarithm to base 10."""
    def round(self: Same) -> Same:
        """The nearest whole number; halves go away from 0."""
    def rint(self: Same) -> Same:
        """The nearest whole number; halves go down."""
    def trunc(self: Same) -> Same:
        """The whole part: towards 0."""
    def fix(self: Same) -> Same:
        """The whole part: towards 0."""
    def erf(self: Same) -> Same:
        """The error function: 2 / sqrt(pi) times the integral of exp(-t * t) to a."""
    def erfinv(self: Same) -> Same:
        """The inverse of erf, for numbers between -1 and 1."""
    def gamma(self: Same) -> Same:
        """The gamma function: (a - 1)! for whole numbers."""
    def gammaln(self: Same) -> Same:
        """The logarithm of |gamma(a)|."""
    def broadcast_hypot(self: Same, rhs) -> Same:
        """sqrt(a * a + b * b), without overflow."""
    def broadcast_arctan2(self: Same, rhs) -> Same:
        """The angle of the point (b, a)."""
    def broadcast_logical_and(self: Same, rhs) -> Same:
        """1 where a and b is not 0, else 0, in the dtype of a."""
    def broadcast_logical_or(self: Same, rhs) -> Same:
        """1 where a or b is not 0, else 0, in the dtype of a."""
    def broadcast_logical_xor(self: Same, rhs) -> Same:
        """1 where a xor b is not 0, else 0, in the dtype of a."""
    def hard_sigmoid(self: Same, alpha: Any = 0.2, beta: Any = 0.5) -> Same:
        """alpha a + beta, but not below 0 and not above 1."""
    def smooth_l1(self: Same, scalar: Any = 1.0) -> Same:
        """A parabola (s a)^2 / 2 where |a| < 1 / s^2, else |a| - 1 / (2 s^2)."""
    def softmin(self: Same, axis: Any = -1, temperature=None, dtype=None) -> Same:
        """softmax of -a along an axis."""
    def linalg_gemm2(
        self: Same,
        B,
        transpose_a: Any = False,
        transpose_b: Any = False,
        alpha: Any = 1.0,
        axis: Any = -2,
    ) -> Same:
        """alpha A B; `axis` holds the rows."""
    def linalg_gemm(
        self: Same,
        B,
        C,
        transpose_a: Any = False,
        transpose_b: Any = False,
        alpha: Any = 1.0,
        beta: Any = 1.0,
        axis: Any = -2,
    ) -> Same:
        """alpha A B + beta C."""
    def linalg_syrk(self: Same, transpose: Any = False, alpha: Any = 1.0) -> Same:
        """alpha A A^T, or with transpose alpha A^T A."""
    def linalg_trmm(
        self: Same,
        B,
        transpose: Any = False,
        rightside: Any = False,
        lower: Any = True,
        alpha: Any = 1.0,
    ) -> Same:
        """alpha A B, or with rightside alpha B A, where A is a triangle."""
    def linalg_trsm(
        self: Same,
        B,
        transpose: Any = False,
        rightside: Any = False,
        lower: Any = True,
        alpha: Any = 1.0,
    ) -> Same:
        """X of A X = alpha B, or with rightside X A = alpha B, where A is a triangle."""
    def linalg_potrf(self: Same) -> Same:
        """The lower triangle L of a symmetric positive definite A = L L^T."""
    def linalg_potri(self: Same) -> Same:
        """The inverse of L L^T, from its lower triangle L."""
    def linalg_inverse(self: Same) -> Same:
        """The inverse of square matrices."""
    def linalg_slogdet(self) -> tuple[Same, ...]:
        """The sign of the determinant, and the logarithm of its absolute value."""
    def linalg_det(self: Same) -> Same:
        """The determinant of square matrices."""
    def linalg_extractdiag(self: Same, offset: Any = 0) -> Same:
        """A diagonal of each matrix, as rows."""
    def linalg_makediag(self: Same, offset: Any = 0) -> Same:
        """Square matrices with the rows of A on a diagonal."""
    def linalg_sumlogdiag(self: Same) -> Same:
        """The sum of the logarithms of each matrix' diagonal."""
    def moments(self, axes=None, keepdims: Any = False) -> tuple[Same, ...]:
        """The mean and the variance (divided by N) over the axes; all axes by default."""
    def sample_uniform(self: Same, high, shape: Any = (), dtype=None) -> Same:
        """Numbers that are equally likely anywhere in [low, high). A block of a shape for each element of the parameters."""
    def sample_normal(self: Same, sigma, shape: Any = (), dtype=None) -> Same:
        """Numbers with the normal distribution, by the method of Box and Muller. A block of a shape for each element of the parameters."""
    def sample_exponential(self: Same, shape: Any = (), dtype=None) -> Same:
        """Waiting times of a rate lam; their mean is 1 / lam. A block of a shape for each element of the parameters."""
    def sample_gamma(self: Same, beta, shape: Any = (), dtype=None) -> Same:
        """Numbers with the gamma distribution of shape alpha and scale beta. A block of a shape for each element of the parameters."""
    def sample_poisson(self: Same, shape: Any = (), dtype=None) -> Same:
        """Counts of events of which lam are expected. A block of a shape for each element of the parameters."""
    def sample_negative_binomial(self: Same, p, shape: Any = (), dtype=None) -> Same:
        """Failures before success number k, each try succeeding with probability p. A block of a shape for each element of the parameters."""
    def sample_generalized_negative_binomial(
        self: Same, alpha, shape: Any = (), dtype=None
    ) -> Same:
        """Counts with mean mu and variance mu + alpha mu^2. A block of a shape for each element of the parameters."""
    def sample_multinomial(
        self: Same, shape: Any = (), get_prob: Any = False, dtype: Any = "int32"
    ) -> Same:
        """Places drawn with the probabilities in each row; get_prob adds their logarithms, which have a gradient."""
    def shuffle(self: Same) -> Same:
        """The rows (axis 0) in random order."""
    def make_loss(self: Same) -> Same:
        """The data as a loss: its gradient is 1, whatever comes in from above."""

class Part:
    """A sub-namespace: `nd.linalg.det` is the operator `_linalg_det`."""
    def __init__(self, prefix, base, module) -> None: ...
    def __getattr__(self, name) -> Any: ...
    def __dir__(self) -> Any: ...

def is_number(value) -> Any:
    """Return whether an operand is a Python or NumPy scalar."""

def namespace(name, base, module, title=None) -> Any:
    """Return `nd.name` or `sym.name`: an operator's function, or one of a few other names."""

def public_names(names, *more) -> Any:
    """Return the names for `dir()` of a namespace: its own and all operators."""

def writable(owner, out) -> Any:
    """Check an `out` argument."""

def put(owner, result, out) -> Any:
    """Return a result, stored in the array `out` if one is given."""

def reading(op, name, base, title) -> Any:
    """Return an operator's function; `base` interprets it if it has no inputs."""

FUNCTIONS: dict[str, Any]
