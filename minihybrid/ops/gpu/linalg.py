"""Inverse and determinant on a GPU: one thread block per matrix.

Uses:    a kernel writer, and batches (N, n, n).
Defines: `inverse_gpu` and `slogdet_gpu`: column by column, as on the CPU, with the work
         of one column split among the threads.

For each column, a thread handles every THREADS-th row or column. Values that all threads
use, such as a column's pivot, are computed redundantly: threads would have to wait for
them anyway. With the CPU's loops and one thread per matrix, accesses wouldn't be
coalesced, at four to eight times the memory traffic.
Limits:  a matrix uses a single block, so large ones are slow.
"""

THREADS = 256  # threads per matrix


def _matrix(k, count, n):
    """Write the thread's index in its block and the offset of its matrix."""
    block = min(THREADS, -(-n // 32) * 32)
    k.threads(count, block)
    k("p = cuda.threadIdx.x")
    k(f"at = cuda.blockIdx.x * {n * n}")
    return block


def _eliminate(k, n, wide, block, clear):
    """Eliminate the columns of `work` one by one, with partial pivoting.

    clear:   writes the elimination of the column; `top` is the pivot.
    A column isn't written once eliminated, since all threads read it.
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
    """Gauss-Jordan elimination: the steps from A to I take I to the inverse."""
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
    """Reduce to triangular form; the determinant is the diagonal's product."""
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
