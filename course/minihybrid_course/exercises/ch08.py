"""Chapter 08: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import contextlib
import io
import math
import time

from minihybrid_course.exercises.judging import Exercise, equal, expect, need, number, same, tried


# -- timing --------------------------------------------------------------------------------
def averages(function):
    """Check 8.1: a call costs 100, and one more each time; a candidate costs its mean."""
    for order, expected in (
        ("A", {"A": 100}),
        ("AB", {"A": 100, "B": 101}),
        ("ABB", {"A": 100, "B": 101.5}),
        ("ABCCBA", {"A": 102.5, "B": 102.5, "C": 102.5}),
        ("AAAB", {"A": 101, "B": 103}),
        ("AABBBBA", {"A": 307 / 3, "B": 103.5}),
    ):
        means = tried(f"mean_costs({order!r})", function, order)
        expect(means, dict, "a dictionary")
        same(sorted(means), sorted(expected), f"for {order!r}, the list of candidates")
        for name, cost in expected.items():
            what = f"for {order!r}, the mean cost of {name}"
            hint = "the call at position t costs 100 + t"
            equal(number(means[name], what), cost, what, hint, 1e-6, 0)
    return "ABC favors A by two calls, and ABCCBA is fair"


def words(make):
    """Check 8.3: a timed `with` block that prints its description and time."""
    watch = tried("Words('tea')", make, "tea")
    with contextlib.redirect_stdout(io.StringIO()) as out:

        def used():
            with watch:
                early.append(out.getvalue())
                time.sleep(0.01)
            return True

        early = []
        tried("a `with` block of Words('tea')", used)
    printed = out.getvalue()
    need(
        not early[0].strip(),
        "it prints when the block starts, but the time is known only at its end",
    )
    need(
        hasattr(watch, "elapsed_s"),
        "after the block, there's no elapsed_s: your __exit__ overrides Timer's, which stops "
        "the clock, so call that one as well",
    )
    need(watch.elapsed_s >= 0.009, f"{watch.elapsed_s} s is too short for a block that slept 0.01")
    need(printed.strip(), "the clock stops, but no line is printed")
    need("tea" in printed, f"the line `{printed.strip()}` doesn't contain the description")
    need(
        any(c.isdigit() for c in printed), f"the line `{printed.strip()}` doesn't contain the time"
    )
    need(
        "__enter__" not in vars(type(watch)),
        "it has its own __enter__, but Timer's already starts the clock",
    )
    return "it reuses the clock and adds the line"


def pays(function):
    """Check 8.4: the first call divided by the savings of each later one."""
    for times, expected in (
        ((1.0, 3e-4, 1e-4), 5000),
        ((2.0, 1.5, 0.5), 2),
        ((0.5, 2.0, 1.0), 0.5),
    ):
        actual = number(tried(f"pays_after{times}", function, *times), f"pays_after{times}")
        saved = f"{times[1] - times[2]:g} of the {times[0]:g} seconds that the first one took"
        equal(actual, expected, f"pays_after{times}", f"each later call saves {saved}", 1e-6, 0)
    for times in ((1.0, 1e-4, 1e-4), (1.0, 1e-4, 3e-4)):
        case = f"pays_after{times}, where nothing is saved,"
        never = 'it never pays off; return `float("inf")`'
        same(number(tried(case, function, *times), case), math.inf, case, never)
    return "and if nothing is saved, it never pays off"


EXERCISES = {
    "8.1": Exercise("your function mean_costs(order)", averages),
    "8.3": Exercise("your class Words", words),
    "8.4": Exercise("your function pays_after(first_s, eager_s, hybrid_s)", pays),
}
