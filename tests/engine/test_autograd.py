"""Gradients: what MXNet's autograd promises, with numbers that MXNet 1.9.1 gave."""

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.core.op import ShapeError
from minihybrid.gluon import nn


def gradients(f, *values):
    """The gradients of the sum of f's result with respect to each input."""
    arrays = [nd.array(v) for v in values]
    for a in arrays:
        a.attach_grad()
    with autograd.record():
        y = f(*arrays)
    y.backward()
    return [a.grad.asnumpy().tolist() for a in arrays]


A = [[1.0, 2.0], [3.0, 4.0]]
STORIES = [
    (lambda x: (x * x).sum(), [A], [[[2, 4], [6, 8]]]),
    (lambda x: x * x, [A], [[[2, 4], [6, 8]]]),  # no sum: a head of ones
    (lambda x: x + x * x, [A], [[[3, 5], [7, 9]]]),  # read twice
    (lambda x: nd.relu(x), [[0.0, -1, 1]], [[0, 0, 1]]),  # the corner has slope 0
    (lambda x: nd.abs(x), [[0.0, -1, 1]], [[0, -1, 1]]),
    (lambda x: x.clip(0, 1), [[0.0, 1, 2, 0.5]], [[1, 1, 0, 1]]),
    (lambda x: x.max(), [[1.0, 2, 2]], [[0, 1, 1]]),  # every largest one
    (lambda x: x[0] * 2, [A], [[[2, 2], [0, 0]]]),
    (lambda x: x[0, 1] * 2, [A], [[[0, 2], [0, 0]]]),
    (lambda x: x[:, 1:] * 2, [A], [[[0, 2], [0, 2]]]),
    (lambda x: x[-1, ::-1] * nd.array([1, 10]), [A], [[[0, 0], [10, 1]]]),
    (lambda x: x % 2, [[2.5, 3.0]], [[1, 1]]),
    (lambda x: nd.sign(x) + nd.floor(x), [[2.0, 3.0]], [[0, 0]]),
    (lambda x: (x > 1) * x, [[2.0, 0.0]], [[1, 0]]),
    (lambda x: nd.where(x > 1, x * 2, x * 3), [[2.0, 0.0]], [[2, 3]]),
    (lambda x: nd.BlockGrad(x) * x, [[3.0, 4.0]], [[3, 4]]),
    (lambda x: x.detach() * x, [[3.0, 4.0]], [[3, 4]]),
    (
        lambda x, y: nd.broadcast_maximum(x, y),
        [[1.0, 2, 3], [1.0, 5, 0]],
        [[1, 0, 1], [0, 1, 0]],
    ),  # equal: the first one
    (lambda x, y: x * y, [A, [[1.0, 10]]], [[[1, 10], [1, 10]], [[4, 6]]]),  # stretched
    (lambda x, y: nd.dot(x, y), [A, [[1.0], [2.0]]], [[[1, 2], [1, 2]], [[4], [6]]]),
    (lambda x: nd.concat(x, x * 2, dim=1), [A], [[[3, 3], [3, 3]]]),
    (lambda x: nd.split(x, 2, axis=1)[1] * 3, [A], [[[0, 3], [0, 3]]]),
    (lambda x: x.reshape((4, 1)).T.mean(), [A], [[[0.25, 0.25], [0.25, 0.25]]]),
]


@pytest.mark.parametrize("f, values, expected", STORIES)
def test_gradients_are_mxnets(f, values, expected):
    assert gradients(f, *values) == expected


# A graph takes arrays as arguments only.
TRACEABLE = [s for s in STORIES if "array" not in s[0].__code__.co_names]


@pytest.mark.parametrize("f, values, expected", TRACEABLE)
def test_a_compiled_function_has_the_same_gradients(f, values, expected):
    hybrid = mx.function(lambda *args: f(*args), target="numpy")
    assert gradients(hybrid, *values) == expected


def test_a_gradient_from_outside():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = x * 2
    y.backward(nd.array([1, 10]))
    assert x.grad.asnumpy().tolist() == [2, 20]


def test_several_heads_add_up():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y, z = x * 2, x * 3
    autograd.backward([y, z])
    assert x.grad.asnumpy().tolist() == [5, 5]
    with autograd.record():
        y, z = x * 2, x * 3
    autograd.backward([y, z], [nd.array([1, 0]), None])
    assert x.grad.asnumpy().tolist() == [5, 3]


