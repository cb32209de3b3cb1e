"""Numbers and tables as text."""

from minihybrid.bench import Timing


def duration(seconds):
    return Timing((seconds,), n_calls=1).cells()[0]


def megabytes(nbytes):
    return f"{nbytes / 1e6:.1f} MB"


def markdown(lines):
    """A table of cells, heading first, that reads as well in a terminal."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines = [
        [f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)]
        for line in [lines[0], ["-" * w for w in widths], *lines[1:]]
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
