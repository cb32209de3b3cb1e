"""Bounding boxes: overlap, non-maximum suppression, matching and encoding.

Uses:    boxes (..., 4) as corners x1, y1, x2, y2, or as centers x, y, width, height.
Defines: `box_iou`, `box_nms`, `bipartite_matching`, `box_encode`, `box_decode`.

Two primitives are sequential greedy algorithms: suppression, and the matching of rows with
columns. The rest decomposes into sorting, gathering and arithmetic, so the gradient of
`box_nms` flows to the rows that it keeps.
Not supported: rotated boxes.
"""

import math

import numpy as np

from minihybrid.core.op import REQUIRED, ShapeError, Spec, boolean, choice, finite, integer
from minihybrid.ops.elementwise import block_grad, cast, choose
from minihybrid.ops.filled import arange, full, make
from minihybrid.ops.indexing import place, places, take, take_along
from minihybrid.ops.joining import concat, stack
from minihybrid.ops.layout import reshape, slice_axis
from minihybrid.ops.loops import T, each, loops
from minihybrid.ops.ordering import order
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import as_codes, floating, known, merge

FORMAT = choice("corner", "center")


# -- shared helpers --------------------------------------------------------------------
def columns(data, start=0, count=4):
    """Split the last axis into columns (..., 1)."""
    return [slice_axis(data, axis=-1, begin=i, end=i + 1) for i in range(start, start + count)]


def corners_of(boxes, form="corner"):
    """Convert columns in a format to columns x1, y1, x2, y2."""
    a, b, c, d = boxes
    return [a, b, c, d] if form == "corner" else [a - c / 2, b - d / 2, a + c / 2, b + d / 2]


def centers_of(boxes):
    """Convert columns of corners to columns x, y, width, height."""
    a, b, c, d = boxes
    return [(a + c) / 2, (b + d) / 2, c - a, d - b]


def area_of(boxes, form="corner"):
    """Return width times height; 0 where one of them is negative."""
    a, b, c, d = boxes
    return c.relu() * d.relu() if form == "center" else (c - a).relu() * (d - b).relu()


def in_floats(op, rule, n_outputs=1):
    """Return an inference rule from a function of all input shapes that returns the output
    shapes; integer boxes have float outputs."""

    def infer(specs, **attrs):
        kind = floating(specs[0].dtype)
        new = rule(op, *(s.shape for s in specs), **attrs) if known(specs) else [None] * n_outputs
        return specs, [Spec(shape, kind) for shape in new]

    return infer


def flat_places(like, rows, batch, n):
    """Convert indices into rows of n, for each of `batch` rows, to flat indices."""
    first = make(like, arange, start=0, stop=batch, dtype="int64") * n
    return rows.broadcast_add(reshape(first, shape=(-1, 1)))


# -- overlap ---------------------------------------------------------------------------
def _iou_rule(op, lhs, rhs, format):
    if min(len(lhs), len(rhs)) < 2 or lhs[-1] != 4 or rhs[-1] != 4:
        raise ShapeError(f"{op}: boxes of shapes {lhs} and {rhs}, but (..., n, 4) are needed")
    return [(*lhs[:-1], *rhs[:-1])]


def _iou_expand(specs, lhs, rhs, format):
    kind = floating(specs[0].dtype)
    sides = []
    for data, shape in ((lhs, (-1, 1)), (rhs, (1, -1))):
        sides.append([reshape(c, shape=shape) for c in columns(block_grad(cast(data, dtype=kind)))])
    (ax, ay, au, av), (bx, by, bu, bv) = (corners_of(side, format) for side in sides)
    wide = au.broadcast_minimum(bu).broadcast_sub(ax.broadcast_maximum(bx))
    high = av.broadcast_minimum(bv).broadcast_sub(ay.broadcast_maximum(by))
    both = wide.relu() * high.relu()
    a, b = (area_of(side, format) for side in sides)
    union = a.broadcast_add(b) - both
    # Disjoint boxes have IoU 0, even if both are empty.
    share = both / choose(union <= 0, union.ones_like(), union)
    return reshape(share, shape=as_codes((*specs[0].shape[:-1], *specs[1].shape[:-1])))


