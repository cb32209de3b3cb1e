"""The layers that the core needs; all others are in `minihybrid/gluon`.

Defines: `Sequential`, `HybridSequential`, `Dense`, `Activation`.
"""

from minihybrid.core import sym
from minihybrid.core.block import Block, HybridBlock
from minihybrid.core.op import boolean, checked, count, length, optional
from minihybrid.ops.registry import OPS


class _Stack:
    """Base class of Sequential and HybridSequential."""

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
    """A chain of blocks.

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
    """A chain of hybrid blocks, hybridized as one."""

    def hybrid_forward(self, F, x, *args):
        """The output of the last block."""
        return Sequential.forward(self, x, *args)


class Dense(HybridBlock):
    """A fully connected layer: y = activation(x W^T + b).

    Shapes:  (N, in_units) -> (N, units); with flatten=True all axes but the first are
             joined, else all axes but the last are kept.
    """

    def __init__(
        self,
        units,
        activation=None,
        use_bias=True,
        flatten=True,
        dtype="float32",
        weight_initializer=None,
        bias_initializer="zeros",
        in_units=0,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix, params)
        self._units = units = checked("Dense", "units", units, count)
        in_units = checked("Dense", "in_units", in_units, length)
        activation = activation_of("Dense", activation)
        use_bias = checked("Dense", "use_bias", use_bias, boolean)
        self._flatten = checked("Dense", "flatten", flatten, boolean)
        common = {"dtype": dtype, "allow_deferred_init": True}
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=(units, in_units), init=weight_initializer, **common
            )
            self.bias = None
            if use_bias:
                self.bias = self.params.get("bias", shape=(units,), init=bias_initializer, **common)
            self.act = Activation(activation, prefix=f"{activation}_") if activation else None

    def hybrid_forward(self, F, x, weight, bias=None):
        """Apply the layer."""
        attrs = self._units, bias is None, self._flatten  # num_hidden, no_bias, flatten
        out = F.FullyConnected(x, weight, bias, *attrs, name="fwd")
        return out if self.act is None else self.act(out)

    def __repr__(self):
        units, inputs = self.weight.shape
        return f"Dense({inputs or None} -> {units}, {self.act or 'linear'})"


def activation_of(layer, name):
    """Check the name of a layer's activation; `None` is allowed."""
    return checked(layer, "activation", name, optional(OPS["Activation"].attrs["act_type"][0]))


class Activation(HybridBlock):
    """An activation function by name: relu, sigmoid, tanh, softrelu, softsign."""

    def __init__(self, activation, prefix=None, params=None):
        self._act_type = activation  # before super().__init__, which reads the alias
        super().__init__(prefix, params)
        sym.Activation(sym.var("x"), act_type=activation)  # fails early for a wrong name

    def _alias(self):
        return str(self._act_type)

    def hybrid_forward(self, F, x):
        """Apply the function."""
        return F.Activation(x, self._act_type, name="fwd")

    def __repr__(self):
        return f"Activation({self._act_type})"
