"""Eager arrays: what MXNet's NDArray promises, with numbers that MXNet 1.9.1 gave."""

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import nd
from minihybrid.ops.infix import FUNCTIONS

X = [[1, 2, 3], [4, 5, 6]]
I32 = nd.array(X, dtype="int32")


@pytest.fixture
def x():
    return nd.array(X)


def contents(a):
    """Shape, dtype and numbers of an array."""
    return a.shape, a.dtype.__name__, a.asnumpy().tolist()


# -- making ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "made, expected",
    [
        (lambda: nd.array([1, 2]), ((2,), "float32", [1, 2])),
        (lambda: nd.array(np.arange(3)), ((3,), "float32", [0, 1, 2])),
        (lambda: nd.array(np.arange(3.0)), ((3,), "float32", [0, 1, 2])),
        (lambda: nd.array(np.arange(3, dtype="uint8")), ((3,), "float32", [0, 1, 2])),
        (lambda: nd.array(nd.array([1, 2], dtype="int32")), ((2,), "int32", [1, 2])),
        (lambda: nd.array([nd.array([1]), nd.array([2])]), ((2, 1), "float32", [[1], [2]])),
        (lambda: nd.array(3), ((1,), "float32", [3])),
        (lambda: nd.array([]), ((0,), "float32", [])),
        (lambda: nd.zeros((2, 1)), ((2, 1), "float32", [[0], [0]])),
        (lambda: nd.zeros(2), ((2,), "float32", [0, 0])),
        (lambda: nd.ones((2,), dtype="int32"), ((2,), "int32", [1, 1])),
        (lambda: nd.full((2,), 7), ((2,), "float32", [7, 7])),
        (lambda: nd.arange(3), ((3,), "float32", [0, 1, 2])),
        (lambda: nd.arange(1, 4), ((3,), "float32", [1, 2, 3])),
        (lambda: nd.arange(0, 1, 0.25), ((4,), "float32", [0, 0.25, 0.5, 0.75])),
        (lambda: nd.arange(0, 2, repeat=2), ((4,), "float32", [0, 0, 1, 1])),
        (lambda: nd.arange(3, dtype="int64"), ((3,), "int64", [0, 1, 2])),
        (lambda: nd.zeros((2, 0)), ((2, 0), "float32", [[], []])),
        (lambda: nd.concatenate([nd.ones((1,)), nd.zeros((2,))]), ((3,), "float32", [1, 0, 0])),
        (lambda: nd.one_hot(nd.array([0, 2]), 3), ((2, 3), "float32", [[1, 0, 0], [0, 0, 1]])),
    ],
)
def test_arrays_are_made(made, expected):
    assert contents(made()) == expected


def test_an_array_copies_its_source():
    source = np.ones((2,), "float32")
    a = nd.array(source)
    source[:] = 5
    assert a.asnumpy().tolist() == [1, 1]
    a.asnumpy()[:] = 7
    assert a.asnumpy().tolist() == [1, 1]


def test_it_prints_like_mxnet(x):
    assert repr(x) == "\n[[1. 2. 3.]\n [4. 5. 6.]]\n<NDArray 2x3 @cpu(0)>"


def test_what_it_says_of_itself(x):
    assert (x.shape, x.size, x.ndim, len(x), x.stype) == ((2, 3), 6, 2, 2, "default")
    assert x.dtype is np.float32
    assert x.context == x.ctx == mx.cpu() == mx.cpu(0) == mx.current_context()
    assert repr(mx.cpu()) == "cpu(0)" and repr(mx.gpu(1)) == "gpu(1)"
    assert x.as_in_context(mx.cpu()) is x
    assert x.wait_to_read() is None and nd.waitall() is None


