"""Chapters 07 and 08: checkers of their exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 7.4, which measures.
"""

import contextlib
import io
import math
import time

import numpy as np

from minihybrid.core import nd
from minihybrid.core.block import HybridBlock
from minihybrid.core.op import HybridError
from minihybrid.gluon import nn
from minihybrid.gluon.autograd import record
from minihybrid.gluon.trainer import Trainer
from minihybrid_course.exercises.judging import (
    ELSEWHERE,
    Exercise,
    NotYet,
    Part,
    Parts,
    Refusal,
    kind,
    need,
    tried,
)


# -- a step in parts -----------------------------------------------------------------------
class Scored(HybridBlock):
    """A dense layer and its loss, one value per row."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Dense(2, in_units=3, weight_initializer="zeros")  # draws no numbers
        self.layer.initialize()
        self.weight.set_data(nd.array([[1, 2, -1], [0.5, -1, 3]]))

    @property
    def weight(self):
        """The parameter that is compared."""
        return self.layer.weight

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
    """The weight after a step for each batch, and how many steps were made."""
    x, label = np.float32([[1, 0, 2], [0, 1, 1], [2, 1, 0], [1, 3, 1]]), np.float32(np.eye(4, 2))
    model = Scored()
    trainer = Counted(model.collect_params(), "sgd", {"learning_rate": 0.02})
    for _ in range(batches):
        function(model, trainer, nd.array(x), nd.array(label), parts)
    return model.weight.data().asnumpy(), trainer.steps


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
        wanted, _ = trained(whole, 1, batches)
        for parts in (1, 2, 4):
            case = f"train_in_parts with {parts} part{'s' * (parts != 1)}"
            found, steps = tried(case, trained, function, parts, batches)
            need(
                steps == batches,
                f"{case} called trainer.step {steps // batches} times; call it once, after the "
                "last part",
            )
            if np.allclose(found, wanted, atol=1e-5):
                continue
            need(
                batches == 1,
                f"{case} is right for the first batch, but not for the second: the gradients of "
                "the first are still there, and the second adds to them",
            )
            share = np.median((found - before) / (wanted - before))
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


# -- timing --------------------------------------------------------------------------------
def averages(function):
    """Check 8.1: a call costs 100, and one more each time; a candidate costs its mean."""
    for order, wanted in (
        ("A", {"A": 100}),
        ("AB", {"A": 100, "B": 101}),
        ("ABB", {"A": 100, "B": 101.5}),
        ("ABCCBA", {"A": 102.5, "B": 102.5, "C": 102.5}),
        ("AAAB", {"A": 101, "B": 103}),
        ("AABBBBA", {"A": 307 / 3, "B": 103.5}),
    ):
        found = tried(f"mean_costs({order!r})", function, order)
        need(isinstance(found, dict), f"expected a dictionary, but got {kind(found)}")
        need(
            found.keys() == wanted.keys(),
            f"for {order!r}, expected the candidates {sorted(wanted)}, but got {sorted(found)}",
        )
        for name, cost in wanted.items():
            need(
                isinstance(found[name], (int, float)) and math.isclose(found[name], cost),
                f"for {order!r}, the mean cost of {name} is {cost:g}, but you return "
                f"{found[name]}: the call at position t costs 100 + t",
            )
    return "ABC favors A by two calls, and ABCCBA is fair"


def words(make):
    """Check 8.3: a timed `with` block that prints its description and time."""
    watch = tried("Words('tea')", make, "tea")
    with contextlib.redirect_stdout(io.StringIO()) as out:

        def used():
            with watch:
                early.append(out.getvalue())
                time.sleep(0.01)
            return True

        early = []
        tried("a `with` block of Words('tea')", used)
    said = out.getvalue()
    need(
        not early[0].strip(),
        "it prints when the block starts, but the time is known only at its end",
    )
    need(
        hasattr(watch, "elapsed_s"),
        "after the block, there's no elapsed_s: your __exit__ overrides Timer's, which stops "
        "the clock, so call that one as well",
    )
    need(watch.elapsed_s >= 0.009, f"{watch.elapsed_s} s is too short for a block that slept 0.01")
    need(said.strip(), "the clock stops, but no line is printed")
    need("tea" in said, f"the line `{said.strip()}` doesn't contain the description")
    need(any(c.isdigit() for c in said), f"the line `{said.strip()}` doesn't contain the time")
    need(
        "__enter__" not in vars(type(watch)),
        "it has its own __enter__, but Timer's already starts the clock",
    )
    return "it reuses the clock and adds the line"


def pays(function):
    """Check 8.4: the first call divided by the savings of each later one."""
    for times, wanted in (((1.0, 3e-4, 1e-4), 5000), ((2.0, 1.5, 0.5), 2), ((0.5, 2.0, 1.0), 0.5)):
        found = tried(f"pays_after{times}", function, *times)
        need(isinstance(found, (int, float)), f"expected a number, but got {kind(found)}")
        need(
            math.isclose(found, wanted, rel_tol=1e-6),
            f"pays_after{times} is {found:g} instead of {wanted:g}: each later call saves "
            f"{times[1] - times[2]:g} of the {times[0]:g} seconds that the first one took",
        )
    for times in ((1.0, 1e-4, 1e-4), (1.0, 1e-4, 3e-4)):
        found = tried(f"pays_after{times}, where nothing is saved,", function, *times)
        need(
            found == math.inf,
            f"pays_after{times} is {found}, but nothing is saved there, so it never pays off: "
            'return `float("inf")`',
        )
    return "and if nothing is saved, it never pays off"


QUARTILES = "sort the fifteen times: where are the quartiles, and how far apart?"

EXERCISES = {
    "7.1": Exercise(
        "a pair: the inputs of the first dense layer and the number of extra parameters",
        Parts(
            "7.1",
            "four times as many inputs, and each has a weight for each of 64 outputs",
            Part(
                "the number of inputs",
                "d51fe7402d",
                "the remaining pooling halves rows and columns; don't forget the channels",
                {
                    128: "that's the original network, with both pooling layers",
                    256: "without one pooling layer, both rows and columns double",
                    2048: "one pooling layer is still there and halves rows and columns",
                },
            ),
            Part(
                "the number of extra parameters",
                "fa589b52f5",
                "only the weight of the first dense layer grows",
                {
                    32768: "these are all its weights; subtract the ones it had before",
                    384: "each extra input has a weight for each of the 64 outputs",
                    24640: "there are no extra biases, because the number of outputs is unchanged",
                },
            ),
        ),
    ),
    "7.2": Exercise(
        "a function that makes the error, such as `lambda: trainer.step(...)`",
        Refusal(
            "the message names the parameter and the missing call; without it, the step would "
            "silently follow an old gradient",
            HybridError,
            r"backward has not written",
            lambda found: (
                "the step succeeded, because every gradient was fresh; call it a second time"
            ),
            {
                r"'batch_size' is missing": "step needs the number of rows behind the loss",
                r"no gradient|DeferredInit|unknown": "this network hasn't seen any data yet",
                **ELSEWHERE,
            },
        ),
    ),
    "7.3": Exercise("your function train_in_parts(model, trainer, x, label, parts)", in_parts),
    "8.1": Exercise("your function mean_costs(order)", averages),
    "8.2": Exercise(
        "a function that makes the error, such as `lambda: ...`",
        Refusal(
            "a result can't be timed, and the message shows the right line",
            TypeError,
            r"needs a function",
            lambda found: "it timed something: pass the network's output instead of the network",
            {r"positional argument": "measure needs something to measure", **ELSEWHERE},
        ),
    ),
    "8.3": Exercise("your class Words", words),
    "8.4": Exercise("your function pays_after(first_s, eager_s, hybrid_s)", pays),
    "8.5": Exercise(
        "three times yes or no: is it noticed, of turns, of the second half, of three rounds",
        Parts(
            "8.5",
            "a disturbance that moves neither the median nor the quartiles goes unnoticed",
            Part(
                "the answer for alternating calls",
                "d731b01ba9",
                QUARTILES,
                {"no": "nearly half of the times are slow, and one quartile is among them"},
            ),
            Part(
                "the answer for the second half",
                "d731b01ba9",
                QUARTILES,
                {
                    "no": "it's steady within each half, but the quartiles of all rounds are in "
                    "different halves"
                },
            ),
            Part(
                "the answer for three rounds",
                "80b75ceec3",
                QUARTILES,
                {"yes": "three of fifteen are less than a quarter, so both quartiles are fast"},
            ),
        ),
    ),
}
