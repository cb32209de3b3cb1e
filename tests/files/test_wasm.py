"""A net in WebAssembly gives Python's answers for every batch, and its module takes no other
program."""

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from minihybrid.nd import NDArray
from minihybrid.sym import trace
from samples import CASES
from test_standalone import NETS, agree, trained
from traced import apply, batches, poisoned

from minihybrid import nd
from minihybrid.codegen.lower import lowered
from minihybrid.core.op import HybridError, Spec
from minihybrid.formats.wasm import write_wasm
from minihybrid.gluon import nn, rnn
from minihybrid.gluon.model_zoo import vision

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(
    NODE is None, reason="NOT CHECKED: there is no node; install Node.js 20 or newer"
)
HERE = Path(__file__).parent
# What has no form in WebAssembly; the rest of the operators, and all of those that make layers, do.
REFUSED = {"_conv_weight", "_polygamma", "gamma", "gammaln"}
REFUSED |= {"_attention", "_attention_grad", "scaled_dot_product_attention"}


def run(folder, jobs):
    """What node answers for [module, program, inputs] each, or its error."""
    encoded = [
        [
            Path(m).as_uri(),
            program,
            [[a.ravel().astype(str).tolist(), a.shape, a.dtype.name] for a in xs],
        ]
        for m, program, xs in jobs
    ]
    (folder / "jobs.json").write_text(json.dumps(encoded))
    files = [str(folder / "jobs.json"), str(folder / "answers.json")]
    done = subprocess.run([NODE, HERE / "run_net.mjs", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return [
        actual
        if isinstance(actual, str)
        else [np.array(x, "f8").astype(dtype).reshape(shape) for x, shape, dtype in actual]
        for actual in json.loads((folder / "answers.json").read_text())
    ]


# -- every operator --------------------------------------------------------------------
def entry_of(function, arrays):
    """A traced function of parameters, as `export` has it."""
    graph, _ = trace(function, {n: Spec(a.shape, a.dtype) for n, a in arrays.items()})
    params = {n: SimpleNamespace(data=lambda a=a: NDArray(a)) for n, a in arrays.items()}
    return SimpleNamespace(graph=graph, names=[], params=params, numbers={})


def lacking(case):
    """Why an operator can't be lowered, a sentence that begins with the call; or ""."""
    rng = np.random.default_rng(0)
    arrays = {f"x{i}": k.array(np.dtype("f4"), rng) for i, k in enumerate(case.inputs)}
    entry = entry_of(lambda *values: apply(case, values), arrays)
    try:
        lowered(entry)
    except HybridError as error:
        assert str(error).startswith("export: "), (case, error)
        return str(error)
    return ""


def draws(op):
    """Whether an operator may draw random numbers."""
    return op.random or op.name in ("Dropout", "_shuffle") or op.name.startswith("_sample")


@pytest.mark.slow
@needs_node
def test_every_operator_in_webassembly(tmp_path):
    """All that is not refused; and elementwise with infinities, NaN and zeros."""
    doubtful = [c for c in CASES if c.op.name in REFUSED or draws(c.op)]
    why = {id(c): lacking(c) for c in doubtful}
    refused = {c.op.name for c in doubtful if why[id(c)] and "random numbers" not in why[id(c)]}
    assert refused == REFUSED
    cases = [c for c in CASES if not why.get(id(c))]
    jobs, expected, whats = [], [], []
    for i, part in enumerate(batches(cases, 200)):
        rng = np.random.default_rng(i)
        kinds = {f"x{k}_{j}": kind for k, c in enumerate(part) for j, kind in enumerate(c.inputs)}
        plain = {n: kind.array(np.dtype("f4"), rng) for n, kind in kinds.items()}
        poison = {n: poisoned(plain[n], kind, rng) for n, kind in kinds.items()}
        special = {
            n: (poison if part[int(n[1:].split("_")[0])].op.expr else plain)[n] for n in plain
        }

        def outs(*values, kinds=kinds, part=part):
            given = dict(zip(kinds, values, strict=True))
            return [
                apply(c, [given[f"x{k}_{j}"] for j in range(len(c.inputs))])
                for k, c in enumerate(part)
            ]

        for values in (plain, special):
            entry = entry_of(outs, values)
            jobs.append([*write_wasm(entry, str(tmp_path / f"net{len(jobs)}")), []])
            actual = outs(*map(NDArray, values.values()))
            expected.append([o.data for row in actual for o in row])
            whats.append([c for c, row in zip(part, actual, strict=True) for _ in row])
    failures = []
    for got, arrays, cases in zip(run(tmp_path, jobs), expected, whats, strict=True):
        assert not isinstance(got, str), got
        for one, array, case in zip(got, arrays, cases, strict=True):
            try:
                agree(one, array, 1e-5, case)
            except AssertionError as error:
                failures.append(error)
    if failures:
        raise ExceptionGroup("operators that break the law", failures)


# -- layers and nets -------------------------------------------------------------------
def drawn(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype("f4")


LINE, IMAGE, VOLUME = drawn(2, 4, 9), drawn(2, 4, 7, 8), drawn(2, 4, 5, 6, 5)
LAYERS = [
    (nn.Dense(5), IMAGE),
    (nn.Dense(5, flatten=False, use_bias=False, activation="softsign"), IMAGE),
    (nn.Conv1D(6, 3, 2, 1), LINE),
    (nn.Conv2D(6, (3, 2), 2, 1, 2, groups=2), IMAGE),
    (nn.Conv2D(4, 3, groups=4, use_bias=False), IMAGE),
    (nn.Conv3D(3, 3, 1, 1), VOLUME),
    (nn.Conv1DTranspose(3, 3, 2), LINE),
    (nn.Conv2DTranspose(6, 3, 2, 1, 1, groups=2), IMAGE),
    (nn.Conv3DTranspose(2, 2, 2), VOLUME),
    (nn.MaxPool1D(), LINE),
    (nn.MaxPool2D(3, 2, 1), IMAGE),
    (nn.MaxPool2D(3, 2, ceil_mode=True), IMAGE),
    (nn.MaxPool3D(), VOLUME),
    (nn.AvgPool1D(3, 2, 1), LINE),
    (nn.AvgPool2D(3, 2, 1, ceil_mode=True), IMAGE),
    (nn.AvgPool2D(3, 2, 1, count_include_pad=False), IMAGE),
    (nn.AvgPool3D(), VOLUME),
    (nn.GlobalAvgPool1D(), LINE),
    (nn.GlobalAvgPool2D(), IMAGE),
    (nn.GlobalAvgPool3D(), VOLUME),
    (nn.GlobalMaxPool1D(), LINE),
    (nn.GlobalMaxPool2D(), IMAGE),
    (nn.GlobalMaxPool3D(), VOLUME),
    (nn.BatchNorm(), IMAGE),
    (nn.BatchNorm(axis=-1, scale=False), IMAGE),
    (nn.BatchNormReLU(), IMAGE),
    (nn.LayerNorm(), IMAGE),
    (nn.LayerNorm(axis=1), IMAGE),
    (nn.GroupNorm(2), IMAGE),
    (nn.InstanceNorm(), IMAGE),
    (nn.InstanceNorm(axis=2), IMAGE),
    (nn.Embedding(9, 5), np.arange(6, dtype="f4").reshape(2, 3)),
    (nn.Dropout(0.5), LINE),
    (nn.Flatten(), IMAGE),
    (nn.ReflectionPad2D(2), IMAGE),
    (nn.HybridLambda(lambda F, x: F.transpose(x, axes=(1, 0, 2))), LINE),
    (nn.ELU(0.7), LINE),
    (nn.GELU(), LINE),
    (nn.SELU(), LINE),
    (nn.LeakyReLU(0.2), LINE),
    (nn.PReLU(in_channels=4), LINE),
    (nn.Swish(1.5), LINE),
    *((nn.Activation(name), LINE) for name in ("relu", "sigmoid", "tanh", "softrelu", "softsign")),
]
HOLDERS = {
    "Block",
    "HybridBlock",
    "HybridSequential",
    "Lambda",
    "Sequential",
    "SymbolBlock",
}  # no layers


def exported(net, x, path, format="wasm"):
    """The files of a net, and its answer."""
    net.initialize()
    net.hybridize(backend="numpy")
    net(nd.array(x, dtype=x.dtype))
    rng = np.random.default_rng(7)
    for p in net.collect_params().values():
        p.set_data(nd.array(rng.uniform(0.2, 1, p.shape) - 0.5 * p.name.endswith("weight")))
    return net.export(path, format=format), net(nd.array(x, dtype=x.dtype)).asnumpy()


def test_each_layer_is_tried():
    assert {type(layer).__name__ for layer, _ in LAYERS} | HOLDERS == set(nn.__all__)


def near(got, expected, what=""):
    """Within 1e-5 of the largest number: many layers, whose sums have other orders."""
    assert got.shape == expected.shape and got.dtype == expected.dtype, what
    assert np.abs(got - expected).max() <= 1e-5 * np.abs(expected).max(), what


@pytest.mark.slow
@needs_node
def test_each_layer_runs_for_every_batch(tmp_path):
    """One program: the batch that the layer was called with, one sample, and more."""
    jobs, expected, whats = [], [], []
    for i, (layer, x) in enumerate(LAYERS):
        files, _ = exported(layer, x, str(tmp_path / f"net{i}"))
        axis = int(type(layer) is nn.HybridLambda)  # transposes the batch
        for n in (1, 2, 5):
            part = np.concatenate([x, x, x])[:n]
            jobs.append([*files, [part]])
            expected.append(layer(nd.array(part, dtype=x.dtype)).asnumpy())
            whats.append((layer, n, axis))
    for got, array, what in zip(run(tmp_path, jobs), expected, whats, strict=True):
        assert not isinstance(got, str), (what, got)
        agree(got[0], array, 1e-5, what)


@pytest.mark.slow
@needs_node
def test_nets_run_for_every_batch(tmp_path):
    """For the shapes that they were called with, and for another batch."""
    names = [n for n in NETS if "shared" not in n]
    jobs = [
        [*trained(name)[0].export(str(tmp_path / f"net{i}"), format="wasm"), xs]
        for i, name in enumerate(names)
        for xs in (trained(name)[1], [np.concatenate([x, x[:1]]) for x in trained(name)[1]])
    ]
    answers = run(tmp_path, jobs)
    for name, got, more in zip(names, answers[::2], answers[1::2], strict=True):
        assert not isinstance(got, str) and not isinstance(more, str), (name, got, more)
        for one, other, expected in zip(got, more, trained(name)[2], strict=True):
            near(one, expected, name)
            near(other[: len(expected)], one, name)


@pytest.mark.slow
@needs_node
def test_states_are_as_long_as_the_batch(tmp_path):
    """A state of zeros is folded into a constant, which has another length in each batch."""
    net, x = nn.HybridSequential(), drawn(2, 6, 4)
    net.add(rnn.LSTM(5, layout="NTC"), nn.Dense(3))
    files, expected = exported(net, x, str(tmp_path / "net"))
    more = np.concatenate([x, x[:1]])
    got, longer = run(tmp_path, [[*files, [x]], [*files, [more]]])
    near(got[0], expected)
    near(longer[0], net(nd.array(more)).asnumpy())


@pytest.mark.slow
@needs_node
def test_mobile_nets_run_in_webassembly(tmp_path):
    x, names = drawn(1, 3, 32, 32), ("mobilenet0_25", "mobilenet_v2_0_25", "resnet18_v2")
    jobs = []
    for name in names:
        files, expected = exported(getattr(vision, name)(), x, str(tmp_path / name))
        jobs.append(([*files, [x]], expected))
    for got, (_, expected) in zip(run(tmp_path, [j for j, _ in jobs]), jobs, strict=True):
        assert not isinstance(got, str), got
        near(got[0], expected)


class Squared(nn.HybridBlock):
    """Has a number of each batch that is on no line."""

    def forward(self, x):
        """Divided by the square of the batch's length."""
        return x.sum() / x.shape[0] ** 2


@pytest.mark.slow
@needs_node
def test_a_net_that_depends_on_its_batch_keeps_it(tmp_path):
    """Python code has written the length into the graph: other batches are refused."""
    net = Squared()
    x = np.ones((3, 2), "f4")
    files, expected = exported(net, x, str(tmp_path / "net"))
    got, message = run(tmp_path, [[*files, [x]], [*files, [x[:2]]]])
    agree(got[0], expected, 1e-6, "the batch that it was called with")
    assert "takes float32[3,2]; export the net for another shape" in message


@pytest.mark.slow
@needs_node
def test_the_lines_in_the_head_run_as_they_stand(tmp_path):
    trained("mlp")[0].export(str(tmp_path / "digits"), format="wasm")
    text = (tmp_path / "digits.mjs").read_text()
    lines = [line[6:] for line in text.splitlines() if line.startswith("//     ")]
    assert len(lines) == 4
    head = f"const numbers = new Float32Array(30);\n{chr(10).join(lines[:3])}\n"
    (tmp_path / "page.mjs").write_text(head + "console.log(y.shape.join());")
    done = subprocess.run([NODE, tmp_path / "page.mjs"], capture_output=True, text=True)
    assert done.stdout == "1,3\n", done.stderr


@pytest.mark.slow
def test_the_same_net_gives_the_same_bytes(tmp_path):
    """Whatever order Python's sets have."""
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from test_wasm import exported, nn, drawn\n"
        "net = nn.HybridSequential(); net.add(nn.Conv2D(4, 3), nn.Dense(9), nn.LayerNorm())\n"
        "exported(net, drawn(2, 3, 8, 8), sys.argv[1])\n"
    )
    actual = set()
    for seed in "12":
        path = str(tmp_path / seed)
        env = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, path, *sys.path], env=env, check=True)
        actual.add(Path(f"{path}.wasm").read_bytes())
    assert len(actual) == 1


