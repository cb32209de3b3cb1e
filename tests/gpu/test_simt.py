"""The simulated GPU finds what is wrong with a kernel, and names line and threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minihybrid import simt

HEAD = "import math\n\nfrom numba import cuda, float32, int32\n\n\n"
TILED = (
    HEAD
    + """def product(a: float32[64], b: float32[64], out: float32[64]):
    sa = cuda.shared.array((4, 4), float32)
    sb = cuda.shared.array((4, 4), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    row = cuda.blockIdx.y * 4 + y
    column = cuda.blockIdx.x * 4 + x
    total = float32(0)
    for k in range(0, 8, 4):
        sa[y, x] = a[row * 8 + k + x]
        sb[y, x] = b[(k + y) * 8 + column]
        cuda.syncthreads()                            # line 17
        for j in range(4):
            total += sa[y, j] * sb[j, x]
        cuda.syncthreads()                            # line 20
    out[row * 8 + column] = total
"""
)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def product(text):
    a, b, out = numbers(8, 8), numbers(8, 8, seed=1), np.zeros(64, "float32")
    counts = simt.Program(text).run((2, 2), (4, 4), [a.ravel(), b.ravel(), out])
    return counts, out, (a @ b).ravel()


def kernel(body, params="a: float32[8], out: float32[8]"):
    """A kernel of some lines, the first of which is line 2."""
    return f"def k({params}):\n" + "".join(f"    {s}\n" for s in body.splitlines())


def run(body, grid=1, block=8, params="a: float32[8], out: float32[8]", args=None):
    if args is None:
        args = [numbers(8), np.zeros(8, "float32")]
    return simt.Program(kernel(body, params)).run(grid, block, args)


def error_of(kind, *args, **kwargs):
    with pytest.raises(kind) as caught:
        run(*args, **kwargs)
    return caught.value


def one(block, thread):
    """A thread's place, of a grid and a block with one axis."""
    return (block, 0, 0), (thread, 0, 0)


# -- right kernels ---------------------------------------------------------------------
def test_a_tiled_product_is_right():
    _, out, expected = product(TILED)
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_counts_of_a_tiled_product():
    counts, _, _ = product(TILED)
    assert counts.n_threads == 64 and counts.barriers == 4
    a, sa, out = counts["a"], counts["sa"], counts["out"]
    assert (a.space, a.loads, a.stores, a.nbytes_loaded) == ("global", 128, 0, 512)
    assert (out.stores, out.most_stores, out.nbytes_stored) == (64, 1, 256)
    assert (sa.space, sa.loads, sa.stores, sa.most_loads) == ("shared", 512, 128, 8)
    assert counts.global_loads == 256 and counts.shared_loads == 1024
    assert counts.global_stores == 64 and counts.shared_stores == 256


def test_loads_are_counted_for_the_thread_that_has_most():
    use = run("i = cuda.grid(1)\nfor j in range(i):\n    out[i] += a[j]")["a"]
    assert (use.loads, use.most_loads) == (28, 7)


def test_every_axis_of_grid_and_block_is_there():
    body = (
        "x, y, z = cuda.grid(3)\n"
        "nx, ny, nz = cuda.gridsize(3)\n"
        "out[(z * ny + y) * nx + x] = x + 10 * y + 100 * z\n"
    )
    out = np.zeros(6 * 2 * 4, "int32")
    run(body, (3, 1, 2), (2, 2, 2), "out: int32[48]", [out])
    z, y, x = np.unravel_index(np.arange(48), (4, 2, 6))
    assert out.tolist() == (x + 10 * y + 100 * z).tolist()


def test_dimensions_by_name():
    out = np.zeros(1, "int32")
    run(
        "if cuda.grid(1) == 0:\n    out[0] = cuda.gridDim.x * 100 + cuda.blockDim.x",
        7,
        5,
        "out: int32[1]",
        [out],
    )
    assert out[0] == 705


def test_elements_may_be_swapped():
    a, out = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    run("i = cuda.grid(1)\na[i], out[i] = out[i], a[i]", args=[a, out])
    assert out.tolist() == list(range(8)) and not a.any()


def test_a_parameter_may_be_assigned():
    out = np.zeros(8, "int32")
    run("n -= 1\nout[cuda.grid(1)] = n", params="out: int32[8], n: int32", args=[out, 5])
    assert out.tolist() == [4] * 8


@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 16))
@settings(max_examples=30, deadline=None)
def test_a_guarded_map_is_right_for_every_launch(n, grid, block):
    text = (
        f"def k(a: float32[{n}], out: float32[{n}]):\n"
        f"    for i in range(cuda.grid(1), {n}, cuda.gridsize(1)):\n"
        "        out[i] = a[i] * a[i]\n"
    )
    a, out = numbers(n), np.zeros(n, "float32")
    counts = simt.Program(text).run(grid, block, [a, out])
    assert (out == a * a).all()
    assert counts.global_loads == 2 * n and counts.global_stores == n


