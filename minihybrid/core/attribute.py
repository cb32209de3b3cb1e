"""Attributes that a user pins to symbols: text by name, as files have it.

Takes:   text by name, in a scope or in the call that makes a symbol.
Gives:   `AttrScope`.

An operator's own attributes say what it computes; these say what somebody wants to
remember with it, such as a parameter's learning rate.
Source:  MXNet's mxnet.attribute; here no attribute moves an operator to another device.
"""

import threading

from minihybrid.core.op import AttrError, described

# Names that may be written without their underscores.
KNOWN = frozenset(("ctx_group", "force_mirroring", "lr_mult", "mirror_stage", "wd_mult"))
# How files number the types of elements.
DTYPES = dict(enumerate("float32 float64 float16 uint8 int32 int8 int64 bool".split()))
TYPE_FLAGS = {name: flag for flag, name in DTYPES.items()}


class AttrScope:
    """Symbols that are made inside this `with` block carry these attributes.

    Raises:  AttrError for a value that is not text.

    >>> from minihybrid.core import sym
    >>> with AttrScope(__group__="4"):
    ...     x = sym.var("x")
    >>> x.attr("__group__")
    '4'
    """

    _stack = threading.local()

    def __init__(self, /, **kwargs):
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise AttrError(
                    f"AttrScope: {key} is {described(value)}, but attributes are text; "
                    f"write '{value}'"
                )
        self.own = {written(key): value for key, value in kwargs.items()}
        self.attrs = self.own

    @classmethod
    def current(cls):
        """The scope in force in this thread."""
        if not hasattr(cls._stack, "scopes"):
            cls._stack.scopes = [cls()]
        return cls._stack.scopes[-1]

    def get(self, attr=None):
        """The scope's attributes, and over them the given ones."""
        return {**self.attrs, **(attr or {})}

    def __enter__(self):
        self.attrs = AttrScope.current().get(self.own)
        self._stack.scopes.append(self)
        return self

    def __exit__(self, *_):
        self._stack.scopes.pop()


def written(key):
    """A name as files have it: `lr_mult` -> `__lr_mult__`."""
    return f"__{key}__" if key in KNOWN else key


def shown(attrs):
    """The attributes, the known ones also without their underscores."""
    short = {key.strip("_"): value for key, value in attrs.items() if key.strip("_") in KNOWN}
    return {**attrs, **short}


def __dir__():
    return "AttrScope shown written".split()
