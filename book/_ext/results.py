"""Sphinx extension: tables from the files that `make bench` leaves in benchmarks/results.

    ```{results} ratios The numbers
    ```

The first argument names the table (`TABLES`), a sentence, or the plot; with a title after it, a
table is folded. Every number on the page comes from a file, and each row is judged by two rules:
was the machine busy, and what does the bootstrap interval of the ratio contain?
"""

import json
from html import escape
from pathlib import Path

import numpy as np
from docutils import nodes
from minihybrid.bench import Timing
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks/results"
OURS = "minihybrid"
BUSY = 0.1  # of the median: a larger spread, or a yardstick that moved by more
DRAW = 0.05  # a ratio that differs from 1 by less has no winner
RESAMPLES, CONFIDENCE = 2000, 0.95
GROUPS = {  # group -> its workloads: an MLP at five sizes of the batch isn't five findings
    "one call": ("mlp",),
    "products": ("mlp-8", "mlp-64", "mlp-256", "mlp-1024"),
    "convolutions": ("lenet", "resnet18", "resnet50", "mobilenet-v2", "densenet-169"),
    "sequences": ("transformer", "lstm"),
    "elementwise and reductions": ("plain", "elementwise", "softmax", "layer-norm"),
    "training steps": ("lenet-train", "transformer-train", "convnet-train"),
}


# -- judging: from times to words ------------------------------------------------------
def timing(times_s):
    return Timing(tuple(times_s), n_calls=1)


def spread(times_s):
    return timing(times_s).spread


def moved(before_s, after_s):
    """By which part the larger median exceeds the smaller."""
    low_s, high_s = sorted([np.median(before_s), np.median(after_s)])
    return float(high_s / low_s - 1)


def is_busy(workload):
    """The yardstick was unsteady, or stood elsewhere after the workload than before."""
    before_s, after_s = workload["yardstick_s"]
    return max(spread(before_s), spread(after_s), moved(before_s, after_s)) > BUSY


def interval(times_s, others_s, processes):
    """The bootstrap interval of the ratio of two medians.

    times_s, others_s: seconds per round, process after process. Rounds are interleaved, so
        round k of one is drawn together with round k of the other.
    Source:  Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 8 and 13.
    """
    pairs = np.array([times_s, others_s]).reshape(2, processes, -1)
    n = pairs.shape[2]
    rng = np.random.default_rng(seed=0)
    drawn = rng.integers(processes, size=(RESAMPLES, processes, 1))
    rounds = rng.integers(n, size=(RESAMPLES, processes, n))
    medians = np.median(pairs[:, drawn, rounds].reshape(2, RESAMPLES, -1), axis=-1)
    tail = (1 - CONFIDENCE) / 2
    return tuple(np.quantile(medians[0] / medians[1], (tail, 1 - tail)))


def judge(times_s, others_s, processes):
    """`ahead` or `behind`; `draw` if the ratio is near 1, or its interval contains 1."""
    ratio = np.median(times_s) / np.median(others_s)
    low, high = interval(times_s, others_s, processes)
    if low <= 1 <= high or abs(ratio - 1) < DRAW:
        return "draw"
    return "ahead" if ratio < 1 else "behind"


def false_positives(processes, rounds, races=400):
    """The share of simulated races between equals in which `judge` names a winner.

    Times differ by 2 % between processes, by 3 % between rounds, and every tenth round is
    interrupted and takes up to a half longer.
    """
    rng = np.random.default_rng(seed=1)
    shape = races, 2, processes, rounds
    times_s = np.exp(rng.normal(0, 0.02, (*shape[:3], 1)) + rng.normal(0, 0.03, shape))
    times_s *= 1 + (rng.random(shape) < 0.1) * rng.uniform(0, 0.5, shape)
    words = [judge(*race.reshape(2, -1), processes) for race in times_s]
    return 1 - words.count("draw") / races


def median_s(row):
    return timing(row["times_s"]).median_s


def fastest(workload, ours):
    """The fastest timed row, of ours or of the rivals; None if there is none."""
    rows = [r for r in workload["rows"] if r["times_s"] and (r["rival"] == OURS) == ours]
    return min(rows, key=median_s, default=None)


