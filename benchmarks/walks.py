"""Nets written once, as walks: whoever brings the operators runs them.

`ops` is an object with

    array(kind, *shape)                the next weight, which a walk asks for in order
    conv(x, w, stride, groups)         a convolution, padded by half of its kernel
    norm(x, gamma, beta, mean, var)    batch normalization by the given statistics, or in
                                       training by the batch's; channels are axis 1
    layer_norm(x, gamma, beta)         of the last axis
    relu(x), relu6(x), gelu(x), softmax(x), add(x, y), concat(xs) (channels)
    max_pool(x)                        3 x 3 at stride 2, padded by 1
    halve(x)                           the mean of 2 x 2 at stride 2
    mean(x)                            of each channel's picture: (n, c)
    dense(x, w, bias)                  x w.T + bias, of the last axis
    heads(x, n), merge(x)              (n, t, c) to (n, heads, t, c / heads), and back
    attend(q, k, v, c)                 softmax(q k.T / sqrt(c)) v, of heads of c numbers

`Shapes` is one that knows shapes only: it tells which weights a net needs, and counts.
`NumpyOps` gives the right answer.

Sources: Gluon's model zoo for the vision nets (He et al. 2015; Sandler et al. 2018; Huang
         et al. 2016); Vaswani et al. 2017 with normalization first for the block.
"""

import math

import lenet
import numpy as np

EPSILON, CLASSES, N_HEADS = 1e-5, 1000, 8
KINDS = {  # of weights: (rng, shape) -> numbers
    "weight": lambda rng, shape: rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:])),
    "bias": lambda rng, shape: rng.standard_normal(shape) * 0.1,
    "gamma": lambda rng, shape: rng.uniform(0.4, 0.8, shape),
    "beta": lambda rng, shape: rng.standard_normal(shape) * 0.1,
    "mean": lambda rng, shape: rng.standard_normal(shape) * 0.1,
    "var": lambda rng, shape: rng.uniform(0.5, 1.5, shape),
}


