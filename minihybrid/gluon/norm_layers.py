"""Normalization layers: subtract a mean and divide by a standard deviation.

Defines: `BatchNorm`, `BatchNormReLU`, `LayerNorm`, `GroupNorm`, `InstanceNorm`.

The first call infers the number of channels if it isn't given.
Not supported: statistics over several devices (`SyncBatchNorm`).
"""

from minihybrid.core.block import HybridBlock
from minihybrid.core.convert import dtype_of
from minihybrid.core.op import boolean, checked, integer, length
from minihybrid.ops import OPS


class _Norm(HybridBlock):
    """The base class: gamma and beta, each of which may be fixed."""

    def _settle(self, op, **settings):
        """Store the settings, validated by the operator definition."""
        self._kwargs, kinds = {}, {"axis": (integer, 1)} | OPS[op].attrs
        for name, value in settings.items():
            key = "eps" if name == "epsilon" else name
            kind, _ = kinds.get(key, (boolean, True))
            self._kwargs[key] = checked(type(self).__name__, name, value, kind)

    def _make(self, name, count, init, moves=True):
        count = checked(type(self).__name__, "in_channels", count, length)
        kind = {"grad_req": "write" if moves else "null", "differentiable": moves}
        return self.params.get(name, shape=(count,), init=init, allow_deferred_init=True, **kind)

    def _scale_and_shift(self, count, scale, center, gamma_init, beta_init):
        self.gamma = self._make("gamma", count, gamma_init, scale)
        self.beta = self._make("beta", count, beta_init, center)

    def __repr__(self):
        settings = ", ".join(f"{k}={v!r}" for k, v in self._kwargs.items())
        return f"{type(self).__name__}({settings})"


class BatchNorm(_Norm):
    """Normalize each channel over the batch, then scale and shift it.

    In training mode, mean and variance are the batch's, and the running ones are updated:
    running = momentum * running + (1 - momentum) * batch. In prediction mode, or with
    `use_global_stats`, the running ones are used. A parameter fixed by `scale` or `center`
    is still saved to files.

    Shapes:  those of the input, with channels along `axis`.
    Source:  Ioffe and Szegedy, ICML 2015; the variance is divided by N, as in MXNet.

    >>> BatchNorm(in_channels=3)
    BatchNorm(axis=1, eps=1e-05, momentum=0.9, fix_gamma=False, \
use_global_stats=False, in_channels=3)
    """

    def __init__(
        self,
        axis=1,
        momentum=0.9,
        epsilon=1e-5,
        center=True,
        scale=True,
        use_global_stats=False,
        beta_initializer="zeros",
        gamma_initializer="ones",
        running_mean_initializer="zeros",
        running_variance_initializer="ones",
        in_channels=0,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix, params)
        scale = checked(type(self).__name__, "scale", scale, boolean)
        center = checked(type(self).__name__, "center", center, boolean)
        self._settle(
            "BatchNorm",
            axis=axis,
            epsilon=epsilon,
            momentum=momentum,
            fix_gamma=not scale,
            use_global_stats=use_global_stats,
        )
        self._scale_and_shift(in_channels, scale, center, gamma_initializer, beta_initializer)
        self.running_mean = self._make("running_mean", in_channels, running_mean_initializer, False)
        init = running_variance_initializer
        self.running_var = self._make("running_var", in_channels, init, False)

    def cast(self, dtype):
        """Change the dtype. For float16 and bfloat16, the statistics stay float32."""
        is_narrow = dtype_of(self.name, dtype).name in ("float16", "bfloat16")
        super().cast("float32" if is_narrow else dtype)

    def hybrid_forward(self, F, x, gamma, beta, running_mean, running_var):
        """Apply the layer."""
        return F.BatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)

    def __repr__(self):
        text = super().__repr__()[:-1]
        return f"{text}, in_channels={self.gamma.shape[0] or None})"


class BatchNormReLU(BatchNorm):
    """BatchNorm followed by relu."""

    def hybrid_forward(self, F, x, *args, **params):
        """Apply the layer."""
        return F.relu(super().hybrid_forward(F, x, *args, **params))


class _AxisNorm(_Norm):
    """The base class of norms of one sample, with an axis."""

    def __init__(
        self,
        axis=-1,
        epsilon=1e-5,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        in_channels=0,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix, params)
        self._settle("LayerNorm", epsilon=epsilon, axis=axis, center=center, scale=scale)
        self._scale_and_shift(in_channels, scale, center, gamma_initializer, beta_initializer)

    def __repr__(self):
        return f"{super().__repr__()[:-1]}, in_channels={self.gamma.shape[0]})"


class LayerNorm(_AxisNorm):
    """Normalize each sample along an axis, then scale and shift it.

    Shapes:  those of the input; gamma and beta have one element per position on the axis.
    Source:  Ba, Kiros and Hinton, arXiv 1607.06450.
    """

    def hybrid_forward(self, F, data, gamma, beta):
        """Apply the layer."""
        return F.LayerNorm(data, gamma, beta, axis=self._kwargs["axis"], eps=self._kwargs["eps"])


class GroupNorm(_Norm):
    """LayerNorm over each of `num_groups` groups of a sample's channels.

    Shapes:  (N, C, ...) as the input; gamma and beta have one element per group.
    Source:  Wu and He, ECCV 2018; there, gamma and beta have one element per channel.
    """

    def __init__(
        self,
        num_groups=1,
        epsilon=1e-5,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        prefix=None,
        params=None,
    ):
        super().__init__(prefix, params)
        self._settle(
            "GroupNorm", epsilon=epsilon, num_groups=num_groups, center=center, scale=scale
        )
        self._scale_and_shift(num_groups, scale, center, gamma_initializer, beta_initializer)

    def hybrid_forward(self, F, data, gamma, beta):
        """Apply the layer."""
        return F.GroupNorm(
            data, gamma, beta, num_groups=self._kwargs["num_groups"], eps=self._kwargs["eps"]
        )


class InstanceNorm(_AxisNorm):
    """Normalize each channel of each sample, then scale and shift it.

    Shapes:  those of the input, (N, C, ...), with at least three axes.
    Source:  Ulyanov, Vedaldi and Lempitsky, arXiv 1607.08022.
    """

    def __init__(self, axis=1, epsilon=1e-5, center=True, scale=False, *args, **kwargs):
        super().__init__(axis, epsilon, center, scale, *args, **kwargs)

    def hybrid_forward(self, F, x, gamma, beta):
        """Apply the layer."""
        axis, eps = self._kwargs["axis"], self._kwargs["eps"]
        if axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=eps)
        x = F.InstanceNorm(x.swapaxes(1, axis), gamma, beta, name="fwd", eps=eps)
        return x.swapaxes(1, axis)
