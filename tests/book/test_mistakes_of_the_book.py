"""The book's table of mistakes: each ends in one sentence, and its cure runs."""

import re
import tomllib

import mistakes
import pytest
from prose import findings

import minihybrid as mx

TABLE = mistakes.table()


@pytest.fixture(autouse=True)
def numpy_answers(monkeypatch):
    """No program here needs its kernels."""
    monkeypatch.setenv("MINIHYBRID_WAIT", "0")


def test_the_table_is_complete():
    assert sum(m["page"] == "rules" for m in TABLE) >= 15
    assert sum(m["page"] == "wrong" for m in TABLE) >= 30
    assert len({m["title"] for m in TABLE}) == len(TABLE)
    for m in TABLE:
        assert m.keys() == {"page", "title", "wrong", "right", "why", "cure"}
        assert m["page"] in ("rules", "wrong") and m["why"][-1] == m["cure"][-1] == "."


def test_the_tables_of_the_pages_have_no_findings():
    texts = [m[key] for m in TABLE for key in ("title", "why", "cure")]
    plans = tomllib.loads(mistakes.FILE.with_name("course.toml").read_text(encoding="utf-8"))
    texts += [d[key] for d in plans["discussion"] for key in ("question", "answer")]
    assert [actual for text in texts for actual in findings(text)] == []


@pytest.mark.parametrize("mistake", TABLE, ids=lambda m: re.sub(r"\W+", "-", m["title"]))
def test_a_mistake_ends_in_one_sentence_and_its_cure_runs(mistake):
    printed, error = mistakes.ran(mistake["wrong"])
    if error is None:  # the text must say that nothing tells
        assert printed and re.match(
            "No error|Nothing fails|There is a warning only", mistake["why"]
        )
    else:
        assert is_a_sentence(error), error
    shown, wrong = mistakes.ran(mistake["right"])
    assert wrong is None, wrong
    assert mistakes.output_of(mistake["wrong"]) != mistakes.output_of(mistake["right"])
    assert "Warning" not in shown


def is_a_sentence(error):
    """Whether an error was written for the reader: ours, in one line, with a remedy."""
    text = str(error)
    ours = isinstance(error, mx.MXNetError) or type(error) in (AttributeError, KeyError)
    return ours and "\n" not in text and re.search(r"[;,:] ", text) and 30 < len(text) < 400


@pytest.mark.parametrize(
    "program, sentence",
    [
        ("nd.ones((2, 3)).reshape((4, 2))", True),
        ("1 / 0", False),
        ("[][3]", False),
        ("raise mx.MXNetError('no')", False),
        ("raise ValueError('something is wrong; do something else about it')", False),
    ],
)
def test_a_raw_error_is_no_sentence(program, sentence):
    assert bool(is_a_sentence(mistakes.ran(program)[1])) == sentence


def test_a_program_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed, error = mistakes.ran("nd.save('x.params', nd.ones(1))\nprint(sorted(globals()))")
    assert error is None and "nd" in printed and not list(tmp_path.iterdir())
    assert mistakes.ran("import os; print(len(os.listdir()))")[0] == "0\n"
