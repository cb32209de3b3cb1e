"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import Any, NoReturn, TypeVar

Same = TypeVar("Same")

from minihybrid.ops.infix import Value

class Symbol(Value):
    """A placeholder for one or more outputs of a graph."""

    level: Any
    def __init__(self, refs) -> None: ...
    @staticmethod
    def interpret(op, inputs, attrs, name=None) -> Any:
        """Record the application as a node; missing inputs become variables."""
    def one_ref(self, op) -> Symbol:
        """Return this symbol's only output; raise TraceError if it has several."""
    @property
    def spec(self) -> Symbol: ...
    def lines_up(self, other) -> bool:
        """Return whether an elementwise operator needs no broadcasting; assumed outside a trace."""
    def convert(self, other, op) -> Symbol:
        """Raise: a symbol combines only with symbols and Python scalars."""
    def __bool__(self, *_, **__) -> bool: ...
    def __float__(self, *_, **__) -> float: ...
    def __int__(self, *_, **__) -> int: ...
    def __index__(self, *_, **__) -> int: ...
    def asscalar(self, *_, **__) -> NoReturn: ...
    def item(self, *_, **__) -> NoReturn: ...
    def asnumpy(self, *_, **__) -> NoReturn: ...
    def tolist(self, *_, **__) -> NoReturn: ...
    def __array__(self, *_, **__) -> Symbol: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def size(self) -> int: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def context(self) -> Symbol: ...
    @property
    def ctx(self) -> Symbol: ...
    def __iadd__(self, *_, **__) -> Symbol: ...
    def __isub__(self, *_, **__) -> Symbol: ...
    def __imul__(self, *_, **__) -> Symbol: ...
    def __itruediv__(self, *_, **__) -> Symbol: ...
    def __imod__(self, *_, **__) -> Symbol: ...
    def __ipow__(self, *_, **__) -> Symbol: ...
    def __setitem__(self, *_, **__) -> None: ...
    def copy_from(self, *_, **__) -> NoReturn: ...
    def refuse_written(self, *_, **__) -> NoReturn: ...
    def copyto(self, *_, **__) -> NoReturn: ...
    def attach_grad(self, *_, **__) -> NoReturn: ...
    def backward(self, *_, **__) -> NoReturn: ...
    def as_in_context(self, *_, **__) -> NoReturn: ...
    def as_in_ctx(self, *_, **__) -> NoReturn: ...
    @property
    def name(self) -> Any: ...
    def __repr__(self) -> str: ...
    def __copy__(self) -> Symbol: ...
    def __deepcopy__(self, _) -> Symbol: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Symbol: ...
    def __getitem__(self, key) -> Symbol: ...
    def list_arguments(self) -> list[str]:
        """The names of the inputs, in the order in which they are first needed."""
    def list_auxiliary_states(self) -> list[str]:
        """The names of inputs that are states, such as running means."""
    def list_inputs(self) -> list[str]:
        """The names of all inputs."""
    def list_outputs(self) -> list[str]:
        """The names of the outputs: `relu0_output`, or `split0_output1` of several."""
    def get_internals(self) -> Symbol:
        """A group of every output of every node that this symbol depends on."""
    def get_children(self) -> Symbol | None:
        """The inputs of this symbol's node, or `None` for a variable."""
    def attr(self, key) -> str | None:
        """One attribute of this symbol's own node, as text; `None` if it has none."""
    def list_attr(self) -> dict[str, str]:
        """The attributes of this symbol's node, as text: of the operator, those that
        differ from defaults, then the user's; `lr_mult` and such under both names."""
    def attr_dict(self) -> dict[str, dict[str, str]]:
        """node name -> its attributes as text, for all nodes that have some."""
    def __call__(self, *args, name=None, **kwargs) -> Symbol: ...
    def infer_shape_partial(self, *args, **kwargs) -> tuple[Any, Any, Any]:
        """(argument, output, auxiliary) shapes as far as known; 0 and () are unknown,
        under `np_shape` -1 and `None`."""
    def infer_shape(self, *args, **kwargs) -> tuple[Any, Any, Any]:
        """(argument, output, auxiliary) shapes; three `None` if some can't be inferred."""
    def infer_type_partial(self, *args, **kwargs) -> tuple[Any, Any, Any]:
        """(argument, output, auxiliary) dtypes as far as known; `None` is unknown."""
    def infer_type(self, *args, **kwargs) -> tuple[Any, Any, Any]:
        """(argument, output, auxiliary) dtypes; three `None` if some can't be inferred."""
    def tojson(self) -> str:
        """The graph as JSON text in MXNet's form."""
    def save(self, fname, remove_amp_cast: Any = True) -> None:
        """Write the graph to a JSON file."""
    def __reduce__(self) -> Any: ...
    def bind(
        self,
        ctx,
        args,
        args_grad=None,
        grad_req: Any = "write",
        aux_states=None,
        group2ctx=None,
        shared_exec=None,
    ) -> Any:
        """Return an Executor of this symbol on your own arrays."""
    def simple_bind(
        self,
        ctx,
        grad_req: Any = "write",
        type_dict=None,
        stype_dict=None,
        group2ctx=None,
        shared_arg_names=None,
        shared_exec=None,
        shared_buffer=None,
        **kwargs,
    ) -> Any:
        """Return an Executor of this symbol on new arrays of zeros with inferred shapes."""
    def eval(self, ctx=None, **kwargs) -> Any:
        """The outputs for arrays given by name; binds and runs once, where they are."""
    def as_np_ndarray(self) -> Symbol:
        """Return the np symbol of the same value."""
    def debug_str(self) -> Symbol:
        """Return the nodes as text in MXNet's format."""
    refs: Any

