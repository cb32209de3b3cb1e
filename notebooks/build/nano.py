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
