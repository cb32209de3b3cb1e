"""minihybrid: a hybrid deep-learning engine small enough to read.

Write a network as ordinary Python on arrays; `net.hybridize()` traces it once into a
graph, optimises, compiles and exports it.

>>> import minihybrid as mx
>>> net = mx.gluon.nn.Dense(2); net.initialize(); net.hybridize()
>>> net(mx.nd.ones((1, 3))).shape
(1, 2)
"""

import sys
from importlib.util import find_spec

if find_spec("numpy") is None:  # said before a module of ours asks for it
    raise ModuleNotFoundError(
        "minihybrid computes with NumPy, which is not installed here: say "
        "`python -m pip install numpy`, or `%pip install numpy` in a notebook",
        name="numpy",
    )

from minihybrid import faces, later  # noqa: F401  (it enters its tables)
from minihybrid.base import MXNetError, __version__, cpu_pinned, cpu_shared
from minihybrid.core import attribute, context
from minihybrid.core.attribute import AttrScope
from minihybrid.core.context import Context, cpu, current_context, gpu, num_gpus, simulated_gpu
from minihybrid.core.hooks import own_names
from minihybrid.core.op import (
    AttrError,
    DTypeError,
    HybridError,
    NumberError,
    PlaceError,
    ShapeError,
)
from minihybrid.util import np_shape, use_np_shape

# Imported when they are first used, as all modules of the package are: name -> road.
LATER = {
    "TraceError": "core.tracing:TraceError",
    "check": "look.exercises:check",
    "eager": "run.eager",
    "exercises": "look.exercises:exercises",
    "explain": "look.explain:explain",
    "function": "gluon.function:function",
    "hint": "look.exercises:hint",
    "img": "image",
    "initializer": "init",
    "interop": "device.interop",
    "kv": "kvstore",
    "mod": "module",
    "mon": "monitor",
    "nd": "core.nd",
    "ndarray": "core.nd",
    "numpy": "np",
    "numpy_extension": "npx",
    "random": "core.nd:random",
    "show": "look.show:show",
    "sym": "core.sym",
    "symbol": "core.sym",
    "visualization": "viz",
}
INSTEAD = {  # what MXNet has and we have not
    "engine": "calls return when their result is there, and nd.waitall() has nothing to wait for",
    "operator": "an operator of yours is an autograd.Function, or a record (ops.register)",
    "profiler": "mx.explain(net, x) tells the time of each kernel",
    "rnn": "gluon.rnn has the cells and layers, also for symbols",
    "rtc": "kernels of yours are written with numba.cuda, as in the book's part on CUDA",
    "tvmop": "mx.function(f) compiles what f computes",
}
__getattr__ = faces.face(globals(), LATER, INSTEAD)

# What programs import as modules of MXNet's are modules of ours: the very same,
ALIASES = {"attribute": attribute, "context": context}
# or one that has the same names, and shows those that programs use.
ROADS = {
    "gluon.block": "core.block",
    "gluon.nn.activations": "gluon.nn",
    "gluon.nn.basic_layers": "gluon.nn",
    "gluon.nn.conv_layers": "gluon.nn",
    "gluon.parameter": "core.parameter",
    "image.image": "image",
    "img": "image",
    "initializer": "init",
    "io.io": "io",
    "kv": "kvstore",
    "mod": "module",
    "module.module": "module",
    "mon": "monitor",
    "name": "core.name",
    "nd": "core.nd",
    "nd.contrib": "core.nd:contrib",
    "nd.linalg": "core.nd:linalg",
    "nd.random": "core.nd:random",
    "ndarray": "core.nd",
    "ndarray.contrib": "core.nd:contrib",
    "ndarray.linalg": "core.nd:linalg",
    "ndarray.ndarray": "core.nd",
    "ndarray.random": "core.nd:random",
    "numpy": "np",
    "numpy.linalg": "np:linalg",
    "numpy.random": "np:random",
    "numpy_extension": "npx",
    "optimizer.contrib": "optimizer:contrib",
    "optimizer.optimizer": "optimizer",
    "params": "core.params",
    "random": "core.nd:random",
    "serial": "core.serial",
    "sym": "core.sym",
    "sym.contrib": "core.sym:contrib",
    "sym.random": "core.sym:random",
    "symbol": "core.sym",
    "symbol.contrib": "core.sym:contrib",
    "symbol.random": "core.sym:random",
    "symbol.symbol": "core.sym",
    "visualization": "viz",
}
ALIASES |= {path: faces.Alias(f"{__name__}.{path}", road) for path, road in ROADS.items()}
sys.modules.update({f"{__name__}.{path}": module for path, module in ALIASES.items()})

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
    "cpu_pinned",
    "cpu_shared",
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
    "kv",
    "kvstore",
    "look",
    "lr_scheduler",
    "metric",
    "mod",
    "model",
    "module",
    "mon",
    "monitor",
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
    "recordio",
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
