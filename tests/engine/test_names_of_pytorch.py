"""A name that PyTorch has, and we don't, is answered with ours."""

import copy
import pickle
import re

import numpy as np
import pytest
from marks import for_each

import minihybrid as mx
from minihybrid import autograd, gluon, nd, sym
from minihybrid.gluon import nn
from minihybrid.gluon.pytorch_names import HERE, instead


def owners():
    """What the table speaks of: kind -> objects, or namespaces, that lack its names."""
    net = nn.Dense(2, in_units=3)
    net.initialize()
    arrays = [nd.ones((2, 3)), sym.var("x"), mx.np.ones((2, 3))]
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    return {
        "array": arrays,
        "block": [net, nn.Sequential(), gluon.SymbolBlock(sym.var("x") * 2, sym.var("x"))],
        "parameter": [net.weight],
        "optimizer": [trainer, mx.optimizer.SGD()],
        "nn": [nn],
        "nd": [nd, sym],
        "np": [mx.np],
        "autograd": [autograd],
        "minihybrid": [mx],
    }


CASES = [(kind, name) for kind, names in HERE.items() for name in names]


@for_each(CASES)
def test_a_name_of_pytorch_is_answered_with_ours(case):
    kind, name = case
    for owner in owners()[kind]:
        is_ours = name in ("all", "any") and getattr(owner, "is_np", False)
        is_ours |= name == "tolist" and type(owner) is not nd.NDArray
        if is_ours or kind == "optimizer" and hasattr(owner, name):  # which a trainer lacks
            continue
        with pytest.raises(
            AttributeError, match="^[A-Za-z]+ has no '.*', as PyTorch has; "
        ) as caught:
            getattr(owner, name)
        assert "\n" not in str(caught.value)
    assert any(not hasattr(owner, name) for owner in owners()[kind]), "we have it"


@for_each(CASES)
def test_the_names_in_the_answer_exist(case):
    kind, name = case
    net = nn.Dense(2, in_units=3)
    net.initialize()
    known = {"net": net, "self": net, "x": nd.ones((2, 3)), "y": nd.ones((2, 3))}
    known |= {"np": mx.np, "mx": mx, "nd": nd, "nn": nn, "gluon": gluon, "autograd": autograd}
    known |= {"param": net.weight, "trainer": gluon.Trainer(net.collect_params(), "sgd")}
    text = HERE[kind][name].format(F="nd")
    for first, rest in re.findall(r"\b([a-z]+)\.([A-Za-z_][\w.]*\w)", text):
        thing = known[first]
        for part in rest.split("."):
            if part == "grad_req" or (first, part) == ("x", "grad"):
                break
            thing = getattr(thing, part)


@pytest.mark.parametrize("kind", HERE)
def test_other_missing_names_are_pythons_own(kind):
    for owner in owners()[kind]:
        with pytest.raises(AttributeError, match="no_such_name") as caught:
            owner.no_such_name  # noqa: B018, reading it raises
        assert "PyTorch" not in str(caught.value)
    assert instead("nd", "no_such_name") is None


def test_an_error_inside_of_a_property_is_shown():
    class Net(nn.Block):
        @property
        def size(self):
            return self.missing

    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        Net().size  # noqa: B018, reading it raises


def test_copies_and_pickles_ask_for_nothing_else():
    for owner in (owner for kind in ("array", "block", "parameter") for owner in owners()[kind]):
        copy.copy(owner)
        copy.deepcopy(owner)
    x = pickle.loads(pickle.dumps(nd.ones(2)))
    assert np.asarray(x).tolist() == [1, 1]


@pytest.mark.parametrize("space", [nd, sym])
def test_no_private_name_is_proposed(space):
    """Whatever is misspelt: each operator's name, shortened by a letter or by its underscores."""
    for name in [n for n in dir(space) if not n.startswith("_")] + [
        "matmul",
        "rand_normal",
        "plus",
    ]:
        for wrong in {name[:-1], name[1:], name.lstrip("_")}:
            if wrong and not wrong.startswith("_") and not hasattr(space, wrong):
                with pytest.raises(AttributeError) as caught:
                    getattr(space, wrong)
                assert not re.search(r"did you mean '_", str(caught.value))
