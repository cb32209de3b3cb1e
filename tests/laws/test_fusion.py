"""What may share a kernel: values that are read where they are computed, and no others."""

import ast
import functools
from pathlib import Path

import kernels_as_python
import numpy as np
import pytest
from minihybrid.sym import trace
from test_standalone import answers, build, needs_cc

import minihybrid
from minihybrid import autograd, nd, simulated_gpu, sym
from minihybrid.core.graph import Graph
from minihybrid.core.op import HybridError, Op, Spec
from minihybrid.core.passes.gradient import joint_graph
from minihybrid.core.placement import copy_to
from minihybrid.core.plan import Plan
from minihybrid.core.tracing import direct
from minihybrid.formats.c import c_file, weights_file
from minihybrid.gluon import loss, nn, rnn
from minihybrid.ops import OPS
from minihybrid.ops.reduce import sum_
from minihybrid.passes import PASSES, expand, fuse, optimize
from minihybrid.passes.fuse import MAX_OPS
from minihybrid.passes.fuse import MAX_REDUCTIONS as REDUCTIONS
from minihybrid.passes.loops import loops_in
from minihybrid.passes.pads_to_concat import side_by_side
from minihybrid.runtime.device import device_of

TARGETS = ("numpy", "plain", "gpu")


def outputs(graph, given, target, **more):
    """A graph's outputs by a target."""
    place = device_of(simulated_gpu()) if target == "gpu" else target
    with kernels_as_python.target():
        plan = Plan(graph, list(given), target=place, **more)
        assert plan.target == target, plan.target_note
        arrays = [copy_to(a, plan.device.context) if plan.device else a for a in given.values()]
        return [np.asarray(out) for out in plan(arrays, plan.bind([]))]


def assert_same(function, *arrays, targets=TARGETS):
    """All targets give the outputs and gradients of the graph as it was traced."""
    given = {f"x{i}": np.asarray(a, "f4") for i, a in enumerate(arrays)}

    def traced(*xs):
        with direct():
            return function(sym, *xs)

    graph, _ = trace(traced, {n: Spec(a.shape, a.dtype) for n, a in given.items()})
    graph = expand(graph)
    joint = joint_graph(graph, list(given))
    seeds = {
        n.name: np.linspace(0.5, 1.5, n.specs[0].size, dtype="f4").reshape(n.specs[0].shape)
        for n in joint.variables
        if n.name not in given
    }
    for target in targets:
        for each, values in (graph, given), (joint, given | seeds):
            got = outputs(each, values, target, expanded=True)
            for a, b in zip(got, each.evaluate(values), strict=True):
                np.testing.assert_allclose(a, b, 1e-3, 1e-4, err_msg=target)


