"""Eager operators on a device: each is a plan of a graph with one node.

Defines: `run_on_device`, which returns an operator's outputs in new device memory.

So eager and hybridized calls run the same kernels. Plans are cached by device, operator,
shapes, dtypes and attributes, up to a thousand. Scalars are passed as arrays, so that
`x * rate` isn't recompiled for each rate.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minihybrid.core.context import Context
from minihybrid.core.graph import Graph
from minihybrid.core.hooks import own_names
from minihybrid.core.lru_cache import LRUCache
from minihybrid.core.op import Node, Op, Spec
from minihybrid.core.placement import copy_to
from minihybrid.core.plan import Plan
from minihybrid.ops import OPS
from minihybrid.ops.integers import scalar_like
from minihybrid.runtime.device import Device, device_of
from minihybrid.runtime.device_array import DeviceArray
from minihybrid.runtime.launch import launch
from minihybrid.runtime.numbered_cpus import run_here

PLANS = LRUCache(1000)  # signature -> (plan, bound constants)
NUMBERS = LRUCache(1000)  # (device, dtype, scalar) -> its array


def run_on_device(
    context: Context, op: Op, /, *datas: Any, **attrs: Any
) -> np.ndarray | DeviceArray | tuple:
    """Run an operator; return a device array or a tuple of them, like `op.eager`."""
    if context.device_type == "cpu":
        return run_here(context, op, datas, attrs)
    key = attrs.pop("key", 0) if op.random else 0
    device = device_of(context)
    if op.binary_form and math.isfinite(attrs["scalar"]):
        number = number_on(device, datas[0].dtype, attrs["scalar"])
        name, comes_first = op.binary_form
        op, datas, attrs = OPS[name], (*datas, number), {}
        datas = datas[::-1] if comes_first else datas
    specs = tuple([Spec(d.shape, d.dtype) for d in datas])
    if op.view:  # a copy of another shape; no kernel
        return datas[0].copy().view(op.specs_of(specs, attrs)[1][0].shape)
    signature = device, op, specs, repr(attrs)  # repr distinguishes 0.0 and -0.0
    cached = PLANS.get(signature)
    if cached is None:
        plan = plan_of(device, op, specs, attrs)
        plan.load()
        cached = PLANS.put(signature, (plan, plan.bind([])))
    plan, bound = cached
    outs = launch(plan, datas, bound, key)
    return tuple(outs) if op.count_outputs(attrs) > 1 else outs[0]


def number_on(device: Device, dtype: np.dtype, number: float) -> DeviceArray:
    """Return a scalar as a 0-d device array."""
    signature = device, dtype, repr(number)
    cached = NUMBERS.get(signature)
    if cached is None:
        array = np.empty((), dtype)
        array[()] = scalar_like(array, number)
        cached = NUMBERS.put(signature, copy_to(array, device.context))
    return cached


def plan_of(device: Device, op: Op, specs: Sequence[Spec], attrs: dict) -> Plan:
    """Compile one operator for inputs of these specs."""
    names = [f"x{i}" for i in range(len(specs))]
    nodes = [Node(None, name=name, specs=(spec,)) for name, spec in zip(names, specs, strict=True)]
    node = Node(
        op, tuple((n, 0) for n in nodes), attrs, op.name, tuple(op.specs_of(specs, attrs)[1])
    )
    graph = Graph([*nodes, node], [(node, i) for i in range(node.n_outputs)])
    return Plan(graph, names, target=device, title=op.name, expanded=True)


__dir__ = own_names(globals())
