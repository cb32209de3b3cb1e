"""Attention: softmax(Q K^T) V without materializing the score matrix.

Uses:    queries (..., L, E), keys (..., S, E), values (..., S, V), and a mask.
Defines: `scaled_dot_product_attention`, (..., L, V), and the two primitives it decomposes
         into: `attention`, which also returns the log-sum-exp of each query's scores, and
         `attention_grad`, which recomputes the weights from it.

The attention weights are an L x S matrix, by far the largest array of a transformer. The
primitives never store it: the NumPy code computes a block of rows at a time, the kernels a
tile (`ops.cpu.flash`, `ops.gpu.flash`).
Source:  Vaswani et al. (2017) for the operator; Dao, FlashAttention-2 (2023), for the rest.
Not supported: dropout of the weights, and a mask that is added to the scores.
Limits:  the second derivative is composed of products that do store the matrix.
"""

from math import prod

import numpy as np

from minihybrid.core.op import REQUIRED, ShapeError, Spec, boolean, number, optional
from minihybrid.ops.cpu.flash import backward_cpu, backward_scratch, forward_cpu, forward_scratch
from minihybrid.ops.elementwise import cast_like, choose, exp, zeros_like
from minihybrid.ops.filled import arange_like, full, make
from minihybrid.ops.gpu.flash import backward_gpu, forward_gpu
from minihybrid.ops.layout import expand_dims, reshape
from minihybrid.ops.neural import batch_dot
from minihybrid.ops.reduce import sum_
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import as_codes, common_dtype, floating, known
from minihybrid.ops.tiling import broadcast_to

NAME = "scaled_dot_product_attention"
ROWS = 256  # queries whose weights NumPy stores at once


# -- eager -----------------------------------------------------------------------------
def _row_blocks(query, key, mask, causal, scale):
    """Yield (a slice of rows, their scores); masked scores are -inf."""
    places = np.arange(key.shape[1])
    for first in range(0, query.shape[1], ROWS):
        rows = slice(first, min(first + ROWS, query.shape[1]))
        scores = np.matmul(query[:, rows], key.swapaxes(1, 2)) * query.dtype.type(scale)
        hidden = [places > np.arange(rows.start, rows.stop)[:, None]] if causal else []
        hidden += [m[:, rows if m.shape[1] > 1 else slice(None)] == 0 for m in mask]
        for some in hidden:
            scores = np.where(some, scores.dtype.type(-np.inf), scores)
        yield rows, scores


def _in_floats(arrays):
    return [a.astype(floating(a.dtype), copy=False) for a in arrays]


def _attention_eager(query, key, value, *mask, causal, scale, masked):
    query, key, value = _in_floats((query, key, value))
    out = np.empty((*query.shape[:2], value.shape[2]), query.dtype)
    lse = np.empty(query.shape[:2], query.dtype)
    with np.errstate(all="ignore"):
        for rows, scores in _row_blocks(query, key, mask, causal, scale):
            top = scores.max(axis=2, keepdims=True)
            top[top == -np.inf] = 0
            weights = np.exp(scores - top)
            total = weights.sum(axis=2, keepdims=True)
            out[:, rows] = np.where(total == 0, 0, np.matmul(weights, value) / total)
            lse[:, rows] = np.where(total == 0, np.inf, top + np.log(total))[..., 0]
    return out, lse


def _grad_eager(query, key, value, grad, lse, delta, *mask, causal, scale, masked):
    query, key, value, grad, lse, delta = _in_floats((query, key, value, grad, lse, delta))
    grads = [np.zeros(v.shape, v.dtype) for v in (query, key, value)]
    with np.errstate(all="ignore"):
        for rows, scores in _row_blocks(query, key, mask, causal, scale):
            weights = np.exp(scores - lse[:, rows, None])
            towards = np.matmul(grad[:, rows], value.swapaxes(1, 2)) - delta[:, rows, None]
            towards *= weights * query.dtype.type(scale)
            grads[0][:, rows] = np.matmul(towards, key)
            grads[1] += np.matmul(towards.swapaxes(1, 2), query[:, rows])
            grads[2] += np.matmul(weights.swapaxes(1, 2), grad[:, rows])
    return tuple(grads)


# -- gradients -------------------------------------------------------------------------
def _attention_grad(g, out, query, key, value, *mask, **attrs):
    """With g for the outputs and h for the log-sum-exps, the gradient of a score is its
    weight times (g . value - delta), where delta = g . out - h is one scalar per query."""
    up, beside = g
    up = zeros_like(out[0]) if up is None else up
    query, key, value = (cast_like(v, out[0]) for v in (query, key, value))
    delta = sum_(up * out[0], axis=-1)
    delta = delta if beside is None else delta - beside
    grads = attention_grad(query, key, value, up, out[1], delta, *mask, **attrs)
    return (*grads, *(None for _ in mask))


def _again(g, out, query, key, value, grad, lse, delta, *mask, causal, scale, masked):
    """Second derivative, on whole matrices; a, b, c are the gradients of the three outputs."""
    query, key, value, grad, lse, delta = (
        cast_like(v, out[0]) for v in (query, key, value, grad, lse, delta)
    )
    a, b, c = (zeros_like(like) if up is None else up for up, like in zip(g, out, strict=True))
    weights = exp((batch_dot(query, key, transpose_b=True) * scale).broadcast_sub(_column(lse)))
    masks = list(mask)
    if causal:
        rows, columns = (arange_like(v, axis=1) for v in (query, key))
        masks.append(_column(rows).broadcast_greater_equal(columns))
    for some in masks:  # a masked weight may be infinite
        weights = choose(some, weights, zeros_like(weights))
    apart = batch_dot(grad, value, transpose_b=True).broadcast_sub(_column(delta))
    moved = (batch_dot(a, key, transpose_b=True) + batch_dot(query, b, transpose_b=True)) * scale
    of_apart = moved * weights
    of_score = weights * (batch_dot(grad, c, transpose_b=True) + moved * apart)
    score, both = weights * apart * scale, of_score * scale
    return (
        batch_dot(both, key) + batch_dot(score, b),
        batch_dot(both, query, transpose_a=True) + batch_dot(score, a, transpose_a=True),
        batch_dot(of_apart, grad, transpose_a=True),
        batch_dot(of_apart, value) + batch_dot(weights, c),
        -sum_(of_score, axis=-1),
        -sum_(of_apart, axis=-1),
        *(None for _ in mask),
    )


