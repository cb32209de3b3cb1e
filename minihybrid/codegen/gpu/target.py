"""Target "gpu": a plan's kernels as Numba-CUDA source, and their launches.

Takes:   an optimised graph and its memory plan.
Gives:   `generate`, the text of the kernels and of `plan`, which says what is launched,
         and the same as steps for the run time (`minihybrid.runtime.launch`).

The plan's text is for readers: `k0_relu[(4, 1, 1), (256, 1, 1)](x0, y0)` is Numba's way
to launch 4 blocks of 256 threads. What runs is the steps: all launches of a call are
one CUDA graph. Each value is an address: `arena + 256` is byte 256 of the plan's arena.
What is left out: steps that run side by side; they come one after the other.
"""

from typing import NamedTuple

from minihybrid.codegen.bytecode import ARENA, ARRAY, KEY, PARAM, Word
from minihybrid.codegen.cpu.target import SUPPORTED, further, header, label
from minihybrid.codegen.device_math import IMPORTS
from minihybrid.codegen.gpu.kernel import BLOCK, GpuKernel, scratch_of
from minihybrid.codegen.source import type_name
from minihybrid.core.targets import Call, Table

__all__ = ["GpuStep", "Source", "generate", "scratch_of", "unsupported"]

WORDS = {ARRAY: "x{}", PARAM: "table[{}]", ARENA: "arena + {}", KEY: "key"}


class GpuStep(NamedTuple):
    """One launch at its place in a plan."""

    kernel: str  # the text of its module
    name: str  # of the function in it
    label: str  # what the plan's text calls it
    words: list  # what it is launched with, a `Word` each
    grid: tuple  # blocks along x, y, z
    block: tuple  # threads of each


class Source(NamedTuple):
    """What this target makes of a graph."""

    text: str
    kernels: list  # the text of each, in the order of their first launches
    n_kernels: int  # launches a call
    table: Table
    steps: list
    calls: list  # a `Call` for each of the text's last lines


def unsupported(graph):
    """Why this target cannot run a graph; `None` if it can."""
    for node in graph.nodes:
        for spec in node.specs:
            if spec.dtype.name not in SUPPORTED or not spec.dtype.isnative:
                return f"'{node.name}' is {spec.dtype}, which has no GPU kernels"
    return None


def generate(graph, memory, inputs):
    """The text of kernels and plan, and what else the plan is made of.

    inputs:  names of the variables that are arguments, in order; others are parameters.
    """
    table = Table(graph, inputs)
    words, kernels, steps, written = _places(graph, memory, table), {}, [], []
    for node in graph.nodes:
        if node.op is not None and node.op.view:
            words[node, 0] = further(words[node.inputs[0]], node)
            continue
        if node.op is None or not any(s.size for s in node.specs):
            continue
        body = GpuKernel(node)
        passed = [words[ref] for ref in node.inputs]
        passed += [words[node, i] for i in range(node.n_outputs)]
        if body.scratch:
            passed.append(Word(ARENA, memory.offsets[memory.scratch[node]]))
        passed += [Word(KEY, 0)] * len(body.numbers)
        what = label(node)
        _launch(body.texts(f"NAME_{what}"), what, passed, kernels, steps)
        written += [Call(node, step.label) for step in steps[len(written) :]]
    for ref, k in memory.copies:
        node, i = graph.heads[k]
        if node.specs[i].size:
            passed = [words[ref], Word(ARRAY, len(table.inputs) + k)]
            _launch([_copy(node.specs[i])], "copy", passed, kernels, steps)
            written.append(Call(ref[0], steps[-1].label))
    names = [
        *(f"x{i}" for i in range(len(table.inputs))),
        *(f"y{k}" for k in range(len(graph.heads))),
    ]
    args = [*names, "arena", "table", *["key"] * bool(graph.n_streams)]
    parts = [text.replace("NAME", name, 1) for text, name in kernels.items()]
    calls = [_call(step, names) for step in steps]
    parts.append(
        "\n".join([f"def plan({', '.join(args)}):", *(f"    {line}" for line in calls or ["pass"])])
    )
    text = "\n\n\n".join(parts)
    head = header(text, ": the kernels of one plan, and the plan.", IMPORTS)
    return Source(f"{head}\n{text}\n", parts[:-1], len(steps), table, steps, written)


def _places(graph, memory, table):
    """Where each value lies: the word that says it."""
    variables = {n.name: n for n in graph.variables}
    words = {
        (variables[name], 0): Word(ARRAY, i)
        for i, name in enumerate(table.inputs)
        if name in variables
    }
    words |= {(node, 0): Word(PARAM, i) for i, node in enumerate([*table.params, *table.constants])}
    words |= {ref: Word(ARRAY, len(table.inputs) + k) for ref, k in memory.outs.items()}
    return words | {ref: Word(ARENA, offset) for ref, offset in memory.offsets.items()}


def _launch(texts, what, passed, kernels, steps):
    """Enter the kernels of a node, unless their texts are known, and their launches."""
    for text, grid, block in texts:
        name = f"{kernels.setdefault(text, f'k{len(kernels)}')}_{what}"
        alone = text.replace("NAME", "k", 1)
        module = f"{header(alone, '.', IMPORTS)}\n\n{alone}\n"
        steps.append(GpuStep(module, f"k_{what}", name, passed, grid, block))


def _call(step, names):
    """A launch as Numba would write it."""
    texts = [
        (names[which] if what == ARRAY else WORDS[what].format(which)) + f" + {after}" * bool(after)
        for what, which, after, _ in step.words
    ]
    return f"{step.label}[{step.grid}, {step.block}]({', '.join(texts)})"


def _copy(spec):
    """The kernel of an output that is an input, or another output."""
    kind, n = type_name(spec.dtype), spec.size
    text = (
        f"def NAME_copy(a0: {kind}[{n}], out: {kind}[{n}]):\n"
        f"    i = cuda.blockIdx.x * {BLOCK} + cuda.threadIdx.x\n"
        f"    if i < {n}:\n        out[i] = a0[i]"
    )
    return text, (-(-n // BLOCK), 1, 1), (BLOCK, 1, 1)
