"""Equal programs, equal answers: a program beside its rewritten form.

    fault = check(case(7), ("numpy", "plain"))

The oracle is the program as drawn, evaluated eagerly in float64. The program itself,
eagerly in its own dtypes, must agree with it, and so must the rewritten program in each
mode: predictions, outputs in training, states, gradients, and gradients of gradients.
How far two right answers may be apart is the judge's rule: noise of a few units in the
last place, here behind every operator that may round, in both programs.
"""

import json
import random
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from minihybrid.core.op import HybridError
from programs import judge, np_rules
from programs.calls import CALLS, TRANSFORMS, TWINS
from programs.draw import draw
from programs.files import Refused
from programs.judge import (
    Fault,
    Net,
    answers,
    compared,
    eagerly,
    message_of,
    noise,
    noisy_operators,
)
from programs.rewrites import MIXING, TABLE, Unfit, drawn, quiet_values_of, rewritten
from programs.rules import NAMES
from programs.run import INFIX, Program, all_steps, source, with_attributes
from programs.shrink import candidates, works

DRAWN = {*INFIX, *NAMES, *np_rules.NAMES}  # operators with a rule
Answers = dict[str, np.ndarray]
FLOATS = ("float32", "float64")  # which become float64
SMALL, LARGE = 1e-12, 1e12  # of such numbers, float32 and float64 have the same products


class Case(NamedTuple):
    """A program, and how it is rewritten."""

    program: Program
    rewrites: tuple[tuple[str, int], ...]


def case(seed: int, world: str = "nd", first: str | None = None) -> Case:
    """The case of a seed.

    first:   the rewrite that is tried before others, and for which the program has a step;
             any, by the seed, if none is named.
    """
    rewrite = TABLE[first or random.Random(seed).choice(sorted(TABLE))]
    known = [op for op in rewrite.ops if world == "np" or not op.startswith("np")]
    program = draw(seed, world=world, first=[op for op in known if op in DRAWN])
    return Case(program, drawn(program, seed, rewrite.name))


def text(case: Case) -> str:
    """Both programs as Python."""
    names = ", ".join(name for name, _ in case.rewrites)
    return f"{source(case.program)}\n\n# rewritten: {names}\n{source(rewritten(*case))}"


def to_json(case: Case) -> str:
    """One line of text: a program, and its rewrites."""
    return json.dumps({"program": json.loads(case.program.to_json()), "rewrites": case.rewrites})


def from_json(fields: dict) -> Case:
    """The case of such a line, or of one that has only a program."""
    program = Program.from_json(json.dumps(fields["program"]))
    return Case(program, tuple((name, number) for name, number in fields.get("rewrites", ())))


# -- the oracle ------------------------------------------------------------------------
def oracle(program: Program, eager: Answers) -> tuple[Answers, Program, Answers] | None:
    """The answers in float64, in the dtypes of eager ones; who gave them, and as they came.

    There are none where numbers are beyond float32's, where a step refuses float64
    beside what stays in 32 bits, or where one leaves float64 as it is.
    """
    if any(s.op == "amp_cast" and s.attrs["dtype"] not in FLOATS for s in all_steps(program)):
        return None
    values = quiet_values_of(program.but(train=False))
    sizes = [np.abs(v.astype(np.float64)) for v in values if v.dtype.kind == "f"]
    if not all(((s == 0) | (s > SMALL) & (s < LARGE)).all() for s in sizes):
        return None
    exact = tuple(
        replace(each, values=tuple(each.array().ravel().tolist())) for each in program.inputs
    )
    program = program.but(inputs=exact)
    if all(v.dtype in ("float32", "bool") for v in values):
        program = with_attributes(program, in_float32)  # x % 0.1 is x % 0.100000001
    wide = judge.widened(program)
    try:
        right = answers(Net(wide), wide)
    except HybridError:
        return None
    if any(right[name].dtype.kind != eager[name].dtype.kind for name in right):
        return None
    with np.errstate(all="ignore"):
        rounded = {name: right[name].astype(eager[name].dtype) for name in right}
    return rounded, wide, right


def in_float32(value: object) -> object:
    """The number that float32 has in place of an attribute; others as they are."""
    return float(np.float32(value)) if isinstance(value, float) else value


