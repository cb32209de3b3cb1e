"""A target that runs a compiled plan's kernels as the plain Python that their text is.

    with plain.target():
        net.hybridize(backend="plain")

Kernels get addresses and no lengths, so a compiled one reads whatever lies beside its
arrays. Here every index is checked; an element that nobody wrote cannot be read; what a
step has to write it must write whole; and the pieces of a loop that threads share run
last piece first and must not meet in one element, unless all write the same bits there.
Vectors are four numbers long and all loops are shared, so that small arrays see the
loops of large ones.

What is left out: the last digits of `exp` and others, which are NumPy's here; and
whatever LLVM makes of the text.
"""

import contextlib
import ctypes
import functools
import itertools
import operator
import re
from types import FunctionType, SimpleNamespace
from unittest import mock

import numpy as np
from scipy import special

from minihybrid.codegen import TARGETS, device_math, source
from minihybrid.codegen.bytecode import ARENA, ARRAY, KEY, NUMBER, PARAM, WORK, in_turns, is_taken
from minihybrid.codegen.cpu import target as cpu
from minihybrid.core.plan import ActivePlan
from minihybrid.ops.cpu import machine
from minihybrid.passes.reduction_schedule import scratch_of
from minihybrid.runtime.page_cpu import CPU
from minihybrid.simt.numbers import CONSTRUCTORS
from minihybrid.simt.numbers import math as c_math

REGISTERS, THREADS = (16, 16), 2
NOBODY, SEVERAL = -1, -2


class PlainError(AssertionError):
    """A kernel does what the memory of a real one would not forgive."""


class Whole(np.int64):
    """A whole number, computed with 64 bits, which knows what it was made as."""


# -- memory ----------------------------------------------------------------------------
class Memory:
    """Bytes, and which of them somebody has written."""

    def __init__(self, name, values, written, fixed=False):
        self.name, self.fixed = name, fixed
        self.bytes = values.reshape(-1).view(np.uint8)
        self.written = np.full(self.bytes.size, written)


class Flat:
    """An array as a kernel has it: an address; here it knows where it ends."""

    def __init__(self, memory, start, spec):
        self.memory, self.dtype = memory, spec.dtype
        self.span = slice(start, start + spec.nbytes)
        if self.span.stop > memory.bytes.size:
            raise PlainError(
                f"{memory.name} has {memory.bytes.size} bytes, but an "
                f"array ends at {self.span.stop}"
            )
        self.values = memory.bytes[self.span].view(self.dtype)
        self.written = memory.written[self.span].reshape(spec.size, self.dtype.itemsize).all(axis=1)
        self.fresh = np.zeros(spec.size, bool)  # written in this step
        self.reader, self.writer = np.full((2, spec.size), NOBODY)
        self.first, self.part = 0, 0  # of a slice; of a shared loop

    def forget(self):
        """Nobody has written here yet."""
        self.written[...] = False
        self.reader[...] = self.writer[...] = NOBODY

    def close(self):
        """Tell the memory what was written."""
        self.memory.written[self.span] |= np.repeat(self.fresh, self.dtype.itemsize)

    def rest(self, first):
        """The same array from an element on."""
        part = Flat.__new__(Flat)
        part.__dict__ = self.__dict__ | {"first": self.first + operator.index(first)}
        return part

    def place(self, index, does):
        """The index from the beginning of the array, which must be inside."""
        i = self.first + operator.index(index)
        if not 0 <= i < self.values.size:
            raise PlainError(
                f"a kernel {does} element {i} of {self.memory.name}, which has {self.values.size}"
            )
        return i

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.rest(index.start or 0)
        i = self.place(index, "reads")
        if not self.written[i]:
            raise PlainError(
                f"a kernel reads element {i} of {self.memory.name}, which nobody has written"
            )
        if self.writer[i] not in (NOBODY, self.part):
            raise PlainError(
                f"a part of a shared loop reads element {i} of "
                f"{self.memory.name}, which another part writes"
            )
        self.reader[i] = self.part if self.reader[i] in (NOBODY, self.part) else SEVERAL
        value = self.values[i]
        if value.dtype.kind == "b":
            return bool(value)
        if value.dtype.kind == "f" or value.dtype == np.uint64:
            return value
        value, kind = Whole(value), value.dtype
        value.kind = kind
        return value

    def __setitem__(self, index, value):
        i = self.place(index, "writes")
        if self.memory.fixed:
            raise PlainError(f"a kernel writes into {self.memory.name}")
        if self.dtype.kind in "iu":
            value = CONSTRUCTORS[self.dtype.name](value)
        alone, old = {NOBODY, self.part}, self.values[i : i + 1].tobytes()
        self.values[i] = value
        if (
            self.reader[i] not in alone
            or self.writer[i] not in alone
            and self.values[i : i + 1].tobytes() != old
        ):
            raise PlainError(
                f"two parts of a shared loop meet in element {i} of {self.memory.name}"
            )
        self.writer[i], self.written[i], self.fresh[i] = self.part, True, True


