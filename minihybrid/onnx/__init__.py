"""Chapter 13. ONNX, the format that other engines read: our graphs go there and back.

The library `onnx` is needed only when a function is called:
`pip install "minihybrid[onnx]"`.
"""

from minihybrid.onnx.export import export_model, write_onnx

__all__ = ["export_model", "write_onnx"]
