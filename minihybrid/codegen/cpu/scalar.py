"""Chapter 17. Scalar functions for generated kernels that Numba and C lack.

Defines: compiler options; bit casts; polynomials; the compiled functions of
         `device_math`: `cbrt`, `sigmoid`, `unit` and others.

Functions of float32 are in `transcendental` and `trig`.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from minihybrid.codegen.device_math import compiled

# Kernels match NumPy bit for bit: operations are rounded one by one, in source order, except
# for reassociable sums and products, which are marked: `add_up`, `multiply_up`.
OPTIONS = {"error_model": "numpy"}
# Our own functions, whose last digit is unspecified, may use fused multiply-add.
CONTRACT = OPTIONS | {"fastmath": {"contract"}}
# For functions that must be inlined, so that the loop around them vectorizes.
INLINE = CONTRACT | {"forceinline": True}


@intrinsic
def as_float(typing, bits):
    """Return the float32 with the given bits, an int32 (which Numba's shifts widen to int64)."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def as_bits(typing, number):
    """Return the bits of a float32 as an int32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(number), codegen


@intrinsic
def bfloat16(typing, number):
    """Return the bits of the nearest bfloat16, ties to even.

    As in ml_dtypes, a NaN keeps only its sign.
    """

    def codegen(context, builder, signature, args):
        x, whole = context.cast(builder, args[0], number, types.float32), ir.IntType(32)
        bits = builder.bitcast(x, whole)
        upper = builder.lshr(bits, whole(16))
        half = builder.add(builder.and_(upper, whole(1)), whole(0x7FFF))
        rounded = builder.lshr(builder.add(bits, half), whole(16))
        nan = builder.or_(builder.and_(upper, whole(0x8000)), whole(0x7FC0))
        result = builder.select(builder.fcmp_unordered("uno", x, x), nan, rounded)
        return builder.trunc(result, ir.IntType(16))

    return types.uint16(number), codegen


@intrinsic
def widened(typing, bits):
    """Return a bfloat16, given its bits, as a float32."""

    def codegen(context, builder, signature, args):
        wide = builder.zext(args[0], ir.IntType(32))
        return builder.bitcast(builder.shl(wide, wide.type(16)), ir.FloatType())

    return types.float32(types.uint16), codegen


@intrinsic
def power_of_two(typing, sum):
    """Return 2**n, given n + `MAGIC32` or `MAGIC64`, whose low bits are n + bias.

    The addition rounds n to an integer; shifted, its low bits become an exponent.
    """

    def codegen(context, builder, signature, args):
        whole, digits = ir.IntType(sum.bitwidth), {32: 23, 64: 52}[sum.bitwidth]
        bits = builder.shl(builder.bitcast(args[0], whole), whole(digits))
        return builder.bitcast(bits, args[0].type)

    return sum(sum), codegen


def _rank(nan):
    """Return a function that maps a float to an integer with the same order.

    The bits of a float are ordered like the float, once those of negative floats are
    reversed. NaN gets a separate rank.
    """

    @intrinsic
    def rank(typing, number):
        def codegen(context, builder, signature, args):
            bits = builder.bitcast(args[0], ir.IntType(number.bitwidth))
            is_nan = builder.fcmp_unordered("uno", args[0], args[0])
            last = bits.type((1 << number.bitwidth - 1) - 1)
            return builder.select(is_nan, builder.xor(last, bits.type(nan)), _turned(builder, bits))

        return types.Integer.from_bitwidth(number.bitwidth)(number), codegen

    return rank


def _turned(builder, bits):
    sign = builder.ashr(bits, bits.type(bits.type.width - 1))
    return builder.xor(bits, builder.lshr(sign, bits.type(1)))


rank_up, rank_down = _rank(nan=0), _rank(nan=-1)  # NaN is the maximum; the minimum


@intrinsic
def unrank(typing, rank):
    """Return the float of a rank."""
    kind = types.float32 if rank.bitwidth == 32 else types.float64

    def codegen(context, builder, signature, args):
        return builder.bitcast(_turned(builder, args[0]), context.get_value_type(kind))

    return kind(rank), codegen


def called(builder, name, *args):
    """Call LLVM's function `name` of the type of its arguments, numbers or vectors."""
    kind = args[0].type
    lanes = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
    name = f"llvm.{name}.{lanes}{getattr(kind, 'element', kind).intrinsic_name}"
    function = ir.FunctionType(kind, [kind] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), args)


MAGIC32 = np.float32(3 * 2**22 + 127)
MAGIC64 = 3.0 * 2**51 + 1023


@intrinsic
def signed(typing, size, number):
    """Return a magnitude with the sign of a number (copysign)."""

    def codegen(context, builder, signature, args):
        return called(builder, "copysign", *args)

    return size(size, number), codegen


@intrinsic
def root(typing, number):
    """Return the square root, without setting errno for negative numbers."""

    def codegen(context, builder, signature, args):
        return called(builder, "sqrt", *args)

    return number(number), codegen


def _in_any_order(operation):
    """Return the reassociable update of a sum or product.

    The compiler may use several accumulators, and fuse a multiplication with the addition.
    """

    @intrinsic
    def take(typing, sum, x):
        def codegen(context, builder, signature, args):
            if isinstance(sum, types.Integer):
                return getattr(builder, operation)(*args)
            if getattr(args[1], "opname", "") == "fmul":
                args[1].flags.append("contract")
            return getattr(builder, f"f{operation}")(*args, flags=("reassoc", "contract"))

        return sum(sum, sum), codegen

    return take


add_up, multiply_up = _in_any_order("add"), _in_any_order("mul")


def polynomial(*coefficients):
    """Return a Numba function for c0 + x (c1 + x (c2 + ...)) by Horner's rule.

    It emits LLVM IR directly, because Numba's type inference of each operation is slow.
    """

    @intrinsic
    def horner(typing, x):
        def codegen(context, builder, signature, args):
            kind, flags = args[0].type, ("contract",)
            out = kind(coefficients[-1])
            for c in reversed(coefficients[:-1]):
                out = builder.fadd(builder.fmul(out, args[0], flags), kind(c), flags)
            return out

        return x(x), codegen

    return horner


@njit(**INLINE)
def mod(a, b):
    """Return the remainder of a / b with the sign of b, also for 0."""
    rest = np.mod(a, b)
    return signed(rest, b) if rest == 0 else rest


tgamma = types.ExternalFunction("tgamma", types.float64(types.float64))


@njit(**CONTRACT)
def gamma(x):
    """Return the gamma function from the C library; Numba's own needs Numba at run time."""
    return tgamma(float(x))


# These are inlined; the others stay calls.
_INSIDE = compiled(njit(**INLINE))
sigmoid, lost, lost32 = map(_INSIDE.get, ("sigmoid", "lost", "lost32"))
_CALLED = compiled(njit(**CONTRACT), gamma=gamma)
cbrt, erfinv, polygamma = map(_CALLED.get, ("cbrt", "erfinv", "polygamma"))
whole_div, whole_mod, whole_power = map(_CALLED.get, ("whole_div", "whole_mod", "whole_power"))
below, bits24, draw_gamma, draw_poisson, gauss, unit = map(
    _CALLED.get, ("below", "bits24", "draw_gamma", "draw_poisson", "gauss", "unit")
)