# -- a row is read at its own places only ----------------------------------------------
SQUARE = np.array([[1, 2, 3], [3, 1, 2], [0, 5, -1]])
ELSEWHERE = {
    "flipped and summed": lambda F, x: F.sum(x * F.reverse(F.softmax(x), axis=1), axis=1),
    "turned round": lambda F, x: F.softmax(x) * F.softmax(x.T),
    "turned before": lambda F, x: F.softmax(x + F.LayerNorm(x, F.ones((3,)), F.zeros((3,))).T),
    "sliced": lambda F, x: F.sum(
        F.softmax(x) * F.slice_axis(F.softmax(x), axis=1, begin=0, end=1), axis=1
    ),
    "moved on": lambda F, x: F.sum(
        F.slice_axis(x, axis=1, begin=0, end=2) * F.slice_axis(F.softmax(x), axis=1, begin=1, end=3)
    ),
    "one row's number beside another's elements": lambda F, x: F.softmax(x + F.sum(x, axis=1)),
    "one number of each row, meeting columns": lambda F, x: F.broadcast_mul(
        F.softmax(x), F.max(x, axis=1)
    ).sum(axis=1),
    "a line turned round": lambda F, x: F.softmax(x.reshape((-1,))).T * 2,
    "a line flipped": lambda F, x: F.sum(
        F.softmax(x.reshape((-1,))) * F.reverse(F.softmax(x.reshape((-1,))), axis=0)
    ),
    "columns and rows": lambda F, x: F.softmax(x, axis=0) * F.softmax(x, axis=1),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_row_that_is_read_elsewhere_is_in_memory_before(name):
    assert_same(ELSEWHERE[name], SQUARE)


@pytest.mark.slow
@needs_cc
def test_rows_that_are_read_elsewhere_in_c(tmp_path):
    def run(x):
        with direct():
            return [function(sym, x) for function in ELSEWHERE.values()]

    graph, _ = trace(run, {"x": Spec((3, 3), np.dtype("f4"))})
    plan, graph = Plan(graph, []), expand(graph)
    outs = [Spec(*spec) for spec in plan.out_specs]
    weights = [np.float32(SQUARE), *(n.values[0] for n in plan.table.constants)]
    (tmp_path / "net.weights").write_bytes(weights_file(weights))
    (tmp_path / "net.c").write_text(c_file(plan, [], outs, weights))
    build(tmp_path, "-O1")
    expected = graph.evaluate({"x": weights[0]})
    for got, array in zip(answers(tmp_path, [], expected), expected, strict=True):
        np.testing.assert_allclose(got, array, 1e-4, 1e-5)


# -- a part in one piece is read where it is -------------------------------------------
def rows(F, x, begin, end):
    return F.slice_axis(x, axis=0, begin=begin, end=end)


PIECES = {  # x: (4, 32), w: (32, 32), all of whose rows begin with a cache line
    "an input's": lambda F, x, w: F.dot(rows(F, x, 2, 4), w),
    "a piece of a piece": lambda F, x, w: F.dot(
        rows(F, rows(F, x, 1, 4).reshape((3, 32)), 1, 2), w
    ),
    "a value's": lambda F, x, w: F.dot(rows(F, F.dot(x, w), 1, 3), w),
    "a result's": lambda F, x, w: [y := F.dot(x, w), F.dot(rows(F, y, 3, 4), w)],
    "each row": lambda F, x, w: F.stack(
        *(F.dot(p, w) for p in F.split(F.dot(x, w), num_outputs=4, axis=0)), axis=0
    ),
    "joined before": lambda F, x, w: F.dot(rows(F, F.concat(x, F.dot(x, w), x, dim=0), 5, 7), w),
    "the last joined, whole": lambda F, x, w: F.dot(
        rows(F, F.concat(w, F.dot(x, w), dim=0), 32, 36), w
    ),
    "of two joined": lambda F, x, w: F.dot(rows(F, F.concat(x, F.dot(x, w), dim=0), 2, 7), w),
    "overlapping what is written": lambda F, x, w: [
        F.dot(p := rows(F, F.dot(x, w), 1, 4), w),
        F.dot(F.tanh(p), w),
    ],
    "a part beside the whole": lambda F, x, w: F.dot(
        F.broadcast_add(y := F.dot(x, w), p := rows(F, y, 0, 1)) + F.dot(p, w), w
    ),
}
COPIES = {  # what is no view, and why
    "a result itself": lambda F, x, w: rows(F, F.dot(x, w), 1, 2).reshape((32,)),
    "in the midst of a cache line": lambda F, x, w: F.dot(
        F.slice_axis(x.reshape((-1,)), axis=0, begin=8, end=40).reshape((1, 32)), w
    ),
    "not in one piece": lambda F, x, w: F.dot(
        F.slice_axis(F.dot(x, w), axis=1, begin=16, end=32), rows(F, w, 0, 16)
    ),
    "a small part of what is large, and of no use else": lambda F, x, w: F.dot(
        rows(F, F.dot(w, w), 3, 4), w
    ),
    "backwards": lambda F, x, w: F.dot(F.reverse(F.dot(x, w), axis=0), w),
}
PIECE_OF = [
    np.cos(np.arange(4 * 32)).reshape(4, 32),
    np.sin(np.arange(32 * 32)).reshape(32, 32) / 8,
]


def steps_of(function):
    """The labels of a compiled plan's steps."""

    def run(x, w):
        with direct():
            return function(sym, x, w)

    graph, _ = trace(
        run, {n: Spec(a.shape, np.dtype("f4")) for n, a in zip("xw", PIECE_OF, strict=True)}
    )
    return Plan(graph, ["x", "w"], target="cpu").labels


@pytest.mark.parametrize("name", PIECES)
def test_a_part_in_one_piece_is_no_copy(name):
    assert_same(PIECES[name], *PIECE_OF)
    assert not {"slice", "copy"}.intersection(steps_of(PIECES[name]))


@pytest.mark.parametrize("name", COPIES)
def test_other_parts_are_copied(name):
    assert_same(COPIES[name], *PIECE_OF)
    assert {"slice", "copy", "reverse"}.intersection(steps_of(COPIES[name]))


@pytest.mark.parametrize("name", ["joined before", "the last joined, whole"])
def test_what_is_read_before_it_is_joined_is_not_joined(name):
    assert "concat" not in steps_of(PIECES[name])
    assert "concat" in steps_of(PIECES["of two joined"])


@pytest.mark.slow
@needs_cc
def test_parts_in_one_piece_in_c(tmp_path):
    def run(x, w):
        with direct():
            actual = [f(sym, x, w) for f in PIECES.values()]
            return [y for f in actual for y in (f if isinstance(f, list) else [f])]

    given = {n: np.asarray(a, "f4") for n, a in zip("xw", PIECE_OF, strict=True)}
    graph, _ = trace(run, {n: Spec(a.shape, a.dtype) for n, a in given.items()})
    plan, graph = Plan(graph, ["x"]), expand(graph)
    outs = [Spec(*spec) for spec in plan.out_specs]
    weights = [given["w"], *(n.values[0] for n in plan.table.constants)]
    (tmp_path / "net.weights").write_bytes(weights_file(weights))
    (tmp_path / "net.c").write_text(c_file(plan, [Spec((4, 32), np.dtype("f4"))], outs, weights))
    build(tmp_path, "-O1")
    expected = graph.evaluate(given)
    for got, array in zip(answers(tmp_path, [given["x"]], expected), expected, strict=True):
        np.testing.assert_allclose(got, array, 1e-4, 1e-5)


def test_divergence_of_transposed_predictions():
    def run(F, p, q):
        return loss.KLDivLoss(from_logits=False)(p.T, F.softmax(q))

    with kernels_as_python.target():
        net = loss.KLDivLoss(from_logits=False)
        p, q = nd.array(SQUARE), nd.softmax(nd.array(SQUARE + 1))
        expected = net(p.T, q).asnumpy()
        net.hybridize(backend="plain")
        np.testing.assert_allclose(net(p.T, q).asnumpy(), expected, 1e-5)
    assert_same(run, SQUARE, SQUARE + 1)


def test_two_places_of_one_array_are_read_as_two():
    """Numbers of rows, in two shapes, each with its own part of one array."""

    def run(F, x, y):
        kept = F.mean(x, axis=2) + y
        wide = F.max(x, axis=2, keepdims=True) + y
        return F.broadcast_add(F.broadcast_add(x, wide), kept.reshape((3, 3, 1)))

    x = np.random.default_rng(0).standard_normal((3, 3, 4))
    assert_same(run, x, np.arange(3).reshape(3, 1))


# -- axes of length 1 ------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(1, 4, 7), (4, 1, 7), (1, 1, 5), (3, 1, 1)])
@pytest.mark.parametrize("axes", [(0, 2), (0, 1), (1, 2), (0,), (2,)], ids=str)
def test_an_axis_of_length_1_is_gone_or_not(shape, axes):
    x = np.random.default_rng(0).standard_normal(shape)
    for axis in (1, 2):
        assert_same(lambda F, x, axis=axis: F.mean(F.softmax(x, axis=axis), axis=axes) * 2, x)


@pytest.mark.parametrize("target", TARGETS)
def test_statistics_of_a_batch_of_one(target):
    """One normalization goes along the batch, the other does not."""
    context = simulated_gpu() if target == "gpu" else minihybrid.cpu()
    x = nd.array(np.arange(24).reshape(1, 3, 4, 2) ** 1.5, ctx=context)

    def trained(**how):
        net = nn.HybridSequential()
        net.add(nn.InstanceNorm(in_channels=3), nn.BatchNorm(in_channels=3))
        net.initialize(ctx=context)
        if how:
            net.hybridize(**how)
        for _ in range(2):
            with autograd.record():
                y = net(x)
            y.backward()
        return [y.asnumpy(), *(p.data().asnumpy() for p in net.collect_params().values())]

    with kernels_as_python.target():
        got = trained(active=True, backend=None if target == "gpu" else target)
        for a, b in zip(got, trained(), strict=True):
            np.testing.assert_allclose(a, b, 1e-4, 1e-5)


# -- operators with loops of their own -------------------------------------------------
def flipped_loops(k, data, out):
    n = data.size
    with k.each(("i", n)):
        k(f"{out}[{n - 1} - i] = {data}[i]")


def stored_loops(k, data, out):
    n = data.size
    with k.each(("i", n)):
        k.store("i", f"{data}[{n - 1} - i]")


def flipped(cpu, **more):
    """An operator as CONTRIBUTING teaches it: the numbers of a vector backwards."""
    return Op(
        "_flipped",
        inputs=("data",),
        infer=lambda specs: (specs, specs),
        doc="",
        eager=lambda data: data[::-1],
        grad=lambda g, out, data: (None,),
        cpu=cpu,
        **more,
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "op, together",
    [
        (flipped(flipped_loops), False),
        (flipped(stored_loops), False),
        (flipped(stored_loops, stores=True), True),
    ],
    ids=["writes", "stores", "says so"],
)
def test_what_follows_loops_is_computed(op, together, target):
    x = np.float32([1, 3, 5])
    graph, _ = trace(lambda x: sym.relu(op(x) - 1) + op(x * 2), {"x": Spec(x.shape, x.dtype)})
    (got,) = outputs(graph, {"x": x}, target)
    np.testing.assert_array_equal(got, [14, 8, 2])
    actual = [
        repr(n.attrs["graph"])
        for n in optimize(graph, (*PASSES, fuse))[-1][1].nodes
        if n.op and "graph" in n.attrs
    ]
    assert any("_flipped" in group for group in actual) == together


def test_what_follows_loops_reads_a_vector_along_any_axis():
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis, n in enumerate(x.shape):
        vector = np.arange(1.0, 1 + n).reshape([-1, *[1] * (2 - axis)])
        assert_same(lambda F, x, v: F.broadcast_mul(OPS["_running_sum"](x, axis=1), v), x, vector)


@pytest.mark.parametrize("target", ["plain", "gpu"])
def test_loops_that_say_they_store_and_do_not_are_refused(target):
    op = flipped(flipped_loops, stores=True)
    graph, _ = trace(lambda x: sym.relu(op(x)), {"x": Spec((3,), np.dtype("f4"))})
    with pytest.raises(HybridError, match="_flipped: .* did not call k.store"):
        outputs(graph, {"x": np.ones(3, "f4")}, target)


# -- how much is one kernel ------------------------------------------------------------
@pytest.mark.parametrize(
    "step", [lambda x: sym.softmax(x), lambda x: sym.tanh(x) * 2], ids=["softmax", "tanh"]
)
def test_kernels_do_not_grow_without_end(step):
    graph, _ = trace(
        lambda x: functools.reduce(lambda y, _: step(y), range(200), x),
        {"x": Spec((4, 7), np.dtype("f4"))},
    )
    groups = [
        [n.op for n in node.attrs["graph"].nodes if n.op]
        for node in optimize(graph, (*PASSES, fuse))[-1][1].nodes
        if "graph" in node.attrs
    ]
    sums = max(sum(op.reduce is not None for op in ops) for ops in groups)
    assert 4 < len(groups) < 100 and MAX_OPS // 4 < max(map(len, groups)) <= MAX_OPS
    assert sums in (0, REDUCTIONS)
    with kernels_as_python.target():
        assert len(set(Plan(graph, ["x"], target="plain").kernels)) <= 6


# -- passes know what a record says, and no operator -----------------------------------
def operators_named(text, scope):
    """The operators that a pass's text names: in strings, or as what it imports."""
    tree = ast.parse(text)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
        and isinstance(node.body[0], ast.Expr)
    }
    strings = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    }
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return strings & OPS.keys() | {
        name for name in names if isinstance(scope.get(name), Op) and scope[name].name in OPS
    }


