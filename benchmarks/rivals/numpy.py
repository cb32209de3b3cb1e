"""NumPy, written as one writes it by hand."""

from functools import partial

import lenet
import lstm
import numpy as np
import steps
import walks

VERSION, BUILT = np.__version__, np.show_config("dicts")
KERNELS = "{name} {version}".format(**BUILT["Build Dependencies"]["blas"])
KERNELS += f", {BUILT['SIMD Extensions']['found'][-1]}"


def mlp(a):
    (w0, b0), (w1, b1), (w2, b2) = ((a[f"weight{i}"], a[f"bias{i}"]) for i in range(3))

    def net(x):
        h = np.maximum(x @ w0.T + b0, 0)
        h = np.maximum(h @ w1.T + b1, 0)
        return h @ w2.T + b2

    return net, (a["data"],)


def lenet_forward(a):
    return (lambda x: lenet.answer({**a, "data": x})), (a["data"],)


def train_lenet(a):
    def step(a):
        losses, new = lenet.step(a)
        a.update(new)
        return losses, a["weight0"], a["weight4"]

    return step, (a,)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    return e


def layer_norm(a):
    def net(x):
        x = x - x.mean(axis=1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-5))
        x *= a["gamma"]
        x += a["beta"]
        return x

    return net, (a["data"],)


def walk(net, a):
    return partial(walks.NumpyOps(a).walk, net), (a["data"],)


def train_walk(name, a):
    def step(a):
        losses, new = steps.step(name, a)
        first, *_, last = steps.trained(a)
        return losses, new[first], new[last]  # the second step would need Adam's means

    return step, (a,)


def lstm_forward(a):
    return (lambda x: lstm.answer({**a, "data": x})), (a["data"],)


def copy(a):
    target = np.empty_like(a["data"])

    def net(x):
        np.copyto(target, x)
        return target

    return net, (a["data"],)


def function(f, *names):
    return lambda a: (f, tuple(a[name] for name in names))


BUILD = {
    "mlp": mlp,
    "lenet": lenet_forward,
    "train_lenet": train_lenet,
    "plain": function(lambda a, b, c: a * b + c, *"abc"),
    "elementwise": function(lambda a, b, c: np.tanh(a * b + c) * a - np.exp(-c * c), *"abc"),
    "softmax": function(softmax, "data"),
    "layer_norm": layer_norm,
    "lstm": lstm_forward,
    **{net: partial(walk, net) for net in walks.WALKS},
    **{name: partial(train_walk, name) for name in steps.STEPS},
    "matmul": function(lambda x: x @ x, "data"),
    "copy": copy,
}
MODES = {"eager": lambda net, data: lambda: net(*data)}
TRAIN = MODES
to_numpy = np.asarray
