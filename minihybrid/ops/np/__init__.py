"""Operators of the NumPy-like interface, composed of the legacy operators.

Defines: `_npi_add`, `_np_reshape`, ...: the names that MXNet saves for `mx.np` programs.
"""

from minihybrid.ops.np import names, shapes

__all__ = ["names", "shapes"]
