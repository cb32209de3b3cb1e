"""Linear algebra: matrix products, triangular solves, Cholesky, inverse, determinant.

Operands have shape (..., M, N): the last two axes are matrices, the others the batch.
Three primitives factorize; everything else, including all gradients, decomposes into
matrix products.
Source:  Giles, Collected Matrix Derivative Results (2008), for the gradients.
Not supported: eigenvalues and the LQ factorization.
"""

import math
from functools import partial

import numpy as np

from minihybrid.core.op import HybridError, ShapeError, boolean, integer, number
from minihybrid.ops.elementwise import exp, in_dtype_of, log, where
from minihybrid.ops.filled import arange, make
from minihybrid.ops.gpu.linalg import inverse_gpu, slogdet_gpu
from minihybrid.ops.layout import expand_dims, swapaxes
from minihybrid.ops.loops import T, add_up, each, loops, store
from minihybrid.ops.neural import batch_dot, matmul
from minihybrid.ops.ordering import eye
from minihybrid.ops.reduce import sum_
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import axis_of, floating, forward, merge
from minihybrid.ops.tiling import diagonal, moveaxis, put_diagonal, square_of


class LinAlgError(HybridError, ArithmeticError):
    """A matrix can't be factorized."""


def _square(op, old):
    if len(old) < 2 or old[-1] != old[-2]:
        raise ShapeError(f"{op}: square matrices (..., N, N) are needed, found {old}")
    return old


def _in_floats(function):
    """Make a function accept integers and float16, which LAPACK doesn't support."""

    def eager(data, *more, **attrs):
        kind = floating(data.dtype)
        wide = np.float64 if kind == np.float64 else np.float32
        out = function(*(v.astype(wide) for v in (data, *more)), **attrs)
        return tuple(o.astype(kind) for o in out) if isinstance(out, tuple) else out.astype(kind)

    return eager


def _square_infer(name):
    """Return the shape rule of functions of square matrices."""
    return forward(partial(_square, name), dtype=floating)


def transposed(a):
    """Transpose the last two axes."""
    return swapaxes(a, dim1=-1, dim2=-2)


# -- triangles -------------------------------------------------------------------------
def _triangle_expand(specs, data, lower, offset):
    rows, columns = (
        make(data, arange, start=0, stop=n, dtype="int64") for n in specs[0].shape[-2:]
    )
    right = expand_dims(columns, axis=0).broadcast_sub(expand_dims(rows, axis=1))
    return where(right <= offset if lower else right >= offset, data, data.zeros_like())


def _matrices(old):
    if len(old) < 2:
        raise ShapeError(f"linalg: matrices are needed, found shape {old}")
    return old


triangle = register(
    "_triangle",
    infer=forward(lambda old, **_: _matrices(old)),
    attrs={"lower": (boolean, True), "offset": (integer, 0)},
    expand=_triangle_expand,
    doc="The numbers on one side of a diagonal, and zeros on the other.",
)


# -- products --------------------------------------------------------------------------
def _gemm_rule(a, b, transpose_a, transpose_b, axis):
    if min(len(a), len(b)) < 2:
        raise ShapeError(f"linalg_gemm2: matrices (..., M, N) are needed, found {a} and {b}")
    axis = axis_of("linalg_gemm2", axis, len(a)) - len(a)
    (*left, k), (*right, n) = a, b
    m, left = left.pop(axis + 1 if axis < -1 else -1), left
    k2, right = right.pop(axis + 1 if axis < -1 else -1), right
    m, k = (k, m) if transpose_a else (m, k)
    k2, n = (n, k2) if transpose_b else (k2, n)
    if k != k2 or left != right or len(a) != len(b):
        raise ShapeError(
            f"linalg_gemm2: {a} times {b} does not work: the inner lengths {k} and {k2}, and the "
            "axes before them, must be equal"
        )
    left.insert(len(left) + axis + 2, m)
    return (*left, n)


