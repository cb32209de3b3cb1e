"""Chapter 25. Pictures of a block's memory accesses.

Uses:    a kernel with its grid and block, and its arguments.
Defines: `draw`: for each step between two barriers, which thread of a block reads and
         writes which element.

A thread is shown as a number and a color. Not supported: large arrays.
"""

from collections.abc import Iterator
from html import escape
from math import prod
from typing import Any

import numpy as np

from minihybrid.simt.cuda import Launcher
from minihybrid.simt.errors import LaunchError
from minihybrid.simt.memory import Access

# Okabe and Ito's palette. Colors repeat after seven threads, so each is numbered.
COLORS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
CELL, LINE, LETTER, PAGE = 24, 18, 6.7, 700  # pixels
WIDE = 24  # elements per row of a one-dimensional array
MAX_THREADS, MAX_ELEMENTS = 64, 512
VERBS = {"read": "read", "write": "write", "atomic": "update"}


class Picture:
    """A block's accesses; a notebook shows the picture, a terminal the text.

    svg:  the picture, with a text description for screen readers.
    uses: (step, kind, array) -> element -> the indices of threads in the block.
    """

    def __init__(self, title: str, shapes: dict, uses: dict) -> None:
        self.title, self.shapes, self.uses = title, shapes, uses
        self.svg = self._draw()

    def __repr__(self) -> str:
        lines = [self.title]
        for (step, kind, array), elements in self.uses.items():
            accesses = ", ".join(
                f"[{self._index(array, i)}] by {in_words(threads)}"
                for i, threads in sorted(elements.items())
            )
            lines.append(f"step {step}, {VERBS[kind]} {array}: {accesses}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.svg

    def _index(self, array: str, i: int) -> str:
        """Return the index tuple of flat element i."""
        return ", ".join(str(k) for k in np.unravel_index(i, self.shapes[array]))

    def _draw(self) -> str:
        parts, x, y, bottom, width, last = [], 0, 0, 0, 0, 0
        for (step, kind, array), elements in self.uses.items():
            label = f"step {step}: who {VERBS[kind]}s {array}"
            shape = self.shapes[array]
            columns = min(WIDE, prod(shape)) if len(shape) == 1 else shape[-1]
            wide = max(2 + columns * CELL, LETTER * len(label))
            if step != last or x + wide > PAGE:  # a step begins a new row of arrays
                x, y, last = 0, bottom, step
            parts.append(
                f'<text x="{x + 1:.0f}" y="{y + 13}" text-anchor="start">{escape(label)}</text>'
            )
            for i in range(prod(shape)):
                row, column = divmod(i, columns)
                parts += cell(
                    x + 1 + column * CELL,
                    y + LINE + row * CELL,
                    elements.get(i, ()),
                    f"{array}[{self._index(array, i)}]",
                )
            high = LINE + -(-prod(shape) // columns) * CELL + LINE // 2
            bottom, width = max(bottom, y + high), max(width, x + wide)
            x += round(wide) + LINE
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" '
                f'height="{bottom}" viewBox="0 0 {width:.0f} {bottom}" font-size="11" '
                'font-family="monospace" text-anchor="middle" fill="currentColor" '
                'stroke-width="1" style="max-width:100%;height:auto">',
                f"<title>{escape(self.title)}</title>",
                f"<desc>{escape(repr(self))}</desc>",
                *parts,
                "</svg>",
            ]
        )


def cell(x: int, y: int, threads: list | tuple, name: str) -> Iterator:
    """Draw one element: stripes in the colors of its threads, and a label.

    The label is the thread's index, or the number of threads.
    """
    yield f"<g><title>{escape(name)}: {in_words(threads)}</title>"
    visible = threads[:4]
    for k, t in enumerate(visible):
        stripe = CELL / len(visible)
        yield (
            f'<rect x="{x + k * stripe:.1f}" y="{y}" width="{stripe:.1f}" '
            f'height="{CELL}" fill="{COLORS[t % len(COLORS)]}" '
            'fill-opacity=".45"/>'
        )
    yield (
        f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="none" '
        'stroke="currentColor" stroke-opacity=".5"/>'
    )
    if threads:
        text = threads[0] if len(threads) == 1 else f"{len(threads)}×"
        yield f'<text x="{x + CELL / 2}" y="{y + 16}">{text}</text>'
    yield "</g>"


def in_words(threads: list | tuple) -> str:
    """Describe threads for messages.

    >>> in_words([0]), in_words([0, 2]), in_words([])
    ('thread 0', 'threads 0 and 2', 'no thread')
    """
    if not threads:
        return "no thread"
    if len(threads) == 1:
        return f"thread {threads[0]}"
    *most, last = threads
    return f"threads {', '.join(map(str, most))} and {last}"


def draw(launch: Launcher, *arguments: Any, block: int = 0) -> Picture:
    """Run a kernel and draw which thread of a block accesses which element, and when.

    launch:    a kernel with its grid and block: `kernel[1, 4]`;
    arguments: the kernel's arguments; arrays are modified;
    block:     the index of the block to draw. Its threads are numbered along x, then y
               and z.
    Raises:    LaunchError if there are too many threads or elements to draw, and the
               errors of the kernel.

    >>> import numpy as np
    >>> from minihybrid.simt import cuda
    >>> @cuda.jit
    ... def reverse(a, out):
    ...     i = cuda.grid(1)
    ...     out[i] = a[2 - i]
    >>> draw(reverse[1, 3], np.arange(3), np.zeros(3))
    kernel 'reverse', block 0: who uses what
    step 1, read a: [0] by thread 2, [1] by thread 1, [2] by thread 0
    step 1, write out: [0] by thread 0, [1] by thread 1, [2] by thread 2
    """
    record: list[Access] = []
    run = launch.kernel.run(launch.grid, launch.block, arguments, record)
    uses: dict[tuple, dict] = {}
    shapes: dict[str, tuple] = {}
    for phase, t, kind, array, i, _ in record:
        if t // run.n_block == block:
            shapes[array.name] = array.shape
            users = uses.setdefault((phase, kind, array.name), {}).setdefault(i, [])
            if t % run.n_block not in users:
                users.append(t % run.n_block)
    n_most = max(map(prod, shapes.values()), default=0)
    if run.n_block > MAX_THREADS or n_most > MAX_ELEMENTS:
        raise LaunchError(
            f"draw: kernel '{run.name}' has {run.n_block} threads a block and up to {n_most} "
            f"elements an array, but at most {MAX_THREADS} and {MAX_ELEMENTS} can be looked at; "
            "use smaller arrays"
        )
    order = sorted(uses, key=lambda use: (use[0], list(VERBS).index(use[1])))
    return Picture(
        f"kernel '{run.name}', block {block}: who uses what",
        shapes,
        {use: {i: sorted(users) for i, users in uses[use].items()} for use in order},
    )
