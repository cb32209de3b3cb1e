"""Write this folder's files with MXNet 1.9.1: what a reader of files must read.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):
    benchmarks/envs/mxnet/bin/python tests/golden/mxnet_files/make_golden.py

The files of old versions in `old/` are written by hand, in `old_files.py`: no old MXNet
runs on today's machines. MXNet 1.9.1 opens them, upgrades them, and gives the answers.
"""

import ctypes
import json
import shutil
from pathlib import Path

import golden_nets
import mxnet as mx
import numpy as np
import old_files
from mxnet import autograd, gluon, nd, npx
from mxnet.gluon import nn

HERE = Path(__file__).parent


def numbers(*shape):
    """The same numbers in every run, small enough to be exact in float16."""
    count = int(np.prod(shape))
    return (np.arange(count) * 7 % 11 - 5).reshape(shape) / 8


def fill(net):
    """Weights that are the same in every run."""
    for param in net.collect_params().values():
        values = numbers(*param.shape)
        if param.name.endswith("running_var"):
            values = np.abs(values) + 0.5
        param.set_data(mx.nd.array(values, dtype=param.dtype))


def given(name):
    """The input of a net of `golden_nets`."""
    if name == "images":
        return numbers(2, 2, 6, 6).astype("float32")
    kind = "float16" if name == "halves" else "float32"
    return np.array([[0, 1, 4], [2, 2, 3]], dtype=kind)


def write(name, net, x):
    """One net in all of its files, and its answers."""
    net.initialize()
    net.hybridize()
    x = mx.nd.array(x, dtype=x.dtype)
    net(x)
    fill(net)
    net.export(str(HERE / name), epoch=3)
    net.save_parameters(str(HERE / f"{name}.parameters"))
    net.collect_params().save(str(HERE / f"{name}.prefixed"))
    nd.save(str(HERE / f"{name}.nd"), {"x": x, "y": net(x)})


def checkpoint():
    """The symbolic way: two inputs, a loss, aux states, user attributes."""
    data, label = mx.sym.var("data"), mx.sym.var("label")
    with mx.AttrScope(ctx_group="one"):
        net = mx.sym.BatchNorm(data, name="norm", fix_gamma=False)
    net = mx.sym.FullyConnected(net, num_hidden=3, name="fc", attr={"__lr_mult__": "0.1"})
    net = mx.sym.SoftmaxOutput(net, label, name="out")
    values = {
        "data": numbers(4, 5),
        "label": np.array([0, 1, 2, 1]),
        "norm_gamma": numbers(5),
        "norm_beta": numbers(5),
        "fc_weight": numbers(3, 5),
        "fc_bias": numbers(3),
    }
    values = {key: nd.array(value) for key, value in values.items()}
    states = {"norm_moving_mean": nd.array(numbers(5)), "norm_moving_var": nd.ones(5)}
    out = net.bind(mx.cpu(), values, aux_states=states).forward()[0]
    arrays = {"data": values.pop("data"), "label": values.pop("label"), "y": out}
    mx.model.save_checkpoint(str(HERE / "checkpoint"), 12, net, values, states)
    nd.save(str(HERE / "checkpoint.nd"), arrays)


