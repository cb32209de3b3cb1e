"""`mx.np` beside MXNet 1.9.1's answers, and what np programs rely on."""

import json
import pathlib

import net_of_np
import numpy as onp
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd, np, npx, sym
from minihybrid.core.op import AttrError, DTypeError, HybridError, ShapeError
from minihybrid.core.tracing import TraceError

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "np"
ANSWERS = json.loads((GOLDEN / "expressions.json").read_text(encoding="utf-8"))
LAST_DIGITS = 2e-6


@pytest.fixture
def in_np():
    npx.set_np()
    yield
    npx.reset_np()


@pytest.fixture(scope="module")
def scope():
    made = {"np": np, "npx": npx, "mx": mx}
    exec(ANSWERS["names"], made)
    return made


def assert_as_described(value, expected, what):
    """Class, shape and dtype are equal; numbers, too, but for their last digits."""
    if isinstance(expected, list):
        assert isinstance(value, (list, tuple)) and len(value) == len(expected), what
        for v, w in zip(value, expected, strict=True):
            assert_as_described(v, w, what)
        return
    if "values" not in expected:
        assert repr(value) == expected["text"], what
        return
    assert type(value).__name__ == expected["type"], what
    assert list(value.shape) == expected["shape"], what
    assert str(onp.dtype(value.dtype)) == expected["dtype"], what
    numbers = onp.array(expected["values"]).reshape(value.shape)
    onp.testing.assert_allclose(value.asnumpy(), numbers, LAST_DIGITS, LAST_DIGITS, err_msg=what)
    if onp.array_equal(value.asnumpy(), numbers, equal_nan=True):
        assert repr(value) == expected["text"], what


@pytest.mark.parametrize("expression", ANSWERS["expressions"])
def test_expression_gives_what_mxnet_gives(expression, scope, in_np):
    assert_as_described(eval(expression, scope), ANSWERS["expressions"][expression], expression)


# -- files -----------------------------------------------------------------------------
def operators(text):
    """[(operator, name)] of a symbol file, without variables."""
    return [
        (node["op"], node["name"]) for node in json.loads(text)["nodes"] if node["op"] != "null"
    ]


@pytest.mark.slow
def test_mxnet_s_file_of_an_np_net_gives_its_answer(in_np):
    net = gluon.SymbolBlock.imports(
        str(GOLDEN / "net-symbol.json"), ["data"], str(GOLDEN / "net-0000.params")
    )
    answers = npx.load(str(GOLDEN / "net-answers.nd"))
    for _ in ("eager", "hybridized"):
        onp.testing.assert_allclose(net(answers["x"]).asnumpy(), answers["y"].asnumpy(), 1e-6)
        net.hybridize()


def test_our_file_of_an_np_net_has_mxnet_s_operators(in_np, tmp_path):
    net = net_of_np.make(gluon)
    net.initialize()
    net.hybridize()
    answers = npx.load(str(GOLDEN / "net-answers.nd"))
    net.load_parameters(str(GOLDEN / "net-0000.params"))
    y = net(answers["x"])
    onp.testing.assert_allclose(y.asnumpy(), answers["y"].asnumpy(), 1e-6)
    symbol_file, params_file = net.export(str(tmp_path / "net"))
    ours, theirs = (
        pathlib.Path(file).read_text(encoding="utf-8")
        for file in (symbol_file, GOLDEN / "net-symbol.json")
    )
    assert [op for op, _ in operators(ours)] == [op for op, _ in operators(theirs)]
    again = gluon.SymbolBlock.imports(symbol_file, ["data"], params_file)
    onp.testing.assert_allclose(again(answers["x"]).asnumpy(), y.asnumpy(), 1e-6)


def test_arrays_without_axes_or_elements_come_back_from_files(in_np, tmp_path):
    file = str(tmp_path / "arrays")
    npx.save(file, {"a": np.array(2.5), "b": np.zeros((0, 3)), "c": np.ones(2) > 0})
    actual = npx.load(file)
    assert repr(actual["a"]) == "array(2.5)"
    assert actual["b"].shape == (0, 3) and actual["c"].dtype == bool


# -- two worlds ------------------------------------------------------------------------
def test_crossing_over_shares_memory_and_tape():
    x = nd.array([[1, 2]])
    x.attach_grad()
    with autograd.record():
        y = x.as_np_ndarray()
        z = (y * y).sum()
    assert z.shape == () and type(y) is np.ndarray
    z.backward()
    assert x.grad.asnumpy().tolist() == [[2, 4]]
    y[0, 0] = 7
    assert x[0, 0].asscalar() == 7 and type(y.as_nd_ndarray()) is nd.NDArray


def test_the_switch_decides_the_world_of_parameters(in_np):
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize()
    assert type(net.weight.data()) is np.ndarray
    npx.reset_np()
    assert type(net.weight.data()) is nd.NDArray and not npx.is_np_array()


