"""Gradients of gradients: random programs, eager beside hybridized.

A program is a list of steps, each on earlier values, with one to three outputs, of
which some may be inputs, the same one twice, or of no use to the gradient. Around it
all that `autograd.grad` can be asked: several heads, given head gradients, gradients
that depend on nothing, a third derivative.
"""

import random

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, nd
from minihybrid.gluon import HybridBlock

SHAPE = 3, 4
ONE = [
    lambda F, a: F.tanh(a),
    lambda F, a: a * a,
    lambda F, a: F.relu(a),
    lambda F, a: a * 2 + 1,
    lambda F, a: F.softmax(a),
    lambda F, a: F.BlockGrad(a),
    lambda F, a: F.reshape(F.reshape(a, (-1,)), SHAPE),
    lambda F, a: F.zeros_like(a),
    lambda F, a: F.broadcast_mul(a, F.sum(a, axis=1, keepdims=True)),
    lambda F, a: F.concat(*F.split(a, num_outputs=2), dim=1),
    lambda F, a: F.sign(a),
    lambda F, a: F.split(a, num_outputs=2)[1].tile((1, 2)),
    lambda F, a: a,
    lambda F, a: F.make_loss(a),
    lambda F, a: F.cast(F.cast(a, "int32"), "float32"),
    lambda F, a: F.sort(a, axis=1),
    lambda F, a: F.take(a, F.argmax(a, axis=0)[:3]),
    lambda F, a: F.dot(F.dot(a, F.transpose(a)), a),
    lambda F, a: F.cumsum(a, axis=1),
]
TWO = [
    lambda F, a, b: a + b,
    lambda F, a, b: a * b,
    lambda F, a, b: a - b,
    lambda F, a, b: a / (b * b + 1),
    lambda F, a, b: F.maximum(a, b),
]


class Steps(HybridBlock):
    """A random program, the same for the same seed."""

    def __init__(self, seed):
        super().__init__()
        draw = random.Random(seed)
        self.n_inputs = n = draw.randint(1, 3)
        self.steps = []
        for _ in range(draw.randint(1, 7)):
            rule, count = (draw.choice(ONE), 1) if draw.random() < 0.6 else (draw.choice(TWO), 2)
            self.steps.append((rule, [draw.randrange(n) for _ in range(count)]))
            n += 1
        self.outs = [
            draw.randrange(n) if draw.random() < 0.3 else n - 1
            for _ in range(draw.choice([1, 1, 2, 3]))
        ]
        if draw.random() < 0.5:
            self.weight = self.params.get("weight", shape=SHAPE)

    def hybrid_forward(self, F, *values, weight=None):
        values = list(values)
        if weight is not None:
            values[0] = values[0] * weight
        for rule, places in self.steps:
            values.append(rule(F, *(values[place] for place in places)))
        return tuple(values[out] for out in self.outs)


def second_gradients(net, seed):
    """All gradients that a random question asks for, as NumPy arrays."""
    draw, numbers = random.Random(-seed), np.random.default_rng(seed)

    def array():
        return nd.array(numbers.uniform(-1, 1, SHAPE))

    net.initialize(force_reinit=True)
    params = [p.data() for p in net.collect_params().values()]
    for param in params:
        param[:] = array()
    inputs = [array() for _ in range(net.n_inputs)]
    taped = inputs[: draw.randint(1, len(inputs))]
    for x in taped:
        x.attach_grad()
    variables = draw.sample(taped + params, draw.randint(1, len(taped + params)))
    with autograd.record(train_mode=draw.random() < 0.5):
        outs = net(inputs[0] * inputs[0], *inputs[1:])
        heads = [o for o in outs[: draw.randint(1, len(outs))] if o.node is not None]
        if not heads:
            return []
        seeds = [array() for _ in heads] if draw.random() < 0.5 else None
        if seeds and draw.random() < 0.5:
            seeds[0].attach_grad()
            taped.append(seeds[0])
        actual = autograd.grad(heads, variables, seeds, create_graph=True)
        results = [*outs, *actual]
        if draw.random() < 0.5:
            actual = autograd.grad(sum((g * g).sum() for g in actual), variables, create_graph=True)
            results += actual
        total = sum((g * g).sum() + g.sum() for g in actual)
        if draw.random() < 0.5:
            total = total + outs[-1].sum()
    total.backward()
    return [value.asnumpy() for value in (*results, *(v.grad for v in taped + params))]


