"""Schedules: what they accept computes the same; dependences and planted faults are seen.

Arrays hold small whole numbers, so that floats are added up exactly in any order.
"""

from dataclasses import replace
from itertools import permutations
from random import Random

import numpy as np
import pytest

import minihybrid.codegen.evaluate as evaluator
from minihybrid.codegen import schedule
from minihybrid.codegen.check import verify
from minihybrid.codegen.evaluate import evaluate
from minihybrid.codegen.ir import (
    F32,
    INDEX,
    MOVES,
    Buffer,
    Call,
    Const,
    For,
    Kernel,
    Let,
    Load,
    Store,
    Type,
    Var,
    binary,
    const,
    statements,
)
from minihybrid.codegen.schedule import HybridError, ScheduleError

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


def in_memory(m, n, depth, shift):
    """out = a b, whose sums are in memory; or each row adds to one that another one writes."""
    a, b = Buffer("a", "float32", (m * depth,)), Buffer("b", "float32", (const(n * depth),))
    out = Buffer("out", "float32", ((m + shift) * n,), "out")
    place = (ROW * n + COLUMN,)
    source = out[(ROW + shift) * n + COLUMN]
    step = Call("add_up", (source, a[ROW * depth + DEPTH] * b[DEPTH * n + COLUMN]), F32)
    first = Store(out, place, Const(0.0, F32))
    body = (first, loop(DEPTH, depth, Store(out, place, step)))
    return Kernel("in_memory", (a, b, out, N), (loop(ROW, m, loop(COLUMN, n, *body)),))


def in_two(n, shift, back):
    """out = a + a, then out = out[later] + 1; or a row that each iteration writes first."""
    a = Buffer("a", "float32", (n + 4,))
    out = Buffer("out", "float32", (2 * n + 4,) if isinstance(n, int) else (n * 2 + 4,), "out")
    first = loop(ROW, n, Store(out, (ROW,), a[ROW] + a[ROW]))
    second = loop(COLUMN, n, Store(out, (COLUMN + n,), out[COLUMN + shift] + a[COLUMN]))
    if back:
        second = loop(COLUMN, n, Store(out, (COLUMN + shift,), a[COLUMN]))
    return Kernel("in_two", (a, out, N), (first, second))


def with_scratch(n, m, is_full):
    """Rows that go through a work buffer, which each of them fills, or fills but for one."""
    a, out = Buffer("a", "float32", (n * m,)), Buffer("out", "float32", (n * m,), "out")
    row = Buffer("row", "float32", (const(m),), "work")
    first = 0 if is_full else 1
    fill = For(COLUMN, const(first), const(m), (Store(row, (COLUMN,), a[ROW * m + COLUMN]),))
    use = loop(DEPTH, m, Store(out, (ROW * m + DEPTH,), row[const(m - 1) - DEPTH]))
    return Kernel("with_scratch", (a, out, row, N), (loop(ROW, n, fill, use),))


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
            lambda: in_memory(m, n, rng.choice([1, 4, 7]), rng.choice([0, 0, 1])),
            lambda: in_two(rng.choice([4, 9, N]), rng.choice([0, 0, 1, 2]), rng.random() < 0.3),
            lambda: with_scratch(rng.choice([4, 9, N]), rng.choice([3, 5]), rng.random() < 0.7),
        ]
    )()  # fmt: skip


def child(kernel, name, rng):
    """The name of a loop directly inside of another one; of any loop, if there is none."""
    loops = schedule.loops_of(kernel)
    inside = [s for f in loops if f.var.name == name for s in f.body if isinstance(s, For)]
    return rng.choice([s.var.name for s in inside or loops] or ["none"])


def anywhere(kernel, step, n_names, rng):
    """A schedule of the first loops that it accepts."""
    names = [s.var.name for s in schedule.loops_of(kernel)]
    for some in sorted(permutations(names[:9], n_names), key=lambda _: rng.random()):
        try:
            return step(*some)
        except ScheduleError:
            pass
    raise ScheduleError("no loop")


STEPS = {
    "split": lambda k, name, rng: schedule.split(k, name, rng.choice([2, 3, 4])),
    "unroll": lambda k, name, rng: schedule.unroll(k, name),
    "jam": lambda k, name, rng: schedule.jam(k, name),
    "vectorize": lambda k, name, rng: schedule.vectorize(k, name),
    "accumulate": lambda k, name, rng: schedule.accumulate(k, name),
    "in vectors": lambda k, name, rng: schedule.vectorize(schedule.split(k, name, 4), f"{name}_in"),
    "reorder": lambda k, name, rng: schedule.reorder(k, child(k, name, rng), name),
    "tile": lambda k, name, rng: schedule.tile(k, name, child(k, name, rng), 2, 3),
    "fuse": lambda k, name, rng: anywhere(
        k, lambda name, other: schedule.fuse(k, name, other), 2, rng
    ),
    "hold": lambda k, name, rng: anywhere(k, lambda name: schedule.hold(k, name, "out"), 1, rng),
    "pack": lambda k, name, rng: schedule.pack(k, name, rng.choice("ab")),
    "parallel": lambda k, name, rng: schedule.parallel(k, name),
    "side by side": lambda k, name, rng: schedule.jam(
        schedule.split(k, name, 2, "by"), f"{name}_by"
    ),
}


