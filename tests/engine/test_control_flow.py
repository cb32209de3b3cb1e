"""Loops and branches: with arrays Python's own, with symbols written down in steps."""

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import AttrError, autograd, contrib, function, gluon, nd, sym
from minihybrid.gluon import nn


class Rnn(gluon.HybridBlock):
    """h' = tanh(x W + h U + b) over the first axis, all states and the last."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.i2h = nn.Dense(units)
            self.h2h = nn.Dense(units, use_bias=False)

    def hybrid_forward(self, F, x, h):
        def step(x, states):
            h = F.tanh(self.i2h(x) + self.h2h(states[0]))
            return h, [h]

        outs, (last,) = F.contrib.foreach(step, x, [h])
        return outs, last


def rnn_by_numpy(net, x, h):
    w, b = net.i2h.weight.data().asnumpy(), net.i2h.bias.data().asnumpy()
    u, outs = net.h2h.weight.data().asnumpy(), []
    for row in x:
        h = np.tanh(row @ w.T + b + h @ u.T)
        outs.append(h)
    return np.stack(outs), h


def gradients(net, *inputs):
    """Outputs, and the gradients of inputs and parameters of their weighted sum."""
    for x in inputs:
        x.attach_grad()
    with autograd.record():
        outs = net(*inputs)
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        loss = sum((o * (i + 1)).sum() for i, o in enumerate(outs))
    loss.backward()
    params = net.collect_params().values()
    return [a.asnumpy() for a in (*outs, *(x.grad for x in inputs), *(p.grad() for p in params))]


def assert_same(eager, compiled, *inputs):
    """The hybridized net gives what the eager one gave, on and off the tape."""
    plain = compiled(*inputs)
    plain = plain if isinstance(plain, (list, tuple)) else [plain]
    for got in gradients(compiled, *inputs), [o.asnumpy() for o in plain]:
        for a, b in zip(eager, got, strict=False):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def compiled():
    """Hybridized nets without weights, which all tests call with the same shapes."""
    nets = {"loop": Loop(), "branch": Branch()}
    for net in nets.values():
        net.hybridize()
    return nets


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 3])
def test_a_recurrent_net_by_foreach(length, tmp_path):
    net = Rnn(3)
    net.initialize()
    x, h = nd.random.normal(shape=(length, 2, 5)), nd.random.normal(shape=(2, 3))
    net(x, h)
    outs, last, *_ = eager = gradients(net, x, h)
    net.hybridize()
    assert_same(eager, net, x, h)
    for a, b in zip(rnn_by_numpy(net, x.asnumpy(), h.asnumpy()), (outs, last), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    net.export(str(tmp_path / "rnn"))
    loaded = gluon.SymbolBlock.imports(
        str(tmp_path / "rnn-symbol.json"), ["data0", "data1"], str(tmp_path / "rnn-0000.params")
    )
    for a, b in zip(net(x, h), loaded(x, h), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6, atol=1e-7)


def test_foreach_takes_nested_lists_and_rows_of_single_numbers():
    a, b = nd.arange(3), nd.array([[1, 2], [3, 4], [5, 6]])

    def body(parts, states):
        (x, y), (s, [t]) = parts, states
        return [x + y, [x]], [s + x, [t * y]]

    outs, states = nd.contrib.foreach(body, [a, b], [nd.zeros(1), [nd.ones(2)]])
    np.testing.assert_array_equal(outs[0].asnumpy(), [[1, 2], [4, 5], [7, 8]])
    np.testing.assert_array_equal(outs[1][0].asnumpy(), [[0], [1], [2]])
    np.testing.assert_array_equal(states[0].asnumpy(), [3])
    np.testing.assert_array_equal(states[1][0].asnumpy(), [15, 48])


class Loop(gluon.HybridBlock):
    """Doubles x while its sum is below a limit, five times at most."""

    def hybrid_forward(self, F, x, limit):
        outs, (last, count) = F.contrib.while_loop(
            lambda x, n: x.sum() < limit,
            lambda x, n: (x + n, [x * 2, n + 1]),
            [x, F.zeros_like(limit)],
            max_iterations=5,
        )
        return outs, last, count


@pytest.mark.parametrize("limit, steps", [(5, 1), (20, 3), (1000, 5)])
def test_while_loop_stops_and_pads_with_zeros(limit, steps, compiled):
    inputs = nd.array([1, 2]), nd.array([limit])
    outs, last, count, grad, _ = eager = gradients(Loop(), *inputs)
    assert_same(eager, compiled["loop"], *inputs)
    expected = np.zeros((5, 2))
    for i in range(steps):
        expected[i] = np.array([1, 2]) * 2**i + i
    np.testing.assert_array_equal(outs, expected)
    np.testing.assert_array_equal(last, np.array([1, 2]) * 2**steps)
    assert count == [steps]
    np.testing.assert_array_equal(grad, [2**steps - 1 + 2 * 2**steps] * 2)


def test_a_while_loop_that_never_starts(compiled):
    x, limit = nd.array([1, 2]), nd.array([0])
    outs, last, count = Loop()(x, limit)
    assert outs == [] and count.asscalar() == 0
    np.testing.assert_array_equal(last.asnumpy(), [1, 2])
    outs, last, count = compiled["loop"](x, limit)
    np.testing.assert_array_equal(outs.asnumpy(), np.zeros((5, 2)))
    np.testing.assert_array_equal(last.asnumpy(), [1, 2])


def test_while_loop_of_one_variable_without_outputs():
    outs, last = nd.contrib.while_loop(
        lambda x: x < 10, lambda x: (None, x * 3), nd.array([1]), max_iterations=9
    )
    assert outs == [] and last.asscalar() == 27


class Branch(gluon.HybridBlock):
    def hybrid_forward(self, F, x, y):
        return F.contrib.cond(
            (x * y).sum() < 5, lambda: [(x + 5) * y, x], lambda: [(x - 5) * y, y * 2]
        )


@pytest.mark.parametrize("y", [0.5, 3])
def test_cond_chooses_a_branch_and_its_gradient(y, compiled):
    inputs = nd.array([1, 2]), nd.array([y, y])
    first, second, dx, dy = eager = gradients(Branch(), *inputs)
    assert_same(eager, compiled["branch"], *inputs)
    sign = 5 if 3 * y < 5 else -5
    np.testing.assert_allclose(first, (np.array([1, 2]) + sign) * y)
    np.testing.assert_allclose(second, [1, 2] if sign > 0 else [2 * y, 2 * y])
    np.testing.assert_allclose(dx, np.full(2, y + 2 * (sign > 0)))
    np.testing.assert_allclose(dy, np.array([1, 2]) + sign + 4 * (sign < 0))


class Chooses(gluon.HybridBlock):
    """A branch whose slope, or value, is not finite where the other one is chosen."""

    def __init__(self, name):
        super().__init__()
        self.name_of_case = name
        self.zeros = gluon.nn.Dense(2, weight_initializer="zeros")

    def hybrid_forward(self, F, x):
        cond = F.contrib.cond
        if self.name_of_case == "then":
            return cond(x.sum() > 0, lambda: F.log(x), lambda: 2 * x)
        if self.name_of_case == "else":
            return cond(x.sum() <= 0, lambda: 2 * x, lambda: F.sqrt(x) / x)
        if self.name_of_case == "nested":
            return cond(
                x.sum() > 0,
                lambda: cond(x.sum() > 1, lambda: F.log(x), lambda: 1 / x),
                lambda: cond(x.sum() < 0, lambda: F.sqrt(x * -1), lambda: 3 * x),
            )
        if self.name_of_case == "two axes":
            return cond((x.sum() > 0).reshape((1, 1)), lambda: F.log(x), lambda: 2 * x)
        if self.name_of_case == "layer":
            return cond(x.sum() > 0, lambda: F.log(self.plus(x)), lambda: self.plus(2 * x))
        if self.name_of_case == "in a loop":
            return F.contrib.foreach(lambda row, s: self.step(F, row, s), x, F.ones((1,)))[0]
        if self.name_of_case == "in a loop in a loop":
            rows = x.reshape((2, 1))
            return F.contrib.foreach(
                lambda row, s: F.contrib.foreach(lambda q, t: self.step(F, q, t), row, s),
                rows,
                F.ones((1,)),
            )[0]
        if self.name_of_case == "in while":
            return F.contrib.while_loop(
                lambda i, s: i < 3,
                lambda i, s: (self.step(F, s, i)[0], (i + 1, s)),
                [F.zeros((1,)), x],
                max_iterations=3,
            )[0]
        return cond(x.sum() > 0, lambda: self.summed(F, x), lambda: 2 * x)

    def plus(self, x):
        return self.zeros(x.reshape((1, -1))).reshape((-1,)) + x

    def step(self, F, row, s):
        out = F.contrib.cond(row.sum() > 0, lambda: F.log(row) * s, lambda: 2 * row)
        return out, s * 2

    def summed(self, F, x):
        return F.contrib.foreach(lambda row, s: (s, s + F.log(row)), F.reshape(x, (1, 2)), x)[1]


@pytest.mark.parametrize("value", [0.0, 0.5, 2.0, -1.0])
@pytest.mark.parametrize(
    "name",
    "then,else,nested,loop inside,two axes,layer,in a loop,in a loop in a loop,in while".split(","),
)
def test_a_branch_that_is_not_chosen_has_no_part_in_the_gradient(name, value):
    actual = []
    for ctx in (mx.cpu(), mx.simulated_gpu()):
        for hybridized in (False, True):
            net, x = Chooses(name), nd.array([value, value], ctx=ctx)
            net.initialize(ctx=ctx)
            net.hybridize(active=hybridized)
            x.attach_grad()
            with autograd.record():
                y = net(x)
            y.backward()
            slopes = [net.zeros.weight.grad(), net.zeros.bias.grad()] if name == "layer" else []
            actual.append([a.asnumpy() for a in (y, x.grad, *slopes)])
    for other in actual[1:]:
        for one, right in zip(other, actual[0], strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-5)
            assert one.shape == right.shape and np.isfinite(right).all()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_branch_of_symbols_without_shapes_has_no_part_in_the_gradient(value, tmp_path):
    data, w = sym.var("data"), sym.var("w")
    out = sym.contrib.cond(data.sum() > 0, lambda: sym.log(data * w), lambda: 2 * data + w)
    out.save(str(tmp_path / "net.json"))
    grads = []
    for net in (
        gluon.SymbolBlock(out, [data]),
        gluon.SymbolBlock.imports(str(tmp_path / "net.json"), ["data"]),
    ):
        net.collect_params()["w"].shape = (2,)
        net.initialize(init=mx.init.One())
        x = nd.array([value, value])
        x.attach_grad()
        with autograd.record():
            y = net(x)
        y.backward()
        grads.append([x.grad.asnumpy(), net.collect_params()["w"].grad().asnumpy()])
    np.testing.assert_array_equal(grads, [[[1, 1], [1, 1]] if value else [[2, 2], [1, 1]]] * 2)


class NoRows(gluon.HybridBlock):
    """A loop that may have no rows; its body has a weight, and a slope that is not finite."""

    def __init__(self, pick):
        super().__init__()
        self.pick, self.w = pick, self.params.get("w", shape=(2,), init="ones")

    def hybrid_forward(self, F, x, s, w):
        outs, last = F.contrib.foreach(lambda row, s: (F.log(row) * w + s, s + row), x, s)
        return self.pick(F, outs, last)


@pytest.mark.parametrize(
    "pick",
    [
        lambda F, outs, last: outs,
        lambda F, outs, last: last,
        lambda F, outs, last: outs.sum() + 3,
        lambda F, outs, last: outs.sum() + (last * last).sum(),
        lambda F, outs, last: F.concat(outs, last.reshape((1, -1)), dim=0),
    ],
)
@pytest.mark.parametrize("ctx", [mx.cpu(), mx.simulated_gpu()], ids=str)
def test_the_gradient_of_a_loop_over_no_rows(pick, ctx):
    actual = []
    for hybridized in (False, True):
        net = NoRows(pick)
        net.initialize(ctx=ctx)
        net.hybridize(active=hybridized)
        x, s = nd.zeros((0, 2), ctx=ctx), nd.array([2, 3], ctx=ctx)
        for a in (x, s):
            a.attach_grad()
        with autograd.record():
            y = net(x, s)
        y.backward()
        actual.append([y.asnumpy(), x.grad.asnumpy(), s.grad.asnumpy(), net.w.grad().asnumpy()])
    for one, right in zip(*actual, strict=True):
        np.testing.assert_array_equal(one, right)


def test_what_stops_a_gradient_stops_it_in_a_loop():
    class Stops(gluon.HybridBlock):
        def hybrid_forward(self, F, x, s):
            def turn(row, s):
                return F.BlockGrad(row) * row + F.BlockGrad(s), s + row

            return F.contrib.foreach(turn, x, s)[0]

    x, s = nd.array([[2, 3], [5, 7]]), nd.ones((2,))
    for ctx in (mx.cpu(), mx.simulated_gpu()):
        for backend in (None, "numpy"):
            net = Stops()
            net.hybridize(**({"backend": backend} if backend else {}))
            inputs = [a.as_in_context(ctx) for a in (x, s)]
            for a in inputs:
                a.attach_grad()
            with autograd.record():
                y = net(*inputs)
            y.backward()
            actual = [a.grad.asnumpy().tolist() for a in inputs]
            assert actual == [[[2, 3], [5, 7]], [0, 0]], (ctx, backend)


def test_symbols_outside_of_a_trace():
    x, w = sym.var("x", shape=(3, 2)), sym.var("w", shape=(2,))
    outs, total = sym.contrib.foreach(
        lambda row, s: (row * w, s + row * w), x, sym.var("s", shape=(2,))
    )
    block = gluon.SymbolBlock([outs, total], [x, w, sym.var("s")])
    a, b = np.arange(6.0).reshape(3, 2), np.array([2.0, -1.0])
    got = block(nd.array(a), nd.array(b), nd.ones(2))
    np.testing.assert_allclose(got[0].asnumpy(), a * b)
    np.testing.assert_allclose(got[1].asnumpy(), (a * b).sum(0) + 1)
    assert outs.list_arguments() == ["x", "s", "w"]


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: nd.contrib.foreach(lambda x, s: (x, s), [nd.ones(2), nd.ones(3)], []),
            "one common length, found 2, 3",
        ),
        (lambda: nd.contrib.foreach(lambda x, s: (x, s), [], []), "length, found none"),
        (
            lambda: nd.contrib.while_loop(lambda x: x < 1, lambda x: (x, x), nd.ones(1)),
            "max_iterations=None",
        ),
        (
            lambda: nd.contrib.while_loop(lambda: True, lambda: 0, [], max_iterations=2),
            "loop_vars is empty",
        ),
        (
            lambda: nd.contrib.while_loop(
                lambda x: True, lambda x: (x, [x, x]), nd.ones(1), max_iterations=2
            ),
            "2 new loop_vars, but 1",
        ),
        (
            lambda: sym.contrib.cond(sym.var("p"), lambda: sym.var("a"), lambda: []),
            "one branch gives 1 values, the other 0",
        ),
        (
            lambda: nd.contrib.foreach(
                lambda x, s: ([x] * int(x.asscalar()), s), nd.array([1, 2]), []
            ),
            "same number of outputs, found 1, 2",
        ),
    ],
)
def test_wrong_calls_are_sentences(call, words):
    with pytest.raises(AttrError, match=words):
        call()


@pytest.mark.parametrize("shape", [(0, 3), (0,)])
def test_foreach_over_no_rows_is_alike_line_by_line_and_hybridized(shape):
    def f(x, s):
        return contrib.foreach(lambda row, state: (row * 2 + state, state + 1), x, s)

    x, s = nd.zeros(shape), nd.ones(shape[1:] or (1,))
    (got, last), (expected, end) = f(x, s), function(f)(x, s)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype) and got.shape[0] == 0
    assert last.asnumpy().tolist() == end.asnumpy().tolist() == s.asnumpy().tolist()