# -- operators: shape and dtype rules --------------------------------------------------
RULES = {
    "x.sum()": ((1,), "float32", [21]),
    "x.mean()": ((1,), "float32", [3.5]),
    "x.max()": ((1,), "float32", [6]),
    "x.sum(axis=0)": ((3,), "float32", [5, 7, 9]),
    "x.sum(axis=(0, 1))": ((1,), "float32", [21]),
    "x.sum(axis=1, keepdims=True)": ((2, 1), "float32", [[6], [15]]),
    "x.mean(axis=0, exclude=True)": ((2,), "float32", [2, 5]),
    "x.min(axis=1)": ((2,), "float32", [1, 4]),
    "x.argmax()": ((1,), "float32", [5]),
    "x.argmax(axis=1)": ((2,), "float32", [2, 2]),
    "nd.array([3, 4]).norm()": ((1,), "float32", [5]),
    "i.sum()": ((1,), "int32", [21]),
    "i + 1": ((2, 3), "int32", [[2, 3, 4], [5, 6, 7]]),
    "i + 1.5": ((2, 3), "int32", [[2, 3, 4], [5, 6, 7]]),
    "i / 2": ((2, 3), "int32", [[0, 1, 1], [2, 2, 3]]),
    "i > 2": ((2, 3), "int32", [[0, 0, 1], [1, 1, 1]]),
    "x > 2": ((2, 3), "float32", [[0, 0, 1], [1, 1, 1]]),
    "x == x": ((2, 3), "float32", [[1, 1, 1], [1, 1, 1]]),
    "2 - x": ((2, 3), "float32", [[1, 0, -1], [-2, -3, -4]]),
    "6 / x[0]": ((3,), "float32", [6, 3, 2]),
    "2 ** x[0]": ((3,), "float32", [2, 4, 8]),
    "x[0] ** 2": ((3,), "float32", [1, 4, 9]),
    "x[1] % 4": ((3,), "float32", [0, 1, 2]),
    "-x[0]": ((3,), "float32", [-1, -2, -3]),
    "abs(-x[0])": ((3,), "float32", [1, 2, 3]),
    "x + nd.array([1, 2, 3])": ((2, 3), "float32", [[2, 4, 6], [5, 7, 9]]),
    "x * nd.array([[1], [2]])": ((2, 3), "float32", [[1, 2, 3], [8, 10, 12]]),
    "np.ones((2, 3), 'float32') + x": ((2, 3), "float32", [[2, 3, 4], [5, 6, 7]]),
    "np.float32(2) * x[0]": ((3,), "float32", [2, 4, 6]),
    "x.T": ((3, 2), "float32", [[1, 4], [2, 5], [3, 6]]),
    "x.reshape((3, 2))": ((3, 2), "float32", [[1, 2], [3, 4], [5, 6]]),
    "x.reshape(3, 2)": ((3, 2), "float32", [[1, 2], [3, 4], [5, 6]]),
    "x.reshape((-3,))": ((6,), "float32", [1, 2, 3, 4, 5, 6]),
    "x.reshape((-4, 1, 2, 0))": ((1, 2, 3), "float32", [X]),
    "x.expand_dims(0).squeeze()": ((2, 3), "float32", X),
    "x.flatten()": ((2, 3), "float32", X),
    "x.astype('int64')": ((2, 3), "int64", X),
    "nd.dot(x, x.T)": ((2, 2), "float32", [[14, 32], [32, 77]]),
    "nd.dot(x, nd.ones((3,)))": ((2,), "float32", [6, 15]),
    "nd.dot(nd.ones((3,)), nd.ones((3,)))": ((1,), "float32", [3]),
    "nd.concat(x, x, dim=0)": ((4, 3), "float32", X + X),
    "nd.stack(x, x)": ((2, 2, 3), "float32", [X, X]),
    "nd.split(x, 3)[1]": ((2, 1), "float32", [[2], [5]]),
    "nd.split(x, 3, squeeze_axis=True)[1]": ((2,), "float32", [2, 5]),
    "nd.pick(x, nd.array([0, 2]))": ((2,), "float32", [1, 6]),
    "nd.clip(x, 2, 5)": ((2, 3), "float32", [[2, 2, 3], [4, 5, 5]]),
    "nd.where(x > 2, x, -x)": ((2, 3), "float32", [[-1, -2, 3], [4, 5, 6]]),
    "nd.maximum(x, 3)": ((2, 3), "float32", [[3, 3, 3], [4, 5, 6]]),
    "nd.minimum(3, x)": ((2, 3), "float32", [[1, 2, 3], [3, 3, 3]]),
    "nd.maximum(x[0], nd.array([[2]]))": ((1, 3), "float32", [[2, 2, 3]]),
    "nd.add(x[0], 1)": ((3,), "float32", [2, 3, 4]),
    "nd.subtract(3, x[0])": ((3,), "float32", [2, 1, 0]),
    "nd.multiply(x[0], x[0])": ((3,), "float32", [1, 4, 9]),
    "nd.divide(6, x[0])": ((3,), "float32", [6, 3, 2]),
    "nd.power(2, x[0])": ((3,), "float32", [2, 4, 8]),
    "nd.modulo(x[0], 2)": ((3,), "float32", [1, 0, 1]),
    "nd.greater(2, x[0])": ((3,), "float32", [1, 0, 0]),
    "nd.lesser_equal(x[0], 2)": ((3,), "float32", [1, 1, 0]),
    "nd.not_equal(x[0], 2)": ((3,), "float32", [1, 0, 1]),
    "nd.slice(x, begin=(0, 1), end=(2, 3))": ((2, 2), "float32", [[2, 3], [5, 6]]),
    "nd.slice_axis(x, axis=1, begin=0, end=2)": ((2, 2), "float32", [[1, 2], [4, 5]]),
    "nd.broadcast_to(x[0:1], shape=(2, 3))": ((2, 3), "float32", [[1, 2, 3]] * 2),
    "nd.FullyConnected(x, nd.ones((2, 3)), nd.array([0, 1]), num_hidden=2)": (
        (2, 2),
        "float32",
        [[6, 7], [15, 16]],
    ),
    "nd.Activation(-x, act_type='relu')": ((2, 3), "float32", [[0, 0, 0], [0, 0, 0]]),
    "nd.BlockGrad(x)": ((2, 3), "float32", X),
    "nd.mean(x, axis=0)": ((3,), "float32", [2.5, 3.5, 4.5]),
    "x[0]": ((3,), "float32", [1, 2, 3]),
    "x[-1]": ((3,), "float32", [4, 5, 6]),
    "x[0, 1]": ((1,), "float32", [2]),
    "x[:, 1]": ((2,), "float32", [2, 5]),
    "x[:, 1:2]": ((2, 1), "float32", [[2], [5]]),
    "x[1, ::2]": ((2,), "float32", [4, 6]),
    "x[..., 0]": ((2,), "float32", [1, 4]),
    "x[nd.array([1])]": ((1, 3), "float32", [[4, 5, 6]]),
}


