"""Chapter 29: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import NDArray
from minihybrid.core.block import HybridBlock
from minihybrid.gluon import nn
from minihybrid.gluon.autograd import record
from minihybrid.gluon.trainer import Trainer
from minihybrid_course.exercises.judging import (
    Exercise,
    NotYet,
    equal,
    error_text,
    expect,
    kind,
    need,
    same,
    tried,
    yes_or_no,
)


class Annealed(HybridBlock):
    """The network of exercise 29.3."""

    def __init__(self):
        super().__init__(prefix="annealed_")
        self.temperature, self.linear = 1, nn.Dense(1, in_units=3)

    def hybrid_forward(self, F, x):
        """Shapes: x (n, 3) -> (n, 1)."""
        return self.linear(x) / self.temperature


def trained(train):
    """(network, weights and bias) after training by a function of net, trainer and batches."""
    net, rng = Annealed(), np.random.default_rng(0)
    net.initialize()
    net.linear.weight.set_data(nd.array([[1, -1, 0.5]]))
    net.linear.bias.set_data(nd.array([0.25]))
    net.hybridize(backend="numpy")
    batches = [
        (nd.array(rng.normal(size=(n, 3))), nd.array(rng.normal(size=(n, 1)))) for n in (8, 8, 8, 5)
    ]
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    train(net, trainer, batches)
    params = (net.linear.weight, net.linear.bias)
    return net, np.concatenate([p.data().asnumpy().ravel() for p in params])


def stormy(net, trainer, batches):
    """The loop of the exercise."""
    for step, (x, y) in enumerate(batches):
        net.temperature = 1 + 0.5**step
        with record():
            loss = ((net(x) - y) ** 2).sum()
        loss.backward()
        trainer.step(len(x))


def calms(train):
    """Check 29.3: one compilation, and the same weights."""
    need(callable(train), f"expected a function, but got {kind(train)}")
    done = lambda *args: (train(*args), True)[1]  # noqa: E731, a loop returns nothing
    net, actual = trained(lambda *args: tried("the function", done, *args))
    _, expected = trained(stormy)
    reasons = net.plans.reasons
    need(reasons, "the network was never compiled: leave it hybridized, and call it")
    where = f"after {len(reasons)} compilations of 4 batches"
    for word, advice in (
        ("was set to", "keep what changes in each step out of the network's attributes"),
        ("training is", "call the network inside record() only"),
        ("shape", "pad the last batch"),
    ):
        why = next((reason for reason in reasons if word in reason), None)
        need(why is None, f"{where}, one reason is `{why}`: {advice}")
    need(len(reasons) == 1, f"{where}, the reasons are {', '.join(reasons)}")
    hint = "the temperature must divide the result, and padded rows mustn't add to the loss"
    equal(actual, expected, "one compilation, but the array of weights and bias", hint, atol=1e-8)
    return "one plan for all batches, and the same weights"


def pads(pad_to):
    """Check 29.4: the smallest size that is large enough, and zeros."""
    sizes = [8, 2, 4]
    for n, size in ((1, 2), (2, 2), (3, 4), (5, 8), (8, 8)):
        x = nd.array(np.arange(1, 1 + 3 * n).reshape(n, 3), dtype="int32")
        case = f"for {n} row{'s' * (n > 1)} and the sizes {sizes}"
        padded = tried(f"{case}, the function", pad_to, x, sizes)
        expect(padded, NDArray, "an NDArray", f"{case}, ")
        same(padded.shape, (size, 3), f"{case}, the shape")
        need(np.array_equal(padded[:n].asnumpy(), x.asnumpy()), f"{case}, the first rows differ")
        rest = padded[n:].asnumpy()
        need(not rest.any(), f"{case}, the appended rows aren't zero: {rest.tolist()}")
        new_key = "another one would be a new cache key"
        same(np.dtype(padded.dtype), np.dtype(x.dtype), f"{case}, the dtype", new_key)
    shape = tried("with 3 axes, the function", pad_to, nd.ones((3, 2, 2)), sizes).shape
    same(shape, (4, 2, 2), "with shape (3, 2, 2), the new shape", "keep the other axes")
    need(sizes == [8, 2, 4], "it changes the list of sizes; `sorted(sizes)` is a new one")
    case = "9 rows don't fit into any of the sizes, so a ValueError is needed, but"
    try:
        pad_to(nd.ones((9, 3)), sizes)
    except ValueError:
        return "the smallest size that fits, zeros below, and a limit"
    except Exception as error:
        raise NotYet(f"{case} the function raises {error_text(error)}") from None
    raise NotYet(f"{case} it raises nothing")


BRANCHES = {  # programs that branch on a length; simple ones first
    "n > 4": lambda n: n > 4,
    "n >= 4": lambda n: n >= 4,
    "n < 4": lambda n: n < 4,
    "n <= 4": lambda n: n <= 4,
    "n > 2 and n <= 6": lambda n: n > 2 and n <= 6,
    "n < 3 or n >= 8": lambda n: n < 3 or n >= 8,
}


class Followed:
    """A length that notes the outcomes of its comparisons: the branches taken."""

    def __init__(self, value):
        self.value, self.outcomes = value, []

    def _note(self, outcome):
        self.outcomes.append(outcome)
        return outcome

    def __lt__(self, number):
        return self._note(self.value < number)

    def __le__(self, number):
        return self._note(self.value <= number)

    def __gt__(self, number):
        return self._note(self.value > number)

    def __ge__(self, number):
        return self._note(self.value >= number)


def path(branch, value):
    """The outcomes of a program's comparisons for a length."""
    followed = Followed(value)
    branch(followed)
    return followed.outcomes


def remembers(length):
    """Check 29.6: comparisons decide with the hint, and fits repeats them."""
    need(isinstance(length, type), f"pass the class itself instead of {kind(length)}")
    fresh = tried("Length(5)", length, 5)
    need(hasattr(fresh, "fits"), "the class has no method fits")
    case = "before any comparison, `Length(5).fits(2)`"
    answer = yes_or_no(tried(case, fresh.fits, 2), case)
    need(answer, "before any comparison, every length fits, but fits(2) is False")
    for text, branch in BRANCHES.items():
        for hint in (1, 4, 5, 9):
            symbol = tried(f"Length({hint})", length, hint)
            case = f"with the hint {hint}, `{text}`"
            answer = tried(case, branch, symbol)
            right = branch(hint)
            need(yes_or_no(answer, case) is right, f"{case} is {answer} instead of {right}")
            for n in range(1, 11):
                after = f"after `{text}`, fits({n})"
                answer = yes_or_no(tried(after, symbol.fits, n), after)
                same = path(branch, n) == path(branch, hint)
                need(
                    answer is same,
                    f"{case} is evaluated, and then fits({n}) is {answer} instead of {same}: "
                    + (
                        f"for n = {n}, the comparisons have the same outcomes"
                        if same
                        else f"for n = {n}, Python takes another branch"
                    ),
                )
    return "one plan for each branch, whatever the length"


EXERCISES = {
    "29.3": Exercise("your function calm(net, trainer, batches)", calms),
    "29.4": Exercise("your function pad_to(x, sizes)", pads),
    "29.6": Exercise("your class Length", remembers),
}
