"""Write this folder's files with MXNet 1.9.1: what its np says of expressions.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):
    benchmarks/envs/mxnet/bin/python tests/golden/np/make_golden.py
"""

import json
from pathlib import Path

import mxnet as mx
import net_of_np
import numpy as onp
from mxnet import gluon, np, npx

HERE = Path(__file__).parent

# The names that expressions use; the test makes the same.
NAMES = """
a = np.array([[1, 2, 3], [4, 5, 6]])
b = np.array([1.0, 2.5, -3.0])
d = np.array([1.0, 2.0, 3.0], dtype='float64')
h = np.array([1.0, 2.0], dtype='float16')
i = np.array([1, 2, 3], dtype='int32')
j = np.array([5, 7, 9], dtype='int64')
u = np.array([1, 2, 255], dtype='uint8')
t = b > 1.5
s = np.array(2.0)
m = np.array([[2.0, 1.0], [1.0, 3.0]])
x = np.arange(24).reshape(2, 3, 4)
"""

EXPRESSIONS = """
a; b; d; h; i; j; u; t; s; x; np.array([]); np.array(3); np.array([True, False])
np.array([[1.5, 2]]); np.array([1, 2], dtype='int8'); np.array(1.5, dtype='float64')
np.zeros((2, 3)); np.zeros(()); np.zeros((0, 3)); np.ones(3, dtype='int32')
np.ones(3, dtype=np.float64); np.full((2,), 7); np.full((2,), 7.5); np.arange(3)
np.arange(0, 1, 0.25); np.arange(3, dtype='int64'); np.arange(5, 1, -2); np.eye(2)
np.eye(2, 3, 1); np.identity(2); np.linspace(0, 1, 5); np.logspace(0, 2, 3)
np.linspace(0, 1, 5, endpoint=False); np.zeros_like(a); np.ones_like(i)
np.full_like(b, 2); np.indices((2, 3)); np.meshgrid(b, i)[0]; np.tril(a)
np.tril(a, k=-1); np.diag(b); np.diag(a); np.diagonal(a); np.trace(a)
a + 1; a + b; a + i; i + 1; i + i; i + j; i + d; d + b; u + i; t + 1; t + t; t * b
i / 2; i / i; a % 2; a ** 2; i ** 2; 2 ** b; 1 / b; 1 - b; -a; -i; abs(-a); 7 % b
a > 2; a == a; a > b; a >= b; a < b; a <= 3; a != b; b == 2.5; ~t; t & t; t | t; i & 1
s + 1; s > 1; s * b; b * s; s * s
a.sum(); a.sum(axis=0); a.sum(axis=0, keepdims=True); a.sum(axis=(0, 1)); i.sum()
u.sum(); j.sum(); t.sum(); a.mean(); i.mean(); u.mean(); d.mean(); a.mean(axis=1)
a.max(); a.max(axis=0); i.max(); a.min(); a.argmax(); a.argmax(axis=0); a.argmin(axis=1)
a.cumsum(); a.cumsum(axis=0); i.cumsum(); a.std(); a.var(axis=0); a.var(ddof=1)
a.prod(); i.prod(); np.sum(a, dtype='float64'); np.sum(i, dtype='float32')
np.any(t); np.all(t); np.any(a, axis=0); np.zeros((2, 0)).sum(); np.average(a)
np.average(a, weights=a); s.sum(); s.mean(); s.max(); np.prod(a, axis=1)
a[0, 0]; a[0]; a[:, 1]; a[..., 0]; a[a > 2]; a[np.array([0, 1, 1])]; a[[0, 1, 1]]
a[np.array([0, 1]), np.array([0, 1])]; a[None]; a[:, np.newaxis]; a[-1, ::2]; x[1, :, 2]
a[0, 0].shape; a.shape; a.size; a.ndim; s.shape; len(a); a.dtype; t.dtype; i.dtype
a.T; a.reshape(3, 2); a.reshape(-1); a.reshape((3, -1)); a.flatten(); np.ravel(a)
np.ones((1, 3, 1)).squeeze(); np.ones((1, 1)).squeeze(); a.transpose(1, 0)
x.transpose()
a.repeat(2); a.repeat(2, axis=1); a.clip(2, 4); a.astype('int32'); a.astype(np.float64)
a.astype(bool); b.item(1); s.item(); a.tolist(); s.tolist(); a.copy(); a.detach()
np.dot(b, b); np.dot(a, b); np.dot(a, a.T); np.dot(x, np.ones((4, 2)))
np.matmul(a, a.T); b.dot(b); np.vdot(b, b); np.inner(b, b); np.outer(b, b)
np.matmul(x, np.ones((4, 2))); np.tensordot(a, a, axes=([0], [0]))
np.tensordot(a, a, 2)
np.tensordot(a, b, 1); np.einsum('ij,kj->ik', a, a); np.einsum('ii', m)
np.einsum('ij->ji', a); np.einsum('bij,bjk->bik', x, np.ones((2, 4, 5)))
np.exp(b); np.log(d); np.sqrt(d); np.square(i); np.sign(i); np.abs(-i); np.tanh(b)
np.sin(b); np.cos(b); np.floor(b); np.ceil(b); np.rint(b); np.fix(b); np.trunc(b)
np.expm1(b); np.log1p(d); np.log2(d); np.log10(d); np.cbrt(b); np.reciprocal(b)
np.degrees(b); np.radians(b); np.arctan(b); np.sinh(b); np.arcsinh(b); np.negative(b)
np.around(b); np.round(np.array([0.5, 1.5, 2.567]), 1); np.logical_not(b); np.isnan(b)
np.isinf(b); np.isfinite(b / 0); np.isposinf(b / 0); np.isneginf(b / 0); np.absolute(b)
np.maximum(a, b); np.maximum(b, 2); np.maximum(2, b); np.minimum(i, 2); np.add(a, 1)
np.subtract(1, b); np.multiply(a, b); np.power(2, b); np.true_divide(i, i); np.mod(i, 2)
np.divide(a, b); np.hypot(b, b); np.lcm(i, i); np.copysign(b, -1.0); np.ldexp(b, b)
np.concatenate([a, a]); np.concatenate([a, a], axis=1)
np.concatenate([a, a], axis=None)
np.stack([b, b]); np.stack([b, b], axis=1); np.vstack([b, b]); np.hstack([b, b])
np.dstack([b, b]); np.column_stack([b, b]); np.split(b, 3); np.split(a, [1], axis=1)
np.array_split(b, 2); np.vsplit(a, 2); np.hsplit(a, 3); np.append(b, b)
np.where(t, b, 0); np.where(t, b, b); np.take(b, np.array([0, 2])); np.sort(b)
np.take(a, np.array([0, 1]), axis=1); np.tile(b, 2); np.tile(a, (2, 1)); np.repeat(b, 2)
np.roll(b, 1); np.roll(a, 1); np.roll(a, 1, axis=1); np.roll(a, (1, 1), axis=(0, 1))
np.flip(b); np.flip(a, 1); np.expand_dims(b, 0); np.broadcast_to(b, (2, 3))
np.moveaxis(x, 0, -1); np.swapaxes(a, 0, 1); np.atleast_1d(s); np.atleast_2d(b)
np.atleast_3d(b); np.pad(a, ((1, 1), (0, 2)), mode='edge'); np.argsort(b); a.argsort()
np.pad(a, ((1, 1), (0, 2)), mode='reflect')
np.pad(a, ((1, 0), (0, 2)), mode='constant')
np.nonzero(b); np.unique(i); np.diff(b); np.sort(a, axis=None)
np.shape(a); np.ndim(a); np.size(a); np.pi; np.inf; np.newaxis; np.float32
np.linalg.norm(b); np.linalg.norm(a, axis=1); np.linalg.norm(a, ord=1, axis=1)
np.linalg.norm(a); np.linalg.norm(a, ord='fro'); np.linalg.norm(b, ord=3)
np.linalg.norm(b, keepdims=True); np.linalg.det(m); np.linalg.inv(m)
np.linalg.solve(m, np.ones((2,)))
npx.relu(b); npx.sigmoid(b); npx.softmax(b); npx.softmax(a, axis=0); npx.log_softmax(b)
npx.one_hot(np.array([0, 2]), 3); npx.pick(a, np.array([0, 1])); npx.topk(a)
npx.topk(a, ret_typ='value', k=2); npx.reshape(a, (-2, -1)); npx.reshape_like(a, a.T)
npx.reshape(x, (-2, -5)); npx.reshape(x, (-6, 1, 2, -4)); npx.reshape(x, (-1, -2))
npx.reshape(x, (-5, -2), reverse=True)
npx.batch_dot(x, np.ones((2, 4, 1))); npx.batch_flatten(x); npx.activation(b, 'tanh')
npx.fully_connected(a, np.ones((2, 3)), np.zeros(2), num_hidden=2)
npx.layer_norm(a, np.ones(3), np.zeros(3)); npx.gather_nd(a, np.array([[0, 1], [1, 2]]))
npx.embedding(np.array([0, 1]), np.ones((3, 2)), input_dim=3, output_dim=2)
npx.slice(a, begin=(0, 1), end=(1, 3)); npx.leaky_relu(b); npx.smooth_l1(b)
npx.shape_array(a); npx.gamma(d); npx.erf(b); npx.current_context(); npx.num_gpus()
npx.is_np_array(); a.ctx; a.context; str(a); str(s); a.as_nd_ndarray()
mx.nd.ones((2,)).as_np_ndarray(); mx.nd.arange(3).as_np_ndarray() + 1
np.random.uniform(size=(2, 3)).shape; np.random.uniform(size=(2, 3)).dtype
np.random.normal().shape; np.random.normal(size=4).dtype; np.random.rand(2, 3).shape
np.random.randn(2).dtype; np.random.randint(0, 5, size=(2,)).dtype
np.random.randint(5).shape; np.random.choice(5, 3).dtype; np.random.choice(b, 2).dtype
np.random.multinomial(10, [0.5, 0.5], size=3).shape; np.random.gamma(2.0, size=3).dtype
"""


