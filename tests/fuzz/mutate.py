"""Small changes to good files, made where they hurt: one field, one number, one name.

Takes:   the bytes of a file, a `random.Random`.
Gives:   `MUTATORS`: target -> function of both; the result may be longer.
"""

import json
import struct

from fuzz.mutate_onnx import mutate_onnx
from fuzz.words import NUMBERS, WORDS

from minihybrid.ops import OPS
from minihybrid.ops.registry import is_own

NAMES = sorted(filter(is_own, OPS))  # whatever other tests have entered
# Texts that a program which evaluates attributes would regret.
LITERALS = [
    "",
    " ",
    "0",
    "1",
    "2",
    "3",
    "4",
    "-1",
    "-2",
    "-3",
    "7",
    "2147483648",
    "1000000000",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "9" * 10_000,
    "0.5",
    "-0.5",
    "1e400",
    "-1e400",
    "1e-400",
    "nan",
    "inf",
    "-inf",
    "1e18",
    "0x10",
    "1_0",
    "1L",
    "٣",
    "1j",
    "...",
    "None",
    "True",
    "False",
    "true",
    "()",
    "[]",
    "{}",
    "(0,)",
    "(1,)",
    "(-1,)",
    "(2,)",
    "(0, 1)",
    "(1, 0)",
    "(2, 3)",
    "(2, 2)",
    "(-1, 0)",
    "(0, 0)",
    "(1, 1, 1)",
    "(0, 1, 2, 3)",
    "(-1, -1)",
    "(None, None)",
    "(None,)",
    "((0, 1), (1, 0))",
    "((0,),)",
    "(1.5, 2)",
    "(True,)",
    "('a', 'b')",
    "(1e400, 1)",
    "(1000000000, 1000000000)",
    "(4611686018427387904,)",
    "(" * 100_000,
    "-" * 100_000,
    "[" * 300 + "]" * 300,
    "(1,) * 1000000",
    "10**9**9",
    "b'x'",
    "{1, 2}",
    "{1: 2}",
    "'x'",
    "\0",
    "1\0",
    "'" + "x" * 1000 + "'",
    "(" + "1," * 100_000 + ")",
    "__import__('os').system('echo PWNED')",
    "PWNED",
    "lambda: PWNED",
    "f'{PWNED}'",
    "float32",
    "float64",
    "float16",
    "int8",
    "int32",
    "int64",
    "uint8",
    "bool",
    "O",
    "S1000000000",
    "(1000000,)f4",
    "f4,f4",
    "<f4",
    ">f8",
    "M8[s]",
    "complex64",
    "relu",
    "avg",
    "valid",
    "clip",
    "wrap",
    "constant",
    "reflect",
    "max",
    "fro",
    "ij,jk->ik",
    "ii->i",
    "...->...",
    "a" * 60 + "->",
    "NCHW",
    "NHWC",
]


def mutate_params(data, rng):
    """A number of a header is another, a part is gone, twice there, or from elsewhere."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(6)
        if how < 3:  # most numbers begin at a multiple of 4
            form = rng.choice("bBiIqQ")
            size = struct.calcsize(form)
            at -= at % 4
            value = rng.choice(NUMBERS) % 2 ** (8 * size)
            data[at : at + size] = value.to_bytes(size, "little")
        elif how == 3:
            del data[at : at + rng.choice((1, 4, 8, 1000))]
        elif how == 4:
            data[at:at] = data[:at][-rng.choice((1, 4, 8, 24, 60)) :]
        elif data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
    return bytes(data)


def mutate_graph(data, rng):
    """One field of the JSON is another; text that is no JSON changes byte by byte."""
    try:
        graph = json.loads(data)
        nodes = graph["nodes"]
        nodes[0]["name"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return mutate_text(data, rng)
    for _ in range(rng.randint(1, 3)):
        how = rng.choices(list(CHANGES), CHANGES.values())[0]
        try:
            how(graph, rng)
        except (TypeError, LookupError, AttributeError, ValueError):
            continue  # an earlier change took away what this one needs
    text = json.dumps(graph).encode()
    return mutate_text(text, rng) if rng.random() < 0.05 else text


def mutate_text(data, rng):
    """Bytes are others, gone, or written twice."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at, n = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8, 100))
        how = rng.randrange(4)
        if how == 0:
            data[at : at + n] = rng.choice(WORDS + LITERALS)[:100].encode(errors="surrogatepass")
        elif how == 1:
            del data[at : at + n]
        elif how == 2:
            data[at:at] = data[at : at + n] * rng.choice((1, 2, 50))
        elif data:
            data[at % len(data)] = rng.randrange(256)
    return bytes(data)


