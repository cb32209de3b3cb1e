"""Chapter 08. Benchmarking: a stopwatch, repeated measurements, fair comparisons.

Three rules make a timing trustworthy, and each takes a few lines here. Warm up: a first
call may trace and compile. Repeat: a single measurement is noise, so every result is a
median with its quartiles. Interleave: a machine's speed drifts, so candidates are timed
in rounds, A B C A B C, and drift affects all of them.

Not supported: hardware counters and separate processes (see `benchmarks/`). Python's
garbage collector stays on, as in a user's program.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import repeat
from typing import Any, Self

import numpy as np

from minihybrid.core.hooks import own_names
from minihybrid.core.nd import waitall
from minihybrid.view.viz import columns_of

PROGRESS_BAR_FROM_S = 10.0  # short runs need none, and a hiccup must not draw one
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

clock = time.perf_counter


class Timer:
    """Stopwatch that waits for asynchronous work before reading the clock.

    Units:   `elapsed_s`, seconds from the last start to the last stop; NaN before.
    Raises:  RuntimeError if stopped before it was started.
    Source:  the Timer of Dive into Deep Learning; here without averages.

    >>> with Timer() as timer:
    ...     y = sum(range(1000))
    >>> timer.elapsed_s > 0
    True
    """

    def __init__(self) -> None:
        self.elapsed_s = float("nan")
        self._started_s: float | None = None

    def start(self) -> Self:
        """Wait until nothing is pending, then start the clock; return the timer."""
        waitall()
        self._started_s = clock()
        return self

    def stop(self) -> float:
        """Wait until nothing is pending, then stop; return `elapsed_s`."""
        if self._started_s is None:
            raise RuntimeError("Timer: stopped before it was started; call start().")
        waitall()
        self.elapsed_s = clock() - self._started_s
        self._started_s = None
        return self.elapsed_s

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type | None, error: object, traceback: object) -> None:
        if kind is None:  # after an error, the time would be meaningless
            self.stop()


class Benchmark(Timer):
    """Timer that prints `description: 0.0123 s` when its block ends.

    Units:   `elapsed_s`, seconds.
    Source:  the Benchmark of Dive into Deep Learning.

    >>> with Benchmark("a thousand sums"):
    ...     for _ in range(1000):
    ...         y = sum(range(10))
    a thousand sums: ... s
    """

    def __init__(self, description: str) -> None:
        super().__init__()
        self.description = description

    def stop(self) -> float:
        """Stop, print the line, and return `elapsed_s`."""
        super().stop()
        print(f"{self.description}: {self.elapsed_s:.4f} s")
        return self.elapsed_s


@dataclass(frozen=True)
class Timing:
    """Seconds per call of one function, measured several times.

    Units:   `times_s`, seconds per call, one for each repeat of `n_calls` calls.
    """

    times_s: tuple[float, ...]
    n_calls: int

    @property
    def median_s(self) -> float:
        """Median seconds per call: half of the repeats were faster."""
        return float(np.median(self.times_s))

    @property
    def quartiles_s(self) -> tuple[float, ...]:
        """First and third quartile in seconds: half of the repeats lie between them."""
        return tuple(float(q) for q in np.quantile(self.times_s, (0.25, 0.75)))

    @property
    def spread(self) -> float:
        """Interquartile range over the median; above 0.1 the machine was busy."""
        low_s, high_s = self.quartiles_s
        return (high_s - low_s) / self.median_s

    def cells(self) -> tuple[str, str]:
        """Median and quartiles as text in one unit: `5.3 us`, `5.2 .. 5.6 us`."""
        fitting = (u for u, size_s in UNITS.items() if self.median_s >= size_s)
        unit = next(fitting, "ns")
        median, low, high = (f"{t / UNITS[unit]:.1f}" for t in (self.median_s, *self.quartiles_s))
        return f"{median} {unit}", f"{low} .. {high} {unit}"

    def __repr__(self) -> str:
        median, quartiles = self.cells()
        return (
            f"median {median} (quartiles {quartiles}, "
            f"{len(self.times_s)} repeats x {self.n_calls} calls)"
        )


@dataclass(frozen=True)
class Comparison:
    """Interleaved timings of several functions, with ratios to the first.

    Units:   `timings[name].median_s`, seconds per call.
    """

    timings: dict[str, Timing]

    def ratio(self, a: str, b: str) -> float:
        """How many times as long `a` takes as `b`: median of `a` over median of `b`."""
        for name in (a, b):
            if name not in self.timings:
                raise ValueError(
                    f"ratio: there is no {name!r} in this comparison; "
                    f"it has {', '.join(map(repr, self.timings))}."
                )
        return self.timings[a].median_s / self.timings[b].median_s

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The table as text cells, heading first: name, median, quartiles, ratio."""
        first = next(iter(self.timings))
        return [("", "median", "quartiles", "ratio")] + [
            (name, *timing.cells(), f"{self.ratio(name, first):.2f}")
            for name, timing in self.timings.items()
        ]

    def __repr__(self) -> str:
        return columns_of(self.rows())

    def _repr_html_(self) -> str:
        head, *body = ([escape(cell) for cell in row] for row in self.rows())
        lines = [f"<tr><th>{'</th><th>'.join(head)}</th></tr>"]
        lines += [
            f"<tr><th>{name}</th><td>{'</td><td>'.join(cells)}</td></tr>" for name, *cells in body
        ]
        return "<table>\n" + "\n".join(lines) + "\n</table>"


