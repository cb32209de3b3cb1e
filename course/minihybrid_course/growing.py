"""Chapter 12. Checks of the upgrades of nano in later chapters.

Uses:    the names defined by an upgrade in a notebook, after those of the earlier steps.
Defines: `check`, which explains in one sentence what's wrong with an upgrade, and `beside`,
         which shows lines of nano next to their counterpart in this engine.

This engine computes the expected values, derivatives, graph listings and bytes of files.
Not supported: compiled kernels. The checks run the same source in Python instead.
"""

import ast
import contextlib
import io
import math
import sys
import tempfile
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from minihybrid import gluon
from minihybrid.core import nd, sym
from minihybrid.core.files import write_whole
from minihybrid.core.op import Spec
from minihybrid.gluon.transform import jvp
from minihybrid.view.show import listed, show
from minihybrid_course.building import stage, tried
from minihybrid_course.exercises.judging import equal, equal_each, need, same
from minihybrid_course.grading.sources import defined
from minihybrid_course.later_steps import STEPS as LATER
from minihybrid_course.steps import called, of_this_engine, raised, random_programs, there


def beside(yours, *ours, step=9):
    """Print a definition of nano, such as "Op.infer", and its counterpart in this engine.

    >>> beside("relu", nd.sign)
    # nano.py: relu
    relu = Op("relu", lambda a: np.maximum(a, 0), lambda g, y, a: (g * sign(y),))
    <BLANKLINE>
    # minihybrid/ops/elementwise.py: sign
    ...
    """
    text = stage(step)
    node = definition(text, yours)
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    own = (line for line in lines if line.strip() != "# your lines")
    print(listed("nano.py", yours, "\n".join(own)))
    for thing in ours:
        print()
        show(thing)


def definition(text, name):
    """Return the last statement of a source that defines a name."""
    node = ast.parse(text)
    for part in name.split("."):
        node = [s for s in node.body if part in defined(ast.unparse(s))][-1]
    return node


def check(step):
    """Check an upgrade of nano, 10 to 22, as defined in the notebook."""
    return tried(step, sys._getframe(1).f_globals, STEPS)


def spec(*shape):
    """Return this engine's float32 Spec of a shape."""
    return Spec(shape, np.dtype("float32"))


def gradients(n, f, *arrays):
    """Return value and gradients of `f`, compiled by nano; `f` gets arrays or symbols."""
    shapes = {f"x{k}": a.shape for k, a in enumerate(arrays)}
    y, back = n.compiled(n.with_gradient(n.trace(f, **shapes)))(*arrays)
    return [np.array(y), *map(np.array, back(np.ones(y.shape, "f")))]


def operators(graph):
    """Return the names of a graph's operators."""
    return [x.op.name for x in graph.nodes if x.op]


X = np.float32([[0.5, -1, 3], [2, 1, -0.25]])
SAMPLES = {  # operator -> the arrays and attributes for its property checks
    "broadcast_add": ([X, X[0]], {}),
    "broadcast_mul": ([X, X[0]], {}),
    "_plus_scalar": ([X], {"scalar": 3}),
    "_mul_scalar": ([X], {"scalar": 3}),
    "sign": ([X], {}),
    "relu": ([X], {}),
    "dot": ([X, X.T + 1], {}),
    "transpose": ([X], {}),
    "Reshape": ([X], {"shape": (3, 2)}),
    "sum": ([X], {"axis": (0,)}),
    "broadcast_to": ([X[:1]], {"shape": (4, 3)}),
    "exp": ([X], {}),
    "log_softmax": ([X], {}),
    "one_hot": ([np.float32([0.5, 1.5])], {"depth": 3}),
}


