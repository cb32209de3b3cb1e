"""Steps of plans for tests of the run time.

`CHAIN` computes out = ((x * p) * p + key) * p, with two values in the arena.
"""

from minihybrid.codegen.bytecode import ARENA, ARRAY, KEY, PARAM, Word
from minihybrid.codegen.gpu.target import GpuStep

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


def scaled(*words):
    return GpuStep(SCALED, "scaled", "k0_scaled", list(words), GRID, BLOCK)


def shifted(*words):
    return GpuStep(SHIFTED, "shifted", "k1_shifted", list(words), GRID, BLOCK)


CHAIN = [
    scaled(Word(ARRAY, 0), Word(PARAM, 0), Word(ARENA, 0)),
    scaled(Word(ARENA, 0), Word(PARAM, 0), Word(ARENA, 256)),
    shifted(Word(ARENA, 256), Word(ARENA, 0), Word(KEY, 0)),
    scaled(Word(ARENA, 0), Word(PARAM, 0), Word(ARRAY, 1)),
]