FOLDER = Path(minihybrid.__file__).parent / "passes"
WITH_BODIES = ("foreach", "scan", "control", "branches")  # operators, whose bodies are graphs
PASS_FILES = [file for file in sorted(FOLDER.glob("*.py")) if file.stem not in WITH_BODIES]


@pytest.mark.parametrize("file", PASS_FILES, ids=lambda f: f.stem)
def test_passes_name_no_operator(file):
    module = __import__(f"minihybrid.passes.{file.stem}", fromlist=["_"])
    assert not operators_named(file.read_text(encoding="utf8"), vars(module))


def test_a_planted_name_is_found():
    scope = {"sum_": sum_, "OPS": OPS}  # a record may give the name of another
    assert operators_named('"""sum."""\nif node.op.name in {"relu", "x"}: 1', scope) == {"relu"}
    assert operators_named("node.op is sum_ or OPS['exp']", scope) == {"sum_", "exp"}
    assert not operators_named("OPS[node.op.binary_form[0]]", scope)


# -- parts side by side ----------------------------------------------------------------
def summed_parts(ends, axis, shape):
    """The graph of a sum of parts of one axis, put into zeros, and its variables' arrays."""
    like, total, arrays = sym.var("like", spec=Spec(shape, np.dtype("f4"))), None, {}
    rng = np.random.default_rng(len(ends))
    for k, (begin, end) in enumerate(ends):
        part = (*shape[:axis], end - begin, *shape[axis + 1 :])
        arrays[f"x{k}"] = rng.normal(0, 1, part).astype("float32")
        x = sym.var(f"x{k}", spec=Spec(part, np.dtype("f4")))
        none = (None,) * axis
        one = OPS["_put_slice"](x, like, begin=(*none, begin), end=(*none, end), step=())
        total = one if total is None else one + total if k % 2 else total + one
    arrays["like"] = np.zeros(shape, "float32")
    return expand(Graph.of(total)), arrays


