"""Write answers.json with MXNet 1.9.1: what indexing, ordering and linalg must answer.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):
    benchmarks/envs/mxnet/bin/python tests/golden/indexing/make_golden.py
"""

import json
from pathlib import Path

import numpy as np

# Expressions over `nd`, `np` and the arrays of `given`.
VALUES = """
nd.take(v, nd.array([-1, 5, 1]))
nd.take(v, nd.array([-1, 7, 1]), mode='wrap')
nd.take(v, nd.array([1.7, -0.5]))
nd.take(x, nd.array([[1, 0]]), axis=-1)
x.take(nd.array([1]))
nd.batch_take(m, nd.array([0, 2, 9], dtype='int32'))
nd.choose_element_0index(m, nd.array([0, 2, 1]))
nd.fill_element_0index(m, nd.array([7, 8, 9]), nd.array([0, 2, 1]))
nd.pick(m, nd.array([-1, 4, 1]))
nd.pick(m, nd.array([-1, 4, 1]), mode='wrap', keepdims=True)
nd.pick(x, nd.array([[0, 1, 2, 0], [1, 1, 2, 2]]), axis=1)
nd.pick(v, nd.array([1]))
nd.one_hot(nd.array([-1, 4, 1]), 3)
nd.onehot_encode(nd.array([1, 0]), out=nd.zeros((2, 3)))
nd.gather_nd(m, nd.array([[-1, 1], [0, 1]]))
nd.gather_nd(x, nd.array([[1, 0]]))
nd.scatter_nd(nd.array([1, 2, 3]), nd.array([[0, 2, 1]]), shape=(4,))
nd.scatter_nd(m, nd.array([[1, 0, 1], [0, 1, 1]]), shape=(2, 2, 3))
nd.contrib.index_copy(nd.zeros((4, 3)), nd.array([0, 2, 3]), m)
nd.ravel_multi_index(nd.array([[3, 6, 6], [4, 5, 1]]), shape=(7, 6))
nd.ravel_multi_index(nd.array([[3, 6, 6], [4, 5, 1]]), shape=(-1, 6))
nd.unravel_index(nd.array([22, 41, 37]), shape=(7, 6))
nd.where(nd.array([1, 0, 1]), m, -m)
nd.where(m > 0, m, -m)
x[nd.array([1, 0])]
x[[0, 1], [1, 2]]
x[:, [0, 2]]
x[nd.array([1, 0]), 1]
x[:, nd.array([1, 0]), 1]
x[None]
x[..., 1]
x[1, 2, 3]
x[np.array([1, 0])]
nd.repeat(m, repeats=2)
nd.repeat(m, repeats=2, axis=-1)
nd.tile(v, reps=(2, 2))
nd.tile(x, reps=2)
nd.tile(v, reps=())
nd.broadcast_axis(nd.ones((1, 3, 1)), axis=(0, 2), size=(2, 4))
nd.broadcast_like(v.reshape((1, 5)), nd.ones((5, 6, 7)), lhs_axes=(0,), rhs_axes=(-1,))
nd.pad(p, mode='constant', pad_width=(0, 0, 0, 0, 1, 1, 1, 1), constant_value=5)
nd.pad(p, mode='reflect', pad_width=(0, 0, 0, 0, 2, 2, 0, 2))
nd.pad(p, mode='edge', pad_width=(0, 0, 0, 0, 2, 2, 0, 3))
nd.slice_like(x, nd.ones((1, 2, 9)), axes=(0, 1))
nd.slice_like(x, nd.ones((1, 2, 3)))
nd.slice_axis(x, axis=1, begin=-2, end=None)
nd.stack(m, m, axis=1)
nd.reshape_like(nd.ones((30, 7)), nd.ones((15, 2, 4)), lhs_end=1, rhs_end=2)
nd.reshape_like(nd.ones((1, 2, 3)), nd.ones((6, 5)), lhs_begin=1, rhs_end=-1)
nd.contrib.isnan(nd.array([1, np.nan, np.inf]))
nd.contrib.isinf(nd.array([1, np.nan, -np.inf]))
nd.contrib.isfinite(nd.array([1, np.nan, -np.inf]))
nd.split_v2(nd.arange(7), (2, 4))
nd.split_v2(nd.arange(6), 3)
nd.split_v2(x, 2, axis=0, squeeze_axis=True)
nd.split(x, num_outputs=3, axis=1, squeeze_axis=True)
nd.flip(x, axis=(0, 1))
nd.reverse(x, axis=0)
nd.moveaxis(x, 0, -1)
nd.moveaxis(x, (0, 1), (-1, 0))
nd.depth_to_space(nd.arange(24).reshape((1, 4, 2, 3)), 2)
nd.space_to_depth(nd.arange(24).reshape((1, 1, 4, 6)), 2)
nd.diag(v)
nd.diag(v, k=-2)
nd.diag(x)
nd.diag(x, axis1=1, axis2=2, k=1)
nd.shape_array(x)
nd.size_array(x)
nd.Crop(p, offset=(1, 1), h_w=(2, 2), num_args=1)
nd.Crop(p, nd.ones((1, 1, 1, 1)), num_args=2, center_crop=True)
nd.SequenceMask(x, nd.array([1, 2, 0]), use_sequence_length=True, value=-1)
nd.SequenceMask(x, nd.array([1, 3]), use_sequence_length=True, axis=1)
nd.SequenceMask(x)
nd.SequenceLast(x, nd.array([1, 2, 2]), use_sequence_length=True)
nd.SequenceLast(x, nd.array([1, 3]), use_sequence_length=True, axis=1)
nd.SequenceLast(x)
nd.SequenceReverse(x, nd.array([1, 2, 2]), use_sequence_length=True)
nd.SequenceReverse(x)
nd.topk(m, k=2)
nd.topk(m, k=2, ret_typ='both')
nd.topk(m, k=2, ret_typ='mask', is_ascend=True)
nd.topk(m, k=2, axis=0, ret_typ='value')
nd.topk(m, k=2, axis=None)
nd.topk(m, k=2, axis=None, ret_typ='mask')
nd.topk(m, k=0, ret_typ='value', dtype='int32')
nd.topk(m, k=2, dtype='int32')
nd.argsort(nd.array([1, 1, 0, 1, 1]), is_ascend=False)
nd.argsort(m, axis=None)
nd.argsort(x, axis=1, dtype='int64')
nd.sort(m)
nd.sort(m, axis=None, is_ascend=False)
nd.sort(x, axis=0)
nd.argmax_channel(m)
nd.argmax_channel(x)
nd.cumsum(m)
nd.cumsum(x, axis=1)
nd.cumsum(nd.array([[3, 4], [1, 2]], dtype='int32'), axis=1, dtype='int64')
nd.histogram(v, bins=3, range=(-1, 1))
nd.histogram(v, bins=nd.array([-1, 0, 0.5, 1]))
nd.linspace(0, 1, 5)
nd.linspace(0, 1, 5, endpoint=False)
nd.eye(2, 3, 1)
nd.eye(2)
nd.full((2,), 7)
nd.concatenate([m, m], axis=1)
nd.norm(m)
nd.norm(x, ord=1, axis=(0, 1))
nd.norm(x, axis=2, keepdims=True)
nd.prod(x, axis=1)
nd.all_finite(nd.array([1, np.inf]))
nd.all_finite(m)
nd.multi_all_finite(m, v, num_arrays=2)
nd.multi_sum_sq(m, v, num_arrays=2)
nd.add_n(m, m, m)
nd.batch_dot(x, x, transpose_b=True)
nd.batch_dot(nd.ones((2, 2, 3, 4)), nd.ones((2, 2, 4, 5)))
nd.linalg.potrf(a)
nd.linalg.potri(nd.linalg.potrf(a))
nd.linalg.trsm(m, a)
nd.linalg.trsm(m, a, rightside=True, lower=False, transpose=True, alpha=2)
nd.linalg.trmm(m, a, lower=False, rightside=True)
nd.linalg.syrk(m, transpose=True, alpha=2)
nd.linalg.gemm(m, a, a, alpha=2, beta=3, transpose_a=True)
nd.linalg.gemm2(nd.ones((3, 2, 4)), nd.ones((4, 2, 5)), axis=0)
nd.linalg.sumlogdiag(a)
nd.linalg.extractdiag(m, offset=1)
nd.linalg.makediag(v, offset=-1)
nd.linalg.det(m)
nd.linalg.det(nd.stack(m, a))
nd.linalg.slogdet(m)
nd.linalg.inverse(a)
nd.random.multinomial(nd.array([[0, 0, 1], [1, 0, 0]]), shape=(2, 2))
nd.random.multinomial(nd.array([[0, 0, 1], [1, 0, 0]]), get_prob=True)
nd.random.multinomial(nd.array([0, 0, 1]))
nd.random.normal(nd.array([0, 1]), nd.array([0, 0]), shape=2)
nd.random.uniform(nd.array([3]), nd.array([3]))
nd.random.shuffle(nd.ones((2, 3)))
""".strip().split("\n")

