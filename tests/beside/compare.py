"""Random programs on minihybrid and on MXNet 1.9.1: where do the answers differ?

    python -m beside --programs 6000 --seed 0     # in the folder tests/

A program is run whole in both. Where the answers differ, each of its steps is run alone
in both, on the same numbers; what differs there must be in the table of
`differences`. Then those steps give way to inputs with our numbers, and what is
left must agree as a whole. So one known difference hides nothing behind it.
"""

import argparse
import collections
import datetime
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from programs import rate
from programs.draw import draw
from programs.run import Input, Program, Step, arrays_of, run, source
from programs.shrink import shrunk

import minihybrid as mh
from beside.child import answers, unpacked
from beside.differences import KNOWN, disturbance, reason

HERE = Path(__file__).parents[1]
ENVS = HERE.parent / "benchmarks" / "envs.py"
RESULTS = HERE / "golden" / "beside.json"
CHUNK = 500  # programs between two lines of progress

# Of a number, and a tenth of it of the largest number beside it.
ROUNDING = {"float16": 1e-2, "float32": 2e-5, "float64": 1e-11}


class MXNet:
    """MXNet in a process of its own, which answers from a copy for each program."""

    def __init__(self, python):
        self.process = subprocess.Popen(
            [python, "-m", "beside.child"],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ
            | {
                "MXNET_ENGINE_TYPE": "NaiveEngine",  # errors where they happen
                "OMP_NUM_THREADS": "1",
            },
        )

    def answers(self, program):
        """What `child.answers` says there."""
        self.process.stdin.write(program.to_json() + "\n")
        self.process.stdin.flush()
        return unpacked(self.process.stdout.readline())


class Difference:
    """One answer that is not the same: of a step alone, or of a program.

    apart:  where two arrays differ, if they are of one shape and dtype.
    """

    def __init__(self, program, name, kind, ours, theirs, apart=None):
        self.program, self.name, self.kind = program, name, kind
        self.ours, self.theirs, self.apart = ours, theirs, apart
        self.step = program.steps[0] if len(program.steps) == 1 else None

    def __str__(self):
        return f"{self.name}, {self.kind}: {self.ours!r}; MXNet {self.theirs!r}"


