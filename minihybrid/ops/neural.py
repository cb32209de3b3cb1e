"""Operators of neural networks: matrix products, softmax, the loss.

Data is in rows (N samples); weights are `(outputs, inputs)`, as in Gluon. Convolutions and
normalizations are in separate modules.
"""

import math
from functools import partial

import numpy as np

from minihybrid.core.op import (
    REQUIRED,
    ShapeError,
    Spec,
    boolean,
    choice,
    count,
    dtype,
    integer,
    optional,
    positive,
)
from minihybrid.ops.cpu.products import product_loops, product_scratch
from minihybrid.ops.elementwise import (
    cast,
    cast_like,
    choose,
    exp,
    log,
    reciprocal,
    relu,
    sigmoid,
    softrelu,
    softsign,
    tanh,
)
from minihybrid.ops.filled import arange, full, make
from minihybrid.ops.gpu.products import matrix_product, matrix_work, product_work
from minihybrid.ops.indexing import pick
from minihybrid.ops.layout import flatten as flatten_rows
from minihybrid.ops.layout import reshape, reshape_like
from minihybrid.ops.reduce import max_, sum_
from minihybrid.ops.registry import OPS, register
from minihybrid.ops.shapes import axis_of, common_dtype, floating, forward, merge, same_shape


# -- matrix products -------------------------------------------------------------------
def _matmul_rule(left, right, transpose_a, transpose_b):
    if len(left) != 2 or len(right) != 2:
        raise ShapeError(f"dot: matrices are needed, found shapes {left} and {right}")
    m, k = left[::-1] if transpose_a else left
    k2, n = right[::-1] if transpose_b else right
    if k != k2:
        raise ShapeError(
            f"dot: {left}{' transposed' * transpose_a} times {right}{' transposed' * transpose_b} "
            f"does not work: the inner lengths {k} and {k2} must be equal"
        )
    return m, n


def _product_of(k):
    """Return NumPy's function for (M, K) times (K, N): `dot`, the fastest.

    For K = 1, BLAS may skip zeros, so that 0 times NaN would be 0: multiply instead.
    """
    return "multiply" if k == 1 else "dot"


def product(lhs, rhs):
    """(M, K) times (K, N) -> (M, N)."""
    return getattr(np, _product_of(len(rhs)))(lhs, rhs)


def _matmul_eager(lhs, rhs, *, transpose_a, transpose_b):
    return product(lhs.T if transpose_a else lhs, rhs.T if transpose_b else rhs)


def _matmul_settled(lhs, rhs, *, transpose_a, transpose_b):
    plain = not (transpose_a or transpose_b)
    return getattr(np, _product_of(rhs.shape[0])) if plain else None


def _matmul_numpy(specs, a, b, out, transpose_a, transpose_b):
    dot = _product_of(specs[1].shape[int(transpose_b)])
    return f"np.{dot}({a}{'.T' * transpose_a}, {b}{'.T' * transpose_b}, out={out})"


def _product_grad(name):
    """Return the gradient of a product of matrices, or of batches of them."""

    def grad(g, out, a, b, transpose_a, transpose_b):
        times = OPS[name]
        da = (
            times(b, g, transpose_a=transpose_b, transpose_b=True)
            if transpose_a
            else times(g, b, transpose_b=not transpose_b)
        )
        db = (
            times(g, a, transpose_a=True, transpose_b=transpose_a)
            if transpose_b
            else times(a, g, transpose_a=not transpose_a)
        )
        return da, db

    return grad


TRANSPOSES = {"transpose_a": (boolean, False), "transpose_b": (boolean, False)}


def _scratch(ins, outs, transpose_a, transpose_b):
    """Return the size of a product's scratch memory."""
    (*_, m, n), depth = outs[0].shape, ins[0].shape[-2 if transpose_a else -1]
    return product_scratch(m, n, depth, outs[0].dtype, transpose_a, transpose_b)


