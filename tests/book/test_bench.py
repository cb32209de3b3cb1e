"""Timing is tested on counts and on a clock that only moves when a function says so."""

import itertools
import sys
from types import SimpleNamespace

import pytest
from minihybrid.bench import Benchmark, Comparison, Timer, Timing, compare, measure

from minihybrid import bench


class World:
    """A fake clock, and a log of everything that happened in order."""

    def __init__(self):
        self.now_s, self.log = 100.0, []

    def clock(self):
        self.log.append("clock")
        return self.now_s

    def waitall(self):
        self.log.append("wait")

    def task(self, name, *costs_s):
        """A function that costs the given seconds, the last of them from then on."""
        left = list(costs_s)

        def f(*args):
            self.log.append(name)
            self.now_s += left.pop(0) if len(left) > 1 else left[0]

        return f


@pytest.fixture
def world(monkeypatch):
    world = World()
    monkeypatch.setattr(bench, "clock", world.clock)
    monkeypatch.setattr(bench, "waitall", world.waitall)
    monkeypatch.setattr(bench, "_tick_s", lambda: 0.0)
    return world


@pytest.fixture
def bars(monkeypatch):
    """What was shown behind a progress bar; stands in for tqdm."""
    shown = []

    def tqdm(rounds, **options):
        shown.append(len(rounds))
        return rounds

    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=tqdm))
    return shown


def test_timer_waits_before_both_looks_at_the_clock(world):
    with Timer() as timer:
        world.task("work", 3.0)()
    assert timer.elapsed_s == 3.0
    assert world.log == ["wait", "clock", "work", "wait", "clock"]


def test_timer_starts_anew(world):
    timer, work = Timer(), world.task("work", 1.0, 2.0)
    elapsed_s = []
    for _ in range(2):
        timer.start()
        work()
        elapsed_s.append(timer.stop())
    assert elapsed_s == [1.0, 2.0]


def test_timer_has_no_time_before_its_first_stop(world):
    assert Timer().elapsed_s != Timer().elapsed_s  # NaN


def test_timer_that_was_not_started_says_so():
    with pytest.raises(RuntimeError, match="stopped before .* call start"):
        Timer().stop()


def test_benchmark_prints_its_description_and_keeps_the_time(world, capsys):
    with Benchmark("hybridized") as benchmark:
        world.task("work", 0.01234)()
    assert capsys.readouterr().out == "hybridized: 0.0123 s\n"
    assert benchmark.elapsed_s == pytest.approx(0.01234)


def test_benchmark_of_a_failing_block_prints_nothing(world, capsys):
    with pytest.raises(ZeroDivisionError), Benchmark("broken"):
        raise ZeroDivisionError
    assert capsys.readouterr().out == ""


def test_measure_leaves_the_first_call_out(world):
    timing = measure(world.task("f", 50.0, 1.0), repeats=3, min_time_s=1.0)
    assert timing == Timing((1.0, 1.0, 1.0), n_calls=1)


def test_measure_chooses_a_number_of_calls_that_lasts(world):
    timing = measure(world.task("f", 0.25), repeats=5, min_time_s=1.5)
    assert timing.n_calls == 8, "4 calls last 1.0 s, 8 calls 2.0 s"
    assert timing.times_s == (0.25,) * 5
    calls = world.log.count("f")
    assert calls == 1 + (1 + 2 + 4 + 8) + 8 + 5 * 8, "warm-up, search, again, repeats"


def test_measure_waits_after_the_last_call_of_a_repeat(world):
    measure(world.task("f", 1.0), repeats=1, min_time_s=2.0)
    assert world.log[-6:] == ["wait", "clock", "f", "f", "wait", "clock"]


def test_measure_hands_the_arguments_over(world):
    got = []

    def f(*args):
        got.append(args)
        world.now_s += 1

    measure(f, "x", 2, repeats=1)
    assert set(got) == {("x", 2)}


