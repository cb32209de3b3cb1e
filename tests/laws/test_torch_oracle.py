"""PyTorch as a second oracle: same nets, same weights, same ten steps of training.

Its answers are stored (`golden/pytorch/make_golden.py` writes them); where PyTorch is
installed they are made again and must be the stored ones.
"""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from minihybrid import autograd, gluon, nd
from minihybrid.gluon import nn

FOLDER = Path(__file__).parents[1] / "golden/pytorch"
STORED = json.loads((FOLDER / "steps.json").read_text())


def numbers(shape, k):
    """The same numbers as PyTorch was given."""
    return 0.6 * np.cos(1.7 * np.arange(np.prod(shape, dtype=int)) + k).reshape(shape)


DENSE = (4, 3), [lambda: nn.Dense(2, activation="tanh"), lambda: nn.Dense(3)]
LAYERS = {
    "dense": DENSE,
    "conv": ((2, 2, 5, 6), [lambda: nn.Conv2D(3, 3, strides=2, padding=1)]),
    "conv groups dilation": ((2, 4, 5, 5), [lambda: nn.Conv2D(6, 2, dilation=2, groups=2)]),
    "conv depthwise": (
        (2, 3, 4, 4),
        [lambda: nn.Conv2D(3, 3, padding=1, groups=3, use_bias=False)],
    ),
    "conv 1d": ((2, 2, 7), [lambda: nn.Conv1D(3, 3, strides=2, padding=2)]),
    "conv 3d": ((1, 2, 3, 4, 3), [lambda: nn.Conv3D(2, (1, 2, 2), padding=(0, 1, 0))]),
    "conv transposed": (
        (2, 2, 3, 4),
        [lambda: nn.Conv2DTranspose(3, 3, strides=2, padding=1, output_padding=1)],
    ),
    "conv transposed groups": (
        (2, 4, 3, 3),
        [lambda: nn.Conv2DTranspose(2, 2, groups=2, use_bias=False)],
    ),
    "conv transposed 1d": ((2, 2, 4), [lambda: nn.Conv1DTranspose(3, 3, strides=2, dilation=2)]),
    "max pool": (
        (2, 1, 6, 6),
        [lambda: nn.Conv2D(2, 3, padding=1), lambda: nn.MaxPool2D(3, strides=2, padding=1)],
    ),
    "max pool full": (
        (2, 1, 6, 6),
        [lambda: nn.Conv2D(2, 2), lambda: nn.MaxPool2D(2, ceil_mode=True)],
    ),
    "average pool": (
        (2, 1, 6, 6),
        [lambda: nn.Conv2D(2, 3, padding=1), lambda: nn.AvgPool2D(3, strides=2, padding=1)],
    ),
    "average pool without padding": (
        (2, 1, 6, 6),
        [
            lambda: nn.Conv2D(2, 3, padding=1),
            lambda: nn.AvgPool2D(3, strides=2, padding=1, count_include_pad=False),
        ],
    ),
    "pool 1d": (
        (2, 2, 8),
        [lambda: nn.Conv1D(2, 3), nn.MaxPool1D, lambda: nn.AvgPool1D(2, strides=1)],
    ),
    "global pools": (
        (2, 2, 4, 4),
        [lambda: nn.Conv2D(3, 2), nn.GlobalMaxPool2D, lambda: nn.Dense(2)],
    ),
    "global average": ((2, 2, 4, 4), [lambda: nn.Conv2D(3, 2), nn.GlobalAvgPool2D]),
    "batch norm": ((4, 3), [lambda: nn.Dense(4), nn.BatchNorm, lambda: nn.Dense(2)]),
    "batch norm of images": (
        (3, 2, 4, 4),
        [
            lambda: nn.Conv2D(3, 3),
            lambda: nn.BatchNorm(momentum=0.7),
            lambda: nn.Activation("relu"),
        ],
    ),
    "layer norm": ((4, 3), [lambda: nn.Dense(5), nn.LayerNorm]),
    "group norm": ((2, 2, 3, 3), [lambda: nn.Conv2D(4, 2), lambda: nn.GroupNorm(2)]),
    "instance norm": ((2, 2, 4, 4), [lambda: nn.Conv2D(3, 2), lambda: nn.InstanceNorm(scale=True)]),
    "embedding": ((2, 4), [lambda: nn.Embedding(5, 3), lambda: nn.Dense(2, flatten=False)]),
    "leaky": ((3, 4), [lambda: nn.Dense(5), lambda: nn.LeakyReLU(0.1)]),
    "prelu": ((3, 4), [lambda: nn.Dense(5), lambda: nn.PReLU(in_channels=5)]),
    "elu": ((3, 4), [lambda: nn.Dense(5), lambda: nn.ELU(0.7)]),
    "selu": ((3, 4), [lambda: nn.Dense(5), nn.SELU]),
    "gelu": ((3, 4), [lambda: nn.Dense(5), nn.GELU]),
    "swish": ((3, 4), [lambda: nn.Dense(5), nn.Swish]),
    "softrelu": (
        (3, 4),
        [lambda: nn.Dense(5, activation="softrelu"), lambda: nn.Activation("softsign")],
    ),
}

