"""Chapter 22. MXNet's export format, and the table of all formats.

`hooks.FORMATS` maps the name of a format to a function that writes a net's cache entry and
returns the file names; other formats register themselves (`minihybrid/formats`).

Limits: MXNet's graphs contain no shapes, so one file serves all.
"""

from minihybrid.core.files import write_together
from minihybrid.core.hooks import FORMATS
from minihybrid.core.nd import _packed
from minihybrid.core.serial import tojson
from minihybrid.core.sym import Symbol


def write_mxnet(entry, path, epoch, *_):
    """Write `path-symbol.json` and `path-0000.params`, as MXNet does."""
    return write_together(mxnet_files(entry, path, epoch))


def mxnet_files(entry, path, epoch):
    """Return name -> bytes of the two files."""
    symbol = Symbol(entry.graph.heads)
    kinds = dict.fromkeys(symbol.list_arguments(), "arg")
    kinds |= dict.fromkeys(symbol.list_auxiliary_states(), "aux")
    arrays = {f"{kinds[n]}:{n}": p.data() for n, p in entry.params.items() if n in kinds}
    graph = {f"{path}-symbol.json": tojson(symbol).encode()}
    return graph | {f"{path}-{epoch:04d}.params": _packed(arrays)}


FORMATS["mxnet"] = write_mxnet
