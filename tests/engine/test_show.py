"""`show` finds what it is asked for, and says so when it cannot."""

import inspect
from textwrap import dedent

import numpy as np
import pytest

import minihybrid
from minihybrid import HybridError, nd, sym
from minihybrid.core.op import Op
from minihybrid.core.plan import Plan
from minihybrid.gluon import nn
from minihybrid.ops import OPS
from minihybrid.passes import dce, optimize
from minihybrid.view.show import PACKAGE, show


def shown(capsys, obj):
    """(file, name, source) that `show` printed."""
    show(obj)
    head, _, source = capsys.readouterr().out.partition("\n")
    file, _, name = head.removeprefix("# ").partition(": ")
    return file, name, source


@pytest.mark.parametrize(
    "obj",
    [
        dce,
        optimize,
        nn.Dense,
        nn.Dense.hybrid_forward,
        Plan.nbytes_moved.fget,
        minihybrid.autograd.record,
    ],
    ids=lambda obj: obj.__qualname__,
)
def test_source_is_that_of_the_object(obj, capsys):
    file, name, source = shown(capsys, obj)
    assert name == obj.__qualname__ and source == dedent(inspect.getsource(obj))
    assert inspect.getsource(obj) in (PACKAGE.parent / file).read_text(encoding="utf-8")


def test_what_is_shown_does_not_change_when_a_line_above_it_does(capsys, tmp_path, monkeypatch):
    """Two copies of a module, one with five more lines at its top, give one listing."""
    monkeypatch.setattr("minihybrid.view.show.PACKAGE", tmp_path / "minihybrid")
    monkeypatch.syspath_prepend(tmp_path)
    actual = []
    for folder, more in (("before", ""), ("after", "# one\n" * 3 + "\n\n")):
        file = tmp_path / "minihybrid" / folder / "moved.py"
        file.parent.mkdir(parents=True)
        file.write_text(more + "class A:\n    def f(self):\n        return 1\n")
        scope = {"__name__": f"moved_{folder}"}
        exec(compile(file.read_text(), file, "exec"), scope)
        show(scope["A"].f)
        actual.append(capsys.readouterr().out.replace(folder, "."))
    assert actual[0] == actual[1] == ("# minihybrid/./moved.py: A.f\ndef f(self):\n    return 1\n")


def test_property_and_module(capsys):
    assert "def nbytes_moved(self)" in shown(capsys, Plan.nbytes_moved)[2]
    file, name, source = shown(capsys, minihybrid.autograd)
    assert (file, name) == ("minihybrid/gluon/autograd.py", "")
    assert source == (PACKAGE / "gluon/autograd.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "op", sorted(set(OPS.values()), key=lambda op: op.name), ids=lambda op: op.name
)
def test_record_is_the_statement_that_enters_it(op, capsys, monkeypatch):
    """The statement, run once more with an empty registry, enters the operator."""
    file, name, source = shown(capsys, op)
    assert name == op.name
    module = file.removesuffix(".py").replace("/", ".")
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
    assert record[2].startswith('relu = unary(\n    "relu",')


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
    mine = Op("mine", infer=None, doc="An operator of this test.")
    with pytest.raises(HybridError, match="the operator mine is not registered"):
        show(mine)
