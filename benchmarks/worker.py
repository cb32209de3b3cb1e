"""The child process of one rival: JSON lines in, JSON lines out.

{"do": "describe"}               -> {"version": ..., "modes": [...]}
{"do": "prepare", "mode": "jit"} -> {"first_s": ...}, and the file `answer`, .npy
{"do": "time", "n_calls": 1000}  -> {"elapsed_s": ...}

Runs in each rival's environment, so it imports nothing but NumPy and that rival.
"""
import importlib
import json
import os
import sys
import time
import traceback
from itertools import repeat

import numpy as np


class Worker:
    def __init__(self, rival, net, arrays_path):
        self.rival = importlib.import_module(f"rivals.{rival}")
        self.net, self.arrays_path = net, arrays_path
        self.modes = getattr(
            self.rival, "TRAIN" if net.startswith("train_") else "MODES", {})

    def describe(self):
        modes = list(self.modes) if self.net in self.rival.BUILD else []
        return {"version": self.rival.VERSION, "modes": modes}

    def prepare(self, mode, answer):
        arrays = dict(np.load(self.arrays_path))
        net, data = self.rival.BUILD[self.net](arrays)
        # What a user waits for at first: tracing or compiling, then the answer.
        start_s = time.perf_counter()
        self.call = self.modes[mode](net, data)
        result = self.call()
        first_s = time.perf_counter() - start_s
        if isinstance(result, tuple):  # a training step: losses and weights
            found = np.concatenate([self.rival.to_numpy(r).ravel() for r in result])
        else:
            found = self.rival.to_numpy(result)
        np.save(answer, found)
        return {"first_s": first_s}

    def time(self, n_calls):
        for _ in repeat(None, 1 + n_calls // 10):  # the others had the caches meanwhile
            self.call()
        start_s = time.perf_counter()
        for _ in repeat(None, n_calls):
            self.call()
        return {"elapsed_s": time.perf_counter() - start_s}


def main(rival, net, arrays_path):
    # Frameworks print to stdout at will: keep a private copy for the protocol.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(rival, net, arrays_path)
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
