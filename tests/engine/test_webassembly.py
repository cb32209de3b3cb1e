"""The WebAssembly printer: every operation of every type gives the evaluator's bits."""

import base64
import json
import shutil
import subprocess
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from minihybrid.codegen import wasm
from minihybrid.codegen.check import verify
from minihybrid.codegen.evaluate import evaluate
from minihybrid.codegen.ir import (
    BOOL,
    COMPARISONS,
    INDEX,
    Break,
    Buffer,
    Call,
    Const,
    For,
    If,
    Kernel,
    Let,
    Load,
    Store,
    Type,
    Var,
    While,
    binary,
    const,
)

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(
    NODE is None, reason="NOT CHECKED: there is no node; install Node.js 20 or newer"
)
RUN = """
const [jobs, out] = process.argv.slice(1), fs = require("fs");
const answers = JSON.parse(fs.readFileSync(jobs)).map(([code, at, size]) => {
  try {
    const module = new WebAssembly.Module(Buffer.from(code, "base64"));
    const math = { __proto__: Math, fmod: (a, b) => a % b };
    const { memory, predict } = new WebAssembly.Instance(module, { math }).exports;
    predict(5);
    return Buffer.from(memory.buffer, at, size).toString("hex");
  } catch (error) { return String(error); }
});
fs.writeFileSync(out, JSON.stringify(answers));
"""
N, I = Var("N", INDEX), Var("i", INDEX)  # noqa: E741, the loop's letter in the listing
COUNT = 24  # elements of an array
SPECIAL = [0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e30, 3e-39, 2.0**31, -1e10, 0.5]
FLOATS = "+ - * / neg abs sqrt floor ceil copysign fma add_up".split()
WHOLE = "+ - * & | ^ << >> // %".split()
KINDS = "float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()


def values(kind, rng, positive=False):
    """Numbers of a kind, with those that are special in it."""
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        return np.array([*SPECIAL, *rng.normal(size=COUNT - len(SPECIAL))]).astype(kind)
    if kind == "bool":
        return rng.random(COUNT) < 0.5
    info = np.iinfo(dtype)
    low = 1 if positive else info.min
    return rng.integers(low, info.max, COUNT, dtype, endpoint=True)


def operations():
    """(name, kinds of the arguments, kind of the result, lanes) of all that is printed."""
    for kind in KINDS:
        is_float = kind.startswith("float")
        for name in FLOATS if is_float else WHOLE:
            many = {"fma": 3, "neg": 1, "abs": 1, "sqrt": 1, "floor": 1, "ceil": 1}.get(name, 2)
            yield name, [kind] * many, kind, 1
            if kind in ("float32", "int32") and name not in ("//", "%", "<<", ">>"):
                yield name, [kind] * many, kind, 4
        for name in COMPARISONS:
            yield name, [kind] * 2, "bool", 1
        for other in KINDS:
            if other != kind:
                yield "cast", [kind], other, 1
        yield "select", [kind] * 2, kind, 1
    for name in COMPARISONS:
        yield name, ["float32"] * 2, "bool", 4
        yield name, ["int32"] * 2, "bool", 4
    for kind in ("float32", "int32"):
        yield "select", [kind] * 2, kind, 4
    yield "cast", ["int32"], "float32", 4
    for pair in (("float32", "int32"), ("int32", "float32")):
        yield "bitcast", [pair[0]], pair[1], 1
        yield "bitcast", [pair[0]], pair[1], 4
    yield "bitcast", ["float64"], "int64", 1
    yield "total", ["float32"], "float32", 4


def one(name, kinds, result, lanes):
    """The kernel of one operation over arrays."""
    buffers = [Buffer(f"a{k}", kind, (const(COUNT),)) for k, kind in enumerate(kinds)]
    loads = [Load(b, (I * lanes,), lanes) for b in buffers]
    type = Type(result, lanes)
    if name == "select":
        e = Call("select", (Call("<", tuple(loads), Type("bool", lanes)), *loads), type)
    elif name == "total":
        e, type = Call("total", tuple(loads), Type(result)), Type(result)
    else:
        e = Call(name, tuple(loads), type)
    if result == "bool" and lanes > 1:  # masks are no elements
        ones = [Call("splat", (Const(n, Type("int32")),), Type("int32", lanes)) for n in (1, 0)]
        e, result = Call("select", (e, *ones), Type("int32", lanes)), "int32"
    count = COUNT // lanes
    size = count if name == "total" else COUNT
    out = Buffer("out", result, (const(size),), "out")
    at = I * (1 if name == "total" else lanes)
    return Kernel(
        "k", (*buffers, out, N), (For(I, const(0), const(count), (Store(out, (at,), e),)),)
    )


