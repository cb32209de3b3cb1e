"""Command-line tools for MXNet and ONNX models: convert, run and check them.

Usage:   `python -m minihybrid convert SYMBOL [PARAMS] TARGET --shape data=1,3,224,224`, and
         `run` and `check` likewise. SYMBOL is MXNet's `-symbol.json` or an ONNX file.

Not supported: training from the command line.
"""

import argparse
import io
import re
from collections import Counter
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from minihybrid.core import nd, sym
from minihybrid.core.block import HybridBlock, SymbolBlock
from minihybrid.core.files import FileError, write_whole
from minihybrid.core.graph import topological
from minihybrid.core.op import AttrError, HybridError, Spec, legible
from minihybrid.core.parameter import fill
from minihybrid.core.serial import Missing

# File suffix -> format of `net.export`; "mxnet" and "onnx" keep the batch size free.
SUFFIXES = {
    ".json": "mxnet",
    ".onnx": "onnx",
    ".c": "c",
    ".mjs": "wasm",
    ".wasm": "wasm",
    ".py": "numpy",
}
MAX_INPUTS = 4  # inputs; if there are more, the parameter file is missing
MAX_SIZE = 1 << 30  # elements of an input
# Inputs of operators that are parameters, so they have arrays.
PARAMETERS = {"weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "parameters"}


def listed(names: Iterable[str], most: int = MAX_INPUTS) -> str:
    """Return names, which can contain anything, as text of one line.

    >>> listed("abc"), listed("abcd", 2), listed([])
    ('a, b, c', 'a, b and 2 more', 'none')
    """
    shown = [legible(name) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) or "none") + more


class Model(NamedTuple):
    """A graph read from files, with its arrays; `unused` has names that the graph lacks."""

    source: str
    symbol: sym.Symbol
    arrays: dict[str, nd.NDArray]
    params: str = ""
    unused: tuple[str, ...] = ()

    @property
    def inputs(self) -> list[str]:
        """The input variables: neither parameters nor labels, which only training reads."""
        labels = self.labels
        return [n for n in self.symbol.list_inputs() if n not in self.arrays and n not in labels]

    @property
    def labels(self) -> list[str]:
        """The variables that are labels of losses."""
        return self.read_as({"label"})

    @property
    def missing(self) -> list[str]:
        """The parameters without an array, if there are arrays at all."""
        return self.read_as(PARAMETERS) if self.arrays else []

    def read_as(self, kinds: set[str]) -> list[str]:
        """Return the variables without an array that an operator reads as one of these inputs."""
        names_read = set()
        for node in topological(self.symbol.refs):
            if node.op is None:
                continue
            names = node.op.input_names(node.attrs, len(node.inputs))
            for name, (source, _) in zip(names, node.inputs, strict=False):
                if name in kinds and source.op is None:
                    names_read.add(source.name)
        return [n for n in self.symbol.list_inputs() if n in names_read and n not in self.arrays]

    @property
    def lacking(self) -> dict[str, list[str]]:
        """Unsupported operator -> names of its nodes."""
        missing: dict[str, list[str]] = {}
        for node in topological(self.symbol.refs):
            if isinstance(node.op, Missing):
                missing.setdefault(node.op.name, []).append(node.name)
        return missing

    def specs(self, shapes: dict[str, tuple[int, ...]]) -> dict[str, Spec]:
        """Return name -> Spec of each input.

        Raises:  AttrError if a shape is missing or belongs to no input.
        """
        unknown = [name for name in shapes if name not in self.inputs]
        lacking = [name for name in self.inputs if name not in shapes]
        if len(lacking) > MAX_INPUTS:
            raise AttrError(
                f"{self.source}: {len(lacking)} variables have neither an array nor a shape, such "
                f"as '{lacking[0]}' and '{lacking[1]}'; name the .params file that belongs to it"
            )
        self.need_arrays(shapes)
        if unknown or lacking:
            example = " ".join(f"--shape {name}=1,3,224,224" for name in lacking or self.inputs)
            what = f"there is no input '{unknown[0]}'" if unknown else f"no shape of {lacking[0]!r}"
            remedy = "" if unknown or self.arrays else "name the .params file, or all shapes, "
            raise AttrError(
                f"{self.source}: {what}; it has the inputs {', '.join(self.inputs)}; "
                f"{remedy}for example {example}"
            )
        return {name: Spec(shapes[name], np.dtype("float32")) for name in self.inputs}

    def need_arrays(self, shapes: Iterable[str]) -> None:
        """Raise AttrError if a parameter has neither an array nor a shape."""
        missing = [name for name in self.missing if name not in shapes]
        if missing:
            unused = f"; the graph doesn't read {listed(self.unused)}" if self.unused else ""
            raise AttrError(
                f"{self.params or self.source}: no array is called {listed(missing)}{unused}; name "
                f"the .params file that was saved with {self.source}"
            )

    def net(self, shapes: dict[str, tuple[int, ...]]) -> HybridBlock:
        """Return a hybridized block of the inputs alone; labels are zeros.

        Raises:  HybridError for an unsupported operator or mismatched shapes.
        """
        specs = self.specs(shapes)
        args, _, _ = self.symbol.infer_shape(**{name: s.shape for name, s in specs.items()})
        if args is None:
            raise AttrError(
                f"{self.source}: the shapes of the inputs {', '.join(specs)} don't determine those "
                "of its labels; give complete shapes, without a 0"
            )
        arg_shapes = dict(zip(self.symbol.list_arguments(), args, strict=True))
        zeros = {name: sym.zeros(arg_shapes[name]) for name in self.labels}
        net = SymbolBlock(self.symbol(**zeros), [sym.var(name) for name in self.inputs])
        fill(
            dict(net.collect_params().items()),
            self.arrays,
            self.params or self.source,
            allow_missing=False,
            ignore_extra=False,
            cast_dtype=True,
            dtype_source="saved",
            ctx=None,
        )
        net.hybridize()
        return net


