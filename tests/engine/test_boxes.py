"""Boxes: MXNet 1.9.1's answers and gradients, compiled loops, and errors."""

import sys
from pathlib import Path

import numpy as np
import pytest
from beside.boxes import DRAWN, drawn
from beside.child import answers
from beside.compare import MXNet, differences

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


@pytest.mark.elsewhere
@pytest.mark.parametrize("op", DRAWN)
def test_values_and_gradients_are_mxnets(op, mxnet):
    for seed in range(40):
        program = drawn(op, seed)
        theirs = mxnet.answers(program)
        assert "error" not in theirs, theirs
        for each in differences(program, answers(mx, program), theirs):
            assert each.name.startswith("gradient") and forgotten(program), (seed, str(each))


@pytest.mark.parametrize("op", DRAWN)
def test_compiled_loops_give_the_same(op):
    """On cases as they are drawn beside MXNet, of one shape."""
    program = drawn(op, 3)
    (step,) = program.steps
    function = op.removeprefix("contrib.")
    net = HybridLambda(lambda F, *args: getattr(F.contrib, function)(*args, **step.attrs))
    args = [nd.array(each.array()) for each in program.inputs]
    wanted = net(*args)
    net.hybridize()
    pairs = zip(*map(listed, (net(*args), wanted)), strict=True)
    for got, want in pairs:
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)


def listed(outs):
    return outs if isinstance(outs, (list, tuple)) else [outs]


# -- stories ---------------------------------------------------------------------------
def test_the_best_boxes_are_kept_and_gradients_stay_with_their_rows():
    x = nd.array(ROWS)
    x.attach_grad()
    with autograd.record():
        out = nd.contrib.box_nms(x, overlap_thresh=0.1, id_index=0, force_suppress=True)
    np.testing.assert_array_equal(out.asnumpy(), [*ROWS[[3, 0]], [-1] * 6, [-1] * 6])
    out.backward(nd.array([[0.1] * 6, [0.2] * 6, [0.3] * 6, [0.4] * 6]))
    wanted = np.float32([[0.2] * 6, [0] * 6, [0] * 6, [0.1] * 6])
    np.testing.assert_array_equal(x.grad.asnumpy(), wanted)


def test_other_classes_suppress_nothing():
    classes = nd.contrib.box_nms(nd.array(ROWS), overlap_thresh=0.1, id_index=0).asnumpy()[:, 0]
    assert classes.tolist() == [2, 0, 1, -1]


def test_no_boxes_stay_no_boxes():
    assert nd.contrib.box_nms(nd.zeros((2, 0, 6))).shape == (2, 0, 6)
    assert nd.contrib.box_iou(nd.zeros((0, 4)), nd.zeros((3, 4))).shape == (0, 3)


def test_what_is_encoded_is_decoded_again():
    anchors = nd.array([[[0, 0, 2, 4], [1, 1, 2, 2], [0, 1, 5, 2]]])
    boxes = nd.array([[[1, 1, 2, 3], [0, 2, 7, 9]]])
    samples, matches = nd.ones((1, 3)), nd.array([[1, 0, 1]])
    means, stds = nd.zeros(4), nd.array([0.1, 0.1, 0.2, 0.2])
    offsets, mask = nd.contrib.box_encode(samples, matches, anchors, boxes, means, stds)
    found = nd.contrib.box_decode(offsets, anchors, 0.1, 0.1, 0.2, 0.2, format="corner")
    np.testing.assert_allclose(found[0].asnumpy(), boxes[0].asnumpy()[[1, 0, 1]], atol=1e-5)
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
    (lambda: nd.contrib.box_decode(X, R), r"\(B, N, 4\) and \(1, N, 4\) are needed"),
]


@pytest.mark.parametrize("run, words", ERRORS, ids=[words for _, words in ERRORS])
def test_error_says_what_is_needed(run, words):
    with pytest.raises(ShapeError, match=words):
        run()
