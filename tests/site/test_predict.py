"""Predictions, made by keyboard, by mouse and by finger; and pages whose scripts do not run."""

import shutil

import pytest
from conftest import DESKTOP, PHONE, SITE, Visit, serve
from predictions import form
from test_site import BUILD, barriers, too_wide

STATIC = BUILD.parent / "book/_static"
ASKS = {
    "number": {"hint": "count rows and columns", "boxes": [{"answer": 4810, "label": "Numbers"}]},
    "near": {"hint": "x", "boxes": [{"answer": 0.5, "label": "Share", "within": 0.1}]},
    "choice": {
        "hint": "who reads it",
        "boxes": [{"answer": "no", "label": "Choice", "options": ["yes", "no"]}],
    },
    "two": {
        "hint": "the first is larger",
        "boxes": [{"answer": "(4, 3)", "label": "Shape"}, {"answer": 0, "label": "Copies"}],
    },
    "text": {},
}
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>predictions</title>
<link rel="stylesheet" href="book.css"><script defer src="predict.js"></script>
</head><body><main><h1>Predictions</h1>{}</main></body></html>"""
PART = """<blockquote>{}<details><summary>Answer</summary><p>why</p></details></blockquote>
<div class="cell tag_answer"><pre>code</pre><div class="cell_output">out of {}</div></div>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predictions")
    for name in ("book.css", "predict.js"):
        shutil.copy(STATIC / name, folder)
    parts = (PART.format(form(predict, name), name) for name, predict in ASKS.items())
    (folder / "page.html").write_text(PAGE.format("\n".join(parts)), encoding="utf-8")
    with serve(folder) as address:
        yield address + "page.html"


@pytest.fixture
def page(browser, site):
    with Visit(browser, site) as opened:
        yield opened.page
        assert opened.problems == []


class Prediction:
    """One question of the page, and what the reader sees of its answer."""

    def __init__(self, page, name):
        self.form = page.locator(f"#predict-{name}")
        self.output = page.get_by_text(f"out of {name}", exact=True)
        self.fold = self.form.locator("xpath=..").locator("details")
        self.status = self.form.get_by_role("status")

    def open(self):
        assert self.output.is_visible() == self.fold.is_visible()
        return self.output.is_visible()

    def answer(self, *texts):
        """Type into the boxes, one after the other, and press Enter."""
        for box, text in zip(self.form.locator("input").all(), texts, strict=True):
            box.fill(text)
        self.form.locator("input").last.press("Enter")
        return self.status.inner_text()


def test_a_number_is_judged_and_then_the_answer_is_shown(page):
    prediction = Prediction(page, "number")
    assert not prediction.open() and prediction.form.is_visible()
    assert prediction.answer("64") == "Not yet: count rows and columns." and not prediction.open()
    assert prediction.answer("") == "Write a number first, or let the answer be shown."
    assert prediction.answer("many") == "Write a number first, or let the answer be shown."
    assert not prediction.open()
    assert prediction.answer("4810") == "Right."
    assert prediction.open() and prediction.fold.get_attribute("open") is not None
    assert not Prediction(page, "near").open()


@pytest.mark.parametrize("text", ["4,810", "4 810", "4810.0", "4.81e3", "4_810", " 4810 "])
def test_a_number_may_be_written_in_many_ways(page, text):
    assert Prediction(page, "number").answer(text) == "Right."


@pytest.mark.parametrize(
    "text, right",
    [
        ("0.4", True),
        ("0,55", True),
        ("0.6", True),
        ("0.35", False),
        ("0.7", False),
        ("-0.5", False),
    ],
)
def test_near_may_be_near_enough(page, text, right):
    assert (Prediction(page, "near").answer(text) == "Right.") == right


def test_a_choice_is_made_by_keyboard(page):
    prediction = Prediction(page, "choice")
    prediction.form.get_by_role("button", name="Check").press("Enter")
    assert prediction.status.inner_text().startswith("Make your choice")
    prediction.form.get_by_label("yes").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    assert "who reads it" in prediction.status.inner_text() and not prediction.open()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert prediction.status.inner_text() == "Right." and prediction.open()


