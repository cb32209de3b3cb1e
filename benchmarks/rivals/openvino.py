"""OpenVINO, for the answer to one request: the graphs that ONNX Runtime gets, in float32."""

import os
from io import BytesIO

import numpy as np
import openvino
from rivals import onnxruntime

VERSION, KERNELS = openvino.__version__, "oneDNN"
BUILD = onnxruntime.BUILD


def latency(model, feeds):
    """One request at a time, in one stream, as those who care for latency set it."""
    core = openvino.Core()
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": int(os.environ["OMP_NUM_THREADS"]),
        "INFERENCE_PRECISION_HINT": "f32",  # processors with bfloat16 would round
    }
    request = core.compile_model(core.read_model(BytesIO(model)), "CPU", settings)
    request = request.create_infer_request()
    return lambda: request.infer(feeds)[0]


MODES = {"latency, one stream": latency}
to_numpy = np.array
