"""CTC loss: connectionist temporal classification.

Uses:    scores (T, N, C) of C labels, one of them the blank, in each of T steps; N sequences.
Defines: `CTCLoss`: the negative log-probability of each label sequence, which sums over all
         alignments. A label may last for several steps, and blanks may separate labels;
         between equal labels, a blank is required.

The sequence "ab" has five states: blank a blank b blank. From one step to the next, a path
stays in its state, moves to the next one, or skips a blank between two different labels:

    a a - b,  - a b b,  a b - -        three of the paths for "ab" in four steps

`_log_paths` sums all paths that lead to a state (Graves' alpha), in log space. Each state's sum
has three incoming shares, and the backward pass traverses the transitions in reverse with these
as weights: `_carried`, which is linear, so that its gradient is `_carried` in the opposite
direction. So derivatives of any order exist.
Source:  Graves et al., Connectionist Temporal Classification (2006), section 4.1.
Not supported: decoding (beam search).
"""

import numpy as np

from minihybrid.core.op import REQUIRED, ShapeError, Spec, boolean, choice
from minihybrid.ops.elementwise import block_grad, cast, exp, log, where, zeros_like
from minihybrid.ops.filled import arange, full, make
from minihybrid.ops.indexing import pick, take_along
from minihybrid.ops.joining import concat, stack
from minihybrid.ops.layout import expand_dims, reshape, slice_axis
from minihybrid.ops.loops import T, each, loops
from minihybrid.ops.neural import log_softmax, softmax
from minihybrid.ops.ordering import running_sum
from minihybrid.ops.reduce import sum_
from minihybrid.ops.registry import register
from minihybrid.ops.sequence import sequence_last, sequence_mask
from minihybrid.ops.shapes import floating, known, merge
from minihybrid.ops.tiling import broadcast_axis, frame


def never(dtype):
    """Return a finite stand-in for log(0): unlike -inf, subtracting it from itself is 0."""
    return float(np.finfo(floating(dtype)).min) / 4


def _infer(name, rule, more=()):
    """Return the shape rule of inputs (T, N, S) and `rule(T, N, S)`."""

    def infer(specs, **_):
        (shape, kind), beside = specs[0], specs[1].shape
        if not known(specs):
            return specs, [Spec(None, floating(kind))]
        if len(shape) != 3 or beside != rule(*shape):
            raise ShapeError(
                f"{name}: {shape} and {beside} do not go together; needed: steps, words, states "
                f"(T, N, S), and {rule('T', 'N', 'S')}".replace("'", "")
            )
        return specs, [Spec((*shape, *more), floating(kind))]

    return infer


# -- sums over paths to a state --------------------------------------------------------
def _paths_eager(data, skip):
    data = data.astype(floating(data.dtype), copy=False)
    least = data.dtype.type(never(data.dtype))
    came = np.full((3, *data.shape[1:]), least)
    came[0, :, :2] = 0
    out = np.empty_like(data)
    for t, scores in enumerate(data):
        top = came.max(axis=0)
        out[t] = np.maximum(top + np.log(np.exp(came - top).sum(axis=0)) + scores, least)
        wide = np.pad(out[t], ((0, 0), (2, 0)), constant_values=least)
        came[:] = wide[:, 2:], wide[:, 1:-1], np.where(skip != 0, wide[:, :-2], least)
    return out


@loops(lambda data, skip, out: (*out.shape, never(out.dtype)))
def _paths_loops(data, skip, out, time, batch, states, least):
    """Also used on a GPU, with one thread per sequence: steps are sequential."""
    for n in each(batch):
        for t in range(time):
            for s in range(states):
                at = (t * batch + n) * states + s
                old = at - batch * states
                stay = out[old] if t > 0 else T(0) if s < 2 else T(least)
                go = out[old - 1] if t > 0 and s > 0 else T(least)
                leap = T(least)
                if t > 0 and s > 1:
                    leap = out[old - 2] if skip[n * states + s] != 0 else T(least)
                top = stay if stay > go else go
                top = leap if leap > top else top
                ways = np.exp(stay - top) + np.exp(go - top) + np.exp(leap - top)
                total = top + np.log(ways) + T(data[at])
                out[at] = T(least) if total < T(least) else total


