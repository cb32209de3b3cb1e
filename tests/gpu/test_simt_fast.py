"""The simulated GPU's fast mode gives what its checked mode gives."""
import sys

import numpy as np
import pytest

from minihybrid import simt
from minihybrid.core.op import HybridError
from minihybrid.simt.fast import FastProgram

TEXTS = {
    "map": """
def k(a: float32[100], n: int32[100], out: float32[100]):
    i = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    if i < 100:
        v = math.exp(-a[i]) * float32(2.5) + math.floor(a[i])
        out[i] = v if n[i] % 3 > 0 else abs(a[i])
""",
    "tree": """
def k(a: float32[100], n: int32[100], out: float32[100]):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for i in range(t, 25, 32):
        total += a[cuda.blockIdx.x * 25 + i]
    s[t] = total
    cuda.syncthreads()
    half = 16
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]
""",
    "scatter": """
from minihybrid.codegen.gpu.cuda import atomic_add
def k(a: float32[100], n: int32[100], out: float32[100]):
    i = cuda.grid(1)
    if i < 100:
        atomic_add(out, n[i] % 5, a[i])
        cuda.atomic.max(out, 99, a[i])
""",
    "fours": """
from minihybrid.codegen.gpu.cuda import load4, store4
def k(a: float32[100], n: int32[100], out: float32[100]):
    i = cuda.grid(1) * 4
    s = cuda.shared.array(128, float32)
    if i < 100:
        p, q, r, t = load4(a, i)
        j = cuda.threadIdx.x * 4
        store4(s, j, (t, r, q, p))
        store4(out, i, load4(s, j))
""",
    "functions": """
from minihybrid.codegen.device import INF, erfinv32, sigmoid32, unit
def k(a: float32[100], n: int32[100], out: float32[100], key: uint64):
    i = cuda.grid(1)
    if i < 100:
        v = sigmoid32(a[i]) * erfinv32(a[i] / float32(10))
        if v < float32(INF):
            out[i] = v + float32(unit(key, i, 0))
""",
    "whole": """
def k(a: float32[100], n: int32[100], out: float32[100]):
    s = cuda.shared.array((4, 8), int32)
    y, x = cuda.threadIdx.x // 8, cuda.threadIdx.x % 8
    i = cuda.grid(1)
    if i < 100:
        s[y, x] = n[i] * n[i]
        out[i] = float32(s[y, x] >> 3) + float32(uint8(n[i]))
""",
}


def results(text, run):
    rng = np.random.default_rng(3)
    a = rng.normal(size=100).astype("float32")
    n, out = rng.integers(0, 1000, 100).astype("int32"), np.zeros(100, "float32")
    run([a, n, out] + [2**63 + 5] * ("key" in text))
    return n, out


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_all_modes_agree(name):
    text = TEXTS[name]
    checked = results(text, lambda args: simt.Program(text).run(4, 32, args))
    plain = results(text, lambda args: simt.Program(text).run(4, 32, args, check=False))
    fast = results(text, lambda args: FastProgram(text).run(4, 32, args))
    for expected, *others in zip(checked, plain, fast, strict=True):
        for other in others:
            np.testing.assert_allclose(other, expected, rtol=1e-5)


def test_fast_mode_refuses_divergent_barriers_too():
    text = ("def k(out: float32[4]):\n"
            "    if cuda.threadIdx.x < 2:\n"
            "        cuda.syncthreads()\n")
    with pytest.raises(simt.BarrierError) as caught:
        FastProgram(text).run(1, 4, [np.zeros(4, "float32")])
    assert caught.value.line == 3


def test_a_kernel_is_compiled_once():
    program = FastProgram(TEXTS["map"])
    for _ in range(3):
        results(TEXTS["map"], lambda args: program.run(4, 32, args))
    (signature,) = program.launch.signatures
    assert len(signature) == 9


def test_without_numba_an_error_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(HybridError, match="needs Numba, which is not installed"):
        FastProgram(TEXTS["map"])
