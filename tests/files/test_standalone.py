"""Files that stand alone give the same answers: with NumPy only, with C only."""

import ast
import functools
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from minihybrid.nd import NDArray
from minihybrid.sym import Symbol, trace
from samples import CASES
from traced import Program, batches, first_samples, together

from minihybrid import autograd, gluon, nd
from minihybrid.codegen.c_helpers import literal
from minihybrid.codegen.ir import common
from minihybrid.codegen.numpy.alone import alone
from minihybrid.codegen.numpy.excerpt import Excerpt, name_of
from minihybrid.core.numpy_target import Function
from minihybrid.core.op import HybridError, Op, ShapeError, Spec
from minihybrid.core.passes import expand
from minihybrid.core.plan import Plan
from minihybrid.formats.c import c_file, weights_file
from minihybrid.formats.writers import Parts
from minihybrid.gluon import nn
from minihybrid.ops import OPS
from minihybrid.passes.scan import without_loops

CC = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler (gcc, cc, clang) here")
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
ONLY_NUMPY = """
import json, runpy, sys
for name in ("minihybrid", "scipy", "numba"):
    sys.modules[name] = None  # importing it fails
for call in json.loads(sys.argv[1]):
    sys.argv = call
    runpy.run_path(call[0], run_name="__main__")
"""


# -- nets ------------------------------------------------------------------------------
class Words(gluon.HybridBlock):
    """Whole numbers in: embedding, attention, LayerNorm, GELU, softmax."""

    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(11, 8), nn.LayerNorm()
        self.dense = nn.Dense(6, flatten=False)

    def hybrid_forward(self, F, x):
        """(N, T) words -> (N, T, 6) chances, and the largest number of each place."""
        x = self.embed(x)
        scores = F.softmax(F.batch_dot(x, x, transpose_b=True) / 8**0.5)
        x = self.norm(x + F.batch_dot(scores, x))
        x = F.LeakyReLU(x, act_type="gelu")
        return F.softmax(self.dense(x)), F.max(x, axis=2)


