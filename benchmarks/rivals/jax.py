"""JAX on the CPU."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import steps
import walks
from jax import lax

VERSION, KERNELS = jax.__version__, "XLA through LLVM"


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
    return ((lambda params, x: normalized(x, *params)), arrays(a, "gamma", "beta")), arrays(
        a, "data"
    )


def normalized(x, gamma, beta):
    x = x - x.mean(axis=-1, keepdims=True)
    variance = (x * x).mean(axis=-1, keepdims=True)
    return x * lax.rsqrt(variance + 1e-5) * gamma + beta


class Ops(walks.Named):
    """The operators of a walk; in training, normalization is by the batch's statistics."""

    def __init__(self, arrays, training=False):
        super().__init__(arrays)
        self.training = training

    def conv(self, x, w, stride, groups):
        pads = [(w.shape[2] // 2,) * 2] * 2
        return lax.conv_general_dilated(x, w, (stride, stride), pads, feature_group_count=groups)

    def norm(self, x, gamma, beta, mean, var):
        if self.training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        scale = gamma * lax.rsqrt(var + walks.EPSILON)
        return scale[:, None, None] * x + (beta - scale * mean)[:, None, None]

    def layer_norm(self, x, gamma, beta):
        return normalized(x, gamma, beta)

    relu, relu6, add = map(staticmethod, (jax.nn.relu, jax.nn.relu6, jnp.add))
    gelu = staticmethod(partial(jax.nn.gelu, approximate=False))

    def concat(self, xs):
        return jnp.concatenate(xs, 1)

    def max_pool(self, x):
        return pool(x, 3, (1, 1))

    def halve(self, x):
        return lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4

    def mean(self, x):
        return x.mean(axis=(2, 3))

    def dense(self, x, w, bias):
        return x @ w.T + bias

    def heads(self, x, n):
        return x.reshape(*x.shape[:2], n, -1).swapaxes(1, 2)

    def merge(self, x):
        x = x.swapaxes(1, 2)
        return x.reshape(*x.shape[:2], -1)

    def attend(self, q, k, v, c):
        return jax.nn.softmax(q @ k.swapaxes(2, 3) / math.sqrt(c)) @ v


def weights(a):
    return {name: jnp.asarray(v) for name, v in a.items() if name not in ("data", "label")}


def walk(net, a):
    params = weights(a)
    names = [*params]  # jit sorts them

    def run(params, x):
        return Ops({name: params[name] for name in names}).walk(net, x)

    return (run, params), arrays(a, "data")


def train_walk(name, a):
    net, optimizer, rate = steps.STEPS[name]

    def losses(params, rest, x, label):
        y = Ops({key: (params | rest)[key] for key in names}, training=True).walk(net, x)
        if optimizer == "sgd":
            each = ((y - label) ** 2 / 2).reshape(len(y), -1).mean(1)
        else:
            each = -jax.nn.log_softmax(y)[jnp.arange(len(label)), label.astype(int)]
        return each.mean(), each

    names = [name for name in a if name not in ("data", "label")]
    params = {key: jnp.asarray(a[key]) for key in steps.trained(a)}
    rest = {key: jnp.asarray(a[key]) for key in names if key not in params}
    change = sgd(rate) if optimizer == "sgd" else adam(rate)
    ends = [*params][0], [*params][-1]
    return (losses, change, params, rest, ends), arrays(a, "data", "label")


def sgd(rate):
    return lambda p, g, state, t: (p - rate * g, state)


def adam(rate):
    def change(p, g, state, t):
        m, v = (
            steps.BETA1 * state[0] + (1 - steps.BETA1) * g,
            (steps.BETA2 * state[1] + (1 - steps.BETA2) * g * g),
        )
        now = rate * jnp.sqrt(1 - steps.BETA2**t) / (1 - steps.BETA1**t)
        return p - now * m / (jnp.sqrt(v) + steps.TINY), (m, v)

    return change


def lstm(a):
    def net(params, x):
        from_x, from_h, bias_x, bias_h = params
        given = x @ from_x.T + (bias_x + bias_h)

        def step(state, now):
            h, c = state
            i, f, g, o = jnp.split(now + h @ from_h.T, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[1], from_h.shape[1]))
        return lax.scan(step, (zero, zero), given)[1]

    return (net, arrays(a, "from_x", "from_h", "bias_x", "bias_h")), arrays(a, "data")


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
    return stepped(net, data) if callable(net[1]) else sgd_of_lenet(net, data)


def stepped(net, data):
    losses, change, params, rest, (first, last) = net
    state, t = {key: (jnp.zeros_like(p),) * 2 for key, p in params.items()}, jnp.float32(0)

    @jax.jit
    def step(params, state, t):
        (_, each), grads = jax.value_and_grad(losses, has_aux=True)(params, rest, *data)
        new = {key: change(params[key], grads[key], state[key], t + 1) for key in params}
        return each, *({key: pair[k] for key, pair in new.items()} for k in (0, 1)), t + 1

    def call():
        nonlocal params, state, t
        each, params, state, t = step(params, state, t)
        jax.block_until_ready(params)
        return each, params[first], params[last]

    return call


def sgd_of_lenet(net, data):
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
    "lstm": lstm,
    **{net: partial(walk, net) for net in walks.WALKS},
    **{name: partial(train_walk, name) for name in steps.STEPS},
}
MODES = {"jit": jit, "jit, weights constant": jit_frozen}
TRAIN = {"jit": trained_jit}
to_numpy = np.asarray
