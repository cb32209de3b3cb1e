"""Long arrays are computed as short ones are, though some operators have a faster way for them.

What is left out: operators that are not elementwise; no other looks at a size.
"""

import numpy as np
from marks import for_each
from minihybrid.nd import NDArray
from traced import FORMULAS, apply

from minihybrid.core.op import DTypeError

SHORT, PIECES = 1000, 6
ULPS = 4


def drawn(dtype, n):
    """Arrays of numbers of all sizes, among them infinities, NaN and both zeros."""
    rng = np.random.default_rng(n)
    if dtype.kind in "iu":
        return rng.integers(0, 100, SHORT * PIECES).astype(dtype)
    values = rng.standard_normal(SHORT * PIECES) * 10 ** rng.uniform(-3, 1, SHORT * PIECES)
    values[:: SHORT // 5] = np.resize([np.inf, -np.inf, np.nan, 0.0, -0.0, 4, -4], 5 * PIECES)
    return values.astype(dtype)


@for_each(FORMULAS)
def test_many_numbers_are_what_they_are_a_few_at_a_time(case):
    for dtype in map(np.dtype, ("float32", "float64", "float16", "int32")):
        arrays = [drawn(dtype, n) for n in range(len(case.op.inputs))]
        if case.op.name == "_where":
            arrays[0] = np.resize([0, 1, 0, 0, 2.5], SHORT * PIECES).astype(dtype)
        try:
            with np.errstate(all="ignore"):
                (whole,) = apply(case, list(map(NDArray, arrays)))
                pieces = [
                    apply(case, [NDArray(a[k : k + SHORT]) for a in arrays])[0].data
                    for k in range(0, SHORT * PIECES, SHORT)
                ]
        except DTypeError:
            continue
        actual, expected = whole.data, np.concatenate(pieces)
        assert actual.dtype == expected.dtype
        if expected.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))
            rtol = ULPS * np.finfo(expected.dtype).eps
            np.testing.assert_allclose(actual, expected, rtol, atol=0)
        else:
            np.testing.assert_array_equal(actual, expected)
