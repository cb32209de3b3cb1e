"""Activation functions as layers.

Defines: `LeakyReLU`, `PReLU`, `ELU`, `SELU`, `GELU`, `Swish`.

Not supported: activations of later MXNet releases (SiLU is Swish).
"""

from minihybrid.core.block import HybridBlock
from minihybrid.core.op import checked, count, finite, not_negative
from minihybrid.gluon.init import Constant

QUARTER = Constant(0.25)


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