class Two(gluon.HybridBlock):
    """Two inputs of different types, and outputs of which one is an input."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(5, activation="tanh")

    def hybrid_forward(self, F, x, k):
        """A picture and whole numbers -> three arrays."""
        return self.dense(x), F.sum(k * k - 3, axis=1), x


class Block(gluon.HybridBlock):
    """A residual block, as ResNet has them."""

    def __init__(self, channels, stride):
        super().__init__()
        self.body, self.short = nn.HybridSequential(), nn.HybridSequential()
        self.body.add(
            nn.Conv2D(channels, 3, stride, 1, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Conv2D(channels, 3, 1, 1, use_bias=False),
            nn.BatchNorm(),
        )
        if stride > 1:
            self.short.add(nn.Conv2D(channels, 1, stride, use_bias=False), nn.BatchNorm())

    def hybrid_forward(self, F, x):
        """relu(body(x) + x), x made smaller if the body does."""
        return F.relu(self.body(x) + self.short(x))


def chain(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def resnet():
    return chain(
        nn.Conv2D(8, 3, 1, 1, use_bias=False),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.MaxPool2D(3, 2, 1),
        *(Block(8 * k, 1 if k == 1 or i else 2) for k in (1, 2, 3, 4) for i in range(2)),
        nn.GlobalAvgPool2D(),
        nn.Dense(10),
    )


def mlp():
    return chain(
        nn.Dense(40, activation="relu"),
        nn.Dropout(0.5),
        nn.Dense(24, activation="sigmoid"),
        nn.Dense(3),
    )


def lenet():
    return chain(
        nn.Conv2D(6, 5, activation="tanh"),
        nn.AvgPool2D(2, 2),
        nn.Conv2D(16, 5, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Flatten(),
        nn.Dense(84, activation="relu"),
        nn.Dense(10),
    )


def mobile():
    """Points and windows, as MobileNet has them: of strides 1 and 2, and one place more."""
    return chain(
        nn.Conv2D(20, 1, activation="relu"),
        nn.Conv2D(20, 3, 1, 1, groups=20, activation="relu"),
        nn.Conv2D(40, 3, 2, 1, groups=20),
        nn.Conv2D(300, 1, activation="relu"),
        nn.GlobalAvgPool2D(),
        nn.Dense(10),
    )


RNG = np.random.default_rng(3)
NETS = {
    "mlp": (mlp, [RNG.normal(size=(4, 30)).astype("f4")]),
    "shared by threads": (lambda: chain(nn.Dense(256)), [RNG.normal(size=(128, 512)).astype("f4")]),
    "mlp in float64": (mlp, [RNG.normal(size=(1, 30))]),
    "lenet": (lenet, [RNG.normal(size=(2, 1, 28, 28)).astype("f4")]),
    "resnet": (resnet, [RNG.normal(size=(1, 3, 32, 32)).astype("f4")]),
    "mobile": (mobile, [RNG.normal(size=(1, 3, 14, 14)).astype("f4")]),
    "words": (Words, [RNG.integers(0, 11, (2, 7)).astype("i4")]),
    "two": (
        Two,
        [RNG.normal(size=(3, 2, 4)).astype("f4"), RNG.integers(-9, 9, (3, 4)).astype("i8")],
    ),
    "long rows": (
        lambda: chain(nn.LayerNorm(), nn.HybridLambda("softmax")),
        [RNG.normal(size=(3, 150)).astype("f4")],
    ),
}
every_net = pytest.mark.parametrize("name", [n for n in NETS if "shared" not in n])


@functools.cache
def trained(name):
    """A net whose parameters and running statistics are all other than at first."""
    make, arrays = NETS[name]
    net, inputs = make(), [nd.array(a, dtype=a.dtype) for a in arrays]
    net.initialize()
    net.cast("float64" if name.endswith("float64") else "float32")
    net.hybridize(backend="numpy")
    net(*inputs)
    for param in net.collect_params().values():
        drawn = RNG.uniform(0.2, 1, param.shape) - 0.5 * param.name.endswith("weight")
        param.set_data(nd.array(drawn, dtype=param.dtype))
    out = net(*inputs)
    return net, arrays, [o.asnumpy() for o in (out if type(out) is tuple else [out])]


def agree(got, expected, tolerance, what=""):
    assert got.shape == expected.shape and got.dtype == expected.dtype, what
    np.testing.assert_allclose(got, expected, tolerance, tolerance, err_msg=str(what))


# -- NumPy -----------------------------------------------------------------------------
def run_numpy(folder, calls):
    """Run files as programs, each with its arguments, where only NumPy can be imported."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", ONLY_NUMPY, json.dumps(calls)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@every_net
def test_a_net_runs_with_numpy_only(name, tmp_path):
    net, arrays, expected = trained(name)
    files = net.export(str(tmp_path / "net"), format="numpy")
    assert files == (str(tmp_path / "net.py"), str(tmp_path / "net.npz"))
    ins = [str(tmp_path / f"x{i}.npy") for i in range(len(arrays))]
    outs = [str(tmp_path / f"y{i}.npy") for i in range(len(expected))]
    for file, array in zip(ins, arrays, strict=True):
        np.save(file, array)
    run_numpy(tmp_path, [[files[0], *ins, *outs]])
    for file, array in zip(outs, expected, strict=True):
        agree(np.load(file, allow_pickle=False), array, 1e-6)


@pytest.mark.slow
def test_the_numpy_file_of_every_operator_stands_alone(tmp_path):
    calls, expected, names = [], [], []
    cases = [c for c in first_samples(CASES) if not draws(c.op)]
    for i, part in enumerate(batches(cases, 40)):
        made = Program(part, "float32")
        graph = without_loops(expand(made.graph))  # as `export` does
        plan = Plan(graph, [], target="numpy", expanded=True)
        outs = [Spec(*spec) for spec in plan.out_specs]
        weights = [made.values[n] for n in plan.params]
        weights += [n.values[0] for n in plan.table.constants]
        text = alone(
            plan.made, [], outs, [Spec(w.shape, w.dtype) for w in weights], plan.memory.nbytes
        )
        (tmp_path / f"net{i}.py").write_text(text)
        np.savez(tmp_path / f"net{i}.npz", **{f"p{k}": w for k, w in enumerate(weights)})
        actual = [
            (case, o.data)
            for case, row in zip(
                part, made.apply_all(*map(NDArray, made.values.values())), strict=True
            )
            for o in row
        ]
        files = [str(tmp_path / f"y{i}_{k}.npy") for k in range(len(actual))]
        calls.append([str(tmp_path / f"net{i}.py"), *files])
        expected += actual
        names += files
    run_numpy(tmp_path, calls)
    for file, (case, array) in zip(names, expected, strict=True):
        agree(np.load(file, allow_pickle=False), array, 1e-6, case)