def _node(graph, rng):
    return rng.choice(graph["nodes"])


def _attribute(graph, rng):
    """An attribute of an operator gets another text."""
    node = _node(graph, rng)
    op = OPS.get(node.get("op"))
    names = list(op.attrs) if op else []
    names = names * 4 + ["num_args", "__shape__", "__dtype__", *WORDS]
    node.setdefault("attrs", {})[rng.choice(names)] = (
        rng.choice(LITERALS) if rng.random() < 0.7 else str(rng.choice(NUMBERS))
    )


def _drop_attribute(graph, rng):
    attrs = _node(graph, rng)["attrs"]
    del attrs[rng.choice(list(attrs))]


def _shape(graph, rng):
    """A variable has another shape or dtype."""
    node = rng.choice([n for n in graph["nodes"] if n["op"] == "null"])
    shape = tuple(
        rng.choice((0, 1, 2, 3, 4, 5, rng.choice(NUMBERS))) for _ in range(rng.randint(0, 5))
    )
    node.setdefault("attrs", {})["__shape__"] = str(shape)
    if rng.random() < 0.3:
        node["attrs"]["__dtype__"] = str(rng.choice((*range(8), -1, 99)))


def _operator(graph, rng):
    """A node is of another operator."""
    _node(graph, rng)["op"] = rng.choice(NAMES)


def _input(graph, rng):
    """An input is another node's output."""
    inputs = _node(graph, rng)["inputs"]
    entry = rng.choice(inputs)
    entry[rng.randrange(len(entry))] = rng.choice(
        (*range(len(graph["nodes"])), rng.choice(NUMBERS))
    )


def _n_inputs(graph, rng):
    """A node has an input more, or less."""
    inputs = _node(graph, rng)["inputs"]
    if rng.random() < 0.5:
        inputs.append([rng.randrange(len(graph["nodes"])), 0, 0])
    else:
        inputs.pop()


def _twice(graph, rng):
    """The last node again, after it and reading it: sizes double, names repeat."""
    nodes = graph["nodes"]
    last = len(nodes) - 1
    for _ in range(rng.choice((1, 1, 3, 70))):
        node = json.loads(json.dumps(nodes[-1]))
        node["inputs"] = [[last, 0, 0] for _ in node["inputs"]]
        nodes.append(node)
        last += 1
    graph["heads"] = [[last, 0, 0]]


def _chain(graph, rng):
    """One more operator reads the outputs."""
    name = rng.choice(NAMES)
    op, last = OPS[name], len(graph["nodes"]) - 1
    n = len(op.inputs) if isinstance(op.inputs, tuple) else rng.randint(1, 3)
    attrs = {k: rng.choice(LITERALS) for k in op.attrs if rng.random() < 0.3}
    graph["nodes"].append(
        {
            "op": name,
            "name": rng.choice(WORDS),
            "attrs": attrs,
            "inputs": [[rng.choice((last, rng.randint(0, last))), 0, 0] for _ in range(n)],
        }
    )
    graph["heads"] = [[last + 1, 0, 0]]


def _name(graph, rng):
    _node(graph, rng)["name"] = rng.choice([n["name"] for n in graph["nodes"]] + WORDS)


def _heads(graph, rng):
    graph["heads"] = [
        [rng.randrange(len(graph["nodes"])), rng.choice((0, 0, 0, 1)), 0]
        for _ in range(rng.randint(0, 3))
    ]


def _anything(graph, rng):
    """Some field, anywhere, is of another kind."""
    place = rng.choice([graph, _node(graph, rng)])
    place[rng.choice(list(place))] = rng.choice(
        [None, True, 1.5, [], {}, "x", [[]], {"a": {}}, [[0, 0]], *NUMBERS]
    )


CHANGES = {
    _attribute: 8,
    _drop_attribute: 1,
    _shape: 4,
    _operator: 3,
    _input: 3,
    _n_inputs: 2,
    _twice: 1,
    _chain: 4,
    _name: 1,
    _heads: 1,
    _anything: 1,
}
MUTATORS = {"params": mutate_params, "graph": mutate_graph, "onnx": mutate_onnx}
