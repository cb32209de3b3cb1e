"""Right and wrong answers to the exercises of chapter 33."""

import math

import numpy as np

from minihybrid.gluon import Trainer, amp, nn


def e4m3(byte, nan=True, subnormal=True, signed=True, bias=7, infinity=False):
    """The float of a byte, or what's near it."""
    sign, exponent, mantissa = byte >> 7 if signed else 0, byte >> 3 & 15, byte & 7
    if exponent == 15 and (infinity or nan and mantissa == 7):
        return math.nan if mantissa else math.inf
    if exponent == 0 and subnormal:
        return (-1) ** sign * 2.0**-6 * mantissa / 8
    return (-1) ** sign * 2.0 ** (exponent - bias) * (1 + mantissa / 8)


def step(weight, grad, scale, rate, skips=True, halves=True, wide=True, in_place=False):
    """A step of gradient descent, or what's near it."""
    if skips and not np.isfinite(grad).all():
        return weight, scale / 2 if halves else scale
    grad = grad.astype(np.float32) / np.float32(scale) if wide else grad / np.float16(scale)
    if in_place:
        weight -= rate * grad
        return weight, scale
    return weight - np.float32(rate) * grad, scale


def calibrated(batches, share, whole=True, absolute=True, clips=True, divides=True):
    """The scale of a share of all elements, or what's near it."""
    if not whole:
        return sum(calibrated([b], share) for b in batches) / len(batches)
    values = np.concatenate([b.ravel() for b in batches])
    sizes = np.sort(np.abs(values) if absolute else values)
    bound = sizes[math.ceil(share * len(sizes)) - 1] if clips else sizes[-1]
    return bound / 127 if divides else bound


def trainer(dtype="float16", **settings):
    """A Trainer of one layer."""
    net = nn.Dense(1, in_units=1)
    net.initialize()
    net.cast(dtype)
    return Trainer(net.collect_params(), "sgd", settings)


ANSWERS = {
    "33.1": (
        (2048, 256, 16777216),
        [
            ((1024, 128, 8388608), "float16 is not 1024: there, the step is still 1"),
            ((2049, 257, 16777217), "the number that's missing"),
            ((2048, 128, 16777216), "bfloat16 is not 128"),
            ((2048, 256, 8388608), "float32 is not 8388608"),
            (2048, "expected 3 values"),
        ],
    ),
    "33.2": (
        e4m3,
        [
            (lambda b: e4m3(b, nan=False), "it's NaN"),
            (lambda b: e4m3(b, subnormal=False), "e4m3(0x00) is 0.0078125, but must be 0.0"),
            (lambda b: e4m3(b, signed=False), "it's a negative number"),
            (lambda b: e4m3(b, bias=8), "e4m3(0x38) is 0.5, but must be 1.0"),
            (lambda b: e4m3(b, infinity=True), "a number with all exponent bits"),
            (lambda b: None, "is a `return` missing"),
            (str, "must be a number"),
        ],
    ),
    "33.3": (
        step,
        [
            (lambda *a: step(*a, wide=False), "a small gradient: the change of the weight"),
            (lambda *a: step(*a, skips=False), "an infinite gradient: the change of the weight"),
            (lambda *a: step(*a, halves=False), "the new scale is 8.0 instead of 4.0"),
            (lambda *a: step(*a, in_place=True), "the old weight was overwritten"),
            (lambda *a: step(*a)[0], "expected the new weight and the new scale"),
        ],
    ),
    "33.4": (
        calibrated,
        [
            (lambda b, s: calibrated(b, s, clips=False), "one batch, share 0.75"),
            (lambda b, s: calibrated(b, s, absolute=False), "one batch, share 1"),
            (lambda b, s: calibrated(b, s, whole=False), "two batches, share 0.75"),
            (lambda b, s: calibrated(b[:1], s), "two batches, share 0.75"),
            (lambda b, s: calibrated(b, s, divides=False), "the bound is 127 * 4.00000"),
            (
                lambda b, s: (
                    np.percentile(np.abs(np.concatenate([x.ravel() for x in b])), s * 100) / 127
                ),
                "share 0.75",
            ),
        ],
    ),
    "33.5": (
        lambda: amp.init_trainer(trainer()),
        [
            (lambda: amp.init_trainer(trainer(multi_precision=True)), "keeps float32 copies"),
            (lambda: amp.init_trainer(None), "pass a Trainer"),
            (lambda: ampp(0), "run the cells above"),
        ],
    ),
}
