"""Vectors and tiles of the CPU's kernels: one code for each meaning, whatever came before."""

import numpy as np
import pytest
from numba import float64

from minihybrid.codegen.cpu import compiler
from minihybrid.codegen.cpu.flat import kernel
from minihybrid.codegen.cpu.vector import inner, put, put_totals, tile  # noqa: F401, kernels name them
from minihybrid.ops.cpu.machine import registers, width

LANES = width(8)


def compiled(*lines):
    """A kernel of these lines, with two tiles' worth of numbers in `a` and `b`."""
    text = "\n    ".join(["def k(a, b, out):", *lines])
    scope = dict(globals())
    exec(text, scope)
    return kernel(float64[::1], float64[::1], float64[::1])(scope["k"])


def dots(*counts):
    """out[0] = the sum of so many products, for each count one after the other."""
    return compiled(
        "s = tile(0.0, 1, 5)",
        *(f"s = inner(s, a, {i * LANES}, b, {i * LANES}, 0, {n})" for i, n in enumerate(counts)),
        "put_totals(s, out, 0, 5, 0, 0, False)",
    )


def test_numbers_that_are_written_out_are_not_taken_for_others():
    """A kernel with a part of a vector, then one with a whole one, then one with both.

    Numba finds made code by a signature: without the number in it, the last one took what
    the second had needed, and read what lies behind an array.
    """
    a, b = np.arange(1.0, 2 * LANES + 1), np.ones(2 * LANES)
    for counts in (1,), (LANES,), (LANES, 1), (1, LANES):
        out = np.full(5, np.nan)
        dots(*counts)(a, b, out)
        assert out[0] == sum(a[i * LANES :][:n].sum() for i, n in enumerate(counts)), counts


def test_parts_of_tiles_are_not_taken_for_whole_ones():
    a, b = np.arange(1.0, 3 * LANES + 1), np.ones(3 * LANES)
    for top, first in (1, 1), (0, 0), (1, 0), (0, 1):
        out = np.zeros(3 * LANES)
        compiled(
            "s = tile(7.0, 3, 1)",
            f"put(s, out, 0, {LANES}, 0, 0, {LANES})",
            "s = tile(9.0, 3, 1)",
            f"put(s, out, 0, {LANES}, {top}, {first}, {LANES})",
        )(a, b, out)
        expected = np.full((3, LANES), 7.0)
        expected[top:, first:] = 9
        assert np.array_equal(out.reshape(3, LANES), expected), (top, first)


MAP = """
from numba import float32
from minihybrid.codegen.cpu.flat import kernel
{imports}

@kernel(float32[::1], float32[::1])
def k(a, out):
    for i in range(1024):
        out[i] = {value}
"""


@pytest.mark.parametrize(
    ("imports", "value", "widest"),
    [
        ("", "a[i] * a[i]", False),
        ("from minihybrid.codegen.cpu.transcendental import exp32", "exp32(a[i])", True),
        ("from minihybrid.codegen.cpu.trig import atan32", "atan32(a[i])", True),
    ],
)
def test_polynomials_have_the_widest_registers(imports, value, widest, monkeypatch):
    """On some processors LLVM by itself uses half of AVX-512, which serves loops that do
    little: these are left to it."""
    if registers()[0] != 64:
        pytest.skip("this processor has no AVX-512")
    optimized, chosen, generator = [], [], compiler.generator

    class Seen(compiler.Library):
        def _optimize_final_module(self):
            super()._optimize_final_module()
            optimized.append(str(self._final_module))

    def seen(wide):
        chosen.append(wide)
        return generator(wide)

    monkeypatch.setattr(compiler, "Library", Seen)
    monkeypatch.setattr(compiler, "generator", seen)
    assert compiler.compile_kernel(MAP.format(imports=imports, value=value), "k_widths")
    assert chosen == [widest]
    (lanes,) = [n for n in (4, 8, 16) if f"<{n} x float>" in optimized[0]]
    assert lanes in ({16} if widest else {8, 16})
