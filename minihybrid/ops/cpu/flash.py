"""FlashAttention on the CPU: one block of scores at a time.

Uses:    a kernel writer, flat queries (B, L, E), keys (B, S, E), values (B, S, V), a mask.
Defines: `forward_cpu` and `backward_cpu`, and their scratch memory, whose size doesn't grow
         with L and S.

    for each block of queries:          top, total, out = -inf, 0, 0
        for each block of keys:         scores = K Q^T
                                        new = max(top, scores)
                                        weights = exp(scores - new)
                                        total, out = both * exp(top - new)
                                        total, out += sum(weights), weights^T V
        out /= total

A score block is transposed: a row holds one key's scores with all queries of the block, so
each step of the softmax is vertical SIMD, without reductions across lanes. All products are
outer products of a column of `a` and a row of `b`, as in `products`: only Q is copied,
transposed, once per block. Where blocks don't divide a length, the last one begins earlier
and skips the rows that the previous one computed.

The backward pass recomputes the weights from the log-sum-exp of each query, in the same order.
Source:  Dao, FlashAttention-2 (2023), algorithms 1 and 2.
Limits:  the backward pass isn't parallel over one sample's keys.
"""

from minihybrid.ops.cpu.machine import width
from minihybrid.ops.cpu.products import _even, _last, _tile_size

BLOCK = 64  # queries, and keys


