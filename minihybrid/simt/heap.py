"""Chapter 25. The memory of a simulated GPU.

Takes:   sizes and addresses in bytes.
Gives:   `Heap`: memory by address; a use of other memory is an error of one sentence.
"""

from bisect import bisect_right, insort

import numpy as np

from minihybrid.core.op import HybridError

ALIGNMENT = 256  # bytes; that of cuMemAlloc


class Heap:
    """Allocations, found by any address inside of them.

    free: how many bytes may still be taken.

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
        """The address of new memory, filled with bytes of 255."""
        whole = np.full(nbytes + ALIGNMENT, 255, np.uint8)
        skip = -whole.ctypes.data % ALIGNMENT
        memory = whole[skip : skip + nbytes]
        address = memory.ctypes.data
        insort(self.starts, address)
        self.memory[address] = memory
        self.free -= nbytes
        return address

    def give(self, address: int) -> None:
        """Give an allocation back."""
        if address not in self.memory:
            raise HybridError(
                f"simulated GPU: {address:#x} is freed, but no "
                "allocation begins there; it may have been freed before"
            )
        self.free += self.memory.pop(address).nbytes
        self.starts.remove(address)

    def bytes(self, address: int, nbytes: int, who: str = "a copy") -> np.ndarray:
        """The bytes at an address."""
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
        """The array at an address, which must be a multiple of an alignment."""
        if address % alignment:
            raise HybridError(
                f"simulated GPU: {who} begins at address {address:#x}, "
                f"which is no multiple of {alignment} bytes"
            )
        if not size:
            return np.empty(0, dtype)  # it lies nowhere
        return self.bytes(address, size * dtype.itemsize, who).view(dtype)