def draws(op):
    """Whether an operator draws random numbers, itself or in what it is made of."""
    return (
        op.random
        or "random" in op.name
        or op.name.startswith("_sample")
        or op.name in ("_shuffle",)
    )


def test_the_code_of_every_operator_can_be_copied():
    made = Function(
        "", {name_of(op): op for op in dict.fromkeys(OPS.values()) if op.eager is not None}, 0, None
    )
    assert made.outside == {}
    imports = [
        n for n in ast.walk(ast.parse(made.text)) if isinstance(n, (ast.Import, ast.ImportFrom))
    ]
    assert {ast.unparse(n) for n in imports} <= {
        "import numpy as np",
        "import math",
        "import ast",
        "import itertools",
        "import re",
    }


def test_a_copied_error_is_one_legible_line_too():
    excerpt, scope = Excerpt(), {}
    excerpt.text_of(ShapeError)
    exec("\n\n".join(excerpt.parts), scope)
    text = "a\n  b \x1b[2J"
    assert str(scope["ShapeError"](text)) == str(ShapeError(text)) == r"a\n  b \x1b[2J"
    assert issubclass(scope["ShapeError"], ValueError)


def test_an_operator_without_text_is_named():
    secret = eval("lambda data: data + 1")
    op = Op(name="_secret", inputs=("data",), infer=None, doc="", eager=secret)
    made = Function("", {"_secret": op}, 1, None)
    assert "_secret = OPS['_secret'].eager" in made.text
    with pytest.raises(
        HybridError,
        match="_secret cannot stand alone: the text of its function <lambda> is not known here",
    ):
        alone(made, [], [], [], 0)


def test_the_numpy_file_refuses_other_arrays(tmp_path):
    net, (x,), _ = trained("mlp")
    file, weights = net.export(str(tmp_path / "net"), format="numpy")
    scope = {"__name__": "net", "__file__": file}
    exec((tmp_path / "net.py").read_text(), scope)
    with pytest.raises(
        ValueError,
        match=r"input 0 is float32 \(3, 30\), but float32 "
        r"\(4, 30\) is needed",
    ):
        scope["predict"](scope["load"](), x[:3])
    with pytest.raises(ValueError, match="the number of inputs is 0, but 1 are needed"):
        scope["predict"](scope["load"]())
    np.savez(weights, p0=np.zeros(3))
    with pytest.raises(ValueError, match="has not the weights of this net"):
        scope["load"]()
    np.savez(weights, **{f"p{i}": np.array([{}]) for i in range(6)})
    with pytest.raises(ValueError, match="allow_pickle"):
        scope["load"](weights)