def _step_10(n):
    missing = [name for name in SAMPLES if name not in n.OPS]
    need(not missing, f"OPS has no {', '.join(missing)}")
    for name, (arrays, attrs) in SAMPLES.items():
        shapes = [a.shape for a in arrays]
        inferred = there(n.OPS[name].infer(*shapes, **attrs), f"infer of {name}")
        true = n.OPS[name].eager(*arrays, **attrs).shape
        same(inferred, true, f"{name}.infer for the shapes {shapes}")
        wide = [np.float64(a) for a in arrays]
        n.law_of_shape(n.OPS[name], *wide, **attrs)
        n.law_of_gradient(n.OPS[name], *wide, **attrs)
    same(n.add.infer((2, 1), (1, 3)), (2, 3), "add.infer for the shapes (2, 1) and (1, 3)")
    own = n.Op("own", np.negative, lambda g, y, a: (g,), lambda a: (*a, 7))
    need(n.OPS.get("own") is own, "a new Op doesn't add itself to OPS")
    need(own.infer((2,)) == (2, 7), "infer doesn't use an Op's own shape rule")
    del n.OPS["own"]
    text = raised(ValueError, "add of the shapes (2, 3) and (4,)", n.add.infer, (2, 3), (4,))
    need("broadcast_add" in text and "(4,)" in text, f"the error is only: {text}")
    wrong = n.Op("wrong", np.square, lambda g, y, a: (g * a,), n.relu.rule)
    tall = n.Op("tall", np.square, wrong.grad, lambda a: (7, *a))
    for law, op in ((n.law_of_gradient, wrong), (n.law_of_shape, tall)):
        del n.OPS[op.name]
        text = raised(AssertionError, f"{law.__name__} of a wrong Op", law, op, np.float64(X))
        need(op.name in text, f"{law.__name__} doesn't name the operator: {text}")


def _step_11(n):
    y = there(n.NDArray(X) > 1, "array > 1")
    equal(y.data, (nd.array(X) > 1).asnumpy(), "x > 1")

    def choose(where):
        return lambda x, y: where(x > 1, x * y, y * 3)

    graph = n.trace(choose(n.where), x=(2, 3), y=(2, 3))
    theirs, _ = sym.trace(choose(sym.where), {"x": spec(2, 3), "y": spec(2, 3)})
    program = "where(x > 1, x * y, y * 3)"
    right = [name.replace("elemwise", "broadcast") for name in operators(theirs)]
    same(operators(graph), right, f"the list of operators of {program}")
    values = gradients(n, choose(n.where), X, X + 2)
    right = of_this_engine(choose(nd.where), X, X + 2)
    equal_each(("y", "dx", "dy"), values, right, f"{{}} of {program}")

    def branches(x):
        return x * 2 if x > 1 else x

    for f, ask in ((branches, "a branch"), (lambda x: x * float(x.sum()), "float(x)")):
        text = raised(TypeError, f"{ask} on a symbol", n.trace, f, x=(2, 3))
        for word in ("where", f.__name__, "(2, 3)" if f is branches else "()"):
            need(word in text, f"the error of {ask} doesn't contain {word}: {text}")


FOLDED = {  # program -> the remaining operators
    "x * 1": [],
    "x * 1 + 2": ["_plus_scalar"],
    "transpose(transpose(x))": [],
    "reshape(reshape(x, shape=(6,)), shape=(3, 2))": ["Reshape"],
    "reshape(x, shape=(2, 3))": [],
    "transpose(x)": ["transpose"],
    "relu(transpose(x))": ["transpose", "relu"],
    "reshape(transpose(x), shape=(2, 3))": ["transpose", "Reshape"],
    "x + 1": ["_plus_scalar"],
    "x + 0": ["_plus_scalar"],  # -0.0 + 0 is 0.0
    "x * 2 * 3": ["_mul_scalar", "_mul_scalar"],
    "x > 1": ["_greater_scalar"],
}


def _step_12(n):
    for text, left in FOLDED.items():
        graph = n.trace(eval(f"lambda x: {text}", vars(n)), x=(2, 3))
        small = n.dce(there(n.fold(graph), "fold"))
        same(operators(small), left, f"after fold and dce, the list of operators of {text}")
        need(len(small.variables) == 1, f"after fold, the variable of {text} is missing")
        before, after = (n.run(g, n.NDArray(X))[0].data for g in (graph, small))
        need(np.array_equal(before, after), f"fold changes the value of {text}")
    _programs(n, "fold", n.fold)
    both = n.with_gradient(n.trace(lambda x, w: n.relu(n.dot(x, w * 1)), x=(2, 3), w=(3, 4)))
    small = n.fold(both)
    names = [x.name for x in small.nodes]
    need(small.variables[-1].name == "g", "after fold, the variable g isn't the last one")
    forward = operators(n.Graph(small.nodes[: names.index("g")], []))
    need("dot" in forward, "fold moves nodes of the forward pass after g")
    need(n.compiled(both) is not None, "compiled returns None: its code is still missing")
    w = np.float32(np.arange(12).reshape(3, 4) - 5)
    _same_gradients(n, lambda dot, relu: lambda x, w: relu(dot(x, w * 1)), X, w)
    for f in ("fold", "cse", "dce"):
        need(getattr(n, f) in n.PASSES, f"{f} isn't in PASSES")


