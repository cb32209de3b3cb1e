"""Sphinx extension: a button below a chapter's title, which runs the chapter in the page.

The chapters are those of `book/in_page.toml`; JupyterLite runs them, which `make lite`
puts into `_build/lite`. Without that folder there is no button. Nothing is loaded before
the reader presses it (`_static/in_page.js`), and without scripts there is none.
"""

import json
import shutil
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LITE = ROOT / "_build/lite"
CHAPTERS = tomllib.loads((ROOT / "book/in_page.toml").read_text(encoding="utf-8"))
# Megabytes that a browser loads: Python with JupyterLite's pages and NumPy, and libraries.
BASE = 40
MORE = {"matplotlib": 12, "scipy": 21, "tqdm": 0}


def button(stem):
    """The HTML of a chapter's button, in one line: Markdown takes it as it stands."""
    chapter = CHAPTERS[stem]
    size = BASE + sum(MORE[name] for name in chapter["libraries"])
    slow = f" {chapter['slow']}" if "slow" in chapter else ""
    address = f"../_static/lite/notebooks/index.html?path={stem}.ipynb"
    return (
        f'<div class="in-page" hidden data-address="{address}" data-bytes="{size}000000">'
        '<p><button type="button">Run and edit this chapter here</button> '
        f"Your browser then loads Python and this notebook, about {size} MB, and keeps them; "
        f"nothing is loaded before. NumPy computes what compiled kernels would.{slow}</p></div>"
    )


def add_button(app, docname, source):
    """Put the button below the title, while the page is made."""
    stem = Path(docname).name
    if LITE.exists() and stem in CHAPTERS and app.env.doc2path(docname).endswith(".ipynb"):
        notebook = json.loads(source[0])
        cell = notebook["cells"][0]
        title, _, text = "".join(cell["source"]).partition("\n\n")
        cell["source"] = f"{title}\n\n{button(stem)}\n\n{text}"
        source[0] = json.dumps(notebook)


def copy_lite(app, exception):
    """JupyterLite becomes part of the site."""
    if LITE.exists() and app.builder.format == "html" and not exception:
        target = Path(app.outdir) / "_static/lite"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(LITE, target)


def setup(app):
    app.connect("source-read", add_button)
    app.connect("build-finished", copy_lite)
    app.add_js_file("in_page.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
