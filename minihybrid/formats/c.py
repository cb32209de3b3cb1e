"""Chapter 23. Export of a plan as one C99 file: its kernels and a runtime.

Uses:    an inference plan of the target "cpu", and its weights.
Defines: `c_file`, the source; `weights_file`, the bytes of the weights.

The kernels are those that Numba compiles, read into the loop IR and printed by `codegen/c.py`;
launches and memory offsets are the plan's. The file depends only on the C library and
allocates once, when the weights are loaded.
Limits: a prediction is single-threaded, shapes are fixed, and vectors have this machine's
length: elsewhere the compiler splits them.
"""

import struct
import zlib
from pathlib import Path
from string import Template

import numpy as np

from minihybrid.codegen.bytecode import ARENA, ARRAY, NUMBER, PARAM, WORK
from minihybrid.codegen.c import functions
from minihybrid.codegen.c_helpers import stored
from minihybrid.codegen.check import KernelError, verify
from minihybrid.codegen.read import Unreadable, compiled
from minihybrid.core.op import HybridError

ALIGN = 64
MAGIC = b"minihyb1"

# The parts of the file before and after the kernels.
HEAD, API = map(
    Template, Path(__file__).with_name("net.c").read_text(encoding="utf-8").split("$kernels\n")
)


def offsets_of(weights):
    """Return the offset of each array in the weights file, and the end of the last."""
    at, offsets = _aligned(24 + 8 * (len(weights) + 1)), []
    for array in weights:
        offsets.append(at)
        at = _aligned(at + array.nbytes)
    return [*offsets, at]


def _aligned(at):
    return -(-at // ALIGN) * ALIGN


def weights_file(weights):
    """Return the weights file: magic bytes, a byte-order mark, array count, checksum, offsets,
    and the arrays, each 64-byte aligned.

    >>> data = weights_file([np.float32([1, 2])])
    >>> data[:8], len(data), np.frombuffer(data, "<f4", 2, 64).tolist()
    (b'minihyb1', 128, [1.0, 2.0])
    """
    offsets = offsets_of(weights)
    data = b"".join(
        np.asarray(a, a.dtype.newbyteorder("<"), order="C").tobytes()
        + b"\0" * (_aligned(a.nbytes) - a.nbytes)
        for a in weights
    )
    head = MAGIC + struct.pack("<IIII", 0x01020304, len(weights), zlib.crc32(data), 0)
    head += struct.pack(f"<{len(offsets)}Q", *offsets)
    return head + b"\0" * (offsets[0] - len(head)) + data


def c_file(plan, inputs, outputs, weights):
    """Return the C source of a plan.

    inputs, outputs:  specs;  weights: ndarrays.
    Raises:  HybridError if the plan has no compiled loops.
    """
    if plan.target != "cpu":
        raise HybridError(
            f"export: {plan.target_note}, so it cannot be written in C; format='numpy' can have it"
        )
    kernels, calls = {}, []
    for launch in plan.made.launches:
        if launch.kernel not in kernels:
            kernels[launch.kernel] = kernel_of(launch, f"k{len(kernels)}_{launch.label}")
        operands = ", ".join(_operand(operand, len(inputs)) for operand in launch.operands)
        when = _condition(*launch.guard, len(inputs)) if launch.guard else ""
        calls.append(f"    {when}{kernels[launch.kernel].name}({operands});")
        if launch.turns:
            body = [f"    {line}" for line in calls[-launch.body :]]
            head = f"    for (int64_t turn = 0; turn < {launch.turns}; turn++) {{"
            calls[-launch.body :] = ["\n".join([head, *body, "    }"])]
    arrays = [
        *((f"x{i}", "const ", s) for i, s in enumerate(inputs)),
        *((f"y{k}", "", s) for k, s in enumerate(outputs)),
    ]
    unread = [f"    (void) {name};" for name, *_ in (("self",), *arrays)]
    return "\n\n".join(
        [
            _head(arrays),
            *functions(kernels.values()),
            _api(arrays, len(inputs), weights, plan.memory.nbytes, [*unread, *calls]),
        ]
    )


def kernel_of(launch, name):
    """Return the kernel of a launch in the loop IR."""
    try:
        kernel = compiled(launch.kernel, name)
        verify(kernel)
    except (Unreadable, KernelError) as error:
        raise HybridError(
            f"export: {launch.label} has no form in C ({error}); export the net without it, or as "
            "format 'numpy'"
        ) from None
    return kernel


def _head(arrays):
    """Return the head of the file: a usage comment and the size macros."""
    sizes = "\n".join(
        f" * {name} is the {'input' if const else 'output'} {spec.shape}, "
        f"{spec.size} numbers of type {stored(spec.dtype.name)}."
        for name, const, spec in arrays
    )
    names = [name for name, *_ in arrays]
    macros = [f"#define NET_{name.upper()}_SIZE {spec.size}" for name, _, spec in arrays]
    text = HEAD.substitute(
        call=", ".join(names), sizes=sizes, files=" ".join(f"{name}.bin" for name in names)
    )
    return text + "\n".join(macros)


def _api(arrays, n_inputs, weights, nbytes, calls):
    """Return the end of the file: the public functions, and an optional main program."""
    offsets = offsets_of(weights)
    files = " ".join(f"{name}.bin" for name, *_ in arrays)
    arguments = [f"{const}{stored(spec.dtype.name)} *{name}" for name, const, spec in arrays]
    return API.substitute(
        count=len(weights),
        magic=MAGIC.decode(),
        align=ALIGN,
        nbytes=nbytes,
        arguments=", ".join(["net *self", *arguments]),
        calls="\n".join(calls),
        offsets="\n".join(f"    {at}," for at in offsets),
        crc="\n".join(f"        {_crc(i):#010x}," for i in range(16)),
        n_inputs=n_inputs,
        n_arrays=len(arrays),
        usage=f"net.weights {files}",
        bytes=", ".join(str(spec.nbytes) for *_, spec in arrays),
        pointers=", ".join(f"arrays[{i}]" for i in range(len(arrays))),
    )


def _operand(operand, n_inputs):
    """Return an operand of a kernel call as a C expression."""
    what, which, after, stride = operand
    moves = f" {'-' if stride < 0 else '+'} turn * {abs(stride)}" * bool(stride)
    behind = f" + {after}" * bool(after) + moves
    if what == ARRAY:
        if not behind:
            return f"x{which}" if which < n_inputs else f"y{which - n_inputs}"
        if which < n_inputs:
            return f"(const void *) ((const char *) x{which}{behind})"
        return f"(void *) ((char *) y{which - n_inputs}{behind})"
    return {
        ARENA: f"(void *) (self->arena + {which + after}{moves})",
        WORK: f"(void *) (self->arena + {which})",
        PARAM: f"(const void *) (self->weights + OFFSETS[{which}]{behind})",
        NUMBER: str(which),
    }[what]


def _condition(operand, mask, n_inputs):
    """Return the C condition of a launch on one side of a branch."""
    kind = {8: "uint8_t", 16: "uint16_t", 31: "float", 32: "uint32_t", 63: "double"}
    at = _operand(operand, n_inputs).removeprefix("(void *) ").removeprefix("(const void *) ")
    test = f"*(const {kind[abs(mask).bit_length()]} *) (const void *) {at}"
    return f"if ({test} {'!=' if mask > 0 else '=='} 0) "


def _crc(nibble):
    """Return an entry of the lookup table of CRC-32 by nibbles."""
    for _ in range(4):
        nibble = nibble >> 1 ^ (0xEDB88320 if nibble & 1 else 0)
    return nibble