def doubts(*rows, workloads):
    """Why not to trust a row: the machine was `busy`, or its rounds are `unsteady`."""
    unsteady = any(spread(row["times_s"]) > BUSY for row in rows)
    return ", busy" * any(map(is_busy, workloads)) + ", unsteady" * unsteady


def verdict(workload):
    """What `judge` says of our fastest mode and the fastest rival; what speaks against it."""
    ours, rival = fastest(workload, True), fastest(workload, False)
    word = judge(ours["times_s"], rival["times_s"], ours.get("processes", 1))
    return word + doubts(ours, rival, workloads=[workload])


def gained(once, twice):
    """What a second thread brought, and a word for it."""
    one, two = fastest(once, True), fastest(twice, True)
    gain = median_s(one) / median_s(two)
    word = "gains" if gain > 1 + BUSY else "slower" if gain < 1 - BUSY else "as before"
    return gain, word + doubts(one, two, workloads=[once, twice])


# -- the tables: lists of rows of text, heading first ----------------------------------
def read(threads=1):
    return json.loads((FOLDER / f"latest{'' if threads == 1 else '-2'}.json").read_text())


def raced(results):
    """Workloads in which we and somebody else were timed: name -> workload."""
    return {
        name: w
        for name, w in results["workloads"].items()
        if fastest(w, True) and fastest(w, False)
    }


def with_quartiles(row):
    return "{} ({})".format(*timing(row["times_s"]).cells())


def ratios(threads=1):
    """Our fastest mode beside the fastest rival, in the order of the ratio."""
    lines = []
    for w in raced(read(threads)).values():
        ours, rival = fastest(w, True), fastest(w, False)
        ratio, they = median_s(ours) / median_s(rival), f"{rival['rival']}, {rival['mode']}"
        low, high = interval(ours["times_s"], rival["times_s"], ours.get("processes", 1))
        cells = w["title"], f"{ratio:.2f} ({low:.2f} to {high:.2f})", verdict(w)
        cells = *cells, with_quartiles(ours)
        lines.append((ratio, (*cells, f"{they}: {with_quartiles(rival)}")))
    head = ("workload", "ratio", "", "minihybrid", "fastest rival")
    return [head, *(cells for _, cells in sorted(lines))]


def ratio(workload):
    """The time of our fastest mode, divided by that of the fastest rival."""
    return median_s(fastest(workload, True)) / median_s(fastest(workload, False))


def groups():
    """A sentence for each group of workloads: how they end, and the mean of the ratios."""
    newest = raced(read())
    others = {processor(r): raced(r) for r in elsewhere()}
    for group, names in GROUPS.items():
        rows = [newest[name] for name in names if name in newest]
        words = [verdict(w).partition(",")[0] for w in rows]
        ends = [f"{word} in {words.count(word)}" for word in ("ahead", "behind") if word in words]
        ends += [counted(words.count("draw"), "draw")] * ("draw" in words)
        beside = "".join(f" ({mean(r, names):.2f} on {cpu})" for cpu, r in others.items())
        yield (
            f"{group.capitalize()}, {counted(len(rows), 'workload')}: {', '.join(ends)}; "
            f"{mean(newest, names):.2f} of the fastest rival's time, as a geometric mean{beside}."
        )


def mean(rows_of, names):
    """The geometric mean of the ratios of those workloads that were measured."""
    return float(np.exp(np.mean([np.log(ratio(rows_of[n])) for n in names if n in rows_of])))


def elsewhere(threads=1):
    """The newest results of each other kind of processor."""
    stem = "latest" if threads == 1 else "latest-2"
    return [json.loads(p.read_text()) for p in sorted(FOLDER.glob(f"processors/*-{stem}.json"))]


def processor(results):
    """A processor by its name, its family and model, and the width of its vectors."""
    m, flags = results["machine"], " ".join(results["machine"].get("flags", ()))
    parts = [m["cpu"], *(m.get("model") and [f"model {m['model'].replace(' ', '.')}"] or ())]
    width = "AVX-512" if "avx512" in flags else "AVX2" if "avx2" in flags else ""
    return " ".join([*parts, *([f"({width})"] if width else ())])


