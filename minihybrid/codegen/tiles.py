"""Expand the SIMD intrinsics of `codegen/cpu/vector.py` into loop IR.

Defines: `VALUES` and `STATEMENTS`, which expand a call: a tile becomes one variable per
         vector, and its operations become loads, `fma`, `total` and stores.

`masked(v, first, last)` denotes a vector's active lanes: others aren't accessed in memory,
and are 0 in registers.
Not supported: prefetching, which C lacks.
"""

from typing import Any, NamedTuple

import numpy as np

from minihybrid.codegen.ir import (
    Buffer,
    Call,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Store,
    Type,
    binary,
    const,
)
from minihybrid.ops.cpu.machine import width


class Place(NamedTuple):
    """A position in a buffer: an element, or the start of a part."""

    buffer: Buffer
    at: Expr

    def __add__(self, n: Any) -> "Place":  # type: ignore[override]
        return Place(self.buffer, self.at + const(n))

    @property
    def vector(self) -> Type:
        """The type of a full vector of its elements."""
        kind = self.buffer.kind
        return Type(kind, width(np.dtype(kind).itemsize))

    def load(self, lanes: int = 1) -> Load:
        """Load elements from this position."""
        return Load(self.buffer, (self.at,), lanes)

    def some(self, first: Any, last: Any) -> Expr:
        """Load lanes `first` to before `last`."""
        load = self.load(self.vector.lanes)
        return load if is_whole(first, last, load.lanes) else masked(load, first, last)

    def store(self, value: Expr) -> Store:
        """Store elements from this position."""
        return Store(self.buffer, (self.at,), value)


class Tile(NamedTuple):
    """The variables of a tile, row by row."""

    rows: int
    columns: int
    vectors: list

    def places(self) -> list:
        """Return (row, column, vector) of each."""
        return [
            (i // self.columns, i % self.columns, vector) for i, vector in enumerate(self.vectors)
        ]


def is_whole(first: Any, last: Any, lanes: int) -> bool:
    """Return whether all lanes are active."""
    return const(first) is const(0) and const(last) in map(const, range(lanes, 8 * lanes))


def masked(vector: Expr, first: Any, last: Any) -> Expr:
    """Return a vector's active lanes."""
    return Call("masked", (vector, const(first), const(last)), vector.type)


def splat(value: Expr) -> Expr:
    """Broadcast a scalar."""
    kind = value.type.kind
    return Call("splat", (value,), Type(kind, width(np.dtype(kind).itemsize)))


def fma(a: Expr, b: Expr, c: Expr) -> Expr:
    """a * b + c."""
    return Call("fma", (a, b, c), c.type)


def tile(reader: Any, value: Expr, rows: int, columns: int) -> Tile:
    """Create a tile filled with a scalar."""
    return Tile(rows, columns, [splat(value)] * (rows * columns))


def outer(reader: Any, sums: Tile, a: Place, at: Any, step: Any, b: Place, place: Any) -> Tile:
    """Add the outer product of a column of `a` and a row of vectors of `b`."""
    right = [
        reader.named((b + place + c * b.vector.lanes).load(b.vector.lanes))
        for c in range(sums.columns)
    ]
    for r in range(sums.rows):
        left = reader.named(splat((a + at + const(step) * r).load()))
        for c, old in enumerate(sums.vectors[r * sums.columns : (r + 1) * sums.columns]):
            reader.out.append(Let(old, fma(left, right[c], old)))
    return sums


def inner(reader: Any, sums: Tile, a: Place, at_a: Any, b: Place, at_b: Any, *ends: Any) -> Tile:
    """Add products of vectors of rows of `a` and of `b`; `count` lanes are active."""
    step, count = ends
    left, right = (
        [reader.named((array + at + const(step) * i).some(0, count)) for i in range(n)]
        for array, at, n in ((a, at_a, sums.rows), (b, at_b, sums.columns))
    )
    for r, c, old in sums.places():
        reader.out.append(Let(old, fma(left[r], right[c], old)))
    return sums


def get(reader: Any, sums: Tile, array: Place, at: Any, step: Any, last: Any) -> Tile:
    """Load a tile from an array, up to the column `last`."""
    lanes = array.vector.lanes
    vectors = [
        (array + at + const(step) * r + c * lanes).some(0, const(last) - c * lanes)
        for r, c, _ in sums.places()
    ]
    return Tile(sums.rows, sums.columns, vectors)


def put(reader: Any, sums: Tile, array: Place, at: Any, step: Any, *ends: Any) -> None:
    """Store a tile into an array: rows from `top`, columns `first` to `last`."""
    top, first, last = map(const, ends)
    lanes = array.vector.lanes
    for r, c, vector in sums.places():
        some = first - c * lanes, last - c * lanes
        is_all = first is const(0) and is_whole(0, some[1], lanes)
        to = array + at + const(step) * r + c * lanes
        when(reader, [(top, r)], to.store(vector if is_all else masked(vector, *some)))


def put_totals(reader: Any, sums: Tile, array: Place, at: Any, step: Any, *ends: Any) -> None:
    """Store the sum of each vector: rows from `top`, columns from `first`."""
    top, first, more = ends
    for r, c, vector in sums.places():
        to = array + at + const(step) * r + c
        total = reader.named(Call("total", (vector,), Type(array.buffer.kind)))
        if more is not False:
            total = reader.select(more, reader.arithmetic("+", to.load(), total), total)
        when(reader, [(const(top), r), (const(first), c)], to.store(total))


def when(reader: Any, tests: list, store: Store) -> None:
    """Guard a store: each value must be at most its limit."""
    for value, limit in tests:
        if not isinstance(value, Const):
            store = If(binary("<=", value, const(limit)), (store,))  # type: ignore[assignment]
    reader.out.append(store)


def transpose(reader: Any, source: Place, at: Any, step: Any, *target: Any) -> None:
    """Transpose a square block of `lanes` x `lanes` elements."""
    to, put, stride = target
    i, j = reader.counter("row"), reader.counter("column")
    element = (source + at + i * step + j).load()
    body = For(
        j, const(0), const(source.vector.lanes), ((to + put + j * stride + i).store(element),)
    )
    reader.out.append(For(i, const(0), const(source.vector.lanes), (body,)))


VALUES = {
    "tile": tile,
    "outer": outer,
    "inner": inner,
    "get": get,
    "splat": lambda reader, value: splat(value),
    "fma": lambda reader, a, b, c: fma(a, b, c),
    "load": lambda reader, array, at: (array + at).load(array.vector.lanes),
    "total": lambda reader, a: Call("total", (a,), Type(a.type.kind)),
}
STATEMENTS = {
    "put": put,
    "put_totals": put_totals,
    "transpose": transpose,
    "store": lambda reader, array, at, value: reader.out.append((array + at).store(value)),
    "fetch": lambda reader, array, at: None,
}
