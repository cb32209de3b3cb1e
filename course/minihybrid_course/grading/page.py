"""Feedback pages for students: self-contained HTML files."""

from html import escape

from minihybrid_course.grading.marks import score

STYLE = """
:root { color-scheme: light dark; }
body { overflow-wrap: anywhere; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
li { margin: .6rem 0; } code, pre { white-space: pre-wrap; }
.lost { border-left: 4px solid #D55E00; padding-left: .6rem; }
.won { border-left: 4px solid #009E73; padding-left: .6rem; }
"""


def page(name, marked):
    """Return the page for a result."""
    tests = "\n".join(map(_test, marked["tests"]))
    notes = "".join(f"<p><strong>{escape(note)}</strong></p>\n" for note in marked["notes"])
    cells = "".join(f"<li>{_cell(*cell)}</li>\n" for cell in marked["cells"])
    if cells:
        cells = f"<h2>Cells that stopped with an error</h2>\n<ul>\n{cells}</ul>\n"
    answer = marked.get("answer", "")
    if answer:
        answer = f"<h2>Your answer</h2>\n<pre>{escape(answer)}</pre>\n"
    mark = "Not graded"
    if marked["points"] is not None:
        mark = f"{score(marked):g} of {marked['of']:g} points"
    title = f"{escape(name)}: {escape(marked['student'])}"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><h1>{title}</h1>
<p>{mark}.</p>
{notes}<h2>Tests</h2>
<ul>
{tests}
</ul>
{cells}{answer}</body></html>
"""


def _test(test):
    kind = "lost" if test["points"] < test["of"] else "won"
    reason = test["wrong"] or ("an assertion failed" if test["wrong"] == "" else "")
    notes = "".join(f"<br>{escape(text)}" for text in (reason, test.get("comment")) if text)
    points = f"{test['points']:g} of {test['of']:g} points"
    if not test["of"]:
        points = f"{test['points']:g} points of extra credit"
    return f'<li class="{kind}"><code>{escape(test["id"])}</code>: {points}{notes}</li>'


def _cell(name, text):
    where = f"<code>{escape(name)}</code>" if name else "a cell of your own"
    return f"{where}: <code>{escape(text)}</code>"
