"""vjp, jvp and vmap: against central differences, each other, and a loop over slices."""

import numpy as np
import pytest
from marks import external
from programs.draw import draw
from programs.run import arrays_of, run, source

import minihybrid as mx
from minihybrid import AttrError, HybridError, ShapeError, autograd, nd
from minihybrid.gluon import nn, transform

RNG = np.random.default_rng(0)
STEP = 1e-6


def normal(*shape):
    return nd.array(RNG.normal(size=shape), dtype="float64")


def dense():
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="tanh"), nn.Dense(2))
    net.initialize(mx.init.Normal(1))
    net.cast("float64")
    net(normal(2, 3))
    return net


def hybrid():
    net = dense()
    net.hybridize(backend="numpy")
    return net


def loop(x, y):
    return nd.contrib.foreach(lambda row, s: (row * s, s + nd.sin(row)), x, y)


CASES = {
    "elementwise": (lambda x: nd.sin(x) * x, [(5,)]),
    "softmax": (lambda x: nd.softmax(x * x), [(2, 3)]),
    "product": (lambda x, y: nd.dot(x, y), [(2, 3), (3, 4)]),
    "norm": (lambda x: nd.L2Normalization(x), [(2, 3)]),
    "nested": (lambda x, y: {"a": [x * y, y.sum()], "b": x.exp()}, [(3,), (3,)]),
    "loop": (loop, [(3, 2), (2,)]),
    "branch": (lambda x: nd.contrib.cond(x.sum() > 0, lambda: x.exp(), lambda: x * 2), [(3,)]),
    "net": (dense(), [(2, 3)]),
    "hybridized net": (hybrid(), [(2, 3)]),
    "function": (mx.function(lambda x: x.tanh() / (1 + x * x), target="numpy"), [(4,)]),
}
cases = pytest.mark.parametrize("name", CASES)


def flat(outputs):
    """The numbers of nested outputs in one vector."""
    return np.concatenate([a.asnumpy().ravel() for a in transform.arrays_in((outputs,))])


def jacobian(f, inputs):
    """Central differences: a column for each element of the inputs."""
    columns = []
    for k, x in enumerate(inputs):
        for i in range(x.size):
            ends = []
            for sign in (1, -1):
                moved = x.asnumpy().copy()
                moved.ravel()[i] += sign * STEP
                there = [*inputs[:k], nd.array(moved, dtype="float64"), *inputs[k + 1 :]]
                ends.append(flat(f(*there)))
            columns.append((ends[0] - ends[1]) / (2 * STEP))
    return np.stack(columns, axis=1)


def units(arrays):
    """Arrays like these that are 0 but for one element, each in turn."""
    for k, x in enumerate(arrays):
        for i in range(x.size):
            one = np.zeros(x.size)
            one[i] = 1
            zeros = [nd.zeros_like(a) for a in arrays]
            zeros[k] = nd.array(one.reshape(x.shape), dtype="float64")
            yield zeros


@cases
def test_jvp_is_a_column_of_the_jacobian_and_vjp_a_row(name):
    f, shapes = CASES[name]
    inputs = [normal(*shape) for shape in shapes]
    expected = jacobian(f, inputs)
    columns = [flat(mx.jvp(f, inputs, tangents)[1]) for tangents in units(inputs)]
    np.testing.assert_allclose(np.stack(columns, axis=1), expected, rtol=1e-6, atol=1e-7)
    outputs, pullback = mx.vjp(f, *inputs)
    np.testing.assert_array_equal(flat(outputs), flat(f(*inputs)))
    rows = [flat(pullback(c)) for c in units(transform.arrays_in((outputs,)))]
    np.testing.assert_allclose(np.stack(rows), expected, rtol=1e-6, atol=1e-7)


@cases
def test_a_hessian_vector_product_is_the_change_of_the_gradient(name):
    f, shapes = CASES[name]
    inputs = [normal(*shape) for shape in shapes]
    tangents = [normal(*shape) for shape in shapes]

    def slope(*xs):
        """The gradient of the sum of squares of the outputs."""
        return mx.vjp(lambda *xs: sum((y * y).sum() for y in transform.arrays_in((f(*xs),))), *xs)[
            1
        ](nd.ones((1,), dtype="float64"))

    actual = flat(mx.jvp(slope, inputs, tangents)[1])
    ends = [
        flat(slope(*(x + sign * STEP * t for x, t in zip(inputs, tangents, strict=True))))
        for sign in (1, -1)
    ]
    np.testing.assert_allclose(actual, (ends[0] - ends[1]) / (2 * STEP), rtol=1e-5, atol=1e-6)


