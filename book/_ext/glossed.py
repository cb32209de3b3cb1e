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
    "book/api",
    "book/references",
    "book/mxnet_differences",
    "book/mxnet_ports",
)  # lists
ROOT = Path(__file__).resolve().parents[2]
ENTRY = re.compile(r"^(?P<term>\S.*)\n  (?P<first>\S(?:.|\n  )*?[.!?])(?=\s|$)", re.MULTILINE)

# Words that are written in other forms than with an s, or that have another meaning in
# everyday English: what stands beside them where the term is meant.
FORMS = {
    "attribute": "(?:(?<=same )|(?<=and ))attributes?",
    "autograd": "autograd|automatic differentiation",
    "broadcasting": "broadcast(?:ing|s)?",
    "constant folding": "constant folding|fold(?:s|ing)? constants",
    "core": "(?:(?<=each )|(?<=one ))core",
    "device": "(?<=the )device|devices",
    "driver": "driver(?=, the loop| knows| calls)",
    "export": "export(?:s|ed|ing)?",
    "format": "(?:(?<=whole )|(?<=file )|(?<=common ))formats?",
    "fusion": "fus(?:ion|e[sd]?|ing)",
    "head": "(?<=the )heads?",
    "hybridize": "hybridiz(?:e[sd]?|ing)",
    "interpret": "interpret(?:s|ed)?",
    "launch": "(?<=one )launch",
    "mark": "(?:(?<= no )|(?<=with a ))mark",
    "mode": "(?:(?<=the )|(?<=training ))mode",
    "pass": "(?<= a )pass(?! over)|(?<=the )passes",
    "prefix": "prefix(?:es)?(?! sum)",
    "race": "(?:(?<=find a )|(?<=are a ))race",
    "record": "(?:(?<=the )|(?<=one )|(?<=operator's ))records?",
    "register": "(?:(?<=in a )|(?<=one )|(?<=in ))registers?",
    "step": "(?:(?<=such )|(?<=every )|(?<=training ))step",
    "target": "(?:(?<=all )|(?<=The )|(?<=the ))targets?",
    "trace": "trac(?:e[sd]?|ing)",
}
# Such words that are meant only where they are emphasised, as new words are.
EVERYDAY = "bank block grid guard launch reference stream variable view".split()
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
def pattern(emphasised):
    """What finds terms in a text; the longer of two that begin alike."""
    terms = sorted(meanings(), key=len, reverse=True)
    usual = [form(t, FORMS.get(t, re.escape(t) + "s?")) for t in terms]
    if emphasised:  # then the word beside it, by which others are known, is not there
        usual = [f"{form(t, re.escape(t))}(?:s|es)?|{u}" for t, u in zip(terms, usual, strict=True)]
    number = {t: list(meanings()).index(t) for t in terms}
    forms = [
        f"(?P<_{number[t]}>{made})"
        for t, made in zip(terms, usual, strict=True)
        if emphasised or t not in EVERYDAY
    ]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(forms)})(?![\w-])")


def form(term, made):
    """A form that may also begin a sentence."""
    capital = re.search(r"[a-z]", re.sub(r"\(\?.*?\)", lambda m: " " * len(m[0]), made))
    if term[:2].isupper() or capital is None:
        return made
    i = capital.start()
    return f"{made[:i]}[{made[i]}{made[i].upper()}]{made[i + 1 :]}"


def uses(text, known, emphasised=False):
    """(start, end, term) of the terms in a text that are not known yet; they are then."""
    finder = pattern(emphasised)
    for found in [finder.fullmatch(text.rstrip(".:"))] if emphasised else finder.finditer(text):
        if found and (term := list(meanings())[int(found.lastgroup[1:])]) not in known:
            known.add(term)
            yield *found.span(), term


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
        text, made, end = node.astext(), [], 0
        for start, stop, term in uses(text, known, isinstance(node.parent, nodes.emphasis)):
            link = nodes.reference("", text[start:stop], refuri=to + "#" + anchor(term))
            link["classes"], link["reftitle"] = ["glossed"], meanings()[term]
            made += [nodes.Text(text[end:start]), link]
            end = stop
        if made:
            node.parent.replace(node, [*made, nodes.Text(text[end:])])


def anchor(term):
    """Where Sphinx puts a term's definition."""
    return "term-" + term.replace(" ", "-")


def setup(app):
    app.connect("doctree-resolved", link_first_uses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
