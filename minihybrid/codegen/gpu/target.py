"""Target "gpu": Numba-CUDA kernels and their launches.

Defines: `generate`, the source of the kernels and of `plan`, and the equivalent launches
         for the runtime (`minihybrid.runtime.launch`).

The plan's source is for readers: `k0_relu[(4, 1, 1), (256, 1, 1)](x0, y0)` is Numba's
syntax for 4 blocks of 256 threads. Executed is the list of launches, as one CUDA graph per
call. Each value is an address: `arena + 256` is byte 256 of the plan's arena.
Not supported: concurrent kernels.
"""

from typing import NamedTuple

from minihybrid.codegen.bytecode import ARENA, ARRAY, KEY, PARAM, Operand
from minihybrid.codegen.cpu.target import SUPPORTED, Source, copy_of, further, header, label
from minihybrid.codegen.device_math import IMPORTS
from minihybrid.codegen.gpu.kernel import GpuKernel
from minihybrid.core.targets import Call, Table

OPERANDS = {ARRAY: "x{}", PARAM: "table[{}]", ARENA: "arena + {}", KEY: "key"}


class GpuLaunch(NamedTuple):
    """One kernel launch of a plan."""

    kernel: str  # source of its module
    name: str  # of its function
    label: str  # its name in the plan's source
    operands: list  # one `Operand` per argument
    grid: tuple  # blocks along x, y, z
    block: tuple  # threads per block


def unsupported(graph):
    """Return why this target can't run a graph; `None` if it can."""
    for node in graph.nodes:
        for spec in node.specs:
            if spec.dtype.name not in SUPPORTED or not spec.dtype.isnative:
                return f"'{node.name}' is {spec.dtype}, which has no GPU kernels"
    return None


def generate(graph, memory, inputs):
    """Generate the code of a plan.

    inputs:  names of the variables that are arguments, in order; others are parameters.
    """
    table = Table(graph, inputs)
    operands, kernels, launches, written = _places(graph, memory, table), {}, [], []
    for node in graph.nodes:
        if node.op is not None and node.op.view:
            operands[node, 0] = further(operands[node.inputs[0]], node)
            continue
        if node.op is None or not any(s.size for s in node.specs):
            continue
        body = GpuKernel(node)
        passed = [operands[ref] for ref in node.inputs]
        passed += [operands[node, i] for i in range(node.n_outputs)]
        if body.scratch:
            passed.append(Operand(ARENA, memory.offsets[memory.scratch[node]]))
        passed += [Operand(KEY, 0)] * len(body.numbers)
        what = label(node)
        _launch(body.texts(f"NAME_{what}"), what, passed, kernels, launches)
        written += [Call(node, launch.label) for launch in launches[len(written) :]]
    for ref, k in memory.copies:
        node, i = graph.heads[k]
        if node.specs[i].size:
            passed = [operands[ref], Operand(ARRAY, len(table.inputs) + k)]
            body = GpuKernel(copy_of((node, i)))
            _launch(body.texts("NAME_copy"), "copy", passed, kernels, launches)
            written.append(Call(ref[0], launches[-1].label))
    names = [
        *(f"x{i}" for i in range(len(table.inputs))),
        *(f"y{k}" for k in range(len(graph.heads))),
    ]
    args = [*names, "arena", "table", *["key"] * bool(graph.n_streams)]
    parts = [text.replace("NAME", name, 1) for text, name in kernels.items()]
    calls = [_call(launch, names) for launch in launches]
    parts.append(
        "\n".join([f"def plan({', '.join(args)}):", *(f"    {line}" for line in calls or ["pass"])])
    )
    text = "\n\n\n".join(parts)
    head = header(text, ": the kernels of one plan, and the plan.", IMPORTS)
    text = f"{head}\n{text}\n"
    return Source(text, parts[:-1], len(launches), table, launches, calls=written)


def _places(graph, memory, table):
    """Return the operand of each value."""
    variables = {n.name: n for n in graph.variables}
    operands = {
        (variables[name], 0): Operand(ARRAY, i)
        for i, name in enumerate(table.inputs)
        if name in variables
    }
    operands |= {
        (node, 0): Operand(PARAM, i) for i, node in enumerate([*table.params, *table.constants])
    }
    operands |= {ref: Operand(ARRAY, len(table.inputs) + k) for ref, k in memory.outs.items()}
    return operands | {ref: Operand(ARENA, offset) for ref, offset in memory.offsets.items()}


def _launch(texts, what, passed, kernels, launches):
    """Add the kernels of a node, unless their sources are known, and their launches."""
    for text, grid, block in texts:
        name = f"{kernels.setdefault(text, f'k{len(kernels)}')}_{what}"
        alone = text.replace("NAME", "k", 1)
        module = f"{header(alone, '.', IMPORTS)}\n\n{alone}\n"
        launches.append(GpuLaunch(module, f"k_{what}", name, passed, grid, block))


def _call(launch, names):
    """Return a launch in Numba's syntax."""
    texts = [
        (names[which] if what == ARRAY else OPERANDS[what].format(which))
        + f" + {after}" * bool(after)
        for what, which, after, _ in launch.operands
    ]
    return f"{launch.label}[{launch.grid}, {launch.block}]({', '.join(texts)})"
