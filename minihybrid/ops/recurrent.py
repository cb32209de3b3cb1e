"""Recurrent networks: multilayer RNN, LSTM and GRU.

Uses:    data (T, N, C), time-major; all weights and biases in one array; the initial
         states (layers x directions, N, H).
Defines: `RNN`, stacked RNN, LSTM or GRU cells, which decompose into simpler operators: a loop
         in a graph, unrolled eagerly; and `_rnn_param_concat`, which packs their parameters.

The products with the inputs are one product over all steps; only those with the states
depend on the previous step.
Source:  gates and the order of gates and packed parameters follow MXNet 1.9 and cuDNN:
         weights of each layer and direction (inputs, states, projection), then biases.
Limits:  layers aren't pipelined.
"""

from minihybrid.core import hooks
from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    Spec,
    boolean,
    choice,
    count,
    finite,
    integer,
    optional,
    rate,
)
from minihybrid.ops.elementwise import cast, clip, relu, sigmoid, tanh, where, zeros_like
from minihybrid.ops.filled import arange, full, make
from minihybrid.ops.joining import concat, stack
from minihybrid.ops.layout import reshape, slice_axis, squeeze
from minihybrid.ops.neural import fully_connected
from minihybrid.ops.random import dropout
from minihybrid.ops.registry import OPS, register
from minihybrid.ops.shapes import common_dtype, floating, merge
from minihybrid.ops.tiling import split


# -- one step --------------------------------------------------------------------------
def _plain(function):
    def step(x, h, states, clipped):
        out = function(x + h)
        return out, [out]

    return step


def _lstm(x, h, states, clipped):
    i, f, c, o = split(x + h, num_outputs=4, axis=1)
    cell = clipped(sigmoid(f) * states[1] + sigmoid(i) * tanh(c))
    out = sigmoid(o) * tanh(cell)
    return out, [out, cell]


def _gru(x, h, states, clipped):
    (xr, xz, xn), (hr, hz, hn) = (split(v, num_outputs=3, axis=1) for v in (x, h))
    keep = sigmoid(xz + hz)
    out = (1.0 - keep) * tanh(xn + sigmoid(xr + hr) * hn) + keep * states[0]
    return out, [out]


# Cell type -> (number of gates, number of states, step function).
CELLS = {
    "rnn_relu": (1, 1, _plain(relu)),
    "rnn_tanh": (1, 1, _plain(tanh)),
    "lstm": (4, 2, _lstm),
    "gru": (3, 1, _gru),
}


# -- packed parameters -----------------------------------------------------------------
def packed(inputs, state_size, num_layers, bidirectional, mode, projection_size=None):
    """Return the shapes of the packed parameters, layer by layer: weights, then biases.

    Returns: a list of shapes (directions of a layer one after the other) of each.

    >>> packed(3, 2, 1, False, "rnn_tanh")
    ([[(2, 3), (2, 2)]], [[(2,), (2,)]])
    """
    rows, weights, biases = CELLS[mode][0] * state_size, [], []
    output_size = projection_size or state_size
    for _ in range(num_layers):
        for _ in range(1 + bidirectional):
            weights.append([(rows, inputs), (rows, output_size)])
            if projection_size:
                weights[-1].append((output_size, state_size))
            biases.append([(rows,), (rows,)])
        inputs = output_size * (1 + bidirectional)
    return weights, biases


