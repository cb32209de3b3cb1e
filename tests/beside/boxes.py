"""Programs of one operator on boxes or regions, drawn to meet its edges.

    program = drawn("contrib.box_nms", random.Random(0))

Coordinates are often eighths, so that scores and overlaps are equal, and boxes touch.
"""

import numpy as np
from programs.run import Input, Program, Step


def given(values):
    """An input of float32."""
    values = np.asarray(values, "f4")
    return Input(values.shape, "float32", tuple(values.ravel().tolist()))


def numbers(rng, *shape, low=0.0, high=1.0):
    """Numbers of a range; in half of the arrays, steps of an eighth of it."""
    values = rng.random(shape)
    if rng.random() < 0.5:
        values = np.floor(values * 9) / 8
    return low + (high - low) * values


def corners(rng, *shape, scale=1.0):
    """Boxes (*shape, 4) of corners; a few are empty, or turned around."""
    start, size = numbers(rng, *shape, 2), numbers(rng, *shape, 2, low=-0.05, high=0.6)
    return scale * np.concatenate([start, start + size], -1)


def lead(rng):
    """Axes of a batch: none, one or two."""
    return [(), (2,), (1,), (2, 2)][rng.integers(4)]


def flag(rng):
    return bool(rng.integers(2))


def box_iou(rng):
    shapes = [(*lead(rng), int(rng.integers(1, 5))) for _ in range(2)]
    return [corners(rng, *s) for s in shapes], {"format": str(rng.choice(["corner", "center"]))}, 1


def box_nms(rng):
    form, n = str(rng.choice(["corner", "center"])), int(rng.integers(1, 12))
    head, more = lead(rng), int(rng.integers(2))
    ids = rng.integers(-1, 3, (*head, n, 1)) + rng.choice([0, 0.25])
    scores = numbers(rng, *head, n, 1, low=-0.2)
    boxes = corners(rng, *head, n, scale=float(rng.choice([1, 4])))
    if flag(rng):
        boxes = np.roll(boxes, 1, -2) * 0.5 + boxes * 0.5 - rng.choice([0, 0.3])
    rest = [numbers(rng, *head, n, 1)] * more
    attrs = {
        "overlap_thresh": float(rng.choice([0.5, 0.3, 0.0, 0.9, -0.5])),
        "valid_thresh": float(rng.choice([0, 0, 0.3, 2, -1])),
        "topk": int(rng.choice([-1, -1, 0, 1, 3, 50])),
        "force_suppress": flag(rng),
        "in_format": form,
        "out_format": str(rng.choice([form, form, "corner", "center"])),
    }
    if flag(rng):
        attrs |= {"id_index": 0, "background_id": int(rng.integers(-1, 2))}
    parts = [ids, scores, boxes, *rest]
    if flag(rng):  # the other way round
        parts = [boxes, *rest, scores, ids]
        attrs |= {"coord_start": 0, "score_index": 4 + more}
        attrs |= {"id_index": 5 + more} if "id_index" in attrs else {}
    return [np.concatenate(parts, -1)], attrs, 1


def bipartite_matching(rng):
    shape = (*lead(rng), int(rng.integers(1, 6)), int(rng.integers(1, 6)))
    attrs = {
        "threshold": float(rng.choice([1e-12, 0.25, 0.5, 0.75, 2])),
        "is_ascend": flag(rng),
        "topk": int(rng.choice([-1, 0, 1, 2, 9])),
    }
    return [numbers(rng, *shape)], attrs, 2


def box_encode(rng):
    b, n, m = rng.integers(1, 5, 3)
    arrays = [
        rng.integers(-1, 2, (b, n)),
        rng.integers(0, m, (b, n)),
        np.maximum(corners(rng, b, n), [0, 0, 1.1, 1.1]),
        np.maximum(corners(rng, b, m), [0, 0, 1.1, 1.1]),
        numbers(rng, 4),
        numbers(rng, 4, low=0.1),
    ]
    return arrays, {}, 2


def box_decode(rng):
    b, n = rng.integers(1, 5, 2)
    attrs = {f"std{i}": float(rng.choice([1, 0.1, 0.2])) for i in range(4)}
    attrs |= {
        "clip": float(rng.choice([-1, 0, 0.5])),
        "format": str(rng.choice(["corner", "center"])),
    }
    return [numbers(rng, b, n, 4, low=-1), corners(rng, 1, n)], attrs, 1


def rois(rng, images, out_of_image=True):
    n = int(rng.integers(1, 5))
    index = rng.integers(-1 if out_of_image else 0, images, (n, 1))
    first, last = (numbers(rng, n, 2, low=-4, high=12) for _ in range(2))
    if flag(rng):
        first, last = np.round(first), np.round(last)
    return np.concatenate([index, np.minimum(first, last), np.maximum(first, last) + 0.125], 1)


