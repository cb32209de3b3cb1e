"""Chapter 22: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import json

import numpy as np

from minihybrid.core import sym
from minihybrid.core.params import pack_arrays
from minihybrid_course.exercises.judging import Exercise, NotYet, Part, Parts, kind, need, tried

ARRAYS = {  # small ones first: the case in words, and what the file holds
    "one array of two numbers": {"v": np.float32([1, 2])},
    "one array of shape (2, 3)": {"v": np.arange(6, dtype="float32").reshape(2, 3)},
    "two arrays": {"a": np.float32([1, 2, 3, 4]), "bb": np.float32([[5]])},
    "an array of float16": {"half": np.float16([[[1], [2]], [[3], [4]]])},
    "arrays of int64 and uint8": {"long": np.int64([[-1, 2**40]]), "byte": np.uint8([7, 255])},
    "a name of two words and a é": {"été 2": np.float64([0.5])},
}


def is_dictionary(what, result, names):
    """A reader gives a dictionary with the file's names."""
    need(isinstance(result, dict), f"{what} it gives {kind(result)}, but a dictionary is needed")
    need(
        list(result) == list(names),
        f"{what} the names are {list(result)}, but {list(names)} stand in the file, as text",
    )


def reads_params(read):
    """Judge 22.3: files of parameters, version 2, with dense arrays."""
    for case, arrays in ARRAYS.items():
        what = f"for a file with {case}"
        data = pack_arrays(list(arrays.values()), list(arrays))
        result = tried(f"{what} the reader", read, data)
        is_dictionary(what, result, arrays)
        for name, expected in arrays.items():
            array = np.asarray(result[name])
            for field in ("dtype", "shape"):
                have, needed = getattr(array, field), getattr(expected, field)
                need(have == needed, f"{what} {name!r} has {field} {have}, but {needed} is needed")
            need(
                np.array_equal(array, expected),
                f"{what} {name!r} holds {array.tolist()}, but {expected.tolist()} is there",
            )
    return f"{len(ARRAYS)} files were read, to the last name"


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
    """Judge 22.4: relu becomes tanh, in both forms, and nothing else changes."""
    for case, text in texts():
        swapped = tried(f"swap of the file of `{case}`", swap, text)
        need(isinstance(swapped, str), f"swap gives {kind(swapped)}, but the new text is needed")
        try:
            graph = json.loads(swapped)
        except ValueError as error:
            raise NotYet(f"for `{case}` the new text is no JSON: {error}") from None
        expected = as_tanh(text)
        need(
            isinstance(graph, dict) and len(graph.get("nodes", ())) == len(expected["nodes"]),
            f"for `{case}` the new text has not the nodes of the old one",
        )
        for new, right in zip(graph["nodes"], expected["nodes"], strict=True):
            need(
                new.get("name") == right["name"],
                f"for `{case}` the node {right['name']!r} is called {new.get('name')!r} now: a "
                "name only finds things, and op and attrs say what a node does",
            )
            need(
                new == right,
                f"for `{case}` the node {right['name']!r} is {json.dumps(new)}, but "
                f"{json.dumps(right)} is needed",
            )
    return "both forms of relu are tanh now, and names and other operators are as they were"


EXERCISES = {
    "22.1": Exercise(
        "the number of bytes",
        Parts(
            "22.1",
            "head, arrays and names",
            Part(
                "the number of bytes",
                "02560c071b",
                "add up the head, both arrays, the count of names and each name",
                {
                    131: "24 for the head of the file are missing",
                    163: "float16 has two bytes a number",
                    147: "the count of names has 8 bytes, too",
                    139: "each name has 8 bytes before its letters",
                },
            ),
        ),
    ),
    "22.2": Exercise(
        "a pair: the bytes that the two errors name, for 99 and for 1",
        Parts(
            "22.2",
            "an unknown type stops the reader at once; a known one leads it astray",
            Part(
                "the byte for 99",
                "27db0c047d",
                "the message begins with the name of the file and the byte",
                {
                    60: "there the number lies; the reader has taken it before it complains",
                    116: "that is the other error",
                },
            ),
            Part(
                "the byte for 1",
                "3fcd6dbbd4",
                "how many bytes does the reader take for six numbers of float64?",
                {
                    64: "that is the other error; type 1 is known, so the reader goes on",
                    60: "type 1 is known, so the reader goes on",
                    88: "there the first array really ends; but float64 has eight bytes a number",
                    112: "there float64 numbers would end; the mark of the next array is read, too",
                },
            ),
        ),
    ),
    "22.3": Exercise("your function read(data), from bytes to a dictionary", reads_params),
    "22.4": Exercise("your function swap(text)", swaps),
}
