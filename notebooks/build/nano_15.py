"""nano: a hybrid engine, as its reader writes it in the part "Build one" of the book.

Made by book/make_blank.py of cells of the chapters: change those, not this file.
"""


# step 1: the definition of an operator
import itertools

import numpy as np


class Op:
    """Everything about one operator: its name, its implementation, its gradient rule."""

    def __init__(self, name, eager, grad):
        self.name, self.eager, self.grad = name, eager, grad

    def infer(self, *shapes, **attrs):
        """The shape of the result, found by running the operator on zeros."""
        # your lines
        return self.eager(*map(np.zeros, shapes), **attrs).shape

    def __call__(self, *inputs, **attrs):
        """Apply the operator: the input with the highest level interprets it."""
        # your lines
        return max(inputs, key=lambda x: x.level).interpret(self, inputs, attrs)


# step 1: what operators are applied to
class Value:
    """An operand or result of an operator. It may remember how it was computed."""

    op, inputs, attrs, grad, numbers = None, (), {}, None, itertools.count()

    def __add__(self, other):
        """Another value, or a number."""
        # your lines
        return add(self, other) if isinstance(other, Value) else add_number(self, scalar=other)

    def __mul__(self, other):
        """Another value, or a number."""
        # your lines
        return mul(self, other) if isinstance(other, Value) else mul_number(self, scalar=other)

    def sum(self, axis=None):
        """The sum over one axis, or over all of them."""
        axes = range(len(self.shape)) if axis is None else [axis]
        shape = tuple(n for i, n in enumerate(self.shape) if i not in axes)
        return reshape(total(self, axis=tuple(axes)), shape=shape)

    __radd__, __rmul__ = __add__, __mul__


# step 1: the operators
def back(g, x):
    """The gradient of x if it was broadcast: the sum over its copies."""
    shape = (1,) * (len(g.shape) - len(x.shape)) + x.shape
    axes = tuple(i for i, n in enumerate(shape) if n != g.shape[i])
    return reshape(total(g, axis=axes), shape=x.shape) if shape != g.shape else g


add = Op("broadcast_add", np.add, lambda g, y, a, b: (back(g, a), back(g, b)))
mul = Op("broadcast_mul", np.multiply, lambda g, y, a, b: (back(g * b, a), back(g * a, b)))
add_number = Op("_plus_scalar", lambda a, scalar: a + scalar, lambda g, y, a, scalar: (g,))
mul_number = Op("_mul_scalar", lambda a, scalar: a * scalar, lambda g, y, a, scalar: (g * scalar,))
sign = Op("sign", np.sign, lambda g, y, a: (g * 0,))
relu = Op("relu", lambda a: np.maximum(a, 0), lambda g, y, a: (g * sign(y),))
dot = Op("dot", np.dot, lambda g, y, a, b: (dot(g, transpose(b)), dot(transpose(a), g)))
transpose = Op("transpose", np.transpose, lambda g, y, a: (transpose(g),))
reshape = Op("Reshape", lambda a, shape: a.reshape(shape),
             lambda g, y, a, shape: (reshape(g, shape=a.shape),))
total = Op("sum", lambda a, axis: np.sum(a, tuple(axis), keepdims=True),
           lambda g, y, a, axis: (broadcast_to(g, shape=a.shape),))
broadcast_to = Op("broadcast_to", np.broadcast_to, lambda g, y, a, shape: (back(g, a),))


# step 2: arrays
class STATE:
    """The engine's state: is it recording, and which trace is it writing?"""

    recording, trace = False, []


class NDArray(Value):
    """An array, computed at once."""

    level = 0

    def __init__(self, data):
        self.data, self.number = np.asarray(data, np.float32), next(Value.numbers)
        self.shape = self.data.shape

    def __repr__(self):
        return f"{self.data}\n<NDArray {self.shape}>"

    def attach_grad(self):
        """Make it a variable: set `grad` to zeros of the same shape."""
        # your lines
        self.grad = NDArray(np.zeros(self.shape))

    @staticmethod
    def interpret(op, inputs, attrs):
        """Compute `op.eager` on the inputs' `data`, and call `made_by` on the result."""
        # your lines
        return NDArray(op.eager(*[x.data for x in inputs], **attrs)).made_by(op, inputs, attrs)

    def made_by(self, op, inputs, attrs):
        """While recording, remember op, inputs and attrs if an input depends on a variable.

        Returns: the array itself.
        """
        # your lines
        if STATE.recording and any(x.op or x.grad is not None for x in inputs):
            self.op, self.inputs, self.attrs = op, inputs, attrs
        return self


