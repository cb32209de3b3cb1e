"""MXNet 1.9.1 itself opens what we write, and computes the same.

One process of MXNet's own Python opens all files; its program is `mxnet_reads.py` in
tests/golden/mxnet_files. It runs where `benchmarks/envs.py` can make an environment
with MXNet: on Linux x86 with Python 3.11.
"""

import json
import os
import random
import subprocess
from pathlib import Path

import envs
import numpy as np
import pytest
from minihybrid.sym import Symbol
from random_nets import LAYERS, STARTS, network
from samples import CASES

from minihybrid import gluon, nd, np_shape, npx, sym
from minihybrid import np as mnp
from minihybrid.gluon.model_zoo import vision

READER = Path(__file__).parents[1] / "golden" / "mxnet_files" / "mxnet_reads.py"

# Operators with samples that MXNet 1.9.1 does not compute, and its words.
REFUSED = {
    "norm": "data type do not match",
    "transpose": "index = -1 must be in range",
    "broadcast_to": "ndim() == param.shape.ndim()",
    "slice_axis": "Invalid begin, end",
    "broadcast_like": "lhs_shape.ndim() == rhs_shape.ndim()",
    "_zeros": "cannot be a negative value",
    "_arange": "Invalid range",
    "Deconvolution": "could not create a descriptor",
    "batch_take": "inferred type",
    "_ravel_multi_index": "must be two-dimensional",
    "Pad": "only supports 4-D or 5-D",
    "softmax": "only support integer types",
    "reverse": "index = -1 must be in range",
    "broadcast_axis": "index = -1 must be in range",
    "GroupNorm": "dshape.ndim() >= 3U",
    "_np_cumsum": "index = -1 must be in range",
    "moments": "Empty axes",
    "_linalg_extractdiag": "a tensor of square matrices",
    "_np_sum": "initial is not supported",
    "_np_prod": "",
    "_npi_norm": "inf norm handled in front-end",
    "amp_cast": "mkldnn",
    "scaled_dot_product_attention": "is not registered",  # newer than MXNet
    "SequenceReverse": "expects axis to be",
}
# Samples with another answer in MXNet, or not the same one each time.
OTHER = {
    "scatter_nd": "which of two numbers for one place wins is open",
    "_unravel_index": "it takes rows of places, and drops the axes of others",
    "slice_like": "it overlooks an axis that is counted from the end",
    "_histogram": "its edges must rise",
    "SequenceLast": "a length of 0 reads before",
    "amp_cast": "oneDNN rounds to the nearest whole number",
    "_npi_norm": "np.linalg.norm adds the flag that MXNet needs",
    "Dropout": "chance",
    "CTCLoss": "where no word of a batch has a character, it gives what was in memory",
}
# Samples that end MXNet's process.
DEADLY = {"UpSampling", "fill_element_0index"}


class Files:
    """The files for MXNet in one folder, and our own answers."""

    def __init__(self, folder):
        self.folder, self.cases, self.answers = folder, [], {}

    def add(self, name, inputs, outs, np_world=False, params=False):
        """One graph that is written already: its inputs by name, and what it gives."""
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        np.savez(self.folder / f"{name}.npz", **inputs)
        self.answers[name] = [out.asnumpy() for out in outs]
        self.cases.append({"name": name, "inputs": list(inputs), "np": np_world, "params": params})

    def operator(self, number, case, rng):
        """A graph of one operator; in MXNet's old world an axis of 0 is unknown."""
        np_world = case.op.name.startswith(("_np_", "_npi_", "_npx_"))
        arrays = case.arrays("float32", rng)
        if not np_world and any(a.size == 0 or a.shape == () for a in arrays):
            return
        attrs = case.op.normalize(dict(case.attrs))
        names = [f"x{i}" for i in range(len(arrays))]
        name = f"{number}-{case.op.name}"
        with np_shape(np_world):
            symbol = Symbol.interpret(case.op, list(map(sym.var, names)), attrs, "y")
            symbol.save(self.folder / f"{name}-symbol.json")
            outs = nd.NDArray.interpret(case.op, [nd.NDArray(a.copy()) for a in arrays], attrs)
        self.add(name, dict(zip(names, arrays, strict=True)), outs, np_world)

    def net(self, name, block, x, np_world=False):
        """A net, exported after a call."""
        block.hybridize(backend="numpy")
        inputs, outs = {"data": x.asnumpy()}, block(x)
        block.export(str(self.folder / name))
        self.add(name, inputs, outs, np_world, params=True)

    def answers_of(self, python):
        """(name -> MXNet's answers, name -> what it said instead)."""
        (self.folder / "cases.json").write_text(json.dumps(self.cases))
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(
            [python, READER, self.folder], capture_output=True, text=True, env=clean
        )
        assert done.returncode == 0, done.stderr[-2000:]
        errors = json.loads((self.folder / "errors.json").read_text())
        actual = {}
        for name in self.answers.keys() - errors.keys():
            with np.load(self.folder / f"{name}-answers.npz") as arrays:
                actual[name] = [arrays[key] for key in arrays.files]
        return actual, errors


