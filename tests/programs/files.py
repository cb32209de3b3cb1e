"""A program's net in files: MXNet's, ONNX's, C's and NumPy's; and who runs them.

Each of the `by_` functions takes a net with its numbers and its program, and gives the
outputs of a prediction. What a format says that it cannot do is `Refused`.
"""

import math
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from minihybrid.onnx import export_model, import_to_gluon
from minihybrid.sym import load as load_symbol

from minihybrid.core.files import FileError
from minihybrid.core.op import HybridError
from minihybrid.formats.onnx.export.draft import ExportError
from minihybrid.gluon import SymbolBlock
from programs.draft import ARRAYS
from programs.run import all_steps, arrays_of
from programs.shrink import values_of

CC = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
NOT_BACK = (
    "no output depends on an input",
    "its output .* is not supported",
    "an array with numbers is needed",
)


class Refused(Exception):
    """A format, or who reads it, said that it cannot hold a program."""


def data_of(program):
    """The arrays that a call is given."""
    return [
        a for a, each in zip(arrays_of(program), program.inputs, strict=True) if each.role == "data"
    ]


def given(program):
    """The arguments of a call."""
    return [ARRAYS[program.world](a) for a in data_of(program)]


def traced(net, program):
    """The net hybridized, after one call."""
    read = {i for step in program.steps for i in step.inputs} | {*program.outputs}
    if not read >= {i for i, each in enumerate(program.inputs) if each.role == "data"}:
        raise Refused("files have no inputs that nobody reads")
    net.hybridize(backend="numpy")
    net(*given(program))
    return net


@contextmanager
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@contextmanager
def exported(net, program):
    """A function that reads the net again from MXNet's files."""
    traced(net, program)
    with folder() as home:
        files = net.export(str(home / "net"))
        n = sum(each.role == "data" for each in program.inputs)
        names = ["data"] if n == 1 else [f"data{k}" for k in range(n)]
        if not {*names, *net.collect_params()} <= set(load_symbol(files[0]).list_inputs()):
            raise Refused("export: an input that no output reads")
        yield lambda: SymbolBlock.imports(files[0], names, files[1])


# -- ONNX ------------------------------------------------------------------------------
def write_as_onnx(net, program, path):
    """The way of MXNet's users: through its files. Gives name -> array of inputs."""
    arrays = data_of(program)
    names = ["data"] if len(arrays) == 1 else [f"data{k}" for k in range(len(arrays))]
    arrays = dict(zip(names, arrays, strict=True))
    with folder() as home:
        files = traced(net, program).export(str(home / "net"))
        arrays = {n: arrays[n] for n in load_symbol(files[0]).list_inputs() if n in arrays}
        try:
            export_model(
                *files,
                [a.shape for a in arrays.values()],
                [a.dtype for a in arrays.values()],
                str(path),
            )
        except ExportError as error:
            raise Refused(f"export: {kind_of(error)}") from None
    return arrays


def kind_of(error):
    """An error's words without names, numbers and shapes."""
    return re.sub(r"'[^']*'|\([^)]*\)|-?\d+", "_", str(error).splitlines()[0])[:90]


def by_onnx(net, program):
    """Exported, and imported again."""
    with folder() as home:
        arrays = write_as_onnx(net, program, home / "net.onnx")
        try:
            again = import_to_gluon(home / "net.onnx")
        except FileError as error:
            if not any(re.search(words, str(error)) for words in NOT_BACK):
                raise
            raise Refused("import: not one of our nets") from None
        outs = again(*(ARRAYS["nd"](arrays[n]) for n in again._inputs))
    return [o.asnumpy() for o in (outs if isinstance(outs, (list, tuple)) else [outs])]


def has_whole_powers(program):
    """Whether a step gives powers of whole numbers, which may wrap around."""
    if any("power" in s.op or s.op == "**" for s in all_steps(program) if s not in program.steps):
        return True  # inside of a loop, whose values are not known here
    values = values_of(program)
    ends = len(program.inputs) + np.cumsum([s.n_outputs for s in program.steps])
    return any(
        values[end - 1].dtype.kind in "iu"
        for step, end in zip(program.steps, ends, strict=True)
        if "power" in step.op or step.op == "**"
    )


