"""What `python -m minihybrid` prints, with and without what it looks for."""

import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import __main__ as main
from minihybrid.codegen import cache
from minihybrid.core.targets import TARGETS

NEEDS = ["numpy>=2.0,<2.6", 'nowhere[a]>=1; extra == "far"', "numpy; extra == 'near'"]


asks_uname = pytest.mark.slow  # Python's `platform` starts a process


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A folder with one compiled kernel, and a file of somebody's."""
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(tmp_path))
    cache.write("k" + "0" * 40, b"machine code")
    (tmp_path / "mine.o").write_text("stays")
    return tmp_path


def lines():
    return dict(line.split(":", 1) for line in main.report().splitlines())


@asks_uname
def test_the_report_says_what_is_wrong_with_the_number_of_threads(kernels, monkeypatch):
    monkeypatch.setenv("MINIHYBRID_NUM_THREADS", "many")
    monkeypatch.setattr(main.machine, "threads", main.machine.threads.__wrapped__)  # not cached
    (line,) = [line for line in main.report().splitlines() if line.startswith("threads:")]
    assert "MINIHYBRID_NUM_THREADS is 'many'" in line and line.endswith("each core has a thread")


@asks_uname
def test_the_report_names_versions_targets_threads_and_cache(kernels, monkeypatch):
    monkeypatch.setattr(main.machine, "threads", lambda: 3)
    actual = {name: text.strip() for name, text in lines().items()}
    assert actual["minihybrid"].startswith(mx.__version__ + " in ")
    assert actual["numpy"] == np.__version__
    assert actual["targets"].startswith(
        ", ".join(n for n in TARGETS if TARGETS[n].here and TARGETS[n].usable())
    )
    assert actual["threads"].startswith("3 of ")
    assert actual["cache"].startswith(f"1 kernels, 0.0 MB in {kernels}; empty it")


@asks_uname
def test_the_report_says_what_is_missing_and_what_brings_it(monkeypatch):
    monkeypatch.setattr(main.metadata, "requires", lambda name: NEEDS)
    actual = lines()
    assert actual["[far]"].strip() == ('missing nowhere; python -m pip install "minihybrid[far]"')
    assert actual["[near]"].strip() == "complete"
    monkeypatch.setattr(main.metadata, "requires", lambda name: ["nowhere"])
    assert lines()["nowhere"].strip() == 'missing; python -m pip install "nowhere"'


@asks_uname
def test_the_report_is_whole_where_nothing_is_installed_or_kept(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(main.metadata, "requires", absent)
    monkeypatch.setattr(main.cache, "cache_dir", lambda: None)
    actual = lines()
    assert (
        actual["packages"].strip() == "unknown, minihybrid is not installed but found on the path"
    )
    assert actual["cache"].strip().startswith("none, this user has no home folder")
    assert np.__version__ in actual["numpy"]


@asks_uname
def test_a_wrong_variable_is_a_sentence_of_the_report(monkeypatch):
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", "here")
    assert lines()["cache"].strip().startswith("MINIHYBRID_CACHE_DIR is 'here', which depends")


def test_the_cache_is_emptied_when_asked(kernels, capsys):
    main.main(["--empty-cache"])
    assert capsys.readouterr().out == f"deleted 1 kernels in {kernels}\n"
    assert [path.name for path in kernels.iterdir()] == ["mine.o"]


def test_a_picture_has_a_row_for_each_of_ten_answers():
    image = np.zeros((8, 8))
    image[0, 0], image[7, 7] = 1, 0.5
    chances = np.eye(10)[3]
    rows = main.picture(image, chances).splitlines()
    assert len(rows) == 10
    assert rows[1][4:20] == "@@" + " " * 14 and rows[8][4:20] == " " * 14 + "=="
    assert rows[3].endswith("3  " + "#" * 40 + " 100%") and rows[4].endswith("4   0%")


@pytest.mark.slow
def test_the_demo_shows_ten_lines_that_learn(capsys):
    mx.random.seed(0)
    main.main(["--demo"])
    program, answer, drawn = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert len(program.splitlines()) == 10 and program.startswith("(x, y), ")
    compile(program, "demo", "exec")
    right, total = (int(word) for word in answer.split() if word.isdigit())
    assert total == 359 and right >= 0.9 * total
    assert len(drawn.splitlines()) == 10


@pytest.mark.slow
def test_python_runs_it_by_its_name():
    command = [sys.executable, "-m", "minihybrid"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"\npython:      {sys.version.split()[0]} (" in done.stdout and done.stderr == ""
