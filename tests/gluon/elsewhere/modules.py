"""A program for MXNet 1.9.1 that trains symbols by modules; `import mxnet as mx` is all that
changes to run it here. Prints what it found, as JSON.
"""

import json
import os
import tempfile

import mxnet as mx
import numpy as np
from mxnet import sym

RNG = np.random.RandomState(5)
ROWS = RNG.normal(size=(22, 6)).astype("float32")
PICTURES = RNG.normal(size=(22, 1, 12, 12)).astype("float32")
LABELS = RNG.randint(0, 4, 22).astype("float32")
results = {}


def perceptron():
    x = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=8, name="a"), "relu")
    x = sym.BatchNorm(x, fix_gamma=False, name="bn")
    return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=4, name="b"), name="softmax")


def lenet():
    x = sym.var("data")
    for i, channels in enumerate((3, 4)):
        x = sym.Convolution(x, kernel=(3, 3), num_filter=channels, name=f"conv{i}")
        x = sym.Activation(x, act_type="tanh")
        x = sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    x = sym.FullyConnected(sym.Flatten(x), num_hidden=4, name="fc")
    return sym.SoftmaxOutput(x, name="softmax")


def numbers(params):
    return {name: array.asnumpy().tolist() for name, array in sorted(params.items())}


def start(net, shape):
    rng = np.random.RandomState(3)
    shapes, _, _ = net.infer_shape(data=shape)
    return {
        name: mx.nd.array(rng.normal(scale=0.3, size=shape))
        for name, shape in zip(net.list_arguments(), shapes, strict=True)
        if name not in ("data", "softmax_label")
    }


def train(net, data, contexts, optimizer="sgd", settings=None, **more):
    batches = mx.io.NDArrayIter(data, LABELS, 8)
    calls = []
    made = mx.mod.Module(net, context=contexts, **more)
    first = start(net, (8,) + data.shape[1:])
    settings = settings or {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}
    made.fit(
        batches,
        eval_data=mx.io.NDArrayIter(data[:9], LABELS[:9], 4),
        eval_metric=["acc", "ce"],
        optimizer=optimizer,
        optimizer_params=settings,
        arg_params=first,
        allow_missing=True,
        initializer=mx.init.One(),
        num_epoch=3,
        batch_end_callback=lambda p: calls.append(
            [p.epoch, p.nbatch, [v for _, v in p.eval_metric.get_name_value()]]
        ),
        epoch_end_callback=[
            lambda *args: calls.append([args[0], sorted(args[2]), sorted(args[3])])
        ],
        eval_end_callback=lambda p: calls.append([p.nbatch]),
    )
    args, aux = made.get_params()
    score = made.score(batches, "acc", num_batch=2)
    outs = made.predict(mx.io.NDArrayIter(data[:10], None, 8)).asnumpy().tolist()
    return made, [numbers(args), numbers(aux), calls, score, outs]


ONE, TWO = mx.cpu(), [mx.cpu(0), mx.cpu(1)]
for name, net, data in (("perceptron", perceptron(), ROWS), ("lenet", lenet(), PICTURES)):
    for kind, contexts in (("one", ONE), ("two", TWO)):
        results[name + " " + kind] = train(net, data, contexts)[1]
results["adam"] = train(perceptron(), ROWS, ONE, "adam", {"learning_rate": 0.05})[1]
results["fixed"] = train(perceptron(), ROWS, ONE, fixed_param_names=["a_weight", "b_bias"])[1]

# (Adam would begin its count of updates again in MXNet.)
made = train(perceptron(), ROWS, ONE, settings={"learning_rate": 0.1, "momentum": 0.9})[0]
# A checkpoint, with what the optimizer keeps, goes on as if nothing had been.
folder = tempfile.mkdtemp()
made.save_checkpoint(os.path.join(folder, "net"), 3, save_optimizer_states=True)
results["files"] = sorted(os.listdir(folder))
again = mx.mod.Module.load(os.path.join(folder, "net"), 3, load_optimizer_states=True)
batches = mx.io.NDArrayIter(ROWS, LABELS, 8)
again.bind(batches.provide_data, batches.provide_label)
again.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
for mod in (made, again):
    batches.reset()
    for batch in batches:
        mod.forward_backward(batch)
        mod.update()
    results["went on" if mod is made else "again"] = numbers(mod.get_params()[0])

# Step by step: other shapes, gradients of the data, gradients from outside.
made = mx.mod.Module(sym.FullyConnected(sym.var("data"), num_hidden=2, name="y"), label_names=None)
made.bind([("data", (3, 2))], inputs_need_grad=True, grad_req="add")
weights = {"y_weight": mx.nd.array([[1, 2], [3, 4]]), "y_bias": mx.nd.array([5, 6])}
made.init_params(arg_params=weights, aux_params={})
made.init_optimizer(optimizer_params={"learning_rate": 0.5, "rescale_grad": 1.0})
for n in (3, 3):
    made.forward(mx.io.DataBatch([mx.nd.arange(2 * n).reshape((n, 2))], None))
    out = made.get_outputs()[0]
    made.backward([mx.nd.ones((n, 2))])
    step = [out.asnumpy().tolist(), made.get_input_grads()[0].asnumpy().tolist()]
    made.update()
    results.setdefault("steps", []).append(step + [numbers(made.get_params()[0])])
made.forward(mx.io.DataBatch([mx.nd.ones((5, 2))], None))
results["five"] = made.get_outputs()[0].asnumpy().tolist()
results["shapes"] = [
    [list(map(list, made.data_shapes)), list(map(list, made.output_shapes))],
    [made.data_names, made.label_names, made.output_names, made.binded, made.for_training],
]
print(json.dumps(results))
