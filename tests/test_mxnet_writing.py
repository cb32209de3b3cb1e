"""MXNet 1.9.1 itself opens what we write, and computes the same.

One process of MXNet's own Python opens all files (tests/mxnet_reads.py). It runs where
`benchmarks/envs.py` can make MXNet's environment: on Linux x86 with Python 3.11.
"""

import json
import os
import subprocess
from pathlib import Path

import envs
import numpy as np
import pytest
from samples import CASES
from test_random_nets import LAYERS, STARTS, network

from minihybrid import gluon, nd, np_shape, npx, sym
from minihybrid import np as mnp
from minihybrid.gluon.model_zoo import vision
from minihybrid.sym import Symbol

READER = Path(__file__).parent / "mxnet_reads.py"

# Operators that MXNet has as functions of Python, or not at all; `_` begins our own.
NOT_THERE = ("softrelu _npi_triu _contrib_isnan _contrib_isinf _contrib_isfinite "
             "broadcast_arctan2 moveaxis _npi_logical_ zeros ones full arange").split()
# Samples that MXNet 1.9.1 does not compute, and its words.
REFUSED = {
    "norm": "data type do not match",
}
# Samples whose answer is another one in MXNet 1.9.1, or not the same each time.
OTHER = {
}
CRASHES = {
}


class Files:
    """The files for MXNet in one folder, and our own answers."""

    def __init__(self, folder):
        self.folder, self.cases, self.answers = folder, [], {}

    def add(self, name, inputs, outs, np_world=False, params=False):
        """One graph that is written already: its inputs by name, and what it gives."""
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        np.savez(self.folder / f"{name}.npz", **inputs)
        self.answers[name] = [out.asnumpy() for out in outs]
        self.cases.append({"name": name, "inputs": list(inputs), "np": np_world,
                           "params": params})

    def operator(self, number, case, rng):
        """A graph of one operator; in MXNet's old world an axis of 0 is unknown."""
        np_world = case.op.name.startswith(("_np_", "_npi_", "_npx_"))
        arrays = case.arrays("float32", rng)
        if not np_world and any(a.size == 0 or a.shape == () for a in arrays):
            return
        attrs = case.op.normalize(dict(case.attrs))
        names = [f"x{i}" for i in range(len(arrays))]
        name = f"{number}-{case.op.name}"
        with np_shape(np_world):
            symbol = Symbol.interpret(case.op, list(map(sym.var, names)), attrs, "y")
            symbol.save(self.folder / f"{name}-symbol.json")
            outs = nd.NDArray.interpret(
                case.op, [nd.NDArray(a.copy()) for a in arrays], attrs)
        self.add(name, dict(zip(names, arrays, strict=True)), outs, np_world)

    def net(self, name, block, x, np_world=False):
        """A net, exported after a call."""
        block.hybridize(backend="numpy")
        inputs, outs = {"data": x.asnumpy()}, block(x)
        block.export(str(self.folder / name))
        self.add(name, inputs, outs, np_world, params=True)

    def asked(self, python):
        """(name -> MXNet's answers, name -> what it said instead)."""
        (self.folder / "cases.json").write_text(json.dumps(self.cases))
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run([python, READER, self.folder], capture_output=True,
                              text=True, env=clean)
        assert done.returncode == 0, done.stderr[-2000:]
        errors = json.loads((self.folder / "errors.json").read_text())
        found = {}
        for name in self.answers.keys() - errors.keys():
            with np.load(self.folder / f"{name}-answers.npz") as arrays:
                found[name] = [arrays[key] for key in arrays.files]
        return found, errors
