"""Write the book's page on what others published, from the table and what was found.

python -m beside.ports_page     # in the folder tests/: writes book/mxnet_ports.md
"""

from pathlib import Path
from urllib.parse import quote

from beside.ports import AGREES, SHAKES, read_results, read_table

PAGE = Path(__file__).parents[2] / "book" / "mxnet_ports.md"

HEAD = """\
# Programs and models of others

Programs and graphs that others published for MXNet ran here and in MXNet 1.9.1, in processes
of their own: the same texts but for the import and the edits that are named below (those of
a single program stand in `tests/beside/ports.toml`), the same random numbers, the same
data. {programs}

{graphs}

Compared is what a program prints, every array that it takes out of the engine, and its
parameters at the end; of a graph, its outputs and the shapes of all that it reads. The
difference is the largest of all: as a share of the largest number of its array, and for
programs of 1 where that is more. Words must be the same, and differences at most {agrees:g}.
MXNet's own fusion of operators (oneDNN's subgraphs) is switched off, for it changes what
three nets answer.
Data sets are small ones made for this, in the published formats, because nothing is downloaded.
Nobody's text is kept here: `python -m beside.ports CLONES`, in the folder `tests`, takes them
from clones that you have.

Where a program differs, MXNet ran it again with its random numbers, and what its layers answer,
moved by a rounding of single precision, {shakes} times: how far it is then from itself, at most,
stands beside the difference.

The counts are those of this table, not a share of all programs. Others were tried and left
out: most of them want libraries or data that were not at hand, and stop in MXNet, too. One
that MXNet runs, `bayes-by-backprop-gluon` of the Straight Dope, reads a parameter's `_data`,
an inside that is not here.
"""

OUTCOMES = {
    "agrees": "agrees",
    "differs": "differs",
    "prints other words": "prints other words",
    "fails": "does not run here",
    "runs here alone": "runs here, not in MXNet",
    "mxnet fails": "runs in neither",
    "compares nothing": "compares nothing",
}


def sentence(kind):
    """How many of a kind run and agree, and to what difference."""
    ports, results = [p for p in read_table()[0] if p.kind == kind], read_results()
    good = [results[p.name] for p in ports if results[p.name]["outcome"] == "agrees"]
    worst = max(found["difference"] for found in good)
    what = {"program": "programs", "graph": "graphs"}[kind]
    return (
        f"{len(good)} of {len(ports)} published {what} run here and agree with MXNet 1.9.1 "
        f"to within {worst:.1e}."
    )


def page():
    """The text of the page."""
    ports, shared = read_table()
    results = read_results()
    parts = [
        HEAD.format(
            programs=sentence("program"), graphs=sentence("graph"), agrees=AGREES, shakes=SHAKES
        )
    ]
    for kind, title in (("program", "Programs"), ("graph", "Graphs")):
        given = "edited" if kind == "program" else "parameters"
        parts += [f"\n## {title}\n"]
        chosen = [p for p in ports if p.kind == kind]
        for source in dict.fromkeys((p.repository, p.licence) for p in chosen):
            parts += [
                "\n### {} ({})\n".format(*source),
                f"| {kind} | {given} | outcome |",
                "|---|---|---|",
            ]
            here = [p for p in chosen if (p.repository, p.licence) == source]
            parts += [row(p, results[p.name], shared) for p in here]
        why = [p for p in ports if p.kind == kind and (p.reason or p.note)]
        parts += [f"\n### What is to be said of some {title.lower()}\n"]
        parts += [f"- {p.name}: {' '.join(filter(None, (p.reason, p.note)))}" for p in why]
    return "\n".join(parts) + "\n"


def row(port, found, shared):
    """A line of the table."""
    address = f"https://github.com/{port.repository}/blob/{port.commit}/{quote(port.path)}"
    outcome = OUTCOMES[found["outcome"]]
    if found["difference"] is not None:
        outcome += f": {found['compared']:,} numbers, to {found['difference']:.1e}"
    if "itself" in found:
        itself = found["itself"]
        outcome += "; MXNet from itself: " + ("infinities" if itself is None else f"{itself:.1e}")
    cells = [
        f"[{port.name}]({address})",
        edits_of(port, shared) if port.kind == "program" else parameters_of(port),
        outcome,
    ]
    return f"| {' | '.join(cells)} |"


def edits_of(port, shared):
    """What was edited, in words; edits of a program alone are counted."""
    named = [edit for edit in port.edits if isinstance(edit, str)]
    words, own = [*dict.fromkeys(shared[e]["why"] for e in named)], len(port.edits) - len(named)
    words += [f"{own} of its own"] if own else []
    words += ["small data"] if port.data else []
    return "; ".join(words) or "the import only"


def parameters_of(port):
    return "as published" if port.parameters else "random"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
