"""Gradients and values where functions have a kink, an end, or an infinite part.

Central differences, which judge all gradients in `test_ops_laws`, stay away from these
places; here each is told by hand, as the limit of its surroundings.
"""

import numpy as np
import pytest
from minihybrid.optimizer import Optimizer

import minihybrid as mx
from minihybrid import autograd, gluon, nd, simulated_gpu
from minihybrid.core.op import ShapeError
from minihybrid.ops import OPS

INF, NAN = np.inf, np.nan


class Both(gluon.HybridBlock):
    """A function of inputs as a block."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, *inputs):
        return self.function(F, *inputs)


def value_and_gradients(function, *inputs, mode="eager"):
    """The function's values and its gradients, eagerly, hybridized, or on a device."""
    ctx = simulated_gpu() if mode == "gpu" else mx.cpu()
    arrays = [nd.array(v, ctx=ctx) for v in inputs]
    for a in arrays:
        a.attach_grad()
    block = Both(function)
    if mode != "eager":
        block.hybridize()
    with autograd.record():
        out = block(*arrays)
    out.backward()
    return [out.asnumpy().tolist(), *(a.grad.asnumpy().tolist() for a in arrays)]


UNEQUAL = [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))]


def neighbors(function, F, x):
    """Apply a function to integers that are equal in float32."""
    return function(F.cast(x, "int32") + 2**25, dtype="float64")


KINKS = {  # name -> function, inputs, then the value and the gradients
    "prod": (
        lambda F, x: F.prod(x, axis=1),
        [[[2, 0, 3], [0, 0, 3], [2, 3, 4.0]]],
        [0, 0, 24],
        [[0, 6, 0], [0, 0, 0], [12, 8, 6]],
    ),
    "prod of one": (lambda F, x: F.prod(x, axis=1), [[[INF], [0.0]]], [INF, 0], [[1], [1]]),
    "norm": (lambda F, x: F.norm(x, axis=1), [[[0, 0], [3, 4.0]]], [0, 5], [[0, 0], [0.6, 0.8]]),
    "nanprod": (lambda F, x: F.nanprod(x), [[NAN, 0, 3, 2.0]], [0], [0, 6, 0, 0]),
    "2 ** int": (
        lambda F, x: 2 ** F.cast(x, "int32"),
        [[0, 2.0, 10]],
        [1, 4, 1024],
        [0, 2, 709],  # 1024 log(2), cut
    ),
    "0 ** int": (lambda F, x: 0.0 ** F.cast(x, "int32"), [[1.0, 2]], [0, 0], [0, 0]),
    "softmax of int": (lambda F, x: neighbors(F.softmax, F, x), [[1.0, 0]], UNEQUAL, [0, 0]),
    "log_softmax of int": (
        lambda F, x: F.exp(neighbors(F.log_softmax, F, x)),
        [[1.0, 0]],
        UNEQUAL,
        [0, 0],
    ),
    "softmin of int": (lambda F, x: neighbors(F.softmin, F, x), [[0, 1.0]], UNEQUAL, [0, 0]),
    "x ** 0": (lambda F, x: x**0, [[0, 2.0]], [1, 1], [0, 0]),
    "power": (
        lambda F, x, y: F.broadcast_power(x, y),
        [[0, 0, 0, 2.0], [0, 1, 2, 0.0]],
        [1, 0, 0, 1],
        [0, 1, 0, 0],
        [-INF, 0, 0, np.float32(np.log(2))],
    ),
    "0 ** x": (lambda F, x: 0**x, [[1, 2.0]], [0, 0], [0, 0]),
    "hypot": (
        lambda F, x, y: F.broadcast_hypot(x, y),
        [[0, 3.0], [0, 4.0]],
        [0, 5],
        [0, 0.6],
        [0, 0.8],
    ),
}


@pytest.mark.parametrize("mode", ["eager", "hybridized", "gpu"])
@pytest.mark.parametrize("name", KINKS)
def test_gradient_at_a_kink(name, mode):
    function, inputs, *expected = KINKS[name]
    for got, one in zip(value_and_gradients(function, *inputs, mode=mode), expected, strict=True):
        np.testing.assert_allclose(got, one, 1e-6)


