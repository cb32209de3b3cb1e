"""Chapter 19. Several threads for one plan.

Takes:   a plan's function and the arguments of a call.
Gives:   `together`, which runs it with every helper that is free.

The driver deals pieces of loops to whoever asks (`codegen/cpu/driver.py`): nobody waits
for a helper to wake up: one that comes too late finds nothing left to do.
What is left out: choosing the processors on which threads run.
"""

import contextlib
import functools
import os
import queue
import threading

import numpy as np

from minihybrid.ops.cpu.machine import threads

CHUNKS = 4  # pieces of a loop for each thread: the faster one takes more of them


def together(function, args, n_steps):
    """Call `function(*args, shared, thread)` here and in each helper's thread."""
    shared = np.zeros(2 * n_steps, np.int64)  # two counters per step
    args = (*args, n_steps, shared.ctypes.data)
    job = [(function, args, shared)]
    for helper in _helpers():
        helper.put(job)
    try:
        return function(*args, 0)
    finally:  # who has not begun need not; results whose arrays nobody holds can be
        job.clear()  # used again (reuse.py)


@functools.cache
def _helpers():
    """The queues of threads that wait for jobs; made when first needed."""
    queues = []
    with contextlib.suppress(RuntimeError):  # there are as many as the system allows
        for number in range(1, threads()):
            jobs = queue.SimpleQueue()
            threading.Thread(
                target=_help, args=(jobs, number), daemon=True, name=f"minihybrid helper {number}"
            ).start()
            queues.append(jobs)
    return queues


def _help(jobs, number):
    while True:
        for function, args, _ in jobs.get()[:1]:
            function(*args, number)
        function = args = _ = None  # a job's arrays must not live until the next one


if hasattr(os, "register_at_fork"):  # threads stay with the parent
    os.register_at_fork(after_in_child=_helpers.cache_clear)
