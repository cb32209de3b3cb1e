"""Every prediction can be made: it has a form, a cell that answers, and an answer that is so."""

import copy
import re

import nbformat
import pytest
from predictions import accepted, field, fingerprint, form, with_form, words
from test_notebooks_static import NOTEBOOKS, markdown_cells, shown, tags

# Questions whose answer is a sentence, not a cell.
IN_WORDS = {
    ("01_two_ways.ipynb", "c11"),
    ("04_values_and_a_tape.ipynb", "c04"),
    ("12_the_operator_record.ipynb", "c32"),
    ("21_the_memory_planner.ipynb", "c11"),
    ("21_the_memory_planner.ipynb", "c30"),
}

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
KEYS = {"answer", "label", "options", "shown", "within"}


def predictions(notebook):
    """(the cell that asks, the cells that answer), in order."""
    actual = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and re.search(r"^> \*\*Predict\.", cell.source, re.M):
            actual.append((cell, []))
        elif "answer" in tags(cell):
            assert actual, "a cell answers before anything is asked"
            actual[-1][1].append(cell)
    return actual


def check_every_question_has_a_form(name, notebook):
    questions = [cell for cell, _ in predictions(notebook)]
    assert questions == [cell for cell in markdown_cells(notebook) if "predict" in cell.metadata]
    for cell in questions:
        assert cell.source.count("**Predict.**") == 1, "one question a cell"


def check_every_question_has_an_answer(name, notebook):
    for cell, answers in predictions(notebook):
        assert bool(answers) != ((name, cell.id) in IN_WORDS), cell.source


def check_forms_are_complete(name, notebook):
    """A box asks for what it can judge, and who is wrong is told why."""
    for cell, _ in predictions(notebook):
        predict = cell.metadata.get("predict", {})
        assert bool(predict.get("hint")) == bool(predict.get("boxes")), cell.source
        assert not predict.get("hint", "").endswith("."), "the page adds the full stop"
        for box in predict.get("boxes", []):
            assert set(box) <= KEYS and box["label"], box
            if "options" in box:
                assert box["answer"] in box["options"] and len(box["options"]) > 1, box
            else:
                assert words(str(box["answer"])), box


def check_answers_are_what_is_shown(name, notebook):
    """A cell that answers prints the answer, or what `shown` says instead of it."""
    for cell, answers in predictions(notebook):
        text = "\n".join(part for answer in answers for part in shown(answer))
        numbers = [float(n) for n in NUMBER.findall(text)]
        for box in cell.metadata.get("predict", {}).get("boxes", []) if answers else []:
            shown_as = box.get("shown", box["answer"])
            if shown_as == "":
                assert text == "", cell.source
            elif isinstance(shown_as, str):
                assert words(shown_as) in words(text), (cell.source, shown_as)
            else:
                assert any(abs(n - shown_as) <= box.get("within", 1e-3) for n in numbers), (
                    cell.source
                )


def check_questions_do_not_tell(name, notebook):
    """The form holds no answer, but among options; nor does the reason why one is wrong."""
    for cell, _ in predictions(notebook):
        predict = cell.metadata.get("predict", {})
        for box in predict.get("boxes", []):
            assert not tells(predict["hint"], box["answer"]), predict
            if "options" not in box:
                assert not tells(box["label"], box["answer"]), predict
                assert f'"{box["answer"]}"' not in field(box, "salt", "name"), predict


def tells(text, answer):
    if isinstance(answer, str):
        return f" {answer} " in f" {text} "
    return answer > 20 and str(answer) in NUMBER.findall(text)


CHECKS = {name: check for name, check in globals().items() if name.startswith("check_")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_predictions(path):
    notebook = nbformat.read(path, as_version=4)
    assert predictions(notebook)
    for check in CHECKS.values():
        check(path.name, notebook)


# -- the form --------------------------------------------------------------------------
def test_a_form_stands_above_the_answer_inside_the_question():
    source = "A\n\n> **Predict.** How\n> many?\n>\n> <details><summary>Answer</summary>\n>\n> 2"
    assert with_form(source, "<form>").split("\n")[2:8] == [
        "> **Predict.** How",
        "> many?",
        ">",
        "> <form>",
        ">",
        "> <details><summary>Answer</summary>",
    ]
    assert with_form("> **Predict.** How?\n\nB", "<form>") == (
        "> **Predict.** How?\n>\n> <form>\n\nB"
    )


def test_a_form_is_one_line_without_the_answer():
    html = form({"hint": 'why "so"', "boxes": [{"answer": 4810, "label": "Numbers"}]}, "c1")
    assert "\n" not in html and "4810" not in html and "why &quot;so&quot;" in html
    assert fingerprint("c1", "4810000") in html
    assert "<textarea" in form({}, "c1") and "data-right" not in form({}, "c1")


def test_answers_are_accepted_as_they_are_written():
    assert words("(2, 3)") == words(" 2,3 ") == "2,3" and words("(4,)") == "4"
    assert accepted({"answer": 64}) == ["64000"]
    assert accepted({"answer": 10, "within": 1}) == ["18", "19", "20", "21", "22"]
    assert len({fingerprint(salt, text) for salt in "ab" for text in "12"}) == 4


# -- the checks checked ----------------------------------------------------------------
@pytest.fixture
def good():
    question = nbformat.v4.new_markdown_cell("> **Predict.** How many?")
    question.metadata["predict"] = {
        "boxes": [{"answer": 64, "label": "Numbers"}],
        "hint": "count rows and columns",
    }
    answer = nbformat.v4.new_code_cell("print(64)", metadata={"tags": ["answer"]})
    answer.outputs = [nbformat.v4.new_output("stream", name="stdout", text="64\n")]
    return nbformat.v4.new_notebook(cells=[question, answer])


def broken_box(**changes):
    return lambda cells: cells[0].metadata["predict"]["boxes"][0].update(changes)


BREAKERS = {
    "check_every_question_has_a_form": [
        lambda cells: cells[0].metadata.pop("predict"),
        lambda cells: cells[0].update(source="How many?"),
        lambda cells: cells[0].update(source="> **Predict.** A?\n> **Predict.** B?"),
    ],
    "check_every_question_has_an_answer": [lambda cells: cells.pop()],
    "check_forms_are_complete": [
        lambda cells: cells[0].metadata["predict"].pop("hint"),
        lambda cells: cells[0].metadata["predict"].update(hint="Count."),
        broken_box(options=["1", "2"]),
        broken_box(answr=3),
    ],
    "check_answers_are_what_is_shown": [
        broken_box(answer=65),
        broken_box(shown="65"),
        broken_box(shown=""),
    ],
    "check_questions_do_not_tell": [
        lambda cells: cells[0].metadata["predict"].update(hint="8 times 8 is 64"),
        broken_box(label="64?"),
    ],
}


@pytest.mark.parametrize("name", CHECKS)
def test_check_accepts_what_is_right_and_rejects_what_is_not(name, good):
    CHECKS[name]("good.ipynb", good)
    for break_it in BREAKERS[name]:
        broken = copy.deepcopy(good)
        break_it(broken.cells)
        with pytest.raises(AssertionError):
            CHECKS[name]("broken.ipynb", broken)