def test_the_buffer_is_zero_before_and_stays_the_same_array():
    x = nd.array([1, 2])
    assert x.grad is None
    x.attach_grad()
    grad = x.grad
    assert grad.asnumpy().tolist() == [0, 0] and grad.dtype is x.dtype
    with autograd.record():
        y = x * 2
    y.backward()
    assert x.grad.asnumpy().tolist() == grad.asnumpy().tolist() == [2, 2]


def test_write_add_and_null():
    for req, expected in (("write", [2]), ("add", [6]), ("null", None)):
        x = nd.array([1.0])
        x.attach_grad(req)
        for _ in range(3):
            with autograd.record():
                y = x * 2
            y.backward()
        assert expected is None and x.grad is None or x.grad.asnumpy().tolist() == expected


def test_an_unused_variable_keeps_its_buffer():
    a, b = nd.array([1.0]), nd.array([2.0])
    a.attach_grad()
    b.attach_grad()
    b.grad[:] = 7
    with autograd.record():
        y = a * 2
    y.backward()
    assert b.grad.asscalar() == 7


def test_retain_graph():
    x = nd.array([1, 2])
    x.attach_grad("add")
    with autograd.record():
        y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.asnumpy().tolist() == [4, 8]


def test_modes():
    def now():
        return autograd.is_recording(), autograd.is_training()

    with autograd.record():
        assert now() == (True, True)
        with autograd.pause():
            assert now() == (False, False)
        with autograd.pause(train_mode=True):
            assert now() == (False, True)
        with autograd.predict_mode():
            assert now() == (True, False)
        assert now() == (True, True)
    with autograd.record(train_mode=False):
        assert now() == (True, False)
    with autograd.train_mode():
        assert now() == (False, True)
    with pytest.raises(ZeroDivisionError), autograd.record():
        raise ZeroDivisionError
    assert now() == (False, False)
    assert autograd.set_recording(True) is False and autograd.set_recording(False) is True
    assert autograd.set_training(True) is False and autograd.set_training(False) is True


def test_pause_leaves_no_tape():
    x = nd.array([2.0])
    x.attach_grad()
    with autograd.record():
        y = x * x
        with autograd.pause():
            factor = y * 3
        z = y * factor
    z.backward()
    assert x.grad.asscalar() == 48


def test_outside_of_record_is_a_constant():
    x = nd.array([2.0])
    before = x * 10
    x.attach_grad()
    with autograd.record():
        y = x * before
    y.backward()
    assert x.grad.asscalar() == 20


def test_attach_grad_inside_cuts_the_tape():
    x = nd.array([1.0])
    x.attach_grad()
    with autograd.record():
        y = x * 2
        y.attach_grad()
        z = y * 3
    z.backward()
    assert (x.grad.asscalar(), y.grad.asscalar()) == (0, 3)


def test_grad_gives_new_arrays_and_leaves_the_buffers():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = (x * x).sum()
    (g,) = autograd.grad(y, [x])
    assert g.asnumpy().tolist() == [2, 4] and x.grad.asnumpy().tolist() == [0, 0]
    with autograd.record():
        y = (x * x).sum()
    (g,) = autograd.grad(y, x)  # one variable, a list of one
    assert g.asnumpy().tolist() == [2, 4]


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_gradient_of_a_gradient(hybrid):
    cube = mx.function(lambda x: x * x * x, target="numpy") if hybrid else lambda x: x * x * x
    x = nd.array([2.0])
    x.attach_grad()
    with autograd.record():
        y = cube(x)
        (first,) = autograd.grad(y, x, create_graph=True)
        (second,) = autograd.grad(first, x, create_graph=True)
    second.backward()
    assert (first.asscalar(), second.asscalar(), x.grad.asscalar()) == (12, 12, 6)


def test_mark_variables():
    x, g = nd.array([1, 2]), nd.zeros((2,))
    autograd.mark_variables([x], [g])
    with autograd.record():
        y = x * x
    y.backward()
    assert g.asnumpy().tolist() == x.grad.asnumpy().tolist() == [2, 4]
    with pytest.raises(mx.AttrError, match="as many gradients"):
        autograd.mark_variables([x], [])


def test_pythons_own_branches_and_loops_are_followed():
    x = nd.array([3.0])
    x.attach_grad()
    with autograd.record():
        y = x * 2
        while y.norm().asscalar() < 1000:
            y = y * 2
        y = y if y.sum().asscalar() > 0 else 100 * y
    y.backward()
    assert x.grad.asscalar() == 512


