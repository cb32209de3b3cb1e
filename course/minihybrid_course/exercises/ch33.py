"""Chapter 33: checkers of its exercises.

Takes:   numbers, functions, and functions that raise an error.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 33.6, which measures.
"""

import math

import numpy as np

from minihybrid_course.exercises.judging import Exercise, equal, expect, need, number, same, tried


# -- 33.2 ----------------------------------------------------------------------------------
def float8(byte):
    """The specification of e4m3."""
    exponent, mantissa = byte >> 3 & 15, byte & 7
    if byte & 127 == 127:
        return math.nan
    size = math.ldexp(8 + mantissa, exponent - 10) if exponent else math.ldexp(mantissa, -9)
    return -size if byte >> 7 else size


REGIONS = {  # what a byte is an example of -> the bytes that are tried, simple ones first
    "a normal number": (0x38, 0x3C, 0x41, 0x08, 0x10),
    "a negative number": (0xB8, 0xC1),
    "a number with all exponent bits": (0x78, 0x7E, 0xFE),
    "zero": (0x00,),
    "a subnormal number": (0x01, 0x04, 0x07, 0x87),
    "NaN": (0x7F, 0xFF),
    "one of all bytes": range(256),
}


def decodes(e4m3):
    """Check 33.2 on all bytes, region by region."""
    for region, numbers in REGIONS.items():
        for byte in numbers:
            call, expected = f"e4m3(0x{byte:02X})", float8(byte)
            actual = number(tried(call, e4m3, byte), call)
            need(
                actual == expected or math.isnan(actual) and math.isnan(expected),
                f"{call} is {actual}, but must be {expected}: it's {region}",
            )
    return "all 256 bytes are decoded"


# -- 33.3 ----------------------------------------------------------------------------------
def steps(step):
    """Check 33.3: a plain step, an overflow, a gradient that float16 can't unscale."""
    weight = np.float32([1e-4, -2e-4])
    for case, grad, scale in (
        ("a plain gradient", [8, 16], 8.0),
        ("a small gradient", [0.001, 0.002], 2.0**15),
        ("a scale beyond float16", [8, 16], 2.0**16),
        ("an infinite gradient", [1, np.inf], 8.0),
        ("a NaN", [np.nan, 1], 8.0),
    ):
        grad, before = np.float16(grad), weight.copy()
        result = tried(f"step for {case}", step, weight, grad, scale, 0.5)
        expect(result, (tuple, list), "the new weight and the new scale", f"{case}: ", length=2)
        need((weight == before).all(), f"{case}: the old weight was overwritten")
        finite = np.isfinite(grad).all()
        expected = weight - np.float32(0.5 / scale) * grad.astype(np.float32) if finite else weight
        new, now = np.asarray(result[0]), scale if finite else scale / 2
        same(new.shape, (2,), f"{case}: the new weight's shape")
        change = new - before, expected - before
        equal(*change, f"{case}: the change of the weight", rtol=1e-2, atol=1e-12)
        same(result[1], now, f"{case}: the new scale")
        need(new.dtype == np.float32, f"{case}: the new weight is {new.dtype}, not float32")
    return "small gradients arrive, and an overflow costs one step"


# -- 33.4 ----------------------------------------------------------------------------------
def calibrates(calibrated):
    """Check 33.4: the smallest scale that holds a share of all elements."""
    rng = np.random.default_rng(0)
    many = [rng.normal(size=(5, 20)) * size for size in (1, 3, 0.2)]
    for case, batches, share in (
        ("one batch, share 1", [np.float32([[1, 2], [3, -4]])], 1),
        ("one batch, share 0.75", [np.float32([1, 2, -4, 3])], 0.75),
        ("two batches, share 0.75", [np.float32([1, 1]), np.float32([2, -8])], 0.75),
        ("the larger batch first, share 1", [np.float32([9]), np.float32([1])], 1),
        ("three batches, share 0.9", many, 0.9),
        ("three batches, share 0.999", many, 0.999),
    ):
        sizes = np.sort(np.concatenate([np.abs(b).ravel() for b in batches]))
        expected = sizes[math.ceil(share * len(sizes)) - 1] / 127
        actual = tried(f"calibrated for {case}", calibrated, batches, share)
        actual = number(actual, f"{case}: the scale")
        need(
            math.isclose(actual, expected, rel_tol=1e-5),
            f"{case}: the bound is 127 * {actual:.5f} = {actual * 127:.3f}, but must be "
            f"{expected * 127:.3f}",
        )
    return "the outliers saturate, and the rest keeps its resolution"


EXERCISES = {
    "33.2": Exercise("your function e4m3(byte)", decodes),
    "33.3": Exercise("your function step(weight, grad, scale, rate)", steps),
    "33.4": Exercise("your function calibrated(batches, share)", calibrates),
}
