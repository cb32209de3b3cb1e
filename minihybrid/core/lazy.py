"""Lazy imports: names of a package that are imported at first use.

Defines: `face`, the `__getattr__` of a package; `Alias`, a module under MXNet's name for
         it; `resolve`, which imports a road (import path) such as "init:Xavier".
"""

import sys
from importlib import import_module
from types import ModuleType

from minihybrid.core import hooks


def full_name(module):
    """Return the full name of a road's module; the course is a separate package.

    >>> full_name("np"), full_name("minihybrid_course.tape")
    ('minihybrid.np', 'minihybrid_course.tape')
    """
    return module if module.startswith("minihybrid_course") else f"minihybrid.{module}"


def resolve(road):
    """Import a module such as "np" or, after a colon, a name from it.

    >>> resolve("gluon.init:Xavier").__name__, resolve("gluon.init").__name__
    ('Xavier', 'minihybrid.gluon.init')
    """
    module, _, name = road.partition(":")
    module = import_module(full_name(module))
    return getattr(module, name) if name else module


def call(road, *args, **kwargs):
    """Import the function at a road and call it."""
    return resolve(road)(*args, **kwargs)


def face(names, table, instead=None):
    """Return a package's `__getattr__`, which imports names at first use.

    names:   the package's `globals()`;  table: name -> road, for names that aren't
             modules of the package;  instead: name in MXNet -> its replacement here.
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
            title = package.rpartition(".")[2]
            message = hooks.instead(title, name) or f"{package} has no '{name}'; {remedy}"
            raise AttributeError(message, name=name, obj=sys.modules[package]) from None
        names[name] = value  # later lookups skip __getattr__
        return value

    return __getattr__


class Alias(ModuleType):
    """A module under another name, imported at first use of one of its names.

    It has all of the module's names; `dir()` lists the public ones.
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
        return resolve("core.hooks:own_names")(vars(thing))()
