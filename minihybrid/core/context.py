"""Contexts: the devices that hold arrays.

Defines: `Context`, `cpu`, `gpu`, `simulated_gpu`, `num_gpus`, `current_context`, and
         `check_context`, which validates `ctx=` arguments.

A simulated GPU runs a real GPU's kernels on any machine. `cpu(0)`, `cpu(1)`, ... share one
memory, but arrays remember their index, so that you can learn training on several devices
without having them (`minihybrid/runtime/numbered_cpus.py`).
Not supported: pinned and shared CPU memory; both are plain `cpu`.
"""

from functools import cache

from minihybrid.core.op import HybridError, checked, choice, described, length
from minihybrid.core.switches import Nested, Opened

PINNED = {"cpu_pinned": "cpu", "cpu_shared": "cpu"}
KINDS = {"cpu": "cpu", "gpu": "gpu", "simulated_gpu": "simulated_gpu", **PINNED}


class Context(Nested):
    """A device that holds arrays, such as `cpu(0)`; the default inside its `with` block.

    fast:    for a simulated GPU: compile its kernels, without checks.

    >>> Context("cpu") == cpu()
    True
    """

    def __init__(self, device_type="cpu", device_id=0, fast=False):
        if isinstance(device_type, Context):
            device_type, device_id, fast = device_type._key
        device_type = checked("Context", "device_type", device_type, choice(*KINDS))
        device_id = checked("Context", "device_id", device_id, length)
        self.device_type = KINDS[device_type]
        # The index of pinned memory is a GPU's, which copies from it faster.
        self.device_id = device_id * (self.device_type == device_type)
        self.fast = fast
        self._key = self.device_type, self.device_id, fast

    def __eq__(self, other):
        return isinstance(other, Context) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def meets(self, other):
        """Return whether an operator may read arrays of both."""
        return self == other or self.device_type == other.device_type == "cpu"

    def __repr__(self):
        return f"{self.device_type}({self.device_id}{', fast=True' * self.fast})"

    def __reduce__(self):
        return restored, self._key


CPU = Context()
Context.opened = Opened(lambda: CPU)


def restored(*key):
    """Rebuild a pickled or copied context; `cpu(0)` is a singleton."""
    return CPU if key == CPU._key else Context(*key)


def cpu(device_id=0):
    """Return the CPU as a context; all indices share its memory."""
    return Context("cpu", device_id)


def gpu(device_id=0):
    """Return the GPU of an index below `num_gpus()`."""
    return Context("gpu", device_id)


def simulated_gpu(device_id=0, fast=False):
    """Return a simulated GPU with separate memory.

    It interprets every kernel thread by thread and checks each access.

    fast:    compile the kernels with Numba instead, without checks or counts.

    >>> simulated_gpu(), simulated_gpu(1, fast=True)
    (simulated_gpu(0), simulated_gpu(1, fast=True))
    """
    return Context("simulated_gpu", device_id, fast)


@cache
def num_gpus():
    """Return the number of real GPUs; 0 if the driver can't be loaded."""
    from minihybrid.runtime.device import count_gpus

    return count_gpus()


def current_context():
    """Return the context on which new arrays are allocated.

    >>> with cpu(1):
    ...     current_context()
    cpu(1)
    """
    return Context.opened.all[-1]


def check_context(ctx):
    """Return the context given by a context, a list of one, or `None` for the current one.

    Raises:  HybridError if it isn't available.
    """
    if ctx is None:
        ctx = current_context()
    if ctx is CPU:
        return CPU
    ctx = ctx[0] if isinstance(ctx, (list, tuple)) and len(ctx) == 1 else ctx
    if not isinstance(ctx, Context):
        raise HybridError(
            f"{described(ctx)} is not one device; an array lives on one, such as "
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
