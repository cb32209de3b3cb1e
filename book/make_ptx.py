"""Make `minihybrid/data/ptx.json`: what a GPU's compiler makes of some kernels.

Use: PYTHONPATH=. $(python benchmarks/envs.py cuda13) book/make_ptx.py

Chapter 26 reads the file, because readers need not have the compiler. No GPU is needed
here either: the kernels are those that a simulated GPU runs.
"""

import json
import sys
from pathlib import Path

import minihybrid as mx
from minihybrid import nd
from minihybrid.codegen.gpu.cuda import compile_ptx, link

FILE = Path(__file__).parent.parent / "minihybrid/data/ptx.json"
CAPABILITY = 7, 5  # a T4, as Google Colab lends it

BY_HAND = """
from numba import cuda, float32

def scaled(x: float32[256], out: float32[256]):
    i = cuda.threadIdx.x
    out[i] = {} * x[i]
"""


def gated(x, scale, shift, y):
    """The five operators that chapter 26 follows."""
    return nd.relu(x * scale + shift) * y - x


def softmax(x):
    """Each row's shares, as chapter 26 writes it."""
    e = nd.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


SQUARE, LONG = (32, 32), (2**18,)
EXAMPLES = {  # name -> the function, and the shapes of its arguments
    "gated": (gated, [SQUARE] * 4),
    "elemwise_mul": (lambda a, b: a * b, [SQUARE] * 2),
    "elemwise_add": (lambda a, b: a + b, [SQUARE] * 2),
    "elemwise_sub": (lambda a, b: a - b, [SQUARE] * 2),
    "relu": (nd.relu, [SQUARE]),
    "four at once": (lambda a, b: nd.relu(a + b), [LONG] * 2),
    "bias": (lambda x, b: x * 2 + b, [(6, 12), (12,)]),
    "softmax": (softmax, [(4, 100)]),
}


def text_of(function, shapes):
    """The text of the one kernel that a function becomes."""
    arrays = [nd.ones(shape, ctx=mx.simulated_gpu()) for shape in shapes]
    plan, *_ = mx.function(function).plan_for(*arrays)
    (launch,) = plan.made.launches
    return launch.kernel


def texts():
    """The text of every kernel, by the names of the examples."""
    return {name: text_of(*example) for name, example in EXAMPLES.items()} | {
        f"{number} * x": BY_HAND.format(number) for number in ("float32(0.1)", "0.1", "2.0")
    }


def compiled(text):
    """A kernel's PTX, and what it takes of a GPU."""
    ptx = compile_ptx(text, CAPABILITY)
    report = link(ptx, CAPABILITY)[1]
    return {"text": text, "ptx": ptx, **report._asdict()}


if __name__ == "__main__":
    kernels = {name: compiled(text) for name, text in texts().items()}
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    path.write_text(json.dumps(kernels, indent=1) + "\n")
