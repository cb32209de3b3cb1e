"""minihybrid: a hybrid deep-learning engine small enough to read.

Write a network as ordinary Python on arrays; `net.hybridize()` traces it once into a
graph, optimises, compiles and exports it.

>>> import minihybrid as mx
>>> net = mx.gluon.nn.Dense(2); net.initialize(); net.hybridize()
>>> net(mx.nd.ones((1, 3))).shape
(1, 2)
"""

from minihybrid import (
    attribute,
    autograd,
    base,
    context,
    contrib,
    datasets,
    eager,
    executor,
    gluon,
    init,
    interop,
    look,
    lr_scheduler,
    metric,
    model,
    name,
    nd,
    np,
    npx,
    onnx,
    optimizer,
    params,
    serial,
    sym,
    util,
    viz,
)
from minihybrid.attribute import AttrScope
from minihybrid.base import MXNetError, __version__
from minihybrid.context import (
    Context,
    cpu,
    current_context,
    gpu,
    num_gpus,
    simulated_gpu,
)
from minihybrid.explain import explain
from minihybrid.gluon import function
from minihybrid.nd import random
from minihybrid.op import (
    AttrError,
    DTypeError,
    HybridError,
    NumberError,
    PlaceError,
    ShapeError,
)
from minihybrid.show import show
from minihybrid.tracing import TraceError
from minihybrid.util import np_shape, use_np_shape

ndarray, symbol, initializer, visualization = nd, sym, init, viz

__all__ = [
    "AttrError", "AttrScope", "Context", "DTypeError", "HybridError", "MXNetError",
    "NumberError", "PlaceError", "ShapeError", "TraceError", "__version__",
    "attribute", "autograd", "base",
    "context", "contrib", "cpu", "current_context", "datasets", "eager", "executor",
    "explain", "function", "gluon", "gpu", "init", "initializer", "interop",
    "look", "lr_scheduler", "metric", "model", "name", "nd", "ndarray", "np",
    "np_shape", "npx", "num_gpus", "onnx", "optimizer", "params", "random", "serial",
    "show", "simulated_gpu", "sym", "symbol", "use_np_shape", "util", "visualization",
    "viz",
]
