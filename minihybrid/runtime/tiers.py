"""Tiered compilation: NumPy runs a plan until its compiled kernels are ready.

Defines: `Tiers`, the `ActivePlan` of a graph that is compiled in the background.

Compilation takes a second, or several for a net with many kinds of kernels; a NumPy plan
takes a millisecond. So the first predictions run on NumPy while a background thread
compiles the plan that then replaces it.

The two plans differ by the order of summation: for float32, within 1e-5 of the sum's
terms. The moment of the switch depends on the machine and the cache, so a reproducible
program never runs the first tier: after `mx.random.seed` or `autograd.record`, calls block
until kernels are compiled (`STREAM.repeats`). `hybridize(wait=True)` and the environment's
`MINIHYBRID_WAIT=1` always block, `wait=False` and `MINIHYBRID_WAIT=0` never do.
Not supported: further tiers; deoptimization.
"""

import os
import queue
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from minihybrid.codegen.cpu import target
from minihybrid.codegen.cpu.objects import STILL, tell
from minihybrid.codegen.cpu.thread_pool import together
from minihybrid.core.op import AttrError, legible
from minihybrid.core.pipeline import Job
from minihybrid.core.plan import ActivePlan, Bound, Plan, bind
from minihybrid.core.targets import TARGETS, Target
from minihybrid.ops.random import STREAM
from minihybrid.passes.fuse import fuse
from minihybrid.passes.reduction_schedule import scratch_of
from minihybrid.registrations import compiles

PAUSE_S = 0.1  # delay of background compilation, so that a short program doesn't compete with it
FIRST = "until the kernels of the other plan are ready"  # notes of the two plans
LAST = "NumPy answers until its kernels are ready"


class Tiers(ActivePlan):
    """Two plans of one graph, one of them active.

    job:     for a target that compiles.
    wait:    whether calls block until the plan is compiled; `None`: as the environment's
             MINIHYBRID_WAIT or, without it, `STREAM.repeats`.
    plan:    the active plan.

    >>> from minihybrid.core import sym
    >>> from minihybrid.core.graph import Graph
    >>> from minihybrid.core.pipeline import Job
    >>> graph = Graph.of(sym.relu(sym.var("x", shape=(2,), dtype="float32")))
    >>> Tiers(Job(graph, ("x",), target="cpu"), wait=False).plan.target
    'numpy'
    """

    def _first(self, job: Job, wait: bool | None) -> Plan:
        self.preparer: BackgroundCompiler | None = None  # the thread that compiles it
        self.ready = False
        self.error: Exception | None = None
        self.wait = waiting() if wait is None else wait
        self.settled = self.wait is True  # the active plan is final
        if job.training:
            STREAM.repeats = True
        self.final = self._make(job.target) if self.waits else None
        if self.final:
            return self.final
        plan = self._make("numpy")
        plan.target_note = FIRST
        return plan

    @property
    def waits(self) -> bool:
        """Whether a call currently blocks until the plan is compiled."""
        return STREAM.repeats if self.wait is None else self.wait

    def _make(self, name: str) -> Plan:
        with STILL:  # it may import modules
            return Plan.of(replace(self.job, target=name))

    def bind(self, arrays: dict[str, np.ndarray]) -> "SwappingBinding":
        """Bind the active plan to its parameters, to be replaced by the next one."""
        return SwappingBinding(self, arrays)

    def first(self, arrays: dict[str, np.ndarray]) -> tuple[Callable | None, Any]:
        """Return the first tier's (function, table)."""
        return (None, None) if self.plan is self.final else bind(self.plan, arrays)

    def last(self) -> Plan:
        """Return the last tier's plan, which may not be compiled yet."""
        with PREPARER.lock:
            if self.final is None:
                self.final = self._make(self.job.target)
                self.final.target_note = self.final.target_note or LAST
            return self.final

    def ask(self) -> bool:
        """Return whether the active plan is final; otherwise request its successor."""
        if self.waits or self.plan is self.final:
            self.prepare()
        elif self.preparer is not PREPARER:  # not requested yet in this process
            self.preparer = PREPARER
            PREPARER.ask(self)
        if self.settled:  # set by another thread
            return True
        if self.error is not None:
            why = legible(str(self.error), 2000)
            if self.plan is self.final:
                self.plan = self._make("numpy")
            self.plan.target_note, self.settled = why, True
            warnings.warn(
                f"{legible(self.title)}: {why}; NumPy goes on answering",
                RuntimeWarning,
                stacklevel=5,
            )  # last, because a warning may be raised as an error
        elif self.ready:
            self.plan, self.settled = self.final, True
            if self.plan.target_note == LAST:
                self.plan.target_note = ""
        else:
            tell()
        return self.settled

    def prepare(self) -> None:
        """Build and compile the last tier's plan."""
        try:
            self.last().load()
            self.ready = True
        except Exception as error:
            self.error = error


