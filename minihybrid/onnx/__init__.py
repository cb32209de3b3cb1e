"""Chapter 13. ONNX files, both ways; an optional part: `minihybrid[onnx]`."""

import sys

from minihybrid import contrib
from minihybrid.onnx.load import get_model_metadata, import_model, import_to_gluon

__all__ = ["get_model_metadata", "import_model", "import_to_gluon"]

contrib.onnx = sys.modules[__name__]  # where MXNet has them