def _same_gradients(n, program, *arrays):
    names = "value", "gradient of x", "gradient of w"
    actual = gradients(n, program(n.dot, n.relu), *arrays)
    equal_each(names, actual, of_this_engine(program(nd.dot, nd.relu), *arrays), "compiled: the {}")


def _programs(n, name, change):
    """Check that random programs keep their values and don't grow."""
    x = np.float32([[0.5, -1], [2, 1]])
    for f, text in random_programs(n, 6, 4):
        graph = n.trace(f, x=(2, 2))
        small = change(graph)
        need(len(operators(small)) <= len(operators(graph)), f"{name} makes {text} longer")
        equal(n.run(small, n.NDArray(x))[0].data, f(n.NDArray(x)).data, f"after {name}, {text}:")


CHAINS = {  # program -> the number of operators in each of its chains
    "relu(x * w + 1) * 2": [4],
    "(x * 2).sum()": [1],
    "relu(x * 2).sum() * 3": [2, 1],
    "(lambda y: dot(y, transpose(y)) + 1)(x * 2 + 1)": [2, 1],
    "(lambda y: y * y)(x + 1)": [2],
    "(lambda y: (y * 2).sum(0) + (y * 3).sum(0))(x + 1)": [1, 1, 1, 1],
}


def _step_13(n):
    for text, sizes in CHAINS.items():
        graph = n.trace(eval(f"lambda x, w: {text}", vars(n)), x=(2, 3), w=(2, 3))
        actual = [len(c) for c in there(n.chains(graph), "chains")]
        same(sorted(actual), sorted(sizes), f"the list of operators per chain of {text}")
    graph = n.trace(lambda x, w: n.relu(x * w + 1) * 2, x=(2, 3), w=(2, 3))
    (chain,) = n.chains(graph)
    text, reads = there(n.kernel(chain), "kernel")
    need(reads == list(graph.variables), "kernel doesn't return the nodes that it reads")
    need(text.count("[i]") == 3, f"2 loads and a store are enough: {text}")
    actual = in_python(text, [X, X - 1])
    equal(actual, nd.relu(nd.array(X) * nd.array(X - 1) + 1).asnumpy() * 2, "the kernel's result")
    with without_compiler(n):
        _programs(n, "fuse", lambda graph: n.dce(n.fuse(graph)))
        small = n.dce(n.fuse(graph))
        need(len(operators(small)) == 1, f"after fuse, {operators(small)} remain")
        _same_gradients(n, lambda dot, relu: lambda x, w: relu(x * w * 2 + 1), X, X - 1)
    need(n.fuse in n.PASSES, "fuse isn't in PASSES")


def in_python(text, arrays):
    """Run a kernel's source in Python and return its result."""
    scope, out = {"float32": np.float32, "math": math}, np.empty(arrays[0].size, "f")
    exec(text, scope)
    scope["kernel"](*map(np.ravel, arrays), out)
    return out.reshape(arrays[0].shape)


@contextlib.contextmanager
def without_compiler(n):
    """Run nano's kernels in Python inside this block."""
    names = vars(n)
    before, names["njit"] = names.get("njit"), lambda function, **options: function
    try:
        n.machine.cache_clear()
        yield
    finally:
        names["njit"] = before
        n.machine.cache_clear()


def _step_14(n):
    def deep(x, w):
        for _ in range(4):
            x = n.relu(n.dot(x, w) + 1)
        return x

    both = n.with_gradient(n.trace(deep, x=(8, 8), w=(8, 8)))
    graph = n.dce(n.cse(n.fold(both)))
    boxes = there(n.arena(graph), "arena")
    need(
        len(boxes) >= 4, f"arena has offsets for {len(boxes)} results, but at least 4 are temporary"
    )
    place = {x: k for k, x in enumerate(graph.nodes)}
    readers = {x: [y for y in graph.nodes if x in y.inputs] for x in graph.nodes}
    views = (n.reshape, n.transpose, n.broadcast_to)

    def last(x):
        return max([last(y) if y.op in views else place[y] for y in readers[x]], default=place[x])

    middle = place[graph.variables[-1]]
    for x, (first, end) in boxes.items():
        need(end - first == np.prod(x.shape), f"the buffer of {x.name} has {end - first} elements")
        need(x not in graph.heads, f"{x.name} is an output, but its memory is reused")
        crosses = place[x] < middle < last(x)
        need(
            not crosses,
            f"{x.name} is read by backward, which may run later or twice, but its memory is reused",
        )
        for y, (start, stop) in boxes.items():
            apart = end <= start or stop <= first or last(x) < place[y] or last(y) < place[x]
            need(
                x is y or apart,
                f"the live ranges of {x.name} and {y.name} overlap, but so do their buffers",
            )
    whole = max(end for _, end in boxes.values())
    need(whole < sum(end - first for first, end in boxes.values()), "no memory is reused")
    with without_compiler(n):
        need(n.settle in n.PASSES, "settle isn't in PASSES")
        plan = there(n.compiled(both), "compiled")
        a, w = (np.random.default_rng(k).normal(size=(8, 8)).astype("f") / 4 for k in (0, 1))
        y, back = plan(a, w)
        before, g = y.copy(), np.ones_like(y)
        once = [d.copy() for d in back(g)]
        plan(w, a)
        equal(y, before, "an output, after another call,")
        what = "a second backward, after another call: the gradient of {}"
        equal_each("xw", back(g), once, what)


