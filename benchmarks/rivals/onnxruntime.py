"""ONNX Runtime: a finished graph, run without any framework around it."""

import os

import numpy as np
import onnxruntime
import resnet
from onnx import TensorProto, helper, numpy_helper

VERSION = onnxruntime.__version__


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

    # what the walk over ResNet-18 asks for
    def conv(self, x, i, stride, pad):
        y = self.op("Conv", x, f"weight{i}", pads=[pad] * 4, strides=[stride] * 2)
        return self.op(
            "BatchNormalization",
            y,
            f"gamma{i}",
            f"beta{i}",
            f"mean{i}",
            f"var{i}",
            epsilon=resnet.EPSILON,
        )

    def relu(self, x):
        return self.op("Relu", x)

    def pool(self, x, size=3, pad=1):
        return self.op("MaxPool", x, kernel_shape=[size] * 2, strides=[2, 2], pads=[pad] * 4)

    def add(self, x, y):
        return self.op("Add", x, y)

    def head(self, x):
        x = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.dense(x, "weight", "bias")


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


def resnet18(a):
    graph = Graph(a)
    return graph.finish(resnet.forward(graph, "data"))


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
    "resnet18": resnet18,
    "matmul": one("MatMul", "data"),
}
MODES = {"session": session}
to_numpy = np.asarray
