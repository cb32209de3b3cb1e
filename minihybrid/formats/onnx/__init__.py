"""Export to and import from ONNX, the exchange format of other engines.

Defines: `export_model`, `import_model`, `import_to_gluon`, `get_model_metadata`; and
         `net.export(path, format="onnx")`.

These functions need the package `onnx`:
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

__dir__ = own_names(globals())