def _step_15(n):
    arrays = {"arg:w": X, "arg:b": X[0]}
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours.params"), Path(folder, "theirs.params")
        n.save(ours, arrays)
        nd.save(str(theirs), {name: nd.array(a) for name, a in arrays.items()})
        a, b = ours.read_bytes(), theirs.read_bytes()
        at = next((k for k, (i, j) in enumerate(zip(a, b, strict=False)) if i != j), len(a))
        need(
            a == b,
            f"save: wrote {len(a)} bytes instead of {len(b)}; byte {at} is the first that differs",
        )
        arrays_read = there(n.load(theirs), "load")
        same(list(arrays_read), list(arrays), "load: the list of names")
        equal_each(arrays, arrays_read.values(), arrays.values(), "load: {}")
        write_whole(theirs, b"?" + b[1:])
        raised(ValueError, "load of a file that starts with other bytes", n.load, theirs)
        _exchanged(n, f"{folder}/net")


def _exchanged(n, path):
    """Check that both engines load each other's files."""
    net, x = n.HybridSequential(), np.float32(np.arange(12).reshape(2, 2, 3)) / 8
    net.add(n.Dense(5, activation="relu"), n.Dense(3))
    net.initialize(n.Xavier())
    net.hybridize()
    with without_compiler(n):
        answer = net(n.NDArray(x)).data
        files = there(net.export(path), "export")
        small = _scaled(n)
        small(n.NDArray(x))
        text = Path(there(small.export(f"{path}1"), "export")[0]).read_text()
        right = sym.fromjson(text).tojson()
        at = next((k for k, (a, b) in enumerate(zip(text, right, strict=False)) if a != b), None)
        need(text == right, f"the JSON differs from MXNet's from character {at} on")
        again = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
        equal(again(nd.array(x)).asnumpy(), answer, "this engine, with nano's files,")
        real = gluon.nn.HybridSequential()
        real.add(gluon.nn.Dense(5, activation="relu"), gluon.nn.Dense(3))
        real.initialize()
        answer = real(nd.array(x)).asnumpy()
        real(sym.var("data")).save(f"{path}2.json")
        params = {f"arg:{name}": p.data() for name, p in real.collect_params().items()}
        nd.save(f"{path}2.params", params)
        opened = n.SymbolBlock.imports(f"{path}2.json", ["data"], f"{path}2.params")
        equal(
            there(opened(n.NDArray(x)), "imports").data, answer, "nano, with this engine's files,"
        )


def _scaled(n):
    """Return a block of nano that computes relu(x * w) + 2."""

    class Scaled(n.Block):
        def __init__(self):
            self.w = n.Parameter("w")

        def forward(self, x):
            return n.relu(x * self.w.value(x, (3,))) + 2.0

    block = Scaled()
    block.hybridize()
    return block


def _step_16(n):
    graph = n.trace(lambda x, w: n.relu(x * w + 1) * 2, x=(10, 13), w=(10, 13))
    (chain,) = n.chains(graph)
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=(10, 13)).astype("f") for _ in range(2))
    with contextlib.redirect_stdout(io.StringIO()):
        out, counts = there(n.launch(chain, x, w, block=32), "launch")
    equal(out, nd.relu(nd.array(x) * nd.array(w) + 1).asnumpy() * 2, "the simulated GPU's answer")
    accesses = counts.global_loads, counts.global_stores
    need(
        accesses == (260, 130),
        f"260 loads and 130 stores are enough for 130 elements, not {accesses}",
    )
    need(counts.n_threads == 160, f"{counts.n_threads} threads; 5 blocks of 32 are needed")


