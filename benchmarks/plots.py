"""Pictures of a run, as SVG: every workload, the batches of the MLP, the roofline.

Each line and dot says in words who it is, so that nothing depends on color.
"""

import matplotlib
import numpy as np
from bars import OURS, best, of_mode
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter
from workloads import ALL, SIZES, WORKLOADS

# Rival -> (a color, most of Okabe and Ito, a marker).
STYLES = {
    "minihybrid": ("#D55E00", "D"),
    "numpy": ("#000000", "o"),
    "mxnet": ("#0072B2", "s"),
    "torch": ("#E69F00", "^"),
    "jax": ("#009E73", "v"),
    "tensorflow": ("#CC79A7", "P"),
    "onnxruntime": ("#56B4E9", "X"),
    "tinygrad": ("#7F7F7F", "*"),
    "openvino": ("#17BECF", "h"),
}
RC = {"svg.fonttype": "none", "svg.hashsalt": "minihybrid", "font.size": 9}


def style(rival):
    color, marker = STYLES[rival]
    return {"color": color, "marker": marker}


def draw(rows_of, roofs, machine, n_threads, stem):
    """Write `<stem>-<workload>.svg`, `<stem>-sweep.svg` and `<stem>-roofline.svg`."""
    versions = sorted(
        {f"{row.rival} {row.version}" for rows in rows_of.values() for row in rows if row.version}
    )
    source = (
        f"{machine['cpu']}, {machine['date']}, threads: {n_threads}\n"
        + ", ".join(versions[:4])
        + "\n"
        + ", ".join(versions[4:])
    )
    with matplotlib.rc_context(RC):
        figures = {
            name: times(ALL[name].title, rows)
            for name, rows in rows_of.items()
            if any(row.times_s for row in rows)
        }
        if any(ALL[name].net == "mlp" for name in rows_of):
            figures["sweep"] = sweep(rows_of)
        figures["roofline"] = roofline(rows_of, roofs)
        for name, figure in figures.items():
            figure.text(0.01, 0.0, source, fontsize=6, va="top", color="#555555")
            figure.savefig(f"{stem}-{name}.svg", bbox_inches="tight", metadata={"Date": None})


def times(title, rows):
    """All modes of a workload: every round a dot, the median a marker."""
    timed = sorted((r for r in rows if r.times_s), key=lambda r: -r.median_s)
    figure = Figure(figsize=(6.5, 0.8 + 0.25 * len(timed)), layout="constrained")
    axes = figure.subplots()
    for y, row in enumerate(timed):
        low_s, high_s = np.quantile(row.times_s, (0.25, 0.75))
        axes.scatter(row.times_s, [y] * len(row.times_s), s=4, color="#999999")
        axes.plot(
            [low_s, high_s],
            [y, y],
            color=STYLES[row.rival][0],
            linewidth=9,
            alpha=0.35,
            solid_capstyle="butt",
        )
        axes.plot(row.median_s, y, **style(row.rival), markersize=5)
    axes.set_yticks(range(len(timed)), [row.name for row in timed])
    axes.set(
        xscale="log",
        title=title,
        xlabel="time per call (dots: rounds; bar: quartiles; marker: median)",
    )
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=99))
    axes.xaxis.set_major_formatter(EngFormatter(unit="s"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=7, rotation=45)
    axes.grid(axis="x", which="both", alpha=0.3)
    return figure


def sweep(rows_of):
    """Time per call of the MLP against the batch, the best mode of each framework."""
    batches = {
        name: int(name.partition("-")[2] or 1)
        for name in WORKLOADS
        if WORKLOADS[name].net == "mlp" and name in rows_of
    }
    figure = Figure(figsize=(6.5, 4.5), layout="constrained")
    axes = figure.subplots()
    for i, rival in enumerate(STYLES):
        best_s = {}
        for name, batch in batches.items():
            mine = [r.median_s for r in rows_of[name] if r.rival == rival and r.times_s]
            if mine:
                best_s[batch] = min(mine)
        if best_s:
            axes.plot(
                best_s.keys(),
                best_s.values(),
                **style(rival),
                label=rival,
                linestyle=["-", "--", "-.", ":"][i % 4],
            )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="batch",
        ylabel="time per call",
        title=f"MLP {'-'.join(map(str, SIZES))}, best mode of each",
    )
    axes.set_xticks(list(batches.values()), [str(b) for b in batches.values()])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(EngFormatter(unit="s"))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure


def roofline(rows_of, roofs):
    """Speed against operations per byte: ours filled, the best rival's empty."""
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    work = {name: w for name, w in WORKLOADS.items() if name in rows_of}
    x = np.array([w.flops / w.nbytes for w in work.values()])
    span = np.geomspace(x.min() / 2, x.max() * 4, 100)
    axes.plot(span, np.minimum(roofs.flops_per_s, span * roofs.bytes_per_s) / 1e9, color="#000000")
    peak, slope = roofs.flops_per_s / 1e9, roofs.bytes_per_s / 1e9
    axes.text(
        span[-1], peak, f"{peak:.0f} GFLOP/s, a matrix product", ha="right", va="bottom", fontsize=8
    )
    axes.text(
        span[0],
        span[0] * slope,
        f"{slope:.0f} GB/s, a copy",
        ha="right",
        va="bottom",
        fontsize=8,
        rotation=90,
    )
    for (name, w), intensity in zip(work.items(), x, strict=True):
        for row, face in (
            (of_mode(rows_of[name], "hybridized"), STYLES[OURS][0]),
            (best(rows_of[name], lambda row: row.median_s), "none"),
        ):
            if row:
                speed = w.flops / row.median_s / 1e9
                color, marker = STYLES[row.rival]
                axes.plot(intensity, speed, marker, color=color, markerfacecolor=face)
                label = name if row.rival == OURS else row.rival
                axes.annotate(
                    label, (intensity, speed), (5, -2), fontsize=7, textcoords="offset points"
                )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="operations per byte that must move",
        ylabel="GFLOP/s",
        title="Roofline (bytes: of main memory); ours filled, best rival empty",
    )
    axes.grid(alpha=0.3)
    return figure
