"""The profiler: what is in a trace, and that an idle one leaves calls as they are."""

import json
import sys

import pytest

import minihybrid as mx
from minihybrid.core.files import FileError
from minihybrid.core.op import AttrError, HybridError
from minihybrid.mxnet import profiler


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(profiler, "PROFILE", profiler.Profile())
    before = sys.getprofile()
    sys.setprofile(None)
    yield
    profiler._end("")
    sys.setprofile(before)


def hybridized():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, activation="relu"), mx.gluon.nn.Dense(2))
    net.initialize()
    net.hybridize(wait=True)
    return net


def recorded(tmp_path, **config):
    """The events of a first and two later calls, and of one eager operator."""
    net, x = hybridized(), mx.nd.ones((3, 5))
    profiler.set_config(filename=tmp_path / "trace.json", **config)
    profiler.start()
    for _ in range(3):
        net(x)
    mx.nd.exp(x)
    profiler.dump()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert events[0]["ph"] == "M" and events[0]["args"] == {"name": "MainThread"}
    return [e for e in events if e["ph"] == "X"]


def test_a_trace_has_all_that_a_first_call_does(tmp_path):
    events = recorded(tmp_path, profile_all=True)
    names = [(e["cat"], e["name"]) for e in events]
    for category in ("trace", "compile"):
        assert [c for c, _ in names].count(category) == 1
    assert {n for c, n in names if c == "passes"} >= {"expand", "fold", "cse", "dce", "plan_memory"}
    assert names.count(("operator", "exp")) == 1
    plans = [e for e in events if e["cat"] == "plan"]
    assert len(plans) == 3
    for plan in plans:  # kernels share their call's time
        inside = [
            e
            for e in events
            if e["cat"] == "kernel" and plan["ts"] <= e["ts"] <= plan["ts"] + plan["dur"]
        ]
        assert len(inside) == 2
        assert sum(e["dur"] for e in inside) == pytest.approx(plan["dur"], rel=0.01, abs=0.01)


def test_plans_that_were_compiled_before_are_recorded():
    net, x = hybridized(), mx.nd.ones((3, 5))
    net(x)
    profiler.start()
    net(x)
    profiler.stop()
    assert [event[0] for event in profiler.PROFILE.events] == ["plan"]


def test_flags_choose_categories(tmp_path):
    assert {e["cat"] for e in recorded(tmp_path, profile_imperative=True)} == {"operator"}


def test_pause_and_resume_leave_out_what_is_between():
    x = mx.nd.ones((3, 5))
    profiler.start()
    mx.nd.exp(x)
    profiler.pause()
    mx.nd.log(x)
    profiler.resume()
    mx.nd.sqrt(x)
    profiler.stop()
    table = profiler.dumps(reset=True)
    assert "exp " in table and "sqrt " in table and "log " not in table
    assert len(profiler.dumps().splitlines()) == 1


def n_calls(function):
    """How many Python functions a call runs."""
    count = [0]

    def note(frame, event, _):
        count[0] += event == "call"

    sys.setprofile(note)
    function()
    sys.setprofile(None)
    return count[0]


def test_an_idle_profiler_costs_no_call():
    net, x = hybridized(), mx.nd.ones((3, 5))
    for _ in range(2):
        net(x), mx.nd.exp(x)
    before = n_calls(lambda: net(x)), n_calls(lambda: mx.nd.exp(x))
    profiler.start()
    net(x), mx.nd.exp(x)
    profiler.stop()
    assert sys.getprofile() is None
    assert (n_calls(lambda: net(x)), n_calls(lambda: mx.nd.exp(x))) == before


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (lambda: profiler.stop(), "profiler.stop: the profiler isn't running; call start() first"),
        (lambda: profiler.pause(), "profiler.pause: the profiler isn't running"),
        (lambda: profiler.resume(), "profiler.resume: the profiler isn't paused"),
        (lambda: profiler.set_config(file="x"), "no option is called 'file'"),
        (lambda: profiler.set_state("go"), "the state is 'run' or 'stop', not 'go'"),
        (lambda: profiler.dumps(format="csv"), "the format is 'table' or 'json', not 'csv'"),
    ],
)
def test_errors_are_sentences(wrong, sentence):
    with pytest.raises(
        (AttrError, HybridError), match=sentence.replace("(", r"\(").replace(")", r"\)")
    ):
        wrong()


def test_an_unwritable_file_is_an_error(tmp_path):
    profiler.set_config(filename=tmp_path / "none" / "trace.json")
    with pytest.raises(FileError, match="cannot write"):
        profiler.dump()


def test_another_profiler_is_left_alone():
    def other(*_):
        pass

    sys.setprofile(other)
    with pytest.raises(HybridError, match="another profiler is running"):
        profiler.start()
    assert sys.getprofile() is other
