"""Eager calls that are alike: checked once, then run with few Python calls, and as before."""

import gc
import platform
import subprocess
import sys
import threading

import numpy as np
import pytest
from marks import for_each
from samples import UNIQUE, cases_of, has_samples

import minihybrid as mx
from minihybrid import autograd, nd, npx
from minihybrid import np as mnp
from minihybrid.core.graph import topological
from minihybrid.core.op import Op, Spec
from minihybrid.gluon import nn
from minihybrid.ops import OPS
from minihybrid.ops.eager_cache import steps_of
from minihybrid.ops.elementwise import PIECE

A, B = np.float32(np.arange(16).reshape(4, 4)) / 8, np.ones((4, 4), np.float32)
ROW = nd.ones((4,))
SMALL = {  # what is applied to (a, b) -> the most Python functions of a later call
    "a + b": (lambda a, b: a + b, 6),
    "a + 1": (lambda a, b: a + 1, 7),
    "2.5 * a": (lambda a, b: 2.5 * a, 8),
    "relu(a)": (lambda a, b: nd.relu(a), 6),
    "a.exp()": (lambda a, b: a.exp(), 5),
    "dot(a, b)": (nd.dot, 7),
    "a.sum(axis=1)": (lambda a, b: a.sum(axis=1), 7),
    "a.reshape((2, 8))": (lambda a, b: a.reshape((2, 8)), 8),
    "Activation(a)": (lambda a, b: nd.Activation(a, act_type="relu"), 6),
    "concat(a, b)": (lambda a, b: nd.concat(a, b, dim=0), 8),
    "reshape_like(a, b)": (nd.reshape_like, 8),
    "softmax(a)": (lambda a, b: nd.softmax(a), 7),
}
NOT_STEPPED = {  # made of others, but drawing numbers, giving an input back, or made of np's
    *"""_sample_uniform _sample_normal _sample_exponential _sample_gamma _sample_poisson
    _sample_negative_binomial _sample_generalized_negative_binomial _sample_multinomial _shuffle
    Dropout _identity_with_attr_like_rhs _npi_where_lscalar _npi_where_rscalar
    _npi_where_scalar2 _npi_tensordot _npi_tensordot_int_axes _npi_nan_to_num _npi_diff
    _npi_average _npi_around _np_trace""".split()
}
TAPED = 5  # more on the tape: the node, those of two inputs, and where these are


def n_calls(function, *args):
    """How many Python functions a call runs beside itself, after two that were like it."""
    function(*args), function(*args)
    count = [0]

    def note(frame, event, _):
        count[0] += event == "call"

    before = sys.getprofile()
    gc.disable()  # a collection would run finalizers of other tests' objects
    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(before)
        gc.enable()
    return count[0] - 1


@pytest.mark.parametrize("name", SMALL)
def test_a_later_call_runs_few_python_functions(name):
    function, most = SMALL[name]
    a, b = nd.array(A), nd.array(B)
    assert n_calls(function, a, b) <= most
    a.attach_grad()
    with autograd.record():
        assert n_calls(function, a, b) <= most + TAPED
    assert n_calls(function, mnp.array(A), mnp.array(B)) <= most + 3


NAMES_OF_NP = {  # what is applied to (a, b) of mx.np -> the most Python functions, as above
    "exp(a)": (lambda a, b: mnp.exp(a), 6),
    "add(a, b)": (lambda a, b: mnp.add(a, b), 9),
    "dot(a, b)": (lambda a, b: mnp.dot(a, b), 9),
    "a.sum(axis=1)": (lambda a, b: a.sum(axis=1), 8),
    "a.reshape((2, 8))": (lambda a, b: a.reshape((2, 8)), 8),
    "relu(a)": (lambda a, b: npx.relu(a), 6),
    "fully_connected(data=a, weight=b)": (
        lambda a, b: npx.fully_connected(data=a, weight=b, num_hidden=4, no_bias=True),
        9,
    ),
}


@pytest.mark.parametrize("name", NAMES_OF_NP)
def test_functions_of_np_add_few_python_functions(name):
    function, most = NAMES_OF_NP[name]
    assert n_calls(function, mnp.array(A), mnp.array(B)) <= most


@pytest.mark.parametrize(
    "function, most, most_taped", [(nd.mean, 11, 22), (lambda a: nd.LayerNorm(a, ROW, ROW), 33, 89)]
)
def test_operators_of_several_steps_run_few_python_functions_a_step(function, most, most_taped):
    """Two steps, and ten."""
    a = nd.array(A)
    assert n_calls(function, a) <= most
    a.attach_grad()
    with autograd.record():
        assert n_calls(function, a) <= most_taped


