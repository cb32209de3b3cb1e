"""Attention and a language model beside PyTorch's, eager and compiled: times, and peak memory.

    python benchmarks/attention.py                        # about eight minutes
    python benchmarks/attention.py --lengths 256 --rounds 1 --memory

Three processes alternate, with one thread: minihybrid, PyTorch and `torch.compile`. Attention is
float32 with 8 heads of 64 elements: `scaled_dot_product_attention`, and the same from products and
a softmax, forward and with gradients. The model is chapter 35's: a training step of 8 windows of
128 characters, and a step of writing with a cache (`language_model.py`). All answers are compared
first. The table shows each one's fastest call, in milliseconds. Peak memory is what a step adds to
the process: results and gradients, but not its inputs. Writes `results/attention.json`; with
options, it only prints. Linux only.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from language_model import ANSWERS, WINDOW, store
from language_model import ours as our_model
from language_model import theirs as their_model

RESULTS = Path(__file__).parent / "results" / "attention.json"
ENGINES = {"minihybrid": "minihybrid", "torch": "torch", "compiled": "torch"}  # -> its Python
HEADS, SIZE = 8, 64
LENGTHS = (256, 512, 1024, 2048, 4096)
MOST = 1024  # rows of a matrix of scores that's timed: longer ones take minutes
WAYS = ("operator", "causal", "composed")


def arrays(length):
    """Query, key and value, and the gradient of the result."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, HEADS, length, SIZE), dtype="f4") for _ in range(4)]


def ours(length, way, mode):
    """A function of no arguments that waits for its result."""
    import minihybrid as mx
    from minihybrid import autograd, nd

    class Attention(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, q, k, v):
            if way != "composed":
                return F.scaled_dot_product_attention(q, k, v, is_causal=way == "causal")
            scores = F.batch_dot(q, k, transpose_b=True) / math.sqrt(SIZE)
            return F.batch_dot(F.softmax(scores, axis=-1), v)

    net = Attention()
    net.hybridize()
    *inputs, up = map(nd.array, arrays(length))
    if mode == "forward":
        return lambda: waited(net(*inputs))
    for x in inputs:
        x.attach_grad()

    def step():
        with autograd.record():
            out = net(*inputs)
        out.backward(up)
        return waited(inputs[0].grad)

    return step


def waited(x):
    x.wait_to_read()
    return x


def theirs(length, way, mode, compiled):
    """The same for PyTorch."""
    import torch

    *inputs, up = map(torch.from_numpy, arrays(length))

    def attention(q, k, v):
        if way != "composed":
            f = torch.nn.functional.scaled_dot_product_attention
            return f(q, k, v, is_causal=way == "causal")
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(SIZE), -1) @ v

    if compiled:
        attention = torch.compile(attention, dynamic=False)

    if mode == "forward":
        return torch.inference_mode()(lambda: attention(*inputs))
    for x in inputs:
        x.requires_grad_()

    def step():
        for x in inputs:
            x.grad = None
        attention(*inputs).backward(up)
        return inputs[0].grad

    return step


def peak(call):
    """Bytes that a call adds to the process at most."""

    def status(name):
        text = Path("/proc/self/status").read_text()
        return int(text.partition(f"{name}:")[2].split()[0]) * 1024

    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = status("VmRSS")
    call()
    return status("VmHWM") - before


def made(engine, stored, length, way, mode):
    """The function that an engine calls for a form."""
    own, more = engine == "minihybrid", (engine == "compiled",)
    if way == "model":
        return our_model(stored, mode) if own else their_model(stored, mode, *more)
    return ours(length, way, mode) if own else theirs(length, way, mode, *more)


def serve(engine, stored):
    """Answer requests on standard input: [what, length, way, mode]."""
    calls = {}
    for line in sys.stdin:
        what, *form = json.loads(line)
        key = tuple(form)
        if what == "memory":  # of a call, once a call has loaded and compiled the code
            made(engine, stored, *(form if engine == "compiled" else (64, *form[1:])))()
            print(peak(made(engine, stored, *form)), flush=True)
            continue
        if key not in calls:
            calls[key] = made(engine, stored, *form)
            first = calls[key]()
        if what == "answer":
            first = first.asnumpy() if engine == "minihybrid" else first.numpy()
            print(json.dumps(first.ravel()[:1000].astype(float).tolist()), flush=True)
            continue
        times = []
        while sum(times) < 0.2:
            start = time.perf_counter()
            calls[key]()
            times.append(time.perf_counter() - start)
        print(min(times), flush=True)


