"""Schedules: what they accept computes the same; dependences and planted faults are seen.

Arrays hold small whole numbers, so that floats are added up exactly in any order.
"""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from minihybrid.codegen import schedule
from minihybrid.codegen.check import verify
from minihybrid.codegen.evaluate import evaluate
from minihybrid.codegen.ir import (
    F32,
    INDEX,
    Buffer,
    Call,
    Const,
    For,
    Kernel,
    Let,
    Store,
    Type,
    Var,
    binary,
    const,
    statements,
)
from minihybrid.codegen.schedule import ScheduleError

N, BOOL = Var("N", INDEX), Type("bool")
ROW, COLUMN, DEPTH = (Var(name, INDEX) for name in "ijk")
ACC, X = Var("acc", F32), Var("x", F32)


def loop(var, stop, *body):
    return For(var, const(0), const(stop), body)


def added(step):
    """acc = acc + step, in any order."""
    return Let(ACC, Call("add_up", (ACC, step), F32))


def product(m, n, depth, by_rows):
    """out = a b, or a times b transposed."""
    a, b = Buffer("a", "float32", (m * depth,)), Buffer("b", "float32", (const(n * depth),))
    out = Buffer("out", "float32", (m * n,), "out")
    at = COLUMN * depth + DEPTH if by_rows else DEPTH * n + COLUMN
    nest = loop(
        COLUMN,
        n,
        Let(ACC, Const(0.0, F32)),
        loop(DEPTH, depth, added(a[ROW * depth + DEPTH] * b[at])),
    )
    nest = replace(nest, body=(*nest.body, Store(out, (ROW * n + COLUMN,), ACC)))
    return Kernel("product", (a, b, out, N), (loop(ROW, m, nest),))


def rows(m, n, largest):
    """The sum or largest of each row, and the row times it."""
    a, out = Buffer("a", "float32", (m * n,)), Buffer("out", "float32", (m * n,), "out")
    nan = Call("or", (Call(">", (X, ACC), BOOL), Call("!=", (X, X), BOOL)), BOOL)
    step = Let(ACC, Call("select", (nan, X, ACC), F32)) if largest else added(X)
    start = Const(-np.inf if largest else 0.0, F32)
    nest = loop(
        ROW,
        m,
        Let(ACC, start),
        loop(COLUMN, n, Let(X, a[ROW * n + COLUMN]), step),
        loop(DEPTH, n, Store(out, (ROW * n + DEPTH,), a[ROW * n + DEPTH] * ACC)),
    )
    return Kernel("rows", (a, out, N), (nest,))


def moved(n, write, read, step, of_input):
    """out[step * i + write] = a[i] + what is read there, of the output or of the input."""
    size = n * max(step, 1) + 4
    a, out = Buffer("a", "float32", (size,)), Buffer("out", "float32", (size,), "out")
    source = a if of_input else out
    value = a[ROW] + source[binary("+", ROW * step, const(read))]
    return Kernel("moved", (a, out, N), (loop(ROW, n, Store(out, (ROW * step + write,), value)),))


def handed_on(n, before):
    """A variable that each iteration takes from the one before, or sets first."""
    a, out = Buffer("a", "float32", (n,)), Buffer("out", "float32", (n,), "out")
    body = [Store(out, (ROW,), ACC + a[ROW]), Let(ACC, a[ROW])]
    nest = loop(ROW, n, *(body if before else body[::-1]))
    return Kernel("handed_on", (a, out, N), (Let(ACC, Const(3.0, F32)), nest))


def drawn(rng):
    """A kernel, some of whose loops depend on what came before."""
    m, n = rng.choice([1, 3, 4, 9, N]), rng.choice([1, 4, 5, 11])
    return rng.choice(
        [
            lambda: product(m, n, rng.choice([1, 4, 7]), rng.random() < 0.5),
            lambda: rows(m, n, rng.random() < 0.5),
            lambda: moved(rng.choice([5, 8, N]), rng.choice([0, 1, 2, 3]), rng.choice([0, 1, 2]),
                          rng.choice([0, 1, 2]), rng.random() < 0.3),
            lambda: handed_on(rng.choice([4, 9, N]), rng.random() < 0.5),
        ]
    )()  # fmt: skip


STEPS = {
    "split": lambda k, name, rng: schedule.split(k, name, rng.choice([2, 3, 4])),
    "unroll": lambda k, name, rng: schedule.unroll(k, name),
    "jam": lambda k, name, rng: schedule.jam(k, name),
    "vectorize": lambda k, name, rng: schedule.vectorize(k, name),
    "accumulate": lambda k, name, rng: schedule.accumulate(k, name),
    "in vectors": lambda k, name, rng: schedule.vectorize(schedule.split(k, name, 4), f"{name}_in"),
    "side by side": lambda k, name, rng: schedule.jam(
        schedule.split(k, name, 2, "by"), f"{name}_by"
    ),
}