def processors():
    """The ratio of each workload on each kind of processor, the newest measurement first."""
    every = [read(), *elsewhere()]
    lines = [("workload", *(f"{processor(r)}, {r['machine']['date']}" for r in every))]
    for name, w in raced(every[0]).items():
        cells = []
        for rows_of in map(raced, every):
            other = rows_of.get(name)
            cells.append(f"{ratio(other):.2f} {verdict(other)}" if other else "")
        lines.append((w["title"], *cells))
    return lines


def libraries():
    """Who was measured: its versions, and where its kernels come from, as far as the files say."""
    workloads = (w for results in (read(), *elsewhere()) for w in results["workloads"].values())
    rows = [r for w in workloads for r in w["rows"] if r["version"]]
    kernels = {r["rival"]: r["kernels"] for r in rows if "kernels" in r}
    pairs = sorted({(r["rival"], r["version"]) for r in rows})
    return [("library", "version", "kernels")] + [(*p, kernels.get(p[0], "")) for p in pairs]


def yardsticks(threads=1):
    """The yardstick around each workload, and by how much it moved."""
    lines = [("workload", "before", "after", "moved by", "")]
    for w in read(threads)["workloads"].values():
        before_s, after_s = w["yardstick_s"]
        medians = (timing(t).cells()[0] for t in w["yardstick_s"])
        by = f"{moved(before_s, after_s):.0%}"
        lines.append((w["title"], *medians, by, "busy" if is_busy(w) else ""))
    return lines


def speeds():
    """What our fastest mode reaches, beside the better measure: a product or a copy."""
    results = read()
    roofs = results["roofs"]
    lines = [("workload", "we", "fastest rival", "measured beside")]
    for w in raced(results).values():
        product_s, copy_s = w["flops"] / roofs["flops_per_s"], w["nbytes"] / roofs["bytes_per_s"]
        work, unit = (w["flops"], "GFLOP/s") if product_s > copy_s else (w["nbytes"], "GB/s")
        beside = "a product" if product_s > copy_s else "a copy"
        least_s = max(product_s, copy_s)
        texts = (
            f"{work / s / 1e9:.1f} {unit}, {least_s / s:.2f}"
            for s in (median_s(fastest(w, True)), median_s(fastest(w, False)))
        )
        lines.append((w["title"], *texts, beside))
    return lines


def threads():
    """Our times with one thread and with two, and what that brought."""
    twice = read(2)
    second = twice["workloads"]
    lines = [("workload", "one thread", "two threads", "gain", "")]
    once_on = {processor(results): results for results in (*elsewhere(), read())}
    for name, once in raced(once_on[processor(twice)]).items():
        if name in second and fastest(second[name], True):
            both = (timing(fastest(w, True)["times_s"]).cells()[0] for w in (once, second[name]))
            gain, word = gained(once, second[name])
            lines.append((once["title"], *both, f"{gain:.2f}", word))
    return lines


def amount(number, unit):
    if number is None:
        return "not run"
    return {"ratio": f"{number:.2f}", "s": f"{number:.2f} s", "bytes": f"{number / 1e6:.1f} MB"}[
        unit
    ]


def bars(missed_only=False):
    """What was promised before the run, and what was measured."""
    lines = [("workload", "bar", "at most", "found", "beside", "")]
    for bar in read()["bars"]:
        if not (missed_only and bar["passed"]):
            limit, measured = (amount(bar[key], bar["unit"]) for key in ("limit", "found"))
            word = "passed" if bar["passed"] else "missed"
            lines.append((bar["workload"], bar["bar"], limit, measured, bar["against"], word))
    return lines


def milliseconds(seconds):
    return f"{1e3 * seconds:.1f} ms"


def first_calls():
    """The first call, and a thousand with it, of each mode of each library."""
    stored = json.loads((FOLDER / "first_calls.json").read_text())
    lines = [("", "first call", "a thousand calls with it")]
    for row in stored["rows"]["mlp"]:
        total_s = float(np.median(row["total_s"]))
        name = f"{row['rival']}, {row['mode']}"
        lines.append((name, milliseconds(row["first_s"]), milliseconds(total_s)))
    return lines