def _gemm2_expand(specs, a, b, transpose_a, transpose_b, alpha, axis):
    n = len(specs[0].shape)
    moved = axis not in (-2, n - 2)
    if moved:
        a, b = (moveaxis(v, source=axis, destination=-2) for v in (a, b))
    times = matmul if n == 2 else batch_dot
    out = times(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    out = out if alpha == 1 else out * alpha
    return moveaxis(out, source=-2, destination=axis) if moved else out


TRANSPOSES = {"transpose_a": (boolean, False), "transpose_b": (boolean, False)}
gemm2 = register(
    "_linalg_gemm2",
    "linalg_gemm2",
    inputs=("A", "B"),
    attrs={**TRANSPOSES, "alpha": (number, 1.0), "axis": (integer, -2)},
    infer=forward(lambda a, b, alpha, **kw: _gemm_rule(a, b, **kw), "linalg_gemm2"),
    expand=_gemm2_expand,
    doc="alpha A B; `axis` holds the rows.",
)
gemm = register(
    "_linalg_gemm",
    "linalg_gemm",
    inputs=("A", "B", "C"),
    attrs={**TRANSPOSES, "alpha": (number, 1.0), "beta": (number, 1.0), "axis": (integer, -2)},
    infer=forward(
        lambda a, b, c, alpha, beta, **kw: merge("linalg_gemm", "C", c, _gemm_rule(a, b, **kw)),
        "linalg_gemm",
    ),
    expand=lambda specs, a, b, c, beta, **kw: gemm2(a, b, **kw) + c * beta,
    doc="alpha A B + beta C.",
)
syrk = register(
    "_linalg_syrk",
    "linalg_syrk",
    inputs=("A",),
    attrs={"transpose": (boolean, False), "alpha": (number, 1.0)},
    infer=forward(lambda a, transpose, alpha: (*a[:-2], *(a[-1:] if transpose else a[-2:-1]) * 2)),
    expand=lambda specs, a, transpose, alpha: gemm2(
        a, a, transpose_a=transpose, transpose_b=not transpose, alpha=alpha
    ),
    doc="alpha A A^T, or with transpose alpha A^T A.",
)


def _trmm_expand(specs, a, b, transpose, rightside, lower, alpha):
    a = triangle(a, lower=lower)
    if rightside:
        return gemm2(b, a, transpose_b=transpose, alpha=alpha)
    return gemm2(a, b, transpose_a=transpose, alpha=alpha)


def _triangular_rule(a, b, rightside=False, **_):
    n = (b[-1] if rightside else b[-2]) if len(b) > 1 else None
    if _square("linalg_trmm", a)[-1] != n or a[:-2] != b[:-2]:
        raise ShapeError(
            f"linalg_trmm: a triangle {a} and {b} don't fit: with rightside={rightside}, matrices "
            f"with {'columns' if rightside else 'rows'} of the triangle's length are needed"
        )
    return b


TRIANGULAR = {
    "transpose": (boolean, False),
    "rightside": (boolean, False),
    "lower": (boolean, True),
    "alpha": (number, 1.0),
}
trmm = register(
    "_linalg_trmm",
    "linalg_trmm",
    inputs=("A", "B"),
    attrs=TRIANGULAR,
    infer=forward(_triangular_rule, "linalg_trmm"),
    expand=_trmm_expand,
    doc="alpha A B, or with rightside alpha B A, where A is a triangle.",
)


# -- solving ---------------------------------------------------------------------------
def _solve_eager(a, b, *, lower, transpose):
    with np.errstate(all="ignore"):
        a = (np.tril if lower else np.triu)(a)
        out, rows = np.empty_like(b), range(a.shape[-1])
        a = a.swapaxes(-1, -2) if transpose else a
        forwards = lower != transpose
        for done, r in enumerate(rows if forwards else reversed(rows)):
            past = slice(0, done) if forwards else slice(r + 1, None)
            known_part = np.matmul(a[..., r : r + 1, past], out[..., past, :])
            out[..., r : r + 1, :] = (b[..., r : r + 1, :] - known_part) / a[
                ..., r : r + 1, r : r + 1
            ]
    return out


def _solve_lengths(a, b, out, lower, transpose):
    n, m = b.shape[-2:]
    return b.size // max(n * m, 1), n, m, lower != transpose, transpose


def _solve_one(a, b, out, batch, r, j, n, m, forwards, transpose):
    """Solve for row r of column j, given the rows before it."""
    total = T(b[(batch * n + r) * m + j])
    for c in range(0 if forwards else r + 1, r if forwards else n):
        total -= T(a[_entry(batch, r, c, n, transpose)]) * out[(batch * n + c) * m + j]
    return total / T(a[_entry(batch, r, r, n, transpose)])


@loops(_solve_lengths)
def _solve_cpu(a, b, out, count, n, m, forwards, transpose):
    for batch in range(count):
        for step in range(n):
            r = step if forwards else n - 1 - step
            for j in range(m):
                x = _solve_one(a, b, out, batch, r, j, n, m, forwards, transpose)
                out[(batch * n + r) * m + j] = x


@loops(_solve_lengths)
def _solve_gpu(a, b, out, count, n, m, forwards, transpose):
    """One thread per column: the columns are independent."""
    for batch, j in each(count, m):
        for step in range(n):
            r = step if forwards else n - 1 - step
            x = _solve_one(a, b, out, batch, r, j, n, m, forwards, transpose)
            out[(batch * n + r) * m + j] = x


def _entry(batch, r, c, n, transpose):
    """Return the flat index of element (r, c) of a matrix, or of its transpose."""
    return batch * (n * n) + (c * n + r if transpose else r * n + c)


def _solve_grad(g, out, a, b, lower, transpose):
    a = in_dtype_of(out, a)
    db = solve(a, g, lower=lower, transpose=not transpose)
    da = gemm2(out, db, transpose_b=True) if transpose else gemm2(db, out, transpose_b=True)
    return -triangle(da, lower=lower), db


solve = register(
    "_solve_triangle",
    inputs=("A", "B"),
    eager=_in_floats(_solve_eager),
    cpu=_solve_cpu,
    gpu=_solve_gpu,
    grad=_solve_grad,
    infer=forward(_triangular_rule, "linalg_trsm", floating),
    attrs={"lower": (boolean, True), "transpose": (boolean, False)},
    doc="X of A X = B for triangles A, row after row.",
)


def _trsm_expand(specs, a, b, transpose, rightside, lower, alpha):
    if rightside:  # X A = B is A^T X^T = B^T
        out = transposed(solve(a, transposed(b), lower=lower, transpose=not transpose))
    else:
        out = solve(a, b, lower=lower, transpose=transpose)
    return out if alpha == 1 else out * alpha


trsm = register(
    "_linalg_trsm",
    "linalg_trsm",
    inputs=("A", "B"),
    attrs=TRIANGULAR,
    infer=forward(_triangular_rule, "linalg_trsm", floating),
    expand=_trsm_expand,
    doc="X of A X = alpha B, or with rightside X A = alpha B, where A is a triangle.",
)


# -- Cholesky --------------------------------------------------------------------------
def _cholesky_eager(data):
    try:
        return np.linalg.cholesky(data)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg_potrf: a matrix is not positive definite, so it has "
            "no Cholesky factor; add a little to its diagonal"
        ) from None