def test_a_net_calls_few_python_functions():
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dense(8, activation="relu"), nn.Dense(2))
    net.initialize()
    x = nd.array(A)
    assert n_calls(net, x) <= 85
    with autograd.record():
        assert n_calls(net, x) <= 105


@pytest.mark.parametrize("name", SMALL)
def test_a_later_call_gives_the_bits_and_the_gradient_of_the_first(name):
    function, _ = SMALL[name]
    answers = []
    for op in OPS.values():
        op.checked.clear()
    for _ in range(3):
        a, b = nd.array(A), nd.array(B)
        a.attach_grad()
        with autograd.record():
            y = function(a, b)
        y.backward()
        own = np.shares_memory(y.data, a.data) or np.shares_memory(y.data, b.data)
        assert not own and y.data.flags.c_contiguous and type(y) is nd.NDArray
        answers.append((y.asnumpy().tobytes(), y.shape, a.grad.asnumpy().tobytes()))
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(
    "good, bad, error",
    [
        (lambda a: a.reshape((1, 16)), lambda a: a.reshape((True, 16)), mx.AttrError),
        (lambda a: a.sum(axis=1), lambda a: a.sum(axis=True), mx.AttrError),
        (lambda a: a.sum(axis=1), lambda a: a.sum("axis", 1), mx.HybridError),
        (lambda a: nd.clip(a, 0, 1), lambda a: nd.clip(a, 0, "one"), mx.AttrError),
        (lambda a: nd.relu(a), lambda a: nd.relu(a, 1), mx.AttrError),
        (lambda a: nd.dot(a, a), lambda a: nd.dot(a, a[:3]), mx.ShapeError),
        (lambda a: a + a, lambda a: a + nd.ones((3, 4)), mx.ShapeError),
    ],
)
def test_a_mistake_is_told_also_after_a_call_that_looks_alike(good, bad, error):
    a = nd.array(A)
    for _ in range(2):
        good(a)
        with pytest.raises(error):
            bad(a)


def test_signs_of_zero_and_kinds_of_numbers_are_told_apart():
    x = nd.zeros((2,))
    for _ in range(2):
        assert not np.signbit((x * 0.0).asnumpy()).any()
        assert np.signbit((x * -0.0).asnumpy()).all()
    k = nd.array([3, 4], dtype="int32")
    for _ in range(2):
        assert (k + 2).dtype is np.int32 and (k + 2.0).asnumpy().tolist() == [5, 6]


def test_an_argument_that_changes_its_value_is_read_in_each_call():
    class Knob:
        value = 0.0

        def __float__(self):
            return self.value

    knob, x = Knob(), nd.array([1.0, 2.0])
    for knob.value in (1.0, 1.5, 2.0, 1.0):
        assert nd.clip(x, knob, 5).asnumpy().tolist() == [max(1.0, knob.value), 2]


def test_each_world_gives_its_own_arrays():
    for _ in range(2):
        assert type(nd.relu(nd.array(A))) is nd.NDArray
        assert type(OPS["relu"](mnp.array(A))) is mnp.ndarray
        assert mnp.add(mnp.array(1.0), mnp.array(2.0)).shape == ()


def test_other_devices_and_symbols_go_their_own_way():
    for _ in range(2):
        assert (nd.ones((4, 4)) + 1).context == mx.cpu(0)
        assert (nd.ones((4, 4), ctx=mx.cpu(1)) + 1).context == mx.cpu(1)
        assert (nd.ones((4, 4), ctx=mx.simulated_gpu()) + 1).context == mx.simulated_gpu()
        assert nd.relu(nd.ones((2,))).asnumpy().tolist() == [1, 1]
        assert mx.sym.relu(mx.sym.var("x")).list_arguments() == ["x"]


def test_numpy_does_not_warn_and_its_errors_name_the_operator():
    x = nd.array([0.0, -1.0])
    for _ in range(2):
        with np.errstate(all="raise"):
            assert np.isnan(x.log().asnumpy()[1])
    fails = Op("_path_fails", inputs=("data",), infer=lambda s: (s, s), eager=_fails, doc="Fails.")
    for n in (2, 2, 3, 3):
        with pytest.raises(mx.HybridError, match="_path_fails: .* do not go together"):
            fails(nd.ones((n,)))


def _fails(data):
    raise ValueError("nothing")


