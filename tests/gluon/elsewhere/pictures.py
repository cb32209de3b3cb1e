"""A program for MXNet 1.9.1 that goes through the files of records in a folder; prints the
labels, the fill and the pictures of each batch, as JSON. `test_imageiter.py` runs it here, too,
with another `mx`.
"""

import json
import random
import sys

import mxnet as mx
import numpy as np

folder, results = sys.argv[1], {}
PICTURE = np.random.RandomState(1).randint(0, 256, (4, 5, 3)).astype("float32")


def rounds(name, batches, n, pads):
    results[name] = []
    for turn in range(n):
        for batch in batches:
            data, label = batch.data[0].asnumpy(), batch.label[0].asnumpy()
            pad = batch.pad if turn < pads else None
            results[name].append([label.tolist(), pad, data.round(4).tolist()])
        results[name].append("next")
        batches.reset()


def records(name, n=1, file="some", **more):
    how = {"path_imgrec": f"{folder}/{file}.rec", "data_shape": (3, 4, 5), "batch_size": 3}
    batches = mx.io.ImageRecordIter(**dict(how, preprocess_threads=1, **more))
    rounds(f"records {name}", batches, n, 1)  # later, MXNet now and then tells an older pad


def pictures(name, n=3, file="some", **more):
    how = {"path_imgrec": f"{folder}/{file}.rec", "path_imgidx": f"{folder}/{file}.idx"}
    how.update(batch_size=3, data_shape=(3, 4, 5), **more)
    rounds(f"pictures {name}", mx.image.ImageIter(**how), n, n)


records("plain", 3)
records("part 0", 3, num_parts=2, part_index=0)
records("part 1", 3, num_parts=3, part_index=1)
records("indexed part", 3, num_parts=3, part_index=1, path_imgidx=folder + "/some.idx")
records("labels", file="labels", label_width=2)
records("resize", resize=7)
records("cubic", resize=7, inter_method=2)
norm = {"mean_r": 1, "mean_g": 2, "mean_b": 3, "std_r": 4, "std_g": 5, "std_b": 6}
records("norm", scale=0.5, **norm)
records("mirror", mirror=True)
for name in ("pad", "discard", "roll_over"):
    pictures(name, last_batch_handle=name)
pictures("part", 2, num_parts=2, part_index=1)
pictures("labels", 1, "labels", label_width=2)
pictures("changed", 1, resize=7, mean=True, std=np.array([2.0, 3, 4]), inter_method=1)

random.uniform = lambda low, high: high / 2
for name in ("Brightness", "Contrast", "Saturation", "Hue"):
    change = getattr(mx.image, name + "JitterAug")(0.5)
    results[name] = change(mx.nd.array(PICTURE)).asnumpy().tolist()
grey = mx.image.RandomGrayAug(1.0)(mx.nd.array(PICTURE))
results["grey"] = grey.asnumpy().tolist()
results["names"] = [
    type(a).__name__
    for a in mx.image.CreateAugmenter(
        (3, 4, 4), 5, True, True, True, True, True, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1
    )
]
print(json.dumps(results))
