"""Attention of 8 heads beside PyTorch's: time of a pass, and peak memory against length.

    python benchmarks/attention.py                        # about two minutes
    python benchmarks/attention.py --lengths 256 --rounds 5

Two processes, one for each engine, alternate, with one thread: float32, 64 elements a head,
`scaled_dot_product_attention` and the same from products and a softmax, forward and with
gradients. The table shows each one's fastest call, in milliseconds. Peak memory is what a first
step adds to the process: results and gradients, but not its inputs. Writes
`results/attention.json`; with options, it only prints. Linux only.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "attention.json"
ENGINES = ("minihybrid", "torch")
HEADS, SIZE = 8, 64
TIMED, MEASURED = (256, 1024), (256, 512, 1024, 2048, 4096)
FORMS = [(way, mode) for way in ("operator", "causal", "composed") for mode in ("forward", "step")]


def arrays(length):
    """Query, key and value, and the gradient of the result."""
    import numpy as np

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
        return lambda: net(*inputs).wait_to_read()
    for x in inputs:
        x.attach_grad()

    def step():
        with autograd.record():
            out = net(*inputs)
        out.backward(up)
        inputs[0].grad.wait_to_read()

    return step


def theirs(length, way, mode):
    """The same for PyTorch."""
    import torch

    *inputs, up = map(torch.from_numpy, arrays(length))

    def attention(q, k, v):
        if way != "composed":
            f = torch.nn.functional.scaled_dot_product_attention
            return f(q, k, v, is_causal=way == "causal")
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(SIZE), -1) @ v

    if mode == "forward":
        return torch.inference_mode()(lambda: attention(*inputs))
    for x in inputs:
        x.requires_grad_()

    def step():
        for x in inputs:
            x.grad = None
        attention(*inputs).backward(up)

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


def serve(engine):
    """Answer requests on standard input: [what, length, way, mode]."""
    calls, make = {}, ours if engine == "minihybrid" else theirs
    for line in sys.stdin:
        what, *form = json.loads(line)
        key = tuple(form)
        if what == "memory":  # of a first call, once a short one has loaded the code
            make(64, *form[1:])()
            print(peak(make(*form)), flush=True)
            continue
        if key not in calls:
            calls[key] = make(*form)
            calls[key]()
        times = []
        while sum(times) < 0.2:
            start = time.perf_counter()
            calls[key]()
            times.append(time.perf_counter() - start)
        print(min(times), flush=True)


class Engine:
    """The process of an engine."""

    def __init__(self, name):
        from envs import python_of  # only the parent has the project's folder at hand
        from machine import limits

        # Large blocks go back to the system at once, so that a peak is a call's own.
        more = {
            "MINIHYBRID_WAIT": "1",
            "MALLOC_MMAP_THRESHOLD_": "65536",
            "MALLOC_TRIM_THRESHOLD_": "0",
        }
        self.process = subprocess.Popen(
            [python_of(name), __file__, "--engine", name],
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


def measure(lengths, measured, rounds):
    """[{length, way, mode, ours_s, torch_s}], [{length, way, mode, ours_bytes, torch_bytes}]."""
    forms = [(length, *form) for length in lengths for form in FORMS]
    engines, best = [Engine(name) for name in ENGINES], {}
    for _ in range(rounds):
        for form in forms:
            for i, engine in enumerate(engines):
                best[form, i] = min(best.get((form, i), math.inf), engine.ask("time", *form))
    columns = "length way mode ours_s torch_s".split()
    times = [dict(zip(columns, (*f, best[f, 0], best[f, 1]), strict=True)) for f in forms]
    for engine in engines:
        engine.end()
    columns, peaks = "length way mode ours_bytes torch_bytes".split(), []
    for form in [(n, way, "step") for n in measured for way in ("operator", "composed")]:
        engines = [Engine(name) for name in ENGINES]  # no memory is left from another form
        answers = [engine.ask("memory", *form) for engine in engines]
        peaks.append(dict(zip(columns, (*form, *answers), strict=True)))
        for engine in engines:
            engine.end()
    return times, peaks


def table(times, peaks):
    """The rows as text."""
    lines = [f"{'':24} {'ours, ms':>9} {'PyTorch':>9} {'ratio':>6}"]
    for row in times:
        length, way, mode, own, other = row.values()
        lines.append(
            f"{length:5} {way:9} {mode:8} {own * 1e3:9.2f} {other * 1e3:9.2f} {own / other:6.2f}"
        )
    lines.append(f"{'':24} {'ours, MB':>9} {'PyTorch':>9}")
    for row in peaks:
        length, way, mode, own, other = row.values()
        lines.append(f"{length:5} {way:9} {mode:8} {own / 1e6:9.1f} {other / 1e6:9.1f}")
    return "\n".join(lines)


def main():
    """Measure all rows and write the results, or print some of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=TIMED)
    parser.add_argument("--memory", type=int, nargs="*", default=MEASURED)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        return serve(args.engine)
    times, peaks = measure(args.lengths, args.memory, args.rounds)
    print(table(times, peaks))
    if len(sys.argv) == 1:
        from machine import describe

        results = {"machine": describe(), "times": times, "peaks": peaks}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
