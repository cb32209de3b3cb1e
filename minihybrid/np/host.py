"""The functions of `mx.np` that call NumPy.

They have data-dependent shapes or no kernel, so they reject symbols. Those that MXNet
differentiates are operators with gradients. While recording, all others reject arrays on
the tape, unless their results are integers, bools or piecewise constant. Results are
float32 where NumPy turns float32 into float64. Arrays on a device are copied to the CPU,
and the results back.
Not supported: the rest of NumPy. Use `x.asnumpy()`.
"""

import numpy as onp

from minihybrid.core.array import NDArray
from minihybrid.core.call_errors import misfit
from minihybrid.core.context import CPU
from minihybrid.core.op import AttrError, HybridError, Op, ShapeError, Spec
from minihybrid.core.placement import context_of, copy_to
from minihybrid.np.array import ndarray
from minihybrid.np.public import FUNCTIONS, flat, guarded, lengths, on_tape, public, wrong_value
from minihybrid.ops import OPS
from minihybrid.ops.infix import Unknown, Value, is_number
from minihybrid.ops.linalg import LinAlgError
from minihybrid.ops.shapes import floating

NAMES = """allclose array_equal bincount count_nonzero histogram isclose lcm median
    nonzero percentile quantile searchsorted unique argwhere floor_divide isin
    cov corrcoef interp""".split()
LINALG = "cond eigh eigvals matrix_rank pinv qr".split()
STEPS = {"np.floor_divide"}  # piecewise constant: the derivative is 0


def refuse_symbol(name):
    """Raise the error for a NumPy function in a trace."""
    raise HybridError(
        f"{name}: NumPy computes it, so a Symbol has no place "
        "in it; call it outside of the hybridized block"
    )


def computed_by_numpy(name, function):
    """Return a NumPy function for our arrays.

    Raises:  HybridError for symbols and, if the result is a float, for arrays on the tape
             while recording.
    """

    def plain(value):
        if isinstance(value, Value) and value.level:
            refuse_symbol(name)
        if isinstance(value, (list, tuple)):
            return type(value)(map(plain, value))
        if is_number(value) and hasattr(value, "item") and not isinstance(value, NDArray):
            return value.item()  # a NumPy scalar doesn't determine the result's dtype
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
        return ndarray(copy_to(value, context))

    def call(*args, **kwargs):
        if kwargs.get("where", True) is not True:
            raise AttrError(f"{name}: where= would leave elements without a value; use np.where")
        values = flat([*args, *kwargs.values()])
        datas = [v.data for v in values if isinstance(v, NDArray)]
        try:
            out = function(*plain(args), **{key: plain(v) for key, v in kwargs.items()})
        except onp.linalg.LinAlgError as error:
            raise LinAlgError(f"{name}: {error}") from None
        except (ValueError, IndexError) as error:
            raise AttrError(wrong_value(name, call, args, kwargs, str(error))) from None
        except TypeError:
            if text := misfit(name, function, args, kwargs):
                raise AttrError(text) from None
            raise
        is_slope = any(getattr(v, "dtype", onp.dtype(int)).kind == "f" for v in flat(out))
        if is_slope and name not in STEPS and any(map(on_tape, values)):
            raise HybridError(
                f"{name}: it has no gradient, since NumPy computes it; inside record() call it "
                "on x.detach(), or call it outside"
            )
        kinds = [kwargs["dtype"]] if kwargs.get("dtype") else [v.dtype for v in datas]
        kind = onp.dtype(kinds[0]) if kinds else None
        return narrow(out, kind, context_of(datas[0]) if datas else CPU)

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__doc__ = f"NumPy's `{function.__name__}`, outside of tapes and traces."
    return call


for _name in NAMES:
    public(computed_by_numpy(f"np.{_name}", getattr(onp, _name)))


