"""README.md: its first program prints what stands below; its commands are the Makefile's."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def recipes(makefile):
    """Return {target: its commands}, as they are typed in an activated environment."""
    build = re.search(r"^BUILD_BOOK := (.*)$", makefile, re.MULTILINE)[1]
    makefile = makefile.replace("$(BUILD_BOOK)", build).replace("$(BIN)/", "")
    makefile = re.sub(r"\\\n\s*", "", makefile)
    makefile = re.sub(r"\$\(if \$\(\w+\),\w+,(\w+)\)", r"\1", makefile)  # not set
    extra = r"cd tests && (?:nice -n 10 )?\.\./| --quiet|(?<=\w) \$\(\w+\)| \|\| \{.*"
    makefile = re.sub(extra, "", makefile)
    found = {}
    for target, body in re.findall(r"^([\w$()-]+): .*\n((?:\t.*\n)+)", makefile, re.M):
        commands = [line.strip().lstrip("@") for line in body.splitlines()]
        found[target] = [c for c in commands if not c.startswith(("echo", "touch"))]
    return found | {name: found["$(BUILT)"] + found[name] for name in ("book", "site-test")}


def listed(readme):
    """Return {target: the commands beside it} from the table of the README."""
    rows = re.findall(r"^\| `make ([\w-]+)`[^|]* \| (.*) \|$", readme, re.MULTILINE)
    return {
        target: re.findall(r"`([^`]+)`", cell.replace("in `tests`: ", "")) for target, cell in rows
    }


def test_commands_without_make_are_those_of_the_makefile():
    in_make = recipes((ROOT / "Makefile").read_text(encoding="utf-8"))
    in_readme = listed((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(in_readme) == 18
    for target, commands in in_readme.items():
        assert commands == in_make[target], target


def test_the_first_program_prints_what_stands_below_it(capsys):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program, printed = re.search(
        r"```python\n(import .*?)```\n\nprints\n\n```text\n(.*?)```", readme, re.S
    ).groups()
    assert len([line for line in program.splitlines() if line and "import" not in line]) <= 10
    exec(compile(program, "README.md", "exec"), {})
    # The first net of a program is number 0; other tests have made some before.
    assert re.sub(r"(hybridsequential)\d+", r"\g<1>0", capsys.readouterr().out) == printed


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_the_book_is_built_again_only_after_a_change(tmp_path):
    """The Makefile of a small copy, whose environment and book seem to be there."""
    for name in ("pyproject.toml", "requirements.txt", "_config.yml", "_toc.yml"):
        (tmp_path / name).touch()
    for name in ("book", "minihybrid", "notebooks", "tests", "benchmarks/results"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "ready").touch()
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build" / "built").touch()
    command = ["make", "-n", "-f", ROOT / "Makefile", "book"]

    def would_run():
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "http.server" in done.stdout
        return done.stdout

    assert "jupyter-book build" not in would_run()
    (tmp_path / "book" / "page.md").touch()
    assert "jupyter-book build" in would_run()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize(
    "python, told",
    [
        ("import sys; sys.version_info = (3, 10); exec(sys.argv[-1])", "needs Python 3.11 or"),
        ("import sys; sys.exit('ensurepip' in sys.argv[-1])", "its module venv is not installed"),
    ],
    ids=["old", "no venv"],
)
def test_what_an_environment_lacks_is_said(python, told, tmp_path):
    """A program in place of Python, which fails where such a one would."""
    stand_in = tmp_path / "python"
    stand_in.write_text(f"#!{sys.executable}\n{python}\n")
    stand_in.chmod(0o755)
    done = ready(tmp_path, PYTHON=stand_in)
    assert done.returncode and told in done.stdout + done.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_without_a_network_the_remedy_is_said(tmp_path):
    done = ready(tmp_path, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert done.returncode and not (tmp_path / ".venv/ready").exists()
    assert "name a folder of wheels in PIP_FIND_LINKS" in done.stdout


def ready(folder, PYTHON=sys.executable, **variables):
    """What `make .venv/ready` says in a folder that asks for a package that nobody has."""
    (folder / "pyproject.toml").touch()
    (folder / "requirements.txt").write_text("no-such-package-of-ours\n")
    command = ["make", "-f", ROOT / "Makefile", f"PYTHON={PYTHON}", ".venv/ready"]
    return subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, check=False
    )
