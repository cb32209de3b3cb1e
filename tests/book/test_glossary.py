"""Every term of the glossary is met somewhere in the book, and linked where it is meant."""

import json
import re
from pathlib import Path

import glossed
import pytest
from docutils import nodes
from docutils.core import publish_doctree

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "book").glob("*.md")])
EMPHASIZED = re.compile(r"(?<![*\w])\*{1,2}([^*\n]+)\*{1,2}(?![*\w])")


def prose(path):
    """What a page's Markdown says, without code, links, headings and what is folded."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    for closed in (
        r"```.*?```",
        r"<details>.*?</details>",
        r"(`+)(?:(?!\n\n).)*?\1",
        r"\[[^\]]*\]\([^)]*\)",
        r"(?m)^(> )*#.*$",
    ):
        text = re.sub(closed, "`", text, flags=re.DOTALL if "(?m)" not in closed else 0)
    return re.sub(r"\s*\n(?:> ?)*\s*", " ", text)


def linked(path):
    """The terms that a page's text leads to."""
    known = set()
    for i, piece in enumerate(EMPHASIZED.split(prose(path))):
        list(glossed.uses(piece, known, emphasized=i % 2 == 1))
    return known | set(marked(path))


def marked(path):
    """The terms that a page marks as such itself."""
    return re.findall(r"\{term\}`(?:[^`<]* <)?([^`>]*?)>?`", path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def links():
    read = [p for p in PAGES if not f"book/{p.stem}".startswith(glossed.UNLINKED)]
    return {path.stem: linked(path) for path in read}


# Terms of the field that no chapter uses yet: a chapter that does shortens this list.
AWAITED = {
    *("basic block", "calibration", "cost model", "CUDA stream"),
    *("instruction-level parallelism", "loss scaling", "mixed precision"),
    "warp divergence",
}


def test_every_term_is_linked_somewhere(links):
    assert len(links) > 20 and all(len(links[page]) > 3 for page in links if page[0] in "012")
    never = glossed.meanings().keys() - set().union(*links.values())
    assert never <= AWAITED


def test_no_term_is_undefined_or_defined_twice():
    glossary = ROOT / "book/glossary.md"
    terms = re.findall(r"^(\S.*)\n  \S", glossary.read_text(encoding="utf-8"), re.MULTILINE)
    assert list(glossed.meanings()) == terms and len(set(terms)) == len(terms) > 150
    assert not {*glossed.FORMS, *glossed.EVERYDAY} - set(terms)
    assert len(marked(glossary)) > 50
    for path in PAGES:
        assert not set(marked(path)) - set(terms), path.name


@pytest.mark.parametrize("section", [0, 1])
def test_terms_stand_in_the_order_of_the_alphabet(section):
    source = (ROOT / "book/glossary.md").read_text(encoding="utf-8")
    part = source.split("```{glossary}\n")[section + 1].partition("```")[0]
    terms = re.findall(r"^(\S.*)\n  \S", part, re.MULTILINE)
    assert terms == sorted(terms, key=str.lower)


def test_meanings_are_first_sentences_without_marks():
    for term, meaning in glossed.meanings().items():
        assert re.fullmatch(r"[^`{}<>]{10,220}[.!?]", meaning), (term, meaning)
    assert glossed.meanings()["dead code"] == "Nodes that no output depends on."


@pytest.mark.parametrize(
    "text, emphasized, terms",
    [
        ("Two plans, and a plan again", False, ["plan"]),
        ("The arenas of arrays", False, ["arena", "array"]),
        ("the GPU driver", False, ["GPU driver"]),
        ("a thread block of threads", False, ["thread block", "thread"]),
        ("it is fused and traced", False, ["fusion", "trace"]),
        ("a subarray, plan-like, replan", False, []),
        ("step by step, pass it on, in view of this", False, []),
        ("such step, a pass, the heads", False, ["step", "pass", "graph output"]),
        ("its lifetime, a signature, in a live range", False, ["live range", "cache key"]),
        ("view", True, ["view"]),
        ("Broadcast.", True, ["broadcasting"]),
        ("our own view", True, []),
    ],
)
def test_uses(text, emphasized, terms):
    assert [term for _, _, term in glossed.uses(text, set(), emphasized)] == terms


def test_a_page_links_first_uses_and_no_code_headings_or_folded_text():
    document = publish_doctree(
        "A plan\n======\n\n``arena`` *view* plan\n\n"
        ".. raw:: html\n\n   <details>\n\na tape\n\n.. raw:: html\n\n   </details>\n\n"
        "A plan, a `symbol <https://example.org>`_, an arena."
    )

    class App:
        class builder:
            format = "html"
            get_relative_uri = staticmethod(lambda page, to: f"../{to}.html")

    glossed.link_first_uses(App, document, "notebooks/00_tour")
    links = [n for n in document.findall(nodes.reference) if "glossed" in n["classes"]]
    assert [n.astext() for n in links] == ["view", "plan", "arena"]
    assert links[2]["refuri"] == "../book/glossary.html#term-arena"
    assert links[0]["reftitle"] == "An array that shares the memory of another one."
