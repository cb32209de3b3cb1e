"""The chapters draw what they talk about, and say it to those who cannot see it."""

import re
import xml.etree.ElementTree as ET

import nbformat
import pytest
from run_notebooks import ROOT

SVG = re.compile(r"<svg .*?</svg>", re.DOTALL)
NAME = "{http://www.w3.org/2000/svg}"


def drawn():
    """(chapter, cell) of every figure."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code" and "figures." in cell.source:
                yield path.name, cell


DRAWN = list(drawn())


def test_there_are_at_least_fifteen():
    names = {name for _, cell in DRAWN for name in re.findall(r"figures\.(\w+)\(", cell.source)}
    assert len(names) >= 15
    assert len({chapter for chapter, _ in DRAWN}) >= 10


@pytest.mark.parametrize(
    ("chapter", "cell"), DRAWN, ids=[f"{chapter[:2]}-{cell.id}" for chapter, cell in DRAWN]
)
def test_each_has_words_and_folds_its_code(chapter, cell):
    assert "hide-input" in cell.metadata["tags"]
    (output,) = cell.outputs
    pictures = SVG.findall(output.data["text/html"])
    for picture in map(ET.fromstring, pictures):
        title, description = (picture.find(f"{NAME}{tag}").text for tag in ("title", "desc"))
        assert f"{title}: {description}" in output.data["text/plain"]
    assert pictures
