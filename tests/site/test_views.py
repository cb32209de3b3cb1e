"""The hybrid view, the boxes and the walk, used by mouse, by finger and by keyboard."""

import pytest
from conftest import DESKTOP, PHONE, SCREENSHOTS, Visit, serve
from test_site import barriers, too_wide

import minihybrid as mx
from minihybrid import autograd, nd

# A page that would spoil what is not shut off from it.
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>views</title><style>
html {{ color-scheme: light dark; font-family: sans-serif;
  background: light-dark(#fff, #121212); color: light-dark(#222, #ddd); }}
.panel {{ border: 40px solid red; }} .line {{ color: red; }}
</style></head><body><main><h1>Views</h1>{}</main></body></html>"""


def net(x, w, v):
    h = nd.dot(x, w)
    h = h * nd.sigmoid(h) + nd.sigmoid(h)
    nd.exp(h)
    return nd.softmax(nd.dot(h, v) * 1.0)


def made():
    """The HTML of one view of each kind, and one more of the first."""
    inputs = nd.ones((8, 4)), nd.ones((4, 6)), nd.ones((6, 3))
    view = mx.explain(mx.function(net), *inputs, timings=False)
    boxes = mx.course.packing(
        {"a": (0, 1, 128), "b": (1, 2, 64), "c": (2, 3, 192), "d": (3, 4, 128)}
    )
    x = nd.array([3])
    x.attach_grad()
    with autograd.record():
        y = x * x * x
    walk, tabs = mx.course.walk_back(y, x=x), mx.course.elsewhere("branch")
    return [part._repr_html_() for part in (view, boxes, walk, view, tabs, tabs)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("views")
    (folder / "views.html").write_text(PAGE.format("\n".join(made())), encoding="utf-8")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with serve(folder) as address:
        yield address + "views.html"


LOOKS = {
    "light": {"viewport": {**DESKTOP, "width": 1440}},
    "dark": {"viewport": {**DESKTOP, "width": 1440}, "color_scheme": "dark"},
    "phone": {"viewport": PHONE},
    "phone-dark": {"viewport": PHONE, "color_scheme": "dark"},
}


@pytest.fixture
def page(browser, site):
    with Visit(browser, site) as opened:
        yield opened.page


def view_of(page):
    return page.locator(".mh-view").first


def lit(page, kind):
    """How many visible parts of a panel are lit."""
    parts = view_of(page).locator(f".panel[data-kind='{kind}'] .lit")
    return sum(part.is_visible() for part in parts.all())


def line(page, text):
    return view_of(page).locator(".line", has_text=text).first


@pytest.mark.parametrize("look", LOOKS)
def test_views_open_without_errors_or_barriers_and_fit(browser, site, look):
    with Visit(browser, site, **LOOKS[look]) as opened:
        assert opened.problems == []
        assert barriers(opened.page) == []
        assert too_wide(opened.page) == []
        line(opened.page, "h * nd.sigmoid").click()
        opened.page.screenshot(path=SCREENSHOTS / f"views-{look}.png", full_page=True)


def test_styles_do_not_leak_in(page):
    style = "e => [getComputedStyle(e).borderTopWidth, getComputedStyle(e).color]"
    width, _ = view_of(page).locator(".panel").first.evaluate(style)
    _, color = line(page, "def net").evaluate(style)
    assert width == "1px" and color != "rgb(255, 0, 0)"


def test_a_view_opens_at_the_first_pass_and_shows_no_imports(page):
    assert "0. trace" in view_of(page).locator(".now .pass").inner_text()
    source = view_of(page).locator("[data-kind='line of the kernels'] pre").inner_text()
    assert "import" not in source and "def k0" in source


def test_a_line_lights_its_nodes_kernels_and_buffers(page):
    view_of(page).locator(".slider input").fill("5")
    line(page, "h * nd.sigmoid").hover()
    assert lit(page, "line of Python") == 1
    assert lit(page, "node") > 0 and lit(page, "buffer") > 0
    assert lit(page, "line of the kernels") > 5
    assert "1 line of Python, 1 node" in view_of(page).locator(".said").inner_text()
    line(page, "nd.exp").hover()  # nobody reads it, so it is nowhere in what runs
    assert lit(page, "line of Python") == 1
    assert lit(page, "node") == lit(page, "line of the kernels") == 0


def test_a_kernel_line_lights_the_line_that_wanted_it(page):
    line(page, "sigmoid32(").hover()
    program = view_of(page).locator("[data-kind='line of Python']")
    lines = program.locator(".lit").all_inner_texts()
    assert len(lines) == 1 and "nd.sigmoid" in lines[0]


def test_a_click_keeps_the_light_and_escape_lets_go(page):
    line(page, "h * nd.sigmoid").click()
    page.mouse.move(0, 0)
    assert lit(page, "buffer") > 0
    page.keyboard.press("Escape")
    line(page, "h * nd.sigmoid").press("Escape")
    page.locator("h1").click()
    assert lit(page, "buffer") == 0


def test_the_view_is_used_by_keyboard_alone(page):
    page.keyboard.press("Tab")  # to the first line that is linked
    assert lit(page, "line of Python") == 1 and lit(page, "node") > 0
    page.keyboard.press("ArrowDown")
    focused = page.evaluate("""() => {
        let e = document.activeElement;
        while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
        return e.textContent;
    }""")
    assert "h * nd.sigmoid" in focused
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # to the slider
    page.keyboard.press("Home")
    assert "0. trace" in view_of(page).locator(".now .pass").inner_text()
    assert lit(page, "node") == 4  # what the line made, before any pass
    page.keyboard.press("Escape")
    assert lit(page, "node") == 0


def test_the_slider_goes_through_the_passes(page):
    slider = view_of(page).locator(".slider input")
    seen = []
    for i in range(6):
        slider.fill(str(i))
        now = view_of(page).locator(".stage.now")
        assert now.count() == 1
        drawn = [s for s in view_of(page).locator(".stage svg").all() if s.is_visible()]
        assert len(drawn) == 1
        seen.append(now.locator(".pass b").inner_text())
        assert slider.get_attribute("aria-valuetext").startswith(seen[-1])
    assert seen == ["0. trace:", "1. expand:", "2. fold:", "3. cse:", "4. dce:", "5. fuse:"]
    slider.fill("3")
    stage = view_of(page).locator(".stage.now")
    assert stage.locator("g.merged").count() == 1  # two sigmoids became one
    assert stage.locator("del").count() > 0 and stage.locator("del").first.is_visible()


def test_without_scripts_everything_is_visible(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site)
    view = view_of(page)
    assert view.locator(".stage").count() == 6
    assert all(stage.is_visible() for stage in view.locator(".stage").all())
    assert all(svg.is_visible() for svg in view.locator("svg").all())
    assert not view.locator(".slider").is_visible()
    steps = page.locator(".mh-tape .steps li")
    assert steps.count() == 3 and all(step.is_visible() for step in steps.all())
    assert page.locator(".mh-boxes .box").count() == 4
    context.close()


PUT_IN = """html => {
    const out = document.createElement("div");
    out.innerHTML = html;  // which runs no scripts, so notebooks make them anew
    for (const old of out.querySelectorAll("script")) {
        const script = document.createElement("script");
        script.textContent = old.textContent;
        old.replaceWith(script);
    }
    document.body.append(out);
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.srcdoc = html;
    document.body.append(frame);
}"""


def test_views_work_as_notebooks_put_them_in(browser):
    """By script, as in JupyterLab; in a frame shut off from the page, as in Colab."""
    page = browser.new_page()
    page.set_content("<!doctype html><body></body>")
    page.evaluate(PUT_IN, made()[0])
    frame = page.frame_locator("iframe")
    frame.locator(".mh-view.on .stage.now").wait_for()
    for place in (page, frame):
        assert place.locator(".mh-view.on").count() == 1
        place.locator(".line", has_text="h * nd.sigmoid").first.click()
        assert place.locator(".line.lit").count() > 5
    page.close()


# -- boxes -----------------------------------------------------------------------------
def status(page):
    return page.locator(".mh-boxes .said").inner_text()


def test_boxes_are_dragged_and_overlaps_are_said(page):
    assert status(page).startswith("Your pile: 512 bytes. No overlap.")
    box = page.locator(".mh-boxes .box").nth(3)
    box.scroll_into_view_if_needed()
    area = box.bounding_box()
    x, y = area["x"] + area["width"] / 2, area["y"] + area["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + area["height"], steps=4)  # onto the box below
    page.mouse.up()
    assert "At one time at the same bytes: c and d." in status(page)
    assert page.locator(".mh-boxes .clash").count() == 2


def test_boxes_are_packed_by_keyboard_down_to_the_bound(page):
    page.locator(".mh-boxes .box").first.focus()
    for key in (
        *["ArrowRight"] * 2,
        "Home",  # c, to the floor
        "ArrowLeft",
        "Shift+ArrowUp",  # b, onto c
        *["ArrowRight"] * 2,
        "Home",
        "Shift+ArrowUp",
    ):  # d, onto c
        page.keyboard.press(key)
    assert status(page) == "Your pile: 320 bytes. No overlap, and no plan can be lower."
    page.keyboard.press("ArrowDown")  # a cache line, into c
    assert "c and d" in status(page)


def test_buttons_show_the_planners_answer_and_start_again(page):
    page.locator("[data-do=planner]").click()
    assert status(page) == "Your pile: 320 bytes. No overlap, and no plan can be lower."
    page.locator("[data-do=again]").click()
    assert status(page).startswith("Your pile: 512 bytes.")


# -- the walk --------------------------------------------------------------------------
def gradients(page):
    """Name -> the gradient that is visible."""
    rows = page.locator(".mh-tape tbody tr")
    return {row.get_attribute("data-name"): row.locator(".grad").inner_text() for row in rows.all()}


def test_the_walk_is_gone_by_clicks_and_by_keys(page):
    assert gradients(page) == {"x": "", "t0": "", "t1": "[1.]"}
    page.locator(".mh-tape [data-do='1']").click()
    assert gradients(page) == {"x": "[9.]", "t0": "[3.]", "t1": "[1.]"}
    assert page.locator(".mh-tape tr.gives").get_attribute("data-name") == "t1"
    page.locator(".mh-tape input").focus()
    page.keyboard.press("ArrowRight")
    assert gradients(page)["x"] == "[27.]"
    assert page.locator(".mh-tape [data-do='1']").is_disabled()
    assert page.locator(".mh-tape .steps li").nth(2).is_visible()
    page.keyboard.press("Home")
    assert gradients(page) == {"x": "", "t0": "", "t1": "[1.]"}


# -- tabs ------------------------------------------------------------------------------
def shown_tabs(page):
    """The libraries whose part is visible, one for each group of tabs."""
    parts = page.locator(".mh-tabs section")
    return [part.get_attribute("data-name") for part in parts.all() if part.is_visible()]


def test_a_tab_shows_one_library_and_all_groups_follow(page):
    assert shown_tabs(page) == ["mxnet", "mxnet"]
    page.get_by_role("tab", name="JAX").last.click()
    assert shown_tabs(page) == ["jax", "jax"]
    panel = page.get_by_role("tabpanel", name="JAX").first
    assert "NOT RUN HERE" in panel.inner_text()
    assert "TracerBoolConversionError" in panel.inner_text()


def test_tabs_by_keyboard(page):
    tabs = page.locator(".mh-tabs").first.get_by_role("tab")
    tabs.first.focus()
    for key, library in (("ArrowRight", "torch"), ("End", "jax"), ("ArrowRight", "mxnet")):
        page.keyboard.press(key)
        assert shown_tabs(page)[0] == library
    page.keyboard.press("ArrowLeft")
    chosen = page.locator(".mh-tabs").first.locator("[aria-selected=true]")
    assert chosen.inner_text() == "JAX" and chosen.evaluate("e => e.matches(':focus')")


def test_without_scripts_all_libraries_stand_below_each_other(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site)
    assert len(shown_tabs(page)) == 8
    assert page.locator(".mh-tabs .head").first.is_visible()
    context.close()
