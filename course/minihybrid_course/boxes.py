"""Interactive memory planning: the reader assigns live ranges to offsets.

Uses:    a plan, or the live ranges of some values.
Defines: `packing`, HTML with boxes that the reader drags by mouse, touch or arrow keys,
         next to the lower bound and the planner's result; and a table.

Limits:  values in the memory of outputs are omitted; their offsets are fixed.
"""

from html import escape

from minihybrid.core.passes.memory import ALIGN, arrange, neighbors
from minihybrid.view.drawing import short
from minihybrid.view.hybrid_view import page
from minihybrid.view.viz import columns_of, html_table, rows_of, scrolling, svg_head
from minihybrid_course import HERE

WIDE, HIGH, LEFT, FOOT = 560, 300, 66, 26  # pixels: the plot and its margins


class Packing:
    """Boxes, the planner's offsets, and the lower bound of the peak.

    spans:   name -> (first step, last step, bytes), bytes in whole cache lines.
    offsets: name -> the planner's offset;  nbytes: its peak;  bound: the lower bound.
    """

    def __init__(self, spans, offsets=None):
        self.spans = {
            name: (first, last, max(-(-nbytes // ALIGN), 1) * ALIGN)
            for name, (first, last, nbytes) in spans.items()
        }
        size = {name: nbytes for name, (_, _, nbytes) in self.spans.items()}
        self.offsets = arrange(self.spans)[0] if offsets is None else offsets
        self.nbytes = max((at + size[name] for name, at in self.offsets.items()), default=0)
        self.bound = neighbors(self.spans, size)[2]

    def rows(self):
        """Return the table of boxes with the planner's offsets."""
        return [("value", "bytes", "steps", "planner")] + [
            (name, f"{nbytes:,}", f"{first} to {last}", f"at {self.offsets[name]:,}")
            for name, (first, last, nbytes) in self.spans.items()
        ]

    def __repr__(self):
        return (
            f"{columns_of(self.rows())}\n"
            f"lower bound {self.bound:,} bytes, planner {self.nbytes:,} bytes"
        )

    def _repr_html_(self):
        return page(
            f"{scrolling(self._svg(), 'boxes to pack')}\n"
            '<p class="said" role="status"></p>\n<p class="buttons">'
            '<button type="button" data-do="again">start again</button> '
            '<button type="button" data-do="planner">the planner\'s answer</button></p>'
            "<details><summary>the boxes as a table</summary>"
            f"{scrolling(html_table(self.rows()), 'table of boxes')}</details>",
            "boxes",
            HERE,
        )

    def _svg(self):
        """Return the SVG with all boxes stacked, without memory reuse."""
        total = sum(nbytes for *_, nbytes in self.spans.values())
        n_steps = 1 + max((last for _, last, _ in self.spans.values()), default=0)
        down, across = HIGH / max(total, 1), WIDE / n_steps
        parts, at = [], 0
        for name, (first, last, nbytes) in self.spans.items():
            wide, high = (last - first + 1) * across - 3, nbytes * down
            tip = f"{name}: {nbytes:,} bytes, steps {first} to {last}"
            label = short(name, max(int(wide / 8), 3))
            parts.append(
                f'<g class="box" role="img" aria-label="{escape(tip)}" '
                f'data-name="{escape(name)}" data-first="{first}" data-last="{last}" '
                f'data-bytes="{nbytes}" data-at="{at}" '
                f'data-planner="{self.offsets[name]}" transform="translate('
                f'{LEFT + first * across + 1.5:.1f} {HIGH - at * down - high:.2f})">'
                f'<rect width="{wide:.1f}" height="{high:.2f}" rx="3"/>'
                f'<text x="{wide / 2:.1f}" y="{high / 2 + 4:.1f}">{escape(label)}'
                "</text></g>"
            )
            at += nbytes
        steps = [
            f'<text x="{LEFT + (k + 0.5) * across:.1f}" y="{HIGH + 18}">{k}</text>'
            for k in range(0, n_steps, -(-n_steps // 16))
        ]
        right = LEFT + WIDE
        lines = [
            f'<g class="{kind}"><path d="M{LEFT} {y:.1f}H{right}"/><text x="{x}" '
            f'y="{y - 4:.1f}" text-anchor="{anchor}">{text} {nbytes:,}</text></g>'
            for kind, text, nbytes, x, anchor, y in (
                ("bound", "lower bound", self.bound, LEFT + 4, "start", HIGH - self.bound * down),
                ("planner", "planner", self.nbytes, right - 4, "end", HIGH - self.nbytes * down),
            )
        ]
        head = svg_head(right + 8, HIGH + FOOT, "group").replace(
            "<svg ",
            f'<svg data-scale="{down:.9g}" data-high="{HIGH}" '
            f'data-unit="{ALIGN}" data-bound="{self.bound}" ',
            1,
        )
        return "\n".join(
            [
                head,
                "<title>Boxes to pack</title>",
                "<desc>Steps from left to right, bytes from bottom to top.</desc>",
                f'<path class="floor" d="M{LEFT} 0V{HIGH}H{right}"/>',
                f'<g class="axis"><text x="{LEFT - 8}" y="{HIGH}" text-anchor="end">0'
                f'</text><text x="{LEFT - 8}" y="12" text-anchor="end">{total:,}</text>'
                f'<text x="{LEFT - 8}" y="{HIGH + 18}" text-anchor="end">step</text>',
                *steps,
                "</g>",
                *parts,
                *lines,
                "</svg>",
            ]
        )


def spans_of(plan):
    """Return name -> (first, last, bytes) for values in the arena, and name -> offset.

    A value written in place over another is one box with it, with a longer live range.
    """
    memory, first_of = plan.memory, {}
    for new, old in memory.in_place:
        first_of[new] = first_of.get(old, old)
    boxes = {}  # first value of a chain -> (names, first, last, bytes)
    for ref, (name, nbytes, first, last, _) in rows_of(memory, plan.graph):
        if ref in memory.offsets:
            root = first_of.get(ref, ref)
            names, begin, end, most = boxes.get(root, ([], first, last, nbytes))
            boxes[root] = ([*names, name], min(begin, first), max(end, last), max(most, nbytes))
    spans, offsets = {}, {}
    for root, (names, *span) in boxes.items():
        name = " = ".join(names)
        while name in spans:
            name += "'"
        spans[name], offsets[name] = tuple(span), memory.offsets[root]
    return spans, offsets


def packing(plan):
    """Show draggable boxes: the arena of a plan, or your own boxes.

    plan:    a plan, or a dictionary: name -> (first step, last step, bytes).
    Units:   bytes, rounded up to cache lines of 64.

    >>> packing({"a": (0, 1, 128), "b": (1, 2, 64), "c": (2, 3, 128)})
    value  bytes   steps  planner
    a        128  0 to 1     at 0
    b         64  1 to 2   at 128
    c        128  2 to 3     at 0
    lower bound 192 bytes, planner 192 bytes
    """
    return Packing(plan) if isinstance(plan, dict) else Packing(*spans_of(plan))
