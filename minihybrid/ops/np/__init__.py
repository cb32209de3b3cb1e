"""The records of the NumPy-like interface, made of those before.

Takes:   the records of Gluon's legacy arrays.
Gives:   `_npi_add`, `_np_reshape`, ...: what MXNet writes into files of such programs.
"""

from minihybrid.ops.np import names, shapes

__all__ = ["names", "shapes"]
