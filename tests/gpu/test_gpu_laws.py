"""Laws that every operator keeps on a GPU, simulated with all checks.

Each sample of each operator, and its gradient, is a part of a plan whose kernels the
simulator runs: an access outside of an array, a race, or arithmetic in float64 that
float32 was meant for is an error. The outputs are those of the same graph, evaluated
by NumPy; that eager arrays and compiled kernels for the CPU agree with these is tested
in test_ops_laws. A new operator adds no test here.

What is left out: float16, which has no kernels; int8 and uint8, whose kernels are those
of int32 with other names, but for sums at one place (test_gpu_loops); gradients of
whole numbers; numbers that a plan folds into constants; infinities where convolutions
have strides.
"""

import functools

import numpy as np
import pytest
from marks import external
from samples import CASES
from traced import Program, assert_all, batch_params, first_samples

from minihybrid import nd, simulated_gpu
from minihybrid.core.passes.gradient import joint_graph
from minihybrid.core.placement import copy_to
from minihybrid.core.plan import Plan
from minihybrid.ops.random import STREAM
from minihybrid.passes import expand
from minihybrid.runtime.device import device_of

# More samples have other shapes, which 32 bits see; quantized operators have no 64 bits.
FIRST = first_samples([case for case in CASES if "_quantized" not in case.op.name])
# Sums of the simulator and of NumPy have different orders; whole numbers are equal.
TOLERANCE = {"float32": 5e-6, "float64": 1e-12}
# A stride leaves holes in the gradient of a convolution's data. On a GPU zeros are
# multiplied there, which infinite weights make NaN of; on the CPU nothing is.
HOLES = {"_conv", "_conv_data", "Convolution", "Deconvolution", "UpSampling"}


def numbers(variables, given):
    """The value of each variable: given ones, and weights of outputs for gradients."""
    rng = np.random.default_rng(1)
    return {
        n.name: given[n.name]
        if n.name in given
        else rng.uniform(0.5, 1.5, n.specs[0].shape).astype(n.specs[0].dtype)
        for n in variables
    }


def answers(dtype, cases):
    """[[(output on the GPU, by NumPy)] of each kind of values] a case.

    Outputs, new values of states, then gradients of inputs, if they are floats.
    """
    made = Program(cases, dtype)
    graph = expand(made.graph, True)
    expected = [n.name for n in graph.variables] * dtype.startswith("float")
    owners = [i for i, row in enumerate(made.result) for _ in row]
    owners += [
        next(i for i, names in enumerate(made.names) if name in names)
        for name in (*graph.states, *expected)
    ]
    graph = joint_graph(graph, expected)
    device = device_of(simulated_gpu())
    plan = Plan(graph, [], training=True, target=device, expanded=True)
    actual = [[] for _ in cases]
    for given in [made.values, made.special][: 1 + (dtype == "float32")]:
        values = numbers(graph.variables, given)
        nd.random.seed(7)
        exact = graph.evaluate(values, STREAM.next)
        got = plan([], plan.bind([copy_to(values[n], device.context) for n in plan.params]))
        for pairs in actual:
            pairs.append([])
        for owner, *pair in zip(owners, map(np.asarray, got), exact, strict=True):
            actual[owner][-1].append(pair)
    return actual


def has_holes(case):
    """Whether it is, or has, the gradient of a convolution with a stride.

    Or whether it cuts NaN to a whole number, which each processor does in its own way.
    """
    if case.op.name == "amp_cast" and case.attrs["dtype"] == "int32":
        return True
    return case.op.name in HOLES and (
        max(case.attrs.get("stride", (1,))) > 1 or "scale" in case.attrs
    )


def agree(case, made):
    """Every output and gradient is what NumPy gives, on plain and special values."""
    for what, pairs in zip(("", " on special values"), made, strict=False):
        if what and has_holes(case):
            continue
        for i, (got, expected) in enumerate(pairs):
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype), case
            tolerance = TOLERANCE.get(got.dtype.name, 0)
            np.testing.assert_allclose(
                got, expected, tolerance, tolerance, err_msg=f"{case}{what} [{i}]"
            )


@pytest.mark.per_op
@pytest.mark.parametrize(
    "dtype, cases",
    [param for dtype in ("float32", "int32") for param in batch_params(CASES, dtype)]
    + [p for dtype in ("float64", "int64") for p in external(*batch_params(FIRST, dtype))],
)
def test_kernels_of_a_gpu_agree_with_numpy(dtype, cases):
    assert_all(cases, functools.partial(answers, dtype), agree)


def test_few_samples_are_left_out():
    """Of special values only; every sample is tried on plain ones."""
    assert len(list(filter(has_holes, CASES))) <= 12
