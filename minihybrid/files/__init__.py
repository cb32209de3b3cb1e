"""Chapter 14. Other files than the two of the core.

Takes:   what the core reads and writes itself.
Gives:   old graphs, sparse arrays, outlines of nets, programs in Python and in C.
"""

from minihybrid.files import formats, legacy, outline, sparse

__all__ = ["formats", "legacy", "outline", "sparse"]
