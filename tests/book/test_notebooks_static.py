"""What re-running a notebook does not prove: order, outputs, pictures, exemptions.

nbval runs every cell and compares what it shows with what was saved. It passes a
notebook saved without outputs or run out of order, ignores pictures, and calls any two
durations equal. Each check below closes one such gap; the second half of this file
breaks a good notebook once per check, to prove that the check sees it.
"""

import ast
import base64
import configparser
import copy
import re
from functools import cache
from pathlib import Path

import make_setup
import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from lines import count as code_lines
from marks import for_each
from minihybrid_course.exercises.ch04 import NANO
from run_notebooks import CELL_METADATA, NOTEBOOK_METADATA, ROOT, clean

from minihybrid import gluon

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
RECIPES = sorted((ROOT / "notebooks/recipes").glob("*.ipynb"))

# (notebook, first line of the cell) -> why its output is not compared.
EXEMPT = {  # (chapter, first line of a cell) -> why its output is not compared
    (
        "00_tour.ipynb",
        "mx.explain(net, one, timings=False)",
    ): "kernels are written for the registers of this processor",
    ("00_tour.ipynb", "figures.microseconds(net, one)"): "it draws times",
    ("custom_operator.ipynb", "import shutil"): "there may be no C compiler",
    ("23_other_engines.ipynb", "import shutil"): "there may be no C compiler",
    (
        "23_other_engines.ipynb",
        'damaged = bytearray(Path("digits.weights").read_bytes())',
    ): "there may be no C compiler",
    ("23_other_engines.ipynb", 'Path("plain.c").write_text("""'): "there may be no C compiler",
    ("23_other_engines.ipynb", "if compiler:"): "there may be no C compiler",
    ("23_other_engines.ipynb", 'IN_MXNET = """'): "there may be no MXNet",
    (
        "23_other_engines.ipynb",
        "mx.explain(lenet, images, timings=False)",
    ): "kernels are written for the registers of this processor",
    (
        "23_other_engines.ipynb",
        'rows = [("NumPy", ("digits.py", "digits.npz"), "Python and NumPy"),',
    ): "the length of C's text and the last bits depend on the processor",
}
EXEMPTING_TAGS = {"nbval-skip", "nbval-ignore-output"}

MAX_CODE_LINES = 20
MAX_STEP_LINES = 24
MAX_ERROR_LINES = 20
MAX_RECIPE_LINES, MAX_RECIPE_WORDS = 60, 320  # of code, and of text
MAX_NOTEBOOK_BYTES = 1_000_000
MAX_IMAGE_BYTES = 100_000

ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/~-])/(home|root|Users|tmp|usr|opt|var|private|srv|mnt|content)/[\w.+-]"
    r"|\b[A-Z]:\\\w"
)
KERNEL_FILE = re.compile(r"\S*ipykernel_\d+/\d+\.py")  # the name of a cell, not a file
NO = re.compile(r"(?<![\w=.\"'`])(False|nan)\b(?!`)")
PACKED = re.compile(r"<template>[\w+/=]*</template>")  # bytes of files are no text
LISTED = re.compile(r"^# (\S+\.py)(?:: \S+)?$", re.MULTILINE)  # what `mx.show` begins with
PLACE = re.compile(  # the forms in which Python, pytest and editors write a file and a line
    r"([\w./-]+\.py)[`'\")\]]*(?::| *,? *\(?(?:at |in )?lines? *)\d+"
)
IMAGE_FILE = re.compile(r"\.(png|jpe?g|svg|gif)$")
SOLUTION = re.compile(r"#@title Solution (\d+\.\d+)$")
FOLD = re.compile(r"Answer|Hint(?: \d)?|Explanation|What you will be able to do")
CARD = re.compile(
    r"^\*\*You'll learn to\*\*\s.{20,}?\s"
    r"\*\*Time:\*\*\s\d+\sminutes,\sand\s(?P<exercises>\d+)\sfor\sthe\sexercises\.\s"
    r"\*\*Needs:\*\*\s.+?\.$"
    # The older form, until every chapter has the newer one.
    r"|^\*(Road|Side road|For owners of old models)\s·\s\d+\sminutes\s·\s"
    r"needs\s.+?\s·\sopens\s.+?\*$",
    re.MULTILINE | re.DOTALL,
)
EXERCISE = re.compile(r"^(?:#+ |\*\*)Exercise (\d+\.\d+)", re.MULTILINE)
KIND = re.compile(
    r"\*(Predict|Break it|Break it and read the error|Mend|Extend|Measure) · ([1-9]\d?) minutes\.\*"
)