# -- linear algebra with gradients -----------------------------------------------------
def _by_lapack(function):
    """Apply a NumPy function to arrays of any device, in at least float32."""

    def eager(*datas, **attrs):
        kind = floating(onp.result_type(*(d.dtype for d in datas)))
        wide = onp.float64 if kind == onp.float64 else onp.float32
        out = function(*(onp.asarray(d).astype(wide) for d in datas), **attrs)
        many, context = isinstance(out, tuple), context_of(datas[0])
        out = [copy_to(onp.asarray(v, kind, order="C"), context) for v in (out if many else [out])]
        return tuple(out) if many else out[0]

    return eager


def _solve(a, b):
    """Solve A X = B over the last two axes."""
    try:
        return onp.linalg.solve(a, b)
    except onp.linalg.LinAlgError as error:
        raise LinAlgError(f"np.linalg.solve: {error}; no X is A's only answer") from None


def _solve_infer(specs):
    (a, kind), (b, other) = specs
    if len(a) < 2 or a[-1] != a[-2] or len(b) < 2 or b[-2] != a[-1]:
        raise ShapeError(
            f"np.linalg.solve: a of shape {a} and b of shape {b}; needed: (..., M, M) and "
            "(M,) or (..., M, K)"
        )
    batch = onp.broadcast_shapes(a[:-2], b[:-2])
    return specs, [Spec((*batch, *b[-2:]), floating(onp.result_type(kind, other)))]


def _of_batch(gradient, like):
    """Sum a gradient over the axes along which its array was broadcast."""
    more = gradient.ndim - like.ndim
    axes = [i for i, n in enumerate(gradient.shape) if i < more or n != like.shape[i - more] == 1]
    return FUNCTIONS["sum"](gradient, axis=tuple(axes)).reshape(like.shape) if axes else gradient


def _transposed(a):
    return FUNCTIONS["swapaxes"](a, -1, -2)


def _in_np(gradient):
    """Adapt a gradient written with np's functions to nd arrays."""

    def grad(g, out, *inputs, **attrs):
        def np_of(value):
            if isinstance(value, tuple):
                return tuple(map(np_of, value))
            return value if value is None else value.as_np_ndarray()

        grads = gradient(np_of(g), np_of(out), *map(np_of, inputs), **attrs)
        return tuple(v.as_nd_ndarray() for v in grads)

    return grad


@_in_np
def _solve_grad(g, out, a, b):
    """Return the gradients of A X = B: G' = A^-T G for B, and -G' X^T for A."""
    db = SOLVE(_transposed(a), g)
    return _of_batch(-(db @ _transposed(out)), a), _of_batch(db, b)


SOLVE = Op(
    name="np.linalg.solve",
    inputs=("a", "b"),
    anywhere=True,
    infer=_solve_infer,
    eager=_by_lapack(_solve),
    grad=_solve_grad,
    doc="X of A X = B.",
)


def _svd_infer(specs):
    (old, kind), *_ = specs
    if len(old) < 2:
        raise ShapeError(f"np.linalg.svd: matrices (..., M, N) are needed, found {old}")
    *batch, m, n = old
    k = min(m, n)
    shapes = (*batch, m, k), (*batch, k), (*batch, k, n)
    return specs, [Spec(s, floating(kind)) for s in shapes]


@_in_np
def _svd_grad(g, out, a):
    """Return the gradient of A = U S V^T from the factors and the singular values.

    Source:  Townsend, Differentiating the Singular Value Decomposition (2016).
    """
    (gu, gs, gv), (u, s, vt) = g, out
    full = FUNCTIONS["full_like"]
    gu, gs, gv = (full(v, 0) if x is None else x for x, v in zip((gu, gs, gv), out, strict=True))
    one = s.constant(onp.eye(s.shape[-1], dtype=s.dtype))
    squares = row_of(s * s)
    far = (1 - one) / (squares - _transposed(squares) + one)  # 1 / (s_k^2 - s_j^2)
    row, column = row_of(s), _transposed(row_of(s))
    left, right = _transposed(u) @ gu, vt @ _transposed(gv)
    left, right = (far * (x - _transposed(x)) for x in (left, right))
    core = left * row + column * right + one * row_of(gs)
    grad = u @ core @ vt
    m, n = a.shape[-2:]
    if m > n:  # the part outside of U's column space
        rest = gu / row
        grad = grad + (rest - u @ (_transposed(u) @ rest)) @ vt
    if n > m:
        rest = gv / column
        grad = grad + u @ (rest - (rest @ _transposed(vt)) @ vt)
    return (grad,)


