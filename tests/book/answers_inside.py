"""Answers to exercises of the inside and of GPUs, right and wrong, for test_exercises.

`ANSWERS`: exercise -> the right answer, and wrong ones with words of what is said of them.
"""

import collections
import json
import math
import pickle
import struct
from dataclasses import replace

import numba
import numpy as np
from minihybrid.attribute import DTYPES
from minihybrid_course.exercises.passes import graph_of

from minihybrid import autograd, nd
from minihybrid.codegen.cpu.flat import kernel
from minihybrid.codegen.cpu.objects import load_kernels
from minihybrid.core.graph import apply
from minihybrid.core.op import Op, number
from minihybrid.core.passes import optimize
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.ops import OPS
from minihybrid.ops.shapes import same_shape
from minihybrid.simt import Program, cuda, float32


# -- 11, 12, 15: tape, records, passes ---------------------------------------------------
def gradient_of(attached, recorded=True):
    def act():
        x, b = nd.ones(2), nd.ones(2)
        x.attach_grad()
        if attached:
            b.attach_grad()
        if not recorded:
            return autograd.grad((x * b).sum(), [x])
        with autograd.record():
            y = (x * b).sum()
        return autograd.grad(y, [b])

    return act


softstep = Op(
    "softstep",
    inputs=("data",),
    infer=lambda specs, slope: same_shape("softstep", specs),
    doc="",
    eager=lambda a, slope: a * slope / (1 + np.abs(a * slope)),
    grad=lambda g, y, a, slope: (g * slope / (1 + abs(a * slope)) ** 2,),
    attrs={"slope": (number, 1.0)},
    expr=lambda slope: f"{{a}} * T({slope}) / (T(1) + abs({{a}} * T({slope})))",
)


def times_two(fresh):
    """The pass of 15.2, which may take the node's inputs of before."""

    def sums(graph):
        def rule(node, inputs, emit):
            if node.op is not OPS["_mul_scalar"] or node.attrs["scalar"] != 2:
                return None
            old = inputs[0] if fresh else node.inputs[0]
            return [(emit(apply(OPS["elemwise_add"], (old, old), {}, node.name)), 0)]

        return rewrite(graph, rule)

    return sums


def passed(fresh=False, function=lambda x: x * 2 * 2):
    return lambda: optimize(graph_of(function, x=(3,)), (times_two(fresh),))


DOT, PLAIN = OPS["dot"], {"transpose_a": False, "transpose_b": False}


def reassociate(graph, judge=True, shared=True, plain=True):
    uses, heads = graph.uses(), graph.heads if shared else ()

    def rule(node, inputs, emit):
        inner = inputs[0][0] if inputs else None
        if not (node.op is DOT is inner.op) or node.inputs[0] in heads:
            return None
        if shared and len(uses[node.inputs[0]]) > 1:
            return None
        if plain and any(n.attrs[key] for n in (node, inner) for key in PLAIN):
            return None
        (a, b), c = inner.inputs, inputs[1]
        (n, k), (_, m) = (node_.specs[i].shape for node_, i in (a, b))
        columns = c[0].specs[c[1]].shape[1]
        if judge and n * k * m + n * m * columns <= k * m * columns + n * k * columns:
            return None
        right = emit(apply(DOT, (b, c), PLAIN, node.name))
        return [(emit(apply(DOT, (a, (right, 0)), PLAIN, node.name)), 0)]

    return rewrite(graph, rule)


# -- 17, 19, 20: texts and processes -----------------------------------------------------
F = numba.float32[::1]


def by_hand(body, columns=3):
    """A kernel of `x`, `w` and `out`; the text of one element stands in a loop nest."""
    text = f"def softsign(a, w, out):\n for i in range(2):\n  for j in range({columns}):\n"
    names = {"float32": numba.float32}
    exec(f"{text}   x = a[i * 3 + j]\n   out[i * 3 + j] = {body}", names)
    return kernel(F, F, F)(names["softsign"])


@kernel(F, F)
def to_the_front(a, out):
    for i in range(out.size):
        out[i] = a[i + 1]


def compiled_here():
    """Numba's own loops, while it compiles, are not the reader's."""
    return kernel(F, F)(to_the_front.py_func)(np.ones(5, "float32"), np.ones(4, "float32"))


def moved(n):
    return lambda: to_the_front.py_func(np.ones(n, "float32"), np.ones(4, "float32"))


EXPP = """
from numba import float32
from minihybrid.codegen.cpu.flat import kernel

@kernel(float32[::1], float32[::1])
def k_wrong(a0, out):
    for i in range(3):
        out[i] = expp(a0[i])
"""


