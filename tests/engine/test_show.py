"""`show` finds what it is asked for, and says so when it cannot."""

import inspect

import numpy as np
import pytest

import minihybrid
from minihybrid import HybridError, nd, sym
from minihybrid.core.op import Op
from minihybrid.core.plan import Plan
from minihybrid.gluon import nn
from minihybrid.look.show import PACKAGE, show
from minihybrid.ops import OPS
from minihybrid.passes import dce, optimise


def shown(capsys, obj):
    """(file, first line, last line, source) that `show` printed."""
    show(obj)
    head, *numbered = capsys.readouterr().out.splitlines()
    name, lines = head.split(", lines ")
    first, last = map(int, lines.split("-"))
    numbers = [int(line[:4]) for line in numbered]
    assert numbers == list(range(first, last + 1))
    return name, first, last, "\n".join(line[6:] for line in numbered) + "\n"


@pytest.mark.parametrize(
    "obj",
    [
        dce,
        optimise,
        nn.Dense,
        nn.Dense.hybrid_forward,
        Plan.nbytes_moved.fget,
        minihybrid.autograd.record,
    ],
    ids=lambda obj: obj.__qualname__,
)
def test_source_is_that_of_the_object(obj, capsys):
    name, first, last, source = shown(capsys, obj)
    assert source == inspect.getsource(obj)
    in_file = (PACKAGE.parent / name).read_text(encoding="utf-8").splitlines()
    assert source.splitlines() == in_file[first - 1 : last]


def test_property_and_module(capsys):
    assert "def nbytes_moved(self)" in shown(capsys, Plan.nbytes_moved)[3]
    name, first, _, source = shown(capsys, minihybrid.autograd)
    assert (name, first) == ("minihybrid/autograd.py", 1)
    assert source == (PACKAGE / "autograd.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "op", sorted(set(OPS.values()), key=lambda op: op.name), ids=lambda op: op.name
)
def test_record_is_the_statement_that_enters_it(op, capsys, monkeypatch):
    """The statement, run once more with an empty registry, enters the operator."""
    name, _, _, source = shown(capsys, op)
    module = name.removesuffix(".py").replace("/", ".")
    entered = {}
    monkeypatch.setattr("minihybrid.ops.registry.OPS", entered)
    monkeypatch.setattr("minihybrid.ops.registry.PLACES", {})
    exec(source, dict(vars(__import__(module, fromlist=["OPS"]))))
    assert op.name in entered


@pytest.mark.parametrize("function", [nd.relu, sym.relu, nd.NDArray.relu])
def test_functions_of_an_operator_show_its_record(function, capsys):
    record = shown(capsys, OPS["relu"])
    assert shown(capsys, function) == record
    assert record[0] == "minihybrid/ops/elementwise.py"
    assert record[3].startswith('relu = unary(\n    "relu",')


@pytest.mark.parametrize(
    "obj, sentence",
    [
        (3, r"show: found 3 \(an int\), but a function, class, module or operator is"),
        (nn.Dense(2), r"Dense.* is needed; to see how it works, use show\(Dense\)"),
        (np.add, "show: add is not written in Python"),
        (dict, "show: dict is not written in Python"),
        (np.mean, "is not a part of minihybrid; use inspect.getsource"),
        (eval("lambda x: x"), "is not in a file"),
    ],
)
def test_errors_are_sentences(obj, sentence):
    with pytest.raises(HybridError, match=sentence):
        show(obj)


def test_an_operator_made_elsewhere_has_no_place_in_the_package():
    mine = Op("mine", ("data",), infer=None, doc="An operator of this test.")
    with pytest.raises(HybridError, match="the operator mine is not registered"):
        show(mine)
