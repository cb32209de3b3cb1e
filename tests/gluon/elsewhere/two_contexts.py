"""A program for MXNet 1.9.1 that trains on two contexts; `import mxnet as mx` is all that
changes to run it here. Prints what it found, as JSON.
"""

import json

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

CONTEXTS = [mx.cpu(0), mx.cpu(1)]
DATA = np.random.RandomState(7).normal(size=(32, 3)).astype("float32")
LABELS = DATA.sum(axis=1, keepdims=True) ** 2
results = {}


def train(contexts, optimizer, settings, hybridize, **more):
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="tanh"), nn.BatchNorm(), nn.Dense(1))
    net.initialize(mx.init.Constant(0.25), ctx=contexts)
    if hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), optimizer, settings, **more)
    loss_of, metric = gluon.loss.L2Loss(), mx.metric.MSE()
    batches = gluon.data.DataLoader(gluon.data.ArrayDataset(DATA, LABELS), batch_size=8)
    for data, labels in batches:
        data = gluon.utils.split_and_load(data, contexts)
        labels = gluon.utils.split_and_load(labels, contexts)
        with autograd.record():
            outs = [net(part) for part in data]
            losses = [loss_of(out, label) for out, label in zip(outs, labels, strict=True)]
        for loss in losses:
            loss.backward()
        if more:
            trainer.allreduce_grads()
            trainer.update(8)
        else:
            trainer.step(8)
        metric.update(labels, outs)
    params = [net[0].weight, net[0].bias, net[1].gamma, net[1].running_mean, net[2].weight]
    numbers = [[array.asnumpy().tolist() for array in p.list_data()] for p in params]
    return [numbers, [str(c) for c in params[0].list_ctx()], metric.get()[1]]


for name, optimizer, settings in (
    ("momentum", "sgd", {"learning_rate": 0.1, "momentum": 0.9}),
    ("adam", "adam", {"learning_rate": 0.1}),
):
    for hybridize in (False, True):
        given = optimizer, settings, hybridize
        results[name + " step" + " hybridized" * hybridize] = train(CONTEXTS, *given)
        more = {"update_on_kvstore": False}
        results[name + " update" + " hybridized" * hybridize] = train(CONTEXTS, *given, **more)

x, y = nd.ones((2, 2), ctx=CONTEXTS[0]), nd.ones((2, 2), ctx=CONTEXTS[1])
w = gluon.Parameter("w", shape=(2, 2))
w.initialize(mx.init.Constant(2), ctx=CONTEXTS)
made = [y + 1, y[0], y.copy(), y.copyto(mx.cpu(2)), nd.zeros_like(y), y.reshape((4,)), y.T]
made += [x + y, y + x, nd.concat(y, x, dim=0), nd.dot(y, x), y == x, x.as_in_context(mx.cpu(1))]
made += [w.data(), w.data(mx.cpu(1)), w.grad(mx.cpu(1)), nd.random.normal(shape=1, ctx=mx.cpu(3))]
with mx.Context(mx.cpu(1)):
    made += [nd.array([1]), nd.ones(2), w.data(), mx.np.zeros(2)]
results["contexts"] = [str(array.context) for array in made]
for contexts in ([mx.cpu(1), mx.cpu(2)], mx.cpu(3)):
    w.reset_ctx(contexts)
    results["moved to " + str(contexts)] = [str(c) for c in w.list_ctx()]
sizes = gluon.utils.split_and_load(nd.zeros((5, 1)), CONTEXTS, even_split=False)
results["split"] = [part.shape[0] for part in sizes]
try:
    w.data(mx.cpu(0))
except RuntimeError:
    results["not there"] = "RuntimeError"
print(json.dumps(results))