def grading_kinds():
    """What a submission of each kind took, and its points."""
    figures = json.loads((FOLDER / "grading.json").read_text())
    lines = [("submission", "number", "half took at most", "longest", "points")]
    for kind, row in figures["kinds"].items():
        times = (f"{row[key]:.1f} s" for key in ("median_s", "most_s"))
        low, high = row["points"][0], row["points"][-1]
        points = f"{low}" if low == high else f"{low} to {high}"
        lines.append((kind, str(row["number"]), *times, f"{points} of {figures['of']}"))
    return lines


def stored(name):
    """A file of results, or None before it's measured."""
    path = FOLDER / name
    return json.loads(path.read_text()) if path.exists() else None


FORMS = {
    "operator": "attention",
    "causal": "causal attention",
    "composed": "attention, composed",
    "model": "language model",
}
MODES = {"step": "training step", "sample": "one character"}


def attention(what="times", record=None):
    """Attention and the language model beside PyTorch: milliseconds, or megabytes of a step."""
    record = record or stored("attention.json")
    unit, scale = ("ms", 1e3) if what == "times" else ("MB", 1e-6)
    lines = [("", "length", "", *(f"{e}, {unit}" for e in (OURS, "PyTorch", "compiled")), "ratio")]
    for one in record[what] if record else ():
        ours, *others = (one[name] for name in (OURS, "torch", "compiled"))
        numbers = [f"{n * scale:.3g}" for n in (ours, *others)]
        form, mode = FORMS[one["way"]], MODES.get(one["mode"], one["mode"])
        lines.append((form, f"{one['length']:,}", mode, *numbers, f"{ours / min(others):.2f}"))
    return lines


def modes(workload):
    """All modes of one workload, fastest first; then those without a time, and why."""
    rows = sorted((r for r in workload["rows"] if r["times_s"]), key=median_s)
    lines = [("", "per call", "quartiles", "ratio", "memory", "first call", "2nd process")]
    for row in rows:
        memory = "" if row["nbytes"] is None else f"{row['nbytes'] / 1e6:.1f} MB"
        first = [*(timing([s]).cells()[0] for s in row["first_s"]), "", ""][:2]
        ratio = f"{median_s(row) / median_s(rows[0]):.2f}"
        name = f"{row['rival']}, {row['mode']}"
        lines.append((name, *timing(row["times_s"]).cells(), ratio, memory, *first))
    lines += [
        (f"{r['rival']}, {r['mode']}", f"skipped: {r['problem']}", *[""] * 5)
        for r in workload["rows"]
        if r["problem"]
    ]
    return lines


def in_page_chapters(record=None):
    """Cells, seconds after the click, and megabytes, of each chapter in a page."""
    record = record or stored("in_page.json")
    head = ("", "cells", "the same", "kernel, s", "first output, s", "all cells, s", "MB")
    lines = [(*head, "second visit: kernel, s", "first output, s")]
    for stem, one in record["chapters"].items() if record else ():
        first, second = one["visits"]
        same = one["cells"] - len(one["announced"]) - len(one["broken"])
        seconds = [first[key] for key in ("kernel_s", "first_s", "whole_s")]
        later = [second[key] for key in ("kernel_s", "first_s")]
        numbers = [f"{one['cells']}", f"{same}", *(f"{s:.0f}" for s in seconds)]
        lines.append((stem, *numbers, f"{first['bytes'] / 1e6:.0f}", *(f"{s:.0f}" for s in later)))
    return lines


def in_page_differences(record=None):
    """The cells that print something else in a page, and why."""
    record = record or stored("in_page.json") or {"chapters": {}}
    cells = [
        (s, *pair) for s, one in record["chapters"].items() for pair in one["announced"].items()
    ]
    return [("chapter", "cell", "why it differs"), *cells]


TABLES = {
    "attention": attention,
    "in-page-chapters": in_page_chapters,
    "in-page-differences": in_page_differences,
    "attention-memory": lambda: attention("peaks"),
    "processors": processors,
    "libraries": libraries,
    "ratios": ratios,
    "ratios-2": lambda: ratios(2),
    "yardsticks": yardsticks,
    "yardsticks-2": lambda: yardsticks(2),
    "speeds": speeds,
    "threads": threads,
    "missed": lambda: bars(missed_only=True),
    "bars": bars,
    "first-calls": first_calls,
    "grading-kinds": grading_kinds,
}