def shaken(expected: Answers, *runs: tuple[Program, Answers]) -> Callable:
    """(program, seeds) -> the required answers, moved as noise moves those of each run."""

    def disturbed(_, seeds: Iterable[int]) -> list[Answers]:
        runs_moved = []
        for seed in seeds:
            for program, base in runs:
                try:
                    with noisy_operators(seed):
                        noisy = answers(Net(program, *noise(seed)), program)
                except Exception:  # noise may lead a program where it cannot go
                    continue
                names = expected.keys() & base.keys() & noisy.keys()
                runs_moved.append({n: moved(expected[n], base[n], noisy[n]) for n in names})
        return runs_moved

    return disturbed


def moved(expected: np.ndarray, base: np.ndarray, noisy: np.ndarray) -> np.ndarray:
    """An answer that differs from `wanted` as `noisy` does from `base`."""
    if not expected.shape == base.shape == noisy.shape:
        return expected
    with np.errstate(all="ignore"):
        same = (base == noisy) | (base != base) & (noisy != noisy)
        if expected.dtype.kind != "f":
            return np.where(same, expected, expected == 0).astype(expected.dtype)
        return np.where(same, expected, expected + (noisy.astype(np.float64) - base))


# -- the check -------------------------------------------------------------------------
def check(case: Case, modes: Iterable[str] = ("numpy", "plain")) -> Fault | None:
    """The first fault of a case."""
    mode = "oracle"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program, expected = eagerly(case.program)
            if wide := oracle(program, expected):
                right, *by = wide
                run = shaken(right, (program, expected), by)  # with which ties, for example, part
                if wrong := compared(program.but(exact=False), right, expected, [], "eager", run):
                    return Fault("oracle", *wrong)
            mode, rewrites = "eager", case.rewrites
            if not all(np.isfinite(a).all() for n, a in expected.items() if "gradient" in n):
                rewrites = tuple(takewhile(lambda r: r[0] not in MIXING, rewrites))
            other, base = eagerly(rewritten(program, rewrites))
            assert other.train == program.train, "no gradient of the rewritten program"
            judged, noisy = program.but(exact=other.exact), []
            run = shaken(expected, (program, expected), (other, base))
            for mode in ("eager", *modes):
                try:
                    required, actual = answers_of(mode, other, expected, base)
                except Refused as refused:
                    judge.REFUSALS[mode, refused.args[0]] += 1
                    continue
                noise_of = noisy, mode, run
                if required is not expected:  # of another program
                    noise_of = [], mode, shaken(required, (other, base))
                if wrong := compared(judged, required, actual, *noise_of):
                    return Fault(mode, *wrong)
        except Exception as error:
            return Fault(mode, "itself", message_of(error))
    return None


def answers_of(
    mode: str, program: Program, expected: Answers, base: Answers
) -> tuple[Answers, Answers]:
    """What is required of a mode, and its answers for a rewritten program.

    wanted, base:  the eager answers of the program as drawn, and as rewritten.
    """
    if mode in TWINS:
        return TWINS[mode](program)
    if mode == "eager":
        actual = base
    else:
        actual = {**judge.MODES, **CALLS, **TRANSFORMS}[mode](program)
        whole = (
            mode in TRANSFORMS
            or all(n.startswith("output") for n in actual)
            or actual.keys() == base.keys()
        )
        assert whole, f"{list(actual)} instead of {list(base)}"
    return expected, {n: actual[n] for n in expected if n in actual}


# -- shrinking -------------------------------------------------------------------------
def shrunk(case: Case, has_fault: Callable[[Case], bool], most: int = 300) -> Case:
    """The smallest case with the fault: fewer rewrites, then a smaller program."""
    tried = 0
    while True:
        for smaller in smaller_cases(case):
            tried += 1
            if tried > most:
                return case
            if fits(smaller) and has_fault(smaller):
                case = smaller
                break
        else:
            return case


def smaller_cases(case: Case) -> Iterable[Case]:
    """Cases with a little less."""
    for k in range(len(case.rewrites)):
        yield case._replace(rewrites=case.rewrites[:k] + case.rewrites[k + 1 :])
    for program in candidates(case.program):
        if program != case.program:
            yield case._replace(program=program)


def fits(case: Case) -> bool:
    """Whether eager arrays run the program, and each rewrite has a place."""
    try:
        return works(case.program) and bool(rewritten(*case))
    except Unfit:
        return False
