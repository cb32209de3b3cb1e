"""Sphinx extension: on its page, chapter 35's language model continues the reader's text.

Takes:   the chapter's cells with the network, and the weights that come with the package.
Gives:   the network with its cache, in WebAssembly, and the letters that it knows.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

PAGE = "notebooks/35_a_language_model"


def export_net(app):
    """Put the network into the site, as a module that a page imports."""
    if app.builder.format != "html":
        return
    import train_oz

    import minihybrid as mx

    folder = Path(app.outdir) / "_static/net"
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.redirect_stdout(io.StringIO()):  # what the cells print
        names = train_oz.cells()
    net = names["Transformer"](**train_oz.SHAPE)
    net.load_parameters(str(mx.datasets.stored("oz.params")), cast_dtype=True)
    net.hybridize(backend="numpy")
    width, heads, depth = train_oz.SHAPE.values()
    slot = (1, heads, names["WINDOW"], width // heads)
    cache = [mx.nd.zeros(slot) for _ in range(2 * depth)]
    net(mx.nd.zeros((1, 5)), mx.nd.zeros((1, 1)), *cache)
    net.export(str(folder / "oz"), format="wasm")
    facts = {"letters": names["letters"], "slot": slot, "arrays": len(cache)}
    text = f"export default {json.dumps(facts)};\n"
    (folder / "oz_facts.mjs").write_text(text, encoding="utf-8")


def add_script(app, pagename, templatename, context, doctree):
    """Only the chapter's page loads the script."""
    if pagename == PAGE:
        source = context["pathto"]("_static/story.js", resource=True)
        context["body"] += f'<script type="module" src="{source}"></script>'


def setup(app):
    app.connect("builder-inited", export_net)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
