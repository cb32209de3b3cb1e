"""Words of the glossary: they lead there, and tell their meaning by mouse and keyboard."""

import pytest
from conftest import DESKTOP, PHONE, SITE, Visit

PAGE = "notebooks/11_arrays_and_autograd.html"


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def page(browser, address, request):
    with Visit(browser, address + PAGE, viewport=request.param) as opened:
        yield opened.page


def test_a_word_leads_to_its_entry(page):
    link = page.locator("article a.glossed").first
    word = link.inner_text().lower().removesuffix("s")
    link.click()
    page.wait_for_url("**/book/glossary.html#term-*")
    target = page.locator(f"[id='{page.url.partition('#')[2]}']")
    assert target.inner_text().lower().startswith(word)


def test_every_word_has_an_entry(page):
    entries = (SITE / "book/glossary.html").read_text(encoding="utf-8")
    links = page.locator("article a.glossed").all()
    assert len(links) > 10
    for link in links:
        assert f'id="{link.get_attribute("href").partition("#")[2]}"' in entries
        assert len(link.get_attribute("title")) > 10


def test_the_keyboard_shows_the_meaning_inside_of_the_window(page):
    link = page.locator("article a.glossed").first
    shown = "e => getComputedStyle(e, '::after').content"
    assert link.evaluate(shown) == "none"
    page.keyboard.press("Tab")  # from here the focus is that of a keyboard
    link.focus()
    assert link.get_attribute("title") in link.evaluate(shown)
    assert link.evaluate("e => getComputedStyle(e, '::after').position") == "fixed"
    width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]
