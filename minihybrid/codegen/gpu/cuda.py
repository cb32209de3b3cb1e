"""Chapter 26. Compile a kernel's source to GPU machine code.

Defines: `build`, which returns the machine code (a cubin) for a compute capability such as
         (7, 5) and its symbol, from the disk cache if possible; `compile_ptx` and `link`,
         its two steps; `load4`, `store4` and `atomic_add`, which kernels import.

Numba compiles the source to PTX, and NVIDIA's linker turns that into a cubin, in this
process. The driver could compile PTX itself, but rejects PTX of a newer toolkit, which is
common. None of this needs a GPU.
Not supported: fast math; 16-bit floats; launch bounds to limit registers, of which these
kernels need few.
"""

import __future__

import ast
import functools
import importlib.util
import linecache
import math
import os
import re
from importlib.metadata import version
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import numpy as np

from minihybrid.codegen.cache import read, symbol_of, write
from minihybrid.codegen.device_math import compiled
from minihybrid.core.op import HybridError

MISSING = (
    "GPU kernels need Numba's compiler for CUDA, and {}; say "
    '`pip install "minihybrid[cuda13]"`, or [cuda12] for a driver of CUDA 12'
)
POINTED = {"boolean": "uint8"}  # Numba can't load booleans through pointers


# -- imported by kernels; the compiler's form of each is below -------------------------
def load4(a, i):
    """Load four consecutive elements at once; i is a multiple of 4.

    >>> load4([0, 1, 2, 3, 4, 5, 6, 7], 4)
    (4, 5, 6, 7)
    """
    return a[i], a[i + 1], a[i + 2], a[i + 3]


def store4(a, i, values):
    """Store four consecutive elements at once; i is a multiple of 4.

    >>> a = [0] * 8; store4(a, 4, (1, 2, 3, 4)); a
    [0, 0, 0, 0, 1, 2, 3, 4]
    """
    a[i : i + 4] = values


def atomic_add(a, i, value):
    """Atomically add to an element.

    a:  elements of 32 or 64 bits; GPUs have no narrower atomics.

    >>> a = [1, 2]; atomic_add(a, 1, 5); a
    [1, 7]
    """
    a[i] += value


# -- source to PTX ---------------------------------------------------------------------
@functools.cache
def load_toolchain():
    """Import Numba's CUDA compiler and NVIDIA's linker.

    Raises:  HybridError if they are not installed.
    """
    for name, what in (("numba_cuda", "numba-cuda"), ("cuda", "cuda-bindings")):
        if importlib.util.find_spec(name) is None:
            raise HybridError(MISSING.format(f"{what} is not installed"))
    if not hasattr(np, "row_stack"):  # numba-cuda up to 0.30 wants it; NumPy 2.5 has
        np.row_stack = np.vstack  # the same function under this name only
    from cuda.bindings import nvjitlink
    from numba import cuda

    try:
        nvjitlink.version()
    except RuntimeError:
        raise HybridError(MISSING.format("NVIDIA's nvJitLink is not found")) from None
    return cuda, nvjitlink


@functools.cache
def _callable(capability):
    """Return name -> function of all that kernels may call, compiled for a capability."""
    cuda, _ = load_toolchain()
    device = cuda.jit(device=True)
    return compiled(device, floor=math.floor) | _memory()


