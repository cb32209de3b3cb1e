"""Chapters 22 and 24. Readers that students write, and how they are judged.

Takes:   functions of bytes or of a text, a class that unpickles, numbers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 24.3, which measures.
"""

import io
import json
import struct

import numpy as np

from minihybrid.core import sym
from minihybrid.core.params import pack_arrays
from minihybrid_course.exercises.judging import (
    Exercise,
    NotYet,
    Part,
    Parts,
    kind,
    need,
    told,
    tried,
)

ARRAYS = {  # small ones first: the case in words, and what the file holds
    "one array of two numbers": {"v": np.float32([1, 2])},
    "one array of shape (2, 3)": {"v": np.arange(6, dtype="float32").reshape(2, 3)},
    "two arrays": {"a": np.float32([1, 2, 3, 4]), "bb": np.float32([[5]])},
    "an array of float16": {"half": np.float16([[[1], [2]], [[3], [4]]])},
    "arrays of int64 and uint8": {"long": np.int64([[-1, 2**40]]), "byte": np.uint8([7, 255])},
    "a name of two words and a é": {"été 2": np.float64([0.5])},
}


def is_dictionary(what, found, names):
    """A reader gives a dictionary with the file's names."""
    need(isinstance(found, dict), f"{what} it gives {kind(found)}, but a dictionary is needed")
    need(
        list(found) == list(names),
        f"{what} the names are {list(found)}, but {list(names)} stand in the file, as text",
    )


