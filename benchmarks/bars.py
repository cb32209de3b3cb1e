"""What was asked, what was found: the bars of `workloads.py` against a run's rows."""

from dataclasses import dataclass
from itertools import zip_longest

from text import duration, megabytes
from workloads import WORKLOADS

OURS = "minihybrid"
SPREAD = 300_000  # bytes by which the peaks of two equal processes differ


@dataclass(frozen=True)
class Verdict:
    """One bar.  `found` and `limit` are ratios, seconds or bytes; found None: not run."""

    workload: str
    bar: str
    limit: float
    found: float | None
    unit: str = "ratio"
    against: str = ""

    @property
    def passed(self):
        return self.found is not None and self.found <= self.limit

    def cells(self):
        show = {"ratio": "{:.2f}".format, "s": duration, "bytes": megabytes}[self.unit]
        value = "not run" if self.found is None else show(self.found)
        verdict = "passed" if self.passed else "**missed**"
        return (self.workload, self.bar, show(self.limit), value, self.against, verdict)


def of_mode(rows, mode):
    """Our row of that mode; None if it was not timed."""
    return next(
        (row for row in rows if row.rival == OURS and row.mode == mode and row.times_s), None
    )


def best(rows, key):
    """The rivals' row with the least `key`; None if there is none."""
    timed = [row for row in rows if row.rival != OURS and row.times_s and key(row) is not None]
    return min(timed, key=key, default=None)


def ratio(row, other):
    return row.median_s / other.median_s if row and other else None


def verdicts(rows_of, n_threads):
    """All bars that this run can judge.  rows_of: workload -> its rows."""
    return [
        verdict
        for workload, rows in rows_of.items()
        if workload in WORKLOADS and WORKLOADS[workload].bars
        for verdict in _judge(workload, rows, rows_of.get("plain", []), n_threads)
    ]


def _judge(workload, rows, plain_rows, n_threads):
    bars, ours = WORKLOADS[workload].bars, of_mode(rows, "hybridized")
    if fastest := best(rows, lambda row: row.median_s):
        yield Verdict(
            workload,
            "to the best rival",
            bars.rival,
            ratio(ours, fastest),
            against=f"{fastest.name}, {duration(fastest.median_s)}",
        )
    if bars.plain and (timed := [row for row in plain_rows if row.times_s]):
        plain = min(timed, key=lambda row: row.median_s)
        limit = bars.plain[min(n_threads, 2)]
        yield Verdict(
            workload,
            "to a*b + c",
            limit,
            ratio(ours, plain),
            against=f"{plain.name}, {duration(plain.median_s)}",
        )
    if bars.eager and (eager := of_mode(rows, "eager")):
        yield Verdict(
            workload,
            "to our eager mode",
            bars.eager,
            ratio(ours, eager),
            against=duration(eager.median_s),
        )
    if bars.first_s:
        for what, limit, first_s in zip_longest(
            ("first call", "first call, 2nd process"), bars.first_s, ours.first_s if ours else []
        ):
            yield Verdict(workload, what, limit, first_s, "s")
    compiled = [row.first_s[0] for row in rows if row.rival == "jax" and row.times_s]
    if bars.jax and compiled:
        yield Verdict(
            workload,
            "first call, to JAX's",
            bars.jax,
            ours.first_s[0] / min(compiled) if ours else None,
            against=f"jax, {duration(min(compiled))}",
        )
    if least := best(rows, lambda row: row.nbytes):
        needed = WORKLOADS[workload].nbytes  # less than this was not measured well
        yield Verdict(
            workload,
            "peak memory",
            max(least.nbytes, needed) + SPREAD,
            ours.nbytes if ours else None,
            "bytes",
            least.name,
        )
