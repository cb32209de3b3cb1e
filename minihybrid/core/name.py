"""Names: unnamed symbols are counted, each kind by itself.

Takes:   an operator, and the name that its user gave, if any.
Gives:   `NameManager` and `Prefix`, which hold inside a `with` block.
"""

import threading


class NameManager:
    """Gives each unnamed symbol a name that counts up: `relu0`, `relu1`, ...

    A subclass may choose names in another way: by its own `get`.

    >>> with NameManager() as names:
    ...     names.get(None, "relu"), names.get(None, "relu"), names.get("mine", "relu")
    ('relu0', 'relu1', 'mine')
    """

    _stack = threading.local()

    def __init__(self):
        self.counts = {}

    @classmethod
    def current(cls):
        """The name manager in force in this thread."""
        if not hasattr(cls._stack, "managers"):
            cls._stack.managers = [NameManager()]
        return cls._stack.managers[-1]

    def get(self, name, hint):
        """The given name, or the next one of its kind."""
        if not name:
            count = self.counts.get(hint, 0)
            self.counts[hint] = count + 1
            name = f"{hint}{count}"
        return name

    def __enter__(self):
        NameManager.current()
        self._stack.managers.append(self)
        return self

    def __exit__(self, *_):
        self._stack.managers.pop()


class Prefix(NameManager):
    """A name manager that puts a prefix before all names, given ones, too.

    >>> with Prefix("net_") as names:
    ...     names.get(None, "relu"), names.get("mine", "relu")
    ('net_relu0', 'net_mine')
    """

    def __init__(self, prefix):
        super().__init__()
        self.prefix = prefix

    def get(self, name, hint):
        """The prefix and the given name, or the next one of its kind."""
        return self.prefix + super().get(name, hint)


INFIX = {
    "elemwise_add": "_plus",
    "elemwise_sub": "_minus",
    "elemwise_mul": "_mul",
    "elemwise_div": "_div",
}
# Scalars that MXNet knows as _PlusScalar, not as _plus_scalar.
JOINED = {
    f"_{name}_scalar"
    for name in "plus minus rminus mul div rdiv mod rmod power maximum minimum hypot".split()
}


def hint(op):
    """What unnamed nodes of an operator are called: `_plus_scalar` -> `_plusscalar`."""
    name = INFIX.get(op.name, op.name.lower())
    if name.startswith("_np"):  # _npi_add, _np_sum, _npx_relu -> add, sum, relu
        return name[1:].partition("_")[2]
    return "_" + name.replace("_", "") if name in JOINED else name
