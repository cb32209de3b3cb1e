"""Layers: reusable blocks.

Defines: `Sequential`, `HybridSequential`, `Dense`, `Embedding`, `Flatten`, `Dropout`,
         `Lambda`, `HybridLambda`, and re-exports the layers of the neighboring modules.

The first call infers the number of inputs if it isn't given. Recurrent layers are in
`gluon.rnn`.
"""

import sys

from minihybrid.core import hooks, nd, sym
from minihybrid.core.block import Block, HybridBlock, SymbolBlock
from minihybrid.core.hooks import own_names
from minihybrid.core.layers import Activation, Dense, HybridSequential, Sequential
from minihybrid.core.op import AttrError, checked, count, shape
from minihybrid.core.op import rate as probability
from minihybrid.gluon.activations import ELU, GELU, SELU, LeakyReLU, PReLU, Swish
from minihybrid.gluon.conv_layers import (
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    ReflectionPad2D,
)
from minihybrid.gluon.norm_layers import (
    BatchNorm,
    BatchNormReLU,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
)

__all__ = [
    "ELU",
    "GELU",
    "SELU",
    "Activation",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "BatchNorm",
    "BatchNormReLU",
    "Block",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "GroupNorm",
    "HybridBlock",
    "HybridLambda",
    "HybridSequential",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "LeakyReLU",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "PReLU",
    "ReflectionPad2D",
    "Sequential",
    "Swish",
    "SymbolBlock",
]


class Embedding(HybridBlock):
    """Look up a learned vector for each index.

    Shapes:  (...) indices below input_dim -> (..., output_dim). An index out of range
             selects the nearest row.
    The gradient is dense, and `sparse_grad` is ignored.

    >>> words = Embedding(10, 4); words.initialize(); words(nd.array([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        input_dim,
        output_dim,
        dtype="float32",
        weight_initializer=None,
        sparse_grad=False,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix, params)
        input_dim = checked("Embedding", "input_dim", input_dim, count)
        output_dim = checked("Embedding", "output_dim", output_dim, count)
        self._kwargs = {
            "input_dim": input_dim,
            "output_dim": output_dim,
            "dtype": dtype,
            "sparse_grad": sparse_grad,
        }
        with self.name_scope():
            self.weight = self.params.get(
                "weight",
                shape=(input_dim, output_dim),
                init=weight_initializer,
                dtype=dtype,
                allow_deferred_init=True,
            )

    def hybrid_forward(self, F, x, weight):
        """Look up the rows."""
        return F.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self):
        return "Embedding({input_dim} -> {output_dim}, {dtype})".format(**self._kwargs)


class Flatten(HybridBlock):
    """(N, a, b, ...) -> (N, a * b * ...)."""

    def hybrid_forward(self, F, x):
        """Apply the layer."""
        return F.Flatten(x)

    def __repr__(self):
        return "Flatten"


class Dropout(HybridBlock):
    """In training, set each element to 0 with probability `rate` and scale the others.

    Source:  Srivastava et al., JMLR 2014.
    """

    def __init__(self, rate, axes=(), prefix=None, params=None):
        super().__init__(prefix, params)
        self._rate = checked("Dropout", "rate", rate, probability)
        self._axes = checked("Dropout", "axes", axes, shape)

    def hybrid_forward(self, F, x):
        """Apply the layer."""
        return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd")

    def __repr__(self):
        return f"Dropout(p = {self._rate}, axes={self._axes})"


def _named_function(function, *spaces):
    if callable(function):
        return function, getattr(function, "__name__", "function")
    for space in spaces:
        if not (isinstance(function, str) and hasattr(space, function)):
            raise AttrError(
                f"Lambda: {function!r} is neither a function nor the name of an operator"
            )
    return None, function


class Lambda(Block):
    """A function, or the name of an nd operator, as a block."""

    def __init__(self, function, prefix=None):
        super().__init__(prefix)
        callee, self._func_name = _named_function(function, nd)
        self._func = getattr(nd, function) if callee is None else callee

    def forward(self, *args):
        """Call the function."""
        return self._func(*args)

    def __repr__(self):
        return f"Lambda({self._func_name})"


class HybridLambda(HybridBlock):
    """A function f(F, x), or the name of an operator, as a hybrid block."""

    def __init__(self, function, prefix=None):
        from minihybrid.core.call_errors import misfit

        super().__init__(prefix)
        callee, self._func_name = _named_function(function, nd, sym)
        message = callee is not None and misfit("HybridLambda", callee, ("F", "x"), {})
        if message and "at most" in message:
            raise AttrError(
                f"{message}; the function is called with F and the input, so write f(F, x)"
            )
        self._func = (lambda F, *args: getattr(F, function)(*args)) if callee is None else callee

    def hybrid_forward(self, F, x, *args):
        """Call the function with F."""
        return self._func(F, x, *args)

    def __repr__(self):
        return f"HybridLambda({self._func_name})"


def __getattr__(name):
    """Raise an AttributeError that suggests our name for a PyTorch layer."""
    message = hooks.instead("nn", name) or f"module '{__name__}' has no attribute '{name}'"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


__dir__ = own_names(globals())