def has_norms_of_one_number(program):
    """Whether the mean is taken off single numbers: what is left is the bias, exactly."""
    values = values_of(program)
    return any(
        step.op == "InstanceNorm" and math.prod(values[step.inputs[0]].shape[2:]) == 1
        for step in program.steps
    )


def by_runtime(net, program):
    """Exported, and run by ONNX Runtime.

    It has no kernels for some dtypes, does not divide whole numbers by 0, and passes
    over NaN in windows and orders: such programs are refused here.
    """
    import onnxruntime

    if not all(np.isfinite(v).all() for v in values_of(program) if v.dtype.kind == "f"):
        raise Refused("runtime: infinite or NaN")
    if any(
        v.dtype.kind in "iu" and v.dtype != np.int32 and v.dtype != np.int64
        for v in values_of(program)
    ):
        raise Refused("runtime: small whole numbers")
    if any(v.dtype.kind == "i" and (v == np.iinfo(v.dtype).min).any() for v in values_of(program)):
        raise Refused("runtime: the smallest whole number, which over -1 ends it")
    if has_norms_of_one_number(program):
        raise Refused("runtime: it multiplies before it takes the mean off, and rounds")
    if has_whole_powers(program):
        raise Refused("runtime: powers of whole numbers, which do not wrap around")
    if any("argm" in step.op for step in program.steps) and not all(
        v.size for v in values_of(program)
    ):
        raise Refused("runtime: it leaves a place of none with one axis too many")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    with folder() as home:
        arrays = write_as_onnx(net, program, home / "net.onnx")
        try:
            session = onnxruntime.InferenceSession(
                (home / "net.onnx").read_bytes(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            if "is not a graph input, initializer, or output" in str(error):  # onnx checked it
                raise Refused("runtime: in t * 1 * (1 / x), it removes a step twice") from None
            if "NOT_IMPLEMENTED" not in str(error):
                raise
            raise Refused(f"runtime: {str(error)[:90]}") from None
        read = {i.name for i in session.get_inputs()}
        try:
            return session.run(None, {n: a for n, a in arrays.items() if n in read})
        except Exception as error:
            own = (
                "Integer (division|modulo) by zero|at least 1, got 0|FusedMatMul.*cannot broadcast"
            )
            if not re.search(own, str(error)):
                raise
            raise Refused("runtime: a whole 0 below, or an axis of length 0") from None


# -- files of code ---------------------------------------------------------------------
def written(net, program, home, kind):
    try:
        return traced(net, program).export(str(home / "net"), format=kind)
    except HybridError as error:
        if "draws random numbers" not in str(error):
            raise
        raise Refused("random numbers") from None


def by_numpy(net, program):
    """The file that needs only NumPy."""
    with folder() as home:
        file, weights = written(net, program, home, "numpy")
        scope = {"__name__": "net", "__file__": file}
        exec(compile(Path(file).read_text(), file, "exec"), scope)
        with np.errstate(all="ignore"):
            outs = scope["predict"](scope["load"](weights), *data_of(program))
    return outs if isinstance(outs, tuple) else [outs]


def by_c(net, program):
    """The file that needs only C, compiled and run."""
    if CC is None:
        raise Refused("no C compiler")
    with folder() as home:
        written(net, program, home, "c")
        specs = [(o.shape, o.dtype) for o in in_list(net(*given(program)))]
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
        called([CC, *flags, "-DNET_MAIN", "net.c", "-lm", "-o", "net"], home)
        for k, array in enumerate(data_of(program)):
            array.tofile(home / f"x{k}.bin")
        called(
            [
                "./net",
                "net.weights",
                *(f"x{k}.bin" for k in range(len(data_of(program)))),
                *(f"y{k}.bin" for k in range(len(specs))),
            ],
            home,
        )
        return [
            np.fromfile(home / f"y{k}.bin", dtype).reshape(shape)
            for k, (shape, dtype) in enumerate(specs)
        ]


def in_list(out):
    return list(out) if isinstance(out, (list, tuple)) else [out]


def called(words, home):
    """Run a program that must have nothing to say."""
    done = subprocess.run(words, cwd=home, capture_output=True, text=True)
    if done.returncode or done.stderr:
        raise AssertionError(
            f"{words[0]} gives {done.returncode}: {done.stderr[:300]}".replace("\n", " ")
        )