class Engine:
    """The process of an engine."""

    def __init__(self, name, stored):
        from envs import python_of  # only the parent has the project's folder at hand
        from machine import limits

        # Large blocks go back to the system at once, so that a peak is a call's own.
        more = {
            "MINIHYBRID_WAIT": "1",
            "MALLOC_MMAP_THRESHOLD_": "65536",
            "MALLOC_TRIM_THRESHOLD_": "0",
        }
        self.process = subprocess.Popen(
            [python_of(ENGINES[name]), __file__, "--engine", name, "--stored", stored],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | limits(1) | more,
        )

    def ask(self, *request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.communicate()


def forms_of(lengths):
    """[(length, way, mode), ...] that are timed; `way` is `model` for the language model."""
    rows = [(n, way) for n in lengths for way in WAYS if way != "composed" or n <= MOST]
    forms = [(*row, mode) for row in rows for mode in ("forward", "step")]
    return forms + [(WINDOW, "model", mode) for mode in ANSWERS]


def compare(form, engines):
    """Make all engines compute a form, and end if their answers differ."""
    first, *others = (np.array(engine.ask("answer", *form)) for engine in engines)
    for other in others:
        most = ANSWERS.get(form[2], 1e-3) * max(1, abs(first).max())
        if not np.allclose(first, other, rtol=0, atol=most):
            raise SystemExit(f"{form}: the answers differ by {abs(first - other).max()}")


def yardstick(rounds=20):
    """Times of a fixed matrix product, which show whether the machine was busy."""
    a, times, until = np.ones((512, 512), "f4"), [], time.perf_counter() + 1
    while time.perf_counter() < until:  # idle processors begin slowly
        a @ a
    for _ in range(rounds):
        start = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - start)
    return times


def measure(lengths, measured, rounds, stored):
    """[{length, way, mode, and seconds of each engine}], and the same with peak bytes."""
    forms, best = forms_of(lengths), {}
    engines = {name: Engine(name, stored) for name in ENGINES}
    for form in forms:
        compare(form, engines.values())
    for _ in range(rounds):
        for form in forms:
            for name, engine in engines.items():
                best[form, name] = min(best.get((form, name), math.inf), engine.ask("time", *form))
    for engine in engines.values():
        engine.end()
    times = [row(form, {name: best[form, name] for name in ENGINES}) for form in forms]
    peaks = []
    for form in [(n, way, "step") for n in measured for way in ("operator", "composed")]:
        engines = {name: Engine(name, stored) for name in ENGINES}  # no memory from another form
        peak_of = {name: engine.ask("memory", *form) for name, engine in engines.items()}
        peaks.append(row(form, peak_of))
        for engine in engines.values():
            engine.end()
    return times, peaks


def row(form, peak_of):
    return dict(zip(("length", "way", "mode"), form, strict=True)) | peak_of


def table(times, peaks):
    """The rows as text."""
    names = "".join(f"{name:>11}" for name in ENGINES)
    lines = []
    for rows, unit, scale in ((times, "ms", 1e3), (peaks, "MB", 1e-6)):
        lines.append(f"{'':23}{names}  {unit}" if rows else "")
        for one in rows:
            cells = "".join(f"{one[name] * scale:11.2f}" for name in ENGINES)
            lines.append(f"{one['length']:5} {one['way']:8} {one['mode']:8}" + cells)
    return "\n".join(lines)


def main():
    """Measure all rows and write the results, or print some of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--memory", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    parser.add_argument("--stored", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        return serve(args.engine, args.stored)
    start, before = time.perf_counter(), yardstick()
    with tempfile.TemporaryDirectory() as folder:
        stored = str(Path(folder) / "model.npz")
        store(stored)
        times, peaks = measure(args.lengths, args.memory, args.rounds, stored)
    print(table(times, peaks))
    print(f"{time.perf_counter() - start:.0f} s")
    if len(sys.argv) == 1:
        from machine import describe

        yardsticks = [before, yardstick()]
        report = {"machine": describe(), "yardstick_s": yardsticks, "times": times, "peaks": peaks}
        RESULTS.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
