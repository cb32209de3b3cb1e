"""Chapter 19. The thread pool: several threads run one plan.

Defines: `together`, which runs a plan's function with all idle workers.

Threads take chunks of loops from the interpreter (`codegen/cpu/interpreter.py`), so a call
never waits for a worker to wake up: one that comes too late finds no chunks left. After a
call, workers spin for a while before they sleep.
Not supported: pinning threads to cores.
"""

import atexit
import contextlib
import functools
import os
import queue
import threading

import numpy as np

from minihybrid.codegen.bytecode import BOARD, COUNTERS, numbers_of
from minihybrid.codegen.cpu.objects import load_kernels, make_runner
from minihybrid.ops.cpu.machine import threads

CHUNKS = 4  # chunks of a loop per thread; a faster thread takes more
LOOKS = 64_000  # polls of an idle worker: some tenths of a millisecond
LAST_POLLS = 640  # more polls after it is registered as sleeping, to avoid a lost wakeup
ROOM = 1024  # a worker's buffer for operands, far more than kernels have


class ThreadPool:
    """The worker threads of a process, and their work queue."""

    def __init__(self):
        self.board = np.zeros(BOARD // 8, np.int64)
        self.asleep, self.helpers, self.ended = [], [], False
        with contextlib.suppress(RuntimeError):  # the system's limit of threads
            for number in range(1, threads()):
                helper = threading.Thread(
                    target=self._help,
                    args=(number,),
                    daemon=True,
                    name=f"minihybrid helper {number}",
                )
                helper.start()
                self.helpers.append(helper)

    def _help(self, number):
        driver = load_kernels({"": "the driver"})[""]
        run = make_runner(driver, numbers_of(0, [], {}, longest=ROOM))
        shared, bed = np.array([self.board.ctypes.data, 0]), queue.SimpleQueue()
        while not self.ended:
            run(0, LOOKS, shared.ctypes.data, number)
            self.asleep.append(bed)
            run(0, LAST_POLLS, shared.ctypes.data, number)
            bed.get()

    def wake(self):
        """Wake sleeping workers."""
        with contextlib.suppress(IndexError):  # another call did
            while self.asleep:
                self.asleep.pop().put(True)

    def end(self):
        """End the workers before the queue's memory is freed."""
        self.ended = True
        for helper in self.helpers:
            while helper.is_alive():
                self.wake()
                helper.join(0.001)


@functools.cache
def team():
    """Return the pool of this process."""
    pool = ThreadPool()
    atexit.register(pool.end)
    return pool


def together(function, args, n_steps):
    """Call `function(*args, n_steps, shared, 0)` with the help of idle workers."""
    mine = team()
    shared = np.zeros(COUNTERS // 8 + 4 * n_steps, np.int64)
    shared[0] = mine.board.ctypes.data
    mine.wake()
    return function(*args, n_steps, shared.ctypes.data, 0)


if hasattr(os, "register_at_fork"):  # threads stay with the parent
    os.register_at_fork(after_in_child=team.cache_clear)
