"""The page of results says what the files say, and marks what cannot be trusted."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "book/_ext/results.py"
SPEC = importlib.util.spec_from_file_location("results_page", PATH)
page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page)

STEADY = [1.00, 1.01, 1.02, 1.01, 1.00]
SLOWER = [t * 1.6 for t in STEADY]
APART = [1.0, 1.0, 1.5, 2.0, 2.0]


def workload(ours, theirs, before=STEADY, after=STEADY):
    rows = [
        {"rival": rival, "mode": "", "times_s": times}
        for rival, times in ((page.OURS, ours), ("numpy", theirs))
    ]
    return {"rows": rows, "yardstick_s": [before, after]}


@pytest.mark.parametrize(
    "case, expected",
    [
        (workload(STEADY, SLOWER), "ahead"),
        (workload(SLOWER, STEADY), "behind"),
        (workload(STEADY, STEADY), "draw"),
        (workload(STEADY, SLOWER, after=SLOWER), "ahead, busy"),  # steady, and moved
        (workload(STEADY, SLOWER, before=APART, after=APART), "ahead, busy"),
        (workload(APART, SLOWER), "draw, unsteady"),
        (workload(STEADY, [t * 1.04 for t in STEADY]), "draw"),  # less than 5 %
        (workload(STEADY, [t * 1.07 for t in STEADY]), "ahead"),
    ],
)
def test_a_row_says_who_is_ahead_and_what_speaks_against_it(case, expected):
    assert page.verdict(case) == expected


@pytest.mark.parametrize(
    "two, expected", [(SLOWER, "slower"), (STEADY, "as before"), (APART, "slower, unsteady")]
)
def test_a_second_thread_that_brings_nothing_has_a_word(two, expected):
    gain, word = page.gained(workload(STEADY, STEADY), workload(two, STEADY))
    assert word == expected and (gain < 0.9) == word.startswith("slower")


@pytest.mark.parametrize("name", page.TABLES)
def test_every_table_has_rows_of_its_heads_length(name):
    head, *rows = page.TABLES[name]()
    unmeasured = name.startswith("attention") and not page.stored("attention.json")
    assert (rows or name == "missed" or unmeasured) and {len(row) for row in rows} <= {len(head)}


def test_what_differs_in_a_page_is_counted():
    visit = {"kernel_s": 4.0, "first_s": 6.0, "whole_s": 9.0, "bytes": 31_000_000}
    one = {"cells": 40, "announced": {"c1": "no threads"}, "broken": ["c2"], "claims": 3}
    one |= {"reversed": [["c3", 5.0, 0.5]], "visits": [visit, visit | {"bytes": 4_000}]}
    machine = {"cpu": "CPU", "cores": 2, "date": "2026-11-29"}
    found = {"machine": machine, "busy": True, "chapters": {"01_two_ways": one, "02": one}}
    words = page.in_page(found)
    assert "busy" in words and "busy" not in page.in_page(found | {"busy": False})
    assert "76 of 80 cells in 2 chapters" in words and "Of 6 ratios of times, 4 are" in words
    assert "6 s on the first visit, which loads at most 31 MB" in words and "4 kB" in words
    assert page.in_page_differences(found)[1] == ("01_two_ways", "c1", "no threads")
    head, row, _ = page.in_page_chapters(found)
    assert len(head) == len(row) and row[:3] == ("01_two_ways", "40", "38")


def test_attention_is_compared_with_the_faster_of_pytorchs_two():
    seconds = {"minihybrid": 0.002, "torch": 0.004, "compiled": 0.008}
    row = {"length": 4096, "way": "causal", "mode": "step"} | seconds
    actual = {"machine": {"date": "today", "cpu": "a", "system": "b", "python": "c"}}
    actual |= {"times": [row], "peaks": [row], "yardstick_s": [[1.0] * 9, [1.0] * 9]}
    _, line = page.attention("times", actual)
    assert line == ("causal attention", "4,096", "training step", "2", "4", "8", "0.50")
    assert page.attention("peaks", actual)[1][3] == "2e-09"
    assert "busy" not in page.attention_machine(actual)
    assert "busy" in page.attention_machine(actual | {"yardstick_s": [[1.0] * 9, [1.2] * 9]})


def test_no_race_is_left_out():
    """Where we are behind, too: who was timed beside us stands in the table."""
    for threads in (1, 2):
        workloads = page.read(threads)["workloads"].values()
        raced = [w["title"] for w in workloads if any(r["rival"] == page.OURS for r in w["rows"])]
        assert sorted(line[0] for line in page.ratios(threads)[1:]) == sorted(raced)


def test_every_ratio_is_a_dot_on_its_side_of_one():
    actual = page.dots()
    assert actual.count("<circle") == len(page.ratios()) - 1
    assert page.across(0.5) - page.across(0.25) == pytest.approx(
        page.across(1) - page.across(0.5), abs=0.2
    )
    assert page.across(0.01) == page.LEFT and page.across(99) == page.LEFT + page.LONG
    assert actual.count('fill="none"') == sum("," in line[2] for line in page.ratios()[1:])


def test_each_kind_of_processor_keeps_its_newest_results():
    kinds = [page.processor(r) for r in (page.read(), *page.elsewhere())]
    assert len(set(kinds)) == len(kinds) > 1
    head, *rows = page.processors()
    assert len(head) == 1 + len(kinds) and len(rows) == len(page.ratios()) - 1


def test_a_group_is_one_sentence_that_counts_its_workloads():
    texts = list(page.groups())
    assert len(texts) == len(page.GROUPS)
    for text, names in zip(texts, page.GROUPS.values(), strict=True):
        assert f"{len(names)} workload" in text and text.count(" on ") == len(page.elsewhere())
    rows = {name: w for name, w in page.raced(page.read()).items()}
    assert page.mean(rows, ["mlp"]) == pytest.approx(page.ratio(rows["mlp"]))


def test_two_threads_are_compared_with_one_on_the_same_kind_of_processor():
    once = {page.processor(r): r for r in (page.read(), *page.elsewhere())}
    rows_of = page.raced(once[page.processor(page.read(2))])
    medians = {w["title"]: page.timing(page.fastest(w, True)["times_s"]) for w in rows_of.values()}
    for title, one, *_ in page.threads()[1:]:
        assert one == medians[title].cells()[0]


def test_every_mode_stands_in_its_workloads_table():
    for w in page.read()["workloads"].values():
        assert len(page.modes(w)) == 1 + len(w["rows"])


@pytest.mark.parametrize("doubted, words", [(0, "0 rows are"), (1, "1 row is"), (2, "2 rows are")])
def test_the_sentence_counts_in_english(monkeypatch, doubted, words):
    verdicts = {"a": "ahead", "b": "draw", "c": "behind"}
    verdicts |= {f"d{i}": "ahead, busy" for i in range(doubted)}
    monkeypatch.setattr(page, "read", dict)
    monkeypatch.setattr(page, "raced", lambda _: verdicts)
    monkeypatch.setattr(page, "verdict", lambda word: word)
    text = page.summary()
    assert (
        f"Of {3 + doubted} workloads" in text and f"ahead in {1 + doubted} and behind in 1" in text
    )
    assert f"in a draw. {words} marked: the machine was busy" in text


def test_rounds_are_drawn_in_pairs_and_processes_as_a_whole():
    """What slows both sides of a round says nothing of the ratio; one process may be slow."""
    drift = [1.0, 3.0, 2.0, 5.0, 1.0, 4.0]
    assert page.interval([2 * t for t in drift], drift, 1) == (2.0, 2.0)
    slow_once = [1.0] * 4 + [1.3] * 2
    low, high = page.interval(slow_once, [1.0] * 6, 3)
    assert low == 1.0 and high == pytest.approx(1.3)


def test_the_rule_rarely_names_a_winner_among_equals(monkeypatch):
    assert page.false_positives(3, 20, races=100) < 0.05
    monkeypatch.setattr(page, "DRAW", 0)  # the dead zone is needed: intervals alone fail
    assert page.false_positives(3, 20, races=100) > 0.05


def test_every_workload_with_a_rival_is_in_one_group():
    named = [name for names in page.GROUPS.values() for name in names]
    assert sorted(named) == sorted(page.raced(page.read()))


def test_the_error_rate_is_that_of_the_file():
    actual = {
        "programs": {
            "commit": "0123456789abcdef",
            "date": "2026-01-02",
            "seeds": [7, 1006],
            "programs": 1000,
            "differences": 0,
            "modes": {"rewritten": 750, "np": 333, "plain": 200, "gpu": 100, "cpu": 20},
        }
    }
    words = page.error_rate(actual)
    assert words.startswith(
        "0 differences in 1,000 programs at commit 01234567 (2026-01-02, seeds 7 to 1006)."
    )
    assert "planted" not in words and "MXNet" not in words
    actual["programs"]["differences"] = 1
    actual["faults"] = {"planted": 20, "caught": 19, "date": "2026-01-03"}
    actual["mxnet"] = {"programs": 600, "unexplained": 2, "date": "2026-01-04"}
    words = page.error_rate(actual)
    assert words.startswith("1 difference in")
    assert "Of 20 faults planted in the engine on 2026-01-03, such programs caught 19." in words
    assert words.endswith("Beside MXNet 1.9.1 on 2026-01-04: 600 programs, 2 unexplained.")
    kinds = {"contrib.cond": 300, "contrib.while_loop": 200, "contrib.foreach": 100}
    control = {"programs": 500, "modes": {"numpy": 497, **kinds}, "seeds": [1, 500]}
    words = page.error_rate(actual | {"control": actual["programs"] | control})
    assert "1 difference in 500 programs at commit 01234567 (2026-01-02, seeds 1 to 500)" in words
    assert "Not counted: 3 programs whose gradients have a documented limit" in words


def test_the_published_error_rate_has_each_part():
    assert " programs at commit " in page.error_rate() and "planted" in page.error_rate()


def test_the_harm_done_to_a_class_is_that_of_the_file():
    actual = {
        "machine": {"cpu": "A chip", "cores": 2, "date": "2026-01-02"},
        "assignment": "1_autograd",
        "number": 200,
        "jobs": 2,
        "wall_s": 180.0,
        "students_s": 150.0,
        "grader_s": 10.0,
        "peak_bytes": {"student": 52e6, "hostile": 4.2e9, "grader": 500e6},
        "kinds": {"hostile": {"number": 10}},
        "kills": {
            "number": 2,
            "marks_changed": 0,
            "submissions_lost": 0,
            "processes_left": 0,
            "folders_left": 0,
        },
    }
    words = page.grading(actual)
    assert words.startswith("200 submissions of 1_autograd took 3.0 minutes with 2 at a time")
    assert "0.9 s and 0.8 processor seconds each" in words
    assert "killed 2 times" in words and "without the 10 hostile submissions, 0 marks of" in words
    assert "0 processes and 0 folders were left behind" in words
    actual["kills"] |= {"marks_changed": 1, "submissions_lost": 3, "processes_left": 1}
    words = page.grading(actual)
    assert "1 mark of 190 changed, 3 submissions of 200 got lost, and 1 process" in words


def test_the_published_class_was_not_harmed():
    assert "0 marks of" in page.grading()
    kills = page.json.loads((page.FOLDER / "grading.json").read_text())["kills"]
    assert [count for what, count in kills.items() if what != "number" and count] == []
