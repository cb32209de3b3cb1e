"""Cached plans: what each assumes, how many calls ran it, and why it was compiled."""

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.gluon import nn
from minihybrid.runtime import guards


def twice(**how):
    return mx.function(lambda x, *_, **__: x * 2, target="numpy", **how)


def dense(inputs=0):
    net = nn.Dense(3, in_units=inputs, prefix="layer_")
    net.initialize()
    net.hybridize(backend="numpy")
    return net


class Scaled(gluon.HybridBlock):
    """Its code reads an attribute and calls a child."""

    def __init__(self):
        super().__init__(prefix="scaled_")
        self.scale, self.body = 1, nn.HybridSequential(prefix="body_")

    def hybrid_forward(self, F, x):
        return self.body(x * self.scale)


class Word(str):
    """A value whose text doesn't tell it from others."""

    def __repr__(self):
        return "a word"


# -- the reason ------------------------------------------------------------------------
def x(*shape, dtype="float32", make=nd):
    return make.ones(shape, dtype=dtype)


@pytest.mark.parametrize(
    "first, second, reason",
    [
        ((x(32, 5),), (x(7, 5),), "data.shape[0] is 7, not 32"),
        ((x(2, 5),), (x(3, 4),), "data.shape[0] is 3, not 2; data.shape[1] is 4, not 5"),
        ((x(2, 5),), (x(10),), "data.shape is (10,), not (2, 5)"),
        ((x(2),), (x(2, dtype="int32"),), "data.dtype is int32, not float32"),
        ((x(2),), (x(2, make=mx.np),), "arrays is mx.np, not mx.nd"),
        ((x(2), x(3)), (x(2), x(4)), "data1.shape[0] is 4, not 3"),
        ((x(2), 3), (x(2), 3.0), "argument 1 is 3.0, not 3"),
        ((x(2), "a"), (x(2),), "argument 1 is absent, not 'a'"),
        ((x(1, 1, 1, 1),), (x(2, 2, 2, 2),), "data.shape[0] is 2, not 1; data.shape[1] is 2, not "
         "1; data.shape[2] is 2, not 1; and 1 more"),
        ((x(2),), ([x(2)],), "argument 0 is [array], not absent"),
        ((x(2), Word("a")), (x(2), Word("b")), "the arguments are of other types"),
    ],
)  # fmt: skip
def test_the_guard_that_failed_is_named(first, second, reason):
    f = mx.function(lambda x, *_: (x[0] if type(x) is list else x) * 2, target="numpy")
    f(*first), f(*second), f(*first), f(*second)
    assert f.plans.reasons == ["first call", reason]


def test_keywords_and_modes_are_guards():
    f = twice()
    f(x(2), size=3), f(x(2), size=4)
    with autograd.train_mode():
        f(x(2), size=4)
    assert f.plans.reasons[1:] == ["argument size is 4, not 3", "training is on, not off"]


def test_the_device_is_a_guard():
    f = twice()
    f(x(2)), f(x(2).as_in_context(mx.cpu(1)))
    assert f.plans.reasons[1:] == ["device is cpu(1), not cpu(0)"]


def test_the_reason_compares_with_the_nearest_plan_and_of_those_the_newest():
    f = twice()
    f(x(2, 5)), f(x(9, 9)), f(x(3, 5))
    assert f.plans.reasons[-1] == "data.shape[0] is 3, not 2"
    f(x(9, 8)), f(x(4, 8))
    assert f.plans.reasons[-1] == "data.shape[0] is 4, not 9"
    f(x(1, 9)), f(x(3, 9))
    assert f.plans.reasons[-1] == "data.shape[0] is 3, not 1"


def test_an_assigned_attribute_is_named_although_the_plans_are_gone():
    net = Scaled()
    net.hybridize(backend="numpy")
    for scale in (1, 1, 0.5, 0.25):
        net.scale = scale
        net(x(2))
    net(x(2))
    assert net.plans.reasons == [
        "first call",
        "scaled.scale was set to 0.5",
        "scaled.scale was set to 0.25",
    ]
    assert len(net.plans) == 1
    net.body.add(nn.Activation("relu"))
    net(x(2))
    assert net.plans.reasons[-1] == "a block was added, replaced or removed"


