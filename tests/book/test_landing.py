"""The first page counts what it says, and every exercise has hints."""

import landing
import pytest
from docutils import nodes


def hrefs(actual):
    return [r["refuri"] for node in actual for r in node.findall(nodes.reference)]


def test_the_size_is_that_of_make_lines():
    from lines import count
    from reading_order import READING_ORDER, path_of

    total = sum(count(path_of(m).read_text(encoding="utf-8")) for m in READING_ORDER)
    (sentence,) = landing.size()
    assert f"there are {total:,}." in sentence.astext()


def test_the_road_counts_what_its_chapters_state():
    sentence, stops = landing.road()
    slugs = landing.ROAD.split()
    assert stops.astext().count("<li") == len(slugs) and stops.astext().count("class=nano") == 3
    whole = sum(map(landing.minutes, slugs))
    assert sentence.astext().startswith(f"About {landing.hours(whole)}, of which you spend ")
    assert landing.hours(whole) == "5 hours", "the book promises a road of five hours"
    assert (landing.hours(245), landing.hours(260)) == ("4 hours", "4½ hours")


def test_routes_name_chapters_and_take_hours():
    (table,) = landing.routes()
    links = [href for href in hrefs([table]) if "#exercise-" not in href]
    assert len(links) == sum(len(slugs.split()) for slugs in landing.ROUTES.values())
    files = {f"../notebooks/{stem}.html" for stem, *_ in landing.chapters().values()}
    assert set(links) <= files
    assert table.astext().count(" hours") == 3 * len(landing.ROUTES)  # alone, with ★, with ★★
    assert "15.4" in table.astext(), "a project"


def test_every_exercise_is_in_one_sum():
    every = sum(text.count("# Exercise ") for _, _, text, _ in landing.chapters().values())
    assert sum(len(landing.EXERCISE.findall(text[2])) for text in landing.chapters().values()) == (
        every
    )
    assert landing.tried(["writing_passes"], "★★★") == 75
    assert set(landing.NANO) <= set(landing.ROUTES["You want to build one"].split())


def test_all_exercises_are_listed_once_by_level():
    (table,) = landing.exercises()
    links = hrefs([table])
    assert len(links) == len(set(links)) > 90
    assert all(link.partition("#exercise-")[2] for link in links)
    assert {"★ one idea", "★★ several steps", "★★★ project"} <= set(table.astext().split("\n\n"))


@pytest.mark.parametrize(
    "text, minutes",
    [
        ("**Time:** 60 minutes, and 5 for the exercises. *Predict · 5 minutes.*", 60),
        ("**Time:** 30\nminutes, and 53 for the exercises. *Predict · 5 minutes.*", 30),
        ("word " * 300, 2 + 3),
    ],
)
def test_a_chapter_takes_as_long_as_it_says_or_as_it_is(text, minutes, monkeypatch):
    monkeypatch.setattr(landing, "chapters", lambda: {"one": ("00_one", "One", text, 6)})
    assert landing.minutes("one") == minutes
