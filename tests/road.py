"""The road of one call: the lines that are run from a net to its export, on NumPy.

`python road.py` prints how many there are in each module; the book's page shows them.
Lines that are run while the modules are read (definitions) do not count.
"""

import sys
import tempfile

import numpy as np
from modules import READING_ORDER, path_of

from minihybrid import autograd, nd
from minihybrid.gluon import nn

STAGES = ("make a net", "call it", "hybridize, and call it", "call it again",
          "its gradient", "export")


def calls():
    """The stages of a net's life, one function each, in order."""
    made = {}

    def make():
        net = made["net"] = nn.HybridSequential()
        net.add(nn.Dense(8, activation="relu"), nn.Dense(3))
        net.initialize()
        made["x"] = nd.array(np.ones((2, 4)))

    def call():
        made["net"](made["x"])

    def first():
        made["net"].hybridize(backend="numpy")
        call()

    def differentiate():
        with autograd.record():
            loss = made["net"](made["x"]).sum()
        loss.backward()

    def export():
        with tempfile.TemporaryDirectory() as folder:
            made["net"].export(f"{folder}/net")

    return make, call, first, call, differentiate, export


def walked():
    """[(stage, module -> numbers of the lines that it is the first to run)]."""
    modules = {str(path_of(m)): m for m in READING_ORDER}
    seen, found = set(), []

    def trace(frame, event, _):
        module = modules.get(frame.f_code.co_filename)
        if module is None or frame.f_code.co_name == "<module>":
            return None
        if event == "line" and (module, frame.f_lineno) not in seen:
            seen.add((module, frame.f_lineno))
            found[-1][1].setdefault(module, []).append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    for name, stage in zip(STAGES, calls(), strict=True):
        found.append((name, {}))
        sys.settrace(trace)
        try:
            stage()
        finally:
            sys.settrace(before)
    order = {m: k for k, m in enumerate(READING_ORDER)}
    return [(name, {m: sorted(lines[m]) for m in sorted(lines, key=order.get)})
            for name, lines in found]


def count(road):
    """How many lines a road has: (of the core, of the records, of the rest)."""
    counts = {"core": 0, "ops": 0, "": 0}
    for _, lines in road:
        for module, numbers in lines.items():
            room = module.split(".")[0]
            counts[room if room in counts else ""] += len(numbers)
    return tuple(counts.values())


if __name__ == "__main__":
    ROAD = walked()
    for name, lines in ROAD:
        print(f"{name}: {sum(map(len, lines.values()))}")
        for module, numbers in lines.items():
            print(f"    {module:24} {len(numbers):4}")
    print(*count(ROAD))
