"""ONNX Runtime: a finished graph, run without any framework around it."""

import math
import os
from functools import partial

import numpy as np
import onnxruntime
import walks
from onnx import TensorProto, helper, numpy_helper

VERSION, KERNELS = onnxruntime.__version__, "MLAS"


class Graph:
    """A graph in ONNX's form, built by hand; values are names."""

    def __init__(self, a, inputs=("data",)):
        self.a, self.inputs = a, inputs
        self.nodes, self.constants = [], {}

    def op(self, kind, *inputs, **attributes):
        """Add a node; inputs that name an array are weights. Returns its output."""
        for name in inputs:
            if name in self.a and name not in self.inputs:
                self.constants[name] = self.a[name]
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def dense(self, x, weight, bias):
        return self.op("Gemm", x, weight, bias, transB=1)

    def finish(self, y):
        """(the model as bytes, its inputs)."""
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "net",
            [info(name, TensorProto.FLOAT, self.a[name].shape) for name in self.inputs],
            [info(y, TensorProto.FLOAT, None)],
            [numpy_helper.from_array(w, name) for name, w in self.constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return model.SerializeToString(), {name: self.a[name] for name in self.inputs}

    def relu(self, x):
        return self.op("Relu", x)

    def add(self, x, y):
        return self.op("Add", x, y)

    def pool(self, x, size=3, pad=1):
        return self.op("MaxPool", x, kernel_shape=[size] * 2, strides=[2, 2], pads=[pad] * 4)

    def constant(self, array):
        """The name of an array that is no weight."""
        name = f"constant_{len(self.constants)}"
        self.constants[name] = array
        return name


class Ops(walks.Named):
    """The operators of a walk; values and weights are names."""

    def __init__(self, graph):
        super().__init__({name: name for name in graph.a})
        self.graph, self.op = graph, graph.op
        self.relu, self.add, self.max_pool = graph.relu, graph.add, graph.pool

    def conv(self, x, w, stride, groups):
        pads = [self.graph.a[w].shape[2] // 2] * 4
        return self.op("Conv", x, w, pads=pads, strides=[stride] * 2, group=groups)

    def norm(self, x, *weights):
        return self.op("BatchNormalization", x, *weights, epsilon=walks.EPSILON)

    def layer_norm(self, x, *weights):
        return self.op("LayerNormalization", x, *weights, epsilon=walks.EPSILON)

    def relu6(self, x):
        return self.op("Clip", x, *(self.graph.constant(np.float32(limit)) for limit in (0, 6)))

    def gelu(self, x):
        half, one, root = (self.graph.constant(np.float32(v)) for v in (0.5, 1, math.sqrt(2)))
        y = self.add(self.op("Erf", self.op("Div", x, root)), one)
        return self.op("Mul", self.op("Mul", x, y), half)

    def concat(self, xs):
        return self.op("Concat", *xs, axis=1)

    def halve(self, x):
        return self.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])

    def mean(self, x):
        return self.op("Flatten", self.op("GlobalAveragePool", x))

    def dense(self, x, w, bias):
        if x.startswith("Flatten"):
            return self.graph.dense(x, w, bias)
        turned = self.graph.constant(np.ascontiguousarray(self.graph.a[w].T))
        return self.add(self.op("MatMul", x, turned), bias)

    def heads(self, x, n):
        parts = self.op("Reshape", x, self.graph.constant(np.int64([0, 0, n, -1])))
        return self.op("Transpose", parts, perm=[0, 2, 1, 3])

    def merge(self, x):
        parts = self.op("Transpose", x, perm=[0, 2, 1, 3])
        return self.op("Reshape", parts, self.graph.constant(np.int64([0, 0, -1])))

    def attend(self, q, k, v, c):
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        root = self.graph.constant(np.float32(math.sqrt(c)))
        return self.op("MatMul", self.op("Softmax", self.op("Div", scores, root), axis=-1), v)


def mlp(a):
    graph = Graph(a)
    x = graph.relu(graph.dense("data", "weight0", "bias0"))
    x = graph.relu(graph.dense(x, "weight1", "bias1"))
    return graph.finish(graph.dense(x, "weight2", "bias2"))


def lenet(a):
    graph, x = Graph(a), "data"
    for i, pad in ((0, 2), (1, 0)):
        x = graph.op("Conv", x, f"weight{i}", f"bias{i}", pads=[pad] * 4)
        x = graph.pool(graph.relu(x), size=2, pad=0)
    x = graph.op("Flatten", x)
    for i in (2, 3, 4):
        x = graph.dense(x, f"weight{i}", f"bias{i}")
        x = graph.relu(x) if i < 4 else x
    return graph.finish(x)


def plain(a):
    graph = Graph(a, "abc")
    return graph.finish(graph.add(graph.op("Mul", "a", "b"), "c"))


def elementwise(a):
    graph = Graph(a, "abc")
    op = graph.op
    left = op("Mul", op("Tanh", op("Add", op("Mul", "a", "b"), "c")), "a")
    right = op("Exp", op("Mul", op("Neg", "c"), "c"))
    return graph.finish(op("Sub", left, right))


def one(kind, *weights, **attributes):
    """The builder of a net of one node."""

    def build(a):
        graph = Graph(a)
        return graph.finish(graph.op(kind, "data", *weights, **attributes))

    return build


def walk(net, a):
    graph = Graph(a)
    return graph.finish(Ops(graph).walk(net, "data"))


def lstm(a):
    def gates(name):  # in, out, forget, new
        i, f, g, o = np.split(a[name], 4)
        return np.concatenate([i, o, f, g])

    graph = Graph({"data": a["data"]})
    n = a["from_h"].shape[1]
    weights = [gates(name)[None] for name in ("from_x", "from_h")]
    weights.append(np.concatenate([gates("bias_x"), gates("bias_h")])[None])
    names = map(graph.constant, weights)
    y = graph.op("LSTM", "data", *names, hidden_size=n)  # (steps, directions, batch, states)
    return graph.finish(graph.op("Squeeze", y, graph.constant(np.int64([1]))))


def session(model, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    fast = onnxruntime.InferenceSession(model, options)
    return lambda: fast.run(None, feeds)[0]


BUILD = {
    "mlp": mlp,
    "lenet": lenet,
    "plain": plain,
    "elementwise": elementwise,
    "softmax": one("Softmax", axis=-1),
    "layer_norm": one("LayerNormalization", "gamma", "beta", axis=-1, epsilon=1e-5),
    "lstm": lstm,
    **{net: partial(walk, net) for net in walks.WALKS},
    "matmul": one("MatMul", "data"),
}
MODES = {"session": session}
to_numpy = np.asarray
