"""Chapter 10. Calls that do not fit: one sentence in place of Python's.

Takes:   classes and functions that users call, and the arguments of a call.
Gives:   `Signed`, the metaclass of classes that say what they take; `Settings`, whose
         attributes have kinds; `signed`, the same for a function; `misfit`, what is
         wrong with a call.

A call that fits costs nothing more: only after Python's TypeError is it looked at.
What is left out: types; each argument is checked where it is read, by its kind.
"""

import functools
import inspect
from abc import ABCMeta

from minihybrid.core.op import AttrError, HybridError, checked, unknown_argument

Parameter = inspect.Parameter
BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def misfit(owner, function, args, kwargs, parents=()):
    """The sentence that arguments do not fit a function; `None` if they do.

    parents:  functions that get whatever the function takes as **kwargs.

    >>> misfit("area", lambda width, height=1: 0, (), {"hight": 2})
    "area: no argument is called 'hight' (did you mean 'height'?); it takes width, \
height"
    """
    given = list(inspect.signature(function).parameters.values())
    kinds = {p.kind for p in given}
    named = [p for p in given
             if p.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)]
    by_place = [p.name for p in named if p.kind in BY_PLACE]
    known = [p.name for p in named] + [
        name for parent in parents for name, p in
        list(inspect.signature(parent).parameters.items())[1:] if p.kind in BY_PLACE]
    known = list(dict.fromkeys(known))
    unknown = [name for name in kwargs if name not in known]
    if unknown and (parents or Parameter.VAR_KEYWORD not in kinds):
        return unknown_argument(owner, unknown, known)
    takes = f"it takes {', '.join(known) or 'none'}"
    if len(args) > len(by_place) and Parameter.VAR_POSITIONAL not in kinds:
        most = f"{len(by_place)} argument{'s' * (len(by_place) != 1)}"
        return f"{owner}: {len(args)} arguments are given, but {takes}: {most} at most"
    placed = by_place[:len(args)]
    for name in placed:
        if name in kwargs:
            return f"{owner}: the argument '{name}' is given twice; {takes}"
    for p in named:
        if p.default is Parameter.empty and p.name not in (*placed, *kwargs):
            return f"{owner}: the argument '{p.name}' is missing; {takes}"
    return None


class Signed(ABCMeta):
    """The metaclass of classes that answer a wrong call with a sentence.

    Raises:  AttrError for arguments that `__init__` does not take.

    >>> class Area(metaclass=Signed):
    ...     def __init__(self, width, height=1): pass
    >>> Area()
    Traceback (most recent call last):
    minihybrid.core.op.AttrError: Area: the argument 'width' is missing; it takes \
width, height
    """

    def __call__(cls, *args, **kwargs):
        """Make an object; who does not fit `__init__` is told."""
        try:
            return super().__call__(*args, **kwargs)
        except TypeError as error:
            said = None
            if not isinstance(error, HybridError):
                said = misfit(cls.__name__, cls._init(), args, kwargs, cls._parents())
            if said is None:
                raise
        raise AttrError(said)

    def _init(cls):
        """The `__init__` without self; where nobody wrote one, it takes nothing."""
        if cls.__init__ is object.__init__:
            return lambda: None
        return functools.partial(cls.__init__, None)

    def _parents(cls):
        """The `__init__` of all classes that **kwargs are handed on to."""
        found = [vars(c)["__init__"] for c in cls.__mro__[:-1] if "__init__" in vars(c)]
        passed_on = [f for f in found if any(
            p.kind is Parameter.VAR_KEYWORD
            for p in inspect.signature(f).parameters.values())]
        return found[1:] if found[:1] == passed_on[:1] else ()

    @property
    def __signature__(cls):
        """What `help` and notebooks show: the arguments of `__init__`."""
        return inspect.signature(cls._init())


class Settings(metaclass=Signed):
    """A parent whose attributes are of a kind each, also when they are set later.

    >>> from minihybrid.core.op import rate
    >>> class Noise(Settings):
    ...     KINDS = {"rate": rate}
    >>> noise = Noise(); noise.rate = 2
    Traceback (most recent call last):
    minihybrid.core.op.AttrError: Noise: rate=2 does not fit; needed: a probability \
in [0, 1)
    """

    KINDS = {}    # attribute -> what brings a value into its form
    CALLED = {}   # attribute -> the argument that it comes from, if it has another name

    def __setattr__(self, name, value):
        if name in self.KINDS:
            value = checked(type(self).__name__, self.CALLED.get(name, name), value,
                            self.KINDS[name])
        super().__setattr__(name, value)


def signed(function):
    """The same function; arguments that it does not take get a sentence.

    >>> @signed
    ... def area(width, height=1): return width * height
    >>> area(2, hight=3)
    Traceback (most recent call last):
    minihybrid.core.op.AttrError: mistake.area: no argument is called 'hight' (did you \
mean 'height'?); it takes width, height
    """
    qualified = function.__qualname__
    is_method = "." in qualified.rpartition("<locals>.")[2]
    owner = qualified if is_method else \
        f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            said = None
            if not isinstance(error, HybridError):
                bound, rest = function, args
                if is_method:
                    bound, rest = functools.partial(function, None), args[1:]
                said = misfit(owner, bound, rest, kwargs)
            if said is None:
                raise
        raise AttrError(said)

    return call
