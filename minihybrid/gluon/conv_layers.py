"""Convolution and pooling layers.

Defines: `Conv1D` to `Conv3D`, `Conv1DTranspose` to `Conv3DTranspose`, `MaxPool1D` to
         `GlobalAvgPool3D`, `ReflectionPad2D`.

The first call infers the number of input channels if it isn't given. A length that's equal
along all axes may be a single integer.
Not supported: channels-last layouts.
"""

from functools import partial
from numbers import Integral

from minihybrid.core.block import HybridBlock
from minihybrid.core.layers import Activation, activation_of
from minihybrid.core.op import MAX_ELEMENTS, AttrError, boolean, checked, length
from minihybrid.ops.convolution import LAYOUTS


def _lengths(layer, name, value, n, lowest):
    """Return one integer per axis, from one integer or several."""
    lengths = (value,) * n if isinstance(value, Integral) else value
    if (
        not isinstance(lengths, (tuple, list))
        or len(lengths) != n
        or any(not isinstance(v, Integral) or not lowest <= v < MAX_ELEMENTS for v in lengths)
    ):
        raise AttrError(
            f"{layer}: {name}={value!r} does not fit; needed: an "
            f"integer of at least {lowest}, or {n} of them"
        )
    return tuple(map(int, lengths))


def _layout(layer, layout, n):
    """Validate the layout: channels before the spatial axes."""
    if layout is not None and not (isinstance(layout, str) and layout == LAYOUTS[n]):
        raise AttrError(
            f"{layer}: layout={layout!r} does not fit; needed: "
            f"{LAYOUTS[n]!r}, so move the channels with transpose"
        )
    return LAYOUTS[n]


