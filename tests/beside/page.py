"""Write the book's page on the differences from MXNet, from the table and the counts.

python -m beside.page     # writes book/mxnet_differences.md
"""

import json
from pathlib import Path

from beside.differences import ANY, KNOWN

PAGE = Path(__file__).parents[2] / "book" / "mxnet_differences.md"
RESULTS = Path(__file__).parents[1] / "golden" / "beside.json"

HEAD = """\
# Where we differ from MXNet, and why

Programs written for MXNet 1.9.1 should run here and give the same answers. To see where
they do not, random programs of up to 14 operators ran in both, on the same numbers:
outputs, gradients, states, shapes, dtypes and errors were compared. `make soak MXNET=1`
does it again.

{verdicts}

Where a program differs, each of its steps is run alone in both, and each step that differs
must be found in the table below. Such steps are then replaced by the numbers that they
give here, and the rest of the program is compared again. This page is written from that
table, and the last column says in how many of the {programs} programs of {date} an entry
was needed. An entry without a number was met in other runs.
"""

VERDICTS = {
    "same": "the same",
    "same but for known steps": "the same, but for steps that are in the table",
    "known as a whole": "MXNet stops with an error that is in the table",
    "rounding": "the same but for rounding, which a later step made larger",
    "unknown": "different, and nobody knows why",
}


def page():
    """The text of the page."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = ["| programs | MXNet's answer is |", "|--:|---|"]
    rows += [
        f"| {results['verdicts'].get(name, 0)} | {words} |" for name, words in VERDICTS.items()
    ]
    parts = [
        HEAD.format(
            verdicts="\n".join(rows), **{name: results[name] for name in ("programs", "date")}
        )
    ]
    for title in dict.fromkeys(known.title for known in KNOWN):
        parts += [
            f"\n## {title}\n",
            "| operators | MXNet 1.9.1 | here | seen |",
            "|---|---|---|--:|",
        ]
        rows = [row(known, results["entries"]) for known in KNOWN if known.title == title]
        parts += dict.fromkeys(rows)  # one for all entries that say the same
    return "\n".join(parts) + "\n"


def row(known, counts):
    names = "any" if known.ops is ANY else ", ".join(f"`{name}`" for name in sorted(set(known.ops)))
    return f"| {names} | {known.what} | {known.why} | {counts.get(known.what, '')} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