@pytest.mark.parametrize("expression", RULES)
def test_shape_dtype_and_numbers_are_mxnets(expression, x):
    names = {"x": x, "i": I32, "nd": nd, "np": np}
    assert contents(eval(expression, names)) == RULES[expression]


def test_functions_of_whole_numbers_become_floats():
    """Here our rule is another than MXNet's, which cuts the result to whole numbers."""
    assert contents(nd.sqrt(nd.array([4, 2], dtype="int32")))[1] == "float32"
    assert contents(I32.mean()) == ((1,), "float32", [3.5])


def test_one_element_is_a_number(x):
    total = x.sum()
    assert (total.asscalar(), float(total), int(total), total.item()) == (21,) * 4
    assert bool(total) and not bool(total * 0)
    assert [10, 11, 12][nd.array([1])] == 11
    assert type(total.asscalar()) is np.float32 and type(total.item()) is float


def test_a_loop_goes_over_rows(x):
    assert [row.asnumpy().tolist() for row in x] == X
    a, b = x
    assert b.shape == (3,)


# -- writing ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "write, expected",
    [
        ("x[:] = 7", [[7, 7, 7], [7, 7, 7]]),
        ("x[0] = 0", [[0, 0, 0], [4, 5, 6]]),
        ("x[0, 1] = 9", [[1, 9, 3], [4, 5, 6]]),
        ("x[:, 1:] = 0", [[1, 0, 0], [4, 0, 0]]),
        ("x[1] = x[0]", [[1, 2, 3], [1, 2, 3]]),
        ("x[:] = [1, 2, 3]", [[1, 2, 3], [1, 2, 3]]),
        ("x[nd.array([1])] = 0", [[1, 2, 3], [0, 0, 0]]),
        ("x += 1", [[2, 3, 4], [5, 6, 7]]),
        ("x -= x", [[0, 0, 0], [0, 0, 0]]),
        ("x -= 1", [[0, 1, 2], [3, 4, 5]]),
        ("x *= nd.array([1, 0, 2])", [[1, 0, 6], [4, 0, 12]]),
        ("x /= 2", [[0.5, 1, 1.5], [2, 2.5, 3]]),
        ("nd.relu(-x, out=x)", [[0] * 3] * 2),
        ("x[0][:] = 5", [[5, 5, 5], [4, 5, 6]]),  # a row is the same memory, as in MXNet
    ],
)
def test_writing_keeps_the_array_and_its_memory(write, expected, x):
    memory, names = x.data, {"x": x, "nd": nd}
    exec(write, names)
    assert names["x"] is x and x.data is memory
    assert x.asnumpy().tolist() == expected


