"""Checks of the nine steps of nano, the engine that the reader builds.

Uses:    the reader's names, as attributes.
Defines: `STEPS`, from a step to its check, and helpers for the checks of later steps.

Every check starts with small inputs, so that the example in its message is small. This
engine or NumPy computes the expected values. Style isn't checked.
"""

import ast
import itertools
import json
import tempfile
from pathlib import Path

import numpy as np

from minihybrid.core import nd, sym
from minihybrid.core.op import HybridError
from minihybrid.gluon.transform import vjp
from minihybrid_course.exercises.judging import (
    NotYet,
    equal,
    equal_each,
    error_text,
    kind,
    need,
    same,
)
from minihybrid_course.exercises.judging import tried as called


def there(value, what):
    """Return the value; raise if it is None."""
    need(value is not None, f"{what} returns None: code or a `return` is still missing")
    return value


def of(kinds, value, what):
    """Return the value if it is an instance of these types."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    names = " or ".join(k.__name__ for k in kinds)
    there(value, what)
    need(isinstance(value, kinds), f"{what} must return {names}, but it returns {kind(value)}")
    return value


def of_nano(n, value, what):
    """Raise if the value isn't an array of nano."""
    need(value is not None, f"{what} is None: code is still missing")
    need(isinstance(value, n.NDArray), f"{what} must be an NDArray, but it is {kind(value)}")


def raised(error, what, function, *args, **kwargs):
    """Call a function that must raise an error of this type; return its message."""
    try:
        function(*args, **kwargs)
    except error as caught:
        return str(caught)
    except Exception as caught:
        raise NotYet(f"{what} must raise {error.__name__}: {error_text(caught)}") from None
    raise NotYet(f"{what} must raise {error.__name__}, but it raises nothing")


def of_this_engine(f, *arrays):
    """Return the value and the gradients of `f`, by this engine."""
    y, pullback = vjp(f, *map(nd.array, arrays))
    return [y.asnumpy(), *(g.asnumpy() for g in pullback(y.ones_like()))]


# -- the steps -------------------------------------------------------------------------
def _step_1(n):
    double = n.Op("double", lambda a: 2 * a, None)
    need(getattr(double, "name", None) == "double", "Op(...) doesn't store its name")
    shape = of(tuple, double.infer((2, 3)), "Op.infer")
    same(shape, (2, 3), "infer of `2 * a` for shape (2, 3)")
    shape = n.total.infer((2, 3), axis=(0,))
    same(shape, (1, 3), "infer of the sum over axis 0 of (2, 3)", "attributes are lost")

    class Low(n.Value):
        level, shape = 5, (2, 3)

        @staticmethod
        def interpret(op, inputs, attrs):
            return "low", op.name, inputs, attrs

    class High(Low):
        level = 6

        @staticmethod
        def interpret(op, inputs, attrs):
            return "high", op.name, inputs, attrs

    low, high = Low(), High()
    reply = of(tuple, n.transpose(low), "`Op.__call__`, which returns the result of `interpret`,")
    inputs = reply[2]
    need(type(inputs) is tuple, f"interpret gets {kind(inputs)} instead of the tuple of inputs")
    need(
        reply == ("low", "transpose", (low,), {}), f"transpose(x) calls interpret with {reply[1:]}"
    )
    reply = n.reshape(low, shape=(6,))
    need(
        reply[3] == {"shape": (6,)}, f"attributes are lost: reshape passes {reply[3]} to interpret"
    )
    reply = n.dot(low, high)
    need(
        reply[0] == "high",
        "the input with the lower level interprets the operator; it must be the higher one",
    )
    need(reply[2] == (low, high), "the order of the inputs changes")
    for sign, both, number in (("+", n.add, n.add_number), ("*", n.mul, n.mul_number)):
        for text, op, inputs, attrs in (
            (f"x {sign} y", both, (low, high), {}),
            (f"x {sign} 3", number, (low,), {"scalar": 3}),
            (f"3 {sign} x", number, (low,), {"scalar": 3}),
        ):
            reply = called(f"`{text}`", lambda t=text: eval(t, {"x": low, "y": high}))
            need(reply[1] == op.name, f"`{text}` applies {reply[1]} instead of {op.name}")
            need(reply[2:] == (inputs, attrs), f"`{text}` passes {reply[2:]} to interpret")