def test_a_choice_is_made_by_mouse(page):
    prediction = Prediction(page, "choice")
    prediction.form.get_by_text("no", exact=True).click()
    prediction.form.get_by_role("button", name="Check").click()
    assert prediction.status.inner_text() == "Right." and prediction.open()


def test_several_boxes_are_counted(page):
    prediction = Prediction(page, "two")
    assert prediction.answer("(4,3)", "2") == "1 of 2 right. Not yet: the first is larger."
    assert prediction.answer("4, 3", "0") == "Right."


def test_free_text_is_kept(page):
    prediction = Prediction(page, "text")
    keep = prediction.form.get_by_role("button", name="Keep it, and show")
    keep.click()
    assert not prediction.open()
    prediction.form.get_by_role("textbox").fill("Two loops.")
    keep.click()
    assert prediction.open()
    page.reload()
    assert (
        prediction.open() and prediction.form.get_by_role("textbox").input_value() == "Two loops."
    )


def test_the_answer_can_be_shown_without_a_prediction(page):
    prediction = Prediction(page, "number")
    prediction.form.get_by_role("button", name="Show the answer").click()
    assert prediction.open()
    other = Prediction(page, "near")
    show = page.locator(".cell", has=other.output).get_by_role("button", name="Show it")
    show.focus()
    page.keyboard.press("Enter")
    assert other.open() and not show.count()
    assert page.evaluate("document.activeElement.matches('.cell_output')")


def test_predictions_outlast_the_visit_until_one_is_asked_again(page):
    Prediction(page, "choice").form.get_by_label("no", exact=True).check()
    Prediction(page, "choice").form.get_by_role("button", name="Check").click()
    page.reload()
    prediction = Prediction(page, "choice")
    assert prediction.open() and prediction.form.get_by_label("no", exact=True).is_checked()
    assert not Prediction(page, "number").open()
    page.get_by_role("button", name="Show all answers").click()
    assert all(Prediction(page, name).open() for name in ASKS)
    with page.expect_navigation():
        page.get_by_role("button", name="Ask me again").click()
    assert not any(Prediction(page, name).open() for name in ASKS)


def test_without_scripts_nothing_is_hidden_and_nothing_is_asked(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site)
    assert all(Prediction(page, name).open() for name in ASKS)
    assert not any(Prediction(page, name).form.is_visible() for name in ASKS)
    context.close()


def test_a_browser_that_keeps_nothing_is_no_error(browser, site):
    with Visit(browser, site) as opened:
        opened.page.add_init_script(
            "Object.defineProperty(window, 'localStorage', {get() { throw Error('shut'); }})"
        )
        opened.page.reload()
        assert Prediction(opened.page, "number").answer("4810") == "Right."
        assert opened.problems == []


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_forms_have_no_barrier_and_fit(browser, site, viewport):
    with Visit(browser, site, viewport=viewport) as opened:
        assert barriers(opened.page) == [] and too_wide(opened.page) == []


# -- the built book ----------------------------------------------------------------------
ASKING = sorted(
    p for p in SITE.glob("notebooks/*.html") if 'class="predict"' in p.read_text("utf-8")
)


def test_the_book_asks():
    assert len(ASKING) >= 4


@pytest.mark.parametrize("path", ASKING, ids=lambda path: path.stem)
def test_pages_hide_answers_until_they_are_asked_for(browser, address, path):
    with Visit(browser, f"{address}notebooks/{path.name}") as opened:
        page = opened.page
        outputs = page.locator(".tag_answer .cell_output")
        assert outputs.count() and not any(o.is_visible() for o in outputs.all())
        for button in page.locator("form.predict .show").all():
            button.click()
        assert all(o.is_visible() for o in outputs.all())
        assert not page.locator(".waits").count() and opened.problems == []
