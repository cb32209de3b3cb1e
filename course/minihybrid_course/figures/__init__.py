"""The book's figures, drawn from live objects, so that they stay correct.

Each function takes a plan, a graph, a tape or a kernel with its launch, and reads all
values from it. Its result is shown as a picture in a notebook and as a few sentences in a
terminal.
"""

from minihybrid_course.figures.calls import bill, microseconds, who_calls
from minihybrid_course.figures.graphs import grouped, shape_flow, tape, vanishing
from minihybrid_course.figures.memory import cache_lines, lifetimes, sharing, travel, walks
from minihybrid_course.figures.plans import stages, tiers, training_step
from minihybrid_course.figures.records import journey, readers, two_ways
from minihybrid_course.figures.threads import grid, roofline, stream, tree
from minihybrid_course.figures.tiles import banks, pieces, registers, tiles

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
    "walks",
    "who_calls",
]
