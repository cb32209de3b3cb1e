"""Write answers.json with MXNet 1.9.1: images in other sizes, masks and ranges.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):
    benchmarks/envs/mxnet/bin/python tests/golden/detection/make_golden.py
"""

import json
from pathlib import Path

import numpy as np

# Expressions over `nd`, `np` and the arrays of `given`. The gradient of mode='like' is not
# asked for: MXNet writes it outside of its memory.
VALUES = """
nd.contrib.arange_like(x)
nd.contrib.arange_like(x, start=2, step=-0.5, axis=2)
nd.contrib.arange_like(x, axis=-1, repeat=2)
nd.contrib.boolean_mask(x, nd.array([0, 1]))
nd.contrib.BilinearResize2D(x, nd.zeros((1, 1, 3, 4)), mode='like')
""".strip().split("\n")

# Gradients of the sum of output times 1, 2, 3, ... towards the array that is named, and
# what was computed.
GRADIENTS = """
x: nd.contrib.AdaptiveAvgPooling2D(x)
x: nd.contrib.AdaptiveAvgPooling2D(x, output_size=3)
x: nd.contrib.AdaptiveAvgPooling2D(x, output_size=(4, 9))
x: nd.contrib.BilinearResize2D(x, height=9, width=4)
x: nd.contrib.BilinearResize2D(x, height=1, width=3)
x: nd.contrib.BilinearResize2D(x, height=9, width=3, align_corners=False)
x: nd.contrib.BilinearResize2D(x, height=1, width=3, align_corners=False)
x: nd.contrib.BilinearResize2D(x, scale_height=2, scale_width=0.5)
x: nd.contrib.BilinearResize2D(x, scale_height=2, scale_width=2, mode='odd_scale')
x: nd.contrib.BilinearResize2D(x, mode='to_even_up')
x: nd.contrib.BilinearResize2D(x, mode='to_even_down')
x: nd.contrib.BilinearResize2D(x, mode='to_odd_up')
x: nd.contrib.BilinearResize2D(x, mode='to_odd_down')
x: nd.contrib.boolean_mask(x, nd.array([0, 1]))
""".strip().split("\n")


def given(nd):
    """name -> array: what the expressions are about."""
    return {"x": nd.array((np.arange(210) * 37 % 211 - 105).reshape(2, 3, 7, 5) / 64)}


def answer(expression, nd):
    """[[dtype, numbers], ...]: one an output."""
    outs = eval(expression, {**given(nd), "nd": nd, "np": np})
    outs = outs if isinstance(outs, (list, tuple)) else [outs]
    return [[np.dtype(o.dtype).name, o.asnumpy().tolist()] for o in outs]


def gradient(expression, nd, autograd):
    """The output and the gradient, each as (nested lists)."""
    name, _, expression = expression.partition(": ")
    names = given(nd)
    names[name].attach_grad()
    with autograd.record():
        out = eval(expression, {**names, "nd": nd, "np": np})
        y = (out * nd.arange(1, 1 + out.size).reshape(out.shape)).sum()
    y.backward()
    return [out.asnumpy().tolist(), names[name].grad.asnumpy().tolist()]


if __name__ == "__main__":
    import mxnet as mx

    answers = {e: answer(e, mx.nd) for e in VALUES}
    answers |= {e: gradient(e, mx.nd, mx.autograd) for e in GRADIENTS}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items())
    Path(__file__).with_name("answers.json").write_text(f"{{\n{lines}\n}}\n")