class _Conv(HybridBlock):
    """The base class of convolutions, with `_n` spatial axes and the operator `_op`."""

    _n, _op = 2, "Convolution"

    def __init__(
        self,
        channels,
        kernel_size,
        strides=1,
        padding=0,
        dilation=1,
        groups=1,
        layout=None,
        activation=None,
        use_bias=True,
        weight_initializer=None,
        bias_initializer="zeros",
        in_channels=0,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix, params)
        layer = type(self).__name__
        checked(layer, "in_channels", in_channels, length)
        activation = activation_of(layer, activation)
        use_bias = checked(layer, "use_bias", use_bias, boolean)
        for name, value in (("channels", channels), ("groups", groups)):
            _lengths(layer, name, value, 1, 1)
        if channels % groups or in_channels % groups:
            raise AttrError(
                f"{layer}: channels={channels} and in_channels="
                f"{in_channels} must be divisible by groups={groups}"
            )
        self._kwargs = {
            "kernel": _lengths(layer, "kernel_size", kernel_size, self._n, 1),
            "stride": _lengths(layer, "strides", strides, self._n, 1),
            "dilate": _lengths(layer, "dilation", dilation, self._n, 1),
            "pad": _lengths(layer, "padding", padding, self._n, 0),
            "num_filter": channels,
            "num_group": groups,
            "no_bias": not use_bias,
            "layout": _layout(layer, layout, self._n),
        }
        rows, columns = channels, in_channels
        if self._op == "Deconvolution":
            rows, columns = in_channels, channels
        shape = (rows, columns // groups, *self._kwargs["kernel"])
        get = partial(self.params.get, allow_deferred_init=True)
        with self.name_scope():
            self.weight = get("weight", shape=shape, init=weight_initializer)
            self.bias = get("bias", shape=(channels,), init=bias_initializer) if use_bias else None
            self.act = Activation(activation, prefix=f"{activation}_") if activation else None

    def _alias(self):
        return "conv"

    def hybrid_forward(self, F, x, weight, bias=None):
        """Apply the layer."""
        out = getattr(F, self._op)(x, weight, bias, name="fwd", **self._kwargs)
        return out if self.act is None else self.act(out)

    def __repr__(self):
        a, (to, inputs, *_) = self._kwargs, self.weight.shape
        parts = [f"{inputs or None} -> {to}", f"kernel_size={a['kernel']}", f"stride={a['stride']}"]
        parts += [f"padding={a['pad']}"] * any(a["pad"])
        parts += [f"dilation={a['dilate']}"] * any(d != 1 for d in a["dilate"])
        parts += [f"groups={a['num_group']}"] * (a["num_group"] != 1)
        parts += ["bias=False"] * (self.bias is None)
        parts += [str(self.act)] * (self.act is not None)
        return f"{type(self).__name__}({', '.join(parts)})"


class Conv1D(_Conv):
    """A convolution along one axis: (N, C, W) -> (N, channels, out W)."""

    _n = 1


class Conv2D(_Conv):
    """A convolution of images: (N, C, H, W) -> (N, channels, out H, out W).

    An output length is (length + 2 padding - dilation (kernel_size - 1) - 1) / strides,
    rounded down, plus 1.

    >>> Conv2D(6, kernel_size=5, in_channels=1, activation="relu")
    Conv2D(1 -> 6, kernel_size=(5, 5), stride=(1, 1), Activation(relu))
    """


class Conv3D(_Conv):
    """A convolution of volumes: (N, C, D, H, W) -> (N, channels, ...)."""

    _n = 3


class _ConvTranspose(_Conv):
    """The base class of transposed convolutions: `output_padding`, then `dilation` and the rest.

    Its repr names the weight's second length first, as MXNet's does.
    """

    _op = "Deconvolution"

    def __init__(
        self, channels, kernel_size, strides=1, padding=0, output_padding=0, *args, **kwargs
    ):
        super().__init__(channels, kernel_size, strides, padding, *args, **kwargs)
        self._kwargs["adj"] = _lengths(
            type(self).__name__, "output_padding", output_padding, self._n, 0
        )


class Conv1DTranspose(_ConvTranspose):
    """The transpose of Conv1D: (N, C, W) -> (N, channels, out W)."""

    _n = 1


class Conv2DTranspose(_ConvTranspose):
    """The transpose of Conv2D, which enlarges images: (N, C, H, W) ->
    (N, channels, out H, out W).

    An output length is (length - 1) strides - 2 padding + dilation (kernel_size - 1) +
    1 + output_padding.
    """


class Conv3DTranspose(_ConvTranspose):
    """The transpose of Conv3D: (N, C, D, H, W) -> (N, channels, ...)."""

    _n = 3


class _Pooling(HybridBlock):
    """The base class of pooling layers, with `_n` spatial axes and the pooling type.

    The order of `layout` and `ceil_mode` in each layer is MXNet's.
    """

    _n, _type, _global = 2, "max", False

    def __init__(
        self,
        pool_size=2,
        strides=None,
        padding=0,
        layout=None,
        ceil_mode=False,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix, params)
        layer = type(self).__name__
        ceil_mode = checked(layer, "ceil_mode", ceil_mode, boolean)
        strides = pool_size if strides is None else strides
        self._kwargs = {
            "kernel": _lengths(layer, "pool_size", pool_size, self._n, 1),
            "stride": _lengths(layer, "strides", strides, self._n, 1),
            "pad": _lengths(layer, "padding", padding, self._n, 0),
            "global_pool": self._global,
            "pool_type": self._type,
            "layout": _layout(layer, layout, self._n),
            "pooling_convention": "full" if ceil_mode else "valid",
        }

    def _alias(self):
        return "pool"

    def hybrid_forward(self, F, x):
        """Apply the layer."""
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self):
        a = self._kwargs
        return (
            f"{type(self).__name__}(size={a['kernel']}, stride={a['stride']}, padding={a['pad']}, "
            f"ceil_mode={a['pooling_convention'] == 'full'}, global_pool={a['global_pool']}, "
            f"pool_type={a['pool_type']}, layout={a['layout']})"
        )


class MaxPool1D(_Pooling):
    """The maximum of each window along one axis: (N, C, W) -> (N, C, out W)."""

    _n = 1