# step 2: the switch
class record:
    """Inside this `with` block, arrays record the tape."""

    def __enter__(self):
        """The block starts."""
        # your lines
        STATE.recording = True

    def __exit__(self, *error):
        """The block ends."""
        # your lines
        STATE.recording = False


# step 3: the chain rule
def behind(heads):
    """All values that the heads depend on, in order of creation."""
    # your lines
    found, todo = set(heads), list(heads)
    while todo:
        new = set(todo.pop().inputs) - found
        found |= new
        todo += new
    return sorted(found, key=lambda x: x.number)


def gradient(head, seed):
    """Value -> its gradient, for everything the head depends on. The head's is the seed."""
    # your lines
    grads = {head: seed}
    for y in reversed([x for x in behind([head]) if x.op]):
        for x, g in zip(y.inputs, y.op.grad(grads[y], y, *y.inputs, **y.attrs), strict=True):
            grads[x] = grads[x] + g if x in grads else g
    return grads


def backward(head):
    """Store the gradient of the head's sum in `grad` of every variable it depends on."""
    # your lines
    for x, g in gradient(head, NDArray(np.ones(head.shape))).items():
        if x.grad is not None:
            x.grad = g


NDArray.backward = backward


# step 4: symbols
class Symbol(Value):
    """An abstract value: it has a shape and knows how it's computed, but has no data."""

    level = 1

    def __init__(self, shape, name, op=None, inputs=(), attrs=None):
        self.shape, self.name, self.number = shape, name, next(Value.numbers)
        self.op, self.inputs, self.attrs = op, inputs, attrs or {}
        STATE.trace.append(self)

    @staticmethod
    def interpret(op, inputs, attrs):
        """Record the application in a new symbol, called relu3 if 3 symbols precede it.

        Raises:  TypeError if an input is an array, whose values would be frozen.
        """
        # your lines
        if any(x.level == 0 for x in inputs):
            raise TypeError(f"{op.name}: an array among symbols; make it an argument")
        shape = op.infer(*[x.shape for x in inputs], **attrs)
        return Symbol(shape, f"{op.name.lower()}{len(STATE.trace)}", op, inputs, attrs)

    def __bool__(self):
        raise TypeError("a symbol has no value yet, so it is neither true nor false")


# step 4: a trace
class Graph:
    """Values, each after its inputs, and those that the program returns (heads)."""

    def __init__(self, nodes, heads):
        self.nodes, self.heads = tuple(nodes), heads
        self.variables = [x for x in nodes if not x.op]


def trace(f, **shapes):
    """Run a function once, on one symbol per shape, and return the recorded Graph."""
    # your lines
    STATE.trace = []
    heads = [f(*[Symbol(shape, name) for name, shape in shapes.items()])]
    return Graph(STATE.trace, heads)


# step 5: print it, run it
def show(graph):
    """The program as text: one line per node, then `return` and the heads' names."""
    # your lines
    lines = []
    for x in graph.nodes:
        args = [i.name for i in x.inputs] + [f"{k}={v}" for k, v in x.attrs.items()]
        what = f"{x.op.name}({', '.join(args)})" if x.op else "variable"
        lines.append(f"{x.name:<16} = {what:<40} {x.shape}")
    return "\n".join([*lines, "return " + ", ".join(h.name for h in graph.heads)])


def run(graph, *inputs):
    """Apply every operator again, to the given inputs. Returns the heads' values."""
    # your lines
    new = dict(zip(graph.variables, inputs, strict=True))
    for x in [x for x in graph.nodes if x.op]:
        new[x] = x.op(*[new[i] for i in x.inputs], **x.attrs)
    return [new[h] for h in graph.heads]


# step 6: passes
def cse(graph):
    """Eliminate common subexpressions: merge nodes that compute the same value."""
    # your lines
    seen, new = {}, {}  # key -> node;  old node -> its replacement
    for x in graph.nodes:
        inputs = tuple(new[i] for i in x.inputs)
        key = (x.op, inputs, repr(x.attrs)) if x.op else x
        node = Symbol(x.shape, x.name, x.op, inputs, x.attrs) if x.op else x
        new[x] = seen.setdefault(key, node)
    return Graph(seen.values(), [new[h] for h in graph.heads])


