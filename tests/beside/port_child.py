"""Run a program or a graph of somebody else's in one engine, and keep what it computed.

    python -m beside.port_child JOB.json ANSWERS.npz     # in tests/, in either Python

A graph: its outputs. A program: what it prints, every array that it takes out of the
engine, and its parameters at the end. Both engines get the same random numbers: functions
that draw, and initializers, are given NumPy's, the latter by the parameter's name.
Strangers' programs have no network, start no process and write into their folder only.
"""

import ast
import contextlib
import importlib
import io
import json
import logging
import os
import sys
import traceback
import types
import zlib

import numpy as np

SEED = 7
ROUNDING = 2.0**-23  # of single precision: what lies between two numbers, as a share


# -- a cage ----------------------------------------------------------------------------
REFUSED = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec")


def caged(folder, mx):
    """Refuse what a program that computes has no use for; there is no way back.

    The engine itself may compile in processes of its own, and keep what it compiled.
    """
    home = os.path.realpath(folder) + os.sep
    engine = os.path.dirname(mx.__file__) + os.sep

    def asked_by_program():
        frame = sys._getframe(2)
        while frame and not frame.f_code.co_filename.startswith((home, engine)):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(home)

    def watch(event, args):
        if event in REFUSED and asked_by_program():
            raise PermissionError(f"{event} is refused here")
        if event == "open" and isinstance(args[0], (str, bytes)):
            writes = args[2] & (os.O_WRONLY | os.O_RDWR)
            path = os.path.realpath(os.fsdecode(args[0])) if writes else home
            if not path.startswith((home, "/dev/")) and asked_by_program():
                raise PermissionError(f"writing to {path} is refused here")

    sys.addaudithook(watch)


def limited(memory, seconds):
    """Bytes of memory, and seconds of processor time, that this process may take."""
    import resource  # not on Windows, where nobody runs this

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


# -- the same random numbers -----------------------------------------------------------
class Drawn:
    """Functions that draw, with MXNet's arguments, from one of NumPy's streams.

    shake: if not 0, what is drawn is moved by at most a rounding, by this seed.
    """

    def __init__(self, mx, shake):
        self.mx, self.stream = mx, np.random.RandomState(SEED)
        self.moves = np.random.RandomState(shake) if shake else None

    def roundings(self, values):
        """What a sum of such numbers may lose: their size decides, not what is left of it."""
        return ROUNDING * np.abs(values).max(initial=0) * self.moves.uniform(-1, 1, values.shape)

    def given(self, values, shape, dtype, ctx, out):
        if self.moves and values.dtype.kind == "f":
            values = values + self.roundings(values)
        if out is not None:
            out[:] = self.mx.nd.array(values.reshape(out.shape), dtype=out.dtype)
            return out
        return self.mx.nd.array(values, ctx=ctx, dtype=dtype or "float32")

    def shape(self, shape, out, *params):
        arrays = [p.shape for p in params if hasattr(p, "shape")]
        shape = () if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        if out is not None and not shape:
            return out.shape
        return (*arrays[0], *shape) if arrays else shape or (1,)

    def number(self, value, shape):
        """A parameter, as NumPy broadcasts it to what is drawn."""
        if not hasattr(value, "asnumpy"):
            return value
        value = value.asnumpy()
        return value.reshape(value.shape + (1,) * (len(shape) - value.ndim))

    def uniform(self, low=0, high=1, shape=None, dtype=None, ctx=None, out=None, **_):
        shape = self.shape(shape, out, low, high)
        low, high = self.number(low, shape), self.number(high, shape)
        values = self.stream.uniform(size=shape) * (high - low) + low
        return self.given(values, shape, dtype, ctx, out)

    def normal(self, loc=0, scale=1, shape=None, dtype=None, ctx=None, out=None, **_):
        shape = self.shape(shape, out, loc, scale)
        loc, scale = self.number(loc, shape), self.number(scale, shape)
        return self.given(self.stream.normal(size=shape) * scale + loc, shape, dtype, ctx, out)

    def randn(self, *shape, loc=0, scale=1, **kwargs):
        return self.normal(loc, scale, shape, **kwargs)

    def randint(self, low, high, shape=None, dtype=None, ctx=None, out=None, **_):
        shape = self.shape(shape, out)
        return self.given(self.stream.randint(low, high, shape), shape, dtype or "int32", ctx, out)

    def multinomial(self, data, shape=None, get_prob=False, out=None, dtype="int32", **_):
        chances = data.asnumpy()
        count = self.shape(shape, None) if shape is not None else ()
        below = self.stream.uniform(size=(*chances.shape[:-1], *count))
        sums = np.cumsum(chances, -1)[..., :-1]
        sums = sums.reshape(*sums.shape[:-1], *(1 for _ in count), sums.shape[-1])
        drawn = (below[..., None] >= sums).sum(-1)
        if not get_prob:
            return self.mx.nd.array(np.atleast_1d(drawn), dtype=dtype)
        raise NotImplementedError("multinomial(get_prob=True) is not drawn alike")

    def shuffle(self, data, **_):
        return data[self.mx.nd.array(self.stream.permutation(len(data)), dtype="int32")]

    @contextlib.contextmanager
    def named(self, name):
        """Draw what belongs to a parameter's name."""
        before, self.stream = self.stream, np.random.RandomState(zlib.crc32(str(name).encode()))
        try:
            yield
        finally:
            self.stream = before


