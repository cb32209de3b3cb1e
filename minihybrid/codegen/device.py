"""Chapter 18. Functions of numbers that generated GPU kernels call."""

from minihybrid.codegen.cpu import FUNCTIONS

IMPORTS = {
    "numba": "boolean cuda float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 "
             "uint64",
    "minihybrid.codegen.cuda": "atomic_add load4 store4",
}


def functions(dtype):
    """The names in texts of the functions that expressions call."""
    return FUNCTIONS
