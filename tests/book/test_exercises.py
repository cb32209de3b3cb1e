"""Exercises answer back: each checker knows right, three wrong, nothing, noise, and loops."""

import json
import re
import tempfile
import time
import warnings
from collections import Counter
from types import SimpleNamespace

import answers_attention
import answers_devices
import answers_effects
import answers_formats
import answers_guards
import answers_inside
import answers_model
import answers_schedules
import answers_threads
import answers_transforms
import make_hints
import numpy as np
import pytest
from minihybrid_course import exercises as package
from minihybrid_course.building import stage
from minihybrid_course.exercises import TABLE, Exercises, judging
from minihybrid_course.exercises.ch25 import positive
from minihybrid_course.exercises.judging import Parts, fingerprint, normalized

import minihybrid as mx
from minihybrid.core.graph import Graph, apply
from minihybrid.core.op import HybridError, Node, Spec
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.core.sym import trace
from minihybrid.gluon import nn
from minihybrid.ops import OPS
from minihybrid.simt import cuda, float32
from minihybrid.simt.cuda import Kernel
from minihybrid.simt.driver import SimulatedDriver


# -- what readers hand in ----------------------------------------------------------------
def image_of(*shape):
    net = nn.HybridSequential()
    net.add(nn.Dense(64, activation="relu"), nn.Dense(10))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 8, 8)))
    return lambda: net(mx.nd.zeros(shape))


def merge_lines(lines, form="({})", known_too=True):
    known = {}
    for line in lines:
        name, expression = line.split(" = ")
        words = (known.get(word, word) for word in expression.split())
        known[name] = form.format(" ".join(words) if known_too else expression)
    return known[name]


def sorting(ops=("elemwise_mul",), fresh=True):
    def sort_inputs(graph):
        def rule(node, inputs, emit):
            if node.op is None or node.op.name not in ops:
                return None
            inputs = inputs if fresh else node.inputs
            inputs = tuple(sorted(inputs, key=lambda ref: ref[0].name))
            return [(emit(Node(node.op, inputs, node.attrs, node.name, node.specs)), 0)]

        return rewrite(graph, rule)

    return sort_inputs


def product_to_sum(graph):
    def rule(node, inputs, emit):
        if node.op is not OPS["elemwise_mul"]:
            return None
        return [(emit(apply(OPS["elemwise_add"], inputs, {}, node.name)), 0)]

    return rewrite(graph, rule)


def n_traces(block, *inputs, forget=True, clean=True):
    inner, count = block.hybrid_forward, 0

    def counted(*args, **kwargs):
        nonlocal count
        count += 1
        return inner(*args, **kwargs)

    block.hybrid_forward = counted
    if forget:
        block.hybridize()
    for value in inputs:
        block(value)
    if clean:
        del block.hybrid_forward
    return count


def n_inputs(block, *inputs):
    n_traces(block, *inputs)
    return len(inputs)


def n_shapes(block, *inputs):
    n_traces(block, *inputs)
    return len({x.shape for x in inputs})


def changes_class(block, *inputs):
    inner = type(block).hybrid_forward
    type(block).hybrid_forward = lambda self, F, x: inner(self, F, x)
    return n_traces(block, *inputs)


def trace_error():
    return mx.sym.var("price") * mx.nd.ones(2)


def checkpoint(f, x, once=False, tape=False, handed=True, copy=mx.nd.NDArray.detach):
    def gradient(g):
        again = copy(x)
        again.attach_grad()
        with mx.autograd.record():
            y = f(again)
        y.backward(*([g] if handed else []))
        return again.grad

    if once:
        gradient(x)
    if tape:
        x.attach_grad()
        with mx.autograd.record():
            return f(x), gradient
    return f(x), gradient


def checkpoint_times_g(f, x):
    y, gradient = checkpoint(f, x, handed=False)
    return y, lambda g: gradient(g) * g


def train_whole(model, trainer, x, label, parts):
    with mx.autograd.record():
        loss = model(x, label)
    loss.backward()
    trainer.step(len(x))


def signs(graph, new=True, all_of_them=False):
    minus = OPS["negative"]

    def rule(node, inputs, emit):
        old = inputs if new else node.inputs
        if node.op is minus and all_of_them:
            return [inputs[0]]
        if node.op is minus and old[0][0].op is minus:
            return [old[0][0].inputs[0]]
        return None

    return rewrite(graph, rule)


def boxes_of(last):
    """Five boxes that fit badly, if the last has 448 bytes."""
    return {0: (0, 0, 192), 1: (2, 3, 128), 2: (3, 3, 256), 3: (3, 6, 64), 4: (4, 5, last)}


def mean_costs(order, drift=1, divide=True, median=False):
    costs = {}
    for turn, name in enumerate(order):
        costs.setdefault(name, []).append(100 + drift * turn)
    if median:
        return {name: float(np.median(c)) for name, c in costs.items()}
    return {name: sum(c) / len(c) if divide else sum(c) for name, c in costs.items()}


def pays_after(first_s, eager_s, hybrid_s, saved=True, inf=float("inf")):
    saved_s = eager_s - hybrid_s if saved else eager_s
    return first_s / saved_s if saved_s > 0 else inf


def exported(*names, made=True):
    def act():
        net = nn.Dense(2, in_units=3, prefix="layer_")
        net.initialize()
        net.hybridize()
        net(mx.nd.ones((1, 3)))
        with tempfile.TemporaryDirectory() as folder:
            graph, params = net.export(f"{folder}/one")
            return mx.gluon.SymbolBlock.imports(graph if made else "x.json", [*names], params)

    return act


def read_text(*words):
    def act():
        text = mx.sym.relu(mx.sym.var("x")).tojson().replace(*words)
        with warnings.catch_warnings(action="ignore"):  # of an unknown operator
            return mx.sym.fromjson(text).eval(x=mx.nd.ones(2))

    return act


