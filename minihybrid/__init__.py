"""minihybrid: a hybrid deep-learning engine small enough to read.

Write a network as ordinary Python on arrays; `net.hybridize()` traces it once into a
graph, optimizes, compiles and exports it.

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

from minihybrid import registrations  # noqa: F401  (it enters its tables)
from minihybrid.core import attribute, context, lazy
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
from minihybrid.mxnet.base import MXNetError, __version__, cpu_pinned, cpu_shared
from minihybrid.mxnet.util import np_shape, use_np_shape

# Modules that programs name without their ring, as MXNet's: name -> where it is.
PUBLIC = {
    "autograd": "gluon.autograd",
    "base": "mxnet.base",
    "bench": "view.bench",
    "callback": "mxnet.callback",
    "contrib": "gluon.control_flow",
    "datasets": "gluon.data.bundled",
    "executor": "mxnet.executor",
    "image": "gluon.data.vision.image",
    "init": "gluon.init",
    "io": "mxnet.io",
    "kvstore": "mxnet.kvstore",
    "lr_scheduler": "gluon.lr_scheduler",
    "metric": "gluon.metric",
    "model": "mxnet.model",
    "module": "mxnet.module",
    "monitor": "mxnet.monitor",
    "nd": "core.nd",
    "npx": "np.npx",
    "onnx": "formats.onnx",
    "optimizer": "gluon.optimizer",
    "profiler": "mxnet.profiler",
    "recordio": "mxnet.recordio",
    "sym": "core.sym",
    "test_utils": "mxnet.test_utils",
    "util": "mxnet.util",
    "viz": "view.viz",
}
# MXNet's other names for them.
ALSO = {
    "img": "image",
    "initializer": "init",
    "kv": "kvstore",
    "mod": "module",
    "mon": "monitor",
    "ndarray": "nd",
    "numpy_extension": "npx",
    "symbol": "sym",
    "visualization": "viz",
}
PUBLIC |= {name: PUBLIC[module] for name, module in ALSO.items()} | {"numpy": "np"}
# Imported when they are first used, as all modules of the package are: name -> road.
LATER = PUBLIC | {
    "TraceError": "core.tracing:TraceError",
    "check": "minihybrid_course.exercises:check",
    "course": "minihybrid_course",
    "eager": "runtime.device_eager",
    "exercises": "minihybrid_course.exercises:exercises",
    "explain": "view.explain:explain",
    "function": "gluon.function:function",
    "hint": "minihybrid_course.exercises:hint",
    "interop": "runtime.interop",
    "jvp": "gluon.transform:jvp",
    "random": "core.nd:random",
    "show": "view.show:show",
    "vjp": "gluon.transform:vjp",
    "vmap": "gluon.transform:vmap",
}
INSTEAD = {  # what MXNet has and we have not
    "engine": "calls return when their result is there, and nd.waitall() has nothing to wait for",
    "operator": "an operator of yours is an autograd.Function, or a record (ops.register)",
    "rnn": "gluon.rnn has the cells and layers, also for symbols",
    "rtc": "kernels of yours are written with numba.cuda, as in the book's part on CUDA",
    "tvmop": "mx.function(f) compiles what f computes",
}
__getattr__ = lazy.face(globals(), LATER, INSTEAD)

# What programs import as modules of MXNet's are modules of ours: the very same,
ALIASES = {"attribute": attribute, "context": context}
# or one that has the same names, and shows those that programs use.
ROADS = PUBLIC | {
    "contrib.amp": "gluon.amp",
    "contrib.onnx": "formats.onnx",
    "contrib.quantization": "gluon.quantization",
    "gluon.block": "core.block",
    "gluon.nn.activations": "gluon.nn",
    "gluon.nn.basic_layers": "gluon.nn",
    "gluon.nn.conv_layers": "gluon.nn",
    "gluon.parameter": "core.parameter",
    "image.image": "gluon.data.vision.image",
    "io.io": "mxnet.io",
    "module.module": "mxnet.module",
    "name": "core.name",
    "nd.contrib": "core.nd:contrib",
    "nd.linalg": "core.nd:linalg",
    "nd.random": "core.nd:random",
    "ndarray.contrib": "core.nd:contrib",
    "ndarray.linalg": "core.nd:linalg",
    "ndarray.ndarray": "core.nd",
    "ndarray.random": "core.nd:random",
    "numpy.linalg": "np:linalg",
    "numpy.random": "np:random",
    "optimizer.contrib": "gluon.optimizer:contrib",
    "optimizer.optimizer": "gluon.optimizer",
    "params": "core.params",
    "random": "core.nd:random",
    "serial": "core.serial",
    "sym.contrib": "core.sym:contrib",
    "sym.random": "core.sym:random",
    "symbol.contrib": "core.sym:contrib",
    "symbol.random": "core.sym:random",
    "symbol.symbol": "core.sym",
}
ALIASES |= {path: lazy.Alias(f"{__name__}.{path}", road) for path, road in ROADS.items()}
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
    "__version__",
    "attribute",
    "context",
    "cpu",
    "cpu_pinned",
    "cpu_shared",
    "current_context",
    "gluon",
    "gpu",
    "name",
    "np",
    "np_shape",
    "num_gpus",
    "params",
    "runtime",
    "serial",
    "simulated_gpu",
    "use_np_shape",
]
__all__ += LATER

__dir__ = own_names(globals())
