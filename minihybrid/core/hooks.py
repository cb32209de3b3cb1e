"""Hooks and tables through which later modules extend the core.

Defines: `Hook`, a function with a default that a later module can implement; tables of
         later modules' entries: `FACES` (names in `nd` and `sym`), `FORMATS`,
         `INITIALIZERS`, `WITHOUT_SCIPY`; `own_names`, for `dir()` of a module.

A hook is for code that every call passes. For a convenience such as `Symbol.bind`, a
method imports the later module itself.
Limits: one implementation per hook.
"""


class Hook:
    """A function that a later module can implement; by default, `default`.

    fetch:   imports and returns the implementation, at the first call.

    >>> half = Hook(lambda x: None)
    >>> half.fetch = lambda: lambda x: x / 2
    >>> half(3)
    1.5
    """

    def __init__(self, default):
        self.function, self.fetch = None, lambda: default

    def __call__(self, *args, **kwargs):
        """Call the implementation."""
        if self.function is None:
            self.function = self.fetch()
        return self.function(*args, **kwargs)


def nothing(*_):
    """Do nothing; the default of hooks without a result."""


def first(value, *_):
    """Return the first argument; the default of hooks that transform it."""
    return value


check_places = Hook(nothing)  # title, entry, arrays; may raise
donatable = Hook(nothing)  # nodes of a tape, variables, seeds -> State.lent
follow = Hook(nothing)  # array with a base, before it is read
in_turns = Hook(nothing)  # body, rows, states, order -> outs, states, or None
instead = Hook(nothing)  # object or namespace, missing name -> error message
many_plans = Hook(nothing)  # hybrid, entry, args, old entry; may share plans
opened = Hook(first)  # bytes of a file, its name -> the bytes; may raise
old_values = Hook(nothing)  # tape entry whose memory was written -> old values
reuse = Hook(nothing)  # shape, dtype -> allocator of such results, or None for NumPy's
renew = Hook(nothing)  # array before a write, owner of its memory
share = Hook(nothing)  # new variable in another array's memory
wrapper = Hook(first)  # array class, context -> function from output to array

FORMATS = {}  # of `net.export`: name -> (entry, path, epoch, net) -> file names
INITIALIZERS = {}  # name, as in init="xavier" -> class
WITHOUT_SCIPY = {}  # name of a SciPy function -> slower replacement
FACES = {"nd": {}, "sym": {}, "nd.contrib": {}, "sym.contrib": {}}  # -> name -> value


def own_names(names, *more):
    """Return a module's `__dir__`, which lists its `__all__`, or else all public names that it
    or, for a package, one of its modules defines.

    names:   its `globals()`;  more: other imported names to include.
    """

    def is_own(name):
        home = getattr(names[name], "__module__", None)
        return not name.startswith("_") and f"{home}.".startswith(names["__name__"] + ".")

    return lambda: sorted({*(names.get("__all__") or filter(is_own, names)), *more})
