"""Chapter 03. function: hybridize a plain Python function of arrays.

Defines: `function`, which traces a function once per signature and then runs compiled
         plans; and `CachedOp`, the same for a symbol.

Not supported: functions that capture arrays. Pass them as arguments.
"""

import functools
import sys

from minihybrid.core.hybrid import Hybrid
from minihybrid.core.op import AttrError, unfit
from minihybrid.core.pytree import Keywords
from minihybrid.core.sym import Symbol, replay


class HybridFunction:
    """A hybridized function. `plans` lists its compiled plans."""

    def __init__(self, f, target=None, wait=None, dynamic=None):
        functools.update_wrapper(self, f)
        title = getattr(f, "__name__", "function")

        def by_place(*args):
            if args and type(args[-1]) is Keywords:
                return f(*args[:-1], **args[-1])
            return f(*args)

        self.hybrid = Hybrid(lambda: by_place, dict, title, target, wait, dynamic=dynamic)
        self._call = self.hybrid.caller()

    def __call__(self, *args, **kwargs):
        """Call the function: compiled for arrays, symbolically for symbols."""
        return self._call((*args, Keywords(kwargs)) if kwargs else args)

    def __repr__(self):
        return f"<HybridFunction {self.__name__}>"

    def __reduce__(self):
        """Pickle the function by name if possible, without its plans."""
        if getattr(sys.modules.get(self.__module__), self.__qualname__, None) is self:
            return self.__qualname__
        hybrid = self.hybrid
        return HybridFunction, (self.__wrapped__, hybrid.target, hybrid.wait, hybrid.marks)

    @property
    def plans(self):
        """The compiled plans, by signature."""
        return self.hybrid.plans

    def plan_for(self, *args, **kwargs):
        """Return (plan, input arrays, bound parameters) for these arguments."""
        return self.hybrid.plan_for(*args, *[Keywords(kwargs)] * bool(kwargs))


def function(f=None, *, target=None, wait=None, dynamic=None):
    """Hybridize a Python function of arrays. It can be used as a decorator.

    target, wait, dynamic:  as in `HybridBlock.hybridize`, where the target is `backend`.

    >>> from minihybrid.core import nd
    >>> fused = function(lambda a, b: a * b + 1)
    >>> fused(nd.array([2]), nd.array([3])).item()
    7.0
    """
    if f is None:
        return functools.partial(function, target=target, wait=wait, dynamic=dynamic)
    if not callable(f):
        raise unfit("function", "", f, "a Python function is needed")
    return HybridFunction(f, target, wait, dynamic)


class CachedOp:
    """A symbol, compiled into a function of arrays in the order of `list_inputs()`.

    flags:   accepted for compatibility with MXNet, and ignored.

    >>> from minihybrid.core import nd, sym
    >>> op = CachedOp(sym.var("a") * sym.var("b") + 1)
    >>> op(nd.array([2]), nd.array([3])).item()
    7.0
    """

    def __init__(self, sym, flags=()):
        if not isinstance(sym, Symbol):
            raise unfit("CachedOp", "", sym, "a Symbol is needed")
        self._symbol, self._names, refs = sym, sym.list_inputs(), sym.refs
        nodes = [n for part in sym._variables() for n in part]

        def run(*values):
            outs = replay(refs, dict(zip(nodes, values, strict=True)))
            return outs if len(outs) > 1 else outs[0]

        self.hybrid = Hybrid(lambda: run, dict, "CachedOp")
        self._call = self.hybrid.caller()

    def __reduce__(self):
        return CachedOp, (self._symbol,)

    def __call__(self, *args, out=None):
        """Return one array, or a list of all outputs; `out` receives the result."""
        if len(args) != len(self._names):
            raise AttrError(
                f"CachedOp: {len(self._names)} arrays are needed "
                f"({', '.join(self._names)}), found {len(args)}"
            )
        result = self._call(args)
        return result if out is None else out.copy_from(result)
