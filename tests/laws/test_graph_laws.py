"""Laws of passes, memory plans and targets, on random programs and large ones."""

import time

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from minihybrid.sym import trace

from minihybrid import autograd, gluon, nd, simulated_gpu, sym
from minihybrid.core.graph import Graph, GraphError
from minihybrid.core.op import Node, Spec
from minihybrid.core.passes.gradient import differentiate, joint_graph
from minihybrid.core.placement import copy_to
from minihybrid.core.plan import Plan
from minihybrid.ops import OPS, neural
from minihybrid.ops.random import STREAM
from minihybrid.passes import PASSES, cse, dce, expand, fold, fuse, optimise, plan_memory
from minihybrid.passes.lift_constants import lift
from minihybrid.runtime.device import device_of

F32 = np.dtype("float32")
few = settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
)
every_pass = pytest.mark.parametrize("run", (fold, cse, dce, fuse), ids=lambda run: run.__name__)


# -- random programs -------------------------------------------------------------------
UNARY = ("tanh", "sigmoid", "relu", "softsign", "square", "negative", "_copy")
STEPS = {}  # name -> (value, another value, two whole numbers) -> new values


def step(function):
    STEPS[function.__name__] = function
    return function


@step
def unary(a, b, i, j):
    return [getattr(sym, UNARY[i % len(UNARY)])(a)]


@step
def binary(a, b, i, j):
    x, y = a.spec.shape, b.spec.shape
    fits = all(m == n or 1 in (m, n) for m, n in zip(reversed(x), reversed(y), strict=False))
    name = ("add", "sub", "mul", "maximum", "minimum")[i % 5]
    small = [sym.tanh(v) for v in (a, b if fits else a)]
    return [getattr(sym, f"broadcast_{name}")(*small)]


@step
def scalar(a, b, i, j):
    return [a * (i - 2), a + 0.5, (1.5 - a) / 2][: j % 3 + 1]


@step
def reduce(a, b, i, j):
    axis = None if i > 3 else i % len(a.spec.shape)
    return [(sym.mean, sym.sum, sym.max)[j % 3](sym.tanh(a), axis=axis, keepdims=i % 2)]


@step
def view(a, b, i, j):
    at = i % len(a.spec.shape)
    return [(a.reshape((-1,)), a.expand_dims(at), a.flatten())[j % 3]]


@step
def move(a, b, i, j):
    axis = i % len(a.spec.shape)
    return [
        (
            a.transpose(),
            sym.slice_axis(a, axis=axis, begin=0, end=1),
            sym.slice(a, begin=(None,), end=(None,), step=(-1,)),
        )[j % 3]
    ]


@step
def softmax(a, b, i, j):
    return [(sym.softmax, sym.log_softmax)[j % 2](a, axis=i % len(a.spec.shape))]


@step
def dense(a, b, i, j):
    rows = sym.tanh(a).reshape((a.spec.shape[0], -1))
    return [sym.FullyConnected(rows, no_bias=bool(j % 2), num_hidden=i + 1)]


@step
def product(a, b, i, j):
    rows = sym.tanh(a).reshape((a.spec.shape[0], -1))
    return [sym.dot(rows, rows, transpose_a=bool(i % 2), transpose_b=not i % 2)]


@step
def join(a, b, i, j):
    joined = sym.concat(a, a * 2, dim=i % len(a.spec.shape))
    return [joined, sym.stack(a, a, axis=0)][: 1 + j % 2]


@step
def part(a, b, i, j):
    axis = i % len(a.spec.shape)
    parts = sym.split(sym.concat(a, -a, dim=axis), num_outputs=2, axis=axis)
    return [parts[0], parts[1]]


@step
def choose(a, b, i, j):
    return [sym.where(a > 0, a, sym.zeros_like(a)), sym.ones((2, 3)) * 2][: 1 + j % 2]


@step
def dropout(a, b, i, j):
    return [sym.Dropout(a, p=0.5)]


small = st.integers(0, 5)
programs = st.tuples(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(STEPS)), st.integers(0, 30), st.integers(0, 30), small, small
        ),
        min_size=1,
        max_size=12,
    ),
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
)


def built(program):
    """(graph, values of its variables) of a random program."""
    steps, heads = program

    def run(x, y):
        values = [x, y]
        for name, a, b, i, j in steps:
            new = STEPS[name](values[a % len(values)], values[b % len(values)], i, j)
            values += [v for v in new if v.spec.size < 2000]
        return [values[-1 - k % len(values)] for k in heads]

    graph, _ = trace(run, {"x": Spec((2, 3), F32), "y": Spec((3,), F32)}, training=True)
    rng = np.random.default_rng(0)
    values = {n.name: rng.uniform(-1, 1, n.specs[0].shape).astype("f4") for n in graph.variables}
    return expand(graph, True), values