@pytest.mark.parametrize(
    "ends, axis, joined",
    [
        ([(0, 2), (2, 3), (3, 7)], 0, True),
        ([(0, 2), (2, 3), (3, 7)], 1, True),
        ([(3, 7), (0, 2), (2, 3)], 1, True),  # in any order
        ([(0, 2), (3, 7)], 0, False),  # a gap
        ([(0, 4), (3, 7)], 0, False),  # one above the other
        ([(0, 2), (2, 6)], 1, False),  # an end that is open
    ],
)
def test_parts_side_by_side_are_joined(ends, axis, joined):
    shape = (7, 3) if axis == 0 else (3, 7)
    graph, arrays = summed_parts(ends, axis, shape)
    actual = side_by_side(graph)
    names = [n.op.name for n in actual.nodes if n.op]
    assert (names == ["Concat"]) == joined and ("_put_slice" in names) != joined
    np.testing.assert_array_equal(actual.evaluate(arrays)[0], graph.evaluate(arrays)[0])


def test_a_part_that_is_read_elsewhere_and_too_many_parts_stay():
    many, _ = summed_parts([(i, i + 1) for i in range(40)], 0, (40, 2))
    assert "Concat" not in [n.op.name for n in side_by_side(many).nodes if n.op]
    graph, arrays = summed_parts([(0, 2), (2, 3)], 0, (3, 2))
    (put, *_) = [n for n in graph.nodes if n.op and n.op.padded_slice]
    both = graph.rebuilt(graph.nodes, [*graph.heads, (put, 0)])
    assert "Concat" not in [n.op.name for n in side_by_side(both).nodes if n.op]


def test_the_gradient_of_gates_has_no_zeros():
    net = rnn.LSTM(4)
    net.initialize()
    net.hybridize(backend="cpu", wait=True)
    x = nd.ones((3, 2, 5))
    with autograd.record():
        loss = net(x).sum()
    loss.backward()
    (plan,) = [p for p in net._hybrid.plans.values() if p.title.endswith("backward")]
    (loop,) = loops_in(plan.graph)
    names = [n.op.name for n in loop.op.body.nodes if n.op]
    assert names.count("Concat") == 1 and "_put_slice" not in names
