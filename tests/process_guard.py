"""Import a package and tell what its modules change in those that were read before.

Run as `python process_guard.py PACKAGE`: prints a JSON list of [who, what], such as
["package.late", "package.early.Class.method"]. A table that grew is one entry, and an
object of the package's own classes that got another attribute is, too.
"""

import importlib
import json
import pkgutil
import sys
from importlib.machinery import PathFinder
from types import ModuleType

# What Python itself writes into classes when they are first used.
OWN = {"__abstractmethods__", "_abc_impl", "__annotations_cache__", "__weakref__"}


def entries(value):
    """Everything in a table, also in tables within it, as (place, identity)."""
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ((v, v) for v in value)
    )
    actual = {}
    for key, item in pairs:
        actual[key] = entries(item) if isinstance(item, dict) else id(item)
    return actual


def attributes(thing):
    """What can be changed in a module, a class or an object: name -> (identity, it)."""
    own = thing.__name__ if isinstance(thing, ModuleType) else None
    actual = {"__class__": type(thing)} | {
        name: value
        for name, value in vars(thing).items()
        if name not in OWN and not (own and getattr(value, "__name__", "") == f"{own}.{name}")
    }
    return {name: (id(value), value) for name, value in actual.items()}


class Watch:
    """The modules that were read, and how they looked then."""

    def __init__(self, package):
        self.package, self.seen, self.tables, self.changes = package, {}, {}, []

    def things(self, module):
        """A module, its classes, and its objects of the package's own classes."""
        yield module.__name__, module
        known = {id(thing) for thing, _ in self.seen.values()}
        for name, value in list(vars(module).items()):
            kind = value if isinstance(value, type) else type(value)
            ours = kind.__module__.partition(".")[0] == self.package
            if ours and id(value) not in known and hasattr(value, "__dict__"):
                yield f"{module.__name__}.{name}", value

    def compare(self, who):
        """Note what differs from the last time."""
        for what, (thing, before) in self.seen.items():
            now = attributes(thing)
            for name in before.keys() | now.keys():
                if before.get(name, (0,))[0] != now.get(name, (0,))[0]:
                    self.changes.append((who, f"{what}.{name}"))
            self.seen[what] = thing, now
        for what, (table, before) in self.tables.items():
            now = entries(table)
            if now != before:
                self.changes.append((who, what))
            self.tables[what] = table, now

    def read(self, module):
        """Remember how a module looks that has just been read."""
        self.compare(module.__name__)
        for what, thing in self.things(module):
            self.seen[what] = thing, attributes(thing)
        known = {id(table) for table, _ in self.tables.values()}
        for name, value in vars(module).items():
            if (
                isinstance(value, (dict, list, set))
                and id(value) not in known
                and not name.startswith("__")
            ):
                self.tables[f"{module.__name__}.{name}"] = value, entries(value)

    # -- as Python's import system asks for it
    def find_spec(self, name, path, target=None):
        """Our modules, with a loader that tells when they have been read."""
        if name.partition(".")[0] != self.package:
            return None
        if spec := PathFinder.find_spec(name, path):
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                self.read(module)

            spec.loader.exec_module = exec_module
        return spec


def main(package):
    """All changes that are made while the package and all its modules are read."""
    watch = Watch(package)
    sys.meta_path.insert(0, watch)
    try:
        path = importlib.import_module(package).__path__
        for actual in pkgutil.walk_packages(path, f"{package}."):
            importlib.import_module(actual.name)
    finally:
        sys.meta_path.remove(watch)
    return sorted(set(watch.changes))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