def statements_and_indices():
    """Loops that end early, steps, branches, and indices of data."""
    data = Buffer("a0", "int32", (const(COUNT),))
    out = replace(data, name="out", space="out")
    j, k, r = (Var(name, INDEX) for name in "jkr")
    total, zero = Var("total", Type("int32")), Const(0, Type("int32"))
    at = binary("%", Call("cast", (data[I],), INDEX), const(7))
    last = Call("min", (I + 3, const(COUNT - 1)), INDEX)
    way = Call(">", (data[j], zero), BOOL)
    both = (Let(total, total + data[j]),), (Let(total, total - data[j]),)
    end = If(Call(">=", (j, I * 2 + 5), BOOL), (Break(),))
    near = data[Call("max", (k, const(3)), INDEX)]
    body = (
        Let(total, zero),
        For(j, I, N * 3 + I, (If(way, *both), end), 2),
        Let(k, const(0)),
        While(Call("<", (k, at), BOOL), (Let(k, k + 2), Let(total, total + near))),
        Store(out, (const(COUNT - 1) - I,), total + data[last] - data[const(COUNT - 1) - at]),
    )
    rest = For(r, const(0), const(15), (Store(out, (r,), zero),))
    return Kernel("k", (data, out, N), (For(I, const(0), const(COUNT - 15), body), rest))


def arrays_of(kernel):
    """An array for each buffer of a kernel, the last one of zeros."""
    rng, arrays, text = np.random.default_rng(3), [], str(kernel)
    shifts = any(sign in text for sign in (" << ", " >> "))
    for b in kernel.buffers:
        positive = b.name == "a1" and (shifts or " // " in text or " % " in text)
        actual = values(b.kind, rng, positive)[: b.shape[0].value]
        if positive and shifts:
            actual %= np.dtype(b.kind).type(7)
        arrays.append(actual)
    arrays[-1][:] = 0
    return arrays


def answers(kernels, folder):
    """What the evaluator and Node.js give for kernels: pairs of bytes."""
    jobs, expected = [], []
    for kernel in kernels:
        verify(kernel)
        arrays, places, data = arrays_of(kernel), [], b""
        for array in arrays:
            places.append((16 + len(data), 0))
            data += array.tobytes() + bytes(-array.nbytes % 16)
        out = arrays[-1]
        code = wasm.module([(kernel, places)], (16, data), (16 + len(data), 0))
        jobs.append([code, places[-1][0], out.nbytes])
        evaluate(kernel, *arrays, 5)
        expected.append(out)

    encoded = [[base64.b64encode(code).decode(), at, size] for code, at, size in jobs]
    (folder / "jobs.json").write_text(json.dumps(encoded))
    script = [NODE, "-e", RUN, str(folder / "jobs.json"), str(folder / "out.json")]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    return zip(json.loads((folder / "out.json").read_text()), expected, strict=True)


def check_bits(folder):
    """Each operation, and the kernel of statements: the evaluator's bits, any NaN as another."""
    cases = [*operations()]
    kernels = [*(one(*case) for case in cases), statements_and_indices()]
    for case, (hexes, expected) in zip(
        [*cases, "statements"], answers(kernels, folder), strict=True
    ):
        assert set(hexes) <= set("0123456789abcdef"), (case, hexes)
        assert_bits(np.frombuffer(bytes.fromhex(hexes), expected.dtype), expected, case)


def assert_bits(got, expected, case):
    """The same bits, any NaN as another."""
    if expected.dtype.kind == "f":
        assert (np.isnan(got) == np.isnan(expected)).all(), (case, got, expected)
        got, expected = np.nan_to_num(got, nan=7), np.nan_to_num(expected, nan=7)
    assert got.tobytes() == expected.tobytes(), (case, got, expected)


@pytest.mark.slow
@needs_node
def test_every_operation_has_the_evaluators_bits(tmp_path):
    check_bits(tmp_path)


FAULTS = {
    "smaller for larger": (wasm.SCALAR[wasm.F32], "<", 0x5E),
    "signed for unsigned": (wasm.SCALAR[wasm.I32], ">u", 0x4A),
    "a vector's difference": (wasm.VECTOR["float32"], "-", 0xE4),
    "a byte's sign": (wasm.LOADS, "int8", 0x2D),
    "an integer read as it is": (wasm.CONVERT, (wasm.F64, wasm.I64), 0xBF),
}


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_seen(fault, tmp_path, monkeypatch):
    table, key, code = FAULTS[fault]
    assert table[key] != code
    monkeypatch.setitem(table, key, code)
    with pytest.raises(AssertionError):
        check_bits(tmp_path)


def test_numbers_are_as_short_as_they_can_be():
    rng = Random(0)
    for _ in range(300):
        n = rng.randint(-(2**31), 2**31 - 1) >> rng.randint(0, 31)
        actual = wasm.s(n)
        value = sum((b & 127) << 7 * i for i, b in enumerate(actual))
        assert (value - (2 ** (7 * len(actual))) * (actual[-1] >> 6 & 1)) == n
        assert all(b & 128 for b in actual[:-1]) and not actual[-1] & 128
        natural = abs(n)
        assert sum((b & 127) << 7 * i for i, b in enumerate(wasm.u(natural))) == natural