def functions(np_, npx_):
    """Functions of one (2, 3) array; the names of operators since MXNet 1.6."""
    return [
        lambda x: (x + 1) * 2 / (3 - x) ** 2 - x % 0.7 + 2**x - -x,
        lambda x: np_.where(x > 0.5, x, -x) + (x <= 0.2) * x,
        lambda x: np_.exp(x) + np_.sin(x) * np_.log1p(np_.abs(x)) - np_.cbrt(x),
        lambda x: np_.maximum(x, 0.1) + np_.minimum(x, np_.ones_like(x)),
        lambda x: np_.clip(x, -0.5, 0.5),
        lambda x: np_.sum(x, axis=1) * np_.mean(x) + np_.max(x) - np_.min(x, 1),
        lambda x: np_.std(x, axis=0) + np_.var(x, axis=0) * np_.prod(x, 0),
        lambda x: np_.argmax(x, axis=1) + np_.argmin(x, axis=1),
        lambda x: np_.cumsum(x, axis=1),
        lambda x: np_.dot(x, x.T) + np_.matmul(x, np_.transpose(x)),
        lambda x: np_.einsum("ij,kj->ik", x, x),
        lambda x: np_.concatenate([x, np_.ones((2, 1)), x], axis=1),
        lambda x: np_.stack([x, x * 2], axis=-1),
        lambda x: np_.vstack([x, x]) + np_.tile(x, (2, 1)),
        lambda x: np_.split(x, 3, axis=1)[1] + 1,
        lambda x: np_.swapaxes(np_.expand_dims(x, 0), 1, 2).squeeze(0) + x.T,
        lambda x: x.reshape(-1) * np_.reshape(x, (6,)),
        lambda x: npx_.reshape(x, (-2, 1, -1)),
        lambda x: np_.flip(x, axis=1) + np_.roll(x, 1, axis=0),
        lambda x: np_.repeat(x, 2, axis=1),
        lambda x: np_.tril(x, k=-1),
        lambda x: np_.linalg.norm(x) + np_.linalg.norm(x, axis=1),
        lambda x: np_.linalg.norm(x, ord=1, axis=0),
        lambda x: npx_.softmax(x) + npx_.log_softmax(x, axis=0),
        lambda x: npx_.relu(x) + npx_.sigmoid(x) + npx_.leaky_relu(x, slope=0.3),
        lambda x: npx_.one_hot(np_.argmax(x, axis=1), 3),
        lambda x: npx_.topk(x, k=2, ret_typ="mask"),
        lambda x: npx_.pick(x, np_.argmin(x, axis=1)),
        lambda x: np_.around(x, 1) + np_.trace(x) + np_.average(x, axis=1).sum(),
        lambda x: np_.tensordot(x, x, 2) + np_.tensordot(x, x, axes=([0, 1], [0, 1])),
        lambda x: np_.nan_to_num(x) + np_.where(x > 0, x, 0) + np_.where(x > 0, 1, x),
        lambda x: np_.diff(x, axis=1) + np_.average(x, axis=1, weights=x * x).sum(),
        lambda x: np_.where(x > 0, 1.5, 2.5) + np_.where(x < 0, x, 0.5),
        lambda x: np_.expand_dims(x, 1)[:, 0, 1:],
        lambda x: np_.full_like(x, 2.5) + np_.zeros((2, 1)) + np_.arange(3),
        lambda x: x.astype("float64") + np_.linspace(0, 1, 3),
        lambda x: np_.logical_not(x) + np_.isnan(x) + np_.isfinite(x),
    ]


@mx.util.use_np
def np_functions():
    """Each function as a graph, and its answer: np arrays, so the third version."""
    x, graphs, answers = mx.np.array(numbers(2, 3), dtype="float32"), [], {}
    for number in range(len(functions(mx.np, npx))):

        class Net(gluon.HybridBlock):
            def hybrid_forward(self, F, x, number=number):
                return functions(F.np, F.npx)[number](x)

        net = Net()
        net.hybridize()
        answers[f"y{number}"] = net(x)
        net.export(str(HERE / "function"))
        graphs.append(json.loads((HERE / "function-symbol.json").read_text()))
    (HERE / "function-symbol.json").unlink()
    (HERE / "function-0000.params").unlink()
    (HERE / "functions.json").write_text(json.dumps(graphs, separators=(",", ":")))
    npx.save(str(HERE / "functions.nd"), {"x": x, **answers})


@mx.util.use_np
def np_net():
    """Layers in the np world."""
    net = nn.HybridSequential(prefix="np_")
    with net.name_scope():
        net.add(
            nn.Conv1D(3, 2, activation="relu"),
            nn.BatchNorm(),
            nn.Flatten(),
            nn.Dense(4),
            nn.LayerNorm(),
        )
    net.initialize()
    net.hybridize()
    x = mx.np.array(numbers(2, 2, 5), dtype="float32")
    net(x)
    for param in net.collect_params().values():
        values = np.abs(numbers(*param.shape)) + 0.25
        param.set_data(mx.np.array(values, dtype="float32"))
    net.export(str(HERE / "np_net"))
    npx.save(str(HERE / "np_net.nd"), {"x": x, "y": net(x)})