def dce(graph):
    """Eliminate dead code: drop nodes that no head depends on."""
    # your lines
    alive = set(behind(graph.heads))
    return Graph([x for x in graph.nodes if x in alive or not x.op], graph.heads)


# step 7: the backward pass as part of the program
def with_gradient(graph):
    """Extend the program with its backward pass, after a variable "g".

    "g" is the gradient of the only head. Heads: the old one, then the variables' gradients.
    """
    # your lines
    STATE.trace, [head] = list(graph.nodes), graph.heads
    grads = gradient(head, Symbol(head.shape, "g"))
    return Graph(STATE.trace, [head, *[grads.get(x, x * 0) for x in graph.variables]])


# step 7: source
def source(graph):
    """The source of a program with its gradient: `def plan(x0, ...)`, with `backward` inside."""
    # your lines
    names, lines, margin = {}, [], "    "
    for x in graph.nodes:
        names[x] = f"t{len(names)}" if x.op else f"x{len(names)}"
        if x.op:
            args = [names[i] for i in x.inputs] + [f"{k}={v}" for k, v in x.attrs.items()]
            lines.append(f"{margin}{names[x]} = {x.op.name}({', '.join(args)})")
        elif x.name == "g":
            names[x], margin = "g", "        "
            lines.append("    def backward(g):")
    y, *grads = [names[h] for h in graph.heads]
    head = f"def plan({', '.join(names[x] for x in graph.variables[:-1])}):"
    lines += [f"        return {', '.join(grads)},", f"    return {y}, backward"]
    return "\n".join([head, *lines])


def compiled(graph):
    """The function that `source` defines."""
    scope = {x.op.name: x.op.eager for x in graph.nodes if x.op}
    exec(source(graph), scope)
    return scope["plan"]


# step 8: parameters
class Parameter:
    """An array that training changes. Its shape is inferred at the first call."""

    def __init__(self, name, array=None):
        self.name, self.array, self.draw = name, array, np.zeros

    def value(self, x, shape):
        """The array if x is an array, else its symbol. The first call draws the array."""
        # your lines
        if self.array is None:
            self.array = NDArray(self.draw(shape))
            self.array.attach_grad()
        known = [s for s in STATE.trace if s.name == self.name]
        return self.array if x.level == 0 else known[0] if known else Symbol(shape, self.name)


# step 8: blocks
plan_op = Op("plan", None, lambda g, y, *inputs, back: [NDArray(a) for a in back(g.data)])


class Block:
    """A part of a network: it has parameters, child blocks, and a `forward`."""

    plans = None  # shape -> (plan, parameters), once hybridized

    def hybridize(self):
        self.plans = {}

    def __call__(self, x):
        """Call `forward` or, if hybridized and called with an array, the plan for its shape."""
        # your lines
        if self.plans is None or x.level > 0:
            return self.forward(x)
        if x.shape not in self.plans:
            self.graph = trace(self.forward, data=x.shape)
            plan, known = dce(cse(with_gradient(self.graph))), self.collect_params()
            params = [known[v.name] for v in self.graph.variables[1:]]
            self.plans[x.shape] = compiled(plan), params
        plan, params = self.plans[x.shape]
        inputs = [x, *[p.array for p in params]]
        y, back = plan(*[v.data for v in inputs])
        return NDArray(y).made_by(plan_op, inputs, {"back": back})

    def collect_params(self):
        """Name -> parameter, of this block and its children."""
        parts = [p for v in vars(self).values() for p in (v if type(v) is list else [v])]
        found = {p.name: p for p in parts if isinstance(p, Parameter)}
        blocks = [block.collect_params() for block in parts if isinstance(block, Block)]
        return {name: p for params in [found, *blocks] for name, p in params.items()}


# names: layers
import math


class Dense(Block):
    """Each output is a weighted sum of all inputs."""

    def __init__(self, units, activation=None):
        self.units, self.activation = units, activation
        name = f"dense{next(Value.numbers)}_"
        self.weight, self.bias = Parameter(name + "weight"), Parameter(name + "bias")

    def forward(self, x):
        """Shapes: x (n, ...) -> (n, units)."""
        width = math.prod(x.shape[1:])
        w = self.weight.value(x, (self.units, width))
        b = self.bias.value(x, (self.units,))
        y = dot(reshape(x, shape=(-1, width)), transpose(w)) + b
        return relu(y) if self.activation else y