def Activation(data, act_type, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The activation function called act_type."""

def BatchNorm(
    data,
    gamma=None,
    beta=None,
    moving_mean=None,
    moving_var=None,
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
) -> Symbol:
    """(x - mean) / sqrt(var + eps) * gamma + beta, for each channel along `axis`: in training with mean and variance (divided by N) of the batch, towards which the running ones move; else with the running ones. `fix_gamma` takes gamma as 1, without a gradient; unlike MXNet, gamma itself is not overwritten. `output_mean_var` gives mean and 1 / deviation, too, without gradients."""

def BatchNorm_v1(
    data,
    gamma=None,
    beta=None,
    moving_mean=None,
    moving_var=None,
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
) -> Symbol:
    """(x - mean) / sqrt(var + eps) * gamma + beta, for each channel along `axis`: in training with mean and variance (divided by N) of the batch, towards which the running ones move; else with the running ones. `fix_gamma` takes gamma as 1, without a gradient; unlike MXNet, gamma itself is not overwritten. `output_mean_var` gives mean and 1 / deviation, too, without gradients."""

def BlockGrad(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The same values; no gradient passes."""

def CTCLoss(
    data,
    label=None,
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
) -> Symbol:
    """-log of the probability of each word (N, L), from scores (T, N, C). The blank is the first character, and 0 ends shorter words, or the last one, and -1 does."""

def Cast(data, dtype, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The same numbers in a dtype."""

def Concat(*data, dim: Any = 1, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Join arrays along an existing axis."""

def Convolution(
    data,
    weight=None,
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
) -> Symbol:
    """Each output is a window of the data times the weights of a filter, plus bias; (N, C, *size) -> (N, num_filter, *out)."""

def Convolution_v1(
    data,
    weight=None,
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
) -> Symbol:
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
) -> Symbol:
    """A window of pictures (N, C, H, W), as large as h_w or as a second input."""

def Deconvolution(
    data,
    weight=None,
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
) -> Symbol:
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
) -> Symbol:
    """Training: each number is 0 with probability p, else divided by 1 - p."""

