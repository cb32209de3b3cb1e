"""Chapter 33. bfloat16: stored in 16 bits, computed in float32.

Takes:   an operator with inputs or attributes of this dtype.
Gives:   `bfloat16`, the dtype; `specs_of`, a shape rule; `in_float32`, an operator between casts.

No operator handles bfloat16: casts convert its inputs to float32 and round its outputs once,
to nearest, ties to even. The outputs' dtypes follow the operator's rule for float16.
Left out: products that load bfloat16 without a float32 copy.
"""

import numpy as np

from minihybrid.core.op import HybridError, NumberError, Spec
from minihybrid.ops.elementwise import cast

HALF, SINGLE = np.dtype("float16"), np.dtype("float32")


def bfloat16():
    """Return the dtype, which ml_dtypes adds to NumPy.

    Its `kind` is "V"; no other dtype in the engine has this kind.
    Raises:  HybridError without ml_dtypes.

    >>> bfloat16()
    dtype(bfloat16)
    """
    try:
        from ml_dtypes import bfloat16 as scalar
    except ImportError:
        raise HybridError(
            "bfloat16: NumPy has no such dtype, but the package ml_dtypes adds it; install it "
            "with `pip install ml_dtypes`, or choose float16 or float32"
        ) from None
    return np.dtype(scalar)


def _swapped(specs, attrs, old, new):
    """Return specs and attributes with one dtype replaced by another."""
    specs = [Spec(s.shape, new) if s.dtype is not None and s.dtype == old else s for s in specs]
    kinds = {k: new for k, v in attrs.items() if isinstance(v, np.dtype) and v == old}
    return specs, attrs | kinds


def specs_of(op, ins, attrs):
    """Return the specs by the rule for float16, or for float32 if float16 is an input as well."""
    bf16, dtypes = bfloat16(), [s.dtype for s in ins]
    is_mixed = HALF in [*dtypes, *(v for v in attrs.values() if isinstance(v, np.dtype))]
    for other in (SINGLE,) if is_mixed else (HALF, SINGLE):
        try:
            new, outs = op.specs_of(*_swapped(ins, attrs, bf16, other))
            break
        except HybridError as error:
            if other == SINGLE or not isinstance(error, NumberError):  # of 70,000, say
                raise type(error)(str(error).replace(other.name, bf16.name)) from None
    back = _swapped(new, {}, other, bf16)[0]
    back = [Spec(s.shape, s.dtype if d is None else d) for s, d in zip(back, dtypes, strict=True)]
    return back, outs if is_mixed else _swapped(outs, {}, other, bf16)[0]


def in_float32(op, specs, inputs, attrs, training):
    """Apply the operator to float32 and round the outputs that its rule makes bfloat16."""
    bf16, outs = bfloat16(), op.specs_of(specs, attrs)[1]
    inputs = [
        cast(v, dtype=SINGLE) if s.dtype == bf16 else v for v, s in zip(inputs, specs, strict=True)
    ]
    specs, attrs = _swapped(specs, attrs, bf16, SINGLE)
    out = op.expanded(specs, inputs, attrs, training) if op.expand else op(*inputs, **attrs)
    values = [*out] if op.aux or len(outs) > 1 else [out]  # new states follow the outputs
    for i, spec in enumerate(outs):
        if spec.dtype == bf16:
            values[i] = cast(values[i], dtype=bf16)
    return tuple(values) if len(values) > 1 else values[0]
