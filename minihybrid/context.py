"""Chapter 07. Devices: where arrays live.

Takes:   the name and the number of a device.
Gives:   `Context`, `cpu`, `gpu`, `current_context`.

Arrays live in the processor's memory; whoever asks for another place gets an error.
"""

import threading

from minihybrid.op import AttrError, HybridError


class Context:
    """A device that holds arrays: `cpu(0)`; inside its `with` block, the usual one.

    >>> Context("cpu") == cpu()
    True
    """

    _stack = threading.local()

    def __init__(self, device_type="cpu", device_id=0):
        if isinstance(device_type, Context):
            device_type, device_id = device_type.device_type, device_type.device_id
        if device_type not in ("cpu", "gpu"):
            raise AttrError(f"Context: '{device_type}' is no device; needed: cpu or "
                            "gpu")
        self.device_type, self.device_id = device_type, device_id

    def __eq__(self, other):
        return isinstance(other, Context) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def __repr__(self):
        return f"{self.device_type}({self.device_id})"

    def __enter__(self):
        current_context()
        self._stack.contexts.append(self)
        return self

    def __exit__(self, *_):
        self._stack.contexts.pop()


CPU = Context()


def cpu(device_id=0):
    """The processor as a device; every number means the same memory."""
    return Context("cpu", device_id)


def gpu(device_id=0):
    """The graphics processor with a number; arrays cannot be placed there yet."""
    return Context("gpu", device_id)


def num_gpus():
    """How many graphics processors this engine can place arrays on."""
    return 0


def current_context():
    """The device on which new arrays are made.

    >>> with cpu(1):
    ...     current_context()
    cpu(1)
    """
    if not hasattr(Context._stack, "contexts"):
        Context._stack.contexts = [CPU]
    return Context._stack.contexts[-1]


def check_context(ctx):
    """Accept a device, or a list of one; what is not a processor is an error."""
    ctx = ctx[0] if isinstance(ctx, (list, tuple)) and len(ctx) == 1 else ctx
    ctx = current_context() if ctx is None else ctx
    if not (isinstance(ctx, Context) and ctx.device_type == "cpu"):
        raise HybridError(f"{ctx} is not available: this engine sees {num_gpus()} "
                          "GPUs; use mx.cpu()")
    return CPU
