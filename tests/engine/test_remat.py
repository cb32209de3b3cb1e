"""Rematerialization: fewer bytes kept for the backward pass, the same bits."""

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import AttrError, autograd, gluon, nd
from minihybrid.core.op import Node
from minihybrid.core.passes import gradient
from minihybrid.core.passes.memory import AGAIN, recomputed
from minihybrid.gluon import nn
from minihybrid.passes import remat


class Block(gluon.HybridBlock):
    """A layer with a GELU of its own, normalization, dropout and a residual."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Dense(32), nn.Dense(16), nn.LayerNorm()

    def hybrid_forward(self, F, x):
        h = self.a(self.norm(x))
        h = F.Dropout(h * 0.5 * (1 + F.erf(h / 2**0.5)), p=0.3)
        return x + F.tanh(self.b(h)) * F.sigmoid(x)


def net_of(budget, backend, layers=3):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        for _ in range(layers):
            net.add(Block())
    net.initialize()
    net(nd.ones((1, 16)))
    weights = np.random.RandomState(0)
    for _, p in sorted(net.collect_params().items()):
        p.set_data(nd.array(weights.normal(size=p.shape) * 0.3))
    net.hybridize(backend=backend, remat=budget, wait=True)
    return net


def trained(net, x):
    """[the output, and all gradients], and the plans forward and backward."""
    x.attach_grad()
    mx.random.seed(7)
    with autograd.record():
        y = net(x)
    y.backward()
    grads = [p.grad() for _, p in sorted(net.collect_params().items())]
    back = [p for s, p in net.plans.items() if p.title.endswith("backward")]
    forward = [p for s, p in net.plans.items() if p.training and p not in back]
    return [a.asnumpy() for a in (y, x.grad, *grads)], forward[0], back[0]


def kept(plan):
    """Bytes that a forward plan keeps beside its output."""
    return plan.memory.outs_nbytes - 4 * np.prod(plan.out_specs[0][0])


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_gradients_keep_their_bits_and_less_is_kept(backend):
    x, results, bytes_kept, counts = nd.random.normal(shape=(8, 16)), [], [], []
    for budget in (None, 0.8, 0):
        grads, forward, back = trained(net_of(budget, backend), x)
        results.append(grads)
        bytes_kept.append(kept(forward))
        counts.append(back.memory.n_again)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    whole, part, least = bytes_kept
    assert part <= 0.8 * whole and least < 0.6 * whole
    assert counts[0] == 0 < counts[1] < counts[2]
    assert f"{counts[2]} steps computed again" in back.memory.show()
    assert f"{counts[2]} steps computed again" in back.show()


def test_a_budget_in_bytes_is_kept_and_nothing_is_computed_in_vain():
    x = nd.random.normal(shape=(8, 16))
    _, forward, _ = trained(net_of(None, "numpy"), x)
    budget = int(kept(forward) * 0.9)
    _, forward, back = trained(net_of(budget, "numpy"), x)
    assert kept(forward) <= budget
    names = {n.name.removesuffix(AGAIN) for n in recomputed(back.graph)}
    assert names and not any("fullyconnected" in n or "uniform" in n for n in names)
    _, _, back = trained(net_of(10**9, "numpy"), x)
    assert back.memory.n_again == 0


def test_products_and_random_numbers_are_kept():
    _, _, back = trained(net_of(0, "numpy"), nd.random.normal(shape=(8, 16)))
    again = {n.op.name for n in recomputed(back.graph)}
    assert "erf" in again and not again & {"FullyConnected", "_random_uniform", "sum", "mean"}


@pytest.mark.parametrize("budget", [-1, "much", float("inf")])
def test_wrong_budgets_are_sentences(budget):
    with pytest.raises(AttrError, match="hybridize: remat=.* does not fit; needed: a number"):
        nn.Dense(2).hybridize(remat=budget)


def test_random_numbers_computed_again_are_refused(monkeypatch):
    cheap = remat.is_cheap
    monkeypatch.setattr(remat, "is_cheap", lambda n: cheap(n) or bool(n.op and n.op.random))
    with pytest.raises(AssertionError, match="random numbers are kept"):
        trained(net_of(0, "numpy"), nd.random.normal(shape=(8, 16)))


def test_a_step_that_is_not_computed_again_the_same_way_is_seen(monkeypatch):
    x, runs = nd.random.normal(shape=(8, 16)), []
    for name in (AGAIN, "_wrong"):
        monkeypatch.setattr(gradient, "AGAIN", name)
        if name == "_wrong":
            monkeypatch.setattr(gradient, "Node", doubled)
        runs.append(trained(net_of(0, "numpy"), x)[0])
    assert any((a != b).any() for a, b in zip(*runs, strict=True))


def doubled(op, inputs=(), attrs=None, name="", *more, **rest):
    """A node; of steps that are computed again, a scalar is another one."""
    attrs = dict(attrs or {})
    if name.endswith("_wrong") and "scalar" in attrs:
        attrs["scalar"] *= 2
    return Node(op, inputs, attrs, name, *more, **rest)