def loop():
    """An operator with a graph of its own inside."""
    x, s = mx.sym.var("x"), mx.sym.var("s")
    out, _ = mx.sym.contrib.foreach(lambda d, s: (d + s, d * s), x, s)
    mx.sym.relu(out, name="out").save(str(HERE / "foreach-symbol.json"))


def names():
    """Other name -> name of every operator, as MXNet's library lists them."""
    lib, check = mx.base._LIB, mx.base.check_call
    count, listed = ctypes.c_uint(), ctypes.POINTER(ctypes.c_char_p)()
    check(lib.MXListAllOpNames(ctypes.byref(count), ctypes.byref(listed)))
    table = {}
    for other in sorted(listed[i] for i in range(count.value)):
        op, name, text = ctypes.c_void_p(), ctypes.c_char_p(), ctypes.c_char_p()
        some, lists = ctypes.c_uint(), [ctypes.POINTER(ctypes.c_char_p)() for _ in range(3)]
        check(lib.NNGetOpHandle(other, ctypes.byref(op)))
        check(
            lib.MXSymbolGetAtomicSymbolInfo(
                op,
                ctypes.byref(name),
                ctypes.byref(text),
                ctypes.byref(some),
                *map(ctypes.byref, lists),
                ctypes.byref(ctypes.c_char_p()),
                ctypes.byref(ctypes.c_char_p()),
            )
        )
        if name.value != other and b"backward" not in other:
            table[other.decode()] = name.value.decode()
    (HERE / "names.json").write_text(json.dumps(table, indent=0))


def arrays():
    """Sparse arrays, and every dtype in each version of the format."""
    rows = nd.array([[0, 0], [1, 2], [0, 0], [3, 4]])
    nd.save(
        str(HERE / "sparse.nd"),
        {
            "rows": rows.tostype("row_sparse"),
            "csr": rows.tostype("csr"),
            "none": nd.zeros((3, 2)).tostype("row_sparse"),
            "empty": nd.zeros((3, 2)).tostype("csr"),
        },
    )
    (HERE / "old").mkdir(exist_ok=True)
    for name, data in old_files.arrays().items():
        path = HERE / "old" / name
        path.write_bytes(data)
        loaded = nd.load(str(path))  # MXNet reads it, too
        assert list(loaded) == list(old_files.DTYPES), path
        for dtype, array in loaded.items():
            assert array.dtype == np.dtype(dtype), path
            assert (array.asnumpy() == old_files.VALUES.astype(dtype)).all(), path


def old_graphs():
    """Graphs of old versions: as MXNet 1.9.1 upgrades them, and what they give."""
    for name, (graph, values) in old_files.graphs().items():
        path = HERE / "old" / f"{name}-symbol.json"
        path.write_text(json.dumps(graph, indent=1))
        symbol = mx.sym.load(str(path))
        arrays = {key: nd.array(value) for key, value in values.items()}
        states = {key: arrays.pop(key) for key in symbol.list_auxiliary_states()}
        with autograd.predict_mode():
            outs = symbol.bind(mx.cpu(), arrays, aux_states=states).forward()
        (HERE / "old" / f"{name}-answers.json").write_text(
            json.dumps(
                {
                    "arguments": symbol.list_arguments(),
                    "outputs": symbol.list_outputs(),
                    "states": symbol.list_auxiliary_states(),
                    "attributes": {
                        n: {k: v for k, v in a.items() if k.startswith("__")}
                        for n, a in symbol.attr_dict().items()
                    },
                    "inputs": {k: np.asarray(v).tolist() for k, v in values.items()},
                    "answers": [out.asnumpy().tolist() for out in outs],
                }
            )
        )


if __name__ == "__main__":
    for name in ("images", "words", "halves"):
        write(name, getattr(golden_nets, name)(nn), given(name))
    checkpoint()
    shutil.rmtree(HERE / "old", ignore_errors=True)
    arrays()
    old_graphs()
    np_functions()
    np_net()
    loop()
    names()
