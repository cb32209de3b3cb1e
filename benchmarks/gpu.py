"""minihybrid on a GPU: right answers, bandwidth, products, small nets beside PyTorch.

    python benchmarks/gpu.py               # a few minutes; writes results/gpu.json
    python benchmarks/gpu.py --simulated   # anywhere: the same calls, small, not timed

Install PyTorch, or CuPy, beside minihybrid: the vendor's products and the rivals are
called through them. What is missing stays in the table, with the reason.
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import gpu_rivals
import numpy as np
from gpu_nets import NETS, answers, built, difference, step_of
from machine import describe
from text import markdown

import minihybrid as mx
from minihybrid import gluon, nd
from minihybrid.gluon import nn
from minihybrid.runtime.device import device_of

RESULTS = Path(__file__).parent / "results" / "gpu.json"
TIMED = ("mlp, batch 1", "lenet, batch 16")
REPEATS = 50


@dataclass
class Row:
    """One line of the table. `found` None: not measured, for the reason in `note`."""

    what: str
    found: float | None
    unit: str
    least: float | None = None  # the bar: found must be at least, or at most, this
    most: float | None = None
    note: str = ""

    @property
    def verdict(self):
        if self.found is None:
            return "not measured"
        if self.least is None and self.most is None:
            return ""
        high, low = self.least is not None, self.most is not None
        good = (not high or self.found >= self.least) and (not low or self.found <= self.most)
        return "passed" if good else "**missed**"

    def cells(self):
        bar = (
            f">= {self.least}"
            if self.least is not None
            else f"<= {self.most}"
            if self.most is not None
            else ""
        )
        value = "" if self.found is None else f"{self.found:.3g} {self.unit}".strip()
        return self.what, value, bar, self.verdict, self.note


class Clock:
    """Times work on a stream of the GPU by its own events."""

    def __init__(self, device, stream=None):
        self.device, self.stream = device, device.stream if stream is None else stream
        self.start, self.end = (
            device.check(device.driver.cuEventCreate(0), "timing") for _ in range(2)
        )

    def seconds(self, call):
        """The median of repeats, after one that is not counted."""
        device, cu, times_s = self.device, self.device.driver, []
        for _ in range(REPEATS + 1):
            device.check(cu.cuEventRecord(self.start, self.stream), "timing")
            call()
            device.check(cu.cuEventRecord(self.end, self.stream), "timing")
            device.check(cu.cuEventSynchronize(self.end), "timing")
            times_s.append(
                device.check(cu.cuEventElapsedTime(self.start, self.end), "timing") / 1e3
            )
        return statistics.median(times_s[1:])


def wall_seconds(call, synchronize):
    """The median time of a call and the wait for its end, as a program sees it."""
    times_s = []
    for _ in range(10 * REPEATS):
        start = time.perf_counter()
        call()
        synchronize()
        times_s.append(time.perf_counter() - start)
    return statistics.median(times_s)


# -- the parts of the table ------------------------------------------------------------
def correctness(context, nets):
    """Each net's answers, losses and trained parameters beside those of the CPU."""
    for name, net in nets.items():
        off = difference(answers(net, context), answers(net, mx.cpu()))
        yield Row(f"{name}: off the CPU", off, "", most=1e-3)


def launches(context, nets):
    """How often the driver is called by a prediction, and by a step of training."""
    device = device_of(context)
    for name, net in nets.items():
        block, data, labels = built(net, context, np.random.default_rng(3))
        step = step_of(net, block, data, labels)
        for what, call, most in (
            ("prediction", lambda b=block, x=data: b(x), 1),
            ("training step", step, None),
        ):
            call()
            before = device.n_launches
            call()
            yield Row(f"{name}: launches, {what}", device.n_launches - before, "", most=most)


class Five(gluon.HybridBlock):
    """Five operators on four arrays, which become one kernel."""

    def hybrid_forward(self, F, a, b, c, d):
        return F.relu(a * b + c) * F.sigmoid(d)


def bandwidth(context, n, clock):
    """Bytes a second of a fused kernel, as a share of a copy's on the device."""
    device, net = device_of(context), Five()
    net.hybridize()
    arrays = [nd.ones((n,), ctx=context) for _ in range(4)]
    out = net(*arrays)
    expected = 2 / (1 + np.exp(-1))
    assert np.allclose(out.asnumpy(), expected), "the fused kernel's answer is wrong"
    if clock is None:
        yield Row("5 fused operators", None, "of a copy", note="simulated")
        return
    x, y, nbytes = arrays[0].data.address, out.data.address, 4 * n
    copy = 2 * nbytes / clock.seconds(lambda: device.copy(y, x, nbytes))
    fused = 5 * nbytes / clock.seconds(lambda: net(*arrays))
    yield Row(
        "5 fused operators",
        fused / copy,
        "of a copy",
        least=0.8,
        note=f"{fused / 1e12:.2f} of {copy / 1e12:.2f} TB/s",
    )


