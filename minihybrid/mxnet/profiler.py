"""Chapter 08. A profiler: what a program's time went into, as a trace of Chrome's format.

Takes:   the calls between `start` and `stop`.
Gives:   `dump`, a file for Perfetto (ui.perfetto.dev) or chrome://tracing; `dumps`, a table.

Nothing is planted into the engine: `sys.setprofile` shows every Python call of a thread, and
the few functions in `watched` become events. So an idle profiler costs nothing, and a running
one lengthens small operators by a few microseconds. Kernels run inside one call of compiled
code; their events share its time in the ratios of `plan.time_steps`.
What is left out: GPUs; memory; kernels of each helper thread; threads that began before `start`.
"""

import functools
import gc
import json
import os
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any

from minihybrid.core import pipeline
from minihybrid.core.files import write_whole
from minihybrid.core.hybrid import Hybrid
from minihybrid.core.op import AttrError, HybridError, Op
from minihybrid.core.passes import PASSES
from minihybrid.core.plan import Plan
from minihybrid.core.targets import TARGETS

KINDS = {  # flag of `set_config` -> the categories that it chooses
    "profile_imperative": {"operator"},
    "profile_symbolic": {"trace", "passes", "compile", "plan", "kernel"},
    "profile_api": set(),
    "profile_memory": set(),
}
REPEATS = 20  # of a plan's kernels, whose ratios `dump` measures
IGNORED = {"aggregate_stats", "continuous_dump", "dump_period", "profile_process"}  # of MXNet


class Profile:
    """What was set and recorded.

    events:  (category, name, thread, start_ns, end_ns, the plan or None).
    stacks:  thread -> (frame, start_ns) of what has begun.
    plans:   code of a plan's `run` -> the plan;  calls: plan -> the arguments of one call.
    """

    def __init__(self) -> None:
        self.filename, self.kinds, self.state = "profile.json", set.union(*KINDS.values()), ""
        self.events: list = []
        self.stacks: dict = {}
        self.plans: dict = {}
        self.calls: dict = {}


PROFILE = Profile()