def test_scopes_and_decorators_switch_for_a_while():
    @npx.use_np
    def inside():
        return npx.is_np_array(), npx.is_np_shape()

    @npx.use_np
    class Asks:
        def ask(self):
            return npx.is_np_array()

    assert inside() == (True, True) and Asks().ask()
    with mx.np_shape(True):
        assert npx.is_np_shape() and not npx.is_np_array()
        with mx.np_shape(False):
            assert not npx.is_np_shape()
        assert npx.is_np_shape()
    assert not npx.is_np_shape()
    npx.set_np()
    assert npx.is_np_shape() and npx.is_np_array()
    npx.reset_np()
    with pytest.raises(AttrError, match="array=True needs shape=True"):
        npx.set_np(shape=False)


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        slice(1, None),
        (0, 1),
        (slice(None), 1),
        (Ellipsis, 2),
        None,
        (0, None),
        [0, 1, 1],
        ([0, 1], [1, 0]),
        (slice(None), [True, False, True]),
    ],
    ids=str,
)
def test_parts_are_numpy_s_and_have_a_gradient(key):
    values = onp.arange(6, dtype="float32").reshape(2, 3)
    x = np.array(values)
    assert x[key].shape == values[key].shape
    x.attach_grad()
    with autograd.record():
        y = x[key]
        total = (y * y).sum()
    onp.testing.assert_array_equal(y.asnumpy(), values[key])
    total.backward()
    expected = onp.zeros_like(values)
    onp.add.at(expected, key, 2 * values[key])
    onp.testing.assert_array_equal(x.grad.asnumpy(), expected)


def test_masks_choose_and_overwrite():
    x = np.array([[1.0, -2.0], [-3.0, 4.0]])
    x[x < 0] = 0
    assert x.tolist() == [[1, 0], [0, 4]] and x[x > 0].tolist() == [1, 4]


def test_whole_numbers_and_fractions_give_floats():
    """MXNet 1.9.1 cuts the fraction off; its documentation promises what we do."""
    i = np.array([1, 2], dtype="int32")
    assert repr(i + 1.5) == "array([2.5, 3.5])" and repr(i > 1.5) == "array([False,  True])"
    assert repr(i * 2.0) == "array([2., 4.])" and (i * 2).dtype == onp.int32


def test_gradient_of_a_gradient_of_np_arrays():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        (dx,) = autograd.grad((x**3).sum(), x, create_graph=True)
        total = (dx * dx).sum()
    total.backward()
    assert type(dx) is np.ndarray and x.grad.tolist() == [36, 288]


def test_mixed_dtypes_get_gradients_in_their_own(in_np):
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0], dtype="float64")
    a.attach_grad()
    b.attach_grad()
    for run in (lambda a, b: a * b, mx.function(lambda a, b: a * b)):
        with autograd.record():
            y = run(a, b)
        y.backward()
        assert a.grad.dtype == onp.float32 and a.grad.tolist() == [3, 4]
        assert b.grad.dtype == onp.float64 and b.grad.tolist() == [1, 2]


def test_symbols_of_np_run_without_gluon():
    x = sym.var("x").as_np_ndarray()
    with mx.name.NameManager():
        y = sym.np.sum(sym.npx.relu(x) * 2, axis=0) + sym.np.ones((3,))
    assert operators(y.tojson()) == [
        ("_npx_relu", "relu0"),
        ("_npi_multiply_scalar", "multiply_scalar0"),
        ("_np_sum", "sum0"),
        ("_npi_ones", "ones0"),
        ("_npi_add", "add0"),
    ]
    (out,) = y.eval(x=nd.ones((2, 3)))
    assert out.asnumpy().tolist() == [5, 5, 5]


def test_shapes_without_axes_run_compiled(in_np):
    f = mx.function(lambda a, b: ((a * b).sum() + 1, a[0]))
    total, first = f(np.array([2.0, 3.0]), np.array(2.0))
    assert repr(total) == "array(11.)" and repr(first) == "array(2.)"
    g = mx.function(lambda a: a > 1)
    assert repr(g(np.array([0.0, 2.0]))) == "array([False,  True])"
    assert repr(g(np.array(2.0))) == "array(True)"


def test_random_numbers_follow_the_seed(in_np):
    draws = []
    for _ in range(2):
        npx.random.seed(3)
        order = np.arange(10)
        np.random.shuffle(order)
        draws.append(
            [
                np.random.normal(size=3),
                np.random.choice(9, 4, replace=False),
                np.random.gamma(0.5, size=(2, 2)),
                order,
            ]
        )
    for one, two in zip(*draws, strict=True):
        onp.testing.assert_array_equal(one.asnumpy(), two.asnumpy())
    assert sorted(draws[0][3].tolist()) == list(range(10))
    assert len(set(draws[0][1].tolist())) == 4


