"""SSD anchors: generation, training targets and detection.

Uses:    images (N, C, H, W), with anchors centered on their pixels; labels; predictions.
Defines: `MultiBoxPrior`, `MultiBoxTarget`, `MultiBoxDetection`; Liu et al., SSD (2016).

All decompose into the operators of boxes: the primitive of `bipartite_matching` matches
anchors with labels, and detections are filtered as in `box_nms`. Corners are fractions of
the image's sides. As in MXNet, gradients don't propagate.
Not supported: anchors that differ between images.
"""

import math

from minihybrid.core.op import AttrError, ShapeError, boolean, finite, integer, items
from minihybrid.ops.boxes import (
    centers_of,
    columns,
    flat_places,
    in_floats,
    left_over,
    matched,
    placed,
    relative,
)
from minihybrid.ops.elementwise import block_grad, cast, choose
from minihybrid.ops.filled import arange, full, make
from minihybrid.ops.indexing import take
from minihybrid.ops.joining import concat, stack
from minihybrid.ops.layout import broadcast_to, reshape, slice_axis
from minihybrid.ops.ordering import order, running_sum
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import floating


def numbers(value):
    """Parse a number or a tuple of numbers as a tuple."""
    return tuple([finite(v) for v in items(value)])


VARIANCES = {"variances": (numbers, (0.1, 0.1, 0.2, 0.2))}


def _four(op, variances):
    if len(variances) != 4 or 0 in variances:
        raise AttrError(f"{op}: variances={variances}, but four numbers other than 0 are needed")


# -- anchors ---------------------------------------------------------------------------
def _prior_rule(op, old, sizes, ratios, clip, steps, offsets):
    if len(old) != 4 or min(*old[2:], len(sizes), len(ratios)) < 1:
        raise ShapeError(
            f"{op}: data {old}, sizes={sizes} and ratios={ratios}, but images (N, C, H, W), "
            "one size and one ratio at least are needed"
        )
    if min(ratios) <= 0 or (len(steps), len(offsets)) != (2, 2) or steps[0] * steps[1] < 0:
        raise AttrError(
            f"{op}: ratios={ratios}, steps={steps}, offsets={offsets}; needed: ratios above 0, "
            "and two numbers, for y and x, in the other two, both steps or none above 0"
        )
    return [(1, old[2] * old[3] * (len(sizes) + len(ratios) - 1), 4)]


def _prior_expand(specs, data, sizes, ratios, clip, steps, offsets):
    (_, _, h, w), kind = specs[0].shape, floating(specs[0].dtype)
    steps = steps if min(steps) > 0 else (1 / h, 1 / w)
    centers = []
    for d, shape in ((1, (1, w, 1)), (0, (h, 1, 1))):
        at = make(data, arange, start=0, stop=(h, w)[d], dtype=kind)
        at = reshape((at + offsets[d]) * steps[d], shape=shape)
        centers.append(broadcast_to(at, shape=(h, w, 1)))
    centers = reshape(concat(*centers, *centers, dim=2), shape=(h * w, 1, 4))
    pairs = [(s, ratios[0]) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]
    halves = [(s * h / w * math.sqrt(r) / 2, s / math.sqrt(r) / 2) for s, r in pairs]
    ends = [x for wide, high in halves for x in (-wide, -high, wide, high)]
    ends = concat(*(make(data, full, shape=(1,), value=x, dtype=kind) for x in ends), dim=0)
    boxes = reshape(centers.broadcast_add(reshape(ends, shape=(1, -1, 4))), shape=(1, -1, 4))
    return boxes.clip(0, 1) if clip else boxes


multibox_prior = register(
    "_contrib_MultiBoxPrior",
    inputs=("data",),
    attrs={
        "sizes": (numbers, (1.0,)),
        "ratios": (numbers, (1.0,)),
        "clip": (boolean, False),
        "steps": (numbers, (-1.0, -1.0)),
        "offsets": (numbers, (0.5, 0.5)),
    },
    infer=in_floats("_contrib_MultiBoxPrior", _prior_rule),
    expand=_prior_expand,
    doc="Anchors (1, n, 4) around each pixel of images (N, C, H, W): every size with the first "
    "ratio, then the first size with the others, as corners in shares of the image.",
)