class MaxPool2D(_Pooling):
    """The maximum of each window: (N, C, H, W) -> (N, C, out H, out W).

    `strides` defaults to the window size, so windows don't overlap. With ceil_mode, the last
    window may extend beyond the edge.

    >>> MaxPool2D(3, strides=2)
    MaxPool2D(size=(3, 3), stride=(2, 2), padding=(0, 0), ceil_mode=False, \
global_pool=False, pool_type=max, layout=NCHW)
    """


class MaxPool3D(_Pooling):
    """The maximum of each window: (N, C, D, H, W) -> (N, C, out D, out H, out W)."""

    _n = 3

    def __init__(
        self, pool_size=2, strides=None, padding=0, ceil_mode=False, layout=None, **kwargs
    ):
        super().__init__(pool_size, strides, padding, layout, ceil_mode, **kwargs)


class AvgPool1D(_Pooling):
    """The mean of each window along one axis: (N, C, W) -> (N, C, out W)."""

    _n, _type = 1, "avg"

    def __init__(
        self,
        pool_size=2,
        strides=None,
        padding=0,
        layout=None,
        ceil_mode=False,
        count_include_pad=True,
        **kwargs,
    ):
        super().__init__(pool_size, strides, padding, layout, ceil_mode, **kwargs)
        self._kwargs["count_include_pad"] = checked(
            type(self).__name__, "count_include_pad", count_include_pad, boolean
        )


class AvgPool2D(AvgPool1D):
    """The mean of each window: (N, C, H, W) -> (N, C, out H, out W).

    count_include_pad:  whether the mean includes padding (zeros).
    """

    _n = 2

    def __init__(
        self, pool_size=2, strides=None, padding=0, ceil_mode=False, layout=None, *args, **kwargs
    ):
        super().__init__(pool_size, strides, padding, layout, ceil_mode, *args, **kwargs)


class AvgPool3D(AvgPool2D):
    """The mean of each window: (N, C, D, H, W) -> (N, C, out D, out H, out W)."""

    _n = 3


class _GlobalPooling(_Pooling):
    """The base class of global pooling layers, whose window is the whole input."""

    _global = True

    def __init__(self, layout=None, prefix=None, params=None):
        super().__init__(1, None, 0, layout, True, prefix, params)


class GlobalMaxPool1D(_GlobalPooling):
    """The maximum of each channel: (N, C, W) -> (N, C, 1)."""

    _n = 1


class GlobalMaxPool2D(_GlobalPooling):
    """The maximum of each channel: (N, C, H, W) -> (N, C, 1, 1)."""


class GlobalMaxPool3D(_GlobalPooling):
    """The maximum of each channel: (N, C, D, H, W) -> (N, C, 1, 1, 1)."""

    _n = 3


class GlobalAvgPool1D(_GlobalPooling):
    """The mean of each channel: (N, C, W) -> (N, C, 1)."""

    _n, _type = 1, "avg"


class GlobalAvgPool2D(_GlobalPooling):
    """The mean of each channel: (N, C, H, W) -> (N, C, 1, 1)."""

    _type = "avg"


class GlobalAvgPool3D(_GlobalPooling):
    """The mean of each channel: (N, C, D, H, W) -> (N, C, 1, 1, 1)."""

    _n, _type = 3, "avg"


class ReflectionPad2D(HybridBlock):
    """Images padded with their reflection: (N, C, H, W) ->
    (N, C, H + 2 padding, W + 2 padding).

    padding:  an integer, or the eight integers of the operator `Pad`.
    """

    def __init__(self, padding=0, prefix=None, params=None):
        super().__init__(prefix, params)
        if isinstance(padding, Integral):
            padding = (0,) * 4 + (padding,) * 4
        self._padding = _lengths("ReflectionPad2D", "padding", padding, 8, 0)

    def hybrid_forward(self, F, x):
        """Apply the layer."""
        return F.Pad(x, mode="reflect", pad_width=self._padding, name="fwd")
