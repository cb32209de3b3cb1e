"""Write this folder's files with MXNet 1.9.1: what a reader must read.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):
    benchmarks/envs/mxnet/bin/python tests/golden/make_golden.py
"""

from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import gluon, nd, sym
from mxnet.gluon import nn

HERE = Path(__file__).parent


def numbers(*shape):
    """The same numbers in every run, small enough to be exact in float32."""
    count = int(np.prod(shape))
    return nd.array((np.arange(count) * 7 % 11 - 5).reshape(shape) / 4)


def mlp():
    """A net of two layers: exported, saved by structure, and asked once."""
    net = nn.HybridSequential(prefix="mlp_")
    with net.name_scope():
        net.add(nn.Dense(4, activation="relu"), nn.Dropout(0.5), nn.Dense(2))
    net.initialize()
    net.hybridize()
    x = numbers(2, 3)
    net(x)
    for param in net.collect_params().values():
        param.set_data(numbers(*param.shape))
    net.export(str(HERE / "mlp"))
    net.save_parameters(str(HERE / "mlp.parameters"))
    nd.save(str(HERE / "mlp-answers.nd"), {"x": x, "y": net(x)})


class Child(gluon.HybridBlock):
    """A graph with two layers, whose parameters' names begin alike, and a layer after it."""

    def __init__(self):
        super().__init__()
        x = sym.FullyConnected(sym.var("data"), num_hidden=3, name="stem_fc")
        x = sym.BatchNorm(x, name="stem_norm", fix_gamma=False)
        with self.name_scope():
            self.features = gluon.SymbolBlock(x, [sym.var("data")])
            self.output = nn.Dense(2)

    def hybrid_forward(self, F, x):
        return self.output(self.features(x))


def symbol_child():
    """The parameters of a net with a SymbolBlock, whose names lack what they have in common."""
    net, x = Child(), numbers(2, 4)
    net.initialize()
    net(x)
    for param in net.collect_params().values():
        param.set_data(numbers(*param.shape).abs() + 0.5)
    net.save_parameters(str(HERE / "symbol-child.parameters"))
    nd.save(str(HERE / "symbol-child-answers.nd"), {"x": x, "y": net(x)})


def arrays():
    """A list and a dict of arrays in every dtype that nd.save knows."""
    dtypes = ["float32", "float64", "float16", "uint8", "int32", "int8", "int64"]
    nd.save(str(HERE / "list.nd"), [nd.array([[1, 2, 3], [4, 5, 6]], dtype=d) for d in dtypes])
    nd.save(
        str(HERE / "dict.nd"), {"first": nd.array([1.5]), "zweite, größer": nd.zeros((1, 2, 1, 3))}
    )
    with mx.util.np_shape(True):  # the third version of the format has arrays of no axes
        nd.save(str(HERE / "np_shape.nd"), {"scalar": nd.array(3.5), "row": nd.ones((2,))})


def operators():
    """One graph with most operators, their attributes as MXNet writes them."""
    x, w, i = sym.var("x"), sym.var("w"), sym.var("i")  # (2, 3, 4), (5, 12), (2,)
    flat = sym.Flatten(x)
    fc = sym.FullyConnected(flat, w, no_bias=True, num_hidden=5)
    rows = sym.FullyConnected(
        x, sym.slice(w, begin=(0, 0), end=(2, 4)), no_bias=True, num_hidden=2, flatten=False
    )
    parts = sym.split(x, num_outputs=2, axis=2)
    outs = [
        fc,
        rows,
        sym.Activation(fc, act_type="tanh"),
        sym.Activation(fc, act_type="softrelu"),
        sym.sigmoid(x),
        sym.relu(x),
        sym.exp(x) - 1.5,
        2 / (x + 10),
        1 - x,
        x**2,
        2**x,
        -x,
        sym.abs(x),
        x > 0.5,
        sym.broadcast_greater(x, sym.mean(x, axis=1, keepdims=True)),
        sym.reshape(x, shape=(0, -1)),
        sym.reshape(x, shape=(-3, 0)),
        sym.reshape(x, shape=(0, 0, -4, 2, 2)),
        sym.transpose(x, axes=(2, 0, 1)),
        sym.expand_dims(x, axis=1),
        sym.concat(x, x * 2, dim=1),
        parts[1],
        parts[0],
        sym.slice(x, begin=(None, 2, 0), end=(None, None, 4), step=(None, -1, 2)),
        sym.slice_axis(x, axis=-1, begin=1, end=None),
        sym.sum(x),
        sym.sum(x, axis=(0, 2)),
        sym.mean(x, axis=0, exclude=True),
        sym.max(x, axis=1),
        sym.min(x, axis=-1),
        sym.argmax(x, axis=2),
        sym.clip(x, a_min=-0.5, a_max=1),
        sym.maximum(x, 0.25),
        sym.broadcast_minimum(x, sym.zeros((1, 3, 1))),
        sym.where(x > 0, x, x * 3),
        sym.dot(flat, w, transpose_b=True),
        sym.batch_dot(x, x, transpose_b=True),
        sym.softmax(x, axis=1),
        sym.log_softmax(fc),
        sym.pick(fc, i),
        sym.one_hot(i, depth=3),
        sym.Cast(x, dtype="int32"),
        sym.ones_like(x),
        sym.broadcast_to(sym.reshape(i, shape=(1, 2)), shape=(3, 0)),
        sym.Dropout(x, p=0.3),
        sym.squeeze(sym.expand_dims(x, axis=0)),
        sym.norm(x, axis=2),
        sym.BlockGrad(x),
    ]
    group = sym.Group(outs)
    group.save(str(HERE / "operators-symbol.json"))
    given = {"x": numbers(2, 3, 4), "w": numbers(5, 12), "i": nd.array([1, 4])}
    answers = group.eval(ctx=mx.cpu(), **given)
    nd.save(
        str(HERE / "operators-answers.nd"), given | {f"out{k}": a for k, a in enumerate(answers)}
    )


mlp()
symbol_child()
arrays()
operators()
