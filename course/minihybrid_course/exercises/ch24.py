"""Chapter 24: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import io
import json
import struct

import numpy as np

from minihybrid_course.exercises.ch22 import is_array, is_dictionary
from minihybrid_course.exercises.judging import Exercise, NotYet, error_text, kind, need, tried

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
    """Check 24.1: plain values open, and anything that's looked up by name doesn't."""
    names = [f"{one.__module__}.{one.__name__}" for one in getattr(plain, "__mro__", ())]
    need(
        {"_pickle.Unpickler", "pickle._Unpickler"} & set(names),
        f"expected a class that inherits from pickle.Unpickler, but got {kind(plain)}",
    )
    need(
        "find_class" in vars(plain),
        "the class has no method find_class of its own, so it looks up every name, as pickle does",
    )
    for value, data in OPENS:
        what = f"opening the pickle of {value!r}"
        result = tried(what, lambda data=data: plain(io.BytesIO(data)).load())
        need(result == value, f"the pickle of {value!r} opens as {result!r}")
    for name, data in NAMED.items():
        try:
            result = plain(io.BytesIO(data)).load()
        except Exception:
            continue
        raise NotYet(
            f"the name {name} was looked up and gave {result!r}, but find_class must always fail"
        )
    return "dictionaries, lists, strings and numbers open, and no name is looked up"


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
    "states that its header is longer than the file": packed({}, b"", size=2**40),
    "has a header that isn't JSON": packed(b"{"),
    "holds int32": packed(entry(dtype="I32")),
    "states bytes 0 to 80, but has 8": packed(entry((20,), (0, 80))),
    "states shape (3,) and 8 bytes": packed(entry((3,))),
    "states shape (-2,), and bytes 0 to -8": packed(entry((-2,), (0, -8))),
    "states shape (-2, -1), whose product is right": packed(entry((-2, -1))),
    "states bytes -8 to 0": packed(entry((2,), (-8, 0))),
    "states shape (2.0,), which isn't an integer": packed(entry((2.0,))),
    "states shape (1125899906842624,)": packed(entry((2**50,), (0, 2**52))),
}


def trusts_nothing(read):
    """Check 24.4: good files are read, and each bad one raises an error."""
    for case, (data, expected) in GOOD.items():
        what = f"for a file with {case}"
        result = tried(f"{what}, the reader", read, data)
        is_dictionary(what, result, expected)
        for name, array in expected.items():
            is_array(f"{what}, {name!r}", result[name], array)
    for case, data in BAD.items():
        try:
            result = read(data)
        except MemoryError as error:
            raise NotYet(
                f"a file {case}: {error_text(error)}; check sizes before you allocate memory"
            ) from None
        except Exception:
            continue
        raise NotYet(
            f"a file {case}, and the reader returned {str(result)[:60]}; it must raise an error"
        )
    return f"{len(GOOD)} good files were read, and {len(BAD)} bad ones rejected"


EXERCISES = {
    "24.1": Exercise("your class, which inherits from pickle.Unpickler", refuses_names),
    "24.4": Exercise("your function safetensors(file), from bytes to a dictionary", trusts_nothing),
}
