"""Eager convolutions beside MXNet's: forward, and both gradients, without hybridize.

    python benchmarks/eager_convolutions.py                     # some minutes
    python benchmarks/eager_convolutions.py --only densenet --rounds 3

Two processes, one for each engine, run the same Gluon program in alternation; the table
shows each one's fastest round and their ratio. With one thread, the default, these are
seconds of the processor, which other programs on the machine change little; with more
threads, of the clock, and the table is only printed. Each row goes into
`results/eager_convolutions.json`, so that a part can be measured again.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from envs import python_of
from machine import describe, limits

RESULTS = Path(__file__).parent / "results" / "eager_convolutions.json"
ENGINES = ("minihybrid", "mxnet")

# name -> (channels, size), filters, kernel, stride, pad, groups
LAYERS = {
    "LeNet 5x5, 1 channel": ((1, 28, 28), 20, 5, 1, 0, 1),
    "LeNet 5x5": ((20, 12, 12), 50, 5, 1, 0, 1),
    "DenseNet 1x1": ((256, 28, 28), 128, 1, 1, 0, 1),
    "DenseNet 3x3": ((128, 24, 24), 32, 3, 1, 1, 1),
    "DenseNet 3x3, small": ((224, 6, 6), 32, 3, 1, 1, 1),
    "ResNet-18 3x3, 64": ((64, 56, 56), 64, 3, 1, 1, 1),
    "ResNet-18 3x3, 512": ((512, 7, 7), 512, 3, 1, 1, 1),
    "ResNet-18 3x3, stride 2": ((64, 56, 56), 128, 3, 2, 1, 1),
    "ResNet-18 7x7, stride 2": ((3, 112, 112), 64, 7, 2, 3, 1),
    "VGG 3x3": ((128, 56, 56), 128, 3, 1, 1, 1),
    "AlexNet 11x11, stride 4": ((3, 224, 224), 64, 11, 4, 2, 1),
    "depthwise 3x3": ((128, 28, 28), 128, 3, 1, 1, 128),
    "grouped 3x3": ((128, 28, 28), 128, 3, 1, 1, 4),
    "1-D": ((64, 256), 64, 5, 1, 2, 1),
    "3-D": ((16, 8, 16, 16), 32, 3, 1, 1, 1),
}
BATCHES = (1, 32, 128)
# A training step of a small DenseNet, in which other operators count as well.
NET, NET_BATCH = "DenseNet training step", 32


def layer(mx, name, batch):
    """{"forward": function, "both": function} of a layer; `both` includes the gradients."""
    (channels, *size), filters, kernel, stride, pad, groups = LAYERS[name]
    n, random = len(size), importlib.import_module("numpy").random.RandomState(0)
    x = mx.nd.array(random.standard_normal((batch, channels, *size)))
    weight = mx.nd.array(random.standard_normal((filters, channels // groups, *[kernel] * n)))
    more = {"kernel": (kernel,) * n, "stride": (stride,) * n, "pad": (pad,) * n}

    def forward():
        return mx.nd.Convolution(
            x, weight, no_bias=True, num_filter=filters, num_group=groups, **more
        )

    def both():
        with mx.autograd.record():
            out = forward()
        out.backward()
        mx.nd.waitall()

    def predict():
        forward().wait_to_read()

    def attached(function):
        def prepared():
            x.attach_grad()
            weight.attach_grad()
            return function

        return prepared

    return {"forward": lambda: predict, "both": attached(both)}


def densenet(mx):
    """A training step of a net of dense blocks, 24 x 24."""
    nn, nd = mx.gluon.nn, mx.nd

    class Dense(nn.Block):
        def __init__(self, count, growth):
            super().__init__()
            self.net = nn.Sequential()
            for _ in range(count):
                self.net.add(inner(growth, 3, 1))

        def forward(self, x):
            for block in self.net:
                x = nd.concat(x, block(x), dim=1)
            return x

    def inner(filters, kernel, pad, *more):
        net = nn.Sequential()
        net.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(filters, kernel, padding=pad))
        net.add(*more)
        return net

    net = nn.Sequential()
    net.add(nn.Conv2D(64, 7, padding=3, strides=2), nn.BatchNorm(), nn.Activation("relu"))
    net.add(nn.MaxPool2D(3, 2, 1))
    for filters in (96, 112):
        net.add(Dense(4, 32), inner(filters, 1, 0, nn.AvgPool2D(2, 2)))
    net.add(Dense(4, 32), nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05})
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    random = importlib.import_module("numpy").random.RandomState(0)
    x = mx.nd.array(random.standard_normal((NET_BATCH, 1, 96, 96)))
    label = mx.nd.array(random.randint(0, 10, NET_BATCH))

    def both():
        with mx.autograd.record():
            value = loss(net(x), label)
        value.backward()
        trainer.step(NET_BATCH)
        mx.nd.waitall()

    return {"both": lambda: both}


# -- the child process: a request a line, (name, batch, mode) -> seconds -------------------
def serve(engine):
    """Time what is requested until the input ends; each request is a case's name and batch."""
    mx = importlib.import_module(engine)
    clock = time.process_time if os.environ["OMP_NUM_THREADS"] == "1" else time.perf_counter
    case, functions = None, {}
    for line in sys.stdin:
        *request, mode = json.loads(line)
        if case != request:
            functions = densenet(mx) if request[0] == NET else layer(mx, *request)
            functions = {m: prepare() for m, prepare in functions.items()}
            case = request
            for function in functions.values():
                function()
        function, times = functions[mode], []
        until = time.perf_counter() + 0.1
        while not times or time.perf_counter() < until and len(times) < 50:
            start = clock()
            function()
            times.append(clock() - start)
        print(json.dumps(min(times)), flush=True)