# -- parts -----------------------------------------------------------------------------
def conv(ops, x, n_in, n_out, size=1, stride=1, groups=1):
    return ops.conv(x, ops.array("weight", n_out, n_in // groups, size, size), stride, groups)


def norm(ops, x, n):
    return ops.norm(x, *(ops.array(kind, n) for kind in ("gamma", "beta", "mean", "var")))


def conv_norm(ops, x, *shape, **more):
    return norm(ops, conv(ops, x, *shape, **more), shape[1])


def dense(ops, x, n_in, n_out):
    return ops.dense(x, ops.array("weight", n_out, n_in), ops.array("bias", n_out))


def layer_norm(ops, x, n):
    return ops.layer_norm(x, ops.array("gamma", n), ops.array("beta", n))


# -- nets ------------------------------------------------------------------------------
def basic(ops, x, n_in, n_out, stride):
    """Two convolutions of 3 x 3."""
    y = ops.relu(conv_norm(ops, x, n_in, n_out, 3, stride))
    return conv_norm(ops, y, n_out, n_out, 3)


def bottleneck(ops, x, n_in, n_out, stride):
    """A convolution of 3 x 3 between two of 1 x 1, on a quarter of the channels."""
    n = n_out // 4
    y = ops.relu(conv_norm(ops, x, n_in, n, 1, stride))
    y = ops.relu(conv_norm(ops, y, n, n, 3))
    return conv_norm(ops, y, n, n_out)


def resnet(part, lengths, channels):
    def walk(ops, x):
        x = ops.max_pool(ops.relu(conv_norm(ops, x, 3, 64, 7, 2)))
        before = 64
        for stage, (length, now) in enumerate(zip(lengths, channels, strict=True)):
            for block in range(length):
                stride = 2 if stage and not block else 1
                y = part(ops, x, before, now, stride)
                if before != now:
                    x = conv_norm(ops, x, before, now, 1, stride)
                x, before = ops.relu(ops.add(x, y)), now
        return dense(ops, ops.mean(x), before, CLASSES)

    return walk


def mobilenet_v2(ops, x):
    def act(*args, **more):
        return ops.relu6(conv_norm(ops, *args, **more))

    x, before = act(x, 3, 32, 3, 2), 32
    for factor, now, length, first in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for block in range(length):
            n, stride = before * factor, first if block == 0 else 1
            y = act(x, before, n)
            y = act(y, n, n, 3, stride, groups=n)
            y = conv_norm(ops, y, n, now)
            x = ops.add(x, y) if stride == 1 and before == now else y
            before = now
    return dense(ops, ops.mean(act(x, 320, 1280)), 1280, CLASSES)


def densenet169(ops, x):
    growth, n = 32, 64
    x = ops.max_pool(ops.relu(conv_norm(ops, x, 3, n, 7, 2)))
    for stage, length in enumerate((6, 12, 32, 32)):
        if stage:
            x = ops.halve(conv(ops, ops.relu(norm(ops, x, n)), n, n // 2))
            n //= 2
        for _ in range(length):
            y = conv(ops, ops.relu(norm(ops, x, n)), n, 4 * growth)
            y = conv(ops, ops.relu(norm(ops, y, 4 * growth)), 4 * growth, growth, 3)
            x, n = ops.concat([x, y]), n + growth
    return dense(ops, ops.mean(ops.relu(norm(ops, x, n))), n, CLASSES)


def transformer_block(ops, x, n=512):
    y = layer_norm(ops, x, n)
    q, k, v = (ops.heads(dense(ops, y, n, n), N_HEADS) for _ in "qkv")
    x = ops.add(x, dense(ops, ops.merge(ops.attend(q, k, v, n // N_HEADS)), n, n))
    y = ops.gelu(dense(ops, layer_norm(ops, x, n), n, 4 * n))
    return ops.add(x, dense(ops, y, 4 * n, n))


def small_convnet(ops, x):
    """Ten classes of small pictures, with normalization behind each convolution."""
    before = 3
    for n, stride in ((32, 1), (64, 2), (64, 1), (128, 2)):
        x, before = ops.relu(conv_norm(ops, x, before, n, 3, stride)), n
    return dense(ops, ops.mean(x), before, 10)


BOTTLENECKS = (256, 512, 1024, 2048)
WALKS = {  # name -> (walk, shape of the data)
    "resnet18": (resnet(basic, (2, 2, 2, 2), (64, 128, 256, 512)), (1, 3, 64, 64)),
    "resnet50": (resnet(bottleneck, (3, 4, 6, 3), BOTTLENECKS), (1, 3, 224, 224)),
    "mobilenet_v2": (mobilenet_v2, (1, 3, 224, 224)),
    "densenet169": (densenet169, (1, 3, 224, 224)),
    "transformer": (transformer_block, (4, 64, 512)),
    "convnet": (small_convnet, (16, 3, 32, 32)),
}


# -- operators -------------------------------------------------------------------------
class Named:
    """Whoever walks: weights by the names "weight0", "gamma3", ... in the order of use.

    arrays: name -> array, in whatever form the operators take.
    """

    def __init__(self, arrays):
        self.arrays, self.names = arrays, iter(arrays)

    def array(self, kind, *shape):
        name = next(self.names)
        assert name.startswith(kind)
        return self.arrays[name]

    def walk(self, net, x):
        """The net's result, from its first weight on."""
        self.names = (name for name in self.arrays if name not in ("data", "label"))
        return WALKS[net][0](self, x)


class Shapes:
    """Values are shapes; which weights were asked for, and the operations of products."""

    def __init__(self):
        self.shapes, self.flops = {}, 0

    def array(self, kind, *shape):
        self.shapes[f"{kind}{len(self.shapes)}"] = shape
        return shape

    def conv(self, x, w, stride, groups):
        side = -(-x[2] // stride)
        self.flops += 2 * x[0] * math.prod(w) * side * side
        return (x[0], w[0], side, side)

    def same(self, x, *others):
        return x

    norm = layer_norm = relu = relu6 = gelu = add = same

    def concat(self, xs):
        return (xs[0][0], sum(x[1] for x in xs), *xs[0][2:])

    def halve(self, x):
        return (*x[:2], x[2] // 2, x[3] // 2)

    max_pool = halve

    def mean(self, x):
        return x[:2]

    def dense(self, x, w, bias):
        self.flops += 2 * math.prod(x[:-1]) * math.prod(w)
        return (*x[:-1], w[0])

    def heads(self, x, n):
        return (x[0], n, x[1], x[2] // n)

    def merge(self, x):
        return (x[0], x[2], x[1] * x[3])

    def attend(self, q, k, v, c):
        self.flops += 4 * math.prod(q) * k[2]
        return q


def shapes_of(net):
    """(name -> shape of each weight, operations, shape of the answer)."""
    walk, data = WALKS[net]
    seen = Shapes()
    out = walk(seen, data)
    return seen.shapes, seen.flops, out


def nbytes(net):
    """Of the data, all weights and statistics, and the answer."""
    weights, _, out = shapes_of(net)
    return 4 * sum(map(math.prod, (WALKS[net][1], *weights.values(), out)))


def arrays(rng, net):
    result = {"data": rng.standard_normal(WALKS[net][1])}
    for name, shape in shapes_of(net)[0].items():
        result[name] = KINDS[name.rstrip("0123456789")](rng, shape)
    return result


class NumpyOps(Named):
    """By formulas; the dtype is that of the arrays."""

    def conv(self, x, w, stride, groups):
        pad = w.shape[2] // 2
        if groups == 1:
            return lenet.convolve(x, w, pad, stride)
        seen = lenet.windows(x, pad, w.shape[2], stride)
        return np.einsum("nchwij,cij->nchw", seen, w[:, 0])  # a channel of its own for each

    def norm(self, x, *statistics):
        gamma, beta, mean, var = (a[:, None, None] for a in statistics)
        return (x - mean) / np.sqrt(var + EPSILON) * gamma + beta

    def layer_norm(self, x, gamma, beta):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * gamma + beta

    def relu(self, x):
        return np.maximum(x, 0)

    def relu6(self, x):
        return np.clip(x, 0, 6)

    def gelu(self, x):
        from scipy.special import erf

        return x * (erf(x * math.sqrt(0.5)) + 1) * 0.5

    add = staticmethod(np.add)

    def concat(self, xs):
        return np.concatenate(xs, 1)

    def max_pool(self, x):  # padded by zeros: the numbers come from relu
        return lenet.windows(x, 1, 3, 2).max(axis=(4, 5))

    def halve(self, x):
        n, c, h, w = x.shape
        return x.reshape(n, c, h // 2, 2, w // 2, 2).mean(axis=(3, 5))

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
        scores = q @ k.swapaxes(2, 3) / math.sqrt(c)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ v


def answer(net, a):
    return NumpyOps(a).walk(net, a["data"])