def _memory():
    """`load4`, `store4` and `atomic_add` as instructions."""
    from llvmlite import ir
    from numba.cuda import nvvmutils, types
    from numba.cuda.extending import intrinsic

    def place(context, builder, kinds, args):
        """Return the address of a[i], for a pointer or a shared array a."""
        start = args[0]
        if isinstance(kinds[0], types.Array):
            start = context.make_array(kinds[0])(context, builder, start).data
        return builder.gep(start, [context.cast(builder, args[1], kinds[1], types.int64)])

    def four(context, builder, kinds, args):
        """Return the address of four elements as a vector pointer, and its alignment."""
        first = place(context, builder, kinds, args)
        vector = ir.VectorType(first.type.pointee, 4)
        nbytes = context.get_abi_sizeof(first.type.pointee)
        return builder.bitcast(first, ir.PointerType(vector)), min(4 * nbytes, 16)

    @intrinsic
    def load4(typing, a, i):
        kind = types.UniTuple(a.dtype, 4)

        def codegen(context, builder, signature, args):
            address, align = four(context, builder, signature.args, args)
            vector = builder.load(address, align=align)
            return context.make_tuple(
                builder,
                kind,
                [builder.extract_element(vector, ir.IntType(32)(k)) for k in range(4)],
            )

        return kind(a, i), codegen

    @intrinsic
    def store4(typing, a, i, values):
        def codegen(context, builder, signature, args):
            address, align = four(context, builder, signature.args, args)
            vector = ir.Constant(address.type.pointee, ir.Undefined)
            for k, kind in enumerate(signature.args[2]):
                value = context.cast(builder, builder.extract_value(args[2], k), kind, a.dtype)
                vector = builder.insert_element(vector, value, ir.IntType(32)(k))
            builder.store(vector, address, align=align)
            return context.get_dummy_value()

        return types.void(a, i, values), codegen

    @intrinsic
    def atomic_add(typing, a, i, value):
        def codegen(context, builder, signature, args):
            address = place(context, builder, signature.args, args)
            if isinstance(a.dtype, types.Float):
                name = f"declare_atomic_add_float{a.dtype.bitwidth}"
                add = getattr(nvvmutils, name)(builder.module)
                builder.call(add, [address, args[2]])
            else:
                builder.atomic_rmw("add", address, args[2], "monotonic")
            return context.get_dummy_value()

        return types.void(a, i, a.dtype), codegen

    return {"load4": load4, "store4": store4, "atomic_add": atomic_add}


def _arguments(text):
    """Return the name of a kernel and the types of its arguments.

    >>> _arguments("def k(a0: float32[8], out: boolean[8], key: uint64):\\n    pass")
    ('k', ['*float32', '*uint8', 'uint64'])
    """
    kernel = next(node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    kinds = []
    for arg in kernel.args.args:
        if isinstance(arg.annotation, ast.Subscript):
            name = arg.annotation.value.id
            kinds.append(f"*{POINTED.get(name, name)}")
        else:
            kinds.append(arg.annotation.id)
    return kernel.name, kinds


def adds_products(text):
    """Return whether a kernel accumulates products, `s += x * y`, so that fma is allowed.

    Elsewhere, a product is rounded before an addition, as in NumPy.

    >>> adds_products("s += x * y"), adds_products("s = s + x * y; i += 1")
    (True, False)
    """
    sums = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.AugAssign)]
    return any(
        isinstance(s.target, ast.Name)
        and isinstance(s.value, ast.BinOp)
        and isinstance(s.value.op, ast.Mult)
        for s in sums
    )


