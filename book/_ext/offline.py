"""Sphinx extension: pages that need nothing from another machine, and no broken script.

Formulas are drawn by one file of MathJax 3, copied from the PyPI package
`sphinx-mathjax-offline` into the site; the package's own extension would copy 24 MB.
"""

import shutil
from importlib.resources import files
from pathlib import Path


def copy_mathjax(app):
    """Put MathJax where `mathjax_path` in `_config.yml` looks for it."""
    if app.builder.format == "html":
        source = files("sphinx-mathjax-offline") / "static/mathjax/tex-svg.js"
        target = Path(app.outdir) / "_static/mathjax/tex-svg.js"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def drop_thebe(app, pagename, templatename, context, doctree):
    """Drop the scripts of thebe, which Jupyter Book adds twice (an error in browsers).

    The book does not use it: it runs cells on a server of somebody else.
    """
    context["script_files"] = [
        script for script in context["script_files"] if "thebe" not in str(script)
    ]


def setup(app):
    app.connect("builder-inited", copy_mathjax)
    app.connect("html-page-context", drop_thebe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
