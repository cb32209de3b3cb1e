"""Every stage grows linearly with the graph: four times the nodes, four times the calls.

Calls are counted and not seconds, which depend on who else uses the machine. What a
call does inside NumPy or a list is not seen; `benchmarks/graph_scale.py` times it.
"""

import sys

import pytest
from graph_scale import GRAPHS, walk

from minihybrid import sym


def calls_of(function, *args):
    """(result, how many functions ran until it was there)."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        return function(*args), count
    finally:
        sys.setprofile(before)


def calls(kind, n):
    """stage -> calls."""
    actual = {}

    def around(name, function, *args):
        result, count = calls_of(function, *args)
        actual[name] = actual.get(name, 0) + count
        return result

    walk(kind, n, around)
    return actual


@pytest.mark.slow
@pytest.mark.parametrize("kind, n", [(kind, 400 if kind == "tree" else 200) for kind in GRAPHS])
def test_four_times_the_nodes_take_four_times_the_calls(kind, n):
    """For a tree, the search for places grows up to its limit, so begin near that."""
    few, many = calls(kind, n), calls(kind, 4 * n)
    growth = {name: many[name] / few[name] for name in few}
    print(kind, {name: round(ratio, 2) for name, ratio in growth.items()})
    assert len(growth) == 8
    assert max(growth.values()) <= 4.2, growth  # ten times as many would take 11.5 times


def test_the_count_sees_what_is_quadratic():
    def compare(n):
        return [max(i, j) for i in range(n) for j in range(n)]

    assert calls_of(compare, 300)[1] > 90 * calls_of(compare, 30)[1]


def test_shapes_that_are_known_at_the_end_only_go_back_in_one_sweep():
    def count(n):
        y = sym.var("x")
        for _ in range(n):
            y = sym.tanh(y)
        y = y + sym.var("z", shape=(2, 3))
        (shapes, _, _), count = calls_of(y.infer_shape)
        assert shapes == [(2, 3), (2, 3)]
        return count

    assert count(1000) <= 11 * count(100)
