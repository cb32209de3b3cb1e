"""A seeded program repeats bit for bit, whatever the cache of kernels holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from marks import external

import minihybrid as mx

ROOT = Path(mx.__file__).parent.parent
HEAD = """
import hashlib
import numpy as np
import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.gluon import nn, rnn

mx.random.seed(7)
rng = np.random.default_rng(0)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
loss_of.hybridize()

def train(net, batches, optimizer, epochs=3, **settings):
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), optimizer, settings)
    for epoch in range(epochs):
        trainer.set_learning_rate(settings["learning_rate"] / (epoch + 1))
        losses = []
        for k, (x, y) in enumerate(batches):
            with autograd.record():
                loss = loss_of(net(x, 1 + 0.01 * k), y)
            loss.backward()
            trainer.step(len(x))
            losses.append(loss.mean().item())
        print(optimizer, sum(losses).hex(), net(x[:5], 1.0).sum().item().hex())
    values = b"".join(p.data().asnumpy().tobytes() for p in net.collect_params().values())
    print("parameters", hashlib.sha256(values).hexdigest())
    plans = [*net.plans.values(), *loss_of.plans.values()]
    print("plans", hashlib.sha256("".join(p.source for p in plans).encode()).hexdigest())

class Images(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2D(6, 3, padding=1), nn.BatchNorm()
        self.pool, self.drop = nn.MaxPool2D(2), nn.Dropout(0.3)
        self.left, self.right, self.out = nn.Dense(20), nn.Dense(20), nn.Dense(10)

    def hybrid_forward(self, F, x, rate):
        h = self.drop(self.pool(F.relu(self.norm(self.conv(x))))) * rate
        a, b = self.left(h), self.right(h)  # gradients that meet
        return self.out(F.tanh(a) + b + a * b)

images, labels = rng.normal(size=(70, 1, 8, 8)).astype("f"), rng.integers(0, 10, 70).astype("f")
data = gluon.data.ArrayDataset(images, labels).transform_first(
    lambda x: nd.array(x) + nd.random.normal(scale=0.1, shape=x.shape))
train(Images(), gluon.data.DataLoader(data, 16, shuffle=True, num_workers=2),
      "adam", learning_rate=0.01)
"""
MORE = """
class Words(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(20, 12), rnn.LSTM(9, layout="NTC")
        self.norm, self.out = nn.LayerNorm(), nn.Dense(5)

    def hybrid_forward(self, F, x, rate):
        return self.out(self.norm(self.lstm(self.words(x)))) * rate

words, following = nd.array(rng.integers(0, 20, (40, 6))), nd.array(rng.integers(0, 5, 40))
batches = [(words[i : i + 10], following[i : i + 10]) for i in range(0, 40, 10)]
train(Words(), batches, "rmsprop", learning_rate=0.01)

class Wide(gluon.HybridBlock):  # work that threads share
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(512, activation="relu"), nn.Dense(10)

    def hybrid_forward(self, F, x, rate):
        return self.second(self.first(x)) * rate

features = nd.array(rng.normal(size=(300, 256))), nd.array(rng.integers(0, 10, 300))
train(Wide(), [features] * 3, "sgd", learning_rate=0.05, momentum=0.9)

data = mx.sym.var("data")
symbol = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(data, num_hidden=10), name="softmax")
module = mx.mod.Module(symbol)
module.fit(mx.io.NDArrayIter(images.reshape(70, -1), labels, 14, shuffle=True), num_epoch=2)
print(hashlib.sha256(b"".join(v.asnumpy().tobytes() for _, v in sorted(
    module.get_params()[0].items()))).hexdigest())
"""


def printed(program, cache, **variables):
    """What a program prints in a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k != "MINIHYBRID_WAIT"}
    environment["MINIHYBRID_NUM_THREADS"] = "2"  # kernels for one thread have other source
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=environment | {"MINIHYBRID_CACHE_DIR": str(cache), **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("program", [HEAD, *external(HEAD + MORE)])
def test_a_seeded_program_repeats_bit_for_bit(program, tmp_path):
    """Kernels are compiled, or read from the cache; sets of names have another order."""
    first = printed(program, tmp_path, PYTHONHASHSEED="0")
    assert list(tmp_path.iterdir()) and first.count("parameters") >= 1
    for more in (
        {"PYTHONHASHSEED": "1"},
        {"MINIHYBRID_WAIT": "1", "PYTHONHASHSEED": "2"},
        {"MINIHYBRID_NUM_THREADS": "3"},
    ):
        assert printed(program, tmp_path, **more) == first
