"""What the chapter on other libraries shows is what they print, and of which program."""

import json
import re
import sys
from datetime import date

import pytest
from envs import ENVS, python_of
from minihybrid_course import cells
from minihybrid_course.other_libraries import (
    LIBRARIES,
    elsewhere,
    ran,
    record_of,
    recorded,
    script_cells,
)

from minihybrid.core.op import HybridError

TOPICS = "write trace steps look print number branch shape save list loop race".split()
NUMBERS = re.compile(r"about [\d.]+ times")  # of the race; they are another each time


@pytest.fixture(autouse=True)
def asked_anew():
    """What a library printed is kept; not from test to test."""
    record_of.cache_clear()
    yield
    record_of.cache_clear()


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_record_belongs_to_the_script_as_it_is(library):
    record, script = recorded()[library], script_cells(library)
    assert [*record["printed"]] == [cell.key for cell in script], (
        f"run `python book/record_elsewhere.py {library}`"
    )
    topics = [*dict.fromkeys(cell.topic for cell in script)]
    assert topics == [t for t in TOPICS if t in topics] and {*TOPICS} - {*topics} <= {
        "list",
        "loop",
    }
    assert date.fromisoformat(record["date"]) >= date(2026, 11, 23)
    pinned = ENVS[library][1][0].partition("==")[2]
    assert record["version"].partition("+")[0] == pinned


def test_records_have_nothing_of_this_machine():
    text = json.dumps(recorded())
    assert not re.search(r"/(home|root|Users|tmp|work|opt)/|0x[0-9a-f]{6}|\d\d:\d\d:\d\d", text)


def settled(text):
    """Without chance: AutoGraph writes the names of a set, in another order each time."""
    return re.sub(r"(?<=nonlocal ).*", lambda m: ", ".join(sorted(m[0].split(", "))), text)


@pytest.mark.external
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_library_prints_what_was_recorded(library):
    now, record = ran(library, python_of(library)), recorded()[library]
    assert now["version"] == record["version"]
    for cell in script_cells(library):
        here, then = (
            settled(NUMBERS.sub("about N times", "\n".join(some["printed"][cell.key])))
            for some in (now, record)
        )
        assert here == then, f"{cell.topic} {cell.number}: {cell.source}"


# -- cells -----------------------------------------------------------------------------
SCRIPT = '''"""What it is."""

# %% one: The first.
import os
x = 1
print("out")
os.write(1, b"below\\n")

# %% two: It fails.
def half(x):
    return x / 0


half(x)

# %% one: After the failure.
import inspect
import warnings

warnings.warn("careful")
print(inspect.getsource(half))
'''


def test_a_change_moves_the_keys_of_its_cell_and_of_all_below():
    before, after = cells.cells(SCRIPT), cells.cells(SCRIPT.replace("x / 0", "x / 1"))
    same = [a.key == b.key for a, b in zip(before, after, strict=True)]
    assert same == [True, False, False]
    assert [(cell.topic, cell.number) for cell in before] == [("one", 1), ("two", 1), ("one", 2)]


def test_text_above_the_first_cell_counts_too():
    assert cells.cells(SCRIPT.replace("What", "How"))[0].key != cells.cells(SCRIPT)[0].key


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library that is installed, its script, and what it printed long ago."""
    (tmp_path / "fake.py").write_text("__version__ = '7.5'\n")
    (tmp_path / "in_fake.py").write_text(SCRIPT.replace("import os", "import fake, os"))
    record = {"version": "7.4", "python": "3.9.0", "date": "2001-02-03"}
    script = cells.cells((tmp_path / "in_fake.py").read_text())
    record["printed"] = {cell.key: ["of old"] for cell in script}
    (tmp_path / "records.json").write_text(json.dumps({"fake": record}))
    module = sys.modules["minihybrid_course.other_libraries"]
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(module, "RECORDS", tmp_path / "records.json")
    monkeypatch.setattr(module, "LIBRARIES", {"fake": "Fake"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_a_library_that_is_not_installed_shows_its_record_aloud(library):
    text = repr(elsewhere("two"))
    assert "NOT RUN HERE (it is not installed)" in text and "| of old" in text
    assert "Recorded on 2001-02-03 with Fake 7.4, Python 3.9.0" in text
    html = elsewhere("two")._repr_html_()
    assert 'class="note recorded">NOT RUN HERE' in html and "of old" in html


@pytest.mark.slow
def test_a_library_that_is_installed_runs(library, monkeypatch):
    monkeypatch.syspath_prepend(library)
    text = repr(elsewhere("one", "fake"))
    assert "Run here and now by Fake 7.5" in text and "of old" not in text
    for line in ("| out", "| below", "| UserWarning: careful", "|     return x / 0"):
        assert f"\n{line}\n" in text + "\n"
    assert "| ZeroDivisionError: division by zero" in repr(elsewhere("two"))
    assert 'class="note">Run here' in elsewhere("two")._repr_html_()


@pytest.mark.slow
def test_a_library_that_stops_shows_its_record_and_why(library, monkeypatch):
    monkeypatch.syspath_prepend(library)
    script = (library / "in_fake.py").read_text()
    (library / "fake.py").write_text("raise SystemExit('no such processor')")
    assert script == (library / "in_fake.py").read_text()
    text = repr(elsewhere("one"))
    assert "NOT RUN HERE (it is installed, but" in text and "no such processor" in text
    assert "| of old" in text


@pytest.mark.parametrize(
    "args, words",
    [
        (("two", "caffe"), "found the library 'caffe', but one of mxnet, torch"),
        (("three",), "found the topic 'three', but one of write, trace"),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(args, words):
    with pytest.raises(HybridError, match=words):
        elsewhere(*args)


def test_html_is_escaped_and_programs_are_kept_letter_by_letter():
    html = elsewhere("branch", "tensorflow")._repr_html_()
    programs = re.findall(r'aria-label="program">(.*?)</pre>', html, re.DOTALL)
    plain = [
        re.sub(r"</?[bi]>", "", p).replace("&gt;", ">").replace("&#x27;", "'") for p in programs
    ]
    plain = [p.replace("&quot;", '"').replace("&lt;", "<").replace("&amp;", "&") for p in plain]
    script = [cell for cell in script_cells("tensorflow") if cell.topic == "branch"]
    assert plain == [cell.source for cell in script] and len(plain) > 2
    assert "<b>return</b>" in html
