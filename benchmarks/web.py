"""Nets in WebAssembly beside onnxruntime-web and Python: sizes and times.

    python benchmarks/web.py              # needs node and npm (Node.js)

npm's onnxruntime-web has an environment of its own. Prints a table; `--keep` writes it to
results/web.md. A time is the least of all calls in a second, one thread, in Node.js; a browser
has the same compiler. Sizes are those of all files that a page loads; differences are parts of
the largest number of an answer.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from envs import node_package
from text import markdown

from minihybrid import init, nd
from minihybrid.gluon import nn
from minihybrid.gluon.model_zoo import vision

HERE = Path(__file__).parent
HEAD = ("net", "engine", "kB", "microseconds", "largest difference from Python")


def chain(*layers):
    """A net of layers, one after the other."""
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def nets():
    """(name, net, shape of its input)."""
    lenet = chain(
        nn.Conv2D(20, 5, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(50, 5, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Dense(500, activation="relu"),
        nn.Dense(10),
    )
    yield "mlp", chain(nn.Dense(128, activation="relu"), nn.Dense(10)), (1, 64)
    yield "lenet", lenet, (1, 1, 28, 28)
    yield "mobilenet0_25", vision.mobilenet0_25(), (1, 3, 64, 64)


def least(call, seconds=1.0):
    """The least time of a call, in microseconds."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best


def kilobytes(*files):
    """The size of files."""
    return round(sum(Path(f).stat().st_size for f in files) / 1000)


def rows(name, net, shape, ort, folder):
    """The lines of one net."""
    x = nd.array(np.random.default_rng(0).normal(size=shape), dtype="float32")
    net.initialize(init.Xavier("gaussian", "in", 2))  # deep answers vanish with smaller ones
    net.hybridize()
    expected = net(x).asnumpy()
    path = str(folder / name)
    jobs = [[format, net.export(path, format=format)] for format in ("wasm",)]
    jobs.append([str(ort), net.export(path, format="onnx")])
    files = [ort / f"dist/ort{end}" for end in (".wasm.bundle.min.mjs", "-wasm-simd-threaded.wasm")]
    numbers = x.asnumpy().ravel().tolist()
    requests = [[*job, numbers, shape] for job in jobs]
    (folder / "jobs.json").write_text(json.dumps(requests))
    script = ["node", HERE / "run_web.mjs", folder / "jobs.json", folder / "answers.json"]
    subprocess.run(script, check=True)
    yield name, "minihybrid, Python", "", round(least(lambda: net(x).asnumpy())), ""
    answers = json.loads((folder / "answers.json").read_text())
    for (engine, own), answer in zip(jobs, answers, strict=True):
        ours = engine == "wasm"
        label = f"minihybrid, {engine}" if ours else "onnxruntime-web, wasm"
        size = kilobytes(*own, *([] if ours else files))
        if isinstance(answer, str):
            yield name, label, size, answer, ""
            continue
        actual = np.array(answer[1], "float64").reshape(expected.shape)
        yield (
            name,
            label,
            size,
            round(answer[0]),
            f"{np.abs(actual - expected).max() / np.abs(expected).max():.1e}",
        )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", action="store_true", help="write results/web.md, too")
    options = parser.parse_args()
    os.environ["MINIHYBRID_WAIT"] = "1"
    ort = node_package("onnxruntime-web")
    with tempfile.TemporaryDirectory() as folder:
        table = [r for net in nets() for r in rows(*net, ort, Path(folder))]
    text = markdown([HEAD, *([str(cell) for cell in row] for row in table)])
    print(text)
    if options.keep:
        (HERE / "results/web.md").write_text(f"Made by `benchmarks/web.py`.\n\n{text}\n")


if __name__ == "__main__":
    main()