log_paths = register(
    "_log_paths",
    inputs=("data", "skip"),
    infer=_infer("_log_paths", lambda steps, *rest: rest),
    eager=_paths_eager,
    cpu=_paths_loops,
    grad=lambda g, out, data, skip: (carried(g, shares(out, skip), back=True), None),
    doc="The logarithm of the sum over all ways to each state, from the scores (T, N, S) of "
    "single states; where `skip` (N, S) is not 0, the state may be reached by a leap.",
)


# -- incoming shares -------------------------------------------------------------------
def _before(data, value):
    """Return the data shifted by 0, 1 and 2 states: three arrays."""
    wide = frame(data, pad_width=(0, 0, 0, 0, 2, 0), value=value)
    return [slice_axis(wide, axis=2, begin=2 - k, end=-k or None) for k in range(3)]


def _shares_expand(specs, paths, skip):
    least = never(specs[0].dtype)
    stay, go, leap = _before(cast(paths, dtype=floating(specs[0].dtype)), least)
    skip = broadcast_axis(expand_dims(skip, axis=0), axis=0, size=specs[0].shape[0])
    return softmax(stack(stay, go, where(skip, leap, zeros_like(leap) + least), axis=3), axis=3)


shares = register(
    "_path_shares",
    inputs=("paths", "skip"),
    infer=_infer("_path_shares", lambda steps, *rest: rest, more=(3,)),
    expand=_shares_expand,
    doc="Of all ways to a state in the next step, which part comes from the same state, from "
    "the one before, and by a leap: (T, N, S) -> (T, N, S, 3).",
)


def _carried_eager(data, shares, *, back):
    out = np.array(data, floating(data.dtype))
    time, _, states = out.shape
    for t in range(1, time):
        here, there = (time - 1 - t, time - t) if back else (t, t - 1)
        for k in range(min(3, states)):
            share = shares[min(here, there), :, k:, k]
            if back:
                out[here, :, : states - k] += share * out[there, :, k:]
            else:
                out[here, :, k:] += share * out[there, :, : states - k]
    return out


@loops(lambda data, shares, out, back: (*out.shape, back))
def _carried_loops(data, shares, out, time, batch, states, back):
    for n in each(batch):
        for step in range(time):
            t = time - 1 - step if back else step
            for s in range(states):
                at = (t * batch + n) * states + s
                old = at - batch * states
                total = T(data[at])
                for k in range(3):
                    if back:
                        if step > 0 and s + k < states:
                            there = at + batch * states + k
                            total += T(shares[(at + k) * 3 + k]) * out[there]
                    elif step > 0 and s >= k:
                        total += T(shares[old * 3 + k]) * out[old - k]
                out[at] = total


def _carried_grad(g, out, data, shares, back):
    """A share's gradient is its source state's value times its target's cotangent."""
    other = carried(g, shares, back=not back)
    reached, left = (other, out) if back else (out, other)
    later = slice_axis(frame(left, pad_width=(0, 1, 0, 0, 0, 0)), axis=0, begin=1, end=None)
    return other, stack(*(part * later for part in _before(reached, 0.0)), axis=3)


carried = register(
    "_carried",
    inputs=("data", "shares"),
    infer=_infer("_carried", lambda *shape: (*shape, 3)),
    eager=_carried_eager,
    cpu=_carried_loops,
    grad=_carried_grad,
    attrs={"back": (boolean, REQUIRED)},
    doc="The data (T, N, S), and what each step gets from the step before: the states' numbers, "
    "times their shares (T, N, S, 3); `back` walks the same ways from the last step.",
)


# -- the loss --------------------------------------------------------------------------
def _inputs(attrs):
    names = ["data", "label", "data_lengths", "label_lengths"]
    return tuple(n for n in names if not attrs or attrs.get(f"use_{n}", True))


