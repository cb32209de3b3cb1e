"""Chapter 11. The functions of `mx.np` that NumPy itself computes.

Takes:   arrays.
Gives:   arrays in NumPy's shapes, float32 where NumPy says float64 of float32.

Their results' shapes depend on values, or nobody trains through them: they are off the
tape, and a symbol is refused. MXNet, too, hands most of them to NumPy. The numbers of a
device go to the processor for that, and the results back.
What is left out: the rest of NumPy; `x.asnumpy()` opens it.
"""

import numpy as onp

from minihybrid.core.array import NDArray
from minihybrid.core.context import CPU
from minihybrid.core.op import HybridError
from minihybrid.core.placing import placed
from minihybrid.np.array import ndarray
from minihybrid.np.functions import public
from minihybrid.ops.infix import Value

NAMES = """allclose array_equal bincount count_nonzero histogram isclose lcm median
    nonzero percentile quantile searchsorted unique argwhere floor_divide isin
    cov corrcoef interp""".split()
LINALG = """cholesky cond det eigh eigvals inv matrix_rank pinv qr slogdet solve
    svd""".split()


def computed_by_numpy(name, function):
    """The function on arrays of ours.

    Raises:  HybridError for symbols.
    """

    def plain(value):
        if isinstance(value, Value) and value.level:
            raise HybridError(
                f"np.{name}: NumPy computes it, so a Symbol has no place "
                "in it; call it outside of the hybridized block"
            )
        if isinstance(value, (list, tuple)):
            return type(value)(map(plain, value))
        return onp.asarray(value.data) if isinstance(value, NDArray) else value

    def narrow(value, kind, context):
        if isinstance(value, tuple):
            return tuple(narrow(v, kind, context) for v in value)
        if isinstance(value, onp.generic) and value.dtype.kind in "b":
            return bool(value)
        if not isinstance(value, (onp.ndarray, onp.generic)):
            return value
        value = onp.asarray(value)
        wide = value.dtype == onp.float64 and kind != onp.float64
        value = onp.asarray(value, onp.float32 if wide else None, order="C")
        return ndarray(placed(value, context))

    def call(*args, **kwargs):
        given = plain(args)
        kind = next((v.dtype for v in given if isinstance(v, onp.ndarray)), None)
        context = next((v.context for v in args if isinstance(v, NDArray)), CPU)
        return narrow(function(*given, **plain_values(kwargs)), kind, context)

    def plain_values(kwargs):
        return {key: plain(value) for key, value in kwargs.items()}

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"NumPy's `{function.__name__}`, outside of tapes and traces."
    return call


for _name in NAMES:
    public(computed_by_numpy(_name, getattr(onp, _name)))


class Linalg:
    """The functions of `np.linalg`; only `norm` has a gradient."""

    def __init__(self, norm):
        self.norm = norm
        for name in LINALG:
            setattr(self, name, computed_by_numpy(name, getattr(onp.linalg, name)))
