"""The loop IR: what the checker accepts runs; equal kernels are equal; planted faults are seen."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from minihybrid.codegen.check import KernelError, check
from minihybrid.codegen.evaluate import evaluate
from minihybrid.codegen.ir import (
    F32,
    INDEX,
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
    binary,
    const,
    mapped,
    rebuilt,
    statements,
    substituted,
)

N = Var("n", INDEX)


def loop(name, stop, *body, start=0):
    return For(Var(name, INDEX), const(start), const(stop), body)


def value_of(e, names):
    """Index arithmetic by Python's integers."""
    k = Kernel("k", (*names, Buffer("o", "int64", (1,), "out")), (), None)
    out = np.zeros(1, "i8")
    store = Store(k.buffers[0], (const(0),), Call("cast", (const(e),), Type("int64")))
    evaluate(replace(k, body=(store,)), *names.values(), out)
    return out[0]


def test_index_arithmetic_has_one_form_and_python_s_value():
    rng = Random(0)
    names = {Var(n, INDEX): rng.randint(-9, 9) for n in "abc"}
    for _ in range(500):
        tree, value = const(rng.choice([*names])), None
        value = names[tree]
        for _ in range(rng.randint(1, 8)):
            sign, other = rng.choice("+-*"), rng.choice([*names, rng.randint(-3, 3)])
            number = names.get(other, other)
            tree = binary(sign, tree, other)
            value = {"+": value + number, "-": value - number, "*": value * number}[sign]
        assert value_of(tree, names) == value
    a, b, c = names
    assert (a + b) * (a - b) is a * a - b * b
    assert (a + b + c) * 4 - a is c * 4 + b * 4 + a * 3
    assert (a - a) is const(0) and Const(0.0, F32) is not Const(-0.0, F32)


def drawn(rng):
    """A kernel that may be right or wrong: loops around a store of a sum of loads."""
    lengths = [rng.choice([1, 2, 3, 5, N]) for _ in range(rng.randint(1, 3))]
    counters = [Var(f"i{k}", INDEX) for k in range(len(lengths))]
    flat = rng.random() < 0.5
    shape = tuple(lengths)
    where = tuple(counters)
    if flat:
        at, size = const(0), const(1)
        for n, i in zip(lengths, counters, strict=True):
            at, size = at * n + i, size * n
        shape, where = (size,), (at,)
    wide = rng.choice([0, 0, 1, 2])  # elements more of the input, which it may read
    data = Buffer("data", "float32", (*shape[:-1], const(shape[-1]) + wide))
    out = Buffer("out", "float32", shape, "out")
    read = (*where[:-1], where[-1] + rng.choice([0, 0, wide, 1, -1]))
    if rng.random() < 0.2:
        read = (*read[:-1], Call("min", (read[-1], const(shape[-1]) - 1), INDEX))
    value = Var("value", F32)
    body = (Let(value, Load(data, read, 1) + Const(1.0, F32)), Store(out, where, value))
    if rng.random() < 0.15:
        body = (body[0], If(counters[0] < 1, body[1:]))
    for i, n in [*zip(counters, lengths, strict=True)][::-1]:
        start = rng.choice([0, 0, 0, 0, 1])
        stop = const(n) - rng.choice([0, 0, 0, 0, 1])
        body = (For(i, const(start), stop, body),)
        if rng.random() < 0.15 and start == 0:  # the same, in two loops
            (first,), half = body, const(n) // 2
            second = Var(f"{i.name}_", INDEX)
            rest = substituted(first.body, {i: second})
            if all(isinstance(s, Store) for s in rest):
                body = (replace(first, stop=half), For(second, half, stop, rest))
    return Kernel("drawn", (data, out, N), body)


def arrays_of(kernel, n):
    """An array for each buffer: ones, outputs NaN."""
    k = Kernel("sizes", (N,), ())
    made = []
    for b in kernel.buffers:
        shape = [value_of(rebuilt(const(m), lambda e: e), {N: n}) for m in b.shape]
        made.append(np.full(shape, np.nan if b.space == "out" else 1, b.kind))
    assert k.buffers == []
    return made


def test_what_the_checker_accepts_runs_for_every_length():
    """No index leaves its buffer, and every element of the output is written."""
    rng, accepted, refused = Random(1), 0, 0
    for _ in range(400):
        kernel = drawn(rng)
        right = True
        for n in (1, 2, 5):
            data, out = arrays_of(kernel, n)
            try:
                evaluate(kernel, data, out, n)
                right &= not np.isnan(out).any()
            except IndexError:
                right = False
        try:
            check(kernel)
            accepted += 1
            assert right, kernel
        except KernelError:
            refused += 1
    assert accepted > 80 and refused > 80, (accepted, refused)