def test_an_input_that_is_not_read_has_zeros():
    x, y = normal(2), normal(3)
    outputs, pullback = mx.vjp(lambda x, y: x * 2, x, y)
    assert pullback(nd.ones_like(x))[1].asnumpy().tolist() == [0, 0, 0]
    assert mx.jvp(lambda x, y: x * 2, [x, y], [0 * x, y])[1].asnumpy().tolist() == [0, 0]
    assert mx.jvp(lambda x: nd.ones((2,)), [x], [x])[1].asnumpy().tolist() == [0, 0]


def test_an_infinite_slope_is_one_of_a_jvp():
    x = nd.array([0, 4])
    assert mx.jvp(nd.sqrt, [x], [nd.ones_like(x)])[1].asnumpy()[1] == 0.25


def test_what_is_recorded_outside_stays_on_the_tape():
    x = normal(3)
    x.attach_grad()
    with autograd.record():
        (slope,) = mx.vjp(lambda x: x * x * x, x)[1](nd.ones_like(x))
        total = slope.sum() + mx.jvp(lambda x: x * x, [x], [nd.ones_like(x)])[1].sum()
    total.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * x.asnumpy() + 2)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda: mx.vjp(lambda x: x, nd.ones(2))[1](nd.ones(3)),
            ShapeError,
            r"vjp: cotangents have shapes \[\(3,\)\], but \[\(2,\)\] are needed",
        ),
        (
            lambda: mx.jvp(lambda x: x, [nd.ones(2)], []),
            ShapeError,
            r"jvp: tangents have shapes \[\], but \[\(2,\)\] are needed; .* of the inputs",
        ),
        (
            lambda: mx.jvp(nd.LogisticRegressionOutput, [nd.ones(2)] * 2, [nd.ones(2)] * 2),
            HybridError,
            "jvp: the function's gradient ignores the cotangent, as that of an output layer does",
        ),
        (
            lambda: mx.jvp(lambda x: x, nd.ones(2), [nd.ones(2)]),
            AttrError,
            r"jvp: inputs=.* \(an NDArray\), but a list .* is needed, such as \[x\]",
        ),
        (lambda: mx.vjp(lambda x: x, 2.0), AttrError, "vjp: .*2.0"),
        (lambda: mx.vmap(lambda x: x)(3), AttrError, r"vmap: 3 \(an int\) .*in_axes=None"),
        (
            lambda: mx.vmap(lambda x: x, in_axes=(0, 0))(nd.ones(2)),
            AttrError,
            r"vmap: in_axes=\(0, 0\) for 1 inputs",
        ),
        (lambda: mx.vmap(lambda x: x, in_axes=None)(nd.ones(2)), AttrError, "an axis at least"),
        (
            lambda: mx.vmap(lambda x, y: x)(nd.ones(2), nd.ones(3)),
            ShapeError,
            r"vmap: the mapped axes have lengths \[2, 3\]",
        ),
        (lambda: mx.vmap(lambda x: x, in_axes=2)(nd.ones((2, 3))), ShapeError, "axis 2"),
        (lambda: mx.vmap(lambda x: x.nothing)(nd.ones((2, 3))), AttributeError, "nothing"),
    ],
)
def test_wrong_calls_are_sentences(call, error, words):
    with pytest.raises(error, match=words):
        call()


# -- a batch axis ----------------------------------------------------------------------
def mapped(f, *inputs, in_axes=0):
    """(what vmap gives, what a loop gives, how often `f` was called)."""
    calls = []

    def counted(*xs):
        calls.append(xs)
        return f(*xs)

    actual = mx.vmap(counted, in_axes)(*inputs)
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(inputs)
    first = [x if a is None else x.swapaxes(0, a) for x, a in zip(inputs, axes, strict=True)]
    n = next(len(x) for x, a in zip(first, axes, strict=True) if a is not None)
    loop = [
        f(*(x if a is None else x[i] for x, a in zip(first, axes, strict=True))) for i in range(n)
    ]
    return actual.asnumpy(), np.stack([y.asnumpy() for y in loop]), len(calls)


def first_layer(x):
    return CASES["net"][0](x)