def np_functions(np, npx):
    """name -> a function of one (2, 3) array, of the np and npx operators."""
    return {
        "arithmetic": lambda x: (x + 1) * 2 / (3 - x) ** 2 - x % 0.7 + 2**x - -x,
        "compared": lambda x: np.where(x > 0.5, x, -x) + (x <= 0.2) * (x != 1) * x,
        "functions": lambda x: np.exp(x) + np.sin(x) * np.log1p(np.abs(x)) - np.cbrt(x),
        "extremes": lambda x: np.maximum(x, 0.1) + np.minimum(x, np.ones_like(x)),
        "clipped": lambda x: np.clip(x, -0.5, 0.5),
        "sums": lambda x: np.sum(x, axis=1) * np.mean(x) + np.max(x) - np.min(x, 1),
        "spread": lambda x: np.std(x, axis=0) + np.var(x, axis=0) * np.prod(x, 0),
        "places": lambda x: np.argmax(x, axis=1) + np.argmin(x, axis=1),
        "running": lambda x: np.cumsum(x, axis=1),
        "products": lambda x: np.dot(x, x.T) + np.matmul(x, np.transpose(x)),
        "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
        "joined": lambda x: np.concatenate([x, np.ones((2, 1)), x], axis=1),
        "stacked": lambda x: np.stack([x, x * 2], axis=-1),
        "columns": lambda x: np.vstack([x, x]) + np.tile(x, (2, 1)),
        "split": lambda x: np.split(x, 3, axis=1)[1] + 1,
        "axes": lambda x: np.swapaxes(np.expand_dims(x, 0), 1, 2).squeeze(0) + x.T,
        "shapes": lambda x: x.reshape(-1) * np.reshape(x, (6,)),
        "codes": lambda x: npx.reshape(x, (-2, 1, -1)),
        "turned": lambda x: np.flip(x, axis=1) + np.roll(x, 1, axis=0),
        "flipped": lambda x: np.flip(x),
        "repeated": lambda x: np.repeat(x, 2, axis=1),
        "triangles": lambda x: np.tril(x, k=-1) - np.triu(x, k=1),
        "logical": lambda x: (
            np.where(np.logical_and(x, x > 0), x, -x)
            + np.where(np.logical_or(x > 1, x < 0), x, 2 * x)
            * np.where(np.logical_xor(1, x < 0), x, 3 * x)
        ),
        "indexed": lambda x: x[1:, ::2] + x[0, 1] + x[None, :, 0],
        "norms": lambda x: np.linalg.norm(x) + np.linalg.norm(x, axis=1),
        "one norm": lambda x: np.linalg.norm(x, ord=1, axis=0),
        "softmax": lambda x: npx.softmax(x) + npx.log_softmax(x, axis=0),
        "activations": lambda x: npx.relu(x) + npx.sigmoid(x) + npx.leaky_relu(x, slope=0.3),
        "chosen": lambda x: npx.one_hot(np.argmax(x, axis=1), 3) + npx.topk(x, k=2, ret_typ="mask"),
        "picked": lambda x: npx.pick(x, np.argmin(x, axis=1)),
        "batches": lambda x: npx.batch_dot(x[None], x[None], transpose_b=True),
    }


def np_nets():
    """name -> net, input: the functions, and layers, in MXNet's np world."""

    class Function(gluon.HybridBlock):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x):
            return self.function(x)

    x = mnp.array([[0.3, -0.4, 1.2], [0.9, 0.1, -0.6]])
    for name, function in np_functions(mnp, npx).items():
        yield f"np {name}", Function(function), x
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(4, 3, activation="relu"),
        gluon.nn.BatchNorm(),
        gluon.nn.MaxPool2D(2),
        gluon.nn.Flatten(),
        gluon.nn.LayerNorm(),
        gluon.nn.Dense(3, activation="tanh"),
        gluon.nn.Dropout(0.5),
    )
    net.initialize()
    yield "np layers", net, mnp.random.uniform(size=(2, 3, 8, 8))


def zoo():
    """name -> net, shape: the structures of the model zoo, with few channels."""
    yield "lenet", vision.lenet(), (2, 1, 28, 28)
    for version, block, bottle in (
        (1, vision.BasicBlockV1, vision.BottleneckV1),
        (2, vision.BasicBlockV2, vision.BottleneckV2),
    ):
        kind = (vision.ResNetV1, vision.ResNetV2)[version - 1]
        yield f"resnet_v{version}", kind(block, [1, 1], [4, 4, 8], classes=3), (1, 3, 32, 32)
        yield (
            f"resnet_bottle_v{version}",
            kind(bottle, [1, 1], [4, 8, 16], classes=3, thumbnail=True),
            (2, 3, 16, 16),
        )
    for name, size in (("mobilenet0.25", 32), ("mobilenetv2_0.25", 32), ("squeezenet1.1", 224)):
        yield name, vision.get_model(name, classes=3), (1, 3, size, size)


