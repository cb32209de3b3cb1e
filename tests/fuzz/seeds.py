"""Good files, from which the changed ones are made: `seeds(target)` are bytes."""

import sys
from pathlib import Path

import numpy as np
from minihybrid.sym import Symbol

from minihybrid import sym
from minihybrid.core import params
from minihybrid.core.serial import tojson

sys.path.append(str(Path(__file__).parents[2] / "tools"))
from samples import CASES

GOLDEN = Path(__file__).parents[1] / "golden"


def seeds(target):
    """The bytes of good files, small ones first."""
    return sorted(SEEDS[target](), key=len)


def param_seeds():
    made = [
        params.pack_arrays([np.zeros(s, d)], ["a"])
        for s in ((), (0,), (2, 1))
        for d in params.TYPE_FLAGS
    ]
    made += [params.pack_arrays([np.ones(3, "f4")] * n) for n in (0, 2, 3)]
    files = ("dict.nd", "list.nd", "np_shape.nd", "mlp-0000.params", "mlp.parameters")
    return made + [(GOLDEN / name).read_bytes() for name in files]


def graph_seeds():
    """Every operator on its samples, and MXNet's own files."""
    made = []
    for case in CASES:
        ins = [
            sym.var(f"x{i}", shape=array.shape, dtype=array.dtype)
            for i, array in enumerate(case.arrays("f4", np.random.default_rng(0)))
        ]
        made.append(
            tojson(
                Symbol.interpret(case.op, ins, case.op.normalize(dict(case.attrs)), "y")
            ).encode()
        )
    files = ("mlp-symbol.json", "operators-symbol.json")
    return made + [(GOLDEN / name).read_bytes() for name in files]


def onnx_seeds():
    """What PyTorch and TensorFlow wrote."""
    files = (GOLDEN / "onnx").glob("*.onnx")
    return [data for data in (f.read_bytes() for f in sorted(files)) if len(data) < 20_000]


SEEDS = {"params": param_seeds, "graph": graph_seeds, "onnx": onnx_seeds}
