"""Laws of passes, memory plans and targets, on random programs and large ones."""

import functools
import time

import numpy as np
import pytest
from minihybrid.sym import trace
from programs.draw import draw
from programs.run import arrays_of, run

from minihybrid import autograd, gluon, nd, sym
from minihybrid.core.graph import Graph, GraphError
from minihybrid.core.op import Node, Spec
from minihybrid.core.passes.gradient import differentiate, joint_graph
from minihybrid.core.plan import Plan
from minihybrid.ops import OPS, neural
from minihybrid.passes import PASSES, cse, dce, expand, fold, fuse, optimize, plan_memory
from minihybrid.passes.lift_constants import lift

F32 = np.dtype("float32")
every_pass = pytest.mark.parametrize("run", (fold, cse, dce, fuse), ids=lambda run: run.__name__)


# -- random programs -------------------------------------------------------------------
@functools.cache
def programs():
    """(graph, values of its variables) of some random programs."""
    return [built(draw(seed)) for seed in range(60)]


def built(program):
    """(graph, values of its variables) of one program."""
    values = {f"x{k}": a for k, a in enumerate(arrays_of(program))}
    specs = {name: Spec(a.shape, a.dtype) for name, a in values.items()}
    graph, _ = trace(lambda *xs: run(sym, program, xs), specs, training=True)
    return expand(graph, True), values