def count_operators(function, *shapes, variables=False, once=False, n=None):
    specs = {f"x{i}": Spec(s, np.dtype("float32")) for i, s in enumerate(shapes[:n])}
    graph, _ = trace(function, specs)
    names = [node.op.name if node.op else None for node in graph.nodes if variables or node.op]
    return Counter(set(names) if once else names)


def residual(add=True, child=True, twice=False):
    class Residual(mx.gluon.HybridBlock):
        def __init__(self, block):
            super().__init__()
            self.block = block if child else SimpleNamespace(call=block)

        def hybrid_forward(self, F, x):
            inner = (self.block if child else self.block.call)(x)
            x = x.detach() if add == mx.nd.NDArray.detach else x
            return inner + inner if twice else x + inner if add else inner

    return Residual


def reversing(graph, nodes=slice(None, None, -1)):
    return Graph(graph.nodes[nodes], graph.heads)


def net_of_five(*shape):
    def act():
        net = nn.Dense(2, in_units=5)
        net.initialize()
        return net(mx.nd.ones(shape))

    return act


# What is written with nano, by a reader of chapters 04 to 06.
def with_nano(text, name):
    """What a text defines under a name, on a nano of its own."""
    exec(stage(9) + text, names := {})
    return names[name]


def subtracting(minus="self * -1", difference="self + other * -1"):
    text = "\nas_value = lambda x: x if isinstance(x, Value) else NDArray(x)\n"
    text += f"Value.__sub__ = lambda self, other: {difference}\n"
    return with_nano(text + f"Value.__neg__ = lambda self: {minus}" * bool(minus), "NDArray")


def exp_with(rule, eager="np.exp"):
    return with_nano(f"exp = Op('exp', {eager}, lambda g, y, a: {rule})", "exp")


TWICE = """
def untwist(graph):
    new = {}
    for x in graph.nodes:
        inputs = tuple(new[i] for i in x.inputs)
        twisted = x.op is transpose and inputs[0].op is transpose
        again = Symbol(x.shape, x.name, x.op, inputs, x.attrs) if x.op else x
        new[x] = inputs[0].inputs[0] if twisted else again
    return dce(Graph(new.values(), [new[h] for h in graph.heads]))
"""

PASS = """
def improved(graph):
    STATE.trace, new = list(graph.variables), {{}}
    for node in graph.nodes:
        inputs = [{new}[i] for i in node.inputs]
        if node.op is {op} and inputs[0].op is {op}:
            new[node] = {result}
        else:
            new[node] = node.op(*inputs, **node.attrs) if node.op else node
    return {drop}(Graph(STATE.trace, [new[h] for h in graph.heads]))
"""


def nano_pass(op, result, new="new", drop="dce"):
    return with_nano(PASS.format(op=op, result=result, new=new, drop=drop), "improved")


def folded(scalar="node.attrs['scalar'] * inputs[0].attrs['scalar']", inner="", **how):
    inner = inner or "inputs[0].inputs[0]"
    return nano_pass("mul_number", f"mul_number({inner}, scalar={scalar})", **how)


def sums_folded():
    """A pass that turns `x + 2 + 3` into `x + 6`, beside what it should do."""
    text = PASS.replace(
        "node.op is {op} and inputs[0].op is {op}",
        "node.op in (mul_number, add_number) and inputs[0].op is node.op",
    )
    product = "node.attrs['scalar'] * inputs[0].attrs['scalar']"
    result = f"node.op(inputs[0].inputs[0], scalar={product})"
    return with_nano(text.format(op="", result=result, new="new", drop="dce"), "improved")


def untwisted(result="inputs[0].inputs[0]", **how):
    return nano_pass("transpose", result, **how)


def nano_error(expression):
    return with_nano(f"act = lambda: {expression}", "act")


NEVER_CALLED = "(lambda net: (net.hybridize(), net.export('never')))"


# What is written with the engine.
def stubborn(F, x):
    x = x.reshape((x.shape[0], -1))
    largest = x.asnumpy().max()
    return x / float(largest) if largest > 2 else x


def mended(always=False, axis=None, flat=True):
    def function(F, x):
        x = x.reshape((0, -1)) if flat else x
        largest = x.max() if axis is None else x.max(axis=axis, keepdims=True)
        return x / largest if always else F.where(largest > 2, x / largest, x)

    return function


def second_step(first=True, second=True, rows=(2,)):
    def act():
        net = nn.Dense(1, in_units=2)
        net.initialize()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        with mx.autograd.record():
            loss = net(mx.nd.ones((2, 2)))
        loss.backward()
        if first:
            trainer.step(2)
        if second:
            trainer.step(*rows)

    return act


def train_in_parts(add=True, zero=True, each=False, part=False):
    def function(model, trainer, x, label, parts):
        for param in model.collect_params().values():
            if add and param.grad_req != "add":  # which would set the gradient to zero
                param.grad_req = "add"
        size = len(x) // parts
        for i in range(0, len(x), size):
            with mx.autograd.record():
                loss = model(x[i : i + size], label[i : i + size])
            loss.backward()
            if each:
                trainer.step(len(x))
        if not each:
            trainer.step(size if part else len(x))
        if zero:
            model.collect_params().zero_grad()

    return function


class Stopwatch:
    def __enter__(self):
        self.started_s = time.perf_counter()
        return self

    def __exit__(self, *error):
        self.elapsed_s = time.perf_counter() - self.started_s


def words(line="{description}: {time} s", stop=True, early=False, own=False):
    class Words(Stopwatch):
        def __init__(self, description):
            self.description = description

        def __exit__(self, *error):
            if stop:
                super().__exit__(*error)
            if line:
                time_s = getattr(self, "elapsed_s", 0)
                print(line.format(description=self.description, time=time_s))

    class Early(Words):
        def __enter__(self):
            print(self.description if early else "", end="")
            return super().__enter__()

    return Early if early or own else Words


def same_answers(block, other, x, equal=np.array_equal):
    return equal(block(x).asnumpy(), other(x).asnumpy())


def same_weights(block, other, x):
    return np.array_equal(block.weight.data().asnumpy(), other.weight.data().asnumpy())


