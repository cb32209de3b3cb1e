"""How long each kernel of a compiled plan takes.

Takes:   a plan, the arrays of a call, and what `bind` returned.
Gives:   `time_steps`, which `Plan.time_steps` calls.

What is left out: kernels of a device, which run side by side with Python.
"""

import statistics
import time
from collections.abc import Sequence

import numpy as np

from minihybrid.codegen.bytecode import n_calls
from minihybrid.core.op import HybridError
from minihybrid.core.plan import Plan

SHORT_S = 1e-3  # a call so short is timed ten at a time
FEWEST, ENOUGH_S = 3, 2.0  # repeats, and seconds after which no more of them begin


def time_steps(
    plan: Plan, arrays: Sequence[np.ndarray], bound: tuple, repeats: int
) -> list[tuple[str, float]]:
    """Seconds of each kernel, medians of repeats: fewer of a large net, but three.

    The driver is told to stop after each launch, and a launch's time is the difference of
    two stops: a net of n launches is run n times a repeat. Of a loop, each launch's time is
    that of the first turn, but the last launch's has all other turns, too.
    """
    if plan.target != "cpu":
        raise HybridError(
            f"time_steps: the target '{plan.target}' has no compiled steps; use target='cpu'"
        )
    plan(arrays, bound)  # compiles it
    outs = [np.empty(shape, dtype) for shape, dtype in plan.out_specs]
    args = (*arrays, *outs, plan._new_arena(), bound[0], 0)
    launches, stops = plan.made.launches, [0]
    for k, launch in enumerate(launches, 1):  # of a loop, the first turn launch by launch
        stops.append(stops[-1] + 1 if not launch.turns else n_calls(launches[:k]))
    n, samples = stops[-1], [list[float]() for _ in stops]

    def run(stop: int, times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            plan.function(*args, stop, 0, 0)
        return (time.perf_counter() - start) / times

    at_once, begun = 10 if run(n, 1) < SHORT_S else 1, time.perf_counter()
    for repeat in range(repeats):
        if repeat >= FEWEST and time.perf_counter() - begun > ENOUGH_S:
            break
        for stop, sample in zip(stops, samples, strict=True):
            sample.append(run(stop, at_once))
    medians = [statistics.median(s) for s in samples]
    times = [max(b - a, 0.0) for a, b in zip(medians, medians[1:], strict=False)]
    return [("call", medians[0]), *zip(plan.labels, times, strict=True)]
