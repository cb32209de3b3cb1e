"""Sphinx extension: what pages say of the book, counted while it is built.

    ```{counted} routes
    ```

`road`: the shortest way through the book, with the minutes of each chapter; `size`: the
lines of code, as `make lines` counts them; `routes`: chapters, hours and projects for each
kind of reader; `exercises`: all of them, by level. A chapter states its minutes without its
exercises, an exercise its own. Exercises of three stars are projects, and in no sum.
"""

import json
import re
import sys
from functools import cache
from html import escape
from pathlib import Path

from docutils import nodes
from results import as_table
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

# Files without their numbers, in the order in which they are read.
ROAD = (
    "tour two_ways what_a_graph_knows hybridize values_and_a_tape symbols_and_a_trace "
    "source_and_hybridize"
)
NANO = "values_and_a_tape symbols_and_a_trace source_and_hybridize".split()  # built by readers
ROUTES = {
    "You want to use it": "tour two_ways hybridize honest_timing export training",
    "You want to build one": (
        "tour two_ways what_a_graph_knows hybridize values_and_a_tape symbols_and_a_trace "
        "source_and_hybridize arrays_and_autograd the_operator_record "
        "the_tracer guards_and_shapes layers_and_deferred_shapes writing_passes trusting_passes "
        "from_graph_to_text just_in_time the_memory_planner"
    ),
    "You own old models": (
        "hybridize export files other_engines a_file_is_not_a_program honest_timing"
    ),
}
LEVELS = {"★": "one idea", "★★": "several steps", "★★★": "project"}
STATED = re.compile(r"(?:· |\*\*Time:\*\*\s)(\d+)\s+minutes")
EXERCISE = re.compile(  # its number, stars and minutes
    r"^#+ Exercise (\d+\.\d+) (★+)\n+\*\w[^*\n]*· (\d+) minutes\.\*", re.MULTILINE
)


@cache
def chapters():
    """{file without its number: (stem, title, its Markdown, number of code cells)}."""
    table = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
        title = re.match(r"# (?:Build one: (?=(.*))|(?=([^:,\n]*)))", texts[0])
        title = title[1] or title[2]
        table[path.stem[3:]] = (
            path.stem,
            title[0].upper() + title[1:],
            "\n\n".join(texts),
            len(cells) - len(texts),
        )
    return table


def minutes(slug):
    """How long a chapter takes: as it says itself, else reading, running and exercises."""
    _, _, text, n_cells = chapters()[slug]
    if stated := STATED.search(text):
        return int(stated[1])
    return len(text.split()) / 150 + n_cells / 2 + 5 * len(EXERCISE.findall(text))


def link(page, text, anchor=""):
    """A link from the first page to a chapter."""
    return nodes.reference("", text, refuri=f"../notebooks/{page}.html{anchor}")


def tried(slugs, stars):
    """How many minutes the exercises with so many stars take, in some chapters.

    >>> tried(["tour"], "★★★")
    0
    """
    matches = (one for slug in slugs for one in EXERCISE.findall(chapters()[slug][2]))
    return sum(int(minutes) for _, level, minutes in matches if level == stars)


def exercise(stem, number):
    """A link to an exercise."""
    return link(stem, number, f"#exercise-{number.replace('.', '-')}")


def commas(links):
    """Links in one paragraph."""
    paragraph = nodes.paragraph()
    for i, one in enumerate(links):
        paragraph += [nodes.Text(", ")] * (i > 0) + [one]
    return paragraph


def size():
    """How much code there is, and how much of it one must read."""
    from lines import count
    from reading_order import READING_ORDER, path_of

    counts = {m: count(path_of(m).read_text(encoding="utf-8")) for m in READING_ORDER}
    core = [n for m, n in counts.items() if m.split(".")[0] == "core"]
    records = sum(n for m, n in counts.items() if m.split(".")[0] == "ops")
    text = (
        f"The core, all that one call runs through, is {sum(core):,} lines of code in "
        f"{len(core)} modules; the operators' records are {records:,} more, and with every "
        f"target, format and picture there are {sum(counts.values()):,}."
    )
    return [nodes.paragraph(text=text)]


def road():
    """A bar and a link for each chapter of the road, as wide as it is long to read."""
    stops, slugs = "", ROAD.split()
    for slug in slugs:
        stem, title, *_ = chapters()[slug]
        took = round(minutes(slug))
        stops += (
            f'<li{" class=nano" * (slug in NANO)} style="--m: {took}"><b>{took} min</b> '
            f'<a href="../notebooks/{stem}.html">{escape(title)}</a></li>'
        )
    text = (
        f"About {hours(sum(map(minutes, slugs)))}, of which you spend "
        f"{hours(sum(map(minutes, NANO)))} writing an engine. One-star exercises take "
        f"another {hours(tried(slugs, '★'))}, and two-star exercises {hours(tried(slugs, '★★'))}. "
        "Three stars mark a project."
    )
    return [
        nodes.paragraph(text=text),
        nodes.raw("", f"<ol class='road'>{stops}</ol>", format="html"),
    ]


def hours(n):
    """Minutes in words.

    >>> hours(245)
    '4 hours'
    """
    whole, half = divmod(round(n / 30), 2)
    return f"{whole}{'½' * half} hours"


def routes():
    """A table of readers, chapters, hours and projects."""
    lines = [("", "chapters", "to read", "with ★", "with ★★", "projects")]
    for reader, names in ROUTES.items():
        slugs = names.split()
        read = [link(chapters()[s][0], chapters()[s][1]) for s in slugs]
        times = [sum(map(minutes, slugs)), tried(slugs, "★"), tried(slugs, "★★")]
        projects = [
            exercise(chapters()[s][0], number)
            for s in slugs
            for number, stars, _ in EXERCISE.findall(chapters()[s][2])
            if stars == "★★★"
        ]
        summed = [hours(sum(times[: n + 1])) for n in range(3)]
        lines.append((reader, commas(read), *summed, commas(projects)))
    return [as_table(lines)]


def exercises():
    """A table of levels and exercises."""
    by_level = {level: [] for level in LEVELS}
    for stem, _, text, _ in chapters().values():
        for number, stars, _ in EXERCISE.findall(text):
            by_level[stars].append(exercise(stem, number))
    rows = [(f"{s} {LEVELS[s]}", commas(links)) for s, links in by_level.items() if links]
    return [as_table([("level", "exercises"), *rows])]


KINDS_OF = {"road": road, "size": size, "routes": routes, "exercises": exercises}


class Counted(SphinxDirective):
    """One of the four."""

    required_arguments = 1

    def run(self):
        for path in (ROOT / "notebooks").glob("*.ipynb"):
            self.env.note_dependency(str(path))
        return KINDS_OF[self.arguments[0]]()


def setup(app):
    app.add_directive("counted", Counted)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
