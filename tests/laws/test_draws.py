"""Random whole numbers from any range, and keys that are given once."""

import threading

import numpy as np
import pytest
from minihybrid.nd import NDArray, random
from minihybrid.sym import Symbol, trace
from scipy import stats

from minihybrid import autograd, function, nd, simulated_gpu
from minihybrid.core.op import AttrError
from minihybrid.core.plan import Plan
from minihybrid.ops import OPS
from minihybrid.ops.random import Stream
from minihybrid.runtime.device import device_of

WIDE = [
    (0, 2**31, "int64"),
    (-(2**63), 2**63 - 1, "int64"),
    (-(2**31), 2**31, "int32"),
    (5, 2**40 + 7, "int64"),
    (-3, 200_000, "int32"),
    (0, 256, "uint8"),
]


@pytest.mark.parametrize("low, high, dtype", WIDE)
def test_whole_numbers_are_drawn_from_all_of_a_wide_range(low, high, dtype):
    """24 random bits would leave out most of them, and most of their last bits."""
    random.seed(3)
    x = random.randint(low, high, shape=40_000, dtype=dtype).asnumpy()
    assert low <= x.min() and x.max() < high and x.dtype == dtype
    counts = np.bincount(x.astype("i8") % 128, minlength=128)
    assert abs(counts - 40_000 / 128).max() < 6 * (40_000 / 128) ** 0.5
    place = (x.astype("f8") - low) / (high - low)  # even, from 0 to 1
    assert abs(place.mean() - 0.5) < 0.01 and abs(place.var() - 1 / 12) < 0.005


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_compiled_draws_of_whole_numbers_are_those_of_eager_to_the_bit(target):
    drawn = [
        ("_random_randint", {"low": low, "high": high, "dtype": dtype}) for low, high, dtype in WIDE
    ]
    for one, expected in zip(*both(drawn, target), strict=True):
        assert one.tolist() == expected.tolist()


def both(drawn, target, n=50):
    """What a plan draws, and what eager operators do: of (operator, attributes)."""
    drawn = [(OPS[name], OPS[name].normalize(attrs | {"shape": (n,)})) for name, attrs in drawn]

    def draw(made):
        return [made.interpret(op, [], dict(attrs)) for op, attrs in drawn]

    graph, _ = trace(lambda: draw(Symbol), {})
    plan = Plan(graph, [], target=device_of(simulated_gpu()) if target == "gpu" else target)
    random.seed(11)
    got = plan([], plan.bind([]))
    random.seed(11)
    return [np.asarray(one) for one in got], [a.asnumpy() for a in draw(NDArray)]


# -- distributions ---------------------------------------------------------------------
DRAWS = {  # what is drawn -> attributes, and the distribution that it shall have
    "uniform": ({"low": -1, "high": 2.5}, stats.uniform(-1, 3.5)),
    "normal": ({"loc": 1, "scale": 2}, stats.norm(1, 2)),
    "exponential": ({"lam": 3}, stats.expon(scale=1 / 3)),
    "gamma": ({"alpha": 2.5, "beta": 3}, stats.gamma(2.5, scale=3)),
    "gamma of a small alpha": ({"alpha": 0.3}, stats.gamma(0.3)),
    "poisson": ({"lam": 2.5}, stats.poisson(2.5)),
    "poisson of a large mean": ({"lam": 14}, stats.poisson(14)),
    "negative_binomial": ({"k": 4, "p": 0.3}, stats.nbinom(4, 0.3)),
    "generalized_negative_binomial": ({"mu": 3, "alpha": 0.5}, stats.nbinom(2, 1 / 2.5)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_have_the_distribution_that_they_say(name):
    """The distance of the two distributions is below the bound of Dvoretzky, Kiefer and
    Wolfowitz, which one seed of a thousand exceeds; neighbors know nothing of
    each other."""
    attrs, law = DRAWS[name]
    n = 40_000
    random.seed(5)
    x = getattr(nd, f"random_{name.partition(' ')[0]}")(**attrs, shape=n).asnumpy()
    values, counts = np.unique(x, return_counts=True)
    distance = abs(np.cumsum(counts) / n - law.cdf(values)).max()
    assert distance < (np.log(2000) / 2 / n) ** 0.5
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 4 / n**0.5


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_compiled_draws_are_those_of_eager(target):
    drawn = [(f"_random_{name.partition(' ')[0]}", attrs) for name, (attrs, _) in DRAWS.items()]
    for one, expected, name in zip(*both(drawn, target, 400), DRAWS, strict=True):
        np.testing.assert_allclose(one, expected, 1e-4, 1e-5, err_msg=name)


@pytest.mark.parametrize(
    "low, high, dtype, words",
    [
        (4, 3, "int32", "low=4 and high=3 are given, but low must be smaller"),
        (3, 3, "int32", "low=3 and high=3 are given, but low must be smaller"),
        (0, 2**31 + 1, "int32", "int32 cannot hold all numbers .*; pass dtype='int64'"),
        (-1, 5, "uint8", "uint8 cannot hold all numbers in .-1, 5"),
    ],
)
def test_ranges_without_whole_numbers_are_refused(low, high, dtype, words):
    with pytest.raises(AttrError, match=words):
        random.randint(low, high, dtype=dtype)


def test_a_branch_of_the_random_stream_is_its_own_threads():
    """Nobody else draws from it, and no key is given twice."""
    stream, actual, begin = Stream(), [], threading.Barrier(2)
    stream.seed(7)
    expected = [stream.take(1) for _ in range(300)]
    stream.seed(7)

    def other():
        begin.wait()
        actual.extend(stream.take(1) for _ in range(100))
        begin.wait()

    thread = threading.Thread(target=other)
    thread.start()
    actual += [stream.take(1) for _ in range(100)]
    with stream.branch(5):
        inside = [stream.take(1) for _ in range(3)]
        begin.wait()  # the other thread draws while this one is in a branch
        begin.wait()
        inside += [stream.take(1) for _ in range(3)]
    thread.join()
    actual += [stream.take(1) for _ in range(100)]
    assert sorted(actual) == sorted(expected)
    assert inside == [(inside[0] + i) % 2**64 for i in range(6)]
    assert not set(inside) & set(actual)


@pytest.mark.parametrize("axes", [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("hybrid", [None, "numpy", "cpu"])
def test_a_mask_with_shared_axes_is_the_same_everywhere(hybrid, axes):
    """Along a shared axis all are kept or none; compiled, what eager calls keep."""

    def drop(x):
        return nd.Dropout(x, p=0.5, axes=axes)

    run = drop if hybrid is None else function(drop, target=hybrid)
    actual = []
    for f in (drop, run):
        random.seed(5)
        with autograd.train_mode():
            actual.append(f(nd.ones((3, 4, 5))).asnumpy())
    eager, mask = actual
    first = tuple(slice(0, 1) if i in axes else slice(None) for i in range(3))
    np.testing.assert_array_equal(mask, np.broadcast_to(mask[first], mask.shape))
    np.testing.assert_array_equal(mask, eager)
    assert set(np.unique(mask)) == {0, 2} or len(axes) == 3
