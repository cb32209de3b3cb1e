"""A net in JavaScript gives Python's answers, and trusts no file more than Python does."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from fuzz.mutate import MUTATORS
from fuzz.seeds import seeds
from minihybrid.nd import NDArray
from minihybrid.sym import trace
from samples import CASES
from test_standalone import NETS, agree, trained
from traced import apply, batches, poisoned

from minihybrid import gluon, nd, sym
from minihybrid.codegen import js as javascript_files
from minihybrid.codegen.js.module import missing, module
from minihybrid.codegen.js.scalar import javascript as in_javascript
from minihybrid.core.op import HybridError, Spec
from minihybrid.core.params import unpack_arrays
from minihybrid.core.serial import called
from minihybrid.files.formats import write_js
from minihybrid.files.legacy import ONLY
from minihybrid.gluon import nn
from minihybrid.gluon.model_zoo import vision
from minihybrid.ops import OPS

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(
    NODE is None, reason="NOT CHECKED: there is no node; install Node.js 20 or newer"
)
HERE = Path(__file__).parent


def run(folder, jobs):
    """What node answers for [module, graph, params, inputs] each, or its error."""
    told = [
        [
            Path(m).as_uri(),
            g,
            p,
            [[a.ravel().astype(str).tolist(), a.shape, a.dtype.name] for a in xs],
        ]
        for m, g, p, xs in jobs
    ]
    (folder / "jobs.json").write_text(json.dumps(told))
    files = [str(folder / "jobs.json"), str(folder / "answers.json")]
    done = subprocess.run([NODE, HERE / "run_net.mjs", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return [
        found
        if isinstance(found, str)
        else [np.array(x, "f8").astype(dtype).reshape(shape) for x, shape, dtype in found]
        for found in json.loads((folder / "answers.json").read_text())
    ]


# -- every operator --------------------------------------------------------------------
@pytest.mark.slow
@needs_node
def test_every_operator_in_javascript(tmp_path):
    """All that is not refused; and elementwise with infinities, NaN and zeros."""
    cases = [c for c in CASES if not missing(called(c.op)[0], c.op.normalize(dict(c.attrs)))]
    jobs, wanted, whats = [], [], []
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

        graph, _ = trace(outs, {n: Spec(a.shape, a.dtype) for n, a in plain.items()})
        for values in (plain, special):
            params = {n: SimpleNamespace(data=lambda a=a: NDArray(a)) for n, a in values.items()}
            entry = SimpleNamespace(graph=graph, names=[], params=params, numbers={})
            jobs.append([*write_js(entry, str(tmp_path / f"net{len(jobs)}"), 0), []])
            found = outs(*map(NDArray, values.values()))
            wanted.append([o.data for row in found for o in row])
            whats.append([c for c, row in zip(part, found, strict=True) for _ in row])
    failures = []
    for got, arrays, cases in zip(run(tmp_path, jobs), wanted, whats, strict=True):
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


def exported(net, x, path, format="js"):
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


@pytest.mark.slow
@needs_node
def test_each_layer_runs_in_javascript(tmp_path):
    made = [exported(layer, x, str(tmp_path / f"net{i}")) for i, (layer, x) in enumerate(LAYERS)]
    jobs = [[*files, [x]] for (files, _), (_, x) in zip(made, LAYERS, strict=True)]
    for got, (_, wanted), (layer, _) in zip(run(tmp_path, jobs), made, LAYERS, strict=True):
        assert not isinstance(got, str), (layer, got)
        agree(got[0], wanted, 1e-5, layer)


def near(got, wanted, what=""):
    """Within 1e-5 of the largest number: many layers, whose sums have other orders."""
    assert got.shape == wanted.shape and got.dtype == wanted.dtype, what
    assert np.abs(got - wanted).max() <= 1e-5 * np.abs(wanted).max(), what


@pytest.mark.slow
@needs_node
def test_nets_run_in_javascript(tmp_path):
    """For the shapes that they were called with, and for another batch."""
    names = [n for n in NETS if "shared" not in n]
    jobs = [
        [*trained(name)[0].export(str(tmp_path / f"net{i}"), format="js"), xs]
        for i, name in enumerate(names)
        for xs in (trained(name)[1], [np.concatenate([x, x[:1]]) for x in trained(name)[1]])
    ]
    answers = run(tmp_path, jobs)
    for name, got, more in zip(names, answers[::2], answers[1::2], strict=True):
        assert not isinstance(got, str) and not isinstance(more, str), (name, got, more)
        for one, other, wanted in zip(got, more, trained(name)[2], strict=True):
            near(one, wanted, name)
            near(other[: len(wanted)], one, name)


@pytest.mark.slow
@needs_node
def test_mobile_nets_run_in_javascript(tmp_path):
    x, names = drawn(1, 3, 32, 32), ("mobilenet0_25", "mobilenet_v2_0_25", "resnet18_v2")
    jobs = []
    for name in names:
        files, wanted = exported(getattr(vision, name)(), x, str(tmp_path / name))
        jobs.append(([*files, [x]], wanted))
    for got, (_, wanted) in zip(run(tmp_path, [j for j, _ in jobs]), jobs, strict=True):
        assert not isinstance(got, str), got
        near(got[0], wanted)


# -- files of strangers ----------------------------------------------------------------
def judged(folder, files):
    """What the readers of JavaScript say of (kind, bytes) each: empty if they read it."""
    (folder / "all.mjs").write_text(module(OPS, []))
    jobs = []
    for i, (kind, data) in enumerate(files):
        (folder / f"file{i}").write_bytes(data)
        jobs.append([kind, str(folder / f"file{i}")])
    (folder / "jobs.json").write_text(json.dumps(jobs))
    names = [str(folder / "jobs.json"), str(folder / "answers.json")]
    done = subprocess.run(
        [NODE, HERE / "read_files.mjs", (folder / "all.mjs").as_uri(), *names],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((folder / "answers.json").read_text())


def refused(kind, data):
    """What Python says of a file; empty if it reads it."""
    try:
        sym.fromjson(data) if kind == "graph" else unpack_arrays(data, "file")
    except HybridError as error:
        return str(error)
    return ""


def test_javascript_knows_which_attributes_change_what_an_operator_computes():
    text = (Path(javascript_files.__file__).parent / "graph.js").read_text()
    found = text.split("const COMPUTED = {")[1].split("};")[0]
    listed = re.findall(r"(\w+): \[([^]]*)\]", found)
    assert {k: tuple(re.findall('"(.*?)"', v)) for k, v in listed} == ONLY


CORPUS = HERE.parent / "fuzz" / "corpus"


@pytest.mark.slow
@needs_node
def test_javascript_refuses_what_python_refuses(tmp_path):
    files = [(p.name.split("-")[0], p.read_bytes()) for p in sorted(CORPUS.iterdir())]
    files = [f for f in files if f[0] != "onnx"]
    said = judged(tmp_path, files)
    assert len(said) > 60
    for (kind, data), javascript in zip(files, said, strict=True):
        assert not javascript.startswith("BROKEN"), javascript
        python = refused(kind, data)
        assert bool(python) == bool(javascript), (python, javascript, data[:300])


NO_FORM = re.compile(
    "written by version|dtype is not readable|beyond 2\\^53|"
    "does not fit; needed: (optional )?(shape|axes|bounds|dtype|integer|length|count|any)"
)


@pytest.mark.slow
@needs_node
def test_javascript_survives_changed_files(tmp_path):
    """It reads or refuses them; of what Python refuses, it reads only graphs of operators
    that it cannot run. What it refuses alone are numbers that it has no form for."""
    rng, files = Random(5), []
    for kind in ("graph", "params"):
        good = seeds(kind)
        for _ in range(300):
            data = rng.choice(good)
            for _ in range(rng.randint(0, 3)):
                data = MUTATORS[kind](data, rng)
            files.append((kind, data))
    for (kind, data), said in zip(files, judged(tmp_path, files), strict=True):
        python = refused(kind, data)
        assert not said.startswith("BROKEN"), said
        if python and not said:
            ops = {node["op"] for node in json.loads(data)["nodes"]} if kind == "graph" else set()
            assert any(missing(op) for op in ops & set(OPS)), (python, data[:300])
        if said and not python:
            assert NO_FORM.search(said), said


@pytest.mark.slow
@needs_node
def test_javascript_says_what_is_wrong_in_a_sentence(tmp_path):
    net, (x,), _ = trained("mlp")
    module, graph, params = net.export(str(tmp_path / "net"), format="js")
    (tmp_path / "cut").write_bytes(Path(params).read_bytes()[:-30])
    other = trained("words")[0].export(str(tmp_path / "words"), format="js")
    cases = {
        "2 inputs are given, but": [module, graph, params, [x, x]],
        "; the file is cut off or is": [module, graph, str(tmp_path / "cut"), [x]],
        "this module has no operator": [module, *other[1:], [x]],
        "does not fit weights": [module, graph, params, [x[:, :-1]]],
        "have no parameter": [module, graph, other[2], [x]],
    }
    for (words, _), said in zip(cases.items(), run(tmp_path, list(cases.values())), strict=True):
        assert isinstance(said, str) and words in said and "\n" not in said, (words, said)


class Sorted(gluon.HybridBlock):
    """Has no form in JavaScript."""

    def hybrid_forward(self, F, x):
        """x in order."""
        return F.sort(x)


@pytest.mark.parametrize(
    "net, dtype, words",
    [
        (Sorted(), "f4", "export: sort '.*' has no form in JavaScript; export the net without"),
        (nn.HybridLambda(lambda F, x: F.gamma(x)), "f4", "gamma '.*' has no form in JavaScript;"),
        (nn.HybridLambda(lambda F, x: x / 2), "i4", "_div_scalar .* for whole numbers"),
        (nn.HybridLambda(lambda F, x: F.Dropout(x, mode="always")), "f4", "with mode=always"),
        (nn.HybridLambda(lambda F, x: F._random_uniform_like(x)), "f4", "has no form"),
    ],
)
def test_what_javascript_lacks_is_refused_by_name(net, dtype, words, tmp_path):
    net.hybridize(backend="numpy")
    net(nd.ones((2, 3), dtype=dtype))
    with pytest.raises(HybridError, match=words) as refused:
        net.export(str(tmp_path / "net"), format="js")
    assert not list(tmp_path.iterdir())
    (proposed,) = re.findall("or as format '([a-z]*)'", str(refused.value))
    assert net.export(str(tmp_path / "net"), format=proposed)


def test_names_never_reach_the_module(tmp_path):
    net = nn.HybridSequential(prefix='evil"*/\n')
    net.add(nn.Dense(3, prefix='evil"*/\n'))
    net.initialize()
    net.hybridize(backend="numpy")
    net(nd.ones((1, 2)))
    assert b"evil" not in Path(net.export(str(tmp_path / "evil"), format="js")[0]).read_bytes()


@pytest.mark.parametrize(
    "python, javascript",
    [
        ("T(0) if {a} <= 0 else {a}", "((a <= 0) ? 0 : a)"),
        ("{a} if {a} >= {b} or {a} != {a} else {b}", "(((a >= b) || (a !== a)) ? a : b)"),
        ("-exp(abs({a})) * T(-INF)", "((-Math.exp(Math.abs(a))) * (-Infinity))"),
        ("mod({a}, {b}) ** T(1e-05)", "(mod(a, b) ** 1e-05)"),
    ],
)
def test_an_expression_in_javascript(python, javascript):
    assert in_javascript(python) == javascript
