"""NumPy, written as one writes it by hand."""
import lenet
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


def lenet_forward(a):
    return (lambda x: lenet.answer({**a, "data": x})), a["data"]


def lenet_steps(a):
    def step(a):
        losses, new = lenet.step(a)
        a.update(new)
        return losses, a["weight0"], a["weight4"]
    return step, a


BUILD = {"mlp": mlp, "matmul": matmul, "lenet": lenet_forward,
         "train_lenet": lenet_steps}
MODES = {"eager": lambda net, x: lambda: net(x)}
TRAIN = MODES
to_numpy = np.asarray