def product(m=3, n=4, k=5):
    """c = a b, four columns at once."""
    a, b = Buffer("a", "float32", (m, k)), Buffer("b", "float32", (k, n))
    c, wide = Buffer("c", "float32", (m, n), "out"), Type("float32", 4)
    i, j, s = Var("i", INDEX), Var("j", INDEX), Var("s", wide)
    zero = Call("splat", (Const(0.0, F32),), wide)
    step = Call("fma", (Call("splat", (a[i, j],), wide), Load(b, (j, const(0)), 4), s), wide)
    body = (Let(s, zero), loop("j", k, Let(s, step)), Store(c, (i, const(0)), s))
    return Kernel("product", (a, b, c), (loop("i", m, *body),))


def test_a_kernel_has_one_text_and_equal_kernels_are_equal():
    kernel = product()
    assert str(kernel) == (
        "kernel product(a: in float32[3, 5], b: in float32[5, 4], c: out float32[3, 4])\n"
        "    for i in 0 .. 3:\n"
        "        s: float32x4 = splat<float32x4>(float32(0.0))\n"
        "        for j in 0 .. 5:\n"
        "            s: float32x4 = fma(splat<float32x4>(a[i, j]), b[j, 0: 4], s)\n"
        "        c[i, 0: 4] = s"
    )
    assert kernel == product() and hash(kernel) == hash(product()) and kernel != product(k=6)
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 5)), rng.normal(size=(5, 4)), np.empty((3, 4), "f4")
    a, b = a.astype("f4"), b.astype("f4")
    evaluate(kernel, a, b, c)
    np.testing.assert_allclose(c, a @ b, 1e-6, 1e-6)
    check(kernel)


def changed(kernel, f):
    """A kernel with each statement replaced by f."""

    def inside(body):
        new = []
        for s in body:
            if isinstance(s, For):
                s = replace(s, body=inside(s.body))
            new += f(s)
        return tuple(new)

    return replace(kernel, body=inside(kernel.body))


II, J, S = Var("i", INDEX), Var("j", INDEX), Var("s", Type("float32", 4))
PLANTED = {
    "a loop one too long": lambda k: changed(
        k, lambda s: [replace(s, stop=s.stop + 1)] if isinstance(s, For) and s.var is J else [s]
    ),
    "a loop one too short": lambda k: changed(
        k, lambda s: [replace(s, stop=s.stop - 1)] if isinstance(s, For) and s.var is II else [s]
    ),
    "an index one too far": lambda k: replace(
        k, body=mapped(k.body, lambda e: rebuilt(e, lambda p: p + 1 if p is J else p))
    ),
    "no store": lambda k: changed(k, lambda s: [] if isinstance(s, Store) else [s]),
    "a store of too few lanes": lambda k: changed(
        k,
        lambda s: (
            [replace(s, value=Call("total", (s.value,), F32))] if isinstance(s, Store) else [s]
        ),
    ),
    "no start of the sum": lambda k: changed(
        k, lambda s: [] if isinstance(s, Let) and s.value.name == "splat" else [s]
    ),
    "the output read first": lambda k: changed(
        k,
        lambda s: (
            [Let(S, Load(k.params[2], (II, const(0)), 4))]
            if isinstance(s, Let) and s.value.name == "splat"
            else [s]
        ),
    ),
    "a counter used twice": lambda k: changed(
        k, lambda s: [replace(s, var=II)] if isinstance(s, For) and s.var is J else [s]
    ),
    "two types in a sum": lambda k: changed(
        k,
        lambda s: (
            [Let(S, Call("+", (s.value, Const(1.0, F32)), S.type))] if isinstance(s, Let) else [s]
        ),
    ),
    "an input written": lambda k: changed(
        k, lambda s: [s, replace(s, buffer=k.params[1])] if isinstance(s, Store) else [s]
    ),
    "a store that depends on data": lambda k: changed(
        k, lambda s: [If(k.params[0][II, 0] < 1.0, (s,))] if isinstance(s, Store) else [s]
    ),
    "an unknown buffer": lambda k: replace(k, params=k.params[1:]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_refused(name):
    wrong = PLANTED[name](product())
    assert wrong != product()
    with pytest.raises(KernelError, match="kernel product: "):
        check(wrong)


def test_every_statement_is_reached():
    kernel = product()
    assert len([*statements(kernel.body)]) == 5
