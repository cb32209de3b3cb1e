"""Chapter 22: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import json

import numpy as np

from minihybrid.core import sym
from minihybrid.core.params import pack_arrays
from minihybrid_course.exercises.judging import Exercise, NotYet, equal, expect, need, same, tried

ARRAYS = {  # small ones first: the case in words, and what the file holds
    "one array of two numbers": {"v": np.float32([1, 2])},
    "one array of shape (2, 3)": {"v": np.arange(6, dtype="float32").reshape(2, 3)},
    "two arrays": {"a": np.float32([1, 2, 3, 4]), "bb": np.float32([[5]])},
    "an array of float16": {"half": np.float16([[[1], [2]], [[3], [4]]])},
    "arrays of int64 and uint8": {"long": np.int64([[-1, 2**40]]), "byte": np.uint8([7, 255])},
    "a name of two words and a é": {"été 2": np.float64([0.5])},
}


def is_dictionary(what, result, names):
    """Check that a reader returns a dictionary with the file's names."""
    expect(result, dict, "a dictionary", f"{what}, ")
    same(list(result), list(names), f"{what}, the list of names", "they are strings")


def is_array(what, actual, expected):
    """Check one array of a file: its type, shape and elements."""
    actual = np.asarray(actual)
    for field in ("dtype", "shape"):
        same(getattr(actual, field), getattr(expected, field), f"{what}: its {field}")
    equal(actual, expected, what, rtol=0, atol=0)


def reads_params(read):
    """Check 22.3: files of parameters, version 2, with dense arrays."""
    for case, arrays in ARRAYS.items():
        what = f"for a file with {case}"
        data = pack_arrays(list(arrays.values()), list(arrays))
        result = tried(f"{what}, the reader", read, data)
        is_dictionary(what, result, arrays)
        for name, expected in arrays.items():
            is_array(f"{what}, {name!r}", result[name], expected)
    return f"{len(ARRAYS)} files were read, with all names"


def texts():
    """Graph files for 22.4: what each is, and its text."""
    x = sym.var("x")
    yield "relu(x)", sym.relu(x, name="y").tojson()
    yield 'Activation(x, act_type="relu")', sym.Activation(x, act_type="relu", name="y").tojson()
    yield "sigmoid(x)", sym.sigmoid(x, name="y").tojson()
    yield "relu(relu_scale)", sym.relu(sym.var("relu_scale"), name="relu_fwd").tojson()
    yield "softsign of relu(x)", sym.softsign(sym.relu(x, name="y")).tojson()


def as_tanh(text):
    """The graph of a file, with tanh in place of each relu."""
    graph = json.loads(text)
    for node in graph["nodes"]:
        attrs = node.get("attrs", {})
        if node["op"] == "relu":
            node["op"] = "tanh"
        if attrs.get("act_type") == "relu":
            attrs["act_type"] = "tanh"
    return graph


def swaps(swap):
    """Check 22.4: relu becomes tanh, in both forms, and nothing else changes."""
    for case, text in texts():
        swapped = tried(f"swap of the file of `{case}`", swap, text)
        expect(swapped, str, "the new text", "from swap, ")
        try:
            graph = json.loads(swapped)
        except ValueError as error:
            raise NotYet(f"for `{case}`, the new text isn't JSON: {error}") from None
        expected = as_tanh(text)
        need(
            isinstance(graph, dict) and len(graph.get("nodes", ())) == len(expected["nodes"]),
            f"for `{case}`, the new text doesn't have the old one's nodes",
        )
        for new, right in zip(graph["nodes"], expected["nodes"], strict=True):
            need(
                new.get("name") == right["name"],
                f"for `{case}`, the node {right['name']!r} is called {new.get('name')!r} now: "
                "change op and attrs, which determine what a node does, and no name",
            )
            need(
                new == right,
                f"for `{case}`, the node {right['name']!r} is {json.dumps(new)}, but must be "
                f"{json.dumps(right)}",
            )
    return "both forms of relu are tanh, and names and other operators are unchanged"


EXERCISES = {
    "22.3": Exercise("your function read(data), from bytes to a dictionary", reads_params),
    "22.4": Exercise("your function swap(text)", swaps),
}
