"""LeNet on 28 x 28 images in NumPy, forwards and backwards: the right answers.

Convolution 6 @ 5 x 5 (padded by 2), relu, maximum of 2 x 2, convolution 16 @ 5 x 5,
relu, maximum of 2 x 2, layers of 120, 84 and 10.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

RATE = 0.1  # of SGD
SHAPES = [(6, 1, 5, 5), (16, 6, 5, 5), (120, 400), (84, 120), (10, 84)]


def arrays(rng, batch):
    result = {"data": rng.standard_normal((batch, 1, 28, 28)), "label": rng.integers(0, 10, batch)}
    for i, shape in enumerate(SHAPES):
        scale = np.sqrt(2 / np.prod(shape[1:]))
        result[f"weight{i}"] = rng.standard_normal(shape) * scale
        result[f"bias{i}"] = rng.standard_normal(shape[0]) * 0.1
    return result


def windows(x, pad, size=5, stride=1):
    view = sliding_window_view(
        np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)]), (size, size), axis=(2, 3)
    )
    return view[:, :, ::stride, ::stride]


def convolve(x, weight, pad, stride=1):
    return np.einsum(
        "nchwij,ocij->nohw", windows(x, pad, weight.shape[2], stride), weight, optimize=True
    )


def pool(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def unpool(g, x):
    def wide(a):
        return a.repeat(2, axis=2).repeat(2, axis=3)

    return wide(g) * (x == wide(pool(x)))  # ties are zeros, which relu stops


def forward(a):
    """Every layer's input and, before pooling, its output; the last is the answer."""
    kept, x = [], a["data"]
    for i, pad in ((0, 2), (1, 0)):
        y = np.maximum(convolve(x, a[f"weight{i}"], pad) + a[f"bias{i}"][:, None, None], 0)
        kept.append((x, y))
        x = pool(y)
    x = x.reshape(len(x), -1)
    for i in (2, 3, 4):
        y = x @ a[f"weight{i}"].T + a[f"bias{i}"]
        y = np.maximum(y, 0) if i < 4 else y
        kept.append((x, y))
        x = y
    return kept


def step(a):
    """The loss of each sample, and the arrays after one step of SGD."""
    kept, new, rows = forward(a), dict(a), np.arange(len(a["data"]))
    label, y = a["label"].astype(int), kept[-1][1]
    e = np.exp(y - y.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    loss = -np.log(p[rows, label])
    g = p
    g[rows, label] -= 1
    g /= len(rows)
    for i in (4, 3, 2, 1, 0):
        x, y = kept[i]
        if i < 2:
            g = unpool(g.reshape(*y.shape[:2], y.shape[2] // 2, -1), y)
        g = g * (y > 0) if i < 4 else g
        if i < 2:
            pad = 2 - 2 * i
            grad = np.einsum("nchwij,nohw->ocij", windows(x, pad), g, optimize=True)
            back = a[f"weight{i}"][:, :, ::-1, ::-1].swapaxes(0, 1)
        else:
            grad = g.T @ x
        new[f"weight{i}"] = a[f"weight{i}"] - RATE * grad
        new[f"bias{i}"] = a[f"bias{i}"] - RATE * g.sum((0, 2, 3) if i < 2 else 0)
        if i:
            g = convolve(g, back, 4 - pad) if i < 2 else g @ a[f"weight{i}"]
    return loss, new


def answer(a):
    return forward(a)[-1][1]


def step_answer(a):
    """What a training step must give: the losses, and the new first and last weights.

    They say whether the whole way back was right.
    """
    loss, new = step(a)
    return np.concatenate([v.ravel() for v in (loss, new["weight0"], new["weight4"])])
