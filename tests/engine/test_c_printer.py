"""The C printer: every operation of every type gives the evaluator's bits."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest
from test_standalone import CC, FLAGS, needs_cc
from test_webassembly import (
    COUNT,
    I,
    N,
    arrays_of,
    assert_bits,
    one,
    operations,
    statements_and_indices,
)

from minihybrid.codegen import c, c_helpers
from minihybrid.codegen.bytecode import Launch
from minihybrid.codegen.check import verify
from minihybrid.codegen.evaluate import evaluate
from minihybrid.codegen.ir import (
    INDEX,
    Buffer,
    Call,
    For,
    Kernel,
    Let,
    Load,
    Store,
    Type,
    Var,
    binary,
    const,
)
from minihybrid.core.op import HybridError
from minihybrid.formats.c import HEAD, kernel_of

MAIN = """
static unsigned char memory[{size}] __attribute__((aligned(64)));

int main(void)
{{
    FILE *file = fopen("memory", "rb");
    if (fread(memory, 1, {size}, file) != {size})
        return 1;
    fclose(file);
{calls}
    file = fopen("memory", "wb");
    return fwrite(memory, 1, {size}, file) != {size} || fclose(file);
}}
"""


def vectors():
    """Kernels of what only tiles have: parts of vectors, products, tables."""
    for kind in ("float32", "float64", "int32", "int64"):
        data, more = (Buffer(f"a{i}", kind, (const(COUNT),)) for i in range(2))
        out = replace(data, name="out", space="out")
        wide = Type(kind, 4)
        v, w = (Var(name, wide) for name in "vw")
        some = Load(data, (I * 2,), 4), I - 1, binary("%", I * 2, const(7))
        scalar = Call("splat", (more[I],), wide)
        product = Call("fma", (v, scalar, Load(more, (I,), 4)), wide)
        part = Call("masked", (w, I - 2, const(5) - I), wide)
        body = (
            Let(v, Call("masked", some, wide)),
            Let(w, product),
            Store(out, (I * 4,), part),
            Store(out, (const(COUNT - 1) - I,), Call("total", (w,), Type(kind))),
        )
        yield Kernel("k", (data, more, out, N), (For(I, const(0), const(4), body),))
    items = [const(n) for n in (5, -2, 0, 3)]
    at = Call("table", (binary("%", I - 3, const(4)), *items), INDEX)
    data, out = Buffer("a0", "int32", (const(COUNT),)), Buffer("out", "int32", (const(8),), "out")
    body = (Store(out, (I,), data[binary("//", at + I + 4, const(2))]),)
    yield Kernel("k", (data, out, N), (For(I, const(0), const(8), body),))


def check_bits(folder, helper=""):
    """Each operation, and what kernels have beside: the evaluator's bits, any NaN as another.

    helper:  part of the text of the kernels to check.
    """
    cases = [case for case in operations() if case[3] == 1]
    kernels = [*(one(*case) for case in cases), statements_and_indices(), *vectors()]
    kernels = [replace(k, name=f"k{i}") for i, k in enumerate(kernels)]
    kernels = [k for k in kernels if helper in c.functions([k])[-1]]
    assert kernels
    memory, calls, places = b"", [], []
    for kernel in kernels:
        verify(kernel)
        args = []
        for array in arrays_of(kernel):
            at = len(memory)
            args.append(f"(void *) (memory + {at})")
            memory += array.tobytes() + bytes(-array.nbytes % 64)
        places.append(at)
        calls.append(f"    {kernel.name}({', '.join(args)}, 5);")
    main = MAIN.format(size=len(memory), calls="\n".join(calls))
    text = [HEAD.substitute(call="", sizes=" *", files=""), *c.functions(kernels), main]
    (folder / "all.c").write_text("\n\n".join(text))
    (folder / "memory").write_bytes(memory)
    flags = [*FLAGS, "-O1", "-fsanitize=undefined", "-fno-sanitize-recover"]
    done = subprocess.run([CC, *flags, "all.c", "-lm"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(["./a.out"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    memory = (folder / "memory").read_bytes()
    for kernel, at in zip(kernels, places, strict=True):
        arrays = arrays_of(kernel)
        evaluate(kernel, *arrays, 5)
        assert_bits(
            np.frombuffer(memory, arrays[-1].dtype, len(arrays[-1]), at), arrays[-1], kernel
        )


@pytest.mark.slow
@needs_cc
def test_every_operation_has_the_evaluators_bits(tmp_path):
    check_bits(tmp_path)


FAULTS = {
    "a quotient that is cut": ("div", "a % b != 0", "false"),
    "the last lane": ("load_some", "i < last", "i <= last"),
    "the lanes before": ("store_some", "first <= i", "true"),
    "half of a total": ("total", "n /= 2", "n /= 4"),
    "a float out of range": ("whole", ": INT{n}_MIN", ": INT{n}_MAX"),
    "a product that overflows": ("*", "({u}) a * ({u}) b", "a * b"),
}


@pytest.mark.slow
@needs_cc
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_seen(fault, tmp_path, monkeypatch):
    name, before, after = FAULTS[fault]
    name = c_helpers.WRAPS.get(name, name)
    text = c_helpers.HELPERS[name]
    assert before in text
    monkeypatch.setitem(c_helpers.HELPERS, name, text.replace(before, after))
    with pytest.raises(AssertionError):
        check_bits(tmp_path, name)


KERNEL = """
@kernel(int64[::1], float32[::1], int64[::1])
def k(a0, a1, out):
    for i in range(8):
        out[i] = {}
"""


def read(python):
    """The kernel of an expression, as `export` reads it."""
    return kernel_of(Launch(KERNEL.format(python), "sample", []), "k")


@pytest.mark.parametrize(
    "python, in_c",
    [
        ("min(i - 5, 1) % 4", "mod_int64(min_int64(i - 5, 1), 4)"),  # may be negative
        ("max(i - 3, 2) % 4", "max_int64(i - 3, 2) % 4"),  # is not
        ("(i - 5) // 3", "div_int64(i - 5, 3)"),
        ("i // 3", "i / 3"),
        ("(a0[i] > 1) & True", "(int64_t) (a0[i] > 1)"),
        ("a0[i] - 7 - i", "wrap_sub(wrap_sub(a0[i], 7), i)"),
        ("int64(a1[0] * 1e40)", "whole_int64((double) a1[0] * 1e+40)"),
        ("(4, 5)[i % 2]", "table_0[i % 2]"),
    ],
)
def test_only_what_c_leaves_open_is_a_call(python, in_c):
    lines = c.functions([read(python)])[-1].splitlines()
    assert f"        out[i] = {in_c};" in lines


def test_what_has_no_loops_in_c_is_refused_by_name():
    message = (
        r"export: sample has no form in C \(`print` of float64\); export the net without it, "
        "or as format 'numpy'"
    )
    with pytest.raises(HybridError, match=message):
        read("print(1)")