def test_parameters_are_guards():
    class Shifted(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="shifted_")
            self.shift = self.params.get("shift", shape=(2,))

        def hybrid_forward(self, F, x, shift):
            return x + F.cast(shift, "float32")

    net = Shifted()
    net.initialize()
    net.hybridize(backend="numpy")
    net(x(1, 2))
    net.shift.set_data(x(2))  # other values need no other plan
    net(x(1, 2))
    net.shift.cast("float64")
    net(x(1, 2))
    assert net.plans.reasons[1:] == ["shifted_shift.dtype is float64, not float32"]


def test_a_function_keeps_its_newest_reasons(monkeypatch):
    monkeypatch.setattr(guards, "LOGGED", 2)
    f = twice()
    for n in range(1, 5):
        f(x(n))
    assert f.plans.reasons == ["data.shape[0] is 3, not 2", "data.shape[0] is 4, not 3"]


# -- the counts ------------------------------------------------------------------------
def calls_of(net):
    return {str(signature): calls for signature, (_, calls) in net.plans.uses.items()}


def test_calls_are_counted_per_plan():
    net, data = dense(2), x(4, 2)
    for _ in range(3):
        net(data)
    net(x(1, 2))
    for _ in range(2):
        with autograd.record():
            loss = net(data).sum()
        loss.backward()
    with autograd.record(train_mode=False):
        net(data)
    assert calls_of(net) == {
        "(float32[4x2]) prediction": 3,
        "(float32[4x2]) prediction, with gradient": 1,
        "(float32[1x2]) prediction": 1,
        "(float32[4x2]) training, with gradient": 2,
        "(float32[4x2], backward) training, with gradient": 2,
    }
    net(data)
    assert calls_of(net)["(float32[4x2]) prediction"] == 4


def test_plans_of_several_arguments_are_listed_each():
    f = twice()
    f(x(2), 1), f(x(2), 2), f(x(2), 2)
    assert calls_of(f) == {"(float32[2], 1) prediction": 1, "(float32[2], 2) prediction": 2}


# -- the text --------------------------------------------------------------------------
def test_plans_print_guards_calls_and_reasons():
    net = dense(5)
    net(x(32, 5)), net(x(7, 5)), net(x(7, 5))
    small = (
        "(float32[7x5]) prediction: 1 kernel, 84 bytes, target numpy\n"
        "{}  recompiled: data.shape[0] is 7, not 32"
    )
    head, *_ = repr(net.plans).split("\n")
    assert repr(net.plans) == f"{head}\n{small.format('')}"
    assert net.plans.show().endswith(
        small.format(
            "  guards  data: float32 (7, 5)\n"
            "          device: cpu(0)\n"
            "          arrays: mx.nd\n"
            "          training: off\n"
            "          recording: off\n"
            "          parameters: layer_weight float32 (3, 5), layer_bias float32 (3,)\n"
            "          blocks and attributes: as they were traced\n"
            "  calls   2\n"
        )
    )
    assert nn.Dense(3).plans.show() == "no plans yet: hybridize, then call with data"


def test_a_recorded_plan_names_the_gradients_it_serves():
    net = dense(5)
    net(x(1, 5))
    with autograd.record():
        net(x(1, 5))
    text = net.plans.show()
    assert "recording: on, gradients of layer_weight, layer_bias\n" in text
    assert text.endswith("recompiled: training is on, not off")
    with autograd.record(train_mode=False):
        net(x(1, 5))
    assert "recompiled: recording is on, not off\n" in net.plans.show()


def test_explain_says_why_a_call_recompiles():
    net = dense(5)
    assert "recompiled" not in repr(mx.explain(net, x(32, 5), timings=False))
    actual = mx.explain(net, x(7, 5), timings=False)
    assert actual.title.endswith("target numpy; recompiled: data.shape[0] is 7, not 32")
    assert actual.title in actual._repr_html_()


def test_reasons_make_no_difference_to_results():
    net, value = dense(2), x(3, 2)
    expected = net(value).asnumpy()
    net(x(1, 2))
    np.testing.assert_array_equal(net(value).asnumpy(), expected)
