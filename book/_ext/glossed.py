"""Sphinx extension: a page's first use of a word leads to its meaning in the glossary.

Chapters are written plainly; what is a term is known from `book/glossary.md` alone. The
link tells the first sentence of the definition: in a box by mouse, and at the window's
lower edge when the link is reached by keyboard (`book.css`).
"""

import re
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

GLOSSARY = "book/glossary"
UNLINKED = (
    GLOSSARY,
    "book/index",
    "book/api",
    "book/references",
    "book/mxnet_differences",
    "book/mxnet_ports",
)  # lists
ROOT = Path(__file__).resolve().parents[2]
ENTRY = re.compile(r"^(?P<term>\S.*)\n  (?P<first>\S(?:.|\n  )*?[.!?])(?=\s|$)", re.MULTILINE)

# Terms with other forms than an added s, and terms with another meaning in everyday English:
# the words that must surround those. Words of older passages lead to the standard term.
FORMS = {
    "aliasing": "aliasing|aliases",
    "atomic write": "atomic(?! (?:operation|add|max))(?: writes?)?|atomically",
    "attribute": "(?:(?<=same )|(?<=and ))attributes?",
    "autograd": "autograd|automatic differentiation",
    "autotuning": "autotun(?:ing|ed?|er)",
    "basic block": "basic blocks?",
    "broadcasting": "broadcast(?:ing|s)?",
    "bucketing": "bucket(?:s|ing)",
    "buffer donation": "buffer donation|donat(?:es?|ed|ing|ion)",
    "cache key": "cache keys?|signatures?",
    "calibration": "calibrat(?:ion|e|es|ed|ing)",
    "constant folding": "constant folding|fold(?:s|ing)? constants",
    "core": "(?:(?<=each )|(?<=one ))core",
    "cubin": "cubins?",
    "data dependence": "(?:data )?dependences?|data dependenc(?:y|ies)",
    "decomposition": "decompos(?:ition|itions|e|es|ed|ing)",
    "deferred initialization": "deferred initiali[sz]ation",
    "device": "(?<=the )device|devices",
    "dispatch": "dispatch(?:es|ed|ing)?",
    "export": "export(?:s|ed|ing)?",
    "format": "(?:(?<=whole )|(?<=file )|(?<=common ))formats?",
    "fusion": "fus(?:ion|e[sd]?|ing)",
    "graph output": "graph outputs?|(?<=the )heads?",
    "hybridize": "hybridiz(?:e[sd]?|ing)",
    "initializer": "initiali[sz]ers?",
    "interference": "interference|interferes?(?= with)",
    "interpreter loop": "interpreter loops?|driver(?=, the loop| knows| calls)",
    "Jacobian": "Jacobians?",
    "JIT": "JIT|just in time",
    "latency": "latency|latencies",
    "launch": "(?<=one )launch",
    "live range": "live ranges?|lifetimes?",
    "lowering": "lowering|lowers|lowered",
    "magic number": "magic numbers?|(?:(?<= no )|(?<=with a ))mark",
    "mode": "(?:(?<=the )|(?<=training ))mode",
    "operator definition": (
        "operator definitions?|(?:(?<=the )|(?<=one )|(?<=operator's ))(?:record|definition)s?"
    ),
    "optimizer": "optimi[sz]ers?",
    "pass": "(?<= a )pass(?! over)|(?<=the )passes",
    "prefetch": "prefetch(?:es|ed|ing|er)?",
    "prefix": "prefix(?:es)?(?! sum)",
    "property": "property|(?<=tests )properties|laws?",
    "quantization": "quanti[sz](?:ation|e[sd]?|ing)",
    "race": "(?:(?<=find a )|(?<=are a ))race",
    "reassociation": "reassociat(?:ion|e|es|ed|ing)|sum in any order",
    "recompilation": "recompil(?:ation|ations|es?|ed|ing)|retrac(?:e[sd]?|ing)",
    "register": "(?:(?<=in a )|(?<=one )|(?<=in ))registers?",
    "rematerialization": "rematerializ(?:ation|e[sd]?|ing)",
    "roofline": "rooflines?|roof",
    "schedule": "schedul(?:es?|ing)",
    "sharding": "shard(?:s|ed|ing)?",
    "specialization": "specializ(?:ation|e[sd]?|ing)",
    "SSA": "SSA|static single assignment",
    "step": "(?:(?<=such )|(?<=every )|(?<=training ))step",
    "streaming multiprocessor": "streaming multiprocessors?|SMs?",
    "target": "(?:(?<=all )|(?<=The )|(?<=the ))targets?",
    "thread pool": "thread pools?",
    "topological order": "topological(?:ly)?(?: order| sort)?",
    "trace": "trac(?:e[sd]?|ing)",
    "vectorizer": "vectori[sz]ers?",
    "warp divergence": "warp divergence|diverg(?:ence|es?|ing)",
    "work queue": "work queues?",
}
# Terms that are meant only where they are emphasized or bold, as new words are.
EVERYDAY = "bank block grid guard launch property reference schedule use variable view".split()
CLOSED = (  # what is no running text, or leads somewhere already
    nodes.title,
    nodes.reference,
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.caption,
    nodes.term,
    addnodes.pending_xref,
)


