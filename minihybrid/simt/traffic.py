"""Chapter 27. The memory requests of warps: transactions and bank conflicts.

Uses:    a kernel with its grid and block, and its arguments.
Defines: `traffic`: each array's memory transactions, actual and minimal.

The 32 threads of a warp access memory together. Global memory is accessed in sectors of
32 bytes: elements of one sector share a transaction. Shared memory has 32 banks, each
4 bytes wide: different words of one bank take one cycle each.
Source:  NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory" and
         "Shared Memory and Memory Banks".
Limits:  caches aren't modeled; accesses of divergent threads are grouped by line and
         by how often the thread executed it.
"""

from collections import Counter, defaultdict
from typing import Any, NamedTuple

from minihybrid.simt.cuda import Launcher
from minihybrid.simt.lockstep import WARP, Run
from minihybrid.simt.memory import Access

PIECE, BANKS, WORD = 32, 32, 4  # bytes of a transaction; banks, and bytes of a word


class Requests(NamedTuple):
    """The requests of all warps for one array.

    kind:         "read", "write" or "atomic";
    requests:     the number of warp accesses;
    transactions: sectors of 32 bytes of global memory, or cycles of shared memory;
    at_best:      the number if the same elements were contiguous.
    """

    name: str
    space: str
    kind: str
    requests: int
    transactions: int
    at_best: int


class Traffic(NamedTuple):
    """The `Requests` of a kernel, printed as a table."""

    kernel: str
    rows: list

    def __repr__(self) -> str:
        lines = [
            f"{self.kernel}: memory requests of its warps",
            "array    space  use    requests transactions at best",
        ]
        lines += [
            f"{row.name:8} {row.space:6} {row.kind:6} {row.requests:8} "
            f"{row.transactions:12} {row.at_best:7}"
            for row in self.rows
        ]
        return "\n".join(lines)


def traffic(launch: Launcher, *arguments: Any) -> Traffic:
    """Run a kernel and count the memory requests of its warps.

    launch:    a kernel with its grid and block: `kernel[1, 32]`;
    arguments: the kernel's arguments; arrays are assumed to be sector-aligned.

    >>> import numpy as np
    >>> from minihybrid.simt import cuda
    >>> @cuda.jit
    ... def column(a, out):
    ...     i = cuda.grid(1)
    ...     out[i] = a[i, 0]
    >>> traffic(column[1, 32], np.zeros((32, 32), "float32"), np.zeros(32, "float32"))
    column: memory requests of its warps
    array    space  use    requests transactions at best
    a        global read          1           32       4
    out      global write         1            4       4
    """
    run, groups, spaces = requests(launch, *arguments)
    totals: dict[tuple, Counter] = defaultdict(Counter)
    for (name, kind, *_), addresses in groups.items():
        is_global, size = spaces[name]
        count = pieces if is_global else bank_turns
        totals[name, kind].update(
            requests=1,
            transactions=count(addresses, size),
            at_best=count({k * size for k in range(len(addresses))}, size),
        )
    return Traffic(
        run.name,
        [
            Requests(name, "global" if spaces[name][0] else "shared", kind, **total)
            for (name, kind), total in totals.items()
        ],
    )


def requests(launch: Launcher, *arguments: Any) -> tuple[Run, dict, dict]:
    """Run a kernel and collect the requests of its warps.

    Returns: (the run; (array, "read", line, block, warp, occurrence) -> the addresses of
             that request, as byte offsets in the array; array -> (whether it is global,
             bytes per element)).
    """
    record: list[Access] = []
    run = launch.kernel.run(launch.grid, launch.block, arguments, record)
    occurrences: Counter[tuple] = Counter()
    groups: dict[tuple, set[int]] = defaultdict(set)
    spaces: dict[str, tuple[bool, int]] = {}
    for use in record:
        place = use.array.name, use.kind, use.line
        occurrences[use.t, place] += 1
        block, thread = divmod(use.t, run.n_block)
        group = *place, block, thread // WARP, occurrences[use.t, place]
        groups[group].add(use.i * use.array.dtype.itemsize)
        spaces[use.array.name] = use.array.written is None, use.array.dtype.itemsize
    return run, groups, spaces


def pieces(addresses: set, size: int) -> int:
    """Count the sectors of global memory that contain elements at some addresses.

    >>> pieces({0, 4, 8, 64}, 4), pieces({28}, 8)
    (2, 2)
    """
    return len({byte // PIECE for first in addresses for byte in (first, first + size - 1)})


def bank_turns(addresses: set, size: int) -> int:
    """Count the shared-memory cycles for elements at some addresses.

    >>> bank_turns({0, 4, 8}, 4), bank_turns({0, 128, 256}, 4)
    (1, 3)
    """
    words = {byte // WORD for first in addresses for byte in range(first, first + size, WORD)}
    return max(Counter(word % BANKS for word in words).values())