def outputs(kernel, n):
    """What a kernel gives for a length."""
    rng, values = np.random.default_rng(0), []
    for p in kernel.buffers:
        count = p.shape[0] if isinstance(p.shape[0], int) else None
        if count is None:
            found = np.zeros(1, "i8")
            size = Buffer("size", "int64", (const(1),), "out")
            store = Store(size, (const(0),), Call("cast", (const(p.shape[0]),), Type("int64")))
            evaluate(Kernel("count", (size, N), (store,)), found, n)
            (count,) = found
        values.append(rng.integers(-4, 5, count).astype(p.kind))
    evaluate(kernel, *values, n)
    return values[[b.space for b in kernel.buffers].index("out")]


def check_property(count=150, seed=0):
    """Random schedules of random kernels; says how often each schedule was done."""
    rng, done = Random(seed), dict.fromkeys([*STEPS, "refused"], 0)
    for _ in range(count):
        kernel = drawn(rng)
        wanted = {n: outputs(kernel, n) for n in (1, 6)}
        for _ in range(3):
            name = rng.choice([s.var.name for s in schedule.loops_of(kernel)] or ["none"])
            which = rng.choice([*STEPS])
            try:
                kernel = STEPS[which](kernel, name, rng)
                done[which] += 1
            except ScheduleError:
                done["refused"] += 1
        for one in (kernel, schedule.scheduled(kernel)):
            verify(one)
            for n, answer in wanted.items():
                np.testing.assert_array_equal(outputs(one, n), answer, str(one))
    return done


def test_what_schedules_accept_computes_the_same():
    done = check_property()
    assert min(done.values()) >= 4, done


def vectors(kernel):
    return ": 4] = " in str(kernel) or "float32x4" in str(kernel)


@pytest.mark.parametrize(
    "kernel, name, is_done",
    [
        (moved(N, 0, 0, 1, True), "i", True),
        (moved(N, 1, 0, 1, False), "i", False),  # each reads what the one before wrote
        (moved(N, 0, 1, 1, False), "i", False),  # each reads what the next one writes
        (moved(N, 0, 0, 1, False), "i", True),  # each reads where it writes
        (moved(N, 0, 0, 0, True), "i", False),  # all write one place
        (moved(N, 0, 0, 2, True), "i", False),  # every second place
        (handed_on(N, True), "i", False),
        (handed_on(N, False), "i", False),  # it is set before the loop
        (product(N, 8, 4, False), "j", True),
        (product(N, 8, 4, True), "j", False),  # rows are not side by side
        (product(N, 8, 4, False), "k", False),  # a sum: `accumulate` does it
    ],
)
def test_vectors_are_made_of_what_is_independent_and_side_by_side(kernel, name, is_done):
    try:
        kernel = STEPS["in vectors"](kernel, name, None)
    except ScheduleError as error:
        assert not is_done and str(error).startswith(f"kernel {kernel.name}: the loop over ")
    else:
        assert is_done and vectors(kernel)


def test_only_sums_of_a_free_order_are_accumulated():
    free = product(N, 3, 8, True)
    assert vectors(schedule.accumulate(free, "k"))
    inner = schedule.loop_of(free, "k")
    strict = Let(ACC, ACC + inner.body[0].value.args[1])
    fixed = schedule.changed(free, "k", lambda found: [replace(found, body=(strict,))])
    with pytest.raises(ScheduleError, match="does more to acc than to add up"):
        schedule.accumulate(fixed, "k")


def test_nets_get_vectors():
    """The choice: dots of rows, columns side by side, sums, maxima, and what follows them."""
    for kernel in (product(N, 8, 8, True), product(N, 8, 3, False), rows(N, 9, True)):
        assert vectors(schedule.scheduled(kernel)), kernel


FAULTS = {
    "no dependence in memory": ("shared_memory", lambda kernel, loop: ""),
    "no dependence in variables": (
        "local",
        lambda kernel, loop: {s.var for s in statements(loop.body) if isinstance(s, Let)},
    ),
    "copies share variables": ("with_names", lambda body, known: body),
    "no leftovers": ("split", "rest"),
    "a total without what came before": ("step_of", "start"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_seen(fault, monkeypatch):
    name, planted = FAULTS[fault]
    right = getattr(schedule, name)
    if planted == "rest":

        def planted(kernel, name, *args):
            out = right(kernel, name, *args)
            for s in schedule.loops_of(out):
                if s.var.name.startswith(f"{name}_rest"):
                    out = schedule.changed(out, s.var.name, lambda _: [])
            return out

    elif planted == "start":

        def planted(kernel, loop, var):
            sign, again = right(kernel, loop, var)
            return sign, lambda one: Let(var, one).value

    monkeypatch.setattr(schedule, name, planted)
    with pytest.raises((AssertionError, IndexError, schedule.HybridError, KeyError)):
        check_property(200)
