"""Chapter 19. The compiler process: kernel source to machine code.

Input:   requests on standard input: a kernel's source, and the name of its symbol.
Output:  on standard output, the bytes of an object file, or the reason for a failure.

Numba parses Python, infers types and hands the program to LLVM. Nearly all of that is
Python code, so only separate processes compile kernels in parallel. They also keep the
compiler out of the training process's memory.
Omitted are Numba's passes for closures, generators, loop lifting and rewriting, which
kernels don't need; they took more than half of the time. So are its registries for lists, sets,
strings, random numbers and classes, whose import takes 0.1 s.
"""

import functools
import gc
import importlib
import os
import struct
import sys
import threading
import time

from llvmlite import binding, ir
from numba import types
from numba.core import codegen, compiler, compiler_lock, registry
from numba.core import typed_passes as typed
from numba.core import untyped_passes as untyped
from numba.core.compiler_machinery import PassManager
from numba.core.runtime import rtsys

from minihybrid.codegen.cache import versions
from minihybrid.codegen.cpu.flat import Flat
from minihybrid.codegen.cpu.interpreter import ARGUMENTS, drive, enter
from minihybrid.codegen.cpu.scalar import OPTIONS
from minihybrid.ops.cpu.machine import registers

# Longer loops aren't fully unrolled: the hardware prefetcher recognizes one load instruction
# that walks along a row, but not a hundred that each execute once per row.
UNROLL = "-unroll-full-max-count=12"
POLYNOMIALS = "minihybrid.codegen.cpu.trig", "minihybrid.codegen.cpu.transcendental"
IDLE_S = 30.0  # the process ends after so long without a request
WORD = ir.IntType(64)


class Pipeline(compiler.CompilerBase):
    """Numba's passes for scalar code with loops."""

    def define_pipelines(self):
        """Return the passes in order."""
        passes = PassManager("kernel")
        for step in (
            untyped.TranslateByteCode,
            untyped.FixupArgs,
            untyped.IRProcessing,
            typed.NopythonTypeInference,
            typed.IRLegalization,
            typed.NativeLowering,
            typed.NoPythonBackend,
        ):
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


class Library(codegen.JITCodeLibrary):
    """A library that is optimized once as a whole, not function by function first, and
    without the passes for reference counts, of which kernels have none."""

    def _optimize_functions(self, module):
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self):
        manager = self._codegen._module_pass_manager()
        passes, *builder = manager if isinstance(manager, tuple) else [manager]  # before Numba 0.62
        passes.run(self._final_module, *builder)


class Wide(codegen.JITCPUCodegen):
    """Code generation with the widest vectors, for polynomials: LLVM may prefer 256 bits of
    AVX-512's 512.

    A full-width load crosses cache lines unless it is aligned, so memory-bound loops are
    faster with half the width.
    """

    def _customize_tm_features(self):
        return f"{super()._customize_tm_features()},-prefer-256-bit"


@functools.cache
def generator(wide):
    """Return Numba's code generator, or the wide one."""
    return Wide("wide") if wide else registry.cpu_target.target_context.codegen()


def register_scalar_code():
    """Make Numba register what kernels use of Python and NumPy, and nothing else."""
    from numba.core.typing import mathdecl, npydecl
    from numba.cpython import mathimpl
    from numba.np import npyimpl

    for name in "builtins iterators numbers rangeobj slicing tupleobj".split():
        importlib.import_module(f"numba.cpython.{name}")  # registers functions

    def load(context, *modules):  # once, and again for functions that are compiled later
        for module in modules:
            context.install_registry(module.registry)

    target, types_of = registry.cpu_target.target_context, registry.cpu_target.typing_context
    rtsys.initialize(target)
    target.load_additional_registries = functools.partial(load, target, mathimpl, npyimpl)
    types_of.load_additional_registries = functools.partial(load, types_of, mathdecl, npydecl)


def remembered(find):
    """Memoize type resolution of operators.

    find:    (function, arguments, keywords) -> signature: Numba's resolution, which tries
             all of NumPy's rules again for each `+`.
    """
    cached = {}

    def answer(function, kinds, keywords):
        key = getattr(function, "typing_key", None)
        if getattr(key, "__module__", "") != "_operator" or keywords:
            return find(function, kinds, keywords)
        if not all(isinstance(kind, (types.Number, types.Boolean)) for kind in kinds):
            return find(function, kinds, keywords)
        if (key, kinds) not in cached:
            cached[key, kinds] = find(function, kinds, keywords)
        return cached[key, kinds]

    return answer


