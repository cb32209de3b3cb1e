"""Chapter 25. Error classes for faulty kernels.

The one-sentence messages name the kernel, array, element, threads and lines.
A real GPU detects almost none of these errors: it computes wrong results.
"""

from minihybrid.core.op import HybridError


class KernelError(HybridError):
    """An error in a kernel; the base class of the simulator's errors.

    kernel:  the kernel's name;
    line:    the line number in the kernel's source;
    threads: the threads involved, each as ((block x, y, z), (thread x, y, z)).

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
    """Two threads access one element without synchronization, and one writes it."""


class BoundsError(KernelError, IndexError):
    """An index is out of bounds."""


class WholeError(TypeError):
    """An array is used as a scalar; the simulator adds the line and thread."""


class EndlessError(KernelError):
    """A loop exceeds the simulator's limit of iterations (see `simt.turns`)."""


class Endless(Exception):
    """Raised by a kernel's loop with its line; the simulator adds the message."""


class UninitializedError(KernelError):
    """A thread reads shared memory that no thread of the block has written."""


class BarrierError(KernelError):
    """Threads of one block wait at different barriers."""


class AlignmentError(KernelError):
    """A vector access of four elements isn't aligned to a multiple of four."""


class HiddenFloat64Error(KernelError):
    """A kernel with narrower arrays computes in float64."""


class LaunchError(HybridError):
    """A launch has an invalid grid, block or arguments."""


class Lines:
    """A kernel's name, and the text of its lines by number, which messages quote.

    >>> source = Lines("add", {3: "  out[i] = a[i]"})
    >>> source.line(3)
    'line 3 (`out[i] = a[i]`)'
    """

    def __init__(self, name: str, text: dict[int, str]) -> None:
        self.name, self.text = name, text

    def line(self, number: int) -> str:
        """Describe a line of the kernel's source for messages."""
        return f"line {number} (`{self.text[number].strip()}`)"

    def error(self, kind: type[KernelError], line: int, what: str, *threads: tuple) -> KernelError:
        """Return an error in a line of the kernel."""
        message = f"kernel '{self.name}', {self.line(line)}: {what}"
        return kind(message, self.name, line, threads)
