"""Figures of memory: live ranges, traffic, aliasing and cache lines.

Uses:    a memory plan; graphs; arrays; the steps of a loop.
Defines: `lifetimes`, `travel`, `sharing`, `cache_lines`, `walks`.

Not supported: plans of more than `MAX_DRAWN` values, which would be illegible.
"""

import itertools
import math
from collections import Counter

import numpy as np

from minihybrid.core.op import HybridError
from minihybrid.core.plan import nbytes_moved
from minihybrid.view.viz import plural
from minihybrid_course.ink import LETTER, LINE, WIDTH, Figure, Film, Panel, fitting

MAX_DRAWN = 12


def lifetimes(memory):
    """Draw the live range of each value of a memory plan, and the bytes used per step.

    >>> import numpy as np
    >>> from minihybrid.core import sym
    >>> from minihybrid.core.op import Spec
    >>> x = Spec((4,), np.dtype("float32"))
    >>> graph, _ = sym.trace(lambda x: x.exp().sin(), {"x": x})
    >>> from minihybrid.core.passes import plan_memory
    >>> lifetimes(plan_memory(graph))
    Values of 32 bytes share 16; at most 16 are in use
      2 values in 16 bytes: exp0, 16 bytes, steps 0 to 1, output 0. sin0, 16 bytes, \
step 1, output 0. Most is in use at step 0: 16 bytes.
    """
    rows = _few("lifetimes", memory.steps)
    n_steps = 1 + max(last for *_, last, _ in rows)
    total = memory.nbytes + memory.outs_nbytes
    panel = Panel(f"{plural(len(rows), 'value')} in {total:,} bytes")
    left = 118
    across = (WIDTH - left) / n_steps
    y = panel.row(LINE, 0)
    panel.text(left - 6, y + 12, "step", anchor="end")
    for k in range(0, n_steps, -(-n_steps // 10)):
        panel.text(left + across * (k + 0.5), y + 12, str(k))
    for name, nbytes, first, last, place in rows:
        y, wide = panel.row(30, 4), (last - first + 1) * across - 2
        panel.text(0, y + 12, fitting(name, left - 6), anchor="start", bold=True)
        panel.text(0, y + 26, f"{nbytes:,} bytes", anchor="start")
        ink = "array" if place.startswith("at") else "kernel"
        label = place if LETTER * len(place) < wide - 4 else place.split()[-1]
        panel.box(left + first * across + 1, y + 2, wide, 26, label, ink)
        steps = f"steps {first} to {last}" if last > first else f"step {first}"
        panel.tell(f"{name}, {nbytes:,} bytes, {steps}, {place}.")
    panel.y += 4
    used = [_used([row for row in rows if row[2] <= k <= row[3]]) for k in range(n_steps)]
    y, most = panel.row(52), max(used)
    panel.text(0, y + 46, "bytes in use", anchor="start")
    for k, nbytes in enumerate(used):
        high = max(34 * nbytes / most, 1)
        panel.box(left + k * across + 1, y + 52 - high, across - 2, high, ink="python")
        if across > 7 * len(f"{nbytes:,}"):
            panel.text(left + across * (k + 0.5), y + 48 - high, f"{nbytes:,}", size=11)
    panel.note("at: byte in the arena; output: memory of the result")
    panel.tell(f"Most is in use at step {used.index(most)}: {most:,} bytes.")
    apart = sum(nbytes for _, nbytes, *_ in rows)
    return Figure(f"Values of {apart:,} bytes share {total:,}; at most {most:,} are in use", panel)


def _used(rows):
    """Return the bytes of some values; values written in place use none."""
    sizes = {}
    for _, nbytes, _, _, place in rows:
        sizes[place] = max(sizes.get(place, 0), nbytes)
    return sum(sizes.values())


def _few(what, rows):
    if not 1 <= len(rows) <= MAX_DRAWN:
        raise HybridError(
            f"{what}: there are {len(rows)} values, but 1 to {MAX_DRAWN} can be drawn; "
            "take a smaller program, or print the plan"
        )
    return rows


def travel(*graphs):
    """Draw what each kernel of a graph loads from memory and stores.

    graphs:  one panel each; every operator of a graph represents one kernel.
    Units:   bytes; their sum is `nbytes_moved(graph)`.
    """
    first, *_, last = (*map(nbytes_moved, graphs), nbytes_moved(graphs[-1]))
    caption = f"The kernels move {last:,} bytes" + f" instead of {first:,}" * (last != first)
    return Figure(caption, *map(_travel, graphs))


def _travel(graph):
    names = graph.names()
    kernels = _few("travel", [n for n in graph.nodes if n.op and not n.op.view])
    panel = Panel(f"{plural(len(kernels), 'kernel')}, {nbytes_moved(graph):,} bytes")
    reads = {node: list(dict.fromkeys(node.inputs)) for node in kernels}
    writes = {node: [(node, i) for i in range(node.n_outputs)] for node in kernels}
    refs = list(dict.fromkeys(ref for node in kernels for ref in (*reads[node], *writes[node])))
    y = panel.row(LINE)
    panel.text(55, y + 12, "memory")
    panel.text(WIDTH - 65, y + 12, "kernels")
    place = {}
    for n, i in refs:
        place[n, i] = y = panel.row(38, 12)
        name = names[n] + f"[{i}]" * (n.n_outputs > 1)
        panel.box(0, y, 120, 38, [name, f"{n.specs[i].nbytes:,} bytes"], "array")
    room, y = (panel.y - place[refs[0]]) / len(kernels), place[refs[0]]
    for node in kernels:
        lines, middle = _inside(node), y + room / 2
        high = LINE * len(lines) + 22
        panel.box(WIDTH - 130, middle - high / 2, 130, high, lines, "kernel")
        ways = [(ref, True) for ref in reads[node]] + [(ref, False) for ref in writes[node]]
        for k, (ref, comes) in enumerate(ways):
            left = 122, place[ref] + (12 if comes else 26)
            right = WIDTH - 132, middle + (k - (len(ways) - 1) / 2) * 12
            ends, ink = ((*left, *right), "given") if comes else ((*right, *left), "gone")
            panel.arrow(*ends, ink, 1.8, dashed=not comes)
            verb = "reads" if comes else "writes"
            moved = f"{names[ref[0]]}, {ref[0].specs[ref[1]].nbytes:,} bytes."
            panel.tell(f"{' + '.join(lines)} {verb} {moved}")
        y += room
    panel.note("solid arrow: read; dashed: written")
    return panel


def _inside(node):
    """Return the operators of a kernel, one per line."""
    inner = node.attrs.get("graph")
    names = [n.op.name for n in inner.nodes if n.op] if inner else [node.op.name]
    return names if len(names) <= 4 else [*names[:3], f"and {len(names) - 3} more"]


def sharing(x, **others):
    """Draw the memory of an array, and the other arrays that alias it.

    others:  arrays by name; those that share no byte with `x` are drawn separately.
    """
    data, count = x.data, x.data.size
    if count > MAX_DRAWN:
        raise HybridError(
            f"sharing: the array has {count} elements, but at most {MAX_DRAWN} can be drawn"
        )
    across = WIDTH / max(count, 1)
    panel = Panel(f"x: {count} elements, {data.nbytes} bytes")
    y = panel.row(26)
    for k, number in enumerate(data.ravel()):
        panel.box(k * across, y, across, 26, f"{number:g}", "array")
    start, aliases = data.ctypes.data, []
    for name, other in others.items():
        other = getattr(other, "data", other) if not isinstance(other, np.ndarray) else other
        shares = np.shares_memory(data, other)
        y = panel.row(26, 8)
        if shares:
            first = (other.ctypes.data - start) // data.itemsize
            panel.box(first * across, y, other.size * across, 26, name, "kernel")
            aliases.append(name)
            panel.tell(f"{name} aliases elements {first} to {first + other.size - 1} of x.")
            continue
        panel.box(0, y, other.size * across, 26, f"{name}: a copy", "gone", dashed=True)
        panel.tell(f"{name} has {other.nbytes} bytes of its own.")
    panel.note("solid: the same bytes as above; dashed: bytes of its own")
    return Figure(
        f"{len(aliases)} of {len(others)} arrays alias the {data.nbytes} bytes of x: "
        f"{', '.join(aliases) or 'none'}",
        panel,
    )


def cache_lines(n, steps, size=4, line=64):
    """Draw the cache lines that a loop loads, for several strides.

    n:       the number of elements it reads;  steps: strides; 1 means contiguous
    size, line:  bytes per element, and per line.
    """
    panel, each = Panel(f"{n:,} elements, in cache lines of {line} bytes"), line // size
    across = WIDTH / (2 * each)
    for step in steps:
        count = len({i * step // each for i in range(n)})
        sentence = f"stride {step}: {plural(count, 'line')}, {count * line:,} bytes fetched"
        panel.note(sentence)
        panel.tell(f"{sentence}.")
        y = panel.row(20, 8)
        for k in range(2 * each):
            ink = {"ink": "array", "fill": 0.7} if k % step == 0 else {"fill": 0}
            panel.box(k * across, y, across - 1 - 3 * (k % each == each - 1), 20, **ink)
    panel.note(f"two of the lines, {each} elements each; filled: requested")
    least, most = (len({i * step // each for i in range(n)}) for step in (min(steps), max(steps)))
    caption = (
        f"With stride {max(steps)}, a loop fetches {most / least:g} times as many bytes "
        f"as with stride {min(steps)}, for the same {n:,} elements"
    )
    return Figure(caption, panel)


def walks(n=16, line=4, lines=16):
    """Draw how often a matrix product loads each cache line, for five loop orders.

    n:       rows of its square matrices;  line: elements per cache line
    lines:   the capacity of the cache, which evicts the least recently used line.
    """
    tiles = {"three loops": n, "b transposed": n, **{f"tile {t}": t for t in (2, 4, 8)}}
    loads = {
        name: _loads(_accesses(n, tile, name == "b transposed"), line, lines)
        for name, tile in tiles.items()
    }
    totals = {name: sum(counted.values()) for name, counted in loads.items()}
    best = min(totals, key=totals.get)
    caption = (
        f"Three loops load {totals['three loops']:,} cache lines, {totals['b transposed']:,} if b "
        f"is transposed, and {totals[best]:,} in tiles of {tiles[best]} rows: matrices of {n} "
        f"rows, in an LRU cache of {lines} lines of {line} elements"
    )
    panels = {name: _walk(name, counted, totals, n, line) for name, counted in loads.items()}
    return Film(caption, "the order of the accesses", panels)


def _accesses(n, tile, transposed):
    """Yield (matrix, row, column) of each access of a product, tile by tile."""
    for *corner, depth in itertools.product(range(0, n, tile), repeat=3):
        for i, j in itertools.product(*(range(first, first + tile) for first in corner)):
            for k in range(depth, depth + tile):
                yield "a", i, k
                yield ("b", j, k) if transposed else ("b", k, j)
            yield "out", i, j  # up to here, the sum is in a register


def _loads(accesses, line, lines):
    """Return (matrix, row, line of the row) -> how often a cache loads it."""
    cache, loads = {}, Counter()
    for matrix, row, column in accesses:
        key = matrix, row, column // line
        loads[key] += key not in cache
        cache.pop(key, None)
        cache[key] = True  # the last key is the most recently used
        if len(cache) > lines:
            del cache[next(iter(cache))]
    return loads


def _walk(name, loads, totals, n, line):
    panel, side, pitch = Panel(f"{name}: {totals[name]:,} loads"), 100, WIDTH / 2 - 50
    top = panel.row(LINE + side, 12) + LINE
    for left, matrix in zip((0, pitch, 2 * pitch), ("a", "b", "out"), strict=True):
        counts = {count for key, count in loads.items() if key[0] == matrix}
        often = "-".join(map(str, sorted({min(counts), max(counts)})))
        fill = math.log2(1 + max(counts)) / math.log2(1 + n * line)
        panel.text(left + side / 2, top - 5, f"{matrix}: {often} a line")
        panel.box(left, top, side, side, ink="gone" if max(counts) > 1 else "array", fill=fill)
        for count, turned in ((n, False), (n // line, True)):  # each field is a cache line
            zigzag = [
                (end * side, k * side / count)
                for k in range(1, count)
                for end in ((0, 1) if k % 2 else (1, 0))
            ]
            panel.line([(left + p[turned], top + p[not turned]) for p in zigzag], width=0.5)
        panel.tell(f"Loads of each line of {matrix}: {often}.")
    indent = LETTER * (max(map(len, totals)) + 1)
    full = WIDTH - indent - LETTER * 6
    for other, count in totals.items():
        y, long = panel.row(18, 2), full * count / max(totals.values())
        panel.text(0, y + 13, other, anchor="start", bold=other == name)
        panel.box(indent, y, long, 18, ink="gone", fill=0.75 if other == name else 0.18)
        panel.text(indent + long + 4, y + 13, f"{count:,}", anchor="start", bold=other == name)
    return panel
