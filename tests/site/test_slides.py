"""Slides in a browser: keys, what waits for a key, pictures that keep theirs; nothing leaves."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import Visit, serve
from minihybrid_course.grading.slides import write


@pytest.fixture(scope="module")
def lectures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slides")
    counts = write(folder)
    with serve(folder) as address:
        yield address, counts


@pytest.fixture
def visit(browser, lectures):
    with Visit(browser, f"{lectures[0]}03_hybridize.html") as visit:
        yield visit
        assert visit.problems == []


def where(page):
    """The number of the slide that is seen, of how many."""
    assert page.locator(".slide:visible").count() == 1
    return page.locator("nav output").inner_text()


def test_keys_lead_to_every_slide_and_back(visit, lectures):
    page, n = visit.page, lectures[1]["03_hybridize"]
    steps = page.locator(".slide:has([data-step])").count()
    assert where(page) == f"1 of {n}" and steps == 9
    for _ in range(n - 1 + steps - 1):  # the last question's answer is not the last slide
        page.keyboard.press("ArrowRight")
    presses = 0
    while where(page) != f"{n} of {n}":
        page.keyboard.press(" ")
        presses += 1
    assert presses <= 1
    page.keyboard.press("ArrowRight")
    assert where(page) == f"{n} of {n}" and page.url.endswith(f"#{n}")
    page.keyboard.press("PageUp")
    assert where(page) == f"{n - 1} of {n}"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert where(page) == f"1 of {n}"


def test_what_answers_waits_for_a_key(visit):
    page = visit.page
    page.evaluate("show(slides.findIndex((s) => s.querySelector('[data-step]')))")
    question = page.locator(".slide:visible")
    before = where(page)
    assert question.locator(".asked").is_visible()
    assert question.locator("[data-step]:visible").count() == 0
    page.keyboard.press(" ")
    assert where(page) == before
    assert question.locator("[data-step]:visible").count() == 2
    page.get_by_role("button", name="next").click()
    assert where(page) != before
    page.keyboard.press("ArrowLeft")
    assert where(page) == before and question.locator("[data-step]:visible").count() == 2


def test_a_picture_keeps_its_keys_until_escape(visit):
    page = visit.page
    page.evaluate("show(slides.findIndex((s) => s.textContent.includes('mx.explain(')))")
    before = where(page)
    page.locator(".slide:visible").get_by_role("slider").focus()
    page.keyboard.press("ArrowLeft")
    assert where(page) == before
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    assert where(page) != before


def test_notes_open_by_a_key_and_an_address_opens_its_slide(visit):
    page = visit.page
    notes = page.locator(".slide:visible > .notes")
    assert notes.get_attribute("open") is None
    page.keyboard.press("n")
    assert notes.get_attribute("open") is not None
    page.evaluate("location.hash = '#4'")
    assert where(page).startswith("4 of ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_slides_are_accessible(browser, lectures, scheme):
    """All slides of a chapter at once, as they are without scripts."""
    with Visit(browser, f"{lectures[0]}03_hybridize.html", color_scheme=scheme) as visit:
        visit.page.evaluate("slides.forEach((s) => { s.hidden = false; })")
        result = Axe().run(visit.page, context=".slide > :not(.work), nav")
        assert [v["id"] for v in result.response["violations"]] == []


def test_without_scripts_all_slides_are_there(browser, lectures):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{lectures[0]}03_hybridize.html")
    assert page.locator(".slide:visible").count() == lectures[1]["03_hybridize"]
    assert page.locator("nav:visible").count() == 0
    context.close()
