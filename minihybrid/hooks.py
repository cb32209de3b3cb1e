"""Chapter 07. What is called here and brought later: every such place of the package.

Takes:   functions and names that modules bring which are read later.
Gives:   `Hook`, a function that is still to come, and all there are; `FACES`, the names
         that are still to come in `nd`, `sym` and their parts.

Imports point one way, and no module assigns to another, or to another's class. An array
can be bound, sent to a GPU or differentiated all the same: the method stands in its
class and calls a hook, and the module that explains how does it enters itself here.
What is left out: two answers to one hook.
"""

from minihybrid.op import HybridError


class Hook:
    """A function that may be called before the module is read that brings it.

    >>> half = Hook("half", "a number -> half of it")
    >>> @half.brought
    ... def by_division(x):
    ...     return x / 2
    >>> half(3)
    1.5
    """

    def __init__(self, name, meaning):
        self.name, self.meaning, self.function = name, meaning, None

    def brought(self, function):
        """Enter the function that is called from now on; a decorator.

        Raises:  HybridError if there is one already.
        """
        if self.function is not None:
            raise HybridError(f"{self.name}: {self.function.__module__} brings it, so "
                              f"{function.__module__} cannot; call that one")
        self.function = function
        return function

    def __call__(self, *args, **kwargs):
        """What the function that was brought gives."""
        if self.function is None:
            raise HybridError(f"{self.name} ({self.meaning}): no module has brought it "
                              "yet; import minihybrid, the whole package")
        return self.function(*args, **kwargs)


run_on_device = Hook("run_on_device", "device, op, DeviceArrays, attrs, key -> outputs")
backward = Hook("backward", "array, head gradient, retain_graph, train_mode -> None")
np_array = Hook("np_array", "numbers, node, index -> np.ndarray")
np_symbol = Hook("np_symbol", "references -> its symbol in np's world")
bind = Hook("bind", "symbol, and what Symbol.bind takes -> Executor")
simple_bind = Hook("simple_bind", "symbol, and what simple_bind takes -> Executor")

FACES = {"nd": {}, "sym": {}, "nd.contrib": {}, "sym.contrib": {}}  # -> name -> value