def image(rng, channels=3):
    return rng.permutation(2 * channels * 35).reshape(2, channels, 7, 5) / 64 - 1


def roi_pooling(rng):
    regions = rois(rng, 3)
    if flag(rng):  # turned around
        regions = regions[:, [0, 3, 2, 1, 4]]
    attrs = {
        "pooled_size": tuple(map(int, rng.integers(1, 5, 2))),
        "spatial_scale": float(rng.choice([1, 0.5, 0.1, 0.75])),
    }
    return [image(rng), regions], attrs, 1


def roi_align(rng):
    # Without an image MXNet writes one 0 into another region, and leaves the rest unwritten.
    regions = rois(rng, 2, out_of_image=False)
    attrs = {
        "pooled_size": tuple(map(int, rng.integers(1, 5, 2))),
        "spatial_scale": float(rng.choice([1, 0.5, 0.1, 0.75])),
        "sample_ratio": int(rng.integers(-1, 4)),
        "aligned": flag(rng),
        "position_sensitive": flag(rng),
    }
    channels = 2 * int(np.prod(attrs["pooled_size"])) if attrs["position_sensitive"] else 3
    return [image(rng, channels), regions], attrs, 1


def prior(rng):
    size = [int(n) for n in rng.integers(1, 5, 4)]
    attrs = {
        "sizes": tuple(map(float, numbers(rng, rng.integers(1, 4), low=0.1))),
        "ratios": tuple(map(float, numbers(rng, rng.integers(1, 4), low=0.25, high=3))),
        "clip": flag(rng),
        "steps": [(-1.0, -1.0), (0.1, 0.2), (0.0, 0.3)][rng.integers(3)],
        "offsets": tuple(map(float, numbers(rng, 2))),
    }
    return [rng.random(size)], attrs, 1


def proper(rng, *shape):
    """Boxes that are not turned around."""
    start = numbers(rng, *shape, 2, high=0.75)
    return np.concatenate([start, start + numbers(rng, *shape, 2, low=0.125, high=0.5)], -1)


def target(rng):
    b, n, m, classes = (int(k) for k in rng.integers(1, [4, 13, 5, 4]))
    label = np.concatenate([rng.integers(0, classes, (b, m, 1)), proper(rng, b, m)], -1)
    for rows in label:
        rows[rng.integers(m + 1) :] = -1
    attrs = {
        "overlap_threshold": float(rng.choice([0.5, 0.3, 0.0])),
        "ignore_label": float(rng.choice([-1, -2])),
        "variances": [(0.1, 0.1, 0.2, 0.2), (1.0, 0.5, 0.25, 1.0)][rng.integers(2)],
    }
    if flag(rng):  # with 2 all anchors are candidates; MXNet refuses to have too few
        attrs |= {
            "negative_mining_ratio": float(rng.choice([1, 1.5])),
            "negative_mining_thresh": 2.0,
        }
    chances = rng.permutation(b * (classes + 1) * n).reshape(b, classes + 1, n) / 16
    return [proper(rng, 1, n), label, chances], attrs, 3


def detection(rng):
    b, classes, n = (int(k) for k in rng.integers(1, [3, 5, 13]))
    attrs = {
        "clip": flag(rng),
        "threshold": float(rng.choice([0.01, 0.3, 2])),
        "nms_threshold": float(rng.choice([0.5, 0.25, 0, 1, 2])),
        "force_suppress": flag(rng),
        "nms_topk": int(rng.choice([-1, 0, 1, 3, 40])),
        "variances": [(0.1, 0.1, 0.2, 0.2), (1.0, 0.5, 0.25, 1.0)][rng.integers(2)],
    }
    offsets = numbers(rng, b, 4 * n, low=-1) * rng.choice([0, 1])
    return [numbers(rng, b, classes, n), offsets, proper(rng, 1, n)], attrs, 1


DRAWN = {
    "contrib.MultiBoxPrior": prior,
    "contrib.MultiBoxTarget": target,
    "contrib.MultiBoxDetection": detection,
    "ROIPooling": roi_pooling,
    "contrib.ROIAlign": roi_align,
    "contrib.box_iou": box_iou,
    "contrib.box_nms": box_nms,
    "contrib.box_non_maximum_suppression": box_nms,
    "contrib.bipartite_matching": bipartite_matching,
    "contrib.box_encode": box_encode,
    "contrib.box_decode": box_decode,
}


def drawn(op, seed):
    """A program of one step: the same for the same seed."""
    arrays, attrs, n_outputs = DRAWN[op](np.random.default_rng(seed))
    inputs = tuple(map(given, arrays))
    outs = tuple(range(len(inputs), len(inputs) + n_outputs))
    step = Step(op, tuple(range(len(inputs))), attrs, n_outputs)
    return Program(inputs, (step,), outs)
