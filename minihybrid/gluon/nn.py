"""Chapter 10. Layers: blocks that are used again and again.

Takes:   sizes; the number of inputs may be left to the first call.
Gives:   `Sequential`, `HybridSequential`, `Dense`, `Embedding`, `Flatten`, `Dropout`,
         `Lambda`, `HybridLambda`; and the layers of the files beside this one.

What is left out: recurrent layers.
"""

from minihybrid import nd, sym
from minihybrid.gluon.activations import (
    ELU,
    GELU,
    SELU,
    Activation,
    LeakyReLU,
    PReLU,
    Swish,
    activation_of,
)
from minihybrid.gluon.block import Block, HybridBlock
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
from minihybrid.mistake import misfit
from minihybrid.op import AttrError, boolean, checked, count, length, shape
from minihybrid.op import rate as probability

__all__ = ["ELU", "GELU", "SELU", "Activation", "AvgPool1D", "AvgPool2D", "AvgPool3D",
           "BatchNorm", "BatchNormReLU", "Block", "Conv1D", "Conv1DTranspose", "Conv2D",
           "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Dense", "Dropout",
           "Embedding", "Flatten", "GlobalAvgPool1D", "GlobalAvgPool2D",
           "GlobalAvgPool3D", "GlobalMaxPool1D", "GlobalMaxPool2D", "GlobalMaxPool3D",
           "GroupNorm", "HybridBlock", "HybridLambda", "HybridSequential",
           "InstanceNorm", "Lambda", "LayerNorm", "LeakyReLU", "MaxPool1D", "MaxPool2D",
           "MaxPool3D", "PReLU", "ReflectionPad2D", "Sequential", "Swish"]


class _Stack:
    """What Sequential and HybridSequential share."""

    def add(self, *blocks):
        """Append blocks."""
        for block in blocks:
            self.register_child(block)

    def __len__(self):
        return len(self._children)

    def __iter__(self):
        return iter(self._children.values())

    def __getitem__(self, key):
        blocks = list(self._children.values())[key]
        if not isinstance(blocks, list):
            return blocks
        part = type(self)(prefix=self._prefix)
        part.add(*blocks)
        return part


class Sequential(_Stack, Block):
    """Blocks one after the other.

    >>> net = Sequential(); net.add(Dense(2), Dense(1)); len(net)
    2
    """

    def forward(self, x, *args):
        """The output of the last block."""
        for block in self._children.values():
            x = block(x, *args)
            x, args = (x[0], x[1:]) if isinstance(x, (list, tuple)) and x else (x, ())
        return (x, *args) if args else x


class HybridSequential(_Stack, HybridBlock):
    """Hybrid blocks one after the other: they hybridize as one."""

    def hybrid_forward(self, F, x, *args):
        """The output of the last block."""
        for block in self._children.values():
            x = block(x, *args)
            x, args = (x[0], x[1:]) if isinstance(x, (list, tuple)) and x else (x, ())
        return (x, *args) if args else x


class Dense(HybridBlock):
    """A fully connected layer: y = activation(x W^T + b).

    Shapes:  (N, in_units) -> (N, units); with flatten=True all axes but the first are
             joined, else all axes but the last are kept.
    """

    def __init__(self, units, activation=None, use_bias=True, flatten=True,
                 dtype="float32", weight_initializer=None, bias_initializer="zeros",
                 in_units=0, prefix=None, params=None):
        super().__init__(prefix, params)
        units = checked("Dense", "units", units, count)
        in_units = checked("Dense", "in_units", in_units, length)
        activation = activation_of("Dense", activation)
        use_bias = checked("Dense", "use_bias", use_bias, boolean)
        self._units = units
        self._flatten = checked("Dense", "flatten", flatten, boolean)
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=(units, in_units), init=weight_initializer, dtype=dtype,
                allow_deferred_init=True)
            self.bias = self.params.get(
                "bias", shape=(units,), init=bias_initializer, dtype=dtype,
                allow_deferred_init=True) if use_bias else None
            self.act = Activation(activation, prefix=f"{activation}_") if activation \
                else None

    def hybrid_forward(self, F, x, weight, bias=None):
        """Apply the layer."""
        out = F.FullyConnected(x, weight, bias, no_bias=bias is None, name="fwd",
                               num_hidden=self._units, flatten=self._flatten)
        return out if self.act is None else self.act(out)

    def __repr__(self):
        units, inputs = self.weight.shape
        return f"Dense({inputs or None} -> {units}, {self.act or 'linear'})"


class Embedding(HybridBlock):
    """A row of learnt numbers for each whole number.

    Shapes:  (...) indices below input_dim -> (..., output_dim); an index outside means
             the nearest row.
    The gradient is dense; `sparse_grad` is accepted and changes nothing.

    >>> words = Embedding(10, 4); words.initialize(); words(nd.array([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(self, input_dim, output_dim, dtype="float32", weight_initializer=None,
                 sparse_grad=False, prefix=None, params=None):
        super().__init__(prefix, params)
        input_dim = checked("Embedding", "input_dim", input_dim, count)
        output_dim = checked("Embedding", "output_dim", output_dim, count)
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim,
                        "dtype": dtype, "sparse_grad": sparse_grad}
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=(input_dim, output_dim), init=weight_initializer,
                dtype=dtype, allow_deferred_init=True)

    def hybrid_forward(self, F, x, weight):
        """Look the rows up."""
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
    """In training, sets each number to 0 with probability `rate` and scales the rest.

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
            raise AttrError(f"Lambda: {function!r} is neither a function nor the name "
                            "of an operator")
    return None, function


class Lambda(Block):
    """A function, or the name of an nd operator, as a block."""

    def __init__(self, function, prefix=None):
        super().__init__(prefix)
        found, self._func_name = _named_function(function, nd)
        self._func = getattr(nd, function) if found is None else found

    def forward(self, *args):
        """Call the function."""
        return self._func(*args)

    def __repr__(self):
        return f"Lambda({self._func_name})"


class HybridLambda(HybridBlock):
    """A function f(F, x), or the name of an operator, as a hybrid block."""

    def __init__(self, function, prefix=None):
        super().__init__(prefix)
        found, self._func_name = _named_function(function, nd, sym)
        said = found is not None and misfit("HybridLambda", found, ("F", "x"), {})
        if said and "at most" in said:
            raise AttrError(f"{said}; the function is called with F and the input, so "
                            "write f(F, x)")
        self._func = (lambda F, *args: getattr(F, function)(*args)) \
            if found is None else found

    def hybrid_forward(self, F, x, *args):
        """Call the function with F."""
        return self._func(F, x, *args)

    def __repr__(self):
        return f"HybridLambda({self._func_name})"