def _step_2(n):
    a, b = np.float32([[1, 2], [3, 4]]), np.float32([[5, 6], [7, 8]])
    array = n.NDArray(a)
    result = there(array.made_by(n.mul_number, (), {"scalar": 2}), "NDArray.made_by")
    need(result is array, f"made_by returns {kind(result)} instead of the array itself")
    try:
        y = n.NDArray(a) * n.NDArray(b)
    except RecursionError:
        raise NotYet("x * y doesn't end: interpret must pass `data` to op.eager") from None
    of(n.NDArray, y, "NDArray.interpret")
    equal(y.data, (nd.array(a) * nd.array(b)).asnumpy(), "x * y")
    equal(n.NDArray(a).sum().data, a.sum(), "x.sum()")
    x = n.NDArray(a)
    x.attach_grad()
    of_nano(n, x.grad, "x.grad after attach_grad()")
    equal(x.grad.data, 0 * a, "x.grad after attach_grad()")
    need((x * 2).op is None, "outside of record(), x * 2 remembers its operator")
    switch = n.record()
    with switch:
        need(n.STATE.recording is True, "inside record(), STATE.recording is not True")
        y, plain, deep = x * 2, n.NDArray(a) * 2, (x * 2) * 3
    need(n.STATE.recording is False, "after record(), STATE.recording is still set")
    need(y.op is n.mul_number, "inside record(), x * 2 doesn't remember its op")
    need(
        tuple(y.inputs) == (x,) and y.attrs == {"scalar": 2},
        "x * 2 remembers wrong inputs or attrs",
    )
    need(plain.op is None, "a result that depends on no variable is recorded on the tape")
    zero = type("Zero", (n.NDArray,), {"__bool__": lambda self: False})
    late = n.NDArray(a)
    late.grad = zero(0 * a)
    with n.record():
        mixed, late = x * n.NDArray(b), late * 2
    need(
        mixed.op is not None,
        "the product of a variable and a plain array isn't recorded; one variable is enough",
    )
    need(
        late.op is not None,
        "a variable isn't recognized while its gradient is 0; test `grad is not None` instead of "
        "whether `grad` is true",
    )
    with n.record():
        result = there(array.made_by(n.mul_number, (x,), {"scalar": 2}), "NDArray.made_by")
    need(result is array, f"made_by returns {kind(result)} instead of the array itself")
    need(deep.op is not None, "(x * 2) * 3 isn't recorded, although it depends on x")
    try:
        with n.record():
            raise KeyError
    except KeyError:
        need(n.STATE.recording is False, "after an error in the block, recording is still on")
    else:
        raise NotYet("__exit__ suppresses an error of the block, because it returns a true value")


def _gradients(n, f, *arrays):
    """Return the gradients of `f`, by nano's tape."""
    xs, what = [n.NDArray(a) for a in arrays], "x.grad after y.backward()"
    for x in xs:
        x.attach_grad()
    with n.record():
        y = f(*xs)
    before = xs[0].grad
    y.backward()
    need(
        xs[0].grad is not before,
        f"{what} is the same array as before: code is still missing, or it changes the array "
        "instead of replacing it",
    )
    for x in xs:
        of_nano(n, x.grad, f"{what}, whose seed is an NDArray of ones,")
    return [x.grad.data for x in xs]


GRADIENTS = {
    "x * 3": lambda x: x * 3,
    "x + x": lambda x: x + x,
    "x * x": lambda x: x * x,
    "x * x * x": lambda x: x * x * x,
    "x * (x + x * x)": lambda x: x * (x + x * x),
    "(x * x).sum(0) * 2": lambda x: (x * x).sum(0) * 2,
}


