"""A loop in a graph: one body, written down once, with the values of the loop in Python."""

import json
import subprocess

import envs
import kernels_as_python
import numpy as np
import pytest

import minihybrid as mx
from minihybrid import HybridError, ShapeError, autograd, gluon, nd, sym
from minihybrid.core.op import Spec
from minihybrid.core.passes import expand
from minihybrid.core.passes.gradient import joint_graph
from minihybrid.core.plan import Plan
from minihybrid.core.sym import trace
from minihybrid.gluon import nn
from minihybrid.passes import loops
from minihybrid.passes.fuse import fuse
from minihybrid.passes.loops import loops_in, trimmed
from minihybrid.passes.lower import lower
from minihybrid.passes.scan import without_loops


class Net(gluon.HybridBlock):
    """A function of F and arrays as a block."""

    def __init__(self, program):
        super().__init__()
        self.program = program

    def hybrid_forward(self, F, *args):
        return self.program(F, *args)


def running(F, x, h, w):
    def turn(row, s):
        s = F.tanh(F.dot(row, w) + s * 0.5)
        return s, s

    return F.contrib.foreach(turn, x, h)


def two_states(F, x, h, w):
    def turn(row, states):
        a, b = states
        y = F.dot(row, w) * a
        return [y + b, row * 2], [F.sigmoid(y), b + 1]

    (y, z), (a, b) = F.contrib.foreach(turn, x, [h, F.zeros_like(h)])
    return y, z, a, b


def last_only(F, x, h, w):
    _, s = F.contrib.foreach(lambda row, s: (F.dot(row, w), s + F.dot(row, w) ** 2), x, h)
    return s


def outputs_only(F, x, h, w):
    y, _ = F.contrib.foreach(lambda row, s: (F.exp(F.dot(row, w) - h), s), x, [])
    return y


def unread(F, x, h, w):
    """A row, a state and an old state that no turn reads."""

    def turn(rows, states):
        return rows[0] * 2, [states[1] + 1, F.broadcast_add(rows[0].sum(), F.zeros_like(h))]

    y, (a, b) = F.contrib.foreach(turn, [x, x + 1], [h, h * 2])
    return y, a, b


def handed_on(F, x, h, w):
    """Outputs that are states, rows, and what stands before the loop, as they are."""
    before = F.tanh(w)

    def turn(row, states):
        return [states[0], row, before], [states[1], states[0]]

    (a, b, c), (d, e) = F.contrib.foreach(turn, x, [h, h + 1])
    return a, b, c, d, e


def loop_in_loop(F, x, h, w):
    def inner(row, s):
        return row * s, s + row.sum()

    def turn(row, s):
        y, t = F.contrib.foreach(inner, F.expand_dims(row, axis=1), s.sum())
        return y, F.broadcast_add(s, t) / 10

    return F.contrib.foreach(turn, x, h)


def one_after_another(F, x, h, w):
    y, s = running(F, x, h, w)
    z, t = F.contrib.foreach(lambda row, s: (row * s, s - row), y, s)
    return z.sum(axis=1), t


def backwards_rows(F, x, h, w):
    y, s = running(F, F.reverse(x, axis=0), h, w)
    return F.reverse(y, axis=0)[0], s


def single_numbers(F, x, h, w):
    y, s = F.contrib.foreach(lambda v, s: (v + s, v * s), x.sum(axis=(1, 2)), h.sum())
    return y, s


def while_sum(F, x, h, w):
    outs, (s, n) = F.contrib.while_loop(
        lambda s, n: n < 3, lambda s, n: (s * w.sum(), [s + h, n + 1]), [h, F.zeros((1,))], 5
    )
    return outs, s, n


def added_up(F, x, h, w):
    """A weight whose gradient is no sum over rows, but one of turns."""

    def turn(row, s):
        y = F.exp(row) * F.slice_axis(w, axis=0, begin=0, end=1).sum() * s.sum()
        return y, s * F.slice_axis(w, axis=0, begin=1, end=2)[0].mean()

    return F.contrib.foreach(turn, x, h)