@pytest.mark.parametrize(
    "draw, mean, variance",
    [
        (lambda n: np.random.gamma(0.5, 2.0, size=n), 1.0, 2.0),
        (lambda n: np.random.gamma(3.0, size=n), 3.0, 3.0),
        (lambda n: np.random.normal(1.0, 2.0, size=n), 1.0, 4.0),
        (lambda n: np.random.choice(2, n, p=[0.25, 0.75]), 0.75, 0.1875),
        (lambda n: np.random.multinomial(10, [0.5, 0.5], size=n)[:, 0], 5.0, 2.5),
    ],
    ids=["gamma below 1", "gamma", "normal", "choice", "multinomial"],
)
def test_distributions_have_their_mean_and_variance(draw, mean, variance):
    mx.random.seed(1)
    actual = draw(40_000).asnumpy().astype(float)
    assert abs(actual.mean() - mean) < 5 * (variance / 40_000) ** 0.5
    assert abs(actual.var() / variance - 1) < 0.1


# -- errors ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "run, kind, words",
    [
        (lambda x: np.dot(x, x), ShapeError, r"dot: \(2, 3\) times \(2, 3\)"),
        (lambda x: x.reshape(4, 2), ShapeError, r"reshape: \(2, 3\) has 6 elements"),
        (lambda x: np.split(x, 2, axis=1), ShapeError, "does not divide into 2 equal"),
        (lambda x: x & 1.5, DTypeError, "x & y: whole numbers"),
        (
            lambda x: x + [1, 2, 3],
            AttrError,
            r"^x \+ y: an np.ndarray and .* \(a list\) do not combine",
        ),
        (lambda x: np.einsum("ij,jk", x), AttrError, "einsum: 'ij,jk' does not fit 1"),
        (lambda x: np.einsum("ij,ij->i", x, x.T), ShapeError, "'i' means 2 and 3"),
        (lambda x: x[5], ShapeError, "out of bounds"),
        (lambda x: np.random.choice(3, 5, replace=False), ShapeError, "5 different"),
        (lambda x: np.array("text"), AttrError, "np.array: "),
        (lambda x: np.unique(sym.var("x")), HybridError, "NumPy computes it"),
        (lambda x: np.no_such, AttributeError, "np has no function 'no_such'"),
        (lambda x: npx.no_such, AttributeError, "npx has no function 'no_such'"),
        (lambda x: np.add(x, 1, out=3), AttrError, "out= must be an np.ndarray"),
    ],
)
def test_error_says_what_is_wrong(run, kind, words):
    with pytest.raises(kind, match=words):
        run(np.ones((2, 3)))


def test_f_style_symbols_of_np_still_refuse_their_shape(in_np):
    class Asks(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x * x.shape[0]

    net = Asks()
    net.hybridize()
    with pytest.raises(TraceError, match="x.shape on the Symbol 'data'"):
        net(np.ones((2, 3)))


@pytest.mark.parametrize(
    "space", [np, npx, sym.np, sym.npx], ids=["np", "npx", "sym.np", "sym.npx"]
)
def test_every_name_that_is_listed_is_there_and_explained(space):
    for name in dir(space):
        actual = getattr(space, name)
        assert not callable(actual) or actual.__doc__, name


def test_an_axis_of_length_0_is_no_word_for_another():
    """The older broadcast_to keeps an axis for which 0 is said; NumPy's does not."""
    one, none = np.array([1.0]), np.ones((0,))
    assert np.broadcast_to(one, (2, 0)).shape == (2, 0)
    for given in ((one, none), (none, one)):
        for indexing in ("xy", "ij"):
            arrays = [x.asnumpy() for x in given]
            expected = onp.meshgrid(*arrays, indexing=indexing)
            actual = np.meshgrid(*given, indexing=indexing)
            assert [x.shape for x in actual] == [x.shape for x in expected]
    with pytest.raises(ShapeError, match=r"\(2,\) does not stretch to \(0,\)"):
        np.broadcast_to(np.ones((2,)), (0,))


@pytest.mark.parametrize(
    "name, ndim",
    [
        *((name, ndim) for name in ("vstack", "hstack", "dstack") for ndim in (1, 2, 3, 4)),
        ("column_stack", 1),
        ("column_stack", 2),
    ],
)
def test_arrays_are_joined_as_numpy_joins_them(name, ndim):
    a = onp.arange(2.0**ndim).reshape((2,) * ndim)
    mine = getattr(mx.np, name)([mx.np.array(a), mx.np.array(-a)])
    onp.testing.assert_array_equal(mine.asnumpy(), getattr(onp, name)([a, -a]))
