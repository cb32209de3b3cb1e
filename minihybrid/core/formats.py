"""Chapter 22. What `net.export` writes: the name of a format and its writer.

Takes:   a traced signature of a net: its graph, its inputs' names, its parameters; a path,
         a number; the net.
Gives:   MXNet's format in `hooks.FORMATS`: name of a format -> function that writes it
         and returns the names of its files. Others enter themselves (`minihybrid/files`,
         `minihybrid/onnx`).

What is left out: a graph with shapes; MXNet's has none, so a file serves all.
"""

from minihybrid.core.files import write_together
from minihybrid.core.hooks import FORMATS
from minihybrid.core.nd import _packed
from minihybrid.core.serial import tojson
from minihybrid.core.sym import Symbol


def write_mxnet(entry, path, epoch, *_):
    """`path-symbol.json` and `path-0000.params`, as MXNet writes them."""
    return write_together(mxnet_files(entry, path, epoch))


def mxnet_files(entry, path, epoch):
    """name -> bytes, of the two files."""
    symbol = Symbol(entry.graph.heads)
    kinds = dict.fromkeys(symbol.list_arguments(), "arg")
    kinds |= dict.fromkeys(symbol.list_auxiliary_states(), "aux")
    arrays = {f"{kinds[n]}:{n}": p.data() for n, p in entry.params.items() if n in kinds}
    graph = {f"{path}-symbol.json": tojson(symbol).encode()}
    return graph | {f"{path}-{epoch:04d}.params": _packed(arrays)}


FORMATS["mxnet"] = write_mxnet
