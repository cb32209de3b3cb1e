"""Write the book's page on what others published, from the table and what was found.

python -m beside.ports_page     # in the folder tests/: writes book/mxnet_ports.md
"""

from pathlib import Path
from urllib.parse import quote

from beside.ports import AGREES, SHAKES, read_results, read_table

PAGE = Path(__file__).parents[2] / "book" / "mxnet_ports.md"

HEAD = """\
# Programs and models of others

We ran published MXNet programs and graphs here and in MXNet 1.9.1, each in its own process, with
the same random numbers and the same data. We changed only the import and made the edits listed
below. (For edits of a single program, see `tests/beside/ports.toml`.)

{programs}

{graphs}

For a program, we compare its printed output, every array that it converts to NumPy, and its final
parameters. For a graph, we compare its outputs and the shapes of its inputs and parameters. The
reported difference is the largest one, relative to the largest element of its array (or, for
programs, to 1 if that's more). Words must be the same, and differences at most {agrees:g}. MXNet's
own fusion (oneDNN's subgraphs) is switched off, because it changes the results of three networks.
Nothing is downloaded: the data sets are small ones in the published formats. The sources aren't
included. `python -m beside.ports CLONES`, in the folder `tests`, reads them from your clones.

Int8 graphs contain oneDNN's layers. Each layer also runs alone, on the inputs that MXNet computed
for it, and we compare its integers. They may differ by one step: 1, or for sums in int32, the
amount that's scaled to 1 in int8. MXNet ran on a processor without VNNI.

If a program differs, MXNet ran it {shakes} more times, with its random numbers and the results of
its layers perturbed by a single-precision rounding. Next to the difference, the table then shows
MXNet's largest distance from itself.

The counts describe this table, not all programs. We left out others that we tried. Most of them
need libraries or data that weren't available, and also stop in MXNet. MXNet does run
`bayes-by-backprop-gluon` from the Straight Dope, which reads a parameter's private `_data`.
"""

OUTCOMES = {
    "agrees": "agrees",
    "differs": "differs",
    "prints other words": "prints different words",
    "fails": "doesn't run here",
    "runs here alone": "runs here, but not in MXNet",
    "mxnet fails": "runs in neither",
    "compares nothing": "compares nothing",
}


def sentence(kind):
    """How many of a kind run and agree, and the largest difference."""
    ports, results = [p for p in read_table()[0] if p.kind == kind], read_results()
    good = [results[p.name] for p in ports if results[p.name]["outcome"] == "agrees"]
    worst = max(verdict["difference"] for verdict in good)
    what = {"program": "programs", "graph": "graphs"}[kind]
    text = (
        f"{len(good)} of {len(ports)} published {what} run here and agree with MXNet 1.9.1 "
        f"to within {worst:.1e}."
    )
    layered = [results[p.name] for p in ports if p.layers]
    if others := [verdict for verdict in layered if verdict["outcome"] == "differs"]:
        text += (
            f" Another {len(others)} run in int8: {share(others)} of the integers in their layers "
            "are MXNet's, give or take one."
        )
    return text


def share(verdicts):
    """Of the integers of int8 layers, those that differ by one step at most, in percent."""
    beyond, integers = (sum(v[key] for v in verdicts) for key in ("beyond", "integers"))
    return f"{100 - 100 * beyond / integers:.1f}%"


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
        for source in dict.fromkeys((p.repository, p.license) for p in chosen):
            parts += [
                "\n### {} ({})\n".format(*source),
                f"| {kind} | {given} | outcome |",
                "|---|---|---|",
            ]
            here = [p for p in chosen if (p.repository, p.license) == source]
            parts += [row(p, results[p.name], shared) for p in here]
        why = [p for p in ports if p.kind == kind and (p.reason or p.note)]
        parts += [f"\n### Notes on {title.lower()}\n"]
        parts += [f"- {p.name}: {' '.join(filter(None, (p.reason, p.note)))}" for p in why]
    return "\n".join(parts) + "\n"


def row(port, verdict, shared):
    """A line of the table."""
    address = f"https://github.com/{port.repository}/blob/{port.commit}/{quote(port.path)}"
    outcome = OUTCOMES[verdict["outcome"]]
    if verdict["difference"] is not None:
        outcome += f": {verdict['compared']:,} values, to {verdict['difference']:.1e}"
    if "layers" in verdict:
        outcome += (
            f"; {verdict['layers']} int8 layers: {share([verdict])} of {verdict['integers']:,} "
            f"integers to within 1 step, all to within {verdict['steps']:.0f}"
        )
    if "itself" in verdict:
        itself = verdict["itself"]
        outcome += ", MXNet from itself: " + ("infinities" if itself is None else f"{itself:.1e}")
    cells = [
        f"[{port.name}]({address})",
        edits_of(port, shared) if port.kind == "program" else parameters_of(port),
        outcome,
    ]
    return f"| {' | '.join(cells)} |"


def edits_of(port, shared):
    """The edits in words. Edits of a single program are counted."""
    named = [edit for edit in port.edits if isinstance(edit, str)]
    words, own = [*dict.fromkeys(shared[e]["why"] for e in named)], len(port.edits) - len(named)
    words += [f"{own} of its own"] if own else []
    words += ["small data"] if port.data else []
    return ", ".join(words) or "the import only"


def parameters_of(port):
    return "as published" if port.parameters else "random"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