matmul = register(
    "_matmul",
    inputs=("lhs", "rhs"),
    attrs=TRANSPOSES,
    infer=forward(_matmul_rule, "dot"),
    eager=_matmul_eager,
    settled=_matmul_settled,
    grad=_product_grad("_matmul"),
    cpu=product_loops,
    scratch=_scratch,
    gpu=matrix_product,
    gpu_scratch=matrix_work,
    stores=True,
    adds_rows=lambda transpose_a, transpose_b: transpose_a and not transpose_b,
    numpy=_matmul_numpy,
    doc="(M, K) times (K, N) -> (M, N).",
)


def _dot_rule(left, right, transpose_a, transpose_b):
    k = left[0] if transpose_a else left[-1]
    k2 = right[-1] if transpose_b else right[0]
    if k != k2:
        raise ShapeError(
            f"dot: {left}{' transposed' * transpose_a} times {right}{' transposed' * transpose_b} "
            f"does not work: the inner lengths {k} and {k2} must be equal"
        )
    shape = (left[1:] if transpose_a else left[:-1]) + (right[:-1] if transpose_b else right[1:])
    return shape or (1,)


def _dot_expand(specs, lhs, rhs, transpose_a, transpose_b):
    (left, _), (right, _) = specs
    if len(left) == len(right) == 2:
        return matmul(lhs, rhs, transpose_a=transpose_a, transpose_b=transpose_b)
    transpose_a, transpose_b = (transpose_a and len(left) > 1, transpose_b and len(right) > 1)
    one = (left[0], -1) if transpose_a else (-1, left[-1])  # as a matrix
    two = (-1, right[-1]) if transpose_b else (right[0], -1)
    product = matmul(
        reshape(lhs, shape=one),
        reshape(rhs, shape=two),
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    shape = _dot_rule(left, right, transpose_a, transpose_b)
    return OPS["_np_reshape"](product, newshape=shape)  # 0 is a length here, not a code


dot = register(
    "dot",
    inputs=("lhs", "rhs"),
    attrs=TRANSPOSES,
    infer=forward(_dot_rule, "dot"),
    expand=_dot_expand,
    doc="The product over the last axis of lhs and the first of rhs.",
)


def _batch_dot_rule(left, right, transpose_a, transpose_b):
    if len(left) < 3 or len(right) < 3 or left[:-2] != right[:-2]:
        raise ShapeError(
            f"batch_dot: shapes {left} and {right} are not batches of "
            "matrices of one length (..., M, K) and (..., K, N)"
        )
    return *left[:-2], *_matmul_rule(left[-2:], right[-2:], transpose_a, transpose_b)


def _batch_dot_eager(lhs, rhs, *, transpose_a, transpose_b):
    return np.matmul(
        lhs.swapaxes(-1, -2) if transpose_a else lhs, rhs.swapaxes(-1, -2) if transpose_b else rhs
    )


def _batch_dot_cpu(k, a, b, out, transpose_a, transpose_b):
    work = out.size * a.shape[-2 if transpose_a else -1]
    with k.share("batch", math.prod(out.shape[:-2]), work=work):
        parts = [k.part(v, "batch", v.shape[-2:]) for v in (a, b, out)]
        product_loops(k, *parts, transpose_a, transpose_b, start=f"batch * {parts[2].size} + ")


batch_dot = register(
    "batch_dot",
    inputs=("lhs", "rhs"),
    attrs=TRANSPOSES,
    infer=forward(_batch_dot_rule, "batch_dot"),
    eager=_batch_dot_eager,
    grad=_product_grad("batch_dot"),
    cpu=_batch_dot_cpu,
    scratch=_scratch,
    gpu=matrix_product,
    gpu_scratch=matrix_work,
    stores=True,
    doc="(..., M, K) times (..., K, N) -> (..., M, N), one product for each sample.",
)


# -- the fully connected layer ---------------------------------------------------------
def _fc_inputs(attrs):
    without = attrs and attrs["no_bias"]
    return ("data", "weight") if without else ("data", "weight", "bias")


def _fc_infer(specs, num_hidden, no_bias, flatten):
    kind = common_dtype("FullyConnected", specs)
    data = specs[0].shape
    if data is None:
        return [Spec(s.shape, kind) for s in specs], [Spec(None, kind)]
    if not data:
        raise ShapeError(
            "FullyConnected: data has shape (), but rows of samples (N, K) are needed; a single "
            "number is x.reshape((1, 1))"
        )
    rows, ks = (data[:1], data[1:]) if flatten else (data[:-1], data[-1:])
    k = -1 if -1 in ks else math.prod(ks)
    expected = {"weight": (num_hidden, k), "bias": (num_hidden,)}
    if flatten and (actual := specs[1].shape) not in (None, expected["weight"]):
        if -1 not in (*actual, *data) and np.prod(data) == actual[-1] != k:
            raise ShapeError(
                f"FullyConnected: data has shape {data}, {data[0]} samples of {k} numbers, but the "
                f"weight {actual} needs samples of {actual[-1]}; that is one sample, which "
                "becomes a batch of one by x.expand_dims(0)"
            )
    shapes = [data] + [
        merge(
            f"FullyConnected: with data {data} and num_hidden={num_hidden}", name, spec.shape, shape
        )
        for (name, shape), spec in zip(expected.items(), specs[1:], strict=False)
    ]
    return [Spec(s, kind) for s in shapes], [Spec((*rows, num_hidden), kind)]


def _fc_settled(data, weight, *bias, num_hidden, no_bias, flatten):
    n, k, product = data.shape[0], weight.shape[1], getattr(np, _product_of(weight.shape[1]))

    def run(data, weight, bias=None):
        rows = weight.T if k != 1 else weight[:, 0]  # for one sample (1,), the result is (N,)
        out = product(data.reshape(n, k) if flatten else data, rows)
        if not no_bias:
            out += bias
        return out

    return run


def _fc_eager(data, weight, *bias, **attrs):
    return _fc_settled(data, weight, **attrs)(data, weight, *bias)


def _fc_grad(g, out, data, weight, *bias, num_hidden, no_bias, flatten):
    g = reshape(g, shape=(-1, num_hidden))
    rows = flatten_rows(data) if flatten else reshape(data, shape=(-1, 0), reverse=True)
    grads = (reshape_like(matmul(g, weight), data), matmul(g, rows, transpose_a=True))
    return grads if no_bias else (*grads, sum_(g, axis=0))


def _fc_loops(loops, k, data, weight, *bias, num_hidden, no_bias, flatten):
    *bias, out = bias
    rows = out.size // max(num_hidden, 1)
    data = k.part(data, None, (rows, weight.shape[1]))
    out = k.part(out, None, (rows, num_hidden))
    loops(k, data, weight, out, False, True, *bias)


def _fc_lengths(ins, outs, num_hidden):
    return outs[0].size // max(num_hidden, 1), num_hidden, ins[1].shape[1]


def _fc_scratch(ins, outs, num_hidden, **_):
    return product_scratch(*_fc_lengths(ins, outs, num_hidden), outs[0].dtype, False, True)


def _fc_work(ins, outs, num_hidden, **_):
    return product_work(_fc_lengths(ins, outs, num_hidden), 1, outs[0].dtype)


def _fc_numpy(specs, data, weight, bias=None, *, out, num_hidden, no_bias, flatten):
    rows = f".reshape(len({data}), {weight}.shape[1])" if flatten else ""
    add = "" if no_bias else f"\nnp.add({out}, {bias}, out={out})"
    dot = _product_of(specs[1].shape[1])
    columns = ".T" if specs[1].shape[1] != 1 else "[:, 0]"
    return f"np.{dot}({data}{rows}, {weight}{columns}, out={out}){add}"


fully_connected = register(
    "FullyConnected",
    inputs=_fc_inputs,
    infer=_fc_infer,
    eager=_fc_eager,
    settled=_fc_settled,
    grad=_fc_grad,
    cpu=partial(_fc_loops, product_loops),
    scratch=_fc_scratch,
    gpu=partial(_fc_loops, matrix_product),
    gpu_scratch=_fc_work,
    numpy=_fc_numpy,
    stores=True,
    attrs={
        "num_hidden": (count, REQUIRED),
        "no_bias": (boolean, False),
        "flatten": (boolean, True),
    },
    doc="y = x W^T + b; (N, K) -> (N, num_hidden). With `flatten`, all axes but the first are "
    "joined, and (N,) are N samples of one number; without, (K,) is one sample.",
)


# -- activations and softmax -----------------------------------------------------------
ACTIVATIONS = {
    "relu": relu,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "softrelu": softrelu,
    "softsign": softsign,
}
activation = register(
    "Activation",
    inputs=("data",),
    attrs={"act_type": (choice(*ACTIVATIONS), REQUIRED)},
    infer=lambda specs, act_type: ACTIVATIONS[act_type].infer(specs),
    expand=lambda specs, data, act_type: ACTIVATIONS[act_type](data),
    doc="The activation function called act_type.",
)


def _softmax_inputs(attrs):
    return ("data", "length") if attrs is None or attrs.get("use_length") else ("data",)


def _softmax_infer(specs, axis, temperature, dtype=None, use_length=False):
    (data,), (out,) = same_shape("softmax", specs[:1])
    if out.shape is not None:
        axis = axis_of("softmax", axis, len(out.shape))
    lengths = list(specs[1:])
    length = None if out.shape is None else (*out.shape[:axis], *out.shape[axis + 1 :])
    if lengths and length is not None and lengths[0].shape not in (None, length, length or (1,)):
        raise ShapeError(
            f"softmax: length has shape {lengths[0].shape}, but {length} is needed: how many "
            f"numbers of each line along axis {axis} count"
        )
    lengths = [Spec(s.shape or length, s.dtype) for s in lengths]
    return [data, *lengths], [Spec(out.shape, dtype or floating(out.dtype))]


def wide_of(kind, dtype):
    """Return the dtype in which a softmax of dtype `kind` computes a result of `dtype`."""
    kind = floating(kind)
    return kind if dtype is None else np.promote_types(kind, dtype)


def _below_zero(data, axis, temperature, dtype):
    """Return data / temperature minus its maximum, so that exp is at most 1."""
    kind = wide_of(data.dtype, dtype)
    heat, largest = None if temperature is None else kind.type(temperature), np.maximum.reduce

    def run(data):
        return data - largest(data, axis, None, None, True, -np.inf)

    if heat is None:
        return run if data.dtype == kind else lambda data: run(data.astype(kind))
    return lambda data: run(data.astype(kind) / heat)


SMALL_SQUARES = 6400  # if squares add up to less, all elements are within 80 of 0: exp is safe


def _softmax_settled(data, length=None, *, axis, temperature, dtype=None, use_length=False):
    below_zero, ones = _below_zero(data, axis, temperature, dtype), None
    if data.dtype in (np.float32, np.float64) and temperature is dtype is None and not use_length:
        if len(data.shape) == 2 and axis % 2 == 1 and data.shape[1] <= 64:
            ones = np.ones((data.shape[1], data.shape[1]), data.dtype)

    def run(data, length=None):
        if ones is not None and np.vdot(data, data) < SMALL_SQUARES:
            out = np.exp(data)
            return np.divide(out, out.dot(ones), out)  # fewer calls, and no broadcasting
        if length is not None:
            places = np.arange(data.shape[axis])
            places = np.expand_dims(places, [i for i in range(data.ndim) if i != axis % data.ndim])
            counts = places < np.expand_dims(length, axis)
            data = np.where(counts, data.astype(wide_of(data.dtype, dtype)), -np.inf)
        out = below_zero(data)
        np.exp(out, out)
        total = np.add.reduce(out, axis, None, None, True)
        np.multiply(out, np.reciprocal(total, total), out)
        out = out if length is None else np.where(counts, out, 0)
        return out if dtype in (None, out.dtype) else out.astype(dtype)

    return run


def _softmax_eager(*inputs, **attrs):
    return _softmax_settled(*inputs, **attrs)(*inputs)


def _log_softmax_settled(data, *, axis, temperature, dtype=None):
    below_zero = _below_zero(data, axis, temperature, dtype)

    def run(data):
        shifted = below_zero(data)
        total = np.add.reduce(np.exp(shifted), axis, keepdims=True)
        out = np.subtract(shifted, np.log(total, out=total), out=shifted)
        return out if dtype in (None, out.dtype) else out.astype(dtype)

    return run


def _log_softmax_eager(data, **attrs):
    return _log_softmax_settled(data, **attrs)(data)


def _softmax_grad(g, out, data, *length, axis, temperature, dtype, use_length):
    if length:  # elements beyond a length are excluded, even if their gradient is NaN
        counts = softmax(data.zeros_like(), *length, axis=axis, use_length=True)
        g = choose(counts, g, g.zeros_like())
    inner = sum_(g * out, axis=axis, keepdims=True)
    grad = _scaled(out * g.broadcast_sub(inner), data, temperature, dtype)
    return (choose(counts, grad, grad.zeros_like()), None) if length else (grad,)


def _log_softmax_grad(g, out, data, axis, temperature, dtype):
    grad = g - exp(out).broadcast_mul(sum_(g, axis=axis, keepdims=True))
    return (_scaled(grad, data, temperature, dtype),)


def _scaled(grad, data, temperature, dtype):
    grad = grad if temperature is None else grad / temperature
    return grad if dtype is None else cast_like(grad, data)


def _shifted(specs, data, length, axis, temperature, dtype):
    """Return `_below_zero` as operators, and the mask of valid elements, or `None`."""
    shape, in_dtype = specs[0]
    wide, counts = wide_of(in_dtype, dtype), None
    data = data if wide == in_dtype else cast(data, dtype=wide)
    if length is not None:
        axis = axis_of("softmax", axis, len(shape))
        places = make(data, arange, start=shape[axis], dtype=specs[1].dtype)
        length = reshape(length, shape=(*shape[:axis], 1, *shape[axis + 1 :]))
        counts = OPS["broadcast_lesser"](
            reshape(places, shape=(-1,) + (1,) * (len(shape) - axis - 1)), length
        )
        data = choose(counts, data, make(data, full, shape=(1,), dtype=wide, value=-np.inf))
    data = data if temperature is None else data / temperature
    return data.broadcast_sub(max_(data, axis=axis, keepdims=True)), counts, wide


def _softmax_lower(specs, data, length=None, *, axis, temperature, dtype=None, use_length=False):
    if 0 in specs[0].shape:
        return cast(data, dtype=dtype or floating(specs[0].dtype))
    shifted, counts, wide = _shifted(specs, data, length, axis, temperature, dtype)
    e = exp(shifted)
    out = e.broadcast_mul(reciprocal(sum_(e, axis=axis, keepdims=True)))
    if counts is not None:
        out = choose(counts, out, make(data, full, shape=(1,), dtype=wide, value=0.0))
    return out if dtype in (None, wide) else cast(out, dtype=dtype)


def _log_softmax_lower(specs, data, *, axis, temperature, dtype=None):
    if 0 in specs[0].shape:
        return cast(data, dtype=dtype or floating(specs[0].dtype))
    shifted, _, wide = _shifted(specs, data, None, axis, temperature, dtype)
    total = sum_(exp(shifted), axis=axis, keepdims=True)
    out = shifted.broadcast_sub(log(total))
    return out if dtype in (None, wide) else cast(out, dtype=dtype)


SOFTMAX = {"axis": (integer, -1), "temperature": (optional(positive), None), "dtype": (dtype, None)}
softmax = register(
    "softmax",
    inputs=_softmax_inputs,
    infer=_softmax_infer,
    eager=_softmax_eager,
    settled=_softmax_settled,
    attrs={**SOFTMAX, "use_length": (boolean, False)},
    grad=_softmax_grad,
    lower=_softmax_lower,
    doc="exp(a) / sum(exp(a)) along an axis; with `use_length`, over as many numbers "
    "of each line as `length` says, and 0 behind them.",
)
log_softmax = register(
    "log_softmax",
    inputs=("data",),
    attrs=SOFTMAX,
    infer=_softmax_infer,
    eager=_log_softmax_eager,
    settled=_log_softmax_settled,
    grad=_log_softmax_grad,
    lower=_log_softmax_lower,
    doc="a - log(sum(exp(a))) along an axis.",
)


# -- the loss of a classifier ----------------------------------------------------------
def _cross_entropy_expand(specs, data, label):
    return sum_(-pick(log_softmax(data), label))


softmax_cross_entropy = register(
    "softmax_cross_entropy",
    inputs=("data", "label"),
    infer=lambda specs: (specs, [Spec((1,), floating(specs[0].dtype))]),
    expand=_cross_entropy_expand,
    doc="The sum over the batch of -log(softmax(data)[label]).",
)