def draw_alike(mx, shake):
    """Give both engines the same numbers, wherever they draw in Python."""
    drawn = Drawn(mx, shake)
    for place in {id(p): p for p in (mx.random, mx.nd.random)}.values():
        for name in "uniform normal randn randint multinomial shuffle".split():
            setattr(place, name, getattr(drawn, name))
    for name in ("uniform", "normal", "random_uniform", "random_normal"):
        setattr(mx.nd, name, getattr(drawn, name.rpartition("_")[2]))
    mx.nd.sample_multinomial = drawn.multinomial
    base = mx.init.Initializer
    method = "init_array" if hasattr(base, "init_array") else "__call__"
    original = getattr(base, method)

    def initialize(self, desc, arr, **more):
        with drawn.named(desc):
            original(self, desc, arr, **more)

    setattr(base, method, initialize)
    mx.random.seed(SEED)
    np.random.seed(SEED)
    importlib.import_module("random").seed(SEED)
    if shake:
        shake_layers(mx, drawn)


def shake_layers(mx, drawn):
    """Move what layers answer, and its gradient, by a rounding: as another order of sums may."""
    original = mx.gluon.Block.__call__

    def call(self, *args):
        out = original(self, *args)
        if type(out) is not mx.nd.NDArray or out.dtype != np.float32:
            return out  # a symbol, or several
        each = mx.nd.array(1 + drawn.roundings(np.ones(out.shape)))  # moves the gradient, too
        return out * each + mx.nd.array(drawn.roundings(out.asnumpy()))

    mx.gluon.Block.__call__ = call


# -- what is kept ----------------------------------------------------------------------
class Kept:
    """Arrays that a program takes out itself, and the parameters that it makes."""

    def __init__(self, mx, folder):
        self.taken, self.parameters, self.modules = [], [], []
        self.folder = folder
        arrays = {mx.nd.NDArray, type(mx.nd.ones(1)), getattr(mx.np, "ndarray", mx.nd.NDArray)}
        for kind in arrays:
            for name in ("asnumpy", "asscalar", "item"):
                if name in vars(kind):
                    setattr(kind, name, self.watched(vars(kind)[name]))
        self.after(mx.gluon.Parameter, "__init__", self.parameters)
        for kind in (mx.mod.Module,):
            self.after(kind, "bind", self.modules)

    def watched(self, method):
        def take(array, *args, **kwargs):
            value = method(array, *args, **kwargs)
            if sys._getframe(1).f_code.co_filename.startswith(self.folder):
                self.taken.append(np.array(value))
            return value

        return take

    def after(self, kind, name, kept):
        original = getattr(kind, name)

        def call(this, *args, **kwargs):
            value = original(this, *args, **kwargs)
            if not any(other is this for other in kept):
                kept.append(this)
            return value

        setattr(kind, name, call)

    def arrays(self):
        """name -> array of all that was kept."""
        kept = {f"taken {i}": array for i, array in enumerate(self.taken)}
        for parameter in self.parameters:
            try:
                value = parameter.list_data()[0]
            except Exception:  # never initialized, or its shape was never known
                continue
            keep(kept, f"parameter {parameter.name}", value)
        for module in self.modules:
            if module.params_initialized:
                for params in module.get_params():
                    for name, value in params.items():
                        keep(kept, f"parameter {name}", value)
        return kept