# -- training targets ------------------------------------------------------------------
def _target_rule(op, anchor, label, cls_pred, variances, **_):
    _four(op, variances)
    fits = len(anchor) == len(label) == len(cls_pred) == 3 and (anchor[0], anchor[2]) == (1, 4)
    if not fits or label[2] < 5 or cls_pred[::2] != (label[0], anchor[1]) or 0 in cls_pred:
        raise ShapeError(
            f"{op}: anchor {anchor}, label {label} and cls_pred {cls_pred}, but (1, A, 4), "
            "(B, L, 5 or more) and (B, classes, A) are needed"
        )
    if label[1] < 1:
        raise ShapeError(f"{op}: label {label} has no rows; rows of -1 stand for no objects")
    return [(label[0], 4 * anchor[1])] * 2 + [(label[0], anchor[1])]


def _overlaps(anchors, boxes):
    """Return the IoU (B, A, L) of columns (1, A, 1) and (B, 1, L) of corners; it's 0 where
    the union is empty."""
    (ax, ay, au, av), (bx, by, bu, bv) = anchors, boxes
    wide = au.broadcast_minimum(bu).broadcast_sub(ax.broadcast_maximum(bx)).relu()
    high = av.broadcast_minimum(bv).broadcast_sub(ay.broadcast_maximum(by)).relu()
    both = wide * high
    areas = ((au - ax) * (av - ay)).broadcast_add((bu - bx) * (bv - by))
    union = areas - both
    return both / choose(union == 0, union.ones_like(), union)


def _negatives(cls_pred, candidates, most, kind):
    """Mark with 1 the `most` (B, 1) candidates (B, A) least likely to be background."""
    chances = slice_axis(cls_pred.softmax(axis=1), axis=1, begin=0, end=1)
    last = make(cls_pred, full, shape=(1, 1), value=math.inf, dtype=kind)
    chances = choose(candidates, reshape(chances, shape=(0, -1)), last)
    ranks = order(order(chances, axis=1), axis=1)
    return candidates * cast(ranks, dtype=kind).broadcast_lesser(most)


def _target_expand(
    specs,
    *inputs,
    overlap_threshold,
    ignore_label,
    negative_mining_ratio,
    negative_mining_thresh,
    minimum_negative_samples,
    variances,
):
    kind, (_, n, _), (batch, m, width) = floating(specs[0].dtype), *(s.shape for s in specs[:2])
    anchor, label, cls_pred = (block_grad(cast(x, dtype=kind)) for x in inputs)
    anchors, labels = columns(anchor), columns(label, 0, 5)
    ended = running_sum(labels[0] == -1, axis=1)  # the first row of -1 ends the labels
    there = reshape(ended == 0, shape=(batch, 1, m))
    shares = _overlaps(anchors, [reshape(c, shape=(batch, 1, m)) for c in labels[1:]])
    shares = choose(there.broadcast_mul(shares.ones_like()), shares, shares.ones_like() * -1)
    ranked = order(reshape(shares, shape=(batch, n * m)), axis=1, is_ascend=False)
    best, _ = matched(shares, ranked, threshold=1e-6)  # each label gets its best anchor
    most, assigned = shares.max(axis=2), best
    positive = best >= 0
    if overlap_threshold > 0:
        assigned = choose(positive, best, cast(shares.argmax(axis=2), dtype=kind))
        positive = positive.broadcast_maximum(most > overlap_threshold)
    some = reshape(there, shape=(batch, m)).max(axis=1, keepdims=True)
    negative = (positive == 0).broadcast_mul(some)
    if negative_mining_ratio > 0:
        n_negatives = (positive.sum(axis=1, keepdims=True) * negative_mining_ratio).floor()
        negative = negative * (most < negative_mining_thresh)
        negative = _negatives(cls_pred, negative, n_negatives, kind)
    rows = flat_places(assigned, cast(assigned, dtype="int64").clip(0, m - 1), batch, m)
    rows = take(reshape(label, shape=(batch * m, width)), rows)
    anchors = [c.broadcast_mul(reshape(positive, shape=(batch, n, 1)).ones_like()) for c in anchors]
    offsets = relative(columns(rows, 1), anchors)
    offsets = concat(*(x / v for x, v in zip(offsets, variances, strict=True)), dim=2)
    mask = reshape(positive, shape=(batch, n, 1)).broadcast_mul(offsets.ones_like())
    ignored = positive.zeros_like() + ignore_label
    classes = reshape(columns(rows, 0, 1)[0], shape=(batch, n)) + 1
    return (
        reshape(choose(mask, offsets, mask.zeros_like()), shape=(batch, -1)),
        reshape(mask, shape=(batch, -1)),
        choose(positive, classes, choose(negative, positive.zeros_like(), ignored)),
    )


