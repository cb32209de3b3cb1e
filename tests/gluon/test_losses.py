"""Every loss: MXNet's values, the same eager and compiled; gradients are slopes."""

import json
from pathlib import Path

import numpy as np
import pytest

from minihybrid import AttrError, ShapeError, autograd, gluon, nd, sym
from minihybrid.gluon import loss as losses

GOLDEN = Path(__file__).parents[1] / "golden/training"
CASES = json.loads((GOLDEN / "losses.json").read_text())
LOSSES = {
    c.__name__
    for c in vars(losses).values()
    if isinstance(c, type) and issubclass(c, losses.Loss) and c is not losses.Loss
}
every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c["loss"])


def block(case):
    return getattr(gluon.loss, case["loss"])(**case["settings"])


def arrays(case, dtype="float32"):
    return [x if x is None else nd.array(x, dtype=dtype) for x in case["inputs"]]


def value_and_gradient(loss, inputs):
    inputs[0].attach_grad()
    with autograd.record():
        out = loss(*inputs)
    out.backward()
    return out.asnumpy(), inputs[0].grad.asnumpy()


def test_every_loss_has_a_case():
    assert {c["loss"] for c in CASES} == LOSSES


@every_case
def test_value_and_gradient_are_those_of_mxnet(case):
    value, gradient = value_and_gradient(block(case), arrays(case))
    near = 5e-6 if case["loss"] == "SDMLLoss" else 1e-6  # MXNet's is 4e-6 off the float64 answer
    np.testing.assert_allclose(value, case["value"], rtol=1e-5, atol=near)
    assert np.shape(case["value"]) == value.shape
    if case["gradient"] is not None:
        np.testing.assert_allclose(gradient, case["gradient"], rtol=1e-4, atol=near)


@every_case
def test_gradient_is_the_slope(case):
    _, gradient = value_and_gradient(block(case), arrays(case, "float64"))
    inputs, step = arrays(case, "float64"), 1e-6
    for place in np.ndindex(inputs[0].shape):
        around = []
        for sign in (1, -1):
            moved = inputs[0].asnumpy()
            moved[place] += sign * step
            moved = nd.array(moved, dtype="float64")
            around.append(block(case)(moved, *inputs[1:]).asnumpy().sum())
        slope = (around[0] - around[1]) / (2 * step)
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-7)


@every_case
def test_hybridized_agrees_with_eager(case):
    eager = value_and_gradient(block(case), arrays(case))
    hybrid = block(case)
    hybrid.hybridize(backend="numpy")
    actual = value_and_gradient(hybrid, arrays(case))
    for mine, expected in zip(actual, eager, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-6, atol=1e-7)


# Between them, they have all kinds of loops; seconds of compiling each of the others
# would say nothing that the laws of operators do not.
COMPILED = ("SoftmaxCrossEntropyLoss", "HuberLoss", "PoissonNLLLoss", "CosineEmbeddingLoss")


class Together(gluon.HybridBlock):
    """Several losses in one block: one compilation."""

    def __init__(self, cases):
        super().__init__()
        self.losses = [block(case) for case in cases]
        for loss in self.losses:
            self.register_child(loss)

    def hybrid_forward(self, F, inputs):
        return [loss(*part) for loss, part in zip(self.losses, inputs, strict=True)]


