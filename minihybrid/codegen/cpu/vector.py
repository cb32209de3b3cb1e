"""Chapter 18. SIMD intrinsics for Numba kernels.

Defines: functions on vectors: `load`, `store`, `fetch`, `splat`, `fma`, `total`,
         `transpose`; and on register tiles, which are arrays of vectors: `tile`, `get`,
         `put`, `put_totals`, `outer`, `inner`.

LLVM vectorizes simple loops by itself. A fast matrix product needs more: about twenty
accumulators that stay in registers throughout the inner loop. A tile holds all of them in
one variable, because Numba's front end is slow per statement.
Not supported: tiles whose height is known only at run time.
"""

import contextlib
import functools
import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from minihybrid.codegen.cpu.flat import Flat
from minihybrid.codegen.cpu.scalar import called
from minihybrid.ops.cpu.machine import width


class Vector(types.Type):
    """The Numba type of a vector: one register, or a given number of lanes."""

    def __init__(self, dtype, lanes=None):
        self.dtype, self.lanes = dtype, lanes or width(dtype.bitwidth // 8)
        super().__init__(name=f"Vector({dtype} x {self.lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        number = manager.lookup(vector.dtype).get_value_type()
        super().__init__(manager, vector, ir.VectorType(number, vector.lanes))


def _lanes(numbers):
    """Return a shuffle mask."""
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers)


def _place(context, builder, array_type, array, index, kind):
    """Return a vector's address in an array, which kernels have as a pointer."""
    data = (
        array
        if isinstance(array_type, Flat)
        else context.make_array(array_type)(context, builder, array).data
    )
    return builder.bitcast(builder.gep(data, [index]), kind.as_pointer())


def _splat(builder, number, kind):
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, _lanes([0] * kind.count))


@intrinsic
def load(typing, array, index):
    """Load a vector from an index of an array."""
    vector = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(vector)
        place = _place(context, builder, array, *args, kind)
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return vector(array, types.intp), codegen


@intrinsic
def store(typing, array, index, vector):
    """Store a vector at an index of an array."""

    def codegen(context, builder, signature, args):
        place = _place(context, builder, array, *args[:2], args[2].type)
        builder.store(args[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), codegen


@intrinsic
def fetch(typing, array, index):
    """Prefetch the cache line of an index, which may be out of bounds."""

    def codegen(context, builder, signature, args):
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = _place(context, builder, array, *args, ir.IntType(8))
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def splat(typing, number):
    """Broadcast a scalar to a vector."""
    vector = Vector(number)

    def codegen(context, builder, signature, args):
        return _splat(builder, args[0], context.get_value_type(vector))

    return vector(number), codegen


def _fma(builder, dtype, a, b, c):
    if isinstance(dtype, types.Integer):
        return builder.add(builder.mul(a, b), c)
    return called(builder, "fmuladd", a, b, c)


@intrinsic
def fma(typing, a, b, c):
    """Return a * b + c, in one instruction if the CPU has it."""

    def codegen(context, builder, signature, args):
        return _fma(builder, getattr(a, "dtype", a), *args)

    return c(a, b, c), codegen


@intrinsic
def total(typing, a):
    """Sum a vector's lanes by repeated halving."""

    def codegen(context, builder, signature, args):
        add = builder.add if isinstance(a.dtype, types.Integer) else builder.fadd
        rest, n = args[0], a.lanes
        while n > 1:
            n //= 2
            halves = [
                builder.shuffle_vector(rest, rest, _lanes([*range(i, i + n)])) for i in (0, n)
            ]
            rest = add(*halves)
        return builder.extract_element(rest, ir.Constant(ir.IntType(32), 0))

    return a.dtype(a), codegen


# -- vectors of any length, with operators ---------------------------------------------
@intrinsic(prefer_literal=True)
def load_lanes(typing, array, index, lanes):
    """Load a vector of `lanes` elements."""
    vector = Vector(array.dtype, lanes.literal_value)

    def codegen(context, builder, signature, args):
        place = _place(context, builder, array, *args[:2], context.get_value_type(vector))
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return vector(array, types.intp, lanes), codegen


@intrinsic(prefer_literal=True)
def splat_lanes(typing, number, lanes):
    """Broadcast a scalar to `lanes` lanes."""
    number = types.unliteral(number)
    vector = Vector(number, lanes.literal_value)

    def codegen(context, builder, signature, args):
        return _splat(builder, args[0], context.get_value_type(vector))

    return vector(number, lanes), codegen


@intrinsic
def choose(typing, test, a, b):
    """Select a in the lanes where a test holds, b in the others."""
    return a(test, a, b), lambda context, builder, signature, args: builder.select(*args)


def _enter_sign(sign, of_floats, of_integers):
    """Register an operator on two vectors; comparisons return vectors of booleans."""
    is_test = sign in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)

    @infer_global(sign)
    class _Signed(AbstractTemplate):
        def generic(self, args, kws):
            a, b = args
            if isinstance(a, Vector) and a == b:
                return signature(Vector(types.boolean, a.lanes) if is_test else a, a, b)
            return None

    @lower_builtin(sign, Vector, Vector)
    def _apply(context, builder, signature, args):
        is_float = isinstance(signature.args[0].dtype, types.Float)
        return (of_floats if is_float else of_integers)(builder, *args)


