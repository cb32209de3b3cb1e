"""Every built page, opened in a real browser: in order, offline, legible, reachable."""

import re
from io import BytesIO

import matplotlib.pyplot as plt
import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import BUILD, PHONE, SCREENSHOTS, SITE, WIDE, Visit, drawn, serve

TOC = (BUILD.parent / "_toc.yml").read_text(encoding="utf-8")
CHAPTERS = [f"{name}.html" for name in re.findall(r"(?:root|file): (\S+)", TOC)]
PAGES = sorted(
    p.relative_to(SITE).as_posix() for p in SITE.rglob("*.html") if "_static" not in p.parts
)
IMAGE_FILE = re.compile(r"\.(png|jpe?g|svg|gif)$")


# -- what is asked of a page; each returns a list of complaints ------------------------
def undescribed(page):
    """Complain about a missing title, heading, language or image description."""
    wrong = []
    if not page.title().strip():
        wrong.append("no title")
    headings = page.locator("article h1").count()  # the theme has one more, to print
    if headings != 1:
        wrong.append(f"{headings} headings of the first level")
    if not page.locator("html").get_attribute("lang"):
        wrong.append("no language")
    for image in page.locator("img").all():
        alt = image.get_attribute("alt")
        if not alt or IMAGE_FILE.search(alt):
            wrong.append(f"image {image.get_attribute('src')} has alt={alt!r}")
    return wrong


def too_wide(page):
    """Complain if a page must be scrolled sideways, and name what sticks out."""
    return page.evaluate("""() => {
        const width = document.documentElement.clientWidth;
        if (document.documentElement.scrollWidth <= width) return [];
        const out = [...document.querySelectorAll("main *")].filter(
            e => e.getBoundingClientRect().right > width + 1);
        return ["wider than " + width + " px", ...out.slice(0, 3).map(
            e => e.tagName + "." + e.className)];
    }""")


def open_folds(page):
    """Unfold everything, also what waits for a prediction."""
    page.evaluate("""() => {
        document.querySelectorAll("article details").forEach(e => e.open = true);
        document.querySelectorAll("article [hidden]").forEach(e => e.hidden = false);
    }""")


def sideways(page, but=""):
    """Name the blocks of a page that must be scrolled sideways, `but` those that match."""
    open_folds(page)
    drawn(page)  # the script that marks them observes sizes
    return page.evaluate(
        """but => [...document.querySelectorAll("article *")].filter(e =>
            ["auto", "scroll"].includes(getComputedStyle(e).overflowX) &&
            e.scrollWidth > e.clientWidth + 1 && !(but && e.matches(but))
        ).map(e => e.tagName + "." + e.className + ": " + e.textContent.trim().slice(0, 60))""",
        but,
    )


def wrong_folds(page):
    """Complain about folds of cells whose title says nothing of what is in them."""
    titles = page.locator("article details.hide > summary").all_text_contents()
    return [title for title in titles if "code cell" in title or not title.strip()]