class SwappingBinding(Bound):
    """A bound plan that is replaced by the next tier when that is ready.

    One write replaces `call`'s function and table, so threads see both or neither.
    """

    def __init__(self, tiers: Any, arrays: dict[str, np.ndarray]) -> None:
        if tiers.settled:
            super().__init__(tiers, arrays)
        else:
            self.tiers, self.arrays = tiers, arrays
            self.call = self._until_settled(*tiers.first(arrays))

    def _until_settled(self, first: Any, table: Any) -> tuple[Callable, Any]:
        """Return a call that checks for the next tier; it refers neither to unused plans
        nor, strongly, to this object."""
        tiers, arrays, this = self.tiers, self.arrays, weakref.ref(self)

        def answer(inputs: Any, table: Any) -> Any:
            if not tiers.ask():
                return first(inputs, table)
            function, table = call = bind(tiers.plan, arrays)
            if bound := this():
                bound.call = call
            return function(inputs, table)

        return answer, table


class BackgroundCompiler:
    """A background thread that compiles plans, one at a time.

    It is a daemon, so it never delays exit; after a fork, each process has its own.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()  # held while building a plan
        self.jobs: queue.SimpleQueue = queue.SimpleQueue()
        self.start = threading.Lock()

    def ask(self, tiers: Tiers) -> None:
        """Queue a plan; it is skipped if its net has been dropped by then."""
        self.jobs.put((time.monotonic(), weakref.ref(tiers)))
        if self.start.acquire(blocking=False):  # once
            try:
                threading.Thread(
                    target=self._work, daemon=True, name="minihybrid compiles plans"
                ).start()
            except RuntimeError as error:  # the system's limit of threads
                self.start.release()
                tiers.error = error

    def _work(self) -> None:
        while True:
            submitted, reference = self.jobs.get()
            time.sleep(max(0.0, submitted + PAUSE_S - time.monotonic()))
            if tiers := reference():
                tiers.prepare()
            del tiers  # or its net would live until the next job


PREPARER = BackgroundCompiler()


def _after_fork() -> None:
    global PREPARER
    PREPARER = BackgroundCompiler()


if hasattr(os, "register_at_fork"):  # threads stay with the parent
    os.register_at_fork(after_in_child=_after_fork)


def waiting() -> bool | None:
    """Return the setting of `MINIHYBRID_WAIT`: whether calls block, or None.

    Raises:  AttrError if it is neither 0 nor 1.
    """
    setting = os.environ.get("MINIHYBRID_WAIT") or None
    if setting not in ("0", "1", None):
        raise AttrError(
            f"MINIHYBRID_WAIT is {setting!r}, but 1 (calls wait for compiled "
            "kernels) or 0 (NumPy answers until then) is needed"
        )
    return None if setting is None else setting == "1"


TARGETS["cpu"] = CPU = Target(
    target.generate,
    target.load,
    target.call,
    target.bound,
    Tiers,
    target.unsupported,
    (fuse,),
    scratch_of,
    usable=compiles,
    names={"together": together},
)