# Gradients of the sum of output times 1, 2, 3, ... towards the array that is named.
GRADIENTS = """
x: nd.take(x, nd.array([1, 1, 0]), axis=2)
m: nd.Embedding(nd.array([[1, 1], [0, 2]]), m, input_dim=3, output_dim=3)
x: nd.pick(x, nd.array([[0, 1, 2, 0], [1, 1, 2, 2]]), axis=1)
m: nd.gather_nd(m, nd.array([[1, 1, 0], [0, 0, 1]]))
x: x[:, [0, 2]]
x: x[nd.array([1, 0]), 1]
x: nd.where(nd.array([1, 0]), x, -x)
m: nd.repeat(m, repeats=2, axis=1)
m: nd.tile(m, reps=(2, 2))
p: nd.pad(p, mode='reflect', pad_width=(0, 0, 0, 0, 2, 2, 0, 2))
p: nd.pad(p, mode='edge', pad_width=(0, 0, 0, 0, 2, 2, 0, 3))
x: nd.slice_like(x, nd.ones((1, 2, 9)), axes=(0, 1))
x: nd.diag(x, axis1=1, axis2=2, k=1)
v: nd.diag(v, k=1)
m: nd.topk(m, k=2, axis=1, ret_typ='value')
m: nd.sort(m, axis=1, is_ascend=False)
x: nd.cumsum(x, axis=1)
x: nd.norm(x, axis=1)
x: nd.norm(x, ord=1, axis=1)
x: nd.SequenceMask(x, nd.array([1, 2, 0]), use_sequence_length=True, value=-1)
x: nd.SequenceLast(x, nd.array([1, 2, 2]), use_sequence_length=True)
x: nd.SequenceReverse(x, nd.array([1, 2, 2]), use_sequence_length=True)
a: nd.linalg.potrf(a)
a: nd.linalg.potri(a)
a: nd.linalg.trsm(a, m)
m: nd.linalg.trsm(a, m, rightside=True)
a: nd.linalg.trmm(a, m)
a: nd.linalg.sumlogdiag(a)
m: nd.linalg.syrk(m)
m: nd.linalg.det(m)
a: nd.linalg.inverse(a)
m: nd.linalg.slogdet(m)[1]
""".strip().split("\n")


