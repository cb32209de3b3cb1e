"""Chapter 19. Compile kernels in parallel processes, and load their machine code.

Defines: `load_kernels`, source -> address; `make_runner`, which turns a plan's bytecode
         into a Python function.

Compilers are separate processes; object files are cached on disk (`cache.py`).
Not supported: unloading.
"""

import atexit
import contextlib
import ctypes
import functools
import importlib.util
import os
import queue
import struct
import subprocess
import sys
import threading
import time

import numpy as np

from minihybrid.codegen.cache import ROOT, processor, read, symbol_of, versions, write
from minihybrid.core.fork_safe import ForkSafe
from minihybrid.core.op import HybridError
from minihybrid.ops.cpu.machine import cores

SOON_S = 1.0  # longer waits show a progress bar, or a message that NumPy answers
PROGRAM = f"""
import signal, sys, types
signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asked hears it, and may end us
for name in ("scipy", "cffi", "coverage"):  # Numba would load them, for nothing
    sys.modules[name] = None
for name in ("minihybrid", "minihybrid.codegen", "minihybrid.ops"):
    sys.modules[name] = types.ModuleType(name)  # the compiler needs little of them
    sys.modules[name].__path__ = [{ROOT!r} + name[len("minihybrid"):].replace(".", "/")]
from minihybrid.codegen.cpu.compiler import serve
serve(sys.argv[1:])
"""


# -- compilers -------------------------------------------------------------------------
class Compiler:
    """A process that compiles kernels one at a time (`codegen/cpu/compiler.py`)."""

    def __init__(self):
        if not sys.executable:  # Python is embedded in another program
            raise OSError("sys.executable does not say which program Python is")
        others = {
            k: v
            for k, v in os.environ.items()  # such as NUMBA_OPT=0: all compilers must agree
            if not k.startswith(("NUMBA_", "LLVMLITE_"))
        }  # even if they are set
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, *versions()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=os.path.abspath(os.sep),  # the current folder may be deleted
            env=others | processor(),
        )
        RUNNING.add(self)

    def ask(self, text, symbol):
        """Return an object file's bytes; EOFError if the process has ended."""
        text, symbol = text.encode(), symbol.encode()
        try:
            self.process.stdin.write(struct.pack("<QQ", len(text), len(symbol)) + symbol + text)
            self.process.stdin.flush()
        except (OSError, ValueError):  # broken or closed pipe
            raise EOFError from None
        head = self.process.stdout.read(9)
        if len(head) < 9:
            raise EOFError
        good, size = struct.unpack("<BQ", head)
        reply = self.process.stdout.read(size)
        if not good:
            raise HybridError(f"a kernel did not compile: {' '.join(reply.decode().split())}")
        return reply

    def end(self):
        """Kill the process, which has no state to lose."""
        RUNNING.discard(self)
        self.process.kill()
        with self.process, contextlib.suppress(OSError):  # `with` waits for its exit
            self.process.stdin.close()


IDLE = queue.SimpleQueue()  # idle compilers
RUNNING = set()  # all compilers


def compile_text(text, symbol):
    """Compile a kernel to an object file, in an idle compiler or a new one.

    Raises:  HybridError with the compiler's reason.
    """
    while True:
        try:
            compiler, is_new = IDLE.get_nowait(), False
        except queue.Empty:
            compiler, is_new = _start(), True
        if compiler not in RUNNING:
            continue  # it was ended
        try:
            compiled = compiler.ask(text, symbol)
        except EOFError:
            if not is_new and compiler in RUNNING:
                compiler.end()
                continue  # it timed out and ended
            compiler.end()
            raise HybridError(NO_COMPILER.format("it ended at once")) from None
        except HybridError:
            IDLE.put(compiler)
            raise
        IDLE.put(compiler)
        return compiled


NO_COMPILER = (
    "the compiler's process does not run ({}), so this net cannot be "
    "compiled here; use hybridize(backend='numpy')"
)


def _start():
    try:
        return Compiler()
    except OSError as error:
        raise HybridError(NO_COMPILER.format(error)) from None


@atexit.register
def end_compilers():
    """End all compilers; the next compilation starts new ones."""
    for compiler in list(RUNNING):
        compiler.end()


# -- in this process -------------------------------------------------------------------
LOADING = ForkSafe()  # one thread loads; others wait for its result
STILL = threading.RLock()  # a fork waits until imports and linking, which take
# milliseconds, are done: in the child, they would never finish
ADDRESSES = {}  # symbol -> address of its machine code
ALIVE = []  # objects to keep alive with the machine code
BACKGROUND = []  # (start time, number of kernels) of background compilations
UNTOLD = [True]  # cleared once the message was printed


def _after_fork():
    """Reset the child's compilers, which belong to the parent."""
    global IDLE, RUNNING
    STILL.release()
    BACKGROUND.clear()
    ALIVE.append(RUNNING)  # the parent's: not closed here
    IDLE, RUNNING = queue.SimpleQueue(), set()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=STILL.acquire, after_in_parent=STILL.release, after_in_child=_after_fork
    )


