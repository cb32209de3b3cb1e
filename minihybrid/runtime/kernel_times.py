"""Time each kernel of a compiled plan.

Defines: `time_steps`, which implements `Plan.time_steps`.

Not supported: devices, whose kernels run asynchronously.
"""

import statistics
import time
from collections.abc import Sequence

import numpy as np

from minihybrid.codegen.bytecode import n_calls
from minihybrid.core.op import HybridError
from minihybrid.core.plan import Plan

SHORT_S = 1e-3  # shorter calls are timed ten at a time
FEWEST, ENOUGH_S = 3, 2.0  # least repeats, and a time limit for more


def time_steps(
    plan: Plan, arrays: Sequence[np.ndarray], bound: tuple, repeats: int
) -> list[tuple[str, float]]:
    """Return seconds per kernel, medians over repeats (at least three).

    The plan runs up to each launch in turn, and a launch's time is the difference between
    two such runs: n launches take n runs per repeat. In a loop, each launch is timed in the
    first iteration, except that the last one includes all other iterations.
    """
    if plan.target != "cpu":
        raise HybridError(
            f"time_steps: the target '{plan.target}' has no compiled steps; use target='cpu'"
        )
    plan(arrays, bound)  # compiles it
    outs = [np.empty(shape, dtype) for shape, dtype in plan.out_specs]
    args = (*arrays, *outs, plan._new_arena(), bound[0], 0)
    launches, stops = plan.made.launches, [0]
    for k, launch in enumerate(launches, 1):  # of a loop, the first iteration
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
