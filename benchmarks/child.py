"""One mode of one rival, alive in a process of its own, and its turns."""
import json
import os
import subprocess
from pathlib import Path

from envs import NotAvailable, python_of
from machine import thread_limits
from workloads import WORKLOADS

WORKER = Path(__file__).parent / "worker.py"
TURN_S = 0.02  # a mode's part of one round lasts at least this long


class Child:
    """A worker in its rival's environment; `ask` sends one request, returns the reply.

    `cache` is a directory for what compilers keep on disk.
    """

    def __init__(self, rival, workload, scratch, n_threads, cache="cache"):
        caches = {name: str(scratch / cache / name.lower()) for name in (
            "MINIHYBRID_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
        self.log = scratch / "child.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [python_of(rival), WORKER, rival, WORKLOADS[workload].net,
                 scratch / f"{workload}.npz"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, **thread_limits(n_threads), **caches})

    def ask(self, do, **request):
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has died, and the empty reply below says so
        reply = self.process.stdout.readline()
        if not reply:
            self.end()
            lines = self.log.read_text().strip().splitlines() or ["no message"]
            raise NotAvailable(f"{do} failed: {lines[-1]}")
        return json.loads(reply)

    def calibrate(self):
        """Find a number of calls that lasts a turn; this warms up, too."""
        self.n_calls = 1
        while self.ask("time", n_calls=self.n_calls)["elapsed_s"] < TURN_S:
            self.n_calls *= 2

    def turn(self):
        """Seconds per call in one turn."""
        return self.ask("time", n_calls=self.n_calls)["elapsed_s"] / self.n_calls

    def end(self):
        """Close its input, which ends it, and wait until it has ended."""
        self.process.communicate()