def keep(kept, name, value):
    while name in kept:  # several of one name, in the order in which they were made
        name += "'"
    kept[name] = value.asnumpy()


# -- programs --------------------------------------------------------------------------
def run_program(job, mx):
    """(texts, arrays) of one."""
    folder = os.path.realpath(job["folder"])
    os.chdir(os.path.dirname(os.path.join(folder, job["main"])))
    sys.path.insert(0, os.getcwd())
    sys.argv = [os.path.basename(job["main"]), *job["args"]]
    draw_alike(mx, job.get("shake", 0))
    kept = Kept(mx, folder)
    if mx.__name__ == "mxnet":  # files of ours have other sums than the published ones
        mx.gluon.utils.check_sha1 = mx.gluon.data.vision.datasets.check_sha1 = lambda *_: True
    printed, error = io.StringIO(), None
    logging.basicConfig(stream=printed, format="%(message)s", force=True)
    for name in ("matplotlib", "PIL"):  # what they say depends on their versions
        logging.getLogger(name).setLevel(logging.ERROR)
    caged(folder, mx)
    with contextlib.redirect_stdout(printed):
        try:
            execute(os.path.join(folder, job["main"]))
        except SystemExit as stop:
            error = None if stop.code in (None, 0) else f"SystemExit: {stop.code}"
        except BaseException as stop:
            traceback.print_exc()
            where = traceback.extract_tb(stop.__traceback__)
            lines = [f.lineno for f in where if f.filename.startswith(folder)]
            error = f"line {lines[-1:]}: {type(stop).__name__}: {stop}".partition("\nStack")[0]
    return {"printed": printed.getvalue(), "error": error}, kept.arrays()


def execute(path):
    """Run a program, cell by cell if it has cells; the last expression of one is shown."""
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    with open(path, encoding="utf-8") as file:
        text = file.read()
    tree = ast.parse(text, path)
    if not path.endswith(".cells.py"):
        exec(compile(tree, path, "exec"), vars(module))
        return
    last = {}
    marks = [i for i, line in enumerate(text.splitlines(), 1) if line.startswith("# %% cell")]
    for node in tree.body:
        last[sum(mark < node.lineno for mark in marks)] = node
    for node in tree.body:
        shown = isinstance(node, ast.Expr) and node in last.values()
        kind = ast.Interactive([node]) if shown else ast.Module([node], [])
        exec(compile(kind, path, "single" if shown else "exec"), vars(module))


# -- graphs ----------------------------------------------------------------------------
def run_graph(job, mx):
    """(texts, arrays): MXNet draws the parameters and writes them; we open its files."""
    shapes = {name: tuple(shape) for name, shape in job["inputs"].items()}
    stream = np.random.RandomState(SEED)
    data = {name: stream.uniform(-1, 1, shape).astype("f4") for name, shape in shapes.items()}
    texts = {"printed": "", "error": None}
    if mx.__name__ == "mxnet":
        outs, gradients = graph_in_mxnet(job, mx, data, stream)
    else:
        outs, gradients = graph_in_ours(job, mx, data)
        texts |= compared_layers(mx, job) if job.get("layers") else {}
    arrays = {f"output {i}": out.asnumpy() for i, out in enumerate(outs)}
    return texts, arrays | gradients


def inferred(symbol, data):
    """name -> shape of what a graph reads."""
    args, _, aux = symbol.infer_shape(**{name: a.shape for name, a in data.items()})
    return (
        dict(zip(symbol.list_arguments(), args, strict=True)),
        dict(zip(symbol.list_auxiliary_states(), aux, strict=True)),
    )


def graph_in_mxnet(job, mx, data, stream):
    symbol = mx.sym.load(job["symbol"])
    args, aux = inferred(symbol, data)
    if job["parameters"]:
        given = mx.nd.load(job["parameters"])
    else:
        given = {
            f"{kind}:{name}": mx.nd.array(first_numbers(name, shape, stream))
            for kind, shapes in (("arg", args), ("aux", aux))
            for name, shape in shapes.items()
            if name not in data
        }
    given = {key: a for key, a in given.items() if not key.endswith("label")}
    mx.nd.save(job["written"], given)
    named = {key.partition(":")[2]: value for key, value in given.items()}
    inputs = {name: mx.nd.array(a) for name, a in data.items()} | labels(mx, args, data)
    values = {name: inputs[name] if name in inputs else named[name] for name in args}
    states = {name: named[name] for name in aux}
    if job.get("layers"):
        inside = symbol.get_internals()
        outs = inside.bind(mx.cpu(), values, grad_req="null", aux_states=states).forward()
        named = zip(inside.list_outputs(), outs, strict=True)
        np.savez(job["layers"], **{name: out.asnumpy() for name, out in named})
    executor = symbol.bind(mx.cpu(), values, grad_req="null", aux_states=states)
    return executor.forward(is_train=False), shapes_of(args | aux)


