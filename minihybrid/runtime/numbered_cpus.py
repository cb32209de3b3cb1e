"""`cpu(1)`, `cpu(2)`, ...: logical CPU devices, to learn multi-device training.

Defines: `Numbered`, an ndarray that remembers such a context; `on`, which makes one;
         `run_here`, which runs one operator on them.

All of them share memory and cores. But parameters have a copy on each, batches are split,
and gradients are summed, as on several GPUs. Plain ndarrays are on `cpu(0)`, so programs
that use no other context pay nothing.
Source:  MXNet, where the first input determines the context of a result.
Not supported: separate memory or threads; the devices run one at a time.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from minihybrid.core.array import NDArray
from minihybrid.core.compiled import CompiledOp
from minihybrid.core.context import Context
from minihybrid.core.placement import Elsewhere
from minihybrid.ops.eager_cache import fresh


class Numbered(np.ndarray, Elsewhere):
    """An ndarray on `cpu(1)`, `cpu(2)`, ...

    >>> from minihybrid.core.context import cpu
    >>> x = on(np.arange(4), cpu(1))
    >>> x.context, x.part(slice(2)).context, x.device
    (cpu(1), cpu(1), 'cpu(1)')
    """

    context: Any = None  # set by each class of `kind_of`
    device: Any = None

    def part(self, key: Any) -> np.ndarray:
        """Return `self[key]`, contiguous, on the same context."""
        return on(np.asarray(np.asarray(self)[key], order="C"), self.context)


@cache
def kind_of(context: Context) -> type[Numbered]:
    """Return the class of arrays on a context, which an array's type thus identifies."""
    return type(f"On{context}", (Numbered,), {"context": context, "device": str(context)})


def on(array: Any, context: Context) -> np.ndarray:
    """Return a view of an array on a context."""
    array = np.asarray(array)
    return array.view(kind_of(context)) if context.device_id else array


def run_here(context: Context, op: Any, datas: Sequence, attrs: dict) -> np.ndarray | tuple:
    """Run one operator; put its outputs on a context."""
    if isinstance(op, CompiledOp):  # it compares parameters by identity
        return _each(partial(on, context=context), op.eager(*datas))
    out = op.eager(*map(np.asarray, datas), **attrs)
    return _each(lambda each: on(fresh(each), context), out)


def _each(function: Callable[[Any], Any], out: Any) -> Any:
    """Apply a function to one output, or to each."""
    return tuple(map(function, out)) if isinstance(out, tuple) else function(out)


def _wrapped(kind: type[NDArray], context: Context, out: np.ndarray) -> NDArray:
    return kind(on(out, context))


def wrapper(kind: type[NDArray], context: Context) -> Callable[[np.ndarray], NDArray]:
    """Return the function that makes arrays from a plan's outputs."""
    if context.device_type != "cpu" or not context.device_id:
        return kind
    return partial(_wrapped, kind, context)