def described(value):
    """What a test compares: class, shape, dtype, text, numbers."""
    if isinstance(value, (list, tuple)):
        return [described(v) for v in value]
    text = {"text": repr(value), "type": type(value).__name__}
    if hasattr(value, "asnumpy"):
        data = value.asnumpy()
        return {
            **text,
            "shape": list(value.shape),
            "dtype": str(onp.dtype(value.dtype)),
            "values": onp.asarray(data, "float64").tolist(),
        }
    return text


def parts(text):
    """The expressions of a text: one a semicolon or line."""
    return [e.strip() for line in text.splitlines() for e in line.split(";") if e.strip()]


def main():
    """Write expressions.json and the net."""
    npx.set_np()
    scope = {"np": np, "npx": npx, "mx": mx}
    exec(NAMES, scope)
    described_of = {e: described(eval(e, scope)) for e in parts(EXPRESSIONS)}
    made = {"names": NAMES, "expressions": described_of}
    (HERE / "expressions.json").write_text(json.dumps(made, indent=1) + "\n")
    net = net_of_np.make(gluon)
    net.initialize()
    net.hybridize()
    x = np.arange(6).reshape(2, 3) / 4
    net(x)
    net.weight.set_data(np.arange(12).reshape(4, 3) / 8 - 0.5)
    y = net(x)
    net.export(str(HERE / "net"))
    npx.save(str(HERE / "net-answers.nd"), {"x": x, "y": y})


if __name__ == "__main__":
    main()
