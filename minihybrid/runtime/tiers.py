"""Tiers: NumPy answers at once, until the compiled kernels are ready.

Takes:   a graph, as a plan does.
Gives:   `Tiers`, the plan in force of a graph that is compiled.

Compiling takes a second, or several for a net with many kinds of kernels; a plan for
NumPy takes a millisecond. So the first predictions run NumPy's plan while a thread makes
the compiled one, which then takes over.

The two plans of a graph agree as closely as any two orders of adding numbers do: for
float32, within 1e-5 of what is added. When the second one takes over depends on the
machine and on the cache, so a program that must repeat bit for bit never runs the first:
once it has called `mx.random.seed` or `autograd.record`, calls wait for compiled kernels
(`STREAM.repeats`). `hybridize(wait=True)` and the environment's `MINIHYBRID_WAIT=1`
always wait, `wait=False` and `MINIHYBRID_WAIT=0` never.
What is left out: tiers between the two, and going back.
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
from minihybrid.core.plan import ActivePlan, Bound, Plan, tied
from minihybrid.core.targets import TARGETS, Target
from minihybrid.ops.random import STREAM
from minihybrid.passes.fuse import fuse
from minihybrid.passes.reduction_schedule import scratch_of
from minihybrid.registrations import compiles

PAUSE_S = 0.1  # so long nothing is prepared: a short loop has the machine for itself
FIRST = "until the kernels of the other plan are ready"  # notes of the two plans
LAST = "NumPy answers until its kernels are ready"


class Tiers(ActivePlan):
    """Two plans of one graph, of which one is in force.

    job:     a Plan's, for a target that compiles.
    wait:    whether calls wait for the compiled plan; `None` leaves it to the
             environment's MINIHYBRID_WAIT, which leaves it to `STREAM.repeats`.
    plan:    the plan in force.

    >>> from minihybrid.core import sym
    >>> from minihybrid.core.graph import Graph
    >>> from minihybrid.core.pipeline import Job
    >>> graph = Graph.of(sym.relu(sym.var("x", shape=(2,), dtype="float32")))
    >>> Tiers(Job(graph, ("x",), target="cpu"), wait=False).plan.target
    'numpy'
    """

    def _first(self, job: Job, wait: bool | None) -> Plan:
        self.preparer: BackgroundCompiler | None = None  # who was asked for the compiled plan
        self.ready = False
        self.error: Exception | None = None
        self.wait = waiting() if wait is None else wait
        self.settled = self.wait is True  # the plan in force stays
        if job.training:
            STREAM.repeats = True
        self.made = self._make(job.target) if self.waits else None
        if self.made:
            return self.made
        plan = self._make("numpy")
        plan.target_note = FIRST
        return plan

    @property
    def waits(self) -> bool:
        """Whether a call waits for the compiled plan, as of now."""
        return STREAM.repeats if self.wait is None else self.wait

    def _make(self, name: str) -> Plan:
        with STILL:  # it may import
            return Plan.of(replace(self.job, target=name))

    def bind(self, arrays: dict[str, np.ndarray]) -> "SwappingBinding":
        """The plan in force, tied to its parameters, and to the next one."""
        return SwappingBinding(self, arrays)

    def first(self, arrays: dict[str, np.ndarray]) -> tuple[Callable | None, Any]:
        """What answers until the plan in force stays: its function, and its table."""
        return (None, None) if self.plan is self.made else tied(self.plan, arrays)

    def last(self) -> Plan:
        """The plan that is in force in the end; not yet compiled, perhaps."""
        with PREPARER.lock:
            if self.made is None:
                self.made = self._make(self.job.target)
                self.made.target_note = self.made.target_note or LAST
            return self.made

    def ask(self) -> bool:
        """Whether the plan in force stays; if not, see to it that the other is made."""
        if self.waits or self.plan is self.made:
            self.prepare()
        elif self.preparer is not PREPARER:  # not requested yet in this process
            self.preparer = PREPARER
            PREPARER.ask(self)
        if self.settled:  # as another thread has just found
            return True
        if self.error is not None:
            why = legible(str(self.error), 2000)
            if self.plan is self.made:
                self.plan = self._make("numpy")
            self.plan.target_note, self.settled = why, True
            warnings.warn(
                f"{legible(self.title)}: {why}; NumPy goes on answering",
                RuntimeWarning,
                stacklevel=5,
            )  # last: it may be raised
        elif self.ready:
            self.plan, self.settled = self.made, True
            if self.plan.target_note == LAST:
                self.plan.target_note = ""
        else:
            tell()
        return self.settled

    def prepare(self) -> None:
        """Make the plan that will be in force, and compile it."""
        try:
            self.last().load()
            self.ready = True
        except Exception as error:
            self.error = error


class SwappingBinding(Bound):
    """A plan tied to its parameters, and to the next plan when that is ready.

    One write replaces function and table of `call`, so no thread sees half of each.
    """

    def __init__(self, tiers: Any, arrays: dict[str, np.ndarray]) -> None:
        if tiers.settled:
            super().__init__(tiers, arrays)
        else:
            self.tiers, self.arrays = tiers, arrays
            self.call = self._until_settled(*tiers.first(arrays))

    def _until_settled(self, first: Any, table: Any) -> tuple[Callable, Any]:
        """The same call, which looks for the next plan; it keeps no plan that is not
        used, nor this object, which keeps it."""
        tiers, arrays, this = self.tiers, self.arrays, weakref.ref(self)

        def answer(inputs: Any, table: Any) -> Any:
            if not tiers.ask():
                return first(inputs, table)
            function, table = call = tied(tiers.plan, arrays)
            if bound := this():
                bound.call = call
            return function(inputs, table)

        return answer, table


class BackgroundCompiler:
    """A thread that makes compiled plans, one after the other.

    It never delays the end of the program, and after a fork each process has its own.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()  # of whoever makes a plan
        self.jobs: queue.SimpleQueue = queue.SimpleQueue()
        self.start = threading.Lock()

    def ask(self, tiers: Tiers) -> None:
        """Let the thread make a plan, if it is still wanted then."""
        self.jobs.put((time.monotonic(), weakref.ref(tiers)))
        if self.start.acquire(blocking=False):  # once
            try:
                threading.Thread(
                    target=self._work, daemon=True, name="minihybrid compiles plans"
                ).start()
            except RuntimeError as error:  # there are as many as the system allows
                self.start.release()
                tiers.error = error

    def _work(self) -> None:
        while True:
            submitted, reference = self.jobs.get()
            time.sleep(max(0.0, submitted + PAUSE_S - time.monotonic()))
            if tiers := reference():
                tiers.prepare()
            del tiers  # a net must not live until the next one


PREPARER = BackgroundCompiler()


def _after_fork() -> None:
    global PREPARER
    PREPARER = BackgroundCompiler()


if hasattr(os, "register_at_fork"):  # threads stay with the parent
    os.register_at_fork(after_in_child=_after_fork)


def waiting() -> bool | None:
    """What `MINIHYBRID_WAIT` says: whether calls wait for compiled kernels, or None.

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
