"""Operands of `mx.np`'s functions: scalars beside arrays, and dtypes.

Defines: `pair`, a binary operation whose operand may be a scalar; `beside`, a scalar as an
         operand; `promote`, the dtype of a result; `in_dtype`, NumPy's `dtype=`.

Not supported: scalars of more than 64 bits.
"""

import numpy as onp

from minihybrid.core.convert import dtype_of
from minihybrid.core.op import DTypeError, HybridError
from minihybrid.np.public import kind_of
from minihybrid.ops import OPS
from minihybrid.ops.infix import Value, is_number, refuse_parameter, said_by
from minihybrid.ops.np.names import is_whole, with_number

BOOLS = bool, onp.bool_
MIRROR = {  # the comparison with swapped operands: x > 2 is 2 < x
    "greater": "less",
    "less": "greater",
    "greater_equal": "less_equal",
    "less_equal": "greater_equal",
}


def pair(name, title=None):
    """Return (apply, apply reversed) for a binary operation; an operand may be a scalar.

    title:   the prefix of errors, by default the name.
    """
    title = title or name
    both = OPS[f"_npi_{name}"]
    by = OPS.get(f"_npi_{name}_scalar")
    from_ = OPS.get(f"_npi_r{name}_scalar") or OPS.get(f"_npi_{MIRROR.get(name, name)}_scalar")

    def method(with_scalar, is_reversed):
        def apply(self, other):
            try:
                if not isinstance(other, Value):
                    if with_scalar and is_number(other) and not isinstance(other, BOOLS):
                        return with_scalar(self, scalar=other, is_int=is_whole(other))
                    other = beside(self, other, title)
                return both(other, self) if is_reversed else both(self, other)
            except HybridError as error:
                said_by(title, error)
                raise

        return apply

    return method(by, False), method(from_, True)


def beside(value, other, name):
    """Convert a scalar or a NumPy array to an operand for another value.

    A scalar's dtype depends on that value (`with_number`).
    """
    if not is_number(other):
        refuse_parameter(other, name)
        return value.convert(other, name)
    full, kind = OPS["_npi_full_like"], kind_of(value)
    if isinstance(other, BOOLS):
        return full(value, fill_value=other)
    if kind is not None:
        kind = with_number(kind, other, is_whole(other))
        return full(value, fill_value=other, dtype=kind)
    zeros = full(value, fill_value=0)  # a symbol; the sum infers its dtype at bind time
    return OPS["_npi_add_scalar"](zeros, scalar=other, is_int=is_whole(other))


def promote(value, *numbers):
    """Promote the value to its result dtype with these scalars; `None` is ignored."""
    for number in numbers:
        kind = kind_of(value)
        if number is None or isinstance(number, BOOLS) or kind is not None and kind.kind in "fV":
            continue
        is_int = is_whole(number)
        if kind is None or with_number(kind, number, is_int) != kind:
            value = OPS["_npi_multiply_scalar"](value, scalar=1, is_int=is_int)
    return value


def in_dtype(name, function, dtype, *values):
    """Return a function's result in a dtype: NumPy's `dtype=`.

    Raises:  DTypeError if the values have another kind, or the function can't return
             this dtype.
    """
    dtype = dtype_of(f"np.{name}", dtype)
    for value in values:
        kind = kind_of(value) if isinstance(value, Value) and dtype.kind != "b" else None
        if kind is not None and not onp.can_cast(kind, dtype, "same_kind"):
            raise DTypeError(
                f"np.{name}: dtype={dtype} is of another kind than the {kind} of the input; "
                f"convert it before, by astype('{dtype}')"
            )
    if dtype.kind == "b":  # a comparison: its inputs keep their dtypes
        out = function(*values)
    else:
        out = function(
            *(OPS["Cast"](v, dtype=dtype) if isinstance(v, Value) else v for v in values)
        )
    result_dtype = kind_of(out)
    if result_dtype not in (None, dtype):
        raise DTypeError(
            f"np.{name}: dtype={dtype} is given, but the result is {result_dtype}; convert it "
            f"afterwards, by astype('{dtype}')"
        )
    return out