@loops(lambda data, out: (data.size // max(data.shape[-1] ** 2, 1), data.shape[-1]))
def _cholesky_loops(data, out, count, n):
    """Also used on a GPU: memory traffic doesn't depend on the threads per matrix."""
    for batch in each(count):
        at = batch * (n * n)
        for r in range(n):
            for c in range(n):
                total = T(0)
                for p in range(c if c <= r else 0):
                    total = add_up(total, out[at + r * n + p] * out[at + c * n + p])
                total = T(data[at + r * n + c] - total) if c <= r else T(0)
                out[at + r * n + c] = (
                    total if c > r else np.sqrt(total) if c == r else total / out[at + c * n + c]
                )


def _cholesky_grad(g, out, data):
    """For A = L L^T, with P the lower triangle of L^T G, halved on the diagonal: the
    symmetrized L^-T P L^-1."""
    product = gemm2(out, g, transpose_a=True)
    half = triangle(product, offset=-1)
    ends = diagonal(product, axis1=-2, axis2=-1) * 0.5
    half = half + put_diagonal(ends, half, axis1=-2, axis2=-1)
    inner = solve(out, transposed(solve(out, half, transpose=True)), transpose=True)
    return ((inner + transposed(inner)) * 0.5,)


potrf = register(
    "_linalg_potrf",
    "linalg_potrf",
    inputs=("A",),
    eager=_in_floats(_cholesky_eager),
    cpu=_cholesky_loops,
    grad=_cholesky_grad,
    infer=_square_infer("linalg_potrf"),
    doc="The lower triangle L of a symmetric positive definite A = L L^T.",
)


def _potri_expand(specs, a):
    one = make(a, eye, N=specs[0].shape[-1], dtype=specs[0].dtype)
    left = solve(a, a.zeros_like().broadcast_add(one))
    return gemm2(left, left, transpose_a=True)


potri = register(
    "_linalg_potri",
    "linalg_potri",
    inputs=("A",),
    expand=_potri_expand,
    infer=_square_infer("linalg_potri"),
    doc="The inverse of L L^T, from its lower triangle L.",
)


# -- inverse and determinant -----------------------------------------------------------
def _inverse_eager(data):
    try:
        return np.linalg.inv(data)
    except np.linalg.LinAlgError:
        raise LinAlgError("linalg_inverse: a matrix is singular, so it has no inverse") from None


def _pivot(work, c, n, wide):
    """Swap the row of column c's largest element into row c; return its index."""
    top = c
    for r in range(c + 1, n):
        if abs(work[r * wide + c]) > abs(work[top * wide + c]):
            top = r
    if top != c:
        for j in range(wide):
            x = work[c * wide + j]
            work[c * wide + j] = work[top * wide + j]
            work[top * wide + j] = x
    return top


@loops(
    lambda data, out: (data.size // max(data.shape[-1] ** 2, 1), data.shape[-1], 2 * data.shape[-1])
)
def _inverse_cpu(data, out, work, count, n, wide):
    """Gauss-Jordan elimination: the steps from A to I take I to the inverse."""
    for batch in range(count):
        for r in range(n):
            for j in range(n):
                work[r * wide + j] = data[(batch * n + r) * n + j]
                work[r * wide + n + j] = T(1) if r == j else T(0)
        for c in range(n):
            _pivot(work, c, n, wide)
            scale = T(1) / work[c * wide + c]
            for j in range(wide):
                work[c * wide + j] *= scale
            for r in range(n):
                if r != c:
                    scale = work[r * wide + c]
                    for j in range(wide):
                        work[r * wide + j] -= scale * work[c * wide + j]
        for r in range(n):
            for j in range(n):
                store(out, (batch * n + r) * n + j, work[r * wide + n + j])


inverse = register(
    "_linalg_inverse",
    "linalg_inverse",
    inputs=("A",),
    eager=_in_floats(_inverse_eager),
    cpu=_inverse_cpu,
    scratch=lambda ins, outs: 2 * ins[0].shape[-1] ** 2,
    gpu=inverse_gpu,
    stores=True,
    gpu_scratch=lambda ins, outs: 2 * ins[0].size,
    grad=lambda g, out, data: (-gemm2(gemm2(out, g, transpose_a=True), out, transpose_b=True),),
    infer=_square_infer("linalg_inverse"),
    doc="The inverse of square matrices.",
)


@loops(lambda data, sign, logarithm: (sign.size, data.shape[-1]))
def _slogdet_cpu(data, sign, logarithm, work, count, n):
    for batch in range(count):
        for i in range(n * n):
            work[i] = data[batch * (n * n) + i]
        side = T(1)
        total = T(0)
        for c in range(n):
            top = _pivot(work, c, n, n)
            side = -side if top != c else side
            total += np.log(abs(work[c * n + c]))
            side = -side if work[c * n + c] < T(0) else side
            side = T(0) if work[c * n + c] == T(0) else side
            for r in range(c + 1, n):
                scale = work[r * n + c] / work[c * n + c] if work[c * n + c] != T(0) else T(0)
                for j in range(c, n):
                    work[r * n + j] -= scale * work[c * n + j]
        sign[batch] = side
        logarithm[batch] = total


def _slogdet_grad(g, out, data):
    up = g[1]
    if up is None:
        return (None,)
    grad = up.reshape((-2, 1, 1)).broadcast_mul(transposed(inverse(data)))
    return (grad.reshape_like(data),)


def _det_rule(a):
    return _square("linalg_det", a)[:-2] or (1,)


_det_infer = forward(_det_rule, dtype=floating)


def _slogdet_infer(specs):
    return specs, _det_infer(specs)[1] * 2


def _slogdet_eager(data):
    """Use a batch even for one matrix, for which NumPy is slower, because it makes scalars."""
    *lead, m, n = data.shape
    results = np.linalg.slogdet(data.reshape(math.prod(lead), m, n))
    return tuple(v.reshape(lead or (1,)) for v in results)


slogdet = register(
    "_linalg_slogdet",
    "linalg_slogdet",
    inputs=("A",),
    n_outputs=2,
    eager=_in_floats(_slogdet_eager),
    cpu=_slogdet_cpu,
    scratch=lambda ins, outs: ins[0].shape[-1] ** 2,
    gpu=slogdet_gpu,
    gpu_scratch=lambda ins, outs: ins[0].size,
    grad=_slogdet_grad,
    infer=_slogdet_infer,
    doc="The sign of the determinant, and the logarithm of its absolute value.",
)


def _det_expand(specs, a):
    sign, logarithm = slogdet(a)
    return sign * exp(logarithm)


det = register(
    "_linalg_det",
    "linalg_det",
    inputs=("A",),
    expand=_det_expand,
    infer=_det_infer,
    doc="The determinant of square matrices.",
)


# -- diagonals -------------------------------------------------------------------------
OFFSET = {"offset": (integer, 0)}
extractdiag = register(
    "_linalg_extractdiag",
    "linalg_extractdiag",
    inputs=("A",),
    attrs=OFFSET,
    infer=lambda specs, offset: diagonal.infer(specs, offset=offset, axis1=-2, axis2=-1),
    expand=lambda specs, a, offset: diagonal(a, offset=offset, axis1=-2, axis2=-1),
    doc="A diagonal of each matrix, as rows.",
)
makediag = register(
    "_linalg_makediag",
    "linalg_makediag",
    inputs=("A",),
    attrs=OFFSET,
    infer=forward(lambda a, offset: (*a[:-1], *(a[-1] + abs(offset),) * 2)),
    expand=lambda specs, a, offset: square_of(a, specs, offset),
    doc="Square matrices with the rows of A on a diagonal.",
)
sumlogdiag = register(
    "_linalg_sumlogdiag",
    "linalg_sumlogdiag",
    inputs=("A",),
    infer=_det_infer,
    expand=lambda specs, a: sum_(log(diagonal(a, axis1=-2, axis2=-1)), axis=-1),
    doc="The sum of the logarithms of each matrix' diagonal.",
)
