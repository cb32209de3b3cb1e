"""Sequences for recurrent cells: one array, or a list of steps.

Uses:    arrays (N, T, C) or (T, N, C), according to the layout, or lists of T arrays (N, C).
Defines: `listed`, `merged`, `masked`, `backwards`, `started`, `outputs_as`.

Not supported: steps with several arrays.
"""

import functools
import inspect

from minihybrid.core import nd, sym
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError, ShapeError, unfit
from minihybrid.core.sym import Symbol


def world(values):
    """Return `nd` or `sym`, according to the values."""
    first = values[0] if isinstance(values, (list, tuple)) else values
    return sym if isinstance(first, Symbol) else nd


def is_whole(values):
    """Return whether a sequence is one array."""
    return isinstance(values, (NDArray, Symbol))


def axis_of_time(layout):
    """Return the time axis.

    Raises:  AttrError for a layout other than NTC and TNC.
    """
    if layout not in ("NTC", "TNC"):
        raise AttrError(f"unroll: layout={layout!r:.40} is unknown; needed: 'NTC' or 'TNC'")
    return layout.index("T")


def listed(inputs, length, layout):
    """Return a sequence as a list of steps (N, C).

    Raises:  ShapeError if it doesn't have `length` steps.
    """
    axis = axis_of_time(layout)
    if not is_whole(inputs):
        if not isinstance(inputs, (list, tuple)) or not inputs or not all(map(is_whole, inputs)):
            need = "an array, or a list of the steps' arrays is needed"
            raise unfit("unroll", "inputs", inputs, need)
        if length is not None and len(inputs) != length:
            raise ShapeError(f"unroll: length={length}, but there are {len(inputs)} steps")
        return list(inputs)
    if isinstance(inputs, NDArray) and inputs.shape[axis] != length:
        raise ShapeError(
            f"unroll: length={length}, but the inputs {inputs.shape} with layout {layout} have "
            f"{inputs.shape[axis]} steps"
        )
    parts = world(inputs).split(inputs, num_outputs=length, axis=axis, squeeze_axis=True)
    return [parts] if length == 1 else list(parts)


def merged(steps, layout):
    """Return a sequence as one array."""
    if is_whole(steps):
        return steps
    return world(steps).stack(*steps, axis=axis_of_time(layout))


def outputs_as(outputs, length, layout, merge):
    """Return the outputs as a list (merge=False), as one array (True), or unchanged."""
    if merge is None:
        return outputs
    return merged(outputs, layout) if merge else listed(outputs, length, layout)


def masked(outputs, valid_length, layout):
    """Return one array, with zeros after the end of each sequence."""
    whole = merged(outputs, layout)
    return world(whole).SequenceMask(
        whole, valid_length, use_sequence_length=True, axis=axis_of_time(layout)
    )


def backwards(steps, valid_length):
    """Reverse the steps, but leave the padding after a sequence's end in place."""
    if valid_length is None:
        return list(reversed(steps))
    F = world(steps)
    whole = F.SequenceReverse(F.stack(*steps, axis=0), valid_length, use_sequence_length=True)
    return listed(whole, len(steps), "TNC")


def started(cell, states, steps):
    """Return the given initial states, or zeros for the batch size."""
    if states is not None:
        return [states] if is_whole(states) else list(states)
    first = steps[0]
    if isinstance(first, NDArray):
        like = {"ctx": first.context, "dtype": first.dtype}
        return cell.begin_state(batch_size=first.shape[0], func=nd.zeros, **like)
    column = sym.slice_axis(sym.zeros_like(first), axis=1, begin=0, end=1)
    return cell.begin_state(
        func=lambda shape: sym.broadcast_axis(column, axis=1, size=shape[1])
    )  # a graph works for all batch sizes


def made_states(infos, func, prefix, numbers, kwargs):
    """Create states by a function such as `nd.zeros` or `sym.var`, with arguments it accepts."""
    accepted = parameters_of(func)
    takes_all = any(kind is inspect.Parameter.VAR_KEYWORD for kind in accepted.values())
    states = []
    for info, number in zip(infos, numbers, strict=False):
        options = {"name": f"{prefix}{number}", **info, **kwargs}
        options = {k: v for k, v in options.items() if takes_all or k in accepted or k in kwargs}
        states.append(func(**options))
    return states


@functools.lru_cache(maxsize=8)  # each call without states inspects nd.zeros
def parameters_of(func):
    """Return name -> kind of a function's parameters."""
    return {p.name: p.kind for p in inspect.signature(func).parameters.values()}