box_iou = register(
    "_contrib_box_iou",
    inputs=("lhs", "rhs"),
    attrs={"format": (FORMAT, "corner")},
    infer=in_floats("_contrib_box_iou", _iou_rule),
    expand=_iou_expand,
    doc="Intersection over union of each box of lhs (..., 4) with each of rhs (..., 4); no "
    "gradient goes back, as in MXNet.",
)


# -- non-maximum suppression -----------------------------------------------------------
def _larger(a, b):
    """Return the larger scalar; if either is NaN, the second."""
    return a if a > b else b


def _smaller(a, b):
    """Return the smaller scalar; if either is NaN, the second."""
    return a if a < b else b


def _suppressed_eager(boxes, areas, ids, valid, *, thresh, reached):
    kind = floating(boxes.dtype)
    boxes, areas, out = boxes.astype(kind), areas.astype(kind), (valid != 0).astype(kind)
    for sides, area, group, alive in zip(boxes.swapaxes(1, 2), areas, ids, out, strict=True):
        x, y, u, v = sides
        for i in range(len(alive)):
            if alive[i]:
                wide = np.where(u[i] < u, u[i], u) - np.where(x[i] > x, x[i], x)
                high = np.where(v[i] < v, v[i], v) - np.where(y[i] > y, y[i], y)
                both = np.where(wide > 0, wide, 0) * np.where(high > 0, high, 0)
                union = area[i] + area - both
                share = both / np.where(union > 0, union, 1)
                hit = (union > 0) & (share >= thresh if reached else share > thresh)
                alive[i + 1 :][(hit & (group == group[i]))[i + 1 :]] = 0
    return out


@loops(lambda boxes, areas, ids, valid, out, **a: (*out.shape, *a.values()))
def _suppressed_cpu(boxes, areas, ids, valid, out, batch, n, thresh, reached):
    for b in each(batch):
        for i in range(n):
            out[b * n + i] = T(1) if valid[b * n + i] != 0 else T(0)
        for i in range(n):
            if out[b * n + i] != 0:
                p = (b * n + i) * 4
                for j in range(i + 1, n):
                    if out[b * n + j] != 0 and ids[b * n + j] == ids[b * n + i]:
                        q = (b * n + j) * 4
                        wide = T(_smaller(boxes[p + 2], boxes[q + 2])) - T(
                            _larger(boxes[p], boxes[q])
                        )
                        high = T(_smaller(boxes[p + 3], boxes[q + 3])) - T(
                            _larger(boxes[p + 1], boxes[q + 1])
                        )
                        both = _larger(wide, T(0)) * _larger(high, T(0))
                        union = T(areas[b * n + i]) + T(areas[b * n + j]) - both
                        if union > T(0):
                            share = both / union
                            if share > T(thresh) or (reached and share == T(thresh)):
                                out[b * n + j] = T(0)


def _suppressed_rule(op, boxes, areas, ids, valid, **_):
    if len(boxes) != 3 or boxes[2] != 4:
        raise ShapeError(f"{op}: boxes have shape {boxes}, but (B, N, 4) is needed")
    for name, got in (("areas", areas), ("ids", ids), ("valid", valid)):
        merge(op, name, got, boxes[:2])
    return [boxes[:2]]


suppressed = register(
    "_suppressed",
    inputs=("boxes", "areas", "ids", "valid"),
    attrs={"thresh": (finite, 0.5), "reached": (boolean, False)},
    infer=in_floats("_suppressed", _suppressed_rule),
    eager=_suppressed_eager,
    cpu=_suppressed_cpu,
    grad=lambda g, out, *ins, **_: (None,) * 4,
    doc="1 for each valid box (B, N, 4) that is left when, from the first on, each that is left "
    "takes away the later ones with its id that it overlaps by more than `thresh` (also by "
    "just that, if `reached`); 0 for the others.",
)


def left_over(boxes, areas, ids, valid, scores, n, limit, kind, **attrs):
    """Apply `suppressed` to boxes in order of descending score.

    boxes:   four columns of corners; they and all other operands have shape (B, n).
    limit:   how many of the highest-scoring boxes take part.
    kind:    the dtype of all of them.
    Returns: (the boxes' indices in this order; 1 for each box that is kept, else 0).
    """
    lowest = make(scores, full, shape=(1, 1), value=-math.inf, dtype=kind)
    ranked = order(choose(valid, scores, lowest), axis=1, is_ascend=False)
    *sides, areas, ids, valid = (take_along(x, ranked, axis=1) for x in (*boxes, areas, ids, valid))
    best = make(scores, arange, start=0, stop=n, dtype="int64") < limit
    valid = valid.broadcast_mul(cast(best, dtype=kind))
    return ranked, suppressed(stack(*sides, axis=2), areas, ids, valid, **attrs)


