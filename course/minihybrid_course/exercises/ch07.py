"""Chapter 07: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import math

import numpy as np

from minihybrid.core import nd
from minihybrid.core.block import HybridBlock
from minihybrid.gluon import nn
from minihybrid.gluon.autograd import record
from minihybrid.gluon.trainer import Trainer
from minihybrid_course.exercises.judging import Exercise, NotYet, need, tried


# -- a step in parts -----------------------------------------------------------------------
class Scored(HybridBlock):
    """A dense layer and its loss, one value per row."""

    most = 0  # rows of a call

    def __init__(self):
        super().__init__()
        self.layer = nn.Dense(2, in_units=3, weight_initializer="zeros")  # draws no numbers
        self.layer.initialize()
        self.weight.set_data(nd.array([[1, 2, -1], [0.5, -1, 3]]))

    @property
    def weight(self):
        """The parameter that is compared."""
        return self.layer.weight

    def __call__(self, x, *args):
        """Keep the largest number of rows in a call."""
        self.most = max(self.most, len(x))
        return super().__call__(x, *args)

    def hybrid_forward(self, F, x, label):
        """Shapes: x (n, 3), label (n, 2) -> (n,)."""
        return F.sum(F.square(self.layer(x) - label), axis=1)


class Counted(Trainer):
    """A trainer that counts its steps."""

    steps = 0

    def step(self, *args, **kwargs):
        """One step."""
        self.steps += 1
        return super().step(*args, **kwargs)


def trained(function, parts, batches=1):
    """The weight after a step for each batch, the number of steps, and the most rows of a call."""
    x, label = np.float32([[1, 0, 2], [0, 1, 1], [2, 1, 0], [1, 3, 1]]), np.float32(np.eye(4, 2))
    model = Scored()
    trainer = Counted(model.collect_params(), "sgd", {"learning_rate": 0.02})
    for _ in range(batches):
        function(model, trainer, nd.array(x), nd.array(label), parts)
    return model.weight.data().asnumpy(), trainer.steps, model.most


def whole(model, trainer, x, label, parts):
    """One step on the whole batch."""
    with record():
        loss = model(x, label)
    loss.backward()
    trainer.step(len(x))


def in_parts(function):
    """Check 7.3: equal to one step on the whole batch, once and twice."""
    before = Scored().weight.data().asnumpy()
    for batches in (1, 2):
        expected, *_ = trained(whole, 1, batches)
        for parts in (1, 2, 4):
            case = f"train_in_parts with {parts} part{'s' * (parts != 1)}"
            actual, steps, most = tried(case, trained, function, parts, batches)
            need(
                steps == batches,
                f"{case} called trainer.step {steps // batches} times; call it once, after the "
                "last part",
            )
            need(
                most <= 4 // parts,
                f"{case} called the network on {most} of 4 rows at once, which is too much memory",
            )
            if np.allclose(actual, expected, atol=1e-5):
                continue
            need(
                batches == 1,
                f"{case} is right for the first batch, but not for the second: the gradients of "
                "the first are still there, and the second adds to them",
            )
            share = np.median((actual - before) / (expected - before))
            need(
                not math.isclose(share, parts, rel_tol=1e-3),
                f"{case} moved the weight {share:.0f} times as far as a step on the whole batch: "
                "trainer.step divides by its argument",
            )
            need(parts > 1, f"{case} differs from a step on the whole batch, although it is one")
            raise NotYet(
                f"{case} moved the weight differently from a step on the whole batch: each part's "
                "gradient overwrites the one before, unless grad_req is 'add'"
            )
    return "the gradients of the parts add up to that of the whole batch"


EXERCISES = {
    "7.3": Exercise("your function train_in_parts(model, trainer, x, label, parts)", in_parts)
}