def ElementWiseSum(*data, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The sum of arrays of one shape."""

def Embedding(
    data,
    weight=None,
    input_dim: Any = ...,
    output_dim: Any = ...,
    dtype: Any = "float32",
    sparse_grad: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """A row of the weight for each index; the gradient is dense, whatever sparse_grad says. An index outside of the rows is an error of eager arrays; compiled code and GPUs take the nearest row, because a kernel cannot raise."""

def Flatten(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """(N, a, b, ...) -> (N, a * b * ...)."""

def FullyConnected(
    data,
    weight=None,
    bias=None,
    num_hidden: Any = ...,
    no_bias: Any = False,
    flatten: Any = True,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """y = x W^T + b; (N, K) -> (N, num_hidden). With `flatten`, all axes but the first are joined, and (N,) are N samples of one number; without, (K,) is one sample."""

def Group(symbols) -> Symbol:
    """Return one symbol with the outputs of several."""

def GroupNorm(
    data,
    gamma=None,
    beta=None,
    num_groups: Any = 1,
    eps: Any = 1e-05,
    output_mean_var: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """LayerNorm over each of num_groups groups of channels of a sample; gamma and beta have one number for each group."""

def InstanceNorm(
    data, gamma=None, beta=None, eps: Any = 0.001, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """(x - mean) / sqrt(var + eps) * gamma + beta, with mean and variance over each channel of each sample."""

def L2Normalization(
    data, eps: Any = 1e-10, mode: Any = "instance", *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
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
) -> Symbol:
    """x / (knorm + alpha / nsize * s)^beta, where s sums x * x over the nsize channels around each one (Krizhevsky et al., NeurIPS 2012)."""

def LayerNorm(
    data,
    gamma=None,
    beta=None,
    axis: Any = -1,
    eps: Any = 1e-05,
    output_mean_var: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
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
) -> Symbol:
    """a where it is positive, else `slope` a (leaky), gamma a with one gamma a channel (prelu), slope (e^a - 1) (elu), the same with fixed factors (selu), or a times a random slope in training and the mean slope otherwise (rrelu); or a Phi(a) with the normal distribution's Phi (gelu). MXNet 1.9's gradient of selu is wrong below 0; this one is not."""

def LinearRegressionOutput(
    data, label=None, grad_scale: Any = 1.0, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """The data; the gradient is data - label."""

def LogisticRegressionOutput(
    data, label=None, grad_scale: Any = 1.0, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """sigmoid(data); the gradient is sigmoid(data) - label."""

def MAERegressionOutput(
    data, label=None, grad_scale: Any = 1.0, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
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
) -> Symbol:
    """The data as a loss: its gradient is grad_scale, over the batch's length ('batch') or over the count of numbers above valid_thresh ('valid')."""

def Pad(
    data, mode, pad_width, constant_value: Any = 0.0, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
    """The maximum, mean, sum or p-norm of each window; (N, C, *size) -> (N, C, *out)."""

def RNN(
    data,
    parameters=None,
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
    data,
    rois=None,
    pooled_size: Any = ...,
    spatial_scale: Any = ...,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """The largest number of each cell of each region, (R, C, *pooled_size); Girshick, Fast R-CNN (2015). A cell without pixels, or of no image, gives 0."""

def Reshape(
    data, shape, reverse: Any = False, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """The same numbers under another shape; codes 0, -1, -2, -3, -4."""

def SVMOutput(
    data,
    label=None,
    margin: Any = 1.0,
    regularization_coefficient: Any = 1.0,
    use_linear: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
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
    label=None,
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
) -> Symbol:
    """softmax, whose gradient is that of cross entropy with the label's class: along axis 1 (multi_output), the last axis (preserve_shape), or over all axes but the first. The gradient is divided by the positions a sample (multi_output), by all positions (normalization='batch'), or by those whose label is not `ignore_label` ('valid'). Unlike MXNet, smooth_alpha holds with multi_output, too, data of more than two axes has one label a sample, and out_grad multiplies by the gradient from above, as documented, not by the output."""

def SoftmaxActivation(
    data, mode: Any = "instance", *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """softmax along the last axis (instance) or along axis 1 (channel)."""

def SoftmaxOutput(
    data,
    label=None,
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
) -> Symbol:
    """softmax, whose gradient is that of cross entropy with the label's class: along axis 1 (multi_output), the last axis (preserve_shape), or over all axes but the first. The gradient is divided by the positions a sample (multi_output), by all positions (normalization='batch'), or by those whose label is not `ignore_label` ('valid'). Unlike MXNet, smooth_alpha holds with multi_output, too, data of more than two axes has one label a sample, and out_grad multiplies by the gradient from above, as documented, not by the output."""

def SwapAxis(
    data, dim1: Any = 0, dim2: Any = 0, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
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
) -> Symbol:
    """Images made larger: each number repeated, or a Deconvolution whose weights (a second input) mix neighbors; (N, C, H, W) -> (N, C, scale H, scale W)."""

def Variable(
    name,
    attr=None,
    shape=None,
    lr_mult=None,
    wd_mult=None,
    dtype=None,
    init=None,
    stype=None,
    spec=None,
    **kwargs,
) -> Symbol:
    """Create a named input; its shape and dtype may be given now or inferred later."""

def abs(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The absolute value."""

def add(a, b, /) -> Symbol:
    """Same as a + b."""

def add_n(*data, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The sum of arrays of one shape."""

def all_finite(
    data, init_output: Any = True, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """1 if no number is infinite or NaN, else 0."""

def amp_cast(data, dtype, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The same numbers in a dtype if they are float16 or float32; others stay."""

def arange(start, stop=None, step: Any = 1.0, repeat: Any = 1, dtype=None, name=None) -> Symbol:
    """Return a symbol for start, start + step, ... below stop."""

def arccos(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The angle whose cosine is a."""

def arccosh(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The inverse of cosh."""

def arcsin(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The angle whose sine is a."""

def arcsinh(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The inverse of sinh."""

def arctan(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The angle whose tangent is a."""

def arctanh(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The inverse of tanh."""

def argmax(
    data, axis=None, keepdims: Any = False, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """The place of the maximum along one axis, as float32."""

def argmax_channel(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The place of the largest along axis 1, as float32."""

def argmin(
    data, axis=None, keepdims: Any = False, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
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
) -> Symbol:
    """The places of the numbers of each line in order, as float32 unless told."""

def as_symbol(result) -> Symbol:
    """Return the result of a decomposition as one symbol, grouped if it has several outputs."""

def batch_dot(
    lhs,
    rhs=None,
    transpose_a: Any = False,
    transpose_b: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """(..., M, K) times (..., K, N) -> (..., M, N), one product for each sample."""

def batch_take(a, indices=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """One element of each row: a[i, indices[i]]."""

def broadcast_add(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a + b."""

def broadcast_arctan2(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The angle of the point (b, a)."""

def broadcast_axes(
    data, axis: Any = (), size: Any = (), *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Repeat axes of length 1 up to sizes."""

def broadcast_axis(
    data, axis: Any = (), size: Any = (), *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Repeat axes of length 1 up to sizes."""

def broadcast_div(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a / b; of whole numbers cut towards zero, and 0 where b is 0."""

def broadcast_equal(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """1 where a == b, else 0, in the dtype of a."""

def broadcast_greater(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """1 where a > b, else 0, in the dtype of a."""

def broadcast_greater_equal(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """1 where a >= b, else 0, in the dtype of a."""

def broadcast_hypot(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """sqrt(a * a + b * b), without overflow."""

def broadcast_lesser(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """1 where a < b, else 0, in the dtype of a."""

def broadcast_lesser_equal(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """1 where a <= b, else 0, in the dtype of a."""

def broadcast_like(
    lhs, rhs=None, lhs_axes=None, rhs_axes=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Repeat axes of length 1 up to the shape of rhs, or only lhs_axes up to rhs_axes."""

def broadcast_logical_and(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """1 where a and b is not 0, else 0, in the dtype of a."""

def broadcast_logical_or(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """1 where a or b is not 0, else 0, in the dtype of a."""

def broadcast_logical_xor(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """1 where a xor b is not 0, else 0, in the dtype of a."""

def broadcast_maximum(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The larger of a and b; NaN if either is."""

def broadcast_minimum(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The smaller of a and b; NaN if either is."""

def broadcast_mod(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The remainder of a / b, with b's sign."""

def broadcast_mul(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a * b, element by element."""

def broadcast_not_equal(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """1 where a != b, else 0, in the dtype of a."""

def broadcast_power(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a to the power b."""

def broadcast_sub(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a - b."""

def broadcast_to(data, shape, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Repeat axes of length 1 up to a shape."""

def cast(data, dtype, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The same numbers in a dtype."""

def cbrt(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The cube root; of a negative number, too."""

def ceil(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The next whole number above."""

def choose_element_0index(
    data,
    index=None,
    axis: Any = -1,
    keepdims: Any = False,
    mode: Any = "clip",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """One element of each line along an axis: data[i, index[i]]."""

def clip(data, a_min, a_max, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """a, but not below a_min and not above a_max."""

def concat(*data, dim: Any = 1, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Join arrays along an existing axis."""

def constant(values, name: Any = "constant") -> Symbol:
    """Return a constant of the graph as a symbol."""

class _contrib:
    @staticmethod
    def AdaptiveAvgPooling2D(
        data, output_size: Any = (), *, name=None, out=None, ctx=None, attr=None
    ) -> Symbol:
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
    ) -> Symbol:
        """Images of another height and width; a new number lies between four old ones."""
    @staticmethod
    def CTCLoss(
        data,
        label=None,
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
    ) -> Symbol:
        """-log of the probability of each word (N, L), from scores (T, N, C). The blank is the first character, and 0 ends shorter words, or the last one, and -1 does."""
    @staticmethod
    def MultiBoxDetection(
        cls_prob,
        loc_pred=None,
        anchor=None,
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
    ) -> Symbol:
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
    ) -> Symbol:
        """Anchors (1, n, 4) around each pixel of images (N, C, H, W): every size with the first ratio, then the first size with the others, as corners in shares of the image."""
    @staticmethod
    def MultiBoxTarget(
        anchor,
        label=None,
        cls_pred=None,
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
    ) -> Symbol:
        """What anchors (1, A, 4) should see of labels (B, L, class and corners; rows of -1 at the end): offsets (B, 4 A) of the matched label's box, 1 or 0 for them, and classes (B, A): 0 is background. With negative_mining_ratio above 0 only so many negatives a positive are background, the others are ignore_label. minimum_negative_samples is not read, as in MXNet."""
    @staticmethod
    def ROIAlign(
        data,
        rois=None,
        pooled_size: Any = ...,
        spatial_scale: Any = ...,
        sample_ratio: Any = -1,
        position_sensitive: Any = False,
        aligned: Any = False,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> Symbol:
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
    ) -> Symbol:
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
    ) -> Symbol:
        """The column that each row of scores (..., N, M) gets, and the row that each column gets, or -1: pairs are made from the largest score on (is_ascend: the smallest) down to the threshold. With topk above 0, MXNet and we stop after topk + 1 pairs."""
    @staticmethod
    def boolean_mask(data, index, axis: Any = 0) -> Symbol:
        """Select the slices of `data` along an axis where the vector `index` isn't 0."""
    @staticmethod
    def box_decode(
        data,
        anchors=None,
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
    ) -> Symbol:
        """Corners of the boxes that box_encode gave, times std0 to std3, beside anchors (1, N, 4) of a format; clip above 0 is the most that the logarithm of a length may be. No gradient goes back, as in MXNet."""
    @staticmethod
    def box_encode(
        samples,
        matches=None,
        anchors=None,
        refs=None,
        means=None,
        stds=None,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> Symbol:
        """Where matched boxes are beside anchors (B, N, 4), less means, divided by stds (four numbers each), and 1 where a sample is above 0.5, else 0, where the first is 0, too. matches (B, N) are places in refs (B, M, 4). No gradient goes back, as in MXNet."""
    @staticmethod
    def box_iou(
        lhs, rhs=None, format: Any = "corner", *, name=None, out=None, ctx=None, attr=None
    ) -> Symbol:
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
    ) -> Symbol:
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
    ) -> Symbol:
        """Boxes (..., N, W) in order of their scores, without those that overlap a better one (of the same class, unless force_suppress) by more than overlap_thresh; rows of -1 stand for those that are gone."""
    @staticmethod
    def cond(pred, then_func, else_func, name=None) -> Any:
        """Return `then_func()` if `pred` is true, else `else_func()`."""
    @staticmethod
    def ctc_loss(
        data,
        label=None,
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
    ) -> Symbol:
        """-log of the probability of each word (N, L), from scores (T, N, C). The blank is the first character, and 0 ends shorter words, or the last one, and -1 does."""
    @staticmethod
    def foreach(body, data, init_states, name=None) -> Any:
        """Run `body` over the first axis of `data` and stack its outputs."""
    @staticmethod
    def index_copy(
        old_tensor, index_vector=None, new_tensor=None, *, name=None, out=None, ctx=None, attr=None
    ) -> Symbol:
        """The old rows, with new ones at the given places, each of which occurs once."""
    @staticmethod
    def isfinite(data) -> Symbol:
        """Return 1 where an element is finite, else 0."""
    @staticmethod
    def isinf(data) -> Symbol:
        """Return 1 where an element is infinite, else 0."""
    @staticmethod
    def isnan(data) -> Symbol:
        """Return 1 where an element is NaN, else 0."""
    @staticmethod
    def while_loop(cond, func, loop_vars, max_iterations=None, name=None) -> Any:
        """Run `func` while `cond` is true, for at most `max_iterations` iterations."""

contrib: _contrib

def cos(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The cosine."""

def cosh(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The hyperbolic cosine."""

def ctc_loss(
    data,
    label=None,
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
) -> Symbol:
    """-log of the probability of each word (N, L), from scores (T, N, C). The blank is the first character, and 0 ends shorter words, or the last one, and -1 does."""

def cumsum(a, axis=None, dtype=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The sum of all numbers up to each one; without an axis, of the flattened array."""

def degrees(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """An angle in degrees."""

def depth_to_space(data, block_size, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """(N, C b b, H, W) -> (N, C, H b, W b): channels become blocks of pixels."""

def diag(
    data, k: Any = 0, axis1: Any = 0, axis2: Any = 1, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """The diagonal k of a matrix, or a matrix with a vector on its diagonal k."""

def divide(a, b, /) -> Symbol:
    """Same as a / b."""

def dot(
    lhs,
    rhs=None,
    transpose_a: Any = False,
    transpose_b: Any = False,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """The product over the last axis of lhs and the first of rhs."""

def elemwise_add(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a + b."""

def elemwise_div(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a / b; of whole numbers cut towards zero, and 0 where b is 0."""

def elemwise_mul(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a * b, element by element."""

def elemwise_sub(lhs, rhs=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a - b."""

def equal(a, b, /) -> Symbol:
    """Same as a == b."""

def erf(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t * t) to a."""

def erfinv(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The inverse of erf, for numbers between -1 and 1."""

def exp(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = e to the power a."""

def expand_dims(data, axis, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Put in an axis of length 1."""

def expm1(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """e to the power a, minus 1, exact for small a."""

def eye(N, M: Any = 0, k: Any = 0, dtype=None, name=None, ctx=None, stype=None) -> Symbol:
    """Return a symbol for an N x M array with ones on diagonal k."""

def fill_element_0index(
    lhs, mhs=None, rhs=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """lhs, with mhs[i] at the place rhs[i] of row i."""

def fix(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The whole part: towards 0."""

def flatten(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """(N, a, b, ...) -> (N, a * b * ...)."""

def flip(data, axis, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Axes read from back to front."""

def floor(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The next whole number below."""

def fromjson(text, source: Any = "the JSON text") -> Symbol:
    """Parse a symbol from JSON text."""

def full(shape, val, dtype=None, name=None, ctx=None, stype=None) -> Symbol:
    """Return a symbol for an array filled with a value."""

def gamma(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The gamma function: (a - 1)! for whole numbers."""

def gammaln(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The logarithm of |gamma(a)|."""

def gather_nd(data, indices=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """data[indices[0], indices[1], ...]: a column of indices tells one place."""

def greater(a, b, /) -> Symbol:
    """Same as a > b."""

def greater_equal(a, b, /) -> Symbol:
    """Same as a >= b."""

def hard_sigmoid(
    data, alpha: Any = 0.2, beta: Any = 0.5, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """alpha a + beta, but not below 0 and not above 1."""

def histogram(a, bins: Any = 10, range=None, name=None) -> Symbol:
    """Return symbols for the counts of elements per bin, and for the bin edges."""

def hypot(lhs, rhs) -> Symbol:
    """sqrt(a * a + b * b), without overflow."""

def identity(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The same values in memory of their own."""

def lesser(a, b, /) -> Symbol:
    """Same as a < b."""

def lesser_equal(a, b, /) -> Symbol:
    """Same as a <= b."""

class _linalg:
    @staticmethod
    def det(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
        """The determinant of square matrices."""
    @staticmethod
    def extractdiag(A, offset: Any = 0, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
        """A diagonal of each matrix, as rows."""
    @staticmethod
    def gemm(
        A,
        B=None,
        C=None,
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
    ) -> Symbol:
        """alpha A B + beta C."""
    @staticmethod
    def gemm2(
        A,
        B=None,
        transpose_a: Any = False,
        transpose_b: Any = False,
        alpha: Any = 1.0,
        axis: Any = -2,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> Symbol:
        """alpha A B; `axis` holds the rows."""
    @staticmethod
    def inverse(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
        """The inverse of square matrices."""
    @staticmethod
    def makediag(A, offset: Any = 0, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
        """Square matrices with the rows of A on a diagonal."""
    @staticmethod
    def potrf(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
        """The lower triangle L of a symmetric positive definite A = L L^T."""
    @staticmethod
    def potri(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
        """The inverse of L L^T, from its lower triangle L."""
    @staticmethod
    def slogdet(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
        """The sign of the determinant, and the logarithm of its absolute value."""
    @staticmethod
    def sumlogdiag(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
        """The sum of the logarithms of each matrix' diagonal."""
    @staticmethod
    def syrk(
        A, transpose: Any = False, alpha: Any = 1.0, *, name=None, out=None, ctx=None, attr=None
    ) -> Symbol:
        """alpha A A^T, or with transpose alpha A^T A."""
    @staticmethod
    def trmm(
        A,
        B=None,
        transpose: Any = False,
        rightside: Any = False,
        lower: Any = True,
        alpha: Any = 1.0,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> Symbol:
        """alpha A B, or with rightside alpha B A, where A is a triangle."""
    @staticmethod
    def trsm(
        A,
        B=None,
        transpose: Any = False,
        rightside: Any = False,
        lower: Any = True,
        alpha: Any = 1.0,
        *,
        name=None,
        out=None,
        ctx=None,
        attr=None,
    ) -> Symbol:
        """X of A X = alpha B, or with rightside X A = alpha B, where A is a triangle."""

linalg: _linalg

def linalg_det(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The determinant of square matrices."""

def linalg_extractdiag(A, offset: Any = 0, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """A diagonal of each matrix, as rows."""

def linalg_gemm(
    A,
    B=None,
    C=None,
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
) -> Symbol:
    """alpha A B + beta C."""

def linalg_gemm2(
    A,
    B=None,
    transpose_a: Any = False,
    transpose_b: Any = False,
    alpha: Any = 1.0,
    axis: Any = -2,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """alpha A B; `axis` holds the rows."""

def linalg_inverse(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The inverse of square matrices."""

def linalg_makediag(A, offset: Any = 0, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Square matrices with the rows of A on a diagonal."""

def linalg_potrf(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The lower triangle L of a symmetric positive definite A = L L^T."""

def linalg_potri(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The inverse of L L^T, from its lower triangle L."""

def linalg_slogdet(A, *, name=None, out=None, ctx=None, attr=None) -> tuple[Symbol, ...]:
    """The sign of the determinant, and the logarithm of its absolute value."""

def linalg_sumlogdiag(A, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The sum of the logarithms of each matrix' diagonal."""

def linalg_syrk(
    A, transpose: Any = False, alpha: Any = 1.0, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """alpha A A^T, or with transpose alpha A^T A."""

def linalg_trmm(
    A,
    B=None,
    transpose: Any = False,
    rightside: Any = False,
    lower: Any = True,
    alpha: Any = 1.0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """alpha A B, or with rightside alpha B A, where A is a triangle."""

def linalg_trsm(
    A,
    B=None,
    transpose: Any = False,
    rightside: Any = False,
    lower: Any = True,
    alpha: Any = 1.0,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """X of A X = alpha B, or with rightside X A = alpha B, where A is a triangle."""

def linspace(start, stop, num, endpoint: Any = True, dtype=None, name=None) -> Symbol:
    """Return a symbol for `num` evenly spaced values from start to stop."""

def load(fname) -> Any:
    """Load a symbol from a JSON file."""

def load_json(text, source: Any = "the JSON text") -> Symbol:
    """Parse a symbol from JSON text."""

def log(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The natural logarithm."""

def log10(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The logarithm to base 10."""

def log1p(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The logarithm of 1 + a, exact for small a."""

def log2(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The logarithm to base 2."""

def log_softmax(
    data, axis: Any = -1, temperature=None, dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """a - log(sum(exp(a))) along an axis."""

def logical_and(lhs, rhs) -> Symbol:
    """1 where a and b is not 0, else 0, in the dtype of a."""

def logical_not(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """1 where a is 0, else 0."""

def logical_or(lhs, rhs) -> Symbol:
    """1 where a or b is not 0, else 0, in the dtype of a."""

def logical_xor(lhs, rhs) -> Symbol:
    """1 where a xor b is not 0, else 0, in the dtype of a."""

def make_loss(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
    """The largest along the axes."""

def maximum(lhs, rhs) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
    """The smallest along the axes."""

def minimum(lhs, rhs) -> Symbol:
    """The smaller of a and b; NaN if either is."""

def modulo(a, b, /) -> Symbol:
    """Same as a % b."""

def moments(
    data, axes=None, keepdims: Any = False, *, name=None, out=None, ctx=None, attr=None
) -> tuple[Symbol, ...]:
    """The mean and the variance (divided by N) over the axes; all axes by default."""

def moveaxis(a, source, destination, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Axes moved to other places; the rest stay in order."""

def multi_all_finite(
    *data, num_arrays: Any = 0, init_output: Any = True, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """1 if no number is infinite or NaN, else 0."""

def multi_sum_sq(*data, num_arrays: Any = 0, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The sum of squares of each array, as float32."""

def multiply(a, b, /) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
    """The sum over the axes. NaN is left out."""

def negative(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
    """Numbers with the normal distribution, by the method of Box and Muller."""

def not_equal(a, b, /) -> Symbol:
    """Same as a != b."""

np: Any
npx: Any

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
) -> Symbol:
    """A line of `depth` numbers for each index: on at the index, off elsewhere."""

def ones(shape, dtype=None, name=None, ctx=None, stype=None) -> Symbol:
    """Return a symbol for an array of ones."""

def ones_like(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """An array of 1 in the shape and dtype of the input."""

def opened(result) -> Any:
    """Return the result with each multi-output symbol replaced by a tuple."""

def pad(
    data, mode, pad_width, constant_value: Any = 0.0, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """More at the ends of axes: one value, the edge's, or the inside mirrored."""

def parameter(name, **declared) -> Symbol:
    """Return the variable of a parameter, always the same within a trace."""

def pick(
    data,
    index=None,
    axis: Any = -1,
    keepdims: Any = False,
    mode: Any = "clip",
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """One element of each line along an axis: data[i, index[i]]."""

def pow(a, b, /) -> Symbol:
    """Same as a ** b."""

def power(a, b, /) -> Symbol:
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
) -> Symbol:
    """The product over the axes."""

def radians(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """An angle in radians."""

class _random:
    @staticmethod
    def exponential(scale: Any = 1.0, shape=None, dtype=None, ctx=None, out=None) -> Symbol:
        """Draw from the exponential distribution with mean `scale`."""
    @staticmethod
    def gamma(
        alpha: Any = 1.0, beta: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> Symbol:
        """Draw from the gamma distribution with shape alpha and scale beta."""
    @staticmethod
    def generalized_negative_binomial(
        mu: Any = 1, alpha: Any = 1, shape=None, dtype=None, ctx=None, out=None
    ) -> Symbol:
        """Draw from a negative binomial with mean mu and variance mu + alpha mu^2."""
    @staticmethod
    def multinomial(
        data, shape: Any = (), get_prob: Any = False, out=None, dtype: Any = "int32"
    ) -> Symbol:
        """Draw indices with the probabilities in each row of the data."""
    @staticmethod
    def negative_binomial(
        k: Any = 1, p: Any = 1, shape=None, dtype=None, ctx=None, out=None
    ) -> Symbol:
        """Draw from the negative binomial distribution: failures before k successes."""
    @staticmethod
    def normal(
        loc: Any = 0.0, scale: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> Symbol:
        """Draw from the normal distribution."""
    @staticmethod
    def poisson(lam: Any = 1.0, shape=None, dtype=None, ctx=None, out=None) -> Symbol:
        """Draw from the Poisson distribution with mean lam; float32 by default."""
    @staticmethod
    def randint(low, high, shape=None, dtype=None, ctx=None, out=None) -> Symbol:
        """Draw integers uniformly from [low, high)."""
    @staticmethod
    def randn(*shape, loc: Any = 0.0, scale: Any = 1.0, dtype=None, ctx=None) -> Symbol:
        """Draw from the normal distribution; the shape is given as integers."""
    @staticmethod
    def seed(seed_state, ctx: Any = "all") -> None:
        """Seed the generator: the same seed reproduces the same samples."""
    @staticmethod
    def shuffle(data, out=None) -> Symbol:
        """Return a copy with the rows (axis 0) in random order."""
    @staticmethod
    def uniform(
        low: Any = 0.0, high: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
    """Numbers that are equally likely anywhere in [low, high)."""

def ravel_multi_index(data, shape, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """(axes, N) indices -> (N,) places in row-major order."""

def rcbrt(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """One over the cube root."""

def reciprocal(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = 1 / a."""

def relu(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = max(a, 0); NaN stays NaN."""

def repeat(data, repeats, axis=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Each element `repeats` times; without an axis, of the flattened array."""

def replay(refs, values, like: Any = ()) -> list[Any]:
    """Reapply the operators that compute `refs` to other values (symbols or arrays)."""

def reshape(
    data, shape, reverse: Any = False, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """The same numbers under another shape; codes 0, -1, -2, -3, -4."""

def reshape_like(
    lhs,
    rhs=None,
    lhs_begin=None,
    lhs_end=None,
    rhs_begin=None,
    rhs_end=None,
    *,
    name=None,
    out=None,
    ctx=None,
    attr=None,
) -> Symbol:
    """The numbers of lhs under the shape of rhs, or with a range of its axes."""

def reverse(data, axis, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Axes read from back to front."""

def rint(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The nearest whole number; halves go down."""

def round(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The nearest whole number; halves go away from 0."""

def rsqrt(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """One over the square root."""

def sample_exponential(
    lam, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Waiting times of a rate lam; their mean is 1 / lam. A block of a shape for each element of the parameters."""

def sample_gamma(
    alpha, beta=None, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Numbers with the gamma distribution of shape alpha and scale beta. A block of a shape for each element of the parameters."""

def sample_generalized_negative_binomial(
    mu, alpha=None, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
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
) -> Symbol:
    """Places drawn with the probabilities in each row; get_prob adds their logarithms, which have a gradient."""

def sample_negative_binomial(
    k, p=None, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Failures before success number k, each try succeeding with probability p. A block of a shape for each element of the parameters."""

def sample_normal(
    mu, sigma=None, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Numbers with the normal distribution, by the method of Box and Muller. A block of a shape for each element of the parameters."""

def sample_poisson(
    lam, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Counts of events of which lam are expected. A block of a shape for each element of the parameters."""

def sample_uniform(
    low, high=None, shape: Any = (), dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Numbers that are equally likely anywhere in [low, high). A block of a shape for each element of the parameters."""

def scaled_dot_product_attention(
    query,
    key=None,
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
) -> Symbol:
    """softmax(query key^T scale) value: (..., L, E), (..., S, E), (..., S, V) -> (..., L, V). `scale` is 1 / sqrt(E) by default. A query doesn't see the keys where the mask, which broadcasts to (..., L, S), is 0; nor, with `is_causal`, key j > i from query i. If it sees none, the result is 0. Unlike PyTorch's, a mask of floats isn't added to the scores. The matrix of scores is never stored."""

def scatter_nd(
    data, indices=None, shape: Any = ..., *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Zeros, with the data where gather_nd reads; what meets at one place is added."""

def shape_array(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The length of each axis, as int64."""

def shuffle(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The rows (axis 0) in random order."""

def sigmoid(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = 1 / (1 + exp(-a))."""

def sign(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """-1, 0 or 1; NaN stays NaN."""

def sin(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The sine."""

def sinh(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The hyperbolic sine."""

def size_array(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The number of elements, as int64."""

def slice(data, begin, end, step: Any = (), *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The part between begin and end, one range for each axis; None is the edge."""

def slice_axis(data, axis, begin, end, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The part between begin and end of one axis."""

def slice_like(
    data, shape_like=None, axes: Any = (), *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """The first part of each axis, as long as in `shape_like`."""

def smooth_l1(data, scalar: Any = 1.0, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
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
) -> Symbol:
    """exp(a) / sum(exp(a)) along an axis; with `use_length`, over as many numbers of each line as `length` says, and 0 behind them."""

def softmax_cross_entropy(data, label=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The sum over the batch of -log(softmax(data)[label])."""

def softmin(
    data, axis: Any = -1, temperature=None, dtype=None, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """softmax of -a along an axis."""

def softrelu(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = log(1 + exp(a)), without overflow."""

def softsign(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a / (1 + |a|)."""

def sort(
    data, axis: Any = -1, is_ascend: Any = True, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """The numbers of each line in order; without an axis, of the flattened array."""

def space_to_depth(data, block_size, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """(N, C, H b, W b) -> (N, C b b, H, W): blocks of pixels become channels."""

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

def sqrt(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The square root."""

def square(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """y = a * a."""

def squeeze(data, axis=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Take out axes of length 1."""

def stack(*data, axis: Any = 0, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """Join arrays along a new axis."""

def stop_gradient(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The same values; no gradient passes."""

def subtract(a, b, /) -> Symbol:
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
) -> Symbol:
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
) -> Symbol:
    """The sum over the axes."""

def swapaxes(
    data, dim1: Any = 0, dim2: Any = 0, *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """Exchange two axes."""

from minihybrid import symbol as symbol

def symbols_in(result) -> list[Symbol]:
    """Return the symbols of a nested result, in order; `None` entries are skipped."""

def take(
    a, indices=None, axis: Any = 0, mode: Any = "clip", *, name=None, out=None, ctx=None, attr=None
) -> Symbol:
    """The parts of `a` at given places of one axis; mode clip, wrap or raise."""

def tan(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The tangent."""

def tanh(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The hyperbolic tangent."""

def tile(data, reps, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The whole array `reps` times along each axis; axes line up from the right."""

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
) -> Symbol:
    """The k largest of each line (0 means all), or smallest: their places, their values, both, or ones where they stand."""

def trace(function, inputs, training: Any = False, arranged: Any = ...) -> Any:
    """Run a function once on placeholders and return the recorded graph."""

def transpose(data, axes: Any = (), *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """The axes in another order; reversed unless given."""

def true_divide(a, b, /) -> Symbol:
    """Same as a / b."""

def trunc(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
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
) -> Symbol:
    """Numbers that are equally likely anywhere in [low, high)."""

def unravel_index(data, shape, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """(N,) places in row-major order -> (axes, N) indices."""

def var(
    name,
    attr=None,
    shape=None,
    lr_mult=None,
    wd_mult=None,
    dtype=None,
    init=None,
    stype=None,
    spec=None,
    **kwargs,
) -> Symbol:
    """Create a named input; its shape and dtype may be given now or inferred later."""

def where(condition, x=None, y=None, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """x where the condition is not 0, else y; a vector of conditions chooses rows."""

def zeros(shape, dtype=None, name=None, ctx=None, stype=None) -> Symbol:
    """Return a symbol for an array of zeros."""

def zeros_like(data, *, name=None, out=None, ctx=None, attr=None) -> Symbol:
    """An array of 0 in the shape and dtype of the input."""
