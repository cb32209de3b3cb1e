"""Only the branch that is taken runs, forward and backward, and a loop's iterations."""

import gc
import json
import runpy

import numpy as np
import pytest

from minihybrid import (
    AttrError,
    DTypeError,
    ShapeError,
    autograd,
    function,
    gluon,
    nd,
    simulated_gpu,
    sym,
    vmap,
)
from minihybrid.core.files import FileError
from minihybrid.core.graph import Graph
from minihybrid.core.op import Spec
from minihybrid.core.plan import Plan
from minihybrid.core.sym import trace
from minihybrid.gluon import nn
from minihybrid.passes.branches import If
from minihybrid.passes.control import Cond, While


class Two(gluon.HybridBlock):
    """One of two layers, as a number says."""

    def __init__(self, units=8):
        super().__init__()
        self.a, self.b = nn.Dense(units, activation="tanh"), nn.Dense(units)

    def hybrid_forward(self, F, x, p):
        return F.contrib.cond(p > 0, lambda: self.a(x), lambda: F.softmax(F.cumsum(self.b(x), 1)))


def nets(*shape, units=8):
    """The same net twice, line by line and compiled, and an input."""
    eager, compiled = Two(units), Two(units)
    x = nd.random.normal(shape=shape)
    for net in (eager, compiled):
        net.initialize()
        net(x, nd.ones(1))
        net(x, nd.zeros(1))
    for p, q in zip(*(net.collect_params().values() for net in (eager, compiled)), strict=True):
        q.set_data(p.data())
    compiled.hybridize(backend="cpu", wait=True)
    return eager, compiled, x


def test_a_branch_is_skipped_and_its_memory_is_not_written():
    eager, net, x = nets(4, 5)
    plan, _, bound = net.plan_for(x, nd.ones(1))
    plan.load()
    guarded = [line for line in plan.source.splitlines() if line.startswith("    if ")]
    assert [("fullyconnected" in line, "!= 0" in line) for line in guarded[:3]] == [
        (True, True),
        (True, False),
        (False, False),
    ]
    (node,) = [n for n in plan.graph.nodes if isinstance(n.op, If)]
    at = plan.memory.offsets[plan.memory.scratch[node]] + node.op.flags[-1]
    for p in (1.0, 0.0, -0.0, np.nan):
        arena, out = plan._new_arena(), np.empty((4, 8), np.float32)
        arena[:] = 7
        inputs = [x.asnumpy(), np.float32([p])]
        plan.function(*inputs, out, arena, bound[0], 0, 100, 0, 0)
        # The second branch alone has a value between its two kernels.
        assert (arena[at : at + 128] == 7).all() == bool(p > 0)
        np.testing.assert_allclose(out, eager(x, nd.array([p])).asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_backward_pass_skips_the_products_of_a_branch():
    _, net, x = nets(4, 5)
    x.attach_grad()
    with autograd.record():
        y = net(x, nd.ones(1))
    y.backward()
    (plan,) = [
        p for p in gc.get_objects() if type(p) is Plan and p.title == f"{net.name}, backward"
    ]
    steps = plan.source.partition("def plan")[2].splitlines()
    products = [line.strip() for line in steps if "matmul" in line]
    assert len(products) == 4 and all(line.startswith("if ") for line in products)


@pytest.mark.parametrize("shape, units", [((4, 5), 8), ((256, 300), 200)], ids=["small", "large"])
def test_gradients_of_what_is_skipped_are_zero(shape, units):
    """The large one is shared by threads, of which some come late."""
    eager, net, x = nets(*shape, units=units)
    x.attach_grad()
    for k in range(20):
        actual = []
        for each in (eager, net):
            params = [p for _, p in sorted(each.collect_params().items())]
            for p in params:
                p.zero_grad()  # a tape doesn't reach what isn't used
            with autograd.record():
                y = each(x, nd.array([k % 3 - 1]))
                loss = (y * y).sum()
            loss.backward()
            actual.append([a.asnumpy() for a in (y, x.grad, *(p.grad() for p in params))])
        for one, right in zip(*actual[::-1], strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-3, atol=1e-4)


class Nested(gluon.HybridBlock):
    """Three branches with predicates of several dtypes, and a loop that one of them ends."""

    def hybrid_forward(self, F, x, k):
        cond = F.contrib.cond
        y = cond(
            x.sum() > 0,
            lambda: cond(k == 1, lambda: F.log(x), lambda: cond(k, lambda: 1 / x, lambda: x + 1)),
            lambda: cond(x.max() < -1, lambda: F.sqrt(x * -1), lambda: 3 * x),
        )
        outs, (last, n) = F.contrib.while_loop(
            lambda v, n: F.sum(v) < 50,
            lambda v, n: (F.broadcast_add(v, n), [v * 2 + 1, n + 1]),
            [y, F.zeros_like(x).sum()],
            max_iterations=6,
        )
        return y, outs, last, n


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "uint8"])
@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_nested_branches_and_a_loop(dtype, backend):
    net = Nested()
    net.hybridize(backend=backend, wait=True)
    for values in ([1, 2], [0.2, 0.3], [-1, -0.5], [-3, -4], [0, 0], [90, 1]):
        for k in (0, 1, 2):
            inputs = nd.array(values), nd.array([k], dtype=dtype)
            actual = []
            for each in (Nested(), net):
                inputs[0].attach_grad()
                with autograd.record():
                    outs = each(*inputs)
                    loss = sum((o * o).sum() for o in outs if not isinstance(o, list))
                loss.backward()
                outs = [np.zeros((6, 2)) if isinstance(o, list) else o.asnumpy() for o in outs]
                actual.append([*outs, inputs[0].grad.asnumpy()])
            for one, right in zip(*actual[::-1], strict=True):
                np.testing.assert_allclose(one, right, rtol=1e-5, atol=1e-6)


