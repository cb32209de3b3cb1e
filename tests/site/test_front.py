"""The front page: what is drawn is read, by the exported network and with its numbers."""

import json
import math
import random

import make_front
import numpy as np
import pytest
from conftest import DESKTOP, PHONE, SCREENSHOTS, SITE, WIDE, Visit
from test_site import barriers, too_wide

from minihybrid import gluon, nd

PAGE = "book/index.html"
RECORD = json.loads((make_front.FRONT / "record.json").read_text(encoding="utf-8"))
SAMPLES = json.loads((make_front.FRONT / "samples.json").read_text(encoding="utf-8"))
# Two handwritings that training has not seen, as points xxyy of strokes.
HANDS = [
    [
        "551030153040257035854890688076507525601555105510",
        "38254810 48104890",
        "25303513551070204535309030907588",
        "2515651545406545704868703588",
        "6010206575657565 60406095",
        "702030203018284555436560558528852585",
        "6812453525653088609072705555354530654065",
        "2015751560455590 38505852",
        "60153025405068706085408530705550652060156015",
        "7025501532353252553570306525658540923085",
    ],
    [
        "4812281830602590558872557030481248124812",
        "509250085008",
        "223048107015 701568452088208845806892",
        "22125008682255425542 55427560558520852085",
        "3010285572557255 582058605890",
        "301230453045 30457050658030882588 30127512",
        "581040303055 3055358860907560504832603260",
        "221250107212 721258504892",
        "501230254545603060155012 45453065408862887065604550455045",
        "682552103522304560486825 682566556290",
    ],
]


def strokes_of(text, rng, tremor):
    """Strokes by a hand of its own: slant, size, place and tremor."""
    slant, wide, high = rng.uniform(-0.25, 0.25), rng.uniform(0.6, 1.1), rng.uniform(0.6, 1.1)
    made = []
    for stroke in make_front.strokes_of(text):
        x, y = (stroke - 50).T
        moved = np.stack([wide * (x - slant * y), high * y], 1) * 0.8 + 50
        made.append(moved + [[rng.gauss(0, tremor), rng.gauss(0, tremor)] for _ in moved])
    return [np.clip(stroke, 4, 96).tolist() for stroke in made]


@pytest.fixture(scope="module")
def opened(browser, address):
    with Visit(browser, address + PAGE, viewport=WIDE) as opened:
        opened.page.locator("html[data-ready]").wait_for()
        yield opened
        assert opened.problems == []


@pytest.fixture
def page(opened):
    opened.page.locator("#clear").click()
    return opened.page


def draw(page, strokes):
    page.locator("#clear").click()
    area = page.locator("#paper").bounding_box()
    for stroke in strokes:
        places = [
            (area["x"] + x * area["width"] / 100, area["y"] + y * area["height"] / 100)
            for x, y in stroke
        ]
        page.mouse.move(*places[0])
        page.mouse.down()
        for place in places[1::2]:
            page.mouse.move(*place)
        page.mouse.up()


def answers(page, digit):
    """Wait until the page says this digit."""
    page.wait_for_function(
        "d => document.querySelector('#bars').dataset.best === d", arg=str(digit), timeout=20_000
    )


def test_digits_drawn_with_the_mouse_are_read(page):
    rng = random.Random(1)
    for digit in range(10):
        draw(page, strokes_of(HANDS[0][digit], rng, 0))
        answers(page, digit)


def test_ten_hands_are_read(page):
    """Wanted: 95 of 100. No drawing here was seen in training."""
    rng, right, wrong = random.Random(0), 0, []
    for k in range(10):
        for digit in range(10):
            strokes = strokes_of(HANDS[k % 2][digit], rng, 0.5)
            last = page.evaluate("s => [...front.layers(front.scan(s)).at(-1)]", strokes)
            right += int(np.argmax(last)) == digit
            wrong += [(k, digit, int(np.argmax(last)))] * (int(np.argmax(last)) != digit)
    assert right >= 95, wrong


def test_the_page_computes_what_python_computes(page):
    net = gluon.SymbolBlock.imports(
        str(make_front.FRONT / "digits-symbol.json"),
        ["data"],
        str(make_front.FRONT / "digits-0000.params"),
    )
    for text in SAMPLES:
        strokes = [stroke.tolist() for stroke in make_front.strokes_of(text)]
        dots = page.evaluate("s => [...front.scan(s)]", strokes)
        np.testing.assert_allclose(
            dots, make_front.scan(list(map(np.array, strokes))).ravel(), atol=2e-3
        )
        last = page.evaluate("x => [...front.layers(Float32Array.from(x)).at(-1)]", dots)
        np.testing.assert_allclose(last, net(nd.array([dots])).asnumpy()[0], rtol=1e-4, atol=1e-4)


def test_digit_keys_write_and_the_pen_obeys_arrows(page):
    page.locator("#paper").focus()
    for digit in (0, 7):
        page.keyboard.press(str(digit))
        answers(page, digit)
    page.keyboard.press("Backspace")
    for key, times in (("ArrowUp", 9), (" ", 1), ("ArrowDown", 18), (" ", 1)):
        for _ in range(times):
            page.keyboard.press(key)
    answers(page, 1)


def test_hybridized_the_answer_is_the_same_and_python_is_gone(page):
    page.keyboard.press("Tab")
    page.locator("#paper").focus()
    page.keyboard.press("3")
    answers(page, 3)
    page.locator("[value=eager]").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#net.hybrid").count() == 1
    answers(page, 3)
    page.keyboard.press("ArrowUp")
    assert page.locator("#net.hybrid").count() == 0


def test_the_numbers_are_those_of_the_record(page):
    eager, hybrid = RECORD["eager_us"], RECORD["hybrid_us"]
    shown = page.locator(".mode b").all_inner_texts()
    assert [s.split()[0] for s in shown] == [f"{eager:.0f}", f"{hybrid:.1f}"]
    assert f"{eager / hybrid:.0f} times as fast" in page.locator(".same").inner_text()
    widths = [
        b.evaluate("e => getComputedStyle(e).backgroundSize") for b in page.locator(".mode i").all()
    ]
    assert widths[0].startswith("100%") and math.isclose(
        float(widths[1].split("%")[0]), 100 * hybrid / eager, abs_tol=0.1
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, PHONE, DESKTOP], ids=["wide", "phone", "desktop"])
def test_the_first_screen_fits_and_has_no_barrier(browser, address, viewport, scheme):
    with Visit(browser, address + PAGE, viewport=viewport, color_scheme=scheme) as opened:
        page = opened.page
        page.locator("html[data-ready]").wait_for()
        answers(page, 3)
        bottom = page.locator(".start").evaluate("e => e.getBoundingClientRect().bottom")
        assert bottom <= viewport["height"]
        assert too_wide(page) == [] and opened.problems == []
        page.wait_for_timeout(1500)  # the glow fades
        assert barriers(page) == []
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"front-{viewport['width']}-{scheme}.png")


def test_the_page_is_light():
    """It had 2.6 MB; with the network it has a fortieth of that."""
    files = [
        SITE / PAGE,
        *(SITE / "_static").glob("front.*"),
        *(SITE / "_static/net").glob("digits*"),
    ]
    assert sum(file.stat().st_size for file in files) < 65_000
