"""Small data sets in the published formats, so that programs find files where they look.

Pictures are noise around a pattern of their label, so that there is something to learn.
"""

import gzip
import struct

import numpy as np


def pictures(n, shape, classes, seed):
    """(uint8 pictures (n, *shape), labels (n,)) of so many classes."""
    rng = np.random.RandomState(seed)
    patterns = np.random.RandomState(0).randint(0, 256, (classes, *shape))
    labels = rng.randint(0, classes, n)
    mixed = 0.7 * patterns[labels] + 0.3 * rng.randint(0, 256, (n, *shape))
    return mixed.astype(np.uint8), labels.astype(np.uint8)


def write_mnist(folder):
    """The four files of MNIST: 512 and 256 digits."""
    for name, n in (("train", 512), ("t10k", 256)):
        images, labels = pictures(n, (28, 28), 10, n)
        with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">IIII", 2051, n, 28, 28) + images.tobytes())
        with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">II", 2049, n) + labels.tobytes())


def write_raw_mnist(folder):
    """The same four files, unpacked."""
    write_mnist(folder)
    for packed in folder.glob("*-ubyte.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))


def write_cifar10(folder):
    """The six files of CIFAR10: five of 64 pictures, and 64 to test."""
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    for seed, name in enumerate(names):
        images, labels = pictures(64, (3, 32, 32), 10, seed)
        rows = np.concatenate([labels[:, None], images.reshape(64, -1)], 1)
        (folder / name).write_bytes(rows.tobytes())


def write_text(folder):
    """The time machine as lines of a few made-up words."""
    rng = np.random.RandomState(0)
    words = "the a time traveller space machine moved slowly under dark bright stars".split()
    lines = [" ".join(words[i] for i in rng.randint(0, len(words), 8)) for _ in range(5000)]
    (folder / "timemachine.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


WRITERS = {
    "mnist": write_mnist,
    "raw mnist": write_raw_mnist,
    "cifar10": write_cifar10,
    "text": write_text,
}
