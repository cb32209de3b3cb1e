"""Notebooks need the package only: data come with it, and what is missing is said."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from minihybrid_course import needs
from run_notebooks import ROOT

import minihybrid as mx

COPIES = sorted((mx.datasets.FOLDER / "onnx").iterdir())


def test_networks_of_the_chapter_are_those_of_the_tests():
    assert len(COPIES) == 4
    for path in COPIES:
        assert path.read_bytes() == (ROOT / "tests/golden/onnx" / path.name).read_bytes()
        assert mx.datasets.stored(f"onnx/{path.name}") == path


def test_no_notebook_reads_beside_itself():
    """What a chapter opens comes with the package, or was written by the chapter."""
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert len(notebooks) > 20
    for path in notebooks:
        text = path.read_text(encoding="utf-8")
        assert 'Path(\\"../' not in text and 'open(\\"../' not in text, path.name


@pytest.fixture
def shell():
    shell = InteractiveShell()
    needs.load_ipython_extension(shell)
    yield shell
    shell.history_manager.end_session()


def test_a_cell_whose_library_is_missing_is_left_out(shell, capsys):
    shell.run_cell("#@needs json nothing_such none_such\nfound = 1").raise_error()
    assert "found" not in shell.user_ns
    assert capsys.readouterr().out == (
        "this cell is left out, because nothing_such and none_such are not installed: "
        "`pip install nothing_such none_such`\n"
    )


def test_a_cell_whose_library_is_there_runs(shell, capsys):
    shell.run_cell("#@needs json\nfound = 1").raise_error()
    shell.run_cell("").raise_error()
    assert shell.user_ns["found"] == 1 and capsys.readouterr().out == ""
