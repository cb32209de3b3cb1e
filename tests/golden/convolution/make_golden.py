"""Write this folder's answers with MXNet 1.9.1: convolutions, pooling, upsampling.

A case has the operator, the shapes of its inputs (`numbers` makes them), its
attributes, the output, and the gradients of the inputs.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):
    MXNET_MKLDNN_ENABLED=0 benchmarks/envs/mxnet/bin/python \
        tests/golden/convolution/make_golden.py
"""

import json
import os
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, nd

HERE = Path(__file__).parent
if os.environ.get("MXNET_MKLDNN_ENABLED") != "0":
    raise SystemExit("MKL-DNN has no dilated deconvolution: set MXNET_MKLDNN_ENABLED=0")


def numbers(shape, start):
    """Multiples of 1/8 between -9/8 and 9/8, in an order that has no pattern."""
    count = int(np.prod(shape))
    values = ((np.arange(count) * 37 + start * 11) % 19 - 9) / 8
    return values.reshape(shape).astype("float32")


CASES = [
    (
        "Convolution",
        [(2, 3, 6, 5), (4, 3, 3, 2), (4,)],
        dict(kernel=(3, 2), num_filter=4, stride=(2, 1), pad=(1, 1)),
    ),
    (
        "Convolution",
        [(1, 4, 5, 6), (6, 2, 2, 3)],
        dict(kernel=(2, 3), num_filter=6, num_group=2, dilate=(2, 1), no_bias=True),
    ),
    (
        "Convolution",
        [(2, 2, 7), (3, 2, 3), (3,)],
        dict(kernel=(3,), num_filter=3, stride=(2,), pad=(1,)),
    ),
    ("Convolution", [(1, 2, 3, 4, 3), (2, 2, 2, 2, 2), (2,)], dict(kernel=(2, 2, 2), num_filter=2)),
    (
        "Deconvolution",
        [(1, 2, 3, 4), (2, 3, 3, 2)],
        dict(kernel=(3, 2), num_filter=3, stride=(2, 2), pad=(1, 0), adj=(1, 0)),
    ),
    (
        "Deconvolution",
        [(1, 2, 3, 3), (2, 2, 4, 4)],
        dict(kernel=(4, 4), num_filter=2, stride=(2, 2), target_shape=(6, 5)),
    ),
    (
        "Deconvolution",
        [(1, 4, 3, 3), (4, 1, 2, 2), (2,)],
        dict(kernel=(2, 2), num_filter=2, num_group=2, dilate=(2, 2), no_bias=False),
    ),
    ("Pooling", [(1, 2, 5, 6)], dict(kernel=(2, 3), stride=(2, 2))),
    (
        "Pooling",
        [(1, 2, 5, 6)],
        dict(kernel=(2, 2), stride=(2, 2), pad=(1, 1), pooling_convention="full", pool_type="avg"),
    ),
    (
        "Pooling",
        [(1, 2, 5, 6)],
        dict(kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg", count_include_pad=False),
    ),
    (
        "Pooling",
        [(1, 2, 5, 6)],
        dict(kernel=(3, 3), stride=(2, 2), pad=(1, 1), pooling_convention="full", pool_type="max"),
    ),
    ("Pooling", [(1, 2, 5, 6)], dict(kernel=(2, 2), pool_type="lp", p_value=2)),
    ("Pooling", [(1, 2, 5, 6)], dict(kernel=(2, 2), pool_type="sum", global_pool=True)),
    ("Pooling", [(1, 2, 7)], dict(kernel=(3,), stride=(2,), pool_type="avg")),
    ("UpSampling", [(1, 2, 2, 3)], dict(scale=2, sample_type="nearest")),
    (
        "UpSampling",
        [(1, 2, 3, 3), (2, 1, 4, 4)],
        dict(scale=2, sample_type="bilinear", num_filter=2),
    ),
    (
        "UpSampling",
        [(1, 1, 3, 3), (1, 1, 5, 5)],
        dict(scale=3, sample_type="bilinear", num_filter=1),
    ),
]


def flat(array):
    return [float(f"{v:.7g}") for v in array.asnumpy().ravel()]


def answer(op, shapes, attrs):
    """What MXNet says of one case."""
    values = [nd.array(numbers(s, start)) for start, s in enumerate(shapes)]
    for value in values:
        value.attach_grad()
    with autograd.record():
        out = getattr(nd, op)(*values, **attrs)
    out.backward(nd.array(numbers(out.shape, 5)))
    return {
        "op": op,
        "shapes": shapes,
        "attrs": attrs,
        "shape": out.shape,
        "out": flat(out),
        "grads": [flat(v.grad) for v in values],
    }


if __name__ == "__main__":
    assert mx.__version__ == "1.9.1"
    lines = ",\n".join(json.dumps(answer(*case)) for case in CASES)
    (HERE / "answers.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
