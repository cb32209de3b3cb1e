"""A layer of LSTM over 32 steps: the right answers, in NumPy.

Gates stand in the order of MXNet and PyTorch: in, forget, new, out.
Source: Hochreiter and Schmidhuber (1997); forget gates by Gers et al. (1999).
"""

import numpy as np

STEPS, BATCH, N_IN, N = 32, 8, 256, 256
SHAPES = {"from_x": (4 * N, N_IN), "from_h": (4 * N, N), "bias_x": (4 * N,), "bias_h": (4 * N,)}


def arrays(rng):
    result = {"data": rng.standard_normal((STEPS, BATCH, N_IN))}
    for name, shape in SHAPES.items():
        result[name] = rng.standard_normal(shape) * (0.1 if len(shape) == 1 else N**-0.5)
    return result


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def answer(a):
    """The state after each step: (steps, batch, states)."""
    given = a["data"] @ a["from_x"].T + (a["bias_x"] + a["bias_h"])
    h = c = np.zeros((BATCH, N), given.dtype)
    out = []
    for now in given:
        i, f, g, o = np.split(now + h @ a["from_h"].T, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.stack(out)


def flops():
    return 2 * STEPS * BATCH * 4 * N * (N_IN + N)


def nbytes():
    """Of the data, the weights, and the states."""
    n_weights = sum(int(np.prod(shape)) for shape in SHAPES.values())
    return 4 * (STEPS * BATCH * (N_IN + N) + n_weights)
