"""What is timed: arrays from a fixed seed, and the right answer in float64.

A workload names a `net` that each rival builds in its own way (`BUILD` in
`rivals/<name>.py`); workloads that differ in their arrays only share a net. A net that
begins with `train_` is a training step, which has modes of its own (`TRAIN`).
"""
from collections.abc import Callable
from dataclasses import dataclass

import lenet
import numpy as np


@dataclass(frozen=True)
class Workload:
    title: str
    net: str
    arrays: Callable     # rng -> {name: float32 array}, `data` among them
    reference: Callable  # the same arrays, in float64 -> the right answer
    tolerance: float = 1e-4


def mlp_arrays(rng, batch):
    arrays = {"data": rng.standard_normal((batch, 512))}
    sizes = [512, 256, 128, 2]
    for i, (n_in, n_out) in enumerate(zip(sizes, sizes[1:], strict=False)):
        arrays[f"weight{i}"] = rng.standard_normal((n_out, n_in)) * np.sqrt(2 / n_in)
        arrays[f"bias{i}"] = rng.standard_normal(n_out) * 0.1
    return arrays


def mlp_reference(a):
    h = np.maximum(a["data"] @ a["weight0"].T + a["bias0"], 0)
    h = np.maximum(h @ a["weight1"].T + a["bias1"], 0)
    return h @ a["weight2"].T + a["bias2"]


WORKLOADS = {
    "mlp": Workload(
        "MLP 512-256-128-2, relu, float32, batch 1", "mlp",
        lambda rng: mlp_arrays(rng, batch=1), mlp_reference),
    "lenet": Workload(
        "LeNet 1x28x28, forwards, float32, batch 16", "lenet",
        lambda rng: lenet.arrays(rng, batch=16), lenet.answer),
    "lenet-train": Workload(
        "LeNet 1x28x28, training step (SGD), float32, batch 64", "train_lenet",
        lambda rng: lenet.arrays(rng, batch=64), lenet.step_answer),
    "yardstick": Workload(
        "NumPy matrix product, 256 x 256, float32", "matmul",
        lambda rng: {"data": rng.standard_normal((256, 256))},
        lambda a: a["data"] @ a["data"], tolerance=1e-3),
}
