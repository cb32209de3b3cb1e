"""Padded sequences: `SequenceMask`, `SequenceLast`, `SequenceReverse`.

Data is (T, N, ...) or, with axis=1, (N, T, ...), with N lengths; without
`use_sequence_length`, every sequence has length T. All three compare time indices with the
lengths; none needs a kernel.
Not supported: packed sequences.
"""

from minihybrid.core.op import ShapeError, boolean, integer, number
from minihybrid.ops.elementwise import cast, where
from minihybrid.ops.filled import arange, full, make
from minihybrid.ops.indexing import take
from minihybrid.ops.layout import reshape, slice_axis, swapaxes
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import as_codes, forward
from minihybrid.ops.tiling import reverse

LENGTHS = {"use_sequence_length": (boolean, False), "axis": (integer, 0)}


def _inputs(attrs):
    short = attrs and not attrs["use_sequence_length"]
    return ("data",) if short else ("data", "sequence_length")


def _check(name, old, lengths, axis):
    if axis not in (0, 1) or len(old) < 2:
        raise ShapeError(
            f"{name}: data {old} with axis={axis}, but (T, N, ...) with "
            "axis=0 or (N, T, ...) with axis=1 is needed"
        )
    if lengths not in ((), ((old[1 - axis],),)):
        raise ShapeError(
            f"{name}: sequence_length has shape {lengths[0]}, but one "
            f"length for each of {old[1 - axis]} sequences is needed"
        )


def _sequence(name, expand, doc, attrs=LENGTHS, rule=lambda old, axis: old):
    """Register an operator on sequences."""

    def checked(old, *lengths, axis, **_):
        _check(name, old, lengths, axis)
        return rule(old, axis)

    infer = forward(checked)
    return register(name, inputs=_inputs, infer=infer, expand=expand, attrs=attrs, doc=doc)


def _times(data, shape, axis):
    """Return 0, 1, ... T - 1 along the time axis."""
    places = make(data, arange, start=0, stop=shape[axis], dtype="int64")
    return reshape(places, shape=(-1, 1) if axis == 0 else (1, -1))


def _lengths(length, axis):
    """Return the lengths as integers along the batch axis."""
    return reshape(cast(length, dtype="int64"), shape=(1, -1) if axis == 0 else (-1, 1))


def _mask_expand(specs, data, *length, use_sequence_length, axis, value):
    if not length:
        return data
    old, kind = specs[0]
    inside = _times(data, old, axis).broadcast_lesser(_lengths(*length, axis))
    inside = reshape(inside, shape=as_codes((*old[:2], *(1 for _ in old[2:]))))
    filled = make(data, full, shape=(1,) * len(old), value=value, dtype=kind)
    return where(inside, data, filled)


def _at(data, old, places):
    """Return data[places[i, j], j]: gather in time, separately per sequence, time first."""
    time, count, *rest = old
    numbers = reshape(make(data, arange, start=0, stop=count, dtype="int64"), shape=(1, -1))
    rows = reshape(data, shape=as_codes((time * count, *rest)))
    return take(rows, (places * count).broadcast_add(numbers))


def _time_first(specs, data, axis):
    """Return the data and its shape with time as the first axis."""
    old = specs[0].shape
    if axis == 0:
        return data, old
    return swapaxes(data, dim1=0, dim2=1), (old[1], old[0], *old[2:])


def _last_expand(specs, data, *length, use_sequence_length, axis):
    new = as_codes(_without_time(specs[0].shape, axis))
    if not length:
        return reshape(slice_axis(data, axis=axis, begin=-1, end=None), shape=new)
    data, old = _time_first(specs, data, axis)
    return reshape(_at(data, old, _lengths(*length, 0) - 1), shape=new)


def _without_time(old, axis):
    return (*old[:axis], *old[axis + 1 :])


def _reverse_expand(specs, data, *length, use_sequence_length, axis):
    if not length:
        return reverse(data, axis=axis)
    data, old = _time_first(specs, data, axis)
    times, lengths = _times(data, old, 0), _lengths(*length, 0)
    back = (lengths - 1).broadcast_sub(times)
    out = _at(data, old, where(back >= 0, back, times))
    return out if axis == 0 else swapaxes(out, dim1=0, dim2=1)


sequence_mask = _sequence(
    "SequenceMask",
    _mask_expand,
    "The sequences, and one value after their ends.",
    attrs=LENGTHS | {"value": (number, 0.0)},
)
sequence_last = _sequence(
    "SequenceLast", _last_expand, "The last element of each sequence.", rule=_without_time
)
sequence_reverse = _sequence(
    "SequenceReverse",
    _reverse_expand,
    "Each sequence from back to front; what comes after its end stays.",
)