# -- C ---------------------------------------------------------------------------------
def build(folder, *options):
    """Compile net.c in a folder; the compiler must have nothing to say."""
    done = subprocess.run(
        [CC, *FLAGS, *options, "-DNET_MAIN", "net.c", "-lm", "-o", "net"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[:2000]


def run_c(folder, *files):
    return subprocess.run(
        ["./net", "net.weights", *files], cwd=folder, capture_output=True, text=True
    )


def answers(folder, arrays, expected):
    """What the program writes for these inputs."""
    for i, array in enumerate(arrays):
        array.tofile(folder / f"x{i}.bin")
    outs = [f"y{k}.bin" for k in range(len(expected))]
    done = run_c(folder, *(f"x{i}.bin" for i in range(len(arrays))), *outs)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[:2000]
    return [
        np.fromfile(folder / file, w.dtype).reshape(w.shape)
        for file, w in zip(outs, expected, strict=True)
    ]


@pytest.mark.slow
@needs_cc
@every_net
def test_a_net_runs_in_c(name, tmp_path):
    net, arrays, expected = trained(name)
    files = net.export(str(tmp_path / "net"), format="c")
    assert files == (str(tmp_path / "net.c"), str(tmp_path / "net.weights"))
    chunks = (tmp_path / "net.c").read_text().count("_part[64]")  # of sums
    assert chunks == (name == "long rows")
    build(
        tmp_path,
        *(
            ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
            if name in ("words", "lenet", "mobile", "long rows")
            else ["-O2"]
        ),
    )
    for got, array in zip(answers(tmp_path, arrays, expected), expected, strict=True):
        agree(got, array, 1e-5)


@pytest.mark.slow
@needs_cc
@pytest.mark.parametrize(
    "dtype, cases",
    [
        pytest.param(dtype, part, id=f"{dtype}-{part[0].op.name}")
        for dtype, chosen in (("float32", CASES), ("int32", CASES[::3]))
        for part in batches([c for c in first_samples(chosen) if not draws(c.op)], 40)
    ],
)
def test_every_operator_in_c(dtype, cases, tmp_path):
    """With plain numbers, and with infinities, NaN and zeros."""

    def run(part):
        made = Program(part, dtype)
        plan = Plan(made.graph, [])
        assert plan.target == "cpu", plan.target_note
        outs, actual = [Spec(*spec) for spec in plan.out_specs], []
        for values in (made.values, made.special):
            weights = [values[n] for n in plan.params]
            weights += [n.values[0] for n in plan.table.constants]
            (tmp_path / "net.weights").write_bytes(weights_file(weights))
            if values is made.values:
                (tmp_path / "net.c").write_text(c_file(plan, [], outs, weights))
                build(tmp_path, "-O1")
            expected = made.apply_all(*map(NDArray, values.values()))
            got = iter(answers(tmp_path, [], [o.data for row in expected for o in row]))
            actual.append([[(next(got), o.data) for o in row] for row in expected])
        return list(zip(*actual, strict=True))

    failures = []
    for op, actual in together(cases, run).items():
        try:
            if isinstance(actual, Exception):
                raise actual
            for case, made in actual:
                for pairs, what in zip(made, ("", " special"), strict=True):
                    for got, expected in pairs:
                        agree(got, expected, 1e-5, f"{case}{what}")
        except Exception as error:
            error.add_note(f"so {op.name} breaks the law")
            failures.append(error)
    if failures:
        raise ExceptionGroup("operators that break the law", failures)


@pytest.mark.slow
@needs_cc
def test_loops_without_turns_leave_no_counter_in_c(tmp_path):
    """No numbers are added to one line: the loop around has one turn, the inner none."""
    shapes = {"data": (0, 3), "indices": (0,), "like": (4, 3)}
    specs = {name: Spec(shape, np.dtype("int32")) for name, shape in shapes.items()}
    add = OPS["_put_take"]
    attrs = add.normalize({})
    graph, _ = trace(lambda *x: Symbol.interpret(add, list(x), attrs), specs, training=True)
    plan = Plan(graph, list(shapes))
    text = c_file(plan, list(specs.values()), [Spec(*spec) for spec in plan.out_specs], [])
    (tmp_path / "net.c").write_text(text)
    build(tmp_path)


@needs_cc
@pytest.mark.slow
def test_c_runs_what_threads_share_as_one_part(tmp_path, monkeypatch):
    """The generator splits large loops; a C file has no threads. Sums of whole numbers are
    the same in any order."""
    monkeypatch.setattr("minihybrid.codegen.cpu.target.threads", lambda: 4)
    net, arrays, _ = trained("shared by threads")
    for param in net.collect_params().values():
        param.set_data(nd.array(RNG.integers(-4, 5, param.shape), dtype="float32"))
    arrays = [np.rint(2 * arrays[0])]
    expected = net(nd.array(arrays[0])).asnumpy()
    net.export(str(tmp_path / "net"), format="c")
    assert "part * " in Parts(net._newest("export"), "cpu").plan.made.text
    build(tmp_path, "-O1")
    agree(answers(tmp_path, arrays, [expected])[0], expected, 0)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["numpy", "c"])
def test_a_net_that_was_only_trained_is_exported_for_prediction(format, tmp_path):
    net, x = chain(nn.BatchNorm(), nn.Dropout(0.5)), nd.array([[1.0, 2], [3, 5]])
    net.initialize()
    net.hybridize(backend="numpy")
    with autograd.record():
        net(x)
    file, _ = net.export(str(tmp_path / "net"), format=format)
    if format == "numpy":
        np.save(tmp_path / "x.npy", x.asnumpy())
        run_numpy(tmp_path, [[file, "x.npy", "y.npy"]])
        agree(np.load(tmp_path / "y.npy"), net(x).asnumpy(), 1e-6)
    elif CC:
        build(tmp_path, "-O1")
        expected = net(x).asnumpy()
        agree(answers(tmp_path, [x.asnumpy()], [expected])[0], expected, 1e-5)


@pytest.mark.slow
@needs_cc
def test_c_trusts_no_weights(tmp_path):
    net, _, _ = trained("mlp")
    net.export(str(tmp_path / "net"), format="c")
    build(tmp_path, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover")
    whole = (tmp_path / "net.weights").read_bytes()

    def error_of(data):
        (tmp_path / "net.weights").write_bytes(data)
        done = run_c(tmp_path, "x0.bin", "y0.bin")
        assert done.returncode == 1
        return done.stderr

    def changed(at):
        return whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]

    assert (
        error_of(whole[:-1])
        == error_of(whole[:30])
        == error_of(b"")
        == "net.weights: the file is cut off\n"
    )
    assert "too long" in error_of(whole + b"x")
    assert "no weights of minihybrid" in error_of(changed(0))
    assert "another order of bytes" in error_of(changed(8))
    assert "another number of arrays" in error_of(changed(12))
    assert "other sizes" in error_of(changed(24))
    assert "checksum" in error_of(changed(len(whole) - 100))
    assert error_of(whole) == "x0.bin: a file as long as the input is needed\n"
    (tmp_path / "net.weights").unlink()
    assert "No such file" in run_c(tmp_path, "x0.bin", "y0.bin").stderr


def test_types_are_those_of_numba():
    types = pytest.importorskip("numba").types
    import operator

    from numba.core.registry import cpu_target

    context = cpu_target.typing_context
    context.refresh()
    kinds = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64"
    numba_s = {k: types.boolean if k == "bool" else getattr(types, k) for k in kinds.split()}
    for a, left in numba_s.items():
        for b, right in numba_s.items():
            actual = context.resolve_function_type(operator.add, (left, right), {})
            assert common(a, b) == str(actual.return_type), (a, b)


@pytest.mark.parametrize(
    "number, kind, text",
    [
        (np.inf, "float32", "INFINITY"),
        (-np.inf, "float64", "-INFINITY"),
        (np.nan, "float32", "NAN"),
        (1.0, "float32", "1.0f"),
        (1e300, "float64", "1e+300"),
        (-(2**63), "int64", "INT64_MIN"),
        (3, "uint64", "3u"),
        (True, "bool", "true"),
    ],
)
def test_a_number_in_c(number, kind, text):
    assert literal(number, kind) == text


# -- what is refused, and whose names are used -----------------------------------------
@pytest.mark.parametrize("format", ["numpy", "c"])
def test_names_never_reach_the_text(format, tmp_path):
    net = nn.HybridSequential(prefix='evil"*/\n')
    net.add(nn.Dense(3, prefix='evil"*/\n'))
    net.initialize()
    net.hybridize(backend="numpy")
    net(nd.ones((1, 2)))
    file, weights = net.export(str(tmp_path / "evil"), format=format)
    assert b"evil" not in (tmp_path / f"evil.{file[-2:].strip('.')}").read_bytes()


class Noise(gluon.HybridBlock):
    """Draws in prediction, too."""

    def hybrid_forward(self, F, x):
        """x and noise."""
        return x + F._random_uniform_like(x)


@pytest.mark.parametrize("format", ["numpy", "c"])
def test_random_numbers_are_refused(format, tmp_path):
    net = Noise()
    net.hybridize(backend="numpy")
    net(nd.ones((2, 3)))
    with pytest.raises(HybridError, match="_random_uniform_like '.*' draws random num"):
        net.export(str(tmp_path / "net"), format=format)
    assert not list(tmp_path.iterdir())


def test_what_has_no_loops_is_refused(tmp_path):
    net = mlp()
    net.initialize()
    net.cast("float16")
    net.hybridize(backend="numpy")
    net(nd.ones((2, 3), dtype="float16"))
    with pytest.raises(
        HybridError,
        match="is float16, which has no compiled kernels, "
        "so it cannot be written in C; format='nump",
    ):
        net.export(str(tmp_path / "net"), format="c")
    assert len(net.export(str(tmp_path / "net"), format="numpy")) == 2


def test_an_unknown_format_is_named():
    with pytest.raises(
        HybridError, match="format='tar' does not fit; needed: one of mxnet, .*numpy, c"
    ):
        mlp().export("net", format="tar")