NMS = {
    "overlap_thresh": (finite, 0.5),
    "valid_thresh": (finite, 0.0),
    "topk": (integer, -1),
    "coord_start": (integer, 2),
    "score_index": (integer, 1),
    "id_index": (integer, -1),
    "background_id": (integer, -1),
    "force_suppress": (boolean, False),
    "in_format": (FORMAT, "corner"),
    "out_format": (FORMAT, "corner"),
}


def _nms_rule(op, old, coord_start, score_index, id_index, **_):
    box = range(coord_start, coord_start + 4)
    others = [score_index] + [id_index] * (id_index >= 0)
    fits = len(old) >= 2 and coord_start >= 0 and all(0 <= i < old[-1] for i in (*box, *others))
    if not fits or len({*box, *others}) < 4 + len(others):
        raise ShapeError(
            f"{op}: data {old} with coord_start={coord_start}, score_index={score_index} and "
            f"id_index={id_index}, but (..., boxes, numbers of a box) is needed, with other "
            "places for the four coordinates, the score and the class"
        )
    return [old]


def _nms_expand(
    specs,
    data,
    overlap_thresh,
    valid_thresh,
    topk,
    coord_start,
    score_index,
    id_index,
    background_id,
    force_suppress,
    in_format,
    out_format,
):
    *lead, n, width = shape = specs[0].shape
    batch, kind = math.prod(lead), floating(specs[0].dtype)
    data = cast(data, dtype=kind)
    if topk == 0 or 0 in shape:
        return data.identity()  # as MXNet: topk=0 returns all boxes unchanged
    rows = reshape(data, shape=(batch * n, width))
    parts = [reshape(c, shape=(batch, n)) for c in columns(block_grad(rows), 0, width)]
    scores, boxes = parts[score_index], parts[coord_start : coord_start + 4]
    valid, groups = scores > valid_thresh, scores.zeros_like()
    if id_index >= 0:
        valid = valid * (parts[id_index] != background_id)
        groups = groups if force_suppress else parts[id_index].trunc()
    limit = n if topk < 0 else topk
    areas, boxes = area_of(boxes, in_format), corners_of(boxes, in_format)
    ranked, survivors = left_over(
        boxes, areas, groups, valid, scores, n, limit, kind, thresh=overlap_thresh
    )
    first = order(survivors, axis=1, is_ascend=False)  # move them to the front, stably
    ranked, survivors = (take_along(x, first, axis=1) for x in (ranked, survivors))
    ordered = take(rows, reshape(flat_places(data, ranked, batch, n), shape=(-1,)))
    if in_format != out_format:
        ordered = _in_format(ordered, coord_start, width, out_format)
    invalid = make(data, full, shape=(1, 1), value=-1.0, dtype=kind)
    return reshape(choose(reshape(survivors, shape=(-1, 1)), ordered, invalid), shape=shape)


def _in_format(rows, start, width, form):
    """Convert the coordinates in rows to the other format.

    Like MXNet, skip rows whose first coordinate is negative, such as rows of -1.
    """
    old = columns(rows, start)
    new = centers_of(old) if form == "center" else corners_of(old, "center")
    sides = [choose(old[0] < 0, *each) for each in zip(old, new, strict=True)]
    return concat(*columns(rows, 0, start), *sides, *columns(rows, start + 4, width - start - 4))


box_nms = register(
    "_contrib_box_nms",
    "_contrib_box_non_maximum_suppression",
    inputs=("data",),
    attrs=NMS,
    infer=in_floats("_contrib_box_nms", _nms_rule),
    expand=_nms_expand,
    doc="Boxes (..., N, W) in order of their scores, without those that overlap a better one "
    "(of the same class, unless force_suppress) by more than overlap_thresh; rows of -1 stand "
    "for those that are gone.",
)