def _column(rows):
    return expand_dims(rows, axis=-1)


# -- definitions -----------------------------------------------------------------------
def _primitive(name, inputs, rule, **fields):
    """Register a primitive of (B, L, E), (B, S, E), (B, S, V) and a broadcastable mask."""

    def infer(specs, masked, **_):
        kind = floating(common_dtype(name, specs[: len(inputs)]))
        shapes = (
            rule(*(s.shape for s in specs[:3])) if known(specs) else [None] * fields["n_outputs"]
        )
        return specs, [Spec(shape, kind) for shape in shapes]

    return register(
        name,
        inputs=lambda attrs: (*inputs, "mask") if attrs is None or attrs["masked"] else inputs,
        infer=infer,
        attrs={"causal": (boolean, False), "scale": (number, REQUIRED), "masked": (boolean, False)},
        gives_own=True,
        **fields,
    )


attention_grad = _primitive(
    "_attention_grad",
    ("query", "key", "value", "grad", "lse", "delta"),
    lambda *shapes: shapes,
    n_outputs=3,
    eager=_grad_eager,
    cpu=backward_cpu,
    scratch=backward_scratch,
    gpu=backward_gpu,
    grad=_again,
    doc="The gradients of query, key and value, from weights that are computed anew.",
)
attention = _primitive(
    "_attention",
    ("query", "key", "value"),
    lambda query, key, value: [(*query[:2], value[2]), query[:2]],
    n_outputs=2,
    eager=_attention_eager,
    cpu=forward_cpu,
    scratch=forward_scratch,
    gpu=forward_gpu,
    grad=_attention_grad,
    doc="The outputs (B, L, V), and log(sum(exp(scores))) of each query; infinity if it sees "
    "no key, so that each weight computed from it is 0.",
)


def _inputs(attrs):
    masked = attrs is None or attrs["use_mask"]
    return ("query", "key", "value", "mask")[: 3 + bool(masked)]


def _infer(specs, **_):
    kind = floating(common_dtype(NAME, specs[:3]))
    if not known(specs):
        return specs, [Spec(None, kind)]
    query, key, value, *mask = (s.shape for s in specs)
    if (
        min(map(len, (query, key, value))) < 2
        or (*query[:-2], query[-1]) != (*key[:-2], key[-1])
        or key[:-1] != value[:-1]
        or not query[-1]
    ):
        raise ShapeError(
            f"{NAME}: query {query}, key {key} and value {value} don't fit together; needed: "
            "(..., L, E), (..., S, E) and (..., S, V) with the same leading axes, which "
            "broadcast_to can repeat"
        )
    scores = (*query[:-1], key[-2])
    for shape in mask:
        fits = zip(reversed(shape), reversed(scores), strict=False)
        if len(shape) > len(scores) or any(m not in (1, n) for m, n in fits):
            raise ShapeError(
                f"{NAME}: the mask has shape {shape}, but one that broadcasts to the scores' "
                f"shape {scores} is needed; reshape it, with 1 for each axis that it repeats"
            )
    return specs, [Spec((*query[:-1], value[-1]), kind)]


def _expand(specs, query, key, value, *mask, is_causal, scale, use_mask):
    *shapes, (*lead, length, size) = (s.shape for s in specs[2::-1])
    out = (*lead, length, shapes[0][-1])
    if 0 in (*out, *shapes[0]):
        return make(query, full, shape=out, value=0, dtype=floating(specs[0].dtype))
    for m, spec in zip(mask, specs[3:], strict=True):
        *before, rows, columns = (*(1,) * (len(out) - len(spec.shape)), *spec.shape)
        if prod(before) > 1 and before != lead:
            m = broadcast_to(
                reshape(m, shape=(*before, rows, columns)), shape=(*lead, rows, columns)
            )
        mask = (reshape(m, shape=(-1, rows, columns)),)
    flat = [
        reshape(v, shape=(-1, *s.shape[-2:]))
        for v, s in zip((query, key, value), specs, strict=False)
    ]
    scale = 1 / np.sqrt(size) if scale is None else scale
    results = attention(*flat, *mask, causal=is_causal, scale=scale, masked=bool(mask))
    return reshape(results[0], shape=as_codes(out))


scaled_dot_product_attention = register(
    NAME,
    inputs=_inputs,
    infer=_infer,
    expand=_expand,
    attrs={
        "is_causal": (boolean, False),
        "scale": (optional(number), None),
        "use_mask": (optional(boolean), None),
    },
    doc="softmax(query key^T scale) value: (..., L, E), (..., S, E), (..., S, V) -> (..., L, V). "
    "`scale` is 1 / sqrt(E) by default. A query doesn't see the keys where the mask, which "
    "broadcasts to (..., L, S), is 0; nor, with `is_causal`, key j > i from query i. If it sees "
    "none, the result is 0. Unlike PyTorch's, a mask of floats isn't added to the scores. "
    "The matrix of scores is never stored.",
)
