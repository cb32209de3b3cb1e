"""What a careful user does with a file of a stranger; the fuzzer and tests call it.

Each target takes the bytes of a file. It may end well or with an error of the library's
own; anything else, long waits and large memory are findings (`tried`).
"""

import math
import resource
import time
import traceback
import zlib

import numpy as np
from minihybrid.sym import replay, trace

from minihybrid import nd, sym
from minihybrid.core import params
from minihybrid.core.graph import Graph
from minihybrid.core.op import HybridError, Spec
from minihybrid.core.plan import Plan

LIMIT_S, LIMIT_BYTES = 1.0, 200 * 2**20
RUN_BYTES = 2**16  # graphs whose values take more are not run here
MARK = "PWNED"  # names and attributes with this word must not reach source


class Finding(AssertionError):
    """A file that did what no file may do."""


def read_params(data):
    """A parameter file; what is read must not be more than the file has."""
    arrays, names = params.unpack_arrays(data, "file")
    if sum(a.nbytes for a in arrays) + sum(len(n.encode()) for n in names) > len(data):
        raise Finding("more was read than there is")
    if names and len(names) != len(arrays):
        raise Finding(f"{len(names)} names for {len(arrays)} arrays")
    nd.load_frombuffer(data)


def read_graph(data):
    """A symbol file: look at it, write it again, type it, and run it if it is small."""
    symbol = sym.fromjson(data, "file")
    look(symbol)
    choice = zlib.crc32(data)
    types = symbol.infer_type_partial()
    shapes = symbol.infer_shape_partial()
    if not all(all(s) for group in shapes for s in group):  # a guess helps
        guess = [(2, 3), (2, 3, 4, 4), (3,), (2, 4, 3)][choice % 4]
        known = [tuple(n or 2 for n in s) or None for s in shapes[0]]
        if not any(known):
            known[:1] = [guess] * len(known[:1])
        shapes = symbol.infer_shape_partial(*known)
    sizes = symbol.get_internals().infer_shape(*shapes[0])[1]
    if sizes is None or not is_small(sizes):
        return
    rng = np.random.default_rng(choice)
    specs = [
        Spec(s, np.dtype(t or "float32"))
        for s, t in zip(shapes[0] + shapes[2], types[0] + types[2], strict=True)
    ]
    run(symbol, [rng.integers(0, 3, s.shape).astype(s.dtype) for s in specs], choice % 8 == 0)


def read_onnx(data):
    """An ONNX file: translate it, look at it, run it if it is small."""
    from minihybrid.formats.onnx.load.file import read_model
    from minihybrid.formats.onnx.load.model import translate

    model = read_model(data, "file")
    symbol, scope = translate(model)
    look(symbol)
    declared = {
        name: tuple(n if isinstance(n, int) else 2 for n in shape or (2, 3))
        for name, _, shape in model.inputs
    }
    shapes = [
        scope.arrays[n].shape if n in scope.arrays else declared[n] for n in symbol.list_arguments()
    ]
    sizes = symbol.get_internals().infer_shape(*shapes)[1]
    if sizes is None or not is_small(sizes):
        return
    choice = zlib.crc32(data)
    rng = np.random.default_rng(choice)
    kinds = {name: dtype for name, dtype, _ in model.inputs}
    run(
        symbol,
        [
            scope.arrays[n]
            if n in scope.arrays
            else rng.integers(0, 3, declared[n]).astype(kinds[n] or "float32")
            for n in symbol.list_inputs()
        ],
        choice % 8 == 0,
    )


def look(symbol):
    """Print a symbol, and write it twice: the second must be the first."""
    text = symbol.tojson()
    if sym.fromjson(text).tojson() != text:
        raise Finding(f"written, read and written again, it is another: {text}")
    Graph.of(symbol).show()
    symbol.debug_str(), symbol.list_outputs(), symbol.attr_dict()


def is_small(sizes):
    """Whether values of these shapes may be computed here."""
    return len(sizes) < 200 and 16 * sum(math.prod(s) for s in sizes) < RUN_BYTES


def run(symbol, arrays, with_source):
    """Compute on arrays, one a variable; write the sources that would be compiled."""
    variables = sum(symbol._variables(), [])
    arrays = [nd.array(a, dtype=a.dtype) for a in arrays]
    replay(symbol.refs, dict(zip(variables, arrays, strict=True)))
    if with_source:
        write_source(symbol, variables, [Spec(a.shape, np.dtype(a.dtype)) for a in arrays])


def write_source(symbol, variables, specs):
    """The generated source of both targets; no word of the file may stand in it."""
    names = [f"{MARK}{i}" for i in range(len(variables))]
    graph, _ = trace(
        lambda *xs: replay(symbol.refs, dict(zip(variables, xs, strict=True))),
        dict(zip(names, specs, strict=True)),
    )
    for target in ("numpy", "cpu"):
        plan = Plan(graph, names, target=target)
        if MARK in plan.source + plan.caller:
            raise Finding(f"a word of the file stands in the source: {plan.source}")


TARGETS = {"params": read_params, "graph": read_graph, "onnx": read_onnx}


def tried(target, data):
    """`None` if a target did with these bytes what it may, else what was found."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, finding = time.process_time(), None
    try:
        TARGETS[target](data)
    except HybridError:
        pass
    except Exception as error:
        where = [
            f for f in traceback.extract_tb(error.__traceback__) if "minihybrid" in f.filename
        ][-1:]
        place = (
            f"{where[0].filename.rpartition('minihybrid/')[2]}:{where[0].lineno} " if where else ""
        )
        finding = f"{place}{type(error).__name__}: {str(error)[:200]}"
    took = time.process_time() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if took > LIMIT_S:
        finding = f"{took:.1f} s of processor time"
    if grown * 1024 > LIMIT_BYTES:
        finding = f"{grown >> 10} MB of memory"
    return finding
