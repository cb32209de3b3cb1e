"""What a program that makes a thousand calls waits for, its first call included.

    python benchmarks/first_calls.py                              # about ten minutes
    python benchmarks/first_calls.py --rivals minihybrid --repeats 10

Each program is a fresh process with an empty cache of compiled code. Writes
`first_calls.json` and the plot `first_calls.svg` to `results/`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from child import Child
from envs import RIVALS, NotAvailable
from machine import describe, limits
from matplotlib.figure import Figure
from plots import style
from session import Session
from tqdm import tqdm

RESULTS = Path(__file__).parent / "results"
N_CALLS, N_SHOWN = 1000, 200
OURS = "minihybrid"

# The loop of the tutorials, as they have it; only the import is another.
TUTORIAL = """
import time
import minihybrid as mx
from minihybrid import nd
from minihybrid.gluon import nn

def get_net():
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"),
            nn.Dense(2))
    net.initialize()
    return net

def bench(net, x):
    start = time.time()
    for i in range(1000):
        net(x)
    nd.waitall()
    return time.time() - start

x = nd.random.normal(shape=(1, 512))
net = get_net()
net(x)
print(bench(net, x))
net.hybridize()
print(bench(net, x))
"""


def tutorial(n):
    """[[eager_s, hybridized_s]] of n fresh processes, each with an empty cache."""
    pairs = []
    for _ in tqdm(range(n), desc="the tutorials' loop", leave=False):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                [sys.executable, "-c", TUTORIAL],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "MINIHYBRID_CACHE_DIR": folder, "MINIHYBRID_WAIT": "0"},
            )
        pairs.append([float(word) for word in run.stdout.split()])
    return pairs


def calls(session, workload, rival, mode, module=None):
    """Seconds of each call in a fresh process; a module is imported before."""
    with tempfile.TemporaryDirectory(dir=session.scratch) as folder:
        child = Child(
            rival,
            session.arrays_of(workload),
            Path(folder) / "cache",
            session.n_threads,
            wait=False,
        )
        if module:
            child.ask("load", module=module)
        first_s = child.ask(
            "prepare", net=workload, mode=mode, answer=str(Path(folder) / "answer.npy")
        )["first_s"]
        times_s = child.ask("each", n_calls=N_CALLS - 1)["times_s"]
        child.end()
    return [first_s, *times_s]


def row_of(session, workload, rival, mode, repeats, module=None):
    """The figures of a mode: medians, and the calls of the middle process."""
    runs = sorted((calls(session, workload, rival, mode, module) for _ in range(repeats)), key=sum)
    return {
        "rival": rival,
        "mode": mode + f", {module} imported" * bool(module),
        "first_s": statistics.median(run[0] for run in runs),
        "total_s": [sum(run) for run in runs],
        "calls_s": [round(s, 9) for s in runs[len(runs) // 2][:N_SHOWN]],
    }


def measure(session, workload, rivals, repeats):
    """A row for each mode of each rival that is there."""
    session.save_arrays(workload)
    rows = []
    for rival in rivals:
        about = session.about(rival)
        if "problem" in about:
            tqdm.write(f"SKIPPED {rival}: {about['problem']}", sys.stderr)
        modes = [(mode, None) for mode in about.get("modes", {}).get(workload, [])]
        modes += [("hybridized", "numba")] * (rival == OURS)
        for mode, module in tqdm(modes, desc=f"{workload}: {rival}", leave=False):
            n = 10 if rival == OURS else repeats
            try:
                rows.append(row_of(session, workload, rival, mode, n, module))
            except NotAvailable as reason:
                tqdm.write(f"SKIPPED {rival} {mode}: {reason}", sys.stderr)
    return sorted(rows, key=lambda row: statistics.median(row["total_s"]))


def table(measured):
    """The figures as text in Markdown."""
    lines = []
    for workload, rows in measured.items():
        lines += [f"| {workload} | first call | {N_CALLS} calls, with the first |", "|---|--:|--:|"]
        lines += [
            f"| {row['rival']} {row['mode']} | {1e3 * row['first_s']:.1f} ms | "
            f"{1e3 * statistics.median(row['total_s']):.1f} ms |"
            for row in rows
        ]
        lines.append("")
    return "\n".join(lines)


def plot(rows):
    """The time of each of the first calls, for the quickest mode of each rival."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes, seen = figure.subplots(), set()
    for row in rows:
        if row["rival"] in seen and row["mode"] != "eager" or "," in row["mode"]:
            continue
        seen.add(row["rival"])
        axes.plot(
            range(1, N_SHOWN + 1),
            row["calls_s"],
            markevery=25,
            markersize=4,
            linewidth=0.8,
            label=f"{row['rival']} {row['mode']}",
            linestyle=":" if row["mode"] == "eager" else "-",
            **style(row["rival"]),
        )
    axes.set(yscale="log", xlabel="call", ylabel="seconds")
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rivals", default=",".join(RIVALS))
    parser.add_argument("--repeats", type=int, default=3, help="processes of a rival")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        session = Session(Path(scratch), n_threads=1)
        measured = {
            workload: measure(session, workload, given.rivals.split(","), given.repeats)
            for workload in ("mlp", "lenet")
        }
    os.environ |= limits(1)
    pairs = tutorial(10)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "first_calls.json").write_text(
        json.dumps({"machine": describe(), "rows": measured, "tutorial_s": pairs}) + "\n"
    )
    plot(measured["mlp"]).savefig(RESULTS / "first_calls.svg", metadata={"Date": None})
    print(table(measured))
    for eager_s, hybridized_s in pairs:
        print(
            f"tutorial: eager {1e3 * eager_s:.1f} ms, hybridized "
            f"{1e3 * hybridized_s:.1f} ms, {eager_s / hybridized_s:.1f} times faster"
        )


if __name__ == "__main__":
    main()
