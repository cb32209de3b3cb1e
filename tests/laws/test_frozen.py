"""Whatever a traced program has read may change later, and the next call sees it.

What an optimizer's rule reads, what a function is called with beside arrays, what a net
is made of; and results keep the structure that the function gave them.
"""

import copy
import itertools
import warnings
from collections import OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd, optimizer
from minihybrid.core import plan
from minihybrid.core.pytree import nesting, reader
from minihybrid.gluon import nn


# -- settings of optimizers ------------------------------------------------------------
def trained(name, settings, changes, compiled):
    """Two weights after six steps, and the Trainer.

    changes:  [(step, attribute of the optimizer, value)].
    """
    params = [gluon.Parameter(f"w{n}", shape=(n,)) for n in (5, 3)]
    for param in params:
        param.initialize(mx.init.One())
    opt = optimizer.create(name, **settings)
    if not compiled:
        opt.__class__ = type(
            "Own",
            (type(opt),),
            {"update": lambda self, *args: super(type(self), self).update(*args)},
        )
    trainer = gluon.Trainer(params, opt)
    for step in range(6):
        for at, attribute, value in changes:
            if at == step:
                setattr(opt, attribute, value)
        with autograd.record():
            loss = (params[0].data() ** 2).sum() + (params[1].data() * 3).sum()
        loss.backward()
        trainer.step(1)
    return [p.data().asnumpy() for p in params], trainer


OPTIMIZERS = ["sgd", "nag", "adam", "adamw", "rmsprop", "adagrad", "adadelta", "adamax"]


def numbers_of(opt):
    """The names of all settings that are numbers or may be."""
    counts = "num_update", "begin_num_update", "lr_scheduler"
    return [
        k
        for k, v in vars(opt).items()
        if k not in counts and (v is None or isinstance(v, (int, float)))
    ]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("wrapped", [float, np.float32])
def test_every_setting_may_change_between_steps(monkeypatch, name, wrapped):
    """Found from the optimizers themselves: a new one adds no test."""
    monkeypatch.setattr(gluon.trainer, "target_of", lambda _: "numpy")
    names = numbers_of(optimizer.create(name))
    assert {"lr", "wd", "clip_gradient"} <= set(names)
    for attribute in names:
        changes = [(1, attribute, wrapped(0.25)), (3, attribute, wrapped(0.5))]
        expected, _ = trained(name, {}, changes, compiled=False)
        actual, trainer = trained(name, {}, changes, compiled=True)
        assert trainer._compiled
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, b, 1e-5, 1e-6, err_msg=attribute)


@pytest.mark.parametrize("first, then", [(0.9, 0.0), (0.0, 0.9)])
def test_states_are_those_that_were_made(monkeypatch, first, then):
    """As eagerly and in MXNet: who had no momentum at first gets none later."""
    monkeypatch.setattr(gluon.trainer, "target_of", lambda _: "numpy")
    changes = [(3, "momentum", then)]
    (expected, _), (actual, _) = (
        trained("sgd", {"momentum": first}, changes, compiled) for compiled in (0, 1)
    )
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-6)


class Plans:
    """Counts the programs that get plans."""

    def __init__(self, monkeypatch):
        self.count, make = 0, plan.ActivePlan.__init__

        def counted(made, *args, **kwargs):
            self.count += 1
            make(made, *args, **kwargs)

        monkeypatch.setattr(plan.ActivePlan, "__init__", counted)


def test_a_schedule_of_the_momentum_is_an_input(monkeypatch):
    monkeypatch.setattr(gluon.trainer, "target_of", lambda _: "numpy")
    changes = [(step, "momentum", 0.9 / (step + 1)) for step in range(6)]
    (expected, _) = trained("sgd", {"momentum": 0.9}, changes, compiled=False)
    plans = Plans(monkeypatch)
    actual, _ = trained("sgd", {"momentum": 0.9}, changes, compiled=True)
    assert plans.count == 5  # four momenta in programs of their own, then in one
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-6)


