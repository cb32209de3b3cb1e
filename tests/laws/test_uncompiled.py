"""Plans for the processor that nothing compiles: the same steps, in the same memory."""

import cProfile
import pstats
from unittest import mock

import numpy as np
import pytest
from marks import numbers_drawn, try_law
from random_nets import check, few, nets

import minihybrid as mx
from minihybrid import autograd, nd
from minihybrid.core.targets import TARGETS
from minihybrid.runtime import page_cpu

COMPILED = TARGETS["cpu"]


@pytest.fixture
def page():
    """The target "cpu" as it is in a page."""
    there = {"load": page_cpu.load, "tiers": page_cpu.ActivePlan}
    with mock.patch.dict(TARGETS, {"cpu": TARGETS["cpu"]._replace(**there)}):
        yield


@pytest.mark.slow
@numbers_drawn(12, 120)
def test_nets_agree_with_eager(page, n_drawn):
    try_law(lambda net: check(net, "cpu"), nets(6), n_drawn, **few)


def test_a_profiler_sees_a_call_and_stays(page):
    compiled = mx.function(lambda x: nd.softmax(x) + 1)
    x = nd.ones((2, 3))
    compiled(x)
    with cProfile.Profile() as profiler:
        compiled(x)
        np.linspace(0, 1, 3)
    called = {entry[2] for entry in pstats.Stats(profiler).stats}
    assert "linspace" in called


CASES = {
    "an output that is an input": lambda x: [x, x * 2],
    "one output twice": lambda x: [y := nd.tanh(x), y],
    "truth": lambda x: nd.broadcast_logical_and(x > 0, x < 1),
    "nothing": lambda x: nd.slice_axis(x, axis=0, begin=0, end=0) + 1,
    "several outputs": lambda x: list(nd.split(nd.exp(x), 2, axis=1)),
    "views": lambda x: nd.softmax(x.reshape((4, 3)).T).reshape((-1,)),
    "a cast": lambda x: nd.cast(x, "int32") + 1,
    "a branch taken": lambda x: nd.contrib.cond(
        x.sum() < 9, lambda: nd.softmax(x), lambda: nd.cumsum(x, axis=1)
    ),
    "the other branch": lambda x: nd.contrib.cond(
        x.sum() > 9, lambda: nd.cumsum(x, axis=1), lambda: nd.softmax(x)
    ),
    "the else of a branch": lambda x: nd.contrib.cond(
        x.sum() < 9,
        lambda: nd.contrib.cond(x.sum() > 9, lambda: nd.exp(x), lambda: nd.softmax(x)),
        lambda: nd.cumsum(x, axis=1),
    ),
    "a loop that ends": lambda x: nd.contrib.while_loop(
        lambda y: y.sum() < 3, lambda y: (nd.softmax(y), [y + 0.1]), [x], max_iterations=5
    )[0],
}


@pytest.mark.parametrize("name", CASES)
def test_a_case(page, name):
    x = nd.array(np.linspace(-2, 2, 12).reshape(2, 6))
    compiled = mx.function(CASES[name])
    for strided in (False, True):
        given = x.T if strided and name != "views" and "outputs" not in name else x
        expected, got = CASES[name](given), compiled(given)
        pairs = zip(expected, got, strict=True) if isinstance(got, list) else [(expected, got)]
        for a, b in pairs:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), 1e-5)
    assert {plan.target for plan in compiled.plans.values()} == {"cpu"}


@pytest.mark.slow
def test_dropped_numbers_are_those_of_the_compiled_plan(page):
    drop, x = mx.gluon.nn.Dropout(0.5), nd.ones((4, 50))
    drop.hybridize()
    with autograd.train_mode():
        mx.random.seed(1)
        actual = drop(x).asnumpy()
    with mock.patch.dict(TARGETS, {"cpu": COMPILED}):
        again = mx.gluon.nn.Dropout(0.5)
        again.hybridize()
        with autograd.train_mode():
            mx.random.seed(1)
            np.testing.assert_array_equal(actual, again(x).asnumpy())
    assert 0 < (actual == 0).sum() < 200


def test_a_call_stops_where_it_is_told(page):
    """As time_steps asks it to, to time each step."""
    net = mx.function(lambda x: nd.softmax(nd.dot(x, x)))
    times = mx.explain(net, nd.ones((3, 3)), timings=False).plan
    assert times.n_kernels == len(times.made.launches) >= 1
    plan, arrays, bound = net.plan_for(nd.ones((3, 3)))
    assert [name for name, _ in plan.time_steps(arrays, bound, 2)] == ["call", *plan.labels]
