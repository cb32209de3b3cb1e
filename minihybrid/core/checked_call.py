"""Calls that do not fit: one sentence in place of Python's.

Takes:   classes and functions that users call, and the arguments of a call.
Gives:   `CheckedCall`, the metaclass of classes that say what they take; `Settings`, whose
         attributes have kinds; `signed`, the same for a function.

A call that fits costs nothing more: only after Python's TypeError is it looked at.
What is left out: types; each argument is checked where it is read, by its kind.
"""

import functools
import inspect
from abc import ABCMeta

from minihybrid.core.op import AttrError, HybridError, checked

Parameter = inspect.Parameter


class CheckedCall(ABCMeta):
    """The metaclass of classes that answer a wrong call with a sentence.

    Raises:  AttrError for arguments that `__init__` does not take.

    >>> class Area(metaclass=CheckedCall):
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
            message = None
            if not isinstance(error, HybridError):
                from minihybrid.core.call_errors import misfit

                message = misfit(cls.__name__, cls._init(), args, kwargs, cls._parents())
            if message is None:
                raise
        raise AttrError(message)

    def _init(cls):
        """The `__init__` without self; where nobody wrote one, it takes nothing."""
        if cls.__init__ is object.__init__:
            return lambda: None
        return functools.partial(cls.__init__, None)

    def _parents(cls):
        """The `__init__` of all classes that **kwargs are handed on to."""
        inits = [vars(c)["__init__"] for c in cls.__mro__[:-1] if "__init__" in vars(c)]
        passed_on = [
            f
            for f in inits
            if any(
                p.kind is Parameter.VAR_KEYWORD for p in inspect.signature(f).parameters.values()
            )
        ]
        return inits[1:] if inits[:1] == passed_on[:1] else ()

    @property
    def __signature__(cls):
        """What `help` and notebooks show: the arguments of `__init__`."""
        return inspect.signature(cls._init())


class Settings(metaclass=CheckedCall):
    """A parent whose attributes are of a kind each, also when they are set later.

    >>> from minihybrid.core.op import rate
    >>> class Noise(Settings):
    ...     KINDS = {"rate": rate}
    >>> noise = Noise(); noise.rate = 2
    Traceback (most recent call last):
    minihybrid.core.op.AttrError: Noise: rate=2 does not fit; needed: a probability \
in [0, 1)
    """

    KINDS = {}  # attribute -> what brings a value into its form
    CALLED = {}  # attribute -> the argument that it comes from, if it has another name

    def __setattr__(self, name, value):
        if name in self.KINDS:
            value = checked(
                type(self).__name__, self.CALLED.get(name, name), value, self.KINDS[name]
            )
        super().__setattr__(name, value)


def signed(function):
    """The same function; arguments that it does not take get a sentence.

    >>> @signed
    ... def area(width, height=1): return width * height
    >>> area(2, hight=3)
    Traceback (most recent call last):
    minihybrid.core.op.AttrError: checked_call.area: no argument is called 'hight' (did you \
mean 'height'?); it takes width, height
    """
    qualified = function.__qualname__
    is_method = "." in qualified.rpartition("<locals>.")[2]
    module = function.__module__.rpartition(".")[2].removesuffix("_extras")  # of nd, or sym
    owner = qualified if is_method else f"{module}.{function.__name__}"

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            message = None
            if not isinstance(error, HybridError):
                bound, rest = function, args
                if is_method:
                    bound, rest = functools.partial(function, None), args[1:]
                from minihybrid.core.call_errors import misfit

                message = misfit(owner, bound, rest, kwargs)
            if message is None:
                raise
        raise AttrError(message)

    return call
