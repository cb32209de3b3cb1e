"""Two runs of a timing cell look alike once nbval has blanked out what may differ."""

import pytest
from minihybrid.bench import Comparison, Timing
from page_outputs import sanitized

FAST = Timing((5.31e-6, 5.3e-6, 5.62e-6), 2048)
SLOW = Timing((0.1204, 0.1201, 0.1399), 1)


@pytest.mark.parametrize("text", [repr, Comparison._repr_html_])
def test_comparisons_differ_in_names_only(text):
    one = sanitized(text(Comparison({"eager": FAST, "hybridized": SLOW})))
    assert one == sanitized(text(Comparison({"eager": SLOW, "hybridized": FAST})))
    assert one != sanitized(text(Comparison({"eager": FAST, "compiled": SLOW})))


def test_measurements_look_alike():
    assert sanitized(repr(FAST)) == sanitized(repr(SLOW))


def test_counts_are_compared():
    assert sanitized("3 kernels, 240 bytes") == "3 kernels, 240 bytes"


def test_rows_differ_in_names_only_however_busy_the_machine_was():
    """A table that readers write judges its rows, in the chapter on timing."""
    busy = sanitized("eager         754.6 us  613.4 .. 872.3 us  1.00 busy")
    assert busy == sanitized("eager         78.1 us  77.0 .. 78.2 us  1.00 quiet")
    assert busy != sanitized("hybridized    4.6 us  4.5 .. 4.8 us  1.00 quiet")
    assert sanitized("busy: True") == "busy: True"


def test_what_a_canvas_holds_is_not_compared():
    one, other, third = (
        sanitized(f"<p>a</p><template>{t}</template>") for t in ("4A/=", "", "<b>")
    )
    assert one == other != third
