"""A net that is dropped is gone at once, with its weights, whatever it was used for.

No collector of garbage runs: it comes when it likes, and 40 MB of weights look to it
like one small object.
"""

import gc
import threading
import weakref

import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd, sym
from minihybrid.core.lru_cache import LRUCache
from minihybrid.gluon import nn
from minihybrid.runtime import device_eager

WAYS = {}


def way(function):
    WAYS[function.__name__] = function
    return function


def data():
    return nd.array([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]])


@way
def called(net):
    net(data())


@way
def recorded(net):
    with autograd.record():
        loss = net(data()).sum()
    loss.backward()


@way
def trained(net):
    trainer = gluon.Trainer(net.collect_params(), "adam")
    for _ in range(2):
        recorded(net)
        trainer.step(1)
    return [s.data for states in trainer._updater.states.values() for s in states]


@way
def trained_by_a_schedule(net):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9})
    for step in range(8):
        recorded(net)
        trainer.optimizer.momentum = 0.8 / (step + 1)
        trainer.step(1)


@way
def differentiated_twice(net):
    x = data()
    x.attach_grad()
    with autograd.record():
        slope = autograd.grad((net(x) ** 2).sum(), x, create_graph=True)[0]
        length = (slope * slope).sum()
    length.backward()
    return [x.grad.data]


@way
def dropped_before_its_loss(net):
    with autograd.record():
        loss = net(data()).sum()
    weight = net[0].weight.data()
    del net
    loss.backward()
    assert weight.grad.asnumpy().any()


@way
def called_with_numbers(net):
    f = mx.function(lambda x, w, t: nd.dot(x, w.T) * t, target="numpy")
    weight = net[0].weight.data()
    with pytest.warns(RuntimeWarning, match="sets of numbers"):
        for t in range(8):
            f(data(), weight, float(t))


@way
def looked_at(net):
    net(data())
    str(mx.explain(net, data()))
    str(net.plans)
    net.hybridize(False)
    net.summary(data())


@way
def as_a_symbol(net):
    block = gluon.SymbolBlock(net(sym.var("x")), sym.var("x"), net.collect_params())
    block.hybridize(backend="numpy")
    recorded(block)


@way
def bound(net):
    args = {n: p.data() for n, p in net.collect_params().items()} | {"x": data()}
    grads = {n: nd.zeros(a.shape) for n, a in args.items()}
    executor = net(sym.var("x")).bind(mx.cpu(), args, grads)
    executor.forward(is_train=True)
    executor.backward([nd.ones((2, 3))])
    return [g.data for g in grads.values()]


@way
def watched(net):
    net.register_op_hook(lambda *_: None)
    net.register_forward_hook(lambda *_: None)
    recorded(net)


@way
def refused(net):
    for wrong in (nd.ones((2, 5)), None):
        with pytest.raises(mx.HybridError):
            net(wrong)


@way
def changed(net):
    net(data())
    net.add(nn.Activation("relu"))
    net(data())
    net.cast("float64")
    net(data().astype("float64"))


@way
def called_by_a_thread(net):
    thread = threading.Thread(target=recorded, args=(net,))
    thread.start()
    thread.join()
    del thread


def weights_after(use, options):
    """Weak references to all memory of a net that was used and dropped."""
    net = nn.HybridSequential()
    net.add(nn.Dense(8, in_units=4, activation="tanh"), nn.Dense(3, in_units=8))
    net.initialize()
    if options is not None:
        net.hybridize(**options)
    params = net.collect_params().values()
    memory = [p.data().data for p in params] + [p.grad().data for p in params]
    memory += use(net) or []
    memory += [p.data().data for p in params]
    return [weakref.ref(net), *map(weakref.ref, memory)]


def left(use, options):
    gc.disable()  # what a cycle keeps is not gone
    try:
        return sum(ref() is not None for ref in weights_after(use, options))
    finally:
        gc.enable()


@pytest.mark.parametrize("use", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("options", [None, {"backend": "numpy"}], ids=["eager", "hybridized"])
def test_a_dropped_net_is_gone(use, options):
    assert left(use, options) == 0


@pytest.mark.slow
@pytest.mark.parametrize("wait", [False, True])
def test_a_dropped_net_is_gone_with_its_compiled_plans(wait):
    assert left(trained, {"backend": "cpu", "wait": wait}) == 0
    assert left(called, {"backend": "cpu", "wait": wait}) == 0


def test_a_net_that_is_kept_is_not_gone():
    """The check sees a leak."""
    kept = []
    assert left(kept.append, {"backend": "numpy"}) > 4


def test_what_was_checked_goes_with_its_operator():
    f = mx.function(lambda x: x * 2, target="numpy")
    x = nd.ones((3,))
    x.attach_grad()
    with autograd.record():
        y = f(x)
    op = weakref.ref(y.node.op)
    assert op() and len(op().checked) == 1
    del y, f
    assert op() is None


def test_plans_of_eager_operators_on_a_device_are_the_newest(monkeypatch):
    monkeypatch.setattr(device_eager, "PLANS", LRUCache(3))
    x = nd.ones((4,), ctx=mx.simulated_gpu())
    for bound_ in (1, 2, 3, 4, 5, 4):
        assert nd.clip(x * 9, 0, bound_).asnumpy().tolist() == [bound_] * 4
    assert len(device_eager.PLANS) == 3