# -- the plot ----------------------------------------------------------------------------
WIDE, LEFT, LONG, HIGH = 640, 390, 206, 24  # the picture, its names, its axis, a row
LEAST, MOST = 0.25, 2.0  # ratios at the ends of the axis
TICKS = {0.25: "4x as fast", 0.5: "2x", 1: "equal", 2: "half as fast"}
INKS = {"ahead": "#2f9e6e", "draw": "#80868b", "behind": "#c8641c"}


def across(ratio):
    """Where a ratio is on the logarithmic axis; beyond an end, at the end.

    >>> across(9.0)
    596.0
    """
    part = np.log(np.clip(ratio, LEAST, MOST) / LEAST) / np.log(MOST / LEAST)
    return round(LEFT + LONG * float(part), 1)


def dots():
    """The ratios of one thread as dots on a logarithmic axis, with their intervals, in SVG."""
    rows = []
    for w in raced(read()).values():
        ours, rival = fastest(w, True), fastest(w, False)
        low, high = interval(ours["times_s"], rival["times_s"], ours.get("processes", 1))
        title = w["title"].replace(", float32", "")  # as all of them are
        rows.append((median_s(ours) / median_s(rival), low, high, title, verdict(w)))
    bottom = HIGH * (len(rows) + 1)
    parts = ['<g stroke="currentColor" fill="currentColor" font-size="12">']
    for ratio, words in TICKS.items():
        x = across(ratio)
        parts.append(f'<path d="M{x} {HIGH - 4}V{bottom}" stroke-opacity="{0.2 + (ratio == 1)}"/>')
        parts.append(f'<text x="{x}" y="14" text-anchor="middle" stroke="none">{words}</text>')
    parts.append("</g>")
    for n, (ratio, low, high, title, words) in enumerate(sorted(rows), 1):
        y, ink, name = n * HIGH + HIGH / 2, INKS[words.partition(",")[0]], escape(title)
        fill = "none" if "," in words else ink
        parts.append(
            f'<g stroke="{ink}" stroke-width="2"><title>{name}: {ratio:.2f}, {words}</title>'
            f'<text x="{LEFT - 12}" y="{y + 5}" text-anchor="end" font-size="12" stroke="none" '
            f'fill="currentColor">{name}</text><path d="M{across(low)} {y}H{across(high)}"/>'
            f'<circle cx="{across(ratio)}" cy="{y}" r="5" fill="{fill}"/></g>'
        )
    return (
        '<figure class="dots" style="margin:0"><div style="overflow-x:auto" tabindex="0">'
        f'<svg role="img" aria-label="{escape(summary())}" viewBox="0 0 {WIDE} {bottom + 4}" '
        f'style="min-width:560px;width:100%">{"".join(parts)}</svg></div><figcaption>'
        "Time of our fastest mode, divided by the time of the fastest rival. Left of the line, "
        "we're ahead (green); right of it, behind (orange); gray: a draw. Bars are 95 % intervals, "
        "and a hollow dot is marked busy or unsteady.</figcaption></figure>"
    )


# -- sentences -------------------------------------------------------------------------
def machine(threads=1):
    """Where and when the files were made."""
    results = read(threads)
    m, rows = results["machine"], [r for w in results["workloads"].values() for r in w["rows"]]
    processes = max(r.get("processes", 1) for r in rows)
    caches = ", ".join(f"{size} of level {level}" for level, size in m.get("caches", {}).items())
    return (
        f"Measured on {m['date']}: {processor(results)}, {m['cores']} cores"
        f"{caches and f', caches of {caches}'}, {m['system']}, Python {m['python']}, "
        f"{counted(processes, 'process', 'processes')} of {counted(results['rounds'], 'round')}."
    )


def summary():
    """How often we are ahead, behind, or neither, and how often the machine was busy."""
    words = [verdict(w) for w in raced(read()).values()]
    counts = {word: sum(w.startswith(word) for w in words) for word in ("ahead", "draw", "behind")}
    doubted = sum("," in w for w in words)
    marked = "1 row is marked" if doubted == 1 else f"{doubted} rows are marked"
    return (
        f"Of {len(words)} workloads with one thread, minihybrid is ahead in {counts['ahead']} "
        f"and behind in {counts['behind']}; {counts['draw']} end in a draw. {marked}: the machine "
        "was busy, or the row unsteady."
    )


