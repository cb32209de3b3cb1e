"""Several numbers of the processor: `cpu(1)` is a device to learn with.

Takes:   NumPy arrays, and contexts such as `cpu(1)`.
Gives:   `Numbered`, NumPy's array that remembers such a context; `on`, which makes one;
         `run_here`, one operator on them.

Memory and machine are the same for every number. But parameters have a copy on each, a
batch is split over them, and gradients are added up, as on several GPUs. NumPy's own
arrays are `cpu(0)`, so whoever uses no other number pays for none of this.
Source:  MXNet, where the first input says on which of them a result is.
What is left out: memory or threads of their own; all devices take turns.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from minihybrid.core import hooks
from minihybrid.core.array import NDArray
from minihybrid.core.compiled import CompiledOp
from minihybrid.core.context import Context
from minihybrid.core.placement import Elsewhere
from minihybrid.ops.eager_cache import own


class Numbered(np.ndarray, Elsewhere):
    """Numbers in the processor's memory that are on `cpu(1)`, or a later one.

    >>> from minihybrid.core.context import cpu
    >>> x = on(np.arange(4), cpu(1))
    >>> x.context, x.part(slice(2)).context, x.device
    (cpu(1), cpu(1), 'cpu(1)')
    """

    context: Any = None  # each class of `kind_of` has its own
    device: Any = None

    def part(self, key: Any) -> np.ndarray:
        """`self[key]` without gaps, on the same context."""
        return on(np.asarray(np.asarray(self)[key], order="C"), self.context)


@cache
def kind_of(context: Context) -> type[Numbered]:
    """The class of the arrays on a context; so an array's type tells where it is."""
    return type(f"On{context}", (Numbered,), {"context": context, "device": str(context)})


def on(array: Any, context: Context) -> np.ndarray:
    """An array's memory as that of a context."""
    array = np.asarray(array)
    return array.view(kind_of(context)) if context.device_id else array


def run_here(context: Context, op: Any, datas: Sequence, attrs: dict) -> np.ndarray | tuple:
    """One operator; its outputs belong to a context, wherever the inputs were."""
    if isinstance(op, CompiledOp):  # it knows its parameters by identity
        return _each(partial(on, context=context), op.eager(*datas))
    out = op.eager(*map(np.asarray, datas), **attrs)
    return _each(lambda each: on(own(each), context), out)


def _each(function: Callable[[Any], Any], out: Any) -> Any:
    """A function of one output, or of each."""
    return tuple(map(function, out)) if isinstance(out, tuple) else function(out)


def _wrapped(kind: type[NDArray], context: Context, out: np.ndarray) -> NDArray:
    return kind(on(out, context))


@hooks.wrapper.implement
def wrapper(kind: type[NDArray], context: Context) -> Callable[[np.ndarray], NDArray]:
    """What makes arrays of a plan's outputs, which lie in the processor's memory."""
    if context.device_type != "cpu" or not context.device_id:
        return kind
    return partial(_wrapped, kind, context)
