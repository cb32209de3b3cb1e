"""Does a library share memory with us? Run by the Python that has it installed.

python tests/share_memory.py torch      # or jax; silent if all is well
"""

import sys

import numpy as np

import minihybrid as mx
from minihybrid import nd
from minihybrid.core.op import HybridError, ShapeError


def refused(function, error, message):
    """Whether a call raises an error with these words."""
    try:
        function()
    except error as caught:
        return message in str(caught)
    return False


def torch(ctx):
    """PyTorch's tensors are written by both sides."""
    import torch
    from torch.utils import dlpack

    x = nd.array([[1, 2], [3, 4]], ctx=ctx)
    theirs = torch.from_dlpack(x)
    theirs[0] = 9
    x[1, 1] = 5
    assert theirs.tolist() == x.asnumpy().tolist() == [[9, 9], [3, 5]]
    assert torch.from_dlpack(nd.array([1, 0], ctx=ctx, dtype="bool")).tolist() == [True, False]
    assert torch.from_dlpack(nd.zeros((2, 0), ctx=ctx)).shape == (2, 0)
    assert torch.from_dlpack(mx.np.array(2, ctx=ctx)).item() == 2
    dlpack.from_dlpack(x.to_dlpack_for_write())[0, 0] = 0
    assert x.asnumpy()[0, 0] == 0

    tensor = torch.zeros(2, 2)
    ours = nd.from_dlpack(tensor)
    ours[0] = 1
    tensor[1] = 2
    assert ours.asnumpy().tolist() == tensor.tolist() == [[1, 1], [2, 2]]
    assert nd.from_dlpack(dlpack.to_dlpack(tensor)).asnumpy().sum() == 6
    assert refused(
        lambda: nd.from_dlpack(torch.zeros(2, 3).T), HybridError, "make it contiguous first"
    )


def jax(ctx):
    """JAX's arrays are not written, but where one is ours, it shows what we write."""
    import jax

    x = nd.array(np.arange(64), ctx=ctx)
    theirs = jax.dlpack.from_dlpack(x)
    assert theirs.unsafe_buffer_pointer() == np.from_dlpack(x).ctypes.data
    x[3] = -1
    assert theirs[3] == -1
    ours = nd.from_dlpack(jax.numpy.arange(4.0))
    assert ours.asnumpy().tolist() == [0, 1, 2, 3]

    def write():
        ours[0] = 2

    assert refused(write, ShapeError, "read-only")


if __name__ == "__main__":
    for place in (mx.cpu(), mx.simulated_gpu()):
        {"torch": torch, "jax": jax}[sys.argv[1]](place)
