"""Lower nets to loop IR kernels for any batch size.

Defines: `lowered`, which turns a net's cache entry into a `Program`: kernels and calls.

The batch size is a symbol (`core/lengths.py`), and all kernels take it as an argument. A net is
lowered for two values; if the kernels differ, or a size isn't a + b N, the batch size stays fixed.
Products and convolutions are plain loop nests here; schedules make them fast.
Not supported: random numbers. Loops in a graph are unrolled.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from minihybrid.codegen.check import KernelError, verify
from minihybrid.codegen.ir import INDEX, Buffer, Const, Expr, For, Kernel, Store, Type, Var, const
from minihybrid.codegen.read import Unreadable, read
from minihybrid.codegen.source import Kernel as Text
from minihybrid.core.graph import Graph
from minihybrid.core.lengths import Length, terms_of
from minihybrid.core.op import HybridError
from minihybrid.core.passes import cse, expand, optimize
from minihybrid.core.passes.memory import places
from minihybrid.ops.convolution import out_size
from minihybrid.ops.loops import T, add_up, each, loops, store
from minihybrid.passes.fuse import merge
from minihybrid.passes.lower import lower
from minihybrid.passes.scan import without_loops

N = Var("N", INDEX)
LENGTHS = 11, 13  # batch sizes for which a net is lowered
VECTOR = 4  # lanes; with fewer output positions, products vectorize along the window


# -- plain loops of operators that other targets tile ----------------------------------
@loops(lambda a, b, bias, out, lengths, steps: (*lengths, *steps, bias is not out))
def product(a, b, bias, out, count, m, n, depth, ai, ak, bj, bk, has_bias):
    """out[g, i, j] = sum over k of a[g, i, k] * b[g, k, j], plus bias[j]"""
    for g, i, j in each(count, m, n):
        acc = T(0)
        for k in range(depth):
            acc = add_up(
                acc, a[g * (m * depth) + i * ai + k * ak] * b[g * (n * depth) + j * bj + k * bk]
            )
        store(out, g * (m * n) + i * n + j, acc + bias[j] if has_bias else acc)


def _inside(at, size):
    return 0 <= at and at < size


def _near(at, size):
    return min(max(at, 0), size - 1)


def _at(o, tap, stride, dilate, pad):
    return o * stride + tap * dilate - pad


@loops(lambda *arrays, geometry, more: (*geometry, *more))
def windows(
    data, weight, out, work, n, groups, ins, filters, size, outs, kernel, stride, dilate, pad,
    taps, places, along,
):  # fmt: skip
    """Copy windows to `work` (im2col), window by window or position by position; then
    multiply."""
    for b in range(n):
        for g in range(groups):
            for c in range(ins):
                for i in range(kernel[0]):
                    for j in range(kernel[1]):
                        for k in range(kernel[2]):
                            tap = ((c * kernel[0] + i) * kernel[1] + j) * kernel[2] + k
                            for z in range(outs[0]):
                                for y in range(outs[1]):
                                    for x in range(outs[2]):
                                        p = (z * outs[1] + y) * outs[2] + x
                                        work[p * taps + tap if along else tap * places + p] = _read(
                                            data,
                                            (b * groups + g) * ins + c,
                                            _at(z, i, stride[0], dilate[0], pad[0]),
                                            _at(y, j, stride[1], dilate[1], pad[1]),
                                            _at(x, k, stride[2], dilate[2], pad[2]),
                                            size,
                                        )
            for o in range(filters):
                for q in range(places):
                    acc = T(0)
                    for t in range(taps):
                        seen = work[q * taps + t if along else t * places + q]
                        acc = add_up(acc, weight[(g * filters + o) * taps + t] * seen)
                    store(out, ((b * groups + g) * filters + o) * places + q, acc)


def _read(data, channel, z, y, x, size):
    return (
        data[
            ((channel * size[0] + _near(z, size[0])) * size[1] + _near(y, size[1])) * size[2]
            + _near(x, size[2])
        ]
        if _inside(z, size[0]) and _inside(y, size[1]) and _inside(x, size[2])
        else T(0)
    )


@loops(lambda *arrays, geometry: geometry)
def back(grad, weight, out, n, groups, ins, filters, size, outs, kernel, stride, dilate, pad):
    """Accumulate, for each data element, the gradients of the windows that contain it."""
    for b, g, c, z, y, x in each(n, groups, ins, size[0], size[1], size[2]):
        acc = T(0)
        for o in range(filters):
            for i in range(kernel[0]):
                for j in range(kernel[1]):
                    for k in range(kernel[2]):
                        if (
                            _hit(z, i, outs[0], stride[0], dilate[0], pad[0])
                            and _hit(y, j, outs[1], stride[1], dilate[1], pad[1])
                            and _hit(x, k, outs[2], stride[2], dilate[2], pad[2])
                        ):
                            p = _from(z, i, stride[0], dilate[0], pad[0]) * outs[1]
                            p = (p + _from(y, j, stride[1], dilate[1], pad[1])) * outs[2]
                            p = p + _from(x, k, stride[2], dilate[2], pad[2])
                            q = ((g * filters + o) * ins + c) * kernel[0] + i
                            q = (q * kernel[1] + j) * kernel[2] + k
                            at = ((b * groups + g) * filters + o) * (outs[0] * outs[1] * outs[2])
                            acc += grad[at + p] * weight[q]
        to = (((b * groups + g) * ins + c) * size[0] + z) * size[1]
        store(out, (to + y) * size[2] + x, acc)


def _from(at, tap, stride, dilate, pad):
    return (at + pad - tap * dilate) // stride


def _hit(at, tap, outs, stride, dilate, pad):
    return (at + pad - tap * dilate) % stride == 0 and _inside(
        _from(at, tap, stride, dilate, pad), outs
    )


def _matmul(k, a, b, out, transpose_a, transpose_b):
    (*lead, m, n), depth = out.shape, a.shape[-2 if transpose_a else -1]
    steps = (*((1, m) if transpose_a else (depth, 1)), *((depth, 1) if transpose_b else (1, n)))
    product(k, a, b, out, out, lengths=(math.prod(lead), m, n, depth), steps=steps)


def _dense(k, data, weight, *rest, num_hidden, no_bias, flatten):
    *_, out = rest
    depth = weight.shape[1]
    lengths = 1, out.size // max(num_hidden, 1), num_hidden, depth
    product(k, data, weight, rest[0], out, lengths=lengths, steps=(depth, 1, depth, 1))


def _geometry(n, groups, ins, filters, a):
    size, *window = (a[key] for key in "size kernel stride dilate pad".split())
    lengths = [size, out_size(size, *window), *window]  # of three axes: those before are 1
    ones = [(fill,) * (3 - len(size)) for fill in (1, 1, 1, 1, 1, 0)]
    lengths = [one + tuple(shape) for one, shape in zip(ones, lengths, strict=True)]
    return n, groups, ins // groups, filters // groups, *lengths


def _conv(k, data, weight, out, **a):
    geometry = _geometry(data.shape[0], a["num_group"], data.shape[1], out.shape[1], a)
    places = math.prod(geometry[5])
    taps = geometry[2] * math.prod(geometry[6])
    k.scratch = places * taps * out.dtype.itemsize
    windows(k, data, weight, out, geometry=geometry, more=(taps, places, places < VECTOR))


def _conv_data(k, grad, weight, out, **a):
    geometry = _geometry(grad.shape[0], a["num_group"], out.shape[1], grad.shape[1], a)
    back(k, grad, weight, out, geometry=geometry)


PLAIN = {
    "_matmul": _matmul,
    "batch_dot": _matmul,
    "FullyConnected": _dense,
    "_conv": _conv,
    "_conv_data": _conv_data,
}


class Plain(Text):
    """Generates a kernel's source with products and convolutions as plain loops."""

    def write_core(self, template):
        """Write the core's own loops, unless there are plain ones."""
        plain = PLAIN.get(self.core.op.name)
        self.scratch = 0 if plain else self.scratch
        super().write_core(plain or template)


