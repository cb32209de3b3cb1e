"""The checker of puzzles: right kernels pass, wrong ones get a sentence that helps."""

import json
import linecache
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from minihybrid_course import puzzles
from minihybrid_course.puzzles import check

import minihybrid as mx
from minihybrid.simt import KernelError, cuda, float32

CHAPTER = Path(__file__).parents[2] / "notebooks/25_first_kernels.ipynb"
A = np.arange(1, 9, dtype=np.float32)


# -- the chapter -----------------------------------------------------------------------
@pytest.fixture(scope="module")
def verdicts():
    """(is it a solution, `Verdict`) of each check in the chapter's cells."""
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    actual, names, solved = [], {}, False

    def noting(check):
        def recorder(*args, **kwargs):
            actual.append((solved, check(*args, **kwargs)))
            return actual[-1][1]

        return recorder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(puzzles, "check", noting(check))
        patch.setattr(mx, "check", noting(mx.check))
        for k, cell in enumerate(cells):
            if cell["cell_type"] == "markdown":
                continue
            source, name = "".join(cell["source"]), f"<cell {k}>"
            source = re.sub(r"^( *)%.*", r"\1...", source, flags=re.M)  # IPython's own lines
            solved = source.startswith("#@title Solution")
            linecache.cache[name] = len(source), None, source.splitlines(True), name
            fails = "raises-exception" in cell["metadata"].get("tags", ())
            with pytest.raises(KernelError) if fails else nullcontext():
                exec(compile(source, name, "exec"), names)
    return actual


def test_every_solution_of_the_chapter_is_right(verdicts):
    solutions = [verdict for solved, verdict in verdicts if solved]
    assert len(solutions) >= 11
    assert [v.sentence for v in solutions if not v.right] == []
    assert sum(v.picture is not None for v in solutions) == len(solutions)


def test_every_template_of_the_chapter_is_not_right_yet(verdicts):
    templates = [verdict for solved, verdict in verdicts if not solved]
    assert len(templates) >= 13
    assert not any(verdict.right for verdict in templates)
    assert all(verdict.sentence.startswith("not yet: ") for verdict in templates)


# -- wrong answers ---------------------------------------------------------------------
@cuda.jit
def writes_nothing(a, out):
    """Forgets the last line."""


@cuda.jit
def adds_one(a, out):
    """Another number than asked for."""
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] + 1


@cuda.jit
def unguarded(a, out):
    """Asks nothing."""
    i = cuda.grid(1)
    out[i] = a[i] + 10


@cuda.jit
def thread_only(a, out):
    """Forgets that there are blocks."""
    i = cuda.threadIdx.x
    if i < a.size:
        out[i] = a[i] + 10


@cuda.jit
def in_place(a, out):
    """Writes into what it was given to read."""
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 10
        out[i] = a[i]


@cuda.jit
def greedy(a, out):
    """Loads each number again and again."""
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] - a[i] + a[i] + 10


@cuda.jit
def unsynchronized(a, out):
    """Shares without waiting."""
    s = cuda.shared.array(8, float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    out[i] = s[7 - i] + 10


@cuda.jit
def ahead(a, out):
    """Changes what its neighbor reads."""
    s = cuda.shared.array(8, float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    if i > 0:
        s[i] += s[i - 1]
    out[i] = s[i]


@cuda.jit
def waits_alone(a, out):
    """A barrier that only some reach."""
    i = cuda.threadIdx.x
    if i < 4:
        cuda.syncthreads()
    out[i] = a[i] + 10


WRONG = [
    (writes_nothing, 8, r"out\[0\] is 0, but must be 11; no thread wrote it"),
    (
        adds_one,
        8,
        r"out\[0\] is 2, but must be 11; thread 0 of block 0 wrote it in "
        r"line \d+ \(`out\[i\] = a\[i\] \+ 1`\)",
    ),
    (unguarded, 16, r"line \d+ \(`out\[i\] = .*out of bounds.*thread 8 of block 0"),
    (
        thread_only,
        (2, 4),
        r"race for out\[0\], which thread 0 of block 1 writes, and "
        r"thread 0 of block 0 wrote",
    ),
    (in_place, 8, r"the kernel changed its input a"),
    (greedy, 8, r"a thread loads 3 elements of a, but may load 1; let the threads"),
    (unsynchronized, 8, r"s\[7\] is read, but no thread of the block has written it"),
    (
        ahead,
        8,
        r"race for s\[1\], which thread 2 of block 0 reads, and thread 1 of "
        r"block 0 wrote",
    ),
    (waits_alone, 8, r"thread 0 of block 0 waits at the barrier.*thread 4 of block 0"),
]


@pytest.mark.parametrize(
    "kernel, threads, sentence", WRONG, ids=[kernel.name for kernel, *_ in WRONG]
)
def test_a_wrong_kernel_gets_a_sentence_that_says_why(kernel, threads, sentence):
    grid, block = threads if isinstance(threads, tuple) else (1, threads)
    verdict = check(kernel, lambda a: a + 10, [A], grid, block, max_loads=1)
    assert not verdict.right
    assert re.search(sentence, verdict.sentence), verdict.sentence


def test_a_function_that_is_no_kernel_is_told_so():
    verdict = check(len, len, [A], 1, 8)
    assert not verdict.right
    assert verdict.sentence == ("not yet: len is a function of Python; write @cuda.jit above it")


def test_the_inputs_of_a_puzzle_are_not_changed():
    a = A.copy()
    check(in_place, lambda a: a + 10, [a], 1, 8)
    assert np.array_equal(a, A)


def test_without_a_limit_loads_are_only_counted():
    verdict = check(greedy, lambda a: a + 10, [A], 1, 8)
    assert verdict.right
    assert "a thread loads at most 3 elements" in verdict.sentence


# -- what is drawn ---------------------------------------------------------------------
def test_what_the_first_block_uses_is_drawn():
    text = repr(check(adds_one, lambda a: a + 1, [A], 2, 4).picture)
    assert "read a: [0] by thread 0, [1] by thread 1" in text
    assert "write out: [0] by thread 0" in text
    assert "[4]" not in text  # of the second block


def test_a_wrong_kernel_is_drawn_if_it_came_to_its_end():
    picture = check(adds_one, lambda a: a + 10, [A], 1, 8).picture
    assert "write out: [0] by thread 0" in repr(picture)
    assert check(unguarded, lambda a: a + 10, [A], 1, 16).picture is None


def test_what_is_too_large_to_look_at_is_only_judged():
    many = np.full(1000, np.nan, np.float32)
    verdict = check(adds_one, lambda a: a + 1, [many], 4, 256)
    assert verdict.right
    assert verdict.picture is None
    assert "<svg" not in verdict._repr_html_()


def test_a_notebook_shows_the_sentence_and_the_picture():
    html = check(adds_one, lambda a: a + 1, [A], 1, 8)._repr_html_()
    assert html.startswith("<p>adds_one is right: a thread loads at most 1 element")
    assert "<svg" in html
    html = check(unguarded, lambda a: a + 10, [A], 1, 16)._repr_html_()
    assert "<code>if i &lt; 8:</code>" in html
