"""The simulated GPU's fast mode gives what its checked mode gives."""

import sys
from types import SimpleNamespace

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
from minihybrid.codegen.device_math import INF, erfinv32, sigmoid32, unit
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
    fast = results(text, lambda args: FastProgram(text).run(4, 32, args))
    for expected, actual in zip(checked, fast, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_fast_mode_refuses_divergent_barriers_too():
    text = "def k(out: float32[4]):\n    if cuda.threadIdx.x < 2:\n        cuda.syncthreads()\n"
    with pytest.raises(simt.BarrierError) as caught:
        FastProgram(text).run(1, 4, [np.zeros(4, "float32")])
    assert caught.value.line == 3


MODES = {"checked": lambda text: simt.Program(text).run, "fast": lambda text: FastProgram(text).run}


def launched(mode, body, n=4):
    """What a kernel of some lines stores, one number a thread."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    out = np.zeros(n, "int32")
    MODES[mode](f"def k(out: int32[{n}]):\n{lines}")(1, n, [out])
    return out.tolist()


BARRIER = "k = 0\nwhile k < 9:\n    out[cuda.threadIdx.x] = k\n    cuda.syncthreads()"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "body, line, message",
    [
        ("k = 0\nwhile k < 9:\n    out[0] = 1", 3, "the loop made 1000 turns"),
        ("while True:\n    if out[0] > 8:\n        continue", 2, "the loop made 1000 turns"),
        (BARRIER, 5, "a block met 101 barriers"),
    ],
)
def test_a_loop_that_never_ends_is_found(mode, body, line, message):
    with simt.turns(1000), pytest.raises(simt.EndlessError) as caught:
        launched(mode, body, n=1)
    error = str(caught.value)
    assert caught.value.line == line and f"kernel 'k', line {line} (`" in error
    assert f"`): {message} and did not end; most likely the variable" in error
    assert "`with simt.turns(10000):` around the launch" in error


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_has_its_turns_and_no_more(mode):
    body = "k = 0\nwhile k < 9:\n    k += 1\nout[cuda.threadIdx.x] = k"
    with simt.turns(10):
        assert launched(mode, body) == [9] * 4
    with simt.turns(9), pytest.raises(simt.EndlessError):
        launched(mode, body)
    assert launched(mode, body) == [9] * 4


@pytest.mark.parametrize("mode", MODES)
def test_loops_break_go_on_and_nest_as_in_python(mode):
    body = """total = 0
j = cuda.threadIdx.x
while j < 9:
    j += 1
    k = 0
    while True:
        k += 1
        if k == 3:
            continue
        if k > j:
            break
        total += k * j
    if total > 300:
        break
out[cuda.threadIdx.x] = total"""
    names = {"out": [0] * 4, "cuda": SimpleNamespace(threadIdx=SimpleNamespace())}
    for t in range(4):
        names["cuda"].threadIdx.x = t
        exec(body, names)
    assert launched(mode, body) == names["out"] and min(names["out"]) > 300


def test_a_while_with_an_else_is_refused():
    with pytest.raises(simt.KernelError, match="line 2 .*a `while` has no `else` here"):
        launched("fast", "while False:\n    pass\nelse:\n    out[0] = 1")


def test_a_kernel_is_compiled_once():
    program = FastProgram(TEXTS["map"])
    for _ in range(3):
        results(TEXTS["map"], lambda args: program.run(4, 32, args))
    (signature,) = program.launch.signatures
    assert len(signature) == 10


def test_without_numba_an_error_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(HybridError, match="needs Numba, which is not installed"):
        FastProgram(TEXTS["map"])
