"""Boxes, arrows and words: what figures are drawn with.

Takes:   places in pixels, in a panel of at most `WIDTH`, which a phone shows as it is.
Gives:   `Panel`, one picture as SVG, that says in words what it shows; `Figure`, panels
         side by side where there is room, below one another where there is not; `Film`.

Letters all have one width, so that what fits in one browser fits in all. Words have the
colour of the page's text, and no colour says what is not said in words, too.
`Film` shows one panel at a time.
What is left out: pictures that move by themselves.
"""

import hashlib
import math
import textwrap
from html import escape

WIDTH = 340  # pixels
SIZE, LETTER, LINE = 12, 7.23, 16  # pixels: of letters, how wide one is, between lines
INK = {  # of Okabe and Ito; each means one thing in all figures
    "given": "#0072B2",  # inputs and parameters
    "array": "#56B4E9",  # values in memory
    "python": "#E69F00",  # what Python does
    "kernel": "#009E73",  # loops that are compiled
    "file": "#CC79A7",
    "gone": "#D55E00",  # what goes, or is too much
    "plain": "#999999",
}
HEAD = 8  # pixels above a panel's title


def fitting(text, width):
    """A text, without its end if it is wider than so many pixels."""
    most = max(int(width / LETTER), 1)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def wrapped(text, width):
    """The lines of a text, each at most so many pixels wide."""
    return textwrap.wrap(text, int(width / LETTER))


class Panel:
    """One picture: add boxes, arrows and texts, and tell what they show.

    y:  where there is room below the title, and below what was drawn by `row`s.

    >>> panel = Panel("one box")
    >>> panel.box(0, panel.y, 90, 20, "x", "array")
    >>> panel.tell("x is an array.")
    >>> panel
    one box: x is an array.
    """

    def __init__(self, title, width=WIDTH):
        self.title, self.width, self.height = title, width, 0
        self.parts, self.sentences, self.y = [], [], HEAD
        for line in wrapped(title, width):
            self.text(0, self.y + SIZE - 2, line, anchor="start", bold=True)
            self.y += LINE
        self.y += 6

    def tell(self, sentence):
        """Add a sentence to what the picture says of itself."""
        self.sentences.append(sentence)

    def box(self, x, y, width, height, text="", ink="plain", dashed=False, bold=False, fill=0.18):
        """A rectangle with its text, or lines of text, in the middle."""
        lines = [text] if isinstance(text, str) else text
        dash = ' stroke-dasharray="5 3"' * dashed
        self._add(
            y + height,
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3" '
            f'fill="{INK[ink]}" fill-opacity="{fill}" stroke="{INK[ink]}" stroke-width="1.5"'
            f"{dash}/>",
        )
        top = y + (height - LINE * len(lines)) / 2 + SIZE
        for i, line in enumerate(lines):
            self.text(x + width / 2, top + LINE * i, fitting(line, width - 4), bold=bold)

    def text(self, x, y, text, anchor="middle", bold=False, size=SIZE):
        """Words; `y` is their base line."""
        if text:
            style = ' font-weight="600"' * bold + f' font-size="{size}"' * (size != SIZE)
            self._add(
                y + 4,
                f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>'
                f"{escape(text)}</text>",
            )

    def note(self, text, x=0):
        """Words below what was drawn so far, over the whole width."""
        for line in wrapped(text, self.width - x):
            self.text(x, self.y + SIZE, line, anchor="start")
            self.y += LINE
        self.y += 4

    def line(self, points, ink=None, width=1.2, dashed=False):
        """A line through points."""
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="4 3"' * dashed
        colour = INK[ink] if ink else "currentColor"
        self._add(
            max(y for _, y in points),
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>',
        )

    def arrow(self, x, y, x_end, y_end, ink=None, width=1.4, dashed=False):
        """A line with a head."""
        self.line([(x, y), (x_end, y_end)], ink, width, dashed)
        turn = math.atan2(y_end - y, x_end - x)
        tips = [
            (x_end - 7 * math.cos(turn + side), y_end - 7 * math.sin(turn + side))
            for side in (-0.45, 0.45)
        ]
        self.line([tips[0], (x_end, y_end), tips[1]], ink, width)

    def row(self, height, gap=6):
        """Take room for something of this height; returns its upper side."""
        y, self.y = self.y, self.y + height + gap
        return y

    def _add(self, bottom, part):
        self.height = max(self.height, bottom)
        self.parts.append(part)

    @property
    def svg(self):
        """The picture as text."""
        height = max(self.height, self.y) + 4
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
                f'viewBox="-2 0 {self.width + 4:.0f} {height:.0f}" '
                f'width="{self.width + 4:.0f}" height="{height:.0f}" font-size="{SIZE}" '
                'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" '
                'fill="currentColor" '
                f'style="flex:0 1 {self.width + 4:.0f}px;min-width:0;max-width:100%;height:auto">',
                f"<title>{escape(self.title)}</title>",
                f"<desc>{escape(' '.join(self.sentences))}</desc>",
                *self.parts,
                "</svg>",
            ]
        )

    def __repr__(self):
        return f"{self.title}: {' '.join(self.sentences)}"


class Figure:
    """Panels with a caption; a notebook shows them, a terminal says them in words."""

    def __init__(self, caption, *panels):
        self.caption, self.panels = caption, panels

    def __repr__(self):
        return "\n".join([self.caption, *(f"  {panel!r}" for panel in self.panels)])

    def _repr_html_(self, attribute="", head=""):
        return (
            f'<figure class="mh-figure"{attribute} style="margin:.4em 0">\n{head}'
            '<div style="display:flex;flex-wrap:wrap;gap:1em 2em;align-items:flex-start">\n'
            + "\n".join(panel.svg for panel in self.panels)
            + '\n</div>\n<figcaption style="font-size:.9em;margin-top:.4em">'
            f"{escape(self.caption)}</figcaption></figure>"
        )


class Film(Figure):
    """Panels of which the reader chooses one, by mouse or arrow keys. Paper shows all of them.

    label:   what is chosen, in words;  panels: name of the choice -> panel
    still:   panels that stay, after the chosen one.

    Radio buttons and a style do this without a script.
    """

    def __init__(self, caption, label, panels, *still):
        super().__init__(caption, *panels.values(), *still)
        self.label, self.names = label, [*panels]

    def _repr_html_(self):
        drawn = "".join(panel.svg for panel in self.panels)
        name = "film-" + hashlib.blake2s(drawn.encode(), digest_size=4).hexdigest()
        chosen = "".join(
            f"#{name}:not(:has(label:nth-of-type({i}) :checked))>div>:nth-child({i})"
            "{display:none}"
            for i in range(1, len(self.names) + 1)
        )
        choices = "\n".join(
            f'<label><input type="radio" name="{name}"'
            f"{' checked' * (i == 0)}> {escape(text)}</label>"
            for i, text in enumerate(self.names)
        )
        return super()._repr_html_(
            f' id="{name}"',
            f"<style>@media screen{{{chosen}}}</style>\n"
            '<fieldset style="display:flex;flex-wrap:wrap;gap:0 1em;border:0;padding:0">\n'
            f'<legend style="font-size:.9em">{escape(self.label)}</legend>\n'
            f"{choices}\n</fieldset>\n",
        )
