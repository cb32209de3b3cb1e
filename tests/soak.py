"""Many random programs and nets, as long as you like.

    python -m soak                                   # an hour or two of one core
    python -m soak --programs 500 --nets 0 --seed 7  # in the folder tests/

Each program is run eagerly, by NumPy's plan, and by the kernels in plain Python; one in
ten also on the simulated GPU, from exported files, and by ONNX Runtime; one in fifty
compiled, here and by a C compiler. One in three is of the world of `mx.np`. The first
fault of a kind is shrunk and printed as Python. A run depends on its seed alone; exits
with 1 if there was any fault.
"""

import argparse
import collections
import os
import random
import sys
import time
import traceback
import warnings

os.environ.setdefault("MINIHYBRID_WAIT", "1")  # for kernels: NumPy might answer first
os.environ.setdefault("TQDM_DISABLE", "1")

import random_nets as nets  # noqa: E402
from programs.draw import draw  # noqa: E402
from programs.judge import REFUSALS, check  # noqa: E402
from programs.run import source  # noqa: E402
from programs.shrink import shrunk  # noqa: E402

ALWAYS, SELDOM = ("numpy", "plain"), ("cpu", "c")
OFTEN = ("gpu", "file", "alone", "onnx", "runtime")
SHRUNK = 40  # faults that are shrunk


def modes_of(number):
    """Who answers the program of this number."""
    return ALWAYS + OFTEN * (number % 10 == 0) + SELDOM * (number % 50 == 0)


def world_of(number):
    """Of which arrays the program of this number is."""
    return "np" if number % 3 == 2 else "nd"


def kind_of(fault):
    """What faults of one kind have in common."""
    words = fault.words.split(" instead of ")[0] if fault.answer == "itself" else ""
    return fault.mode, fault.answer.split(" ")[0], words[:70]


def small(program, fault):
    """The program shrunk, as long as the fault is of the same kind."""

    def same(other):
        found = check(other, [fault.mode])
        return found is not None and kind_of(found) == kind_of(fault)

    return shrunk(program, same)


def programs(first, number):
    """Run programs; gives the number of faults of each kind."""
    faults, ran, start = collections.Counter(), collections.Counter(), time.time()
    for k in range(number):
        program = draw(first + k, world=world_of(k))
        fault = check(program, modes_of(k))
        ran.update([*modes_of(k), program.world, *["second"] * program.second])
        if fault:
            kind = kind_of(fault)
            faults[kind] += 1
            if faults[kind] <= 3 and sum(faults.values()) <= SHRUNK:
                least = small(program, fault)
                print(
                    f"\n{check(least, [fault.mode]) or fault}\n{source(least)}\n{least.to_json()}",
                    flush=True,
                )
        if k % 500 == 499:
            print(
                f"{k + 1} programs, seeds {first} to {first + k}, "
                f"{sum(faults.values())} faults, {time.time() - start:.0f} s",
                flush=True,
            )
    for mode, n in ran.items():
        refused = sum(n for (m, _), n in REFUSALS.items() if m == mode)
        print(f"{n:>6}  {mode}{f', of which {refused} were refused' * (refused > 0)}")
    return faults


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
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--nets", type=int, default=2000)
    parser.add_argument(
        "--seed",
        type=int,
        default=random.randrange(10**9),
        help="the first program's; others follow one by one",
    )
    given = parser.parse_args()
    print(f"--programs {given.programs} --nets {given.nets} --seed {given.seed}")
    warnings.simplefilter("ignore")
    faults = programs(given.seed, given.programs) + random_nets(given.seed, given.nets)
    print(f"{given.programs} programs, {given.nets} nets, {sum(faults.values())} faults")
    for kind, n in faults.most_common():
        print(f"{n:>6}  {', '.join(kind)}")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
