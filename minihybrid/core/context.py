"""Devices: where arrays live.

Takes:   the name and the number of a device.
Gives:   `Context`, `cpu`, `gpu`, `simulated_gpu`, `num_gpus`, `current_context`, and
         `check_context`, which every function with `ctx=` asks.

A simulated GPU computes with the kernels of a real one, on any machine.
Several numbers of the processor are one memory and one machine, but arrays remember
theirs: so training on several devices can be learned without one
(`minihybrid/runtime/numbered_cpus.py`).
What is left out: memory of the processor that is pinned or shared: it is `cpu`, too.
"""

import threading
from functools import cache
from numbers import Integral

from minihybrid.core.op import AttrError, HybridError

PINNED = {"cpu_pinned": "cpu", "cpu_shared": "cpu"}
KINDS = {"cpu": "cpu", "gpu": "gpu", "simulated_gpu": "simulated_gpu", **PINNED}


class Context:
    """A device that holds arrays: `cpu(0)`; inside its `with` block, the usual one.

    fast:    of a simulated GPU: its kernels are compiled, and nothing is checked.

    >>> Context("cpu") == cpu()
    True
    """

    def __init__(self, device_type="cpu", device_id=0, fast=False):
        if isinstance(device_type, Context):
            device_type, device_id, fast = device_type._key
        if device_type not in KINDS:
            raise AttrError(
                f"Context: '{device_type}' is no device; needed: cpu, gpu or simulated_gpu"
            )
        if not isinstance(device_id, Integral) or device_id < 0:
            raise AttrError(
                f"Context: device_id={device_id!r} does not fit; needed: a whole number from 0 on"
            )
        self.device_type = KINDS[device_type]
        # The number of pinned memory is that of a GPU, which copies from it faster.
        self.device_id = device_id * (self.device_type == device_type)
        self.fast = fast
        self._key = self.device_type, self.device_id, fast

    def __eq__(self, other):
        return isinstance(other, Context) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def meets(self, other):
        """Whether an operator may read arrays of both."""
        return self == other or self.device_type == other.device_type == "cpu"

    def __repr__(self):
        return f"{self.device_type}({self.device_id}{', fast=True' * self.fast})"

    def __reduce__(self):
        return restored, self._key

    def __enter__(self):
        STACK.contexts.append(self)
        return self

    def __exit__(self, *_):
        STACK.contexts.pop()


CPU = Context()


def restored(*key):
    """The device that was pickled or copied; of the processor there is one."""
    return CPU if key == CPU._key else Context(*key)


class Stack(threading.local):
    """The devices of the `with` blocks that this thread is in."""

    def __init__(self):
        self.contexts = [CPU]


STACK = Stack()


def cpu(device_id=0):
    """The processor as a device; every number means the same memory and machine."""
    return Context("cpu", device_id)


def gpu(device_id=0):
    """The graphics processor with a number; `num_gpus()` says how many there are."""
    return Context("gpu", device_id)


def simulated_gpu(device_id=0, fast=False):
    """A GPU that is simulated on the processor, with memory of its own.

    It runs the text of every kernel thread by thread and checks each access.

    fast:    let Numba compile the kernels instead; then nothing is checked or counted.

    >>> simulated_gpu(), simulated_gpu(1, fast=True)
    (simulated_gpu(0), simulated_gpu(1, fast=True))
    """
    return Context("simulated_gpu", device_id, fast)


@cache
def num_gpus():
    """How many real GPUs there are; 0 also where their driver cannot be called."""
    from minihybrid.runtime.device import count_gpus

    return count_gpus()


def current_context():
    """The device on which new arrays are made.

    >>> with cpu(1):
    ...     current_context()
    cpu(1)
    """
    return STACK.contexts[-1]


def check_context(ctx):
    """The device that is meant by a device, by a list of one, or by `None`.

    Raises:  HybridError if it is not there.
    """
    if ctx is None:
        ctx = current_context()
    if ctx is CPU:
        return CPU
    ctx = ctx[0] if isinstance(ctx, (list, tuple)) and len(ctx) == 1 else ctx
    if not isinstance(ctx, Context):
        raise HybridError(
            f"{ctx} is not one device; an array lives on one, such as "
            "mx.cpu(), mx.gpu(0) or mx.simulated_gpu()"
        )
    if ctx.device_type == "cpu":
        return ctx if ctx.device_id else CPU
    if ctx.device_type == "gpu" and ctx.device_id >= num_gpus():
        raise HybridError(
            f"{ctx} is not available: this engine sees {num_gpus()} "
            "GPUs; use mx.simulated_gpu() or mx.cpu()"
        )
    return ctx


def __dir__():
    return "CPU Context check_context cpu current_context gpu num_gpus simulated_gpu".split()