@pytest.fixture(scope="module", autouse=True)
def steps_of_softmax():
    """Eager softmax of few columns skips a step, and so rounds differently."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neural, "SMALL_SQUARES", 0)
        yield


def assert_same(before, after, values):
    """Compare every bit."""
    for got, expected in zip(after.evaluate(values, 7), before.evaluate(values, 7), strict=True):
        assert got.shape == expected.shape and got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


# -- passes ----------------------------------------------------------------------------
@every_pass
@few
@given(programs)
def test_pass_keeps_the_meaning(run, program):
    graph, values = built(program)
    graph = dce(graph) if run is fuse else graph
    assert_same(graph, run(graph).check(run.__name__), values)


@every_pass
@few
@given(programs)
def test_pass_is_idempotent(run, program):
    graph, _ = built(program)
    once = run(dce(graph) if run is fuse else graph)
    assert run(once).check("again").show() == once.show()


@few
@given(programs)
def test_all_passes_in_order_keep_the_meaning(program):
    graph, values = built(program)
    stages = optimise(graph, (*PASSES, fuse))
    assert [name for name, _ in stages] == ["fold", "cse", "dce", "fuse"]
    assert_same(graph, stages[-1][1], values)


@few
@given(programs)
def test_pass_leaves_its_input_as_it_was(program):
    graph, _ = built(program)
    shown = graph.show()
    optimise(graph, (*PASSES, fuse))
    assert graph.show() == shown


@few
@given(programs)
def test_forward_and_backward_graphs_are_the_joint_graph(program):
    graph, values = built(program)
    joint = joint_graph(graph, list(values))
    rng = np.random.default_rng(1)
    seeds = {
        f"head_grad{i}": rng.random(n.specs[j].shape).astype("f4")
        for i, (n, j) in enumerate(graph.heads)
    }
    expected = joint.evaluate(values | seeds, 7)
    forward, backward = differentiate(graph, list(values))
    outs = forward.evaluate(values, 7)
    n = len(graph.heads)
    kept = {f"kept{i}": v for i, v in enumerate(outs)}
    grads = backward.evaluate(values | seeds | kept, 7)
    for a, b in zip([*outs[:n], *grads], expected, strict=True):
        np.testing.assert_array_equal(a, b)


def kernels(function, **shapes):
    """The operators left of a function after all passes, as lists of their names."""
    specs = {n: Spec(shape, F32) for n, shape in shapes.items()}
    graph = optimise(expand(trace(function, specs)[0]), (*PASSES, fuse))[-1][1]
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
    after = optimise(graph, (fuse, cse))[-1][1]
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
        optimise(graph, (fold, broken, cse))


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
@few
@given(programs)
def test_values_that_live_together_do_not_overlap(fused, program):
    graph = optimise(built(program)[0], (*PASSES, fuse) if fused else PASSES)[-1][1]
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


@few
@given(programs)
def test_the_arena_is_not_larger_than_eager_memory(program):
    graph = optimise(built(program)[0])[-1][1]
    memory = plan_memory(graph)
    eager = sum(
        -(-n.specs[i].nbytes // 64) * 64 for n, i in lifetimes(graph) if (n, i) not in memory.outs
    )
    assert memory.nbytes <= eager


# -- targets ---------------------------------------------------------------------------
def assert_plan_agrees(graph, values, target):
    plan = Plan(graph, ["x", "y"], target=target, expanded=True)
    assert target in (plan.target, plan.device), plan.target_note
    nd.random.seed(7)
    key = STREAM.next
    expected = graph.evaluate(values, key)
    if plan.device:
        values = {n: copy_to(v, plan.device.context) for n, v in values.items()}
    bound = plan.bind([values[n] for n in plan.params])
    for _ in range(2):  # the second call meets what the first one left in the arena
        nd.random.seed(7)
        outs = plan([values["x"], values["y"]], bound)
        for a, b in zip(outs, expected, strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=2e-5, atol=2e-5)


@few
@given(programs)
def test_numpy_plan_agrees_with_evaluation(program):
    assert_plan_agrees(*built(program), "numpy")


@pytest.mark.slow
@settings(few, max_examples=12, phases=[Phase.generate])  # smaller ones compile, too
@given(programs)
def test_compiled_plan_agrees_with_evaluation(program):
    assert_plan_agrees(*built(program), "cpu")


@pytest.mark.slow
@settings(few, max_examples=60)
@given(programs)
def test_plan_on_a_simulated_gpu_agrees_with_evaluation(program):
    """Every access of every thread is checked on the way."""
    assert_plan_agrees(*built(program), device_of(simulated_gpu()))


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
    stages = dict(optimise(graph, (*PASSES, fuse)))
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