def halve(F, x, turns=8, alone=False, always=False):
    for _ in range(turns):
        x = x * 0.5 if always else F.where((x if alone else x.max()) > 1, x * 0.5, x)
    return x


def halve_while(F, x):
    while x.max() > 1:
        x = x * 0.5
    return x


def make_graph(function, *arrays, show=True, give=False):
    graph, _ = trace(function, {f"x{k}": Spec(a.shape, a.dtype) for k, a in enumerate(arrays)})
    if show:
        print(graph.show())
    return graph if give else None


def prints_numbers(function, *arrays):
    print(function(*arrays))


# Kernels, each followed by wrong ones.
@cuda.jit
def any_positive(a, out):
    i = cuda.grid(1)
    if a[i] > 0:
        cuda.atomic.max(out, 0, 1)


@cuda.jit
def any_with_a_race(a, out):
    i = cuda.grid(1)
    if a[i] > 0:
        out[0] = 1


@cuda.jit
def counts_positive(a, out):
    i = cuda.grid(1)
    if a[i] > 0:
        cuda.atomic.add(out, 0, 1)


@cuda.jit
def looks_at_one(a, out):
    i = cuda.grid(1)
    if i == 0 and a[i] > 0:
        out[0] = 1


@cuda.jit
def never_ends(a, out):
    i = cuda.grid(1)
    while i >= 0:
        out[0] = 1


@cuda.jit
def big_sum(a, out):
    s = cuda.shared.array(32, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = a[i] if i < a.size else float32(0)
    cuda.syncthreads()
    half = 16
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, s[0])


@cuda.jit
def sum_of_atomics(a, out):
    i = cuda.grid(1)
    if i < a.size:
        cuda.atomic.add(out, 0, a[i])


