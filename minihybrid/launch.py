"""Chapter 20. All launches of a plan as one CUDA graph."""
import numpy as np
from minihybrid.codegen.program import ARENA, ARRAY, KEY, PARAM


class Recorded:
    """All launches of a plan as one CUDA graph."""

    def __init__(self, device, steps, nbytes):
        self.device, self.steps = device, steps
        self.arena = device.alloc(max(nbytes, 1))
        self.functions = [device.kernel(s.kernel, s.name) for s in steps]

    def __call__(self, addresses, table, key):
        for s, f in zip(self.steps, self.functions):
            vals = np.array([{ARRAY: lambda w: addresses[w], PARAM: lambda w: table[w], ARENA: lambda w: self.arena.address + w, KEY: lambda w: key}[what](which) for what, which in s.words], np.uint64)
            ptrs = np.array([vals.ctypes.data + 8*i for i in range(len(vals))], np.uint64)
            self.device.check(self.device.driver.cuLaunchKernel(f, *s.grid, *s.block, 0, self.device.stream, int(ptrs.ctypes.data), 0), "launching")
