"""All rows of one workload: started, checked, measured in turns.

Every mode of every rival lives in a process of its own and times itself when told to;
here is decided whose turn it is: A B C, A B C, ...
"""

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from child import Child
from envs import NotAvailable
from minihybrid.bench import Timing
from tqdm import tqdm
from workloads import ALL


@dataclass
class Row:
    """A mode of a rival, and what came of it."""

    rival: str
    mode: str = ""
    version: str = ""
    first_s: list = field(default_factory=list)  # [nothing cached, in a second process]
    times_s: list = field(default_factory=list)  # seconds per call: process, then round
    nbytes: int | None = None  # peak of memory, see Session.floor
    problem: str = ""  # why there are no times
    processes: int = 1  # how many the times are from
    kernels: str = ""  # where its kernels come from: a BLAS, a compiler

    @property
    def name(self):
        return f"{self.rival} {self.mode}"

    @property
    def median_s(self):
        return float(np.median(self.times_s))


@contextmanager
def loud(row):
    """A rival that fails is a row that says why; the others go on."""
    try:
        yield
    except NotAvailable as reason:
        row.problem, row.times_s = str(reason), []
        tqdm.write(f"SKIPPED {row.name}: {row.problem}", sys.stderr)


class Session:
    """Measurements at one number of threads.

    scratch: a folder for arrays, answers and caches.
    """

    def __init__(self, scratch, n_threads):
        self.scratch, self.n_threads = scratch, n_threads
        self.floor, self.about = cache(self.floor), cache(self.about)  # once for all

    def save_arrays(self, workload):
        """Write the arrays that every rival reads; returns the right answer."""
        arrays = ALL[workload].arrays(np.random.default_rng(seed=0))
        arrays = {name: np.float32(a) for name, a in arrays.items()}
        np.savez(self.arrays_of(workload), **arrays)
        return ALL[workload].reference({name: np.float64(a) for name, a in arrays.items()})

    def arrays_of(self, workload):
        return self.scratch / f"{workload}.npz"

    def child(self, workload, rival, mode):
        folder = f"cache-{workload}-{rival}-{mode}".replace(" ", "-")
        return Child(rival, self.arrays_of(workload), self.scratch / folder, self.n_threads)

    def about(self, rival):
        """{"version": ..., "kernels": ..., "modes": {net: [...]}}, or {"problem": ...}"""
        try:
            child = self.child("any", rival, "any")
            about = child.ask("describe")
        except NotAvailable as reason:
            return {"problem": str(reason)}
        child.end()
        return about

    def rows_of(self, workload, rival):
        """One for each mode, or one that says why there is none."""
        about = self.about(rival)
        if "problem" in about:
            return [Row(rival, problem=about["problem"])]
        modes = about["modes"].get(ALL[workload].net, [])
        return [Row(rival, mode, about["version"], kernels=about["kernels"]) for mode in modes]

    def prepare(self, row, workload, right):
        """A new process with its first call made, timed and checked."""
        answer = self.scratch / "answer.npy"
        child = self.child(workload, row.rival, row.mode)
        reply = child.ask("prepare", net=ALL[workload].net, mode=row.mode, answer=str(answer))
        if not row.times_s:  # later processes may find what the first ones left on disk
            row.first_s.append(reply["first_s"])
        error = np.abs(np.load(answer) - right).max()
        if not error <= ALL[workload].tolerance:  # written so that NaN fails, too
            child.end()
            raise NotAvailable(f"WRONG ANSWER, off by {error:.1e}")
        return child

    def start(self, row, workload, right):
        """The process of a row, warmed up and ready for its turns.

        A mode that left compiled code on disk begins once more, to show what it saves.
        """
        if row.problem:
            raise NotAvailable(row.problem)
        child = self.prepare(row, workload, right)
        if child.has_cached() and not row.times_s:
            child.end()
            child = self.prepare(row, workload, right)
        child.calibrate()
        return child

    def floor(self, rival, mode):
        """Peak of memory of a process that multiplies and adds eight numbers.

        What a row needs beyond it is the row's own: weights, inputs, results, scratch
        and compiled code, but not the framework with its compiler and its threads.
        """
        right = self.save_arrays("floor")
        child = self.start(Row(rival, mode), "floor", right)
        nbytes = child.peak_nbytes()
        child.end()
        return nbytes

    def yardstick(self):
        """Time a fixed matrix product: if this moves, the machine moved."""
        right = self.save_arrays("yardstick")
        child = self.start(Row("numpy", "eager"), "yardstick", right)
        timing = Timing(tuple(child.turn() for _ in range(15)), child.n_calls)
        child.end()
        return timing

    def run(self, workload, rivals, n_rounds, n_processes=1):
        """All rows of one workload, timed; and the yardstick before and after."""
        right = self.save_arrays(workload)
        rows = [row for rival in rivals for row in self.rows_of(workload, rival)]
        before = self.yardstick()
        for k in range(n_processes):
            self.interleave(rows, workload, right, n_rounds, f"{workload}, process {k + 1}")
        after = self.yardstick()
        for row in rows:
            row.processes = n_processes
        return rows, (before, after)

    def interleave(self, rows, workload, right, n_rounds, title):
        """A new process for each row, and rounds in which each has its turn."""
        children = []  # (row, process) of those that work
        for row in tqdm(rows, desc=f"{title}: starting", leave=False):
            with loud(row):
                children.append((row, self.start(row, workload, right)))
        for _ in tqdm(range(n_rounds), desc=f"{title}: rounds", leave=False):
            for row, child in children:
                with loud(row):
                    if not row.problem:
                        row.times_s.append(child.turn())
        for row, child in children:
            with loud(row):
                if not row.problem and (nbytes := child.peak_nbytes()):
                    row.nbytes = nbytes - self.floor(row.rival, row.mode)
            child.end()