# -- 22, 24: readers ---------------------------------------------------------------------
def read(data, types=DTYPES, shaped=True, last=None, decode=True):
    at = 0

    def take(form):
        nonlocal at
        at += struct.calcsize("<" + form)
        return struct.unpack_from("<" + form, data, at - struct.calcsize("<" + form))

    _, _, count = take("QQQ")
    arrays = []
    for _ in range(count):
        _, _, ndim = take("Iii")
        shape = take(f"{ndim}q")
        kind = take("iii")[2]
        dtype = np.dtype(types[kind])
        raw = np.frombuffer(take(f"{math.prod(shape) * dtype.itemsize}s")[0], dtype)
        arrays.append(raw.reshape(shape) if shaped else raw)
    names = [take(f"{take('Q')[0]}s")[0] for _ in range(*take("Q"))]
    names = [name.decode() if decode else name for name in names][:last]
    return dict(zip(names, arrays, strict=False))


def swap(text, attribute=True, only=("relu",)):
    graph = json.loads(text)
    for node in graph["nodes"]:
        attrs = node.get("attrs", {})
        if node["op"] in only:
            node["op"] = "tanh"
        if attribute and attrs.get("act_type") == "relu":
            attrs["act_type"] = "tanh"
    return json.dumps(graph)


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")


class Trusting(pickle.Unpickler):
    pass


class NoBuiltins(pickle.Unpickler):
    def find_class(self, module, name):
        if module == "builtins":
            raise pickle.UnpicklingError(name)
        return getattr(collections, name)


