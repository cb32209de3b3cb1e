"""Boxes: MXNet 1.9.1's answers and gradients, compiled loops, and errors."""

import sys
from pathlib import Path

import numpy as np
import pytest
from beside.boxes import DRAWN, drawn
from beside.child import answers
from beside.compare import MXNet, differences
from programs.run import apply

import minihybrid as mx
from minihybrid import autograd, nd
from minihybrid.core.op import ShapeError
from minihybrid.gluon.nn import HybridLambda

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import envs  # how an environment with another library is made

# Boxes of an example of MXNet's documentation: class, score, corners.
ROWS = np.float32(
    [
        [0, 0.5, 0.1, 0.1, 0.2, 0.2],
        [1, 0.4, 0.1, 0.1, 0.2, 0.2],
        [0, 0.3, 0.1, 0.1, 0.14, 0.14],
        [2, 0.6, 0.5, 0.5, 0.7, 0.8],
    ]
)


@pytest.fixture(scope="module")
def mxnet():
    """MXNet 1.9.1, in a process of its own."""
    try:
        python = envs.python_of("mxnet")
    except envs.NotAvailable as reason:
        pytest.skip(f"MXNet: {reason}")
    made = MXNet(python)
    with made.process:
        yield made
        made.process.kill()


def forgotten(program):
    """Whether MXNet's gradient takes boxes that it gave in another format as they were."""
    attrs = program.steps[0].attrs
    return attrs.get("in_format") != attrs.get("out_format")


@pytest.mark.external
@pytest.mark.parametrize("op", DRAWN)
def test_values_and_gradients_are_mxnets(op, mxnet):
    for seed in range(40):
        program = drawn(op, seed)
        theirs = mxnet.answers(program)
        assert "error" not in theirs, theirs
        ours = answers(mx, program)
        if op == "contrib.MultiBoxPrior":  # of no number of its input: nothing goes back
            assert "not on the tape" in ours.pop("error")
        for each in differences(program, ours, theirs):
            assert each.name.startswith("gradient") and forgotten(program), (seed, str(each))


@pytest.mark.parametrize("op", DRAWN)
def test_compiled_loops_give_the_same(op):
    """On cases as they are drawn beside MXNet, of one shape."""
    program = drawn(op, 3)
    net = HybridLambda(lambda F, *args: apply(F, program.steps[0], args))
    args = [nd.array(each.array()) for each in program.inputs]
    expected = net(*args)
    net.hybridize()
    for a, b in zip(net(*args), expected, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)


# -- stories ---------------------------------------------------------------------------
def test_the_best_boxes_are_kept_and_gradients_stay_with_their_rows():
    x = nd.array(ROWS)
    x.attach_grad()
    with autograd.record():
        out = nd.contrib.box_nms(x, overlap_thresh=0.1, id_index=0, force_suppress=True)
    np.testing.assert_array_equal(out.asnumpy(), [*ROWS[[3, 0]], [-1] * 6, [-1] * 6])
    out.backward(nd.array([[0.1] * 6, [0.2] * 6, [0.3] * 6, [0.4] * 6]))
    expected = np.float32([[0.2] * 6, [0] * 6, [0] * 6, [0.1] * 6])
    np.testing.assert_array_equal(x.grad.asnumpy(), expected)


def test_other_classes_suppress_nothing():
    classes = nd.contrib.box_nms(nd.array(ROWS), overlap_thresh=0.1, id_index=0).asnumpy()[:, 0]
    assert classes.tolist() == [2, 0, 1, -1]


def test_no_boxes_stay_no_boxes():
    assert nd.contrib.box_nms(nd.zeros((2, 0, 6))).shape == (2, 0, 6)
    assert nd.contrib.box_iou(nd.zeros((0, 4)), nd.zeros((3, 4))).shape == (0, 3)


def test_a_region_of_no_image_or_of_no_numbers_gives_zeros():
    rois = nd.array([[-1, 0, 0, 2, 2], [2, 0, 0, 2, 2], [0, np.nan, np.nan, 2, np.nan]])
    actual = nd.contrib.ROIAlign(X + 1, rois, pooled_size=(2, 2), spatial_scale=1).asnumpy()
    assert not actual.any()
    actual = nd.ROIPooling(X + 1, rois, pooled_size=(2, 2), spatial_scale=1).asnumpy()
    assert not actual[:2].any()
    far = nd.array([[0, 90, 90, 99, 99]])  # no pixel is there
    for function in (nd.ROIPooling, nd.contrib.ROIAlign):
        assert not function(X + 1, far, pooled_size=(2, 2), spatial_scale=1).asnumpy().any()


def test_a_cell_has_the_largest_number_also_beside_one_that_is_none():
    x = nd.array(np.float32([3, np.nan, -1, 5, np.nan, 4]).reshape(1, 1, 2, 3))
    actual = nd.ROIPooling(x, nd.array([[0, 0, 0, 2, 1]]), pooled_size=(2, 1), spatial_scale=1)
    assert actual.asnumpy().ravel().tolist() == [3, 5]


