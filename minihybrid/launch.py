"""Chapter 20. All launches of a plan as one CUDA graph."""


class Recorded:
    """All launches of a plan as one CUDA graph."""
