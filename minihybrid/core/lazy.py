"""Names of a package that are imported when they are asked for.

Takes:   a package's `globals()`, and where names are that are no modules of it.
Gives:   `face`, its `__getattr__`; `Alias`, a module under another name of MXNet's;
         `resolve`, what stands at the end of a road such as "init:Xavier".
"""

from importlib import import_module
from types import ModuleType

from minihybrid.core import hooks


def full_name(module):
    """A road's module as Python imports it; the course is a package of its own.

    >>> full_name("np"), full_name("minihybrid_course.tape")
    ('minihybrid.np', 'minihybrid_course.tape')
    """
    return module if module.startswith("minihybrid_course") else f"minihybrid.{module}"


def resolve(road):
    """What a road leads to: a module such as "np", or with a colon a name of one.

    >>> resolve("gluon.init:Xavier").__name__, resolve("gluon.init").__name__
    ('Xavier', 'minihybrid.gluon.init')
    """
    module, _, name = road.partition(":")
    module = import_module(full_name(module))
    return getattr(module, name) if name else module


def call(road, *args, **kwargs):
    """What the function at the end of a road gives."""
    return resolve(road)(*args, **kwargs)


def face(names, table, instead=None):
    """The function `__getattr__` of a package, which imports what is asked for.

    names:   the package's `globals()`;  table: name -> road, of those names that
             are no modules of the package;  instead: name -> what does the same here, of
             those that MXNet has.
    Raises:  AttributeError if there is no such name.
    """
    package = names["__name__"]

    def __getattr__(name):
        road = table.get(name) or f"{package}.{name}".removeprefix("minihybrid.")
        try:
            if name.startswith("_"):
                raise ModuleNotFoundError(name=full_name(road))
            value = resolve(road)
        except ModuleNotFoundError as error:
            if error.name != full_name(road):
                raise
            remedy = (instead or {}).get(name, f"dir({package}) lists all")
            message = hooks.instead(package, name) or f"{package} has no '{name}'; {remedy}"
            raise AttributeError(message) from None
        names[name] = value  # later look-ups skip __getattr__
        return value

    return __getattr__


class Alias(ModuleType):
    """A module under another name, which is imported when one of its names is asked for.

    It has all of the module's names, and shows those that are public.
    """

    def __init__(self, name, road):
        super().__init__(name)
        self._road = road

    def __getattr__(self, name):
        if name == "__all__":
            return dir(self)
        if name.startswith("__"):  # Python asks all modules for some, without using them
            raise AttributeError(name)
        return getattr(resolve(self._road), name)

    def __dir__(self):
        thing = resolve(self._road)
        if "__dir__" in vars(thing) or not isinstance(thing, ModuleType):
            return dir(thing)
        return resolve("core.hooks:own_names")(vars(thing))