def outputs(kernel, n):
    """What a kernel gives for a length."""
    rng, values = np.random.default_rng(0), {}
    for p in kernel.buffers:
        count = p.shape[0] if isinstance(p.shape[0], int) else None
        if count is None:
            actual = np.zeros(1, "i8")
            size = Buffer("size", "int64", (const(1),), "out")
            store = Store(size, (const(0),), Call("cast", (const(p.shape[0]),), Type("int64")))
            evaluate(Kernel("count", (size, N), (store,)), actual, n)
            (count,) = actual
        values[p] = rng.integers(-4, 5, count).astype(p.kind)
    evaluate(kernel, *(values.get(p, n) for p in kernel.params))
    return next(values[b] for b in kernel.buffers if b.space == "out")


def check_property(count=180, seed=0):
    """Random schedules of random kernels; says how often each schedule was done."""
    rng, done = Random(seed), dict.fromkeys([*STEPS, "refused"], 0)
    for _ in range(count):
        kernel = drawn(rng)
        expected = {n: outputs(kernel, n) for n in (1, 6)}
        for _ in range(3):
            name = rng.choice([s.var.name for s in schedule.loops_of(kernel)] or ["none"])
            which = min(rng.sample([*STEPS], 4), key=lambda step: done[step])
            try:
                kernel = STEPS[which](kernel, name, rng)
                done[which] += 1
            except ScheduleError:
                done["refused"] += 1
        for one in (kernel, schedule.scheduled(kernel))[: 1 + (rng.random() < 0.3)]:
            verify(one)
            for n, answer in expected.items():
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
    fixed = schedule.changed(free, "k", lambda actual: [replace(actual, body=(strict,))])
    with pytest.raises(ScheduleError, match="does more to acc than to add up"):
        schedule.accumulate(fixed, "k")


def test_nets_get_vectors():
    """The choice: dots of rows, columns side by side, sums, maxima, and what follows them."""
    for kernel in (product(N, 8, 8, True), product(N, 8, 3, False), rows(N, 9, True)):
        assert vectors(schedule.scheduled(kernel)), kernel


FAULTS = {
    "no dependence in memory": ("shared_memory", lambda *args: ""),
    "no dependence in variables": (
        "local",
        lambda kernel, loop: {s.var for s in statements(loop.body) if isinstance(s, Let)},
    ),
    "copies share variables": ("with_names", lambda body, known: body),
    "no leftovers": ("split", "rest"),
    "a total without what came before": ("step_of", "start"),
    "every work buffer is private": ("is_private", lambda kernel, loop, buffer: True),
    "places of iterations lie apart": ("modulo", lambda e, unit: const(0)),
    "a store is forgotten": (
        "without_store",
        lambda body, load: tuple(s for s in body if not isinstance(s, Store)),
    ),
    "copies in another order": ("scale_of", "order"),
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

    elif planted == "order":
        name, right = "substituted", schedule.substituted

        def planted(body, known):
            if len(body) == 1 and isinstance(body[0], Store) and body[0].buffer.space == "work":
                return body
            return right(body, known)

    monkeypatch.setattr(schedule, name, planted)
    with pytest.raises((AssertionError, IndexError, schedule.HybridError, KeyError)):
        check_property(260)


# -- counts, and the kernels as machine code ---------------------------------------------
class Counting(evaluator.Run):
    """An evaluator that counts what `Kernel.counts` foretells."""

    def __init__(self, *args):
        super().__init__(*args)
        self.seen = [0, 0, 0]

    def body(self, body):
        for s in body:
            self.seen[1] += isinstance(s, Store)
            super().body((s,))

    def value(self, e):
        self.seen[0] += isinstance(e, Load)
        self.seen[2] += isinstance(e, Call) and e.type != INDEX and e.name not in MOVES
        return super().value(e)


FREE = in_memory(8, 16, 6, 0)
STAGES = {  # a product, a rewrite at a time
    "naive": lambda loops: loops,
    "reorder": lambda loops: loops.reorder("i", "k", "j"),
    "hold": lambda loops: loops.hold("k", "out"),
    "vectors": lambda loops: loops.hold("k", "out").tile("i", "j", 2, 8).vectorize("j", 4),
    "all": lambda loops: (
        loops.hold("k", "out")
        .tile("i", "j", 2, 8)
        .vectorize("j", 4)
        .reorder("j", "i")
        .pack("j", "b")
        .jam("j_in")
        .jam("i")
        .parallel("j")
    ),
}
COUNTS = {
    "naive": (3 * 768, 128 + 768, 2 * 768),
    "reorder": (3 * 768, 128 + 768, 2 * 768),
    "hold": (2 * 768, 128, 2 * 768),
    "vectors": (2 * 192, 32, 2 * 192),
    "all": (24 + 8 * 6 * (2 + 2), 24 + 32, 2 * 192),
}


@pytest.mark.parametrize("stage", STAGES)
def test_counts_are_those_of_the_oracle(stage, monkeypatch):
    kernel = FREE.schedule(STAGES[stage])
    runs = []
    monkeypatch.setattr(evaluator, "Run", lambda *args: runs.append(Counting(*args)) or runs[-1])
    outputs(kernel, 1)
    seen = next(run.seen for run in runs if run.seen[2])
    assert tuple(kernel.counts()) == tuple(seen) == COUNTS[stage]


def test_counts_of_symbolic_lengths_are_polynomials():
    loads, stores, _ = in_memory(N, 16, 6, 0).counts()
    assert str(loads) == "N * 288" and str(stores) == "N * 112"


def test_a_trip_count_that_depends_on_data_is_refused():
    body = (For(COLUMN, const(0), ROW, (Store(FREE.buffers[2], (COLUMN,), X),)),)
    kernel = Kernel("triangle", FREE.params, (loop(ROW, 4, *body),))
    with pytest.raises(HybridError, match="the trip count of the loop over j is not known"):
        kernel.counts()


@pytest.mark.parametrize("stage", STAGES)
def test_schedules_compute_the_same_as_machine_code(stage):
    pytest.importorskip("numba")
    from minihybrid.codegen.cpu.printer import compiled

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, n).astype("f4") for n in (48, 96))
    out = np.full(128, np.nan, "f4")
    compiled(FREE.schedule(STAGES[stage]))(a, b, out, 1)
    np.testing.assert_array_equal(out.reshape(8, 16), a.reshape(8, 6) @ b.reshape(6, 16))