class HybridSequential(Block):
    """Layers, one after the other."""

    def __init__(self):
        self.layers = []

    def add(self, *layers):
        self.layers += layers

    def __getitem__(self, i):
        return self.layers[i]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


# names: the loss
def _log_softmax(a):
    a = a - a.max(1, keepdims=True)
    return a - np.log(np.exp(a).sum(1, keepdims=True))


exp = Op("exp", np.exp, lambda g, y, a: (g * y,))
log_softmax = Op("log_softmax", _log_softmax,
                 lambda g, y, a: (g + exp(y) * total(g, axis=(1,)) * -1,))
one_hot = Op("one_hot", lambda a, depth: np.equal.outer(a, np.arange(depth)).astype("f"),
             lambda g, y, a, depth: (a * 0,))


def SoftmaxCrossEntropyLoss():
    """The negative log-likelihood of the labels, one value per row."""
    return lambda x, y: (log_softmax(x) * one_hot(y, depth=x.shape[1])).sum(1) * -1


# names: training
class Trainer:
    """Moves parameters against their gradients."""

    def __init__(self, params, kind, settings):
        self.params, self.rate = params, settings["learning_rate"]

    def step(self, n):
        """One step, for a loss summed over n examples."""
        for p in self.params.values():
            p.array.data = p.array.data - self.rate / n * p.array.grad.data


def Xavier():
    """Initial values that keep the scale of signals from layer to layer."""
    return lambda shape: np.random.uniform(-1, 1, shape) * math.sqrt(6 / sum(shape))


def initialize(block, draw):
    """Set how initial values are drawn. Biases start at 0."""
    for p in block.collect_params().values():
        p.draw = draw if p.name.endswith("weight") else np.zeros


Block.initialize, Block.__repr__ = initialize, lambda block: type(block).__name__
Parameter.data, Parameter.grad = lambda p: p.array, lambda p: p.array.grad


# names: NumPy methods that nano's tape doesn't record
def plain(name):
    """A NumPy method whose result isn't recorded."""
    def method(self, *args, **kwargs):
        args = [x.data if isinstance(x, NDArray) else x for x in args]
        return NDArray(getattr(self.data, name)(*args, **kwargs))
    return method


for method in "__getitem__ __eq__ __lt__ __abs__ argmax max min mean".split():
    setattr(NDArray, method, plain(method))
for method in "item __len__ __bool__".split():
    setattr(NDArray, method, lambda self, name=method: getattr(self.data, name)())
NDArray.__hash__ = object.__hash__
NDArray.size = property(lambda self: self.data.size)
Value.__sub__ = lambda self, other: self + other * -1


# step 9: out
import json
from pathlib import Path


def export(block, path):
    """Write the last traced graph to "path-symbol.json", and the parameters to "path.npz".

    Returns: the two file names.
    """
    # your lines
    place = {x: i for i, x in enumerate(dce(block.graph).nodes)}
    nodes = [{"op": x.op.name if x.op else "null", "name": x.name,
              "attrs": {k: json.dumps(v) for k, v in x.attrs.items()},
              "inputs": [[place[i], 0, 0] for i in x.inputs]} for x in place]
    Path(f"{path}-symbol.json").write_text(json.dumps({"nodes": nodes}, indent=2))
    np.savez(f"{path}.npz", **{n: p.array.data for n, p in block.collect_params().items()})
    return f"{path}-symbol.json", f"{path}.npz"


# step 9: in
class SymbolBlock(Block):
    """A network loaded from two files, without its class."""

    def __init__(self, graph, numbers):
        self.program = graph
        self.params = [Parameter(x.name, NDArray(numbers[x.name])) for x in graph.variables[1:]]

    def forward(self, x):
        """Run the program on x and the parameters."""
        # your lines
        return run(self.program, x, *[p.value(x, p.array.shape) for p in self.params])[0]


def imports(path, names, params):
    """Load a network that `export` wrote. `names` are its inputs' names, `["data"]`."""
    # your lines
    ops, nodes = {op.name: op for op in globals().values() if isinstance(op, Op)}, []
    for x in json.loads(Path(path).read_text())["nodes"]:
        attrs = {k: json.loads(v) for k, v in x["attrs"].items()}
        inputs = tuple(nodes[i] for i, _, _ in x["inputs"])
        nodes.append(Symbol(None, x["name"], ops.get(x["op"]), inputs, attrs))
    return SymbolBlock(Graph(nodes, nodes[-1:]), np.load(params))


