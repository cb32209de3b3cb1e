"""Chapter 36. Writes outside of `record()`: a tape that reads the old values keeps a copy.

Takes:   an array that is about to be written, or another name of its memory.
Gives:   `renew`, which gives it a new place on the tape, and `follow`, by which its other names
         take that place when they are read; `share`, for variables that are views; `old_values`.

What is left out: writes by other libraries into memory that they share, and states of
operators, such as running means.
"""

from sys import getrefcount
from typing import Any

import numpy as np

from minihybrid.core.array import NDArray
from minihybrid.core.op import Constant, Node, ndarray
from minihybrid.ops.registry import OPS


class SharedVariable(Node):
    """The place on the tape of a variable in another array's memory.

    snapshot: of that array.
    """

    __slots__ = ("snapshot",)

    def __init__(self, array: Any) -> None:
        super().__init__(None, values=(array.data,), info=array.node.info)
        self.snapshot: Any = Constant(array.data, array).snapshot


def share(array: Any) -> None:
    """Let a new variable know of writes through other names of its memory."""
    array.node = SharedVariable(array)


def old_values(node: Any) -> Any:
    """The values of a place on the tape before its memory was written."""
    (part,), snapshot = node.values, node.snapshot
    if type(part) is not ndarray:
        return snapshot.values.view(part.shape, part.dtype, part.address - snapshot.memory.address)
    start = part.ctypes.data - snapshot.memory.ctypes.data
    content = snapshot.values.reshape(-1).view(np.uint8)[start : start + part.nbytes]
    return content.view(part.dtype).reshape(part.shape)


def _next(array: Any) -> Node:
    """The new place of a variable, to which the old one passes its gradient from now on."""
    old, values = array.node, (array.data,)
    new = Node(None, values=values, info=old.info) if array.base is None else SharedVariable(array)
    old.op, old.inputs = OPS["_copy"], ((new, 0),)
    return new


def renew(array: Any, root: Any) -> None:
    """Before a write: copy the values for a tape that reads them, and take a new place on it.

    A variable that no tape reads keeps its place, so a step of a `Trainer` copies nothing: its
    place has no holders but the names of the array.

    root:    whose memory it is, of which `array` may be a view.
    """
    if array is not root:
        follow(array)
    elif array.node.op is None and getrefcount(array.node) == 2:  # the usual case, at once
        return
    names = (array,) if array is root else (array, root)
    for name in names:
        node, i = name.node, name.index
        if node is None or not node.values or node.values[i] is not name.data:
            continue
        if node.op is not None:
            new = Node(OPS["_copy"], ((node, i),), values=(name.data,))
        else:
            bases = [each.base for each in names if each.base is not None]
            n_refs = sum(each.node is node for each in names) + sum(b[1] is node for b in bases)
            del bases
            if getrefcount(name.node) == n_refs + 2:  # `node`, and what is passed here
                continue
            new = _next(name)
        if type(node) is not SharedVariable:  # its old values are in the snapshot
            node.values = (*node.values[:i], name.data.copy(), *node.values[i + 1 :])
        for each in names:
            if each.node is node:
                each.node, each.index = new, 0
            if each.base is not None and each.base[1] is node:
                each.base = each.base[0], new


def follow(array: Any) -> None:
    """Take the place on the tape that a write through another name of the memory has made."""
    root, node = array.base
    if array.node is node is not None and array.data is root.data:  # nd's and np's name
        array.node, array.index, array.base = root.node, root.index, (root, root.node)
    elif type(array.node) is SharedVariable and array.node.snapshot.values is not None:
        array.node = _next(array)
    place: Any = root.node
    while place is not None and place is not node and place.op is OPS["_copy"] and place.inputs:
        place = place.inputs[0][0]
    if place is node:  # there were such writes alone, which views may not have seen
        array.base = root, root.node


def overwrite(array: NDArray, data: Any) -> None:
    """Replace all elements at once, as an optimizer does; off the tape, recorded or not."""
    array._preserve()
    array.data[...] = data