@functools.cache
def _engine():
    """Return LLVM's object-file loader."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


def load_kernels(names):
    """Return source -> address of kernels: loaded already, cached on disk, or compiled now.

    names:   source -> name in the progress bar; empty source means the interpreter.
    """
    with STILL:
        symbols = {text: symbol_of(text) for text in names}
    with LOADING.lock:
        unlinked = {s: text for text, s in symbols.items() if s not in ADDRESSES}
        codes = {symbol: read(symbol) for symbol in unlinked}
        missing = [symbol for symbol, code in codes.items() if code is None]
        if missing:
            codes |= _compile({s: (unlinked[s], names[unlinked[s]]) for s in missing})
        if codes:
            with STILL:
                _link(codes)
        return {text: ADDRESSES[symbol] for text, symbol in symbols.items()}


def _compile(sources):
    """symbol -> object file, of symbol -> (text, name); some at a time."""
    todo, done, codes = queue.SimpleQueue(), queue.SimpleQueue(), {}
    for symbol in sorted(sources, key=lambda symbol: -len(sources[symbol][0])):
        todo.put(symbol)  # longest first

    def work():
        with contextlib.suppress(queue.Empty):
            while True:
                symbol = todo.get_nowait()
                try:
                    done.put((symbol, compile_text(sources[symbol][0], symbol)))
                except Exception as error:
                    done.put((symbol, error))

    try:
        for _ in range(min(cores(), -(-len(sources) // 2))):
            threading.Thread(target=work, daemon=True, name="minihybrid compiles").start()
    except RuntimeError:  # the system's limit of threads
        work()
    n_kernels = sum(text != "" for text, _ in sources.values())  # without the interpreter
    with _background(n_kernels), _progress_bar(len(sources)) as advance:
        while len(codes) < len(sources):
            symbol, code = done.get()
            if isinstance(code, Exception):
                raise code
            write(symbol, code)
            codes[symbol] = code
            advance(sources[symbol][1])
    return codes


@contextlib.contextmanager
def _background(n_kernels):
    """Register a background compilation for `tell`."""
    entries = [(time.monotonic(), n_kernels)] * threading.current_thread().daemon
    BACKGROUND.extend(entries)
    try:
        yield
    finally:
        BACKGROUND.clear()


def tell():
    """Print, once, that NumPy answers because kernels take long to compile.

    The thread that calls a net prints it, because a background thread that writes during
    shutdown would crash. Like progress bars, it is disabled by TQDM_DISABLE=1.
    """
    if is_quiet():
        return
    for begun, n_kernels in BACKGROUND[:1]:
        if UNTOLD and time.monotonic() >= begun + SOON_S:
            with contextlib.suppress(IndexError):  # another thread prints it
                UNTOLD.pop()
                kernels = "1 kernel" if n_kernels == 1 else f"{n_kernels} kernels"
                message = f"compiling {kernels} in the background; NumPy answers until then\n"
                with contextlib.suppress(AttributeError, OSError, ValueError):  # nothing reads it
                    sys.stderr.write(message)


def is_quiet():
    """Return whether the environment disables progress reports: TQDM_DISABLE=1."""
    return os.environ.get("TQDM_DISABLE", "0") not in ("", "0")


@contextlib.contextmanager
def _progress_bar(n_kernels):
    """Yield a function that advances the progress bar; background threads have no bar.

    Without a terminal, as in a log, or without tqdm, there is no bar.
    """
    is_readable = sys.stderr is not None and importlib.util.find_spec("tqdm")
    if threading.current_thread().daemon or not is_readable or is_quiet():
        yield lambda name: None
        return
    unread = contextlib.suppress(OSError, ValueError)  # a broken pipe, a closed file
    with STILL:  # a bar creates a lock
        from tqdm import tqdm

        bar = tqdm(
            total=n_kernels,
            desc="compiling",
            unit="kernel",
            delay=SOON_S,
            leave=False,
            disable=None,  # unless it is a terminal
        )

    def advance(name):
        with STILL, unread:
            bar.set_postfix_str(name, refresh=False)
            bar.update()

    try:
        yield advance
    finally:
        with STILL, unread:
            bar.close()


def _link(codes):
    """Load object files into memory, and record their addresses."""
    from llvmlite import binding

    engine = _engine()
    for code in codes.values():
        ALIVE.append(binding.ObjectFileRef.from_data(code))
        engine.add_object_file(ALIVE[-1])
    engine.finalize_object()
    ADDRESSES.update((symbol, engine.get_function_address(symbol)) for symbol in codes)


FASTCALL = 0x0080  # METH_FASTCALL: arguments come as addresses of objects, and a count
NAME = ctypes.create_string_buffer(b"run")


def make_runner(address, program):
    """Return the interpreter as a built-in Python function with a program as its `self`.

    program:  an int64 array (codegen/cpu/interpreter.py), or one of machine words.

    The PyMethodDef (name, address, flags, no docstring) is stored after the program's last
    integer, because Python reads it as long as `self` is alive.
    """
    entry = np.array([ctypes.addressof(NAME), address, FASTCALL, 0], program.dtype)
    program = np.append(program, entry)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    return make(program[-4:].ctypes.data, program, None)