SIGNS = np.array([[1, -1, 1], [-1, -1, 1], [1, 1, -1], [-1, 1, 1]])
NEAR, FAR, BITS = numbers((4, 3), 9), numbers((4, 3), 5), (SIGNS + 1) / 2
LOSSES = {  # the block, and what it takes beside the outputs
    "L2Loss": (gluon.loss.L2Loss, NEAR),
    "L1Loss": (gluon.loss.L1Loss, NEAR),
    "HuberLoss": (lambda: gluon.loss.HuberLoss(rho=0.3), NEAR),
    "SoftmaxCrossEntropyLoss": (gluon.loss.SoftmaxCrossEntropyLoss, [0, 2, 1, 1]),
    "SigmoidBinaryCrossEntropyLoss": (gluon.loss.SigmoidBCELoss, BITS),
    "KLDivLoss": (
        lambda: gluon.loss.KLDivLoss(from_logits=False),
        np.exp(NEAR) / np.exp(NEAR).sum(1, keepdims=True),
    ),
    "HingeLoss": (gluon.loss.HingeLoss, SIGNS),
    "SquaredHingeLoss": (gluon.loss.SquaredHingeLoss, SIGNS),
    "LogisticLoss": (gluon.loss.LogisticLoss, SIGNS),
    "PoissonNLLLoss": (gluon.loss.PoissonNLLLoss, BITS),
    "CosineEmbeddingLoss": (lambda: gluon.loss.CosineEmbeddingLoss(margin=0.1), NEAR, SIGNS[:, 0]),
    "TripletLoss": (gluon.loss.TripletLoss, NEAR, FAR),
}

# MXNet adds epsilon before it corrects Adam's means, PyTorch after: it is tiny here.
OPTIMIZERS = {
    "sgd": {"learning_rate": 0.1, "wd": 0.02},
    "sgd momentum": {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.02},
    "nag": {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.02},
    "adam": {"learning_rate": 0.01, "wd": 0.02},
    "adamw": {"learning_rate": 0.01, "wd": 0.02, "epsilon": 1e-10},
    "rmsprop": {"learning_rate": 0.01, "gamma1": 0.9},
    "adagrad": {"learning_rate": 0.1},
    "adadelta": {"rho": 0.9, "learning_rate": 1.0},
    "adamax": {"learning_rate": 0.01},
}

READINGS = {
    "eager": ("float64", None),
    "hybridized": ("float64", "numpy"),
    "float32": ("float32", "numpy"),
}
every_reading = pytest.mark.parametrize("reading", READINGS)


def train(reading, shape, layers, loss=None, optimizer="sgd momentum"):
    """The same as `train` in make_golden.py, by this engine."""
    dtype, backend = READINGS[reading]
    block, *labels = loss or LOSSES["L2Loss"]
    net, block = nn.HybridSequential(), block()
    net.add(*(make() for make in layers))
    net.initialize()
    net.cast(dtype)
    x = nd.array(numbers(shape, 7), dtype=dtype)
    if isinstance(net[0], nn.Embedding):
        x = nd.array(np.arange(x.size).reshape(shape) % 5)
    out = net(x)  # now the shapes of the parameters are known
    labels = (
        [nd.array(label, dtype=dtype) for label in labels]
        if loss
        else [nd.array(numbers(out.shape, 9), dtype=dtype)]
    )
    params = net.collect_params()
    learnt = [p for p in params.values() if p.grad_req != "null"]
    for k, param in enumerate(learnt):
        param.set_data(nd.array(numbers(param.shape, k), dtype=dtype))
    if backend:
        net.hybridize(backend=backend)
        block.hybridize(backend=backend)
    name = optimizer.split()[0]
    trainer = gluon.Trainer(params, name, OPTIMIZERS[optimizer])
    losses = []
    for _ in range(10):
        with autograd.record():
            value = block(net(x), *labels).mean()
        value.backward()
        trainer.step(1)
        losses.append(value.asscalar())
    with autograd.train_mode():
        states = [p.data().asnumpy() for p in params.values() if p.grad_req == "null"]
        outputs = net(x).asnumpy()
    return {"losses": losses, "outputs": outputs, "states": states}


def assert_same_steps(got, expected):
    for name in ("losses", "outputs"):
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


@every_reading
@pytest.mark.parametrize("name", LAYERS)
def test_layers_learn_as_in_pytorch(name, reading):
    got, expected = train(reading, *LAYERS[name]), STORED["layers"][name]
    assert_same_steps(got, expected)
    assert len(got["states"]) == len(expected["states"])
    if expected["states"]:
        assert_same_statistics(LAYERS[name], got["states"], expected["states"])


def assert_same_statistics(net, ours, theirs):
    """Running means are equal; PyTorch divides variances by n - 1, MXNet by n."""
    shape, n = net[0], {2: 4, 4: 3 * 2 * 2}[len(net[0])]
    started = {2: 0.9, 4: 0.7}[len(shape)] ** 10  # what is left of the first value, 1
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        ours[1] - started, (np.array(theirs[1]) - started) * (n - 1) / n, rtol=1e-5, atol=1e-6
    )


@every_reading
@pytest.mark.parametrize("name", LOSSES)
def test_losses_teach_as_in_pytorch(name, reading):
    assert_same_steps(train(reading, *DENSE, LOSSES[name]), STORED["losses"][name])


@every_reading
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_step_as_in_pytorch(name, reading):
    assert_same_steps(train(reading, *DENSE, optimizer=name), STORED["optimizers"][name])


def test_pytorch_answers_everything():
    assert STORED["layers"].keys() == LAYERS.keys()
    assert STORED["losses"].keys() == LOSSES.keys()
    assert STORED["optimizers"].keys() == OPTIMIZERS.keys()


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="PyTorch is not installed here (it is in the extra 'bench'):"
    " its stored answers are compared, but not made again",
)
def test_stored_answers_are_those_of_the_installed_pytorch():
    spec = importlib.util.spec_from_file_location("pytorch_golden", FOLDER / "make_golden.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for kind, nets in module.answers().items():
        for name, answer in nets.items():
            for key, value in answer.items():
                for got, stored in zip(value, STORED[kind][name][key], strict=True):
                    np.testing.assert_allclose(
                        got, stored, rtol=1e-8, atol=1e-9, err_msg=f"{kind} {name} {key}"
                    )
