"""Steps of a branch that isn't taken are skipped by compiled plans, and only those."""

import gc

import numpy as np
import pytest

from minihybrid import autograd, gluon, nd
from minihybrid.core.op import Spec
from minihybrid.core.plan import Plan
from minihybrid.core.sym import trace
from minihybrid.gluon import nn
from minihybrid.ops import OPS
from minihybrid.passes.branches import conditions


class Two(gluon.HybridBlock):
    """One of two layers, as a number says."""

    def __init__(self, units=8):
        super().__init__()
        self.a, self.b = nn.Dense(units, activation="tanh"), nn.Dense(units)

    def hybrid_forward(self, F, x, p):
        return F.contrib.cond(p > 0, lambda: self.a(x), lambda: F.softmax(self.b(x)))


def nets(*shape, units=8):
    """The same net twice, line by line and compiled, and an input."""
    eager, compiled = Two(units), Two(units)
    x = nd.random.normal(shape=shape)
    for net in (eager, compiled):
        net.initialize()
        net(x, nd.ones(1))
        net(x, nd.zeros(1))
    for p, q in zip(*(net.collect_params().values() for net in (eager, compiled)), strict=True):
        q.set_data(p.data())
    compiled.hybridize(backend="cpu", wait=True)
    return eager, compiled, x


def test_a_branch_is_skipped_and_its_memory_is_not_written():
    eager, net, x = nets(4, 5)
    plan, _, bound = net.plan_for(x, nd.ones(1))
    plan.load()
    guarded = [line for line in plan.source.splitlines() if line.startswith("    if ")]
    assert [("fullyconnected" in line, "!= 0" in line) for line in guarded] == [
        (True, True),
        (True, False),
    ]
    for p in (1.0, 0.0, -0.0, np.nan):
        arena, out = plan._new_arena(), np.empty((4, 8), np.float32)
        arena[:] = 7
        inputs = [x.asnumpy(), np.float32([p])]
        plan.function(*inputs, out, arena, bound[0], 0, 100, 0, 0)
        sevens = [(arena[at : at + 128] == 7).all() for at in products(plan)]
        assert sorted(sevens) == [False, True]  # one of the two products was computed
        np.testing.assert_allclose(out, eager(x, nd.array([p])).asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_backward_pass_skips_the_products_of_a_branch():
    _, net, x = nets(4, 5)
    x.attach_grad()
    with autograd.record():
        y = net(x, nd.ones(1))
    y.backward()
    (plan,) = [
        p for p in gc.get_objects() if type(p) is Plan and p.title == f"{net.name}, backward"
    ]
    steps = plan.source.partition("def plan")[2].splitlines()
    products = [line.strip() for line in steps if "matmul" in line]
    assert len(products) == 4 and all(line.startswith("if ") for line in products)


def products(plan):
    """Where in the arena both products lie."""
    return [at for ref, at in plan.memory.offsets.items() if ref[0].op is OPS["FullyConnected"]]


@pytest.mark.parametrize("shape, units", [((4, 5), 8), ((256, 300), 200)], ids=["small", "large"])
def test_gradients_of_what_is_skipped_are_zero(shape, units):
    """The large one is shared by threads, of which some come late."""
    eager, net, x = nets(*shape, units=units)
    x.attach_grad()
    for k in range(20):
        found = []
        for each in (eager, net):
            params = [p for _, p in sorted(each.collect_params().items())]
            for p in params:
                p.zero_grad()  # a tape doesn't reach what isn't used
            with autograd.record():
                y = each(x, nd.array([k % 3 - 1]))
                loss = (y * y).sum()
            loss.backward()
            found.append([a.asnumpy() for a in (y, x.grad, *(p.grad() for p in params))])
        for one, right in zip(*found[::-1], strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-3, atol=1e-4)


def test_conditions_are_those_under_which_a_value_is_read():
    node, where, exp = {}, OPS["_where"], OPS["exp"]

    def program(p, x, y):
        condition, inside, shared, other = exp(p), exp(x), exp(y), exp(x + y)
        nested = where(exp(condition), exp(inside), shared)
        returned = exp(x * 2)
        alone = where(inside, x, y)  # chooses element by element
        values = {"condition": condition, "inside": inside, "shared": shared, "other": other}
        values |= {"nested": nested, "alone": alone, "returned": returned}
        node.update({name: value.refs[0][0] for name, value in values.items()})
        out = where(condition, nested, other) + shared + alone * 0 + where(x, exp(alone), y)
        return out, where(condition, returned, y), returned

    specs = {
        n: Spec(s, np.dtype("float32")) for n, s in zip("pxy", [(1,), (3,), (3,)], strict=True)
    }
    found = conditions(trace(program, specs)[0])
    condition = node["condition"], 0
    assert found[node["nested"]] == (condition, True)
    assert found[node["other"]] == (condition, False)
    for always in ("condition", "shared", "inside", "alone", "returned"):
        assert node[always] not in found