multibox_target = register(
    "_contrib_MultiBoxTarget",
    inputs=("anchor", "label", "cls_pred"),
    attrs={
        "overlap_threshold": (finite, 0.5),
        "ignore_label": (finite, -1.0),
        "negative_mining_ratio": (finite, -1.0),
        "negative_mining_thresh": (finite, 0.5),
        "minimum_negative_samples": (integer, 0),
        **VARIANCES,
    },
    n_outputs=3,
    infer=in_floats("_contrib_MultiBoxTarget", _target_rule, 3),
    expand=_target_expand,
    doc="What anchors (1, A, 4) should see of labels (B, L, class and corners; rows of -1 at the "
    "end): offsets (B, 4 A) of the matched label's box, 1 or 0 for them, and classes (B, A): 0 is "
    "background. With negative_mining_ratio above 0 only so many negatives a positive are "
    "background, the others are ignore_label. minimum_negative_samples is not read, as in MXNet.",
)


# -- detection -------------------------------------------------------------------------
def _detection_rule(op, cls_prob, loc_pred, anchor, variances, **_):
    _four(op, variances)
    fits = len(cls_prob) == 3 and anchor == (1, cls_prob[-1], 4) and 0 not in cls_prob
    if not fits or loc_pred != (cls_prob[0], 4 * cls_prob[2]):
        raise ShapeError(
            f"{op}: cls_prob {cls_prob}, loc_pred {loc_pred} and anchor {anchor}, but "
            "(B, classes, A), (B, 4 A) and (1, A, 4) are needed"
        )
    return [(cls_prob[0], cls_prob[2], 6)]


def _detection_expand(
    specs,
    *inputs,
    clip,
    threshold,
    background_id,
    nms_threshold,
    force_suppress,
    variances,
    nms_topk,
):
    kind, (batch, classes, n) = floating(specs[0].dtype), specs[0].shape
    cls_prob, loc_pred, anchor = (block_grad(cast(x, dtype=kind)) for x in inputs)
    if classes < 2:  # nothing but background
        invalid = columns(reshape(loc_pred, shape=(batch, n, 4)))[0].ones_like() * -1
        return concat(*[invalid] * 6, dim=2)
    objects = slice_axis(cls_prob, axis=1, begin=1, end=None)
    scores, ids = objects.max(axis=1), cast(objects.argmax(axis=1), dtype=kind)
    valid = (scores > -1) * (scores >= threshold)
    offsets = columns(reshape(loc_pred, shape=(batch, n, 4)))
    boxes = placed(offsets, centers_of(columns(anchor)), variances)
    boxes = [reshape(c.clip(0, 1) if clip else c, shape=(batch, n)) for c in boxes]
    rows = reshape(stack(ids, scores, *boxes, axis=2), shape=(batch * n, 6))
    ranked = order(valid, axis=1, is_ascend=False)
    numbered = make(valid, arange, start=0, stop=n, dtype="int64")
    count = valid.sum(axis=1, keepdims=True)
    inside = cast(numbered, dtype=kind).broadcast_lesser(count)
    survivors = inside
    if 0 < nms_threshold <= 1:
        x, y, u, v = boxes
        areas, groups = (u - x) * (v - y), ids.zeros_like() if force_suppress else ids
        limit = nms_topk if nms_topk > 0 else n
        best, survivors = left_over(
            boxes, areas, groups, valid, scores, n, limit, kind, thresh=nms_threshold, reached=True
        )
        ranked = choose(numbered < limit, best, ranked)  # the rest aren't sorted
    rows = take(rows, flat_places(rows, ranked, batch, n))
    invalid = make(rows, full, shape=(1, 1, 1), value=-1.0, dtype=kind)
    first, *others = columns(rows, 0, 6)
    first = choose(reshape(survivors, shape=(batch, n, 1)), first, invalid)
    inside = reshape(inside, shape=(batch, n, 1))
    return concat(*(choose(inside, c, invalid) for c in (first, *others)), dim=2)


multibox_detection = register(
    "_contrib_MultiBoxDetection",
    inputs=("cls_prob", "loc_pred", "anchor"),
    attrs={
        "clip": (boolean, True),
        "threshold": (finite, 0.01),
        "background_id": (integer, 0),
        "nms_threshold": (finite, 0.5),
        "force_suppress": (boolean, False),
        **VARIANCES,
        "nms_topk": (integer, -1),
    },
    infer=in_floats("_contrib_MultiBoxDetection", _detection_rule),
    expand=_detection_expand,
    doc="Rows (B, A, 6) of class, score and corners, from the largest score on; class -1 where a "
    "box of the class (of any, if force_suppress) that it overlaps by nms_threshold is better, "
    "and rows of -1 for the background, which is class 0 whatever background_id says, as in MXNet.",
)
