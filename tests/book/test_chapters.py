"""How a notebook's cells are numbered, titled and colored on its page."""

import json

import pytest
from chapters import number_sections, numbered, only_what_is_read, prepare, titled
from docutils import nodes, utils
from listings import color, language_of


def cell(source, *tags, kind="code"):
    return {"cell_type": kind, "source": source, "metadata": {"tags": list(tags)}}


def test_a_chapter_has_its_number_in_the_title_and_nowhere_else():
    assert numbered("# Hybridize\n\n# No title", 3) == "# 3. Hybridize\n\n# No title"


def test_folds_are_called_by_what_is_in_them():
    cells = [
        cell("#@title Solution 3.2\nx = 1", "hide-cell"),
        cell("#@title Solution 3.2\nx", "hide-cell"),
        cell("import a\n\nmx.show(a)", "hide-input"),
        cell("print(1)"),
    ]
    titled(cells)
    titles = [c["metadata"].get("mystnb", {}).get("code_prompt_show") for c in cells]
    assert titles == ["Solution 3.2", "Solution 3.2, continued", "mx.show(a)", None]


def test_a_page_leaves_out_what_only_a_notebook_needs():
    stated = {"name": "stdout", "text": "Exception reporting mode: Minimal\n"}
    cells = [
        cell("from minihybrid_course import figures\n\nfigures.bill(net)", "hide-input"),
        cell('mx.check("0.1", ...)', "starter") | {"outputs": [{"text": "not yet"}]},
        cell("%xmode Minimal\nnet(1)") | {"outputs": [stated, {"ename": "E"}]},
        cell("mx.show(net)", "hide-input") | {"outputs": [{"text": "source"}]},
    ]
    only_what_is_read(cells)
    assert cells[0]["metadata"]["tags"] == ["remove-input"]
    assert cells[1]["outputs"] == []
    assert (cells[2]["source"], cells[2]["outputs"]) == ("net(1)", [{"ename": "E"}])
    assert cells[3]["metadata"]["tags"] == ["hide-input"] and cells[3]["outputs"]


def test_sections_of_a_chapter_have_numbers_and_keep_their_addresses():
    document = utils.new_document("a page")
    chapter = nodes.section("", nodes.title("", "7. Training"), ids=["training"])
    for name in ("Record", "Step", "Exercises"):
        chapter += nodes.section("", nodes.title("", name), ids=[name.lower()])
    document += chapter

    class App:
        class env:
            docname = "notebooks/07_training"

    number_sections(App, document)
    sections = chapter.children[1:]
    titles = [section[0].astext() for section in sections]
    assert titles == ["7.1 Record", "7.2 Step", "Exercises"]
    assert [section["ids"] for section in sections] == [["record"], ["step"], ["exercises"]]


def test_a_page_is_prepared_and_other_pages_are_left_alone():
    text = "# A\n\n[JAX](../book/references.md#ref-jax)"
    source = [json.dumps({"cells": [cell(text, kind="markdown"), cell("import os")]})]
    prepare(None, "notebooks/13_the_tracer", source)
    first, second = json.loads(source[0])["cells"]
    assert first["source"] == "# 13. A\n\n[JAX](#ref-jax)"
    assert second["metadata"]["mystnb"]["code_prompt_show"] == "Setup"
    recipe = [json.dumps({"cells": [cell("# A", kind="markdown"), cell("import os")]})]
    prepare(None, "notebooks/recipes/a", recipe)
    first, second = json.loads(recipe[0])["cells"]
    assert first["source"] == "# A" and second["metadata"]["mystnb"]["code_prompt_show"] == "Setup"
    other = ["# A page"]
    prepare(None, "book/glossary", other)
    assert other == ["# A page"]


@pytest.mark.parametrize(
    "text, language",
    [
        ("# minihybrid/core/nd.py: f\ndef f(x):\n    return x\n\nand more", "python"),
        ("# minihybrid/core/nd.py\nx = 1\n", "python"),
        ("# a heading\nimport of the graph failed", None),
        ("@kernel(float32[::1])\ndef k0(a0, out):\n    out[0] = a0[0]\n", "python"),
        ("import of the graph failed", None),
        ("  x = variable\n- y = relu(x)\n+ z = relu(x)\n", "diff"),
        ("  columns\n  only\n", None),
        ("-7 is a number\n", None),
    ],
)
def test_outputs_are_known_by_what_they_are(text, language):
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text, classes, language, added",
    [
        ("an error says " * 20, ["told"], "text", {"prose"}),
        ("a   b\nc   d", ["output"], "myst-ansi", {"columns"}),
        ("a   b\n" * 9 + "x" * 98, ["output"], "myst-ansi", {"columns"}),
        ("a   b\n" + "x" * 99, ["output"], "myst-ansi", {"prose"}),
        ("x = 1", [], "python", {"columns"}),
        ("Error  1", ["output", "traceback"], "ipythontb", {"prose"}),
    ],
)
def test_lines_are_broken_where_nothing_is_lost_by_it(text, classes, language, added):
    document = utils.new_document("a page")
    block = nodes.literal_block(text, text, classes=[*classes], language=language)
    document.append(block)
    color(None, document)
    assert {*block["classes"]} == {*classes} | added and block["language"] == language
