"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import Any, TypeVar

Same = TypeVar("Same")

from minihybrid.core.context import Context as Context
from minihybrid.np.array import ndarray

def activation(data, act_type, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """The activation function called act_type."""

def arange_like(
    data,
    start: Any = 0.0,
    step: Any = 1.0,
    repeat: Any = 1,
    axis=None,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """start, start + step, ... in the shape of the data, or one for each place of an axis; each number `repeat` times."""

def batch_dot(
    lhs,
    rhs,
    transpose_a: Any = False,
    transpose_b: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """(..., M, K) times (..., K, N) -> (..., M, N), one product for each sample."""

def batch_flatten(data, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """(N, a, b, ...) -> (N, a * b * ...)."""

def batch_norm(
    data,
    gamma,
    beta,
    moving_mean,
    moving_var,
    eps: Any = 0.001,
    momentum: Any = 0.9,
    fix_gamma: Any = True,
    use_global_stats: Any = False,
    output_mean_var: Any = False,
    axis: Any = 1,
    cudnn_off: Any = False,
    min_calib_range=None,
    max_calib_range=None,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """(x - mean) / sqrt(var + eps) * gamma + beta, for each channel along `axis`: in training with mean and variance (divided by N) of the batch, towards which the running ones move; else with the running ones. `fix_gamma` takes gamma as 1, without a gradient; unlike MXNet, gamma itself is not overwritten. `output_mean_var` gives mean and 1 / deviation, too, without gradients."""

def cast(data, dtype, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """The same numbers in a dtype."""

def convolution(
    data,
    weight,
    bias=None,
    kernel: Any = ...,
    stride: Any = (),
    dilate: Any = (),
    pad: Any = (),
    num_filter: Any = ...,
    num_group: Any = 1,
    workspace: Any = 1024,
    no_bias: Any = False,
    cudnn_tune=None,
    cudnn_off: Any = False,
    layout=None,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """Each output is a window of the data times the weights of a filter, plus bias; (N, C, *size) -> (N, num_filter, *out)."""

from minihybrid.core.context import cpu as cpu
from minihybrid.core.context import current_context as current_context

def deconvolution(
    data,
    weight,
    bias=None,
    kernel: Any = ...,
    stride: Any = (),
    dilate: Any = (),
    pad: Any = (),
    adj: Any = (),
    target_shape: Any = (),
    num_filter: Any = ...,
    num_group: Any = 1,
    workspace: Any = 512,
    no_bias: Any = True,
    cudnn_tune=None,
    cudnn_off: Any = False,
    layout=None,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """The gradient of a convolution as a layer: each number of the data, times the weights of a filter, is added to a window; (N, C, *size) -> (N, num_filter, *out)."""

def dropout(
    data,
    p: Any = 0.5,
    mode: Any = "training",
    axes: Any = (),
    cudnn_off: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """Training: each number is 0 with probability p, else divided by 1 - p."""

def embedding(
    data,
    weight,
    input_dim,
    output_dim,
    dtype: Any = "float32",
    sparse_grad: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """A row of the weight for each index; the gradient is dense, whatever sparse_grad says. An index outside of the rows is an error of eager arrays; compiled code and GPUs take the nearest row, because a kernel cannot raise."""

def erf(data, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t * t) to a."""

def erfinv(data, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """The inverse of erf, for numbers between -1 and 1."""

def fully_connected(
    data,
    weight,
    bias=None,
    num_hidden: Any = ...,
    no_bias: Any = False,
    flatten: Any = True,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """y = x W^T + b; (N, K) -> (N, num_hidden). With `flatten`, all axes but the first are joined, and (N,) are N samples of one number; without, (K,) is one sample."""

def gamma(data, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """The gamma function: (a - 1)! for whole numbers."""

def gammaln(data, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """The logarithm of |gamma(a)|."""

def gather_nd(data, indices, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """data[indices[0], indices[1], ...]: a column of indices tells one place."""

from minihybrid.core.context import gpu as gpu

def group_norm(
    data,
    gamma,
    beta,
    num_groups: Any = 1,
    eps: Any = 1e-05,
    output_mean_var: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """LayerNorm over each of num_groups groups of channels of a sample; gamma and beta have one number for each group."""

def instance_norm(
    data, gamma, beta, eps: Any = 0.001, *, name=None, out=None, ctx=None, attr=None
) -> ndarray:
    """(x - mean) / sqrt(var + eps) * gamma + beta, with mean and variance over each channel of each sample."""

from minihybrid.core.switches import is_np_array as is_np_array
from minihybrid.core.switches import is_np_shape as is_np_shape

def layer_norm(
    data,
    gamma,
    beta,
    axis: Any = -1,
    eps: Any = 1e-05,
    output_mean_var: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """(x - mean) / sqrt(var + eps) * gamma + beta, with mean and variance along one axis; mean and deviation keep that axis with length 1."""

def leaky_relu(
    data,
    gamma=None,
    act_type: Any = "leaky",
    slope: Any = 0.25,
    lower_bound: Any = 0.125,
    upper_bound: Any = 0.334,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """a where it is positive, else `slope` a (leaky), gamma a with one gamma a channel (prelu), slope (e^a - 1) (elu), the same with fixed factors (selu), or a times a random slope in training and the mean slope otherwise (rrelu); or a Phi(a) with the normal distribution's Phi (gelu). MXNet 1.9's gradient of selu is wrong below 0; this one is not."""

def load(file) -> Any:
    """Load the arrays that `save` wrote, as a list or a dict."""

def log_softmax(
    data, axis: Any = -1, temperature=None, dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> ndarray:
    """a - log(sum(exp(a))) along an axis."""

from minihybrid.core.context import num_gpus as num_gpus
from minihybrid.mxnet.util import np_shape as np_shape

def one_hot(
    indices,
    depth,
    on_value: Any = 1.0,
    off_value: Any = 0.0,
    dtype: Any = "float32",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """A line of `depth` numbers for each index: on at the index, off elsewhere."""

def pick(
    data,
    index,
    axis: Any = -1,
    keepdims: Any = False,
    mode: Any = "clip",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """One element of each line along an axis: data[i, index[i]]."""

def pooling(
    data,
    kernel: Any = (),
    pool_type: Any = "max",
    global_pool: Any = False,
    cudnn_off: Any = False,
    pooling_convention: Any = "valid",
    stride: Any = (),
    pad: Any = (),
    p_value=None,
    count_include_pad=None,
    layout=None,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """The maximum, mean, sum or p-norm of each window; (N, C, *size) -> (N, C, *out)."""

class _random:
    @staticmethod
    def seed(seed, ctx: Any = "all") -> None:
        """Seed the random number generator."""

random: _random

def relu(data, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """y = max(a, 0); NaN stays NaN."""

from minihybrid.mxnet.util import reset_np as reset_np

def reshape(
    data,
    newshape,
    reverse: Any = False,
    order: Any = "C",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """The same numbers under another shape; codes -1, -2, -3, -4, -5, -6."""

def reshape_like(
    lhs,
    rhs,
    lhs_begin=None,
    lhs_end=None,
    rhs_begin=None,
    rhs_end=None,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """The numbers of lhs under the shape of rhs, or with a range of its axes."""

def save(file, arr) -> None:
    """Write an array, a list of arrays or a dict of them to a file."""

def scaled_dot_product_attention(
    query,
    key,
    value=None,
    mask=None,
    is_causal: Any = False,
    scale=None,
    use_mask=None,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """softmax(query key^T scale) value: (..., L, E), (..., S, E), (..., S, V) -> (..., L, V). `scale` is 1 / sqrt(E) by default. A query doesn't see the keys where the mask, which broadcasts to (..., L, S), is 0; nor, with `is_causal`, key j > i from query i. If it sees none, the result is 0. Unlike PyTorch's, a mask of floats isn't added to the scores. The matrix of scores is never stored."""

def sequence_mask(
    data,
    sequence_length=None,
    use_sequence_length: Any = False,
    axis: Any = 0,
    value: Any = 0.0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """The sequences, and one value after their ends."""

from minihybrid.mxnet.util import set_np as set_np

def shape_array(data, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """The length of each axis, as int64."""

def sigmoid(data, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """y = 1 / (1 + exp(-a))."""

from minihybrid.core.context import simulated_gpu as simulated_gpu

def slice(data, begin, end, step: Any = (), *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """The part between begin and end, one range for each axis; None is the edge."""

def smooth_l1(data, scalar: Any = 1.0, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """A parabola (s a)^2 / 2 where |a| < 1 / s^2, else |a| - 1 / (2 s^2)."""

def softmax(
    data,
    length=None,
    axis: Any = -1,
    temperature=None,
    dtype=None,
    use_length: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """exp(a) / sum(exp(a)) along an axis; with `use_length`, over as many numbers of each line as `length` says, and 0 behind them."""

def stop_gradient(data, *, name=None, out=None, ctx=None, attr=None) -> ndarray:
    """The same values; no gradient passes."""

def topk(
    data,
    axis: Any = -1,
    k: Any = 1,
    ret_typ: Any = "indices",
    is_ascend: Any = False,
    dtype: Any = "float32",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> ndarray:
    """The k largest of each line (0 means all), or smallest: their places, their values, both, or ones where they stand."""

from minihybrid.mxnet.util import use_np as use_np

def waitall() -> None:
    """Block until all devices have finished; the CPU always has."""