def given(nd):
    """name -> array: what the expressions are about."""
    return {
        "x": nd.array((np.arange(24) * 7 % 23 - 11).reshape(2, 3, 4) / 4),
        "v": nd.array([0.25, -0.5, 1, 0.75, -1]),
        "m": nd.array([[3, 1, -2], [1.5, 0.5, 5], [-1, 4, 2]]),
        "p": nd.array(np.arange(9).reshape(1, 1, 3, 3)),
        "a": nd.array([[4, 1, 0.5], [1, 3, -1], [0.5, -1, 5]]),
    }


def answer(expression, nd):
    """[[dtype, numbers], ...]: one an output."""
    outs = eval(expression, {**given(nd), "nd": nd, "np": np})
    outs = outs if isinstance(outs, (list, tuple)) else [outs]
    return [[np.dtype(o.dtype).name, o.asnumpy().tolist()] for o in outs]


def gradient(expression, nd, autograd):
    """The gradient as nested lists."""
    name, _, expression = expression.partition(": ")
    names = given(nd)
    names[name].attach_grad()
    with autograd.record():
        y = eval(expression, {**names, "nd": nd, "np": np})
        y = (y * nd.arange(1, 1 + y.size).reshape(y.shape)).sum()
    y.backward()
    return names[name].grad.asnumpy().tolist()


if __name__ == "__main__":
    import mxnet as mx

    answers = {e: answer(e, mx.nd) for e in VALUES}
    answers |= {e: gradient(e, mx.nd, mx.autograd) for e in GRADIENTS}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items())
    Path(__file__).with_name("answers.json").write_text(f"{{\n{lines}\n}}\n")
