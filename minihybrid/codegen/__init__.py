"""Chapter 12. Code generation: an optimised graph becomes source, and source a
function.

Takes:   a graph and its memory plan.
Gives:   `TARGETS`: name -> module with `generate` and `load`.
"""

from minihybrid.codegen import cpu, numpy

__all__ = ["TARGETS", "cpu", "numpy"]

TARGETS = {"cpu": cpu, "numpy": numpy}
