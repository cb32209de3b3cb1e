"""Kernels written by hand, as code generation writes them, and what they promise.

`PROMISED`: name -> (text, {what `gpu_compile.figures` calls it: what is promised}).
"""

HEAD = """import math

from numba import boolean, cuda, float32, float64, int32, int64, uint8, uint64

from minihybrid.codegen.gpu.cuda import atomic_add, load4, store4
from minihybrid.codegen.device_math import draw_gamma, gauss, mod32, sigmoid32, unit


"""
PROMISED = {}


def promised(text, **figures):
    name = text.split("(")[0].removeprefix("def ")
    PROMISED[name] = HEAD + text, figures


promised(
    """def five(a0: float32[1000], a1: float32[1000], a2: float32[1000],
         a3: float32[1000], out: float32[1000]):
    i = cuda.blockIdx.x * 256 + cuda.threadIdx.x
    if i < 1000:
        t0 = a0[i] * a1[i]
        t1 = t0 + a2[i]
        t2 = float32(0) if t1 <= 0 else t1
        t3 = sigmoid32(a3[i])
        out[i] = t2 * t3
""",
    f64=0,
    loads={1: 4},
    stores={1: 1},
    barriers=0,
    shared_bytes=0,
)

promised(
    """def five_wide(a0: float32[4096], a1: float32[4096], a2: float32[4096],
              a3: float32[4096], out: float32[4096]):
    i = (cuda.blockIdx.x * 256 + cuda.threadIdx.x) * 4
    if i < 4096:
        v0 = load4(a0, i)
        v1 = load4(a1, i)
        v2 = load4(a2, i)
        v3 = load4(a3, i)
        t0 = (v0[0] * v1[0] + v2[0]) * math.tanh(v3[0])
        t1 = (v0[1] * v1[1] + v2[1]) * math.tanh(v3[1])
        t2 = (v0[2] * v1[2] + v2[2]) * math.tanh(v3[2])
        t3 = (v0[3] * v1[3] + v2[3]) * math.tanh(v3[3])
        store4(out, i, (t0, t1, t2, t3))
""",
    f64=0,
    loads={4: 4},
    stores={4: 1},
)

promised(
    """def product(a0: float32[4096], a1: float32[4096], a2: float32[64],
            out: float32[4096]):
    sa = cuda.shared.array((16, 16), float32)
    sb = cuda.shared.array((16, 16), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    col = cuda.blockIdx.x * 16 + tx
    row = cuda.blockIdx.y * 16 + ty
    acc = float32(0)
    for k0 in range(0, 64, 16):
        sa[ty, tx] = a0[row * 64 + k0 + tx]
        sb[ty, tx] = a1[(k0 + ty) * 64 + col]
        cuda.syncthreads()
        for k in range(16):
            acc += sa[ty, k] * sb[k, tx]
        cuda.syncthreads()
    t0 = acc + a2[col]
    out[row * 64 + col] = float32(0) if t0 <= 0 else t0
""",
    f64=0,
    stores={1: 1},
    shared_bytes=2048,
)

promised(
    """def softmax(a0: float32[6400], out: float32[6400]):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x * 100
    best = float32(-math.inf)
    for i in range(t, 100, 128):
        v = a0[row + i]
        best = v if v > best or v != v else best
    s[t] = best
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            other = s[t + step]
            s[t] = other if other > s[t] or other != other else s[t]
        cuda.syncthreads()
        step //= 2
    best = s[0]
    cuda.syncthreads()
    total = float32(0)
    for i in range(t, 100, 128):
        total += math.exp(a0[row + i] - best)
    s[t] = total
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    for i in range(t, 100, 128):
        out[row + i] = math.exp(a0[row + i] - best) / s[0]
""",
    f64=0,
    shared_bytes=512,
)

promised(
    """def scatter(a0: float32[640], a1: int32[10], out: float32[6400]):
    i = cuda.blockIdx.x * 256 + cuda.threadIdx.x
    if i < 640:
        atomic_add(out, a1[i // 64] * 64 + i % 64, a0[i])
""",
    f64=0,
    loads={1: 2},
    stores={},
    atomics=1,
)

promised(
    """def counted(a0: uint8[1000], out: int64[256], total: float64[1]):
    s = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    s[t] = int32(0)
    cuda.syncthreads()
    for i in range(t, 1000, 256):
        atomic_add(s, a0[i], int32(1))
    cuda.syncthreads()
    atomic_add(out, t, s[t])
    atomic_add(total, 0, float64(s[t]))
""",
    shared_bytes=1024,
)

promised(
    """def mask(out: float32[1000], key: uint64):
    i = cuda.blockIdx.x * 256 + cuda.threadIdx.x
    if i < 1000:
        out[i] = float32(0) if unit(key + uint64(3), i, 0) < 0.5 else float32(2)
""",
    loads={},
    stores={1: 1},
)

promised("""def drawn(a0: float32[1000], out: float32[1000], key: uint64):
    i = cuda.blockIdx.x * 256 + cuda.threadIdx.x
    if i < 1000:
        v0 = a0[i]
        t0 = float32(gauss(key, i))
        out[i] = t0 + float32(draw_gamma(key + uint64(1), i, float64(v0)))
""")

promised(
    """def both(a0: boolean[1000], a1: boolean[1000], out: boolean[1000]):
    i = cuda.blockIdx.x * 256 + cuda.threadIdx.x
    if i < 1000:
        out[i] = boolean(a0[i] and a1[i])
""",
    f64=0,
    stores={1: 1},
)

promised(
    """def wide_float64(a0: float64[1000], out: float64[1000]):
    i = (cuda.blockIdx.x * 256 + cuda.threadIdx.x) * 4
    if i < 1000:
        v = load4(a0, i)
        store4(out, i, (math.exp(v[0]), v[1], v[2], math.sqrt(v[3])))
""",
    loads={2: 2},
    stores={2: 2},
)

promised(
    """def remainder(a0: float32[1000], out: float32[1000]):
    i = cuda.blockIdx.x * 256 + cuda.threadIdx.x
    if i < 1000:
        out[i] = mod32(a0[i], float32(3))
""",
    f64=0,
    loads={1: 1},
    stores={1: 1},
)