SymbolBlock.imports, Block.export = imports, export


# names: Gluon's modules
import sys

array, random = NDArray, np.random
autograd = nd = sym = nn = gluon = init = loss = sys.modules[__name__]


# step 10: a registry, and shape rules
def define(self, name, eager, grad, rule=None):
    """A record enters itself into OPS; its shape rule may be missing."""
    self.name, self.eager, self.grad, self.rule = name, eager, grad, rule
    OPS[name] = self


def infer(self, *shapes, **attrs):
    """The shape of the result: by the rule, or found on zeros; an error is a sentence."""
    rule = self.rule or (lambda *s, **a: self.eager(*map(np.zeros, s), **a).shape)
    try:
        return rule(*shapes, **attrs)
    except ValueError:
        raise ValueError(f"{self.name}: {shapes} do not fit together") from None


def same(*shapes, **attrs):
    """The rule of those that work number by number."""
    return np.broadcast_shapes(*shapes)


OPS = {op.name: op for op in list(globals().values()) if isinstance(op, Op)}
Op.__init__, Op.infer, Op.rule = define, infer, None
for op in (add, mul, add_number, mul_number, sign, relu, exp, log_softmax):
    op.rule = same


# step 10: what is true of every operator
def law_of_shape(op, *arrays, **attrs):
    """The rule tells the truth."""
    said, true = op.infer(*[a.shape for a in arrays], **attrs), op.eager(*arrays, **attrs).shape
    assert said == true, f"{op.name}: infer says {said}, but the result has {true}"


def law_of_gradient(op, *arrays, **attrs):
    """Each gradient is the slope."""
    xs = [NDArray(a) for a in arrays]
    for x in xs:
        x.attach_grad()
    with record():
        y = op(*xs, **attrs)
    y.backward()
    for i, a in enumerate(arrays):
        for k, step in enumerate(np.eye(a.size).reshape(a.size, *a.shape) * 1e-4):
            up, down = (op.eager(*arrays[:i], a + h, *arrays[i + 1:], **attrs).sum()
                        for h in (step, -step))
            right = np.isclose(xs[i].grad.data.flat[k], (up - down) / 2e-4, 1e-3, 1e-3)
            assert right, f"{op.name}: the gradient of input {i} is not the slope"


# step 11: a comparison, and a choice that a graph can keep
greater = Op("_greater_scalar", lambda a, scalar: np.greater(a, scalar).astype("f"),
             lambda g, y, a, scalar: (a * 0,), same)
where = Op("where", np.where, lambda g, y, c, a, b: (
    c * 0, back(where(c, g, g * 0), a), back(where(c, g * 0, g), b)), same)
Value.__gt__ = lambda self, number: greater(self, scalar=number)


# step 11: what a trace refuses
def refuse(symbol):
    """Raise TypeError: Python asks for a number; say where, and what to write instead."""
    asks = sys._getframe(1)
    raise TypeError(f"line {asks.f_lineno} of {asks.f_code.co_name} asks {symbol.name}, of shape "
                    f"{symbol.shape}, for numbers; it has none: write where(condition, a, b)")


Symbol.__bool__ = Symbol.__float__ = Symbol.__int__ = refuse


# step 12: a graph, written anew
def rewrite(graph, rule):
    """Apply every operator again, or take what the rule says: None, or another value."""
    STATE.trace, new = [], {}  # new: node -> the one in its place
    for x in graph.nodes:
        STATE.trace += [] if x.op else [x]
        new[x] = rule(x, new) if x.op else x
        if new[x] is None:
            new[x] = x.op(*[new[i] for i in x.inputs], **x.attrs)
    return Graph(STATE.trace, [new[h] for h in graph.heads])


# step 12: what changes nothing is dropped
def simpler(x, new):
    """A value that is x to the last bit and costs less; else None."""
    a = new[x.inputs[0]]
    if x.op in (reshape, broadcast_to, total) and x.shape == a.shape:
        return a
    if x.op is mul_number and x.attrs["scalar"] == 1:
        return a
    if x.op is transpose and a.op is transpose:
        return a.inputs[0]
    return reshape(a.inputs[0], shape=x.shape) if x.op is reshape and a.op is reshape else None