@pytest.mark.slow
def test_compiled_agrees_with_eager():
    cases = [next(c for c in CASES if c["loss"] == name) for name in COMPILED]
    hybrid = Together(cases)
    hybrid.hybridize()
    inputs = [arrays(case) for case in cases]
    for given in inputs:
        given[0].attach_grad()
    with autograd.record():
        outs = hybrid(inputs)
    autograd.backward(outs)
    assert {plan.target for plan in hybrid.plans.values()} == {"cpu"}
    for case, given, out in zip(cases, inputs, outs, strict=True):
        value, gradient = value_and_gradient(block(case), arrays(case))
        for mine, expected in ((out, value), (given[0].grad, gradient)):
            np.testing.assert_allclose(mine.asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_the_count_of_zero_has_a_finite_poisson_loss():
    loss = gluon.loss.PoissonNLLLoss(compute_full=True)
    value, gradient = value_and_gradient(loss, [nd.array([[0.5]]), nd.array([[0]])])
    assert value == pytest.approx(np.exp(0.5), rel=1e-6)
    assert gradient == pytest.approx(np.exp(0.5), rel=1e-6)


def test_vectors_of_zeros_have_a_finite_cosine_loss():
    inputs = [nd.zeros((1, 3)), nd.ones((1, 3)), nd.array([1])]
    value, gradient = value_and_gradient(gluon.loss.CosineEmbeddingLoss(), inputs)
    assert value == 1 and np.isfinite(gradient).all()


def test_short_names():
    assert gluon.loss.SoftmaxCELoss is gluon.loss.SoftmaxCrossEntropyLoss
    assert gluon.loss.SigmoidBCELoss is gluon.loss.SigmoidBinaryCrossEntropyLoss


def test_an_unknown_label_format_is_an_error():
    with pytest.raises(AttrError, match="label_format='ternary' .*needed: one of signed, binary"):
        gluon.loss.LogisticLoss(label_format="ternary")


@pytest.mark.parametrize("loss", [gluon.loss.SigmoidBCELoss(), gluon.loss.LogisticLoss()])
def test_files_of_losses_have_mxnets_name_of_softrelu(loss):
    text = loss(sym.var("pred"), sym.var("label")).tojson()
    assert '"op": "Activation"' in text and '"act_type": "softrelu"' in text
    assert '"op": "Activation"' in sym.softrelu(sym.var("x")).tojson()
    assert "_npi_arctan2" in sym.broadcast_arctan2(sym.var("x"), sym.var("y")).tojson()


WRONG_LABELS = {  # loss -> shapes of its inputs, what the error says
    "L2Loss": ([(2, 2), (3, 2)], "label has shape (3, 2) and pred has shape (2, 2), but both must"),
    "L1Loss": ([(2, 2), (5,)], "label has shape (5,) and pred has shape (2, 2), but both must"),
    "HuberLoss": ([(2, 2), (5,)], "label has shape (5,) and pred has shape (2, 2), but both must"),
    "PoissonNLLLoss": ([(2, 2), (5,)], "target has shape (5,) and pred has shape (2, 2), but"),
    "SoftmaxCrossEntropyLoss": ([(2, 2), (5,)], "one class index per sample is needed"),
    "SigmoidBinaryCrossEntropyLoss": ([(2, 2), (2, 2), None, (5,)], "pos_weight has shape (5,)"),
    "KLDivLoss": ([(2, 2), (5,)], "label has shape (5,) and pred has shape (2, 2), but one shape"),
    "HingeLoss": ([(2, 2), (5,)], "label has shape (5,) and pred has shape (2, 2), but both must"),
    "SquaredHingeLoss": ([(2, 2), (2, 2), (5,)], "sample_weight has shape (5,), but"),
    "LogisticLoss": ([(2, 2), (5,)], "label has shape (5,) and pred has shape (2, 2), but both"),
    "TripletLoss": ([(2, 2), (2, 2), (5,)], "negative has shape (5,) and pred has shape (2, 2)"),
    "CosineEmbeddingLoss": ([(2, 2), (2, 2), (5,)], "one label per pair is needed"),
    "SDMLLoss": ([(2, 2), (3, 4)], "x1 has shape (2, 2) and x2 has shape (3, 4), but one shape"),
    "CTCLoss": ([(2, 2), (3, 4)], "pred has shape (2, 2) and label has shape (3, 4), but NTC"),
}


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("name", WRONG_LABELS)
def test_a_wrong_shape_names_the_loss_and_its_arguments(name, hybrid):
    shapes, message = WRONG_LABELS[name]
    compute = getattr(losses, name)()
    compute.hybridize(hybrid, backend="numpy")
    with pytest.raises(ShapeError) as caught:
        compute(*(s and nd.ones(s) for s in shapes))
    assert str(caught.value).startswith(f"{name}: ") and message in str(caught.value)