def test_results_do_not_share_memory_with_their_inputs(x):
    for y in (
        x.copy(),
        nd.reshape(x, (3, 2)),
        x.T,
        x.flatten(),
        x + 0,
        nd.identity(x),
        x.slice_axis(axis=0, begin=0, end=1),
        x.astype("float32"),
        x.expand_dims(0),
    ):
        y[:] = -1
    assert x.asnumpy().tolist() == X


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.reshape((3, 2)),
        lambda x: x.reshape(-1),
        lambda x: x.reshape((-1,))[1:4],
        lambda x: x[1],
        lambda x: x[0:1],
        lambda x: x[0, 1],
        lambda x: x[None],
        lambda x: x.detach(),
        lambda x: x.astype("float32", copy=False),
    ],
)
@pytest.mark.parametrize("ctx", [mx.cpu(), mx.simulated_gpu()], ids=str)
def test_what_mxnet_documents_as_views_writes_through(x, view, ctx):
    if ctx != mx.cpu() and view(x).shape == (1, 2, 3):
        return  # on a device, None in an index gathers
    x = x.as_in_context(ctx)
    size = view(x).size
    view(x)[:] = -1
    assert (x.asnumpy() == -1).sum() == size


def test_a_shape_may_be_a_list(x):
    assert x.reshape([3, -1]).shape == x.reshape([-1, 2]).shape == (3, 2)
    for wrong in ([[3], 2], ([3], [2]), "a", (2, [3])):
        with pytest.raises(mx.HybridError, match="reshape"):
            x.reshape(wrong)
    with pytest.raises(mx.HybridError, match="reshape"):
        x.reshape(3, [2])


def test_a_parameter_is_written_through_a_view():
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize()
    net(nd.ones((1, 3)))
    net.weight.data().reshape(-1)[0] = 5
    net.weight.data().reshape((-1,))[1:] = 0
    assert net.weight.data().asnumpy().tolist() == [[5, 0, 0], [0, 0, 0]]
    assert net(nd.ones((1, 3))).asnumpy().tolist() == [[5, 0]]


def test_copyto_and_copies(x):
    other = nd.zeros((2, 3))
    assert x.copyto(other) is other and other.asnumpy().tolist() == X
    moved = x.copyto(mx.cpu())
    moved[:] = 0
    assert x.asnumpy().tolist() == X


# -- random ----------------------------------------------------------------------------
def test_a_seed_repeats_the_numbers():
    def draw():
        return [
            mx.random.uniform(shape=(3,)),
            nd.random.normal(0, 1, shape=(3,)),
            nd.random.randint(0, 9, shape=(3,)),
            mx.random.randn(2, 2),
        ]

    mx.random.seed(5)
    first = draw()
    mx.random.seed(5)
    for a, b in zip(first, draw(), strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    mx.random.seed(6)
    assert (draw()[0].asnumpy() != first[0].asnumpy()).any()


def test_random_numbers_have_their_distribution():
    mx.random.seed(0)
    u = nd.random.uniform(-1, 3, shape=(20_000,)).asnumpy()
    assert u.min() >= -1 and u.max() < 3 and abs(u.mean() - 1) < 0.05
    n = nd.random.normal(2, 3, shape=(20_000,), dtype="float64").asnumpy()
    assert n.dtype == np.float64 and abs(n.mean() - 2) < 0.1 and abs(n.std() - 3) < 0.1
    r = nd.random.randint(0, 3, shape=(1000,))
    assert r.dtype is np.int32 and set(r.asnumpy().tolist()) == {0, 1, 2}


def test_nd_and_sym_offer_the_same_functions():
    from minihybrid import sym

    missing = {
        name
        for name in dir(nd)
        if name in mx.nd.OPS or name in FUNCTIONS
        if not callable(getattr(sym, name, None))
    }
    assert missing == set()
    assert {"maximum", "FullyConnected", "dot", "random", "zeros"} <= {*dir(nd)} & {*dir(sym)}


@pytest.mark.parametrize("name", ["sigmoid", "softmin"])
def test_numbers_without_a_sign_are_floats_before_they_are_negated(name):
    numbers, f = [0, 1, 2, 200], getattr(nd, name)
    expected = f(nd.array(numbers)).asnumpy()
    for dtype in ("uint8", "int32"):
        got = f(nd.array(numbers, dtype=dtype))
        assert got.dtype == np.float32
        np.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: nd.dot(a, b),
        lambda a, b: nd.batch_dot(a.expand_dims(0), b.expand_dims(0)),
        lambda a, b: nd.linalg.gemm2(a, b),
    ],
)
def test_products_of_two_dtypes_are_refused_in_all_modes(call):
    a, b = nd.ones((2, 3)), nd.ones((3, 2), dtype="float64")
    for f in (call, mx.function(call)):
        with pytest.raises(mx.DTypeError, match="float32 and float64, but one dtype"):
            f(a, b)
