"""Samples of the operators of detection and segmentation."""

from sampling import bits, box, chance, index, like, of, pos

ROIS = index(2, 5)
CELLS = {"pooled_size": (2, 1), "spatial_scale": 1.0}

SAMPLES = {
    "_contrib_ROIAlign": [
        of((3, 2, 3, 4), ROIS, sample_ratio=2, **CELLS),
        of((3, 1, 3, 4), ROIS, aligned=True, **CELLS),
        of((3, 4, 3, 4), ROIS, position_sensitive=True, **CELLS),
    ],
    "_unalign": [
        of((2, 1, 2, 1), ROIS, like(3, 1, 3, 4), sample_ratio=1, **CELLS),
        of((2, 1, 2, 1), ROIS, like(3, 2, 3, 4), position_sensitive=True, **CELLS),
    ],
    "_best_places": [of((3, 2, 3, 4), index(2), index(2, 2, 2), index(2, 2, 1))],
    "ROIPooling": [of((3, 2, 3, 4), ROIS, **CELLS), of((3, 1, 3, 4), index(0, 5), **CELLS)],
    "_contrib_arange_like": [
        of((2, 3), smooth=False),
        of((2, 3), start=2, step=-0.5, repeat=2, axis=-1),
        of((0, 3), axis=0),
    ],
    "_contrib_AdaptiveAvgPooling2D": [of((1, 2, 3, 5), output_size=(2, 4)), of((2, 1, 2, 2))],
    "_contrib_BilinearResize2D": [
        of((1, 2, 3, 2), height=2, width=5),
        of((1, 1, 3, 2), like(1, 1, 2, 4), mode="like", align_corners=False),
    ],
    "_contrib_MultiBoxPrior": [of((1, 2, 2, 3), sizes=(0.5, 0.25), ratios=(1, 2), smooth=False)],
    "_contrib_MultiBoxTarget": [
        of(box(1, 4, 4), box(2, 3, 5), (2, 3, 4), smooth=False),
        of(box(1, 4, 4), box(1, 1, 5), (1, 2, 4), negative_mining_ratio=1.0, smooth=False),
    ],
    "_contrib_MultiBoxDetection": [
        of(chance(2, 3, 4), (2, 16), box(1, 4, 4), clip=False, smooth=False),
        of(chance(1, 2, 3), (1, 12), box(1, 3, 4), nms_topk=2, smooth=False),
    ],
    "_contrib_box_iou": [
        of((2, 4), (3, 4), smooth=False),
        of((2, 1, 4), (3, 4), smooth=False, format="center"),
        of((0, 4), (3, 4)),
    ],
    "_suppressed": [
        of((2, 5, 4), pos(2, 5), index(2, 5), bits(2, 5), thresh=0.1),
        of((2, 3, 4), (2, 3), bits(2, 3), pos(2, 3), thresh=0.5, reached=True),
        of((1, 0, 4), (1, 0), (1, 0), (1, 0)),
    ],
    "_contrib_box_nms": [
        of((2, 4, 6), valid_thresh=-2.0, in_format="center", smooth=False),
        of((5, 6), id_index=0, topk=3, smooth=False),
    ],
    "_matched": [
        of((2, 3, 2), index(2, 6), threshold=0.1, smooth=False),
        of((1, 2, 2), index(1, 4), threshold=0.9, is_ascend=True, topk=1, smooth=False),
    ],
    "_contrib_bipartite_matching": [
        of((2, 3, 2), threshold=-0.5, smooth=False),
        of((2, 2), threshold=9.0, is_ascend=True, smooth=False),
    ],
    "_contrib_box_encode": [
        of(bits(2, 3), bits(2, 3), box(2, 3, 4), box(2, 2, 4), (4,), pos(4), smooth=False)
    ],
    "_contrib_box_decode": [
        of((2, 3, 4), (1, 3, 4), smooth=False),
        of((2, 3, 4), pos(1, 3, 4), format="corner", clip=0.5, std2=0.2, smooth=False),
    ],
}