def differences(program, ours, theirs):
    """Each answer of a program that is not the same, as a Difference."""
    if ("error" in ours) != ("error" in theirs):
        yield Difference(program, "answer", "error", ours.get("error"), theirs.get("error"))
    for name in sorted(ours.keys() & theirs.keys() - {"error"}):
        a, b = ours[name], theirs[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            kind = "dtype" if a.shape == b.shape else "shape"
            yield Difference(program, name, kind, a, b)
        elif (apart := ~close(a, b, name.startswith("gradient"))).any():
            yield Difference(program, name, "value", a, b, apart)


def close(a, b, gradient):
    """Where two arrays of one shape and dtype are the same but for rounding.

    gradient:  they are what becomes of numbers near 1 that come back.
    """
    if a.dtype.kind != "f":
        return a == b
    unit = ROUNDING[str(a.dtype)]
    size = np.abs(b[np.isfinite(b)]).max(initial=1 if gradient else 0)
    with np.errstate(all="ignore"):
        return np.isclose(a, b, unit, unit * size / 10, equal_nan=True)


def same_bits(ours, theirs):
    return all(
        np.array_equal(ours[k], theirs[k], equal_nan=True)
        for k in ours.keys() & theirs.keys() - {"error"}
    )


# -- steps alone, and programs without some of their steps -----------------------------
def values_of(program):
    """All values as eager arrays have them, as far as the program comes."""
    made = [mh.nd.array(a, dtype=a.dtype) for a in arrays_of(program)]
    values = [a.asnumpy() for a in made]

    def after(step, outs):
        values.extend(out.asnumpy() for out in outs)
        return outs

    with mh.autograd.record(train_mode=program.train):
        try:
            run(mh.nd, program, made, after=after)
        except Exception:  # the whole program has the same error
            pass
    return values


def given(value, role="data"):
    return Input(value.shape, str(value.dtype), tuple(value.ravel().tolist()), role)


def alone(program, number, values):
    """The program of one step, on the numbers that it has in the whole."""
    step = program.steps[number]
    n = len(program.inputs)
    inputs = tuple(
        given(values[i], program.inputs[i].role if i < n else "data") for i in step.inputs
    )
    here = Step(step.op, tuple(range(len(inputs))), step.attrs, step.n_outputs)
    outs = tuple(range(len(inputs), len(inputs) + step.n_outputs))
    return Program(inputs, (here,), outs, program.train, seed=program.seed)


def without(program, numbers, values):
    """The program with inputs in place of the results of some steps."""
    places, inputs, steps = list(range(len(program.inputs))), list(program.inputs), []
    first = len(inputs)
    for number, step in enumerate(program.steps):
        for value in range(first, first + step.n_outputs):
            places.append(len(inputs) if number in numbers else ("made", value))
            if number in numbers:
                inputs.append(given(values[value]))
        first += step.n_outputs
    made = [v for v, place in enumerate(places) if isinstance(place, tuple)]
    for place, value in enumerate(made, len(inputs)):
        places[value] = place
    for number, step in enumerate(program.steps):
        if number not in numbers:
            steps.append(
                Step(step.op, tuple(places[i] for i in step.inputs), step.attrs, step.n_outputs)
            )
    outs = tuple(places[i] for i in program.outputs)
    return program.but(inputs=tuple(inputs), steps=tuple(steps), outputs=outs)


# -- the judgement ---------------------------------------------------------------------
def judge(program, mxnet):
    """(verdict, [(entry of the table or None, Difference)]) of one program.

    The verdict is "same"; "same but for known steps", the rest agrees as a whole;
    "known as a whole", it stops in the rest, with a known error; "rounding", of which
    no step has more than its share; or "unknown".
    """
    ours, theirs = answers(mh, program), mxnet.answers(program)
    different = list(differences(program, ours, theirs))
    if not different:
        return "same", []
    values, reasons, exact = values_of(program), [], True
    known, n_values = set(), len(program.inputs)
    for number, step in enumerate(program.steps):
        if max(step.inputs, default=0) >= len(values):
            break
        n_values += step.n_outputs
        one = alone(program, number, values)
        a, b = answers(mh, one), mxnet.answers(one)
        some = [(reason(d), d) for d in differences(one, a, b)]
        exact = exact and same_bits(a, b)
        reasons += some
        if some:
            known.add(number)
    if any(why is None for why, _ in reasons):
        return "unknown", reasons
    if len(values) < n_values or "error" in ours and known:
        return "same but for known steps", reasons  # as far as it comes
    for disturbed in (False, True):
        if disturbed:
            some = [
                (why, None)
                for number, step in enumerate(program.steps)
                if (why := disturbance(step, different)) is not None and not known.add(number)
            ]
            reasons += some
        rest = without(program, known, values)
        different = list(differences(rest, answers(mh, rest), mxnet.answers(rest)))
        if not different:
            return "same but for known steps", reasons
    if not exact and all(d.kind == "value" for d in different):
        return "rounding", reasons
    reasons += [(reason(d), d) for d in different]
    bad = any(why is None for why, _ in reasons)
    return "unknown" if bad else "known as a whole", reasons


def small(program, mxnet):
    """An unknown difference of the same kind with as few steps as possible."""

    def kinds(other):
        unexplained = (d for why, d in judge(other, mxnet)[1] if why is None)
        return {(d.kind, d.step and d.step.op) for d in unexplained}

    sought = kinds(program)

    def same(other):
        return not sought.isdisjoint(kinds(other))

    return shrunk(program, same)


def run_all(first, number, mxnet, verdicts, entries):
    """Judge programs and print what is unknown; adds to the counts of verdicts and entries."""
    for seed in range(first, first + number):
        program = draw(seed)
        verdict, reasons = judge(program, mxnet)
        verdicts[verdict] += 1
        entries.update({KNOWN[why].what for why, _ in reasons if why is not None})
        if verdict == "unknown":
            print(
                *(d for why, d in reasons if why is None),
                source(small(program, mxnet)),
                "",
                sep="\n",
                flush=True,
            )


def python_with_mxnet():
    """The path of a Python that has MXNet, made if there is none."""
    return subprocess.run(
        [sys.executable, ENVS, "mxnet"], check=True, text=True, stdout=subprocess.PIPE
    ).stdout.strip()


def save(seeds, verdicts, entries):
    """Write the counts for the book's pages."""
    number = verdicts.total()
    counts = {"programs": number, "seeds": seeds, "unexplained": verdicts["unknown"]}
    rate.save("mxnet", counts)
    results = {
        "date": datetime.date.today().isoformat(),
        "programs": number,
        "verdicts": dict(sorted(verdicts.items())),
        "entries": dict(sorted(entries.items())),
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def main():
    """Exit with 1 if a difference is not known."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true", help="keep the counts for the book's page")
    args = parser.parse_args()
    mxnet = MXNet(python_with_mxnet())
    verdicts, entries = collections.Counter(), collections.Counter()
    for first in range(args.seed, args.seed + args.programs, CHUNK):
        number = min(CHUNK, args.seed + args.programs - first)
        run_all(first, number, mxnet, verdicts, entries)
        print(f"seeds {args.seed} to {first + number - 1}: {dict(verdicts)}", flush=True)
        if args.save:  # after each chunk, so that a run may end early
            save([args.seed, first + number - 1], verdicts, entries)
    sys.exit(verdicts["unknown"] > 0)
