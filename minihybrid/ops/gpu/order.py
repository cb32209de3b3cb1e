"""Lines on a GPU whose numbers must be looked at together.

Takes:   a writer of kernels, and an axis: (outer, n, inner) numbers, lines along n.
Gives:   `best_place` and `running_sums`, with a block of threads a line, whose threads
         tell each other by shared memory what they found; `is_long`, whether that is
         worth it.

What is left out: a line that many blocks share.
"""

import numpy as np

PLACE = np.dtype("int32")
SHORTEST = 64  # of a line that is worth a block of threads
MANY = 2**13  # lines that keep a GPU busy with a thread each
BLOCK = 256  # threads of a line


def is_long(lengths):
    """Whether a block of threads does a line sooner than one thread.

    Of lines that lie across, neighbouring threads read neighbours if each has a line.

    >>> is_long((8, 1000, 1)), is_long((8, 10, 1)), is_long((8, 1000, 5000))
    (True, False, False)
    """
    outer, n, inner = lengths
    return n >= SHORTEST and (inner == 1 or outer * inner < MANY)


def _line(k, n, inner):
    """The thread's number in its block, and where the block's line begins."""
    k("line = cuda.blockIdx.x")
    k("p = cuda.threadIdx.x")
    k(f"at = line // {inner} * {n * inner} + line % {inner}")


def best_place(k, data, lengths, sign):
    """The place of each line's largest (">") or smallest ("<") number, the first of
    equal ones, as T.

    Every thread finds the best of every BLOCK-th number; then half of the threads ask
    the other half, until one is left.
    """
    outer, n, inner = lengths
    block = min(BLOCK, 1 << n.bit_length() - 1)  # so that each has a number
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
    """The sums of each line up to each number, BLOCK numbers at a time.

    In step 1, 2, 4, ... a thread adds the sum that stands so far before its own.
    Source:  Hillis and Steele, Data Parallel Algorithms, CACM 29 (1986).
    """
    outer, n, inner = lengths
    k.threads(outer * inner, BLOCK)
    _line(k, n, inner)
    k.shared("s", BLOCK)
    k("total = T(0)")
    with k.loop("start", n, 0, BLOCK):
        k("q = start + p")
        k(f"s[p] = {data}[at + q * {inner}] if q < {n} else T(0)")
        k("cuda.syncthreads()")
        k("step = 1")
        with k.block(f"while step < {BLOCK}:"):
            k("x = s[p - step] if p >= step else T(0)")
            k("cuda.syncthreads()")
            k("s[p] += x")
            k("cuda.syncthreads()")
            k("step *= 2")
        with k.block(f"if q < {n}:"):
            k.store(f"at + q * {inner}", "total + s[p]")
        k(f"total += s[{BLOCK - 1}]")
        k("cuda.syncthreads()")
