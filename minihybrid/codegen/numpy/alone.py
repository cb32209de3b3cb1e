"""Chapter 23. Standalone NumPy programs: the code around an exported plan.

Defines: `alone`, the source of a file that needs only NumPy, and the functions copied into
         it: `load`, `predict`, and `main`, which the file runs as a program.

Limits: the shapes are those of the traced call.
"""

import inspect

import numpy as np

from minihybrid.core.op import HybridError

INPUTS, OUTPUTS, WEIGHTS = [], [], []  # (shape, dtype) of each
NBYTES = 0  # size of the arena


def plan(*arrays):
    """Run the net: read inputs and weights, write outputs."""


def checked(arrays, wanted, what):
    """The arrays, if they have the shapes and dtypes that are wanted.

    >>> checked([np.zeros(2)], [((3,), "float32")], "input")
    Traceback (most recent call last):
    ValueError: input 0 is float64 (2,), but float32 (3,) is needed
    """
    if len(arrays) != len(wanted):
        raise ValueError(f"the number of {what}s is {len(arrays)}, but {len(wanted)} are needed")
    for i, (array, (shape, dtype)) in enumerate(zip(arrays, wanted, strict=True)):
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(
                f"{what} {i} is {array.dtype} {array.shape}, but {dtype} {shape} is needed"
            )
    return arrays


def load(file=None):
    """The weights in a file, the one beside this unless told, as `predict` takes them."""
    file = file or f"{__file__.removesuffix('.py')}.npz"
    with np.load(file, allow_pickle=False) as archive:
        names = [f"p{i}" for i in range(len(WEIGHTS))]
        if set(archive.files) != set(names):
            raise ValueError(
                f"{file} has not the weights of this net: its arrays are "
                f"{', '.join(archive.files)[:60]}"
            )
        return checked([archive[name] for name in names], WEIGHTS, "weight")


def predict(weights, *inputs):
    """The net's output; a tuple if there are several."""
    arrays = checked([np.asarray(array) for array in inputs], INPUTS, "input")
    outputs = [np.empty(shape, dtype) for shape, dtype in OUTPUTS]
    plan(*arrays, *outputs, np.empty(NBYTES, np.uint8), weights)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def main(*files):
    """Read .npy files of inputs, and write .npy files of outputs."""
    if len(files) != len(INPUTS) + len(OUTPUTS):
        raise SystemExit(
            f"{len(INPUTS)} names of .npy files with inputs are needed, "
            f"then {len(OUTPUTS)} for outputs"
        )
    inputs = [np.load(file, allow_pickle=False) for file in files[: len(INPUTS)]]
    outputs = predict(load(), *inputs)
    for file, array in zip(
        files[len(INPUTS) :], outputs if len(OUTPUTS) > 1 else [outputs], strict=True
    ):
        np.save(file, array)


NAMES = "np", "OPS", "plan", "checked", "load", "predict", "main"  # taken in the file


def alone(source, inputs, outputs, weights, nbytes):
    """The text of a file that loads weights and predicts.

    inputs, outputs, weights:  the specs of each.
    nbytes:  of the arena.
    Raises:  HybridError if an operator's code cannot be part of the file.
    """
    for name, reason in source.outside.items():
        raise HybridError(
            f"export: {name} cannot stand alone: {reason}; write its "
            "`eager` in a file, with NumPy only"
        )
    lists = [
        f"{what} = ["
        + "".join(f"\n    ({spec.shape}, {spec.dtype.name!r})," for spec in specs)
        + "\n]"
        for what, specs in (("INPUTS", inputs), ("OUTPUTS", outputs), ("WEIGHTS", weights))
    ]
    parts = [
        source.text.rstrip(),
        "\n".join([*lists, f"NBYTES = {nbytes}"]),
        *(inspect.getsource(f).rstrip() for f in (checked, load, predict, main)),
        'if __name__ == "__main__":\n    import sys\n    main(*sys.argv[1:])\n',
    ]
    return "\n\n\n".join(parts)
