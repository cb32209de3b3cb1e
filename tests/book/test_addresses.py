"""Where the package lives is said by pyproject.toml, and nowhere otherwise."""

import json
import os
import re
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOME = PROJECT["urls"]["Repository"].removeprefix("https://github.com/")  # owner/name
OWNER, NAME = HOME.split("/")
# What comes before owner/name, or names the owner, in each address of ours.
ADDRESS = re.compile(
    rf"(?:github\.com[/:]|/github/|/gh/|codespaces\.new/|raw\.githubusercontent\.com/)"
    rf"([\w.-]+/{NAME})\b|([\w-]+)\.github\.io/{NAME}\b"
)
ELSEWHERE = {"pyproject.toml", "_config.yml", "CITATION.cff", "README.md"}
ELSEWHERE |= {"book/how_to_read.md", "book/results.md", "book/method.md", "book/classroom.md"}
ELSEWHERE |= {  # their first cells, which book/make_setup.py writes
    path.relative_to(ROOT).as_posix()
    for pattern in ("notebooks/*.ipynb", "notebooks/recipes/*.ipynb")
    for path in ROOT.glob(pattern)
}
SUFFIXES = {".py", ".md", ".toml", ".yml", ".yaml", ".cff", ".json", ".txt", ".ipynb", ".js"}
SKIP = {".git", ".venv", ".nox", "_build", "build", "dist", "golden", "envs", "corpus"}


def texts():
    """path from the root -> text, of what is written by hand."""
    for folder, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in SKIP]
        for path in (Path(folder, name) for name in names):
            if path.suffix in SUFFIXES:
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def addresses(text):
    """The owner/name of every address of ours in a text."""
    return [home or f"{owner}/{NAME}" for home, owner in ADDRESS.findall(unquote(text))]


def test_every_address_is_that_of_pyproject():
    actual = {name: set(homes) for name, text in texts() if (homes := addresses(text))}
    assert {name: homes for name, homes in actual.items() if homes != {HOME}} == {}
    assert set(actual) == ELSEWHERE, "another file names where the package lives"


@pytest.mark.parametrize(
    "planted",
    [
        f"git clone https://github.com/other/{NAME}",
        f"git@github.com:other/{NAME}.git",
        f"https://colab.research.google.com/github/other/{NAME}/blob/main/x.ipynb",
        f"https://mybinder.org/v2/gh/other/{NAME}/main",
        f"https://codespaces.new/other/{NAME}",
        f"https://other.github.io/{NAME}/",
        f"?repo=https%3A%2F%2Fgithub.com%2Fother%2F{NAME}&branch=main",
    ],
)
def test_a_planted_address_is_found(planted):
    assert addresses(planted) == [f"other/{NAME}"]


def test_files_that_are_opened_by_launch_buttons_exist():
    pages = ROOT / "README.md", ROOT / "book/classroom.md"
    text = "".join(path.read_text(encoding="utf-8") for path in pages)
    links = [link for link in re.findall(r"\]\((https://[^)]+)\)", text) if addresses(link)]
    links = [link for link in links if urlparse(link).hostname != "github.com"]
    hosts = {urlparse(link).hostname for link in links}
    expected = "colab.research.google.com mybinder.org codespaces.new hub.example.org"
    assert hosts == set(expected.split())
    opened = {path for link in links for path in re.findall(r"notebooks/\w+\.ipynb", unquote(link))}
    assert len(opened) == 1 and (ROOT / opened.pop()).exists()
    (puller,) = [parse_qs(urlparse(link).query) for link in links if "git-pull" in link]
    assert puller["repo"] == [PROJECT["urls"]["Repository"]]
    assert puller["urlpath"][0].startswith(f"lab/tree/{NAME}/notebooks/")


# -- other files that name the project --------------------------------------------------
def test_the_citation_is_of_this_version():
    """The fields that its schema, version 1.2.0, asks for, and no other."""
    actual = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert actual["cff-version"] == "1.2.0" and actual["type"] == "software"
    assert {"authors", "cff-version", "message", "title"} <= set(actual)
    allowed = "authors cff-version keywords license message repository-code title type version"
    assert set(actual) <= set(allowed.split())
    assert actual["authors"] == PROJECT["authors"] and actual["license"] == PROJECT["license"]
    assert actual["version"] == PROJECT["version"]
    assert actual["repository-code"] == PROJECT["urls"]["Repository"]


def test_the_changes_begin_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", text, re.MULTILINE)[1] == PROJECT["version"]


def test_codespaces_and_binder_install_what_there_is():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert container["image"].startswith("mcr.microsoft.com/devcontainers/python:3.12")
    assert container["postCreateCommand"].endswith("-r requirements.txt -e .")
    lines = (ROOT / "binder/requirements.txt").read_text(encoding="utf-8").splitlines()
    (expected,) = [line for line in lines if not line.startswith("#")]
    assert expected[2:-1] in PROJECT["optional-dependencies"] and expected == ".[book]"
    assert (ROOT / "binder/runtime.txt").read_text(encoding="utf-8") == "python-3.12\n"
    assert "minihybrid --demo" in (ROOT / "binder/postBuild").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["fault", "chapter"])
def test_a_form_for_issues_has_fields_of_its_own(form):
    path = ROOT / f".github/ISSUE_TEMPLATE/{form}.yml"
    actual = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(actual)
    assert [part["type"] in ("input", "textarea") for part in actual["body"]] == [True] * len(
        actual["body"]
    )
    ids = [part["id"] for part in actual["body"]]
    assert len(ids) == len(set(ids)) > 1
    assert all(part["attributes"]["label"] for part in actual["body"])