def set_config(**kwargs: Any) -> None:
    """Say what is recorded, and the file of `dump`.

    filename:      of the trace; profile.json at first.
    profile_all:   everything, as without any choice; or `profile_imperative` (operators),
                   `profile_symbolic` (trace, passes, compilation, plans and kernels).

    Raises:  AttrError for an unknown name; HybridError while the profiler runs.
    """
    known = {"filename", "profile_all", *KINDS, *IGNORED}
    for name in kwargs.keys() - known:
        raise AttrError(f"profiler.set_config: no option is called '{name}'; use {sorted(known)}")
    if PROFILE.state == "run":
        raise HybridError("profiler.set_config: the profiler is running; call stop() first")
    PROFILE.filename = os.fspath(kwargs.get("filename", PROFILE.filename))
    chosen = [KINDS[name] for name in KINDS if kwargs.get(name)]
    is_all = kwargs.get("profile_all") or not chosen
    PROFILE.kinds = set.union(*(KINDS.values() if is_all else chosen))


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start ('run') or stop ('stop') recording.

    Raises:  HybridError to stop what isn't running, or where another profiler is.
    """
    if state not in ("run", "stop"):
        raise AttrError(f"profiler.set_state: the state is 'run' or 'stop', not {state!r}")
    if state == "run":
        if sys.getprofile() not in (None, note):
            raise HybridError("profiler.start: another profiler is running; end it first")
        PROFILE.state = "run"
        for plan in (o for o in gc.get_objects() if issubclass(type(o), Plan)):
            enter(plan)
        threading.setprofile(note)
        sys.setprofile(note)
    elif PROFILE.state == "":
        raise HybridError("profiler.stop: the profiler isn't running; call start() first")
    else:
        _end("")


def start(profile_process: str = "worker") -> None:
    """Start recording."""
    set_state("run")


def stop(profile_process: str = "worker") -> None:
    """Stop recording; `dump` writes what was recorded."""
    set_state("stop")


def pause(profile_process: str = "worker") -> None:
    """Stop recording for a while.

    Raises:  HybridError unless the profiler is running.
    """
    if PROFILE.state != "run":
        raise HybridError("profiler.pause: the profiler isn't running; call start() first")
    _end("pause")


def resume(profile_process: str = "worker") -> None:
    """Go on after `pause`.

    Raises:  HybridError unless the profiler is paused.
    """
    if PROFILE.state != "pause":
        raise HybridError("profiler.resume: the profiler isn't paused; call pause() first")
    set_state("run")


def _end(state: str) -> None:
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]
    PROFILE.state = state
    PROFILE.stacks.clear()
    PROFILE.plans.clear()


# -- events ----------------------------------------------------------------------------
@functools.cache
def watched(n_targets: int) -> dict[CodeType, tuple]:
    """code of a function -> (category, name, or the field of `self` that is the name).

    n_targets:  how many targets are entered; the first plan of one enters it.
    """
    passes = {pipeline.expand, pipeline.plan_memory, *PASSES}
    for target in TARGETS.values():
        passes |= {*target.passes, target.generate}
    out = {f.__code__: ("passes", f.__name__, "") for f in passes if hasattr(f, "__code__")}
    return out | {
        Hybrid.trace.__code__: ("trace", "", "title"),
        Plan.load.__code__: ("compile", "", "title"),
        Op.applied.__code__: ("operator", "", "name"),
    }


def note(frame: FrameType, event: str, _: Any) -> None:
    """Record that a function which is watched begins or ends."""
    plan = PROFILE.plans.get(frame.f_code)
    known = ("plan", plan.title, "") if plan else watched(len(TARGETS)).get(frame.f_code)
    if known is None or event not in ("call", "return"):
        return
    stack = PROFILE.stacks.setdefault(threading.get_ident(), [])
    if event == "call":
        stack.append((frame, time.perf_counter_ns()))
        return
    while stack and stack[-1][0] is not frame:  # it ended by an error
        stack.pop()
    if not stack:
        return
    (_, begun), ended, (category, name, field) = stack.pop(), time.perf_counter_ns(), known
    scope = frame.f_locals
    if category == "compile":
        enter(scope["self"])
    if plan and plan not in PROFILE.calls and plan.target == "cpu":
        PROFILE.calls[plan] = scope["arrays"], scope["bound"]
    if category in PROFILE.kinds:
        name = name or str(getattr(scope["self"], field))
        PROFILE.events.append((category, name, threading.current_thread().name, begun, ended, plan))


def enter(plan: Plan) -> None:
    """Watch the calls of a plan that is loaded."""
    if hasattr(plan.run, "__code__"):
        PROFILE.plans[plan.run.__code__] = plan


def all_events() -> list[tuple]:
    """(category, name, thread, start, end) of what was recorded, and of kernels."""
    shares = {}
    for plan, (arrays, bound) in PROFILE.calls.items():
        _, *steps = plan.time_steps(arrays, bound, REPEATS)
        total = sum(seconds for _, seconds in steps) or 1.0
        shares[plan] = [(label, seconds / total) for label, seconds in steps]
    out = []
    for *event, plan in PROFILE.events:
        out.append(tuple(event))
        _, _, thread, at, end = event
        for label, share in shares.get(plan, ()):
            out.append(("kernel", label, thread, at, at + share * (end - event[3])))
            at = out[-1][-1]
    return out


# -- what was recorded -------------------------------------------------------------------
def dumps(reset: bool = False, format: str = "table") -> str:
    """A table of names, calls, and milliseconds: in all, the shortest, the longest, the mean.

    reset:   whether to forget what was recorded.
    format:  "table", or "json": the trace that `dump` writes.
    """
    if format not in ("table", "json"):
        raise AttrError(f"profiler.dumps: the format is 'table' or 'json', not {format!r}")
    events = all_events()
    if format == "json":
        out = json.dumps(trace_of(events))
    else:
        rows: dict = {}
        for category, name, _, begun, ended in events:
            rows.setdefault((category, name), []).append((ended - begun) / 1e6)
        columns = "".join(f" {column:>8}" for column in ("total", "min", "max", "mean"))
        head = f"{'category':10} {'name':32} {'calls':>6}{columns}"
        lines = [
            f"{category:10} {name:32.32} {len(ms):6} {sum(ms):8.3f} {min(ms):8.3f} {max(ms):8.3f} "
            f"{sum(ms) / len(ms):8.3f}"
            for (category, name), ms in sorted(rows.items(), key=lambda row: -sum(row[1]))
        ]
        out = "\n".join([head, *lines])
    if reset:
        PROFILE.events.clear()
        PROFILE.calls.clear()
    return out


def trace_of(events: list[tuple]) -> dict:
    """Events in Chrome's format: microseconds, a row for each thread."""
    first = min((event[3] for event in events), default=0)
    rows = {name: i for i, name in enumerate(dict.fromkeys(event[2] for event in events))}
    names: list = [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": i, "args": {"name": name}}
        for name, i in rows.items()
    ]
    return {
        "displayTimeUnit": "ms",
        "traceEvents": names
        + [
            {
                "name": name,
                "cat": category,
                "ph": "X",
                "ts": (begun - first) / 1e3,
                "dur": (ended - begun) / 1e3,
                "pid": 0,
                "tid": rows[thread],
            }
            for category, name, thread, begun, ended in events
        ],
    }


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the trace into the file of `set_config`; stop the profiler first if `finished`.

    Raises:  FileError if the file cannot be written.
    """
    if finished and PROFILE.state:
        stop()
    write_whole(PROFILE.filename, dumps(format="json").encode())
