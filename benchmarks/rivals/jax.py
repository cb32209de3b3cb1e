"""JAX on the CPU."""

import jax
import jax.numpy as jnp
import numpy as np
import resnet
from jax import lax

VERSION = jax.__version__


def parameters(a, n):
    """The weights and biases of `n` layers."""
    return [(jnp.asarray(a[f"weight{i}"]), jnp.asarray(a[f"bias{i}"])) for i in range(n)]


def arrays(a, *names):
    return tuple(jnp.asarray(a[name]) for name in names)


def mlp(a):
    # JAX's own layers keep weights as (inputs, outputs); the other way is slower.
    params = [(w.T, b) for w, b in parameters(a, 3)]

    def net(params, x):
        (w0, b0), (w1, b1), (w2, b2) = params
        h = jax.nn.relu(x @ w0 + b0)
        h = jax.nn.relu(h @ w1 + b1)
        return h @ w2 + b2

    return (net, params), arrays(a, "data")


def pool(x, size, pads):
    return lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 1, size, size), (1, 1, 2, 2), [(0, 0), (0, 0), pads, pads]
    )


def lenet(a):
    def net(params, x):
        for (w, b), pad in zip(params[:2], ("SAME", "VALID"), strict=True):
            x = lax.conv(x, w, (1, 1), pad) + b[:, None, None]
            x = pool(jax.nn.relu(x), 2, (0, 0))
        x = x.reshape(len(x), -1)
        for i, (w, b) in enumerate(params[2:]):
            x = x @ w.T + b
            x = jax.nn.relu(x) if i < 2 else x
        return x

    return (net, parameters(a, 5)), arrays(a, "data")


def train_lenet(a):
    net, (x,) = lenet(a)
    return net, (x, jnp.asarray(a["label"], jnp.int32))


def layer_norm(a):
    def net(params, x):
        gamma, beta = params
        x = x - x.mean(axis=1, keepdims=True)
        variance = (x * x).mean(axis=1, keepdims=True)
        return x * lax.rsqrt(variance + 1e-5) * gamma + beta

    return (net, arrays(a, "gamma", "beta")), arrays(a, "data")


class ResNetOps:
    def __init__(self, a):
        self.a = a

    def conv(self, x, i, stride, pad):
        y = lax.conv(x, self.a[f"weight{i}"], (stride, stride), [(pad, pad)] * 2)
        scale = self.a[f"gamma{i}"] * lax.rsqrt(self.a[f"var{i}"] + resnet.EPSILON)
        shift = self.a[f"beta{i}"] - scale * self.a[f"mean{i}"]
        return scale[:, None, None] * y + shift[:, None, None]

    relu = staticmethod(jax.nn.relu)
    add = staticmethod(jnp.add)

    def pool(self, x):
        return pool(x, 3, (1, 1))

    def head(self, x):
        return x.mean(axis=(2, 3)) @ self.a["weight"].T + self.a["bias"]


def resnet18(a):
    params = {name: jnp.asarray(v) for name, v in a.items() if name != "data"}
    return ((lambda params, x: resnet.forward(ResNetOps(params), x)), params), arrays(a, "data")


def function(f, *names):
    return lambda a: ((lambda params, *data: f(*data), ()), arrays(a, *names))


def jit(net, data):
    f, params = net
    fast = jax.jit(f)
    return lambda: fast(params, *data).block_until_ready()


def jit_frozen(net, data):
    f, params = net
    fast = jax.jit(lambda *data: f(params, *data))  # weights are constants of it
    return lambda: fast(*data).block_until_ready()


def trained_jit(net, data):
    f, params = net
    x, label = data

    def losses(params):
        logits = jax.nn.log_softmax(f(params, x))
        each = -logits[jnp.arange(len(label)), label]
        return each.mean(), each

    @jax.jit
    def step(params):
        (_, each), grads = jax.value_and_grad(losses, has_aux=True)(params)
        return each, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    def call():
        nonlocal params
        each, params = step(params)
        jax.block_until_ready(params)
        return each, params[0][0], params[4][0]

    return call


BUILD = {
    "mlp": mlp,
    "lenet": lenet,
    "train_lenet": train_lenet,
    "plain": function(lambda a, b, c: a * b + c, *"abc"),
    "elementwise": function(lambda a, b, c: jnp.tanh(a * b + c) * a - jnp.exp(-c * c), *"abc"),
    "softmax": function(jax.nn.softmax, "data"),
    "layer_norm": layer_norm,
    "resnet18": resnet18,
}
MODES = {"jit": jit, "jit, weights constant": jit_frozen}
TRAIN = {"jit": trained_jit}
to_numpy = np.asarray
