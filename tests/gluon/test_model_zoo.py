"""The nets of the model zoo are MXNet's: names, shapes, and answers."""

import json
from pathlib import Path

import numbers_of_zoo as zoo
import numpy as np
import pytest
from marks import external

from minihybrid import AttrError, HybridError, autograd, init, nd, sym
from minihybrid.gluon.model_zoo import get_model, vision

GOLDEN = Path(__file__).parents[1] / "golden" / "zoo"

NETS = json.loads((GOLDEN / "zoo.json").read_text())
ASKED = [name for name, row in NETS.items() if "scores" in row]
FEW = ["alexnet", "resnet18_v2", "mobilenetv2_0.25", "squeezenet1.1"]


@pytest.mark.parametrize("name", NETS)
def test_parameters_have_mxnets_names_and_shapes(name):
    net = get_model(name)
    shapes = zoo.shapes_of(net(sym.var("data")), 224)
    actual = zoo.facts(net, shapes)
    assert actual == {key: NETS[name][key] for key in actual}


def filled(name):
    """The net of ten classes with made-up weights, and a picture."""
    net, x = get_model(name, classes=10), nd.array(zoo.picture(NETS[name]["size"]))
    shapes = zoo.shapes_of(net(sym.var("data")), NETS[name]["size"])
    params = net.collect_params()
    params.initialize(init.Zero())
    for full, numbers in zoo.weights({n: shapes[n] for n in params.keys()}).items():
        params[full].set_data(nd.array(numbers))
    return net, x


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FEW, *external(*(n for n in ASKED if n not in FEW))])
def test_a_net_answers_as_in_mxnet(name):
    net, x = filled(name)
    expected = np.array(NETS[name]["scores"])
    np.testing.assert_allclose(
        net(x).asnumpy()[0], expected, rtol=1e-3, atol=1e-4 * abs(expected).max()
    )


@pytest.mark.slow
def test_blocks_hybridize():
    """A residual block and one with branches; whole nets compile for minutes."""
    net = vision.chain(vision.BasicBlockV2(4, 2, True, 3), vision.fire(2, 3))
    x = nd.array(zoo.picture(8))
    net.initialize(init.Xavier())
    eager = net(x).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), eager, rtol=1e-4, atol=1e-6)


def test_a_lenet_learns_one_batch():
    net = vision.lenet()
    net.initialize(init.Xavier())
    x = nd.random.normal(shape=(2, 1, 28, 28))
    with autograd.record():
        loss = -nd.log_softmax(net(x))[:, 3].sum()
    loss.backward()
    for param in net.collect_params().values():
        param.set_data(param.data() - 0.001 * param.grad())
    assert -nd.log_softmax(net(x))[:, 3].sum().asscalar() < loss.asscalar()


@pytest.mark.parametrize("kind", [vision.ResNetV1, vision.ResNetV2])
def test_a_residual_net_for_thumbnails_keeps_their_size(kind):
    block = {vision.ResNetV1: vision.BasicBlockV1, vision.ResNetV2: vision.BasicBlockV2}[kind]
    net = kind(block, [1, 1], [4, 4, 8], classes=3, thumbnail=True)
    first = net.features[0 if kind is vision.ResNetV1 else 1]
    net.initialize()
    assert net(nd.ones((2, 3, 8, 8))).shape == (2, 3)
    assert first._kwargs["stride"] == (1, 1)


def test_functions_have_pythons_names():
    for name in (
        "lenet",
        "alexnet",
        "vgg16",
        "vgg11_bn",
        "resnet50_v2",
        "mobilenet0_5",
        "mobilenet1_0",
        "mobilenet_v2_0_25",
        "squeezenet1_1",
    ):
        assert callable(getattr(vision, name)), name
    assert vision.mobilenet0_25(classes=3).output.weight.shape[0] == 3


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: get_model("resnet19_v1"), AttrError, "'resnet19_v1' is not known; there"),
        (lambda: vision.get_resnet(3, 18), AttrError, "version 3 is not known; there"),
        (lambda: vision.get_resnet(1, 20), AttrError, "num_layers 20 is not known"),
        (lambda: vision.SqueezeNet("2.0"), AttrError, "version '2.0' is not known"),
        (lambda: vision.vgg11(pretrained=True), HybridError, "no weights come with this"),
    ],
)
def test_wrong_calls_are_sentences(call, error, words):
    with pytest.raises(error, match=words):
        call()