def test_machine_code_refuses_arrays_that_do_not_fit():
    pytest.importorskip("numba")
    from minihybrid.codegen.cpu.printer import compiled

    a, b, out = np.ones(48, "f4"), np.ones(96, "f4"), np.ones(128, "f4")
    call = compiled(FREE)
    with pytest.raises(HybridError, match="a has 40 elements, not 48 in one contiguous piece"):
        call(a[8:], b, out, 1)
    with pytest.raises(HybridError, match="b is float64, not float32"):
        call(a, b.astype("f8"), out, 1)
    with pytest.raises(HybridError, match="takes 4 arguments, got 3"):
        call(a, b, out)


REFUSED = {
    "reorder": (lambda loops: loops.reorder("k", "i"), "the loop over i has no loop over k"),
    "tile": (lambda loops: loops.tile("i", "j", 2, 99), "the loop over j has fewer than 99"),
    "tile by 0": (lambda loops: loops.tile("i", "j", 0, 2), "over i is divided by 0, but a whole"),
    "split by text": (lambda loops: loops.split("i", "2"), "is divided by '2', but a whole number"),
    "split by -1": (lambda loops: loops.split("i", -1), "over i is divided by -1"),
    "no loop": (lambda loops: loops.split("z", 2), "there is no loop over z; it has i, "),
    "no lanes": (lambda loops: loops.vectorize("j", 0), "the loop over j is divided by 0"),
    "many lanes": (lambda loops: loops.vectorize("j", 99), "over j has fewer than 99 iterations"),
    "fuse": (lambda loops: loops.fuse("i", "j"), "has other bounds than the loop over i"),
    "hold": (lambda loops: loops.hold("j", "out"), "the loop over j moves through out"),
    "pack": (lambda loops: loops.pack("k", "out"), "reads 1 places of out|writes out"),
    "parallel": (lambda loops: loops.parallel("k"), "threads share only an outermost loop"),
    "vectorize": (lambda loops: loops.vectorize("k"), "may write out where another iteration"),
}


@pytest.mark.parametrize("step", REFUSED)
def test_rewrites_refuse_with_a_sentence(step):
    rewrite, sentence = REFUSED[step]
    with pytest.raises(ScheduleError, match=sentence):
        FREE.schedule(rewrite)


def test_threads_share_no_scratch_that_an_iteration_only_partly_fills():
    assert with_scratch(4, 5, True).schedule(lambda loops: loops.parallel("i")).body[0].parallel
    with pytest.raises(ScheduleError, match="may write row where another iteration"):
        with_scratch(4, 5, False).schedule(lambda loops: loops.parallel("i"))


def test_a_chain_remembers_its_steps():
    loops = schedule.Loops(FREE).hold("k", "out").tile("i", "j", 2, 8)
    assert [step for step, _ in loops.history] == ["hold('k', 'out')", "tile('i', 'j', 2, 8)"]
