"""Images in other sizes, masks and ranges: what MXNet 1.9.1 answers, and errors."""

import importlib.util
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from minihybrid import autograd, nd, sym
from minihybrid.core.op import AttrError, ShapeError
from minihybrid.core.tracing import TraceError
from minihybrid.gluon.contrib import nn

GOLDEN = Path(__file__).parents[1] / "golden" / "detection"
ANSWERS = json.loads((GOLDEN / "answers.json").read_text())
spec = importlib.util.spec_from_file_location("detection", GOLDEN / "make_golden.py")
expressions = importlib.util.module_from_spec(spec)
spec.loader.exec_module(expressions)


# -- what MXNet answers ----------------------------------------------------------------
@pytest.mark.parametrize("expression", expressions.VALUES)
def test_values_are_mxnets(expression):
    actual = expressions.answer(expression, nd)
    assert [dtype for dtype, _ in actual] == [dtype for dtype, _ in ANSWERS[expression]]
    for (_, got), (_, expected) in zip(actual, ANSWERS[expression], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("expression", expressions.GRADIENTS)
def test_values_and_gradients_are_mxnets(expression):
    actual = expressions.gradient(expression, nd, autograd)
    for got, expected in zip(actual, ANSWERS[expression], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


# -- what is told ----------------------------------------------------------------------
X, R = nd.zeros((2, 3, 4, 5)), nd.zeros((1, 5))
ERRORS = [
    (lambda: nd.contrib.AdaptiveAvgPooling2D(R), ShapeError, r"images \(N, C, H, W\) are needed"),
    (
        lambda: nd.contrib.AdaptiveAvgPooling2D(X, output_size=(1, 2, 3)),
        AttrError,
        "one or two whole numbers of at least 1 are needed",
    ),
    (
        lambda: nd.contrib.BilinearResize2D(X, height=0, width=3),
        ShapeError,
        r"\(2, 3, 4, 5\) cannot become 0 x 3; height and width must be at least 1",
    ),
    (
        lambda: nd.contrib.BilinearResize2D(X, mode="odd_scale"),
        AttrError,
        "mode='odd_scale' needs scale_height and scale_width, found None",
    ),
    (lambda: nd.contrib.arange_like(X, repeat=0), AttrError, "a repeat of at least 1"),
    (
        lambda: nd.contrib.boolean_mask(X, nd.ones(3)),
        AttrError,
        r"index has shape \(3,\), but axis 0 of data \(2, 3, 4, 5\) needs \(2,\)",
    ),
    (
        lambda: sym.contrib.boolean_mask(sym.var("x"), sym.var("i")),
        TraceError,
        "the shape of its result depends on values, so it works on arrays alone",
    ),
    (lambda: nn.PixelShuffle2D((1, 2, 3)), AttrError, "PixelShuffle2D: factor=.*or 2 of them"),
]


@pytest.mark.parametrize("run, kind, words", ERRORS, ids=[words for *_, words in ERRORS])
def test_error_says_what_is_needed(run, kind, words):
    with pytest.raises(kind, match=words):
        run()


# -- stories ---------------------------------------------------------------------------
def test_a_mean_of_windows_is_numpys():
    x = nd.random.normal(shape=(2, 3, 7, 5))
    got = nd.contrib.AdaptiveAvgPooling2D(x, output_size=(3, 2)).asnumpy()
    rows, columns = ((0, 3), (2, 5), (4, 7)), ((0, 3), (2, 5))  # floor and ceil of i 7 / 3
    for (i, (a, b)), (j, (c, d)) in itertools.product(enumerate(rows), enumerate(columns)):
        expected = x.asnumpy()[:, :, a:b, c:d].mean((2, 3))
        np.testing.assert_allclose(got[:, :, i, j], expected, rtol=1e-5, atol=1e-6)


def test_a_straight_line_stays_straight_when_it_is_resized():
    line = nd.arange(5).reshape((1, 1, 1, 5))
    got = nd.contrib.BilinearResize2D(line, height=2, width=9).asnumpy()[0, 0]
    np.testing.assert_allclose(got, [np.linspace(0, 4, 9)] * 2, rtol=1e-6)


@pytest.mark.parametrize(
    "net, size",
    [
        (nn.PixelShuffle1D(3), (2, 6, 4)),
        (nn.PixelShuffle2D((2, 3)), (2, 12, 4, 5)),
        (nn.PixelShuffle3D((2, 3, 4)), (2, 48, 2, 3, 1)),
    ],
    ids=["1D", "2D", "3D"],
)
def test_pixels_are_shuffled_as_reshapes_of_numpy_say(net, size):
    factors, n = net._factors, len(size) - 2
    x = nd.random.normal(shape=size)
    parts = x.asnumpy().reshape(size[0], -1, *factors, *size[2:])
    order = [0, 1, *(axis for d in range(n) for axis in (2 + n + d, 2 + d))]
    expected = parts.transpose(order).reshape(
        size[0], -1, *(f * m for f, m in zip(factors, size[2:], strict=True))
    )
    np.testing.assert_array_equal(net(x).asnumpy(), expected)
