"""Chapter 17. What generated kernels are made of that neither Numba nor C has.

Takes:   numbers.
Gives:   the compiler's options; the bits of a number; polynomials; and the functions
         of `device`, compiled: `cbrt`, `sigmoid`, `unit` and others.

What is left out: float32, whose functions are in `transcendental` and `trig`.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from minihybrid.codegen.device_math import compiled

# A kernel computes what NumPy does, bit for bit: each operation is rounded, in the
# order that is written. What may have another order says so: `add_up`, `multiply_up`.
OPTIONS = {"error_model": "numpy"}
# Our own functions, whose last digit is ours, may round a product and a sum together.
CONTRACT = OPTIONS | {"fastmath": {"contract"}}
# For functions that become part of a loop, which only then is computed in vectors.
INLINE = CONTRACT | {"forceinline": True}


@intrinsic
def as_float(typing, bits):
    """The float32 whose bits are a given int32 (Numba's shifts make int64 of it)."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def as_bits(typing, number):
    """The bits of a float32 as an int32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(number), codegen


@intrinsic
def power_of_two(typing, sum):
    """2**n from the sum of n and `MAGIC32` or `MAGIC64`, whose last bits are n + bias.

    The sum is rounded to a whole number; shifted, its last bits are an exponent.
    """

    def codegen(context, builder, signature, args):
        whole, digits = ir.IntType(sum.bitwidth), {32: 23, 64: 52}[sum.bitwidth]
        bits = builder.shl(builder.bitcast(args[0], whole), whole(digits))
        return builder.bitcast(bits, args[0].type)

    return sum(sum), codegen


def _rank(nan):
    """A function that gives the rank of a float among all floats, as a whole number.

    The bits of a float are ordered as the float is, if those below zero are turned
    round. NaN is given a rank of its own.
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


rank_up, rank_down = _rank(nan=0), _rank(nan=-1)  # NaN above all, and below all


@intrinsic
def unrank(typing, rank):
    """The float of a rank."""
    kind = types.float32 if rank.bitwidth == 32 else types.float64

    def codegen(context, builder, signature, args):
        return builder.bitcast(_turned(builder, args[0]), context.get_value_type(kind))

    return kind(rank), codegen


MAGIC32 = np.float32(3 * 2**22 + 127)
MAGIC64 = 3.0 * 2**51 + 1023


@intrinsic
def signed(typing, size, number):
    """The size with the sign of the number, also of -0."""

    def codegen(context, builder, signature, args):
        kind = args[0].type
        name = f"llvm.copysign.{kind.intrinsic_name}"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind] * 2), name
        )
        return builder.call(function, args)

    return size(size, number), codegen


@intrinsic
def root(typing, number):
    """The square root, NaN of a negative number, without C's note of an error."""

    def codegen(context, builder, signature, args):
        kind = args[0].type
        name = f"llvm.sqrt.{kind.intrinsic_name}"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind]), name
        )
        return builder.call(function, args)

    return number(number), codegen


def _in_any_order(operation):
    """A function that takes one number more into a sum or product of many.

    The compiler may use several registers, each for a part of them; and a product that
    a sum takes in need not be rounded before.
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
    """A Numba function: c0 + x (c1 + x (c2 + ...)), a multiplication and addition each.

    Written straight into its caller: typing each operation would take Numba longer.
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
    """The remainder of a / b with the sign of b, also of 0."""
    rest = np.mod(a, b)
    return signed(rest, b) if rest == 0 else rest


tgamma = types.ExternalFunction("tgamma", types.float64(types.float64))


@njit(**CONTRACT)
def gamma(x):
    """The gamma function, from the C library; Numba's own lives in Numba."""
    return tgamma(float(x))


# These become part of a loop; the others stay calls.
_INSIDE = compiled(njit(**INLINE))
sigmoid, lost, lost32 = map(_INSIDE.get, ("sigmoid", "lost", "lost32"))
_CALLED = compiled(njit(**CONTRACT), gamma=gamma)
cbrt, erfinv, polygamma = map(_CALLED.get, ("cbrt", "erfinv", "polygamma"))
whole_div, whole_mod, whole_power = map(_CALLED.get, ("whole_div", "whole_mod", "whole_power"))
below, bits24, draw_gamma, draw_poisson, gauss, unit = map(
    _CALLED.get, ("below", "bits24", "draw_gamma", "draw_poisson", "gauss", "unit")
)