def measure(f: Callable, *args: Any, repeats: int = 21, min_time_s: float = 0.01) -> Timing:
    """Time `f(*args)`: warm up, choose a number of calls, repeat, take the median.

    In loops:   for each repeat:  wait; start; for each call: f(*args); wait; stop

    It waits only after the last call of a repeat, so asynchronous calls overlap as in a
    user's loop. The loop itself costs about 20 ns per call.

    Units:   `min_time_s`, seconds that one repeat lasts at least; result in seconds.
    Raises:  TypeError if `f` is not callable; ValueError if `repeats` is below 1.

    >>> measure(sum, range(10), repeats=3, min_time_s=1e-4)
    median ... (quartiles ... .. ..., 3 repeats x ... calls)
    """
    return _take_turns("measure", {"f": f}, args, repeats, min_time_s)["f"]


def compare(
    functions: dict[str, Callable], *args: Any, repeats: int = 21, min_time_s: float = 0.01
) -> Comparison:
    """Time several functions of the same arguments side by side, in interleaved rounds.

    In loops:   for each round: for each function: time `f(*args)` as `measure` does

    Units:   `min_time_s`, seconds of one function in one round; result in seconds.
    Raises:  TypeError if a value is not callable; ValueError if `functions` is empty
             or `repeats` is below 1.

    >>> table = compare({"sum": sum, "max": max}, range(9), repeats=3, min_time_s=1e-4)
    >>> table.ratio("max", "sum") > 0
    True
    """
    if not isinstance(functions, dict) or not functions:
        raise ValueError(
            f"compare: found {functions!r}, needs a dictionary of at least one name "
            'and function, such as {"eager": f, "hybridized": g}.'
        )
    return Comparison(_take_turns("compare", functions, args, repeats, min_time_s))


def _take_turns(
    caller: str, functions: dict[str, Callable], args: tuple, repeats: int, min_time_s: float
) -> dict[str, Timing]:
    """Return name -> Timing, from `repeats` rounds that time each function once."""
    for name, f in functions.items():
        if not callable(f):
            raise TypeError(
                f"{caller}: {name} is of type {type(f).__name__}, needs a function; "
                "to time an expression write lambda: expression."
            )
    if repeats < 1:
        raise ValueError(f"{caller}: repeats is {repeats}, needs to be at least 1.")

    n_calls, round_s = {}, 0.0
    for name, f in functions.items():
        n_calls[name], turn_s = _calibrate(f, args, min_time_s)
        round_s += turn_s

    times_s: dict[str, list[float]] = {name: [] for name in functions}
    for _ in _rounds(repeats, round_s * repeats):
        for name, f in functions.items():
            times_s[name].append(_time_calls(f, args, n_calls[name]) / n_calls[name])
    return {name: Timing(tuple(times_s[name]), n_calls[name]) for name in functions}


def _calibrate(f: Callable, args: tuple, min_time_s: float) -> tuple[int, float]:
    """Return a number of calls that takes at least `min_time_s`, and their time in seconds.

    Two runs must take that long: one may have been interrupted. And it is twenty ticks of the
    clock at least: browsers' advance in steps of up to 1 ms.
    """
    _time_calls(f, args, 1)  # warm-up: this call may trace, compile and fill caches
    n_calls, min_time_s = 1, max(min_time_s, 20 * _tick_s())
    while any((elapsed_s := _time_calls(f, args, n_calls)) < min_time_s for _ in range(2)):
        n_calls *= 2
    return n_calls, elapsed_s


@cache
def _tick_s() -> float:
    """Return the step by which the clock advances, in seconds."""
    steps: list[float] = []
    end = clock()
    while len(steps) < 5:
        start = end
        while (end := clock()) == start:
            pass
        steps.append(end - start)
    return min(steps)


def _time_calls(f: Callable, args: tuple, n_calls: int) -> float:
    with Timer() as timer:
        for _ in repeat(None, n_calls):
            f(*args)
    return timer.elapsed_s


def _rounds(n_rounds: int, expected_s: float) -> Iterable[int]:
    """Return the rounds, with a progress bar if they are expected to take long."""
    if expected_s < PROGRESS_BAR_FROM_S:
        return range(n_rounds)
    try:
        from tqdm import tqdm  # imported here, as few timings take so long
    except ModuleNotFoundError:
        return range(n_rounds)
    return tqdm(range(n_rounds), desc="timing", leave=False)


__dir__ = own_names(globals())
