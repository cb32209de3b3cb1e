"""tinygrad on its CPU device, each net recorded once by TinyJit."""

import os
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

import walks
import ziglang
from tinygrad import Context, Device, Tensor, TinyJit
from tinygrad.nn.optim import SGD

VERSION = version("tinygrad")
KERNELS = f"clang of ziglang {version('ziglang')}"

# Its CPU device calls a program named clang; Zig's wheel has one inside.
CLANG = Path(sys.prefix) / "bin" / "clang"
CLANG.write_text(f'#!/bin/sh\nexec "{Path(ziglang.__file__).parent / "zig"}" clang "$@"\n')
CLANG.chmod(0o755)
os.environ["CC"] = str(CLANG)


def tensors(a, *names):
    return tuple(Tensor(a[name]).realize() for name in names)


def layers(a, n):
    """The weights and biases of `n` layers."""
    return [tensors(a, f"weight{i}", f"bias{i}") for i in range(n)]


def mlp(a):
    first, second, last = layers(a, 3)

    def dense(x, weight, bias):
        return x.linear(weight.T, bias)

    def net(x):
        return dense(dense(dense(x, *first).relu(), *second).relu(), *last)

    return net, tensors(a, "data")


def lenet(a):
    parameters = layers(a, 5)

    def net(x):
        for (w, b), pad in zip(parameters[:2], (2, 0), strict=True):
            x = x.conv2d(w, b, padding=pad).relu().max_pool2d(2)
        x = x.flatten(1)
        for i, (w, b) in enumerate(parameters[2:]):
            x = x.linear(w.T, b)
            x = x.relu() if i < 2 else x
        return x

    net.parameters = [p for pair in parameters for p in pair]
    return net, tensors(a, "data")


def train_lenet(a):
    net, (x,) = lenet(a)
    return net, (x, Tensor(a["label"].astype("int32")).realize())


def layer_norm(a):
    gamma, beta = tensors(a, "gamma", "beta")
    return (lambda x: x.layernorm(eps=1e-5) * gamma + beta), tensors(a, "data")


class Ops(walks.Named):
    """The operators of ResNet-18."""

    def conv(self, x, w, stride, groups):
        return x.conv2d(w, groups=groups, stride=stride, padding=w.shape[2] // 2)

    def norm(self, x, gamma, beta, mean, var):
        return x.batchnorm(gamma, beta, mean, (var + walks.EPSILON).rsqrt())

    def relu(self, x):
        return x.relu()

    def max_pool(self, x):
        return x.max_pool2d(3, 2, padding=1)

    def add(self, x, y):
        return x + y

    def mean(self, x):
        return x.mean(axis=(2, 3))

    def dense(self, x, w, bias):
        return x.linear(w.T, bias)


def walk(net, a):
    ops = Ops({name: Tensor(v).realize() for name, v in a.items() if name != "data"})
    return partial(ops.walk, net), tensors(a, "data")


def function(f, *names):
    return lambda a: (f, tensors(a, *names))


def finished(f):
    """`f`, and the wait for what it has queued."""

    def call():
        result = f()
        Device[Device.DEFAULT].synchronize()
        return result

    return call


def jit(net, data):
    fast = TinyJit(lambda *data: net(*data).realize())
    return finished(lambda: fast(*data))


def trained_jit(net, data):
    """A step of SGD a call."""
    x, label = data
    optimizer = SGD(net.parameters, lr=0.1)

    @TinyJit
    @Context(TRAINING=1)
    def step(x, label):
        optimizer.zero_grad()
        losses = net(x).sparse_categorical_crossentropy(label, reduction="none")
        losses.mean().backward()
        return losses.realize(*optimizer.schedule_step())

    return finished(lambda: (step(x, label), net.parameters[0], net.parameters[8]))


BUILD = {
    "mlp": mlp,
    "lenet": lenet,
    "train_lenet": train_lenet,
    "plain": function(lambda a, b, c: a * b + c, *"abc"),
    "elementwise": function(lambda a, b, c: (a * b + c).tanh() * a - (-c * c).exp(), *"abc"),
    "softmax": function(lambda x: x.softmax(), "data"),
    "layer_norm": layer_norm,
    "resnet18": partial(walk, "resnet18"),
}
MODES = {"TinyJit": jit}
TRAIN = {"TinyJit": trained_jit}


def to_numpy(result):
    return result.numpy()