# -- one batch size --------------------------------------------------------------------
class NotOpen(Exception):
    """A value isn't linear in the batch size."""


class Step(NamedTuple):
    """A kernel, and the references of what it is called with; its scratch has none."""

    kernel: Kernel
    refs: list
    work: int = 0  # bytes of scratch


class Plan(NamedTuple):
    """A net lowered for one batch size."""

    graph: Graph
    steps: list
    root: dict  # reference -> the reference whose memory it aliases


def planned(graph: Graph) -> Plan:
    """Lower a graph in prediction mode to kernels, in order.

    Raises:  HybridError naming an operator without loops.
    """
    graph = cse(without_loops(optimize(expand(graph))[-1][1], branches=True))
    graph = merge(lower(graph)).check("fuse")
    steps = []
    for node in graph.nodes:
        if node.op and (node.op.view or not any(s.size for s in node.specs)):
            continue
        inner = node.attrs["graph"].nodes if "graph" in node.attrs else [node]
        for one in inner:
            if one.op and one.op.random:
                raise HybridError(
                    f"export: {one.op.name} '{one.name}' draws random numbers, and files of "
                    "code do not; export the net without it, or as format 'mxnet'"
                )
            for spec in one.specs:
                if spec.dtype.name not in KINDS:
                    raise HybridError(
                        f"export: '{one.name}' is {spec.dtype}, which WebAssembly has not; cast "
                        "it to float32"
                    )
        if node.op is None:
            continue
        try:
            steps.append(step_of(node, N))
        except (Unreadable, KernelError) as error:
            names = ", ".join(f"{one.op.name} '{one.name}'" for one in inner if one.op)
            raise HybridError(
                f"export: {names} has no form in WebAssembly ({error}); export the net without "
                "it, or as format 'numpy'"
            ) from None
        except AttributeError as error:
            raise HybridError(
                f"export: {node.op.name} '{node.name}' has no loops ({error}); export the net "
                "without it, or as format 'numpy'"
            ) from None
    return Plan(graph, steps, places(graph))


