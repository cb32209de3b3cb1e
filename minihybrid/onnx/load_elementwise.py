"""Chapter 13. ONNX operators that work number by number, and reductions, in ours.

Takes:   one node at a time, as a `Call`.
Gives:   `ELEMENTWISE`: ONNX name -> function of the call that gives the outputs.

What is left out: whole numbers' division, bits, texts.
"""

import numpy as np

from minihybrid.onnx.load_file import ELEMENTS
from minihybrid.op import OPS


def label(call):
    """The name for our node: what the file calls the output."""
    return call.scope.unique(call.node.outputs[0])


def _plain(name, **fixed):
    """The same operator under our name."""
    def made(call):
        return OPS[name](*(call.sym(i) for i in range(len(call.inputs))), **fixed,
                         name=label(call))
    return made


def single(call, i):
    """An input that is one constant number, as a `float`; else `None`.

    Weights with axes stay arrays, so that they can be trained.
    """
    value = call.need(i)
    array = value.fixed
    if array is None or array.size != 1 or (array.ndim and value.trained):
        return None
    other = call.need(1 - i)
    fits = array.ndim == 0 or other.arrays is None and array.ndim <= call.ndim(1 - i)
    return float(array.ravel()[0]) if fits else None


def _binary(name, scalar, reverse=None):
    """An operator of two inputs; one that is a constant number becomes an attribute."""
    def made(call):
        right = single(call, 1)
        if right is not None and call.need(0).arrays is None:
            return OPS[scalar](call.sym(0), scalar=right, name=label(call))
        left = single(call, 0)
        if left is not None and call.need(1).arrays is None:
            return OPS[reverse or scalar](call.sym(1), scalar=left, name=label(call))
        return OPS[name](call.sym(0), call.sym(1), name=label(call))
    return made


def _division(call):
    if call.dtype(0) is not None and call.dtype(0).kind != "f":
        call.fail(f"the inputs are {call.dtype(0)}, but only real numbers are divided "
                  "here")
    return _binary("broadcast_div", "_div_scalar", "_rdiv_scalar")(call)


def _many(name):
    """An operator of any number of inputs, two at a time."""
    def made(call):
        out = call.sym(0)
        for i in range(1, len(call.inputs)):
            out = OPS[name](out, call.sym(i))
        return out
    return made


ELEMENTWISE = {
    "Add": _binary("broadcast_add", "_plus_scalar"),
    "Sub": _binary("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
    "Mul": _binary("broadcast_mul", "_mul_scalar"),
    "Div": _division,
    "Relu": _plain("relu"), "Sigmoid": _plain("sigmoid"), "Tanh": _plain("tanh"),
}
