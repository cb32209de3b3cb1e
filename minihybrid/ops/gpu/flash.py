"""Attention on a GPU: one thread per query, and per key in the backward pass.

Uses:    a kernel writer, flat arrays as in `ops.cpu.flash`.
Defines: `forward_gpu` and `backward_gpu`. The score matrix is never stored, but threads
         don't share loads either.

Not supported: tiles in shared memory.
"""

from minihybrid.ops.cpu.flash import masked as seen


class Pairs:
    """Write a thread's computation for one query `q` and one key `j`."""

    def __init__(self, k, query, key, value, mask, causal, scale):
        self.k, self.query, self.key, self.value, self.mask = k, query, key, value, mask
        (self.batch, self.length, self.size), (_, self.keys, _) = query.shape, key.shape
        self.deep, self.causal, self.scale = value.shape[2], causal, scale

    def dot(self, name, a, b, n):
        """Write the dot product of a query's row and a key's row."""
        self.k(f"{name} = T(0)")
        rows = f"(batch * {self.length} + q) * {n} + c", f"(batch * {self.keys} + j) * {n} + c"
        with self.k.block(f"for c in range({n}):"):
            self.k(f"{name} += T({a}[{rows[0]}]) * T({b}[{rows[1]}])")

    def score(self):
        """Write the score, -inf if masked."""
        self.dot("score", self.query, self.key, self.size)
        self.k(f"score *= T({self.scale!r})")
        if self.mask:
            self.k(f"score = {seen('score', self.mask, self, 'q', 'j')}")

    def keys_of(self):
        """Write the loop over the keys that a query attends to."""
        last = f"min(q + 1, {self.keys})" if self.causal else self.keys
        return self.k.block(f"for j in range({last}):")

    def weights(self, grad, lse, delta):
        """Write the pair's weight and its score's gradient."""
        row = f"batch * {self.length} + q"
        self.score()
        self.dot("towards", grad, self.value, self.deep)
        self.k(f"weight = exp(score - T({lse}[{row}]))")
        self.k(f"towards = weight * (towards - T({delta}[{row}])) * T({self.scale!r})")

    def add(self, out, row, factor, source, other, n):
        """Accumulate a scaled row into a row of the output."""
        with self.k.block(f"for c in range({n}):"):
            self.k(f"{out}[({row}) * {n} + c] += {factor} * T({source}[({other}) * {n} + c])")

    def zero(self, out, row, n):
        """Fill a row with zeros."""
        with self.k.block(f"for c in range({n}):"):
            self.k(f"{out}[({row}) * {n} + c] = T(0)")


def forward_gpu(k, query, key, value, *rest, causal, scale, masked):
    """Online softmax over the keys, one after the other."""
    *mask, out, lse = rest
    pair = Pairs(k, query, key, value, mask, causal, scale)
    q, j = f"batch * {pair.length} + q", f"batch * {pair.keys} + j"
    with k.each(("batch", pair.batch), ("q", pair.length)):
        k("top = T(-inf)")
        k("total = T(0)")
        pair.zero(out, q, pair.deep)
        with pair.keys_of():
            pair.score()
            k("new = score if score > top else top")
            k("high = new if new > T(-inf) else T(0)")
            k("change = exp(top - high)")
            k("weight = exp(score - high)")
            k("top = new")
            k("total = total * change + weight")
            with k.block(f"for c in range({pair.deep}):"):
                k(f"{out}[({q}) * {pair.deep} + c] *= change")
            pair.add(out, q, "weight", value, j, pair.deep)
        with k.block(f"for c in range({pair.deep}):"):
            at = f"{out}[({q}) * {pair.deep} + c]"
            k(f"{at} = {at} / total if total != T(0) else T(0)")
        k("high = top if top > T(-inf) else T(0)")
        k(f"{lse}[{q}] = high + log(total) if total != T(0) else T(inf)")


def backward_gpu(k, query, key, value, grad, lse, delta, *rest, causal, scale, masked):
    """Reduce over keys, one thread per query; then over queries, one thread per key."""
    *mask, to_query, to_key, to_value = rest
    pair = Pairs(k, query, key, value, mask, causal, scale)
    q, j = f"batch * {pair.length} + q", f"batch * {pair.keys} + j"
    with k.each(("batch", pair.batch), ("q", pair.length)):
        pair.zero(to_query, q, pair.size)
        with pair.keys_of():
            pair.weights(grad, lse, delta)
            pair.add(to_query, q, "towards", key, j, pair.size)
    k.then()
    with k.each(("batch", pair.batch), ("j", pair.keys)):
        pair.zero(to_key, j, pair.size)
        pair.zero(to_value, j, pair.deep)
        with k.block(f"for q in range({'j' if causal else 0}, {pair.length}):"):
            pair.weights(grad, lse, delta)
            pair.add(to_value, j, "weight", grad, q, pair.deep)
            pair.add(to_key, j, "towards", query, q, pair.size)
