"""Students' kernels: `from minihybrid.simt import cuda`, in the place of Numba's."""

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from minihybrid import simt
from minihybrid.core.op import HybridError
from minihybrid.simt import cuda, float32

TILE = 4


@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit
def scaled(a, factor, out):
    """Uses two axes, a function, and names of this file."""
    y, x = cuda.threadIdx.y, cuda.threadIdx.x
    s = cuda.shared.array(shape=(TILE, TILE), dtype=float32)
    if y < a.shape[0] and x < a.shape[1] and len(a) == a.shape[0] and a.ndim == 2:
        s[y, x] = a[y, x] * factor
        out[y, x] = square(s[y, x]) + math.exp(a[y, x] - a[y, x])


@cuda.jit
def histogram(a, bins):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, a[i], 1)


@cuda.jit
def beyond(a, out):
    i = cuda.grid(1)
    out[i] = a[i] + 1


@cuda.jit
def lost(a):
    f = cuda.warp_size
    a[0] = f


@cuda.jit
def renamed(a, out):
    b = out
    b[0] = a[0]


def test_a_kernel_and_its_counts():
    a, b, out = np.arange(5.0), np.ones(5), np.zeros(5)
    assert add[2, 4](a, b, out) is None
    assert out.tolist() == [1, 2, 3, 4, 5]
    assert add.counts["a"].loads == 5 and add.counts["out"].stores == 5
    assert add.counts.n_threads == 8


def test_two_axes_shared_memory_and_functions():
    a, out = np.arange(6, dtype="float32").reshape(2, 3), np.zeros((2, 3), "float32")
    scaled[1, (4, 4)](a, 3.0, out)
    np.testing.assert_array_equal(out, (a * 3) ** 2 + 1)
    assert scaled.counts["s"].loads == 6


def test_atomics():
    a, bins = np.array([0, 2, 2, 1, 2, 0]), np.zeros(3, "int32")
    histogram[2, 2](a, bins)
    assert bins.tolist() == [2, 1, 3] and histogram.counts["bins"].atomics == 6


def test_arrays_of_the_device():
    there = cuda.to_device(np.arange(3.0))
    out = cuda.device_array(3)
    assert np.isnan(out).all()
    beyond[1, 3](there, out)
    cuda.synchronize()
    back = out.copy_to_host()
    assert back.tolist() == [1, 2, 3] and type(back) is np.ndarray


def test_an_error_names_the_line_of_this_file():
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = lines.index("    out[i] = a[i] + 1") + 1
    with pytest.raises(simt.BoundsError) as caught:
        beyond[1, 32](np.zeros(3), np.zeros(3))
    assert caught.value.line == line
    assert str(caught.value) == (
        f"kernel 'beyond', line {line} (`out[i] = a[i] + 1`): a[3] is out of bounds: "
        "indices go from 0 to 2; guard it, as in `if i < 3:` (thread 3 of block 0)"
    )


@pytest.mark.parametrize(
    "launch, words",
    [
        (lambda a: add(a, a, a), "add[blocks, threads_per_block](...)"),
        (lambda a: add[3](a, a, a), "needs a grid and a block, but got 3"),
        (lambda a: add[1, 4](a, a), "takes 3 arguments (a, b, out), but got 2"),
        (lambda a: add[1, 2048](a, a, a), "at most 1024 fit"),
        (lambda a: add[1, 4]([1], a, a), "argument a is a list"),
        (lambda a: add[1, 4](np.ones((2, 2)).T, a, a), "np.ascontiguousarray(a)"),
    ],
)
def test_launches_that_are_mistakes(launch, words):
    with pytest.raises(simt.LaunchError) as caught:
        launch(np.zeros(4))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "run, words",
    [
        (lambda: lost[1, 1](np.zeros(1)), "(`f = cuda.warp_size`): the simulator has no"),
        (lambda: renamed[1, 1](np.zeros(1), np.zeros(1)), "out is written under another name"),
        (lambda: cuda.grid(1), "belongs to the threads of a kernel"),
        (lambda: cuda.shared.array(3, float32), "cuda.shared.array belongs"),
    ],
)
def test_kernels_that_are_mistakes(run, words):
    with pytest.raises(HybridError) as caught:
        run()
    assert words in str(caught.value)


def test_a_name_that_cuda_does_not_have():
    with pytest.raises(AttributeError, match="the simulator has no cuda.stream"):
        cuda.stream()


