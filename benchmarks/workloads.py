"""What is timed: arrays from a fixed seed, the right answer in float64, work and bars.

A workload names a `net` that each rival builds in its own way (`BUILD` in
`rivals/<name>.py`); workloads that differ in their arrays only share a net. A net that
begins with `train_` is a training step, which has modes of its own (`TRAIN`).

Work is counted by formulas, whatever a rival computes: `flops`, where a function such
as tanh counts as one operation, and `nbytes`, each input and weight read once and each
answer written once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import lenet
import lstm
import numpy as np
import steps
import walks


@dataclass(frozen=True)
class Bars:
    """What minihybrid wants to reach; ratios are of medians, below 1 is faster.

    rival: to the best rival.  eager: hybridized to our own eager mode.
    first_s: first call with nothing cached, and in a second process.
    jax: first call with nothing cached to JAX's, which compiles, too.
    plain: to `a*b + c`, whoever computed that fastest, at one thread and at two.
    """

    rival: float
    eager: float | None = None
    first_s: tuple | None = None
    jax: float | None = None
    plain: dict | None = None


@dataclass(frozen=True)
class Workload:
    title: str
    net: str
    arrays: Callable  # rng -> {name: float32 array}, in the order of arguments
    reference: Callable  # the same arrays, in float64 -> the right answer
    flops: int
    nbytes: int
    bars: Bars | None = None
    tolerance: float = 1e-4


SIZES = [512, 256, 128, 2]  # of the MLP


def mlp_arrays(rng, batch):
    arrays = {"data": rng.standard_normal((batch, SIZES[0]))}
    for i, (n_in, n_out) in enumerate(zip(SIZES, SIZES[1:], strict=False)):
        arrays[f"weight{i}"] = rng.standard_normal((n_out, n_in)) * np.sqrt(2 / n_in)
        arrays[f"bias{i}"] = rng.standard_normal(n_out) * 0.1
    return arrays


def mlp_reference(a):
    h = np.maximum(a["data"] @ a["weight0"].T + a["bias0"], 0)
    h = np.maximum(h @ a["weight1"].T + a["bias1"], 0)
    return h @ a["weight2"].T + a["bias2"]


def mlp(batch, bars):
    n_weights = sum(m * n for m, n in zip(SIZES, SIZES[1:], strict=False))
    n_numbers = n_weights + sum(SIZES[1:]) + batch * (SIZES[0] + SIZES[-1])
    return Workload(
        f"MLP 512-256-128-2, relu, float32, batch {batch}",
        "mlp",
        lambda rng: mlp_arrays(rng, batch),
        mlp_reference,
        flops=2 * batch * n_weights,
        nbytes=4 * n_numbers,
        bars=bars,
    )


def lenet_workload(title, net, batch, reference, training, bars):
    """Training multiplies three times: forwards, for weights, and for inputs.

    There is no gradient of the picture; a step reads and writes the weights.
    """
    products = [28 * 28 * 6 * 25, 10 * 10 * 16 * 6 * 25, 400 * 120, 120 * 84, 84 * 10]
    n_weights = sum(int(np.prod(shape)) + shape[0] for shape in lenet.SHAPES)
    n_products = 3 * sum(products) - products[0] if training else sum(products)
    n_numbers = batch * (28 * 28 + (2 if training else 10))  # label and loss, or scores
    return Workload(
        title,
        net,
        lambda rng: lenet.arrays(rng, batch),
        reference,
        flops=2 * batch * n_products,
        nbytes=4 * (n_numbers + n_weights * (2 if training else 1)),
        bars=bars,
    )


def elementwise(title, net, f, n_operations, bars=None, n=10**7):
    """A function of three arrays, number by number."""
    return Workload(
        title,
        net,
        lambda rng: {k: rng.standard_normal(n) for k in "abc"},
        lambda arrays: f(**arrays),
        flops=n_operations * n,
        nbytes=4 * 4 * n,
        bars=bars,
    )


def chain(a, b, c):
    return np.tanh(a * b + c) * a - np.exp(-c * c)


def softmax_reference(a):
    e = np.exp(a["data"] - a["data"].max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm_reference(a):
    x = a["data"] - a["data"].mean(axis=1, keepdims=True)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * a["gamma"] + a["beta"]


def layer_norm_arrays(rng, rows, columns):
    return {
        "data": rng.standard_normal((rows, columns)),
        "gamma": rng.uniform(0.5, 1.5, columns),
        "beta": rng.standard_normal(columns),
    }


def square(n):
    """A matrix times itself."""
    return Workload(
        f"matrix product, {n} x {n}, float32",
        "matmul",
        lambda rng: {"data": rng.standard_normal((n, n))},
        lambda a: a["data"] @ a["data"],
        flops=2 * n**3,
        nbytes=4 * 2 * n * n,
        tolerance=1e-3,
    )


def walk(title, net, bars):
    """A net of `walks.py`, forwards."""
    return Workload(
        f"{title}, float32",
        net,
        lambda rng: walks.arrays(rng, net),
        partial(walks.answer, net),
        flops=walks.shapes_of(net)[1],
        nbytes=walks.nbytes(net),
        bars=bars,
        tolerance=1e-3,
    )


def step(title, name):
    """A training step of `steps.py`: it multiplies three times, as LeNet's does."""
    net, optimizer, _ = steps.STEPS[name]
    return Workload(
        f"{title}, training step ({optimizer}), float32",
        name,
        lambda rng: steps.arrays(rng, name),
        partial(steps.step_answer, name),
        flops=3 * walks.shapes_of(net)[1],
        nbytes=steps.nbytes(name),
        bars=Bars(1.0),
    )


