"""Write this folder's files with MXNet 1.9.1: int8 graphs, and the answers of all their nodes.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):
    benchmarks/envs/mxnet/bin/python tests/golden/int8/make_golden.py

MXNet trains a small net on the digits and quantizes it in three ways; `accuracy.json` has the
number of test images that each recognizes. `operators` is a graph of single operators.
Processors without VNNI round differently: `vnni` in `accuracy.json` says what this one has.
"""

import json
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.contrib.quantization import quantize_net_v2
from mxnet.gluon import nn

HERE = Path(__file__).parent
DIGITS = HERE.parents[2] / "minihybrid" / "data" / "digits.npz"
WAYS = {  # name -> the arguments of the quantization
    "naive": dict(calib_mode="naive", quantize_granularity="tensor-wise"),
    "channels": dict(calib_mode="naive", quantize_granularity="channel-wise"),
    "dynamic": dict(calib_mode="none", quantize_granularity="tensor-wise"),
}
SHOWN = 4  # images whose values are stored for every node


class Net(gluon.HybridBlock):
    """Each of the patterns that MXNet fuses, and of the layers that it quantizes."""

    def __init__(self):
        super().__init__(prefix="digits_")
        with self.name_scope():
            self.stem = nn.HybridSequential()
            self.stem.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"))
            self.pool = nn.MaxPool2D(2)
            self.body = nn.HybridSequential()
            self.body.add(nn.Conv2D(8, 3, padding=1, use_bias=False), nn.BatchNorm())
            self.short = nn.Conv2D(8, 1)
            self.side = nn.Conv2D(8, 1, groups=2, activation="relu")
            self.mean = nn.AvgPool2D(3, 1)
            self.hidden = nn.Dense(32, activation="relu")
            self.out = nn.Dense(10)

    def hybrid_forward(self, F, x):
        x = self.pool(self.stem(x))
        x = F.Activation(self.body(x) + self.short(x), act_type="relu")
        x = self.mean(F.concat(x, self.side(x), dim=1))
        return self.out(self.hidden(x))


def digits(part):
    with np.load(DIGITS) as file:
        return file[f"{part}_x"][:, None].astype("float32") / 16, file[f"{part}_y"]


def trained():
    """The net after a few epochs, in float32."""
    mx.random.seed(1)
    np.random.seed(1)
    net, loss = Net(), gluon.loss.SoftmaxCrossEntropyLoss()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(*digits("train")), 64, shuffle=True)
    for _ in range(20):
        for x, y in data:
            with autograd.record():
                error = loss(net(x), y)
            error.backward()
            trainer.step(len(x))
    return net


def write(name, symbol, values, x):
    """A graph, and what each of its nodes answers for some images."""
    symbol.save(str(HERE / f"{name}-symbol.json"))
    inside = symbol.get_internals()
    values = {**values, "data": nd.array(x[:SHOWN])}
    args, states = (
        {n: values[n] for n in names}
        for names in (inside.list_arguments(), inside.list_auxiliary_states())
    )
    outs = inside.bind(mx.cpu(), args, grad_req="null", aux_states=states).forward()
    nd.save(str(HERE / f"{name}.nd"), dict(zip(inside.list_outputs(), outs, strict=True)))


def right(net, x, y):
    """The number of images that a net recognizes."""
    return int((net(nd.array(x)).argmax(axis=1).asnumpy() == y).sum())


def quantized(net):
    """Write the net in all ways."""
    x, y = digits("test")
    calib = gluon.data.DataLoader(gluon.data.ArrayDataset(*digits("train")), 64)
    counts = {"images": len(y), "float32": right(net, x, y)}
    for name, way in WAYS.items():
        data = calib if way["calib_mode"] != "none" else None
        shapes = None if data else [mx.io.DataDesc("data", (64, 1, 8, 8))]
        small = quantize_net_v2(
            net, quantized_dtype="auto", calib_data=data, data_shapes=shapes, **way
        )
        counts[name] = right(small, x, y)
        small.export(str(HERE / name))
        values = nd.load(str(HERE / f"{name}-0000.params"))
        values = {key.partition(":")[2]: value for key, value in values.items()}
        write(name, mx.sym.load(str(HERE / f"{name}-symbol.json")), values, x)
    flags = Path("/proc/cpuinfo").read_text()
    counts["vnni"] = "avx512_vnni" in flags or "avx_vnni" in flags
    (HERE / "accuracy.json").write_text(json.dumps(counts) + "\n")


def operators():
    """Single operators on int8, uint8 and both, with calibrated ranges and without."""
    data, contrib = mx.sym.var("data"), mx.sym.contrib
    signed = contrib.quantize_v2(data, out_type="auto", name="signed")
    unsigned = contrib.quantize_v2(
        data, out_type="auto", min_calib_range=0, max_calib_range=0.8, name="unsigned"
    )
    sums = [
        contrib.quantized_elemwise_add(a[0], b[0], a[1], a[2], b[1], b[2], name=name)
        for a, b, name in ((signed, signed, "twice"), (unsigned, unsigned, "more"))
    ]
    known = contrib.quantized_elemwise_add(
        signed[0],
        unsigned[0],
        signed[1],
        signed[2],
        unsigned[1],
        unsigned[2],
        min_calib_range=-1.5,
        max_calib_range=1.5,
        name="known",
    )
    joined = contrib.quantized_concat(
        signed[0],
        unsigned[0],
        signed[1],
        signed[2],
        unsigned[1],
        unsigned[2],
        dim=1,
        num_args=2,
        name="joined",
    )
    outs = [
        contrib.requantize(*sums[0], name="words"),
        contrib.requantize(
            *sums[1], out_type="auto", min_calib_range=0, max_calib_range=1.2, name="uwords"
        ),
        contrib.quantized_act(*signed, act_type="relu", name="act"),
        contrib.quantized_flatten(*known, name="flat"),
        contrib.quantized_pooling(*joined, kernel=(2, 2), pool_type="avg", name="mean"),
    ]
    outs = [contrib.dequantize(*out, name=f"float{i}") for i, out in enumerate(outs)]
    x = np.random.RandomState(2).uniform(-1, 1, (SHOWN, 2, 3, 3)).astype("float32")
    write("operators", mx.sym.Group(outs), {}, x)


if __name__ == "__main__":
    quantized(trained())
    operators()