def test_median_and_quartiles_ignore_one_disturbed_repeat():
    timing = Timing((1.0, 2.0, 3.0, 4.0, 1000.0), n_calls=1)
    assert timing.median_s == 3.0
    assert timing.quartiles_s == (2.0, 4.0)
    assert timing.spread == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "median_s, text",
    [(2.5, "2.5 s"), (0.0025, "2.5 ms"), (2.5e-6, "2.5 us"), (2.5e-9, "2.5 ns"), (0.0, "0.0 ns")],
)
def test_repr_chooses_the_unit(median_s, text):
    assert repr(Timing((median_s,), 7)).startswith(f"median {text} (quartiles ")


def test_repr_tells_median_quartiles_and_counts():
    timing = Timing((5.1e-6, 5.2e-6, 5.3e-6, 5.6e-6, 9e-6), n_calls=2000)
    assert repr(timing) == ("median 5.3 us (quartiles 5.2 .. 5.6 us, 5 repeats x 2000 calls)")


def test_an_interruption_does_not_end_the_search(world):
    f = world.task("f", 0.25, 9.0, 0.25)
    assert measure(f, repeats=1, min_time_s=1.5).n_calls == 8


def test_a_coarse_clock_is_read_after_many_ticks(monkeypatch):
    """As in Firefox, whose clock advances by 1 ms: nothing takes 0 s, or a tick too many."""
    now = itertools.count()  # each look takes 10 us
    monkeypatch.setattr(bench, "clock", lambda: next(now) // 100 * 1e-3)
    bench._tick_s.cache_clear()
    timings = compare({"f": bench.clock}, repeats=41, min_time_s=0.002).timings
    bench._tick_s.cache_clear()
    assert timings["f"].times_s == pytest.approx([1e-5] * 41, rel=0.06)


def test_compare_lets_the_functions_take_turns(world):
    functions = {name: world.task(name, 1.0) for name in "abc"}
    compare(functions, repeats=3, min_time_s=1.0)
    calls = [entry for entry in world.log if entry in functions]
    assert calls == [*"aaabbbccc", *"abc" * 3], "warm-up, search, again, then rounds"


def test_compare_chooses_the_number_of_calls_for_each(world):
    functions = {"slow": world.task("slow", 4.0), "fast": world.task("fast", 0.5)}
    comparison = compare(functions, repeats=2, min_time_s=4.0)
    assert [t.n_calls for t in comparison.timings.values()] == [1, 8]
    assert comparison.ratio("slow", "fast") == 8.0
    assert comparison.ratio("fast", "slow") == 0.125


COMPARISON = Comparison(
    {"eager": Timing((2e-5, 2e-5, 3e-5), 10), "<fused>": Timing((5e-6, 5e-6, 6e-6), 40)}
)


def test_comparison_prints_a_table():
    assert repr(COMPARISON).splitlines() == [
        "          median        quartiles  ratio",
        "eager    20.0 us  20.0 .. 25.0 us   1.00",
        "<fused>   5.0 us    5.0 .. 5.5 us   0.25",
    ]


def test_comparison_escapes_names_in_html():
    html = COMPARISON._repr_html_()
    assert "<th>&lt;fused&gt;</th><td>5.0 us</td><td>5.0 .. 5.5 us</td><td>0.25" in html
    assert html.count("<tr>") == html.count("</tr>") == 3


def test_ratio_to_a_stranger_names_the_members():
    with pytest.raises(ValueError, match=r"no 'torch'.*it has 'eager', '<fused>'"):
        COMPARISON.ratio("eager", "torch")


def test_progress_bar_shows_on_long_runs_only(world, bars):
    measure(world.task("f", 4.0), repeats=3, min_time_s=4.0)
    assert bars == [3]
    measure(world.task("f", 1.0), repeats=3, min_time_s=1.0)
    assert bars == [3], "a run of 3 s needs no bar"


@pytest.mark.parametrize("functions", [{}, None, [len]])
def test_compare_without_a_dictionary_of_functions_says_so(functions):
    with pytest.raises(ValueError, match=r"compare: found .* needs a dictionary"):
        compare(functions)


def test_what_cannot_be_called_is_named():
    with pytest.raises(TypeError, match="compare: b is of type float, needs"):
        compare({"a": len, "b": 3.0}, [])
    with pytest.raises(TypeError, match="measure: f is of type int, needs"):
        measure(3)


def test_zero_repeats_are_refused():
    with pytest.raises(ValueError, match="measure: repeats is 0, needs"):
        measure(len, [], repeats=0)
