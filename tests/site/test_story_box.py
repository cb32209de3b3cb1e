"""Chapter 35's box: the language model continues a text in the reader's browser."""

from conftest import Visit


def test_a_text_goes_on(browser, address):
    with Visit(browser, f"{address}notebooks/35_a_language_model.html") as opened:
        box = opened.page.locator(".continue-text")
        box.get_by_label("A beginning").fill("The Lion ")
        box.get_by_role("button").click()
        opened.page.wait_for_function(
            "document.querySelector('.continue-text .text').textContent.length > 60"
        )
        assert box.locator(".text").inner_text().startswith("The Lion ")
        assert "characters a second" in box.get_by_role("status").inner_text()