KINDS = "float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool".split()


def step_of(node, *symbols: Var) -> Step:
    """Lower one node to a kernel, which takes the symbols in its shapes as arguments."""
    body = Plain(node, lambda dtype: {}, is_open=bool(symbols))
    outs = set(body.outs.values())
    buffers = []
    for buf in body.arrays:
        size = body.scratch // buf.dtype.itemsize if buf == "work" else buf.size
        space = "work" if buf == "work" else "out" if buf in outs else "in"
        buffers.append(Buffer(str(buf), buf.dtype.name, (length(size),), space))
    numbers = {name: length(n) for name, n in body.lengths.items()}
    numbers |= {n.name: n for n in symbols}
    kernel = kernel_of(body.text("NAME"), (*buffers, *symbols), tuple(numbers.items()))
    refs = [*node.inputs, *((node, i) for i in range(node.n_outputs))]
    return Step(kernel, refs, body.scratch)


@lru_cache(256)
def kernel_of(text: str, params: tuple, numbers: tuple) -> Kernel:
    """Parse a kernel's source to IR; cached, because equal layers have equal source."""
    buffers = tuple(p for p in params if isinstance(p, Buffer))
    kernel = Kernel("loops", params, read("loops", text, buffers, dict(numbers)).body)
    verify(kernel)
    return kernel


# -- any batch size --------------------------------------------------------------------
def line(n: int) -> tuple:
    """Return (a, b) of a length a + b N.

    >>> line(Length.of("N", 11) * 2 + 7), line(7)
    ((7, 2), (7, 0))
    """
    coefficients = dict(terms_of(n))
    pair = coefficients.pop((), 0), coefficients.pop((f"{N}",), 0)
    if coefficients:
        raise NotOpen
    return pair


def length(n: int) -> Expr:
    """Return a length as index arithmetic.

    >>> length(Length.of("N", 11) * 2 + 7)
    N * 2 + 7
    """
    constant, slope = line(n)
    return N * slope + constant


class Program(NamedTuple):
    """A lowered net: kernels and calls.

    calls:    (kernel, places of its buffers, in order).
    inputs, outputs: (spec, place).
    weights:  parameters and constants as ndarrays, in order.
    slots:    sizes in bytes of the memory blocks that calls share, (a, b) of a + b N.
    open:     whether the batch size is free.

    A place is ("weight", i), ("input", i) or ("slot", i).
    """

    calls: list
    inputs: list
    outputs: list
    weights: list
    slots: list
    open: bool


def lowered(entry: Any) -> Program:
    """Lower a cache entry to a program.

    Raises:  HybridError naming an operator that has no loops, or draws random numbers.
    """
    if entry.numbers:
        raise HybridError(
            "export: the net takes numbers beside arrays, which a program of WebAssembly does "
            "not; pass them as arrays"
        )
    specs = {n.name: n.specs[0] for n in entry.graph.variables}
    known = {name: specs[name] for name in entry.names}
    batch = {
        name: spec
        for name, spec in known.items()
        if spec.shape and spec.shape[0] == specs[entry.names[0]].shape[0]
    }
    if batch:
        try:
            plans = []
            for size in LENGTHS:
                n = Length.of(f"{N}", size)
                marked = {m: s._replace(shape=(n, *s.shape[1:])) for m, s in batch.items()}
                plans.append(planned(entry.again(known | marked)))
            return assembled(plans, entry, True)
        except (HybridError, NotOpen):
            pass  # then for the traced batch size

    return assembled([planned(entry.graph)], entry, False)


def same(parts):
    """Return the common value of all parts."""
    if any(p != parts[0] for p in parts):
        raise NotOpen
    return parts[0]