def _rows(n, rows, width=5):
    return n.NDArray(np.linspace(-1, 1, rows * width).reshape(rows, width))


def _hybrid(n, forward):
    """Return a hybridized block that computes a function."""
    block = type("Own", (n.Block,), {"forward": lambda self, x: forward(x)})()
    block.hybridize()
    return block


def _step_17(n):
    for name, shapes, right in (
        ("dot", [(n.N, 5), (5, 8)], (n.N, 8)),
        ("add", [(n.N, 5)] * 2, (n.N, 5)),
    ):
        actual = there(getattr(n, name).infer(*shapes), f"{name}.infer")
        same(actual, right, f"{name}.infer for rows N")
    net = n.HybridSequential()
    net.add(n.Dense(8, activation="relu"), n.Dense(3))
    net.initialize(n.Xavier())
    net.hybridize()
    params = [net[k].weight for k in range(2)]
    for rows in range(1, 21):
        x, actual = _rows(n, rows), []
        for f in (net, net.forward):
            with n.record():
                y = there(f(x), "a call")
            y.backward()
            actual.append([y.data, *(p.array.grad.data for p in params)])
        names = "result", "first gradient", "second gradient"
        equal_each(names, *actual, f"with {rows} rows, the {{}}")
    count = len(net.plans)
    need(count == 1, f"1 to 20 rows compile {count} plans, but one plan fits them all")
    _plans(n, "x * 2 + 1", [(3, 5), (4, 5), (3, 4), (9, 5)], ["first call", "shape[1] is 4, not 5"])
    lengths = [(2, 5), (3, 5), (2, 5)]
    for text in ("x.sum() * (1 / x.shape[0])", "reshape(x, shape=(-1,))"):
        _plans(n, text, lengths, ["first call", "shape[0] is 3, not 2"])
    _plans(n, "x.sum(1) * x.shape[0]", lengths, ["first call"])


def _plans(n, text, shapes, reasons):
    """Check a hybridized program's results, and the reasons for its recompilations."""
    forward = eval(f"lambda x: {text}", vars(n))
    block = _hybrid(n, forward)
    with without_compiler(n):
        for shape in shapes:
            x = _rows(n, *shape)
            case = f"{text} of shape {shape}, hybridized,"
            equal(called(case, block, x).data, forward(x).data, case)
    actual = block.reasons
    right = len(actual) == len(reasons) and all(
        b in a for a, b in zip(actual, reasons, strict=True)
    )
    need(right, f"{text} of shapes {shapes}: the reasons are {actual} instead of {reasons}")


THEIRS = {"relu": nd.relu, "exp": nd.exp, "dot": nd.dot, "transpose": nd.transpose}


def _step_18(n):
    x, t = np.float32([[0.5, -1], [2, 1]]), np.float32([[1, 0], [-2, 3]])
    texts = ["(x * x).sum(0)", "exp(x).sum(1)", "relu(dot(x, transpose(x)) + 1)", "x.sum() * x"]
    programs = [
        (text, *(eval(f"lambda x: {text}", names) for names in (vars(n), dict(THEIRS))))
        for text in texts
    ]
    both = (random_programs(names, 5, 4) for names in (n, SimpleNamespace(**THEIRS)))
    programs += [(text, f, theirs) for (f, text), (theirs, _) in zip(*both, strict=True)]
    for text, f, theirs in programs:
        y, tangent = called(f"jvp of {text}", n.jvp, f, n.NDArray(x), n.NDArray(t))
        value, right = jvp(theirs, [nd.array(x)], [nd.array(t)])
        equal(y.data, value.asnumpy(), f"jvp: the result of {text}")
        equal(tangent.data, right.asnumpy(), f"jvp: the tangent of {text}")
    constant = n.NDArray(X)
    _, tangent = called("jvp of a constant", n.jvp, lambda x: constant, n.NDArray(x), n.NDArray(t))
    equal(tangent.data, X * 0, "the tangent of a constant")
    y, pullback = there(n.vjp(lambda x: n.dot(x, n.NDArray(X)), n.NDArray(x)), "vjp")
    seed = np.ones(y.shape, "f")
    equal(pullback(n.NDArray(seed)).data, seed @ X.T, "vjp: the pullback of dot(x, w)")

    def slope(x):
        return n.vjp(lambda x: (x * x * x).sum(), x)[1](n.NDArray(np.ones(())))

    actual = n.jvp(slope, n.NDArray(x), n.NDArray(t))[1]
    equal(actual.data, 6 * x * t, "the Hessian-vector product of x * x * x, a jvp of a vjp,")
    need(not n.STATE.recording, "STATE.recording is still set after vjp")
    _batches(n)


