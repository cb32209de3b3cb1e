"""NumPy, written as one writes it by hand."""
import numpy as np

VERSION = np.__version__


def mlp(a):
    (w0, b0), (w1, b1), (w2, b2) = ((a[f"weight{i}"], a[f"bias{i}"]) for i in range(3))

    def net(x):
        h = np.maximum(x @ w0.T + b0, 0)
        h = np.maximum(h @ w1.T + b1, 0)
        return h @ w2.T + b2

    return net, a["data"]


def matmul(a):
    return (lambda x: x @ x), a["data"]


BUILD = {"mlp": mlp, "matmul": matmul}
MODES = {"eager": lambda net, x: lambda: net(x)}
to_numpy = np.asarray
