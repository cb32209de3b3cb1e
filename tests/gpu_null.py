"""Runs plans on `mx.gpu(0)` over a driver that does nothing (`null/driver.c`), in the
environment in which it runs; prints what reached the driver as JSON.

So the real bindings of CUDA's driver are called, with machine code from the real
toolchain; only the numbers are missing.
"""

import ctypes
import json

from gpu_launches import CHAIN, scaled

import minihybrid as mx
from minihybrid import nd
from minihybrid.codegen.bytecode import ARRAY, PARAM, Operand
from minihybrid.runtime.device import device_of
from minihybrid.runtime.launch import Recorded


def recorded(driver):
    """The first arguments of all launches so far, graphs' nodes included."""
    value = ctypes.c_uint64()
    n = driver.noted(0, ctypes.byref(value))
    return [(driver.noted(i, ctypes.byref(value)), value.value)[1] for i in range(n)]


def main():
    """Launch alone and as a graph, with the same and with other arguments."""
    device, driver = device_of(mx.gpu(0)), ctypes.CDLL("libcuda.so.1")

    def new(call):
        """What a call adds to the notes."""
        before = len(recorded(driver))
        call()
        return recorded(driver)[before:]

    one = Recorded(device, [scaled(Operand(ARRAY, 0), Operand(PARAM, 0), Operand(ARRAY, 1))], 0)
    chain = Recorded(device, CHAIN, 512)
    arena = chain.arena.address
    actual = {
        "name": str(device.context),
        "gpus": mx.num_gpus(),
        "capability": list(device.capability),
        "one": new(lambda: one([11, 22], [33], 5)),
        "changed": new(lambda: one([12, 22], [33], 5)),
        "chain": new(lambda: chain([11, 22], [33], 5)),
        "changed chain": new(lambda: chain([12, 22], [33], 5)),
        "arena": [arena, arena + 256],
    }
    x = nd.ones((3, 4), ctx=mx.gpu(0))
    y = nd.relu(x * 2 + 1)
    actual["shape"] = list(y.asnumpy().shape)
    actual["kernels"] = len(device.kernels)
    print(json.dumps(actual))


if __name__ == "__main__":
    main()
