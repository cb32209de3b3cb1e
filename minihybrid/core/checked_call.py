"""Better errors for wrong arguments: one sentence instead of Python's TypeError.

Defines: `CheckedCall`, a metaclass that explains wrong arguments of `__init__`;
         `Settings`, whose attributes are validated; `naming` and `signed`, for functions.

A correct call costs nothing: arguments are examined only after a TypeError.
Limits: types aren't checked here; each argument is validated where it is read.
"""

import functools
import inspect
from abc import ABCMeta

from minihybrid.core.op import AttrError, HybridError, checked

Parameter = inspect.Parameter


class CheckedCall(ABCMeta):
    """Metaclass that turns wrong arguments into an error of one sentence.

    Raises:  AttrError for arguments that `__init__` does not take.

    >>> class Area(metaclass=CheckedCall):
    ...     def __init__(self, width, height=1): pass
    >>> Area()
    Traceback (most recent call last):
    minihybrid.core.op.AttrError: Area: missing a required argument: 'width'; it takes \
width, height
    """

    def __call__(cls, *args, **kwargs):
        """Create an object; explain arguments that don't match `__init__`."""
        try:
            return super().__call__(*args, **kwargs)
        except HybridError:
            raise
        except TypeError as error:
            from minihybrid.core.call_errors import misfit

            message = misfit(cls.__name__, cls._init(), args, kwargs, cls._parents(), error)
            if message is None:
                raise
        raise AttrError(message)

    def _init(cls):
        """Return `__init__` without self; one that takes nothing if it isn't defined."""
        if cls.__init__ is object.__init__:
            return lambda: None
        return functools.partial(cls.__init__, None)

    def _parents(cls):
        """Return the `__init__` of all classes that receive the **kwargs."""
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
        """The signature that `help` and notebooks show: that of `__init__`."""
        return inspect.signature(cls._init())


class Settings(metaclass=CheckedCall):
    """Base class whose attributes are validated by kinds whenever they are set.

    >>> from minihybrid.core.op import rate
    >>> class Noise(Settings):
    ...     KINDS = {"rate": rate}
    >>> noise = Noise(); noise.rate = 2
    Traceback (most recent call last):
    minihybrid.core.op.AttrError: Noise: rate=2 does not fit; needed: a probability \
in [0, 1)
    """

    KINDS = {}  # attribute -> kind, which normalizes a value
    CALLED = {}  # attribute -> argument, where the names differ

    def __setattr__(self, name, value):
        if name in self.KINDS:
            value = checked(
                type(self).__name__, self.CALLED.get(name, name), value, self.KINDS[name]
            )
        super().__setattr__(name, value)


def naming(name, function, renames=True):
    """Wrap a function so that its errors start with the name that the caller used.

    renames: whether to change the errors of operators as well, not only Python's.
    """

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except HybridError as error:
            if renames:
                from minihybrid.ops.infix import said_by

                said_by(name, error)
            raise
        except TypeError:
            from minihybrid.core.call_errors import misfit

            if (message := misfit(name, function, args, kwargs)) is None:
                raise
        raise AttrError(message)

    return call


def signed(function):
    """Decorate a function so that its errors start with its name, as those of arguments that it
    doesn't take.

    >>> @signed
    ... def area(width, height=1): return width * height
    >>> area(2, hight=3)
    Traceback (most recent call last):
    minihybrid.core.op.AttrError: checked_call.area: no argument is called 'hight' (did you \
mean 'height'?); it takes width, height
    """
    qualified = function.__qualname__
    is_method = "." in qualified.rpartition("<locals>.")[2]
    module = function.__module__.rpartition(".")[2].removesuffix("_extras")  # nd or sym
    owner = qualified if is_method else f"{module}.{function.__name__}"

    return naming(owner, function, not is_method)