def load(symbol_file: str, params_file: str | None = None) -> Model:
    """Load a model from MXNet's files or an ONNX file.

    Raises:  FileError or HybridError, in one sentence, if they can't be read.
    """
    if symbol_file.endswith(".onnx"):
        from minihybrid.formats.onnx.load.model import import_model

        if params_file:
            raise AttrError(f"{params_file}: {symbol_file} has its own arrays; leave this file out")
        symbol, args, states = import_model(symbol_file)
        return Model(symbol_file, symbol, args | states)
    symbol = sym.load(symbol_file)
    stored = nd.load(params_file) if params_file else {}
    if not isinstance(stored, dict):
        raise AttrError(f"{params_file}: the arrays have no names, which parameters need")
    names = set(symbol.list_inputs())
    bare = {name.removeprefix("arg:").removeprefix("aux:"): a for name, a in stored.items()}
    if bare and names.isdisjoint(bare):
        raise AttrError(
            f"{params_file}: none of its {len(bare)} arrays, such as '{min(bare)}', belongs to "
            f"{symbol_file}; name the .params file that was saved with it"
        )
    arrays = {name: a for name, a in bare.items() if name in names}
    unused = tuple(sorted(bare.keys() - names))
    return Model(symbol_file, symbol, arrays, params_file or "", unused)


def convert(model: Model, target: str, shapes: dict[str, tuple[int, ...]]) -> Iterable[str]:
    """Write a model in the format of the target's suffix; return the file names."""
    suffix = Path(target).suffix
    if suffix not in SUFFIXES:
        raise AttrError(
            f"convert: the target '{target}' ends with '{suffix}', but one of "
            f"{', '.join(SUFFIXES)} is needed"
        )
    kind, path = SUFFIXES[suffix], str(Path(target).with_suffix(""))
    if kind == "mxnet":
        path = path.removesuffix("-symbol")
        files = f"{path}-symbol.json", f"{path}-0000.params"
        keep(model, files)
        names = set(model.symbol.list_auxiliary_states())
        model.symbol.save(files[0])
        arrays = {f"{'aux' if n in names else 'arg'}:{n}": a for n, a in model.arrays.items()}
        nd.save(files[1], arrays)
        return files
    if kind == "onnx":
        keep(model, [target])
        from minihybrid.formats.onnx.export.model import export_model

        shapes_in_order = [spec.shape for spec in model.specs(shapes).values()]
        export_model(
            model.symbol, model.arrays, shapes_in_order, onnx_file_path=target, dynamic=True
        )
        return (target,)
    net = model.net(shapes)
    net(*feed(model, shapes).values())
    return net.export(path, format=kind)


