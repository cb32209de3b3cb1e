"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import Any, TypeVar

Same = TypeVar("Same")

from minihybrid.core.array import NDArray as NDArray

def Activation(data, act_type, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The activation function called act_type."""

def BatchNorm(
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
) -> NDArray:
    """(x - mean) / sqrt(var + eps) * gamma + beta, for each channel along `axis`: in training with mean and variance (divided by N) of the batch, towards which the running ones move; else with the running ones. `fix_gamma` takes gamma as 1, without a gradient; unlike MXNet, gamma itself is not overwritten. `output_mean_var` gives mean and 1 / deviation, too, without gradients."""

def BatchNorm_v1(
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
) -> NDArray:
    """(x - mean) / sqrt(var + eps) * gamma + beta, for each channel along `axis`: in training with mean and variance (divided by N) of the batch, towards which the running ones move; else with the running ones. `fix_gamma` takes gamma as 1, without a gradient; unlike MXNet, gamma itself is not overwritten. `output_mean_var` gives mean and 1 / deviation, too, without gradients."""

def BlockGrad(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The same values; no gradient passes."""

from minihybrid.mxnet.nd_extras import CSRNDArray as CSRNDArray

def CTCLoss(
    data,
    label,
    data_lengths=None,
    label_lengths=None,
    use_data_lengths: Any = False,
    use_label_lengths: Any = False,
    blank_label: Any = "first",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """-log of the probability of each word (N, L), from scores (T, N, C). The blank is the first character, and 0 ends shorter words, or the last one, and -1 does."""

from minihybrid.gluon.function import CachedOp as CachedOp

def Cast(data, dtype, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The same numbers in a dtype."""

def Concat(*data, dim: Any = 1, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Join arrays along an existing axis."""

def Convolution(
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
) -> NDArray:
    """Each output is a window of the data times the weights of a filter, plus bias; (N, C, *size) -> (N, num_filter, *out)."""

def Convolution_v1(
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
) -> NDArray:
    """Each output is a window of the data times the weights of a filter, plus bias; (N, C, *size) -> (N, num_filter, *out)."""

def Crop(
    *data,
    offset: Any = (0, 0),
    h_w: Any = (0, 0),
    center_crop: Any = False,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """A window of pictures (N, C, H, W), as large as h_w or as a second input."""

def Deconvolution(
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
) -> NDArray:
    """The gradient of a convolution as a layer: each number of the data, times the weights of a filter, is added to a window; (N, C, *size) -> (N, num_filter, *out)."""

def Dropout(
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
) -> NDArray:
    """Training: each number is 0 with probability p, else divided by 1 - p."""

def ElementWiseSum(*data, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The sum of arrays of one shape."""

def Embedding(
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
) -> NDArray:
    """A row of the weight for each index; the gradient is dense, whatever sparse_grad says. An index outside of the rows is an error of eager arrays; compiled code and GPUs take the nearest row, because a kernel cannot raise."""

def Flatten(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """(N, a, b, ...) -> (N, a * b * ...)."""

def FullyConnected(
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
) -> NDArray:
    """y = x W^T + b; (N, K) -> (N, num_hidden). With `flatten`, all axes but the first are joined, and (N,) are N samples of one number; without, (K,) is one sample."""

def GroupNorm(
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
) -> NDArray:
    """LayerNorm over each of num_groups groups of channels of a sample; gamma and beta have one number for each group."""

def InstanceNorm(
    data, gamma, beta, eps: Any = 0.001, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """(x - mean) / sqrt(var + eps) * gamma + beta, with mean and variance over each channel of each sample."""

def L2Normalization(
    data, eps: Any = 1e-10, mode: Any = "instance", *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """x / sqrt(sum(x * x) + eps), the sum over a sample (instance), over the channels (channel), or over all axes after the channels (spatial)."""

def LRN(
    data,
    alpha: Any = 0.0001,
    beta: Any = 0.75,
    knorm: Any = 2.0,
    nsize: Any = ...,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """x / (knorm + alpha / nsize * s)^beta, where s sums x * x over the nsize channels around each one (Krizhevsky et al., NeurIPS 2012)."""

def LayerNorm(
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
) -> NDArray:
    """(x - mean) / sqrt(var + eps) * gamma + beta, with mean and variance along one axis; mean and deviation keep that axis with length 1."""

def LeakyReLU(
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
) -> NDArray:
    """a where it is positive, else `slope` a (leaky), gamma a with one gamma a channel (prelu), slope (e^a - 1) (elu), the same with fixed factors (selu), or a times a random slope in training and the mean slope otherwise (rrelu); or a Phi(a) with the normal distribution's Phi (gelu). MXNet 1.9's gradient of selu is wrong below 0; this one is not."""

def LinearRegressionOutput(
    data, label, grad_scale: Any = 1.0, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The data; the gradient is data - label."""

def LogisticRegressionOutput(
    data, label, grad_scale: Any = 1.0, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """sigmoid(data); the gradient is sigmoid(data) - label."""

def MAERegressionOutput(
    data, label, grad_scale: Any = 1.0, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The data; the gradient is 1 where the data is larger than the label, else -1."""

def MakeLoss(
    data,
    grad_scale: Any = 1.0,
    valid_thresh: Any = 0.0,
    normalization: Any = "null",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The data as a loss: its gradient is grad_scale, over the batch's length ('batch') or over the count of numbers above valid_thresh ('valid')."""

def Pad(
    data, mode, pad_width, constant_value: Any = 0.0, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """More at the ends of axes: one value, the edge's, or the inside mirrored."""

def Pooling(
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
) -> NDArray:
    """The maximum, mean, sum or p-norm of each window; (N, C, *size) -> (N, C, *out)."""

def Pooling_v1(
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
) -> NDArray:
    """The maximum, mean, sum or p-norm of each window; (N, C, *size) -> (N, C, *out)."""

def RNN(
    data,
    parameters,
    state=None,
    state_cell=None,
    sequence_length=None,
    state_size: Any = ...,
    num_layers: Any = ...,
    bidirectional: Any = False,
    mode: Any = ...,
    p: Any = 0.0,
    state_outputs: Any = False,
    projection_size=None,
    lstm_state_clip_min=None,
    lstm_state_clip_max=None,
    lstm_state_clip_nan: Any = False,
    use_sequence_length: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Any:
    """Recurrent layers over whole sequences (T, N, C) -> (T, N, H), packed parameters."""

def ROIPooling(
    data, rois, pooled_size, spatial_scale, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The largest number of each cell of each region, (R, C, *pooled_size); Girshick, Fast R-CNN (2015). A cell without pixels, or of no image, gives 0."""

def Reshape(
    data, shape, reverse: Any = False, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The same numbers under another shape; codes 0, -1, -2, -3, -4."""

def SVMOutput(
    data,
    label,
    margin: Any = 1.0,
    regularization_coefficient: Any = 1.0,
    use_linear: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The data; the gradient is that of the squared hinge loss, or of the hinge loss (use_linear), of each class against the others."""

def SequenceLast(
    data,
    sequence_length=None,
    use_sequence_length: Any = False,
    axis: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The last element of each sequence."""

def SequenceMask(
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
) -> NDArray:
    """The sequences, and one value after their ends."""

def SequenceReverse(
    data,
    sequence_length=None,
    use_sequence_length: Any = False,
    axis: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Each sequence from back to front; what comes after its end stays."""

def SliceChannel(
    data,
    num_outputs,
    axis: Any = 1,
    squeeze_axis: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Any:
    """Cut an axis into equal parts."""

def Softmax(
    data,
    label,
    grad_scale: Any = 1.0,
    ignore_label: Any = -1.0,
    multi_output: Any = False,
    use_ignore: Any = False,
    preserve_shape: Any = False,
    normalization: Any = "null",
    out_grad: Any = False,
    smooth_alpha: Any = 0.0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """softmax, whose gradient is that of cross entropy with the label's class: along axis 1 (multi_output), the last axis (preserve_shape), or over all axes but the first. The gradient is divided by the positions a sample (multi_output), by all positions (normalization='batch'), or by those whose label is not `ignore_label` ('valid'). Unlike MXNet, smooth_alpha holds with multi_output, too, data of more than two axes has one label a sample, and out_grad multiplies by the gradient from above, as documented, not by the output."""

def SoftmaxActivation(
    data, mode: Any = "instance", *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """softmax along the last axis (instance) or along axis 1 (channel)."""

def SoftmaxOutput(
    data,
    label,
    grad_scale: Any = 1.0,
    ignore_label: Any = -1.0,
    multi_output: Any = False,
    use_ignore: Any = False,
    preserve_shape: Any = False,
    normalization: Any = "null",
    out_grad: Any = False,
    smooth_alpha: Any = 0.0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """softmax, whose gradient is that of cross entropy with the label's class: along axis 1 (multi_output), the last axis (preserve_shape), or over all axes but the first. The gradient is divided by the positions a sample (multi_output), by all positions (normalization='batch'), or by those whose label is not `ignore_label` ('valid'). Unlike MXNet, smooth_alpha holds with multi_output, too, data of more than two axes has one label a sample, and out_grad multiplies by the gradient from above, as documented, not by the output."""

def SwapAxis(
    data, dim1: Any = 0, dim2: Any = 0, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Exchange two axes."""

def UpSampling(
    *data,
    scale,
    num_filter: Any = 0,
    sample_type: Any = ...,
    multi_input_mode: Any = "concat",
    workspace: Any = 512,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Images made larger: each number repeated, or a Deconvolution whose weights (a second input) mix neighbors; (N, C, H, W) -> (N, C, scale H, scale W)."""

def abs(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The absolute value."""

def add(a, b, /) -> NDArray:
    """Same as a + b."""

def add_n(*data, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The sum of arrays of one shape."""

def all_finite(
    data, init_output: Any = True, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """1 if no number is infinite or NaN, else 0."""

def amp_cast(data, dtype, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The same numbers in a dtype if they are float16 or float32; others stay."""

def arange(
    start, stop=None, step: Any = 1.0, repeat: Any = 1, ctx=None, dtype: Any = "float32"
) -> NDArray:
    """Create the array start, start + step, ... below stop; a single argument is the stop."""

def arccos(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The angle whose cosine is a."""

def arccosh(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The inverse of cosh."""

def arcsin(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The angle whose sine is a."""

def arcsinh(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The inverse of sinh."""

def arctan(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The angle whose tangent is a."""

def arctanh(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The inverse of tanh."""

def argmax(
    data, axis=None, keepdims: Any = False, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The place of the maximum along one axis, as float32."""

def argmax_channel(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The place of the largest along axis 1, as float32."""

def argmin(
    data, axis=None, keepdims: Any = False, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The place of the minimum along one axis, as float32."""

def argsort(
    data,
    axis: Any = -1,
    is_ascend: Any = True,
    dtype: Any = "float32",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The places of the numbers of each line in order, as float32 unless told."""

def array(source_array, ctx=None, dtype=None) -> NDArray:
    """Create an array of given elements; float32 unless the source has a dtype."""

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
) -> NDArray:
    """(..., M, K) times (..., K, N) -> (..., M, N), one product for each sample."""

def batch_take(a, indices, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """One element of each row: a[i, indices[i]]."""

def broadcast_add(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a + b."""

def broadcast_arctan2(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The angle of the point (b, a)."""

def broadcast_axes(
    data, axis: Any = (), size: Any = (), *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Repeat axes of length 1 up to sizes."""

def broadcast_axis(
    data, axis: Any = (), size: Any = (), *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Repeat axes of length 1 up to sizes."""

def broadcast_div(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a / b; of whole numbers cut towards zero, and 0 where b is 0."""

def broadcast_equal(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """1 where a == b, else 0, in the dtype of a."""

def broadcast_greater(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """1 where a > b, else 0, in the dtype of a."""

def broadcast_greater_equal(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """1 where a >= b, else 0, in the dtype of a."""

def broadcast_hypot(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """sqrt(a * a + b * b), without overflow."""

def broadcast_lesser(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """1 where a < b, else 0, in the dtype of a."""

def broadcast_lesser_equal(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """1 where a <= b, else 0, in the dtype of a."""

def broadcast_like(
    lhs, rhs, lhs_axes=None, rhs_axes=None, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Repeat axes of length 1 up to the shape of rhs, or only lhs_axes up to rhs_axes."""

def broadcast_logical_and(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """1 where a and b is not 0, else 0, in the dtype of a."""

def broadcast_logical_or(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """1 where a or b is not 0, else 0, in the dtype of a."""

def broadcast_logical_xor(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """1 where a xor b is not 0, else 0, in the dtype of a."""

def broadcast_maximum(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The larger of a and b; NaN if either is."""

def broadcast_minimum(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The smaller of a and b; NaN if either is."""

def broadcast_mod(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The remainder of a / b, with b's sign."""

def broadcast_mul(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a * b, element by element."""

def broadcast_not_equal(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """1 where a != b, else 0, in the dtype of a."""

def broadcast_power(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a to the power b."""

def broadcast_sub(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a - b."""

def broadcast_to(data, shape, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Repeat axes of length 1 up to a shape."""

def cast(data, dtype, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The same numbers in a dtype."""

def cbrt(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The cube root; of a negative number, too."""

def ceil(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The next whole number above."""

def choose_element_0index(
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
) -> NDArray:
    """One element of each line along an axis: data[i, index[i]]."""

def clip(data, a_min, a_max, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """a, but not below a_min and not above a_max."""

def concat(*data, dim: Any = 1, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Join arrays along an existing axis."""

def concatenate(arrays, axis: Any = 0, always_copy: Any = True) -> NDArray:
    """Concatenate along an axis; a single array is copied unless always_copy=False."""

class _contrib:
    @staticmethod
    def AdaptiveAvgPooling2D(
        data, output_size: Any = (), *, name=None, out=None, ctx=None, attr=None
    ) -> NDArray:
        """Means of windows that share an image out, (N, C, H, W) -> (N, C, *output_size); one number stands for both lengths, none for 1."""
    @staticmethod
    def BilinearResize2D(
        data,
        like=None,
        height: Any = 1,
        width: Any = 1,
        scale_height=None,
        scale_width=None,
        mode: Any = "size",
        align_corners: Any = True,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """Images of another height and width; a new number lies between four old ones."""
    @staticmethod
    def CTCLoss(
        data,
        label,
        data_lengths=None,
        label_lengths=None,
        use_data_lengths: Any = False,
        use_label_lengths: Any = False,
        blank_label: Any = "first",
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """-log of the probability of each word (N, L), from scores (T, N, C). The blank is the first character, and 0 ends shorter words, or the last one, and -1 does."""
    @staticmethod
    def MultiBoxDetection(
        cls_prob,
        loc_pred,
        anchor,
        clip: Any = True,
        threshold: Any = 0.01,
        background_id: Any = 0,
        nms_threshold: Any = 0.5,
        force_suppress: Any = False,
        variances: Any = (0.1, 0.1, 0.2, 0.2),
        nms_topk: Any = -1,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """Rows (B, A, 6) of class, score and corners, from the largest score on; class -1 where a box of the class (of any, if force_suppress) that it overlaps by nms_threshold is better, and rows of -1 for the background, which is class 0 whatever background_id says, as in MXNet."""
    @staticmethod
    def MultiBoxPrior(
        data,
        sizes: Any = (1.0,),
        ratios: Any = (1.0,),
        clip: Any = False,
        steps: Any = (-1.0, -1.0),
        offsets: Any = (0.5, 0.5),
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """Anchors (1, n, 4) around each pixel of images (N, C, H, W): every size with the first ratio, then the first size with the others, as corners in shares of the image."""
    @staticmethod
    def MultiBoxTarget(
        anchor,
        label,
        cls_pred,
        overlap_threshold: Any = 0.5,
        ignore_label: Any = -1.0,
        negative_mining_ratio: Any = -1.0,
        negative_mining_thresh: Any = 0.5,
        minimum_negative_samples: Any = 0,
        variances: Any = (0.1, 0.1, 0.2, 0.2),
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """What anchors (1, A, 4) should see of labels (B, L, class and corners; rows of -1 at the end): offsets (B, 4 A) of the matched label's box, 1 or 0 for them, and classes (B, A): 0 is background. With negative_mining_ratio above 0 only so many negatives a positive are background, the others are ignore_label. minimum_negative_samples is not read, as in MXNet."""
    @staticmethod
    def ROIAlign(
        data,
        rois,
        pooled_size,
        spatial_scale,
        sample_ratio: Any = -1,
        position_sensitive: Any = False,
        aligned: Any = False,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """Bilinear means of the cells of each region, (R, C, *pooled_size); He et al., Mask R-CNN (2017). With sample_ratio below 1 a cell averages as many numbers as it covers, 1024 x 1024 at most; a region of no image gives zeros; with position_sensitive each cell reads channels of its own."""
    @staticmethod
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
    ) -> NDArray:
        """start, start + step, ... in the shape of the data, or one for each place of an axis; each number `repeat` times."""
    @staticmethod
    def bipartite_matching(
        data,
        threshold,
        is_ascend: Any = False,
        topk: Any = -1,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """The column that each row of scores (..., N, M) gets, and the row that each column gets, or -1: pairs are made from the largest score on (is_ascend: the smallest) down to the threshold. With topk above 0, MXNet and we stop after topk + 1 pairs."""
    @staticmethod
    def boolean_mask(data, index, axis: Any = 0) -> NDArray:
        """Select the slices of `data` along an axis where the vector `index` isn't 0."""
    @staticmethod
    def box_decode(
        data,
        anchors,
        std0: Any = 1.0,
        std1: Any = 1.0,
        std2: Any = 1.0,
        std3: Any = 1.0,
        clip: Any = -1.0,
        format: Any = "center",
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """Corners of the boxes that box_encode gave, times std0 to std3, beside anchors (1, N, 4) of a format; clip above 0 is the most that the logarithm of a length may be. No gradient goes back, as in MXNet."""
    @staticmethod
    def box_encode(
        samples, matches, anchors, refs, means, stds, *, name=None, out=None, ctx=None, attr=None
    ) -> NDArray:
        """Where matched boxes are beside anchors (B, N, 4), less means, divided by stds (four numbers each), and 1 where a sample is above 0.5, else 0, where the first is 0, too. matches (B, N) are places in refs (B, M, 4). No gradient goes back, as in MXNet."""
    @staticmethod
    def box_iou(
        lhs, rhs, format: Any = "corner", *, name=None, out=None, ctx=None, attr=None
    ) -> NDArray:
        """Intersection over union of each box of lhs (..., 4) with each of rhs (..., 4); no gradient goes back, as in MXNet."""
    @staticmethod
    def box_nms(
        data,
        overlap_thresh: Any = 0.5,
        valid_thresh: Any = 0.0,
        topk: Any = -1,
        coord_start: Any = 2,
        score_index: Any = 1,
        id_index: Any = -1,
        background_id: Any = -1,
        force_suppress: Any = False,
        in_format: Any = "corner",
        out_format: Any = "corner",
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """Boxes (..., N, W) in order of their scores, without those that overlap a better one (of the same class, unless force_suppress) by more than overlap_thresh; rows of -1 stand for those that are gone."""
    @staticmethod
    def box_non_maximum_suppression(
        data,
        overlap_thresh: Any = 0.5,
        valid_thresh: Any = 0.0,
        topk: Any = -1,
        coord_start: Any = 2,
        score_index: Any = 1,
        id_index: Any = -1,
        background_id: Any = -1,
        force_suppress: Any = False,
        in_format: Any = "corner",
        out_format: Any = "corner",
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """Boxes (..., N, W) in order of their scores, without those that overlap a better one (of the same class, unless force_suppress) by more than overlap_thresh; rows of -1 stand for those that are gone."""
    @staticmethod
    def cond(pred, then_func, else_func, name=None) -> Any:
        """Return `then_func()` if `pred` is true, else `else_func()`."""
    @staticmethod
    def ctc_loss(
        data,
        label,
        data_lengths=None,
        label_lengths=None,
        use_data_lengths: Any = False,
        use_label_lengths: Any = False,
        blank_label: Any = "first",
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """-log of the probability of each word (N, L), from scores (T, N, C). The blank is the first character, and 0 ends shorter words, or the last one, and -1 does."""
    @staticmethod
    def foreach(body, data, init_states, name=None) -> Any:
        """Run `body` over the first axis of `data` and stack its outputs."""
    @staticmethod
    def index_copy(
        old_tensor, index_vector, new_tensor, *, name=None, out=None, ctx=None, attr=None
    ) -> NDArray:
        """The old rows, with new ones at the given places, each of which occurs once."""
    @staticmethod
    def isfinite(data) -> NDArray:
        """Return 1 where an element is finite, else 0."""
    @staticmethod
    def isinf(data) -> NDArray:
        """Return 1 where an element is infinite, else 0."""
    @staticmethod
    def isnan(data) -> NDArray:
        """Return 1 where an element is NaN, else 0."""
    @staticmethod
    def while_loop(cond, func, loop_vars, max_iterations=None, name=None) -> Any:
        """Run `func` while `cond` is true, for at most `max_iterations` iterations."""

contrib: _contrib

def cos(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The cosine."""

def cosh(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The hyperbolic cosine."""

def ctc_loss(
    data,
    label,
    data_lengths=None,
    label_lengths=None,
    use_data_lengths: Any = False,
    use_label_lengths: Any = False,
    blank_label: Any = "first",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """-log of the probability of each word (N, L), from scores (T, N, C). The blank is the first character, and 0 ends shorter words, or the last one, and -1 does."""

def cumsum(a, axis=None, dtype=None, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The sum of all numbers up to each one; without an axis, of the flattened array."""

def degrees(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """An angle in degrees."""

def depth_to_space(data, block_size, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """(N, C b b, H, W) -> (N, C, H b, W b): channels become blocks of pixels."""

def diag(
    data, k: Any = 0, axis1: Any = 0, axis2: Any = 1, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The diagonal k of a matrix, or a matrix with a vector on its diagonal k."""

def divide(a, b, /) -> NDArray:
    """Same as a / b."""

def dot(
    lhs,
    rhs,
    transpose_a: Any = False,
    transpose_b: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The product over the last axis of lhs and the first of rhs."""

def elemwise_add(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a + b."""

def elemwise_div(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a / b; of whole numbers cut towards zero, and 0 where b is 0."""

def elemwise_mul(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a * b, element by element."""

def elemwise_sub(lhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a - b."""

def empty(shape, ctx=None, dtype: Any = "float32") -> NDArray:
    """Create an uninitialized array."""

def equal(a, b, /) -> NDArray:
    """Same as a == b."""

def erf(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t * t) to a."""

def erfinv(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The inverse of erf, for numbers between -1 and 1."""

def exp(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = e to the power a."""

def expand_dims(data, axis, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Put in an axis of length 1."""

def expm1(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """e to the power a, minus 1, exact for small a."""

def eye(N, M: Any = 0, k: Any = 0, ctx=None, dtype: Any = "float32") -> NDArray:
    """Create an N x M array (N x N for M=0) with ones on the diagonal k."""

def fill_element_0index(lhs, mhs, rhs, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """lhs, with mhs[i] at the place rhs[i] of row i."""

def fix(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The whole part: towards 0."""

def flatten(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """(N, a, b, ...) -> (N, a * b * ...)."""

def flip(data, axis, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Axes read from back to front."""

def floor(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The next whole number below."""

def from_dlpack(x) -> NDArray:
    """Return an NDArray that shares memory with another library's array or DLPack capsule."""

def from_numpy(ndarray, zero_copy: Any = True) -> NDArray:
    """Return an array that shares NumPy's memory, or copies it with zero_copy=False."""

def full(shape, val, ctx=None, dtype: Any = "float32", out=None) -> NDArray:
    """Create an array filled with one value."""

def gamma(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The gamma function: (a - 1)! for whole numbers."""

def gammaln(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The logarithm of |gamma(a)|."""

def gather_nd(data, indices, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """data[indices[0], indices[1], ...]: a column of indices tells one place."""

def greater(a, b, /) -> NDArray:
    """Same as a > b."""

def greater_equal(a, b, /) -> NDArray:
    """Same as a >= b."""

def hard_sigmoid(
    data, alpha: Any = 0.2, beta: Any = 0.5, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """alpha a + beta, but not below 0 and not above 1."""

def histogram(a, bins: Any = 10, range=None) -> NDArray:
    """Return the counts of elements per bin, and the bin edges."""

def hypot(lhs, rhs) -> NDArray:
    """sqrt(a * a + b * b), without overflow."""

def identity(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The same values in memory of their own."""

def lesser(a, b, /) -> NDArray:
    """Same as a < b."""

def lesser_equal(a, b, /) -> NDArray:
    """Same as a <= b."""

class _linalg:
    @staticmethod
    def det(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
        """The determinant of square matrices."""
    @staticmethod
    def extractdiag(A, offset: Any = 0, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
        """A diagonal of each matrix, as rows."""
    @staticmethod
    def gemm(
        A,
        B,
        C,
        transpose_a: Any = False,
        transpose_b: Any = False,
        alpha: Any = 1.0,
        beta: Any = 1.0,
        axis: Any = -2,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """alpha A B + beta C."""
    @staticmethod
    def gemm2(
        A,
        B,
        transpose_a: Any = False,
        transpose_b: Any = False,
        alpha: Any = 1.0,
        axis: Any = -2,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """alpha A B; `axis` holds the rows."""
    @staticmethod
    def inverse(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
        """The inverse of square matrices."""
    @staticmethod
    def makediag(A, offset: Any = 0, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
        """Square matrices with the rows of A on a diagonal."""
    @staticmethod
    def potrf(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
        """The lower triangle L of a symmetric positive definite A = L L^T."""
    @staticmethod
    def potri(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
        """The inverse of L L^T, from its lower triangle L."""
    @staticmethod
    def slogdet(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
        """The sign of the determinant, and the logarithm of its absolute value."""
    @staticmethod
    def sumlogdiag(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
        """The sum of the logarithms of each matrix' diagonal."""
    @staticmethod
    def syrk(
        A, transpose: Any = False, alpha: Any = 1.0, *, name=None, out=None, ctx=None, attr=None
    ) -> NDArray:
        """alpha A A^T, or with transpose alpha A^T A."""
    @staticmethod
    def trmm(
        A,
        B,
        transpose: Any = False,
        rightside: Any = False,
        lower: Any = True,
        alpha: Any = 1.0,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """alpha A B, or with rightside alpha B A, where A is a triangle."""
    @staticmethod
    def trsm(
        A,
        B,
        transpose: Any = False,
        rightside: Any = False,
        lower: Any = True,
        alpha: Any = 1.0,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> NDArray:
        """X of A X = alpha B, or with rightside X A = alpha B, where A is a triangle."""

linalg: _linalg

def linalg_det(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The determinant of square matrices."""

def linalg_extractdiag(A, offset: Any = 0, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """A diagonal of each matrix, as rows."""

def linalg_gemm(
    A,
    B,
    C,
    transpose_a: Any = False,
    transpose_b: Any = False,
    alpha: Any = 1.0,
    beta: Any = 1.0,
    axis: Any = -2,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """alpha A B + beta C."""

def linalg_gemm2(
    A,
    B,
    transpose_a: Any = False,
    transpose_b: Any = False,
    alpha: Any = 1.0,
    axis: Any = -2,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """alpha A B; `axis` holds the rows."""

def linalg_inverse(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The inverse of square matrices."""

def linalg_makediag(A, offset: Any = 0, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Square matrices with the rows of A on a diagonal."""

def linalg_potrf(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The lower triangle L of a symmetric positive definite A = L L^T."""

def linalg_potri(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The inverse of L L^T, from its lower triangle L."""

def linalg_slogdet(A, *, name=None, out=None, ctx=None, attr=None) -> tuple[NDArray, ...]:
    """The sign of the determinant, and the logarithm of its absolute value."""

def linalg_sumlogdiag(A, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The sum of the logarithms of each matrix' diagonal."""

def linalg_syrk(
    A, transpose: Any = False, alpha: Any = 1.0, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """alpha A A^T, or with transpose alpha A^T A."""

def linalg_trmm(
    A,
    B,
    transpose: Any = False,
    rightside: Any = False,
    lower: Any = True,
    alpha: Any = 1.0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """alpha A B, or with rightside alpha B A, where A is a triangle."""

def linalg_trsm(
    A,
    B,
    transpose: Any = False,
    rightside: Any = False,
    lower: Any = True,
    alpha: Any = 1.0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """X of A X = alpha B, or with rightside X A = alpha B, where A is a triangle."""

def linspace(start, stop, num, endpoint: Any = True, ctx=None, dtype: Any = "float32") -> NDArray:
    """Create an array of `num` evenly spaced values from start to stop."""

def load(fname) -> Any:
    """Load the arrays of a file: a dict if they have names, else a list."""

def load_frombuffer(buf, source: Any = "the buffer") -> Any:
    """Load the arrays from a file's bytes: a dict if they have names, else a list."""

def log(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The natural logarithm."""

def log10(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The logarithm to base 10."""

def log1p(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The logarithm of 1 + a, exact for small a."""

def log2(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The logarithm to base 2."""

def log_softmax(
    data, axis: Any = -1, temperature=None, dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """a - log(sum(exp(a))) along an axis."""

def logical_and(lhs, rhs) -> NDArray:
    """1 where a and b is not 0, else 0, in the dtype of a."""

def logical_not(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """1 where a is 0, else 0."""

def logical_or(lhs, rhs) -> NDArray:
    """1 where a or b is not 0, else 0, in the dtype of a."""

def logical_xor(lhs, rhs) -> NDArray:
    """1 where a xor b is not 0, else 0, in the dtype of a."""

def make_loss(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The data as a loss: its gradient is 1, whatever comes in from above."""

def max(
    data,
    axis=None,
    keepdims: Any = False,
    exclude: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The largest along the axes."""

def max_axis(
    data,
    axis=None,
    keepdims: Any = False,
    exclude: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The largest along the axes."""

def maximum(lhs, rhs) -> NDArray:
    """The larger of a and b; NaN if either is."""

def mean(
    data,
    axis=None,
    keepdims: Any = False,
    exclude: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The sum over the axes divided by their length."""

def min(
    data,
    axis=None,
    keepdims: Any = False,
    exclude: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The smallest along the axes."""

def min_axis(
    data,
    axis=None,
    keepdims: Any = False,
    exclude: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The smallest along the axes."""

def minimum(lhs, rhs) -> NDArray:
    """The smaller of a and b; NaN if either is."""

def modulo(a, b, /) -> NDArray:
    """Same as a % b."""

def moments(
    data, axes=None, keepdims: Any = False, *, name=None, out=None, ctx=None, attr=None
) -> tuple[NDArray, ...]:
    """The mean and the variance (divided by N) over the axes; all axes by default."""

def moveaxis(a, source, destination, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Axes moved to other places; the rest stay in order."""

def multi_all_finite(
    *data, num_arrays: Any = 0, init_output: Any = True, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """1 if no number is infinite or NaN, else 0."""

def multi_sum_sq(*data, num_arrays: Any = 0, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The sum of squares of each array, as float32."""

def multiply(a, b, /) -> NDArray:
    """Same as a * b."""

def nanprod(
    data,
    axis=None,
    keepdims: Any = False,
    exclude: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The product over the axes. NaN is left out."""

def nansum(
    data,
    axis=None,
    keepdims: Any = False,
    exclude: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The sum over the axes. NaN is left out."""

from minihybrid import ndarray as ndarray

def negative(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = -a."""

def norm(
    data,
    ord: Any = 2,
    axis=None,
    out_dtype=None,
    keepdims: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The root of the sum of squares along the axes, or with ord=1 the sum of absolute values."""

def normal(
    loc: Any = 0.0,
    scale: Any = 1.0,
    shape: Any = (1,),
    dtype: Any = "float32",
    stream: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Numbers with the normal distribution, by the method of Box and Muller."""

def not_equal(a, b, /) -> NDArray:
    """Same as a != b."""

from minihybrid import np as np
from minihybrid import npx as npx

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
) -> NDArray:
    """A line of `depth` numbers for each index: on at the index, off elsewhere."""

def onehot_encode(indices, out) -> NDArray:
    """Write the one-hot vectors of indices into the rows of `out`."""

def ones(shape, ctx=None, dtype: Any = "float32", stype=None, out=None) -> NDArray:
    """Create an array of ones."""

def ones_like(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """An array of 1 in the shape and dtype of the input."""

def pad(
    data, mode, pad_width, constant_value: Any = 0.0, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """More at the ends of axes: one value, the edge's, or the inside mirrored."""

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
) -> NDArray:
    """One element of each line along an axis: data[i, index[i]]."""

def pow(a, b, /) -> NDArray:
    """Same as a ** b."""

def power(a, b, /) -> NDArray:
    """Same as a ** b."""

def prod(
    data,
    axis=None,
    keepdims: Any = False,
    exclude: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The product over the axes."""

def radians(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """An angle in radians."""

class _random:
    @staticmethod
    def exponential(scale: Any = 1.0, shape=None, dtype=None, ctx=None, out=None) -> NDArray:
        """Draw from the exponential distribution with mean `scale`."""
    @staticmethod
    def gamma(
        alpha: Any = 1.0, beta: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> NDArray:
        """Draw from the gamma distribution with shape alpha and scale beta."""
    @staticmethod
    def generalized_negative_binomial(
        mu: Any = 1, alpha: Any = 1, shape=None, dtype=None, ctx=None, out=None
    ) -> NDArray:
        """Draw from a negative binomial with mean mu and variance mu + alpha mu^2."""
    @staticmethod
    def multinomial(
        data, shape: Any = (), get_prob: Any = False, out=None, dtype: Any = "int32"
    ) -> NDArray:
        """Draw indices with the probabilities in each row of the data."""
    @staticmethod
    def negative_binomial(
        k: Any = 1, p: Any = 1, shape=None, dtype=None, ctx=None, out=None
    ) -> NDArray:
        """Draw from the negative binomial distribution: failures before k successes."""
    @staticmethod
    def normal(
        loc: Any = 0.0, scale: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> NDArray:
        """Draw from the normal distribution."""
    @staticmethod
    def poisson(lam: Any = 1.0, shape=None, dtype=None, ctx=None, out=None) -> NDArray:
        """Draw from the Poisson distribution with mean lam; float32 by default."""
    @staticmethod
    def randint(low, high, shape=None, dtype=None, ctx=None, out=None) -> NDArray:
        """Draw integers uniformly from [low, high)."""
    @staticmethod
    def randn(*shape, loc: Any = 0.0, scale: Any = 1.0, dtype=None, ctx=None) -> NDArray:
        """Draw from the normal distribution; the shape is given as integers."""
    @staticmethod
    def seed(seed_state, ctx: Any = "all") -> None:
        """Seed the generator: the same seed reproduces the same samples."""
    @staticmethod
    def shuffle(data, out=None) -> NDArray:
        """Return a copy with the rows (axis 0) in random order."""
    @staticmethod
    def uniform(
        low: Any = 0.0, high: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> NDArray:
        """Draw from the uniform distribution on [low, high)."""

random: _random

def random_exponential(
    lam: Any = 1.0,
    shape: Any = (1,),
    dtype: Any = "float32",
    stream: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Waiting times of a rate lam; their mean is 1 / lam."""

def random_gamma(
    alpha: Any = 1.0,
    beta: Any = 1.0,
    shape: Any = (1,),
    dtype: Any = "float32",
    stream: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Numbers with the gamma distribution of shape alpha and scale beta."""

def random_generalized_negative_binomial(
    mu: Any = 1.0,
    alpha: Any = 1.0,
    shape: Any = (1,),
    dtype: Any = "float32",
    stream: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Counts with mean mu and variance mu + alpha mu^2."""

def random_negative_binomial(
    k: Any = 1.0,
    p: Any = 1.0,
    shape: Any = (1,),
    dtype: Any = "float32",
    stream: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Failures before success number k, each try succeeding with probability p."""

def random_normal(
    loc: Any = 0.0,
    scale: Any = 1.0,
    shape: Any = (1,),
    dtype: Any = "float32",
    stream: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Numbers with the normal distribution, by the method of Box and Muller."""

def random_poisson(
    lam: Any = 1.0,
    shape: Any = (1,),
    dtype: Any = "float32",
    stream: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Counts of events of which lam are expected."""

def random_randint(
    low,
    high,
    shape: Any = (1,),
    dtype: Any = "int32",
    stream: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Whole numbers that are equally likely in [low, high)."""

def random_uniform(
    low: Any = 0.0,
    high: Any = 1.0,
    shape: Any = (1,),
    dtype: Any = "float32",
    stream: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Numbers that are equally likely anywhere in [low, high)."""

def ravel_multi_index(data, shape, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """(axes, N) indices -> (N,) places in row-major order."""

def rcbrt(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """One over the cube root."""

def reciprocal(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = 1 / a."""

def relu(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = max(a, 0); NaN stays NaN."""

def repeat(data, repeats, axis=None, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Each element `repeats` times; without an axis, of the flattened array."""

def reset_arrays(*arrays, num_arrays=None) -> NDArray:
    """Fill arrays with zeros."""

def reshape(
    data, shape, reverse: Any = False, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The same numbers under another shape; codes 0, -1, -2, -3, -4."""

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
) -> NDArray:
    """The numbers of lhs under the shape of rhs, or with a range of its axes."""

def reverse(data, axis, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Axes read from back to front."""

def rint(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The nearest whole number; halves go down."""

def round(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The nearest whole number; halves go away from 0."""

def rsqrt(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """One over the square root."""

def sample_exponential(
    lam, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Waiting times of a rate lam; their mean is 1 / lam. A block of a shape for each element of the parameters."""

def sample_gamma(
    alpha, beta, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Numbers with the gamma distribution of shape alpha and scale beta. A block of a shape for each element of the parameters."""

def sample_generalized_negative_binomial(
    mu, alpha, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Counts with mean mu and variance mu + alpha mu^2. A block of a shape for each element of the parameters."""

def sample_multinomial(
    data,
    shape: Any = (),
    get_prob: Any = False,
    dtype: Any = "int32",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Places drawn with the probabilities in each row; get_prob adds their logarithms, which have a gradient."""

def sample_negative_binomial(
    k, p, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Failures before success number k, each try succeeding with probability p. A block of a shape for each element of the parameters."""

def sample_normal(
    mu, sigma, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Numbers with the normal distribution, by the method of Box and Muller. A block of a shape for each element of the parameters."""

def sample_poisson(
    lam, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Counts of events of which lam are expected. A block of a shape for each element of the parameters."""

def sample_uniform(
    low, high, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Numbers that are equally likely anywhere in [low, high). A block of a shape for each element of the parameters."""

def save(fname, data) -> None:
    """Save an array, a list of arrays, or a dict of names and arrays to a file."""

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
) -> NDArray:
    """softmax(query key^T scale) value: (..., L, E), (..., S, E), (..., S, V) -> (..., L, V). `scale` is 1 / sqrt(E) by default. A query doesn't see the keys where the mask, which broadcasts to (..., L, S), is 0; nor, with `is_causal`, key j > i from query i. If it sees none, the result is 0. Unlike PyTorch's, a mask of floats isn't added to the scores. The matrix of scores is never stored."""

def scatter_nd(data, indices, shape, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Zeros, with the data where gather_nd reads; what meets at one place is added."""

def shape_array(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The length of each axis, as int64."""

def shuffle(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The rows (axis 0) in random order."""

def sigmoid(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = 1 / (1 + exp(-a))."""

def sign(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """-1, 0 or 1; NaN stays NaN."""

def sin(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The sine."""

def sinh(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The hyperbolic sine."""

def size_array(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The number of elements, as int64."""

def slice(data, begin, end, step: Any = (), *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The part between begin and end, one range for each axis; None is the edge."""

def slice_axis(data, axis, begin, end, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The part between begin and end of one axis."""

def slice_like(
    data, shape_like, axes: Any = (), *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The first part of each axis, as long as in `shape_like`."""

def smooth_l1(data, scalar: Any = 1.0, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
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
) -> NDArray:
    """exp(a) / sum(exp(a)) along an axis; with `use_length`, over as many numbers of each line as `length` says, and 0 behind them."""

def softmax_cross_entropy(data, label, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The sum over the batch of -log(softmax(data)[label])."""

def softmin(
    data, axis: Any = -1, temperature=None, dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """softmax of -a along an axis."""

def softrelu(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = log(1 + exp(a)), without overflow."""

def softsign(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a / (1 + |a|)."""

def sort(
    data, axis: Any = -1, is_ascend: Any = True, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The numbers of each line in order; without an axis, of the flattened array."""

def space_to_depth(data, block_size, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """(N, C, H b, W b) -> (N, C b b, H, W): blocks of pixels become channels."""

sparse: Any

def split(
    data,
    num_outputs,
    axis: Any = 1,
    squeeze_axis: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Any:
    """Cut an axis into equal parts."""

def split_v2(ary, indices_or_sections, axis: Any = 0, squeeze_axis: Any = False, name=None) -> Any:
    """Split an axis into equal parts (an integer), or at indices (a tuple)."""

def sqrt(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The square root."""

def square(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """y = a * a."""

def squeeze(data, axis=None, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Take out axes of length 1."""

def stack(*data, axis: Any = 0, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """Join arrays along a new axis."""

def stop_gradient(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The same values; no gradient passes."""

def subtract(a, b, /) -> NDArray:
    """Same as a - b."""

def sum(
    data,
    axis=None,
    keepdims: Any = False,
    exclude: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The sum over the axes."""

def sum_axis(
    data,
    axis=None,
    keepdims: Any = False,
    exclude: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """The sum over the axes."""

def swapaxes(
    data, dim1: Any = 0, dim2: Any = 0, *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """Exchange two axes."""

def take(
    a, indices, axis: Any = 0, mode: Any = "clip", *, name=None, out=None, ctx=None, attr=None
) -> NDArray:
    """The parts of `a` at given places of one axis; mode clip, wrap or raise."""

def tan(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The tangent."""

def tanh(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The hyperbolic tangent."""

def tile(data, reps, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The whole array `reps` times along each axis; axes line up from the right."""

def to_dlpack_for_read(data) -> Any:
    """Return a DLPack capsule of an array's memory, to read."""

def to_dlpack_for_write(data) -> Any:
    """Return a DLPack capsule of an array's memory, to write."""

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
) -> NDArray:
    """The k largest of each line (0 means all), or smallest: their places, their values, both, or ones where they stand."""

def transpose(data, axes: Any = (), *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The axes in another order; reversed unless given."""

def true_divide(a, b, /) -> NDArray:
    """Same as a / b."""

def trunc(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """The whole part: towards 0."""

def uniform(
    low: Any = 0.0,
    high: Any = 1.0,
    shape: Any = (1,),
    dtype: Any = "float32",
    stream: Any = 0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> NDArray:
    """Numbers that are equally likely anywhere in [low, high)."""

def unravel_index(data, shape, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """(N,) places in row-major order -> (axes, N) indices."""

def waitall() -> None:
    """Block until all devices have finished; the CPU always has."""

def where(condition, x, y, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """x where the condition is not 0, else y; a vector of conditions chooses rows."""

def zeros(shape, ctx=None, dtype: Any = "float32", stype=None, out=None) -> NDArray:
    """Create an array of zeros."""

def zeros_like(data, *, name=None, out=None, ctx=None, attr=None) -> NDArray:
    """An array of 0 in the shape and dtype of the input."""