def _step_3(n):
    known = n.NDArray.__dict__.get("backward") is n.backward
    need(known, "NDArray has no method backward, or an older one; run the cell of step 3 again")
    x = n.NDArray([[1, -2], [3, 4]])
    x.attach_grad()
    with n.record():
        half = x * x
        y = half + half * x
    order = of((list, tuple), n.behind([y]), "behind")
    need(len(set(order)) == len(order), "behind returns a value twice")
    need(set(order) >= {x, half, y}, f"behind returns {len(order)} of the 4 values")
    for k, value in enumerate(order):
        early = all(i in order[:k] for i in value.inputs)
        need(early, "behind returns a value before one of its inputs")
    try:
        grads = of(dict, n.gradient(y, n.NDArray(np.ones((2, 2)))), "gradient")
    except KeyError as error:
        raise NotYet(
            "gradient reads a gradient before there is one; process the most recent values "
            "first, and store the first gradient of an input instead of adding it "
            f"({error_text(error)})"
        ) from None
    need(x in grads, "gradient returns none for the variable")
    need(grads.get(half) is not None, "gradient returns none for x * x, which the head depends on")
    seed = n.NDArray(np.full((2, 2), 5))
    need(n.gradient(y, seed).get(y) is seed, "the head's gradient isn't the seed")
    for text, f in GRADIENTS.items():
        (actual,), (_, expected) = _gradients(n, f, x.data), of_this_engine(f, x.data)
        equal(actual, expected, f"the gradient of {text}, at x = {x.data.tolist()},")
    with n.record():
        y = x * 3
        z = y * 2
    y.backward(), y.backward()
    equal(x.grad.data, np.full((2, 2), 3), "after a second backward, which replaces x.grad, it")
    z.backward()
    need(y.grad is None, "backward sets `grad` of x * 3, which isn't a variable")
    row = np.float32([10, 20])
    _, actual = _gradients(n, lambda x, r: x * r, x.data, row)
    equal(actual, x.data.sum(0), "the gradient of a row that was broadcast")


def _step_4(n):
    n.STATE.trace = []
    a = n.Symbol((2, 3), "a")
    y = n.Symbol.interpret(n.relu, (a,), {})
    of(n.Symbol, y, "Symbol.interpret")
    need(y.shape == (2, 3), f"relu of a symbol of shape (2, 3) has shape {y.shape}")
    need(
        y.op is n.relu and tuple(y.inputs) == (a,), "the symbol doesn't remember its op and inputs"
    )
    need(
        y.name == "relu1",
        f"the first result after one variable is called {y.name} instead of relu1, which is the "
        "operator's name and the number of symbols before it",
    )
    y = n.reshape(a, shape=(6,))
    need(y.shape == (6,), f"reshape of a symbol to (6,) has shape {y.shape}; use op.infer")
    need(
        y.name == "reshape2",
        f"{y.name} should be called reshape2: the operator's name in lower case, and the number of "
        "symbols before it",
    )
    raised(TypeError, "mixing an array with symbols", n.add, a, n.NDArray([1]))
    graph = of(n.Graph, n.trace(lambda x: x * x * 3 + x, x=(2, 3)), "trace")
    need(
        isinstance(graph.heads, (list, tuple)),
        f"the Graph's heads must be a list of values, but it is {kind(graph.heads)}",
    )
    actual = [x.op.name if x.op else x.name for x in graph.nodes]
    expected = ["x", "broadcast_mul", "_mul_scalar", "broadcast_add"]
    same(actual, expected, "the trace of x * x * 3 + x")
    need(list(graph.heads) == [graph.nodes[-1]], "the head isn't the function's result")
    again = n.trace(lambda x, y: x * y, x=(1,), y=(1,))
    need(len(again.nodes) == 3, f"a second trace has {len(again.nodes)} nodes instead of 3")
    early = n.trace(lambda x: (x * 2, x * 3)[0], x=(1,))
    need(
        list(early.heads) == [early.nodes[1]],
        "the head isn't the function's result, but the symbol that was recorded last",
    )
    other = called("trace(lambda x: x * 2, data=(2,))", n.trace, lambda x: x * 2, data=(2,))
    need(other.nodes[0].name == "data", "a placeholder doesn't have the name passed to trace")