@cuda.jit
def sum_without_a_guard(a, out):
    s = cuda.shared.array(32, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = a[i]
    cuda.syncthreads()
    if t == 0:
        total = float32(0)
        for k in range(32):
            total += s[k]
        cuda.atomic.add(out, 0, total)


@cuda.jit
def sum_without_an_atomic(a, out):
    s = cuda.shared.array(32, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = a[i] if i < a.size else float32(0)
    cuda.syncthreads()
    if t == 0:
        total = float32(0)
        for k in range(32):
            total += s[k]
        out[0] += total


@cuda.jit
def one_tile(a, out):
    s = cuda.shared.array(4, float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    out[i] = s[3 - i]
    s[i] = out[i]


def launched(kernel, n, threads):
    return lambda: kernel[1, threads](np.ones(n, "float32"), np.zeros(n, "float32"))


def freed(what):
    def act():
        driver = SimulatedDriver()
        _, address = driver.cuMemAlloc(64)
        if what:
            driver.cuMemFree(address)
        if what == "twice":
            driver.cuMemFree(address)
        return driver.heap.bytes(address, 64)

    return act


# exercise -> the right answer, and wrong ones with words of what is said about them
ANSWERS = {
    "0.1": (
        (8970, 3),
        [
            ((4810, 3), "original network"),
            ((8970, 2), "its own kernel"),
            ((4160, 3), "new layer alone"),
        ],
    ),
    "0.2": (
        image_of(1, 7, 7),
        [
            (image_of(1, 8, 8), "it expects 8 by 8 pixels"),
            (image_of(7, 7), "the batch axis is missing"),
            (lambda: nett(0), "run the cells above"),
        ],
    ),
    "0.3": (
        (0.9, 0.4),
        [((0.9, 0.9), "twice"), ((0.4, 0.9), "wrong order"), ((90, 40), "number of images")],
    ),
    "1.1": (
        (3, 2),
        [((2, 3), "you swapped"), ((3, 3), "called once here"), ((4, 2), "not an operator")],
    ),
    "1.2": (
        trace_error,
        [
            (lambda: mx.nd.ones(2) * mx.nd.ones(2), "it returned an NDArray"),
            (lambda: mx.sym.var("price") * mx.sym.var("b"), "it returned a Symbol"),
            (lambda: pricee * 2, "run the cells above"),
        ],
    ),
    "1.3": (
        merge_lines,
        [
            (lambda lines: merge_lines(lines, "{}"), "in parentheses"),
            (lambda lines: merge_lines(lines, known_too=False), "still contains s"),
            (lambda lines: lines[-1], "has no `=`"),
            (list, "a list of 1"),
        ],
    ),
    "1.4": (
        (3, 1),
        [
            ((2, 1), "also contains an operator"),
            ((3, 3), "calls only that"),
            ((1, 1), "each infix operator"),
        ],
    ),
    "2.1": (
        48,
        [(24, "output also needs memory"), (72, "buffer of q"), (96, "don't count the inputs")],
    ),
    "2.2": (
        lambda graph: Graph(graph.nodes[1:], graph.heads),
        [
            (lambda graph: graph, "drop only graph.nodes[0]"),
            (lambda graph: graph.nodes[1:], "but yours returns a tuple"),
            (lambda graph: Graph(graph.nodes[:-1], graph.heads), "drop only graph.nodes[0]"),
            (lambda graph: Graph(graph.nodes[2:], graph.heads), "drop only graph.nodes[0]"),
        ],
    ),
    "2.3": (
        sorting(),
        [
            (lambda graph: graph, "cse leaves 3 operators of `x * y + y * x`"),
            (sorting(("elemwise_mul", "elemwise_sub")), "changes the semantics of `y - x`"),
            (product_to_sum, "changes the semantics of `x * y`"),
            (sorting(fresh=False), "doesn't come before"),
            (lambda graph: graph.nodes, "a pass must return a Graph"),
        ],
    ),
    "3.1": (
        lambda F, x: x + F.random.uniform(shape=(1, 1)),
        [
            (lambda F, x: x + np.random.rand(), "drawn during tracing"),
            (lambda F, x: x + 1, "nothing random"),
            (lambda F, x: F.random.uniform(shape=(2, 2)), "doesn't depend on x"),
            (lambda F, x: F.random.uniform(shape=(1, 1)), "has shape (2, 2), but"),
        ],
    ),
    "3.2": (
        lambda F, x: x.sum(axis=0),
        [
            (lambda F, x: sum(row for row in x), "hybridized, the block raises"),
            (lambda F, x: x.sum(), "a single sum"),
            (lambda F, x: x.sum(axis=1), "one element per row"),
            (lambda F, x: x.sum(axis=0, keepdims=True), "has shape (1, 3)"),
        ],
    ),
    "3.3": (
        n_traces,
        [
            (n_inputs, "with one input, three times, it returns 3"),
            (n_shapes, "two types"),
            (changes_class, "the class Scaled"),
            (lambda block, *xs: n_traces(block, *xs, forget=False), "the code ran"),
            (lambda block, *xs: n_traces(block, *xs, clean=False), "still counts afterward"),
        ],
    ),
    "3.5": (
        mended(),
        [
            (stubborn, "hybridized, the block raises"),
            (mended(always=True), "nothing is divided by it"),
            (lambda F, x: x.reshape((0, -1)), "all are divided by it"),
            (mended(axis=1), "for x = [[1.0, 8.0], [2.0, 4.0]] the result is"),
            (mended(flat=False), "merge all axes but the first"),
        ],
    ),
    "4.1": (
        subtracting(),
        [
            (subtracting(minus=""), "bad operand type for unary -"),
            (subtracting(difference="other + self * -1"), "`a - b` is -4 at [0] instead of 4"),
            (
                subtracting(difference="NDArray(self.data - getattr(other, 'data', other))"),
                "nothing is on the tape",
            ),
            (subtracting(difference="self + other.data * -1"), "AttributeError"),
            (
                subtracting(difference="Op('sub', np.subtract, None)(self, as_value(other))"),
                "is a new operator, sub",
            ),
        ],
    ),
    "4.2": (
        exp_with("(g * y,)"),
        [
            (exp_with("(y,)"), "doesn't use g"),
            (exp_with("(g * a,)"), "what is the derivative of exp"),
            (exp_with("g * y"), "add a comma"),
            (exp_with("(g * y,)", "np.exp2"), "exp of [0, 1, 2] is 2 at [1] instead of 2.71828"),
            (with_nano("exp = Op('exp', np.exp, ...)", "exp"), "the dots are still there"),
            (np.exp, "pass an Op with its gradient rule instead of the function exp"),
        ],
    ),
    "4.3": (
        (3, 12, 27),
        [
            ((6, 24, 54), "instead of adding"),
            ((0, 0, 0), "frees the tape"),
            ((1, 4, 9), "a factor"),
        ],
    ),
    "4.4": (
        (5, 4),
        [
            ((4, 3), "applies two operators"),
            ((5, 5), "no operator created x"),
            ((6, 5), "one value"),
        ],
    ),
    "4.5": (
        (404000, 4000),
        [
            ((400000, 4000), "returns x itself"),
            ((808000, 8000), "four bytes, not eight"),
            ((404000, 404000), "remembers no inputs"),
            ((404000, 0), "y itself needs"),
        ],
    ),
    "5.1": ((4, 3), [((3, 3), "are two nodes"), ((4, 4), "are one"), ((4, 2), "one node twice")]),
    "5.2": (
        folded(),
        [
            (lambda graph: graph, "`x * 2 * 3` has 2 operators"),
            (
                folded(scalar="node.attrs['scalar'] + inputs[0].attrs['scalar']"),
                "changes the semantics",
            ),
            (folded(drop=""), "it's dead code"),
            (sums_folded(), "changes the semantics of `x + 2 + 3`"),
            (lambda graph: list(graph.nodes), "a pass must return a Graph"),
            (folded(inner="node.inputs[0].inputs[0]"), "doesn't come before it"),
        ],
    ),
    "5.3": (
        nano_error("trace(lambda x: x * NDArray([1, 2, 3]), x=(3,))"),
        [
            (nano_error("trace(lambda x: x * 3, x=(3,))"), "it returned a Graph"),
            (nano_error("trace(lambda x: x if x else x, x=(3,))"), "branches on a symbol"),
            (nano_error("trace(lambda x: x)"), "a shape per argument"),
            (nano_error("tracee(lambda x: x)"), "run the cells above"),
        ],
    ),
    "6.1": (3, [(4, "finds its plan"), (1, "has fixed shapes"), (2, "three different")]),
    "6.2": (
        untwisted(),
        [
            (lambda graph: graph, "`transpose(transpose(x))` has 2 operators, but 0 are enough"),
            (untwisted("inputs[0]"), "changes the semantics of `transpose(transpose(x))`"),
            (untwisted(drop=""), "it's dead code"),
            (with_nano(TWICE, "untwist"), "x is in the list twice"),
            (lambda graph: graph.nodes, "a pass must return a Graph"),
            (
                lambda graph: type(graph)(graph.nodes, graph.variables),
                "changes the semantics of `trans",
            ),
        ],
    ),
    "6.3": (
        (5, 5),
        [((1, 1), "couldn't update them"), ((4, 4), "also an argument"), ((5, 4), "never used")],
    ),
    "6.4": (
        nano_error(f"{NEVER_CALLED}(Dense(3))"),
        [
            (lambda: ("a.json", "a.npz"), "the files were written"),
            (nano_error("Dense(3).exported('never')"), "something else is missing"),
            (lambda: nn.Dense(3).export("never"), "the engine's message"),
            (nano_error("nett.export('never')"), "run the cells above"),
        ],
    ),
    "7.1": (
        (512, 24576),
        [((128, 24576), "original"), ((512, 32768), "had before"), ((256, 384), "double")],
    ),
    "7.2": (
        second_step(),
        [
            (second_step(second=False), "call it a second time"),
            (second_step(first=False, rows=()), "rows behind the loss"),
            (lambda: trainerr.step(32), "run the cells above"),
        ],
    ),
    "7.3": (
        train_in_parts(),
        [
            (train_in_parts(add=False), "grad_req is 'add'"),
            (train_in_parts(zero=False), "not for the second"),
            (train_in_parts(each=True), "called trainer.step 2 times"),
            (train_in_parts(part=True), "2 times as far"),
            (train_whole, "4 of 4 rows at once"),
            (lambda *args: None, "called trainer.step 0 times"),
        ],
    ),
    "8.1": (
        mean_costs,
        [
            (
                lambda order: mean_costs(order, drift=0),
                "for 'AB', the mean cost of B is 100 instead of 101",
            ),
            (
                lambda order: mean_costs(order, divide=False),
                "for 'ABB', the mean cost of B is 203 instead of 101.5",
            ),
            (
                lambda order: mean_costs(order, median=True),
                "for 'AABBBBA', the mean cost of A is 101 instead of 102.333",
            ),
            (lambda order: list(mean_costs(order).values()), "expected a dictionary"),
            (lambda order: mean_costs(order[:1]), "the list of candidates is ['A']"),
        ],
    ),
    "8.2": (
        lambda: mx.bench.measure(mx.nd.ones(2)),
        [
            (lambda: mx.bench.measure(lambda: 1, repeats=1), "it timed something"),
            (lambda: measure(3), "run the cells above"),
            (lambda: mx.bench.measure(), "needs something to measure"),
        ],
    ),
    "8.3": (
        words(),
        [
            (words(stop=False), "overrides Timer's"),
            (words(line=""), "no line is printed"),
            (words(line="{time} s"), "doesn't contain the description"),
            (words(line="{description}"), "doesn't contain the time"),
            (words(early=True), "when the block starts"),
            (words(own=True), "its own __enter__"),
        ],
    ),
    "8.4": (
        pays_after,
        [
            (lambda *times: pays_after(*times, saved=False), "each later call saves 0.0002"),
            (lambda first, eager, hybrid: first / (eager - hybrid), "ZeroDivisionError"),
            (lambda *times: pays_after(*times, inf=0), "it never pays off"),
        ],
    ),
    "8.5": (
        ("yes", "yes", "no"),
        [
            (("no", "yes", "no"), "nearly half"),
            (("yes", "no", "no"), "steady within each half"),
            (("yes", "yes", "yes"), "less than a quarter"),
        ],
    ),
    "9.1": (
        ((4, 2), (3, 1)),
        [
            (((1, 2), (3, 1)), "are also nodes"),
            (((4, 3), (3, 1)), "isn't in the parameter file"),
            (((4, 2), (4, 2)), "that's with a bias"),
        ],
    ),
    "9.2": (
        exported("x"),
        [
            (exported("data"), "the import worked"),
            (exported("y"), "should be x"),
            (exported("x", made=False), "export first"),
        ],
    ),
    "9.3": (
        same_answers,
        [
            (
                lambda *args: same_answers(*args, np.allclose),
                "differ in the last bit, it returns True",
            ),
            (same_weights, "differ where x is 0, it returns False"),
            (lambda *args: same_answers(*args, np.equal), "must be True or False"),
            (lambda block, other, x: block is other, "for two equal layers, it returns False"),
        ],
    ),
    "10.1": (
        (2, "Symbol"),
        [
            ((5, "Symbol"), "not the function"),
            ((2, "NDArray"), "the plan"),
            ((1, ""), "two traces"),
        ],
    ),
    "10.2": (
        halve,
        [
            (halve_while, "hybridized, the block raises"),
            (lambda F, x: halve(F, x, alone=True), "decides for itself"),
            (lambda F, x: halve(F, x, turns=1), "halve x 2 times"),
            (lambda F, x: halve(F, x, always=True), "halve x 0 times"),
        ],
    ),
    "10.3": (
        make_graph,
        [
            (prints_numbers, "trace passes it symbols"),
            (lambda *args: make_graph(*args, show=False, give=True), "it returns a Graph"),
            (lambda *args: make_graph(*args, show=False), "nothing is printed"),
            (lambda *args: print(args[0]), "doesn't show the operators"),
            (lambda f, x: make_graph(f, x), "for 2 arrays raises TypeError"),
        ],
    ),
    "11.1": (
        (3, 5, 7, 3),
        [((2, 4, 6, 3), "slope of x * x alone"), ((3, 5, 7, 2), "twice"), ((15, 5, 7, 3), "sum")],
    ),
    "11.3": (
        checkpoint,
        [
            (lambda f, x: checkpoint(f, x, tape=True), "a tape was kept"),
            (lambda f, x: checkpoint(f, x, handed=False), "pass g to backward"),
            (checkpoint_times_g, "pass g to backward"),
            (lambda f, x: checkpoint(f, x, once=True), "f ran 2 times before"),
            (lambda f, x: f(x), "expected a pair"),
            (lambda f, x: checkpoint(f, x, copy=lambda x: x), "overwrote x.grad"),
        ],
    ),
    "12.1": (1, [(3, "one per operator"), (2, "stores each element once"), (0, "needs a kernel")]),
    "12.2": (
        read_text("relu", "squareminus"),
        [
            (read_text("a", "a"), "really contain squareminus"),
            (read_text("{", ""), "isn't a graph"),
            (lambda: mx.sym.relu(mx.sym.var("x")), "hasn't been run yet"),
            (lambda: sim.fromjson(""), "run the cells above"),
        ],
    ),
    "13.1": (
        (3, "_plus_scalar"),
        [((2, "_plus_scalar"), "starts from 0"), ((3, "sum"), "a loop"), ((4, "x"), "a variable")],
    ),
    "13.2": (
        lambda: mx.function(lambda x: 3)(mx.nd.ones(3)),
        [
            (lambda: mx.function(lambda x: x)(mx.nd.ones(3)), "a Python number"),
            (lambda: mx.functionn(lambda x: 3), "another error"),
            (lambda: functionn(lambda x: 3), "run the cells above"),
        ],
    ),
    "13.3": (
        count_operators,
        [
            (lambda *args: count_operators(*args, variables=True), "their `op` is None"),
            (lambda *args: count_operators(*args, once=True), "for `x * x * x`, it returns"),
            (lambda *args: sum(count_operators(*args).values()), "expected names and counts"),
            (lambda *args: count_operators(*args, n=1), "with two shapes it raises"),
        ],
    ),
    "14.1": (
        ((4, 15), (2, 4), (4, 5), (2, 3, 4)),
        [
            (((15, 4), (2, 4), (4, 5), (2, 3, 4)), "outputs by inputs"),
            (((4, 15), (2, 4), (4, 15), (2, 3, 4)), "only the last axis"),
            (((4, 15), (2, 4), (4, 5), (2, 4)), "the other axes stay"),
        ],
    ),
    "14.2": (
        net_of_five(2, 6),
        [
            (net_of_five(2, 5), "it knows 5 columns"),
            (net_of_five(2, 7), "not because of 6 columns"),
            (lambda: nett(0), "run the cells above"),
        ],
    ),
    "14.3": (
        residual(),
        [
            (residual(add=False), "without the input"),
            (residual(child=False), "which makes it a child"),
            (residual(twice=True), "the input plus the inner block's output"),
            (residual(add=mx.nd.NDArray.detach), "lead back to it"),
            (lambda block: block(mx.nd.ones((1, 3))), "DeferredInitializationError"),
        ],
    ),
    "15.1": (
        (3, 2, 1),
        [((5, 2, 1), "change nothing"), ((3, 3, 1), "so they are equal"), ((3, 2, 2), "a loop")],
    ),
    "15.3": (
        signs,
        [
            (lambda graph: graph, "`-(-x)` has 2 operators"),
            (lambda graph: signs(graph, all_of_them=True), "changes the semantics of `-x`"),
            (lambda graph: signs(graph, new=False), "`-(-(-(-x)))` raises GraphError"),
            (lambda graph: list(graph.nodes), "a pass must return a Graph"),
        ],
    ),
    "16.1": (
        (1, 3),
        [
            ((2, 4), "fail on some floats"),
            ((1, 2), "is NaN, not 0"),
            ((1, 4), "zero divided by zero"),
        ],
    ),
    "16.2": (
        reversing,
        [
            (lambda graph: graph, "[::-1] reverses it"),
            (lambda graph: graph.nodes[::-1], "but yours returns a tuple"),
            (lambda graph: reversing(graph, slice(None, 0, -1)), "change only the order"),
            (
                lambda graph: Graph((*graph.nodes[1:], graph.nodes[0]), graph.heads),
                "the list of nodes is",
            ),
        ],
    ),
    "18.1": (
        (4, 3),
        [((3, 4), "17 registers"), ((5, 2), "takes more loads"), ((4, 4), "for the row of b")],
    ),
    "19.1": (
        (3, 1),
        [((1, 1), "contains the shape"), ((3, 3), "one loop"), ((3, 0), "been compiled before")],
    ),
    "19.3": (12, [(3, "takes it 8 seconds"), (6, "5.28 are allowed"), (24, "half as many")]),
    "19.5": (5, [(10, "no variable holds"), (6, "no call follows"), (1, "has its own memory")]),
    "21.1": (
        (1024, 1024),
        [((2048, 1024), "can use the"), ((1024, 0), "also needs memory"), ((256, 256), "4 bytes")],
    ),
    "21.2": (
        boxes_of(448),
        [
            (boxes_of(64), "1.5 times is needed"),
            (boxes_of(440), "by rounding"),
            (dict(list(boxes_of(448).items())[:4]), "the number of boxes is 4"),
            ({**boxes_of(448), 4: (4, 3, 64)}, "before its birth"),
            (dict(reversed(boxes_of(448).items())), "name them in this order"),
        ],
    ),
    "22.1": (
        155,
        [(131, "24 bytes of the file header"), (163, "a float16"), (139, "before its letters")],
    ),
    "23.1": (9728, [(9704, "at a multiple of 64"), (9664, "come first"), (9720, "four arrays")]),
    "25.11": (
        (6, 63),
        [((5, 63), "before the first step"), ((6, 62), "also loads it"), ((31, 63), "at once")],
    ),
    "25.12": (
        any_positive,
        [
            (any_with_a_race, "race for out[0]"),
            (counts_positive, "out[0] is 8, but must be 1"),
            (looks_at_one, "for [0, -1, 0, 2, 0, 0, 0, -3]: out[0] is 0, but must be 1"),
            (never_ends, "the loop made 10000 turns and did not end"),
            (positive, "with @cuda.jit above it"),
        ],
    ),
    "25.13": (
        big_sum,
        [
            (sum_of_atomics, "32 atomic operations"),
            (sum_without_a_guard, "for 40 elements: kernel 'sum_without_a_guard'"),
            (sum_without_an_atomic, "there are 0 atomic operations"),
        ],
    ),
    "26.1": (
        ((6, 4), (2, 1)),
        [
            (((5, 3), (2, 1)), "both tanh are computed"),
            (((6, 4), (3, 1)), "loaded once"),
            (((6, 4), (2, 2)), "aren't stored"),
        ],
    ),
    "27.1": (
        (0.25, 2),
        [((0.125, 2), "tiles of 16"), ((2, 2), "without tiles"), ((0.25, 1), "of each tile")],
    ),
    "27.2": (
        launched(one_tile, 4, 4),
        [
            (launched(one_tile, 4, 1), "s[3] is read, but no thread"),
            (launched(big_sum, 32, 32), "without a race"),
            (launched(any_with_a_race, 4, 4), "isn't in a tile"),
        ],
    ),
    "28.1": (
        (40, 1, 20),
        [
            ((20, 1, 20), "a separate operator"),
            ((40, 20, 20), "all of them at once"),
            ((40, 1, 40), "relu runs"),
        ],
    ),
    "28.2": (
        freed("once"),
        [
            (freed(None), "the network ran"),
            (freed("twice"), "already been freed"),
            (lambda: victimm(0), "run the cells above"),
        ],
    ),
}
ANSWERS |= answers_inside.ANSWERS | answers_threads.ANSWERS | answers_transforms.ANSWERS
ANSWERS |= answers_guards.ANSWERS
ANSWERS |= answers_attention.ANSWERS | answers_model.ANSWERS
ANSWERS |= answers_formats.ANSWERS
ANSWERS |= answers_schedules.ANSWERS | answers_effects.ANSWERS | answers_devices.ANSWERS
NO_FUNCTIONS = {"12.3", "17.3", "24.1", "29.6"}  # an operator, a compiled kernel, a class


def rewritten(number, old, new):
    """The right answer to an exercise, a function, with its results in another form."""
    right = ANSWERS[number][0]

    def function(*args):
        result = right(*args)
        return new(result) if isinstance(result, old) else result

    return function


def by_texts(lines):
    """Exercise 1.3 by replacing texts, which also finds `s` in `s1`."""
    known = {}
    for name, expression in (line.split(" = ") for line in lines):
        for old, new in known.items():
            expression = expression.replace(old, new)
        known[name] = f"({expression})"
    return known[name]


@pytest.mark.parametrize(
    "number, answer",
    [
        ("0.3", np.float32([1.5, 0.5])),
        ("0.3", (mx.nd.array(1.5), np.float16(0.5))),
        ("2.1", "48 bytes"),
        ("3.3", rewritten("3.3", int, np.int64)),
        ("8.1", rewritten("8.1", dict, lambda costs: {k: np.float32(costs[k]) for k in costs})),
        ("8.4", rewritten("8.4", float, np.float32)),
        ("8.5", (True, True, False)),
        ("8.5", np.array([True, True, False])),
        ("9.3", rewritten("9.3", bool, lambda same: mx.nd.array(same, dtype="bool"))),
        ("11.3", rewritten("11.3", tuple, list)),
        ("14.1", [np.array(shape) for shape in ((4, 15), (2, 4), (4, 5), (2, 3, 4))]),
        ("10.1", (2, mx.sym.Symbol)),
        ("16.1", (3, 1)),
        ("16.1", {1, 3}),
        ("18.4", lambda: mx.np.dot(mx.np.ones((2, 3)), mx.np.ones((2, 3)))),
        ("26.3", ("0x2AAAAAAAAAAAAAAB", 1)),
        ("29.1", (mx.nd.array(4), np.array(5))),
        ("33.1", ("2,048", "256", "16777216")),
        ("33.2", rewritten("33.2", float, mx.nd.array)),
        ("33.4", rewritten("33.4", float, np.array)),
        ("35.2", rewritten("35.2", bool, np.bool_)),
    ],
)
def test_a_right_answer_may_come_in_another_form(number, answer):
    verdict = mx.check(number, answer)
    assert verdict.right, verdict


def test_several_answers_are_a_tuple_and_a_number_may_have_spaces():
    assert mx.check(" 29.1 ", 4, 5).right
    assert mx.exercises() is mx.exercises


@pytest.mark.parametrize(
    "number, answer, words",
    [
        ("0.3", (True, False), "a loss must be a number, but is True"),
        ("1.2", lambda: mx.sym.var("x") * np.ones(2), "is about another TraceError"),
        ("1.3", by_texts, "isn't an expression"),
        ("2.1", "48 kernels", "is the text '48 kernels': hand in the number without 'kernels'"),
        ("2.1", {48}, "the number of bytes is a set, but must be a number or a text"),
        ("3.2", lambda F, x: [x.sum(axis=0)], "must return an NDArray, but it returns a list of 1"),
        ("8.5", (False, True, False), "is not False"),
        ("15.3", lambda g: Graph(g.nodes[:-1], g.heads), "the output negative0 isn't a node"),
        ("23.2", (1, ".json"), "the name is not .json: which format"),
        ("29.1", "4, 5", "expected 2 values, in a tuple (how often"),
        ("29.1", (4, None), "the number of plans is a NoneType, but must be a number or a text"),
        ("29.4", lambda x, sizes: sizes.sort() or ANSWERS["29.4"][0](x, sizes), "list of sizes"),
        ("30.3", lambda f, x, v: x.asnumpy(), "an ndarray of shape (3,), but one NDArray is"),
        ("33.1", (2048, 256, 16777217), "for float32 is not 16777217"),
        ("33.4", lambda batches, share: "0.5", "the scale must be a number, but is the text '0.5'"),
        ("35.4", lambda *args: args, "an array of shape (4,), but is a tuple of 6"),
        ("36.4", lambda steps, results: ["a.1"], "a set of names, but got a list of 1"),
        ("37.3", lambda: 3, "the function returned 3; choose a number of rows"),
        ("37.4", lambda *args: exit(3), "ends Python: SystemExit: 3"),
    ],
)
def test_another_form_of_a_wrong_answer_is_still_wrong(number, answer, words):
    verdict = mx.check(number, answer)
    assert not verdict.right and words in verdict.sentence, verdict


def long_error(*args):
    raise ValueError("x" * 9999)


@pytest.mark.parametrize("answer", ["x" * 9999, 10**999, long_error])
def test_a_long_answer_has_a_short_verdict(answer):
    assert all(len(mx.check(number, answer).sentence) < 1000 for number in ("2.1", "29.4", "1.2"))


def raising(*args, **kwargs):
    raise KeyError("oops")


def endless(*args, **kwargs):
    while True:
        pass


def swallowing(*args, **kwargs):
    while True:
        try:
            len(args)
        except Exception:
            pass


NOTEBOOKS = make_hints.ROOT / "notebooks"


# -- what is said ------------------------------------------------------------------------
@pytest.fixture(autouse=True)
def own_file(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(package.exercises, "_done", set())


def test_every_checker_is_tried():
    assert ANSWERS.keys() == TABLE.keys()


@pytest.mark.parametrize("number", ANSWERS)
def test_the_right_answer_is_right(number):
    verdict = mx.check(number, ANSWERS[number][0])
    assert verdict.right and verdict.sentence.startswith("right: "), verdict
    assert number in mx.exercises.done


@pytest.mark.parametrize("number", ANSWERS)
def test_each_wrong_answer_has_its_own_explanation(number):
    sentences = set()
    for answer, words in ANSWERS[number][1]:
        verdict = mx.check(number, answer)
        assert not verdict.right and words in verdict.sentence, verdict
        sentences.add(verdict.sentence)
    assert number not in mx.exercises.done
    assert len(sentences) == len(ANSWERS[number][1]) >= 3


def exercises_of_the_chapters():
    """Exercise -> its text in the chapter, in one line."""
    texts = {}
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        for part in re.split(r"^#+ Exercise ", text, flags=re.MULTILINE)[1:]:
            texts[part.split()[0]] = " ".join(part.split())
    return texts


def test_the_chapters_say_what_to_hand_in():
    texts = exercises_of_the_chapters()
    for number, exercise in TABLE.items():
        chapter, _, k = number.partition(".")
        sentence = f'`mx.check("{int(chapter):02}.{k}", ...)` takes {exercise.asks}.'
        older = sentence.replace("` takes ", "` judges ", 1)
        assert sentence in texts[number] or older in texts[number], (number, sentence)
    mentioned = [number for number, text in texts.items() if "`mx.check(" in text]
    assert sorted(mentioned) == sorted(TABLE)


def test_every_exercise_has_stars_and_a_hint():
    for number, text in exercises_of_the_chapters().items():
        assert re.match(r"\d+\.\d+ (★{1,3}) ", text), number
        assert package.hints()[number], number


NOISE = {
    None: "nothing is filled in",
    object(): "",
    "spam": "",
    raising: "oops",
    endless: "does not end",
    swallowing: "does not end",
}


@pytest.mark.parametrize("number", ANSWERS)
def test_nothing_noise_errors_and_loops_get_a_sentence(number, monkeypatch):
    monkeypatch.setattr(judging, "TURNS", 20_000)  # of 200 000, to be quick
    assert not mx.check(number, ...).right
    takes = callable(ANSWERS[number][0]) and not isinstance(ANSWERS[number][0], Kernel)
    takes = takes and number not in NO_FUNCTIONS
    for noise, words in NOISE.items():
        verdict = mx.check(number, noise)
        assert not verdict.right and verdict.sentence.startswith("not yet: "), (noise, verdict)
        if noise is None or (takes and callable(noise)):
            assert words in verdict.sentence, (noise, verdict)
        assert "Traceback" not in verdict.sentence and verdict.sentence != "not yet: ", noise


def test_an_error_itself_is_an_answer():
    with pytest.raises(HybridError) as caught:
        trace_error()
    assert mx.check("01.2", caught.value).right


def test_right_numbers_are_not_in_the_text():
    for number, exercise in TABLE.items():
        if isinstance(exercise, Parts):
            answer = ANSWERS[number][0]
            values = answer if isinstance(answer, tuple) else (answer,)
            for part, value in zip(exercise.parts, values, strict=True):
                assert part.right == fingerprint(number, value)
                assert normalized(value) not in map(normalized, part.wrong)
                assert str(value) not in part.advice


def test_what_a_compiler_does_is_no_loop_of_the_readers(monkeypatch):
    monkeypatch.setattr(judging, "TURNS", 20_000)
    sentence = mx.check("17.2", answers_inside.compiled_here).sentence
    assert "there was no error" in sentence and "machine code doesn't check indices" in sentence


def test_arrays_texts_and_booleans_are_compared_by_meaning():
    parts = [
        {"name": name, "right": fingerprint("9.9", v), "advice": "think"}
        for name, v in (("a", 1), ("b", "relu"))
    ]
    both, first = Parts("a pair", "yes", parts), Parts("a number", "yes", parts[:1])
    both.number = first.number = "9.9"
    assert both((1.0, " `ReLU`")).right and both([True, "relu"]).right
    assert first(with_nano("", "NDArray")([1])).right  # nano's arrays, too
    assert first(mx.nd.array([1])).right and first(np.float32([1])).right


# -- hints, numbers, and what is done ----------------------------------------------------
def test_hints_are_those_of_the_chapters():
    assert make_hints.FILE.read_text(encoding="utf-8") == make_hints.made(), "run `make blank`"
    assert all(json.loads(make_hints.made()).values())


def test_hints_come_one_after_the_other(monkeypatch):
    monkeypatch.setattr(package, "_shown", {})
    hints = package.hints()["2.1"]
    sentences = [mx.hint("02.1").sentence for _ in range(len(hints) + 1)]
    assert sentences[: len(hints)] == [
        f"hint {k} of {len(hints)}: {text}" for k, text in enumerate(hints, 1)
    ]
    assert sentences[-1] == sentences[0]


@pytest.mark.parametrize("ask", [mx.check, mx.hint])
def test_an_unknown_number_is_refused(ask):
    with pytest.raises(HybridError, match=r'"02.9"\): .*chapter 02 has 2.1, 2.2'):
        ask("02.9")
    with pytest.raises(HybridError, match="no such chapter"):
        ask("spam")


def test_what_is_done_is_kept(tmp_path):
    first = Exercises()
    assert first.done == [] and f"0 of {len(TABLE)} are done" in repr(first)
    first.note("2.1")
    assert Exercises().done == ["2.1"]
    assert "2.1 done" in repr(Exercises()) and "2.1 done" in Exercises()._repr_html_()
    assert [path.name for path in tmp_path.iterdir()] == ["exercises.json"]


@pytest.mark.parametrize("text", ["{", "5", '{"2.1": [', "[[1]]"])
def test_a_damaged_file_is_no_obstacle(tmp_path, text):
    (tmp_path / "exercises.json").write_text(text, encoding="utf-8")
    done = Exercises()
    assert done.done == []
    done.note("1.1")
    assert Exercises().done == ["1.1"]


def test_without_a_place_to_write_it_is_kept_in_memory(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", "no/whole/path"):
        monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(folder))
        done = Exercises()
        done.note("1.1")
        assert done.done == ["1.1"]
        assert Exercises().done == []
