"""Sphinx extension: pages that need nothing from another machine, and no script twice.

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


def drop_repeated_scripts(app, pagename, templatename, context, doctree):
    """Keep each script once: sphinx-thebe adds its own twice, an error in browsers."""
    unique = {}
    for script in context.get("script_files", []):
        attributes = getattr(script, "attributes", {})
        unique.setdefault((str(script), str(sorted(attributes.items()))), script)
    context["script_files"] = list(unique.values())


def setup(app):
    app.connect("builder-inited", copy_mathjax)
    app.connect("html-page-context", drop_repeated_scripts, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
