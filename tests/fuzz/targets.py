"""What a careful user does with a file of a stranger; the fuzzer and tests call it.

Each target takes the bytes of a file. It may end well or with an error of the library's
own; anything else, long waits and large memory are findings (`tried`).
"""

import resource
import time
import traceback
import zlib

import numpy as np

from minihybrid import nd, params, serial
from minihybrid.graph import Graph
from minihybrid.op import HybridError, Spec
from minihybrid.plan import Plan
from minihybrid.sym import replay, trace

LIMIT_S, LIMIT_BYTES = 1.0, 200 * 2**20
RUN_BYTES = 2**16   # graphs whose values take more are not run here
MARK = "PWNED"      # names and attributes with this word must not reach source


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
    symbol = serial.fromjson(data, "file")
    text = symbol.tojson()
    if serial.fromjson(text).tojson() != text:
        raise Finding(f"written, read and written again, it is another: {text}")
    graph = Graph.of(symbol)
    graph.show()
    symbol.debug_str()
    symbol.list_outputs(), symbol.attr_dict()
    choice = zlib.crc32(data)
    arguments = symbol.list_arguments()
    shape = [(2, 3), (2, 3, 4, 4), (3,), (2, 4, 3)][choice % 4]
    types = symbol.infer_type_partial()
    found = symbol.infer_shape_partial()
    if not all(all(s) for group in found for s in group):
        first = [shape] * (arguments[:1] != []) + [None] * (len(arguments) - 1)
        known = [a if all(a) and a else s for a, s in zip(found[0], first, strict=True)]
        found = symbol.infer_shape_partial(*known)
    internals = symbol.get_internals()
    sizes = internals.infer_shape(*found[0])[1]
    if sizes is None or 16 * sum(int(np.prod(s, dtype=float)) for s in sizes) \
            > RUN_BYTES or len(graph.nodes) > 100:
        return
    rng = np.random.default_rng(choice)
    specs = [Spec(s, np.dtype(t or "float32")) for s, t in zip(
        found[0] + found[2], types[0] + types[2], strict=True)]
    values = [nd.array(rng.integers(0, 3, s.shape), dtype=s.dtype) for s in specs]
    variables = sum(symbol._variables(), [])
    replay(symbol.refs, dict(zip(variables, values, strict=True)))
    if choice % 8 == 0:
        write_source(symbol, variables, specs)


def write_source(symbol, variables, specs):
    """The generated source of both targets; no word of the file may stand in it."""
    names = [f"{MARK}{i}" for i in range(len(variables))]
    graph, _ = trace(lambda *xs: replay(
        symbol.refs, dict(zip(variables, xs, strict=True))),
        dict(zip(names, specs, strict=True)))
    for target in ("numpy", "cpu"):
        plan = Plan(graph, names, target=target)
        if MARK in plan.source + plan.caller:
            raise Finding(f"a word of the file stands in the source: {plan.source}")


TARGETS = {"params": read_params, "graph": read_graph}


def tried(target, data):
    """`None` if a target did with these bytes what it may, else what was found."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, found = time.process_time(), None
    try:
        TARGETS[target](data)
    except HybridError:
        pass
    except Exception as error:
        where = [f for f in traceback.extract_tb(error.__traceback__)
                 if "minihybrid" in f.filename][-1:]
        place = f"{where[0].filename.rpartition('minihybrid/')[2]}:{where[0].lineno} " \
            if where else ""
        found = f"{place}{type(error).__name__}: {str(error)[:200]}"
    took = time.process_time() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if took > LIMIT_S:
        found = f"{took:.1f} s of processor time"
    if grown * 1024 > LIMIT_BYTES:
        found = f"{grown >> 10} MB of memory"
    return found
