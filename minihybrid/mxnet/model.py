"""Checkpoints: a graph and its arrays, in a pair of files.

Defines: `save_checkpoint`, `load_checkpoint`, `load_params`.

Source:  MXNet's mxnet.model; `HybridBlock.export` writes the same two files.
Not supported: the class FeedForward, which MXNet replaced by `mx.mod.Module`.
"""

from minihybrid.core import lazy
from minihybrid.core.files import FileError, write_together
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import _packed, load
from minihybrid.core.sym import load as load_symbol

KINDS = ("arg", "aux")
INSTEAD = {"FeedForward": "mx.mod.Module has fit, predict and score"}
__getattr__ = lazy.face(globals(), {}, INSTEAD)


def named_arrays(arg_params, aux_params):
    """Return name -> array, as files name them: `arg:w` a parameter, `aux:m` a state."""
    pairs = zip(KINDS, (arg_params, aux_params), strict=True)
    return {f"{kind}:{name}": array for kind, params in pairs for name, array in params.items()}


def save_checkpoint(prefix, epoch, symbol, arg_params, aux_params, remove_amp_cast=True):
    """Write `prefix-0001.params` and, if there is a symbol, `prefix-symbol.json`.

    arg_params, aux_params: name -> array, for parameters and auxiliary states.
    """
    arrays = named_arrays(arg_params, aux_params)
    graph = {} if symbol is None else {f"{prefix}-symbol.json": symbol.tojson().encode()}
    write_together(graph | {f"{prefix}-{epoch:04d}.params": _packed(arrays)})


def load_params(prefix, epoch):
    """Return (arguments, states): the arrays of a checkpoint, by name."""
    return read_params(f"{prefix}-{epoch:04d}.params")


def read_params(fname):
    """Return (arguments, states): the arrays of a file, by name.

    Raises:  FileError if a name begins with neither `arg:` nor `aux:`.
    """
    arrays = load(fname)
    params = {kind: {} for kind in KINDS}
    for name, array in arrays.items() if isinstance(arrays, dict) else ():
        kind, _, rest = name.partition(":")
        if kind not in params:
            raise FileError(
                f"'{fname}': the name '{name:.60}' begins with neither "
                "'arg:' nor 'aux:'; Block.load_parameters reads such files"
            )
        params[kind][rest] = array
    if isinstance(arrays, list) and arrays:
        raise FileError(f"'{fname}' holds arrays without names; a checkpoint has names")
    return params["arg"], params["aux"]


def load_checkpoint(prefix, epoch):
    """Return (symbol, arguments, states) of a checkpoint.

    >>> import tempfile, os
    >>> from minihybrid.core import nd, sym
    >>> prefix = os.path.join(tempfile.mkdtemp(), "net")
    >>> save_checkpoint(prefix, 1, sym.var("x") * sym.var("w"), {"w": nd.ones(2)}, {})
    >>> symbol, arguments, states = load_checkpoint(prefix, 1)
    >>> symbol.list_arguments(), list(arguments), states
    (['x', 'w'], ['w'], {})
    """
    return load_symbol(f"{prefix}-symbol.json"), *load_params(prefix, epoch)


__dir__ = own_names(globals())
