"""Chapter 25. What can be wrong with a kernel, one class each.

Takes:   the kernel, the array and element, the threads and the lines that disagree.
Gives:   errors of one sentence.

A real GPU reports almost none of this: it computes something else.
"""

from minihybrid.core.op import HybridError


class KernelError(HybridError):
    """A fault in a kernel; the parent of the other errors of the simulator.

    kernel:  the kernel's name;
    line:    the number of the line in the kernel's source where it was found;
    threads: the threads at fault, each as ((block x, y, z), (thread x, y, z)).

    >>> error = KernelError("kernel 'add', line 3: no such name")
    >>> error.threads
    ()
    """

    def __init__(
        self, sentence: str, kernel: str | None = None, line: int | None = None, threads: tuple = ()
    ) -> None:
        super().__init__(sentence)
        self.kernel, self.line, self.threads = kernel, line, threads


class RaceError(KernelError):
    """Two threads use one element, one of them writes, and nothing orders them."""


class BoundsError(KernelError, IndexError):
    """An element that the array does not have."""


class WholeError(TypeError):
    """An array where an element is needed; the simulator adds the line and the thread."""


class EndlessError(KernelError):
    """A loop that makes more turns than the simulator allows (see `simt.turns`)."""


class Endless(Exception):
    """Raised in a kernel's loop, with its line; the simulator says it in words."""


class UninitialisedError(KernelError):
    """A read of shared memory that no thread of the block has written."""


class BarrierError(KernelError):
    """Threads of one block that do not meet at the same barrier."""


class AlignmentError(KernelError):
    """Four elements at once that do not begin at a multiple of four."""


class HiddenFloat64Error(KernelError):
    """Arithmetic in float64 in a kernel whose arrays hold smaller numbers."""


class LaunchError(HybridError):
    """A kernel that cannot be started: its grid, its block or its arguments."""
