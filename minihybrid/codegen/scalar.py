"""Chapter 12. What generated kernels are made of that neither Numba nor C has.

Takes:   numbers.
Gives:   the compiler's options; the bits of a number; polynomials; and the functions
         of `device`, compiled: `cbrt`, `sigmoid`, `unit` and others.

What is left out: float32, whose functions are in `polynomial` and `angle`.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from minihybrid.codegen.device import compiled

# Never nnan or ninf: they are numbers. Nor arcp: 1 / sqrt(0) would be NaN. Nor afn: the
# power of a whole number would be a call that no library has, which ends the process.
FAST = {"reassoc", "contract", "nsz"}
OPTIONS = {"error_model": "numpy", "fastmath": FAST}
# For functions whose rounding errors cancel on purpose: (u - 1) - x must not be
# simplified.
EXACT = {"error_model": "numpy", "fastmath": {"contract"}}
# For functions that become part of a loop, which only then is computed in vectors.
INLINE = EXACT | {"forceinline": True}


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
            return builder.select(is_nan, builder.xor(last, bits.type(nan)),
                                  _turned(builder, bits))
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
            builder.module, ir.FunctionType(kind, [kind] * 2), name)
        return builder.call(function, args)
    return size(size, number), codegen


@intrinsic
def root(typing, number):
    """The square root, NaN of a negative number, without C's note of an error."""
    def codegen(context, builder, signature, args):
        kind = args[0].type
        name = f"llvm.sqrt.{kind.intrinsic_name}"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind]), name)
        return builder.call(function, args)
    return number(number), codegen


@intrinsic
def settled(typing, number):
    """The number itself, computed where it stands.

    Without this, LLVM makes x / y of x * (1 / y), a division for each x.
    """
    def codegen(context, builder, signature, args):
        kind = args[0].type
        name = f"llvm.arithmetic.fence.{kind.intrinsic_name}"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind]), name)
        return builder.call(function, args)
    return number(number), codegen


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


tgamma = types.ExternalFunction("tgamma", types.float64(types.float64))


@njit(**EXACT)
def gamma(x):
    """The gamma function, from the C library; Numba's own lives in Numba."""
    return tgamma(float(x))


# A sigmoid becomes part of a loop; the others stay calls.
sigmoid = compiled(njit(**INLINE))["sigmoid"]
_CALLED = compiled(njit(**EXACT), gamma=gamma)
cbrt, erfinv, polygamma = map(_CALLED.get, ("cbrt", "erfinv", "polygamma"))
whole_div, whole_mod, whole_power = map(
    _CALLED.get, ("whole_div", "whole_mod", "whole_power"))
below, bits24, draw_gamma, draw_poisson, gauss, unit = map(
    _CALLED.get, ("below", "bits24", "draw_gamma", "draw_poisson", "gauss", "unit"))
