"""Run by MXNet's own Python: opens files that minihybrid wrote, and says its answers.

    python tests/golden/mxnet_files/mxnet_reads.py FOLDER

FOLDER has `cases.json`: a list of {name, inputs, np, params}, where `inputs` are names
of arrays in `NAME.npz`, `np` says in which of MXNet's two worlds it runs, and `params`
whether there is a file `NAME-0000.params`. Writes `NAME-answers.npz`, or what went
wrong into `errors.json`.
"""

import contextlib
import json
import sys
from pathlib import Path

import mxnet as mx
import numpy as np


def answers(folder, case):
    """What a graph gives: as a SymbolBlock with parameters, or bound to its inputs."""
    name, arrays = case["name"], np.load(folder / f"{case['name']}.npz")
    file, make = str(folder / f"{name}-symbol.json"), mx.nd.array
    if case["params"]:
        make = mx.np.array if case["np"] else make
        net = mx.gluon.SymbolBlock.imports(
            file, case["inputs"], str(folder / f"{name}-0000.params")
        )
        outs = net(*(make(arrays[n], dtype=arrays[n].dtype) for n in case["inputs"]))
    else:
        symbol = mx.sym.load(file)
        values = {n: make(arrays[n], dtype=arrays[n].dtype) for n in case["inputs"]}
        states = {n: values.pop(n) for n in symbol.list_auxiliary_states()}
        outs = symbol.bind(mx.cpu(), values, aux_states=states).forward()
    return [out.asnumpy() for out in (outs if isinstance(outs, (list, tuple)) else [outs])]


def main(folder):
    """Answer every case; one that fails leaves a sentence."""
    errors = {}
    for case in json.loads((folder / "cases.json").read_text()):
        try:
            with mx.util.np_shape(case["np"]), mx.util.np_array(case["np"]):
                outputs = answers(folder, case)
        except Exception as error:
            errors[case["name"]] = str(error)[-500:]
            with contextlib.suppress(mx.MXNetError):  # MXNet runs late, and may tell the next
                mx.nd.waitall()
        else:
            np.savez(folder / f"{case['name']}-answers.npz", *outputs)
    (folder / "errors.json").write_text(json.dumps(errors))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
