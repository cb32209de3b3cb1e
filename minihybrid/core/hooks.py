"""What the core calls if the rest of the package is there, and tables that it fills.

Takes:   functions and names of modules that are imported later.
Gives:   `Hook`, a function with a default that the core alone uses; `FACES`, the names
         of later modules in `nd` and `sym`; `FORMATS`, of files; `INITIALIZERS`;
         `WITHOUT_SCIPY`; `own_names`, what `dir()` of a module shows.

A hook is for what every call passes: the core alone runs with the default. For a
convenience, such as `Symbol.bind`, a method imports the later module itself.
What is left out: two implementations of one hook.
"""

from minihybrid.core.op import HybridError


class Hook:
    """A function that a later module implements; until then, its default.

    >>> half = Hook("half", lambda x: None)
    >>> @half.implement
    ... def by_division(x):
    ...     return x / 2
    >>> half(3)
    1.5
    """

    def __init__(self, name, default):
        self.name, self.default, self.function = name, default, None
        self.fetch = nothing  # may import the module that implements it, and returns that

    def implement(self, function):
        """Use this function from now on; a decorator.

        Raises:  HybridError if there is one already.
        """
        if self.function is not None:
            raise HybridError(
                f"{self.name}: {self.function.__module__} implements it, so "
                f"{function.__module__} cannot; call that one"
            )
        self.function = function
        return function

    def __call__(self, *args, **kwargs):
        """Call the implementation."""
        return (self.function or self.fetch() or self.default)(*args, **kwargs)


def nothing(*_):
    """The default where the core alone has nothing to do."""


def first(value, *_):
    """The default where the core alone has nothing to change."""
    return value


check_places = Hook("check_places", nothing)  # title, entry, arrays; may raise
donatable = Hook("donatable", nothing)  # nodes of a tape, variables, seeds -> State.lent
in_turns = Hook("in_turns", nothing)  # body, rows, states, order -> outs, states, or None
instead = Hook("instead", nothing)  # object or namespace, a name that it lacks -> a sentence
many_plans = Hook("many_plans", nothing)  # hybrid, entry, args, old entry; may share plans
opened = Hook("opened", first)  # bytes of a file, its name -> the bytes; may raise
reuse = Hook("reuse", nothing)  # shape, dtype -> what makes such a result, or None: NumPy does
wrapper = Hook("wrapper", first)  # class of arrays, context -> what makes one of an output

FORMATS = {}  # what `net.export` writes: name -> (signature, path, epoch, net) -> files
INITIALIZERS = {}  # what a text such as init="xavier" stands for -> its class
WITHOUT_SCIPY = {}  # name of a function of SciPy's -> another, slower
FACES = {"nd": {}, "sym": {}, "nd.contrib": {}, "sym.contrib": {}}  # -> name -> value


def own_names(names, *more):
    """The public names of a module: those of `__all__`, else of what it defines.

    names:   its `globals()`;  more: names of what it has from others, to be seen, too.
    """
    listed = names.get("__all__") or (
        name
        for name, value in names.items()
        if not name.startswith("_") and getattr(value, "__module__", None) == names["__name__"]
    )
    return sorted({*listed, *more})
