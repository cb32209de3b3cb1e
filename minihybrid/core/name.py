"""Automatic names of symbols: an operator's name and a counter.

Defines: `NameManager` and `Prefix`, active inside a `with` block.
"""

from minihybrid.core.switches import Nested, Opened


class NameManager(Nested):
    """Names unnamed symbols by a counter per operator: `relu0`, `relu1`, ...

    A subclass may override `get` to choose names differently.

    >>> with NameManager() as names:
    ...     names.get(None, "relu"), names.get(None, "relu"), names.get("mine", "relu")
    ('relu0', 'relu1', 'mine')
    """

    block = None  # the class of the block that composes the symbols

    def __init__(self):
        self.counts = {}

    def get(self, name, hint):
        """Return the given name, or the next one for this hint."""
        if not name:
            count = self.counts.get(hint, 0)
            self.counts[hint] = count + 1
            name = f"{hint}{count}"
        return name


NameManager.opened = Opened(NameManager)


class Prefix(NameManager):
    """A name manager that adds a prefix to all names, also to given ones.

    >>> with Prefix("net_") as names:
    ...     names.get(None, "relu"), names.get("mine", "relu")
    ('net_relu0', 'net_mine')
    """

    def __init__(self, prefix, block=None):
        super().__init__()
        self.prefix, self.block = prefix, block

    def get(self, name, hint):
        """Return the prefix with the given name, or with the next one for this hint."""
        return self.prefix + super().get(name, hint)


INFIX = {
    "elemwise_add": "_plus",
    "elemwise_sub": "_minus",
    "elemwise_mul": "_mul",
    "elemwise_div": "_div",
}
# MXNet names these operators _PlusScalar etc., not _plus_scalar.
JOINED = {
    f"_{name}_scalar"
    for name in "plus minus rminus mul div rdiv mod rmod power maximum minimum hypot".split()
}


def hint(op):
    """Return the stem of an operator's automatic names: `_plus_scalar` -> `_plusscalar`."""
    name = INFIX.get(op.name, op.name.lower())
    if name.startswith("_np"):  # _npi_add, _np_sum, _npx_relu -> add, sum, relu
        return name[1:].partition("_")[2]
    return "_" + name.replace("_", "") if name in JOINED else name
