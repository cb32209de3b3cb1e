"""Who answers a call: NumPy first, compiled kernels, a device.

Takes:   the plan of a graph, for a target that is not NumPy.
Gives:   the targets "cpu" and "gpu", and single operators on a device.
"""

from minihybrid import faces

__getattr__ = faces.face(globals(), {})

__all__ = ["eager", "launch", "reuse", "sharing", "tiers", "timing", "uncompiled", "watched"]