def _compared(text):
    ordered = (lambda b, x, y: b.fcmp_unordered(text, x, y)) if text == "!=" else (
        lambda b, x, y: b.fcmp_ordered(text, x, y)
    )  # fmt: skip
    return ordered, lambda b, x, y: b.icmp_signed(text, x, y)


for _sign, _text in zip("lt le eq ne gt ge".split(), "< <= == != > >=".split(), strict=True):
    _enter_sign(getattr(operator, _sign), *_compared(_text))
for _sign, _float in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv")):
    _enter_sign(
        getattr(operator, _sign),
        lambda b, x, y, name=_float: getattr(b, name)(x, y),
        lambda b, x, y, name=_sign: getattr(b, name)(x, y),
    )


@intrinsic
def transpose(typing, source, start, step, target, place, stride):
    """Transpose a square block of `lanes` x `lanes` elements.

    start, step:    first index and row stride in the source.
    place, stride:  first index and row stride in the target.

    Recursively: swap the two off-diagonal quarters, then transpose each quarter; this
    takes log2(lanes) rounds of shuffles.
    """
    vector = Vector(source.dtype)

    def codegen(context, builder, signature, args):
        n, kind = vector.lanes, context.get_value_type(vector)
        from_, at, step, to, put, stride = args
        align = source.dtype.bitwidth // 8
        rows = []
        for i in range(n):
            where = builder.add(at, builder.mul(step, at.type(i)))
            rows.append(
                builder.load(_place(context, builder, source, from_, where, kind), align=align)
            )
        half = n // 2
        while half:
            upper = _lanes([i + (n - half) * bool(i & half) for i in range(n)])
            lower = _lanes([i + (n if i & half else half) for i in range(n)])
            for i in range(n):
                if not i & half:
                    pair = rows[i], rows[i + half]
                    rows[i] = builder.shuffle_vector(*pair, upper)
                    rows[i + half] = builder.shuffle_vector(*pair, lower)
            half //= 2
        for i, row in enumerate(rows):
            where = builder.add(put, builder.mul(stride, put.type(i)))
            builder.store(row, _place(context, builder, target, to, where, kind), align=align)
        return context.get_dummy_value()

    place_ = types.intp
    return types.void(source, place_, place_, target, place_, place_), codegen