class Refusing(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(name)

    def load(self):
        raise pickle.UnpicklingError("nothing is allowed")


def safetensors(file, length=True, types=True, whole=True, product=True):
    size = int.from_bytes(file[:8], "little")
    if length and (len(file) < 8 or size > len(file) - 8):
        raise ValueError(f"a header of {size} bytes, but {len(file) - 8} are left")
    header, numbers, actual = json.loads(file[8 : 8 + size]), file[8 + size :], {}
    for name, entry in header.items():
        shape, (begin, end) = entry["shape"], entry["data_offsets"]
        if types and entry["dtype"] != "F32":
            raise ValueError(f"{name}: {entry!r:.80} is not understood")
        if whole and not all(type(n) is int and n >= 0 for n in (*shape, begin, end)):
            raise ValueError(f"{name}: {entry!r:.80} is not understood")
        if (product and end - begin != 4 * math.prod(shape)) or end > len(numbers):
            raise ValueError(f"{name}: bytes {begin} to {end} for shape {shape}")
        array = np.frombuffer(numbers[begin:end], "<f4")
        actual[name] = array.reshape(shape) if product else array
    return actual


# -- 26, 27: kernels ---------------------------------------------------------------------
TILE = """
def tile(a: float32[4], out: float32[4]):
    s = cuda.shared.array(4, float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    out[i] = s[3 - i]
"""


def launched(text, n=4):
    return lambda: Program(text).run(1, 4, [np.ones(n, "float32"), np.ones(4, "float32")])


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    tile[ty, tx] = a[y + ty, x + tx]
    cuda.syncthreads()
    out[x + ty, y + tx] = tile[tx, ty]


@cuda.jit
def without_a_tile(a, out):
    x, y = cuda.grid(2)
    out[x, y] = a[y, x]


@cuda.jit
def meets_a_bank(a, out):
    tile = cuda.shared.array((32, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    tile[ty, tx] = a[y + ty, x + tx]
    cuda.syncthreads()
    out[x + ty, y + tx] = tile[tx, ty]


@cuda.jit
def copies(a, out):
    x, y = cuda.grid(2)
    out[y, x] = a[y, x]


def tiled(rows=True, depth=True, rounded=True, store=True):
    """The kernel of 27.4; each flag leaves a guard away, or the last tile."""

    @cuda.jit
    def any_shape(a, b, out):
        sa = cuda.shared.array((16, 16), float32)
        sb = cuda.shared.array((16, 16), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x, y = cuda.grid(2)
        (m, k), n = a.shape, b.shape[1]
        total = float32(0)
        for at in range(0, k if rounded else k - k % 16, 16):
            there_a = (y < m or not rows) and (at + tx < k or not depth)
            there_b = (x < n or not rows) and (at + ty < k or not depth)
            sa[ty, tx] = a[y, at + tx] if there_a else float32(0)
            sb[ty, tx] = b[at + ty, x] if there_b else float32(0)
            cuda.syncthreads()
            for i in range(16):
                total += sa[ty, i] * sb[i, tx]
            cuda.syncthreads()
        if (y < m and x < n) or not store:
            out[y, x] = total

    return any_shape


@cuda.jit
def untiled(a, b, out):
    """A product of any shape without a tile or a barrier."""
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < b.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[y, k] * b[k, x]
        out[y, x] = total


ANSWERS = {
    "11.2": (
        gradient_of(False),
        [
            (gradient_of(True), "this array has a gradient"),
            (gradient_of(False, recorded=False), "inside autograd.record()"),
            (lambda: grad(0), "run the cells above"),
        ],
    ),
    "11.4": (
        1e-5,
        [(0.1, "the curvature"), (1e-11, "almost all digits"), (1e-7, "already exceeds")],
    ),
    "12.3": (
        softstep,
        [
            (replace(softstep, attrs={}), "no attribute slope"),
            (replace(softstep, attrs={"slope": (number, 3.0)}), "the default of slope is 3.0"),
            (replace(softstep, eager=lambda a, slope: a * slope), "softstep(x, slope=1) is 0.5"),
            (
                replace(softstep, grad=lambda g, y, a, slope: (g / (1 + abs(a)) ** 2,)),
                "the gradient of softstep(x, slope=3)",
            ),
            (
                replace(softstep, expr=lambda slope: "{a} / (T(1) + abs({a}))"),
                "compiled from expr, softstep(x, slope=3)",
            ),
        ],
    ),
    "12.4": (
        (5, 1),
        [((4, 1), "count them all"), ((6, 1), "each infix operator"), ((5, 5), "share a loop")],
    ),
    "14.4": ((2, 1), [((1, 1), "is traced"), ((2, 0), "in each call"), ((20, 10), "all ten")]),
    "15.2": (
        passed(),
        [
            (passed(function=lambda x: x * 2), "a graph with two replacements"),
            (lambda: rewrite(graph_of(lambda x: -x, x=(3,)), lambda *_: 3), "something else"),
            (lambda: optimize(0), "run the cells above"),
        ],
    ),
    "15.4": (
        reassociate,
        [
            (lambda graph: graph, "`dot(dot(a, b), c)` takes 36 multiplications"),
            (lambda graph: reassociate(graph, judge=False), "where a is a row` takes 36"),
            (lambda graph: reassociate(graph, shared=False), "again` takes 45"),
            (lambda graph: reassociate(graph, plain=False), "transpose_a=True), c)` raises"),
        ],
    ),
    "16.3": (2, [(12, "shorter ones"), (1, "nothing to merge"), (3, "already breaks")]),
    "17.1": (
        ("rows", 3),
        [
            (("columns", 3), "a stride of three"),
            (("rows", 6), "halve the elements"),
            (("rows", 2), "not per row"),
        ],
    ),
    "17.2": (
        moved(4),
        [
            (moved(5), "the text ran to the end"),
            (lambda: to_the_front.py_func(np.ones(4)), "takes two arrays"),
            (lambda: to_front.py_func(), "run the cells above"),
        ],
    ),
    "17.3": (
        by_hand("w[j] * x / (float32(1) + abs(x))"),
        [
            (by_hand("w[i] * x / (float32(1) + abs(x))"), "is -5 instead of -10"),
            (by_hand("w[j] * x / (float32(1) + x)"), "is -inf instead of -10"),
            (by_hand("w[j] * x / (float32(1) + abs(x))", columns=2), "row 0, column 2"),
            (by_hand("w[j] * x / (1.0 + abs(x))"), "computes in float64"),
            (by_hand("w[j + 3] * x"), "IndexError"),
        ],
    ),
    "18.2": (37, [(32, "the sums"), (36, "of a needs"), (33, "the row of b"), (19, "8 x 2")]),
    "18.4": (
        lambda: nd.dot(nd.ones((2, 3)), nd.ones((2, 3))),
        [
            (lambda: nd.dot(nd.ones((2, 3)), nd.ones((3, 2))), "of shape (2, 2)"),
            (lambda: nd.ones((2, 3)) + nd.ones((3, 2)), "not for their inner lengths"),
            (lambda: nd.dott(0), "this is another error"),
        ],
    ),
    "19.2": (
        lambda: load_kernels({EXPP: "wrong"}),
        [
            (lambda: load_kernels({}), "the source was compiled"),
            (lambda: load_kernels({"def k(:": "wrong"}), "isn't valid Python"),
            (lambda: load_kernel({}), "a name is missing"),
        ],
    ),
    "21.4": (160, [(157, "program order"), (47, "largest first"), (40, "reach the bound")]),
    "22.2": (
        (64, 116),
        [((60, 116), "before it raises"), ((64, 64), "goes on"), ((64, 88), "really ends")],
    ),
    "22.3": (
        read,
        [
            (lambda data: read(data, shaped=False), "'v': its shape is (6,) instead of (2, 3)"),
            (
                lambda data: read(data, types=["float32"] * 20),
                "an array of float16, the reader raises",
            ),
            (lambda data: read(data, last=1), "the list of names is ['a'] instead"),
            (lambda data: read(data, decode=False), "the list of names is [b'v']"),
            (lambda data: list(read(data).values()), "expected a dictionary"),
            (lambda data: read(data[8:]), "for a file with one array of two numbers"),
        ],
    ),
    "22.4": (
        swap,
        [
            (lambda text: swap(text, attribute=False), '`Activation(x, act_type="relu")`'),
            (lambda text: text.replace("relu", "tanh"), "is called 'tanh_scale' now"),
            (lambda text: swap(text, only=("relu", "sigmoid")), "for `sigmoid(x)`, the node"),
            (json.loads, "expected the new text"),
            (lambda text: text.replace('"', "'"), "isn't JSON"),
        ],
    ),
    "23.2": (
        (1, "mxnet"),
        [
            ((5, "mxnet"), "does the network"),
            ((0, "x"), "stores the names"),
            ((1, "onnx"), "such an"),
        ],
    ),
    "23.3": (
        (-(2**63), "wrap_add"),
        [
            ((2**63, "wrap_add"), "one less than that"),
            ((2**63 - 1, "wrap_add"), "saturate"),
            ((0, "wrap_add"), "wrap around"),
            ((-(2**63), "wrap"), "one for each operator"),
        ],
    ),
    "24.1": (
        Plain,
        [
            (Trusting, "no method find_class of its own"),
            (NoBuiltins, "the name collections.OrderedDict was looked up"),
            (Refusing, "nothing is allowed"),
            (Plain.find_class, "expected a class that inherits"),
        ],
    ),
    "24.2": (
        (189, 23),
        [((387, 23), "are rejected"), ((184, 23), "single bits"), ((189, 16), "second length")],
    ),
    "24.4": (
        safetensors,
        [
            (lambda file: safetensors(file, length=False), "its header is longer than the file"),
            (lambda file: safetensors(file, whole=False), "shape (-2,), and bytes 0 to -8"),
            (lambda file: safetensors(file, product=False), "'w': its shape is (2,)"),
            (lambda file: safetensors(file, types=False), "holds int32"),
            (lambda file: {}, "the list of names is []"),
        ],
    ),
    "26.2": (
        launched(TILE.replace("    cuda.syncthreads()\n", "")),
        [
            (launched(TILE), "is the first barrier really gone"),
            (launched(TILE, n=3), "the arrays must be NumPy's, flat"),
            (lambda: simtt.Program(0), "run the cells above"),
        ],
    ),
    "26.3": (
        (3074457345618258603, 1),
        [
            ((12, 1), "the divisor"),
            ((1537228672809129301, 1), "divided by 12"),
            ((3074457345618258603, 63), "the sign alone"),
        ],
    ),
    "26.4": (
        (2, 4, 1),
        [((4, 4, 1), "can be kept"), ((2, 2, 1), "of the first"), ((2, 4, 2), "neither needs")],
    ),
    "27.3": (
        transpose,
        [
            (without_a_tile, "the writes of out take"),
            (meets_a_bank, "the reads of tile take"),
            (copies, "out is 1 at [0, 1] instead of 64"),
            (transpose.python, "with @cuda.jit above it"),
        ],
    ),
    "27.4": (
        tiled(),
        [
            (tiled(rows=False), "b[0, 6] is out of bounds"),
            (tiled(depth=False), "a[0, 7] is out of bounds"),
            (tiled(rounded=False), "for 5 by 7 times 7 by 6: out[0"),
            (tiled(store=False), "out[0, 6] is out of bounds"),
            (untiled, "it loads 3600 elements from global memory"),
        ],
    ),
    "28.3": (
        (1, 0, 512),
        [((0, 0, 512), "must be updated"), ((4, 0, 0), "all"), ((1, 0, 128), "four")],
    ),
    "28.4": (
        "CUDA_ERROR_INVALID_VALUE",
        [
            ("CUDA_SUCCESS", "then it accepted the node"),
            ("CUDA_ERROR_INVALID_HANDLE", "in a different graph"),
            ("1", "returns the name"),
        ],
    ),
}