def reads_params(read):
    """Judge 22.3: files of parameters, version 2, with dense arrays."""
    for case, arrays in ARRAYS.items():
        what = f"for a file with {case}"
        data = pack_arrays(list(arrays.values()), list(arrays))
        found = tried(f"{what} the reader", read, data)
        is_dictionary(what, found, arrays)
        for name, wanted in arrays.items():
            array = np.asarray(found[name])
            for field in ("dtype", "shape"):
                have, needed = getattr(array, field), getattr(wanted, field)
                need(have == needed, f"{what} {name!r} has {field} {have}, but {needed} is needed")
            need(
                np.array_equal(array, wanted),
                f"{what} {name!r} holds {array.tolist()}, but {wanted.tolist()} is there",
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
        found = tried(f"swap of the file of `{case}`", swap, text)
        need(isinstance(found, str), f"swap gives {kind(found)}, but the new text is needed")
        try:
            graph = json.loads(found)
        except ValueError as error:
            raise NotYet(f"for `{case}` the new text is no JSON: {error}") from None
        wanted = as_tanh(text)
        need(
            isinstance(graph, dict) and len(graph.get("nodes", ())) == len(wanted["nodes"]),
            f"for `{case}` the new text has not the nodes of the old one",
        )
        for new, right in zip(graph["nodes"], wanted["nodes"], strict=True):
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


OPENS = (  # values, and their pickles, written by Python's own pickle
    (
        {"w": [1.5, 2.5]},
        b"\x80\x02}q\x00X\x01\x00\x00\x00wq\x01]q\x02(G?\xf8\x00\x00\x00\x00\x00\x00G@\x04\x00\x00\x00\x00\x00\x00es.",
    ),
    (
        [1, "two", (3, None, True)],
        b"\x80\x02]q\x00(K\x01X\x03\x00\x00\x00twoq\x01K\x03N\x88\x87q\x02e.",
    ),
)
NAMED = {  # names that must not be looked up -> pickles that ask for them
    "builtins.len": b"\x80\x03cbuiltins\nlen\nq\x00.",
    "collections.OrderedDict": b"\x80\x03ccollections\nOrderedDict\nq\x00)Rq\x01.",
}


def refuses_names(plain):
    """Judge 24.1: plain values open, and whatever must be looked up by its name does not."""
    names = [f"{one.__module__}.{one.__name__}" for one in getattr(plain, "__mro__", ())]
    need(
        {"_pickle.Unpickler", "pickle._Unpickler"} & set(names),
        f"a class that inherits from pickle.Unpickler is needed, not {kind(plain)}",
    )
    need(
        "find_class" in vars(plain),
        "the class has no method find_class of its own, so it looks up every name, as pickle does",
    )
    for value, data in OPENS:
        what = f"opening the pickle of {value!r}"
        found = tried(what, lambda data=data: plain(io.BytesIO(data)).load())
        need(found == value, f"the pickle of {value!r} opens as {found!r}")
    for name, data in NAMED.items():
        try:
            found = plain(io.BytesIO(data)).load()
        except Exception:
            continue
        raise NotYet(f"the name {name} was looked up, and {found!r} came: it must always fail")
    return "dictionaries, lists, texts and numbers open, and no name is looked up"


NUMBERS = struct.pack("<2f", 1, 2)


def packed(header, numbers=NUMBERS, size=None):
    """A safetensors file; `size` is a wrong length of its header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + numbers


def entry(shape=(2,), offsets=(0, 8), dtype="F32"):
    """A header for one array, w."""
    return {"w": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


GOOD = {
    "two numbers": (packed(entry()), {"w": np.float32([1, 2])}),
    "a shape of (2, 1)": (packed(entry((2, 1))), {"w": np.float32([[1], [2]])}),
    "two arrays": (
        packed(entry((1,), (0, 4)) | {"v": entry((1,), (4, 8))["w"]}),
        {"w": np.float32([1]), "v": np.float32([2])},
    ),
    "no arrays": (packed({}, b""), {}),
}
BAD = {  # what a file says -> the file
    "is empty": b"",
    "has fewer than eight bytes": b"\0\0\0",
    "says that its header is longer than the file": packed({}, b"", size=2**40),
    "has a header that is no JSON": packed(b"{"),
    "holds int32": packed(entry(dtype="I32")),
    "says bytes 0 to 80, but has 8": packed(entry((20,), (0, 80))),
    "says shape (3,) and 8 bytes": packed(entry((3,))),
    "says shape (-2,), and bytes 0 to -8": packed(entry((-2,), (0, -8))),
    "says shape (-2, -1), whose product is right": packed(entry((-2, -1))),
    "says bytes -8 to 0": packed(entry((2,), (-8, 0))),
    "says shape (2.0,), which is no whole number": packed(entry((2.0,))),
    "says shape (1125899906842624,)": packed(entry((2**50,), (0, 2**52))),
}


def trusts_nothing(read):
    """Judge 24.4: good files are read, and each bad one is refused by an error."""
    for case, (data, wanted) in GOOD.items():
        what = f"for a file with {case}"
        found = tried(f"{what} the reader", read, data)
        is_dictionary(what, found, wanted)
        for name, array in wanted.items():
            have = np.asarray(found[name])
            need(
                have.dtype == array.dtype and have.shape == array.shape and (have == array).all(),
                f"{what} {name!r} is {have.tolist()} of {have.dtype}, but {array.tolist()} of "
                "float32 is there",
            )
    for case, data in BAD.items():
        try:
            found = read(data)
        except MemoryError as error:
            raise NotYet(f"a file {case}: {told(error)}; look before you take memory") from None
        except Exception:
            continue
        raise NotYet(f"a file {case}, and the reader gave {str(found)[:60]}; it must refuse it")
    return f"{len(GOOD)} good files were read, and {len(BAD)} bad ones refused"


EXERCISES = {
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
    "24.1": Exercise("your class, which inherits from pickle.Unpickler", refuses_names),
    "24.2": Exercise(
        "a pair: how many files still open, and how many bytes may have any value",
        Parts(
            "24.2",
            "what is read and not used may be anything, and so may a length that counts nothing",
            Part(
                "the number of files",
                "b04c8cd21e",
                "go through all bits, and count where fate says opened",
                {
                    387: "these are refused; the others open",
                    576: "these are all files; most are refused",
                    184: "eight for each free byte, but single bits of others are free, too",
                    128: "the second length is free, too, unless it is too large for any memory",
                },
            ),
            Part(
                "the number of bytes",
                "d51483aff3",
                "a byte is free if all its eight bits may be flipped",
                {
                    24: "the second length has eight bytes, but its highest one is not free",
                    16: "the second length is free, too, unless it is too large for any memory",
                    8: "the device and its number are not used either",
                    189: "these are files; eight of them make a free byte",
                },
            ),
        ),
    ),
    "24.4": Exercise("your function safetensors(file), from bytes to a dictionary", trusts_nothing),
}
