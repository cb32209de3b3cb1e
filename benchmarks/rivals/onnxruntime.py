"""ONNX Runtime: a finished graph, run without any framework around it."""
import os

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

VERSION = onnxruntime.__version__


def mlp(a):
    """The graph in ONNX's form, built by hand: Gemm, Relu, Gemm, Relu, Gemm."""
    nodes, x = [], "data"
    for i in range(3):
        nodes.append(helper.make_node(
            "Gemm", [x, f"weight{i}", f"bias{i}"], [f"dense{i}"], transB=1))
        x = f"dense{i}"
        if i < 2:
            nodes.append(helper.make_node("Relu", [x], [f"relu{i}"]))
            x = f"relu{i}"
    batch = len(a["data"])
    graph = helper.make_graph(
        nodes, "mlp",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [batch, 512])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [batch, 2])],
        [numpy_helper.from_array(w, name) for name, w in a.items() if name != "data"])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), a["data"]


def session(model, x):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    fast = onnxruntime.InferenceSession(model, options)
    return lambda: fast.run(None, {"data": x})[0]


BUILD = {"mlp": mlp}
MODES = {"session": session}
to_numpy = np.asarray
