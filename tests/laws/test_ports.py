"""What others published: the table is whole, its page is written from it, and ports run again.

The folder of clones is named by MINIHYBRID_CLONES; nothing of theirs is kept here.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from beside import port_child, ports_page
from beside.ports import (
    Missing,
    distance,
    edited,
    judged,
    python_of,
    read_results,
    read_table,
    run_both,
)
from marks import for_each

import minihybrid as mh

PORTS, SHARED = read_table()
RESULTS = read_results()
ROOT = Path(__file__).parents[2]


def test_the_table_has_forty_of_each_and_each_was_tried():
    for kind in ("program", "graph"):
        assert sum(port.kind == kind for port in PORTS) >= 40
    assert [port.name for port in PORTS] == list(RESULTS)
    assert all(len(port.commit) == 40 and port.license for port in PORTS)


@for_each(PORTS)
def test_what_does_not_agree_has_a_reason(port):
    actual = RESULTS[port.name]
    good = actual["outcome"] == "agrees"
    assert good != bool(port.reason)
    assert not good or actual["compared"] > 0 and actual["difference"] <= 1e-3
    assert ("itself" in actual) == (port.kind == "program" and actual["outcome"] == "differs")


def test_the_page_is_written_from_the_table():
    """If it is not: cd tests; python -m beside.ports_page"""
    assert ports_page.PAGE.read_text(encoding="utf-8") == ports_page.page()


@pytest.mark.parametrize("name", ["README.md", "book/for_mxnet_users.md"])
def test_other_pages_say_what_was_found(name):
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    assert ports_page.sentence("graph") in text and ports_page.sentence("program") in text


def answer(printed="loss 1.5", error=None, **arrays):
    return {"printed": printed, "error": error}, {k: np.array(v) for k, v in arrays.items()}


@pytest.mark.parametrize(
    "ours, outcome",
    [
        (answer(x=[1.0, 2.0]), "agrees"),
        (answer("loss 1.50001", x=[1.0, 2.0]), "agrees"),
        (answer("loss 1.6", x=[1.0, 2.0]), "differs"),
        (answer("cost 1.5", x=[1.0, 2.0]), "prints other words"),
        (answer(x=[1.0, 2.1]), "differs"),
        (answer(x=[1.0, np.nan]), "differs"),
        (answer(x=[[1.0, 2.0]]), "differs"),
        (answer(), "differs"),
        (answer(error="line 3", x=[1.0, 2.0]), "fails"),
    ],
)
def test_a_planted_difference_is_seen(ours, outcome):
    assert judged(ours, answer(x=[1.0, 2.0]))["outcome"] == outcome


def test_what_cannot_be_compared_is_not_said_to_agree():
    nothing = answer("")
    assert judged(nothing, nothing)["outcome"] == "compares nothing"
    assert judged(nothing, answer(error="no"))["outcome"] == "runs here alone"
    assert distance(np.zeros(2), np.full(2, 1e-3), 1e-6) == 1
    with pytest.raises(ValueError, match="fits nothing"):
        edited({"a.py": "x = 1\n"}, [["y", "z"]], {})


def test_layers_are_moved_by_a_rounding(monkeypatch):
    monkeypatch.setattr(mh.gluon.Block, "__call__", mh.gluon.Block.__call__)  # put back later
    net, x = mh.gluon.nn.Dense(8, in_units=5), mh.nd.array(np.arange(10.0).reshape(2, 5))
    net.initialize()
    before = net(x).asnumpy()
    drawn = port_child.Drawn(mh, shake=1)
    port_child.shake_layers(mh, drawn)
    moved = np.abs(net(x).asnumpy() - before).max() / np.abs(before).max()
    assert 0 < moved < 1e-6
    plain, given = (port_child.Drawn(mh, shake).normal(shape=9).asnumpy() for shake in (0, 1))
    assert 0 < np.abs(plain - given).max() < 1e-6


@pytest.mark.external
@pytest.mark.parametrize(
    "name", ["line in one dimension", "example: digits", "MTCNN det1", "LeNet"]
)
def test_a_port_runs_again(name):
    folder = os.environ.get("MINIHYBRID_CLONES")
    if not folder:
        pytest.skip("MINIHYBRID_CLONES names no folder of clones (tests/beside/ports.py)")
    port = next(port for port in PORTS if port.name == name)
    pythons = {"minihybrid": sys.executable, "mxnet": python_of("ports")}
    try:
        actual = judged(*run_both(port, Path(folder), SHARED, pythons))
    except Missing as reason:
        pytest.skip(str(reason))
    assert actual["outcome"] == "agrees" and actual["compared"] > 0, actual