def differences(seeds):
    """The seeds whose hybridized programs give other numbers, or none."""
    wrong, checked = [], 0
    for seed in seeds:
        net = Steps(seed)
        expected = second_gradients(net, seed)
        net.hybridize(backend="numpy")
        actual = second_gradients(net, seed)
        checked += bool(actual)
        if len(actual) != len(expected) or not all(
            np.allclose(a, b, 1e-3, 1e-3 * np.abs(b).max(initial=1))
            for a, b in zip(actual, expected, strict=True)
        ):
            wrong.append(seed)
    assert checked > len(seeds) / 2
    return wrong


@pytest.mark.slow
def test_gradients_of_gradients_are_those_of_the_tape():
    assert differences(range(60)) == []


def gradients(run, *values, of=0):
    """The gradients of one output's sum."""
    values = [nd.array(v) for v in values]
    for value in values:
        value.attach_grad()
    with autograd.record():
        total = run(*values)[of].sum()
    total.backward()
    return [value.grad.asnumpy().tolist() for value in values]


@pytest.mark.parametrize(
    "first, at, expected",
    [
        (nd.sqrt, 0.0, 1.0),  # infinite there, and infinity times 0 is NaN
        (nd.make_loss, 2.0, 1.0),
    ],
)  # its gradient is 1, whatever comes in
def test_an_output_that_nobody_differentiates_gives_no_gradient(first, at, expected):
    f = mx.function(lambda x: (first(x), x * 1), target="numpy")
    assert gradients(f, [at], of=1) == [[expected]]


def test_an_input_that_gets_no_gradient_passes_none_on():
    f = mx.function(lambda x, y: (x * 2, y * 3), target="numpy")

    def run(x, y):
        return f(x, nd.sqrt(y))

    assert gradients(run, [1.0], [0.0]) == [[2.0], [0.0]]


def test_one_of_several_outputs_that_are_not_on_the_tape():
    parts = nd.topk(nd.array([[3.0, 1.0]]), ret_typ="both")
    x = nd.array([[2.0, 3.0]])
    x.attach_grad()
    with autograd.record():
        y = x * nd.array(parts[1]) + x * parts[1]
    y.backward()
    assert x.grad.shape == (1, 2)


def test_the_gradient_of_a_constant_gradient_is_zero():
    f = mx.function(lambda x, y: (x * 2 + y, x * y), target="numpy")
    for run in (lambda x, y: (x * 2 + y, x * y), f):
        x, y = nd.array([2.0]), nd.array([3.0])
        x.attach_grad()
        y.attach_grad()
        with autograd.record():
            (slope,) = autograd.grad(run(x, y)[0], [x], create_graph=True)
        slope.backward()
        assert slope.item() == 2 and x.grad.item() == 0


def test_a_mask_is_kept_for_the_second_derivative():
    f = mx.function(lambda x: nd.Dropout(x * x * x, p=0.5), target="numpy")
    x = nd.ones((40,))
    x.attach_grad()
    with autograd.record():
        (first,) = autograd.grad(f(x), [x], create_graph=True)
        total = (first * first).sum()
    total.backward()  # first = 3 mask x^2: its square has the gradient 36 mask^2 x^3
    assert set(first.asnumpy()) == {0, 6}
    np.testing.assert_array_equal(x.grad.asnumpy(), 4 * first.asnumpy() ** 2)
