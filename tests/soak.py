"""Many random programs and nets, as long as you like.

    python -m soak                                   # some hours of one core
    python -m soak --programs 500 --nets 0 --seed 7  # in the folder tests/
    python -m soak --seed 7 --save                   # also write the rate for the book:
                           # every 500 programs, so that a run may end early, and go on
    python -m soak --control --programs 5000         # branches, loops, vjp, jvp and vmap

Each program is rewritten (`programs.rewrites`); the eager float64 answers of the program
as drawn are the oracle for both, run eagerly and by NumPy's plan. One in five also runs
as kernels in plain Python, with operators that write in place, with literals as inputs,
and in another way of `programs.calls`; one in ten on the simulated GPU, from exported
files, and by ONNX Runtime; one in fifty is compiled, here and by a C compiler. One in
three is of the world of `mx.np`, and one in four is not rewritten. With `--control`, programs
have branches and loops, inside of each other as well, and each is also transformed instead
of rewritten. The first fault of a kind is shrunk and printed as Python. A program depends on
its seed alone, so a long run may be cut into several; exits with 1 if there was any fault.
"""

import argparse
import collections
import os
import random
import sys
import time
import traceback
import warnings
from dataclasses import replace

os.environ.setdefault("MINIHYBRID_WAIT", "1")  # for kernels: NumPy might answer first
os.environ.setdefault("TQDM_DISABLE", "1")

import numpy as np
import random_nets as nets
from programs import metamorphic, rate
from programs.calls import CALLS, TRANSFORMS, TWINS
from programs.draw import OUTPUT_LAYERS, draw
from programs.judge import REFUSALS
from programs.run import CONTROL, all_steps

SELDOM = ("cpu", "c")
OFTEN = ("gpu", "file", "alone", "onnx", "runtime")
RARE = ("in place", "numbers")  # only a few programs have `x /= y`, or a literal on the left
DERIVED = [*TRANSFORMS, "differences"]
WAYS = sorted({**CALLS, **TWINS}.keys() - {*RARE, *DERIVED})
CHUNK = 500  # programs between two lines of progress
SHRUNK = 40  # faults that are shrunk


