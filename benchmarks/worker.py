"""The child process of one rival: JSON lines in, JSON lines out.

{"do": "describe"}               -> {"version": ..., "kernels": ..., "modes": {net: [...]}}
{"do": "prepare", "mode": "jit"} -> {"first_s": ...}, and the file `answer`, .npy
{"do": "time", "n_calls": 1000}  -> {"elapsed_s": ...}
{"do": "each", "n_calls": 1000}  -> {"times_s": [...]}, of calls one by one
{"do": "load", "module": "numba"} -> {}, and the module is imported
{"do": "memory", "n_calls": 10}  -> {"nbytes": ...}

Runs in each rival's environment, so it imports nothing but NumPy and that rival.
"""

import ctypes
import gc
import importlib
import json
import os
import sys
import time
import traceback
from itertools import repeat
from pathlib import Path

import numpy as np

CLEAR_REFS = Path("/proc/self/clear_refs")  # Linux: sets a process's peak back


class Worker:
    def __init__(self, rival, arrays_path):
        self.rival = importlib.import_module(f"rivals.{rival}")
        self.arrays_path = arrays_path

    def modes(self, net):
        """Mode -> how to prepare it; a training step has modes of its own."""
        if net not in self.rival.BUILD:
            return {}
        return getattr(self.rival, "TRAIN" if net.startswith("train_") else "MODES", {})

    def describe(self):
        modes = {net: list(self.modes(net)) for net in self.rival.BUILD}
        return {"version": self.rival.VERSION, "kernels": self.rival.KERNELS, "modes": modes}

    def prepare(self, net, mode, answer):
        arrays = dict(np.load(self.arrays_path))
        built, data = self.rival.BUILD[net](arrays)
        del arrays  # a rival that has made its own copy need not keep ours, too
        # What a user waits for at first: tracing or compiling, then the answer.
        start_s = time.perf_counter()
        self.call = self.modes(net)[mode](built, data)
        result = self.call()
        first_s = time.perf_counter() - start_s
        if isinstance(result, tuple):  # a training step: losses and weights
            values = np.concatenate([self.rival.to_numpy(r).ravel() for r in result])
        else:
            values = self.rival.to_numpy(result)
        np.save(answer, values)
        return {"first_s": first_s}

    def time(self, n_calls):
        for _ in repeat(None, 1 + n_calls // 10):  # the others had the caches meanwhile
            self.call()
        start_s = time.perf_counter()
        for _ in repeat(None, n_calls):
            self.call()
        return {"elapsed_s": time.perf_counter() - start_s}

    def each(self, n_calls):
        times_s = []
        for _ in repeat(None, n_calls):
            start_s = time.perf_counter()
            self.call()
            times_s.append(time.perf_counter() - start_s)
        return {"times_s": times_s}

    def load(self, module):
        importlib.import_module(module)
        return {}

    def memory(self, n_calls):
        """The peak of this process during steady calls, None where no system tells."""
        if not CLEAR_REFS.exists():
            return {"nbytes": None}
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what compilers have freed is not needed
        CLEAR_REFS.write_text("5")  # the peak begins anew
        for _ in repeat(None, n_calls):
            self.call()
        status = Path("/proc/self/status").read_text()
        return {"nbytes": 1024 * int(status.split("VmHWM:")[1].split()[0])}


def main(rival, arrays_path):
    # Frameworks print to stdout at will: keep a private copy for the protocol.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(rival, arrays_path)
    for line in sys.stdin:
        request = json.loads(line)
        reply = getattr(worker, request.pop("do"))(**request)
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:  # its last line becomes the reason in the table
        traceback.print_exc()
        reason = str(error).strip().split("\n")[0]
        sys.exit(f"{type(error).__name__}: {reason}")