def rule():
    """How often the rule names a winner where there is none."""
    results = read()
    rows = [row for w in raced(results).values() for row in w["rows"] if row["times_s"]]
    processes, rounds = rows[0].get("processes", 1), results["rounds"]
    ours, standard = false_positives(processes, rounds), false_positives(3, 20)
    counts = f"{processes} process{'es' * (processes != 1)} and {counted(rounds, 'round')}"
    return (
        f"Of 400 simulated races between two equally fast programs, the rule names a winner in "
        f"{ours:.1%} with {counts} per library, as on this page, "
        f"and in {standard:.1%} with 3 processes and 20 rounds, as make bench measures now."
    )


def promises():
    words = [line[-1] for line in bars()[1:]]
    return f"{len(words)} bars: {words.count('passed')} passed, {words.count('missed')} missed."


def grading(figures=None):
    """What grading a class took, and what hostile classmates and a killed grader changed."""
    figures = figures or json.loads((FOLDER / "grading.json").read_text())
    n, m, peak, kills = (figures[key] for key in ("number", "machine", "peak_bytes", "kills"))
    each_s = (figures["students_s"] + figures["grader_s"]) / n
    hostile = figures["kinds"]["hostile"]["number"]
    return (
        f"{n} submissions of {figures['assignment']} took {figures['wall_s'] / 60:.1f} minutes "
        f"with {figures['jobs']} at a time ({m['cpu']}, {m['cores']} cores, {m['date']}). "
        f"That is {figures['wall_s'] / n:.1f} s and {each_s:.1f} processor seconds each. "
        f"The process of a student who wasn't hostile had at most {peak['student'] / 1e6:.0f} MB, "
        f"a hostile one's {peak['hostile'] / 1e6:.0f} MB, and the grader "
        f"{peak['grader'] / 1e6:.0f} MB. The grader was killed {counted(kills['number'], 'time')} "
        f"in the middle and started again: compared with a run without the {hostile} hostile "
        f"submissions, {counted(kills['marks_changed'], 'mark')} of {n - hostile} changed, "
        f"{counted(kills['submissions_lost'], 'submission')} of {n} got lost, and "
        f"{counted(kills['processes_left'], 'process', 'processes')} and "
        f"{counted(kills['folders_left'], 'folder')} were left behind."
    )


def error_rate(figures=None):
    """What random programs found: at which commit, and which planted faults were caught."""
    figures = figures or json.loads((FOLDER / "soak.json").read_text())
    part = figures["programs"]
    n, modes, (first, last) = part["programs"], part["modes"], part["seeds"]
    words = (
        f"{counted(part['differences'], 'difference')} in {n:,} programs at commit "
        f"{part['commit'][:8]} ({part['date']}, seeds {first} to {last}). Of these programs, "
        f"{modes['rewritten']:,} were rewritten, {modes['np']:,} used mx.np, {modes['plain']:,} "
        f"also ran as kernels in plain Python, {modes['gpu']:,} on the simulated GPU and "
        f"{modes['cpu']:,} compiled."
    )
    if part := figures.get("control"):
        modes, (first, last) = part["modes"], part["seeds"]
        words += (
            f" Other programs had branches and loops, inside of each other as well: "
            f"{counted(part['differences'], 'difference')} in {part['programs']:,} programs at "
            f"commit {part['commit'][:8]} ({part['date']}, seeds {first} to {last}), of which "
            f"{modes['contrib.cond']:,} had cond, {modes['contrib.while_loop']:,} while_loop and "
            f"{modes['contrib.foreach']:,} foreach. Each also ran in mx.vjp, mx.jvp or mx.vmap, or "
            f"beside central differences. Not counted: "
            f"{counted(part['programs'] - modes['numpy'], 'program')} whose gradients have a "
            "documented limit, such as zero times an infinite slope."
        )
    if faults := figures.get("faults"):
        words += (
            f" Of {faults['planted']} faults planted in the engine on {faults['date']}, "
            f"such programs caught {faults['caught']}."
        )
    if mxnet := figures.get("mxnet"):
        words += (
            f" Beside MXNet 1.9.1 on {mxnet['date']}: {mxnet['programs']:,} programs, "
            f"{mxnet['unexplained']} unexplained."
        )
    return words