def modes_of(seed, control=False):
    """Who answers the program of a seed, beside eager arrays."""
    ways = WAYS[seed // 5 % len(WAYS)]
    if control:
        some = ("numpy", DERIVED[seed % len(DERIVED)], *["plain"] * (seed % 20 == 0))
    else:
        some = ("numpy", *(("plain", *RARE, ways) if seed % 5 == 0 else ()))
    return some + OFTEN * (seed % 10 == 0) + SELDOM * (seed % 50 == 0)


def case_of(seed, control=False):
    """The program of a seed, and its rewrites: none for one in four."""
    if control:
        return metamorphic.Case(draw(seed, control=2), ())
    case = metamorphic.case(seed, world="np" if seed % 3 == 2 else "nd")
    return case if seed % 4 else case._replace(rewrites=())


def kind_of(fault):
    """What faults of one kind have in common."""
    words = fault.words.split(" instead of ")[0] if fault.answer == "itself" else ""
    return fault.mode, fault.answer.split(" ")[0], words[:70]


def small(case, fault):
    """The case shrunk, as long as the fault is of the same kind."""

    def same(other):
        actual = metamorphic.check(other, [fault.mode])
        return actual is not None and kind_of(actual) == kind_of(fault)

    return metamorphic.shrunk(case, same)


def is_steep(case, fault):
    """Whether a NaN is zero times an infinite slope, such as that of a cube root at 0.

    In a plan, the side of a branch that isn't taken has a gradient of zeros. Nearby, the slope
    is finite; that of a power has the logarithm of its base, so bases are made positive.
    """
    if "gradient" not in fault.answer or not fault.words.startswith("nan instead of"):
        return False
    has_power = any(step.op == "**" or "pow" in step.op for step in all_steps(case.program))
    near, rng = abs if has_power else float, np.random.default_rng(0)
    inputs = tuple(
        replace(i, values=tuple(near(v) + 1e-3 * rng.random() for v in i.values))
        if i.dtype.startswith("f")
        else i
        for i in case.program.inputs
    )
    moved = case._replace(program=case.program.but(inputs=inputs, exact=False))
    return metamorphic.check(moved, [fault.mode]) is None


def meets_output_layer(case, fault):
    """Whether gradients agree when each output layer is an identity.

    A plan has gradients of zeros where the tape stops, and such a layer ignores them.
    """

    def replaced(program):
        steps = [
            replace(s, op="identity", inputs=s.inputs[:1], attrs={})
            if s.op in OUTPUT_LAYERS
            else replace(s, attrs={**s.attrs, "bodies": tuple(map(replaced, s.attrs["bodies"]))})
            if "bodies" in s.attrs
            else s
            for s in program.steps
        ]
        return program.but(steps=tuple(steps))

    if "gradient" not in fault.answer or not any(
        s.op in OUTPUT_LAYERS for s in all_steps(case.program)
    ):
        return False
    return metamorphic.check(case._replace(program=replaced(case.program)), [fault.mode]) is None


def programs(first, number, before, stop=False, control=False):
    """Run programs; gives the number of faults of each kind, and of programs in each mode.

    before:  the faults so far, to which those are added.
    stop:    whether to end at the first fault, which is then not shrunk.
    """
    faults, ran, start = collections.Counter(), collections.Counter(), time.time()
    REFUSALS.clear()
    for seed in range(first, first + number):
        case, modes = case_of(seed, control), modes_of(seed, control)
        fault = metamorphic.check(case, modes)
        kinds = {step.op for step in all_steps(case.program)} & {*CONTROL}
        kinds |= {case.program.world, *["rewritten"] * bool(case.rewrites)}
        ran.update(["eager", *modes, *kinds])
        if fault and control and is_steep(case, fault):
            REFUSALS[fault.mode, "zero times an infinite or undefined slope"] += 1
        elif fault and control and meets_output_layer(case, fault):
            REFUSALS[fault.mode, "an output layer that ignores a gradient of zeros"] += 1
        elif fault:
            kind = kind_of(fault)
            faults[kind] += 1
            before[kind] += 1
            if stop:
                print(f"seed {seed}, {', '.join(n for n, _ in case.rewrites)}: {fault}")
                return faults, ran
            if before[kind] <= 3 and before.total() <= SHRUNK:
                least = small(case, fault)
                words = metamorphic.check(least, [fault.mode]) or fault
                print(f"\n{words}\n{metamorphic.text(least)}", flush=True)
                print(metamorphic.to_json(least), flush=True)
    for (mode, _), n in REFUSALS.items():
        ran[mode] -= n
    print(
        f"seeds {first} to {first + number - 1}, {before.total()} faults, "
        f"{time.time() - start:.0f} s; {dict(ran)}",
        flush=True,
    )
    return faults, ran


def random_net(seed):
    """A start, a dtype, whether there are two outputs, and layers."""
    rng = random.Random(seed)
    layers = [
        (rng.choice(sorted(nets.LAYERS)), rng.randint(0, 5), rng.randint(0, 5))
        for _ in range(rng.randint(1, 6))
    ]
    return (rng.choice(nets.STARTS), rng.choice(sorted(nets.TOLERANCE)), rng.random() < 0.5, layers)


def random_nets(first, number):
    """Run nets, hybridized by NumPy's plan; one in fifty compiled."""
    faults = collections.Counter()
    nets.note = lambda text: None  # that is Hypothesis's
    for seed in range(first, first + number):
        net = random_net(seed)
        try:
            nets.check(net, "cpu" if seed % 50 == 0 else "numpy")
        except Exception as error:
            kind = type(error).__name__
            faults["net", kind] += 1
            print(f"\nnet {seed}: {net}\n{traceback.format_exc(limit=-2)}", flush=True)
    return faults


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=int, default=50000)
    parser.add_argument("--nets", type=int, default=2000)
    parser.add_argument(
        "--seed",
        type=int,
        default=random.randrange(10**9),
        help="the first program's; others follow one by one",
    )
    parser.add_argument("--control", action="store_true", help="branches, loops, transformations")
    parser.add_argument("--stop", action="store_true", help="stop at the first fault")
    parser.add_argument("--save", action="store_true", help="write the rate for the book's page")
    given = parser.parse_args()
    print(f"--programs {given.programs} --nets {given.nets} --seed {given.seed}")
    warnings.simplefilter("ignore")
    faults = collections.Counter()
    for first in range(given.seed, given.seed + given.programs, CHUNK):
        number = min(CHUNK, given.seed + given.programs - first)
        actual, ran = programs(first, number, faults, given.stop, given.control)
        if given.stop and actual:
            sys.exit(1)
        if given.save:
            rate.save_programs(first, number, actual, ran, "control" * given.control or "programs")
    faults += random_nets(given.seed, given.nets)
    print(f"{given.programs} programs, {given.nets} nets, {sum(faults.values())} faults")
    for kind, n in faults.most_common():
        print(f"{n:>6}  {', '.join(kind)}")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