@pytest.fixture(scope="module", autouse=True)
def steps_of_softmax():
    """Eager softmax of few columns skips a step, and so rounds differently."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neural, "SMALL_SQUARES", 0)
        yield


def assert_same(before, after, values):
    """Compare every bit."""
    with np.errstate(all="ignore"):
        pairs = zip(after.evaluate(values, 7), before.evaluate(values, 7), strict=True)
    for got, expected in pairs:
        assert got.shape == expected.shape and got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


# -- passes ----------------------------------------------------------------------------
@every_pass
def test_pass_keeps_the_meaning(run):
    for graph, values in programs():
        graph = dce(graph) if run is fuse else graph
        assert_same(graph, run(graph).check(run.__name__), values)


@every_pass
def test_pass_is_idempotent(run):
    for graph, _ in programs():
        once = run(dce(graph) if run is fuse else graph)
        assert run(once).check("again").show() == once.show()


def test_all_passes_in_order_keep_the_meaning_and_their_input():
    for graph, values in programs():
        shown = graph.show()
        stages = optimize(graph, (*PASSES, fuse))
        assert [name for name, _ in stages] == ["fold", "cse", "dce", "fuse"]
        assert_same(graph, stages[-1][1], values)
        assert graph.show() == shown


def test_forward_and_backward_graphs_are_the_joint_graph():
    tried = 0
    for graph, values in programs():
        specs = [n.specs[i] for n, i in graph.outputs]
        if any(v.dtype.kind != "f" for v in (*specs, *values.values())):
            continue
        joint = joint_graph(graph, list(values))
        rng = np.random.default_rng(1)
        seeds = {f"head_grad{i}": rng.random(s.shape).astype(s.dtype) for i, s in enumerate(specs)}
        with np.errstate(all="ignore"):
            expected = joint.evaluate(values | seeds, 7)
            forward, backward = differentiate(graph, list(values))
            outs = forward.evaluate(values, 7)
            n = len(graph.outputs)
            kept = {f"kept{i}": v for i, v in enumerate(outs)}
            grads = backward.evaluate(values | seeds | kept, 7)
        expected = [*expected[:n], *expected[len(graph.heads) :]]
        for a, b in zip([*outs[:n], *grads], expected, strict=True):
            np.testing.assert_array_equal(a, b)
        tried += 1
    assert tried > len(programs()) / 3


def kernels(function, **shapes):
    """The operators left of a function after all passes, as lists of their names."""
    specs = {n: Spec(shape, F32) for n, shape in shapes.items()}
    graph = optimize(expand(trace(function, specs)[0]), (*PASSES, fuse))[-1][1]
    return [
        [m.op.name for m in n.attrs["graph"].nodes if m.op] if "graph" in n.attrs else [n.op.name]
        for n in graph.nodes
        if n.op and not n.op.view
    ]


def test_four_elementwise_operators_are_one_kernel():
    (names,) = kernels(lambda x: sym.relu(sym.tanh(x * 2) + 1), x=(2, 3))
    assert len(names) == 4


def test_dense_bias_and_relu_are_one_kernel():
    assert kernels(
        lambda x, w, b: sym.relu(sym.FullyConnected(x, w, b, num_hidden=4)),
        x=(2, 3),
        w=(4, 3),
        b=(4,),
    ) == [["FullyConnected", "relu"]]


@pytest.mark.parametrize("rows", (2, 16))
def test_what_follows_a_product_of_each_sample_is_computed_in_its_place(rng, rows):
    a, b = (rng.standard_normal(s).astype("f4") for s in ((3, rows, 5), (3, 5, 4)))
    graph, _ = trace(
        lambda x, y: sym.relu(sym.batch_dot(x, y) * 2),
        {"x": Spec(a.shape, a.dtype), "y": Spec(b.shape, b.dtype)},
    )
    plan = Plan(graph, ["x", "y"], target="cpu")
    (got,) = plan([a, b], plan.bind([]))
    assert plan.n_kernels == 1
    np.testing.assert_allclose(got, np.maximum(a @ b * 2, 0), rtol=1e-5, atol=1e-6)


def test_a_sum_of_a_product_is_one_kernel():
    assert kernels(lambda x, y: (x * y).sum(axis=1), x=(2, 3), y=(2, 3)) == [
        ["elemwise_mul", "sum"]
    ]


def test_a_repeated_expression_is_computed_once():
    graph, _ = trace(lambda x: sym.tanh(x + 1) * sym.tanh(x + 1), {"x": Spec((2,), F32)})
    assert (graph.n_ops, cse(graph).n_ops) == (5, 3)


def test_fused_nodes_that_differ_in_a_number_stay_two():
    graph, _ = trace(lambda x: [x * 2 + 1, x * 3 + 1], {"x": Spec((2,), F32)})
    after = optimize(graph, (fuse, cse))[-1][1]
    assert_same(graph, after, {"x": np.float32([1, 2])})


def test_two_random_draws_stay_two():
    graph, _ = trace(
        lambda x: x + sym.random.normal(shape=(2,)) - sym.random.normal(shape=(2,)),
        {"x": Spec((2,), F32)},
    )
    assert cse(graph).n_ops == graph.n_ops == 4


def test_a_dead_node_is_dropped():
    graph, _ = trace(lambda x: [sym.exp(x), sym.tanh(x)][1], {"x": Spec((2,), F32)})
    assert (graph.n_ops, dce(graph).n_ops) == (2, 1)


def test_constants_are_folded():
    graph, _ = trace(lambda x: x * (sym.ones((2,)) * 3 + 1), {"x": Spec((2,), F32)})
    (node,) = [n for n in dce(fold(graph)).nodes if n.op]
    np.testing.assert_array_equal(node.inputs[1][0].values[0], [4, 4])


def test_steps_that_change_nothing_are_folded():
    def nothing(x):
        return sym.identity((x.reshape((2, 3)) * 1 / 1).astype("float32"))

    graph, _ = trace(nothing, {"x": Spec((2, 3), F32)})
    assert dce(fold(graph)).n_ops == 0


def test_numbers_become_inputs_with_names_of_their_own():
    """Also where a variable has the name that the first of them would get."""
    graph, _ = trace(
        lambda x, y: (x * 3 + y) / 2, {"number0": Spec((2,), F32), "_number0": Spec((2,), F32)}
    )
    lifted, numbers = lift(graph)
    assert len(numbers) == 2 and not {"number0", "_number0"} & numbers.keys()
    given = {"number0": np.float32([1, 2]), "_number0": np.float32([5, -7])}
    (expected,), (actual,) = graph.evaluate(given), lifted.evaluate(given | numbers)
    assert actual.tolist() == expected.tolist() == [4, -0.5]


# -- broken passes are named -----------------------------------------------------------
def loses_a_node(graph):
    kept = [n for n in graph.nodes if not n.op or n.op.name != "tanh"]
    return Graph(kept, graph.heads)


def lies_about_a_shape(graph):
    *nodes, last = graph.nodes
    wrong = Node(last.op, last.inputs, last.attrs, last.name, (Spec((7,), F32),))
    return Graph([*nodes, wrong], [(wrong, 0)])


def reads_a_missing_output(graph):
    *nodes, last = graph.nodes
    wrong = Node(last.op, ((last.inputs[0][0], 5),), last.attrs, last.name, last.specs)
    return Graph([*nodes, wrong], [(wrong, 0)])


def turns_the_order_round(graph):
    return Graph(graph.nodes[::-1], graph.heads)


def combines_shapes_that_do_not_fit(graph):
    *nodes, last = graph.nodes
    other = Node(None, name="other", specs=(Spec((7,), F32),))
    wrong = Node(OPS["elemwise_add"], ((last, 0), (other, 0)), {}, "sum", last.specs)
    return Graph([*nodes, last, other, wrong], [(wrong, 0)])


def falls_over(graph):
    return {}["nothing"]


@pytest.mark.parametrize(
    "broken",
    (
        loses_a_node,
        lies_about_a_shape,
        reads_a_missing_output,
        turns_the_order_round,
        combines_shapes_that_do_not_fit,
        falls_over,
    ),
    ids=lambda f: f.__name__,
)
def test_the_pass_that_breaks_a_graph_is_named(broken):
    graph, _ = trace(lambda x: sym.relu(sym.tanh(x)), {"x": Spec((2,), F32)})
    with pytest.raises(GraphError, match=broken.__name__):
        optimize(graph, (fold, broken, cse))


# -- memory ----------------------------------------------------------------------------
def lifetimes(graph):
    """value -> (step that writes it, last step that reads it), without the plan."""
    root, steps = {}, [n for n in graph.nodes if n.op and not n.op.view]
    for node in graph.nodes:
        for i in range(node.n_outputs):
            view = node.op is not None and node.op.view
            root[node, i] = root[node.inputs[0]] if view else (node, i)
    spans = {(n, i): [k, k] for k, n in enumerate(steps) for i in range(n.n_outputs)}
    for k, node in enumerate(steps):
        for ref in node.inputs:
            if root[ref] in spans:
                spans[root[ref]][1] = k
    for ref in graph.heads:
        if root[ref] in spans:
            spans[root[ref]][1] = len(steps)
    return spans


def same_places_only(node):
    """Whether every element that a step writes depends on inputs at that place only."""
    nodes = node.attrs["graph"].nodes if "graph" in node.attrs else [node]
    return all(n.op.scalar(n.attrs) is not None for n in nodes if n.op)


@pytest.mark.parametrize("fused", (False, True), ids=("plain", "fused"))
def test_values_that_live_together_do_not_overlap(fused):
    for graph, _ in programs():
        assert_apart(optimize(graph, (*PASSES, fuse) if fused else PASSES)[-1][1])


def assert_apart(graph):
    """Check all pairs of values that are alive at once."""
    memory, spans = plan_memory(graph), lifetimes(graph)
    born = {node: birth for (node, _), (birth, _) in spans.items()}
    spans |= {ref: [born[node]] * 2 for node, ref in memory.scratch.items()}
    assert memory.offsets.keys() | memory.outs.keys() == spans.keys()
    place = {
        ref: ("arena", at, at + ref[0].specs[ref[1]].nbytes) for ref, at in memory.offsets.items()
    }
    place |= {ref: (f"out{k}", 0, ref[0].specs[ref[1]].nbytes) for ref, k in memory.outs.items()}
    in_place = set(memory.in_place)
    for a, (where, start, end) in place.items():
        assert where != "arena" or start % 64 == 0 and end <= memory.nbytes
        for b, (other, first, last) in place.items():
            if a is b or where != other or end <= first or last <= start:
                continue
            early, late = sorted((a, b), key=lambda ref: spans[ref][0])
            died, born = spans[early][1], spans[late][0]
            if died == born:
                assert (late, early) in in_place and same_places_only(late[0])
                old, new = (n.specs[i] for n, i in (early, late))
                assert (old.size, old.dtype) == (new.size, new.dtype)  # or a view of it
            else:
                assert died < born, (early, late)


def test_the_arena_is_not_larger_than_eager_memory():
    for graph, _ in programs():
        graph = optimize(graph)[-1][1]
        memory = plan_memory(graph)
        eager = sum(
            -(-n.specs[i].nbytes // 64) * 64
            for n, i in lifetimes(graph)
            if (n, i) not in memory.outs
        )
        assert memory.nbytes <= eager


# -- scale -----------------------------------------------------------------------------
@pytest.mark.slow
def test_ten_thousand_nodes():
    """No recursion and nothing quadratic: tracing to printing takes seconds, once."""
    start = time.perf_counter()

    def tall(x):
        for i in range(10_000):
            x = sym.tanh(x) if i % 10 else x.transpose()
        return x

    graph, _ = trace(tall, {"x": Spec((2, 3), F32)})
    stages = dict(optimize(graph, (*PASSES, fuse)))
    assert graph.n_ops == stages["dce"].n_ops == 10_000
    assert stages["fuse"].n_ops == 1000  # each transpose joins the nine that follow
    memory = plan_memory(stages["dce"])
    assert len(memory.offsets) + len(memory.outs) == 10_000
    assert memory.nbytes == 24  # in turn here and in the output's memory, not padded
    assert len(graph.show().splitlines()) == 10_002
    x = np.ones((2, 3), "f4")
    (y,) = stages["fuse"].evaluate({"x": x})
    np.testing.assert_array_equal(y, graph.evaluate({"x": x})[0])
    print(f"ten thousand nodes: {time.perf_counter() - start:.1f} s")


@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_random_numbers_that_a_sum_reads_at_once_are_the_eager_ones(target):
    def run(x):
        drawn = (sym if isinstance(x, sym.Symbol) else nd).Dropout(x, p=0.5) * 3
        return drawn.sum(axis=1), drawn.sum(axis=0, keepdims=True)

    answers = []
    for f in (run, gluon.function(run, target=target)):
        nd.random.seed(3)
        with autograd.train_mode():
            answers.append([v.asnumpy() for v in f(nd.ones((3, 4)))])
    for got, expected in zip(*answers, strict=True):
        np.testing.assert_allclose(got, expected, 1e-6)