# -- arguments beside arrays -----------------------------------------------------------
Pair = namedtuple("Pair", "left right")
VALUES = [
    0,
    0.0,
    -0.0,
    False,
    None,
    "0",
    1,
    1.0,
    True,
    2**70,
    float("nan"),
    1j,
    -0j,
    np.float32(0),
    np.float32(-0.0),
    np.float64(0),
    np.int64(0),
    np.bool_(0),
    Decimal(0),
    Decimal("-0"),
    Decimal("0.0"),
    Fraction(0),
    (),
    [],
    {},
    (0,),
    [0],
    (0.0,),
    (-0.0,),
    [(-0.0,)],
    {"a": 0.0},
    {"a": -0.0},
    {"b": 0.0},
    Pair(0, 1),
    (0, 1),
    Pair(-0.0, 1),
    frozenset([0.0]),
    frozenset([-0.0]),
    range(0),
    len,
]


def key_of(*args):
    """The cache key of a call with these arguments."""
    return reader(nesting(args))[0](args, False)[0]


def test_values_that_a_program_can_tell_apart_have_plans_of_their_own():
    keys = [key_of(value) for value in VALUES]
    for (a, one), (b, other) in itertools.combinations(zip(VALUES, keys, strict=True), 2):
        assert one != other, (a, b)
    again = [key_of(value) for value in copy.deepcopy(VALUES)]
    assert again == keys and [*map(hash, again)] == [*map(hash, keys)]


def test_the_sign_of_zero_is_seen():
    f = mx.function(lambda x, y: x + np.copysign(1, y), target="numpy")
    x = nd.zeros((1,))
    assert [f(x, y).item() for y in (0.0, -0.0, 0.0)] == [1, -1, 1]


def test_a_number_with_many_values_becomes_an_input(monkeypatch):
    plans = Plans(monkeypatch)
    f = mx.function(lambda x, t: nd.softmax(x / t) * (1 - t) + t, target="numpy")
    x = nd.array([[1.0, 2.0, 4.0]])
    temperatures = [float(t) for t in np.linspace(0.5, 3, 40)]
    with pytest.warns(RuntimeWarning, match="inputs of its plan from now on") as warned:
        actual = [f(x, t).asnumpy() for t in temperatures]
    assert len(warned) == 1 and plans.count == 5
    for t, out in zip(temperatures, actual, strict=True):
        expected = nd.softmax(x / t) * (1 - t) + t
        np.testing.assert_allclose(out, expected.asnumpy(), 1e-6)


def test_a_number_that_is_an_input_has_a_gradient_behind_it():
    f = mx.function(lambda x, t: (x * t) ** 2, target="numpy")
    x = nd.array([1.0, 3.0])
    x.attach_grad()
    with pytest.warns(RuntimeWarning, match="7 sets|6 sets"):
        for t in range(1, 12):
            with autograd.record():
                y = f(x, float(t))
            y.backward()
            np.testing.assert_allclose(x.grad.asnumpy(), 2 * t * t * x.asnumpy(), 1e-6)


def test_nan_has_one_plan_and_a_branch_stays_a_branch(monkeypatch):
    plans = Plans(monkeypatch)
    f = mx.function(lambda x, t: x * t if t > 2 else x - t, target="numpy")
    x = nd.ones((2,))
    for _ in range(3):
        assert np.isnan(f(x, float("nan")).asnumpy()).all()
    assert plans.count == 1
    with pytest.warns(RuntimeWarning, match="sets of numbers"):
        for t in np.linspace(0, 4, 20):
            expected = t if t > 2 else 1 - t
            np.testing.assert_allclose(f(x, float(t)).asnumpy(), expected, 1e-6)


