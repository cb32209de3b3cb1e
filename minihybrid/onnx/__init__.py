"""Chapter 23. ONNX, the format that other engines read: our graphs go there and back.

Takes:   nets, symbols, or files.
Gives:   `export_model`, `import_model`, `import_to_gluon`, `get_model_metadata`; and
         `net.export(path, format="onnx")`.

The library `onnx` is needed only when one of them is called:
`pip install "minihybrid[onnx]"`.
"""

from minihybrid.core.sym import Symbol
from minihybrid.files.formats import FORMATS
from minihybrid.onnx.export.model import export_model, write_onnx
from minihybrid.onnx.load.model import get_model_metadata, import_model, import_to_gluon
from minihybrid.ops.shown import own_names

__all__ = ["export_model", "get_model_metadata", "import_model", "import_to_gluon"]


def write_net(entry, path, _):
    """`path.onnx`, for batches of any length: a format of `net.export`."""
    specs = {n.name: n.specs[0] for n in entry.graph.variables}

    def traced(specs):
        return Symbol(entry.again({name: specs[name] for name in entry.names}).heads)

    return (
        write_onnx(
            traced,
            {name: p.data() for name, p in entry.params.items()},
            {name: specs[name] for name in entry.names},
            f"{path}.onnx",
        ),
    )


# Blocks come before ONNX in the reading order; their format comes here.
FORMATS["onnx"] = write_net


def __dir__():
    return own_names(globals())
