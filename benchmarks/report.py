"""Rows of results -> a table in Markdown, which reads as well in a terminal."""
from dataclasses import dataclass, field

import numpy as np

from minihybrid.bench import Timing


@dataclass
class Row:
    """One line of the table: a mode of a rival, and what came of it."""

    rival: str
    mode: str = ""
    version: str = ""
    first_s: list = field(default_factory=list)  # [nothing cached, in a second process]
    times_s: list = field(default_factory=list)  # seconds per call, one for each round
    problem: str = ""                            # why there are no times


def table(rows):
    """Fastest first; then those without a time, and why."""
    timed = sorted((r for r in rows if r.times_s), key=lambda r: np.median(r.times_s))
    lines = [("", "mode", "per call", "quartiles", "ratio",
              "first call", "in a 2nd process")]
    for row in timed:
        timing = Timing(tuple(row.times_s), n_calls=1)
        ratio = timing.median_s / np.median(timed[0].times_s)
        lines.append((f"{row.rival} {row.version}", row.mode, *timing.cells(),
                      f"{ratio:.2f}", *map(duration, row.first_s)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))
    lines = [[f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)]
             for line in lines]
    lines += [(row.rival, row.mode, "**skipped**: " + row.problem.replace("|", "/"))
              for row in rows if row.problem]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def duration(seconds):
    return Timing((seconds,), n_calls=1).cells()[0]


def report(title, rows, yardsticks, machine, n_threads, n_rounds):
    """The table, with all that is needed to read it honestly."""
    before, after = yardsticks
    return f"""\
**{title}**

{table(rows)}

{machine["cpu"]}, {machine["cores"]} cores, {machine["system"]}, \
Python {machine["python"]}, {machine["date"]}. \
Computing threads: {n_threads}. Interleaved rounds: {n_rounds}. \
Yardstick (a NumPy matrix product): {before.cells()[0]} before, \
{after.cells()[0]} after; quartiles {before.cells()[1]} and {after.cells()[1]}.
"""