def _size(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def _unpacked(parameters, shapes):
    """Split the parameters per (layer, direction) into weights and biases."""
    flat = [shape for part in shapes for group in part for shape in group]
    ends, at = [], 0
    for shape in flat:
        ends.append(at)
        at += _size(shape)
    parts = OPS["_split_v2"](parameters, indices=tuple(ends), axis=0)
    parts = iter([reshape(p, shape=s) for p, s in zip(parts, flat, strict=True)])
    return [[[next(parts) for _ in group] for group in part] for part in shapes]


# -- all steps -------------------------------------------------------------------------
def _product(x, weight, *bias, rows):
    return fully_connected(x, weight, *bias, num_hidden=rows, no_bias=not bias, flatten=False)


def _parts(values, n):
    """Split the first axis, of length n, into a list."""
    rows = (slice_axis(values, axis=0, begin=i, end=i + 1) for i in range(n))
    return [squeeze(row, axis=0) for row in rows]


def _run(data, order, states, params, cell, clipped, inside):
    """Run one direction of one layer; return (the outputs of all steps, the final states).

    order:   the step indices in execution order.
    params:  weights and biases of inputs and states; optionally the projection's weight.
    inside:  [the mask of active sequences at each step], or empty if all are active.
    """
    (to_gates, from_state, *project), (bias, state_bias), (gates, output_size) = params

    def step(row, states):
        x, *goes_on = row
        h = _product(states[0], from_state, state_bias, rows=gates)
        out, new = cell(x, h, states, clipped)
        if project:
            out = _product(out, *project, rows=output_size)
            new[0] = out
        for some in goes_on:
            new = [where(some, a, b) for a, b in zip(new, states, strict=True)]
            out = where(some, out, zeros_like(out))
        return out, new

    rows = [_product(data, to_gates, bias, rows=gates), *inside]
    return hooks.in_turns(step, rows, states, order) or _one_by_one(step, rows, states, order)


def _one_by_one(step, rows, states, order):
    """Unroll the steps: for arrays, or if no loop operator is registered."""
    rows = [_parts(x, len(order)) for x in rows]
    outs = {}
    for t in order:
        outs[t], states = step([x[t] for x in rows], states)
    return stack(*(outs[t] for t in range(len(order))), axis=0), states


def _expand(
    specs,
    data,
    parameters,
    *rest,
    state_size,
    num_layers,
    bidirectional,
    mode,
    p,
    state_outputs,
    projection_size,
    lstm_state_clip_min,
    lstm_state_clip_max,
    lstm_state_clip_nan,
    use_sequence_length,
    training,
):
    (time, batch, inputs), kind = specs[0]
    gates, n_states, cell = CELLS[mode]
    if kind != floating(kind):
        kind = floating(kind)
        data, parameters, *rest = (cast(v, dtype=kind) for v in (data, parameters, *rest))
    sides, output_size = 1 + bidirectional, projection_size or state_size
    shapes = packed(inputs, state_size, num_layers, bidirectional, mode, projection_size)
    weights, biases = _unpacked(parameters, shapes)
    lengths = (output_size, state_size)
    states = [
        _starts(state, spec, num_layers * sides, (batch, n), kind, data)
        for state, spec, n in zip(rest[:n_states], specs[2:], lengths, strict=False)
    ]
    inside = ()
    if use_sequence_length:
        ends = reshape(cast(rest[-1], dtype="float64"), shape=(1, -1, 1))
        step = make(data, arange, start=0, stop=time, dtype="float64")
        inside = [OPS["broadcast_greater"](ends, reshape(step, shape=(-1, 1, 1)))]

    def clipped(cell):
        if lstm_state_clip_min is None or lstm_state_clip_max is None:
            return cell
        return clip(cell, a_min=lstm_state_clip_min, a_max=lstm_state_clip_max)

    last, places = [], range(time)
    for layer in range(num_layers):
        if layer and p and training:
            data = dropout(data, p=p)
        outs = []
        for side in range(sides):
            k = layer * sides + side
            params = weights[k], biases[k], (gates * state_size, output_size)
            order = places[::-1] if side else places
            out, ends = _run(data, order, [s[k] for s in states], params, cell, clipped, inside)
            outs.append(out)
            last.append(ends)
        data = concat(*outs, dim=2) if bidirectional else outs[0]
    if not state_outputs:
        return data
    return (data, *(stack(*parts, axis=0) for parts in zip(*last, strict=True)))


def _starts(state, spec, layers, shape, kind, like):
    """Return each layer's initial states; a batch size of 0 means zeros."""
    if spec.shape[1] != shape[0]:
        return [make(like, full, shape=shape, value=0.0, dtype=kind)] * layers
    return _parts(state, layers)


# -- operator definitions --------------------------------------------------------------
def _inputs(attrs):
    names = ["data", "parameters", "state", "state_cell", "sequence_length"]
    if attrs and attrs["mode"] != "lstm":
        names.remove("state_cell")
    return tuple(names if not attrs or attrs["use_sequence_length"] else names[:-1])


def _count(attrs):
    return 1 + CELLS[attrs["mode"]][1] if attrs["state_outputs"] else 1


def _infer(specs, state_size, num_layers, bidirectional, mode, projection_size, **attrs):
    n_states = CELLS[mode][1]
    kind = common_dtype("RNN", specs[: 2 + n_states])
    outs = [Spec(None, floating(kind))] * (1 + n_states if attrs["state_outputs"] else 1)
    if projection_size and mode != "lstm":
        raise AttrError(f"RNN: mode='{mode}' has no projection; needed: mode='lstm' with it")
    if specs[0].shape is None:
        return [Spec(s.shape, kind) for s in specs[: 2 + n_states]] + specs[2 + n_states :], outs
    if len(specs[0].shape) != 3 or specs[0].shape[0] == 0:
        raise ShapeError(
            f"RNN: data has shape {specs[0].shape}, but (T, N, C) is needed: at least one step, "
            "sequences, numbers; a single sequence is x.expand_dims(1)"
        )
    time, batch, inputs = specs[0].shape
    output_size, sides = projection_size or state_size, 1 + bidirectional
    if inputs < 0:
        size = -1
    else:
        shapes = packed(inputs, state_size, num_layers, bidirectional, mode, projection_size)
        size = sum(_size(s) for part in shapes for group in part for s in group)
    expected = {"parameters": (size,)}
    lengths = (output_size, state_size)[:n_states]
    for name, n, spec in zip(("state", "state_cell"), lengths, specs[2:], strict=False):
        empty = spec.shape is not None and len(spec.shape) == 3 and spec.shape[1] == 0
        expected[name] = (num_layers * sides, 0 if empty else batch, n)
    if attrs["use_sequence_length"]:
        expected["sequence_length"] = (batch,)
    owner = f"RNN: with data {specs[0].shape} and state_size={state_size}"
    shapes = [
        merge(owner, name, spec.shape, shape)
        for (name, shape), spec in zip(expected.items(), specs[1:], strict=True)
    ]
    kinds = [kind] * (1 + n_states) + [s.dtype for s in specs[2 + n_states :]]
    ins = [specs[0], *map(Spec, shapes, kinds)]
    outs = [(time, batch, sides * output_size)]
    if attrs["state_outputs"]:
        outs += [(num_layers * sides, batch, n) for n in lengths]
    return [Spec(ins[0].shape, kind), *ins[1:]], [Spec(shape, floating(kind)) for shape in outs]


rnn = register(
    "RNN",
    inputs=_inputs,
    modal=True,
    n_outputs=_count,
    infer=_infer,
    expand=_expand,
    attrs={
        "state_size": (count, REQUIRED),
        "num_layers": (count, REQUIRED),
        "bidirectional": (boolean, False),
        "mode": (choice(*CELLS), REQUIRED),
        "p": (rate, 0.0),
        "state_outputs": (boolean, False),
        "projection_size": (optional(count), None),
        "lstm_state_clip_min": (optional(finite), None),
        "lstm_state_clip_max": (optional(finite), None),
        "lstm_state_clip_nan": (boolean, False),
        "use_sequence_length": (boolean, False),
    },
    doc="Recurrent layers over whole sequences (T, N, C) -> (T, N, H), packed parameters.",
)


param_concat = register(
    "_rnn_param_concat",
    variadic=True,
    attrs={"dim": (integer, 1)},
    infer=concat.infer,
    expand=lambda specs, *data, dim: concat(*data, dim=dim),
    doc="Join the flat parameters of recurrent layers, as `RNN` takes them.",
)
