"""Every built page, opened in a real browser: in order, offline, legible, reachable."""

import re
from io import BytesIO

import matplotlib.pyplot as plt
import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import BUILD, DESKTOP, PHONE, SCREENSHOTS, SITE, WIDE, Visit, drawn, serve

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
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red, green, blue = map(float, re.findall(r"[\d.]+", colour)[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue


COLOURS = ["color-contrast", "link-in-text-block"]  # all rules that the dark can break


def barriers(page, **options):
    """Return what axe-core calls a serious or critical barrier to readers."""
    options = {"resultTypes": ["violations"], "preload": False} | options  # it fetches styles
    violations = Axe().run(page, options=options).response["violations"]
    return [
        f"{v['id']}: {v['help']}: {v['nodes'][0]['html']}"
        for v in violations
        if v["impact"] in ("serious", "critical")
    ]


def without_repeats(page):
    """Remove words that look like one before them: their colours need no second check."""
    page.evaluate("""() => {
        const seen = new Set(), clear = "rgba(0, 0, 0, 0)";
        const words = document.querySelectorAll("pre span, dt span, code span, nav a");
        const again = [...words].filter((e) => {
            if (e.children.length || e.closest("article a") || !e.checkVisibility()) return false;
            const style = getComputedStyle(e);
            let paper = e;
            while (paper.parentElement && getComputedStyle(paper).backgroundColor === clear)
                paper = paper.parentElement;
            const look = [e.className, e.parentElement.className, style.color, style.fontSize,
                style.fontWeight, getComputedStyle(paper).backgroundColor].join();
            return seen.has(look) || !seen.add(look);
        });
        again.forEach((e) => e.remove());
    }""")


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


# -- every page, opened once and seen in three looks -----------------------------------
LOOKS = [  # each is the first of every third page; the others follow by resizing
    {"viewport": DESKTOP, "color_scheme": "light"},
    {"viewport": WIDE, "color_scheme": "dark"},
    {"viewport": PHONE, "color_scheme": "light"},
]
LIGHT, DARK, SMALL = LOOKS


def seen_as(page, look, name):
    """Give the window another size and light."""
    page.set_viewport_size(look["viewport"])
    page.emulate_media(color_scheme=look["color_scheme"])
    drawn(page)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def keyboard(page):
    """Complain if Tab and Enter don't reach the text and the search."""
    skip, search = "a[href='#main-content']", "button.search-button, button.search-button__button"
    if not tab_until(page, skip):
        return ["no way to the text"]
    if "/book/index.html" in page.url:  # a page of its own, which links to the search
        return [] if tab_until(page, "header a[href='../search.html']") else ["no search"]
    if not tab_until(page, search):
        return ["no way to the search"]
    page.keyboard.press("Enter")
    wrong = [] if page.evaluate("document.activeElement.matches('input[type=search]')") else ["box"]
    page.keyboard.press("Escape")
    page.locator(skip).first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**#main-content")
    return wrong


CLICK = "all => all.forEach((e) => e.isConnected && e.click())"  # one answers two questions


def predictions(page):
    """Complain about answers that a reader sees before asking for them, or not then."""
    outputs = page.locator(".tag_answer .cell_output")
    if not page.locator("form.predict").count():
        return []
    wrong = [] if outputs.count() else ["no answer"]
    wrong += ["seen too early" for output in outputs.all() if output.is_visible()]
    page.locator("form.predict .show").evaluate_all(CLICK)
    wrong += ["not shown" for output in outputs.all() if not output.is_visible()]
    return wrong + page.locator(".waits").all_inner_texts()


def dark_pictures(page):
    """Complain about pictures whose paper isn't the page's, or on which nothing light is drawn."""
    open_folds(page)
    wrong = []
    for picture in page.locator("article :is(div.cell_output img, img[src$='.svg'])").all()[:2]:
        picture.evaluate("e => e.scrollIntoView({block: 'center'})")  # not below the header
        shot = picture.screenshot(animations="disabled")  # folds that open fade in
        pixels = plt.imread(BytesIO(shot), format="png")[..., :3].mean(-1)
        if not (pixels[1, 1] < 0.25 and pixels.max() > 0.7):
            wrong.append(picture.get_attribute("alt"))
    return wrong


def unnumbered(page):
    """Complain if a chapter's number is missing in the page's title or in the sidebar."""
    number = re.search(r"/notebooks/(\d\d)_", page.url)
    if not number:
        return []
    here = page.locator(".bd-sidebar-primary .current.active > a").first
    titles = page.title(), page.locator("h1").first.inner_text(), here.inner_text()
    return [t for t in titles if not t.strip().startswith(f"{int(number[1])}. ")]


def complaints(opened, path):
    """Yield each check and what it finds; at the end, the page is unfolded and lacks words."""
    page, name = opened.page, path.removesuffix(".html").replace("/", "-")
    seen_as(page, LIGHT, f"{name}-light")
    yield "formulas", undrawn_formulas(page)
    yield "barriers", barriers(page, rules={rule: {"enabled": False} for rule in COLOURS})
    yield "light", [] if brightness(page) > 200 else ["it is dark"]
    yield "keyboard", keyboard(page)
    if path in CHAPTERS:
        yield "descriptions", undescribed(page)
        yield "predictions", predictions(page)
        seen_as(page, SMALL, f"{name}-phone")
        yield "phone", too_wide(page)
        yield "phone, sideways", sideways(page, ".more > *, .mh-view *")
        seen_as(page, DARK, f"{name}-dark")
        yield "dark", [] if brightness(page) < 60 else ["it is light"]
        yield "dark pictures", dark_pictures(page)
        yield "sideways", sideways(page)
        yield "folds", wrong_folds(page)
        yield "numbers", unnumbered(page)
        without_repeats(page)
        yield "colours in the dark", barriers(page, runOnly=COLOURS)
        page.emulate_media(color_scheme="light")
        drawn(page)
    without_repeats(page)
    yield "colours", barriers(page, runOnly=COLOURS)
    yield "problems", opened.problems


@pytest.mark.parametrize("path", PAGES)
def test_page(browser, address, path):
    """It opens without errors, stays on this machine, and nobody is shut out of it."""
    with Visit(browser, address + path, **LOOKS[PAGES.index(path) % 3]) as opened:
        assert {check: wrong for check, wrong in complaints(opened, path) if wrong} == {}


def test_every_chapter_is_built():
    assert CHAPTERS and set(CHAPTERS) <= set(PAGES)


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
<pre><span>a</span><span>b</span></pre>
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
    without_repeats(page)
    assert page.locator("pre > span").all_inner_texts() == ["a"]
    colours = barriers(page, runOnly=COLOURS)
    assert colours and all(b.startswith("color-contrast") for b in colours)
    assert not tab_until(page, "a", limit=5)
    page.evaluate("window.MathJax = {startup: {promise: Promise.resolve(true)}}")
    assert undrawn_formulas(page) == ["a^2"]