def _batches(n):
    """Check that vmap matches a loop, and that its runs don't depend on the batch size."""
    names = vars(n) | {"w": n.NDArray(X.T), "b": n.NDArray(X[0, :2])}
    for text in (
        "x * 2 + 1",
        "relu(x).sum()",
        "x.sum(0) * x",
        "x.sum(1)",
        "exp(dot(x, w) + b).sum(1)",
        "log_softmax(x * 2)",
        "where(x > 0, x, x * x)",
    ):
        f, runs = eval(f"lambda x: {text}", names), []
        for examples in (3, 6):
            xs = np.random.default_rng(0).normal(size=(examples, 2, 3)).astype("f")
            with _counted(n) as counts:
                actual = called(f"vmap of {text}", n.vmap(f), n.NDArray(xs))
            equal(actual.data, np.stack([f(n.NDArray(x)).data for x in xs]), f"vmap of {text}")
            runs.append(len(counts))
        need(runs[0] == runs[1], f"vmap of {text} runs {runs} operators for 3 and 6 examples")
    try:
        actual = n.vmap(n.transpose)(n.NDArray(np.ones((4, 2, 3))))
    except TypeError:
        return
    need(actual.shape == (4, 3, 2), f"vmap of transpose returns the shape {actual.shape}")


@contextlib.contextmanager
def _counted(n):
    """Return a list that gets an entry for each operator that runs."""
    runs, ops = [], [v for v in vars(n).values() if isinstance(v, n.Op)]
    before = {op: op.eager for op in ops}
    for op in ops:
        op.eager = lambda *a, eager=op.eager, **k: (runs.append(1), eager(*a, **k))[1]
    try:
        yield runs
    finally:
        for op, eager in before.items():
            op.eager = eager


def _step_19(n):
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(rows, 4)).astype("f") for rows in (6, 9, 9))
    for name, scale in (("scores near 0", 1), ("scores in the thousands", 1000)):
        arrays = [q * np.float32(scale), k, v]
        theirs = of_this_engine(nd.scaled_dot_product_attention, *(a[None] for a in arrays))
        with without_compiler(n), np.errstate(all="ignore"):
            actual = gradients(n, lambda *a: n.attention(*a), *arrays)
        theirs = [array[0] for array in theirs]  # of the batch
        what = f"{{}} of attention, for {name},"
        equal_each(("the result", "dq", "dk", "dv"), actual, theirs, what)
    xs = [n.NDArray(a) for a in (q, k, v)]
    for x in xs:
        x.attach_grad()
    with n.record():
        y = n.attention(*xs)
    size = len(n.behind([y]))
    need(size == 4, f"the tape has {size} values; q, k, v and the result are enough")
    q, k, v = rng.normal(size=(3, 1000, 4)).astype("f")
    tracemalloc.start()
    try:
        n.attention.eager(q, k, v)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()
    need(peak < 1, f"with 1,000 queries and keys, the peak is {peak:.1f} MB: is a matrix stored?")


# step -> the names it defines, its check, and the message if it's right
STEPS = {
    10: ("law_of_shape law_of_gradient OPS", _step_10, "14 operators have both properties"),
    11: ("greater where", _step_11, "the graph selects, and a branch raises a helpful error"),
    12: ("rewrite PASSES fold", _step_12, "24 random programs give the same bits"),
    13: (
        "chains kernel machine fuse",
        _step_13,
        "one loop per chain, and 24 programs give the same results",
    ),
    14: ("arena settle", _step_14, "nothing is overwritten before its last use"),
    15: ("save load export imports", _step_15, "the same bytes, which both engines load"),
    16: ("launch", _step_16, "two loads and a store per thread, and nothing out of bounds"),
    17: ("N fitting", _step_17, "one plan for 20 lengths, and a reason for every other plan"),
    18: ("vjp jvp vmap Batch", _step_18, "24 tangents, a Hessian-vector product, and 7 batches"),
    19: ("attend attention", _step_19, "the engine's gradients, and memory that grows linearly"),
} | LATER
