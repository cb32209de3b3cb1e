"""Large gradients: a plan writes them where they are held, unless the old ones are read."""

import numpy as np
import pytest

from minihybrid import autograd, nd
from minihybrid.core.array import STATE
from minihybrid.core.tape import modes
from minihybrid.gluon import nn
from minihybrid.runtime.donation import DONATED, LARGE, donate

N = 512
assert 4 * N * N >= LARGE


def made(backend="numpy", **more):
    """A hybridized layer with a large weight, and the same layer, eager."""
    nets = nn.Dense(N, in_units=N, use_bias=False), nn.Dense(N, in_units=N, use_bias=False)
    for net in nets:
        net.initialize()
        net.weight.set_data(nd.array(np.random.default_rng(0).standard_normal((N, N)) / 8))
    nets[0].hybridize(backend=backend, wait=True, **more)
    return nets


def backward_of(net):
    """The operator whose plan computes the gradients."""
    (entry,) = net._hybrid.entries.values()
    return entry.program.op.backward_op


def makers(net):
    """What hands out the memory of its outputs, where they are large."""
    return [maker for maker in backward_of(net).plan.makers if maker]


X = np.float32(np.random.default_rng(1).standard_normal((3, N)))


def step(net, loss=lambda net, x: (net(x) ** 2).sum(), **more):
    """The loss of one step, and the weight's gradient after it."""
    with autograd.record():
        out = loss(net, nd.array(X))
    out.backward(**more)
    return out.asnumpy(), net.weight.grad().asnumpy()


def assert_as_eager(loss, n=3, **more):
    """Several steps give the gradients of the eager net, which copies them."""
    compiled, eager = made()
    for _ in range(n):
        for actual, expected in zip(
            step(compiled, loss, **more), step(eager, loss, **more), strict=True
        ):
            np.testing.assert_allclose(actual, expected, 1e-4, 1e-3)


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_a_large_gradient_is_written_where_it_is_held(backend):
    """The same array, at the same place, and no other memory is kept for it."""
    net, eager = made(backend)
    step(net)
    held = net.weight.grad().data
    held[...] = 7
    actual, expected = step(net)[1], step(eager)[1]
    assert net.weight.grad().data is held
    np.testing.assert_allclose(actual, expected, 1e-4, 1e-3)
    (maker,) = makers(net)
    assert not maker.buffers and not DONATED.arrays and STATE.lent is None


def test_a_weight_that_is_read_twice_gets_the_sum():
    assert_as_eager(lambda net, x: (net(net(x)) ** 2).sum())
    assert_as_eager(lambda net, x: (net(x) * net(2 * x)).sum() + net.weight.data().sum())


def test_a_gradient_on_the_tape_is_read_before_it_is_written():
    """Also a part of it, and one that the walk begins with."""

    def loss(net, x):
        return (net(x + net.weight.grad()[:3]) * net.weight.grad()[0]).sum() + (net(x) ** 2).sum()

    assert_as_eager(loss)

    def seeded(net):
        rows = nd.array(np.random.default_rng(2).standard_normal((N, N)))
        for _ in range(3):
            with autograd.record():
                out = net(rows)
            out.backward(
                net.weight.grad() + 0 if net.weight.grad().sum() == 0 else net.weight.grad()
            )
            net.weight.grad()[:] = net.weight.grad() / 1000 + 1
        return net.weight.grad().asnumpy()

    actual, expected = map(seeded, made())
    np.testing.assert_allclose(actual, expected, 1e-4, 1e-3)


def test_gradients_that_are_added_up_or_asked_for_apart():
    compiled, eager = made()
    for net in (compiled, eager):
        net.weight.grad_req = "add"
    for _ in range(3):
        np.testing.assert_allclose(step(compiled)[1], step(eager)[1], 1e-4, 1e-2)
    net, _ = made()
    _, before = step(net)
    with autograd.record():
        out = net(nd.array(2 * X)).sum()
    (other,) = autograd.grad(out, [net.weight.data()], retain_graph=True)
    np.testing.assert_array_equal(net.weight.grad().asnumpy(), before)
    out.backward()
    np.testing.assert_array_equal(net.weight.grad().asnumpy(), other.asnumpy())
    assert not np.shares_memory(net.weight.grad().data, other.data)


def test_two_backwards_of_one_tape():
    net, _ = made()
    with autograd.record():
        out = (net(nd.array(X)) ** 2).sum()
    out.backward(retain_graph=True)
    first = net.weight.grad().asnumpy()
    net.weight.grad()[:] = 0
    out.backward()
    np.testing.assert_array_equal(net.weight.grad().asnumpy(), first)


def test_variables_that_share_one_gradient():
    """The last one's is there in the end, as it was without plans."""

    def last(net):
        x, buffer = nd.array(np.eye(N)), nd.zeros((N, N))
        weight = net.weight.data()
        autograd.mark_variables([x, weight], [buffer, buffer])
        with autograd.record():
            out = (net(x) * 3).sum()
        out.backward()
        return buffer.asnumpy()

    actual, expected = map(last, made())
    np.testing.assert_allclose(actual, expected, 1e-4, 1e-3)


def test_what_fails_lends_nothing_afterwards():
    net, _ = made()
    step(net)
    weight, op = net.weight.data(), backward_of(net)
    (maker,), held = makers(net), weight.grad.data
    with modes(lent={weight.node: held}):
        with pytest.raises(KeyboardInterrupt), donate(op, [weight]):
            assert dict(DONATED.arrays) == {maker: held} and not STATE.lent
            raise KeyboardInterrupt
        assert maker() is not held
    assert STATE.lent is None
