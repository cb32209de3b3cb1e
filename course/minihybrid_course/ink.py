"""SVG drawing for figures: boxes, arrows and text.

Uses:    positions in pixels, in a panel at most `WIDTH` wide, which fits on a phone.
Defines: `Panel`, one SVG picture with a text description; `Figure`, panels side by side
         if they fit, otherwise stacked; `Film`, which shows one panel at a time.

The font is monospaced, so that text that fits in one browser fits in all. Text has the
page's color, and colors never carry information that isn't also in the text.
Not supported: animations.
"""

import hashlib
import math
import textwrap
from html import escape

WIDTH = 340  # pixels
SIZE, LETTER, LINE = 12, 7.23, 16  # pixels: font size, character width, line height
INK = {  # Okabe and Ito's palette; each color has one meaning in all figures
    "given": "#0072B2",  # inputs and parameters
    "array": "#56B4E9",  # values in memory
    "python": "#E69F00",  # executed by Python
    "kernel": "#009E73",  # compiled loops
    "file": "#CC79A7",
    "gone": "#D55E00",  # removed or excessive
    "plain": "#999999",
}
HEAD = 8  # pixels above a panel's title


def fitting(text, width):
    """Truncate a text to a width in pixels."""
    most = max(int(width / LETTER), 1)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def wrapped(text, width):
    """Wrap a text into lines at most `width` pixels wide."""
    return textwrap.wrap(text, int(width / LETTER))


class Panel:
    """One picture: add boxes, arrows and texts, and a description.

    y:  the top of the free area, below the title and earlier `row`s.

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
        """Add a sentence to the picture's description."""
        self.sentences.append(sentence)

    def box(self, x, y, width, height, text="", ink="plain", dashed=False, bold=False, fill=0.18):
        """Draw a rectangle with centered lines of text."""
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
        """Draw text with its baseline at `y`."""
        if text:
            style = ' font-weight="600"' * bold + f' font-size="{size}"' * (size != SIZE)
            self._add(
                y + 4,
                f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>'
                f"{escape(text)}</text>",
            )

    def note(self, text, x=0):
        """Add full-width text below the current content."""
        for line in wrapped(text, self.width - x):
            self.text(x, self.y + SIZE, line, anchor="start")
            self.y += LINE
        self.y += 4

    def line(self, points, ink=None, width=1.2, dashed=False):
        """Draw a line through points."""
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="4 3"' * dashed
        color = INK[ink] if ink else "currentColor"
        self._add(
            max(y for _, y in points),
            f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width}"{dash}/>',
        )

    def arrow(self, x, y, x_end, y_end, ink=None, width=1.4, dashed=False):
        """Draw an arrow."""
        self.line([(x, y), (x_end, y_end)], ink, width, dashed)
        turn = math.atan2(y_end - y, x_end - x)
        tips = [
            (x_end - 7 * math.cos(turn + side), y_end - 7 * math.sin(turn + side))
            for side in (-0.45, 0.45)
        ]
        self.line([tips[0], (x_end, y_end), tips[1]], ink, width)

    def row(self, height, gap=6):
        """Reserve a row of this height; return its top."""
        y, self.y = self.y, self.y + height + gap
        return y

    def _add(self, bottom, part):
        self.height = max(self.height, bottom)
        self.parts.append(part)

    @property
    def svg(self):
        """Return the picture as SVG source."""
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
    """Panels with a caption; a terminal shows their descriptions instead."""

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
    """A choice of panels, selected by mouse or arrow keys. In print, all are shown.

    label:   a description of the choice;  panels: name of the choice -> panel
    still:   panels that are always shown, after the selected one.

    Implemented with radio buttons and CSS, without a script.
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