def keep(model: Model, targets: Iterable[str]) -> None:
    """Raise FileError if a target is one of the files that the model was read from."""
    own = {Path(file).resolve() for file in (model.source, model.params) if file}
    for file in targets:
        if Path(file).resolve() in own:
            raise FileError(
                f"cannot write '{file}': the model was read from it; choose another name"
            )


def feed(model: Model, shapes: dict[str, tuple[int, ...]], files: Iterable[str] = (), seed=0):
    """Return name -> NDArray of each input: from NAME=a.npy or a.npz, or uniform in [-1, 1)."""
    arrays: dict[str, nd.NDArray] = {}
    for text in files:
        name, _, file = text.rpartition("=")
        try:
            stored = np.load(file, allow_pickle=False)
            read = {name: stored} if isinstance(stored, np.ndarray) else dict(stored)
            arrays |= {n: nd.array(a) for n, a in read.items()}
        except OSError as error:
            raise FileError(f"--input {text}: {error.strerror or error}") from None
        except (ValueError, EOFError, BadZipFile):
            raise FileError(
                f"--input {text}: this is no .npy or .npz file of numbers, or it is cut off"
            ) from None
        if "" in read:
            raise FileError(f"--input {text}: which input is it? Write NAME={text}")
    stream = np.random.default_rng(seed)
    for name, spec in model.specs(shapes | {n: a.shape for n, a in arrays.items()}).items():
        if name not in arrays:
            arrays[name] = nd.array(stream.uniform(-1, 1, spec.shape).astype(spec.dtype))
    return {name: arrays[name] for name in model.inputs}


def run(model: Model, shapes: dict[str, tuple[int, ...]], files: Iterable[str] = (), seed=0):
    """Run a model; return name -> ndarray of each output."""
    data = feed(model, shapes, files, seed)
    outs = model.net({name: a.shape for name, a in data.items()})(*data.values())
    outs = outs if isinstance(outs, (list, tuple)) else [outs]
    return dict(zip(model.symbol.list_outputs(), (o.asnumpy() for o in outs), strict=True))


def extent(value: np.ndarray) -> str:
    """Return an array's shape and range, of which an array without elements has none.

    >>> extent(np.array([True, False])), extent(np.ones((0, 2)))
    ('shape (2,), from 0 to 1', 'shape (0, 2)')
    """
    limits = [f"{float(end):.6g}" for end in (value.min(), value.max())] if value.size else []
    return f"shape {value.shape}" + (f", from {' to '.join(limits)}" if limits else "")


def check(model: Model, shapes: dict[str, tuple[int, ...]]) -> Iterable[str]:
    """Report a model's contents, missing operators and difference from ONNX Runtime's results."""
    kinds = Counter(node.op.name for node in topological(model.symbol.refs) if node.op)
    n_numbers = sum(a.size for a in model.arrays.values())
    yield f"{model.source}: {kinds.total():,} operators, {n_numbers:,} parameters"
    yield f"operators: {', '.join(f'{n} {legible(name)}' for name, n in kinds.most_common())}"
    inputs = [name for name in model.inputs if name not in model.missing]
    more = " variables without an array" if len(inputs) > MAX_INPUTS else ""
    yield f"inputs: {listed(inputs)}{more}"
    if model.labels:
        yield f"labels, unused in prediction: {listed(model.labels)}"
    yield f"outputs: {listed(model.symbol.list_outputs(), 100)}"
    if model.missing:
        yield f"missing arrays: {listed(model.missing)}"
    if model.unused:
        yield f"unused arrays: {listed(model.unused)}"
    for name, nodes in model.lacking.items():
        yield f"missing operator {legible(name)}: {listed(nodes, 3)}"
    if model.lacking:
        raise AttrError(f"{model.source}: it can't run without the missing operators")
    model.need_arrays(shapes)
    if len(shapes) < len(inputs):
        yield "runs: unknown; give the shapes of the inputs, as in --shape data=1,3,224,224"
        return
    outs = run(model, shapes)
    for name, value in outs.items():
        yield f"runs: {legible(name)} has {extent(value)}"
    yield compared(model, shapes, outs)