def _step_5(n):
    graph = n.trace(lambda x: x * 3 + x, x=(2,))
    lines = of(str, n.show(graph), "show").splitlines()
    need(len(lines) == 4, f"show returns {len(lines)} lines for 3 nodes and `return`")
    for line, parts in zip(
        lines,
        (
            ("x", "(2,)"),
            ("_mul_scalar", "x", "scalar=3"),
            ("broadcast_add",),
            ("return", graph.heads[0].name),
        ),
        strict=True,
    ):
        for part in parts:
            need(part in line, f"the line `{line}` from show doesn't contain {part}")
    values = called("run(graph, x)", n.run, graph, n.NDArray([1, 2]))
    values = of((list, tuple), values, "run")
    need(
        len(values) == 1,
        f"run returns {len(values)} values; it must be a list with one value per head",
    )
    of(n.NDArray, values[0], "run, which should look up the values of a node's inputs,")
    equal(values[0].data, [4, 8], "run of x * 3 + x on [1, 2]")
    x = n.NDArray([[0.5, -1], [2, 1]])
    for f, text in random_programs(n, 6, 6):
        actual = called(f"run of {text}", n.run, n.trace(f, x=(2, 2)), x)
        equal(actual[0].data, f(x).data, f"run of {text}")
    graph = n.trace(lambda x: (x * 2 + n.Symbol((2,), "late"), x * 3)[0], x=(2,))
    what = "run of x * 2 + late, whose variable `late` is created after x * 2,"
    actual = called(what, n.run, graph, n.NDArray([1, 2]), n.NDArray([10, 20]))
    equal(actual[0].data, [12, 24], what)


def random_programs(n, most, count):
    """Yield random functions of x, with their source: `count` each of 1 to `most` operators."""
    for size, seed in itertools.product(range(1, most + 1), range(count)):
        yield random_program(n, size, seed)


def random_program(n, size, seed):
    """Return a random function of x with `size` operators of nano, and its source.

    It contains duplicate lines and dead ones.
    """
    rng = np.random.default_rng((size, seed))
    steps = [(int(rng.integers(5)), *map(int, rng.integers(0, k + 1, 2))) for k in range(size)]
    if size > 1:
        steps[-2] = steps[0]  # for cse
    signs = ("v{} + v{}", "v{} * v{}", "v{} * 0.5", "v{} + 2", "relu(v{})")
    lines = [f"v{k + 1} = {signs[op].format(i, j)}" for k, (op, i, j) in enumerate(steps)]

    def program(x):
        names = {"v0": x, "relu": n.relu}
        exec("\n".join(lines), names)
        return names[f"v{size}"]

    return program, "; ".join(["v0 = x", *lines])


def _step_6(n):
    x = np.float32([[0.5, -1], [2, 1]])
    for f, text in random_programs(n, 7, 8):
        graph = n.trace(f, x=(2, 2))
        expected = f(n.NDArray(x)).data
        for name in ("cse", "dce"):
            before = _contents(graph)
            small = of(n.Graph, getattr(n, name)(graph), name)
            need(_contents(graph) == before, f"{name} changes its argument: {text}")
            _check_invariants(name, small, text, graph)
            actual = n.run(small, n.NDArray(x))[0].data
            equal(actual, expected, f"after {name}, the value of `{text}`")
    for text, f in (("x + y", lambda x, y: x + y), ("y * 2", lambda x, y: y * 2)):
        graph = n.trace(f, x=(2,), y=(2,))
        for name in ("cse", "dce"):
            _check_invariants(name, getattr(n, name)(graph), f"{text}, of x and y", graph)
    for name in ("cse", "dce"):
        graph = n.trace(lambda x: x * 2 + n.Symbol((2,), "late"), x=(2,))
        small = [node.name == "late" for node in getattr(n, name)(graph).nodes]
        need(
            small == [False, False, True, False],
            f"{name} moves the variable `late`, which is created after x * 2, to another place; "
            "keep the order, because step 7 divides the program at a variable",
        )
    small = n.run(n.cse(n.trace(lambda x: x * 2 + x * 3, x=(2, 2))), n.NDArray(x))[0].data
    equal(small, 5 * x, "after cse, the value of x * 2 + x * 3, whose products differ in `scalar`,")
    for name, f, most in (
        ("cse", lambda x: (x * x + 1) * (x * x + 1), 3),
        ("dce", lambda x: (x * 2, x * 3)[1], 1),
        ("dce", lambda x: (x * 2 + 1, x * 3)[1], 1),
    ):
        graph = getattr(n, name)(n.trace(f, x=(2, 2)))
        count = sum(node.op is not None for node in graph.nodes)
        wasted = "(x * x + 1) * (x * x + 1)" if name == "cse" else "a program with dead code"
        need(count == most, f"after {name}, {wasted} has {count} operators; {most} are enough")


