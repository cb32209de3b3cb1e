"""How a chapter looks: measured in the browser, so that a style cannot undo it unseen."""

import re
from statistics import median

import pytest
from conftest import PHONE, WIDE, Visit

HINT = re.compile(r"^Hint \d")
PAGES = ["02_what_a_graph_knows", "15_writing_passes", "21_the_memory_planner"]

# Of each paragraph of prose, the letters in all lines but the last.
LINES = """() => {
    const all = [], range = document.createRange();
    const apart = "details, .cell_output, blockquote, figure, form, table, li";
    for (const text of document.querySelectorAll("article p")) {
        if (text.closest(apart) || !text.getClientRects().length) continue;
        const lines = new Map(), walk = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) for (let i = 0; i < walk.currentNode.length; i++) {
            range.setStart(walk.currentNode, i);
            range.setEnd(walk.currentNode, i + 1);
            const box = range.getBoundingClientRect(), line = Math.round(box.bottom / 8);
            if (box.width) lines.set(line, (lines.get(line) ?? 0) + 1);
        }
        all.push(...[...lines].sort((a, b) => a[0] - b[0]).map((l) => l[1]).slice(0, -1));
    }
    return all;
}"""

# The first opaque background at or above an element.
SHEET = """selector => {
    let part = document.querySelector(selector);
    while (getComputedStyle(part).backgroundColor === "rgba(0, 0, 0, 0)") part = part.parentElement;
    return getComputedStyle(part).backgroundColor;
}"""
SIZES = """selector => [...new Set([...document.querySelectorAll(selector)].map(
    (part) => parseFloat(getComputedStyle(part).fontSize)))]"""
BORDER = "e => parseFloat(getComputedStyle(e).borderLeftWidth)"
# Of a figure in steps, one panel shows.
WIDTHS = """() => [...document.querySelectorAll(".mh-figure svg")]
    .filter((e) => e.checkVisibility()).map((e) => e.clientWidth)"""


@pytest.fixture(scope="module", params=PAGES)
def page(browser, address, request):
    with Visit(browser, f"{address}notebooks/{request.param}.html", viewport=WIDE) as opened:
        yield opened.page


def test_a_line_of_prose_has_60_to_80_letters(page):
    """It had 111 before prose got a measure of its own."""
    lines = page.evaluate(LINES)
    assert len(lines) > 30 and 60 <= median(lines) <= 80


def test_code_output_and_question_look_different(page):
    """They had one background: code is a sheet with a border, output has a rule, no sheet."""
    code, output = page.locator(".cell_input pre").first, page.locator(".cell_output .output").first
    question = page.evaluate(SHEET, "blockquote:has(form.predict)")
    assert question != page.evaluate(SHEET, ".cell_input pre") == page.evaluate(SHEET, "body")
    assert page.evaluate(SHEET, ".cell_output pre") == page.evaluate(SHEET, "body")
    assert (code.evaluate(BORDER), output.evaluate(BORDER)) == (1, 2)


def test_all_code_has_one_size(page):
    assert page.evaluate(SIZES, "article pre") == [13.5]


def test_headings_go_down_in_steps(page):
    sizes = [page.evaluate(SIZES, f"article {level}") for level in ("h1", "h2", "h3")]
    assert sizes == [[34], [26], [20]]
    assert page.evaluate(SIZES, "article section > p") == [17]


def test_figures_are_wider_than_they_were(page):
    widths = page.evaluate(WIDTHS)
    assert bool(widths) != ("15_writing_passes" in page.url)  # which draws no such figure
    assert all(width >= 380 for width in widths)


def test_a_page_shows_no_call_that_draws(page):
    text = page.locator("article").inner_text()
    assert not re.search(r"figures\.\w", text) and "Exception reporting mode" not in text
    assert "not yet: nothing is filled in" not in text


def test_closed_hints_share_a_row(page):
    hints = page.locator("article section > details > summary").filter(has_text=HINT)
    tops = [hints.nth(i).evaluate("e => e.getBoundingClientRect().top") for i in range(3)]
    assert len(set(tops)) == 1


def test_code_is_smaller_on_a_phone_and_is_not_cut_off(browser, address):
    with Visit(browser, f"{address}notebooks/{PAGES[0]}.html", viewport=PHONE) as opened:
        page = opened.page
        assert page.evaluate(SIZES, "article pre") == [12]
        cut = "es => es.filter((e) => e.scrollWidth > e.clientWidth + 1).length"
        assert page.locator(".cell_input pre").evaluate_all(cut) == 0
        assert len(page.evaluate(WIDTHS)) and min(page.evaluate(WIDTHS)) > 300
