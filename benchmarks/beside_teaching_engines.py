"""Nano, the reader's own engine, beside four that teach: lines, what they can do, one pass.

python benchmarks/beside_teaching_engines.py [FOLDER]

FOLDER has what you fetched: the packages `micrograd`, `minitorch` and `needle`, and the document
`autodidax.py` (github.com/jax-ml/jax, docs/). What is not there is named and left out.
- micrograd installs (`pip install micrograd`).
- minitorch and needle are homework: what their courses publish stops with an error where the
  students' lines belong, and of that name PyPI has other packages. A copy that somebody has
  filled in is needed: of minitorch all modules to the fourth, of needle the second homework,
  whose arrays are NumPy's. Their lines are those of that copy.
- autodidax is a document. Its compiled half wants the very jaxlib that it was written for, and no
  operator turns its booleans into numbers there, which relu needs; so its first two parts are
  run, on NumPy, and all of its lines are counted.

The MLP has 64 inputs, 64 hidden units and 10 outputs, and is asked about one example. Times
are processor time of one thread, the least of five.
"""

import importlib
import io
import os
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

os.environ["NUMBA_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [*sys.argv[1:2], str(ROOT / "tools"), str(ROOT / "notebooks/build")]

from lines import count

RNG = np.random.default_rng(0)
X, V, W = (RNG.normal(size=s).astype("f") for s in [(1, 64), (64, 64), (64, 10)])
B, C = np.zeros(64, "f"), np.zeros(10, "f")


def least_us(function, repeats=5):
    """Microseconds of processor time a call, without the first."""
    begin = time.perf_counter()
    function()
    function()
    calls = max(1, int(0.1 / (time.perf_counter() - begin)))
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        for _ in range(calls):
            function()
        times.append(time.process_time() - begin)
    return min(times) / calls * 1e6


def code_of(module):
    """Lines of code of a module, or of all that its package has."""
    path = Path(module.__file__)
    paths = path.parent.rglob("*.py") if path.name == "__init__.py" else [path]
    return sum(count(p.read_text(encoding="utf-8")) for p in paths)


def nano(name):
    """Lines, a call line by line, and one by its plan."""
    n = importlib.import_module(name)
    net, planned, x = n.HybridSequential(), n.HybridSequential(), n.NDArray(X)
    for block in (net, planned):
        block.add(n.Dense(64, activation="relu"), n.Dense(10))
        block.initialize(n.Xavier())
    planned.hybridize()
    return code_of(n), lambda: net(x), lambda: planned(x)


def micrograd(name):
    """Scalars, so each product is a value on the tape."""
    net, x = importlib.import_module("micrograd.nn").MLP(64, [64, 10]), X[0].tolist()
    return code_of(importlib.import_module(name)), lambda: net(x), None


def minitorch(name):
    """Its loops are compiled by Numba."""
    m = importlib.import_module(name)
    backend = m.TensorBackend(importlib.import_module("minitorch.fast_ops").FastOps)
    x, v, w, b, c = (m.tensor(a.tolist(), backend=backend) for a in (X, V, W, B, C))
    return code_of(m), lambda: (x @ v + b).relu() @ w + c, None


def needle(name):
    """Layers as in PyTorch."""
    n, nn = importlib.import_module(name), importlib.import_module("needle.nn")
    net, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), n.Tensor(X)
    return code_of(n), lambda: net(x), None


def autodidax(name):
    """No product of matrices, and no maximum: from what it has, both are made."""
    paths = [Path(p, f"{name}.py") for p in sys.path if Path(p, f"{name}.py").exists()]
    if not paths:
        raise ImportError(f"there is no {name}.py")
    text, names = paths[0].read_text(encoding="utf-8"), {"__name__": name}
    sys.modules[name] = type(sys)(name)
    with redirect_stdout(io.StringIO()):
        exec(text.partition("\n# ## Part 3")[0], names)
    mul, add, reduce_sum, greater = (names[k] for k in ("mul", "add", "reduce_sum", "greater"))

    def forward():
        h = add(reduce_sum(mul(X.T, V), 0), B)
        h = mul(h, greater(h, np.float32(0)))
        return add(reduce_sum(mul(h[:, None], W), 0), C)

    return count(text), forward, None


ENGINES = {
    "nano": (nano, "arrays, a tape, graphs, two passes, plans, two files"),
    "nano_16": (nano, "and laws, fusion, Numba, an arena, MXNet's files, kernels for a GPU"),
    "micrograd": (micrograd, "scalars and a tape"),
    "minitorch": (minitorch, "arrays, a tape, loops by Numba on CPU and GPU, convolution"),
    "needle": (needle, "arrays, a tape whose gradients are on it again, layers, optimizers"),
    "autodidax": (autodidax, "arrays, derivatives both ways, vmap, jit by XLA, control flow"),
}


def main():
    for name, (make, does) in ENGINES.items():
        try:
            lines, eager, plan = make(name)
        except ImportError as error:
            print(f"{name:10} left out: {error}")
            continue
        times = f"{least_us(eager):9.1f} us eager"
        times += f", {least_us(plan):6.1f} us by plan" if plan else " " * 19
        print(f"{name:10} {lines:5} lines, {times}  {does}")


if __name__ == "__main__":
    main()
