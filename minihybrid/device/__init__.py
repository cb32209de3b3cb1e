"""Devices: arrays elsewhere, and the same memory for others.

Takes:   the drivers of GPUs, real or simulated.
Gives:   `DeviceArray`, which an NDArray holds where it would hold a NumPy array.
"""

from minihybrid import faces

__getattr__ = faces.face(globals(), {})

__all__ = ["array", "checks", "interop"]
