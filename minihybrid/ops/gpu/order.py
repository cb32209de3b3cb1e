"""Block-wide argmax and prefix sums on a GPU.

Uses:    a kernel writer, and an axis: (outer, n, inner) elements, lines along n.
Defines: `best_place` and `running_sums`, with one thread block per line, whose threads
         communicate through shared memory; `is_long`, whether that pays off.

Limits:  a line uses a single block.
"""

import numpy as np

PLACE = np.dtype("int32")
SHORTEST = 64  # minimum length of a line that pays off a block
SATURATING = 2**13  # lines that saturate a GPU with one thread each
THREADS = 256  # threads per line


def is_long(lengths):
    """Return whether a block per line is faster than one thread per line.

    For strided lines, one thread per line makes coalesced accesses.

    >>> is_long((8, 1000, 1)), is_long((8, 10, 1)), is_long((8, 1000, 5000))
    (True, False, False)
    """
    outer, n, inner = lengths
    return n >= SHORTEST and (inner == 1 or outer * inner < SATURATING)


def _line(k, n, inner):
    """Write the thread's index in its block and the offset of its line."""
    k("line = cuda.blockIdx.x")
    k("p = cuda.threadIdx.x")
    k(f"at = line // {inner} * {n * inner} + line % {inner}")


def best_place(k, data, lengths, sign):
    """Write the argmax (">") or argmin ("<") of each line, the first of equal elements,
    as T.

    Each thread reduces every THREADS-th element; then a tree reduction in shared memory
    combines the threads' results.
    """
    outer, n, inner = lengths
    block = min(THREADS, 1 << n.bit_length() - 1)  # so that each thread has an element
    k.threads(outer * inner, block)
    _line(k, n, inner)
    k.shared("s", block, PLACE)
    k("best = p")
    k(f"x = {data}[at + p * {inner}]")
    with k.block(f"for q in range(p + {block}, {n}, {block}):"):
        k(f"y = {data}[at + q * {inner}]")
        with k.block(f"if y {sign} x or (y != y and x == x):"):
            k("best = q")
            k("x = y")
    k("s[p] = best")
    k("cuda.syncthreads()")
    k(f"half = {block // 2}")
    with k.block("while half > 0:"):
        with k.block("if p < half:"):
            k("q = s[p + half]")
            k(f"y = {data}[at + q * {inner}]")
            k("same = x == y or (x != x and y != y)")
            with k.block(f"if y {sign} x or (y != y and x == x) or (same and q < s[p]):"):
                k("s[p] = q")
                k("x = y")
        k("cuda.syncthreads()")
        k("half //= 2")
    with k.block("if p == 0:"):
        k.store("line", "T(s[0])")


def running_sums(k, data, lengths):
    """Write the inclusive prefix sums of each line, THREADS elements at a time.

    In steps 1, 2, 4, ... each thread adds the partial sum at that distance before it.
    Source:  Hillis and Steele, Data Parallel Algorithms, CACM 29 (1986).
    """
    outer, n, inner = lengths
    k.threads(outer * inner, THREADS)
    _line(k, n, inner)
    k.shared("s", THREADS)
    k("total = T(0)")
    with k.loop("start", n, 0, THREADS):
        k("q = start + p")
        k(f"s[p] = {data}[at + q * {inner}] if q < {n} else T(0)")
        k("cuda.syncthreads()")
        k("step = 1")
        with k.block(f"while step < {THREADS}:"):
            k("x = s[p - step] if p >= step else T(0)")
            k("cuda.syncthreads()")
            k("s[p] += x")
            k("cuda.syncthreads()")
            k("step *= 2")
        with k.block(f"if q < {n}:"):
            k.store(f"at + q * {inner}", "total + s[p]")
        k(f"total += s[{THREADS - 1}]")
        k("cuda.syncthreads()")