# -- races -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "line, kind, at", [(17, simt.UninitializedError, 19), (20, simt.RaceError, 19)]
)
def test_a_deleted_barrier_of_the_product_is_found(line, kind, at):
    lines = TILED.splitlines()
    assert "syncthreads" in lines[line - 1]
    lines[line - 1] = ""
    with pytest.raises(kind) as caught:
        product("\n".join(lines))
    assert caught.value.line == at and caught.value.kernel == "product"
    assert f"line {at} (`total += sa[y, j] * sb[j, x]`)" in str(caught.value)


def test_a_read_of_what_another_thread_wrote_is_a_race():
    error = error_of(
        simt.RaceError,
        "s = cuda.shared.array(8, float32)\n"
        "i = cuda.threadIdx.x\n"
        "s[i] = a[i]\n"
        "if i > 0:\n"
        "    out[i] = s[i - 1]",
    )
    assert error.line == 6 and error.threads == (one(0, 1), one(0, 0))
    assert str(error) == (
        "kernel 'k', line 6 (`out[i] = s[i - 1]`): race for s[0], which thread 1 of "
        "block 0 reads, and thread 0 of block 0 wrote in line 4 (`s[i] = a[i]`); put "
        "cuda.syncthreads() between the two lines"
    )


def test_a_write_over_what_another_thread_read_is_a_race():
    error = error_of(
        simt.RaceError,
        "s = cuda.shared.array(8, float32)\n"
        "i = cuda.threadIdx.x\n"
        "s[i] = a[i]\n"
        "cuda.syncthreads()\n"
        "v = s[(i + 1) % 8]\n"
        "s[i] = v",
    )
    assert error.line == 7 and error.threads == (one(0, 1), one(0, 0))
    assert "thread 1 of block 0 writes" in str(error)
    assert "thread 0 of block 0 read in line 6" in str(error)


def test_all_readers_are_remembered_between_two_barriers():
    """Thread 2 writes what threads 0 and 1 read; or thread 1 reads what 0 wrote."""
    body = "i = cuda.threadIdx.x\nv = out[0]\nif i == 2:\n    out[0] = v"
    error = error_of(simt.RaceError, body, block=3)
    assert error.line == 5 and error.threads == (one(0, 2), one(0, 0))
    error = error_of(simt.RaceError, body.replace("i == 2", "i == 0"), block=3)
    assert error.line == 3 and error.threads == (one(0, 1), one(0, 0))


def test_two_threads_that_write_one_element_race():
    error = error_of(simt.RaceError, "i = cuda.grid(1)\nout[i // 2] = a[i]")
    assert error.line == 3 and error.threads == (one(0, 1), one(0, 0))
    assert "in the same line; give each thread its own element" in str(error)


def test_a_barrier_orders_global_memory_inside_a_block_only():
    body = (
        "i = cuda.grid(1)\n"
        "out[i] = a[i]\n"
        "cuda.syncthreads()\n"
        "v = out[(i + 1) % 8]\n"
        "cuda.syncthreads()\n"
        "out[i] = v"
    )
    run(body, 1, 8)
    error = error_of(simt.RaceError, body, 2, 4)
    assert error.line == 3 and error.threads == (one(1, 0), one(0, 3))
    assert "nothing orders blocks" in str(error)


def test_in_place_is_fine_where_each_thread_has_its_own_element():
    a = numbers(8)
    expected = a + a
    run("i = cuda.grid(1)\nout[i] = a[i] + a[i]", 2, 4, args=[a, a])
    assert (a == expected).all()


