"""Chapter 08. A profiler that records a program's calls as a Chrome trace.

Defines: `dump`, which writes a file for Perfetto (ui.perfetto.dev) or chrome://tracing;
         `dumps`, which returns a table.

The engine isn't instrumented: `sys.setprofile` reports every Python call of a thread, and
the few functions in `watched` become events. So a stopped profiler costs nothing, and a
running one adds a few microseconds to small operators. Kernels run inside one call of
compiled code; its time is split among their events in the ratios of `plan.time_steps`.
Not supported: GPUs; memory; worker threads' kernels; threads started before `start`.
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
from minihybrid.core.hooks import own_names
from minihybrid.core.hybrid import Hybrid
from minihybrid.core.op import AttrError, HybridError, Op
from minihybrid.core.passes import PASSES
from minihybrid.core.plan import Plan
from minihybrid.core.targets import TARGETS

KINDS = {  # flag of `set_config` -> categories
    "profile_imperative": {"operator"},
    "profile_symbolic": {"trace", "passes", "compile", "plan", "kernel"},
    "profile_api": set(),
    "profile_memory": set(),
}
REPEATS = 20  # timings of a plan's kernels in `dump`
IGNORED = {"aggregate_stats", "continuous_dump", "dump_period", "profile_process"}  # MXNet's


class Profile:
    """The profiler's configuration and records.

    events:  (category, name, thread, start_ns, end_ns, the plan or None).
    stacks:  thread -> (frame, start_ns) of running calls.
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
    """Configure what is recorded, and the file of `dump`.

    filename:      of the trace, by default profile.json.
    profile_all:   everything (the default); or `profile_imperative` (operators),
                   `profile_symbolic` (trace, passes, compilation, plans and kernels).

    Raises:  AttrError for an unknown name; HybridError while the profiler runs.
    """
    options = {"filename", "profile_all", *KINDS, *IGNORED}
    for name in kwargs.keys() - options:
        raise AttrError(f"profiler.set_config: no option is called '{name}'; use {sorted(options)}")
    if PROFILE.state == "run":
        raise HybridError("profiler.set_config: the profiler is running; call stop() first")
    PROFILE.filename = os.fspath(kwargs.get("filename", PROFILE.filename))
    chosen = [KINDS[name] for name in KINDS if kwargs.get(name)]
    is_all = kwargs.get("profile_all") or not chosen
    PROFILE.kinds = set.union(*(KINDS.values() if is_all else chosen))


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start ('run') or stop ('stop') recording.

    Raises:  HybridError if it isn't running when stopped, or another profiler is active.
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
    """Stop recording; `dump` writes the trace."""
    set_state("stop")


def pause(profile_process: str = "worker") -> None:
    """Stop recording until `resume`.

    Raises:  HybridError unless the profiler is running.
    """
    if PROFILE.state != "run":
        raise HybridError("profiler.pause: the profiler isn't running; call start() first")
    _end("pause")


def resume(profile_process: str = "worker") -> None:
    """Continue recording after `pause`.

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
    """Return code of a function -> (category, name, or the field of `self` with the name).

    n_targets:  the number of registered targets; a target's first plan registers it.
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
    """Record the start or end of a watched function."""
    plan = PROFILE.plans.get(frame.f_code)
    entry = ("plan", plan.title, "") if plan else watched(len(TARGETS)).get(frame.f_code)
    if entry is None or event not in ("call", "return"):
        return
    stack = PROFILE.stacks.setdefault(threading.get_ident(), [])
    if event == "call":
        stack.append((frame, time.perf_counter_ns()))
        return
    while stack and stack[-1][0] is not frame:  # it raised an exception
        stack.pop()
    if not stack:
        return
    (_, begun), ended, (category, name, field) = stack.pop(), time.perf_counter_ns(), entry
    scope = frame.f_locals
    if category == "compile":
        enter(scope["self"])
    if plan and plan not in PROFILE.calls and plan.target == "cpu":
        PROFILE.calls[plan] = scope["arrays"], scope["bound"]
    if category in PROFILE.kinds:
        name = name or str(getattr(scope["self"], field))
        PROFILE.events.append((category, name, threading.current_thread().name, begun, ended, plan))


def enter(plan: Plan) -> None:
    """Watch the calls of a loaded plan."""
    if hasattr(plan.run, "__code__"):
        PROFILE.plans[plan.run.__code__] = plan


def all_events() -> list[tuple]:
    """Return (category, name, thread, start, end) of recorded events and kernels."""
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


# -- reports ----------------------------------------------------------------------------
def dumps(reset: bool = False, format: str = "table") -> str:
    """Return a table of names, calls, and milliseconds: total, minimum, maximum, mean.

    reset:   whether to discard the records.
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
    """Return events in Chrome's format: microseconds, a row per thread."""
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
    """Write the trace to the file of `set_config`; stop the profiler first if `finished`.

    Raises:  FileError if the file cannot be written.
    """
    if finished and PROFILE.state:
        stop()
    write_whole(PROFILE.filename, dumps(format="json").encode())


__dir__ = own_names(globals())
