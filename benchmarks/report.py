"""A run's results -> Markdown: a table for each workload, and the table of bars."""

from dataclasses import dataclass

import bars
from minihybrid.bench import Timing
from text import duration, markdown, megabytes
from workloads import ALL

HEAD = (
    "",
    "mode",
    "per call",
    "quartiles",
    "ratio",
    "throughput",
    "of peak",
    "peak memory",
    "first call",
    "in a 2nd process",
)


@dataclass(frozen=True)
class Roofs:
    """The highest measured throughputs of the machine, and the libraries that reached them."""

    flops_per_s: float
    bytes_per_s: float
    matmul: str
    copy: str

    def least_s(self, workload):
        """A lower bound on the time of a call whose bytes come from memory."""
        work = ALL[workload]
        return max(work.flops / self.flops_per_s, work.nbytes / self.bytes_per_s)

    def reached(self, workload, elapsed_s):
        """The throughput of the tighter limit, arithmetic or bytes, and its share of it."""
        work = ALL[workload]
        is_arithmetic = work.flops / self.flops_per_s > work.nbytes / self.bytes_per_s
        amount, unit = (work.flops, "GFLOP/s") if is_arithmetic else (work.nbytes, "GB/s")
        return (
            f"{amount / elapsed_s / 1e9:.1f} {unit}",
            f"{self.least_s(workload) / elapsed_s:.0%}",
        )


def roofs(rows_of):
    """From the rows of the workloads `matmul` and `copy`, the fastest of each."""
    matmul, copy = (
        min((row for row in rows_of[name] if row.times_s), key=lambda row: row.median_s)
        for name in ("matmul", "copy")
    )
    return Roofs(
        ALL["matmul"].flops / matmul.median_s,
        ALL["copy"].nbytes / copy.median_s,
        matmul.name,
        copy.name,
    )


def table(workload, rows, roofs):
    """Rows with a time, fastest first, then the others with the reason."""
    timed = sorted((r for r in rows if r.times_s), key=lambda r: r.median_s)
    lines = [HEAD]
    for row in timed:
        memory = "" if row.nbytes is None else megabytes(row.nbytes)
        first_s = [*map(duration, row.first_s), ""][:2]
        lines.append(
            (
                f"{row.rival} {row.version}",
                row.mode,
                *Timing(tuple(row.times_s), n_calls=1).cells(),
                f"{row.median_s / timed[0].median_s:.2f}",
                *roofs.reached(workload, row.median_s),
                memory,
                *first_s,
            )
        )
    lines += [
        (
            row.rival,
            row.mode,
            "**skipped**: " + row.problem.replace("|", "/"),
            *[""] * (len(HEAD) - 3),
        )
        for row in rows
        if row.problem
    ]
    return markdown(lines)


def bars_table(verdicts):
    head = ("workload", "bar", "at most", "found", "beside", "")
    return markdown([head, *(verdict.cells() for verdict in verdicts)])


def footer(machine, roofs, yardsticks, n_threads, n_rounds):
    """The conditions of the measurement."""
    before, after = (Timing(tuple(times_s), n_calls=1) for times_s in yardsticks)
    return f"""\
{machine["cpu"]}, {machine["cores"]} cores, {machine["system"]}, \
Python {machine["python"]}, {machine["date"]}. \
Computing threads: {n_threads}. Interleaved rounds: {n_rounds}. \
Peaks: {roofs.flops_per_s / 1e9:.0f} GFLOP/s ({roofs.matmul}), \
{roofs.bytes_per_s / 1e9:.1f} GB/s ({roofs.copy}). \
Yardstick (a NumPy matrix product): {before.cells()[0]} before, \
{after.cells()[0]} after; quartiles {before.cells()[1]} and {after.cells()[1]}.
"""


def report(rows_of, yardsticks, machine, n_threads, n_rounds):
    """The whole text.  rows_of: workload -> rows, including `matmul` and `copy`."""
    rooflines = roofs(rows_of)
    parts = []
    for workload, rows in rows_of.items():
        end = footer(machine, rooflines, yardsticks[workload], n_threads, n_rounds)
        parts.append(f"**{ALL[workload].title}**\n\n{table(workload, rows, rooflines)}\n\n{end}")
    verdicts = bars.verdicts(rows_of, n_threads)
    missed = [verdict for verdict in verdicts if not verdict.passed]
    parts.append(
        f"**Bars**: {len(verdicts) - len(missed)} passed, "
        f"{len(missed)} missed\n\n{bars_table(verdicts)}\n"
    )
    return "\n".join(parts)
