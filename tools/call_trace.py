"""The trace of one call: the lines that are run from a net to its export, on NumPy.

`python tools/call_trace.py` prints how many there are in each module; the book's page
shows them.
Lines that are run while the modules are read (definitions) do not count. What is counted
in the end are statements: one is one, into however many lines the formatter breaks it.
"""

import ast
import sys
import tempfile
from importlib import import_module

import numpy as np
from reading_order import READING_ORDER, path_of

from minihybrid import nd
from minihybrid.gluon import autograd, nn
from minihybrid.ops import OPS

STAGES = (
    "make a net",
    "call it",
    "hybridize, and call it",
    "call it again",
    "its gradient",
    "export",
)


def calls():
    """The stages of a net's life, one function each, in order."""
    objects = {}

    def make():
        net = objects["net"] = nn.HybridSequential()
        net.add(nn.Dense(8, activation="relu"), nn.Dense(3))
        net.initialize()
        objects["x"] = nd.array(np.ones((2, 4)))

    def call():
        objects["net"](objects["x"])

    def first():
        objects["net"].hybridize(backend="numpy")
        call()

    def differentiate():
        with autograd.record():
            loss = objects["net"](objects["x"]).sum()
        loss.backward()

    def export():
        with tempfile.TemporaryDirectory() as folder:
            objects["net"].export(f"{folder}/net")

    return make, call, first, call, differentiate, export


def walked():
    """[(stage, module -> numbers of the lines that it is the first to run)].

    What operators remember of calls is forgotten, so that it does not matter who walked here
    earlier.
    """
    modules = {str(path_of(m)): m for m in READING_ORDER}
    for module in READING_ORDER:  # what a call reads for the first time is not its road
        if module != "__main__":
            import_module(f"minihybrid.{module}")
    for stage in calls():  # nor are functions and methods that are made when first asked for
        stage()
    for op in OPS.values():
        op.checked.clear()
    seen, stages = set(), []

    def trace(frame, event, _):
        module = modules.get(frame.f_code.co_filename)
        if module is None or frame.f_code.co_name == "<module>":
            return None
        if event == "line" and (module, frame.f_lineno) not in seen:
            seen.add((module, frame.f_lineno))
            stages[-1][1].setdefault(module, []).append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    for name, stage in zip(STAGES, calls(), strict=True):
        stages.append((name, {}))
        sys.settrace(trace)
        try:
            stage()
        finally:
            sys.settrace(before)
    order = {m: k for k, m in enumerate(READING_ORDER)}
    return [
        (name, {m: sorted(lines[m]) for m in sorted(lines, key=order.get)})
        for name, lines in stages
    ]


def statements(module, numbers):
    """The first lines of the statements that lines belong to, however they are broken."""
    tree = ast.parse(path_of(module).read_text(encoding="utf-8"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return {max(s.lineno for s in nodes if s.lineno <= n <= s.end_lineno) for n in numbers}


def count(road):
    """How many statements a road has: (of the core, of the records, of the rest)."""
    first = {room: set() for room in ("core", "ops", "")}
    for _, lines in road:
        for module, numbers in lines.items():
            room = module.split(".")[0]
            own = first[room if room in first else ""]
            own |= {(module, n) for n in statements(module, numbers)}
    return tuple(map(len, first.values()))


if __name__ == "__main__":
    ROAD = walked()
    for name, lines in ROAD:
        print(f"{name}: {sum(map(len, lines.values()))}")
        for module, numbers in lines.items():
            print(f"    {module:24} {len(numbers):4}")
    print(*count(ROAD))
