"""Chapter 12. Code generation: an optimised graph becomes source, and source a
function.

Takes:   a graph and its memory plan.
Gives:   `TARGETS`: name -> module with `generate` and `load`.
"""

from minihybrid.codegen import cpu, gpu, numpy

__all__ = ["TARGETS", "cpu", "gpu", "numpy"]

TARGETS = {"cpu": cpu, "gpu": gpu, "numpy": numpy}
