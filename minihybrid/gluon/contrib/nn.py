"""Chapter 14. Layers for nets with branches.

Takes:   blocks that read the same input.
Gives:   `Concurrent`, `HybridConcurrent`, `Identity`.

What is left out: MXNet's experimental layers (sparse embeddings, pixel shuffling).
"""

from minihybrid.core import nd
from minihybrid.core.block import HybridBlock
from minihybrid.core.layers import HybridSequential, Sequential
from minihybrid.ops.shown import own_names


class Concurrent(Sequential):
    """Gives every child the same input and joins their outputs along an axis.

    >>> net = Concurrent(axis=1); net.add(Identity(), Identity())
    >>> net(nd.ones((1, 3))).shape
    (1, 6)
    """

    def __init__(self, axis=-1, prefix=None, params=None):
        super().__init__(prefix, params)
        self.axis = axis

    def forward(self, x):
        """The outputs of all children, joined."""
        return nd.concat(*(block(x) for block in self), dim=self.axis)


class HybridConcurrent(HybridSequential):
    """The same of hybrid blocks: they hybridize as one."""

    def __init__(self, axis=-1, prefix=None, params=None):
        super().__init__(prefix, params)
        self.axis = axis

    def hybrid_forward(self, F, x):
        """The outputs of all children, joined."""
        return F.concat(*(block(x) for block in self), dim=self.axis)


class Identity(HybridBlock):
    """Gives its input: the branch that does nothing, beside others."""

    def hybrid_forward(self, F, x):
        """Give the input."""
        return x


def __dir__():
    return own_names(globals())
