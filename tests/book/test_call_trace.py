"""The trace of one call stays short, and stays in the core."""

import call_trace

# Statements of the core, the operators and the rest; bfloat16 took 12 more, and errors that
# name the caller's function and block took 8.
MOST = 1_776


def test_one_call_is_short_and_in_the_core():
    actual = call_trace.walked()
    core, records, rest = call_trace.count(actual)
    assert [name for name, _ in actual] == list(call_trace.STAGES)
    assert 1_000 < core + records + rest <= MOST
    # Why the gradient needed another trace is said when it is traced (runtime/guards.py).
    assert rest <= 45, "what is beside the core lets one call pass"


def test_a_statement_of_several_lines_is_one(monkeypatch, tmp_path):
    text = "def f(x):\n    return (\n        x\n        + 1\n    )\n\n\nif f(1):\n    pass\n"
    (tmp_path / "shown.py").write_text(text)
    monkeypatch.setattr(call_trace, "path_of", lambda module: tmp_path / f"{module}.py")
    assert call_trace.statements("shown", [2, 3, 4]) == {2}
    assert call_trace.statements("shown", [2, 4, 8, 9]) == {2, 8, 9}


def test_a_second_call_runs_hardly_a_new_line():
    actual = dict(call_trace.walked())
    assert sum(map(len, actual["call it again"].values())) <= 3


def test_planted_statements_are_counted(monkeypatch):
    before = sum(call_trace.count(call_trace.walked()))
    stages = call_trace.calls()

    def more():
        from minihybrid import metric

        metric.Accuracy()

    monkeypatch.setattr(call_trace, "calls", lambda: (*stages[:-1], more))
    actual = call_trace.walked()
    assert "gluon.metric" in actual[-1][1] and sum(call_trace.count(actual)) != before