def durations():
    """Return the patterns that nbval blanks out because a time is behind them."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tests/nbval_sanitize.cfg", encoding="utf-8")
    return re.compile("|".join(config[s]["regex"] for s in ("duration", "speedup", "about")))


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def markdown_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def tags(cell):
    return set(cell.metadata.get("tags", []))


def first_line(cell):
    """The first line that is run, or the title."""
    return re.sub(r"\A#@needs .*\n", "", cell.source).partition("\n")[0]


def shown(cell):
    """Yield every text that the outputs of `cell` hold."""
    for output in cell.outputs:
        yield from [output.text] if "text" in output else []
        yield from (
            re.sub(r"\x1b\[[0-9;]*m", "", line)  # colors are no text
            for line in output.get("traceback", [])
        )
        for kind, data in output.get("data", {}).items():
            if not kind.startswith("image/") or kind == "image/svg+xml":
                yield PACKED.sub("", str(data))


def prints_something(source):
    """Say whether the cell must show a result: it prints, or ends in a value."""
    body = ast.parse(TransformerManager().transform_cell(source)).body
    calls = [s.value for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    if any(isinstance(c.func, ast.Name) and c.func.id == "print" for c in calls):
        return True
    return (
        bool(body) and isinstance(body[-1], ast.Expr) and not isinstance(body[-1].value, ast.Call)
    )


# -- the checks ------------------------------------------------------------------------
def check_ran_from_top_to_bottom(name, notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1)), "run `make notebooks`"


def check_outputs_are_kept(name, notebook):
    for cell in code_cells(notebook):
        if prints_something(cell.source):
            assert cell.outputs, f"no output saved under: {first_line(cell)}"


def check_errors_are_meant(name, notebook):
    for cell in code_cells(notebook):
        failed = any(output.output_type == "error" for output in cell.outputs)
        assert failed == ("raises-exception" in tags(cell)), first_line(cell)


def check_errors_end_at_the_readers_line(name, notebook):
    """A list of calls shows the notebook's own, and nothing of the engine's inside."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            text = "\n".join(output.get("traceback", []))
            assert "minihybrid/" not in re.sub(r"\x1b\[[0-9;]*m", "", text), first_line(cell)
            assert len(text.splitlines()) <= MAX_ERROR_LINES, first_line(cell)


def check_no_is_meant(name, notebook):
    """What the text asks is answered with yes, or the cell says that no is right."""
    for cell in code_cells(notebook):
        lines = [
            line
            for text in shown(cell)
            for line in text.splitlines()
            if NO.search(line) and line.strip() not in listed_source(text)
        ]
        assert bool(lines) == ("no-is-right" in tags(cell)), (first_line(cell), lines)


def listed_source(text):
    """The lines of the files of which a text shows a part, without their indentation."""
    files = {name: ROOT / name for name in LISTED.findall(text)}
    files |= {"nano.py": NANO} if "nano.py" in files else {}
    return {
        line.strip()
        for file in files.values()
        if file.is_file()
        for line in file.read_text(encoding="utf-8").splitlines()
    }


@cache
def engine_files():
    """The names of the engine's modules, and of nano."""
    return {"nano.py", *(path.name for path in (ROOT / "minihybrid").rglob("*.py"))}


def engine_places(text):
    """Where a text names a line of the engine by its number, which each edit above it changes.

    Chapters cite lines of MXNet 1.9.1, which stay, by paths that begin with `python/mxnet`.
    """
    places = [(m[0], Path(m[1])) for m in PLACE.finditer(re.sub(r"\x1b\[[0-9;]*m", "", text))]
    return [
        place
        for place, path in places
        if path.parts[0] == "minihybrid" or len(path.parts) == 1 and path.name in engine_files()
    ]


def check_no_line_of_the_engine_has_a_number(name, notebook):
    """Listings name functions: a line that moves in the engine changes no chapter."""
    for cell in code_cells(notebook):
        for text in shown(cell):
            assert not engine_places(text), (first_line(cell), engine_places(text))
            for listing in re.findall(r"<p>([\w.]+)</p><pre[^>]*><span[^>]*><i>", text):
                assert listing.split(".")[0] not in vars(gluon.nn) | vars(gluon), (
                    first_line(cell),
                    listing,
                )
    for cell in notebook.cells:
        places = [place for place in engine_places(cell.source) if "minihybrid/" in place]
        assert not places, places


def check_listings_are_the_source_as_it_is(name, notebook):
    """A line of a listing that its file has no longer: the chapter must be run again."""
    for cell in code_cells(notebook):
        for text in shown(cell):
            _, *listings = re.split(r"^# (minihybrid/\S+\.py)(?:: \S+)?$", text, flags=re.MULTILINE)
            for file, listing in zip(listings[::2], listings[1::2], strict=True):
                source = {s.strip() for s in (ROOT / file).read_text(encoding="utf-8").splitlines()}
                lines = listing.lstrip("\n").partition("\n\n\n")[0].splitlines()
                gone = [line for line in lines if line.strip() not in source]
                assert not gone, f"{first_line(cell)}: {file} has no {gone[0]!r}; run {name} again"