def fold(graph):
    """The program without what changes nothing."""
    return rewrite(graph, simpler)


PASSES = [fold, cse, dce]


def compiled(graph):
    """The function of a program that all passes have made smaller."""
    for f in PASSES:
        graph = f(graph)
    scope = {x.op.name: x.op.eager for x in graph.nodes if x.op}
    exec(source(graph), scope)
    return scope["plan"]


# step 13: which operators one loop can do
EXPR = {"broadcast_add": "{0} + {1}", "broadcast_mul": "{0} * {1}",
        "_plus_scalar": "{0} + float32({scalar})", "_mul_scalar": "{0} * float32({scalar})",
        "sign": "float32(1) if {0} > 0 else float32(-1) if {0} < 0 else {0}",
        "relu": "float32(0) if {0} <= 0 else {0}", "exp": "math.exp({0})",
        "_greater_scalar": "float32({0} > float32({scalar}))", "where": "{1} if {0} else {2}"}


def chains(graph):
    """Lists of nodes, of one shape; all but the last of each are read in their list only."""
    readers = [i for x in graph.nodes for i in set(x.inputs)] + graph.heads
    found = {}  # last node -> list
    for x in graph.nodes:
        if x.op and x.op.name in EXPR and all(i.shape == x.shape for i in x.inputs):
            parts = [found.pop(i) for i in set(x.inputs) if i in found and readers.count(i) == 1]
            found[x] = sorted(sum(parts, []), key=lambda x: x.number) + [x]
    return list(found.values())


def kernel(chain, head="for i in range(out.size):", kind=""):
    """(the text of a kernel that does a chain number by number, the nodes that it reads)"""
    reads = list(dict.fromkeys(i for x in chain for i in x.inputs if i not in chain))
    v = {x: f"v{k}" for k, x in enumerate([*reads, *chain])}
    lines = [f"{v[x]} = a{k}[i]" for k, x in enumerate(reads)]
    for x in chain:
        lines.append(f"{v[x]} = {EXPR[x.op.name].format(*map(v.get, x.inputs), **x.attrs)}")
    args = [f"a{k}{kind}" for k in range(len(reads))] + [f"out{kind}"]
    body = "".join(f"\n        {line}" for line in [*lines, f"out[i] = {v[chain[-1]]}"])
    return f"def kernel({', '.join(args)}):\n    {head}{body}\n", reads


# step 13: a chain becomes one operator
from functools import cache, partial

try:
    from numba import njit
except ImportError:
    njit = print("nano: Numba is missing, so chains stay operators of NumPy")


@cache
def machine(text):
    """An operator that runs a kernel's text, which Numba compiles."""
    scope = {"float32": np.float32, "math": math}
    exec(text, scope)
    loop = njit(scope["kernel"], error_model="numpy")

    def eager(*arrays, out=None):
        out = np.empty(arrays[0].shape, np.float32) if out is None else out
        loop(*[a.ravel() for a in arrays], out.reshape(-1))
        return out
    return Op(f"chain{len(OPS)}", eager, None, same)


def fuse(graph):
    """The program with one operator in the place of each chain of two or more."""
    found = {c[-1]: kernel(c) for c in chains(graph) if njit and len(c) > 1}

    def rule(x, new):
        return machine(found[x][0])(*[new[i] for i in found[x][1]]) if x in found else None
    return rewrite(graph, rule)


PASSES = [fold, cse, dce, fuse, dce]


# step 14: memory for what is needed for a while
def arena(graph):
    """Node -> (first, end) of its numbers in one array, if they need not stay."""
    place = {x: k for k, x in enumerate(graph.nodes)}
    last, middle = place | dict.fromkeys(graph.heads, len(place)), place[graph.variables[-1]]
    for x in reversed(graph.nodes):
        for i in x.inputs:  # a view shows the memory of its input
            end = last[x] if x.op in (reshape, transpose, broadcast_to) else place[x]
            stays = place[i] < middle < end  # backward may be called twice
            last[i] = max(last[i], len(place) if stays else end)
    boxes, into = {}, (np.add, np.multiply, np.sign, np.exp, np.dot)  # which know `out`
    for x in sorted(graph.nodes, key=lambda x: -math.prod(x.shape)):
        if x.op and last[x] < len(place) and (x.op.eager in into or x.op.name[:5] == "chain"):
            start, size = 0, math.prod(x.shape)
            for y, (first, end) in sorted(boxes.items(), key=lambda box: box[1]):
                if place[x] <= last[y] and place[y] <= last[x] and first < start + size:
                    start = max(start, end)
            boxes[x] = start, start + size
    return boxes


