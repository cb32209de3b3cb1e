"""Layers for networks with branches, and for upsampling.

Defines: `Concurrent`, `HybridConcurrent`, `Identity`; `PixelShuffle1D` to `3D`;
         `SyncBatchNorm`.

Not supported: MXNet's sparse embedding, and statistics over several devices.
"""

from math import prod

from minihybrid.core import nd
from minihybrid.core.block import HybridBlock
from minihybrid.core.hooks import own_names
from minihybrid.core.layers import HybridSequential, Sequential
from minihybrid.core.op import AttrError, shape
from minihybrid.gluon.norm_layers import BatchNorm


class Concurrent(Sequential):
    """Pass the same input to every child and concatenate their outputs along an axis.

    >>> net = Concurrent(axis=1); net.add(Identity(), Identity())
    >>> net(nd.ones((1, 3))).shape
    (1, 6)
    """

    def __init__(self, axis=-1, prefix=None, params=None):
        super().__init__(prefix, params)
        self.axis = axis

    def forward(self, x):
        """Return the concatenated outputs of all children."""
        return nd.concat(*(block(x) for block in self), dim=self.axis)


class HybridConcurrent(HybridSequential):
    """`Concurrent` for hybrid blocks, hybridized as one."""

    def __init__(self, axis=-1, prefix=None, params=None):
        super().__init__(prefix, params)
        self.axis = axis

    def hybrid_forward(self, F, x):
        """Return the concatenated outputs of all children."""
        return F.concat(*(block(x) for block in self), dim=self.axis)


class Identity(HybridBlock):
    """Return the input: an identity branch."""

    def hybrid_forward(self, F, x):
        """Return the input."""
        return x


class PixelShuffle1D(HybridBlock):
    """Rearrange channels into pixels of one axis, (N, f C, W) -> (N, C, f W).

    factor:  f, an integer of at least 1, or one per axis.
    Source:  Shi et al., Real-Time Single Image and Video Super-Resolution (2016), as in
             MXNet's gluon.contrib.nn.

    >>> PixelShuffle1D(2)(nd.zeros((1, 8, 3))).shape
    (1, 4, 6)
    """

    _n_axes = 1

    def __init__(self, factor):
        super().__init__()
        self._factors = shape(factor) * (self._n_axes if len(shape(factor)) == 1 else 1)
        if len(self._factors) != self._n_axes or min(self._factors) < 1:
            raise AttrError(
                f"{type(self).__name__}: factor={factor}, but one integer of at least 1, "
                f"or {self._n_axes} of them, are needed"
            )

    def hybrid_forward(self, F, x):
        """Split the channels into C and the factors, then join each factor to its axis."""
        n = self._n_axes
        x = F.reshape(x, shape=(0, -4, -1, prod(self._factors), -2))
        for d, factor in enumerate(self._factors[:-1], 2):  # (N, C, f1, ..., fn, *size)
            x = F.reshape(x, shape=(*(0,) * d, -4, factor, -1, -2))
        pairs = [axis for d in range(2, n + 2) for axis in (d + n, d)]
        x = F.transpose(x, axes=(0, 1, *pairs))
        return F.reshape(x, shape=(0, 0, *(-3,) * n))

    def __repr__(self):
        return f"{type(self).__name__}({self._factors})"


class PixelShuffle2D(PixelShuffle1D):
    """Rearrange channels into pixels, (N, f1 f2 C, H, W) -> (N, C, f1 H, f2 W).

    >>> PixelShuffle2D((2, 3))(nd.zeros((1, 12, 3, 5))).shape
    (1, 2, 6, 15)
    """

    _n_axes = 2


class PixelShuffle3D(PixelShuffle1D):
    """Rearrange channels into voxels, (N, f1 f2 f3 C, D, H, W) -> (N, C, f1 D, f2 H, f3 W).

    >>> PixelShuffle3D((2, 3, 4))(nd.zeros((1, 48, 3, 5, 7))).shape
    (1, 2, 6, 15, 28)
    """

    _n_axes = 3


class SyncBatchNorm(BatchNorm):
    """BatchNorm over axis 1. MXNet computes its statistics over all devices.

    Here, each device uses those of its own part of the batch, as BatchNorm does.
    `num_devices` and `key` are ignored.

    >>> net = SyncBatchNorm(in_channels=3, num_devices=4); net.initialize()
    >>> net(nd.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    def __init__(self, in_channels=0, num_devices=None, momentum=0.9, epsilon=1e-5, **kwargs):
        kwargs.pop("key", None)
        super().__init__(1, momentum, epsilon, in_channels=in_channels, **kwargs)


__dir__ = own_names(globals())