@pytest.mark.parametrize("shift", [0, 1])
def test_arguments_that_share_memory_race_by_address(shift):
    memory = np.zeros(9, "float32")
    body = (
        "i = cuda.grid(1)\nout[i] = a[7 - i]" if shift == 0 else "i = cuda.grid(1)\nout[i] = a[i]"
    )
    error = error_of(simt.RaceError, body, args=[memory[:8], memory[shift : shift + 8]])
    assert error.line == 3


def test_arguments_of_different_widths_race_by_address():
    memory = np.zeros(8, "float64")
    narrow = memory.view("float32")[:8]
    params = "a: float64[8], out: float32[8]"
    body = "i = cuda.grid(1)\nout[i] = float32(a[i])"
    error = error_of(simt.RaceError, body, params=params, args=[memory, narrow])
    assert error.line == 3 and error.threads == (one(0, 1), one(0, 0))
    run(body, params=params, args=[memory, np.zeros(8, "float32")])


USES = {
    "read": "v = s[{0}]",
    "write": "s[{0}] = float32({1})",
    "atomic": "atomic_add(s, {0}, float32(1))",
}
STEP = st.lists(st.tuples(st.sampled_from(list(USES)), st.integers(0, 2)), max_size=2)


@pytest.mark.slow
@given(st.lists(st.lists(STEP, min_size=2, max_size=2), min_size=4, max_size=4), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_race_is_reported_just_where_there_is_one(threads, barriers):
    """threads[t][step]: what thread t does; two blocks of two threads."""
    lines = ["i = cuda.grid(1)"]
    for step in range(2):
        for t, steps in enumerate(threads):
            lines += [f"if i == {t}:", "    v = float32(0)"]
            lines += ["    " + USES[kind].format(e, t) for kind, e in steps[step]]
        lines += ["cuda.syncthreads()"] * barriers
    uses = [
        (t, step * barriers, kind, e)
        for t, steps in enumerate(threads)
        for step in range(2)
        for kind, e in steps[step]
    ]
    racing = {
        e
        for t, step, kind, e in uses
        for u, other, does, f in uses
        if e == f and t != u and not kind == does != "write" and (t // 2 != u // 2 or step == other)
    }

    def launch():
        run("\n".join(lines), 2, 2, "s: float32[3]", [np.zeros(3, "float32")])

    if not racing:
        return launch()
    with pytest.raises(simt.RaceError) as caught:
        launch()
    assert any(f"race for s[{e}]" in str(caught.value) for e in racing)


# -- atomics ---------------------------------------------------------------------------
def test_atomics_are_ordered_among_themselves():
    a, out = np.ones(8, "float32"), np.zeros(8, "float32")
    counts = run("atomic_add(out, cuda.threadIdx.x % 2, a[cuda.grid(1)])", 2, 4, args=[a, out])
    assert out.tolist() == [4, 4, 0, 0, 0, 0, 0, 0]
    assert counts["out"].atomics == 8 and counts["out"].loads == 0


@pytest.mark.parametrize("plain, does", [("out[0] = a[i]", "writes"), ("a[i] = out[0]", "reads")])
def test_an_atomic_races_with_a_plain_use(plain, does):
    error = error_of(
        simt.RaceError,
        f"i = cuda.grid(1)\nif i < 3:\n    atomic_add(out, 0, a[i])\nelse:\n    {plain}",
    )
    assert error.line == 6 and error.threads == (one(0, 3), one(0, 0))
    assert does in str(error) and "updated atomically in line 4" in str(error)


def test_a_plain_use_races_with_a_later_atomic():
    error = error_of(
        simt.RaceError,
        "i = cuda.grid(1)\nif i == 0:\n    out[0] = a[i]\nelse:\n    atomic_add(out, 0, a[i])",
    )
    assert error.line == 6 and error.threads == (one(0, 1), one(0, 0))
    assert "updates atomically" in str(error) and "wrote in line 4" in str(error)


def test_atomics_give_the_old_number_and_have_max_and_min():
    n, old = np.array([3, 3], "int32"), np.zeros(4, "int32")
    run(
        "i = cuda.grid(1)\nold[i] = cuda.atomic.max(n, 0, i * 2)\ncuda.atomic.min(n, 1, 3 - i)",
        1,
        4,
        "n: int32[2], old: int32[4]",
        [n, old],
    )
    assert n.tolist() == [6, 0] and old.tolist() == [3, 3, 3, 4]


# -- bounds, alignment, uninitialized memory -------------------------------------------
@pytest.mark.parametrize(
    "guard, index, element, thread", [("i <= 8", "i", "a[8]", 8), ("i < 8", "i - 1", "a[-1]", 0)]
)
def test_an_element_beyond_an_array_is_found(guard, index, element, thread):
    error = error_of(
        simt.BoundsError, f"i = cuda.grid(1)\nif {guard}:\n    v = a[{index}]", block=16
    )
    assert f"{element} is out of bounds: indices go from 0 to 7" in str(error)
    assert error.line == 4 and error.threads == (one(0, thread),)


def test_the_annotation_is_the_bound_not_the_argument():
    error = error_of(
        simt.BoundsError,
        "out[cuda.grid(1)] = a[0]",
        block=9,
        args=[numbers(8), np.zeros(20, "float32")],
    )
    assert error.line == 2 and error.threads == (one(0, 8),)


def test_shared_memory_has_bounds_on_every_axis():
    error = error_of(
        simt.BoundsError,
        "s = cuda.shared.array((4, 2), float32)\ns[0, cuda.threadIdx.x] = a[0]",
        block=4,
    )
    assert error.line == 3 and error.threads == (one(0, 2),)
    assert "s[0, 2]" in str(error) and "0 to 3 and 0 to 1" in str(error)


@pytest.mark.parametrize(
    "index, words",
    [
        ("1.5", "whole numbers, not float"),
        ("0:2", "whole numbers, not slice"),
        ("0, 1", "2 indices, but the array has 1 axes"),
    ],
)
def test_what_is_no_index_is_refused(index, words):
    error = error_of(simt.KernelError, f"out[0] = a[{index}]", block=1)
    assert words in str(error) and error.line == 2


def test_a_read_of_shared_memory_that_nobody_wrote_is_found():
    body = (
        "s = cuda.shared.array(8, float32)\n"
        "i = cuda.threadIdx.x\n"
        "if i > 0:\n"
        "    s[i] = a[i]\n"
        "cuda.syncthreads()\n"
        "out[i] = s[i]"
    )
    error = error_of(simt.UninitializedError, body)
    assert error.line == 7 and error.threads == (one(0, 0),) and "s[0]" in str(error)


def test_every_block_begins_with_new_shared_memory():
    body = (
        "s = cuda.shared.array(8, float32)\n"
        "i = cuda.grid(1)\n"
        "if cuda.blockIdx.x == 0:\n"
        "    s[cuda.threadIdx.x] = a[i]\n"
        "out[i] = s[cuda.threadIdx.x]"
    )
    error = error_of(simt.UninitializedError, body, 2, 4)
    assert error.line == 6 and error.threads == (one(1, 0),)


@pytest.mark.parametrize(
    "line", ["a, b, c, d = load4(x, i + 1)", "store4(out, i + 2, (x[i], x[i], x[i], x[i]))"]
)
def test_four_neighbors_begin_at_a_multiple_of_four(line):
    error = error_of(
        simt.AlignmentError,
        f"i = cuda.grid(1) * 4\n{line}",
        block=2,
        params="x: float32[8], out: float32[8]",
    )
    assert error.line == 3 and error.threads == (one(0, 0),)


def test_four_neighbors_are_one_access():
    a, out = numbers(8), np.zeros(8, "float32")
    counts = run(
        "i = cuda.grid(1) * 4\np, q, r, s = load4(a, i)\nstore4(out, i, (s, r, q, p))",
        block=2,
        args=[a, out],
    )
    assert out.tolist() == a.reshape(2, 4)[:, ::-1].ravel().tolist()
    assert (counts["a"].loads, counts["a"].load4) == (2, 2)
    assert counts["a"].nbytes_loaded == 32
    assert (counts["out"].stores, counts["out"].store4) == (2, 2)
    assert counts["out"].nbytes_stored == 32


# -- barriers --------------------------------------------------------------------------
def test_a_barrier_that_some_threads_never_reach():
    error = error_of(
        simt.BarrierError, "i = cuda.threadIdx.x\nif i < 3:\n    cuda.syncthreads()\nout[i] = a[i]"
    )
    assert error.line == 4 and error.threads == (one(0, 0), one(0, 3))
    assert "thread 3 of block 0 has ended" in str(error)


def test_threads_that_wait_at_different_barriers():
    error = error_of(
        simt.BarrierError,
        "i = cuda.threadIdx.x\nif i < 3:\n    cuda.syncthreads()\nelse:\n    cuda.syncthreads()",
        grid=2,
    )
    assert error.line == 4 and error.threads == (one(0, 0), one(0, 3))
    assert "waits at that in line 6" in str(error)


def test_a_loop_with_a_barrier_and_different_turns():
    error = error_of(
        simt.BarrierError,
        "for k in range(cuda.threadIdx.x + 1):\n    cuda.syncthreads()",
        block=(2, 2),
    )
    assert error.line == 3
    assert error.threads == (((0, 0, 0), (1, 0, 0)), ((0, 0, 0), (0, 0, 0)))
    assert "thread (1, 0) of block 0" in str(error)


# -- what is no kernel, no launch ------------------------------------------------------
@pytest.mark.parametrize(
    "body, words",
    [
        ("x = cuda.warpsize", "the simulator has no cuda.warpsize"),
        ("f = cuda.threadIdx", "cuda.threadIdx cannot be used like this"),
        ("i = cuda.grid(4)", "cuda.grid needs the number of axes"),
        ("cuda.shared.array(4)", "cuda.shared cannot be used like this"),
        ("s = cuda.shared.array(4)", "needs a name, a shape and a dtype"),
        ("atomic_add(1, 2, 3)", "must be an array of the kernel"),
        ("x = nonsense", "NameError: name 'nonsense' is not defined"),
        ("x = 1 // 0", "ZeroDivisionError"),
    ],
)
def test_lines_that_kernels_cannot_have(body, words):
    error = error_of(simt.KernelError, body)
    assert words in str(error) and error.line == 2


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = 1", "defines 0 functions"),
        ("def f(): pass\ndef g(): pass", "defines 2 functions"),
        ("def f(a): pass", "parameter a needs an annotation"),
        ("def f(a: float33[2]): pass", "parameter a needs an annotation"),
    ],
)
def test_texts_that_are_no_kernel(text, words):
    with pytest.raises(simt.KernelError, match=words):
        simt.Program(text)