def _contents(graph):
    """Return everything in a graph that a pass could change."""
    nodes = [(x, x.op, x.name, x.shape, tuple(x.inputs), repr(x.attrs)) for x in graph.nodes]
    return nodes, list(graph.heads), list(graph.variables)


def _check_invariants(name, graph, text, before):
    """Check that nodes follow their inputs, are unique, and variables remain."""
    seen = set()
    for node in graph.nodes:
        for i in node.inputs:
            need(i in seen, f"after {name}, {node.name} uses a node that isn't before it: {text}")
        need(node not in seen, f"after {name}, {node.name} is in the graph twice: {text}")
        seen.add(node)
    need(set(graph.heads) <= seen, f"after {name}, the head isn't in the graph: {text}")
    gone = [v.name for v in before.variables if v.name not in [w.name for w in graph.variables]]
    need(not gone, f"after {name}, the variable {', '.join(gone)} is missing: {text}")


def _step_7(n):
    graph = n.trace(lambda x, w: n.relu(n.dot(x, w)).sum(), x=(2, 3), w=(3, 4))
    n.trace(lambda x: x, x=(2,))  # the graph isn't the most recent trace
    both = of(n.Graph, n.with_gradient(graph), "with_gradient")
    need(
        len(both.heads) == 3,
        f"with_gradient returns {len(both.heads)} heads instead of 3, a value and 2 gradients",
    )
    need(both.variables[-1].name == "g", "the last variable isn't called g")
    for head, shape in zip(both.heads, [(), (2, 3), (3, 4)], strict=True):
        need(head.shape == shape, f"a head has shape {head.shape} instead of {shape}")
    _check_invariants(
        "with_gradient", both, "does STATE.trace start with all nodes of the graph?", graph
    )
    text = of(str, n.source(both), "source")
    need(text.startswith("def plan("), "the source doesn't start with `def plan(`")
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise NotYet(f"the source isn't valid Python: {error}") from None
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype("f") for s in [(2, 3), (3, 4)])
    plan = there(n.compiled(both), "compiled")
    y, back = of(tuple, plan(x, w), "the plan, whose results are its value and `backward`,")
    theirs = of_this_engine(lambda x, w: nd.relu(nd.dot(x, w)).sum(), x, w)
    theirs[0] = theirs[0].reshape(())
    equal(y, theirs[0], "the plan's value")
    actual = back(np.float32(1))
    need(len(actual) == 2, f"backward returns {len(actual)} gradients for 2 variables")
    equal_each("xw", actual, theirs[1:], "the plan's gradient of {}")
    for node in both.nodes:
        node.name = node.name if node.name == "g" else f"chosen by {node.name}"
    need(
        "chosen" not in n.source(both),
        "the source contains a name that a user chose; number the names instead",
    )
    sole = n.compiled(n.with_gradient(n.trace(lambda x: x * 2, x=(2,))))
    actual = sole(np.ones(2, "f"))[1](np.ones(2, "f"))
    need(
        isinstance(actual, (tuple, list)),
        "backward of one variable doesn't return a tuple; end it with a comma",
    )
    graph = n.trace(lambda x, u: x * 2, x=(2,), u=(2,))
    both = called("with_gradient of x * 2, which doesn't use u,", n.with_gradient, graph)
    g = both.variables[-1].shape
    need(g == (2,), f"g, the gradient of a head of shape (2,), has shape {g}")
    unused = n.compiled(both)
    equal(unused(np.ones(2), np.ones(2))[1](np.ones(2))[1], [0, 0], "an unused gradient")