# step 14: an arena
import copy


def settle(graph):
    """Operators whose results need not stay write them into one array."""
    boxes = arena(graph)
    memory = np.empty(max([end for _, end in boxes.values()], default=0), np.float32)
    for x, (first, end) in boxes.items():
        x.op, out = copy.copy(x.op), memory[first:end].reshape(x.shape)
        x.op.name, x.op.eager = f"{x.op.name}_{x.number}", partial(x.op.eager, out=out)
    return graph


PASSES = [fold, cse, dce, fuse, dce, settle]


# step 15: numbers as MXNet writes them
import ast
import struct


def save(path, arrays):
    """Write name -> array into a file, as MXNet's `nd.save` does."""
    data = struct.pack("<3Q", 0x112, 0, len(arrays))
    for a in arrays.values():
        data += struct.pack(f"<I2i{a.ndim}q3i", 0xF993FAC9, 0, a.ndim, *a.shape, 1, 0, 0)
        data += a.astype("<f4").tobytes()
    names = [struct.pack("<Q", len(n)) + n for n in map(str.encode, arrays)]
    Path(path).write_bytes(data + struct.pack("<Q", len(names)) + b"".join(names))


def load(path):
    """Name -> array, of a file that `save` or MXNet wrote."""
    def take(form):
        return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))

    with open(path, "rb") as file:
        (kind, _, n), arrays = take("3Q"), []
        for _ in range(n):
            magic, sparse, ndim = take("I2i")
            *shape, _, _, dtype = take(f"{ndim}q3i")
            if (kind, magic, sparse, dtype) != (0x112, 0xF993FAC9, 0, 0):
                raise ValueError(f"{path}: nano reads dense float32 arrays of MXNet 1.x only")
            arrays.append(np.float32(take(f"{math.prod(shape)}f")).reshape(shape))
        names = [take(f"{take('Q')[0]}s")[0].decode() for _ in range(take("Q")[0])]
    return dict(zip(names, arrays, strict=True))


# step 15: programs as MXNet writes them
def export(block, path):
    """Write "path-symbol.json" and "path-0000.params"; return the two names."""
    place = {x: k for k, x in enumerate(dce(block.graph).nodes)}
    nodes = [{"op": x.op.name if x.op else "null", "name": x.name}
             | ({"attrs": {k: str(v) for k, v in x.attrs.items()}} if x.attrs else {})
             | {"inputs": [[place[i], 0, 0] for i in x.inputs]} for x in place]
    text = {"nodes": nodes, "arg_nodes": [place[x] for x in block.graph.variables],
            "node_row_ptr": [*range(len(nodes) + 1)], "heads": [[len(nodes) - 1, 0, 0]],
            "attrs": {"mxnet_version": ["int", 10901]}}
    Path(f"{path}-symbol.json").write_text(json.dumps(text, indent=2))
    save(f"{path}-0000.params",
         {f"arg:{name}": p.array.data for name, p in block.collect_params().items()})
    return f"{path}-symbol.json", f"{path}-0000.params"


# step 15: programs that MXNet wrote
FOREIGN = {  # operators that layers write, made of ours
    "FullyConnected": lambda x, w, b, **attrs: dot(
        reshape(x, shape=(-1, math.prod(x.shape[1:]))), transpose(w)) + b,
    "Activation": lambda x, act_type: {"relu": relu}[act_type](x)}


def imports(path, names, params):
    """The network in two files; `names` are those of its inputs, `["data"]`."""
    known, nodes = OPS | FOREIGN | {"null": None}, []
    for x in json.loads(Path(path).read_text())["nodes"]:
        attrs = {k: v if v.isidentifier() else ast.literal_eval(v)
                 for k, v in x.get("attrs", {}).items()}
        inputs = tuple(nodes[i] for i, _, _ in x["inputs"])
        nodes.append(Symbol(None, x["name"], known[x["op"]], inputs, attrs))
    return SymbolBlock(Graph(nodes, nodes[-1:]), {n[4:]: a for n, a in load(params).items()})


SymbolBlock.imports, Block.export = imports, export
