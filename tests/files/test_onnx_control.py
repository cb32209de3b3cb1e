"""Branches and loops as ONNX's If, Loop and Scan: written, run by others, and read back."""

import numpy as np
import pytest
from marks import external

import minihybrid as mx
from minihybrid import gluon, nd, sym
from minihybrid.core.files import FileError

onnx = pytest.importorskip("onnx", reason="the library onnx is not installed")
from onnx import TensorProto, helper, reference


class Net(gluon.HybridBlock):
    """A function of F, a layer and two inputs."""

    def __init__(self, function, **kwargs):
        super().__init__(**kwargs)
        self.function = function
        with self.name_scope():
            self.dense = gluon.nn.Dense(3, flatten=False, in_units=3)
        self.initialize(mx.init.Normal(0.5))

    def hybrid_forward(self, F, x, y):
        return self.function(F, self.dense, x, y)


def branch(F, dense, x, y):
    return F.contrib.cond(x.sum() > 0, lambda: [F.log(x) + y, dense(x)], lambda: [x * 2, y])


def loop(F, dense, x, y):
    outs, (last, count) = F.contrib.while_loop(
        lambda a, n: a.sum() < 20,
        lambda a, n: ([a + y, n], (a * 2, n + 1)),
        [x, F.zeros((1,))],
        max_iterations=4,
    )
    return [*outs, last, count]


def nested(F, dense, x, y):
    z = F.tanh(y)

    def other():
        return F.contrib.while_loop(
            lambda i, s: i < 2,
            lambda i, s: (s, (i + 1, F.contrib.cond(i > 0, lambda: s * z, lambda: dense(s)))),
            [F.zeros((1,)), x],
            max_iterations=4,
        )[1][1]

    def then():
        return F.contrib.cond(y.sum() > 0, lambda: dense(x) + z, lambda: z)

    return F.contrib.cond(x.sum() > 0, then, other)


def rows(F, dense, x, y):
    def step(row, states):
        (s,) = states
        return row * s + dense(row), [F.contrib.cond(row.sum() > 0, lambda: s + row, lambda: s)]

    first = y.slice_axis(axis=0, begin=0, end=1).reshape((-1,))
    outs, (last,) = F.contrib.foreach(step, x, [first])
    return outs, last


def elements(F, dense, x, y):
    return F.contrib.foreach(lambda e, s: (e + s, s * 2), x.reshape((-1,)), F.ones((1,)))


def state_first(F, dense, x, y):
    """The graph of an iteration reads its state before its row."""
    s = y.sum(axis=0, keepdims=True)
    return F.contrib.foreach(lambda row, s: (F.broadcast_add(s.mean(), row), s + s), x, s)


FUNCTIONS = {f.__name__: f for f in (branch, loop, nested, rows, elements, state_first)}
# Signs choose branches; of sizes, 10 is no iteration, 0.01 all of them.
SIZES = [(1, 1), (-1, 1), (1, -1), (-1, -1), (10, 1), (0.01, 1)]


def inputs(size, batch):
    rng = np.random.default_rng(batch)
    return [np.abs(rng.normal(size=(batch, 3))).astype("float32") * np.float32(s) for s in size]


def by_reference(path):
    session = reference.ReferenceEvaluator(str(path))
    return lambda feed: session.run(None, feed)


def by_runtime(path):
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path))
    return lambda feed: session.run(None, feed)


def nodes_of(symbol):
    """The operators of a symbol's graph."""
    return {n for n, _ in symbol.get_internals().refs if n.op}