WORKLOADS = {
    "mlp": mlp(1, Bars(0.8, eager=0.2, first_s=(1.0, 0.25))),
    "mlp-8": mlp(8, Bars(1.0)),
    "mlp-64": mlp(64, Bars(1.05)),
    "mlp-256": mlp(256, Bars(1.05)),
    "mlp-1024": mlp(1024, Bars(1.05)),
    "lenet": lenet_workload(
        "LeNet 1x28x28, forwards, float32, batch 16",
        "lenet",
        16,
        lenet.answer,
        training=False,
        bars=Bars(1.0, eager=0.4, first_s=(2.5, 0.5)),
    ),
    "lenet-train": lenet_workload(
        "LeNet 1x28x28, training step (SGD), float32, batch 64",
        "train_lenet",
        64,
        lenet.step_answer,
        training=True,
        bars=Bars(0.9, eager=0.5, first_s=(6.0, 1.0)),
    ),
    "plain": elementwise("a*b + c, 10^7 numbers, float32", "plain", lambda a, b, c: a * b + c, 2),
    "elementwise": elementwise(
        "tanh(a*b + c)*a - exp(-c*c), 10^7 numbers, float32",
        "elementwise",
        chain,
        8,
        bars=Bars(0.8, plain={1: 1.4, 2: 1.25}),
    ),
    "softmax": Workload(
        "softmax of rows, (4096, 1000), float32",
        "softmax",
        lambda rng: {"data": rng.standard_normal((4096, 1000))},
        softmax_reference,
        flops=5 * 4096 * 1000,
        nbytes=4 * 2 * 4096 * 1000,
        bars=Bars(1.0),
    ),
    "layer-norm": Workload(
        "LayerNorm of rows, (4096, 1024), float32",
        "layer_norm",
        lambda rng: layer_norm_arrays(rng, 4096, 1024),
        layer_norm_reference,
        flops=7 * 4096 * 1024,
        nbytes=4 * 2 * (4096 * 1024 + 1024),
        bars=Bars(1.0),
    ),
    "resnet18": walk("ResNet-18, 1x3x64x64", "resnet18", Bars(1.3, first_s=(20.0, 2.0))),
    "resnet50": walk("ResNet-50, 1x3x224x224", "resnet50", Bars(1.0)),
    "mobilenet-v2": walk(
        "MobileNet v2, 1x3x224x224", "mobilenet_v2", Bars(1.0, first_s=(6.0, 2.0), jax=1.5)
    ),
    "densenet-169": walk("DenseNet-169, 1x3x224x224", "densenet169", Bars(1.0)),
    "transformer": walk("transformer block of 512, 4 x 64 words", "transformer", Bars(1.0)),
    "transformer-train": step("transformer block of 512, 4 x 64 words", "train_transformer"),
    "convnet-train": step("small convolutional net, BatchNorm, 16x3x32x32", "train_convnet"),
    "lstm": Workload(
        "LSTM of 256 states, 32 steps, float32, batch 8",
        "lstm",
        lstm.arrays,
        lstm.answer,
        flops=lstm.flops(),
        nbytes=lstm.nbytes(),
        bars=Bars(1.0),
    ),
}

# What the machine can do: not asked of minihybrid, and drawn as the roofs.
ROOFS = {
    "matmul": square(1024),
    "copy": Workload(
        "copy of 10^7 numbers, float32",
        "copy",
        lambda rng: {"data": rng.standard_normal(10**7)},
        lambda a: a["data"],
        flops=0,
        nbytes=4 * 2 * 10**7,
    ),
}
ALL = {
    **WORKLOADS,
    **ROOFS,
    "yardstick": square(256),
    "floor": elementwise("a*b + c, 8 numbers, float32", "plain", lambda a, b, c: a * b + c, 2, n=8),
}