def output_of(node, i, values):
    """What MXNet computed for an output of a node; the third of three is the end of a range."""
    if node.op is None:
        return values[node.name]
    ends = {1: ("output_min", "min_output", "min"), 2: ("output_max", "max_output", "max")}
    names = [f"output{i}", *ends.get(i, ())] + ["output"] * (i == 0)
    return next(values[key] for name in names if (key := f"{node.name}_{name}") in values)


def compared_layers(mx, job):
    """How far the integers of int8 operators are from MXNet's, for the inputs that it had.

    A step is 1 for bytes; for sums, what becomes 1 when they are scaled to bytes. Integers of a
    range without a width are not compared: whatever they are, they stand for 0.
    """
    nodes = [each.refs[0][0] for each in mx.sym.load(job["symbol"]).get_internals()]
    worst, count, beyond, layers = 0.0, 0, 0, 0
    with np.load(job["layers"]) as values:
        for node in dict.fromkeys(nodes):
            theirs = None if node.op is None else output_of(node, 0, values)
            if theirs is None or theirs.dtype.kind == "f":
                continue
            if node.n_outputs == 3 and not any(output_of(node, i, values)[0] for i in (1, 2)):
                continue
            inputs = [output_of(n, i, values) for n, i in node.inputs]
            inputs = [mx.nd.array(x, dtype=x.dtype) for x in inputs]
            (ours, *_) = inputs[0].interpret(node.op, inputs, node.attrs, None)
            gaps = np.abs(ours.asnumpy().astype("f8") - theirs)
            if theirs.dtype == np.int32:
                gaps /= max(np.abs(theirs.astype("f8")).max() / 127.5, 1)
            worst, count = max(worst, float(gaps.max())), count + gaps.size
            beyond, layers = beyond + int((gaps > 1).sum()), layers + 1
    return {"layers": layers, "steps": worst, "integers": count, "beyond": beyond}


def labels(mx, args, data):
    """Zeros for labels, which are read in training only, and of which nobody publishes any."""
    return {
        name: mx.nd.zeros(shape)
        for name, shape in args.items()
        if name.endswith("label") and name not in data
    }


def shapes_of(shapes):
    """What is compared of them; where a label's differs, `differences` says so."""
    return {
        f"shape of {name}": np.array(shape)
        for name, shape in shapes.items()
        if not name.endswith("label")
    }


def graph_in_ours(job, mx, data):
    args, aux = inferred(mx.sym.load(job["symbol"]), data)
    inputs = {name: mx.nd.array(a) for name, a in data.items()} | labels(mx, args, data)
    net = mx.gluon.SymbolBlock.imports(job["symbol"], list(inputs), job["written"])
    net.hybridize()
    outs = net(*inputs.values())
    return outs if isinstance(outs, (list, tuple)) else [outs], shapes_of(args | aux)


def first_numbers(name, shape, stream):
    """Random parameters that keep signals of a size: a graph comes without its own."""
    if name.endswith(("var", "gamma")):
        return stream.uniform(0.5, 1.5, shape)
    if len(shape) < 2:
        return stream.uniform(-0.1, 0.1, shape)
    return stream.normal(0, np.sqrt(1 / np.prod(shape[1:])), shape)


def main():
    """Read the job, run it, write the answers."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    limited(job["memory"], job["seconds"])
    mx = importlib.import_module(job["engine"])
    answers = os.path.abspath(sys.argv[2])
    run = run_graph if job["kind"] == "graph" else run_program
    with open(answers, "wb") as file:  # opened before the cage closes
        texts, arrays = run(job, mx)
        np.savez(file, texts=json.dumps(texts), **arrays)


if __name__ == "__main__":
    main()
