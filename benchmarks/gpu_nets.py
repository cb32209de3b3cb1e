"""The nets whose kernels are compiled, checked and timed on a GPU.

`NETS`: name -> `Net`. Each is called on a batch, trained one step and called again.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.gluon import nn


class Attention(gluon.HybridBlock):
    """One head of self-attention over (batch, length, width), with a residual sum."""

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.norm = nn.LayerNorm()
        self.query, self.key, self.value, self.out = (
            nn.Dense(width, flatten=False, use_bias=i == 3) for i in range(4)
        )

    def hybrid_forward(self, F, x):
        y = self.norm(x)
        scores = F.batch_dot(self.query(y), self.key(y), transpose_b=True)
        weights = F.softmax(scores * self.width**-0.5, axis=-1)
        return x + self.out(F.batch_dot(weights, self.value(y)))


class Residual(gluon.HybridBlock):
    """x + two convolutions, each with its norm."""

    def __init__(self, channels, **kwargs):
        super().__init__(**kwargs)
        self.body = sequence(
            nn.Conv2D(channels, 3, padding=1, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Conv2D(channels, 3, padding=1, use_bias=False),
            nn.BatchNorm(),
        )

    def hybrid_forward(self, F, x):
        return F.relu(x + self.body(x))


def sequence(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def mlp():
    return sequence(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))


def lenet():
    return sequence(
        nn.Conv2D(6, 5, padding=2, activation="relu"),
        nn.MaxPool2D(2),
        nn.Conv2D(16, 5, activation="relu"),
        nn.MaxPool2D(2),
        nn.Flatten(),
        nn.Dense(120, activation="relu"),
        nn.Dense(84, activation="relu"),
        nn.Dense(10),
    )


def residual():
    return sequence(
        nn.Conv2D(8, 3, padding=1, use_bias=False),
        nn.BatchNorm(),
        nn.Activation("relu"),
        Residual(8),
        nn.MaxPool2D(2),
        nn.Dropout(0.5),
        nn.GlobalAvgPool2D(),
        nn.Dense(10),
    )


def attention():
    return sequence(nn.Dense(16, flatten=False), Attention(16), nn.GELU(), nn.Dense(10))


def words():
    return sequence(nn.Embedding(50, 8), nn.Flatten(), nn.Dense(10))


class Net(NamedTuple):
    """A net of the table."""

    make: Callable  # the block, without numbers
    shape: tuple  # of a batch
    classes: int  # how many numbers it answers a sample
    high: int = 0  # inputs are whole numbers below it; 0: they are floats
    optimizer: str = "sgd"
    tiny: tuple = ()  # the shape for a simulated GPU, if another

    @property
    def small(self):
        """The net for a simulated GPU, whose threads take their turns."""
        return self._replace(shape=self.tiny or self.shape)

    def batch(self, rng):
        """(data, labels) as NumPy arrays."""
        data = (
            rng.integers(0, self.high, self.shape) if self.high else rng.standard_normal(self.shape)
        )
        labels = rng.integers(0, self.classes, self.shape[0])
        return data.astype(np.float32), labels.astype(np.float32)


NETS = {
    "mlp, batch 1": Net(mlp, (1, 512), 2, tiny=(1, 12)),
    "mlp, batch 64": Net(mlp, (64, 512), 2, tiny=(3, 12)),
    "lenet, batch 16": Net(lenet, (16, 1, 28, 28), 10, tiny=(2, 1, 12, 12)),
    "residual": Net(residual, (4, 3, 8, 8), 10, optimizer="adam", tiny=(2, 3, 4, 4)),
    "attention": Net(attention, (2, 6, 5), 10, optimizer="adam"),
    "words": Net(words, (4, 7), 10, high=50),
}


def built(net, context, rng):
    """(block with numbers that depend on nothing else, data, labels), on a context.

    On the CPU it stays eager: NumPy's answers are what others are held to.
    """
    mx.random.seed(7)
    block = net.make()
    block.initialize(mx.init.Xavier())
    data, labels = map(nd.array, net.batch(rng))
    block(data)  # now all shapes are known, so the numbers are drawn
    block.collect_params().reset_ctx(context)
    block.hybridize(context.device_type != "cpu")
    return block, data.as_in_context(context), labels.as_in_context(context)


def trainer_of(net, block):
    return gluon.Trainer(block.collect_params(), net.optimizer, {"learning_rate": 0.01})


def step_of(net, block, data, labels):
    """A function that trains a block one step, and gives the loss."""
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    loss_of.hybridize()
    trainer = trainer_of(net, block)

    def step():
        with autograd.record():
            loss = loss_of(block(data), labels)
        loss.backward()
        trainer.step(len(data))
        return loss

    return step


def answers(net, context):
    """NumPy arrays by name: a net's answer, the losses of two steps, all parameters
    after them, and the answer then."""
    block, data, labels = built(net, context, np.random.default_rng(3))
    arrays = {"answer": block(data)}
    step = step_of(net, block, data, labels)
    arrays["first loss"], arrays["second loss"] = step(), step()
    arrays |= {p.name: p.data() for p in block.collect_params().values()}
    arrays["trained answer"] = block(data)
    return {name: array.asnumpy() for name, array in arrays.items()}


def difference(actual, expected):
    """The largest difference of two sets of answers, as a share of each one's size."""
    return max(
        float(np.linalg.norm(a - b) / (np.linalg.norm(b) + 1e-6))
        for a, b in zip(actual.values(), expected.values(), strict=True)
    )