def assembled(plans: list, entry: Any, is_open: bool) -> Program:
    """Turn a plan into a program; plans for two batch sizes must agree."""
    first = plans[0]
    numbers = {n: i for p in plans for i, n in enumerate(p.graph.nodes)}
    same([[n.name for n in p.graph.variables] for p in plans])
    same([[(numbers[n], i) for n, i in p.graph.heads] for p in plans])
    same([[(s.kernel, [(numbers[n], i) for n, i in s.refs]) for s in p.steps] for p in plans])
    same([[line(s.nbytes) for n in p.graph.nodes for s in n.specs] for p in plans])
    constants = [[n for n in p.graph.nodes if n.op is None and n.values is not None] for p in plans]
    fixed, grown = [], []  # constants, and those of batch length
    for nodes in zip(*constants, strict=True):
        arrays = [np.asarray(n.values[0]) for n in nodes]
        if len({a.shape for a in arrays}) > 1:
            grown.append((nodes[0], filling(arrays, nodes[0].specs[0].size)))
        elif len({a.tobytes() for a in arrays}) > 1:
            raise NotOpen
        else:
            fixed.append(nodes[0])
    variables = {n.name: n for n in first.graph.variables}
    params = [name for name in variables if name not in entry.names]
    weights = [np.asarray(entry.params[name].data().data) for name in params]
    weights += [np.asarray(n.values[0]) for n in fixed]
    where: dict = {(variables[n], 0): ("weight", i) for i, n in enumerate(params)}
    where |= {(n, 0): ("weight", len(params) + i) for i, n in enumerate(fixed)}
    where |= {(variables[n], 0): ("input", i) for i, n in enumerate(entry.names) if n in variables}
    slots = Slots()

    def take(ref):
        return "slot", slots.take(line(ref[0].specs[ref[1]].nbytes))

    last = {}
    for at, step in enumerate(first.steps):
        last.update((first.root[ref], at) for ref in step.refs)
    last.update((first.root[ref], len(first.steps)) for ref in first.graph.heads)
    calls = []
    for node, kernel in grown:
        where[node, 0] = take((node, 0))
        last[node, 0] = len(first.steps)
        calls.append((kernel, [where[node, 0]]))
    for at, (kernel, refs, work) in enumerate(first.steps):
        roots = [first.root[ref] for ref in refs]
        for ref in roots:
            where[ref] = where.get(ref) or take(ref)
        operands = [where[ref] for ref in roots]
        if work:
            operands.append(("slot", slots.take(line(work))))
            slots.free(operands[-1][1])
        calls.append((kernel, operands))
        for ref in {*roots}:
            if last[ref] == at and where[ref][0] == "slot":
                slots.free(where[ref][1])

    for ref in (*first.root.values(), *first.graph.heads):  # empty values
        if first.root[ref] not in where:
            where[first.root[ref]] = ("slot", slots.take((0, 0)))

    own = {n.name: n.specs[0] for n in entry.graph.variables}
    own |= {name: node.specs[0] for name, node in variables.items()}
    inputs = [(own[name], ("input", i)) for i, name in enumerate(entry.names)]
    outputs = [(n.specs[i], where[first.root[n, i]]) for n, i in first.graph.heads]
    return Program(calls, inputs, outputs, weights, slots.sizes, is_open)


def filling(arrays: list, size: int) -> Kernel:
    """Return the kernel that fills a constant array of batch length."""
    if len({number for a in arrays for number in a.ravel().tolist()}) != 1:
        raise NotOpen
    out = Buffer("out", arrays[0].dtype.name, (length(size),), "out")
    value = Const(arrays[0].item(0), Type(out.kind))
    i = Var("i", INDEX)
    body = For(i, const(0), out.shape[0], (Store(out, (i,), value),))
    return Kernel("fill", (out, N), (body,))


class Slots:
    """Memory blocks, each reused after the last use of its value.

    sizes:   of each block in bytes, as (a, b) of a + b N, enough for all its values.
    """

    def __init__(self):
        self.sizes, self.idle = [], []

    def take(self, size: tuple) -> int:
        """Return a block for this size: the free one that is nearest, or a new one."""
        if not self.idle:
            self.sizes.append(size)
            return len(self.sizes) - 1
        at = min(self.idle, key=lambda i: abs(sum(self.sizes[i]) - sum(size)))
        self.idle.remove(at)
        self.sizes[at] = tuple(map(max, self.sizes[at], size))
        return at

    def free(self, at: int) -> None:
        """Free a block."""
        self.idle.append(at)