def names_in(statement):
    """(names that a statement reads and does not set, names that it sets, by loops)."""
    nodes = list(ast.walk(statement))
    names = [n for n in nodes if isinstance(n, ast.Name)]
    own = (
        {n.id for n in names if isinstance(n.ctx, ast.Store)}
        | {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        | {n.arg for n in nodes if isinstance(n, ast.arg)}
    )
    inside = {  # of functions, which leave nothing behind
        n for f in nodes if isinstance(f, ast.FunctionDef | ast.Lambda) for n in ast.walk(f)
    }
    loops = {
        n.id
        for loop in nodes
        if isinstance(loop, ast.For) and loop not in inside
        for n in ast.walk(loop.target)
        if isinstance(n, ast.Name)
    }
    return {n.id for n in names if isinstance(n.ctx, ast.Load)} - own, own, loops


def check_no_cell_reads_a_loops_name(name, notebook):
    """What a loop left in a name is not what a later cell means by it."""
    left = set()
    for cell in code_cells(notebook):
        own, loops = set(), set()
        for statement in ast.parse(TransformerManager().transform_cell(cell.source)).body:
            read, defined, more = names_in(statement)
            assert not read & left - own, (first_line(cell), read & left - own)
            own, loops = own | defined, loops | more
        left = left - own | loops


def check_nothing_on_stderr(name, notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert output.get("name") != "stderr", output.text


def check_no_absolute_path(name, notebook):
    texts = [cell.source for cell in notebook.cells]
    texts += [text for cell in code_cells(notebook) for text in shown(cell)]
    for text in texts:
        assert str(ROOT) not in text, text
        assert not ABSOLUTE_PATH.search(KERNEL_FILE.sub("", text)), text


def check_pictures_are_described(name, notebook):
    for cell in code_cells(notebook):
        if any(
            kind.startswith("image/") for output in cell.outputs for kind in output.get("data", {})
        ):
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            assert len(alt.split()) >= 3 and not IMAGE_FILE.search(alt), (
                f"say in metadata mystnb.image.alt what is seen: {first_line(cell)}"
            )
        for text in shown(cell):
            for svg in re.findall(r"<svg\b.*?</svg>", text, re.DOTALL):
                assert re.search(r"<title|aria-label|aria-hidden", svg), (
                    f"the SVG has no title: {first_line(cell)}"
                )
    for cell in markdown_cells(notebook):
        assert "![](" not in cell.source, "an image without alternative text"
        for image in re.findall(r"<img\b[^>]*>", cell.source):
            assert re.search(r'alt="[^"]', image), image


def check_pictures_are_small(name, notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            for kind, data in output.get("data", {}).items():
                if kind in ("image/png", "image/jpeg"):
                    assert len(base64.b64decode(data)) < MAX_IMAGE_BYTES, first_line(cell)


def check_exemptions_are_listed(name, notebook):
    for cell in code_cells(notebook):
        if tags(cell) & EXEMPTING_TAGS or re.search(r"# *NBVAL_", cell.source):
            assert (name, first_line(cell)) in EXEMPT, first_line(cell)


def check_times_stand_in_timing_cells(name, notebook):
    pattern = durations()
    for cell in code_cells(notebook):
        if "timing" not in tags(cell):
            for text in shown(cell):
                match = pattern.search(text)
                assert not match, (
                    f"{match[0]!r} is never compared; tag the cell `timing`, or do "
                    f"not show it: {first_line(cell)}"
                )


def check_times_are_measured_quietly(name, notebook):
    """A median beside a far upper quartile says how busy the machine was, and little else."""
    for cell in code_cells(notebook):
        for text in shown(cell):
            for row in re.finditer(r"([\d.]+) (\w+) +[\d.]+ \.\. ([\d.]+) \2\b", text):
                quiet = float(row[3]) < 2 * float(row[1])
                assert quiet, f"measure again, without other work: {row[0]} in {first_line(cell)}"


CLOCKS = {
    *"perf_counter process_time monotonic time_steps timeit measure compare Timer Benchmark".split()
}
OF_TIMES = {"elapsed_s", "median_s", "times_s", "ratio"}  # attributes
CALL_OF_CLOCK = re.compile(rf"\b({'|'.join(CLOCKS)})\(")


def reads_times(tree, timed):
    """Whether code, or a program in a text, calls a clock, or reads what holds times."""
    return any(
        (isinstance(n, ast.Name) and n.id in timed | CLOCKS)
        or (isinstance(n, ast.Attribute) and n.attr in CLOCKS | OF_TIMES)
        or (isinstance(n, ast.Constant) and CALL_OF_CLOCK.search(str(n.value)))
        for n in ast.walk(tree)
    )


def names_of_times(statement, timed):
    """The names that hold times, or functions that take them, after a statement."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        stored = {
            n.id
            for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        return timed | {statement.name} if reads_times(statement, timed - stored) else timed
    for node in ast.walk(statement):
        pairs = []
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.NamedExpr)):
            pairs = [(t, node.value) for t in getattr(node, "targets", None) or [node.target]]
        elif isinstance(node, (ast.For, ast.comprehension)):
            pairs = [(node.target, node.iter)]
        elif isinstance(node, ast.With):
            pairs = [(i.optional_vars, i.context_expr) for i in node.items if i.optional_vars]
        for target, value in pairs:
            names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
            if reads_times(value, timed):
                timed = timed | names
            elif isinstance(target, (ast.Name, ast.Tuple)) and not isinstance(node, ast.AugAssign):
                timed = timed - names
    return timed


def check_no_comparison_of_times_is_shown_or_asserted(name, notebook):
    """It depends on how busy the machine is: print the ratio, as `about 3.1`."""
    timed = set()
    for cell in code_cells(notebook):
        for statement in ast.parse(TransformerManager().transform_cell(cell.source)).body:
            timed = names_of_times(statement, timed)
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                continue
            seen = [n.test for n in ast.walk(statement) if isinstance(n, ast.Assert)]
            seen += [n.value for n in ast.walk(statement) if isinstance(n, ast.Expr)]
            for node in (n for part in seen for n in ast.walk(part)):
                if isinstance(node, ast.Compare) and isinstance(
                    node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
                ):
                    assert not reads_times(node, timed), (first_line(cell), ast.unparse(node))


def check_cells_are_short(name, notebook):
    """Of a class that the reader writes as a whole, its lines of code count."""
    for cell in code_cells(notebook):
        is_step = any(tag.startswith("nano-") for tag in tags(cell))
        lines = code_lines(cell.source) if is_step else len(cell.source.splitlines())
        assert lines <= MAX_STEP_LINES if is_step else lines <= MAX_CODE_LINES, first_line(cell)


def check_notebook_is_small(name, notebook):
    assert len(nbformat.writes(notebook).encode()) < MAX_NOTEBOOK_BYTES


def check_markdown_holds_no_python(name, notebook):
    for cell in markdown_cells(notebook):
        assert not re.search(r"(```|~~~)\s*\{?(python|py|ipython3|code-cell)\b", cell.source), (
            "nobody runs code in Markdown: make it a code cell"
        )


def check_references_lead_to_their_entry(name, notebook):
    entries = (ROOT / "book/references.md").read_text(encoding="utf-8")
    for cell in markdown_cells(notebook):
        for entry in re.findall(r"references\.md(?:#(ref-[\w-]+))?\)", cell.source):
            assert entry and f"({entry})=" in entries, cell.source


def check_solutions_are_folded_code_cells(name, notebook):
    for cell in code_cells(notebook):
        if "Solution" in first_line(cell):
            assert SOLUTION.match(first_line(cell)), (
                "write `#@title Solution 3.2`, not " + first_line(cell)
            )
            assert "hide-cell" in tags(cell), first_line(cell)
            assert cell.metadata.get("cellView") == "form", first_line(cell)
            assert cell.metadata.get("jupyter", {}).get("source_hidden") is True, first_line(cell)


def check_what_is_said_of_solutions_is_folded(name, notebook):
    """Text behind a solution stands in a fold, up to the next heading."""
    solved = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and solved:
            text = re.sub(r"<details>.*?</details>", "", cell.source, flags=re.DOTALL)
            prose = re.split(r"^#+ ", text, maxsplit=1, flags=re.MULTILINE)[0]
            assert not prose.strip(), f"fold it, under <summary>Explanation</summary>: {prose}"
        solved = cell.cell_type == "code" and bool(SOLUTION.match(first_line(cell)))


def check_folds_have_known_titles(name, notebook):
    """Question, hint, answer or explanation: a fold says what is in it."""
    for cell in markdown_cells(notebook):
        for title in re.findall(r"<summary>(.*?)</summary>", cell.source):
            assert FOLD.fullmatch(title), title


def check_the_first_screen_has_a_card(name, notebook):
    """What you learn, how long it takes, and what it builds on."""
    first = notebook.cells[0]
    card = CARD.search(first.source)
    assert first.cell_type == "markdown" and card, "no lines such as " + (
        "**You'll learn to** time a call. **Time:** 40 minutes, and 60 for the exercises. "
        "**Needs:** [hybridize](03_hybridize.ipynb)."
    )
    assert card.start() > 120, "first a question, a picture or a surprise"
    if card["exercises"]:
        minutes = [int(KIND.match(text)[2]) for _, text, _ in exercises_of(notebook)]
        assert int(card["exercises"]) == sum(minutes), f"the exercises take {sum(minutes)}"


def check_exercises_have_stars(name, notebook):
    for cell in markdown_cells(notebook):
        for heading in re.findall(r"^#+ Exercise .*", cell.source, re.MULTILINE):
            assert re.search(r"\d ★{1,3}$", heading), f"{heading}: one to three stars"


def check_every_exercise_has_a_solution(name, notebook):
    exercises = [
        number for cell in markdown_cells(notebook) for number in EXERCISE.findall(cell.source)
    ]
    solved = [
        match[1] for cell in code_cells(notebook) if (match := SOLUTION.match(first_line(cell)))
    ]
    assert exercises, "a chapter ends with exercises: `### Exercise 3.1`"
    assert exercises == list(dict.fromkeys(solved)), f"asked {exercises}, solved {solved}"


def exercises_of(notebook):
    """(number, its Markdown below the heading, the cell behind it), of all exercises."""
    behind = [*notebook.cells[1:], None]
    for cell, after in zip(notebook.cells, behind, strict=True):
        parts = [] if cell.cell_type == "code" else EXERCISE.split(cell.source)[1:]
        for number, text in zip(parts[::2], parts[1::2], strict=True):
            yield number, text.partition("\n")[2].strip(), after


def check_every_exercise_has_hints(name, notebook):
    for number, text, _ in exercises_of(notebook):
        titles = re.findall(r"<summary>(Hint.*?)</summary>", text)
        assert titles == ["Hint 1", "Hint 2", "Hint 3"], number


def check_every_exercise_says_its_kind_and_minutes(name, notebook):
    for number, text, _ in exercises_of(notebook):
        assert KIND.match(text), f"Exercise {number}: begin with `*Predict · 5 minutes.*`"


def check_every_exercise_has_a_starter(name, notebook):
    """Behind the text a cell to write into, which runs, and says what is missing."""
    starters = [cell.id for cell in code_cells(notebook) if "starter" in tags(cell)]
    assert starters == [getattr(cell, "id", None) for *_, cell in exercises_of(notebook)]
    for number, text, cell in exercises_of(notebook):
        if cell and cell.get("id") in starters and "`mx.check(" in text:
            chapter, _, k = number.partition(".")
            check = f'mx.check("{int(chapter):02}.{k}", '
            assert cell.source.splitlines()[-1].startswith(check), number
            assert "not yet: " in "".join(shown(cell)), number


def check_no_widgets(name, notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert not any("widget" in kind for kind in output.get("data", {})), (
                f"a widget is empty without its kernel: {first_line(cell)}"
            )


def check_metadata_is_portable(name, notebook):
    assert notebook.metadata == NOTEBOOK_METADATA, "run `make notebooks`"
    for cell in notebook.cells:
        assert set(cell.metadata) <= CELL_METADATA, set(cell.metadata) - CELL_METADATA


CHECKS = {name: check for name, check in globals().items() if name.startswith("check_")}


@cache
def saved(path):
    """The notebook as it was saved: many checks read it, and none changes it."""
    return nbformat.read(path, as_version=4)


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@for_each(NOTEBOOKS)
def test_notebook(path, check):
    check(path.name, saved(path))


OF_CHAPTERS = {"check_the_first_screen_has_a_card", "check_every_exercise_has_a_solution"}


@pytest.mark.parametrize("name", sorted(CHECKS.keys() - OF_CHAPTERS))
@for_each(RECIPES)
def test_recipe(path, name):
    CHECKS[name](path.name, saved(path))


def size_of(recipe):
    """(lines of code after the setup cell, words of text)."""
    lines = sum(code_lines(cell.source) for cell in code_cells(recipe)[1:])
    return lines, sum(len(cell.source.split()) for cell in markdown_cells(recipe))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_short_and_names_pitfalls(path):
    recipe = saved(path)
    lines, words = size_of(recipe)
    assert lines < MAX_RECIPE_LINES and words < MAX_RECIPE_WORDS
    assert recipe.cells[-1].source.startswith("**Pitfalls.**\n\n- ")
    assert any("".join(shown(cell)).strip() for cell in code_cells(recipe))


GAPS = sorted((ROOT / "notebooks/build").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_chapter_has_exercises_of_four_kinds(path):
    exercises = exercises_of(saved(path))
    kinds = {text.removeprefix("*").split()[0] for _, text, _ in exercises}
    assert kinds >= {"Predict", "Break", "Extend", "Measure"}, kinds


@pytest.mark.parametrize(
    "path", NOTEBOOKS + RECIPES + GAPS, ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_every_notebook_begins_with_the_cell_that_is_made(path):
    sources = [cell.source for cell in code_cells(saved(path))]
    assert sources[0] == make_setup.source(path.stem), "run book/make_setup.py and `make blank`"
    assert not any("%pip" in source for source in sources[1:])


def test_only_the_first_cell_of_a_notebook_is_written():
    path = NOTEBOOKS[0]
    text = path.read_text(encoding="utf-8")
    assert make_setup.with_setup(text, path.stem) == text
    other = make_setup.with_setup(text, "23_other_engines")
    lines = [(a, b) for a, b in zip(text.splitlines(), other.splitlines(), strict=True) if a != b]
    assert [("%pip" in a, "minihybrid[chapters] @" in b) for a, b in lines] == [(True, True)]


def test_where_the_package_lives_is_read_from_the_project():
    home = make_setup.PROJECT["urls"]["Repository"]
    assert make_setup.requirement("03_hybridize", on_index=False) == f"{home}/archive/HEAD.zip"
    named = make_setup.requirement("23_other_engines", on_index=False)
    assert named == f'"minihybrid[chapters] @ {home}/archive/HEAD.zip"'
    assert make_setup.requirement("03_hybridize", on_index=True) == "minihybrid"
    assert {extra.strip("[]") for extra in make_setup.EXTRAS.values()} <= set(
        make_setup.PROJECT["optional-dependencies"]
    )


def test_every_notebook_is_in_the_book():
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    parts = [re.findall(r"notebooks/(\d\w+)", part) for part in toc.split("- caption:")]
    assert sorted(sum(parts, [])) == [path.stem for path in NOTEBOOKS]
    assert sorted(re.findall(r"recipes/(\w+)", toc)) == [path.stem for path in RECIPES]
    later = {  # a newer chapter -> the one that it follows
        "29_guards_and_shapes": "13_the_tracer",
        "33_number_formats": "18_a_fast_product",
        "34_schedules_and_search": "18_a_fast_product",  # once 33 is taken out
    }
    for part in parts:
        for stem, before in later.items():
            if stem in part:
                assert part.pop(part.index(before) + 1) == stem
        assert part == sorted(part), "in the order of their numbers"


# -- the checks checked: a good notebook, and one way to break it for each -------------
def code(source, text=None, **metadata):
    outputs = [] if text is None else [nbformat.v4.new_output("stream", name="stdout", text=text)]
    return nbformat.v4.new_code_cell(source, outputs=outputs, metadata=metadata)


def data_output(**data):
    return nbformat.v4.new_output(
        "display_data", data={k.replace("_", "/"): v for k, v in data.items()}
    )


@pytest.fixture
def good():
    picture = code("draw()", mystnb={"image": {"alt": "a line that goes up"}})
    picture.outputs = [data_output(image_png="iVBORw0KGgo=")]
    error = code("1 / 0", tags=["raises-exception"])
    error.outputs = [
        nbformat.v4.new_output(
            "error",
            ename="ZeroDivisionError",
            evalue="division by zero",
            traceback=["File /tmp/ipykernel_7/123.py:1"],
        )
    ]
    notebook = nbformat.v4.new_notebook(
        metadata=copy.deepcopy(NOTEBOOK_METADATA),
        cells=[
            nbformat.v4.new_markdown_cell(
                f"# A chapter\n\n{'Why? ' * 50}\n\n![a graph](graph.svg)\n\n"
                "**You'll learn to** draw the graph of a network. **Time:** 40 minutes, and 5 for "
                "the exercises. **Needs:** [the tour](00_tour.ipynb)."
            ),
            code("import math"),
            code("print(math.pi)", "3.14\n"),
            code("time_it()", "12.5 µs\n", tags=["timing"]),
            picture,
            error,
            nbformat.v4.new_markdown_cell(
                "### Exercise 3.1 ★\n\n*Predict · 5 minutes.* How many?\n\n"
                '`mx.check("03.1", ...)` judges the number.\n\n'
                + "\n".join(
                    f"<details><summary>Hint {k}</summary>\n\nCount.\n\n</details>"
                    for k in (1, 2, 3)
                )
            ),
            code('mx.check("03.1", ...)', "not yet: nothing is filled in", tags=["starter"]),
            code(
                "#@title Solution 3.1\nprint(2)",
                "2\n",
                tags=["hide-cell"],
                cellView="form",
                jupyter={"source_hidden": True},
            ),
        ],
    )
    for count, cell in enumerate(code_cells(notebook), start=1):
        cell.execution_count = count
    return notebook


SETUP, PRINT, TIMING, PICTURE, ERROR, STARTER, SOLVED = range(7)  # the code cells of `good`


def cell_breaker(index, **changes):
    """Return a function that sets fields of one code cell."""
    return lambda notebook: code_cells(notebook)[index].update(copy.deepcopy(changes))


def markdown_breaker(source):
    return lambda notebook: notebook.cells[0].update(source=source)


def exercise_breaker(old, new):
    """Return a function that changes words of the exercise."""

    def break_it(notebook):
        notebook.cells[-3].source = notebook.cells[-3].source.replace(old, new)

    return break_it


def shows(index, text):
    return cell_breaker(index, outputs=[nbformat.v4.new_output("stream", name="stdout", text=text)])


BREAKERS = {
    "check_the_first_screen_has_a_card": [
        markdown_breaker("# A chapter\n\nWhy?"),
        markdown_breaker("# A chapter\n\n*Road · 40 minutes · needs Python · opens `viz.py`*"),
        lambda notebook: markdown_breaker(notebook.cells[0].source.replace("5 for", "6 for"))(
            notebook
        ),
    ],
    "check_exercises_have_stars": [
        markdown_breaker("### Exercise 3.1\n\nHow many?"),
        markdown_breaker("### Exercise 3.1 ★★★★"),
    ],
    "check_ran_from_top_to_bottom": [
        cell_breaker(PRINT, execution_count=7),
        cell_breaker(PRINT, execution_count=None),
    ],
    "check_outputs_are_kept": [
        cell_breaker(PRINT, outputs=[]),
        cell_breaker(SETUP, source="x = 1\n%cd .\nx"),
        cell_breaker(SETUP, source="x = 1\nx + 1, x"),
    ],
    "check_errors_are_meant": [cell_breaker(ERROR, metadata={}), cell_breaker(ERROR, outputs=[])],
    "check_errors_end_at_the_readers_line": [
        lambda notebook: (
            code_cells(notebook)[ERROR]
            .outputs[0]
            .update(traceback=["File minihybrid/core/nd.py:1"])
        ),
        lambda notebook: code_cells(notebook)[ERROR].outputs[0].update(traceback=["line"] * 21),
    ],
    "check_no_is_meant": [
        shows(PRINT, "equal: False"),
        shows(PRINT, "(True, False)"),
        shows(PRINT, "[nan, 1.0]"),
        cell_breaker(PRINT, metadata={"tags": ["no-is-right"]}),
    ],
    "check_no_line_of_the_engine_has_a_number": [
        shows(PRINT, "minihybrid/core/nd.py, lines 7-8\n   7  def f(x):\n"),
        shows(PRINT, 'File "minihybrid/core/nd.py", line 7, in f'),
        shows(PRINT, "\x1b[32mminihybrid/core/nd.py\x1b[39m:7"),
        shows(PRINT, "made in block.py (line 31)"),
        shows(PRINT, "nano.py, line 31"),
        cell_breaker(
            PRINT,
            outputs=[
                data_output(
                    text_html="<p>Dense.hybrid_forward</p><pre tabindex='0'>"
                    '<span class="line"><i>101</i>def hybrid_forward(self, F, x):'
                )
            ],
        ),
        markdown_breaker("# A chapter\n\nLook at `minihybrid/core/nd.py`, line 7."),
    ],
    "check_listings_are_the_source_as_it_is": [
        shows(PRINT, "# minihybrid/core/passes/dce.py: dce\ndef dce(old):\n"),
        shows(PRINT, "# nano.py: f\nx = 1\n\n# minihybrid/core/passes/dce.py: dce\nx = 1\n"),
    ],
    "check_no_cell_reads_a_loops_name": [
        lambda notebook: [
            cell.update(source=source)
            for cell, source in zip(
                code_cells(notebook), ("for x in range(3):\n    y = x", "print(x)"), strict=False
            )
        ]
    ],
    "check_nothing_on_stderr": [
        cell_breaker(
            PRINT, outputs=[nbformat.v4.new_output("stream", name="stderr", text="a warning")]
        )
    ],
    "check_no_absolute_path": [
        shows(PRINT, "saved in /home/ada/net.params"),
        shows(PRINT, "saved in C:\\Users\\ada"),
        shows(PRINT, str(ROOT)),
        cell_breaker(PRINT, source="open('/tmp/x')"),
    ],
    "check_pictures_are_described": [
        cell_breaker(PICTURE, metadata={}),
        cell_breaker(PICTURE, metadata={"mystnb": {"image": {"alt": "see 821b.png"}}}),
        cell_breaker(PRINT, outputs=[data_output(text_html="<svg><path/></svg>")]),
        markdown_breaker("![](graph.svg)"),
        markdown_breaker('<img src="graph.svg">'),
    ],
    "check_pictures_are_small": [
        cell_breaker(
            PICTURE,
            outputs=[data_output(image_png=base64.b64encode(bytes(MAX_IMAGE_BYTES)).decode())],
        )
    ],
    "check_exemptions_are_listed": [
        cell_breaker(PRINT, metadata={"tags": ["nbval-skip"]}),
        cell_breaker(PRINT, metadata={"tags": ["nbval-ignore-output"]}),
        cell_breaker(PRINT, source="# NBVAL_IGNORE_OUTPUT\nprint(1)"),
    ],
    "check_times_stand_in_timing_cells": [
        shows(PRINT, "it took 3.2 ms"),
        shows(PRINT, "4.1x faster"),
        shows(PRINT, "it pays after about 300 calls"),
        cell_breaker(PRINT, outputs=[data_output(text_html="<td>5 µs</td>")]),
    ],
    "check_times_are_measured_quietly": [shows(PRINT, "one kernel  3.9 us  3.9 .. 27.5 us  0.13")],
    "check_no_comparison_of_times_is_shown_or_asserted": [
        cell_breaker(PRINT, source=f"from minihybrid.bench import Timer, compare\n{source}")
        for source in (
            "with Timer() as timer:\n    pass\ntimer.elapsed_s > 3",
            "found = compare({}, 1)\nfound.ratio('a', 'b') > 2, 1",
            "fast, slow = (compare({'f': f}) for f in (1, 2))\nprint('right:', slow >= fast)",
            "def per_call():\n    return perf_counter()\n\na, b = per_call(), 2\nassert a < b",
            "a = []\nfor _ in range(3):\n    a += [Timer().elapsed_s]\nprint(min(a) < 1)",
        )
    ],
    "check_cells_are_short": [cell_breaker(PRINT, source="x = 1\n" * 21)],
    "check_notebook_is_small": [shows(PRINT, "x" * MAX_NOTEBOOK_BYTES)],
    "check_markdown_holds_no_python": [
        markdown_breaker("```python\nx = 1\n```"),
        markdown_breaker("```{code-cell}\nx = 1\n```"),
    ],
    "check_references_lead_to_their_entry": [
        markdown_breaker("[JAX](../book/references.md)"),
        markdown_breaker("[JAX](../book/references.md#ref-jaxx)"),
    ],
    "check_solutions_are_folded_code_cells": [
        cell_breaker(SOLVED, metadata={}),
        cell_breaker(SOLVED, source="# Solution 3.1\nprint(2)"),
        cell_breaker(SOLVED, metadata={"tags": ["hide-cell"], "cellView": "form"}),
    ],
    "check_every_exercise_has_a_solution": [
        cell_breaker(SOLVED, source="#@title Solution 3.2\nprint(2)"),
        lambda notebook: notebook.cells.pop(),
        lambda notebook: notebook.cells.pop(-3),
    ],
    "check_what_is_said_of_solutions_is_folded": [
        lambda notebook: notebook.cells.append(nbformat.v4.new_markdown_cell("Two, since ..."))
    ],
    "check_folds_have_known_titles": [
        markdown_breaker("<details><summary>Show code cell content</summary>")
    ],
    "check_every_exercise_has_hints": [
        markdown_breaker("### Exercise 3.1 ★\n\nHow many?"),
        markdown_breaker(
            "### Exercise 3.1\n\nHow?\n\n### Exercise 3.2\n\n<details><summary>Hint</summary>"
        ),
        exercise_breaker("Hint 2", "Hint 3"),
        exercise_breaker("Hint 1", "Hint"),
    ],
    "check_every_exercise_says_its_kind_and_minutes": [
        exercise_breaker("· 5 minutes.", "."),
        exercise_breaker("Predict", "Guess"),
        exercise_breaker("*Predict · 5 minutes.* ", ""),
    ],
    "check_every_exercise_has_a_starter": [
        lambda notebook: notebook.cells.pop(-2),
        lambda notebook: notebook.cells.insert(-2, nbformat.v4.new_markdown_cell("So:")),
        cell_breaker(STARTER, source='mx.check("03.2", ...)'),
        cell_breaker(STARTER, metadata={}),
        cell_breaker(SOLVED, metadata={"tags": ["starter"]}),
        shows(STARTER, "right: two"),
    ],
    "check_no_widgets": [
        cell_breaker(
            PRINT,
            outputs=[
                nbformat.v4.new_output(
                    "display_data", data={"application/vnd.jupyter.widget-view+json": {}}
                )
            ],
        )
    ],
    "check_metadata_is_portable": [
        lambda notebook: notebook.metadata.update(widgets={}),
        cell_breaker(PRINT, metadata={"execution": {"iopub.status.busy": "2020"}}),
    ],
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_check_accepts_a_good_notebook(check, good):
    nbformat.validate(good)
    check("good.ipynb", good)


@pytest.mark.parametrize("name", CHECKS)
def test_check_rejects_a_broken_notebook(name, good):
    for break_it in BREAKERS[name]:
        broken = copy.deepcopy(good)
        break_it(broken)
        with pytest.raises(AssertionError):
            CHECKS[name]("broken.ipynb", broken)


def test_running_notebooks_leaves_nothing_of_this_machine(good):
    noisy = copy.deepcopy(good)
    noisy.metadata.language_info["version"] = "3.11.7"
    noisy.cells[1].metadata["execution"] = {"iopub.status.busy": "2020-01-01"}
    code_cells(noisy)[ERROR].outputs[0].traceback = [f"File {ROOT}/notebooks/net.py:1"]
    clean(noisy)
    assert code_cells(noisy)[ERROR].outputs[0].traceback == ["File notebooks/net.py:1"]
    for check in CHECKS.values():
        check("noisy.ipynb", noisy)


def test_pages_and_golden_files_name_no_line_of_the_engine():
    folders = ("book/*.md", "book/*/*.md", "minihybrid/data/**/*", "tests/golden/**/*")
    files = [f for pattern in folders for f in ROOT.glob(pattern) if f.is_file()]
    texts = {f: f.read_bytes().decode("utf-8", "ignore") for f in files}
    assert len(texts) > 50
    assert not {f: engine_places(text) for f, text in texts.items() if engine_places(text)}


def test_lines_of_other_programs_may_have_numbers():
    for text in (
        "`python/mxnet/gluon/block.py`, line 1067",
        "torch/_dynamo/op.py:1759",
        "op.py: 3",
    ):
        assert not engine_places(text), text
    assert engine_places("net.py:3, op.py:3") == ["op.py:3"]
