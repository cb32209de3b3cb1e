"""Inverses and determinants on a GPU: a block of threads a matrix.

Takes:   a writer of kernels, and batches (N, n, n).
Gives:   `inverse_gpu` and `slogdet_gpu`: column after column, as on the CPU; what is
         done for one column is shared by the threads.

Of each column, a thread does every BLOCK-th row or column. What all threads read, such
as the largest number of a column, each finds for itself: they would have to wait for
it anyway. With the CPU's loops, and a thread a matrix, threads would read no
neighbours: memory is asked for four to eight times as much.
What is left out: a matrix that many blocks share; large ones take long.
"""

BLOCK = 256  # threads of a matrix


def _matrix(k, count, n):
    """The thread's number in its block, and where the block's matrix begins."""
    block = min(BLOCK, -(-n // 32) * 32)
    k.threads(count, block)
    k("p = cuda.threadIdx.x")
    k(f"at = cuda.blockIdx.x * {n * n}")
    return block


def _eliminate(k, n, wide, block, clear):
    """Take one column of `work` after the other, the row with its largest number first.

    clear:   writes what clears the column; that number is `top` by then.
    Nobody writes to a column from then on that it is cleared: all threads read it.
    """
    with k.block(f"for c in range({n}):"):
        k("best = c")
        with k.block(f"for r in range(c + 1, {n}):"):
            with k.block(f"if abs(work[w + r * {wide} + c]) > abs(work[w + best * {wide} + c]):"):
                k("best = r")
        k("cuda.syncthreads()")
        with k.block("if best != c:"):
            k("sign = -sign")
            with k.block(f"for j in range(c + p, {wide}, {block}):"):
                k(f"x = work[w + c * {wide} + j]")
                k(f"work[w + c * {wide} + j] = work[w + best * {wide} + j]")
                k(f"work[w + best * {wide} + j] = x")
        k("cuda.syncthreads()")
        k(f"top = work[w + c * {wide} + c]")
        clear()
        k("cuda.syncthreads()")


def inverse_gpu(k, data, out):
    """Gauss and Jordan: what makes A the identity makes the identity its inverse."""
    n, wide = data.shape[-1], 2 * data.shape[-1]
    block = _matrix(k, data.size // (n * n), n)

    def clear():
        k("scale = T(1) / top")
        with k.block(f"for j in range(c + 1 + p, {wide}, {block}):"):
            k(f"x = work[w + c * {wide} + j] * scale")
            k(f"work[w + c * {wide} + j] = x")
            with k.block(f"for r in range({n}):"):
                with k.block("if r != c:"):
                    k(f"work[w + r * {wide} + j] -= work[w + r * {wide} + c] * x")

    k(f"w = at * {wide // n}")
    k("sign = T(1)")
    with k.block(f"for i in range(p, {n * n}, {block}):"):
        k(f"r = i // {n}")
        k(f"j = i % {n}")
        k(f"work[w + r * {wide} + j] = {data}[at + i]")
        k(f"work[w + r * {wide} + {n} + j] = T(1) if r == j else T(0)")
    k("cuda.syncthreads()")
    _eliminate(k, n, wide, block, clear)
    with k.block(f"for i in range(p, {n * n}, {block}):"):
        k.store("at + i", f"work[w + i // {n} * {wide} + {n} + i % {n}]")


def slogdet_gpu(k, data, sign, logarithm):
    """What stands on the diagonal once all below it is cleared."""
    n = data.shape[-1]
    block = _matrix(k, sign.size, n)

    def clear():
        k("total += log(abs(top))")
        k("sign = -sign if top < T(0) else sign")
        k("sign = T(0) if top == T(0) else sign")
        with k.block(f"for j in range(c + 1 + p, {n}, {block}):"):
            with k.block(f"for r in range(c + 1, {n}):"):
                k(f"scale = work[w + r * {n} + c] / top if top != T(0) else T(0)")
                k(f"work[w + r * {n} + j] -= scale * work[w + c * {n} + j]")

    k("w = at")
    k("sign = T(1)")
    k("total = T(0)")
    with k.block(f"for i in range(p, {n * n}, {block}):"):
        k(f"work[w + i] = {data}[at + i]")
    k("cuda.syncthreads()")
    _eliminate(k, n, n, block, clear)
    with k.block("if p == 0:"):
        k(f"{sign}[cuda.blockIdx.x] = sign")
        k(f"{logarithm}[cuda.blockIdx.x] = total")
