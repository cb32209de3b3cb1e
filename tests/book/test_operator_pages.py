"""Every public operator is described on one page, with an example that runs."""

import re
from pathlib import Path

import numpy as np
import operators
import pytest

from minihybrid import nd
from minihybrid.ops import OPS

ROOT = Path(__file__).parents[2]
MODULES = [
    module
    for page in sorted((ROOT / "book/api").glob("*.md"))
    for listed in re.findall(r"^```\{operators\} (.*)$", page.read_text(encoding="utf-8"), re.M)
    for module in listed.split()
]


def test_every_public_operator_stands_on_one_page():
    actual = [name for m in MODULES for names in operators.public(m).values() for name in names]
    ours = [n.replace("_contrib_", "contrib.") for n, op in OPS.items() if op_is_ours(op)]
    public = [name for name in ours if not name.startswith("_")]
    assert len(actual) > 200 and sorted(actual) == sorted(public)


def op_is_ours(op):
    return operators.PLACES[op][0].co_filename.startswith(str(ROOT / "minihybrid"))


def test_every_page_of_the_api_is_in_the_book():
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    listed = re.findall(r"book/api/(\w+)", toc)
    pages = [p.stem for p in (ROOT / "book/api").glob("*.md")]
    overview = (ROOT / "book/api.md").read_text(encoding="utf-8")
    assert sorted(listed) == sorted(pages) == sorted(re.findall(r"\(api/(\w+)\.md\)", overview))


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module):
    actual = operators.public(module)
    assert actual
    for op, names in actual.items():
        text = operators.session(*operators.example(op, operators.title(names))[:2])
        first, *_, last = text.splitlines()
        assert first.startswith(">>> ") and not last.startswith(">>> "), text


@pytest.mark.parametrize(
    "name, says",
    [
        ("relu", "for `data`"),
        ("where", "for `x`, `y`"),
        ("concat", "for every input"),
        ("floor", "zero everywhere"),
        ("argmax", "none"),
        ("zeros", "none"),
        ("L2Normalization", "for `data`"),  # 0 for lines of one number
    ],
)
def test_a_page_says_which_inputs_have_a_gradient(name, says):
    assert operators.gradient(OPS[name], name) == says


def test_a_random_example_shows_its_seed_and_others_do_not():
    draw, keep = (
        operators.session([], f"nd.{call}") for call in ("shuffle(nd.arange(9))", "ones(2)")
    )
    assert draw.startswith(">>> mx.random.seed(0)\n") and keep == ">>> nd.ones(2)\n[1. 1.]"


def test_numbers_fit_what_an_input_takes():
    from sampling import In

    for kind, fits in {
        "positive": lambda v: v > 0,
        "inside": lambda v: abs(v) < 1,
        "above": lambda v: v > 1,
        "index": lambda v: v.astype(int) == v,
        "chance": lambda v: abs(v.sum(-1) - 1) < 1e-6,
        "bits": lambda v: (v == 0) | (v == 1),
    }.items():
        values = eval(operators.array(In((3, 4), kind), 1), {"nd": nd}).asnumpy()
        assert values.shape == (3, 4) and np.all(fits(values)), kind