def none_at_once(F, x, h, w):
    """Rows, states and others in whole numbers, too."""
    n = F.cast(F.round(h), dtype="int32")

    def turn(row, states):
        s, k = states
        return F.dot(row, w) * F.cast(k, dtype="float32"), [s * 2 - k, k + 1]

    y, (s, k) = F.contrib.foreach(turn, x, [n, F.ones_like(n)])
    return y, s, k


PROGRAMS = [
    running,
    two_states,
    last_only,
    outputs_only,
    unread,
    handed_on,
    loop_in_loop,
    one_after_another,
    backwards_rows,
    single_numbers,
    while_sum,
    none_at_once,
    added_up,
]


def inputs(length=4, rows=3, units=5):
    rng = np.random.default_rng(7)
    shapes = (length, rows, 2), (rows, units), (2, units)
    return [nd.array(rng.normal(0, 1, s)) for s in shapes]


def values(net, given):
    """The outputs, and the gradients of a weighted sum of those that are floats."""
    for x in given:
        x.attach_grad()
    with autograd.record():
        outs = net(*given)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        floats = [o for o in outs if o.dtype == np.float32]
        loss = sum((o * (i + 1)).sum() for i, o in enumerate(floats))
    loss.backward()
    return [a.asnumpy() for a in (*outs, *(x.grad for x in given))]


def graph_of(program, given):
    """The expanded graph of a program."""
    return expand(traced(program, given))


def traced(program, given):
    """The graph of a program as it is traced."""
    specs = {n: Spec(a.shape, np.dtype(a.dtype)) for n, a in zip("xhw", given, strict=True)}
    return trace(lambda *a: program(sym, *a), specs)[0]