def _step_8(n):
    p = n.Parameter("p")
    p.draw = np.ones
    x = n.NDArray([1, 2])
    value = there(p.value(x, (2,)), "Parameter.value")
    equal(value.data, [1, 1], "a parameter's first value")
    need(value is p.array and p.value(x, (2,)) is value, "a second call draws new values")
    need(value.grad is not None, "the parameter's array has no grad, but it's a variable")
    late, n.STATE.trace = n.Parameter("late"), []
    of(n.Symbol, late.value(n.Symbol((2,), "x"), (2,)), "Parameter.value, called with a symbol,")
    graph = n.trace(lambda x: x * p.value(x, (2,)) + p.value(x, (2,)), x=(2,))
    names = [v.name for v in graph.variables]
    need(names == ["x", "p"], f"a parameter that is used twice creates the variables {names}")
    net, calls = _scaling(n)
    eager = there(net(x), "calling a Block")
    equal(eager.data, [2, 6], "the block's eager value")
    first, runs = _scaling(n)
    first.hybridize()
    try:
        y = of(n.NDArray, first(x), "a hybridized Block")
    except AttributeError:
        need(
            first.p.array is not None,
            "a parameter that is first used in a trace draws no values; its shape is known, so "
            "draw them there, and `forward` doesn't have to run twice",
        )
        raise
    equal(y.data, [2, 6], "the first value of a block that was hybridized before")
    need(len(runs) == 1, f"the first call of a hybridized block runs `forward` {len(runs)} times")
    net.hybridize()
    calls.clear()
    for data in ([1, 2], [3, 4], [5, 6]):
        data = np.float32(data)
        y = of(n.NDArray, net(n.NDArray(data)), "a hybridized Block")
        equal(y.data, data * (data + 1), "a hybridized block's value")
    need(
        len(calls) == 1, f"3 calls with one shape ran `forward` {len(calls)} times instead of once"
    )
    called("a hybridized block, called with a second shape,", net, n.NDArray([1, 2, 3]))
    net(n.NDArray([1, 2]))
    need(len(net.plans) == 2, f"after two shapes, there are {len(net.plans)} plans instead of 2")
    graph = of(n.Graph, getattr(net, "graph", None), "`graph` of a block, its most recent trace,")
    names = [v.name for v in graph.variables]
    need(
        names == ["data", "p"],
        f"`graph` of a block has the variables {names} instead of ['data', 'p']; it's the trace of "
        "`forward` with a placeholder called data, without the backward pass",
    )
    _several(n)
    twice = n.Block()
    twice.inner, twice.forward = net, lambda x: net(net(x))
    twice.hybridize()
    equal(twice(n.NDArray([1, 2])).data, [6, 42], "a hybridized block in a hybridized block")
    x.attach_grad()
    with n.record():
        y = (net(x) * 2).sum()
    called("y.backward() after a hybridized block", lambda: (y.backward(), y)[1])
    equal(x.grad.data, [6, 10], "hybridized, the gradient of (x * (x + p)).sum() * 2")
    equal(net.p.array.grad.data, [6], "hybridized, the gradient of p")
    net.p.array.data = net.p.array.data * 2
    equal(net(x).data, [3, 8], "after a change of p, y")


def _several(n):
    """Check a block with an unused parameter, another order, and work that passes remove."""
    runs = []
    tick = n.Op("tick", lambda a: (runs.append(a), a + 0)[1], lambda g, y, a: (g,))
    net, params = n.Block(), {name: n.Parameter(name) for name in ("a", "unused", "b")}
    vars(net).update(params)
    for k, p in enumerate(params.values(), 2):
        p.draw = lambda shape, k=k: np.full(shape, k)
    net.forward = lambda x: (
        tick(x) * params["b"].value(x, (1,)) + tick(x) + params["a"].value(x, (1,))
    )
    net.hybridize()
    what = "hybridized, x * b + x + a, in a block whose parameters are a, unused and b,"
    x = n.NDArray([1, 2])
    called(what, net, x)
    runs.clear()
    equal(called(what, net, x).data, [7, 12], what)
    need(
        len(runs) == 1,
        f"a plan computes the same operator on the same input {len(runs)} times; apply cse and "
        "dce before compiled",
    )