# -- other programs, other inputs ------------------------------------------------------
@pytest.mark.slow
@needs_node
def test_the_program_asks_for_functions_only_and_others_are_refused(tmp_path):
    net, (x,), _ = trained("mlp")
    module, program = net.export(str(tmp_path / "net"), format="wasm")
    data = Path(program).read_bytes()
    assert sections(data).isdisjoint({IMPORTS, START})
    other = trained("lenet")[0].export(str(tmp_path / "other"), format="wasm")[1]
    wanting = b"\0asm\1\0\0\0" + b"\1\4\1\x60\0\0" + b"\2\7\1\1a\1b\0\0"  # a function a.b

    def filled(head):
        """A module as long as ours: the rest is a section that nobody reads."""
        size = len(data) - len(head) - 6
        return (
            head
            + b"\0"
            + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127])
            + (b"\1x" + bytes(size))
        )

    hostile = {
        "cut": data[:-1],
        "long": data + b"\0",
        "mark": b"x" + data[1:],
        "code": data[:60] + bytes(40) + data[100:],
        "wanting": filled(wanting)[: len(data)],
        "empty": filled(b"\0asm\1\0\0\0")[: len(data)],
    }
    paths = {name: tmp_path / name for name in hostile}
    for name, path in paths.items():
        path.write_bytes(hostile[name])
    cases = [
        ("are needed; the file is cut off or is that of another", paths["cut"], [x]),
        ("are needed; the file is cut off or is that of another", paths["long"], [x]),
        ("are needed; the file is cut off or is that of another", other, [x]),
        ("the program cannot be used", paths["mark"], [x]),
        ("the program cannot be used", paths["code"], [x]),
        ("the program cannot be used", paths["wanting"], [x]),
        ("the program cannot be used", paths["empty"], [x]),
        ("1 are needed", program, [x, x]),
        ("but this program takes float32[n,30], n of at least 1", program, [x[:, 1:]]),
        ("but this program takes float32[n,30], n of at least 1", program, [x[:0]]),
        ("this program takes float32[n,30]", program, [x.astype("f8")]),
    ]
    jobs = [[module, str(a), xs] for _, a, xs in cases]
    for (words, *_), message in zip(cases, run(tmp_path, jobs), strict=True):
        assert isinstance(message, str) and words in message and "\n" not in message, (
            words,
            message,
        )


