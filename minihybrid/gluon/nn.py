"""Layers: reusable blocks.

Defines: `Sequential`, `HybridSequential`, `Dense`, `Embedding`, `Flatten`, `Dropout`,
         `Lambda`, `HybridLambda`, `LeakyReLU`, `PReLU`, `ELU`, `SELU`, `GELU`, `Swish`, and
         re-exports the layers of the neighboring modules.

The first call infers the number of inputs if it isn't given. Recurrent layers are in
`gluon.rnn`.
"""

from minihybrid.core import lazy, nd, sym
from minihybrid.core.block import Block as Block
from minihybrid.core.block import HybridBlock as HybridBlock
from minihybrid.core.block import SymbolBlock as SymbolBlock
from minihybrid.core.hooks import own_names
from minihybrid.core.layers import Activation as Activation
from minihybrid.core.layers import Dense as Dense
from minihybrid.core.layers import HybridSequential as HybridSequential
from minihybrid.core.layers import Sequential as Sequential
from minihybrid.core.op import AttrError, checked, count, finite, not_negative, shape
from minihybrid.core.op import rate as probability
from minihybrid.gluon.conv_layers import AvgPool1D as AvgPool1D
from minihybrid.gluon.conv_layers import AvgPool2D as AvgPool2D
from minihybrid.gluon.conv_layers import AvgPool3D as AvgPool3D
from minihybrid.gluon.conv_layers import Conv1D as Conv1D
from minihybrid.gluon.conv_layers import Conv1DTranspose as Conv1DTranspose
from minihybrid.gluon.conv_layers import Conv2D as Conv2D
from minihybrid.gluon.conv_layers import Conv2DTranspose as Conv2DTranspose
from minihybrid.gluon.conv_layers import Conv3D as Conv3D
from minihybrid.gluon.conv_layers import Conv3DTranspose as Conv3DTranspose
from minihybrid.gluon.conv_layers import GlobalAvgPool1D as GlobalAvgPool1D
from minihybrid.gluon.conv_layers import GlobalAvgPool2D as GlobalAvgPool2D
from minihybrid.gluon.conv_layers import GlobalAvgPool3D as GlobalAvgPool3D
from minihybrid.gluon.conv_layers import GlobalMaxPool1D as GlobalMaxPool1D
from minihybrid.gluon.conv_layers import GlobalMaxPool2D as GlobalMaxPool2D
from minihybrid.gluon.conv_layers import GlobalMaxPool3D as GlobalMaxPool3D
from minihybrid.gluon.conv_layers import MaxPool1D as MaxPool1D
from minihybrid.gluon.conv_layers import MaxPool2D as MaxPool2D
from minihybrid.gluon.conv_layers import MaxPool3D as MaxPool3D
from minihybrid.gluon.conv_layers import ReflectionPad2D as ReflectionPad2D
from minihybrid.gluon.init import Constant
from minihybrid.gluon.norm_layers import BatchNorm as BatchNorm
from minihybrid.gluon.norm_layers import BatchNormReLU as BatchNormReLU
from minihybrid.gluon.norm_layers import GroupNorm as GroupNorm
from minihybrid.gluon.norm_layers import InstanceNorm as InstanceNorm
from minihybrid.gluon.norm_layers import LayerNorm as LayerNorm

QUARTER = Constant(0.25)


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
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype}
        self._kwargs["sparse_grad"] = sparse_grad
        common = {"dtype": dtype, "init": weight_initializer, "allow_deferred_init": True}
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(input_dim, output_dim), **common)

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


# -- activations -----------------------------------------------------------------------
class LeakyReLU(HybridBlock):
    """x if positive, else alpha x.

    >>> LeakyReLU(0.1)
    LeakyReLU(0.1)
    """

    def __init__(self, alpha, prefix=None, params=None):
        super().__init__(prefix, params)
        self._alpha = checked("LeakyReLU", "alpha", alpha, not_negative)

    def hybrid_forward(self, F, x):
        """Apply the function."""
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")

    def __repr__(self):
        return f"LeakyReLU({self._alpha})"


class PReLU(HybridBlock):
    """x if positive, else alpha x, with one learned alpha or one per channel.

    Source:  He et al., ICCV 2015.
    """

    def __init__(self, alpha_initializer=QUARTER, in_channels=1, prefix=None, params=None):
        super().__init__(prefix, params)
        in_channels = checked("PReLU", "in_channels", in_channels, count)
        self.alpha = self.params.get("alpha", shape=(in_channels,), init=alpha_initializer)

    def hybrid_forward(self, F, x, alpha):
        """Apply the function."""
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(HybridBlock):
    """x if positive, else alpha (e^x - 1).

    Source:  Clevert, Unterthiner and Hochreiter, ICLR 2016.
    """

    def __init__(self, alpha=1.0, prefix=None, params=None):
        super().__init__(prefix, params)
        self._alpha = checked("ELU", "alpha", alpha, finite)

    def hybrid_forward(self, F, x):
        """Apply the function."""
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """ELU, scaled so that layers preserve mean 0 and standard deviation 1.

    Source:  Klambauer et al., NeurIPS 2017.
    """

    def hybrid_forward(self, F, x):
        """Apply the function."""
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(HybridBlock):
    """x Phi(x), where Phi is the cumulative distribution function of the standard normal.

    Source:  Hendrycks and Gimpel, arXiv 1606.08415.
    """

    def hybrid_forward(self, F, x):
        """Apply the function."""
        return F.LeakyReLU(x, act_type="gelu", name="fwd")


class Swish(HybridBlock):
    """x sigmoid(beta x).

    Source:  Ramachandran, Zoph and Le, arXiv 1710.05941.
    """

    def __init__(self, beta=1.0, prefix=None, params=None):
        super().__init__(prefix, params)
        self._beta = checked("Swish", "beta", beta, finite)

    def hybrid_forward(self, F, x):
        """Apply the function."""
        return x * F.sigmoid(self._beta * x, name="fwd")


# -- functions -------------------------------------------------------------------------
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
        if message and "too many" in message:
            raise AttrError(
                f"{message}; the function is called with F and the input, so write f(F, x)"
            )
        self._func = (lambda F, *args: getattr(F, function)(*args)) if callee is None else callee

    def hybrid_forward(self, F, x, *args):
        """Call the function with F."""
        return self._func(F, x, *args)

    def __repr__(self):
        return f"HybridLambda({self._func_name})"


__getattr__ = lazy.face(globals(), {})  # for errors that suggest a layer in place of PyTorch's
LAYERS = {name: kind for name, kind in globals().items() if isinstance(kind, type)}
__all__ = [name for name, kind in LAYERS.items() if issubclass(kind, Block)]
__dir__ = own_names(globals())
