"""Kernels that students hand in as text: read by the grader, compiled only if there is no more."""

import builtins

import pytest
from minihybrid_course.grading.sources import source, tags

HEAD = "def kernel(a0, out):\n    "
NEVER = "if False:\n        "


@pytest.fixture(scope="module")
def kernel():
    """The class of assignment 4 that reads a text."""
    names = {"__builtins__": builtins}
    for cell in source("4_fusion").cells:
        if "judge" in tags(cell):
            exec(cell.source, names)
    return names["Kernel"]


def test_loads_and_stores_are_counted(kernel):
    text = "for i in range(3):\n        out[0] = a0[i] + a0[i] if i > 0 and i < 9 else -a0[i]"
    actual = kernel(HEAD + text)
    assert actual.run([1, 2, 3], size=1) == [6]
    assert actual.loads == {"a0": 5, "out": 0} and actual.stores == {"a0": 0, "out": 3}


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "out[0] = open('made')",
        "out[0] = ().__class__",
        "out[0] = a0.size",
        "out[0] = [n for n in a0]",
        "out[0] = (lambda: 1)()",
        "out[0] = print(1)",
        "out[0] = float32(x=1)",
        "out[0] = max(*a0)",
        "out[0] = 2 ** 9",
        "out[0] = f'{1}'",
        "while True:\n        pass",
        "with a0:\n        pass",
        "kernel.steps = -1",
        "raise SystemExit",
    ],
)
@pytest.mark.parametrize("before", ["", NEVER])
def test_what_is_no_kernel_is_refused(kernel, before, text):
    """Also where no number gets: what was read to here is compiled when times are compared."""
    with pytest.raises(AssertionError, match="isn't allowed in a kernel"):
        kernel(HEAD + before + text.replace("\n", "\n    "))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "for i in range(10**18):\n        pass".replace("10**18", "1" + 18 * "0"),
            "too many steps",
        ),
        ("x = 3\n    for i in range(99):\n        x = x * x", "too large"),
        ("out[0] = a0[1]", "the index is 1"),
        ("out[0] = a0[-1]", "the index is -1"),
        ("out[0] = other[0]", "isn't one of"),
        ("out[0] = other", "has no value yet"),
    ],
)
def test_what_runs_too_far_ends(kernel, text, why):
    with pytest.raises(AssertionError, match=why):
        kernel(HEAD + text).run([1.0], size=1)


@pytest.mark.parametrize(
    "text",
    [
        "@print\n" + HEAD + "pass",
        "def kernel(a0, out=print()):\n    pass",
        "def kernel(a0, out: print()):\n    pass",
        "async " + HEAD + "pass",
        HEAD.replace("kernel", "other") + "pass",
        "class kernel:\n    pass",
    ],
)
def test_what_would_run_before_the_kernel_is_refused(kernel, text):
    with pytest.raises(
        AssertionError, match=r"isn't allowed|called `kernel`|isn't a single function"
    ):
        kernel(text)


@pytest.mark.parametrize(
    "text",
    ["", "1", "def", "x = 1", HEAD + "pass\n" + HEAD + "pass", "#" * 5000, None, b"1", ["1"]],
)
def test_what_is_not_one_function_is_refused(kernel, text):
    with pytest.raises(AssertionError, match=r"isn't a single function|must be a short string"):
        kernel(text)


@pytest.mark.parametrize("text", ["-" * 4000 + "1", "(" * 2000, "not " * 1000 + "1", "9" * 4900])
def test_what_is_nested_too_deep_is_an_error_and_no_crash(kernel, text):
    with pytest.raises((AssertionError, RecursionError, MemoryError)):
        kernel(HEAD + "out[0] = " + text).run([1.0], size=1)


@pytest.mark.parametrize("where", ["out[0] != out[0]", "out[0] == out[0]", "out[0] > 12"])
def test_a_kernel_that_works_now_and_then_loses_the_race(where):
    """The output is refilled before every run, with NaN and with numbers in turn."""
    names = {}
    for cell in source("4_fusion").cells:
        if "apart" in tags(cell):
            exec(cell.source, names)
    text = f"if {where}:\n        out[0] = a0[0] + a0[1]"
    actual = names["raced"](HEAD + text, "x", [0], [[2]])
    assert not actual["out"] == pytest.approx(actual["expected"])
    actual = names["raced"](HEAD + "out[0] = a0[0] + a0[1]", "x", [0], [[2]])
    assert actual["out"] == pytest.approx(actual["expected"])
