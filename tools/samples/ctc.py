"""Samples of CTC: words that fit, that are too long, that end early."""

from sampling import bits, index, of, pos

SAMPLES = {
    "CTCLoss": [
        of((5, 2, 3), index(2, 2)),
        of((3, 2, 4), index(2, 1), blank_label="last"),
        of((4, 3, 3), index(3, 2), index(3), use_data_lengths=True, blank_label="last"),
        of((4, 2, 3), index(2, 2), index(2), use_label_lengths=True),
        of((3, 0, 2), index(0, 2)),
    ],
    # Central differences say nothing beside logarithms of 0, which are as large as numbers go.
    "_log_paths": [of((4, 2, 2), bits(2, 2)), of((4, 2, 5), bits(2, 5), smooth=False)],
    "_path_shares": [of((2, 3, 4), bits(3, 4)), of((2, 1, 1), bits(1, 1))],
    "_carried": [
        of((3, 2, 4), pos(3, 2, 4, 3), back=True),
        of((3, 2, 4), pos(3, 2, 4, 3), back=False),
        of((2, 1, 1), pos(2, 1, 1, 3), back=True),
    ],
}
