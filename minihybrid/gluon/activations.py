"""Chapter 15. Activation functions as layers.

Takes:   the name of a function.
Gives:   `Activation`.

What is left out: activations with parameters.
"""

from minihybrid import sym
from minihybrid.gluon.block import HybridBlock


class Activation(HybridBlock):
    """An activation function by name: relu, sigmoid, tanh, softrelu, softsign."""

    def __init__(self, activation, prefix=None, params=None):
        self._act_type = activation  # before the parent asks for the alias
        super().__init__(prefix, params)
        sym.Activation(
            sym.var("x"), act_type=activation
        )  # a wrong name fails here, early

    def _alias(self):
        return str(self._act_type)

    def hybrid_forward(self, F, x):
        """Apply the function."""
        return F.Activation(x, act_type=self._act_type, name="fwd")

    def __repr__(self):
        return f"Activation({self._act_type})"
