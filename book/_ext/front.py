"""Sphinx extension: the front page, which draws, reads and compares.

Takes:   book/front, which `book/make_front.py` writes: an exported network, and a record
         of its accuracy and times; book/index.md, which is shown below the first screen.
Gives:   the page, in a template of its own, and the network in the form that a browser runs.

Every number on the page comes from the record, or is counted while the book is built.
"""

import json
import re
from pathlib import Path

import landing

FRONT = Path(__file__).resolve().parents[1] / "front"
PAGE = "book/index"


def export_net(app):
    """Put the network into the site, as a module that a page imports."""
    if app.builder.format != "html":
        return
    from minihybrid import nd

    folder = Path(app.outdir) / "_static/net"
    folder.mkdir(parents=True, exist_ok=True)
    net = looked_into()
    net.hybridize(backend="numpy")
    net(nd.zeros((1, 64)))
    net.export(str(folder / "digits"), format="wasm")


def looked_into():
    """The network, with the result of each of its operators as an output."""
    from minihybrid import gluon, sym

    graph, params = (str(FRONT / name) for name in ("digits-symbol.json", "digits-0000.params"))
    every = sym.load(graph).get_internals()
    results = [n for n in every.list_outputs() if n.endswith("_output")]
    net = gluon.SymbolBlock(sym.Group([every[n] for n in results]), [sym.var("data")])
    net.load_parameters(params)
    return net


def facts():
    """What the first screen says, as text."""
    record = json.loads((FRONT / "record.json").read_text(encoding="utf-8"))
    eager, hybrid = record["eager_us"], record["hybrid_us"]
    _, first, *_ = landing.chapters()["tour"]
    arithmetic = sum(layer["us"] - layer["overhead_us"] for layer in record["layers"])
    return {
        "eager": f"{eager:.0f}",
        "hybrid": f"{hybrid:.1f}",
        "ratio": f"{eager / hybrid:.0f}",
        "part": f"{hybrid / eager:.1%}",
        "overhead": f"{1 - arithmetic / eager:.0%}",
        "n_kernels": str(record["n_kernels"]),
        "machine": f"{record['machine']['cpu']}, {record['machine']['date']}",
        "first": first[0].lower() + first[1:],
        "record": json.dumps(record),
        "samples": (FRONT / "samples.json").read_text(encoding="utf-8"),
    }


def choose(app, pagename, templatename, context, doctree):
    """The front page has a template of its own; its title is in the first screen."""
    if pagename != PAGE:
        return None
    body = re.sub(r"<h1>.*?</h1>", "", context["body"], count=1, flags=re.DOTALL)
    context["front"] = {**facts(), "body": body}
    return "front.html"


def setup(app):
    app.connect("builder-inited", export_net)
    app.connect("html-page-context", choose)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