def test_threads_at_the_same_time():
    """Each call has a context of its own: none is entered twice."""
    actual, a = [], nd.array(A)

    def work(k):
        for _ in range(500):
            y = a * k + k
        actual.append(bool((y.asnumpy() == A * k + k).all()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert actual == [True] * 4


def test_an_operator_inside_of_another_ones_function():
    inside = Op(
        "_path_inside",
        inputs=("data",),
        infer=lambda s: (s, s),
        eager=lambda data: (nd.array(data) + 1).asnumpy(),
        doc="Calls another operator.",
    )
    for _ in range(3):
        assert inside(nd.ones((2,))).asnumpy().tolist() == [2, 2]


def test_what_is_remembered_is_limited():
    op = OPS["_plus_scalar"]
    for k in range(1100):
        nd.ones((1,)) + float(k)
    assert 0 < len(op.checked) <= 1000


def steps(name, *inputs, **attrs):
    """[(operator, places of its inputs, of its outputs)] of an operator, and of its outputs."""
    actual, outs = steps_of(OPS[name], inputs, OPS[name].normalize(attrs))
    return [(step.op.name, step.places, step.outs) for step in actual], outs


def test_an_operator_that_is_made_of_others_is_their_steps():
    spec = Spec((2, 3), np.dtype("float32"))
    assert steps("Activation", spec, act_type="tanh") == ([("tanh", [0], [1])], [1])
    assert steps("_npi_add", spec, spec) == ([("broadcast_add", [0, 1], [2])], [2])
    assert steps("mean", spec) == ([("sum", [0], [1]), ("_mul_scalar", [1], [2])], [2])
    assert steps("split", spec, num_outputs=3)[1] == [1, 2, 3]
    assert [name for name, *_ in steps("topk", spec, k=2)[0]] == ["_order", "slice", "Cast"]
    assert steps("relu", spec) == ([("relu", [0], [1])], [1])
    row = Spec((3,), spec.dtype)
    for name in ("Dropout", "_shuffle"):
        assert steps(name, spec) == ([], [])
    assert steps("BatchNorm", spec, *[row] * 4, use_global_stats=True) == ([], [])


def of_calls(op, inputs, attrs, n_calls):
    """[outputs, gradients, whose memory] of the last of such calls, off and on the tape.

    n_calls: three, of which the last one goes straight to the steps; with one, the simpler
             operators are applied one after the other.
    """
    actual = []
    for mode in (autograd.predict_mode, autograd.record):
        arrays = [nd.NDArray(a) for a in inputs]
        for array in arrays if mode is autograd.record else ():
            array.attach_grad()
        for _ in range(n_calls):
            nd.random.seed(7)
            with mode():
                if n_calls == 1:
                    out = nd.NDArray.interpret(op, arrays, op.normalize(dict(attrs)))
                else:
                    out = op(*arrays, **attrs)
        outs = as_list(out)
        assert all(o.data.flags.c_contiguous and type(o) is nd.NDArray for o in outs)
        actual.append([np.shares_memory(o.data, a.data) for o in outs for a in arrays])
        actual.append(share_on_tape(outs))
        actual += numbers_of(outs, arrays if mode is autograd.record else ())
    return actual


def share_on_tape(outs):
    """Whether values of operators on the tape share memory: a write would change several."""
    nodes = topological([(o.node, o.index) for o in outs if o.node is not None])
    values = [v for node in nodes if node.op for v in node.values if v.size]
    return len({v.ctypes.data for v in values}) < len(values)


def as_list(out):
    return list(out) if isinstance(out, tuple) else [out]


def numbers_of(outs, arrays):
    """The bits of outputs, and of the gradients of arrays, if there are any."""
    heads = [o for o in outs if o.node is not None and o.data.dtype.kind == "f"]
    if arrays and heads:
        autograd.backward(heads)
    values = [*outs, *(a.grad for a in arrays)]
    return [(v.shape, v.dtype, v.asnumpy().tobytes()) for v in values]


STEPPED = [
    op
    for op in UNIQUE
    if has_samples(op) and op.eager is None and not (op.aux or op.random or op.variadic)
]


@for_each(STEPPED)
def test_steps_give_the_bits_of_the_simpler_operators(op):
    """Also for other numbers than those of the calls before."""
    rng, n_steps = np.random.default_rng(0), 0
    for case in cases_of(op):
        for _ in range(2):
            inputs = case.arrays("float32", rng)
            assert of_calls(op, inputs, case.attrs, 3) == of_calls(op, inputs, case.attrs, 1)
        specs = [Spec(a.shape, a.dtype) for a in inputs]
        n_steps += len(steps_of(op, specs, op.normalize(dict(case.attrs)))[0])
    assert (n_steps > 0) == (op.name not in NOT_STEPPED)


def made_of(expand):
    """An operator that is made of others, of which the first gives the shape."""
    return Op(
        "_path_made",
        inputs=("data",),
        infer=lambda specs: (specs, specs * 2),
        n_outputs=2,
        expand=expand,
        doc="Made of others.",
    )


def test_a_step_reads_memory_in_one_piece_as_it_does_alone():
    """NumPy adds up turned matrices in another order."""
    made = made_of(lambda specs, data: (data.transpose().sum(axis=0).tile((4, 2)), data * 2))
    for _ in range(20):
        x = nd.random.normal(shape=(4, 8))
        expected, _ = nd.NDArray.interpret(made, [x], {})
        np.testing.assert_array_equal(made(x)[0].asnumpy(), expected.asnumpy())


def test_an_array_that_an_operator_gives_back_is_copied():
    made = made_of(lambda specs, data: (data, data * 2))
    x = nd.ones((2,))
    x.attach_grad()
    for _ in range(3):
        same, twice = made(x)
        same[:] = 5
        assert x.asnumpy().tolist() == [1, 1] and twice.asnumpy().tolist() == [2, 2]


def test_a_step_that_reads_only_the_first_inputs():
    """Of the others only the shape counts, and calls with another one are other calls."""
    x, like = nd.array(A), nd.ones((2, 8))
    x.attach_grad()
    for shape in [(2, 8)] * 3 + [(16,), (8, 2)] * 2:
        like = nd.ones(shape)
        like.attach_grad()
        with autograd.record():
            y = nd.reshape_like(x, like)
        y.backward(nd.array(A.reshape(shape)))
        assert y.shape == shape
        np.testing.assert_array_equal(x.grad.asnumpy(), A)
        assert not like.grad.asnumpy().any()


@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("zeros", [None, [0.0]])
def test_a_product_over_one_place_multiplies_also_what_is_zero(transposed, zeros):
    odd = [0.0, -0.0, np.nan, np.inf, 2.0]
    a, b = np.float32([odd]).T, np.float32([zeros or [3.0, *odd]])
    with np.errstate(invalid="ignore"):
        expected = np.float32([[x * y for y in b[0]] for x in a[:, 0]])
    x, y = (nd.array(v.T if t else v) for v, t in zip((a, b), transposed, strict=True))
    for _ in range(3):  # from the second on, a path
        out = nd.dot(x, y, transpose_a=transposed[0], transpose_b=transposed[1])
        np.testing.assert_array_equal(out.asnumpy(), expected)
        assert out.data.flags.c_contiguous and out.data.base is None


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep memory")
@pytest.mark.parametrize(
    "statement",
    ['for _ in range(10): nd.LeakyReLU(x, act_type="elu")', "[x + 1 for _ in range(40)]"],
)
def test_the_memory_of_large_arrays_is_used_again(statement):
    """Else each would be new pages of the system's, which takes as long as ten products.

    The second statement frees 160 MB at once, as the end of a training step does.
    """
    program = f"""
import resource
from minihybrid import nd
def faults():
    x = nd.ones((1000, 1000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    {statement}
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(), faults()
print(faults())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert int(ran.stdout) < 200, ran  # of 38,000 pages, or of some hundred huge ones


@pytest.mark.parametrize("shape", [(PIECE + 1,), (3, PIECE - 1), (2, PIECE, 1)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_many_numbers_give_what_few_give(shape, dtype):
    """Also NaN, infinity and the sign of 0; also of memory that another array owns."""
    data = np.random.default_rng(0).standard_normal(shape).astype(dtype) * 3
    for i, odd in enumerate((np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 4.4, -4.5)):
        data.flat[i :: PIECE // 3] = odd
    halves = data.reshape(-1)[:100]
    halves[:] = np.trunc(halves) + 0.5
    for call in (
        nd.relu,
        nd.round,
        nd.rint,
        lambda a: nd.maximum(a, 0.5),
        lambda a: nd.minimum(-1.5, a),
        nd.erf,
    ):
        many, flat = nd.array(data, dtype=dtype), data.reshape(-1)
        whole = [call(many).asnumpy() for _ in range(3)][-1]  # from the second on, a path
        parts = [
            call(nd.array(flat[i : i + 4000], dtype=dtype)).asnumpy()
            for i in range(0, flat.size, 4000)
        ]
        assert (whole.shape, whole.dtype) == (shape, dtype)
        near = {"rtol": 4e-7, "atol": 0} if call is nd.erf else {"rtol": 0, "atol": 0}
        np.testing.assert_allclose(whole.reshape(-1), np.concatenate(parts), **near)
        signs = np.signbit(whole.reshape(-1)) == np.signbit(np.concatenate(parts))
        assert (signs | np.isnan(flat)).all()
