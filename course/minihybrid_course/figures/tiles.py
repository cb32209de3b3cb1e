"""Figures of a GPU's memory: the accesses of blocks, warps and threads.

Uses:    kernels with their grid and block, and their arguments; they run on the
         simulated GPU, which records their accesses.
Defines: `tiles`, `registers`, `pieces`, `banks`.

Limits:  caches aren't simulated.
"""

import math
from collections import defaultdict

from minihybrid.simt.traffic import BANKS, PIECE, WORD, bank_turns, requests
from minihybrid.simt.traffic import pieces as n_pieces
from minihybrid.view.viz import plural
from minihybrid_course.figures.threads import recorded
from minihybrid_course.ink import LINE, WIDTH, Figure, Panel


def tiles(launches, *arguments, block=0):
    """Draw what one block reads of two matrices, in total and between two barriers.

    launches: kernels with their grid and block, for the same arguments (a, b, out).
    """
    return Figure(
        f"The elements block {block} needs, and those it holds at one time",
        *(_tiles(launch, arguments, block) for launch in launches),
    )


def _tiles(launch, arguments, block):
    run, record = recorded(launch, arguments)
    counts, used = launch.kernel.counts, defaultdict(set)
    shapes = {}
    for use in record:
        if use.t // run.n_block == block and use.array.written is None:
            used[use.array.name, use.phase].add(divmod(use.i, use.array.shape[1]))
            shapes[use.array.name] = use.array.shape
    panel = Panel(f"{run.name}: {counts.global_loads:,} loads from global memory")
    side, y = 104, panel.row(104 + LINE)
    for k, (name, (rows, columns)) in enumerate(shapes.items()):
        x = k * (side + 14)
        panel.text(x + side / 2, y + 12, f"{name} {rows}x{columns}", bold=True)
        panel.box(x, y + LINE, side, side, fill=0)
        steps = [places for (array, _), places in used.items() if array == name]
        for places, fill in ((set().union(*steps), 0.25), (steps[0], 0.7)):
            (top, bottom), (left, right) = ((min(p), max(p) + 1) for p in zip(*places, strict=True))
            down, across = side / rows, side / columns
            panel.box(
                x + left * across,
                y + LINE + top * down,
                (right - left) * across,
                (bottom - top) * down,
                ink="array",
                fill=fill,
            )
        first = steps[0]
        panel.tell(
            f"{name}: {len(set().union(*steps))} elements, {len(first)} of them in one step."
        )
    each = counts.total("loads") / sum(math.prod(s) for n, s in shapes.items() if counts[n].loads)
    panel.note("light: needed by the block; dark: needed between two barriers")
    panel.note(f"each element is loaded {each:g} times")
    panel.tell(f"Each element of the factors is loaded {each:g} times.")
    return panel


def registers(loads, who="thread"):
    """Draw the loads per multiply-add as more outputs stay in registers.

    loads:   (rows, columns) of the outputs of each `who` -> measured loads per
             multiply-add.
    """
    panels = []
    for (rows, columns), each in loads.items():
        panel, cell = Panel(f"{plural(rows * columns, 'output')} per {who}", 160), 22
        y = panel.row((rows + 1) * cell + 8)
        for k in range(columns):
            panel.box((k + 1) * cell + 8, y, cell - 3, cell - 3, "b", "given")
        for k in range(rows):
            panel.box(0, y + (k + 1) * cell + 8, cell - 3, cell - 3, "a", "given")
        for k in range(rows * columns):
            x, below = (k % columns + 1) * cell + 8, y + (k // columns + 1) * cell + 8
            panel.box(x, below, cell - 3, cell - 3, "+", "kernel")
        sums = plural(rows * columns, "multiply-add")
        sentence = f"{rows + columns} loads, {sums}: {each:.3g} each"
        panel.note(sentence)
        panel.tell(f"{sentence}.")
        panels.append(panel)
    return Figure("Each element in a register serves a row or a column of the tile", *panels)


def _first(requested, array):
    """Return (the addresses of the first load request of an array, bytes per element)."""
    _, groups, spaces = requested
    addresses = next(where for key, where in groups.items() if key[:2] == (array, "read"))
    return addresses, spaces[array][1]


def pieces(launches, *arguments, arrays):
    """Draw the sectors of global memory that a warp loads for one line, per launch.

    launches: title -> a kernel with its grid and block;  arrays: names of those it reads.
    """
    panels, high = [], 20
    for title, launch in launches.items():
        panel, requested = Panel(title), requests(launch, *arguments)
        for array in arrays:
            addresses, size = _first(requested, array)
            count = n_pieces(addresses, size)
            text = f"{plural(len(addresses), 'element')} in {plural(count, 'sector')}"
            panel.note(f"{array}: {text}")
            panel.tell(f"{array}: {text}.")
            each, across, y = PIECE // size, WIDTH / 4, 0
            for k, piece in enumerate(sorted({byte // PIECE for byte in addresses})):
                y = panel.row(high, 4) if k % 4 == 0 else y
                x, cell = k % 4 * across, (across - 6) / each
                for i in range(each):
                    used = piece * PIECE + i * size in addresses
                    ink = {"ink": "array", "fill": 0.7} if used else {"fill": 0}
                    panel.box(x + i * cell, y, cell, high, **ink)
        panels.append(panel)
    return Figure(f"The sectors a warp fetches, {PIECE} bytes each; filled: requested", *panels)


def banks(launches, *arguments, array):
    """Draw the banks of shared memory that the first request of a warp reads.

    launches: title -> a kernel with its grid and block. Words of one bank are in a
    column: each row is one cycle.
    """
    panels, across, high = [], WIDTH / BANKS, 18
    for title, launch in launches.items():
        addresses, size = _first(requests(launch, *arguments), array)
        words = sorted({byte // WORD for first in addresses for byte in range(first, first + size)})
        cycles = bank_turns(addresses, size)
        panel, filled = Panel(f"{title}: {plural(cycles, 'cycle')}"), defaultdict(list)
        for word in words:
            filled[word % BANKS].append(word)
        for cycle in range(cycles):
            y = panel.row(high, 2)
            for bank in range(BANKS):
                used = cycle < len(filled.get(bank, ()))
                ink = {"ink": "array", "fill": 0.7} if used else {"fill": 0}
                panel.box(bank * across, y, across - 1, high, **ink)
        y = panel.row(LINE)
        panel.text(0, y + 12, "bank 0", anchor="start")
        panel.text(WIDTH, y + 12, f"bank {BANKS - 1}", anchor="end")
        panel.tell(f"{len(words)} words in {len(filled)} banks take {plural(cycles, 'cycle')}.")
        panels.append(panel)
    return Figure(f"Banks: a warp reads {array}; each row is one cycle", *panels)
