"""README.md: the first program prints its output. CONTRIBUTING.md: commands as in the Makefile."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = ("requirements.txt", "book/requirements.txt")


def recipes(makefile):
    """Return {target: its commands}, as they are typed in an activated environment."""
    build = re.search(r"^BUILD_BOOK := (.*)$", makefile, re.MULTILINE)[1]
    makefile = makefile.replace("$(BUILD_BOOK)", build).replace("$(BIN)/", "")
    marked = re.search(r"^MARKED = (.*)$", makefile, re.MULTILINE)[1]
    makefile = makefile.replace("$(MARKED)", marked)
    makefile = re.sub(r"\\\n\s*", "", makefile)
    makefile = re.sub(r"\$\(if \$\(\w+\),\w+,(\w+)\)", r"\1", makefile)  # not set
    extra = r"cd tests && (?:nice -n 10 )?\.\./| --quiet|(?<=\w) \$\(\w+\)| \|\| \{.*"
    makefile = re.sub(extra, "", makefile)
    actual = {}
    for target, body in re.findall(r"^([\w$()-]+): .*\n((?:\t.*\n)+)", makefile, re.M):
        commands = [line.strip().lstrip("@") for line in body.splitlines()]
        actual[target] = [c for c in commands if not c.startswith(("echo", "touch"))]
    *first, (_, at_once) = [*actual["test"][:-1], actual["test"][-1].split(" -j 2 ")]
    actual["test"] = sum([actual[target] for target in at_once.split()], first)
    (tests,) = [c.removesuffix(marked).rstrip() for c in actual["test"] if c.endswith(marked)]
    actual["test-all"] = [tests]  # where MARKED is empty
    return actual | {name: actual["$(BUILT)"] + actual[name] for name in ("book", "site-test")}


def listed(page):
    """Return {target: the commands beside it} from the table of a page."""
    table = page.partition("| with make | without |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `make ([\w-]+)`[^|]* \| (.*) \|$", table, re.MULTILINE)
    return {
        target: re.findall(r"`([^`]+)`", cell.replace("in `tests`: ", "")) for target, cell in rows
    }


def test_commands_without_make_are_those_of_the_makefile():
    in_make = recipes((ROOT / "Makefile").read_text(encoding="utf-8"))
    on_page = listed((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(on_page) == 18
    for target, commands in on_page.items():
        assert commands == in_make[target], target


@pytest.mark.slow
def test_a_first_run_of_the_first_program_prints_the_output_below_it(tmp_path):
    """A process of its own, without any cached kernel."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program, printed = re.search(
        r"```python\n(import .*?)```\n\nprints\n\n```text\n(.*?)```", readme, re.S
    ).groups()
    assert len([line for line in program.splitlines() if line and "import" not in line]) <= 10
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | {"MINIHYBRID_CACHE_DIR": str(tmp_path), "MINIHYBRID_WAIT": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == printed


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_the_book_is_built_again_only_after_a_change(tmp_path):
    """The Makefile of a small copy, whose environment and book seem to be there."""
    lists(tmp_path)
    for name in (".venv/reader", "_build/built"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    assert "http.server" in would_run("book", tmp_path)
    assert "jupyter-book build" not in would_run("book", tmp_path)
    (tmp_path / "book" / "page.md").touch()
    assert "jupyter-book build" in would_run("book", tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_a_reader_installs_nothing_of_the_tests(tmp_path):
    """And whoever has read the book first gets what the tests need beside."""
    lists(tmp_path)
    installed = re.compile(r"-r (\S+)")
    assert installed.findall(would_run("book", tmp_path)) == ["book/requirements.txt"]
    both = ["book/requirements.txt", "requirements.txt"]
    assert installed.findall(would_run("quick", tmp_path)) == both
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/reader").touch()
    assert installed.findall(would_run("quick", tmp_path)) == both[1:]
    (tmp_path / ".venv/ready").touch()
    assert installed.findall(would_run("quick", tmp_path)) == []
    assert installed.findall(would_run("book", tmp_path)) == []


def test_what_the_tests_need_contains_what_the_book_needs():
    whole, book = ROOT / "requirements.txt", ROOT / "book/requirements.txt"
    assert "-r book/requirements.txt" in whole.read_text(encoding="utf-8").splitlines()
    pinned = [
        re.findall(r"^([\w-]+)==", p.read_text(encoding="utf-8"), re.M) for p in (whole, book)
    ]
    assert set(pinned[0]).isdisjoint(pinned[1]) and min(map(len, pinned)) > 10
    assert {"jupyterlab", "pytest", "playwright", "onnxruntime"} <= set(pinned[0])


def lists(folder):
    """What the Makefile looks at, empty."""
    for name in (
        "book",
        "minihybrid",
        "notebooks",
        "tools",
        "tests/classroom",
        "benchmarks/results",
    ):
        (folder / name).mkdir(parents=True)
    for name in ("pyproject.toml", "_config.yml", "_toc.yml", *LISTS):
        (folder / name).touch()


def would_run(target, folder):
    """The commands that `make` would run in a folder."""
    command = ["make", "-n", "-f", ROOT / "Makefile", target]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize(
    "python, message",
    [
        ("import sys; sys.version_info = (3, 10); exec(sys.argv[-1])", "needs Python 3.11 or"),
        ("import sys; sys.exit('ensurepip' in sys.argv[-1])", "its module venv is not installed"),
    ],
    ids=["old", "no venv"],
)
def test_what_an_environment_lacks_is_said(python, message, tmp_path):
    """A program in place of Python, which fails where such a one would."""
    stand_in = tmp_path / "python"
    stand_in.write_text(f"#!{sys.executable}\n{python}\n")
    stand_in.chmod(0o755)
    done = ready(tmp_path, PYTHON=stand_in)
    assert done.returncode and message in done.stdout + done.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.external  # it makes an environment
@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_without_a_network_the_remedy_is_said(tmp_path):
    done = ready(tmp_path, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert done.returncode and not (tmp_path / ".venv/reader").exists()
    assert "name a folder of wheels in PIP_FIND_LINKS" in done.stdout


def ready(folder, PYTHON=sys.executable, **variables):
    """What `make .venv/ready` says in a folder that asks for a package that nobody has."""
    (folder / "book").mkdir()
    (folder / "pyproject.toml").touch()
    for name in LISTS:
        (folder / name).write_text("no-such-package-of-ours\n")
    command = ["make", "-f", ROOT / "Makefile", f"PYTHON={PYTHON}", ".venv/ready"]
    return subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, check=False
    )
