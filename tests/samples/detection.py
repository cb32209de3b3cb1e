"""Samples of the operators of detection and segmentation."""

from sampling import like, of

SAMPLES = {
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
}
