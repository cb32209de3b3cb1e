"""Chapter 22. What `net.export` writes: the name of a format and its writer.

Takes:   a traced signature of a net: its graph, its inputs' names, its parameters.
Gives:   MXNet's format in `hooks.FORMATS`: name of a format -> function that writes it
         and returns the names of its files. Others enter themselves (`minihybrid/files`,
         `minihybrid/onnx`).

What is left out: a graph with shapes; MXNet's has none, so a file serves all.
"""

from minihybrid.core.hooks import FORMATS
from minihybrid.core.nd import save
from minihybrid.core.sym import Symbol


def write_mxnet(entry, path, epoch):
    """`path-symbol.json` and `path-0000.params`, as MXNet writes them."""
    symbol_file, params_file = f"{path}-symbol.json", f"{path}-{epoch:04d}.params"
    symbol = Symbol(entry.graph.heads)
    kinds = dict.fromkeys(symbol.list_arguments(), "arg")
    kinds |= dict.fromkeys(symbol.list_auxiliary_states(), "aux")
    symbol.save(symbol_file)
    save(
        params_file,
        {f"{kinds[name]}:{name}": p.data() for name, p in entry.params.items() if name in kinds},
    )
    return symbol_file, params_file


FORMATS["mxnet"] = write_mxnet