# -- matching --------------------------------------------------------------------------
def _matched_eager(data, ranked, *, threshold, is_ascend, topk):
    (batch, n, m), kind = data.shape, floating(data.dtype)
    rows, cols = np.full((batch, n), -1, kind), np.full((batch, m), -1, kind)
    for b, at in enumerate(places("_matched", ranked, n * m, "clip")):
        count = 0
        for r, c in zip(*np.divmod(at, max(m, 1)), strict=True):
            if rows[b, r] == -1 and cols[b, c] == -1:
                score = data[b, r, c]
                if not (score < threshold if is_ascend else score > threshold):
                    break
                rows[b, r], cols[b, c], count = c, r, count + 1
                if 0 < topk < count:
                    break
    return rows, cols


@loops(lambda data, ranked, rows, cols, **a: (*data.shape, *a.values()))
def _matched_cpu(data, ranked, rows, cols, batch, n, m, threshold, is_ascend, topk):
    for b in each(batch):
        for r in range(n):
            rows[b * n + r] = T(-1)
        for c in range(m):
            cols[b * m + c] = T(-1)
        k = 0
        count = 0
        while k < n * m:
            at = place(ranked[b * (n * m) + k], n * m, False)
            r = at // m
            c = at % m
            k += 1
            if rows[b * n + r] == T(-1) and cols[b * m + c] == T(-1):
                score = T(data[b * (n * m) + at])
                if score < T(threshold) if is_ascend else score > T(threshold):
                    rows[b * n + r] = T(c)
                    cols[b * m + c] = T(r)
                    count += 1
                    if topk > 0 and count > topk:
                        k = n * m
                else:
                    k = n * m


def _matched_rule(op, data, ranked, **_):
    if len(data) != 3:
        raise ShapeError(f"{op}: data has shape {data}, but (B, N, M) is needed")
    merge(op, "ranked", ranked, (data[0], data[1] * data[2]))
    return [data[:2], (data[0], data[2])]


MATCH = {"threshold": (finite, REQUIRED), "is_ascend": (boolean, False), "topk": (integer, -1)}
matched = register(
    "_matched",
    inputs=("data", "ranked"),
    attrs=MATCH,
    n_outputs=2,
    infer=in_floats("_matched", _matched_rule, 2),
    eager=_matched_eager,
    cpu=_matched_cpu,
    grad=lambda g, out, data, ranked, **_: (None, None),
    doc="The column that each row of (B, N, M) scores gets, and the row that each column gets, "
    "or -1, if pairs are made of what is free in the order of `ranked`, best first.",
)


def _matching_rule(op, old, **_):
    if len(old) < 2:
        raise ShapeError(f"{op}: data has shape {old}, but scores (..., N, M) are needed")
    return [old[:-1], (*old[:-2], old[-1])]


def _matching_expand(specs, data, threshold, is_ascend, topk):
    *lead, n, m = specs[0].shape
    batch = math.prod(lead)
    data = block_grad(cast(data, dtype=floating(specs[0].dtype)))
    ranked = order(reshape(data, shape=as_codes((batch, n * m))), axis=1, is_ascend=is_ascend)
    rows, cols = matched(
        reshape(data, shape=as_codes((batch, n, m))),
        ranked,
        threshold=threshold,
        is_ascend=is_ascend,
        topk=topk,
    )
    return reshape(rows, shape=as_codes((*lead, n))), reshape(cols, shape=as_codes((*lead, m)))


bipartite_matching = register(
    "_contrib_bipartite_matching",
    inputs=("data",),
    attrs=MATCH,
    n_outputs=2,
    infer=in_floats("_contrib_bipartite_matching", _matching_rule, 2),
    expand=_matching_expand,
    doc="The column that each row of scores (..., N, M) gets, and the row that each column gets, "
    "or -1: pairs are made from the largest score on (is_ascend: the smallest) down to the "
    "threshold. With topk above 0, MXNet and we stop after topk + 1 pairs.",
)


# -- encoding relative to anchors ------------------------------------------------------
def relative(boxes, anchors):
    """Encode boxes relative to anchors, both columns of corners: center offsets in units of
    the anchor's width and height, and the logarithms of the size ratios."""
    (x, y, wide, high), (ax, ay, aw, ah) = centers_of(boxes), centers_of(anchors)
    return [(x - ax) / aw, (y - ay) / ah, (wide / aw).log(), (high / ah).log()]


