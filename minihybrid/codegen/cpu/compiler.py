"""Chapter 19. From the text of a kernel to machine code, in a process of its own.

Takes:   requests on the standard input: a kernel's text, and the name of its symbol.
Gives:   on the standard output, an object file's bytes, or why there is none.

Numba reads Python, finds the types and hands LLVM a program; nearly all of that is
Python itself, so two kernels compile at once only in two processes. It also leaves the
process that trains a net without a compiler in its memory.
What is left out: Numba's passes that kernels do not need (closures, generators, lifted
loops, rewriting); nothing here is worth more than half of the time that they took.
"""

import functools
import gc
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

from minihybrid.codegen.cache import versions
from minihybrid.codegen.cpu.flat import Flat
from minihybrid.codegen.cpu.interpreter import ARGUMENTS, drive, enter
from minihybrid.codegen.cpu.scalar import OPTIONS
from minihybrid.ops.cpu.machine import registers

# A loop of more turns stays a loop. One instruction that reads a row, turn after turn,
# shows the processor what to fetch ahead; a hundred in a line, each once a row, do not.
UNROLL = "-unroll-full-max-count=12"
POLYNOMIALS = "minihybrid.codegen.cpu.trig", "minihybrid.codegen.cpu.transcendental"
IDLE_S = 30.0  # after so long without a request the process ends
WORD = ir.IntType(64)


class Pipeline(compiler.CompilerBase):
    """Numba's passes for a function of numbers and loops."""

    def define_pipelines(self):
        """The passes in order."""
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
    """Functions that are optimised once, all together: not before that one by one, nor
    cheaply, for the sake of counted references, of which kernels have none."""

    def _optimize_functions(self, module):
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self):
        made = self._codegen._module_pass_manager()
        passes, *builder = made if isinstance(made, tuple) else [made]  # before Numba 0.62
        passes.run(self._final_module, *builder)


class Wide(codegen.JITCPUCodegen):
    """Loops in the widest registers, for polynomials: LLVM may prefer half of AVX-512's.

    A wide register is read from two cache lines unless its numbers begin where a line
    does; loops that do little besides are faster with halves.
    """

    def _customize_tm_features(self):
        return f"{super()._customize_tm_features()},-prefer-256-bit"


@functools.cache
def generator(wide):
    """Numba's writer of machine code, or ours."""
    return Wide("wide") if wide else registry.cpu_target.target_context.codegen()


def remembered(find):
    """The types of an operator's arguments and result: found once for each of them.

    find:    (function, arguments, keywords) -> signature, as Numba finds it, which tries
             all of NumPy's rules for each `+` again.
    """
    cached = {}

    def answer(function, given, keywords):
        key = getattr(function, "typing_key", None)
        if getattr(key, "__module__", "") != "_operator" or keywords:
            return find(function, given, keywords)
        if not all(isinstance(kind, (types.Number, types.Boolean)) for kind in given):
            return find(function, given, keywords)
        if (key, given) not in cached:
            cached[key, given] = find(function, given, keywords)
        return cached[key, given]

    return answer


@compiler_lock.global_compiler_lock
def compile_function(function, arguments, symbol, finish, wide=False):
    """The object file of a function, with one symbol that others may call.

    arguments:  Numba types.
    wide:       whether its loops shall use the widest registers.
    finish:     (module, function, arguments, context, symbol) writes the function that
                has the symbol, around the compiled one.

    Nothing is written where another argument is read, but for maps (`overwrites` in
    `core/passes/memory.py`), which read a number before they write what it has become.
    Told so, LLVM compares no addresses, which would be equal where a map writes over what
    it reads, and its loop be run number by number; and what goes through `work` stays in
    registers.
    """
    context = registry.cpu_target.target_context
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model = OPTIONS["error_model"]
    flags.noalias = True
    library = Library(generator(wide), symbol)
    library.enable_object_caching()
    made = compiler.compile_extra(
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
        made.fndesc.llvm_func_name,
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
    """A function of one argument, the address of words, which calls the kernel.

    A word is the address of an array or a number; all take 64 bits.
    """
    outer = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD.as_pointer()]), symbol)
    builder = ir.IRBuilder(outer.append_basic_block())
    given = []
    for i, kind in enumerate(arguments):
        word = builder.load(builder.gep(outer.args[0], [WORD(i)]))
        given.append(
            builder.inttoptr(word, context.get_value_type(kind)) if isinstance(kind, Flat) else word
        )
    context.call_conv.call_function(builder, inner, types.void, arguments, given)
    builder.ret_void()


def compile_kernel(text, symbol):
    """The object file of the kernel that a module's text defines at its end."""
    scope = {"__name__": symbol}
    exec(compile(text, f"<{symbol}>", "exec"), scope)
    kernel = next(v for v in reversed(scope.values()) if hasattr(v, "arguments"))
    arguments = tuple(Flat(a.dtype) if isinstance(a, types.Array) else a for a in kernel.arguments)
    wide = registers()[0] == 64 and any(f"from {name} import" in text for name in POLYNOMIALS)
    return compile_function(kernel.py_func, arguments, symbol, unpack, wide)


def answer(request, symbol):
    """What a request asks for; the request without text asks for the driver."""
    if request:
        return compile_kernel(request, symbol)
    return compile_function(drive, ARGUMENTS, symbol, enter)


def serve(wanted):
    """Answer requests until there are no more, or none for a while.

    wanted:  the packages of whoever asks; code that others make would go by their names.
    """
    strange = sorted(set(versions()) - set(wanted))
    binding.set_option("", UNROLL)
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    try:
        os.dup2(2, 1)  # whatever prints must not disturb the answers
    except OSError:  # the channel of errors is closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    typing = registry.cpu_target.typing_context
    typing.resolve_function_type = remembered(typing.resolve_function_type)
    gc.disable()  # circles are looked for after each kernel, among what it has left
    gc.freeze()
    seen = [time.monotonic(), False]  # when the last answer went, whether one is due

    def watch():
        while seen[1] or time.monotonic() < seen[0] + IDLE_S:
            time.sleep(1.0)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    while head := source.read(16):
        seen[1] = True
        size, length = struct.unpack("<QQ", head)
        symbol, text = source.read(length).decode(), source.read(size).decode()
        try:
            if strange:
                raise ImportError(
                    f"the compiler's process finds {', '.join(strange)} instead of "
                    f"{', '.join(wanted)}; put the folder with the packages into PYTHONPATH"
                )
            good, reply = 1, answer(text, symbol)
        except Exception as error:
            good, reply = 0, f"{type(error).__name__}: {error}".encode()
        try:
            sink.write(struct.pack("<BQ", good, len(reply)) + reply)
            sink.flush()
        except BrokenPipeError:  # whoever asked has ended
            os._exit(0)
        seen[:] = time.monotonic(), False
        gc.collect()
