"""Write `answers.npz` with MXNet 1.9.1: pictures read, resized, cut and recoloured.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):

    python tests/golden/vision/make_golden.py
"""

import gzip
import itertools
import os
import tempfile
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet.gluon.data import vision
from mxnet.gluon.data.vision import datasets, transforms

HERE = Path(__file__).parent
SIZES = [(4, 9), (8, 6), (16, 12), (5, 7), (20, 33), (1, 1)]
random = np.random.RandomState(0)


def pictures():
    arrays = {}
    for path, flag in itertools.product(sorted((HERE / "pictures").iterdir()), (0, 1)):
        arrays[f"read {path.name} {flag}"] = mx.image.imread(str(path), flag).asnumpy()
    return arrays


def sizes(given):
    arrays = {}
    for (name, x), (w, h), kind in itertools.product(given.items(), SIZES, range(5)):
        made = mx.image.imresize(mx.nd.array(x, dtype=x.dtype), w, h, kind)
        arrays[f"resize {name} {w} {h} {kind}"] = made.asnumpy()
    return arrays


def parts(x):
    x = mx.nd.array(x, dtype=x.dtype)
    return {
        "Resize 5": transforms.Resize(5)(x),
        "Resize 5 keep": transforms.Resize(5, keep_ratio=True)(x),
        "Resize 6 9": transforms.Resize((6, 9))(x),
        "CenterCrop 6 4": transforms.CenterCrop((6, 4))(x),
        "CenterCrop 9 20": transforms.CenterCrop((9, 20))(x),
        "CropResize": transforms.CropResize(1, 2, 4, 3)(x),
        "CropResize 7 5": transforms.CropResize(1, 2, 4, 3, (7, 5), 1)(x),
        "resize_short": mx.image.resize_short(x, 4),
        "fixed_crop": mx.image.fixed_crop(x, 1, 2, 5, 6, (4, 3)),
        "ToTensor": transforms.ToTensor()(x),
        "Cast": transforms.Cast("float16")(x),
        "Normalize": transforms.Normalize((0.1, 0.2, 0.3), (0.5, 0.6, 0.7))(
            transforms.ToTensor()(x)
        ),
        "Normalize 1": transforms.Normalize(0.25, 0.5)(transforms.ToTensor()(x)),
    }


def colours(x):
    """With a factor that is drawn from one number to the same."""
    x, arrays = mx.nd.array(x, dtype=x.dtype), {}
    for kind, factor in itertools.product(("brightness", "contrast", "hue"), (0.7, 1.0, 1.4)):
        made = getattr(mx.nd.image, f"random_{kind}")(x, factor, factor)
        arrays[f"{kind} {factor}"] = made
    arrays["lighting"] = mx.nd.image.adjust_lighting(x, (0.3, -0.2, 0.5))
    return arrays


def mnist():
    """MXNet's reader on files of the published format."""
    datasets.download = lambda url, path, sha1_hash: os.path.join(path, url.split("/")[-1])
    data, label = random.randint(0, 256, (5, 28, 28)), random.randint(0, 10, 5)
    files = {
        "train-images-idx3-ubyte": np.array([0x803, 5, 28, 28], ">u4").tobytes()
        + data.astype("u1").tobytes(),
        "train-labels-idx1-ubyte": np.array([0x801, 5], ">u4").tobytes()
        + label.astype("u1").tobytes(),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / f"{name}.gz").write_bytes(gzip.compress(content))
        dataset = vision.MNIST(folder)
        x, y = dataset[3]
    given = {f"file {name}": np.frombuffer(content, "u1") for name, content in files.items()}
    return given | {
        "mnist data": dataset._data,
        "mnist label": dataset._label,
        "mnist x": x,
        "mnist y": y,
    }


if __name__ == "__main__":
    small = random.randint(0, 256, (12, 16, 3)).astype("uint8")
    given = {
        "odd": random.randint(0, 256, (7, 5, 3)).astype("uint8"),
        "even": small[:, :, :1],
        "float": random.rand(9, 6, 3).astype("float32"),
    }
    answers = {f"given {name}": x for name, x in (given | {"small": small}).items()}
    answers |= pictures() | sizes(given)
    for made in (parts(small), colours(small), mnist()):
        for name, x in made.items():
            answers[name] = x.asnumpy() if isinstance(x, mx.nd.NDArray) else np.asarray(x)
    np.savez_compressed(HERE / "answers.npz", **answers)
