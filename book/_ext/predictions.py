"""Sphinx extension: the reader predicts, and only then sees what the next cell shows.

A Markdown cell that asks has the metadata `predict`; the code cells tagged `answer` below it
answer. In a notebook both are plain. On a page the question gets a form, which tells right
from wrong without containing the answer: it holds fingerprints of the answers it accepts.
`_static/predict.js` does the rest; without scripts there is no form, and nothing is hidden.

    {"hint": "an image has rows and columns", "boxes": [{"answer": 64, "label": "Numbers"}]}

A box asks for a number (`within`: how far off is still right), for one of its `options`, or
for a few words. Without boxes the reader writes what he likes, and it is only kept. Where
the text of the cell that answers `tells` it, seminar sheets (grading/sheets.py of the
course) leave it out.
"""

import json
import math
import re
from html import escape
from pathlib import Path

STEP = 0.001  # numbers are compared in such steps


def fingerprint(salt, text):
    """FNV-1a, 32 bits: nothing that a reader would undo in passing."""
    value = 0x811C9DC5
    for byte in f"{salt}:{text}".encode():
        value = (value ^ byte) * 0x01000193 % 2**32
    return f"{value:08x}"


def words(text):
    """What counts in a few words: not case, spaces, quotes or brackets."""
    return re.sub(r"[^a-z0-9.,+*/=<>_-]", "", text.lower()).strip(",")


def step_of(box):
    return box["within"] / 2 if "within" in box else STEP


def accepted(box):
    """The texts that are right, as the script writes them before it compares."""
    answer = box["answer"]
    if isinstance(answer, str):
        return [words(answer)]
    step, off = step_of(box), 2 if "within" in box else 0
    middle = math.floor(answer / step + 0.5)
    return [str(n) for n in range(middle - off, middle + off + 1)]


def field(box, salt, name):
    """The HTML of one box, with its label."""
    label = escape(box.get("label", "Your prediction"))
    right = " ".join(fingerprint(salt, text) for text in accepted(box))
    if "options" in box:
        choices = "".join(
            f'<label><input type="radio" name="{name}" value="{escape(option)}"> '
            f"{escape(option)}</label>"
            for option in box["options"]
        )
        return f'<fieldset data-right="{right}"><legend>{label}</legend>{choices}</fieldset>'
    number = not isinstance(box["answer"], str)
    kind = f'data-step="{step_of(box)!r}" inputmode="decimal"' if number else 'class="words"'
    return (
        f'<label>{label} <input name="{name}" {kind} data-right="{right}" autocomplete="off"'
        ' autocapitalize="off" spellcheck="false"></label>'
    )


def form(predict, salt):
    """The HTML of a prediction's form, in one line: Markdown takes it as it stands."""
    boxes = predict.get("boxes", [])
    fields = "".join(field(box, salt, f"{salt}-{i}") for i, box in enumerate(boxes))
    fields = (
        fields or f'<label>Your prediction <textarea name="{salt}" rows="2"></textarea></label>'
    )
    return (
        f'<form class="predict" id="predict-{salt}" data-salt="{salt}" hidden'
        f' data-hint="{escape(predict.get("hint", ""))}">{fields}'
        f'<span class="buttons"><button>{"Check" if boxes else "Keep it, and show"}</button>'
        '<button type="button" class="show">Show the answer</button></span>'
        '<p role="status"></p></form>'
    )


def with_form(source, html):
    """A question with its form, which stands above the folded answer, inside the quotation."""
    lines = source.split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("> **Predict."))
    last = first
    while last < len(lines) and lines[last].startswith(">") and "<details>" not in lines[last]:
        last += 1
    while lines[last - 1].strip() == ">":
        last -= 1
    return "\n".join([*lines[:last], ">", f"> {html}", *lines[last:]])


def add_forms(app, docname, source):
    """Give every question of a notebook its form, while the page is made."""
    if not app.env.doc2path(docname).endswith(".ipynb"):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        if "predict" in cell["metadata"]:
            salt = f"{Path(docname).name}-{cell['id']}"
            html = form(cell["metadata"]["predict"], salt)
            cell["source"] = with_form("".join(cell["source"]), html)
    source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", add_forms)
    app.add_js_file("predict.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
