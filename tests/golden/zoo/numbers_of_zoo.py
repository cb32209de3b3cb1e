"""Weights and pictures that MXNet and minihybrid can both make, without a file."""

import hashlib
import json
import math

import numpy as np


def noise(shape, seed):
    """Numbers in [-1, 1) that every version of NumPy draws alike."""
    return np.random.RandomState(seed).uniform(-1, 1, shape)


def weights(shapes):
    """name -> float32 numbers that let a signal pass through many layers."""
    made = {}
    for i, (name, shape) in enumerate(shapes.items()):
        numbers = noise(shape, i)
        if name.endswith("weight"):
            numbers *= math.sqrt(6 / np.prod(shape[1:]))
        elif name.endswith(("gamma", "running_var")):
            numbers = 1 + 0.3 * numbers
        else:
            numbers *= 0.1
        made[name] = numbers.astype(np.float32)
    return made


def picture(size):
    """One picture of three channels."""
    return noise((1, 3, size, size), 1000).astype(np.float32)


def digest(shapes):
    """Names and shapes, in order, as a short text."""
    rows = [[name, list(shape)] for name, shape in shapes.items()]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def facts(net, specs):
    """What a net's parameters are: how many, and a digest of their names and shapes.

    specs:   full name -> shape.
    """
    full = {name[len(net.prefix) :]: specs[name] for name in net.collect_params().keys()}
    structural = {name: specs[p.name] for name, p in net._collect_params_with_prefix().items()}
    return {
        "parameters": len(full),
        "names": digest(full),
        "structure": digest(structural),
        "numbers": int(sum(np.prod(shape) for shape in full.values())),
    }


def shapes_of(symbol, size):
    """full name -> shape, of all parameters, for a picture of this size."""
    arguments, _, states = symbol.infer_shape(data=(1, 3, size, size))
    names = symbol.list_arguments() + symbol.list_auxiliary_states()
    return dict(zip(names, [*arguments, *states], strict=True))
