"""The processor's plans where nothing can be compiled: in a browser's page.

Takes:   what the target "cpu" makes of a graph.
Gives:   its function, which runs the same steps in the same memory, and computes each by
         the rules of its operators, on NumPy. So what a chapter says about a plan (its
         graph, kernels, text, memory) is true there, too.

What is left out: speed; a step costs what its operators cost line by line.
"""

import sys
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from minihybrid.codegen.bytecode import ARENA, ARRAY, Word, in_turns
from minihybrid.codegen.cpu.target import Source
from minihybrid.core.graph import evaluate_node
from minihybrid.core.plan import ActivePlan
from minihybrid.core.targets import TARGETS, in_order
from minihybrid.runtime.tiers import CPU as COMPILED


def load(source: Source) -> Callable:
    """A plan as a function of arrays, the arena, the table of parameters, and numbers,
    as the compiled one is: `run(*arrays, arena, table, key, until, shared, thread)`."""

    def run(*args: Any) -> None:
        profiler = sys.getprofile()
        sys.setprofile(None)  # it sees nothing in machine code
        try:
            steps(*args)
        finally:
            sys.setprofile(profiler)

    def steps(*args: Any) -> None:
        arrays = args[: source.n_arrays]
        arena, table, key, until, _, _ = args[source.n_arrays :]

        calls = [call for call in source.calls if call.kernel]
        node_of = dict(zip(map(id, source.steps), (call.node for call in calls), strict=True))

        def at(word: Word, turn: int, spec: Any) -> np.ndarray:
            what, which, after, further = word
            after += turn * further
            if what == ARENA:
                piece = arena[which + after :][: spec.nbytes].view(spec.dtype)
            else:
                start = after // spec.dtype.itemsize
                piece = (arrays if what == ARRAY else table)[which].reshape(-1)
                piece = piece[start : start + spec.size]
            return piece.reshape(spec.shape)

        for step, turn in islice(in_turns(source.steps), until):
            node, words = node_of[id(step)], step.words
            if spec := step.copied:
                at(words[1], turn, spec)[...] = at(words[0], turn, spec)
                continue
            specs = [n.specs[i] for n, i in node.inputs]
            given = [at(w, turn, s) for w, s in zip(words, specs, strict=False)]
            outs = evaluate_node(node, given, key)
            for word, spec, out in zip(words[len(specs) :], node.specs, outs, strict=False):
                at(word, turn, spec)[...] = out

    return run


def bound(arrays: list, constants: list, device: Any) -> tuple[list, list]:
    """The arrays that the steps read."""
    arrays = in_order(arrays, constants)
    return arrays, arrays


CPU = COMPILED
if sys.platform == "emscripten":  # Python in a page; there are no compilers for it
    CPU = CPU._replace(load=load, bound=bound, tiers=ActivePlan)
TARGETS["cpu"] = CPU