def in_page(record=None):
    """How many cells print the same in a page, and how long a reader waits there."""
    record = record or stored("in_page.json")
    if not record:
        return "Chapters in a page haven't been measured yet."
    chapters, m = record["chapters"].values(), record["machine"]
    cells, differ, broken, claims, wrong = (
        sum(one[key] if isinstance(one[key], int) else len(one[key]) for one in chapters)
        for key in ("cells", "announced", "broken", "claims", "reversed")
    )
    first, second = zip(*(one["visits"] for one in chapters), strict=True)
    waits = [np.median([visit["first_s"] for visit in visits]) for visits in (first, second)]
    most = [max(visit["bytes"] for visit in visits) for visits in (first, second)]
    return (
        f"In Chromium, {cells - differ - broken:,} of {cells:,} cells in {len(chapters)} chapters "
        f"print what this book prints. {differ} differ for a reason listed below, {broken} without "
        f"one. Of {claims} ratios of times, {claims - wrong} are on the same side of 1 there where "
        f"that's clear. From the click to the first output takes a median of {waits[0]:.0f} s on "
        f"the first visit, which loads at most {most[0] / 1e6:.0f} MB, and {waits[1]:.0f} s on the "
        f"second, which loads at most {most[1] / 1e3:.0f} kB ({m['cpu']}, {m['cores']} cores, "
        f"{m['date']})." + " The machine was busy, so don't trust the seconds." * record["busy"]
    )


def counted(number, noun, plural=None):
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def attention_machine(record=None):
    """Where attention was measured, and whether the machine was busy."""
    record = record or stored("attention.json")
    if not record:
        return "These rows haven't been measured yet."
    m, busy = record["machine"], is_busy(record)
    return (
        f"Measured on {m['date']} with one thread: {m['cpu']}, {m['system']}, Python {m['python']}."
        + " The machine was busy, so don't trust these rows." * busy
    )


SENTENCES = {
    "in-page": in_page,
    "attention-machine": attention_machine,
    "machine": machine,
    "machine-2": lambda: machine(2),
    "summary": summary,
    "rule": rule,
    "promises": promises,
    "grading": grading,
    "error-rate": error_rate,
}


# -- on the page -----------------------------------------------------------------------
def as_node(cell):
    return cell if isinstance(cell, nodes.Node) else nodes.paragraph(text=cell)


def as_table(lines):
    """A table of docutils, which the theme lets scroll by itself where a page is narrow."""
    head, *body = lines
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    parts = nodes.thead(), nodes.tbody()
    for part, rows in zip(parts, ([head], body), strict=True):
        for cells in rows:
            entries = [nodes.entry("", as_node(cell)) for cell in cells]
            part += nodes.row("", *entries)
        group += part
    return nodes.table("", group, classes=["results"])


def bullets(texts):
    items = (nodes.list_item("", nodes.paragraph(text=text)) for text in texts)
    return nodes.bullet_list("", *items)


def folded(title, *children):
    opening = nodes.raw("", f"<details><summary>{escape(title)}</summary>", format="html")
    return [opening, *children, nodes.raw("", "</details>", format="html")]


class Results(SphinxDirective):
    """A table, perhaps folded, a sentence, the plot, or (`all`) the tables of all workloads."""

    required_arguments, optional_arguments = 1, 1
    final_argument_whitespace = True

    def run(self):
        what, *title = self.arguments
        for path in sorted(FOLDER.glob("*.json")):
            self.env.note_dependency(str(path))
        if what in SENTENCES:
            return [nodes.paragraph(text=SENTENCES[what]())]
        if what == "dots":
            return [nodes.raw("", dots(), format="html")]
        if what == "groups":
            return [bullets(groups())]
        if what in TABLES:
            lines = TABLES[what]()
            table = as_table(lines) if lines[1:] else nodes.paragraph(text="None.")
            return folded(*title, table) if title else [table]
        workloads = read()["workloads"].values()
        return [n for w in workloads for n in folded(w["title"], as_table(modes(w)))]


def setup(app):
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
