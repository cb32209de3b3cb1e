"""The texts of kernels that code generation writes, and what is asked of their cubins.

    make cubins     # compiles all of them: an hour of a core

`of_nets` and `of_samples` run nothing: plans are made, or launch to no effect.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import envs
import numpy as np
import samples
import traced
from gpu_nets import NETS, answers

from minihybrid import simulated_gpu, sym
from minihybrid.core.op import Spec
from minihybrid.core.passes.gradient import joint_graph
from minihybrid.core.plan import Plan
from minihybrid.passes import expand
from minihybrid.runtime.device import device_of
from minihybrid.simt.driver import SimulatedDriver

REPOSITORY = Path(__file__).parents[1]
CAPABILITIES = [(7, 5), (8, 0), (9, 0)]  # T4, A100, H100 and H200
NARROW = re.compile(r"\ba\d+: float32\[")  # it reads float32, and computes in that
# Where 64 bits are meant: arrays have them, or an expression says so; draws are those
# of the CPU to the last bit (those of a mask fit into a float32); polygamma has large
# factorials; NVIDIA's library reduces angles beyond 100,000 with a few products of
# float64, in local memory.
WIDE = re.compile(r"\bfloat64[\[(]|\b(?:polygamma|gauss|draw_\w+|(?<!float32\()unit|sin|cos|tan)\(")
LOCAL = re.compile(r"\b(?:gauss|draw_\w+|sin|cos|tan)\(")


def of_nets():
    """{text: net} of all kernels that the nets launch, trained and not."""
    context, actual = simulated_gpu(1), {}  # a device without kernels so far
    with mock.patch.object(SimulatedDriver, "start", lambda *launch: None):
        for name, net in NETS.items():
            answers(net, context)
            for text, _ in device_of(context).kernels:
                actual.setdefault(text, name)
    return actual


def of_sample(case, dtype):
    """The texts of an operator's kernels, and of its gradient's if it has one."""
    made = traced.Program([case], dtype)
    graph = expand(made.graph, True)
    if case.smooth and dtype.startswith("float"):
        graph = joint_graph(graph, [n.name for n in graph.variables])
    plan = Plan(graph, [], training=True, target=device_of(simulated_gpu()), expanded=True)
    return [launch.kernel for launch in plan.made.launches]


def of_samples(cases, dtypes):
    """{text: operator} of all kernels of samples."""
    return {
        text: case.op.name for dtype in dtypes for case in cases for text in of_sample(case, dtype)
    }


def steps_of(function, **shapes):
    """What a function of float32 arrays launches."""
    graph, _ = sym.trace(
        function, {name: Spec(shape, np.dtype("float32")) for name, shape in shapes.items()}
    )
    return Plan(graph, list(shapes), target=device_of(simulated_gpu())).made.launches


def five_operators(n):
    """The kernel of five elementwise operators on four arrays."""
    (step,) = steps_of(
        lambda a, b, c, d: sym.relu(a * b + c) * sym.sigmoid(d), a=(n,), b=(n,), c=(n,), d=(n,)
    )
    return step


def of_large():
    """The steps of operators on arrays that keep a large GPU busy."""
    n = 4096
    return [
        five_operators(2**26),
        *steps_of(lambda a, b: sym.relu(sym.dot(a, b)), a=(n, n), b=(n, n)),
        *steps_of(lambda a, b: sym.dot(a, b, transpose_a=True), a=(n, n), b=(n, n)),
        *steps_of(lambda a, b: sym.dot(a, b, transpose_b=True), a=(n, n), b=(n, n)),
        *steps_of(
            lambda x, w, b: sym.relu(
                sym.Convolution(x, w, b, kernel=(3, 3), num_filter=128, pad=(1, 1))
            ),
            x=(32, 64, 56, 56),
            w=(128, 64, 3, 3),
            b=(128,),
        ),
        *steps_of(lambda x: sym.softmax(x), x=(512, 32000)),
        *steps_of(lambda x: sym.sum(x), x=(2**26,)),
        *steps_of(lambda x: sym.sort(x), x=(64, 1000)),
        *steps_of(lambda x, g, b: sym.LayerNorm(x, g, b), x=(n, n), g=(n,), b=(n,)),
    ]


def one_an_operator():
    """The first sample of each operator."""
    return list({case.op: case for case in reversed(samples.CASES)}.values())


def faults(text, actual):
    """What is wrong with a kernel, of the figures of `gpu_compile`, or an error."""
    if isinstance(actual, str):
        return [actual]
    wrong = []
    if actual["spilled_bytes"]:
        wrong.append(f"{actual['spilled_bytes']} bytes of registers are spilled")
    if actual["f64"] and NARROW.search(text) and not WIDE.search(text):
        wrong.append(f"{actual['f64']} times .f64")
    if actual["local"] and not LOCAL.search(text):
        wrong.append(f"{actual['local']} accesses of local memory")
    return wrong


def run_in(environment, script, sent, **variables):
    """The JSON that a script of this folder answers in an environment.

    Raises:  envs.NotAvailable where it cannot be made.
    """
    python = envs.python_of(environment)
    done = subprocess.run(
        [python, REPOSITORY / "tests" / script],
        input=json.dumps(sent),
        text=True,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)} | variables,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compiled(environment, texts, capabilities=CAPABILITIES):
    """[(text, capability, figures or an error's text)] for all of them."""
    texts = list(texts)
    answers = run_in(environment, "gpu_compile.py", {"texts": texts, "capabilities": capabilities})
    return [
        (text, capability, actual)
        for text, row in zip(texts, answers, strict=True)
        for capability, actual in zip(capabilities, row, strict=True)
    ]


def wrong_in(environment, texts, capabilities=CAPABILITIES):
    """{(who launches it, capability): faults} of {text: who launches it}."""
    return {
        (texts[text], capability): wrong
        for text, capability, actual in compiled(environment, texts, capabilities)
        if (wrong := faults(text, actual))
    }


if __name__ == "__main__":
    every = of_nets() | of_samples(samples.CASES, ("float32", "float64", "int32", "int64"))
    for name in envs.TOOLCHAINS:
        try:
            wrong = wrong_in(name, every, CAPABILITIES[:1])
        except envs.NotAvailable as reason:
            sys.exit(f"NOTHING WAS COMPILED: the environment '{name}' {reason}")
        print(f"{name}: {len(every)} kernels, {len(wrong)} with faults")
        for where, what in wrong.items():
            print(*where, *what, sep=": ")
        if wrong:
            sys.exit(1)
