"""Chapter 17: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid_course.exercises.judging import Exercise, equal, kind, need, tried, uncounted


def written(kernel, *arrays, size):
    """What a kernel writes, when its text runs as Python, where every index is checked."""
    out = np.full(size, np.nan, "float32")
    tried("the kernel's text, run as Python,", lambda: kernel.py_func(*arrays, out) or out)
    return out


def softsign(kernel):
    """Judge 17.3: y = w x / (1 + |x|) for 2 rows of 3, in float32, as text and compiled."""
    need(
        hasattr(kernel, "py_func"),
        f"expected a kernel, with @kernel(F, F, F) above it, but got {kind(kernel)}",
    )
    x, w = np.float32([[1, -1, 3], [0, -4, 0.5]]), np.float32([10, 20, 30])
    expected = w * x / (1 + abs(x))
    actual = written(kernel, x.ravel(), w, size=6).reshape(2, 3)
    for i, j in np.ndindex(2, 3):
        need(not np.isnan(actual[i, j]), f"nothing was written for row {i}, column {j}")
        what = f"row {i}, column {j}, where x = {x[i, j]:g} and w = {w[j]:g},"
        equal(actual[i, j], expected[i, j], what, rtol=1e-5, atol=0)
    x = np.random.default_rng(0).normal(size=(100, 2, 3)).astype("float32")
    single = w * x / (1 + abs(x))
    double = (w.astype("float64") * x / (1.0 + abs(x.astype("float64")))).astype("float32")
    half = (w * x / (1.0 + abs(x.astype("float64")))).astype("float32")
    actual = np.full_like(x, np.nan)
    for one, result in zip(x, actual, strict=True):
        uncounted(kernel, one.ravel(), w, result.reshape(-1))
    need(
        np.array_equal(actual, single)
        or not any(np.array_equal(actual, wide) for wide in (double, half)),
        "compiled, it computes in float64, as the last digits show: a literal without a type "
        "widens the operations that use it",
    )
    return "the same loops as the generator's, in float32 throughout"


EXERCISES = {
    "17.3": Exercise("your kernel softsign(x, w, out), for 2 rows and 3 columns", softsign)
}