def product(context, n, clock):
    """A float32 product of n x n, as a share of the vendor's speed."""
    net = nn.Dense(n, use_bias=False, in_units=n)
    net.initialize(mx.init.Constant(1 / n), ctx=context)
    net.hybridize()
    x = nd.ones((n, n), ctx=context)
    assert np.allclose(net(x).asnumpy(), 1, rtol=1e-4), "the product is wrong"
    what = f"float32 product, {n} x {n}"
    if clock is None:
        yield Row(what, None, "of the vendor's", note="simulated")
        return
    ours = 2 * n**3 / clock.seconds(lambda: net(x))
    try:
        call, stream, library = gpu_rivals.vendor_product(n)
    except gpu_rivals.Missing as reason:
        yield Row(
            what, None, "of the vendor's", least=0.6, note=f"{ours / 1e12:.1f} TFLOP/s; {reason}"
        )
        return
    theirs = 2 * n**3 / Clock(clock.device, stream).seconds(call)
    yield Row(
        what,
        ours / theirs,
        "of the vendor's",
        least=0.6,
        note=f"{ours / 1e12:.1f} of {theirs / 1e12:.1f} TFLOP/s ({library})",
    )


def small_nets(context, is_timed):
    """Calls of small nets, and a step of training, beside PyTorch's."""
    device = device_of(context)
    for name in TIMED:
        net = NETS[name]
        for what in ("prediction", "training step") if "lenet" in name else ("prediction",):
            title = f"{name}: {what}"
            if not is_timed:
                yield Row(title, None, "", note="simulated")
                continue
            block, data, labels = built(net, context, np.random.default_rng(3))
            call = (
                step_of(net, block, data, labels)
                if what == "training step"
                else (lambda b=block, x=data: b(x))
            )
            call()
            ours = wall_seconds(call, device.synchronize)
            yield Row(title, ours * 1e6, "us")
            yield from beside_torch(title, ours, name, what == "training step")


def beside_torch(title, ours, name, training):
    """Our time as a ratio to each of PyTorch's ways."""
    bars = {"eager": {"least": 5}, "CUDA graph": {"most": 1.2}, "reduce-overhead": {}}
    try:
        calls, synchronize = gpu_rivals.torch_calls(name, training)
    except gpu_rivals.Missing as reason:
        for way, bar in bars.items():
            yield Row(f"{title}, {way}", None, "", **bar, note=str(reason))
        return
    for way, make in calls.items():
        try:
            theirs = wall_seconds(make(), synchronize)
        except Exception as error:  # whatever a rival raises is a line of the table
            yield Row(f"{title}, {way}", None, "", note=f"{error}"[:60], **bars[way])
            continue
        ratio = theirs / ours if way == "eager" else ours / theirs
        unit = "times faster" if way == "eager" else "times its time"
        yield Row(f"{title}, {way}", ratio, unit, note=f"{theirs * 1e6:.0f} us", **bars[way])


def rows_of(context, is_timed):
    """All rows, as they are measured."""
    nets = NETS if is_timed else {name: net.small for name, net in NETS.items()}
    clock = Clock(device_of(context)) if is_timed else None
    yield from correctness(context, nets)
    yield from launches(context, nets)
    yield from bandwidth(context, 2**26 if is_timed else 2**10, clock)
    yield from product(context, 4096 if is_timed else 32, clock)
    yield from small_nets(context, is_timed)


def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--simulated", action="store_true", help="run on mx.simulated_gpu(), with small sizes"
    )
    parser.add_argument(
        "--out", type=Path, help=f"where the JSON goes; of a real GPU {RESULTS.name} in results/"
    )
    given = parser.parse_args(args)
    if not given.simulated and not mx.num_gpus():
        sys.exit(
            "NO GPU HERE: nothing was measured. benchmarks/gpu.py --simulated "
            "makes the same calls on a simulated one, without times."
        )
    context = mx.simulated_gpu() if given.simulated else mx.gpu(0)
    device = device_of(context)
    _, name = device.driver.cuDeviceGetName(256, device.handle)
    about = {"gpu": bytes(name).split(b"\0")[0].decode(), **describe()}
    print(f"# {about['gpu']}\n")
    rows = []
    for row in rows_of(context, not given.simulated):
        rows.append(row)
        print(*row.cells(), sep=" | ", flush=True)
    print(
        "\n"
        + markdown([("what", "found", "bar", "verdict", "note"), *(row.cells() for row in rows)])
    )
    out = given.out or (None if given.simulated else RESULTS)
    if out:
        out.write_text(
            json.dumps(
                {"about": about, "rows": [asdict(row) | {"verdict": row.verdict} for row in rows]},
                indent=1,
            )
        )
    return rows


if __name__ == "__main__":
    main()