def layers():
    """name -> net, input: each layer alone in some settings, then stacks of them."""
    for name in LAYERS:
        for number, start in enumerate(STARTS[:-1]):
            for i, j in ((0, 0), (1, 2), (3, 1), (5, 5), (2, 4)):
                if LAYERS[name](start, i, j) is not None:
                    block, x, _ = network((start, "float32", i == 1, [(name, i, j)]))
                    yield f"{name} {number}{i}{j}", block, x
    chance = random.Random(0)
    for number in range(60):
        start, dtype = chance.choice(STARTS), chance.choice(("float32", "float64"))
        heads = chance.random() < 0.5
        stack = [
            (chance.choice(sorted(LAYERS)), chance.randrange(6), chance.randrange(6))
            for _ in range(chance.randint(1, 6))
        ]
        if any(name == "instance_norm" for name, *_ in stack):
            dtype = "float32"  # MXNet's has no other
        block, x, _ = network((start, dtype, heads, stack))
        yield f"stack {number}", block, x


def writes_all(files, rng):
    """Write every graph and every net of this file."""
    for number, case in enumerate(CASES):
        if (
            not case.op.random
            and case.op.name not in DEADLY
            and not case.attrs.get("aligned")  # of a region turned inside out MXNet dies
            and not case.op.name.startswith(("_sample_", "_shuffle"))
        ):
            files.operator(number, case, rng)
    for name, net, x in layers():
        files.net(name, net, x)
    for name, net, shape in zoo():
        net.initialize()
        x = nd.array(rng.uniform(size=shape))
        net(x)  # makes the parameters; no zeros and ones among them
        for param in net.collect_params().values():
            if param.name.endswith(("mean", "var", "gamma", "beta")):
                param.set_data(nd.array(rng.uniform(0.5, 1.5, param.shape)))
        files.net(name, net, x)
    npx.set_np()
    try:
        for name, net, x in np_nets():
            files.net(name, net, x, np_world=True)
    finally:
        npx.reset_np()


def difference(got, expected):
    """How MXNet's outputs differ from ours, in words; "" if they do not."""
    forms = [[f"{a.dtype}{a.shape}" for a in arrays] for arrays in (got, expected)]
    if forms[0] != forms[1]:
        return f"MXNet gives {forms[0]}, we {forms[1]}"
    for a, b in zip(got, expected, strict=True):
        size = np.abs(b[np.isfinite(b)]).max(initial=1)
        if not np.allclose(a, b, 1e-5, 1e-5 * size, equal_nan=True):
            return f"MXNet gives {a.ravel()[:9]}, we {b.ravel()[:9]}"
    return ""


@pytest.mark.slow
@pytest.mark.external
def test_mxnet_computes_what_we_wrote(tmp_path, rng):
    try:
        python = envs.python_of("mxnet")
    except envs.NotAvailable as reason:
        pytest.skip(f"real MXNet does not open our files here: it {reason}")
    files = Files(tmp_path)
    writes_all(files, rng)
    answers, errors = files.answers_of(python)
    op_of = {
        name: CASES[int(name.split("-")[0])].op.name for name in files.answers if name[0].isdigit()
    }
    wrong, seen = [], set()
    for name, error in errors.items():
        op = op_of.get(name, "")
        known = op in REFUSED and REFUSED[op] in error or "not registered" in error and _ours(op)
        seen.add(op)
        if not known:
            wrong.append(f"{name}: {error}")
    for name, actual in answers.items():
        words = difference(actual, files.answers[name])
        op = op_of.get(name, "")
        seen |= {op} if words else set()
        if words and op not in OTHER:
            wrong.append(f"{name}: {words}")
    assert not wrong, "\n".join(wrong)
    assert len(answers) > 1400 and len(answers.keys() - op_of.keys()) > 400
    assert REFUSED.keys() <= seen, "an exception that is none any more"


def _ours(op):
    """Whether a name is one of our own, of operators inside of expanded graphs."""
    return op.startswith("_") and not op.startswith(
        ("_np", "_contrib", "_linalg", "_random", "_sample")
    )


@pytest.mark.parametrize(
    "got",
    [
        [np.float32([1, 2])],
        [np.float64([1, 2]), np.float32([3])],
        [np.float32([1, 2.1]), np.float32([3])],
        [np.float32([1, 2]), np.float32([[3]])],
        [np.float32([1, np.nan]), np.float32([3])],
    ],
)
def test_a_difference_is_noticed(got):
    expected = [np.float32([1, 2]), np.float32([3])]
    assert difference(got, expected) and not difference(expected, expected)