def lengths_of(net, shapes):
    """What is said of calls with inputs of these shapes."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for shape in shapes:
            net(nd.ones(shape))
    assert all(w.category is RuntimeWarning and w.filename == __file__ for w in warned)
    return [str(w.message) for w in warned]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("recorded", [False, True])
def test_many_lengths_of_an_axis_are_named_once(axis, recorded):
    net = nn.Dense(2, flatten=False)
    net.initialize()
    net.hybridize(backend="numpy")
    shapes = [(n, 5, 4) if axis == 0 else (3, n, 4) for n in range(1, 15)]
    with autograd.record() if recorded else autograd.pause():
        assert lengths_of(net, shapes[:8] * 2) == []
        (sentence,) = lengths_of(net, shapes)
    assert sentence.startswith(
        f"{net.name}: axis {axis} of its input 'data' has had 9 lengths, and each length is"
    )
    assert f"mark the axis, hybridize(dynamic={{{axis}: 'n'}}), or pad the arrays" in sentence


def test_many_plans_of_other_reasons_are_not_lengths():
    """Modes, dtypes, numbers of axes, an input that is not read; lengths of either of two."""
    f = mx.function(lambda a: a * 2, target="numpy")
    shapes = [(n,) for n in range(1, 9)] + [(n, 9) for n in range(1, 9)] + [(1, 1, 1)]
    for mode in (autograd.predict_mode, autograd.train_mode):
        with mode():
            assert lengths_of(f, shapes) == []
    g = mx.function(lambda a, b: a * 2, target="numpy")
    with pytest.warns(RuntimeWarning, match="<lambda>: axis 1 of its input 'data0' has had 9 "):
        for n in range(1, 10):
            g(nd.ones((2, n)), nd.ones((n % 3 + 1,)))
    plain = nn.Dense(2, in_units=4)
    plain.initialize()
    assert lengths_of(plain, [(n, 4) for n in range(1, 15)]) == []  # not hybridized


def test_the_newest_plans_are_kept():
    f = mx.function(lambda x, b: nd.clip(x, 0, b), target="numpy")
    x = nd.array([200.0])
    with pytest.warns(RuntimeWarning, match="of which the newest 100 are kept"):
        for b in range(150):
            assert f(x, b).item() == b
    assert len(f.hybrid.entries) == 100
    kept = list(f.hybrid.entries.values())
    f(x, 50)
    f(x, 7)
    assert f.hybrid.entries[f.hybrid.key((x, 50))] is kept[0]


# -- what a net is made of -------------------------------------------------------------
class Outer(gluon.HybridBlock):
    """A net that reads a plain attribute, too."""

    def __init__(self):
        super().__init__()
        self.body, self.scale, self.calls = nn.HybridSequential(), 1, 0
        self.body.add(nn.Dense(2, in_units=2), nn.Activation("softrelu"))

    def hybrid_forward(self, F, x):
        self.calls += 1
        return self.body(x) * self.scale


def wider(net):
    net.body.add(nn.Activation("sigmoid"))


def other_activation(net):
    net.body._children["1"] = nn.Activation("tanh")


def shorter(net):
    del net.body._children["1"]


def popped(net):
    net.body._children.pop("1")


def other_body(net):
    net.body = nn.HybridSequential()
    net.body.add(nn.Activation("tanh"))


def other_layer(net):
    net.body._children["0"] = nn.Dense(2, in_units=2)
    net.body.initialize(mx.init.One())


def other_parameter(net):
    net.body[0].weight = gluon.Parameter("other", shape=(2, 2))
    net.body[0].weight.initialize(mx.init.One())


def shared_parameter(net):
    layer = nn.Dense(2, in_units=2)
    layer.initialize(mx.init.One())
    net.body[0].weight = layer.weight


def other_scale(net):
    net.scale = 3


def other_setting(net):
    net.body[0].act = nn.Activation("sigmoid")


def numbers(net):
    net.body[0].weight.set_data(nd.ones((2, 2)))


def initialized(net):
    net.initialize(mx.init.One(), force_reinit=True)


def other_type(net):
    net.cast("float64")


@pytest.mark.parametrize(
    "change",
    [
        wider,
        other_activation,
        shorter,
        popped,
        other_body,
        other_layer,
        other_parameter,
        shared_parameter,
        other_scale,
        other_setting,
        numbers,
        initialized,
        other_type,
    ],
)
def test_a_changed_net_is_traced_again(change):
    x = nd.array([[1.0, -2.0]])

    def outs(hybridized):
        mx.random.seed(3)
        net = Outer()
        net.initialize(mx.init.Uniform(1.0))
        if hybridized:
            net.hybridize(backend="numpy")
        before = net(x).asnumpy()
        change(net)
        now = x.astype("float64") if change is other_type else x
        after = [net(now).asnumpy() for _ in range(3)]
        with autograd.record():
            after.append(net(now).asnumpy())
        if hybridized:  # and then no more
            assert net.calls <= 4
        return before, *after

    actual, expected = outs(True), outs(False)
    assert actual[1].dtype == expected[1].dtype
    np.testing.assert_allclose(actual, expected, 1e-6)
    if change is not other_type:
        assert not np.allclose(expected[0], expected[1])


def test_a_parameter_that_is_replaced_is_gone():
    net, other = nn.Dense(2, in_units=2), nn.Dense(2, in_units=2)
    old = net.weight
    net.weight = other.weight
    assert old.name not in net.collect_params()
    assert net.collect_params()[other.weight.name] is net.weight is other.weight


# -- structures ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "run",
    [
        lambda x: Pair(x + 1, x * 2),
        lambda x: [x + 1, (x, [x * 2])],
        lambda x: (None, x + 1, [None, None]),
        lambda x: {"b": x + 1, "a": Pair(x, None)},
        lambda x: (x, x),
        lambda x: [y := x + 1, y, y],
        lambda x: OrderedDict(b=x * 2),
        lambda x: nd.split(x, num_outputs=2),
        lambda x: [nd.split(x, num_outputs=2), x],
        lambda x: Pair([x + 1], ()),
        lambda x: {"a": {}, "b": [x + 1]},
    ],
)
@pytest.mark.parametrize("recording", [False, True])
def test_results_keep_their_structure(run, recording):
    def shown(value):
        parts = mx.core.pytree.flatten(value)
        if parts is None:
            return value if value is None else value.asnumpy().tolist()
        names = list(value) if isinstance(value, dict) else None
        return type(value), names, [shown(part) for part in parts]

    x, f = nd.array([[1.0, 2.0]]), mx.function(run, target="numpy")
    x.attach_grad()
    with autograd.record() if recording else autograd.pause():
        assert shown(f(x)) == shown(run(x))


def test_arguments_may_be_dicts_and_namedtuples():
    f = mx.function(lambda d, p: d["a"] - d["b"] * p.right, target="numpy")
    a, b = nd.array([5.0]), nd.array([2.0])
    for d in ({"a": a, "b": b}, {"b": b, "a": a}):
        assert f(d, Pair(0, nd.array([2.0]))).item() == 1


@pytest.mark.parametrize("array", [nd.array, mx.np.array])
def test_a_copy_has_memory_of_its_own(array):
    x = array([1.0, 2.0])
    y = copy.copy(x)
    y[:] = 5
    assert type(y) is type(x) and x.asnumpy().tolist() == [1, 2]
    assert y.asnumpy().tolist() == [5, 5]


def test_what_traced_code_assigns_does_not_trace_it_again():
    class Counts(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.calls, self.times = 0, 2

        def hybrid_forward(self, F, x):
            self.calls += 1
            return x * self.times

    inner, net = Counts(), nn.HybridSequential()
    net.add(inner)
    net.hybridize(backend="numpy")
    for _ in range(3):
        for size in (1, 2):
            assert net(nd.ones((size,))).asnumpy().tolist() == [2] * size
    assert inner.calls == 2
    inner.times = 3
    assert net(nd.ones((1,))).asnumpy().tolist() == [3] and inner.calls == 3
