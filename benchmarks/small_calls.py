"""What one call on small arrays costs: eager operators beside PyTorch's, and hybridized calls.

    python benchmarks/small_calls.py                      # about a minute
    python benchmarks/small_calls.py --only sum --rounds 5

Two processes, one for each engine, time the same statements in alternation, with one
thread; the table shows each one's fastest repeat, in microseconds. Operators are applied to
64 elements off the tape and on it, under the names of `nd` and of `mx.np`. Hybridized calls
take one array, then more of them: as they are, by keyword, in lists, tuples and dicts, and
beside plain values. Writes `results/small_calls.json`; with options, it only prints.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import timeit
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "small_calls.json"
ENGINES = ("minihybrid", "torch")

# name -> (statement of nd, of mx.np, of PyTorch); a, b have 64 elements, A, B are 8 x 8.
OPERATORS = {
    "add": ("a + b", "a + b", "a + b"),
    "sub": ("a - b", "a - b", "a - b"),
    "mul": ("a * b", "a * b", "a * b"),
    "add scalar": ("a + 2.5", "a + 2.5", "a + 2.5"),
    "relu": ("nd.relu(a)", "npx.relu(a)", "torch.relu(a)"),
    "exp": ("a.exp()", "np.exp(a)", "torch.exp(a)"),
    "dot": ("nd.dot(A, B)", "np.dot(A, B)", "torch.mm(A, B)"),
    "mean": ("a.mean()", "a.mean()", "a.mean()"),
    "sum": ("a.sum()", "a.sum()", "a.sum()"),
    "sum of rows": ("A.sum(axis=1)", "A.sum(axis=1)", "A.sum(1)"),
    "reshape": ("a.reshape((8, 8))", "a.reshape((8, 8))", "a.reshape((8, 8))"),
    "softmax": ("nd.softmax(A)", "npx.softmax(A)", "torch.softmax(A, 1)"),
}
# Calls of a hybridized function that multiplies its first array by 2, and reads all others.
HYBRIDIZED = {
    "1 array": "f(a)",
    "2 arrays": "f(a, b)",
    "3 arrays": "f(a, b, a)",
    "8 arrays": "f(a, b, a, b, a, b, a, b)",
    "1 keyword": "f(x=a)",
    "2 keywords": "f(x=a, y=b)",
    "3 keywords": "f(x=a, y=b, z=a)",
    "list of 2": "f(a, pair)",
    "tuples in a list": "f(a, nested)",
    "dict of 2": "f(a, named)",
    "2 arrays, number, text": "f(a, b, 2.5, 'text')",
    "1 array recorded": "recorded(f, a)",
    "3 arrays recorded": "recorded(f, a, b, a)",
    "3 arrays, 3 results": "g(a, b, a)",
}


def ours(form):
    """What our statements use, and their mode.

    form:    "nd" or "np", either on the tape or not, or "hybridized".
    """
    import minihybrid as mx
    from minihybrid import autograd, nd, npx
    from minihybrid import np as mnp

    make = mnp.ones if form.startswith("np") else nd.ones
    names = {name: make((64,)) for name in "ab"} | {name: make((8, 8)) for name in "AB"}
    a, b = names["a"], names["b"]

    @mx.function
    def f(*arrays, **more):
        first = arrays[0] if arrays else more["x"]
        return first * 2

    def recorded(function, *inputs):
        with autograd.record():
            return function(*inputs)

    names |= {"nd": nd, "np": mnp, "npx": npx, "f": f, "recorded": recorded}
    names["g"] = mx.function(lambda x, y, z: (x * y, [y - z, x + z]))
    names |= {"pair": [a, b], "nested": [(a,), (b, [a])], "named": {"p": a, "q": b}}
    if not form.endswith("tape"):
        return names, autograd.pause
    for name in "abAB":
        names[name].attach_grad()
    return names, autograd.record


def theirs(form):
    """The same for PyTorch."""
    import torch

    taped = form.endswith("tape")
    names = {name: torch.ones(64, requires_grad=taped) for name in "ab"}
    names |= {name: torch.ones(8, 8, requires_grad=taped) for name in "AB"}
    return names | {"torch": torch}, torch.enable_grad


def serve(engine):
    """Time statements that are asked for on standard input: [form, statement]."""
    scopes, scope_of = {}, ours if engine == "minihybrid" else theirs
    for line in sys.stdin:
        form, statement = json.loads(line)
        if form not in scopes:
            scopes[form] = scope_of(form)
        names, mode = scopes[form]
        timer = timeit.Timer(statement, globals=names)
        with mode():
            timer.timeit(100)
            print(json.dumps(min(timer.repeat(10, 500)) / 500), flush=True)


class Engine:
    """The process of an engine."""

    def __init__(self, name):
        from envs import python_of  # only the parent has the project's folder at hand
        from machine import limits

        self.process = subprocess.Popen(
            [python_of(name), __file__, "--engine", name],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | limits(1) | {"MINIHYBRID_WAIT": "1"},
        )

    def time(self, *request):
        """Seconds of one statement in the fastest repeat of a turn."""
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.communicate()


def cases():
    """[(form, name, our statement, PyTorch's or None)] of all rows."""
    rows = [
        (form + tape, name, statements[form == "np"], statements[2])
        for tape in ("", ", tape")
        for form in ("nd", "np")
        for name, statements in OPERATORS.items()
    ]
    return rows + [("hybridized", name, call, None) for name, call in HYBRIDIZED.items()]


def measure(chosen, rounds):
    """[form, name, seconds of ours, of PyTorch's or None], in rounds over all rows."""
    engines = [Engine(name) for name in ENGINES]
    best = {}
    for _ in range(rounds):
        for form, name, *statements in chosen:
            for engine, statement in zip(engines, statements, strict=True):
                if statement:
                    key = form, name, engine
                    best[key] = min(best.get(key, 1.0), engine.time(form, statement))
    for engine in engines:
        engine.end()
    return [
        [form, name, *(best.get((form, name, e)) for e in engines)] for form, name, *_ in chosen
    ]


def table(rows):
    """The rows as text: microseconds, and the ratio to PyTorch's."""
    lines = [f"{'':12} {'':24} {'ours':>6} {'PyTorch':>8} {'ratio':>6}"]
    for form, name, own, other in rows:
        beside = f" {other * 1e6:8.2f} {own / other:6.2f}" if other else ""
        lines.append(f"{form:12} {name:24} {own * 1e6:6.2f}{beside}")
    return "\n".join(lines)


def main():
    """Measure all rows and write the results, or print some of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="rows whose form and name have this pattern")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        return serve(args.engine)
    chosen = [case for case in cases() if re.search(args.only, f"{case[0]} {case[1]}")]
    rows = measure(chosen, args.rounds)
    print(table(rows))
    if len(sys.argv) == 1:
        from machine import describe

        columns = "form name ours_s torch_s".split()
        rows = [dict(zip(columns, row, strict=True)) for row in rows]
        RESULTS.write_text(json.dumps({"machine": describe(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
