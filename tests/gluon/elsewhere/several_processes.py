"""A program for MXNet 1.9.1 whose processes train together; `import mxnet as mx` is all that
changes to run it here. Each writes what it found to the folder that it is given, as JSON.
After the folder: what to do, and the settings of an optimizer.
"""

import json
import os
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

N = 16
DATA = np.random.RandomState(7).normal(size=(N, 3)).astype("float32")
LABELS = DATA.sum(axis=1, keepdims=True) ** 2

kv = mx.kv.create("dist_sync")
results = {"kind": [kv.type, kv.num_workers]}


def store():
    kv.init("w", nd.ones((2, 3)) * (kv.rank + 1))
    out = nd.zeros((2, 3))
    kv.pull("w", out=out)
    results["of rank 0"] = out.asnumpy().tolist()
    kv.push("w", [nd.ones((2, 3)) * (kv.rank + 2), nd.ones((2, 3))])
    kv.pull("w", out=out)
    results["pushed"] = out.asnumpy().tolist()
    kv.init(["3", "5"], [nd.ones(2)] * 2)
    outs = [nd.zeros(2), nd.zeros(2)]
    kv.pushpull(["3", "5"], [nd.ones(2), nd.ones(2) * kv.rank], out=outs)
    results["both"] = [o.asnumpy().tolist() for o in outs]
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    kv.push("w", nd.ones((2, 3)))
    kv.pull("w", out=out)
    results["a step"] = out.asnumpy().tolist()


def train(name, settings):
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="tanh", in_units=3), nn.Dense(1, in_units=4))
    net.initialize(mx.init.Constant(0.25))
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), name, settings, kvstore=kv)
    data, labels = DATA[kv.rank :: kv.num_workers], LABELS[kv.rank :: kv.num_workers]
    for _ in range(5):
        with autograd.record():
            loss = gluon.loss.L2Loss()(net(nd.array(data)), nd.array(labels))
        loss.backward()
        trainer.step(N)
    results[name] = [net[i].weight.data().asnumpy().tolist() for i in (0, 1)]


if sys.argv[2] == "store":  # MXNet's servers have one table of keys for all that asks
    store()
else:
    train(sys.argv[2], json.loads(sys.argv[3]))

with open(os.path.join(sys.argv[1], f"rank{kv.rank}.json"), "w") as file:
    json.dump(results, file)
