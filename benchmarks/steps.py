"""A training step of the nets of `walks.py`, forwards and backwards in NumPy: the right answers.

Source: the gradient of batch normalization is Ioffe and Szegedy's (2015); Adam is Kingma and
        Ba's (2014), with epsilon where MXNet has it.
"""

import math

import lenet
import numpy as np
import walks
from walks import EPSILON, NumpyOps

# name -> (net, optimizer, its learning rate); the loss of both is per sample.
STEPS = {
    "train_transformer": ("transformer", "sgd", 0.1),  # half the mean square error
    "train_convnet": ("convnet", "adam", 0.001),  # cross entropy of a softmax
}
BETA1, BETA2, TINY = 0.9, 0.999, 1e-8  # of Adam
CONSTANT = ("mean", "var", "data", "label")  # what a step leaves as it is


def arrays(rng, name):
    """Those of the net, and what it should have answered."""
    net = STEPS[name][0]
    result = walks.arrays(rng, net)
    shape = walks.shapes_of(net)[2]
    is_class = STEPS[name][1] == "adam"
    result["label"] = (
        rng.integers(0, shape[1], shape[0]) if is_class else rng.standard_normal(shape)
    )
    return result


def nbytes(name):
    """Data, labels and losses once; trained weights are read and written, statistics read."""
    net = STEPS[name][0]
    weights, _, out = walks.shapes_of(net)
    n_label = out[0] if STEPS[name][1] == "adam" else math.prod(out)
    n_numbers = math.prod(walks.WALKS[net][1]) + n_label + out[0]
    n_numbers += sum(math.prod(s) * (2 - w.startswith(CONSTANT)) for w, s in weights.items())
    return 4 * n_numbers


def trained(a):
    """The names of the weights that a step changes, in the order of use."""
    return [name for name in a if not name.startswith(CONSTANT)]


class Tape(NumpyOps):
    """Values are lists [array, gradient]; `back` holds what each operator does on the way back."""

    def __init__(self, a):
        super().__init__({name: [array, 0.0] for name, array in a.items()})
        self.back = []

    def note(self, out, *gradients):
        """A new value; gradients: (value, its gradient of the gradient of `out`)."""
        result = [out, 0.0]

        def back():
            for value, gradient in gradients:
                value[1] = value[1] + gradient(result[1])

        self.back.append(back)
        return result

    def conv(self, x, w, stride, groups):
        (a, _), (b, _) = x, w
        size = len(b[0, 0])
        pad = size // 2

        def of_x(g):
            wide = np.zeros_like(a, shape=(*a.shape[:2], *(n + 2 * pad for n in a.shape[2:])))
            for i, j in np.ndindex(size, size):
                rows, columns = (slice(k, k + stride * n, stride)
                                 for k, n in zip((i, j), g.shape[2:], strict=True))  # fmt: skip
                wide[:, :, rows, columns] += np.einsum("nohw,oc->nchw", g, b[:, :, i, j])
            return wide[:, :, pad : pad + a.shape[2], pad : pad + a.shape[3]]

        def of_w(g):
            seen = lenet.windows(a, pad, size, stride)
            return np.einsum("nchwij,nohw->ocij", seen, g, optimize=True)

        return self.note(super().conv(a, b, stride, groups), (x, of_x), (w, of_w))

    def norm(self, x, gamma, beta, mean, var):
        return self._normalized(x, gamma, beta, (0, 2, 3), (slice(None), None, None))

    def layer_norm(self, x, gamma, beta):
        return self._normalized(x, gamma, beta, (-1,), ())

    def _normalized(self, x, gamma, beta, axes, spread):
        """Mean 0 and variance 1 along some axes, then a factor and an offset."""
        centered = x[0] - x[0].mean(axes, keepdims=True)
        root = np.sqrt((centered * centered).mean(axes, keepdims=True) + EPSILON)
        y, factor = centered / root, gamma[0][spread or ...]
        others = (0, 2, 3) if spread else tuple(range(y.ndim - 1))

        def of_x(g):
            g = g * factor
            along = g.mean(axes, keepdims=True) + y * (g * y).mean(axes, keepdims=True)
            return (g - along) / root

        return self.note(
            y * factor + beta[0][spread or ...],
            (x, of_x),
            (gamma, lambda g: (g * y).sum(others)),
            (beta, lambda g: g.sum(others)),
        )

    def relu(self, x):
        return self.note(np.maximum(x[0], 0), (x, lambda g: g * (x[0] > 0)))

    def gelu(self, x):
        y = super().gelu(x[0])
        bell = np.exp(-x[0] * x[0] / 2) / math.sqrt(2 * math.pi)
        slope = np.divide(y, x[0]) + x[0] * bell
        return self.note(y, (x, lambda g: g * slope))

    def add(self, x, y):
        return self.note(x[0] + y[0], (x, lambda g: g), (y, lambda g: g))

    def mean(self, x):
        area = math.prod(x[0].shape[2:])
        return self.note(
            super().mean(x[0]),
            (x, lambda g: np.broadcast_to(g[:, :, None, None] / area, x[0].shape)),
        )

    def dense(self, x, w, bias):
        def flat(a):
            return a.reshape(-1, a.shape[-1])

        return self.note(
            super().dense(x[0], w[0], bias[0]),
            (x, lambda g: g @ w[0]),
            (w, lambda g: flat(g).T @ flat(x[0])),
            (bias, lambda g: flat(g).sum(0)),
        )

    def heads(self, x, n):
        return self.note(super().heads(x[0], n), (x, super().merge))

    def merge(self, x):
        n, up = x[0].shape[1], super().heads
        return self.note(super().merge(x[0]), (x, lambda g: up(g, n)))

    def attend(self, q, k, v, c):
        chances = softmax(q[0] @ k[0].swapaxes(2, 3) / math.sqrt(c))

        def of_scores(g):
            g = g @ v[0].swapaxes(2, 3)
            return chances * (g - (g * chances).sum(-1, keepdims=True)) / math.sqrt(c)

        return self.note(
            chances @ v[0],
            (q, lambda g: of_scores(g) @ k[0]),
            (k, lambda g: of_scores(g).swapaxes(2, 3) @ q[0]),
            (v, lambda g: chances.swapaxes(2, 3) @ g),
        )


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def losses_and_gradient(y, label, optimizer):
    """The loss of each sample, and the gradient of their mean."""
    n = len(y)
    if optimizer == "sgd":
        error = y - label
        return (error * error / 2).reshape(n, -1).mean(1), error / error.size
    chances, at = softmax(y), (np.arange(n), label.astype(int))
    losses = -np.log(chances[at])
    chances[at] -= 1
    return losses, chances / n


def step(name, a):
    """(the loss of each sample, the arrays after a first step)."""
    net, optimizer, rate = STEPS[name]
    tape = Tape({key: array for key, array in a.items() if key not in ("data", "label")})
    out = tape.walk(net, [a["data"], 0.0])
    losses, out[1] = losses_and_gradient(out[0], a["label"], optimizer)
    for back in reversed(tape.back):
        back()
    new = dict(a)
    for key in trained(a):
        g = tape.arrays[key][1]
        if optimizer == "adam":  # the first step: mean g, mean square g * g, both unbiased
            g = g / (np.abs(g) + TINY / math.sqrt(1 - BETA2))
        new[key] = a[key] - rate * g
    return losses, new


def step_answer(name, a):
    """What a training step must give: the losses, and the new first and last trained weights."""
    losses, new = step(name, a)
    first, *_, last = trained(a)
    return np.concatenate([v.ravel() for v in (losses, new[first], new[last])])