# -- register tiles --------------------------------------------------------------------
class Tile(types.Type):
    """The Numba type of a register tile: rows of vectors."""

    def __init__(self, dtype, rows, columns):
        self.dtype, self.rows, self.columns = dtype, rows, columns
        self.lanes = width(dtype.bitwidth // 8)
        self.places = [(r, c) for r in range(rows) for c in range(columns)]
        super().__init__(name=f"Tile({dtype} x {self.lanes}, {rows} x {columns})")


@register_model(Tile)
class _TileModel(models.PrimitiveModel):
    def __init__(self, manager, tile):
        vector = manager.lookup(Vector(tile.dtype)).get_value_type()
        super().__init__(manager, tile, ir.ArrayType(vector, len(tile.places)))


class _Rows:
    """Rows of an array, given by base address and stride."""

    def __init__(self, context, builder, array_type, array, at, step):
        self.array = context, builder, array_type, array
        self.builder, self.at, self.step = builder, at, step
        self.align = array_type.dtype.bitwidth // 8

    def place(self, row, column, kind):
        """Return the address of a vector or, with its kind, of a scalar.

        column:  a constant or a run-time value.
        """
        builder, number = self.builder, self.at.type
        column = number(column) if isinstance(column, int) else column
        index = builder.add(builder.mul(self.step, number(row)), column)
        return _place(*self.array, builder.add(self.at, index), kind)

    def load(self, row, column, kind):
        return self.builder.load(self.place(row, column, kind), align=self.align)

    def store(self, row, column, value):
        self.builder.store(value, self.place(row, column, value.type), align=self.align)

    def load_some(self, row, column, kind, mask):
        """Load the active lanes of a mask; others are zero and aren't accessed."""
        place, align = self.place(row, column, kind), ir.IntType(32)(self.align)
        return self._masked("load", kind, kind, place, align, mask, ir.Constant(kind, None))

    def store_some(self, row, column, value, mask):
        """Store the active lanes of a mask."""
        place, align = self.place(row, column, value.type), ir.IntType(32)(self.align)
        self._masked("store", ir.VoidType(), value.type, value, place, align, mask)

    def _masked(self, what, result, kind, *args):
        name = f"llvm.masked.{what}.v{kind.count}{kind.element.intrinsic_name}.p0"
        signature = ir.FunctionType(result, [a.type for a in args])
        function = cgutils.get_or_insert_function(self.builder.module, signature, name)
        return self.builder.call(function, args)


def _written(number, otherwise):
    """Return the value of a literal, so that full tiles need no masks and branches, which LLVM
    would have to remove again."""
    return number.literal_value if isinstance(number, types.IntegerLiteral) else otherwise


def _as_written(*numbers):
    """Return literal types for a signature: Numba caches code by signature, so literals that
    change the code must be part of it."""
    return [n if isinstance(n, types.IntegerLiteral) else types.intp for n in numbers]


def _from(builder, top, row, every):
    """Open the code of a row, which is skipped above `top` unless `every`."""
    if every:
        return contextlib.nullcontext()
    return builder.if_then(builder.icmp_signed("<=", top, top.type(row)))


def _between(builder, first, last, lanes, start=0):
    """Return the mask of lanes with first <= start + lane < last."""
    kind = ir.VectorType(last.type, lanes)
    numbers = ir.Constant(kind, [*range(start, start + lanes)])
    return builder.and_(
        builder.icmp_signed(">=", numbers, _splat(builder, first, kind)),
        builder.icmp_signed("<", numbers, _splat(builder, last, kind)),
    )


def _add_products(builder, tile, sums, left, right):
    """Return sums[r, c] + left[r] * right[c] for all vectors."""
    for i, (r, c) in enumerate(tile.places):
        old = builder.extract_value(sums, i)
        new = _fma(builder, tile.dtype, left[r], right[c], old)
        sums = builder.insert_value(sums, new, i)
    return sums


@intrinsic(prefer_literal=True)
def tile(typing, number, rows, columns):
    """Create a tile of rows x columns vectors, filled with a scalar."""
    tile_type = Tile(number, rows.literal_value, columns.literal_value)

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(tile_type)
        sums, vector = ir.Constant(kind, ir.Undefined), _splat(builder, args[0], kind.element)
        for i in range(kind.count):
            sums = builder.insert_value(sums, vector, i)
        return sums

    return tile_type(number, rows, columns), codegen


@intrinsic
def outer(typing, tile, a, at, step, b, place):
    """Add the outer product of a column of `a` and a row of vectors of `b`.

    at, step:  index of the column's first element, and its stride.
    """

    def codegen(context, builder, signature, args):
        sums, kind = args[0], args[0].type.element
        column = _Rows(context, builder, a, *args[1:4])
        row = _Rows(context, builder, b, *args[4:], args[5].type(0))
        right = [row.load(0, c * tile.lanes, kind) for c in range(tile.columns)]
        for r in range(tile.rows):  # one scalar at a time: the accumulators occupy the registers
            left = _splat(builder, column.load(r, 0, kind.element), kind)
            for c in range(tile.columns):
                i = r * tile.columns + c
                old = builder.extract_value(sums, i)
                sums = builder.insert_value(sums, _fma(builder, tile.dtype, left, right[c], old), i)
        return sums

    index = types.intp
    return tile(tile, a, index, index, b, index), codegen


@intrinsic(prefer_literal=True)
def inner(typing, tile, a, at_a, b, at_b, step, count):
    """Add products of vectors of rows of `a` and rows of `b`, lane by lane.

    step:   row stride, in `a` and in `b`.
    count:  number of active lanes.
    """
    whole = _written(count, 0) == tile.lanes

    def codegen(context, builder, signature, args):
        sums, a_, at_a, b_, at_b, step, count = args
        kind = sums.type.element
        if whole:
            read = _Rows.load
        else:
            mask = _between(builder, count.type(0), count, tile.lanes)
            read = functools.partial(_Rows.load_some, mask=mask)
        left, right = (
            [read(rows, i, 0, kind) for i in range(n)]
            for rows, n in (
                (_Rows(context, builder, a, a_, at_a, step), tile.rows),
                (_Rows(context, builder, b, b_, at_b, step), tile.columns),
            )
        )
        return _add_products(builder, tile, sums, left, right)

    index = types.intp
    return tile(tile, a, index, b, index, index, *_as_written(count)), codegen


@intrinsic
def get(typing, tile, array, at, step, last):
    """Load a tile from an array, up to the column `last`."""

    def codegen(context, builder, signature, args):
        sums, array_, at, step, last = args
        rows = _Rows(context, builder, array, array_, at, step)
        for i, (r, c) in enumerate(tile.places):
            column = c * tile.lanes
            mask = _between(builder, last.type(0), last, tile.lanes, column)
            vector = rows.load_some(r, column, sums.type.element, mask)
            sums = builder.insert_value(sums, vector, i)
        return sums

    index = types.intp
    return tile(tile, array, index, index, index), codegen


@intrinsic(prefer_literal=True)
def put(typing, tile, array, at, step, top, first, last):
    """Store a tile into an array: rows from `top`, columns `first` to `last`."""
    every = _written(top, 1) == 0
    whole = _written(first, 1) == 0 and _written(last, 0) == tile.columns * tile.lanes

    def codegen(context, builder, signature, args):
        sums, array_, at, step, top, first, last = args
        rows = _Rows(context, builder, array, array_, at, step)
        for i, (r, c) in enumerate(tile.places):
            column = c * tile.lanes
            with _from(builder, top, r, every):
                vector = builder.extract_value(sums, i)
                if whole:
                    rows.store(r, column, vector)
                else:
                    mask = _between(builder, first, last, tile.lanes, column)
                    rows.store_some(r, column, vector, mask)
        return context.get_dummy_value()

    numbers = [types.intp, types.intp, *_as_written(top, first, last)]
    return types.void(tile, array, *numbers), codegen


@intrinsic(prefer_literal=True)
def put_totals(typing, tile, array, at, step, top, first, more):
    """Store the sum of each vector of a tile: rows from `top`, columns from `first`.

    more:   whether to add to the old elements.

    Each round adds the halves of two vectors into one, so after log2(lanes) rounds one
    vector holds all sums in order.
    """
    every = _written(top, 1) == 0

    def codegen(context, builder, signature, args):
        sums, array_, at, step, top, first, more = args
        add = builder.add if isinstance(tile.dtype, types.Integer) else builder.fadd
        rows = _Rows(context, builder, array, array_, at, step)
        rest = [builder.extract_value(sums, i) for i in range(sums.type.count)]
        size, lanes = tile.lanes, tile.lanes
        while size > 1:
            size //= 2
            halves = [
                _lanes([i for i in range(2 * lanes) if i // size % 2 == side]) for side in (0, 1)
            ]
            rest += rest[: len(rest) % 2]
            rest = [
                add(*(builder.shuffle_vector(x, y, half) for half in halves))
                for x, y in zip(rest[::2], rest[1::2], strict=True)
            ]
        for r in range(tile.rows):
            places = range(r * tile.columns, (r + 1) * tile.columns)
            pair = rest[places[0] // lanes], rest[places[-1] // lanes]
            row = builder.shuffle_vector(
                *pair,
                _lanes([p % lanes + lanes * (p // lanes > places[0] // lanes) for p in places]),
            )
            mask = _between(builder, first, first.type(tile.columns), tile.columns)
            with _from(builder, top, r, every):
                old = builder.and_(mask, _splat(builder, more, mask.type))
                row = add(row, rows.load_some(r, 0, row.type, old))
                rows.store_some(r, 0, row, mask)
        return context.get_dummy_value()

    numbers = [types.intp, types.intp, *_as_written(top), types.intp, types.boolean]
    return types.void(tile, array, *numbers), codegen
