"""Digits, drawn on a canvas, of which Python must say the same."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import DESKTOP, PHONE, SCREENSHOTS, Visit, serve
from test_site import barriers, too_wide
from test_views import PAGE, PUT_IN

import minihybrid as mx
from minihybrid import gluon, nd

CHAPTER = Path(__file__).parents[2] / "notebooks/09_export.ipynb"
LOOKS = {"desktop": {}, "phone-dark": {"viewport": PHONE, "color_scheme": "dark"}}
STROKES = {  # digit -> strokes, in parts of the frame
    3: [[(0.25, 0.2), (0.5, 0.1), (0.7, 0.25), (0.5, 0.45), (0.72, 0.65), (0.5, 0.9), (0.25, 0.8)]],
    0: [[(0.5, 0.1), (0.3, 0.3), (0.28, 0.6), (0.45, 0.9), (0.65, 0.75), (0.7, 0.4), (0.5, 0.1)]],
    4: [[(0.28, 0.05), (0.12, 0.3), (0.38, 0.3)], [(0.3, 0.2), (0.28, 0.45)]],  # a small one
}


def shown():
    """What the chapter shows, as it was saved."""
    outputs = [
        "".join(output["data"]["text/html"])
        for cell in json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", [])
        if "mh-canvas" in "".join(output.get("data", {}).get("text/html", ""))
    ]
    assert len(outputs) == 1
    return outputs[0]


@pytest.fixture(scope="module")
def net():
    """A net like the chapter's."""
    (x, y), _ = mx.datasets.digits()
    x, loss_of = x.expand_dims(1), gluon.loss.SoftmaxCrossEntropyLoss()
    mx.random.seed(1)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(8, 3, padding=1, activation="relu"), gluon.nn.MaxPool2D())
    net.add(gluon.nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    for start in [*range(0, len(x), 32)] * 12:
        with mx.autograd.record():
            loss = loss_of(net(x[start : start + 32]), y[start : start + 32])
        loss.backward()
        trainer.step(len(loss))
    digits = gluon.nn.HybridSequential()
    digits.add(net, gluon.nn.HybridLambda("softmax"))
    digits.hybridize()
    digits(x[:1])
    return digits


@pytest.fixture(scope="module")
def html(net):
    return mx.course.canvas(net)._repr_html_()


@pytest.fixture(scope="module")
def site(tmp_path_factory, html):
    folder = tmp_path_factory.mktemp("canvas")
    (folder / "page.html").write_text(PAGE.format(html), encoding="utf-8")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with serve(folder) as address:
        yield address + "page.html"


@pytest.fixture
def page(browser, site):
    with Visit(browser, site, viewport=DESKTOP) as opened:
        opened.page.locator(".mh-canvas.on").wait_for()
        yield opened.page
        assert opened.problems == []


@pytest.fixture(scope="module")
def python(net):
    """The same net in Python."""
    return lambda pixels: net(nd.array(pixels).reshape((1, 1, 8, 8))).asnumpy().ravel()


def shown_numbers(page):
    """The picture that the net got, and its ten numbers."""
    numbers = page.locator(".mh-canvas").evaluate("view => view.found")
    return np.array(numbers["input"]), np.array(numbers["output"])


def draw(page, strokes):
    """Draw with the mouse; says how often the answer changed meanwhile."""
    paper, answers = page.locator(".paper"), []
    paper.scroll_into_view_if_needed()
    area = paper.bounding_box()
    for stroke in strokes:
        places = [
            (area["x"] + x * area["width"], area["y"] + y * area["height"]) for x, y in stroke
        ]
        page.mouse.move(*places[0])
        page.mouse.down()
        for place in places[1:]:
            page.mouse.move(*place, steps=4)
            answers.append(tuple(shown_numbers(page)[1]))
        page.mouse.up()
    return len(set(answers))


def check(page, python, digit):
    """The page says this digit, and with Python's numbers."""
    pixels, numbers = shown_numbers(page)
    assert set(np.round(pixels * 16, 6)) <= set(range(17)) and pixels.max() == 1
    expected = python(pixels)
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=1e-5)
    assert numbers.shape == (10,) and numbers.argmax() == digit
    shares = page.locator(".bars .share").all_inner_texts()
    np.testing.assert_allclose([float(s.split()[0]) for s in shares], 100 * expected, atol=0.051)
    assert page.locator(".bars .best b").all_inner_texts() == [str(digit)]
    assert page.locator(".said").inner_text().startswith(f"This looks like {digit} (")


