"""How the time from Python code to source text grows with the graph.

    python benchmarks/graph_scale.py                     # some minutes
    python benchmarks/graph_scale.py --sizes 1000,10000

Writes `graph_scale.json` and the plot `graph_scale.svg` to `results/`. Nothing is
compiled here: how long that takes depends on the number of different kernels.
"""

import argparse
import gc
import json
import time
from pathlib import Path

import numpy as np
from machine import describe
from matplotlib import pyplot as plt
from minihybrid.sym import trace

from minihybrid import sym
from minihybrid.codegen import TARGETS
from minihybrid.core.op import Spec
from minihybrid.core.passes.gradient import differentiate
from minihybrid.passes import cse, dce, expand, fold, fuse, plan_memory

RESULTS = Path(__file__).parent / "results"
SIZES = 1000, 10_000, 100_000
TEXT = 10_000  # source text takes longest; the slope shows up to here
SQUARE = Spec((4, 4), np.dtype("float32"))


# -- graphs of about n operators: (function to trace, its inputs) ----------------------
def chain(n):
    """One value after the other, nothing but elementwise steps."""

    def run(x):
        for _ in range(n // 2):
            x = sym.tanh(x * 1.5)
        return x

    return run, {"x": SQUARE}


def tree(n):
    """A diamond of n / 3 branches that live at one time, added up two by two."""

    def run(x):
        level = [sym.dot(x, x) * (1 + i) for i in range(n // 3)]
        while len(level) > 1:
            odd = level[len(level) // 2 * 2 :]
            level = [a + b for a, b in zip(level[::2], level[1::2], strict=False)] + odd
        return level[0]

    return run, {"x": SQUARE}


def layers(n):
    """A residual net of n / 3 layers, each with parameters of its own."""

    def run(x, *params):
        for w, b in zip(params[::2], params[1::2], strict=True):
            h = sym.FullyConnected(x, w, b, num_hidden=4)
            x = x + sym.Activation(h, act_type="relu")
        return x

    bias = Spec((4,), SQUARE.dtype)
    params = {f"p{i}": bias if i % 2 else SQUARE for i in range(2 * (n // 3))}
    return run, {"x": SQUARE} | params


def shared(n):
    """The same net with one layer's parameters, as in a recurrent net."""

    def run(x, w, b):
        for _ in range(n // 3):
            x = x + sym.tanh(sym.FullyConnected(x, w, b, num_hidden=4))
        return x

    return run, {"x": SQUARE, "w": SQUARE, "b": Spec((4,), SQUARE.dtype)}


GRAPHS = {f.__name__: f for f in (chain, tree, layers, shared)}


def walk(kind, n, around):
    """Take a graph through all stages; `around(name, function, *args)` runs each."""
    function, inputs = GRAPHS[kind](n)
    graph, _ = around("trace", trace, function, inputs)
    graph = expanded = around("expand", expand, graph)
    for run in (fold, cse, dce):
        graph = around("fold, cse, dce", run, graph)
    around("check, print", graph.check)
    around("check, print", graph.show)
    fused = around("fuse", fuse, graph)
    around("memory", plan_memory, graph)  # not fused: more values to place
    memory = plan_memory(fused)
    if n <= TEXT:
        around("source text", TARGETS["cpu"].generate, fused, memory, ["x"])
    around("differentiate", differentiate, expanded, list(inputs))


def seconds(kind, n):
    """stage -> seconds of the processor, which other programs lengthen less."""
    times_s = {}

    def around(name, function, *args):
        start = time.process_time()
        result = function(*args)
        times_s[name] = times_s.get(name, 0) + time.process_time() - start
        return result

    gc.collect()
    walk(kind, n, around)
    return times_s


def table(results):
    """Microseconds an operator: a row for each graph and stage, a column a size."""
    lines = [
        "| graph | stage | " + " | ".join(f"{n:,}" for n in results) + " |",
        "|---|---|" + "--:|" * len(results),
    ]
    first = next(iter(results.values()))
    for kind, stages in first.items():
        for name in stages:
            cells = (
                f"{results[n][kind][name] / n * 1e6:.1f}" if name in results[n][kind] else ""
                for n in results
            )
            lines.append(f"| {kind} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


# The colors of Okabe and Ito, which people with any color vision can tell apart.
STYLES = dict(
    zip(
        (
            "trace",
            "expand",
            "fold, cse, dce",
            "check, print",
            "fuse",
            "memory",
            "source text",
            "differentiate",
        ),
        zip(
            (
                "#000000",
                "#E69F00",
                "#56B4E9",
                "#009E73",
                "#F0E442",
                "#0072B2",
                "#D55E00",
                "#CC79A7",
            ),
            "osv^DXP*",
            strict=True,
        ),
        strict=True,
    )
)


def plot(results, path):
    """Seconds against operators, both logarithmic; linear growth is the grey line."""
    figure, axes = plt.subplots(1, len(GRAPHS), figsize=(13, 4.2), sharey=True)
    sizes = [*results]
    for axis, kind in zip(axes, GRAPHS, strict=True):
        for name, (color, marker) in STYLES.items():
            axis.loglog(
                sizes,
                [results[n][kind].get(name) for n in sizes],
                color=color,
                marker=marker,
                label=name,
            )
        axis.loglog(
            sizes, [n * 1e-5 for n in sizes], color="grey", linestyle=":", label="10 µs an operator"
        )
        axis.set(title=kind, xlabel="operators")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds of the processor")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=9,
        fontsize="small",
        frameon=False,
    )
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    sizes = [int(n) for n in parser.parse_args().sizes.split(",")]
    results = {n: {kind: seconds(kind, n) for kind in GRAPHS} for n in sizes}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "graph_scale.json").write_text(
        json.dumps({"machine": describe(), "seconds": results}, indent=1) + "\n"
    )
    plot(results, RESULTS / "graph_scale.svg")
    print(table(results))


if __name__ == "__main__":
    main()