@pytest.mark.parametrize(
    "grid, block, words",
    [
        (1, 1025, "1025 threads, but at most 1024 fit"),
        (1, (32, 33), "1056 threads"),
        (0, 1, "whole numbers of at least 1"),
        (1, 1.5, "whole numbers of at least 1"),
        ((1, 65536), 1, "at most 65535 blocks"),
    ],
)
def test_launches_that_no_gpu_has(grid, block, words):
    with pytest.raises(simt.LaunchError, match=words):
        run("pass", grid, block)


@pytest.mark.parametrize(
    "args, words",
    [
        ([np.zeros(8, "float32")], "takes 2 arguments (a, out), but got 1"),
        ([np.zeros(8), np.zeros(8, "float32")], "argument a must be a flat array"),
        ([np.zeros(7, "float32"), np.zeros(8, "float32")], "of at least 8 float32"),
        ([3, np.zeros(8, "float32")], "but got the type int"),
        ([simt, np.zeros(8, "float32")], "flat array of NumPy, of at least 8 float32, but got"),
        ([np.zeros(16, "float32")[::2], np.zeros(8, "float32")], "of shape (8,), with gaps"),
    ],
)
def test_arguments_that_do_not_fit(args, words):
    with pytest.raises(simt.LaunchError) as caught:
        run("pass", args=args)
    assert words in str(caught.value)


def test_more_shared_memory_than_a_block_has():
    with pytest.raises(simt.LaunchError, match="asks for 49156 bytes"):
        run("s = cuda.shared.array(12289, float32)")


# -- watching --------------------------------------------------------------------------
def test_watch_collects_launches():
    with simt.watch() as seen:
        product(TILED)
        with simt.watch() as inner:
            run("out[cuda.grid(1)] = a[0]")
    assert [one.kernel for one in seen] == ["product", "k"]
    assert seen[0].grid == (2, 2, 1) and seen[0].block == (4, 4, 1)
    assert seen[0].counts.global_loads == 256
    assert [one.kernel for one in inner] == ["k"]
    product(TILED)
    assert len(seen) == 2