@pytest.mark.parametrize("digit", STROKES)
def test_a_digit_drawn_with_the_mouse_is_recognized(page, python, digit):
    assert draw(page, STROKES[digit]) >= 3
    check(page, python, digit)
    page.get_by_role("button", name="start again").click()
    assert not shown_numbers(page)[0].any() and page.locator(".bars .best").count() == 0


def test_a_digit_drawn_by_keyboard_is_recognized(page, python):
    page.keyboard.press("Tab")
    for key, times in (("ArrowUp", 5), ("ArrowLeft", 3), (" ", 1), ("ArrowRight", 6)):
        for _ in range(times):
            page.keyboard.press(key)
    for _ in range(4):
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft"):
            page.keyboard.press(key)
    page.keyboard.press(" ")
    check(page, python, 7)
    page.keyboard.press("ArrowLeft")  # with the pen up, nothing is drawn
    check(page, python, 7)
    page.keyboard.press("Backspace")
    assert not shown_numbers(page)[0].any()


def test_the_net_that_the_chapter_shows_recognizes_a_digit(browser, tmp_path):
    (tmp_path / "page.html").write_text(PAGE.format(shown()), encoding="utf-8")
    with serve(tmp_path) as address, Visit(browser, address + "page.html") as opened:
        opened.page.locator(".mh-canvas.on").wait_for()
        draw(opened.page, STROKES[3])
        assert shown_numbers(opened.page)[1].argmax() == 3 and opened.problems == []


def test_each_node_of_the_graph_is_seen(page):
    draw(page, STROKES[3])
    rows = page.locator(".graph li")
    operators = ["input", "Convolution", "Activation", "Pooling", "FullyConnected", "softmax"]
    assert rows.locator("b").all_inner_texts() == operators
    texts = rows.locator("span").all_inner_texts()
    assert texts[0] == "1 picture of 8 by 8, from 0.00 to 1.00"
    assert texts[1].startswith("8 pictures of 8 by 8, from -") and "from 0.00 to" in texts[2]
    assert texts[-1].startswith("10 numbers, from 0.00 to ")
    labels = [r.get_attribute("aria-label") for r in rows.locator("canvas").all()]
    assert labels[3] == "Pooling: 8 pictures of 4 by 4"
    colors = "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    assert min(c.evaluate(colors) for c in rows.locator("canvas").all()) > 2


@pytest.mark.parametrize("look", LOOKS)
def test_the_canvas_is_legible_and_fits(browser, site, look):
    with Visit(browser, site, **LOOKS[look]) as opened:
        opened.page.locator(".mh-canvas.on").wait_for()
        draw(opened.page, STROKES[3])
        assert opened.problems == []
        assert barriers(opened.page) == [] and too_wide(opened.page) == []
        opened.page.screenshot(path=SCREENSHOTS / f"canvas-{look}.png", full_page=True)


def test_without_scripts_a_sentence_says_what_is_here(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site)
    assert "It needs JavaScript" in page.locator(".without").inner_text()
    assert not page.locator(".paper").is_visible()
    context.close()


def test_the_canvas_works_as_notebooks_put_it_in(browser, html):
    """By script, as in JupyterLab; in a frame shut off from the page, as in Colab."""
    page = browser.new_page()
    page.set_content("<!doctype html><body></body>")
    page.evaluate(PUT_IN, html)
    for place in (page, page.frame_locator("iframe")):
        place.locator(".mh-canvas.on").wait_for()
        place.locator(".paper").click()
        assert place.locator(".graph li").count() == 6
    page.close()