@compiler_lock.global_compiler_lock
def compile_function(function, arguments, symbol, finish, wide=False):
    """Compile a function to an object file with one exported symbol.

    arguments:  Numba types.
    wide:       whether its loops use the widest vectors.
    finish:     (module, function, arguments, context, symbol) writes the exported wrapper
                around the compiled function.

    Arguments don't alias, except in elementwise kernels (`overwrites` in
    `core/passes/memory.py`), which load each element before they overwrite it. Declared
    as `noalias`, loops need no run-time checks, which would find aliases in elementwise
    kernels and fall back to scalar code; and values in `work` can stay in registers.
    """
    context = registry.cpu_target.target_context
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model = OPTIONS["error_model"]
    flags.noalias = True
    library = Library(generator(wide), symbol)
    library.enable_object_caching()
    compiled = compiler.compile_extra(
        registry.cpu_target.typing_context,
        context,
        function,
        arguments,
        types.void,
        flags,
        {},
        library=library,
        pipeline_class=Pipeline,
    )
    module = library.create_ir_module(symbol)
    inner = ir.Function(
        module,
        context.call_conv.get_function_type(types.void, arguments),
        compiled.fndesc.llvm_func_name,
    )
    finish(module, inner, arguments, context, symbol)
    library.add_ir_module(module)
    library.get_function(inner.name).linkage = "internal"
    library.finalize()
    for outside in library._final_module.functions:
        if outside.is_declaration and outside.name.startswith(("numba_", "NRT_")):
            raise NotImplementedError(
                f"{outside.name} lives in Numba, which a program "
                "that runs compiled kernels does not load"
            )
    return library._get_compiled_object()


def unpack(module, inner, arguments, context, symbol):
    """Write a wrapper that takes the address of an argument array and calls the kernel.

    Each argument is an address or a scalar of 64 bits.
    """
    outer = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD.as_pointer()]), symbol)
    builder = ir.IRBuilder(outer.append_basic_block())
    operands = []
    for i, kind in enumerate(arguments):
        word = builder.load(builder.gep(outer.args[0], [WORD(i)]))
        operands.append(
            builder.inttoptr(word, context.get_value_type(kind)) if isinstance(kind, Flat) else word
        )
    context.call_conv.call_function(builder, inner, types.void, arguments, operands)
    builder.ret_void()


def compile_kernel(text, symbol):
    """Compile the kernel that a module's source defines last."""
    scope = {"__name__": symbol}
    exec(compile(text, f"<{symbol}>", "exec"), scope)
    kernel = next(v for v in reversed(scope.values()) if hasattr(v, "arguments"))
    arguments = tuple(Flat(a.dtype) if isinstance(a, types.Array) else a for a in kernel.arguments)
    wide = registers()[0] == 64 and any(f"from {name} import" in text for name in POLYNOMIALS)
    return compile_function(kernel.py_func, arguments, symbol, unpack, wide)


def answer(request, symbol):
    """Compile a request; one without source requests the interpreter."""
    if request:
        return compile_kernel(request, symbol)
    return compile_function(drive, ARGUMENTS, symbol, enter)


def serve(required):
    """Serve requests until input ends or stays silent for `IDLE_S`.

    required: the client's package versions, which must match, because its file names
              contain them.
    """
    strange = sorted(set(versions()) - set(required))
    binding.set_option("", UNROLL)
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    try:
        os.dup2(2, 1)  # keeps prints out of the responses
    except OSError:  # standard error is closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    register_scalar_code()
    typing = registry.cpu_target.typing_context
    typing.resolve_function_type = remembered(typing.resolve_function_type)
    gc.disable()  # cycles are collected after each kernel
    gc.freeze()
    response = [time.monotonic(), False]  # time of the last response, whether one is due

    def watch():
        while response[1] or time.monotonic() < response[0] + IDLE_S:
            time.sleep(1.0)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    while head := source.read(16):
        response[1] = True
        size, length = struct.unpack("<QQ", head)
        symbol, text = source.read(length).decode(), source.read(size).decode()
        try:
            if strange:
                raise ImportError(
                    f"the compiler's process finds {', '.join(strange)} instead of "
                    f"{', '.join(required)}; put the folder with the packages into PYTHONPATH"
                )
            good, reply = 1, answer(text, symbol)
        except Exception as error:
            good, reply = 0, f"{type(error).__name__}: {error}".encode()
        try:
            sink.write(struct.pack("<BQ", good, len(reply)) + reply)
            sink.flush()
        except BrokenPipeError:  # the client has ended
            os._exit(0)
        response[:] = time.monotonic(), False
        gc.collect()
