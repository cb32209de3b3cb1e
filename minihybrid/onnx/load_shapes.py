"""Chapter 13. ONNX operators that move numbers without changing them, in ours.

Takes:   one node at a time, as a `Call`.
Gives:   `SHAPES`: ONNX name -> function of the call that gives the outputs.

What is left out: outputs whose shapes depend on values (NonZero, Unique).
"""

import numpy as np

from minihybrid.onnx.load_elementwise import label
from minihybrid.onnx.load_values import Value
from minihybrid.op import OPS


def _constant(call):
    array = call.attr("value", None, np.ndarray)
    for name, read, dtype in (("value_float", call.number, "float32"),
                              ("value_int", call.integer, "int64"),
                              ("value_ints", call.integers, "int64")):
        if read(name) is not None:
            array = np.array(read(name), dtype)
    if array is None:
        call.fail("one of the attributes value, value_float, value_int and value_ints "
                  "is needed")
    return Value("", (array, array))


def _shape(call):
    first, last = call.integer("start", 0), call.integer("end")
    return Value("", tuple(np.array(s[first:last], "int64") for s in call.shapes(0)))


def codes(call, wanted, shapes):
    """A shape for Reshape, of the shape wanted in each trial and the data's shapes.

    A length that is open is the data's own in this place (0), or follows (-1).
    """
    found = []
    for i, lengths in enumerate(zip(*wanted, strict=True)):
        own = [s[i] if i < len(s) else None for s in shapes]
        found.append(lengths[0] if lengths[0] == lengths[1] else
                     0 if list(lengths) == own else -1)
    if found.count(-1) > 1:
        call.fail(f"of the shape {tuple(found)} more than one length is open; fix "
                  "lengths when exporting (no dynamic axes)")
    return tuple(found)


def _reshape(call):
    shapes, zero = call.shapes(0), call.integer("allowzero", 0)
    wanted = []
    for trial, target in enumerate(call.need(1).arrays or (call.fixed(1, "the shape"),)):
        lengths = [int(n) for n in target.ravel()]
        if zero and 0 in lengths:
            call.fail("the shape has a length of 0, which is not supported")
        wanted.append([shapes[trial][i] if n == 0 and lengths[0] != lengths else n
                       for i, n in enumerate(lengths)])
    return OPS["Reshape"](call.sym(0), shape=codes(call, wanted, shapes),
                          name=label(call))


def _flatten(call):
    shapes = call.shapes(0)
    axis = call.integer("axis", 1)
    axis = axis if axis == len(shapes[0]) else call.axis(axis, len(shapes[0]))
    if axis == 1:
        return OPS["Flatten"](call.sym(0), name=label(call))
    fronts = [int(np.prod(s[:axis], dtype=object)) for s in shapes]
    backs = [int(np.prod(s[axis:], dtype=object)) for s in shapes]
    shape = codes(call, list(zip(fronts, backs, strict=True)), shapes)
    return OPS["Reshape"](call.sym(0), shape=shape, name=label(call))


def _same(call):
    return call.need(0)


SHAPES = {
    "Constant": _constant, "Shape": _shape, "Reshape": _reshape, "Flatten": _flatten,
    "Identity": _same,
}