def test_a_mean_between_pixels_is_that_of_a_plane():
    """Bilinear numbers of a plane are its own, so a cell has what stands in its middle."""
    y, x = np.mgrid[:6, :8]
    rois = nd.array([[0, 1, 0.5, 6, 4.5]])
    plane = nd.array((2 * y + x).reshape(1, 1, 6, 8))
    actual = nd.contrib.ROIAlign(plane, rois, (2, 5), 1).asnumpy()[0, 0]
    expected = 2 * np.array([[1.5], [3.5]]) + np.array([1.5, 2.5, 3.5, 4.5, 5.5])
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_anchors_find_their_labels_and_are_detected_again():
    anchors = nd.contrib.MultiBoxPrior(nd.zeros((1, 1, 2, 2)), sizes=(0.5,))
    label = nd.array([[[1, 0, 0, 0.5, 0.4], [0, 0.5, 0.5, 1, 1], [-1] * 5]])
    chances = nd.array([[[0.1, 0.9, 0.9, 0.2], [0.1, 0.1, 0.1, 0.7], [0.8, 0, 0, 0.1]]])
    offsets, mask, classes = nd.contrib.MultiBoxTarget(anchors, label, chances)
    assert classes.asnumpy().tolist() == [[2, 0, 0, 1]]
    assert mask.asnumpy().reshape(4, 4)[:, 0].tolist() == [1, 0, 0, 1]
    rows = nd.contrib.MultiBoxDetection(chances, offsets, anchors, threshold=0.5).asnumpy()[0]
    expected = [[1, 0.8, 0, 0, 0.5, 0.4], [0, 0.7, 0.5, 0.5, 1, 1], [-1] * 6, [-1] * 6]
    np.testing.assert_allclose(rows, expected, atol=1e-6)


def test_what_is_encoded_is_decoded_again():
    anchors = nd.array([[[0, 0, 2, 4], [1, 1, 2, 2], [0, 1, 5, 2]]])
    boxes = nd.array([[[1, 1, 2, 3], [0, 2, 7, 9]]])
    samples, matches = nd.ones((1, 3)), nd.array([[1, 0, 1]])
    means, stds = nd.zeros(4), nd.array([0.1, 0.1, 0.2, 0.2])
    offsets, mask = nd.contrib.box_encode(samples, matches, anchors, boxes, means, stds)
    actual = nd.contrib.box_decode(offsets, anchors, 0.1, 0.1, 0.2, 0.2, format="corner")
    np.testing.assert_allclose(actual[0].asnumpy(), boxes[0].asnumpy()[[1, 0, 1]], atol=1e-5)
    assert (mask.asnumpy() == 1).all()


# -- what is told ----------------------------------------------------------------------
X, R = nd.zeros((2, 3, 4, 5)), nd.zeros((1, 5))
ERRORS = [
    (lambda: nd.contrib.box_iou(X, R), r"box_iou: .*\(\.\.\., n, 4\) are needed"),
    (
        lambda: nd.contrib.box_nms(R, coord_start=2),
        "box_nms: data .* with coord_start=2, score_index=1 and id_index=-1",
    ),
    (lambda: nd.contrib.box_nms(nd.zeros((2, 6)), score_index=2), "with other places"),
    (
        lambda: nd.contrib.bipartite_matching(nd.zeros(3), threshold=0.5),
        r"scores \(\.\.\., N, M\) are needed",
    ),
    (
        lambda: nd.contrib.box_encode(R, R, R, R, R.reshape(5)[:4], R.reshape(5)[:4]),
        r"\(B, N\), \(B, N\), \(B, N, 4\) and \(B, M, 4\) are needed",
    ),
    (
        lambda: nd.ROIPooling(X, X, pooled_size=(2, 2), spatial_scale=1),
        r"one row \(batch index, x1, y1, x2, y2\) a region are needed",
    ),
    (
        lambda: nd.contrib.ROIAlign(X, R, (2, 2), 1, position_sensitive=True),
        "3 channels .* cannot be shared out among 2 x 2 cells",
    ),
    (lambda: nd.contrib.MultiBoxPrior(R), r"images \(N, C, H, W\), one size and one ratio"),
    (lambda: nd.contrib.MultiBoxTarget(X, X, X), r"\(1, A, 4\), \(B, L, 5 or more\) and"),
    (lambda: nd.contrib.MultiBoxDetection(X, X, X), r"\(B, classes, A\), \(B, 4 A\) and"),
    (lambda: nd.contrib.box_decode(X, R), r"\(B, N, 4\) and \(1, N, 4\) are needed"),
]


@pytest.mark.parametrize("run, words", ERRORS, ids=[words for _, words in ERRORS])
def test_error_says_what_is_needed(run, words):
    with pytest.raises(ShapeError, match=words):
        run()


def test_the_share_of_an_endless_box_is_unknown():
    """Infinity less infinity is no number; MXNet says so, too."""
    box = nd.array([[0, 1, np.inf, 2]])
    assert np.isnan(nd.contrib.box_iou(box, box, format="center").asnumpy()).all()
    empty = nd.zeros((1, 4))
    assert nd.contrib.box_iou(empty, empty).asnumpy() == 0
