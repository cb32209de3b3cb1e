"""The `mx.npx` namespace: neural-network operators for np arrays and symbols.

Each name refers to an operator that `nd` and `sym` also have. There are also the switch
`set_np`, devices and files.

>>> from minihybrid import np, npx
>>> npx.relu(np.array([-1, 2]))
array([0., 2.])

Not supported: image and bounding box operators.
"""

from minihybrid.core import nd as _nd
from minihybrid.core.checked_call import signed
from minihybrid.core.context import Context, cpu, current_context, gpu, num_gpus, simulated_gpu
from minihybrid.core.nd import waitall
from minihybrid.mxnet.util import is_np_array, is_np_shape, np_shape, reset_np, set_np, use_np
from minihybrid.np.array import _Symbol, ndarray
from minihybrid.ops import OPS as _OPS
from minihybrid.ops.infix import namespace as _namespace
from minihybrid.ops.random import seed as _seed

_EXPORTED = (Context, cpu, current_context, gpu, is_np_array, is_np_shape, np_shape, num_gpus)
_EXPORTED += (reset_np, set_np, simulated_gpu, use_np, waitall)
__all__ = sorted(["load", "random", "save", *(value.__name__ for value in _EXPORTED)])

# name in npx -> the operator's name in files
SAME = """batch_dot erf erfinv gamma gammaln gather_nd log_softmax one_hot pick reshape_like
    scaled_dot_product_attention shape_array slice smooth_l1 softmax topk"""
NAMES = {name: name for name in SAME.split()} | {
    "activation": "Activation",
    "arange_like": "_contrib_arange_like",
    "batch_flatten": "Flatten",
    "batch_norm": "BatchNorm",
    "cast": "Cast",
    "convolution": "Convolution",
    "deconvolution": "Deconvolution",
    "dropout": "Dropout",
    "embedding": "Embedding",
    "fully_connected": "FullyConnected",
    "group_norm": "GroupNorm",
    "instance_norm": "InstanceNorm",
    "layer_norm": "LayerNorm",
    "leaky_relu": "LeakyReLU",
    "pooling": "Pooling",
    "relu": "_npx_relu",
    "reshape": "_npx_reshape",
    "sequence_mask": "SequenceMask",
    "sigmoid": "_npx_sigmoid",
    "stop_gradient": "BlockGrad",
}


class _RandomSeed:
    """The function `npx.random.seed`."""

    @staticmethod
    def seed(seed, ctx="all"):
        """Seed the random number generator."""
        _seed(seed, ctx)


random = _RandomSeed()


@signed
def save(file, arr):
    """Write an array, a list of arrays or a dict of them to a file."""
    _nd.save(file, arr)


@signed
def load(file):
    """Load the arrays that `save` wrote, as a list or a dict."""
    with np_shape():
        arrays = _nd.load(file)
    if isinstance(arrays, dict):
        return {name: value.as_np_ndarray() for name, value in arrays.items()}
    return [value.as_np_ndarray() for value in arrays]


def _function(name, base, module):
    if NAMES.get(name) not in _OPS:
        raise AttributeError(f"{module} has no function '{name}'; dir({module}) lists all")
    return _namespace(NAMES[name], base, module, f"npx.{name}")


def _looked_up(names):
    """Return the module's `__getattr__`, which caches functions as attributes."""

    def __getattr__(name):
        names[name] = function = _function(name, ndarray, "npx")
        return function  # later look-ups skip __getattr__

    return __getattr__


__getattr__ = _looked_up(globals())


def __dir__():
    return sorted({*__all__, *(n for n, op in NAMES.items() if op in _OPS)})


class _Symbols:
    """`F.npx` with F = sym."""

    def __getattr__(self, name):
        return _function(name, _Symbol, "sym.npx")

    def __dir__(self):
        return sorted(n for n, op in NAMES.items() if op in _OPS)


_SYMBOLS = _Symbols()
