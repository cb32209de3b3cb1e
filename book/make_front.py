"""Train, export and time the network of the front page: python book/make_front.py

It writes book/front: the two files of the exported network, and `record.json` with its
accuracy and the times of one call. The network has the layers of the tour's, 64-64-10, but
people draw in more ways than the 1,438 training images show. So each epoch sees every image
moved, slanted, thickened and with noise, and besides digits that are drawn stroke by stroke
and scanned as the page scans them (book/_static/front.js). The 359 test images are read
once, at the end.

Times are the fastest of many interleaved rounds, so other programs on the machine disturb
them least. What a layer needs for an empty batch is overhead: the same Python and NumPy calls
without any arithmetic. With --times, the network stays as it is and only times are taken.
"""

import copy
import json
import math
import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from machine import describe
from minihybrid.bench import compare
from tqdm import tqdm

import minihybrid as mx
from minihybrid import autograd, nd
from minihybrid.gluon import nn

FRONT = Path(__file__).parent / "front"
SIDE, FINE, INK = 8, 32, 19.5  # dots of an image, of a drawing; the data's mean sum of ink
EPOCHS, BATCH, DRAWN = 150, 64, 1500
ROUNDS = 201


# -- drawings --------------------------------------------------------------------------
def smooth(points):
    """A curve through points: a Catmull-Rom spline, eight steps from one to the next."""
    p = np.array([points[0], *points, points[-1]], float)
    t = np.arange(0, 1, 0.125)[:, None]
    parts = [
        (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
        / 2
        for a, b, c, d in zip(p, p[1:], p[2:], p[3:], strict=False)
    ]
    return np.concatenate([*parts, p[-1:]])


def strokes_of(text):
    """The strokes of a digit in front.json: points xxyy, strokes apart by spaces."""
    return [
        smooth([(int(part[i : i + 2]), int(part[i + 2 : i + 4])) for i in range(0, len(part), 4)])
        for part in text.split()
    ]


def scan(strokes):
    """8 x 8 dots of strokes, as the page makes them: framed, centered, with `INK` in sum."""
    points = np.concatenate(strokes)
    low, high = points.min(0), points.max(0)
    wide, tall = high - low
    down = (FINE - 4.8) / max(tall, wide / 2.2, 1e-6)
    scale = np.array([min(down, 20.2 / max(wide, 1e-9)), down])
    dots = np.stack(np.meshgrid(np.arange(FINE), np.arange(FINE)), -1).reshape(-1, 1, 2) + 0.5
    far = np.full(FINE * FINE, 1e9)
    for stroke in strokes:
        placed = (stroke - (low + high) / 2) * scale + FINE / 2
        a, d = placed[:-1], np.diff(placed, axis=0)
        along = ((dots - a) * d).sum(-1) / np.maximum((d * d).sum(-1), 1e-12)
        gap = dots - a - along.clip(0, 1)[..., None] * d
        far = np.minimum(far, np.sqrt((gap * gap).sum(-1)).min(1))
    thin, thick = 1.5, 3.6
    for _ in range(8):
        radius = (thin + thick) / 2
        cover = (radius - far + 0.5).clip(0, 1)
        thin, thick = (radius, thick) if cover.sum() / 16 < INK else (thin, radius)
    block = FINE // SIDE
    return cover.reshape(SIDE, block, SIDE, block).mean((1, 3))


def drawn(samples, n, rng):
    """n images of digits in random hands, and which digits they are."""
    labels, images = rng.integers(0, 10, n), []
    for label in tqdm(labels, "drawing", leave=False):
        strokes = strokes_of(samples[label])
        turn, slant, wave = rng.normal(0, [0.12, 0.22, 2.2])
        move = np.array(
            [[math.cos(turn), slant - math.sin(turn)], [math.sin(turn), math.cos(turn)]]
        )
        move = move @ np.diag(rng.uniform(0.7, 1.3, 2))
        phase, beat = rng.uniform(0, 6.3), rng.uniform(0.04, 0.12)
        images.append(
            scan([s @ move.T + wave * np.sin(beat * s[:, ::-1] + phase) for s in strokes])
        )
    return np.array(images, "float32"), labels


def moved(images, rng):
    """Images at other places, slants, sizes and thicknesses, with noise."""
    n = len(images)
    turn, slant = rng.normal(0, 0.1, n), rng.normal(0, 0.15, n)
    size = rng.uniform(0.88, 1.15, (2, n))
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    x, y = x.ravel()[None], y.ravel()[None]
    cos, sin = np.cos(turn)[:, None], np.sin(turn)[:, None]
    shift = rng.normal(0, 0.25, (2, n, 1))
    u = (cos * x - sin * y + slant[:, None] * y) * size[0][:, None] + shift[0]
    v = (sin * x + cos * y) * size[1][:, None] + shift[1]
    u, v = (np.clip(c + (SIDE - 1) / 2, 0, SIDE - 1.001) for c in (u, v))
    left, top = u.astype(int), v.astype(int)
    right, down = u - left, v - top
    rows = np.arange(n)[:, None]
    pixels = (
        images[rows, top, left] * (1 - right) * (1 - down)
        + images[rows, top, left + 1] * right * (1 - down)
        + images[rows, top + 1, left] * (1 - right) * down
        + images[rows, top + 1, left + 1] * right * down
    )
    pixels = pixels.clip(0, 1) ** rng.uniform(0.7, 1.4, (n, 1)) + rng.normal(0, 0.03, pixels.shape)
    return pixels.clip(0, 1).astype("float32").reshape(images.shape)


# -- the network -----------------------------------------------------------------------
def make_net():
    net = nn.HybridSequential(prefix="front_")
    with net.name_scope():
        net.add(nn.Dense(64, in_units=64), nn.Activation("relu"), nn.Dense(10, in_units=64))
    return net


def train(samples):
    """The trained network, and how many of the test images it reads."""
    rng = np.random.default_rng(0)
    mx.random.seed(0)
    (train_x, train_y), (test_x, test_y) = mx.datasets.digits()
    images, labels = train_x.asnumpy(), train_y.asnumpy()
    pen, digits = drawn(samples, 4 * DRAWN, rng)
    net = make_net()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.003})
    loss_fn = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    for epoch in tqdm(range(EPOCHS), "training", leave=False):
        trainer.set_learning_rate(0.003 * (1 + math.cos(math.pi * epoch / EPOCHS)) / 2 + 1e-5)
        some = rng.choice(len(pen), DRAWN, replace=False)
        x = np.concatenate([moved(images, rng), pen[some]]).reshape(-1, SIDE * SIDE)
        y = np.concatenate([labels, digits[some]])
        order = rng.permutation(len(x))[: len(x) // BATCH * BATCH].reshape(-1, BATCH)
        for part in order:
            with autograd.record():
                loss = loss_fn(net(nd.array(x[part])), nd.array(y[part]))
            loss.backward()
            trainer.step(BATCH)
    right = int((net(test_x.reshape((-1, 64))).argmax(axis=1) == test_y).sum().item())
    return net, right, len(test_y)


def times(net):
    """Microseconds of one call on one image: both ways, and of each layer line by line."""
    one = mx.datasets.digits()[1][0][:1].reshape((1, 64))
    eager, hybrid = copy.deepcopy(net), copy.deepcopy(net)
    eager.hybridize(False)
    hybrid.hybridize()
    fast = fastest({"eager": lambda: eager(one), "hybrid": lambda: hybrid(one)})
    layers, value, empty = [], one, one[:0]
    for name, layer in zip(("dense0", "relu", "dense1"), eager, strict=True):
        pair = fastest({"us": partial(layer, value), "overhead_us": partial(layer, empty)})
        pair["overhead_us"] = min(pair["overhead_us"], pair["us"])
        layers.append({"name": name, **pair})
        value, empty = layer(value), layer(empty)
    plan = next(iter(hybrid.plans.values()))
    return {
        "eager_us": fast["eager"],
        "hybrid_us": fast["hybrid"],
        "layers": layers,
        "n_kernels": plan.n_kernels,
    }


def fastest(functions):
    """Microseconds of the fastest round of each, in interleaved rounds."""
    timings = compare(functions, repeats=ROUNDS, min_time_s=0.002).timings
    return {name: round(min(t.times_s) * 1e6, 2) for name, t in timings.items()}


def main():
    old = FRONT / "record.json"
    if "--times" in sys.argv:
        record = json.loads(old.read_text(encoding="utf-8"))
        net = make_net()
        for name, values in nd.load(str(FRONT / "digits-0000.params")).items():
            net.collect_params()[name.removeprefix("arg:")].set_data(values)
    else:
        samples = json.loads((FRONT / "samples.json").read_text(encoding="utf-8"))
        net, right, of = train(samples)
        net(nd.zeros((1, 64)))
        net.export(str(FRONT / "digits"))
        n = sum(p.data().size for p in net.collect_params().values())
        record = {"right": right, "of": of, "n_parameters": n}
    record |= {**times(net), "machine": describe()}
    old.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record))


if __name__ == "__main__":
    main()