ONCE = {
    "elementwise": (lambda x: nd.sin(x) * 2 + x, [(4, 3)], 0),
    "beside a constant": (lambda x, w: x * w - w, [(4, 2, 3), (3,)], (0, None)),
    "ranks": (lambda x, y: x * y, [(4, 2, 3), (4, 3)], 0),
    "sum": (lambda x: x.sum(), [(4, 3)], 0),
    "sum of others": (lambda x: x.sum(axis=0, exclude=True), [(4, 2, 3)], 0),
    "mean": (lambda x: x.mean(axis=-1, keepdims=True), [(4, 2, 3)], 0),
    "argmax": (lambda x: x.argmax(axis=0) + x.argmax(), [(4, 2, 3)], 0),
    "reshape": (lambda x: x.T.reshape((-1,)).expand_dims(axis=0), [(4, 2, 3)], 0),
    "parts": (lambda x: nd.concat(x[0:1], x, dim=0)[:, 1:], [(4, 2, 3)], 0),
    "stack": (lambda x: nd.stack(x, x * 2, axis=-1), [(4, 2, 3)], 0),
    "where": (lambda x, y: nd.where(x > y, x, y), [(4, 3), (4, 3)], 0),
    "softmax": (lambda x: x.softmax(axis=0) + x.log_softmax(), [(4, 2, 3)], 0),
    "product": (lambda x, w: nd.dot(x, w), [(4, 2, 3), (3, 5)], (0, None)),
    "of two batches": (lambda x, y: nd.dot(x, y), [(4, 2, 3), (4, 3, 5)], 0),
    "another axis": (lambda w, x: nd.dot(w, x), [(2, 3), (3, 4)], (None, 1)),
    "Dense": (first_layer, [(4, 2, 3)], 0),
    "weights": (
        lambda x, w, b: nd.FullyConnected(x, w, b, num_hidden=5),
        [(4, 2, 3), (4, 5, 3), (4, 5)],
        0,
    ),
    "one in another": (lambda x: mx.vmap(lambda a: a.sum() * x.mean())(x), [(4, 2, 3)], 0),
    "the outer one inside": (lambda x: mx.vmap(lambda a: x + a)(x * 2), [(4, 2, 2)], 0),
}


@pytest.mark.parametrize("name", ONCE)
def test_vmap_calls_once_and_gives_what_a_loop_gives(name):
    f, shapes, in_axes = ONCE[name]
    actual, expected, calls = mapped(f, *(normal(*s) for s in shapes), in_axes=in_axes)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)
    assert calls == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x: nd.cumsum(x),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: nd.array(x.asnumpy()),
        lambda x: mx.vjp(lambda a: (a * a * a).sum(), x)[1](nd.ones((1,)))[0],
    ],
    ids=["no rule", "a branch", "NumPy", "per-example gradients"],
)
def test_vmap_calls_once_per_slice_where_it_must(f):
    actual, expected, calls = mapped(f, normal(4, 3))
    np.testing.assert_array_equal(actual, expected)
    assert calls == 1 + 4


def test_vmap_is_differentiated_and_compiled():
    x, w = normal(4, 3), normal(3)
    f = mx.vmap(lambda x, w: nd.softmax(x * w).max(), in_axes=(0, None), out_axes=1)
    assert f(x, w).shape == (1, 4)
    once = mx.function(f, target="numpy")
    np.testing.assert_allclose(once(x, w).asnumpy(), f(x, w).asnumpy(), rtol=1e-12)
    assert len(once.plans) == 1
    expected = jacobian(f, [x, w]).sum(axis=0)
    np.testing.assert_allclose(flat(mx.vjp(f, x, w)[1](nd.ones_like(f(x, w)))), expected, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 50, *external(*range(100, 800, 50))])
def test_random_programs_mapped_at_once_are_mapped_one_by_one(first, monkeypatch):
    """Programs of all operators: half of them have rules for each of theirs."""
    both, at_once = [], transform._at_once
    monkeypatch.setattr(transform, "_one_by_one", lambda *_: None)
    for seed in range(first, first + 50):
        program, rng = draw(seed), np.random.default_rng(seed)
        arrays = [a.astype("float64") if a.dtype == "float32" else a for a in arrays_of(program)]
        slices = [[rng.permutation(a.ravel()).reshape(a.shape) for a in arrays] for _ in range(3)]
        columns = zip(*slices, strict=True)
        inputs = [nd.array(np.stack(c), dtype=c[0].dtype) for c in columns]

        def f(*xs, program=program):
            return run(nd, program, xs)

        with np.errstate(all="ignore"):
            try:
                actual = at_once(f, inputs, [0] * len(inputs), 3)
            except (HybridError, TypeError, AttributeError):
                continue
            loop = [f(*(x[i] for x in inputs)) for i in range(3)]
        both.append(seed)
        for k, y in enumerate(actual):
            expected = np.stack([outs[k].asnumpy() for outs in loop])
            assert (y.shape, y.dtype) == (expected.shape, expected.dtype), source(program)
            np.testing.assert_allclose(
                y.asnumpy(), expected, rtol=1e-7, atol=1e-9, err_msg=source(program)
            )
    assert len(both) > 15
