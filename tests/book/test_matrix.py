"""`pyproject.toml` promises the versions that `make matrix` installs, and no others."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETS = tomllib.loads((ROOT / "tests" / "matrix.toml").read_text(encoding="utf-8"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
DECLARED = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["chapters"]]
RANGES = dict(re.match(r"(\w+)(.*)", text).groups() for text in DECLARED)


def number(version):
    return tuple(map(int, version.split(".")))


def bounds(text):
    """("2.0", "2.6") of ">=2.0,<2.6"; `None` where there is no bound."""
    return [
        actual and actual[1]
        for actual in (re.search(sign + r"([\d.]+)", text) for sign in (">=", "<"))
    ]


def minors(package):
    """The versions of a package in all sets, as (major, minor)."""
    return {number(versions[package])[:2] for versions in SETS.values()}


@pytest.mark.parametrize(
    "package, text",
    [
        ("python", PROJECT["requires-python"]),
        *((name, RANGES[name]) for name in ("numpy", "numba")),
    ],
)
def test_what_is_promised_was_installed(package, text):
    """From the oldest set to the newest; the next minor version is not promised."""
    low, high = bounds(text)
    major, minor = max(minors(package))
    assert number(low)[:2] == min(minors(package))
    assert number(high)[:2] == (major, minor + 1)


@pytest.mark.parametrize("package", ["scipy", "matplotlib"])
def test_the_oldest_of_the_others_was_installed(package):
    assert number(bounds(RANGES[package])[0])[:2] == min(minors(package))


def test_each_python_has_its_oldest_and_its_newest():
    pythons = {
        f"Programming Language :: Python :: {versions['python']}" for versions in SETS.values()
    }
    assert pythons == {c for c in PROJECT["classifiers"] if " :: 3." in c}
    for text in pythons:
        name = text.rpartition(" ")[2].replace(".", "")
        assert {f"oldest-{name}", f"newest-{name}"} <= SETS.keys()


def test_the_tests_of_a_set_exist():
    """The noxfile names tests; the module itself needs nox."""
    source = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    listed = re.search(r"for name in \((.*?)\n\s*\)", source, re.S)[1]
    names = re.findall(r'"([\w./:]+)"', listed)
    assert len(names) > 5
    for name in names:
        file, _, function = name.partition("::")
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"def {function}(" in text if function else "def test_" in text
