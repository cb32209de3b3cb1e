"""Plans of a course hold what their chapters and assignments need, and in this order."""

import re

import pytest
from landing import EXERCISE, chapters, minutes
from lines import count
from minihybrid_course.building import NANO
from minihybrid_course.exercises import TABLE
from minihybrid_course.growing import STEPS

import course

PLANS = pytest.mark.parametrize("n_weeks", [6, 12])
NUMBER = {int(stem[:2]): slug for slug, (stem, *_) in chapters().items()}


def out_of_order(weeks):
    """What a plan lacks, as sentences: a chapter or an assignment before what it needs."""
    wrong, read = [], []
    for slugs, numbers in weeks:
        for slug in slugs:
            wrong += [f"{slug} before {s}" for s in course.needs(slug) if s not in read]
            read.append(slug)
        for n in numbers:
            missing = [NUMBER[c] for c in sorted(course.needs_of(n)) if NUMBER[c] not in read]
            wrong += [f"assignment {n} before {slug}" for slug in missing]
    return wrong


@PLANS
def test_what_is_needed_comes_before(n_weeks):
    weeks = course.plan(n_weeks)
    assert len(weeks) == n_weeks and out_of_order(weeks) == []
    slugs = [slug for slugs, _ in weeks for slug in slugs]
    assert len(set(slugs)) == len(slugs) > 10
    hours = [sum(map(minutes, slugs)) / 60 for slugs, _ in weeks]
    assert max(hours) <= 4


def test_an_order_that_is_wrong_is_found():
    first, second, *rest = course.plan(12)
    assert out_of_order([second, first, *rest]) == ["what_a_graph_knows before two_ways"]
    assert out_of_order([([], [1])])[0] == "assignment 1 before values_and_a_tape"


def test_every_assignment_is_handed_out_in_twelve_weeks():
    assert [n for _, numbers in course.plan(12) for n in numbers] == sorted(course.assignments())


def test_every_chapter_but_the_first_says_what_it_needs():
    assert [slug for slug in chapters() if not course.needs(slug)] == ["tour"]


def test_no_two_chapters_have_one_name():
    names = [course.name_of(slug) for slug in chapters()]
    assert len({name.partition(". ")[2] for name in names}) == len(names)
    assert "3. Hybridize" in names


def text_of(actual):
    return [" ".join(node.astext().split()) for node in actual]


@PLANS
def test_a_plan_on_the_page(n_weeks):
    (table,) = course.weeks(n_weeks)
    rows = [[c.astext() for c in row.children] for row in table.findall(course.nodes.row)]
    assert len(rows) == n_weeks + 1
    slugs, numbers = course.plan(n_weeks)[4]
    assert rows[5][1] == ", ".join(map(course.name_of, slugs))
    assert rows[5][2] == f"{sum(map(minutes, slugs)) / 60:.1f}"
    assert rows[5][3] == f"{numbers[0]}: {course.assignments()[numbers[0]][0]}"
    assert rows[5][4].startswith("two to")


@pytest.mark.slow
def test_the_contents_are_counted_from_the_sources():
    (table,) = course.contents()
    rows = [[c.astext() for c in row.children] for row in table.findall(course.nodes.row)]
    assert [row[0] for row in rows[1:-1]] == [course.name_of(slug) for slug in chapters()]
    columns = dict(zip(rows[0][1:], rows[-1][1:], strict=True))
    assert columns["lines of nano"] == str(count(NANO.read_text(encoding="utf-8")))
    assert columns["checked"] == str(len(TABLE) + len(STEPS))
    exercises = sum(len(EXERCISE.findall(text)) for _, _, text, _ in chapters().values())
    assert columns["exercises"] == str(exercises)
    guards = next(row for row in rows if "Guards" in row[0])
    assert int(guards[1]) > 100 and guards[-1] == ""


def test_the_topics_of_another_course_name_chapters():
    lectures = course.course()["lecture"]
    named = [slug for one in lectures for slug in one["chapters"]]
    assert [slug for slug in named if slug not in chapters()] == []
    assert all(one["missing"] or one["chapters"] for one in lectures)
    (table,) = course.lectures()
    rows = [[c.astext() for c in row.children] for row in table.findall(course.nodes.row)]
    assert len(rows) == len(lectures) + 1
    actual = {row[0]: row[2:4] for row in rows}["transformers"]
    two = [course.amounts(s) for s in ("attention_without_the_matrix", "a_language_model")]
    assert actual == [str(sum(a[c] for a in two)) for c in ("exercises", "checked")]


def test_each_chapter_is_in_the_plan_or_among_the_talks():
    (text,) = text_of(course.talks())
    planned = {slug for slugs, _ in course.plan(12) for slug in slugs}
    missing = {slug for slug in chapters() if course.name_of(slug) not in text}
    assert missing == planned


def test_questions_have_answers():
    questions = course.course()["discussion"]
    assert len(questions) >= 12 and all(
        set(one) == {"chapter", "question", "answer"} for one in questions
    )
    assert all("?" in one["question"] and len(one["answer"]) > 100 for one in questions)
    stems = {chapters()[one["chapter"]][0] for one in questions}
    assert {stem for stem, *_ in chapters().values() if stem >= "29"} <= stems
    actual = text_of(course.discussion())
    assert len(actual) == 4 * len(questions) and actual[0].endswith(
        "(1. Two ways to run a program)"
    )


def test_wrong_solutions_stand_with_the_points_that_they_lose():
    text = "\n".join(text_of(course.wrong()))
    assert "Nothing is summed where an input was used several times. 3" in text
    for n, (title, _, points) in course.assignments().items():
        assert f"Assignment {n}: {title}" in text and sum(points.values()) > 10


def test_wrong_answers_stand_with_what_was_overlooked():
    assert len(course.answers()) > 200
    assert all(re.fullmatch(r"\d+\.\d+", n) and why for n, _, why in course.answers())
    text = "\n".join(text_of(course.exercises()))
    assert "2.1 the number of bytes: 96 don't count the inputs" in text