def compile_ptx(text, capability):
    """Compile a kernel to PTX, under its own name.

    Raises:  HybridError with Numba's reason.
    """
    cuda, _ = load_toolchain()
    from numba.core.errors import NumbaError
    from numba.cuda import dispatcher, types
    from numba.cuda.cudadrv import nvvm

    name, kinds = _arguments(text)
    signature = types.void(
        *(
            types.CPointer(getattr(types, kind[1:])) if kind[0] == "*" else getattr(types, kind)
            for kind in kinds
        )
    )
    file = f"<GPU kernel {name}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    # Vector loads of four elements need an alignment of 16 bytes.
    aligned = re.sub(r"(cuda\.shared\.array\(.*)\)$", r"\1, alignment=16)", text, flags=re.M)
    scope = {"__name__": "minihybrid"}
    # Annotations stay strings: float32[1000] isn't a Numba type.
    exec(compile(aligned, file, "exec", __future__.annotations.compiler_flag), scope)
    for word, function in _callable(capability).items():
        if word in scope:
            scope[word] = function
    # Numba would compile called functions for this machine's GPU, if there is one.
    device = SimpleNamespace(compute_capability=capability)
    compile_ir = functools.partial(nvvm.compile_ir, fma=int(adds_products(text)))
    try:
        with (
            mock.patch.object(dispatcher, "get_current_device", lambda: device),
            mock.patch.object(nvvm, "compile_ir", compile_ir),
        ):
            ptx, _ = cuda.compile(
                scope[name], signature, cc=capability, device=False, output="ptx", abi="numba"
            )
    except NumbaError as error:
        raise HybridError(f"kernel '{name}': {_reason(error, text)}") from error
    except RuntimeError as error:  # from a library that Numba loads lazily
        reason = str(error).splitlines()[0]
        raise HybridError(MISSING.format(f"it says: {reason}")) from error
    (mangled,) = re.findall(r"\.entry (\w+)\(", ptx)
    return ptx.replace(mangled, name)


def _reason(error, text):
    """Return Numba's error as one sentence, with the line if it names one."""
    message = re.sub(r"\x1b\[\d*m", "", str(error))
    numbers = re.findall(r"<GPU kernel \w+>\D+(\d+)", message)
    line = f" in `{text.splitlines()[int(numbers[-1]) - 1].strip()}`" if numbers else ""
    lines = [
        s.strip(" >") for s in message.splitlines() if s.strip() and not s.startswith("Failed in")
    ]
    what = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return f"Numba cannot compile it{line}: {what}"


# -- PTX to machine code ---------------------------------------------------------------
class Report(NamedTuple):
    """The GPU resources of a kernel."""

    registers: int  # per thread
    spilled_bytes: int  # stores and loads of spilled registers
    shared_bytes: int  # per block


def link(ptx, capability):
    """Link PTX; return the cubin and a `Report`.

    Raises:  HybridError with the linker's reason.
    """
    _, nvjitlink = load_toolchain()
    options = ["-arch=sm_{}{}".format(*capability), "-verbose", "-Xptxas=-v"]
    linker = nvjitlink.create(len(options), options)
    try:
        code = ptx.encode()
        nvjitlink.add_data(linker, nvjitlink.InputType.PTX, code, len(code), "kernel")
        nvjitlink.complete(linker)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_linked_cubin(linker, cubin)
        log = bytearray(nvjitlink.get_info_log_size(linker))
        nvjitlink.get_info_log(linker, log)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(linker))
        nvjitlink.get_error_log(linker, log)
        raise HybridError(
            f"NVIDIA's linker makes no machine code of a kernel: {error}; {log.decode().strip()}"
        ) from error
    finally:
        nvjitlink.destroy(linker)

    def total(words):
        return sum(map(int, re.findall(words, log.decode())))

    return bytes(cubin), Report(
        total(r"Used (\d+) registers"), total(r"(\d+) bytes spill"), total(r"(\d+) bytes smem")
    )


@functools.cache
def _makers():
    """Return the versions of the compilers, and the environment variables they read."""
    _, nvjitlink = load_toolchain()
    packages = ("numba", "numba-cuda", "llvmlite", "cuda-bindings")
    settings = sorted(pair for pair in os.environ.items() if pair[0].startswith("NUMBA_"))
    return *map(version, packages), *nvjitlink.version(), *settings


def build(text, capability):
    """Return the cubin of a kernel and its symbol.

    Raises:  HybridError if the toolchain is missing, or cannot compile the text.
    """
    symbol = symbol_of(f"{capability} {_makers()}\n{text}")
    cubin = read(symbol)
    if cubin is None:
        cubin, _ = link(compile_ptx(text, capability), capability)
        write(symbol, cubin)
    return cubin, _arguments(text)[0]
