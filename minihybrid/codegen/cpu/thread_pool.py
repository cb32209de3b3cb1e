"""Chapter 19. Several threads for one plan.

Takes:   a plan's function and the arguments of a call.
Gives:   `together`, which runs it with every helper that is free.

The driver deals pieces of loops to whoever asks (`codegen/cpu/interpreter.py`): nobody waits
for a helper to wake up: one that comes too late finds nothing left to do. After a call
helpers look for the next one for a while, before they sleep.
What is left out: choosing the processors on which threads run.
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

CHUNKS = 4  # pieces of a loop for each thread: the faster one takes more of them
LOOKS = 64_000  # of a helper who has nothing to do: some tenths of a millisecond
LAST = 640  # more of them, when all know that it sleeps: else it misses who has just come
ROOM = 1024  # operands of a kernel that a helper has room for: far more than kernels have


class ThreadPool:
    """Threads that help with the calls of a process, and the board where these stand."""

    def __init__(self):
        self.board = np.zeros(BOARD // 8, np.int64)
        self.asleep, self.helpers, self.ended = [], [], False
        with contextlib.suppress(RuntimeError):  # there are as many as the system allows
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
            run(0, LAST, shared.ctypes.data, number)
            bed.get()

    def wake(self):
        """Wake those who sleep."""
        with contextlib.suppress(IndexError):  # another call has
            while self.asleep:
                self.asleep.pop().put(True)

    def end(self):
        """Send the helpers home: what they look at goes away."""
        self.ended = True
        for helper in self.helpers:
            while helper.is_alive():
                self.wake()
                helper.join(0.001)


@functools.cache
def team():
    """The team of this process."""
    made = ThreadPool()
    atexit.register(made.end)
    return made


def together(function, args, n_steps):
    """Call `function(*args, n_steps, shared, 0)`, helped by whoever is free."""
    mine = team()
    shared = np.zeros(COUNTERS // 8 + 4 * n_steps, np.int64)
    shared[0] = mine.board.ctypes.data
    mine.wake()
    return function(*args, n_steps, shared.ctypes.data, 0)


if hasattr(os, "register_at_fork"):  # threads stay with the parent
    os.register_at_fork(after_in_child=team.cache_clear)