@pytest.mark.parametrize("step", ["a[:] = a - 0.1 * a.grad", "a -= 0.1 * a.grad"])
def test_descending_by_hand(step):
    a = nd.array([1, 2])
    a.attach_grad()
    for _ in range(3):
        with autograd.record():
            loss = (a * a).sum()
        loss.backward()
        exec(step)
    np.testing.assert_allclose(a.asnumpy(), [0.512, 1.024], rtol=1e-6)


def test_the_tape_keeps_the_numbers_of_its_time():
    """After recording, a variable may be written; MXNet reads the new values."""
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = (x * x).sum()
    x[:] = 5
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 4]


@pytest.mark.slow
def test_a_tape_of_ten_thousand_steps():
    x = nd.array([1.0])
    x.attach_grad()
    with autograd.record():
        y = x
        for _ in range(10_000):
            y = y + 1
    y.backward()
    assert x.grad.asscalar() == 1


@pytest.mark.slow
def test_losses_and_a_trainer_with_the_numbers_of_mxnet():
    pred, label = nd.array([[1, 2], [3, 4]]), nd.array([[1, 1], [1, 1]])
    loss = gluon.loss
    assert loss.L2Loss()(pred, label).asnumpy().tolist() == [0.25, 3.25]
    assert loss.L1Loss()(pred, label).asnumpy().tolist() == [0.5, 2.5]
    np.testing.assert_allclose(
        loss.SoftmaxCrossEntropyLoss()(pred, nd.array([0, 1])).asnumpy(),
        [1.31326, 0.31326],
        rtol=1e-5,
    )
    net = nn.Dense(1, in_units=2)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}
    )
    for _ in range(3):
        with autograd.record():
            y = loss.L2Loss()(net(pred), nd.array([[1], [2]]))
        y.backward()
        trainer.step(2)
    np.testing.assert_allclose(net.weight.data().asnumpy(), [[0.52867174, 0.38582015]], rtol=1e-5)
    np.testing.assert_allclose(net.bias.data().asnumpy(), [-0.14285126], rtol=1e-5)
    trainer.set_learning_rate(0.01)
    assert trainer.learning_rate == 0.01


def test_a_head_gradient_of_another_shape_is_named():
    """Not stretched in silence: neither to more rows, nor to another number of axes."""
    for shape in ((3,), (1, 3), (2, 3, 1)):
        x = nd.ones((2, 3))
        x.attach_grad()
        with autograd.record():
            y = x * x
        with pytest.raises(
            ShapeError,
            match="head gradient 0 has shape .* that of its "
            r"head, \(2, 3\), is needed",
        ):
            y.backward(nd.ones(shape))


@pytest.mark.parametrize("hybrid", [False, True])
def test_gradients_go_only_to_what_the_head_was_computed_from(hybrid):
    """0 where nothing comes back, as of BlockGrad; what is not behind keeps its own."""

    def four(F, x, y):
        return x * 2, y * 3, F.BlockGrad(x) + y, x * 0

    net = nn.HybridLambda(four)
    net.hybridize(hybrid)
    actual = []
    for k in range(4):
        x, y = nd.ones((2,)), nd.ones((2,))
        for v in (x, y):
            v.attach_grad()
            v.grad[:] = 7
        with autograd.record():
            outs = net(x, y)
        outs[k].backward()
        actual.append((x.grad.asnumpy()[0], y.grad.asnumpy()[0]))
    assert actual == [(2, 7), (7, 3), (0, 1), (0, 7)]


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("space", [mx.nd, mx.np])
def test_nothing_leads_back_from_a_detached_array(hybrid, space):
    """Beside another output, too; a view of a view still stops the gradient."""
    net = nn.HybridLambda(
        lambda F, x: (x.detach(), x.detach() * 2, x.reshape((1, 2)).detach().reshape((2,)) + x)
    )
    net.hybridize(hybrid)
    x = space.array([1.0, 2.0])
    x.attach_grad()
    for k in range(2):
        with autograd.record():
            outs = net(x)
        with pytest.raises(mx.HybridError, match="backward: the array is not on the tape"):
            outs[k].backward()
    with autograd.record():
        outs = net(x)
    outs[2].backward()
    assert x.grad.asnumpy().tolist() == [1, 1]
    assert outs[0].asnumpy().tolist() == [1, 2]
