"""Write minihybrid/data/digits.npz from scikit-learn's copy of the digits.

Use: python book/make_digits.py         (needs `pip install scikit-learn`)

The split is stored rather than drawn again by readers, because a random stream may
change between versions of NumPy.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

TARGET = Path(__file__).resolve().parent.parent / "minihybrid/data/digits.npz"
TEST_SHARE = 0.2


def split(labels, rng):
    """Return the places of training and of test images, a share of every class."""
    train, test = [], []
    for label in np.unique(labels):
        places = rng.permutation(np.flatnonzero(labels == label))
        n_test = round(TEST_SHARE * len(places))
        test += [*places[:n_test]]
        train += [*places[n_test:]]
    return rng.permutation(train), rng.permutation(test)


if __name__ == "__main__":
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8).astype(np.uint8)  # whole numbers from 0 to 16
    labels = labels.astype(np.uint8)
    train, test = split(labels, np.random.default_rng(0))
    np.savez_compressed(
        TARGET,
        train_x=images[train],
        train_y=labels[train],
        test_x=images[test],
        test_y=labels[test],
    )
    print(f"{TARGET.name}: {len(train)} + {len(test)} images, {TARGET.stat().st_size} bytes")
