"""A plan in Pyodide: kernels and their calls as one WebAssembly side module.

Defines: `side_module`, the bytes of a module that Pyodide's dynamic linker loads into the
         interpreter's memory; `is_page`, whether object layouts are as expected.

Each part of a plan is a built-in function (METH_FASTCALL):
`part(*arrays, arena, table, key, until, ...)`. It checks that the arrays are contiguous,
reads their data pointers, and calls at most `until` kernels. Functions without an
instruction come from the interpreter's C library.
Source:  the WebAssembly tool conventions, dynamic linking.
Not supported: random numbers; threads.
"""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from minihybrid.codegen.bytecode import ARENA, ARRAY, PARAM, Launch, Operand
from minihybrid.codegen.ir import Kernel
from minihybrid.codegen.wasm import (
    ADD,
    BLOCK,
    BR_IF,
    CALL,
    EMPTY,
    END,
    EQZ,
    GET,
    I32,
    I32CONST,
    IF,
    LOOP,
    MUL,
    SCALAR,
    SET,
    TEE,
    encoded,
    imported,
    named,
    s,
    section,
    several,
    table,
    types_of,
    u,
)

DATA, FLAGS, DIGIT = 8, 32, 12  # offsets of an array's data and flags, and of an int's digits
CONTIGUOUS = 0x0101  # NumPy's flags: C order and aligned
LOAD, RETURN = b"\x28\x02", 0x0F
CONDITION = {8: b"\x31\0", 16: b"\x33\0", 32: b"\x35\0", 64: b"\x29\0"}  # load instruction by bits
DYLINK = section(0, named("dylink.0") + b"\1\4\0\0\0\0")  # it needs no static memory


class Compiled(NamedTuple):
    """A launch of a plan with its kernel.

    scratch:  address of scratch memory, the kernel's last buffer; or 0.
    """

    launch: Launch
    kernel: Kernel
    scratch: int = 0


def is_page() -> bool:
    """Return whether this is Pyodide, with the expected object layouts.

    >>> is_page()
    False
    """
    if ctypes.sizeof(ctypes.c_void_p) != 4:
        return False
    array, number = np.zeros((2, 3)), 12345
    words = (ctypes.c_uint32 * 9).from_address(id(array))
    digit = ctypes.c_uint16.from_address(id(number) + DIGIT)
    return (words[DATA // 4], words[FLAGS // 4], digit.value) == (
        array.ctypes.data,
        array.flags.num,
        number,
    )


def side_module(parts: Sequence[Sequence[Compiled]], n_arrays: int) -> bytes:
    """Encode a module that exports `part0`, `part1`, ... of a plan.

    n_arrays: inputs and outputs of a call; the arena and the table of parameters follow.
    """
    kernels = list(dict.fromkeys(c.kernel for part in parts for c in part))
    imports = imported(kernels)
    numbers = table(kernels, len(imports))
    bodies = [encoded(k, tuple(imports)) for k in kernels]
    bodies += [calls_of(part, n_arrays, numbers) for part in parts]
    entry = b"\x60" + several([bytes([I32])] * 3) + several([bytes([I32])])
    types, functions = types_of(imports, "env")
    types += [b"\x60" + several([bytes([I32])] * len(k.params)) + b"\0" for k in kernels]
    types.append(entry)
    memory = named("env") + named("memory") + b"\2\0\0"
    first = len(imports) + len(kernels)
    exports = [named(f"part{i}") + b"\0" + u(first + i) for i in range(len(parts))]
    indices = [u(2 + min(i, len(kernels))) for i in range(len(bodies))]
    return (
        b"\0asm\1\0\0\0"
        + DYLINK
        + section(1, several(types))
        + section(2, several([memory, *functions]))
        + section(3, several(indices))
        + section(7, several(exports))
        + section(10, several(bodies))
    )


def calls_of(part: Sequence[Compiled], n_arrays: int, numbers: dict) -> bytes:
    """Encode the function of one part of a plan.

    Its locals are the arrays' data pointers, the arena, the table, the number of kernels
    that may still run, the iteration of a loop, and an array.
    """
    first = 3  # after `self`, the arguments and their number
    arena, addresses, left, turn, array = range(first + n_arrays, first + n_arrays + 5)
    code = bytearray(several([u(n_arrays + 5) + bytes([I32])]))

    def emit(*items: int | bytes) -> None:
        for item in items:
            code.extend(bytes([item]) if isinstance(item, int) else item)

    def push(operand: Operand) -> None:
        offset = operand.after
        if operand.what == PARAM:
            emit(GET, u(addresses), LOAD, u(8 * operand.which))
        elif operand.what == ARRAY:
            emit(GET, u(first + operand.which))
        else:
            emit(GET, u(arena))
            offset += operand.which
        if offset:
            emit(I32CONST, s(offset), ADD)
        if operand.turn:
            emit(GET, u(turn), I32CONST, s(operand.turn), MUL, ADD)

    def run(one: Compiled) -> None:
        for operand in one.launch.operands:
            if operand.what in (ARENA, PARAM, ARRAY):
                push(operand)
        if one.scratch:
            emit(I32CONST, s(one.scratch))
        emit(CALL, u(numbers[one.kernel]))

    ops = SCALAR[I32]
    for i in range(n_arrays + 2):
        emit(GET, 1, LOAD, u(4 * i), TEE, u(array), LOAD, u(DATA), SET, u(first + i))
        if i < n_arrays:
            emit(GET, u(array), LOAD, u(FLAGS), I32CONST, s(CONTIGUOUS), ops["&"])
            emit(I32CONST, s(CONTIGUOUS), ops["!="], IF, EMPTY)
            emit(I32CONST, s(id(False)), RETURN, END)  # immortal, like True
    emit(GET, 1, LOAD, u(4 * (n_arrays + 3)), b"\x2f\1", u(DIGIT), SET, u(left))
    emit(BLOCK, EMPTY)
    loops = {i - one.launch.body + 1 for i, one in enumerate(part) if one.launch.turns}
    depth = 0
    for i, one in enumerate(part):
        if i in loops:
            emit(I32CONST, 0, SET, u(turn), LOOP, EMPTY)
            depth = 1
        emit(GET, u(left), EQZ, BR_IF, depth)
        emit(GET, u(left), I32CONST, s(-1), ADD, SET, u(left))
        if one.launch.guard:
            operand, mask = one.launch.guard
            bits = next(n for n in CONDITION if abs(mask) < 2**n)
            push(operand)
            emit(CONDITION[bits], 0, 0x42, s(abs(mask)), SCALAR[0x7E]["&"], 0x50)
            emit(*[EQZ] * (mask > 0), IF, EMPTY)
        run(one)
        if one.launch.guard:
            emit(END)
        if one.launch.turns:
            emit(GET, u(turn), I32CONST, 1, ADD, TEE, u(turn), I32CONST, s(one.launch.turns))
            emit(ops["<"], BR_IF, 0, END)
            depth = 0
    emit(END, I32CONST, s(id(True)), END)
    return u(len(code)) + bytes(code)