class Engine:
    """The process of an engine."""

    def __init__(self, name, n_threads):
        command = [python_of(name), __file__, "--engine", name]
        self.process = subprocess.Popen(
            command,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | limits(n_threads),
        )

    def time(self, *request):
        """Seconds of the fastest call of one turn."""
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.communicate()


def measure(cases, rounds, n_threads):
    """(name, batch, mode), seconds of ours, of MXNet's, for each case as it is measured."""
    engines = [Engine(name, n_threads) for name in ENGINES]
    for name, batch in cases:
        for mode in ("both",) if name == NET else ("forward", "both"):
            turns = [[e.time(name, batch, mode) for e in engines] for _ in range(rounds)]
            yield (name, batch, mode), *map(min, zip(*turns, strict=True))
    for engine in engines:
        engine.end()


def keep(case, ours, theirs):
    """Enter a row into the results, in the order of the cases."""
    rows = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    columns = "name batch mode ours_s mxnet_s".split()
    by_case = {(r["name"], r["batch"], r["mode"]): r for r in rows}
    by_case[case] = dict(zip(columns, (*case, ours, theirs), strict=True))
    order = [*LAYERS, NET]
    rows = sorted(by_case.values(), key=lambda r: (order.index(r["name"]), r["batch"]))
    RESULTS.write_text(json.dumps({"machine": describe(), "rows": rows}, indent=1) + "\n")


def main():
    """Measure the cases that are asked for, print their table and keep it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        return serve(args.engine)
    cases = [(name, batch) for name in LAYERS for batch in BATCHES] + [(NET, NET_BATCH)]
    cases = [c for c in cases if args.only.lower() in c[0].lower() and args.batch in (None, c[1])]
    ratios = []
    print(f"{'':28} batch  mode     ours ms  MXNet ms  ratio")
    for case, ours, theirs in measure(cases, args.rounds, args.threads):
        name, batch, mode = case
        ratios.append(ours / theirs)
        print(
            f"{name:28} {batch:5}  {mode:8}{ours * 1e3:8.2f}  {theirs * 1e3:8.2f}"
            f"  {ratios[-1]:5.2f}",
            flush=True,
        )
        if args.threads == 1:
            keep(case, ours, theirs)
    print(f"median ratio {statistics.median(ratios):.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