def plain(text):
    """A definition as text: without the marks of Markdown."""
    text = re.sub(r"\{term\}`([^`<]*?)(?: <[^`>]*>)?`", r"\1", text)
    return " ".join(text.replace("`", "").split())


@cache
def meanings():
    """{term: the first sentence of its definition}, of the whole glossary."""
    source = (ROOT / f"{GLOSSARY}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\{glossary\}\n(.*?)```", source, re.DOTALL)
    return {m["term"]: plain(m["first"]) for b in blocks for m in ENTRY.finditer(b)}


@cache
def pattern(emphasized):
    """What finds terms in a text; the longer of two that begin alike."""
    terms = sorted(meanings(), key=len, reverse=True)
    usual = [form(t, FORMS.get(t, re.escape(t) + "s?")) for t in terms]
    if emphasized:  # then the word beside it, by which others are known, is not there
        usual = [f"{form(t, re.escape(t))}(?:s|es)?|{u}" for t, u in zip(terms, usual, strict=True)]
    number = {t: list(meanings()).index(t) for t in terms}
    forms = [
        f"(?P<_{number[t]}>{usage})"
        for t, usage in zip(terms, usual, strict=True)
        if emphasized or t not in EVERYDAY
    ]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(forms)})(?![\w-])")


def form(term, usage):
    """A form that may also begin a sentence."""
    capital = re.search(r"[a-z]", re.sub(r"\(\?.*?\)", lambda m: " " * len(m[0]), usage))
    if term[:2].isupper() or capital is None:
        return usage
    i = capital.start()
    return f"{usage[:i]}[{usage[i]}{usage[i].upper()}]{usage[i + 1 :]}"


def uses(text, known, emphasized=False):
    """(start, end, term) of the terms in a text that are not known yet; they are then."""
    finder = pattern(emphasized)
    for match in [finder.fullmatch(text.rstrip(".:"))] if emphasized else finder.finditer(text):
        if match and (term := list(meanings())[int(match.lastgroup[1:])]) not in known:
            known.add(term)
            yield *match.span(), term


def texts(document):
    """The pieces of running text of a page, in order, but for those that are folded."""
    depth = 0
    for node in document.findall(lambda n: isinstance(n, (nodes.raw, nodes.Text))):
        if isinstance(node, nodes.raw):
            depth += node.astext().count("<details") - node.astext().count("</details")
        elif not depth and not any(isinstance(n, CLOSED) for n in ancestors(node)):
            yield node


def ancestors(node):
    while node.parent is not None:
        node = node.parent
        yield node


def link_first_uses(app, document, page):
    """Let each term's first use on a page lead to the glossary."""
    if page.startswith(UNLINKED) or app.builder.format != "html":
        return
    known, to = set(), app.builder.get_relative_uri(page, GLOSSARY)
    for node in list(texts(document)):
        text, pieces, end = node.astext(), [], 0
        new = isinstance(node.parent, nodes.emphasis | nodes.strong)
        for start, stop, term in uses(text, known, new):
            link = nodes.reference("", text[start:stop], refuri=to + "#" + anchor(term))
            link["classes"], link["reftitle"] = ["glossed"], meanings()[term]
            pieces += [nodes.Text(text[end:start]), link]
            end = stop
        if pieces:
            node.parent.replace(node, [*pieces, nodes.Text(text[end:])])


def anchor(term):
    """Where Sphinx puts a term's definition."""
    return "term-" + term.replace(" ", "-")


def setup(app):
    app.connect("doctree-resolved", link_first_uses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