@pytest.fixture(params=[False, True], ids=["stacked", "final only"])
def large(request, monkeypatch):
    """States whose stacks nobody reads, as if these were large."""
    if request.param:
        monkeypatch.setattr(loops, "LARGE", 0)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_loop_gives_what_python_gives(program, length, large):
    given = inputs(length)
    expected = values(Net(program), given)
    assert len(loops_in(graph_of(program, given))) in (1, 2)
    with kernels_as_python.target():
        for target in ("numpy", "plain"):
            net = Net(program)
            net.hybridize(backend=target)
            alone = net(*given)
            alone = alone if isinstance(alone, (list, tuple)) else [alone]
            for a, b in zip(expected, [o.asnumpy() for o in alone], strict=False):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
            for a, b in zip(expected, values(net, given), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_compiled_loop_gives_what_python_gives(program, large):
    given = inputs(5)
    net = Net(program)
    expected = values(net, given)
    net.hybridize(wait=True)
    for a, b in zip(expected, values(net, given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_an_unrolled_loop_gives_the_same(program, length, order, large):
    """Values, their gradients, or the gradients of these, whose loops run in both directions."""
    given, rng = inputs(length), np.random.default_rng(0)
    graph = graph_of(program, given)
    for _ in range(order):
        graph = joint_graph(graph, [v.name for v in graph.variables])
    arrays = {v.name: rng.normal(0, 1, v.specs[0].shape).astype("f") for v in graph.variables}
    expected = graph.evaluate(arrays)
    for other in (without_loops(graph), trimmed(graph), lower(graph), fuse(graph)):
        other.check()
        for a, b in zip(expected, other.evaluate(arrays), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * (1 + np.abs(a).max()))
    assert {node.op.name for node in loops_in(without_loops(graph))} <= {"_if"}  # branches stay


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_file_keeps_the_loop(program):
    given = inputs(4)
    symbol = mx.sym.Symbol(traced(program, given).heads)
    text = symbol.tojson()
    read = sym.fromjson(text)
    loop = "_while_loop" if program is while_sum else "_foreach"
    assert f'"op": "{loop}"' in text and read.tojson() == text
    args = {n: a for n, a in zip("xhw", given, strict=True) if n in symbol.list_arguments()}
    shapes = {n: a.shape for n, a in args.items()}
    assert read.infer_shape(**shapes) == symbol.infer_shape(**shapes)
    for a, b in zip(
        symbol.bind(mx.cpu(), args).forward(), read.bind(mx.cpu(), args).forward(), strict=True
    ):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


MXNET = """
import sys
import mxnet as mx, numpy as np
for name in sys.argv[1:]:
    given = np.load(name + ".npz")
    args = {key: mx.nd.array(given[key]) for key in given}
    grads = {key: mx.nd.zeros(a.shape) for key, a in args.items()}
    executor = mx.sym.load(name + ".json").bind(mx.cpu(), args, args_grad=grads)
    outs = executor.forward(is_train=True)
    executor.backward([mx.nd.ones(o.shape, dtype=o.dtype) for o in outs])
    np.savez(name + "-there.npz", *[a.asnumpy() for a in [*outs, *grads.values()]])
"""


@pytest.mark.external
def test_mxnet_reads_our_loops_and_agrees(tmp_path):
    """But for `while_loop`, whose condition of one number MXNet's `where` does not take."""
    programs, expected = [p for p in PROGRAMS if p is not while_sum], {}
    for program in programs:
        given = inputs(4)
        symbol = mx.sym.Symbol(traced(program, given).heads)
        symbol.save(str(tmp_path / f"{program.__name__}.json"))
        names = [n for n in "xhw" if n in symbol.list_arguments()]
        args = {n: a for n, a in zip("xhw", given, strict=True) if n in names}
        np.savez(tmp_path / program.__name__, **{n: a.asnumpy() for n, a in args.items()})
        grads = {n: nd.zeros(a.shape) for n, a in args.items()}
        executor = symbol.bind(mx.cpu(), args, args_grad=grads)
        outs = executor.forward(is_train=True)
        executor.backward([nd.ones(o.shape, dtype=o.dtype) for o in outs])
        expected[program.__name__] = [a.asnumpy() for a in (*outs, *grads.values())]
    names = [str(tmp_path / name) for name in expected]
    subprocess.run([envs.python_of("mxnet"), "-c", MXNET, *names], check=True, timeout=600)
    for name, arrays in expected.items():
        actual = np.load(tmp_path / f"{name}-there.npz")
        for a, b in zip(arrays, actual.values(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=5e-5)


# -- how much there is -----------------------------------------------------------------
def test_a_graph_of_a_loop_does_not_grow_with_its_length():
    counts = set()
    for length in (2, 200):
        net = Net(running)
        net.hybridize(backend="numpy")
        values(net, inputs(length))
        counts.add(tuple(p.graph.n_ops for p in net._hybrid.plans.values()))
    assert len(counts) == 1


@pytest.mark.slow
def test_a_turn_is_compiled_once_and_called_often():
    given = inputs(50)
    graph = graph_of(running, given)
    plan = Plan(graph, list("xhw"), target="cpu", expanded=True)
    # The state is copied into its stack, and out of it; the outputs are cut out of it.
    assert plan.labels == ["copy", "matmul_mul_scalar_elemwise_add_tanh", "copy", "slice"]
    assert plan.n_kernels == 1 + 50 + 1 + 1
    assert "    for turn in range(50):\n" in plan.source
    assert plan.memory.nbytes < 51 * 3 * 5 * 4 + 64 * 4
    times = plan.time_steps([a.data for a in given], plan.bind([]), repeats=3)
    assert [name for name, _ in times] == ["call", *plan.labels]


def test_what_nobody_reads_is_not_computed():
    """The gradient of the weight alone needs neither the rows' gradient nor its product."""
    given = inputs(3)
    given[2].attach_grad()
    net = Net(running)
    net.hybridize(backend="numpy")
    with autograd.record():
        y, s = net(*given)
        loss = y.sum() + s.sum()
    loss.backward()
    (backward,) = [p for p in net._hybrid.plans.values() if p.title.endswith("backward")]
    (loop,) = loops_in(trimmed(backward.graph))
    assert loop.op.n_outs == 1 and loop.op.n_states == 1  # what dL/dw is made of, and dL/ds
    names = [n.op.name for n in loop.op.body.nodes if n.op]
    assert "_matmul" not in names  # its value was kept; that of the weight is after the loop


@pytest.mark.parametrize("program, final_only", [(running, 0), (added_up, 1)])
def test_what_is_added_up_turn_by_turn_is_kept_once(program, final_only):
    """The weight's gradient so far; not as often as there are turns."""
    net, given = Net(program), inputs(50)
    net.hybridize(backend="numpy")
    values(net, given)
    (backward,) = [p for p in net._hybrid.plans.values() if p.title.endswith("backward")]
    (loop,) = loops_in(backward.graph)
    assert len(loop.op.final_only) == final_only
    assert loop.specs[-1].shape == (51, *given[1].shape)  # the state's gradients


def test_a_loop_of_any_length_has_a_shape():
    x, h = sym.var("x"), sym.var("h")
    y, s = sym.contrib.foreach(lambda row, s: (row + s, row * s), x, h)
    assert y.infer_shape_partial(h=(2,)) == ([(0, 2), (2,)], [(0, 2)], [])
    assert y.infer_shape(x=(7, 2)) == ([(7, 2), (2,)], [(7, 2)], [])
    assert s.infer_shape(x=(7, 2))[1] == [(2,)]


def test_a_weight_that_the_body_makes_is_one_weight():
    x = sym.var("x", shape=(3, 4, 5))
    y, _ = sym.contrib.foreach(
        lambda row, s: (sym.FullyConnected(row, num_hidden=2, name="fc"), s), x, []
    )
    assert y.list_arguments() == ["x", "fc_weight", "fc_bias"]
    assert y.infer_shape(x=(3, 4, 5))[:2] == ([(3, 4, 5), (2, 5), (2,)], [(3, 4, 2)])


# -- what is written down turn by turn -------------------------------------------------
class Normed(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm()

    def hybrid_forward(self, F, x, h):
        return F.contrib.foreach(lambda row, s: (self.norm(row), s + self.norm(row)), x, h)


@pytest.mark.slow
def test_a_body_that_moves_states_is_written_down():
    net, x, h = Normed(), nd.random.normal(shape=(3, 4, 2)), nd.zeros((4, 2))
    net.initialize()
    net(x, h)
    expected = values(net, [x, h])
    means = net.norm.running_mean.data().asnumpy()
    net.initialize(force_reinit=True)
    net.hybridize(wait=True)
    for a, b in zip(expected, values(net, [x, h]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(net.norm.running_mean.data().asnumpy(), means, rtol=1e-5)


def growing(F, x, h, w):
    outs, s = F.contrib.foreach(lambda row, s: (row.sum(), F.broadcast_add(s, row)), x, x[0, :1])
    return outs, s


def test_a_state_that_changes_its_shape_is_written_down():
    given = inputs(3)
    net = Net(growing)
    expected = net(*given)
    net.hybridize(backend="numpy")
    for a, b in zip(expected, net(*given), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5)
    assert loops_in(graph_of(growing, given)) == []


@pytest.mark.slow
@pytest.mark.parametrize("training", [False, True])
def test_random_numbers_are_new_in_each_turn(training):
    """The same ones as the loop in Python draws."""

    def program(F, x, h, w):
        return F.contrib.foreach(lambda row, s: (F.Dropout(row, p=0.5), s + row.sum()), x, h)[0]

    given = inputs(4)
    actual = []
    for backend in (None, "numpy", "cpu"):
        net = Net(program)
        if backend:
            net.hybridize(backend=backend, wait=True)
        mx.random.seed(3)
        with autograd.record(training):
            actual.append(net(*given).asnumpy())
    for other in actual[1:]:
        np.testing.assert_array_equal(actual[0], other)
    kept = actual[0] != 0
    assert kept.all() != training and (not training or not (kept[0] == kept[1]).all())


# -- gradients of gradients ------------------------------------------------------------
@pytest.mark.slow
def test_the_gradient_of_a_loops_gradient():
    def second(net):
        x, h, w = inputs(3)
        for a in (x, h, w):
            a.attach_grad()
        with autograd.record():
            y = net(x, h, w)[0]
            (g,) = autograd.grad((y * y).sum(), [w], create_graph=True)
            loss = (g * g).sum()
        loss.backward()
        return [a.grad.asnumpy() for a in (x, h, w)]

    net = Net(two_states)
    expected = second(net)
    net.hybridize(wait=True)
    for a, b in zip(expected, second(net), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


# -- wrong use ---------------------------------------------------------------------------
def test_rows_of_two_lengths_are_refused():
    x, y = sym.var("x", shape=(3, 2)), sym.var("y", shape=(4, 2))
    out, _ = sym.contrib.foreach(lambda rows, s: (rows[0] + rows[1], s), [x, y], [])
    with pytest.raises(ShapeError, match="one common length, found 3, 4"):
        out.infer_shape()


def test_a_state_of_another_shape_is_named():
    out, _ = sym.contrib.foreach(lambda row, s: (row, row), sym.var("x"), sym.var("h"))
    with pytest.raises(ShapeError, match="foreach: state 0 has shape"):
        out.infer_shape(x=(3, 2), h=(5,))


def test_what_a_turn_made_cannot_be_read_outside():
    kept = []

    def program(F, x, h, w):
        def turn(row, s):
            kept.append(row * 2)
            return row, s

        F.contrib.foreach(turn, x, h)
        return kept[-1] + 1

    net = Net(program)
    net.hybridize()
    with pytest.raises(HybridError, match="outside of the function"):
        net(*inputs())


FILE = json.loads(
    sym.contrib.foreach(lambda row, s: (row + s, row * s), sym.var("x"), sym.var("h"))[0].tojson()
)


@pytest.mark.parametrize(
    "change",
    [
        {"subgraphs": None},
        {"subgraphs": []},
        {"subgraphs": [{}]},
        {"subgraphs": [{"nodes": []}]},
        {"subgraphs": 3},
        {"attrs": None},
        {"attrs": {}},
        *(
            {"attrs": {**FILE["nodes"][2]["attrs"], **wrong}}
            for wrong in (
                {"in_data_locs": "[]"},
                {"in_data_locs": "[7]"},
                {"in_data_locs": "[0, 0]"},
                {"in_data_locs": "import os"},
                {"in_state_locs": "[0]"},
                {"in_state_locs": "(" * 9999},
                {"remain_locs": "[1]"},
                {"num_out_data": "2"},
                {"num_out_data": "-1"},
                {"num_out_data": "1.5"},
                {"num_outputs": "3"},
                {"num_outputs": "9" * 999},
            )
        ),
    ],
    ids=lambda c: json.dumps(c)[:60],
)
def test_a_damaged_loop_in_a_file_is_a_sentence(change):
    data = json.loads(json.dumps(FILE))
    data["nodes"][2] |= change
    with pytest.raises(mx.core.files.FileError, match="_foreach|foreach0"):
        sym.fromjson(json.dumps(data))


def test_a_loop_with_another_number_of_inputs_is_refused():
    data = json.loads(json.dumps(FILE))
    data["nodes"][2]["inputs"].pop()
    with pytest.raises(HybridError):
        sym.fromjson(json.dumps(data)).infer_shape(x=(3, 2), h=(2,))
