"""ONNX, the format that other engines read: our graphs go there and back.

Takes:   nets, symbols, or files.
Gives:   `export_model`, `import_model`, `import_to_gluon`, `get_model_metadata`; and
         `net.export(path, format="onnx")`.

The library `onnx` is needed only when one of them is called:
`pip install "minihybrid[onnx]"`.
"""

from minihybrid.core import lazy
from minihybrid.core.hooks import own_names

LATER = {
    "export_model": "formats.onnx.export.model:export_model",
    "get_model_metadata": "formats.onnx.load.model:get_model_metadata",
    "import_model": "formats.onnx.load.model:import_model",
    "import_to_gluon": "formats.onnx.load.model:import_to_gluon",
    "write_onnx": "formats.onnx.export.model:write_onnx",
}
__getattr__ = lazy.face(globals(), LATER)

__all__ = ["export_model", "get_model_metadata", "import_model", "import_to_gluon"]


def __dir__():
    return own_names(globals())
