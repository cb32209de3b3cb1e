"""Python in the page: Pyodide's core boots in Chromium, JupyterLite's kernel runs cells.

NumPy for Pyodide is in no package registry, so here it is missing, and that is said.
"""

import shutil
import subprocess

import envs
import make_lite
import pyodide_core
import pytest
import run_here
from conftest import Visit, serve

pytestmark = pytest.mark.external

NO_NUMPY = "minihybrid computes with NumPy, which is not installed here: say `python -m pip install"
STARTED = 600_000  # ms: Pyodide and the kernel's libraries, on a busy machine

BARE = """<!doctype html><title>Pyodide</title><script type="module">
    import { loadPyodide } from "./pyodide/pyodide.mjs";
    const pyodide = await loadPyodide();
    const wheel = await (await fetch("WHEEL")).arrayBuffer();
    pyodide.unpackArchive(wheel, "wheel");
    document.title = pyodide.runPython(`
import sys
try:
    import minihybrid
    told = "imported"
except ImportError as error:
    told = str(error)
f"{sys.platform}: {told}"`);
</script>"""


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory):
    """The folder of Pyodide."""
    folder = tmp_path_factory.mktemp("in_page") / "pyodide"
    try:
        pyodide_core.bring(folder)
    except envs.NotAvailable as reason:
        pytest.skip(f"Pyodide: {reason}")
    return folder


@pytest.fixture(scope="module")
def site(pyodide):
    """A site with JupyterLite and a chapter's button, which knows no other host."""
    folder = pyodide.parent / "site"
    lite = folder / "_static/lite"
    try:
        python = envs.python_of("lite")
    except envs.NotAvailable as reason:
        pytest.skip(f"JupyterLite: {reason}")
    subprocess.run([python, make_lite.__file__, pyodide, lite], check=True)
    shutil.copy(make_lite.ROOT / "book/_static/in_page.js", folder)
    (folder / "notebooks").mkdir()
    (folder / "notebooks/01_two_ways.html").write_text(
        "<!doctype html><title>01</title><link rel=icon href=data:,>"
        f"<article><h1>Two ways</h1>{run_here.button('01_two_ways')}</article>"
        '<script src="../in_page.js"></script>',
        encoding="utf-8",
    )
    return folder


@pytest.fixture
def notebook(browser, site):
    """(What was opened, the chapter's notebook in its frame, its first code cell)."""
    with serve(site) as address, Visit(browser, address + "notebooks/01_two_ways.html") as opened:
        requests = []
        opened.page.on("request", lambda request: requests.append(request.url))
        opened.page.wait_for_timeout(1000)
        assert requests == []  # nothing is loaded before the reader asks
        opened.page.get_by_role("button", name="Run and edit this chapter here").click()
        frame = opened.page.frame_locator("iframe")
        frame.locator(".jp-KernelStatus-success").wait_for(state="attached", timeout=STARTED)
        yield opened, frame, frame.locator(".jp-CodeCell").first
        assert len(requests) > 100
        assert [text for text in opened.problems if "left this machine" in text] == []


def answer(opened, cell, source=None):
    """What a cell prints when it runs, with a text of the reader's or as it is."""
    number = cell.locator(".jp-InputPrompt")
    before = number.inner_text()
    cell.locator(".cm-content").click()
    if source:
        opened.page.keyboard.press("Control+A")
        opened.page.keyboard.insert_text(source)
    opened.page.keyboard.press("Control+Enter")
    for _ in range(6000):
        if number.inner_text() not in (before, "[*]:"):
            break
        opened.page.wait_for_timeout(100)
    return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts())


def test_the_core_boots_and_says_that_numpy_is_missing(browser, site, pyodide):
    (wheel,) = (site / "_static/lite/pypi").glob("minihybrid-*.whl")
    shutil.copy(wheel, pyodide.parent)
    page = pyodide.parent / "index.html"
    page.write_text(BARE.replace("WHEEL", wheel.name), encoding="utf-8")
    with serve(pyodide.parent) as address, Visit(browser, address) as opened:
        opened.page.wait_for_function("document.title != 'Pyodide'", timeout=STARTED)
        assert opened.page.title().startswith(f"emscripten: {NO_NUMPY}")
        assert [text for text in opened.problems if "favicon" not in text] == []


def test_cells_run_in_the_page(notebook):
    """A chapter's first cell asks for NumPy; what needs none runs."""
    opened, _, cell = notebook
    text = answer(opened, cell)
    assert "ImportError: numpy could not be loaded: Pyodide's libraries need the" in text
    assert answer(opened, cell, "1 + 1") == "2"
    install = "import piplite\nawait piplite.install('minihybrid', deps=False)\n"
    assert NO_NUMPY in answer(opened, cell, install + "import minihybrid")
