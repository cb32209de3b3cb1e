"""Launches of plans for tests of the run time.

`CHAIN` computes out = ((x * p) * p + key) * p, with two values in the arena.
"""

from minihybrid.codegen.bytecode import ARENA, ARRAY, KEY, PARAM, Operand
from minihybrid.codegen.gpu.target import GpuLaunch

N = 40
HEAD = "from numba import cuda, float32, uint64\n\n\n"
SCALED = (
    HEAD
    + """def scaled(a0: float32[40], a1: float32[1], out: float32[40]):
    i = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    if i < 40:
        out[i] = a0[i] * a1[0]
"""
)
SHIFTED = (
    HEAD
    + """def shifted(a0: float32[40], out: float32[40], key: uint64):
    i = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    if i < 40:
        out[i] = a0[i] + float32(key)
"""
)
GRID, BLOCK = (2, 1, 1), (32, 1, 1)


def scaled(*operands):
    return GpuLaunch(SCALED, "scaled", "k0_scaled", list(operands), GRID, BLOCK)


def shifted(*operands):
    return GpuLaunch(SHIFTED, "shifted", "k1_shifted", list(operands), GRID, BLOCK)


CHAIN = [
    scaled(Operand(ARRAY, 0), Operand(PARAM, 0), Operand(ARENA, 0)),
    scaled(Operand(ARENA, 0), Operand(PARAM, 0), Operand(ARENA, 256)),
    shifted(Operand(ARENA, 256), Operand(ARENA, 0), Operand(KEY, 0)),
    scaled(Operand(ARENA, 0), Operand(PARAM, 0), Operand(ARRAY, 1)),
]
