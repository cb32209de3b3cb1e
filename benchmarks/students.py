"""A made-up class: the submissions of honest, odd and hostile students.

Of 20 students, 17 are honest (10 right, 4 partly wrong, 3 blank), 2 odd and 1 hostile. Odd ones
are right but unusual: a byte order mark, a zip, a cell split in two, last year's variant. Hostile
ones attack the grader, the machine or their classmates' marks.
"""

import ast
import copy
import json
import tomllib
from collections import Counter

from minihybrid_course.grading.sources import FOLDER, chosen, id_of, kind, source

VARIANT = 7
PATTERN = """right wrong right odd blank right hostile right wrong right
             blank right odd right wrong right blank right wrong right""".split()
PATH = "s{0}/{1}.ipynb"
ODD = [
    {"head": "%matplotlib inline\n!echo hello > made\n"},
    {"paths": ["Zoe\u0308 {0}/{1}.ipynb"]},  # decomposed, as macOS may write a name
    {"head": "import asyncio\nawait asyncio.sleep(0)\n"},
    {"paths": ["s{0}/work.zip"]},
    {"encoding": "utf-8-sig"},
    {"variant": VARIANT - 1},  # last year's
    {"paths": ["s{0}/{1}.IPYNB"]},
    {"split": True},
    {"paths": ["Łukasz Żółć_{0}_assignsubmission_file_/{1}.ipynb"]},
    {"paths": [PATH, "s{0}/.ipynb_checkpoints/{1}-checkpoint.ipynb"]},
]
REWRITE = """import os, re
for place, _, files in os.walk("/"):
    for name in files if place.endswith("/known") else ():
        text = open(f"{place}/{name}").read()
        open(f"{place}/{name}", "w").write(re.sub(r'"points": \\d+', '"points": 0', text))"""
GRAPH = """import minihybrid as mx
x = mx.sym.Variable("x")
for k in range(10_000): x = x + 1
x.tojson()"""
HOSTILE = [
    {"code": "import os\nwhile True: os.fork()"},
    {"code": "parts = []\nwhile True: parts.append(b'x' * (64 << 20))"},
    {"code": REWRITE},
    {"code": "while True: pass"},
    {"metadata": {"x": [{}] * 5_000_000}},  # 20 MB of brackets
    {"metadata": {"variant": float("inf")}},
    {"code": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"},
    {"code": r"raise ValueError('\ud800\x1b[2J')"},
    {"code": "import os\ntry: os.kill(-1, 9)\nfinally: os._exit(0)"},
    {"code": GRAPH},
]


def submission(name, what, count):
    """([path], bytes) of a submission, the one after `count` others of its kind."""
    changes = {"odd": ODD, "hostile": HOSTILE}.get(what, [{}])
    change = changes[count % len(changes)]
    new = chosen(source(name), change.get("variant", VARIANT))
    cells = [c for c in new.cells if kind(c) == "solution"]
    if what == "blank":
        for cell in cells:
            cell.source = cell.source.partition("### BEGIN SOLUTION")[0] + "..."
    if what == "wrong":
        wrongs = tomllib.loads((FOLDER / "wrong.toml").read_text("utf-8"))[name]
        fit = [(c, w) for w in wrongs for c in cells if id_of(c) == w["cell"]]
        cell, wrong = fit[count % len(fit)]
        cell.source = cell.source.replace(wrong["old"], wrong["new"])
    first = cells[0]
    first.source = change.get("code", change.get("head", "") + first.source)
    if "split" in change:  # as JupyterLab splits a cell
        lines, more = first.source.splitlines(keepends=True), copy.deepcopy(first)
        end = ast.parse(first.source).body[0].end_lineno
        first.source, more.source = "".join(lines[:end]), "".join(lines[end:])
        new.cells.insert(new.cells.index(first) + 1, more)
    new.metadata |= change.get("metadata", {})
    data = json.dumps(new).encode(change.get("encoding", "utf-8"))
    return change.get("paths", [PATH]), data


def hand_in(place, name, number):
    """Write the folders `all`, and `others` without hostile ones: student's number -> kind."""
    seen, kinds = Counter(), {}
    for k in range(number):
        student, what = f"{k:03}", PATTERN[k % len(PATTERN)]
        paths, data = submission(name, what, seen[what])
        for folder in ("all",) if what == "hostile" else ("all", "others"):
            for path in paths:
                file = place / folder / path.format(student, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        kinds[student] = what
        seen[what] += 1
    return kinds
