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
    callback,
    contrib,
    datasets,
    executor,
    files,
    gluon,
    image,
    init,
    io,
    look,
    lr_scheduler,
    metric,
    model,
    np,
    npx,
    onnx,
    optimizer,
    runtime,
    symbols,
    test_utils,
    util,
    viz,
)
from minihybrid.base import MXNetError, __version__
from minihybrid.core import attribute, block, context, name, nd, parameter, params, serial, sym
from minihybrid.core.attribute import AttrScope
from minihybrid.core.context import Context, cpu, current_context, gpu, num_gpus, simulated_gpu
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
from minihybrid.look.exercises import check, exercises, hint
from minihybrid.look.explain import explain
from minihybrid.look.show import show
from minihybrid.ops.shown import own_names
from minihybrid.run import eager
from minihybrid.util import np_shape, use_np_shape

ndarray, symbol, initializer, visualization, img = nd, sym, init, viz, image
# What programs import as modules of MXNet's are modules of ours, the very same:
# `F is mx.sym` asks for them.
ALIASES = {
    "attribute": attribute,
    "context": context,
    "gluon.block": block,
    "gluon.nn.activations": gluon.nn,
    "gluon.nn.basic_layers": gluon.nn,
    "gluon.nn.conv_layers": gluon.nn,
    "gluon.parameter": parameter,
    "image.image": image,
    "img": image,
    "initializer": init,
    "io.io": io,
    "name": name,
    "nd": nd,
    "nd.contrib": nd.contrib,
    "nd.linalg": nd.linalg,
    "nd.random": random,
    "ndarray": nd,
    "ndarray.contrib": nd.contrib,
    "ndarray.linalg": nd.linalg,
    "ndarray.ndarray": nd,
    "ndarray.random": random,
    "numpy": np,
    "numpy.linalg": np.linalg,
    "numpy.random": np.random,
    "numpy_extension": npx,
    "optimizer.optimizer": optimizer,
    "random": random,
    "sym": sym,
    "sym.contrib": sym.contrib,
    "sym.random": sym.random,
    "symbol": sym,
    "symbol.contrib": sym.contrib,
    "symbol.random": sym.random,
    "symbol.symbol": sym,
    "visualization": viz,
}
sys.modules.update({f"{__name__}.{path}": module for path, module in ALIASES.items()})
numpy, numpy_extension = np, npx

__all__ = [
    "AttrError",
    "AttrScope",
    "Context",
    "DTypeError",
    "HybridError",
    "MXNetError",
    "NumberError",
    "PlaceError",
    "ShapeError",
    "TraceError",
    "__version__",
    "arrays",
    "attribute",
    "autograd",
    "base",
    "callback",
    "check",
    "context",
    "contrib",
    "cpu",
    "current_context",
    "datasets",
    "eager",
    "executor",
    "exercises",
    "explain",
    "files",
    "function",
    "gluon",
    "gpu",
    "hint",
    "image",
    "img",
    "init",
    "initializer",
    "interop",
    "io",
    "look",
    "lr_scheduler",
    "metric",
    "model",
    "name",
    "nd",
    "ndarray",
    "np",
    "np_shape",
    "npx",
    "num_gpus",
    "numpy",
    "numpy_extension",
    "onnx",
    "optimizer",
    "params",
    "random",
    "runtime",
    "serial",
    "show",
    "simulated_gpu",
    "sym",
    "symbol",
    "symbols",
    "test_utils",
    "use_np_shape",
    "util",
    "visualization",
    "viz",
]


def __dir__():
    return own_names(globals())
