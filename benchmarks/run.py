"""minihybrid beside its rivals: same weights, checked answers, interleaved rounds.

    python benchmarks/run.py                          # everything
    python benchmarks/run.py --rivals numpy,torch --rounds 5
    python benchmarks/run.py --threads 2

Every mode of every rival lives in a process of its own and times itself when told to;
this program decides whose turn it is: A B C, A B C, ...
"""
import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from child import Child
from envs import RIVALS, NotAvailable
from machine import describe
from report import Row, report
from tqdm.auto import tqdm
from workloads import WORKLOADS

from minihybrid.bench import Timing

RESULTS = Path(__file__).parent / "results"


def save_arrays(workload, scratch):
    """Write the arrays that every rival reads; returns the right answer."""
    arrays = WORKLOADS[workload].arrays(np.random.default_rng(seed=0))
    arrays = {name: np.float32(a) for name, a in arrays.items()}
    np.savez(scratch / f"{workload}.npz", **arrays)
    return WORKLOADS[workload].reference(
        {name: np.float64(a) for name, a in arrays.items()})


def find_modes(rival, workload, scratch, n_threads):
    """The rows of one rival: one for each mode, or one that says why there is none."""
    try:
        child = Child(rival, workload, scratch, n_threads)
        about = child.ask("describe")
        child.end()
    except NotAvailable as reason:
        return [Row(rival, problem=str(reason))]
    return [Row(rival, mode, about["version"]) for mode in about["modes"]]


def start(row, workload, right, scratch, n_threads):
    """Start a mode twice, first with an empty cache, and check both answers.

    Returns the second process, warmed up and ready for its turns.
    """
    answer = scratch / "answer.npy"
    cache = f"cache-{row.rival}-{row.mode}".replace(" ", "-")
    for is_second in (False, True):
        child = Child(row.rival, workload, scratch, n_threads, cache)
        row.first_s.append(
            child.ask("prepare", mode=row.mode, answer=str(answer))["first_s"])
        error = np.abs(np.load(answer) - right).max()
        if not error <= WORKLOADS[workload].tolerance:  # written so that NaN fails, too
            child.end()
            raise NotAvailable(f"WRONG ANSWER, off by {error:.1e}")
        if not is_second:
            child.end()
    child.calibrate()
    return child


def yardstick(scratch, n_threads):
    """Time a fixed matrix product: if this moves, the machine moved."""
    right = save_arrays("yardstick", scratch)
    child = start(Row("numpy", "eager"), "yardstick", right, scratch, n_threads)
    timing = Timing(tuple(child.turn() for _ in range(15)), child.n_calls)
    child.end()
    return timing


def run(workload, rivals, n_rounds, n_threads, scratch):
    """All rows of one workload, timed; and the yardstick before and after."""
    right = save_arrays(workload, scratch)
    rows = [row for rival in rivals
            for row in find_modes(rival, workload, scratch, n_threads)]
    children = []  # (row, process) of those that work
    for row in tqdm(rows, desc="starting", leave=False):
        if not row.problem:
            try:
                child = start(row, workload, right, scratch, n_threads)
                children.append((row, child))
            except NotAvailable as reason:
                row.problem = str(reason)
        if row.problem:
            tqdm.write(f"SKIPPED {row.rival} {row.mode}: {row.problem}", sys.stderr)

    before = yardstick(scratch, n_threads)
    for _ in tqdm(range(n_rounds), desc="rounds", leave=False):
        for row, child in children:
            row.times_s.append(child.turn())
    after = yardstick(scratch, n_threads)
    for _, child in children:
        child.end()
    return rows, (before, after)


def names_from(known):
    """A parser of `a,b` that refuses names which are not known."""
    def parse(text):
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(
                f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
        return names
    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rivals", type=names_from(RIVALS), default=RIVALS,
                        metavar="A,B", help=f"of {', '.join(RIVALS)}; default: all")
    parser.add_argument("--workloads", type=names_from(WORKLOADS), default=["mlp"],
                        metavar="A,B", help=f"of {', '.join(WORKLOADS)}; default: mlp")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()

    machine, texts, results, failed = describe(), [], {}, []
    for workload in args.workloads:
        with TemporaryDirectory() as scratch:
            rows, yardsticks = run(
                workload, args.rivals, args.rounds, args.threads, Path(scratch))
        title = WORKLOADS[workload].title
        texts.append(
            report(title, rows, yardsticks, machine, args.threads, args.rounds))
        print(texts[-1])
        results[workload] = {"title": title, "rows": [vars(row) for row in rows],
                             "yardstick_s": [timing.times_s for timing in yardsticks]}
        failed += [row for row in rows if row.problem and row.rival == "minihybrid"]

    latest = {"machine": machine, "threads": args.threads, "workloads": results}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.json").write_text(json.dumps(latest) + "\n")
    (RESULTS / "latest.md").write_text("\n".join(texts))
    if failed:
        sys.exit(f"minihybrid {failed[0].mode} did not run: {failed[0].problem}")


if __name__ == "__main__":
    main()
