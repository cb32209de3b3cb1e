"""A chapter's button, and the notebook that it opens: they belong to the same list."""

import hashlib
import json
import marshal
import zipfile

import add_bytecode
import make_lite
import pytest
import run_here
from IPython.core.inputtransformer2 import TransformerManager
from run_notebooks import ROOT

STEMS = [path.stem for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]


def test_the_list_names_chapters_and_known_libraries():
    assert set(run_here.CHAPTERS) < set(STEMS) and len(run_here.CHAPTERS) == 23
    for chapter in run_here.CHAPTERS.values():
        assert set(chapter["libraries"]) <= set(run_here.MORE)
        assert set(chapter) <= {"libraries", "slow"}


@pytest.mark.parametrize("stem", STEMS)
def test_a_notebook_brings_the_engine_and_is_else_the_same(stem):
    text = (ROOT / f"notebooks/{stem}.ipynb").read_text(encoding="utf-8")
    old, new = (json.loads(t)["cells"] for t in (text, make_lite.in_page(text, stem)))
    changed = [b for a, b in zip(old, new, strict=True) if a["source"] != b["source"]]
    setup, *others = [cell for cell in changed if cell["cell_type"] == "code"]
    texts = ["".join(c["source"]) for c in new if c["cell_type"] == "markdown"]
    assert others == [] and "{download}" not in str(texts) and "{term}" not in str(texts)
    source = "".join(setup["source"])
    compile(TransformerManager().transform_cell(source).replace("await ", ""), stem, "exec")
    assert "%pip" not in source and 'piplite.install("minihybrid", deps=False)' in source
    for library in run_here.CHAPTERS.get(stem, {}).get("libraries", []):
        assert repr(library) in source


def test_roles_leave_their_text():
    text = "open the {download}`notebook with\ngaps <build/04.ipynb>`: its {term}`latency` is `low`"
    assert make_lite.ROLE.sub(r"\1", text) == "open the notebook with\ngaps: its latency is `low`"


def test_figures_show_before_their_cells_run():
    text = (ROOT / "notebooks/21_the_memory_planner.ipynb").read_text(encoding="utf-8")
    cells = json.loads(make_lite.in_page(text, "21_the_memory_planner"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["metadata"]["trusted"] for cell in code)
    outputs = [output for cell in code for output in cell["outputs"]]
    data = [output.get("data", {"text": output.get("text")}) for output in outputs]
    assert any("text" in values for values in data)
    assert all(isinstance(value, str) for values in data for value in values.values())


def test_an_assignment_installs_the_engine_in_the_page_only():
    source = "if not found:\n    %pip install -q minihybrid\nimport os"
    text = json.dumps({"cells": [{"id": "setup", "cell_type": "code", "source": [source]}]})
    (cell,) = json.loads(make_lite.assignment(text))["cells"]
    first, *brings, last = "".join(cell["source"]).splitlines()
    assert (first, last) == ("if not found:", "import os")
    assert "    import piplite" in brings
    assert {line[:4] for line in brings if line} == {"    "}


@pytest.mark.parametrize(
    "name", ["library-1.0-py3-none-any.whl", "minihybrid-1.0-py3-none-any.whl"]
)
def test_bytecode_replaces_the_sources_of_all_but_the_engine(name, tmp_path):
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("right.py", "answer = 6 * 7")
        archive.writestr("wrong.py", "answer =")
        archive.writestr("data.txt", "42")
    add_bytecode.add_bytecode(path)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    assert (tmp_path / "right.py").exists() == name.startswith("minihybrid")
    assert (tmp_path / "wrong.py").exists() and (tmp_path / "data.txt").read_text() == "42"
    (bytecode,) = tmp_path.rglob("*.pyc")
    answer = {}
    exec(marshal.loads(bytecode.read_bytes()[16:]), answer)  # behind the header
    assert answer["answer"] == 42


def test_an_added_wheel_belongs_to_the_distribution(tmp_path):
    """Its list, where the kernel's names are found; else micropip would install it."""
    pyodide = tmp_path / "pyodide"
    pyodide.mkdir()
    (pyodide / "pyodide-lock.json").write_text('{"packages": {}}', encoding="utf-8")
    wheel = tmp_path / "pyodide_kernel-0.6.1-py3-none-any.whl"
    wheel.write_bytes(b"modules")
    assert not make_lite.has(pyodide, "pyodide_kernel")
    make_lite.add(pyodide, wheel)
    assert make_lite.has(pyodide, "pyodide_kernel")
    (entry,) = make_lite.entries(make_lite.lock_of(pyodide), ["pyodide_kernel"]).values()
    assert (entry["version"], entry["file_name"]) == ("0.6.1", wheel.name)
    assert entry["sha256"] == hashlib.sha256(b"modules").hexdigest()


def test_jedi_has_no_stubs_of_other_libraries(tmp_path):
    path = tmp_path / "jedi-1.0-py3-none-any.whl"
    stubs = "jedi/third_party/"
    kept = [f"{stubs}typeshed/stdlib/{name}/os.pyi" for name in ("3", "2and3")]
    dropped = [f"{stubs}typeshed/stdlib/2/os.pyi", f"{stubs}django-stubs/apps.pyi"]
    dropped.append(f"{stubs}typeshed/third_party/2and3/yaml.pyi")
    with zipfile.ZipFile(path, "w") as archive:
        for name in [*kept, *dropped]:
            archive.writestr(name, "")
    add_bytecode.add_bytecode(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == kept


class App:
    """What the extension asks of Sphinx."""

    class env:
        @staticmethod
        def doc2path(docname):
            return f"{docname}.ipynb"


def page(stem):
    """The first cell of a chapter as the extension leaves it."""
    source = [(ROOT / f"notebooks/{stem}.ipynb").read_text(encoding="utf-8")]
    run_here.add_button(App, f"notebooks/{stem}", source)
    return "".join(json.loads(source[0])["cells"][0]["source"])


def test_a_button_stands_where_the_chapter_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(run_here, "LITE", tmp_path)
    with_button = [stem for stem in STEMS if 'class="in-page"' in page(stem)]
    assert with_button == sorted(run_here.CHAPTERS)
    title, button, *_ = page("07_training").split("\n\n")
    assert title.startswith("# ") and "\n" not in button
    assert "about 73 MB" in button and "some minutes" in button
    assert 'data-address="../_static/lite/notebooks/index.html?path=07_training.ipynb"' in button


def test_without_jupyterlite_there_is_no_button(tmp_path, monkeypatch):
    monkeypatch.setattr(run_here, "LITE", tmp_path / "nothing")
    assert not any("in-page" in page(stem) for stem in STEMS)
