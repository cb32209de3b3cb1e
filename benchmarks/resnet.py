"""ResNet-18 for pictures of 64 x 64, as in Gluon's model zoo (`resnet18_v1`).

`forward` writes the net once, for whoever brings the operators: NumPy here, which gives
the right answer, and those rivals that have no net of their own.
"""

from itertools import count

import lenet
import numpy as np

SIDE, CHANNELS, CLASSES, EPSILON = 64, (64, 64, 128, 256, 512), 1000, 1e-5


def convolutions():
    """(channels out, channels in, kernel, stride, padding), in the order of use."""
    yield 64, 3, 7, 2, 3
    for stage, (before, now) in enumerate(zip(CHANNELS, CHANNELS[1:], strict=False)):
        for block in (0, 1):
            shrinks = stage > 0 and block == 0
            yield (now, before, 3, 2, 1) if shrinks else (now, now, 3, 1, 1)
            yield now, now, 3, 1, 1
            if shrinks:
                yield now, before, 1, 2, 0


def arrays(rng):
    found = {"data": rng.standard_normal((1, 3, SIDE, SIDE))}
    for i, (n_out, n_in, size, _, _) in enumerate(convolutions()):
        scale = np.sqrt(2 / (n_in * size * size))
        found[f"weight{i}"] = rng.standard_normal((n_out, n_in, size, size)) * scale
        found[f"gamma{i}"] = rng.uniform(0.4, 0.8, n_out)
        found[f"beta{i}"] = rng.standard_normal(n_out) * 0.1
        found[f"mean{i}"] = rng.standard_normal(n_out) * 0.1
        found[f"var{i}"] = rng.uniform(0.5, 1.5, n_out)
    found["weight"] = rng.standard_normal((CLASSES, CHANNELS[-1])) * 0.05
    found["bias"] = rng.standard_normal(CLASSES) * 0.1
    return found


def forward(ops, x):
    """The scores.

    ops: an object with `conv(x, i, stride, pad)`, convolution and normalisation number
    i; `relu(x)`; `pool(x)`, the maximum of 3 x 3 at stride 2, padded by 1; `add(x, y)`;
    and `head(x)`, the mean of each channel, then the dense layer.
    """
    numbers, layers = count(), list(convolutions())

    def conv(x):
        i = next(numbers)
        return ops.conv(x, i, *layers[i][3:])

    x = ops.pool(ops.relu(conv(x)))
    for stage in range(4):
        for block in (0, 1):
            y = conv(ops.relu(conv(x)))
            if stage > 0 and block == 0:
                x = conv(x)
            x = ops.relu(ops.add(x, y))
    return ops.head(x)


def normalisation(a, i):
    """(scale, shift) of normalisation number i: y = scale * x + shift in a channel."""
    scale = a[f"gamma{i}"] / np.sqrt(a[f"var{i}"] + EPSILON)
    return scale, a[f"beta{i}"] - scale * a[f"mean{i}"]


class NumpyOps:
    def __init__(self, a):
        self.a = a

    def conv(self, x, i, stride, pad):
        scale, shift = (v[:, None, None] for v in normalisation(self.a, i))
        return scale * lenet.convolve(x, self.a[f"weight{i}"], pad, stride) + shift

    def relu(self, x):
        return np.maximum(x, 0)

    def pool(self, x):  # padded by zeros: the numbers come from relu
        return lenet.windows(x, 1, 3, 2).max(axis=(4, 5))

    def add(self, x, y):
        return x + y

    def head(self, x):
        return x.mean(axis=(2, 3)) @ self.a["weight"].T + self.a["bias"]


def answer(a):
    return forward(NumpyOps(a), a["data"])


def flops():
    """Two for each product of the convolutions and of the dense layer."""
    sides = iter(_sides())
    total = 2 * CLASSES * CHANNELS[-1]
    for n_out, n_in, size, _, _ in convolutions():
        total += 2 * n_out * n_in * size * size * next(sides) ** 2
    return total


def nbytes():
    """Of the picture, all weights and statistics, and the scores."""
    n_numbers = 3 * SIDE * SIDE + CLASSES * (CHANNELS[-1] + 2)
    for n_out, n_in, size, _, _ in convolutions():
        n_numbers += n_out * (n_in * size * size + 4)
    return 4 * n_numbers


def _sides():
    """Height of what each convolution gives."""
    yield SIDE // 2
    for stage, side in enumerate((16, 8, 4, 2)):
        yield from [side] * (4 if stage == 0 else 5)
