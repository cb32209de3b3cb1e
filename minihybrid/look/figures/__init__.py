"""Figures of the book, drawn from what they are about, so that they stay true.

Each function takes live objects (a plan, a graph, a tape, a kernel with its launch) and
reads all numbers from them. What it gives is a picture in a notebook and a few sentences
in a terminal.
"""

from minihybrid.look.figures.calls import bill, microseconds, who_calls
from minihybrid.look.figures.graphs import grouped, shape_flow, tape, vanishing
from minihybrid.look.figures.memory import cache_lines, lifetimes, sharing, travel
from minihybrid.look.figures.plans import stages, tiers, training_step
from minihybrid.look.figures.records import journey, readers, two_ways
from minihybrid.look.figures.threads import grid, roofline, stream, tree
from minihybrid.look.figures.tiles import banks, pieces, registers, tiles

__all__ = [
    "banks",
    "bill",
    "cache_lines",
    "grid",
    "grouped",
    "journey",
    "lifetimes",
    "microseconds",
    "pieces",
    "readers",
    "registers",
    "roofline",
    "shape_flow",
    "sharing",
    "stages",
    "stream",
    "tape",
    "tiers",
    "tiles",
    "training_step",
    "travel",
    "tree",
    "two_ways",
    "vanishing",
    "who_calls",
]