class Blocks:
    """Lengths of a sample and its blocks, and the offsets of its buffers in `work`."""

    def __init__(self, query, key, value, dtype, *parts):
        (self.batch, self.length, self.size), (_, self.keys, _) = query.shape, key.shape
        self.deep, self.dtype = value.shape[2], dtype
        self.lanes = width(dtype.itemsize)
        self.rows = _even(self.length, BLOCK, self.lanes)
        self.cols = min(_even(self.keys, BLOCK, 1), self.keys)
        self.some = min(self.rows, self.length)  # queries per block, without padding lanes
        self.blocks = -(-self.length // self.rows)
        wide = max(map(self.padded, (self.size, self.deep)))
        sizes = {"query": self.size * self.rows, "grad": self.deep * self.rows}
        sizes |= {part: self.rows * wide for part in ("out", "rows0", "rows1")}
        sizes |= {part: self.cols * self.rows for part in ("scores", "towards")}
        sizes |= {part: self.cols * wide for part in ("key", "value")}
        self.at, self.n_work = {}, 0
        for part in parts:
            self.at[part] = self.n_work
            self.n_work += sizes.get(part, self.rows)

    def padded(self, n):
        """Round a length up to whole vectors."""
        return -(-n // self.lanes) * self.lanes


# -- steps shared by both passes -------------------------------------------------------
def _query_block(k, b):
    """Write the start of a query block; the previous one computed rows before `fresh`."""
    k(f"q0 = max(min(block * {b.rows}, {b.length - b.rows}), 0)")
    k(f"fresh = block * {b.rows} - q0")


def _key_blocks(k, b, causal):
    """Write the loop over key blocks."""
    last = f"min({b.keys}, q0 + {b.rows})" if causal else b.keys
    return k.block(f"for j in range(0, {last}, {b.cols}):")


def _turned(k, b, source, part, n):
    """Copy query rows as columns, padding with repeats of the last one."""
    whole = n % b.lanes == 0 and b.rows <= b.length and source.dtype == b.dtype
    if whole:
        with k.loop("c", n, 0, b.lanes), k.loop("q", b.rows, 0, b.lanes):
            at = f"(batch * {b.length} + q0 + q) * {n} + c"
            k(f"transpose({source}, {at}, {n}, work, {b.at[part]} + c * {b.rows} + q, {b.rows})")
        return
    with k.block(f"for q in range({b.rows}):"), k.block(f"for c in range({n}):"):
        at = f"(batch * {b.length} + min(q0 + q, {b.length - 1})) * {n} + c"
        k(f"work[{b.at[part]} + c * {b.rows} + q] = T({source}[{at}])")


def _rows_of(k, b, source, first, count, n, part):
    """Return (array, offset, stride of its rows), copied if rows need padding."""
    if n % b.lanes == 0 and source.dtype == b.dtype:
        return source, f"{first} * {n}", n
    wide = b.padded(n)
    with k.block(f"for r in range({count}):"):
        with k.block(f"for c in range({n}):"):
            k(f"work[{b.at[part]} + r * {wide} + c] = T({source}[({first} + r) * {n} + c])")
        if wide > n:
            with k.block(f"for c in range({n}, {wide}):"):
                k(f"work[{b.at[part]} + r * {wide} + c] = T(0)")
    return "work", str(b.at[part]), wide


def _product(k, lengths, a, b, out, more=True, first="0"):
    """Write out (m, n) += a (m, depth) b (depth, n), in register tiles.

    a:       (array, offset, stride along m, stride along depth).
    b, out:  (array, offset, row stride).
    """
    (m, n, depth), (a, at_a, down, along), (b, at_b, pitch) = lengths, a, b
    (out, at, apart), lanes = out, width(k.dtype.itemsize)
    full = -(-n // lanes) * lanes
    high, wide = _tile_size(m, full, k.dtype)
    with k.loop("n", full, 0, wide), k.block(f"for m in range(0, {m}, {high}):"):
        row, top = _last(k, "row", "m", m, high)
        c, left = _last(k, "c", "n", full, wide)
        columns = f"min({wide}, {n} - {c})" if n % lanes else wide
        s = k.name("s")
        k(f"{s} = tile(T(0), {high}, {wide // lanes})")
        if more:
            k(f"{s} = get({s}, {out}, {at} + {row} * {apart} + {c}, {apart}, {columns})")
        with k.block(f"for k in range({first}, {depth}):"):
            column = f"{a}, {at_a} + {row} * {down} + k * {along}, {down}"
            k(f"{s} = outer({s}, {column}, {b}, {at_b} + k * {pitch} + {c})")
        k(f"put({s}, {out}, {at} + {row} * {apart} + {c}, {apart}, {top}, {left}, {columns})")


def _scores(k, b, keys, mask, causal, scale):
    """Compute a block of scores, transposed; return the expression of element `i`, `q`."""
    at, rows = b.at["scores"], b.rows
    lengths = b.cols, rows, b.size
    _product(k, lengths, (*keys, 1), ("work", b.at["query"], rows), ("work", at, rows), more=False)
    place = f"work[{at} + i * {rows} + q]"
    with k.block(f"for i in range({b.cols}):"):
        hidden = f"min(max(k0 + i - q0, 0), {rows})" if causal else "0"
        k(f"hidden = {rows} if i < j - k0 else {hidden}")
        with k.block("for q in range(hidden):"):
            k(f"{place} = T(-inf)")
        with k.block(f"for q in range(hidden, {rows}):"):
            query = f"min(q0 + q, {b.length - 1})"
            k(f"{place} = {masked(f'{place} * T({scale!r})', mask, b, query, 'k0 + i')}")
    return place


def masked(score, mask, lengths, query, key):
    """Return the expression of a score, -inf where masked; the mask broadcasts."""
    if not mask:
        return score
    (batch, rows, columns), terms = mask[0].shape, []
    for place, n, step in (
        ("batch", batch, rows * columns),
        (query, rows, columns),
        (key, columns, 1),
    ):
        terms += [f"({place}) * {step}"] * (n > 1)
    return f"{score} if {mask[0]}[{' + '.join(terms) or 0}] != 0 else T(-inf)"


# -- forward ---------------------------------------------------------------------------
FORWARD = "query", "scores", "out", "key", "value", "top", "new", "total", "change"


def forward_scratch(ins, outs, **_):
    """Return the scratch size in elements."""
    return Blocks(*ins[:3], outs[0].dtype, *FORWARD).n_work


def forward_cpu(k, query, key, value, *rest, causal, scale, masked):
    """Write the forward pass."""
    *mask, out, lse = rest
    b = Blocks(query, key, value, k.dtype, *FORWARD)
    top, new, total, change = (f"work[{b.at[part]} + q]" for part in FORWARD[-4:])
    wide, row = b.padded(b.deep), f"batch * {b.length} + q0 + q"
    sums = f"work[{b.at['out']} + q * {wide} + c]"
    work = 2 * b.batch * b.length * b.keys * (b.size + b.deep)
    with k.share("block", b.batch * b.blocks, work=work):
        k(f"batch = block // {b.blocks}")
        k(f"block -= batch * {b.blocks}")
        _query_block(k, b)
        _turned(k, b, query, "query", b.size)
        with k.block(f"for q in range({b.rows}):"):
            k(f"{top}, {total} = T(-inf), T(0)")
        with k.block(f"for q in range({b.some}):"), k.block(f"for c in range({wide}):"):
            k(f"{sums} = T(0)")
        with _key_blocks(k, b, causal):
            k(f"k0 = min(j, {b.keys - b.cols})")
            first = f"(batch * {b.keys} + k0)"
            score = _scores(
                k, b, _rows_of(k, b, key, first, b.cols, b.size, "key"), mask, causal, scale
            )
            with k.block(f"for q in range({b.rows}):"):
                k(f"{new} = {top}")
            with k.block(f"for i in range({b.cols}):"), k.block(f"for q in range({b.rows}):"):
                k(f"{new} = {score} if {score} > {new} else {new}")
            with k.block(f"for q in range({b.rows}):"):
                k(f"high = {new} if {new} > T(-inf) else T(0)")
                k(f"{change} = exp({top} - high)")
                k(f"{top}, {new} = {new}, high")
                k(f"{total} *= {change}")
            with k.block(f"for i in range({b.cols}):"), k.block(f"for q in range({b.rows}):"):
                k(f"weight = exp({score} - {new})")
                k(f"{score} = weight")
                k(f"{total} += weight")
            with k.block(f"for q in range({b.some}):"), k.block(f"for c in range({wide}):"):
                k(f"{sums} *= {change}")
            values = _rows_of(k, b, value, first, b.cols, b.deep, "value")
            weights = "work", b.at["scores"], 1, b.rows
            lengths = b.some, wide, b.cols
            _product(k, lengths, weights, values, ("work", b.at["out"], wide), first="j - k0")
        with k.block(f"for q in range(fresh, {b.some}):"):
            k(f"whole = {total}")
            k("part = T(1) / whole")
            with k.block(f"for c in range({b.deep}):"):
                k(f"{out}[({row}) * {b.deep} + c] = {sums} * part if whole != T(0) else T(0)")
            k(f"{lse}[{row}] = {new} + log(whole) if whole != T(0) else T(inf)")


# -- backward --------------------------------------------------------------------------
BACKWARD = "query", "grad", "scores", "towards", "rows0", "rows1", "key", "value", "lse", "delta"


def backward_scratch(ins, outs, **_):
    """Return the scratch size in elements."""
    return Blocks(*ins[:3], outs[0].dtype, *BACKWARD).n_work


def backward_cpu(k, query, key, value, grad, lse, delta, *rest, causal, scale, masked):
    """Write the backward pass."""
    *mask, to_query, to_key, to_value = rest
    b = Blocks(query, key, value, k.dtype, *BACKWARD)
    log, apart = (f"work[{b.at[part]} + q]" for part in BACKWARD[-2:])
    towards = f"work[{b.at['towards']} + i * {b.rows} + q]"
    with k.share("batch", b.batch, work=5 * b.batch * b.length * b.keys * (b.size + b.deep)):
        for out in (to_query, to_key, to_value):
            n = out.shape[1] * out.shape[2]
            with k.block(f"for i in range(batch * {n}, (batch + 1) * {n}):"):
                k(f"{out}[i] = T(0)")
        with k.block(f"for block in range({b.blocks}):"):
            _query_block(k, b)
            _turned(k, b, query, "query", b.size)
            _turned(k, b, grad, "grad", b.deep)
            first = f"(batch * {b.length} + q0)"
            queries = _rows_of(k, b, query, first, b.some, b.size, "rows0")
            grads = _rows_of(k, b, grad, first, b.some, b.deep, "rows1")
            with k.block(f"for q in range({b.rows}):"):
                k(f"at = batch * {b.length} + min(q0 + q, {b.length - 1})")
                k(f"{log} = T({lse}[at]) if q >= fresh else T(inf)")
                k(f"{apart} = T({delta}[at])")
            with _key_blocks(k, b, causal):
                k(f"k0 = min(j, {b.keys - b.cols})")
                first_key = f"(batch * {b.keys} + k0)"
                keys = _rows_of(k, b, key, first_key, b.cols, b.size, "key")
                values = _rows_of(k, b, value, first_key, b.cols, b.deep, "value")
                score = _scores(k, b, keys, mask, causal, scale)
                turned, destination = (
                    (("work", b.at[part], b.rows)) for part in ("grad", "towards")
                )
                _product(k, (b.cols, b.rows, b.deep), (*values, 1), turned, destination, more=False)
                with k.block(f"for i in range({b.cols}):"), k.block(f"for q in range({b.rows}):"):
                    k(f"weight = exp({score} - {log})")
                    k(f"{score} = weight")
                    k(f"{towards} = weight * ({towards} - {apart}) * T({scale!r})")
                weights, parts = ("work", b.at["scores"]), ("work", b.at["towards"])
                for which, others, out, n in (
                    (weights, grads, to_value, b.deep),
                    (parts, queries, to_key, b.size),
                ):
                    target = out, f"{first_key} * {n}", n
                    _product(k, (b.cols, n, b.some), (*which, b.rows, 1), others, target)
                target = to_query, f"{first} * {b.size}", b.size
                _product(k, (b.some, b.size, b.cols), (*parts, 1, b.rows), keys, target)