IMPORTS, START = 2, 8  # the numbers of sections of a module


def sections(data):
    """The numbers of the sections that a module of WebAssembly has."""
    assert data[:8] == b"\0asm" + struct.pack("<I", 1)
    at, actual = 8, set()
    while at < len(data):
        actual.add(data[at])
        size = shift = 0
        at += 1
        while True:
            size |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                break
        at += size
    return actual


def test_names_never_reach_the_files(tmp_path):
    net = nn.Dense(3, prefix='evil"*/\n')
    net.initialize()
    net.hybridize(backend="numpy")
    net(nd.ones((1, 2)))
    files = net.export(str(tmp_path / "net"), format="wasm")
    assert all(b"evil" not in Path(f).read_bytes() for f in files)


class Gamma(nn.HybridBlock):
    """Has no form in WebAssembly."""

    def hybrid_forward(self, F, x):
        """The gamma function."""
        return F.gamma(x)


@pytest.mark.parametrize(
    "net, dtype, words",
    [
        (Gamma(), "f4", "export: gamma '.*' has no form in WebAssembly .*; export the net without"),
        (nn.HybridLambda(lambda F, x: F.erf(x)), "f8", "erf '.*' has no form in WebAssembly"),
        (nn.HybridLambda(lambda F, x: x**x), "i4", "_power '.*' has no form in WebAssembly"),
        (nn.HybridLambda(lambda F, x: x + x), "f2", "is float16, which WebAssembly has not; cast"),
        (
            nn.HybridLambda(lambda F, x: F._random_uniform_like(x)),
            "f4",
            "export: _random_uniform_like '.*' draws random numbers",
        ),
    ],
)
def test_what_webassembly_lacks_is_refused_by_name(net, dtype, words, tmp_path):
    net.hybridize(backend="numpy")
    net(nd.ones((2, 3), dtype=np.dtype(dtype)))
    with pytest.raises(HybridError, match=words):
        net.export(str(tmp_path / "net"), format="wasm")
    assert not list(tmp_path.iterdir())