def same(actual, expected):
    expected = expected if isinstance(expected, (list, tuple)) else [expected]
    for a, b in zip(actual, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("run", [by_reference, *external(by_runtime)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_others_run_branches_and_loops_for_every_batch(name, run, tmp_path):
    net = Net(FUNCTIONS[name])
    net.hybridize(backend="numpy")
    net(*map(nd.array, inputs((1, 1), 2)))
    (path,) = net.export(str(tmp_path / "net"), format="onnx")
    names, session = [i.name for i in onnx.load(path).graph.input], run(path)
    for size in SIZES:
        for batch in (2, 1, 5):
            xs = inputs(size, batch)
            same(session(dict(zip(names, xs, strict=False))), net(*map(nd.array, xs)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_branches_and_loops_come_back_as_what_they_were(name, tmp_path):
    net, xs = Net(FUNCTIONS[name]), [sym.var("x"), sym.var("y")]
    symbol, shapes = net(*xs), {"x": (2, 3), "y": (2, 3)}
    symbol = sym.Group(mx.core.arguments.arrays_in((symbol,)))
    params = {n: p.data() for n, p in net.collect_params().items()}
    shapes = [shapes[n] for n in symbol.list_inputs() if n in shapes]
    path = mx.onnx.export_model(symbol, params, shapes, onnx_file_path=str(tmp_path / "net.onnx"))
    again = mx.onnx.import_to_gluon(path)
    kinds = {"_cond", "_while_loop", "_foreach"}
    old, new = (
        sorted(n.op.name for n in nodes_of(s) if n.op.name in kinds)
        for s in (symbol, again._outputs)
    )
    assert old == new != []
    for size in SIZES:
        xs = inputs(size, 2)
        actual = again(*map(nd.array, xs[: len(again._inputs)]))
        actual = actual if isinstance(actual, (list, tuple)) else [actual]
        expected = net(*map(nd.array, xs))
        if name == "loop" and size == (10, 1):  # no iteration: eagerly, there is no stack
            actual = actual[-len(expected) :]
        same([a.asnumpy() for a in actual], expected)


def test_a_loop_of_a_free_length_is_refused_in_one_sentence(tmp_path):
    net = Net(loop)
    net.hybridize(backend="numpy")
    net(*map(nd.array, inputs((1, 1), 2)))
    (path,) = net.export(str(tmp_path / "net"), format="onnx")
    with pytest.raises(FileError, match=r"\(Loop\): the numbers of .*; fix it when exporting"):
        mx.onnx.import_to_gluon(path)


# -- files of others -------------------------------------------------------------------
def info(name, kind="FLOAT", shape=None):
    return helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)


def model(nodes, arrays, path):
    """A file of one input x of three numbers, with an output y."""
    constants = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in arrays.items()]
    graph = helper.make_graph(nodes, "g", [info("x", shape=(3,))], [info("y")], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), str(path))
    return str(path)


def doubling(*stacked):
    """The graph of an iteration of a loop."""
    nodes = [
        helper.make_node("Add", ["v", "v"], ["v2"]),
        helper.make_node("Identity", ["condition"], ["next_condition"]),
        *[helper.make_node("Identity", ["v2"], [name]) for name in stacked],
    ]
    inputs = [info("i", "INT64", ()), info("condition", "BOOL", ()), info("v")]
    outputs = [info("next_condition", "BOOL", ()), info("v2"), *map(info, stacked)]
    return helper.make_graph(nodes, "body", inputs, outputs)


def test_a_loop_that_only_counts_is_read(tmp_path):
    nodes = [helper.make_node("Loop", ["most", "true", "x"], ["y"], body=doubling())]
    path = model(nodes, {"most": np.int64(3), "true": True}, tmp_path / "net.onnx")
    x = np.float32([1, 2, 3])
    expected = reference.ReferenceEvaluator(path).run(None, {"x": x})[0]
    same([expected], mx.onnx.import_to_gluon(path)(nd.array(x)))


def test_branches_of_one_name_are_read_and_a_known_one_is_chosen(tmp_path):
    sides = [
        helper.make_graph([helper.make_node(kind, ["x"], ["z"])], kind, [], [info("z")])
        for kind in ("Neg", "Exp")
    ]
    attrs = {"then_branch": sides[0], "else_branch": sides[1]}
    less = helper.make_node("Less", ["first", "zero"], ["test"])
    first = helper.make_node("ReduceSum", ["x"], ["first"], keepdims=0)
    for test, nodes in (("test", [first, less]), ("true", [])):
        nodes = [*nodes, helper.make_node("If", [test], ["y"], **attrs)]
        path = model(nodes, {"zero": np.float32(0), "true": True}, tmp_path / "net.onnx")
        net = mx.onnx.import_to_gluon(path)
        for x in np.float32([[1, 2, 3], [-1, -2, -3]]):
            expected = reference.ReferenceEvaluator(path).run(None, {"x": x})[0]
            same([expected], net(nd.array(x)))


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (("Loop", ["", "true", "x"], ["y"], {"body": doubling()}), "largest number of iterations"),
        (("Loop", ["long", "true", "x"], ["y"], {"body": doubling()}), "but 1 to 65536 are"),
        (("Loop", ["most", "true", "x"], ["z", "y"], {"body": doubling("w")}), "stacked outputs"),
        (("Loop", ["most", "true"], ["y"], {"body": doubling()}), "3 inputs, but 2 are needed"),
        (("If", ["true"], ["y"], {"then_branch": doubling()}), "then_branch has 3 inputs"),
        (("Scan", ["x"], ["y"], {"body": 3, "num_scan_inputs": 1}), "but graph is needed"),
    ],
)
def test_what_cannot_be_read_is_refused(node, words, tmp_path):
    kind, ins, outs, attrs = node
    nodes = [helper.make_node(kind, ins, outs, **attrs)]
    arrays = {"most": np.int64(3), "long": np.int64(2**40), "true": True}
    with pytest.raises(FileError, match=rf"\({kind}\): .*{words}"):
        mx.onnx.import_to_gluon(model(nodes, arrays, tmp_path / "net.onnx"))