@pytest.mark.parametrize("mode", ["eager", "hybridized", "gpu"])
def test_the_logarithm_of_a_small_sigmoid_is_finite(mode):
    value, _ = value_and_gradients(lambda F, x: F.log(F.sigmoid(x)), [-90, -100, 90.0], mode=mode)
    np.testing.assert_allclose(value, [-90, -100, 0], 1e-2)


@pytest.mark.parametrize("mode", ["eager", "hybridized"])
@pytest.mark.parametrize(
    "loss, labels",
    [
        (gluon.loss.SigmoidBCELoss(), [[0.0], [1]]),
        (gluon.loss.LogisticLoss(label_format="binary"), [[0.0], [1]]),
        (gluon.loss.LogisticLoss(), [[-1.0], [1]]),
    ],
)
def test_a_net_of_zero_weights_learns_from_both_classes(loss, labels, mode):
    pred = nd.zeros((2, 1))
    pred.attach_grad()
    if mode == "hybridized":
        loss.hybridize()
    with autograd.record():
        out = loss(pred, nd.array(labels))
    out.backward()
    assert pred.grad.asnumpy().ravel().tolist() == [0.5, -0.5]
    far = loss(nd.array([[-50.0], [50]]), nd.array(labels)).asnumpy()
    np.testing.assert_allclose(far, np.full(2, np.exp(-50)), 1e-5)


@pytest.mark.parametrize("name", sorted(Optimizer.opt_registry))
@pytest.mark.parametrize("size", [0.0, 100.0, 1e-20])
def test_a_step_without_a_gradient_or_with_equal_ones_is_a_number(name, size):
    """NaN, once there, stays for ever."""
    if name == "dcasgd":  # its steps grow by lr lamda g^2, which must stay below 1
        size = min(size, 1.0)
    weight = gluon.Parameter("w", shape=(3, 1))  # GroupAdaGrad takes two axes only
    weight.initialize(mx.init.One())
    trainer = gluon.Trainer({"w": weight}, name)
    grad = nd.array([[0.0], [size], [-size]])
    for _ in range(60):
        with autograd.record():
            loss = (weight.data() * grad).sum()
        loss.backward()
        trainer.step(1)
    assert np.isfinite(weight.data().asnumpy()).all()


def test_a_window_outside_of_the_data_has_the_lowest_number():
    """As in MXNet, which never writes into it."""
    x = nd.array([[[1.0, 2, 3, 4]]])
    given = {"kernel": (2,), "stride": (3,), "pad": (1,), "pooling_convention": "full"}
    low = np.finfo("f4").min

    def function(F, x):
        return F.Pooling(x, pool_type="max", **given)

    for mode in ("eager", "hybridized", "gpu"):
        value, grad = value_and_gradients(function, x.asnumpy(), mode=mode)
        assert value == [[[1, 4, low]]] and grad == [[[1, 0, 0, 1]]]
    assert nd.Pooling(x, pool_type="avg", **given).asnumpy().tolist() == [[[0.5, 3.5, 0]]]


def test_running_sums_of_bools_count_them():
    x = mx.np.array([True, True, False], dtype=bool)
    assert mx.np.cumsum(x).asnumpy().tolist() == [1, 2, 2]


def test_places_that_a_dtype_cannot_hold_are_refused():
    x = nd.zeros(300)
    with pytest.raises(ShapeError, match="topk: uint8 cannot hold the places of 300"):
        x.topk(dtype="uint8")
    with pytest.raises(ShapeError, match="argsort: int8 cannot hold .* dtype='int64'"):
        x.argsort(dtype="int8")
    many = nd.zeros(2**24 + 2, dtype="int8")
    many[2**24 + 1] = 1
    with pytest.raises(ShapeError, match=r"argmax: the axis has more than 2\*\*24 num"):
        many.argmax()
    assert mx.np.array(many.asnumpy(), dtype="int8").argmax().item() == 2**24 + 1
    assert OPS["_long_argmax"](many).dtype == np.int64