def row_of(values):
    """(..., K) -> (..., 1, K)."""
    return FUNCTIONS["expand_dims"](values, -2)


SVD = Op(
    name="np.linalg.svd",
    inputs=("a",),
    n_outputs=3,
    anywhere=True,
    infer=_svd_infer,
    eager=_by_lapack(lambda a: tuple(onp.linalg.svd(a, full_matrices=False))),
    grad=_svd_grad,
    doc="U, the singular values S, and V^T of A = U S V^T.",
)


def det(a):
    """Return the determinant of square matrices (..., N, N)."""
    return OPS["_linalg_det"](a).reshape(lengths(a)[:-2])


def slogdet(a):
    """Return the sign of the determinant and the logarithm of its absolute value."""
    return tuple(v.reshape(lengths(a)[:-2]) for v in OPS["_linalg_slogdet"](a))


def inv(a):
    """Return the inverse of square matrices (..., N, N)."""
    return OPS["_linalg_inverse"](a)


def cholesky(a):
    """Return the Cholesky factor L of positive definite matrices A = L L^T."""
    return OPS["_linalg_potrf"](a)


def solve(a, b):
    """Solve A X = B for X: (..., M, M) and (M,) or (..., M, K)."""
    if isinstance(a, Value) and a.level or isinstance(b, Value) and b.level:
        refuse_symbol("np.linalg.solve")
    if len(lengths(b)) == 1:
        return SOLVE(a, b.reshape(-1, 1)).squeeze(-1)
    return SOLVE(a, b)


def svd(a, full_matrices=False, compute_uv=True):
    """Return U, the singular values S, and V^T of A = U S V^T, reduced as in MXNet.

    Shapes:  A (..., M, N), U (..., M, K), S (..., K), V^T (..., K, N), K = min(M, N); with
             full_matrices U (..., M, M) and V^T (..., N, N), which have no gradient if M
             isn't N.
    """
    if isinstance(a, Value) and a.level:
        refuse_symbol("np.linalg.svd")
    if full_matrices and compute_uv and len(set(lengths(a)[-2:])) > 1:
        return _WHOLE_SVD(a)
    factors = SVD(a)
    return factors if compute_uv else factors[1]


_WHOLE_SVD = computed_by_numpy("np.linalg.svd", lambda a: tuple(onp.linalg.svd(a)))


def norm(x, ord=None, axis=None, keepdims=False):
    """Return the norm of a vector or matrix: `np.linalg.norm`."""
    if axis is None and ord not in (None, "fro") and len(lengths(x)) != 1:
        axis = tuple(range(len(lengths(x))))
    flag = -1 if ord not in (None, "fro") else -2 if axis is None else 1
    return OPS["_npi_norm"](
        x, ord=2 if flag != -1 else ord, axis=axis, keepdims=keepdims, flag=flag
    )


class Linalg:
    """The functions of `np.linalg`."""

    def __getattr__(self, name):
        raise AttributeError(Unknown(name, "np.linalg", vars(self)))

    def __init__(self):
        for function in (norm, det, slogdet, inv, cholesky, solve, svd):
            name = function.__name__
            setattr(self, name, guarded(f"np.linalg.{name}", function))
        for name in LINALG:
            whole = f"np.linalg.{name}"
            function = computed_by_numpy(whole, getattr(onp.linalg, name))
            setattr(self, name, guarded(whole, function))