def _scaling(n):
    """Return a block that computes x * (x + p), with p = 1, and a list of its calls."""
    calls = []

    class Scaling(n.Block):
        def __init__(self):
            self.p = n.Parameter("p")
            self.p.draw = np.ones

        def forward(self, x):
            calls.append(x)
            return x * (x + self.p.value(x, (1,)))

    return Scaling(), calls


def _step_9(n):
    net, part = n.Block(), _scaling(n)[0]
    net.part = part
    net.forward = lambda x: (n.reshape(part(x), shape=(-1, 1)) * 2, x * 100)[0]
    net.hybridize()
    x = n.NDArray([1, 2])
    net(x)
    part.p.array.data = part.p.array.data * 3
    with tempfile.TemporaryDirectory() as folder:
        files = there(net.export(f"{folder}/net"), "export")
        for file in files:
            need(Path(file).exists(), f"export returns {Path(file).name}, which doesn't exist")
        _is_mxnets(files[0])
        again = called("imports", n.SymbolBlock.imports, files[0], ["data"], files[1])
        of(n.SymbolBlock, again, "imports")
        _runs_no_code(n, folder)
    y = of(n.NDArray, called("the loaded block", again, x), "SymbolBlock.forward")
    need(
        not np.array_equal(y.data, [100, 200]),
        "the loaded block returns dead code, x * 100, because the last node of the file isn't the "
        "output; write the nodes of dce(block.graph)",
    )
    equal(y.data, [[8], [20]], "the loaded block's value")
    y = again(n.NDArray([1, 2, 3]))
    equal(y.data, [[8], [20], [36]], "the loaded block's value for 3 elements")
    again.hybridize()
    equal(again(x).data, [[8], [20]], "the loaded block's hybridized value")


def _runs_no_code(n, folder):
    """Check that `imports` doesn't evaluate the text of an attribute."""
    variable = {"op": "null", "name": "data", "attrs": {}, "inputs": []}
    node = {"op": "_mul_scalar", "name": "y", "attrs": {"scalar": "1 + 1"}, "inputs": [[0, 0, 0]]}
    path = Path(folder, "code-symbol.json")
    path.write_text(json.dumps({"nodes": [variable, node]}))
    np.savez(f"{folder}/code.npz")
    try:
        block = n.SymbolBlock.imports(str(path), ["data"], f"{folder}/code.npz")
    except Exception:
        return
    need(
        block.program.nodes[-1].attrs != {"scalar": 2},
        "imports runs code from the file: it evaluates `1 + 1`; use json.loads",
    )


def _is_mxnets(path):
    """Check that a file has MXNet's format, and that this engine reads it."""
    text = of(dict, json.loads(Path(path).read_text()), "the program's file, read by json.loads,")
    for node in of(list, text.get("nodes"), '"nodes" in the file'):
        name, attrs = node.get("name"), node.get("attrs", {})
        texts = all(isinstance(v, str) for v in attrs.values())
        need(texts, f"the attributes of {name} are {attrs}, but their values must be strings")
    try:
        sym.load(str(path))
    except HybridError as error:
        raise NotYet(f"the book's engine can't load the program: {error}") from None


# step -> the names it defines, its check, and the message if it's right
STEPS = {
    1: ("Op Value add", _step_1, "operators don't need to know about arrays"),
    2: ("NDArray STATE record", _step_2, "arrays compute, and record when they should"),
    3: ("behind gradient backward", _step_3, "its gradients equal minihybrid's"),
    4: ("Symbol Graph trace", _step_4, "a function that runs on symbols records itself"),
    5: ("show run", _step_5, "36 random programs give the same results as graphs"),
    6: ("cse dce", _step_6, "56 random programs shrink and give the same results"),
    7: ("with_gradient source compiled", _step_7, "its source computes minihybrid's gradients"),
    8: ("Parameter Block", _step_8, "one plan per shape, recorded as one operator"),
    9: ("export SymbolBlock imports", _step_9, "the network runs again without its class"),
}