def placed(offsets, anchors, stds, most=-1.0):
    """Decode offsets from anchors into boxes, as columns of corners.

    offsets: columns as `relative` returns them, divided by `stds`.
    anchors: columns x, y, width, height, which broadcast along the first axis.
    most:    the upper bound of a size ratio's logarithm, if positive.
    """
    x, y, wide, high = (offset * std for offset, std in zip(offsets, stds, strict=True))
    ax, ay, aw, ah = anchors
    if most > 0:
        wide, high = (length.clip(-math.inf, most) for length in (wide, high))
    x, y = x.broadcast_mul(aw).broadcast_add(ax), y.broadcast_mul(ah).broadcast_add(ay)
    return corners_of([x, y, wide.exp().broadcast_mul(aw), high.exp().broadcast_mul(ah)], "center")


def _encode_infer(specs):
    specs = [*specs[:4], *(Spec((4,), s.dtype) for s in specs[4:])]
    kind = floating(specs[0].dtype)
    if not known(specs):
        return specs, [Spec(None, kind)] * 2
    samples, matches, anchors, refs = (s.shape for s in specs[:4])
    fits = len(anchors) == len(refs) == 3 and samples == matches == anchors[:2]
    if not fits or (refs[0], refs[2], anchors[2]) != (anchors[0], 4, 4) or refs[1] < 1:
        raise ShapeError(
            f"_contrib_box_encode: samples {samples}, matches {matches}, anchors {anchors} and "
            f"refs {refs}, but (B, N), (B, N), (B, N, 4) and (B, M, 4) are needed"
        )
    return specs, [Spec(anchors, kind)] * 2


def _encode_expand(specs, *inputs):
    (batch, n, _), m, kind = specs[2].shape, specs[3].shape[1], floating(specs[0].dtype)
    samples, matches, anchors, refs, means, stds = (block_grad(cast(x, dtype=kind)) for x in inputs)
    ranked = flat_places(anchors, cast(matches, dtype="int64"), batch, m)
    boxes = take(reshape(refs, shape=as_codes((batch * m, 4))), ranked)
    offsets = concat(*relative(columns(boxes), columns(anchors)), dim=2)
    offsets = offsets.broadcast_sub(means).broadcast_div(stds)
    positive = reshape(samples > 0.5, shape=as_codes((batch, n, 1)))
    mask = positive.broadcast_mul(anchors.ones_like())
    return choose(mask, offsets, mask.zeros_like()), mask


box_encode = register(
    "_contrib_box_encode",
    inputs=("samples", "matches", "anchors", "refs", "means", "stds"),
    n_outputs=2,
    infer=_encode_infer,
    expand=_encode_expand,
    doc="Where matched boxes are beside anchors (B, N, 4), less means, divided by stds (four "
    "numbers each), and 1 where a sample is above 0.5, else 0, where the first is 0, too. "
    "matches (B, N) are places in refs (B, M, 4). No gradient goes back, as in MXNet.",
)


def _decode_rule(op, data, anchors, **_):
    if len(data) != 3 or data[2] != 4 or anchors != (1, *data[1:]):
        raise ShapeError(
            f"{op}: data {data} and anchors {anchors}, but (B, N, 4) and (1, N, 4) are needed"
        )
    return [data]


def _decode_expand(specs, data, anchors, clip, format, **stds):
    data, anchors = (block_grad(cast(x, dtype=floating(specs[0].dtype))) for x in (data, anchors))
    sides = columns(anchors)
    sides = centers_of(sides) if format == "corner" else sides
    return concat(*placed(columns(data), sides, stds.values(), clip), dim=2)


box_decode = register(
    "_contrib_box_decode",
    inputs=("data", "anchors"),
    attrs={
        "std0": (finite, 1.0),
        "std1": (finite, 1.0),
        "std2": (finite, 1.0),
        "std3": (finite, 1.0),
        "clip": (finite, -1.0),
        "format": (FORMAT, "center"),
    },
    infer=in_floats("_contrib_box_decode", _decode_rule),
    expand=_decode_expand,
    doc="Corners of the boxes that box_encode gave, times std0 to std3, beside anchors (1, N, 4) "
    "of a format; clip above 0 is the most that the logarithm of a length may be. No gradient "
    "goes back, as in MXNet.",
)
