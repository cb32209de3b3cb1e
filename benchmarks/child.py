"""One mode of one rival, alive in a process of its own, and its turns."""

import json
import os
import signal
import subprocess
from pathlib import Path
from threading import Timer
from time import sleep

from envs import NotAvailable, python_of
from machine import limits

WORKER = Path(__file__).parent / "worker.py"
TURN_S = 0.02  # a mode's part of one round lasts at least this long
LIMIT_S = 300  # an answer that takes longer is none
REST_S = 0.1  # so long may a pool of threads spin after its last work

# Where minihybrid, PyTorch and tinygrad keep compiled code: variable -> path inside.
DISK_CACHES = {"MINIHYBRID_CACHE_DIR": "", "TORCHINDUCTOR_CACHE_DIR": "", "CACHEDB": "kernels.db"}


class Child:
    """A worker in its rival's environment; `ask` sends one request, returns the reply.

    arrays: the file it reads.  cache: the folder for what compilers keep on disk.
    wait:   whether a call of minihybrid waits for compiled kernels.
    """

    def __init__(self, rival, arrays, cache, n_threads, wait=True):
        self.cache, self.log = cache, cache.with_suffix(".log")
        cache.mkdir(exist_ok=True)
        caches = {name: str(cache / path) for name, path in DISK_CACHES.items()}
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [python_of(rival), WORKER, rival, arrays],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={
                    **os.environ,
                    **limits(n_threads),
                    **caches,
                    "MINIHYBRID_WAIT": str(int(wait)),
                },
            )

    def ask(self, do, **request):
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has died, and the empty reply below says so
        stop = Timer(LIMIT_S, self.process.kill)
        stop.start()
        reply = self.process.stdout.readline()
        stop.cancel()
        if not reply:
            self.end()
            raise NotAvailable(f"{do} failed: {self._reason()}")
        return json.loads(reply)

    def _reason(self):
        if self.process.returncode == -signal.SIGKILL:
            return f"killed, after {LIMIT_S} s or by the system for its memory"
        lines = self.log.read_text().strip().splitlines()
        return lines[-1] if lines else "no message"

    def calibrate(self):
        """Find a number of calls that lasts a turn; this warms up, too."""
        self.n_calls = 1
        while self.ask("time", n_calls=self.n_calls)["elapsed_s"] < TURN_S:
            self.n_calls *= 2

    def turn(self):
        """Seconds per call in one turn, once the threads of the last one sleep."""
        sleep(REST_S)
        return self.ask("time", n_calls=self.n_calls)["elapsed_s"] / self.n_calls

    def peak_nbytes(self):
        """The peak of memory during one turn."""
        return self.ask("memory", n_calls=self.n_calls)["nbytes"]

    def has_cached(self):
        """Whether compiled code was left on disk, for the next process."""
        return any(self.cache.iterdir())

    def end(self):
        """Close its input, which ends it, and wait until it has ended."""
        self.process.communicate()