def compared(model: Model, shapes: dict[str, tuple[int, ...]], outs: dict[str, np.ndarray]) -> str:
    """Return a line with the largest difference from ONNX Runtime's results."""
    import tempfile

    try:
        import onnxruntime
    except ImportError:
        return 'ONNX Runtime: not installed; python -m pip install "minihybrid[onnx]" onnxruntime'
    with tempfile.TemporaryDirectory() as folder:
        try:
            (path,) = convert(model, str(Path(folder, "model.onnx")), shapes)
        except HybridError as error:
            return f"ONNX Runtime: not compared; {error}"
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        data = {name: a.asnumpy() for name, a in feed(model, shapes).items()}
        needed = {i.name for i in session.get_inputs()}
        theirs = session.run(None, {n: a for n, a in data.items() if n in needed})
    apart = max(
        np.abs(np.subtract(a, b, dtype="float64")).max(initial=0)
        for a, b in zip(outs.values(), theirs, strict=True)
    )
    size = max(np.abs(a).max(initial=0) for a in outs.values())
    return f"ONNX Runtime: largest difference {apart:.2g}, largest output {size:.3g}"


# -- the command line ----------------------------------------------------------------------
def name_and_value(text: str) -> tuple[str, str]:
    """Parse an argument NAME=VALUE into (name, value)."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Parse an argument such as data=1,3,224,224 into (name, shape)."""
    name, value = name_and_value(text)
    try:
        lengths = tuple(int(n) for n in value.replace("x", ",").split(","))
    except ValueError:
        lengths = ()
    if not lengths or min(lengths) < 1 or prod(lengths) > MAX_SIZE:
        raise argparse.ArgumentTypeError(
            f"{value!r} is not a shape such as 1,3,224,224, of at most {MAX_SIZE:,} elements"
        )
    return name, lengths


def seed(text: str) -> int:
    """Parse a seed."""
    if not re.fullmatch(r"\d+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def add_commands(commands) -> None:
    """Add `convert`, `run` and `check` to the commands of a parser."""
    for function, words in (
        (main_convert, "write a model for another engine"),
        (main_run, "run a model, and print or save its outputs"),
        (main_check, "say what a model contains, what is missing, and whether it runs"),
    ):
        name = function.__name__.removeprefix("main_")
        one = commands.add_parser(name, help=words, description=f"{words.capitalize()}.")
        one.add_argument("symbol", help="MXNet's -symbol.json, or an .onnx file")
        one.add_argument("params", nargs="?", help="MXNet's .params; none for .onnx")
        if function is main_convert:
            one.add_argument("target", help=f"ends with one of {', '.join(SUFFIXES)}")
        if function is main_run:
            words = "NAME=a.npy, or an .npz file that names the inputs"
            one.add_argument("--input", action="append", default=[], help=words)
            one.add_argument("--seed", type=seed, default=0, help="of the inputs without a file")
            one.add_argument("--output", help="a .npz file to write")
        one.add_argument(
            "--shape", type=shape, action="append", default=[], help="data=1,3,224,224"
        )
        one.set_defaults(command=function)


def main_convert(args) -> Iterable[str]:
    """Run `convert`; yield the files written."""
    files = convert(load(args.symbol, args.params), args.target, dict(args.shape))
    return [f"wrote {file}" for file in files]


def main_run(args) -> Iterable[str]:
    """Run `run`; yield the shape, range and values of each output."""
    model = load(args.symbol, args.params)
    outs = run(model, dict(args.shape), args.input, args.seed)
    for name, value in outs.items():
        yield f"{legible(name)}: {extent(value)}"
        if value.ndim == 2 and value.size:
            order = np.argsort(-value[0].astype("float64"), kind="stable")
            yield f"first row, largest first: {order[:5].tolist()}"
        yield np.array2string(value, threshold=100)
    if args.output:
        if not args.output.endswith(".npz"):
            raise FileError(f"cannot write '{args.output}': choose a name that ends with .npz")
        file = io.BytesIO()
        np.savez(file, **outs)
        write_whole(args.output, file.getvalue())
        yield f"wrote {args.output}"


def main_check(args) -> Iterable[str]:
    """Run `check`; yield its report."""
    return check(load(args.symbol, args.params), dict(args.shape))
