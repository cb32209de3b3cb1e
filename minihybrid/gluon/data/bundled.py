"""Datasets bundled with the package, so that nothing is downloaded.

Defines: `digits`, handwritten digits of 8 by 8 pixels, as arrays; `oz`, two stories as text;
         `stored`, the path of a bundled file that a chapter reads.

Their origin and license are in `data/NOTICE`.
Not supported: larger images; batches, which the notebooks slice themselves.
"""

import bz2
from pathlib import Path

import numpy as np

from minihybrid.core.hooks import own_names
from minihybrid.core.nd import array

FOLDER = Path(__file__).parents[2] / "data"
DIGITS = FOLDER / "digits.npz"


def digits():
    """Return handwritten digits: `(train_x, train_y), (test_x, test_y)`, a fixed split.

    Shapes:  images (N, 8, 8), labels (N,), both float32; N is 1438 and 359.
    Units:   brightness from 0 (paper) to 1 (ink); labels are 0, 1, ..., 9.
    Source:  Alpaydin and Kaynak, UCI Machine Learning Repository, 1998.

    >>> (train_x, train_y), (test_x, test_y) = digits()
    >>> train_x.shape, test_y.shape
    ((1438, 8, 8), (359,))
    """
    with np.load(DIGITS, allow_pickle=False) as stored:
        return tuple(
            (array(stored[f"{part}_x"] / 16), array(stored[f"{part}_y"]))
            for part in ("train", "test")
        )


def oz() -> tuple[str, str]:
    """Return the first nine tenths of two stories, and the rest: `(train, test)`.

    Units:   characters, 61 different ones; each paragraph is a line.
    Source:  L. Frank Baum, The Wonderful Wizard of Oz (1900) and Ozma of Oz (1907).

    >>> train, test = oz()
    >>> len(train), len(test), train[:11]
    (372205, 41357, 'The Cyclone')
    """
    text = bz2.decompress((FOLDER / "oz.txt.bz2").read_bytes()).decode("ascii")
    cut = len(text) * 9 // 10
    return text[:cut], text[cut:]


def stored(name):
    """Return the path of a bundled file.

    `oz.params`: the float16 weights of a small language model (chapter 35).
    `ptx.json`:  some kernels as compiled for a GPU (chapter 26).
    `onnx/`:     networks exported by PyTorch and TensorFlow, with outputs (chapter 23).

    >>> stored("ptx.json").name
    'ptx.json'
    """
    return FOLDER / name


__dir__ = own_names(globals())