# -- what kernels call -----------------------------------------------------------------
def whole(dtype):
    """Numba's constructor of whole numbers."""

    def construct(x=0):
        made = Whole(CONSTRUCTORS[dtype](x))
        made.kind = np.dtype(dtype)
        return made

    return CONSTRUCTORS[dtype] if dtype == "uint64" else construct


def kind_of(number):
    """The dtype of a vector of such numbers."""
    return getattr(number, "kind", None) or np.asarray(number).dtype


class Rank(int):
    """The bits of a float as a whole number that is ordered as floats are."""


def ranked(nan):
    """`rank_up` (nan=0) and `rank_down` (nan=-1): NaN is above all, or below all."""

    def function(value):
        last = (1 << 8 * value.itemsize - 1) - 1
        bits = int(value.view(f"i{value.itemsize}"))
        actual = Rank(last ^ nan if value != value else bits ^ (last * (bits < 0)))
        actual.dtype = value.dtype
        return actual

    return function


def unrank(actual):
    """The float of a rank."""
    last = (1 << 8 * actual.dtype.itemsize - 1) - 1
    bits = np.array(actual ^ (last * (actual < 0)), f"i{actual.dtype.itemsize}")
    return bits.view(actual.dtype)[()]


def of_float32(function):
    """A function of float32 numbers, exact to the last digit."""
    return lambda *args: np.float32(function(*map(np.float64, args)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def power(a, b):
    """C's pow: of an exponent 0.5 NumPy takes the root, which knows no -infinity."""
    return type(a)(np.inf) if (a, b) == (-np.inf, 0.5) else np.power(a, b)


NAMES32 = {
    name: getattr(np, name)
    for name in "exp log log1p cbrt hypot cos sin tan cosh sinh tanh".split()
} | {
    "power": power,
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "atan2_": np.arctan2,
    "acosh": np.arccosh,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "erf": special.erf,
    "expm1_": np.expm1,
    "log10_": np.log10,
    "log2_": np.log2,
    "sigmoid": sigmoid,
}


# -- vectors and tiles -----------------------------------------------------------------
def lanes(array):
    return machine.width(array.dtype.itemsize)


def load(array, index):
    return np.array([array[index + i] for i in range(lanes(array))], array.dtype)


def store(array, index, vector):
    for i, value in enumerate(vector):
        array[index + i] = value


def splat(number):
    dtype = kind_of(number)
    return np.full(machine.width(dtype.itemsize), number, dtype)


def transpose(source, start, step, target, place, stride):
    rows = [load(source, start + i * step) for i in range(lanes(source))]
    for i, column in enumerate(np.transpose(rows)):
        store(target, place + i * stride, column)


def tile(number, rows, columns):
    dtype = kind_of(number)
    return np.full((rows, columns, machine.width(dtype.itemsize)), number, dtype)


def outer(sums, a, at, step, b, place):
    rows, columns, n = sums.shape
    left = np.array([a[at + r * step] for r in range(rows)], sums.dtype)
    right = np.array([load(b, place + c * n) for c in range(columns)])
    return sums + left[:, None, None] * right


def inner(sums, a, at_a, b, at_b, step, count):
    rows, columns, n = sums.shape

    def some(array, at):
        return [array[at + i] if i < count else array.dtype.type(0) for i in range(n)]

    left = np.array([some(a, at_a + r * step) for r in range(rows)], sums.dtype)
    right = np.array([some(b, at_b + c * step) for c in range(columns)], sums.dtype)
    return sums + left[:, None] * right[None]


def get(sums, array, at, step, last):
    rows, columns, n = sums.shape
    return np.array(
        [
            [
                array[at + r * step + c] if c < last else sums.dtype.type(0)
                for c in range(columns * n)
            ]
            for r in range(rows)
        ],
        sums.dtype,
    ).reshape(sums.shape)


def put(sums, array, at, step, top, first, last):
    for r, row in enumerate(sums.reshape(len(sums), -1)):
        for c in range(max(first, 0), min(last, len(row))):
            if r >= top:
                array[at + r * step + c] = row[c]


def put_totals(sums, array, at, step, top, first, more):
    for r, row in enumerate(sums.sum(axis=2, dtype=sums.dtype)):
        for c in range(max(first, 0), len(row)):
            if r >= top:
                place = at + r * step + c
                array[place] = row[c] + (array[place] if more else 0)


VECTORS = {
    function.__name__: function
    for function in (load, store, splat, transpose, tile, outer, inner, get, put, put_totals)
} | {
    "fetch": lambda array, index: None,
    "fma": lambda a, b, c: a * b + c,
    "total": lambda a: a.sum(dtype=a.dtype),
}

PLAIN = (
    device_math.compiled(lambda f: f, math=c_math)
    | VECTORS
    | {
        **{name: whole(name) for name in CONSTRUCTORS if "int" in name},
        **{f"{name}32": of_float32(function) for name, function in NAMES32.items()},
        **{name: np.dtype(name).type for name in ("float32", "float64")},
        "bool_": bool,
        "boolean": bool,
        "INF": device_math.INF,
        "NAN": device_math.NAN,
        "add_up": operator.add,
        "multiply_up": operator.mul,
        "root": np.sqrt,
        "rank_up": ranked(0),
        "rank_down": ranked(-1),
        "unrank": unrank,
        "kernel": None,
    }
)


def whole_power(a, b):
    """np.power, also of a whole number to a negative power."""
    if isinstance(a, np.integer) and isinstance(b, (int, np.integer)):
        return device_math.whole_power(a, b)
    return power(a, b)


class _NumPy:
    """NumPy as Numba has it."""

    power = staticmethod(whole_power)

    def __getattr__(self, name):
        return getattr(np, name)


NUMPY = _NumPy()


def look_up(module, name):
    """The plain form of a name that a kernel imports.

    One that Numba compiles from Python, and that is not known here, runs as Python.
    """
    if name in PLAIN:
        return PLAIN[name]
    if hasattr(module, "py_func"):
        function = module.py_func
        world = {each: PLAIN.get(each, value) for each, value in function.__globals__.items()}
        return FunctionType(function.__code__, world, name)
    raise PlainError(f"tests/kernels_as_python.py knows no plain form of {name}")


def plain_import(name, scope=None, local=None, names=(), level=0):
    """What a kernel's module gets for `import`."""
    if name in ("math", "numpy"):
        return c_math if name == "math" else NUMPY
    module = __import__(name, fromlist=["_"])
    return SimpleNamespace(**{each: look_up(getattr(module, each, None), each) for each in names})


@functools.lru_cache(4096)
def function_of(text):
    """A kernel's module, as one Python function."""
    scope = {"__builtins__": {**vars(__import__("builtins")), "__import__": plain_import}}
    text = re.sub(r"^@kernel\(.*\)$", "", text, flags=re.MULTILINE)
    exec(compile(text, "<plain kernel>", "exec"), scope)
    return next(value for name, value in scope.items() if name.startswith("k_"))


# -- a plan ----------------------------------------------------------------------------
class Made:
    """What the target "cpu" makes of a graph for a small machine."""

    def __init__(self, made):
        self.made, self.parts = made, made.launches
        self.launches = [launch._replace(chunks=1) for launch in made.launches]  # one thread

    def __getattr__(self, name):
        return getattr(self.made, name)


@contextlib.contextmanager
def small_machine():
    """Short vectors, and all loops are worth sharing."""
    with (
        mock.patch.object(machine, "registers", lambda: REGISTERS),
        mock.patch.object(source, "WORTH_SHARING", 1),
        mock.patch.object(cpu, "WORTH_WAKING", 1),
        mock.patch.object(cpu, "threads", lambda: THREADS),
    ):
        yield


def generate(graph, memory, inputs):
    """As the target "cpu" does."""
    with small_machine():
        return Made(cpu.generate(graph, memory, inputs))


def buffer(address, spec):
    """The array that lies at an address."""
    raw = (ctypes.c_uint8 * spec.nbytes).from_address(int(address)) if spec.nbytes else b""
    return np.frombuffer(raw, np.uint8)


def load_plan(made):
    """The function of a plan, as `minihybrid.codegen.cpu.interpreter` calls it."""
    table_specs = [n.specs[0] for n in (*made.table.params, *made.table.constants)]
    n_inputs = len(made.table.inputs)

    def run(*args):
        *arrays, arena, table, key, until, shared, thread = args
        if not all(a.flags.c_contiguous and a.flags.aligned for a in arrays):
            return False
        memories = {
            (ARRAY, i): Memory(f"input {i}", a, True, fixed=True)
            if i < n_inputs
            else Memory(f"output {i - n_inputs}", a, False)
            for i, a in enumerate(arrays)
        }
        memories |= {
            (PARAM, i): Memory(f"parameter {i}", buffer(table[i], spec), True, fixed=True)
            for i, spec in enumerate(table_specs)
        }
        memories[ARENA, 0] = Memory("the arena", arena, False)
        arena[...] = 0xA5

        def load(operand, turn, spec):
            base, start = place(operand._replace(after=operand.after + turn * operand.turn))
            return Flat(memories[base], start, spec)

        with small_machine(), np.errstate(all="ignore"):
            for launch, turn in itertools.islice(in_turns(made.parts), until):
                if not is_taken(launch, turn, load):
                    continue
                now = launch._replace(
                    operands=[
                        w._replace(after=w.after + turn * w.turn, turn=0) for w in launch.operands
                    ]
                )
                run_launch(now, memories, key)
        for (kind, _), memory in memories.items():
            if kind == ARRAY and not memory.written.all():
                raise PlainError(f"{memory.name} is not written whole")
        return True

    return run


def specs_of(node):
    """The specs of a kernel's arrays: what it reads, writes, and needs beside."""
    work = scratch_of_small(node)
    return [n.specs[i] for n, i in node.inputs], [*node.specs], [work[0].specs[0]] if work else []


def place(operand):
    """(the memory where a operand points to, and the byte)."""
    if operand.what in (ARENA, WORK):
        return (ARENA, 0), operand.which + operand.after
    return (operand.what, operand.which), operand.after


def run_launch(launch, memories, key):
    """One kernel, part by part."""
    ins, outs, work = specs_of(launch.node)
    flats, given = {}, []
    for operand, spec in zip(launch.operands, [*ins, *outs, *work], strict=False):
        base, start = place(operand)
        if (base, start, spec) not in flats:  # a launch may write over what it reads
            flats[base, start, spec] = flat = Flat(memories[base], start, spec)
            flat.written &= len(given) < len(ins)
        given.append(flats[base, start, spec])
    if launch.node.op is cpu.BOTH and bool(given[0].values[0]) != launch.node.attrs["senses"][0]:
        given[1].written[...] = True  # not computed where the outer branch isn't taken
    outs, work = given[len(ins) :][: len(outs)], given[len(ins) + len(outs) :]
    given += [
        np.uint64(key) if kind == KEY else which
        for kind, which, *_ in launch.operands
        if kind in (KEY, NUMBER)
    ]
    try:
        for part in reversed(range(launch.chunks)):
            for flat in flats.values():
                flat.part = part
            for flat in work:  # each thread has its own
                flat.forget()
            parts = [part, launch.chunks] if launch.chunks > 1 else []
            function_of(launch.kernel)(*given, *parts)
        for flat in outs:
            if not flat.fresh.all():
                raise PlainError(
                    f"a kernel leaves {np.flatnonzero(~flat.fresh)} of {flat.memory.name} unwritten"
                )
    except PlainError as error:
        raise PlainError(f"{error}\n{launch.kernel}") from None
    for flat in flats.values():
        flat.close()


def scratch_of_small(node):
    """What a launch needs beside on the small machine."""
    with small_machine():
        return scratch_of(node)


TARGET = CPU._replace(
    scratch_of=scratch_of_small,
    generate=generate,
    load=load_plan,
    tiers=ActivePlan,
    usable=lambda: False,
)


@contextlib.contextmanager
def target():
    """`backend="plain"` is known inside this `with` block."""
    with mock.patch.dict(TARGETS, {"plain": TARGET}):
        yield
