"""Chapter 25. The memory allocator of a simulated GPU.

Defines: `Heap`: allocations by address; accesses outside them raise an error.
"""

from bisect import bisect_right, insort

import numpy as np

from minihybrid.core.op import HybridError

ALIGNMENT = 256  # bytes, as in cuMemAlloc


class Heap:
    """Allocations, found by any address inside them.

    free: the number of free bytes.

    >>> heap = Heap(1000)
    >>> address = heap.take(100)
    >>> heap.free, len(heap.bytes(address + 10, 90)), address % 256
    (900, 90, 0)
    """

    def __init__(self, nbytes: int) -> None:
        self.free = nbytes
        self.starts: list[int] = []  # addresses, sorted
        self.memory: dict[int, np.ndarray] = {}  # address -> its bytes

    def take(self, nbytes: int) -> int:
        """Allocate memory filled with bytes of 255; return its address."""
        whole = np.full(nbytes + ALIGNMENT, 255, np.uint8)
        skip = -whole.ctypes.data % ALIGNMENT
        memory = whole[skip : skip + nbytes]
        address = memory.ctypes.data
        insort(self.starts, address)
        self.memory[address] = memory
        self.free -= nbytes
        return address

    def give(self, address: int) -> None:
        """Free an allocation."""
        if address not in self.memory:
            raise HybridError(
                f"simulated GPU: {address:#x} is freed, but no "
                "allocation begins there; it may have been freed before"
            )
        self.free += self.memory.pop(address).nbytes
        self.starts.remove(address)

    def bytes(self, address: int, nbytes: int, who: str = "a copy") -> np.ndarray:
        """Return the bytes at an address."""
        address = int(address)
        k = bisect_right(self.starts, address) - 1
        memory = self.memory[self.starts[k]] if k >= 0 else np.empty(0, np.uint8)
        skip = address - self.starts[k] if k >= 0 else 0
        if skip >= len(memory) and nbytes:
            raise HybridError(
                f"simulated GPU: {who} uses address {address:#x}, where "
                "no memory was allocated, or it was freed"
            )
        if skip + nbytes > len(memory):
            raise HybridError(
                f"simulated GPU: {who} uses {nbytes} bytes, but the "
                f"allocation ends after {len(memory) - skip}"
            )
        return memory[skip : skip + nbytes]

    def array(
        self, address: int, dtype: np.dtype, size: int, who: str, alignment: int
    ) -> np.ndarray:
        """Return the array at an aligned address."""
        if address % alignment:
            raise HybridError(
                f"simulated GPU: {who} begins at address {address:#x}, "
                f"which is no multiple of {alignment} bytes"
            )
        if not size:
            return np.empty(0, dtype)  # it has no memory
        return self.bytes(address, size * dtype.itemsize, who).view(dtype)
