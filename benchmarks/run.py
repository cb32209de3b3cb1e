"""minihybrid beside its rivals: same weights, checked answers, interleaved rounds.

python benchmarks/run.py                          # everything
python benchmarks/run.py --rivals minihybrid,torch --workloads mlp --rounds 5
python benchmarks/run.py --threads 1
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from bars import OURS, verdicts
from envs import RIVALS
from machine import describe, kind
from plots import draw
from report import report, roofs
from session import Session
from workloads import ALL, ROOFS, WORKLOADS

RESULTS = Path(__file__).parent / "results"


def measure(workloads, rivals, n_processes, n_rounds, n_threads):
    """Workload -> rows, and workload -> yardsticks; the roofs of the machine first."""
    rows_of, yardsticks = {}, {}
    with TemporaryDirectory() as scratch:
        session = Session(Path(scratch), n_threads)
        for workload in [*ROOFS, *workloads]:
            who = dict.fromkeys([*rivals, "numpy"]) if workload in ROOFS else rivals
            rows, timings = session.run(workload, who, n_rounds, n_processes)
            rows_of[workload] = rows
            yardsticks[workload] = [timing.times_s for timing in timings]
    return rows_of, yardsticks


def save(stem, rows_of, yardsticks, n_threads, n_rounds):
    """Write the table, every round, and the pictures; returns the table."""
    machine, rooflines = describe(), roofs(rows_of)
    text = report(rows_of, yardsticks, machine, n_threads, n_rounds)
    latest = {
        "machine": machine,
        "threads": n_threads,
        "rounds": n_rounds,
        "roofs": asdict(rooflines),
        "bars": [{**asdict(v), "passed": v.passed} for v in verdicts(rows_of, n_threads)],
        "workloads": {
            workload: {
                "title": ALL[workload].title,
                "flops": ALL[workload].flops,
                "nbytes": ALL[workload].nbytes,
                "yardstick_s": yardsticks[workload],
                "rows": [asdict(row) for row in rows],
            }
            for workload, rows in rows_of.items()
        },
    }
    RESULTS.mkdir(exist_ok=True)
    set_aside(stem, kind(machine))
    (RESULTS / f"{stem}.json").write_text(json.dumps(latest) + "\n")
    (RESULTS / f"{stem}.md").write_text(text)
    draw(rows_of, rooflines, machine, n_threads, RESULTS / stem)
    return text


def set_aside(stem, new_kind):
    """Leave the newest results of each other kind of processor in the folder `processors`."""
    others, newest = RESULTS / "processors", RESULTS / f"{stem}.json"
    if newest.exists():
        others.mkdir(exist_ok=True)
        old_kind = kind(json.loads(newest.read_text())["machine"])
        newest.rename(others / f"{old_kind}-{stem}.json")
    (others / f"{new_kind}-{stem}.json").unlink(missing_ok=True)


def names_from(known):
    """A parser of `a,b` that refuses names which are not known."""

    def parse(text):
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(
                f"there is no {', '.join(unknown)}; there are {', '.join(known)}"
            )
        return names

    return parse


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rivals",
        type=names_from(RIVALS),
        default=RIVALS,
        metavar="A,B",
        help=f"of {', '.join(RIVALS)}; default: all",
    )
    parser.add_argument(
        "--workloads",
        type=names_from(WORKLOADS),
        metavar="A,B",
        default=list(WORKLOADS),
        help=f"of {', '.join(WORKLOADS)}; default: all",
    )
    parser.add_argument("--rounds", type=int, default=20, help="in each process; default: 20")
    parser.add_argument("--processes", type=int, default=3, help="of each mode; default: 3")
    parser.add_argument(
        "--threads",
        type=numbers,
        default=[1, 2],
        metavar="1,2",
        help="a run and a table for each; default: 1,2",
    )
    args = parser.parse_args()

    failed = []
    for n_threads in args.threads:
        stem = "latest" if n_threads == args.threads[0] else f"latest-{n_threads}"
        rows_of, yardsticks = measure(
            args.workloads, args.rivals, args.processes, args.rounds, n_threads
        )
        print(save(stem, rows_of, yardsticks, n_threads, args.rounds))
        failed += [
            row for rows in rows_of.values() for row in rows if row.problem and row.rival == OURS
        ]
    if failed:
        sys.exit(f"{failed[0].name} did not run: {failed[0].problem}")


if __name__ == "__main__":
    main()
