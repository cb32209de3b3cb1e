"""Chapter 14. function: hybridize a plain Python function of arrays.

Takes:   a function written with infix signs and operators.
Gives:   a callable that traces it once a signature and then runs compiled plans.

What is left out: functions that read arrays from outside; pass them as arguments.
"""

import functools

from minihybrid.gluon.hybrid import Hybrid


class HybridFunction:
    """A hybridized function; `plans` lists what was compiled."""

    def __init__(self, f, target=None):
        functools.update_wrapper(self, f)
        self.hybrid = Hybrid(f, dict, getattr(f, "__name__", "function"), target)

    def __call__(self, *args):
        """The function's result: compiled for arrays, symbolic for symbols."""
        return self.hybrid.call(*args)

    def __repr__(self):
        return f"<HybridFunction {self.__name__}>"

    @property
    def plans(self):
        """signature -> plan, of everything that was compiled."""
        return self.hybrid.plans

    def plan_for(self, *args):
        """(plan, input arrays, bound parameters) for these arguments."""
        return self.hybrid.plan_for(*args)


def function(f=None, *, target=None):
    """Hybridize a Python function of arrays; usable as a decorator.

    >>> from minihybrid import nd
    >>> fused = function(lambda a, b: a * b + 1)
    >>> fused(nd.array([2]), nd.array([3])).item()
    7.0
    """
    if f is None:
        return functools.partial(function, target=target)
    return HybridFunction(f, target)