# -- the picture -----------------------------------------------------------------------
@cuda.jit
def shifted(a, out):
    s = cuda.shared.array(3, float32)
    i = cuda.threadIdx.x
    s[i] = a[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = s[(i + 1) % 3] + s[0]


SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_shows_who_uses_what():
    a, out = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    picture = simt.draw(shifted[2, 3], a, out, block=1)
    assert out.tolist() == [1, 2, 0, 7, 8, 6]
    assert repr(picture).splitlines() == [
        "kernel 'shifted', block 1: who uses what",
        "step 1, read a: [3] by thread 0, [4] by thread 1, [5] by thread 2",
        "step 1, write s: [0] by thread 0, [1] by thread 1, [2] by thread 2",
        "step 2, read s: [0] by threads 0, 1 and 2, [1] by thread 0, [2] by thread 1",
        "step 2, write out: [3] by thread 0, [4] by thread 1, [5] by thread 2",
    ]
    root = ElementTree.fromstring(picture._repr_html_())
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "kernel 'shifted', block 1: who uses what"
    assert root.find(f"{SVG}desc").text == repr(picture)
    cells = {group.find(f"{SVG}title").text: group for group in root.iter(f"{SVG}g")}
    assert len(cells) == 6 + 3 + 3 + 6
    assert cells["a[0]: no thread"].find(f"{SVG}text") is None
    several = cells["s[0]: threads 0, 1 and 2"]
    assert several.find(f"{SVG}text").text == "3×"
    assert len({rect.get("fill") for rect in several.iter(f"{SVG}rect")}) == 4


def test_a_picture_of_matrices_and_atomics():
    a, out = np.ones((2, 3), "float32"), np.ones((2, 3), "float32")
    picture = simt.draw(scaled[1, (4, 4)], a, 2.0, out)
    assert "read a: [0, 0] by thread 0, [0, 1] by thread 1" in repr(picture)
    assert "[1, 2] by thread 6" in repr(picture)
    picture = simt.draw(histogram[1, 2], np.array([1, 1]), np.zeros(2, "int32"))
    assert repr(picture).endswith("step 1, update bins: [1] by threads 0 and 1")


def test_a_picture_of_too_much_is_refused():
    with pytest.raises(simt.LaunchError, match="up to 513 elements an array"):
        simt.draw(beyond[1, 1], np.zeros(513), np.zeros(513))


# -- what warps ask for ----------------------------------------------------------------
@cuda.jit
def strided(a, out, stride):
    i = cuda.grid(1)
    out[i] = a[i * stride] + a[i * stride]


def rows(table):
    return {(row.name, row.kind): row[3:] for row in table.rows}


@pytest.mark.parametrize("stride, transactions", [(1, 4), (2, 8), (8, 32), (0, 1)])
def test_a_warp_takes_pieces_of_32_bytes(stride, transactions):
    a, out = np.zeros(512, "float32"), np.zeros(64, "float32")
    table = rows(simt.traffic(strided[2, 32], a, out, stride))
    # Two warps read twice each; the second begins 32 strides further on.
    best = 1 if stride == 0 else 4
    assert table["a", "read"] == (4, 4 * transactions, 4 * best)
    assert table["out", "write"] == (2, 8, 8)


@cuda.jit
def transposed(a, out):
    s = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    s[y, x] = a[y, x]
    cuda.syncthreads()
    out[y, x] = s[x, y]


@cuda.jit
def padded(a, out):
    s = cuda.shared.array((32, 33), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    s[y, x] = a[y, x]
    cuda.syncthreads()
    out[y, x] = s[x, y]


@pytest.mark.parametrize("kernel, turns", [(transposed, 32), (padded, 1)])
def test_words_of_one_bank_take_turns(kernel, turns):
    a, out = np.zeros((32, 32), "float32"), np.zeros((32, 32), "float32")
    table = rows(simt.traffic(kernel[1, (32, 32)], a, out))
    assert table["s", "write"] == (32, 32, 32)
    assert table["s", "read"] == (32, 32 * turns, 32)
    assert table["a", "read"] == table["out", "write"] == (32, 128, 128)


def test_kernels_of_students_are_watched_too():
    with simt.watch() as seen:
        beyond[1, 1](np.zeros(1), np.zeros(1))
    assert [one.kernel for one in seen] == ["beyond"]


def test_a_kernel_without_a_source_is_an_error():
    world = {}
    exec("def typed(out): out[0] = 1", world)
    with pytest.raises(
        simt.KernelError,
        match="'typed': its source cannot be read; write it into a file or a notebook",
    ):
        cuda.jit(world["typed"])


@cuda.jit
def stuck(a, out):
    i = cuda.grid(1)
    while i < a.size:
        out[i] = a[i]


def test_a_students_loop_that_never_ends_is_found():
    with simt.turns(1000), pytest.raises(simt.EndlessError) as caught:
        stuck[1, 4](np.ones(3), np.zeros(3))
    assert "kernel 'stuck', line" in str(caught.value)
    assert "(`while i < a.size:`): the loop made 1000 turns" in str(caught.value)


@cuda.jit
def left(a, out):
    i = cuda.grid(1)
    out[i] = a[i - 1]


@cuda.jit
def right(a, out):
    i = cuda.grid(1)
    out[i] = a[i + 1]


@cuda.jit
def both(a, out):
    i = cuda.grid(1)
    out[i] = a[i - 1] + a[i + 1]


@cuda.jit
def sliced(a, out):
    out[:] = a[:]


@pytest.mark.parametrize(
    "kernel, words",
    [
        (left, "a[-1] is out of bounds: indices go from 0 to 2; guard it, as in `if i - 1 >= 0:`"),
        (right, "a[3] is out of bounds: indices go from 0 to 2; guard it, as in `if i + 1 < 3:`"),
        (both, "guard it, as in `if i >= 1:` for an index i - 1; a negative one does not count"),
        (sliced, "whole numbers, not slice; a thread computes with elements, as in out[i] = a[i]"),
    ],
)
def test_the_guard_that_is_advised_helps(kernel, words):
    with pytest.raises(simt.KernelError) as caught:
        kernel[1, 3](np.ones(3), np.ones(3))
    assert words in str(caught.value)