def test_iterations_after_the_end_do_not_run(monkeypatch):
    runs, eager = [], If.eager

    def counted(self, predicate, *inputs, **more):
        runs.append(bool(predicate[0]))
        return eager(self, predicate, *inputs, **more)

    monkeypatch.setattr(If, "eager", counted)

    class Doubled(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.contrib.while_loop(lambda v: v < 9, lambda v: (v, v * 2), x, 7)[1]

    net = Doubled()
    net.hybridize(backend="numpy")
    assert net(nd.ones(1)).asscalar() == 16
    assert runs == [True] * 4 + [False] * 3


class States(gluon.HybridBlock):
    """A branch with a dropout mask, and one that moves running means, also in a loop."""

    def __init__(self):
        super().__init__()
        self.a, self.norm = nn.Dense(3), nn.BatchNorm()

    def hybrid_forward(self, F, x, p):
        y = F.contrib.cond(p > 0, lambda: F.Dropout(self.a(x), p=0.5), lambda: self.norm(x) * 1)
        _, (y, _) = F.contrib.while_loop(
            lambda v, n: F.lesser(n + 0.5, F.abs(p)),
            lambda v, n: (v, [self.norm(v), n + 1]),
            [y, F.zeros_like(p)],
            max_iterations=3,
        )
        return y


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_only_the_taken_branch_moves_states_and_drops(backend):
    eager, net = States(), States()
    x, params = nd.random.normal(shape=(4, 3)), []
    for each in (eager, net):
        each.initialize()
        each(x, nd.ones(1))
        params.append([p for _, p in sorted(each.collect_params().items())])
    for p, q in zip(*params, strict=True):
        q.set_data(p.data())
    net.hybridize(backend=backend, wait=True)
    for p in (-1, 0, 2, -2):
        actual = []
        for each in (eager, net):
            x.attach_grad()
            with autograd.record(train_mode=p <= 0):  # streams of random numbers differ
                y = each(x, nd.array([p]))
            y.backward()
            means = each.norm.running_mean.data(), each.norm.running_var.data()
            actual.append([a.asnumpy() for a in (y, x.grad, *means)])
        for one, right in zip(*actual[::-1], strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-5, atol=1e-5)
    x.attach_grad()
    with autograd.record():
        y = net(x, nd.array([0.5]))
    y.backward()
    mask = y.asnumpy() == 0
    assert 0 < mask.sum() < mask.size


@pytest.mark.parametrize(
    "f, kind, words",
    [
        (lambda F, x: F.contrib.cond(x > 0, lambda: x, lambda: x), AttrError, "cond: pred has"),
        (
            lambda F, x: F.contrib.while_loop(lambda v: v < 9, lambda v: (v, v * 2), x, 3)[1],
            AttrError,
            "while_loop: cond has shape",
        ),
        (
            lambda F, x: F.contrib.while_loop(
                lambda v: v.sum() < 9, lambda v: (v, v.reshape((1, 2))), x, 3
            )[1],
            ShapeError,
            r"while_loop: loop variable 0 has shape \(2,\), but its new value \(1, 2\)",
        ),
        (
            lambda F, x: F.contrib.while_loop(
                lambda v: v.sum() < 9, lambda v: (v, v.astype("int32")), x, 3
            )[1],
            DTypeError,
            "while_loop: loop variable 0 is float32, but its new value int32; cast one",
        ),
    ],
)
def test_wrong_predicates_and_variables_are_sentences_in_both_modes(f, kind, words):
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return f(F, x)

    for active in (False, True):
        net = Net()
        net.hybridize(active)
        with pytest.raises(kind, match=words):
            net(nd.ones(2))


@pytest.mark.parametrize(
    "other, kind, words",
    [
        (lambda x: x.reshape((1, 2)), ShapeError, r"output 0 of the first branch has shape \(2,\)"),
        (
            lambda x: x.astype("int32"),
            DTypeError,
            "output 0 of the first branch is float32, .* cast one",
        ),
        (lambda x: [x, x], AttrError, "one branch gives 1 values, the other 2"),
        (lambda x: 3, AttrError, "gives no symbols|gives 1 values, the other 0"),
    ],
)
def test_branches_that_disagree_are_sentences(other, kind, words):
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.contrib.cond(x.sum() > 0, lambda: x * 2, lambda: other(x))

    net = Net()
    net.hybridize()
    with pytest.raises(kind, match=words):
        net(nd.ones(2))


# -- files -----------------------------------------------------------------------------
def variable(name):
    return {"op": "null", "name": name, "inputs": []}


def applied(op, name, inputs, **attrs):
    attrs = {k: str(v) for k, v in attrs.items()}
    return {"op": op, "name": name, "attrs": attrs, "inputs": [[i, 0, 0] for i in inputs]}


def graph_of(*nodes, heads):
    numbers = [i for i, n in enumerate(nodes) if n["op"] == "null"]
    return {"nodes": nodes, "arg_nodes": numbers, "heads": [[i, 0, 0] for i in heads]}


def as_mxnet_writes():
    """A branch and a loop in MXNet's layout, with predicates that are graphs themselves.

    y = x w if sum(x) > 1 else x - w;   while sum(v) < 20: out = v w; v = 2 v + w
    """
    test = graph_of(
        variable("x"),
        applied("sum", "sum0", [0]),
        applied("_greater_scalar", "greater0", [1], scalar=1),
        heads=[2],
    )
    then = graph_of(
        variable("w"), variable("x"), applied("elemwise_mul", "mul0", [1, 0]), heads=[2]
    )
    then["nodes"][2]["inputs"].reverse()
    other = graph_of(
        variable("x"), variable("w"), applied("elemwise_sub", "sub0", [0, 1]), heads=[2]
    )
    branch = applied("_cond", "cond0", [0, 1], num_args=5, num_outputs=1)
    branch["attrs"] |= {"cond_input_locs": "[0]", "then_input_locs": "[1, 0]"}
    branch["attrs"]["else_input_locs"] = "[0, 1]"
    holds = graph_of(
        variable("v"),
        applied("sum", "sum1", [0]),
        applied("_lesser_scalar", "lesser0", [1], scalar=20),
        heads=[2],
    )
    step = graph_of(
        variable("v"),
        variable("w"),
        applied("elemwise_mul", "mul1", [0, 1]),
        applied("_mul_scalar", "mul2", [0], scalar=2),
        applied("elemwise_add", "add0", [3, 1]),
        heads=[2, 4],
    )
    loop = applied("_while_loop", "loop0", [2, 1], num_args=4, num_outputs=2, num_out_data=1)
    loop["attrs"] |= {"max_iterations": "4", "cond_input_locs": "[0]"}
    loop["attrs"] |= {"func_input_locs": "[0, 1]", "func_var_locs": "[0]"}
    nodes = [variable("x"), variable("w"), branch, loop]
    branch["subgraphs"], loop["subgraphs"] = [test, then, other], [holds, step]
    return graph_of(*nodes, heads=[2, 3]) | {
        "heads": [[2, 0, 0], [3, 0, 0], [3, 1, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }


def by_hand(x, w):
    y = x * w if x.sum() > 1 else x - w
    v, rows = y, []
    while v.sum() < 20 and len(rows) < 4:
        rows.append(v * w)
        v = 2 * v + w
    return y, np.array(rows + [0 * x] * (4 - len(rows))), v


@pytest.mark.parametrize("active", [False, True])
def test_files_of_mxnet_load_run_and_are_saved_again(active):
    loaded = sym.load_json(json.dumps(as_mxnet_writes()))
    again = sym.load_json(loaded.tojson())
    assert again.tojson() == loaded.tojson() and loaded.list_inputs() == ["x", "w"]
    ops = [n.op for n in Graph.of(again).nodes if n.op]
    assert [type(op) for op in ops] == [Cond, While] and ops[1].max_iterations == 4
    net = gluon.SymbolBlock(again, [sym.var("x"), sym.var("w")])
    net.hybridize(active)
    for x, w in ([1.0, 2.0], [1.0, 1.0]), ([0.5, 0.0], [1.0, 3.0]), ([-1.0, -1.0], [-20.0, 1.0]):
        actual = net(nd.array(x), nd.array(w))
        for one, right in zip(actual, by_hand(np.array(x), np.array(w)), strict=True):
            np.testing.assert_allclose(one.asnumpy(), right, rtol=1e-6)


@pytest.mark.parametrize(
    "damage",
    [
        lambda b, w: b["attrs"].update(then_input_locs="[1, 2]"),
        lambda b, w: b["attrs"].update(else_input_locs="[0]"),
        lambda b, w: b["attrs"].pop("cond_input_locs"),
        lambda b, w: b["subgraphs"].pop(),
        lambda b, w: b["subgraphs"][0]["heads"].append([1, 0, 0]),
        lambda b, w: b["subgraphs"][1]["heads"].append([0, 0, 0]),
        lambda b, w: w["attrs"].update(func_var_locs="[2]"),
        lambda b, w: w["attrs"].update(func_var_locs="[0, 1]"),
        lambda b, w: w["attrs"].update(max_iterations="0"),
        lambda b, w: w["attrs"].update(num_out_data="2"),
        lambda b, w: w["attrs"].update(num_out_data="x"),
    ],
)
def test_damaged_graphs_are_refused(damage):
    data = as_mxnet_writes()
    damage(*data["nodes"][2:])
    with pytest.raises(FileError, match="_cond 'cond0'|_while_loop 'loop0'"):
        sym.load_json(json.dumps(data))


def test_graphs_inside_are_shown():
    text = Graph.of(sym.load_json(json.dumps(as_mxnet_writes()))).show()
    assert "    sub0            = elemwise_sub(x, w)" in text and text.count("  --\n") == 3


def test_a_loop_of_a_file_that_takes_no_step_is_on_the_tape(tmp_path):
    """As its plan is: outputs that are zeros have a gradient of zeros."""
    x = sym.var("x")
    outs, _ = sym.contrib.while_loop(lambda x: x.sum() < 0, lambda x: (x, x * 2), x, 2)
    outs.save(str(tmp_path / "loop.json"))
    net = gluon.SymbolBlock.imports(str(tmp_path / "loop.json"), ["x"])
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = net(x)
    y.backward()
    assert not y.asnumpy().any() and x.grad.asnumpy().tolist() == [0, 0]


def test_graphs_inside_of_nodes_are_printed_with_types():
    def f(x, y):
        branch = nd.contrib.cond(y > 0, lambda: x, lambda: x * 2)
        loop = nd.contrib.while_loop(lambda a: a.sum() < 5, lambda a: (a, a + 1), branch, 3)[1]
        return nd.contrib.foreach(lambda row, s: (row + s, s), loop, y)[0]

    graph = trace(f, {"x": Spec((3,), np.dtype("float32")), "y": Spec((1,), np.dtype("float32"))})
    text = graph[0].show()
    assert text.count("float32[") > 12 and "?" not in text


@pytest.mark.parametrize("where", ["branch", "loop"])
def test_a_gpu_lowers_what_is_inside(where):
    def f(x):
        if where == "branch":
            return nd.contrib.cond(x.sum() > 0, lambda: nd.softmax(x), lambda: x)
        return nd.contrib.foreach(lambda row, s: (nd.softmax(row), s), x, x)[0]

    x = nd.array([[1, 2, 3], [0, 1, 0]])
    actual = function(f)(x.as_in_context(simulated_gpu()))
    np.testing.assert_allclose(actual.asnumpy(), f(x).asnumpy(), rtol=1e-6)


# -- errors of the side that isn't taken -----------------------------------------------
RAISING = {  # (F, x of shape (4, 3), 5)
    "gather_nd": lambda F, x, i: F.gather_nd(x, F.reshape(i, shape=(1, 1))),
    "take": lambda F, x, i: F.take(x, i, mode="raise"),
    "pick": lambda F, x, i: F.pick(F.reshape(x, shape=(3, 4)), F.tile(i, 3), mode="raise"),
    "inverse": lambda F, x, i: F.linalg.inverse(F.diag(5.0 - F.cast(i, "float32"))),
    "potrf": lambda F, x, i: F.linalg.potrf(F.diag(5.0 - F.cast(i, "float32"))),
    "folded": lambda F, x, i: F.gather_nd(x, F.full((1, 1), 5, dtype="int32")),
}


class Guarded(gluon.HybridBlock):
    """An operator in a branch of a loop and, after it, in a loop that may have ended."""

    def __init__(self, op, mapped=False):
        super().__init__()
        self.op, self.mapped = RAISING[op], mapped

    def run(self, F, x, i, p):
        def value():
            return self.op(F, x, i).sum() + 0 * x.sum()

        def row(r, state):
            state = state + F.contrib.cond(p > 0, value, r.sum)
            return state, state

        _, state = F.contrib.foreach(row, x, F.zeros_like(p))
        _, (_, out) = F.contrib.while_loop(
            lambda n, s: n < p, lambda n, s: (s, (n + 1, s + value())), (p * 0, state), 2
        )
        return out

    def hybrid_forward(self, F, x, i, p):
        each = vmap(lambda i, p: self.run(F, x, i, p))
        return each(i, p) if self.mapped else self.run(F, x, i, p)


def from_numpy_file(net, arrays, folder):
    """The outputs of the file that needs only NumPy."""
    net.hybridize(backend="numpy")
    net(*arrays[:2], -nd.abs(arrays[2]))  # raises nothing
    file, weights = net.export(str(folder / "net"), format="numpy")
    scope = runpy.run_path(file)
    return scope["predict"](scope["load"](weights), *(x.asnumpy() for x in arrays))


def answer(net, arrays, target, folder):
    """The outputs on a target, with the gradient of the first input where it has one."""
    if target == "file":
        return from_numpy_file(net, arrays, folder)
    if target == "gpu":
        arrays = [x.as_in_context(simulated_gpu()) for x in arrays]
    if target != "eager":
        net.hybridize(**{} if target == "gpu" else {"backend": target, "wait": True})
    arrays[0].attach_grad()
    with autograd.record():
        out = net(*arrays)
    out.backward()
    return np.append(out.asnumpy(), arrays[0].grad.asnumpy())


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("target", ["eager", "numpy", "cpu", "gpu", "file"])
@pytest.mark.parametrize("op", RAISING)
def test_only_an_operator_that_runs_raises(op, target, mapped, tmp_path):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)

    def arrays(i, p):
        return [nd.array(x), nd.array(i, dtype="int32"), nd.array(p)]

    none = arrays([[5], [5]], [[-1.0], [-2.0]]) if mapped else arrays([5], [-1.0])
    actual = answer(Guarded(op, mapped), none, target, tmp_path).ravel()
    expected = np.append(np.repeat(x.sum(), 1 + mapped), np.full(12, 1 + mapped))
    np.testing.assert_array_equal(actual, expected[: len(actual)])
    if target not in ("eager", "numpy", "file"):  # kernels can't raise
        return
    some = arrays([[5], [5]], [[-1.0], [1.0]]) if mapped else arrays([5], [1.0])
    net = Guarded(op, mapped)
    with pytest.raises(Exception, match="index 5|singular|not positive definite"):
        answer(net, some, target, tmp_path)
