"""The story of a training: LeNet on digits, eager and hybridized, one loss curve."""

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon
from minihybrid.gluon import nn

STEPS, BATCH = 12, 32


def lenet():
    """LeCun's net of 1998 for pictures of 8 x 8, with the parts of today."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(6, 3, padding=1, activation="relu"),
        nn.MaxPool2D(),
        nn.Conv2D(12, 3),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.GlobalAvgPool2D(),
        nn.Dense(24, activation="tanh"),
        nn.Dropout(0.2),
        nn.Dense(10),
    )
    return net


def losses(hybrid):
    """The loss of every step, and the parameters after the last."""
    mx.random.seed(3)
    np.random.seed(3)
    net, loss = lenet(), gluon.loss.SoftmaxCrossEntropyLoss()
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
        loss.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.2, "momentum": 0.9})
    (images, labels), _ = mx.datasets.digits()
    curve = []
    for step in range(STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        x, y = images[part].expand_dims(1), labels[part]
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(BATCH)
        curve.append(value.mean().asscalar())
    with autograd.predict_mode():
        curve.append(loss(net(x), y).mean().asscalar())  # from running statistics
    states = [p.data().asnumpy() for p in net.collect_params().values()]
    return np.array(curve), states


@pytest.mark.slow
def test_lenet_learns_the_same_eager_and_hybridized():
    eager, states = losses(hybrid=False)
    hybrid, hybrid_states = losses(hybrid=True)
    np.testing.assert_allclose(hybrid, eager, rtol=1e-4, atol=1e-4)
    for got, expected in zip(hybrid_states, states, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)
    assert eager[STEPS - 1] < 0.8 * eager[0]  # the curve is one of learning