def _ctc_infer(specs, **attrs):
    data, label, *lengths = specs
    kind = floating(data.dtype)
    if not known(specs[:1]):
        return specs, [Spec(None, kind)]
    if len(data.shape) != 3 or not data.shape[0] or not data.shape[2]:
        raise ShapeError(
            f"CTCLoss: data has shape {data.shape}, but (T, N, C) is needed: steps, words, and "
            "characters with the blank"
        )
    time, batch, _ = data.shape
    owner = f"CTCLoss: with data {data.shape}"
    words = merge(owner, "label", label.shape, (batch, -1))
    if words[1] == 0 or words[1] > time:
        raise ShapeError(
            f"{owner}: label has shape {words}, but words of 1 to {time} characters are needed, "
            "for each takes a step at least"
        )
    names = _inputs(attrs)[2:]
    lengths = [
        Spec(merge(owner, name, spec.shape, (batch,)), spec.dtype)
        for name, spec in zip(names, lengths, strict=True)
    ]
    return [data, Spec(words, label.dtype), *lengths], [Spec((batch,), kind)]


def _with_blanks(between, characters, shape):
    """(N, L) -> (N, 2 L + 1): `between` before, between and after the characters."""
    batch, length = shape
    blanks = make(characters, full, shape=shape, value=between, dtype="int32")
    pairs = reshape(stack(blanks, characters, axis=2), shape=(-1, 2 * length))
    return concat(pairs, slice_axis(blanks, axis=1, begin=0, end=1), dim=1)


def _ctc_expand(specs, data, label, *lengths, use_data_lengths, use_label_lengths, blank_label):
    (time, batch, characters), kind = specs[0]
    blank, padding = (0, 0) if blank_label == "first" else (characters - 1, -1)
    wide = np.dtype("float64") if kind == np.float64 else np.dtype("float32")
    shape = specs[1].shape
    label, *lengths = (cast(v, dtype="int32") for v in (label, *lengths))
    if use_label_lengths:
        count = lengths[-1].clip(0, shape[1])
    else:
        count = sum_(running_sum(label == padding, axis=1) == 0, axis=1)

    # The states, and which of them a path may reach by a skip
    first = make(label, full, shape=(batch, 1), value=1, dtype="int32")
    later = slice_axis(label, axis=1, begin=1, end=None)
    differs = concat(first, later != slice_axis(label, axis=1, begin=0, end=-1), dim=1)
    skip = _with_blanks(0, differs * (label != blank), shape)
    states = expand_dims(_with_blanks(blank, label, shape), axis=0)
    states = broadcast_axis(states, axis=0, size=time)

    # Sums over all paths; valid ones end at the last label or the blank after it
    ends = lengths[:use_data_lengths]
    steps = cast(data, dtype=wide)
    if ends:  # keep later steps, NaN included, out of the gradient
        steps = sequence_mask(steps, *ends, use_sequence_length=True)
    paths = log_paths(take_along(log_softmax(steps, axis=2), states, axis=2), skip)
    last = sequence_last(paths, *ends, use_sequence_length=use_data_lengths)
    after, at = pick(last, count * 2), pick(last, count * 2 - 1)
    at = where(count, at, zeros_like(at) + never(wide))
    top = block_grad(after.broadcast_maximum(at))
    loss = -(top + log(exp(after - top) + exp(at - top)))

    # Sequences that need more than the available steps have loss 0, as in MXNet
    places = make(label, arange, stop=shape[1], start=0, dtype="int32")
    inside = expand_dims(places, axis=0).broadcast_lesser(expand_dims(count, axis=1))
    needed = sum_((2 - differs) * inside, axis=1)
    fits = needed <= (ends[0] if ends else time)
    return cast(where(fits, loss, zeros_like(loss)), dtype=floating(kind))


ctc_loss = register(
    "CTCLoss",
    "ctc_loss",
    "_contrib_CTCLoss",
    "_contrib_ctc_loss",
    inputs=_inputs,
    infer=_ctc_infer,
    expand=_ctc_expand,
    attrs={
        "use_data_lengths": (boolean, False),
        "use_label_lengths": (boolean, False),
        "blank_label": (choice("first", "last"), "first"),
    },
    doc="-log of the probability of each word (N, L), from scores (T, N, C). The blank is the "
    "first character, and 0 ends shorter words, or the last one, and -1 does.",
)