def brightness(page):
    """Return the brightness of the page's background, from 0 (black) to 255 (white)."""
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red, green, blue = map(float, re.findall(r"[\d.]+", color)[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue


COLORS = ["color-contrast", "link-in-text-block"]  # all rules that the dark can break


def barriers(page, **options):
    """Return what axe-core calls a serious or critical barrier to readers."""
    options = {"resultTypes": ["violations"]} | options
    violations = Axe().run(page, options=options).response["violations"]
    return [
        f"{v['id']}: {v['help']}: {v['nodes'][0]['html']}"
        for v in violations
        if v["impact"] in ("serious", "critical")
    ]


def undrawn_formulas(page):
    """Complain about every formula that MathJax has not turned into a picture."""
    if page.locator(".math").count():
        page.wait_for_function("window.MathJax?.startup?.promise")
        page.evaluate("MathJax.startup.promise")
    return [
        formula.inner_text()
        for formula in page.locator(".math").all()
        if formula.locator("mjx-container svg").count() == 0
    ]


def tab_until(page, selector, limit=40):
    """Press Tab until an element that matches `selector` has the focus."""
    for _ in range(limit):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return True
    return False


# -- every page, opened three times and asked many things ------------------------------
def open_page(browser, address, path, look, **settings):
    opened = Visit(browser, address + path, **settings)
    name = path.removesuffix(".html").replace("/", "-")
    opened.page.screenshot(path=SCREENSHOTS / f"{name}-{look}.png")
    return opened


@pytest.fixture(scope="module", params=PAGES)
def light(browser, address, request):
    with open_page(browser, address, request.param, "light") as opened:
        yield opened


@pytest.fixture(scope="module", params=CHAPTERS)
def dark(browser, address, request):
    look = {"color_scheme": "dark", "viewport": WIDE}
    with open_page(browser, address, request.param, "dark", **look) as opened:
        yield opened.page


@pytest.fixture(scope="module", params=CHAPTERS)
def phone(browser, address, request):
    with open_page(browser, address, request.param, "phone", viewport=PHONE) as opened:
        yield opened.page


def test_every_chapter_is_built():
    assert CHAPTERS and set(CHAPTERS) <= set(PAGES)


def test_page_opens_without_errors_and_stays_on_this_machine(light):
    assert light.problems == []


def test_page_and_its_pictures_are_described(phone):
    assert undescribed(phone) == []


def test_formulas_are_drawn_offline(light):
    assert undrawn_formulas(light.page) == []


def test_page_has_no_barrier(light):
    assert barriers(light.page) == []


def test_page_has_no_barrier_in_the_dark(dark):
    """Nothing but colors differs from the page in the light."""
    assert barriers(dark, runOnly=COLORS) == []


def test_page_follows_the_light_of_the_system(light):
    assert brightness(light.page) > 200


def test_page_follows_the_dark_of_the_system(dark):
    assert brightness(dark) < 60


def test_page_fits_a_phone(phone):
    assert too_wide(phone) == []


def test_pictures_follow_the_dark(dark):
    """Their paper is the page's, and what is drawn on it is light."""
    open_folds(dark)
    for picture in dark.locator("article :is(div.cell_output img, img[src$='.svg'])").all()[:2]:
        picture.evaluate("e => e.scrollIntoView({block: 'center'})")  # not below the header
        shot = picture.screenshot(animations="disabled")  # folds that open fade in
        pixels = plt.imread(BytesIO(shot), format="png")[..., :3].mean(-1)
        assert pixels[1, 1] < 0.25 and pixels.max() > 0.7


def test_nothing_is_scrolled_sideways_on_a_wide_screen(dark):
    assert sideways(dark) == []


def test_what_must_be_scrolled_on_a_phone_says_so(phone):
    assert sideways(phone, ".more > *, .mh-view *") == []


def test_folds_say_what_is_in_them(dark):
    assert wrong_folds(dark) == []


def test_chapters_show_their_numbers(dark):
    """In the title of the page, and in the sidebar."""
    number = re.search(r"/notebooks/(\d\d)_", dark.url)
    here = dark.locator(".bd-sidebar-primary .current.active > a").first
    if number:
        for title in (dark.title(), dark.locator("h1").first.inner_text(), here.inner_text()):
            assert title.strip().startswith(f"{int(number[1])}. ")


def test_keyboard_reaches_the_text(light):
    page = light.page
    page.reload()
    assert tab_until(page, "a[href='#main-content']")
    page.keyboard.press("Enter")
    page.wait_for_url("**#main-content")


def test_keyboard_reaches_the_search(light):
    page = light.page
    if "/book/index.html" in page.url:  # a page of its own, which links to the search
        assert tab_until(page, "header a[href='../search.html']")
        return
    page.reload()
    assert tab_until(page, "button.search-button, button.search-button__button")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('input[type=search]')")


def test_search_finds_a_word_offline(browser, address):
    with Visit(browser, address + "search.html?q=hybridize") as opened:
        opened.page.wait_for_selector("#search-results li a")
        assert "glossary" in opened.page.locator("#search-results").inner_html()
        assert opened.problems == []


# -- the checks checked, on a page where everything is wrong ---------------------------
BAD_PAGE = """<html><head><title></title></head>
<body style="background: #777; color: #888"><main>
<article><h1>One</h1><h1>Two</h1></article><span class="math">a^2</span>
<img src="missing.png"><img src="x.png" alt="x.png"><div style="width: 900px">x</div>
<article><details class="hide"><summary>Show code cell content</summary>
<pre style="overflow: auto">{}</pre></details></article>
<script>throw new Error("planted")</script>
<script src="https://example.invalid/cdn.js"></script>
</main></body></html>""".replace("{}", "wide " * 99)


@pytest.fixture
def bad_visit(browser, tmp_path):
    (tmp_path / "bad.html").write_text(BAD_PAGE, encoding="utf-8")
    with serve(tmp_path) as address:
        with Visit(browser, address + "bad.html", viewport=PHONE) as opened:
            yield opened


def test_planted_errors_and_requests_are_seen(bad_visit):
    problems = "\n".join(bad_visit.problems)
    for expected in (
        "error: planted",
        "status 404",
        "console error",
        "left this machine: https://example.invalid/cdn.js",
    ):
        assert expected in problems


def test_a_planted_bad_page_fails_every_check(bad_visit):
    page = bad_visit.page
    complaints = undescribed(page)
    assert "no title" in complaints and "no language" in complaints
    assert "2 headings of the first level" in complaints
    assert sum(c.startswith("image") for c in complaints) == 2
    assert too_wide(page)
    assert wrong_folds(page) == ["Show code cell content"]
    assert len(sideways(page, ".more > *")) == 1
    assert 60 < brightness(page) < 200
    assert any(b.startswith("html-has-lang") for b in barriers(page))
    colors = barriers(page, runOnly=COLORS)
    assert colors and all(b.startswith("color-contrast") for b in colors)
    assert not tab_until(page, "a", limit=5)
    page.evaluate("window.MathJax = {startup: {promise: Promise.resolve(true)}}")
    assert undrawn_formulas(page) == ["a^2"]
