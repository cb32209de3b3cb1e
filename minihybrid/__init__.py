"""minihybrid: a hybrid deep-learning engine small enough to read.

Write a network as ordinary Python on arrays; `net.hybridize()` traces it once into a
graph, optimises, compiles and exports it.

>>> import minihybrid as mx
>>> net = mx.gluon.nn.Dense(2); net.initialize(); net.hybridize()
>>> net(mx.nd.ones((1, 3))).shape
(1, 2)
"""

import sys

from minihybrid import (
    arrays,
    autograd,
    base,
    contrib,
    datasets,
    executor,
    files,
    gluon,
    init,
    look,
    lr_scheduler,
    metric,
    model,
    np,
    npx,
    onnx,
    optimizer,
    symbols,
    util,
    viz,
)
from minihybrid.base import MXNetError, __version__
from minihybrid.core import (
    attribute,
    block,
    context,
    name,
    nd,
    parameter,
    params,
    serial,
    sym,
)
from minihybrid.core.attribute import AttrScope
from minihybrid.core.context import (
    Context,
    cpu,
    current_context,
    gpu,
    num_gpus,
    simulated_gpu,
)
from minihybrid.core.nd import random
from minihybrid.core.op import (
    AttrError,
    DTypeError,
    HybridError,
    NumberError,
    PlaceError,
    ShapeError,
)
from minihybrid.core.tracing import TraceError
from minihybrid.device import interop
from minihybrid.gluon import function
from minihybrid.look.explain import explain
from minihybrid.look.show import show
from minihybrid.run import eager
from minihybrid.util import np_shape, use_np_shape

ndarray, symbol, initializer, visualization = nd, sym, init, viz
# What programs import as modules of MXNet's are modules of the core, the very same:
# `F is mx.sym` asks for them.
sys.modules.update({f"{__name__}.{path}": module for path, module in {
    "attribute": attribute, "context": context, "name": name, "nd": nd, "ndarray": nd,
    "sym": sym, "symbol": sym, "initializer": init, "visualization": viz,
    "gluon.block": block, "gluon.parameter": parameter}.items()})

__all__ = [
    "AttrError", "AttrScope", "Context", "DTypeError", "HybridError", "MXNetError",
    "NumberError", "PlaceError", "ShapeError", "TraceError", "__version__",
    "arrays", "attribute", "autograd", "base",
    "context", "contrib", "cpu", "current_context", "datasets", "eager", "executor",
    "explain", "files", "function", "gluon", "gpu", "init", "initializer", "interop",
    "look", "lr_scheduler", "metric", "model", "name", "nd", "ndarray", "np",
    "np_shape", "npx", "num_gpus", "onnx", "optimizer", "params", "random", "serial",
    "show", "simulated_gpu", "sym", "symbol", "symbols", "use_np_shape", "util",
    "visualization", "viz",
]
