"""The prose linter finds what it should, and no page has more findings than it had."""

import json
import tomllib
from pathlib import Path

import pytest
from prose import PATTERNS, ROOT, files, findings, of_file, plain, strings

CEILINGS = tomllib.loads((Path(__file__).parent / "prose_findings.toml").read_text("utf-8"))

PLANTED = [
    ("inverted question", "How many kernels has the plan?"),
    ("inverted question", "How many operators, and which arguments, has the graph of `f`?"),
    ("inverted question", "What says the table below about both?"),
    ("more after its noun", "There are two lines more."),
    ("more after its noun", "It takes three things more to train it, and one kernel more."),
    ("what", "Compare what came back of it."),
    ("what", "It keeps what is wanted and drops the rest."),
    ("what", "What counts is the accuracy."),
    ("who", "Who asks for the value waits for the kernels."),
    ("who", "It is the price paid by whoever wants speed."),
    ("of ours", "It does not use any class of ours."),
    ("of ours", "It becomes a number of Python's."),
    ("nobody", "Nobody reads the result."),
    ("nobody", "It can be run by somebody else."),
    ("stands", "The rule stands in the second file."),
    ("stands", "Both arrays lie in one block."),
    ("too", "The gradient is compiled, too."),
    ("chain", "So it is fast. And it is small."),
    ("chain", "It runs. But it is slow. So we measure."),
    ("personified", "The message says that the shape is wrong."),
    ("personified", "Two threads and a loss that tells how wrong it is."),
    ("turn", "Each turn of the loop adds one element."),
    ("turn", "The loop turned three times."),
    ("written down", "The program is written down first."),
    ("written down", "Operators note down the work."),
    ("private word", "The gradient of the way down uses it."),
    ("private word", "It stays in the nearest memory."),
    ("private word", "A law holds for every pass."),
    ("private word", "The roof is far away."),
    ("private word", "A new shape is traced again."),
    ("private word", "The record of an operator has five fields."),
    ("private word", "`mx.check` judges the number."),
    ("participle", "All threads are met at the barrier."),
    ("participle", "It returns the wanted value."),
    ("British", "The graph is optimised for this behaviour."),
    ("long sentence", "word " * 41 + "end."),
]

GOOD = [
    "How many kernels does the plan have?",
    "How many plans has it compiled so far?",
    "How many values are there, and how many of them have an operator?",
    "There are two more lines, and more than three things to learn.",
    "What happens in the second call?",
    "What is needed for the goods alone?",
    "Who wrote this? The engine did.",
    "It becomes a Python number, by one of Python's own rules.",
    "BSD stands for Berkeley Software Distribution.",
    "The first layer turns the image into scores. It turns out to be fast.",
    "Moore's law and Amdahl's law are about hardware; the roofline model is a picture.",
    "So it is fast. That's all.",
    "Two threads write to it too often.",
    "The kernel stores each element once. The error shows both shapes.",
    "| rule | not |\n|--|--|\n| `nobody` | `Whoever` |",
    "```text\nNobody, too, whoever asks of ours.\n```\n\nA listing isn't prose.",
    "[The tracer](13_the_tracer.ipynb) records operators.",
]


@pytest.mark.parametrize("rule, sentence", PLANTED)
def test_a_planted_fault_is_found(rule, sentence):
    assert rule in {actual for actual, _ in findings(f"Before it.\n\n{sentence}\n\nAfter it.")}


@pytest.mark.parametrize("text", GOOD)
def test_good_sentences_have_no_findings(text):
    assert list(findings(text)) == []


def test_every_rule_has_a_planted_fault():
    assert {rule for rule, _ in PLANTED} == {*PATTERNS, "long sentence"}


def test_semicolons_are_counted_by_file(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("One; two. " + "Word. " * 100 + "Three; four. Five; six.")
    assert [rule for _, rule, _ in of_file(page)] == ["semicolon"] * 2


def test_a_notebook_is_read_by_its_markdown(tmp_path):
    cells = [("code", "# Nobody reads it"), ("markdown", "Nobody reads it.")]
    form = {"predict": {"hint": "who knows, and who cares, too", "boxes": []}}
    notebook = [{"cell_type": k, "source": [text], "metadata": form} for k, text in cells]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": notebook}))
    assert [place for place, *_ in of_file(tmp_path / "a.ipynb")] == ["[1]", "[1] form"]


def test_a_program_is_read_by_its_docstrings_and_messages():
    source = (
        '"""Say what it does to all."""\nx = "short"\n'
        'raise ValueError(f"the shape {x} wants an axis, " "too")\n'
    )
    assert [text for _, text in strings(source)] == [
        "Say what it does to all.",
        "the shape X wants an axis, too",
    ]


def test_plain_text_keeps_the_words_of_links_and_no_code():
    assert plain("See [the tour](00_tour.ipynb) and `a; b`.") == "See the tour and CODE."


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_no_page_has_more_findings_than_listed(path):
    """Lower the number of a page in prose_findings.toml when you have improved it."""
    name = str(path.relative_to(ROOT))
    actual = [f"{place}: {rule}: {excerpt}" for place, rule, excerpt in of_file(path)]
    assert len(actual) <= CEILINGS.get(name, 0), "\n".join(actual)


def test_the_table_lists_pages_that_exist():
    assert CEILINGS.keys() <= {str(path.relative_to(ROOT)) for path in files()}
