"""User attributes of symbols: strings by name, saved in files.

Defines: `AttrScope`.

An operator's own attributes define what it computes; user attributes are metadata, such
as a parameter's learning rate.
Source:  MXNet's mxnet.attribute; here no attribute moves an operator to another device.
"""

import threading

from minihybrid.core.op import AttrError, described

# Names whose underscores may be omitted.
KNOWN = frozenset(("ctx_group", "force_mirroring", "lr_mult", "mirror_stage", "wd_mult"))
# Codes of dtypes in files.
DTYPES = dict(enumerate("float32 float64 float16 uint8 int32 int8 int64 bool".split()))
DTYPES[12] = "bfloat16"
TYPE_FLAGS = {name: flag for flag, name in DTYPES.items()}


class AttrScope:
    """Give symbols created inside this `with` block these attributes.

    Raises:  AttrError for a value that isn't a string.

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
        self.local = {written(key): value for key, value in kwargs.items()}
        self.attrs = self.local

    @classmethod
    def current(cls):
        """Return the innermost scope of this thread."""
        if not hasattr(cls._stack, "scopes"):
            cls._stack.scopes = [cls()]
        return cls._stack.scopes[-1]

    def get(self, attr=None):
        """Return the scope's attributes, overridden by the given ones."""
        return {**self.attrs, **(attr or {})}

    def __enter__(self):
        self.attrs = AttrScope.current().get(self.local)
        self._stack.scopes.append(self)
        return self

    def __exit__(self, *_):
        self._stack.scopes.pop()


def written(key):
    """Return a name as it is saved: `lr_mult` -> `__lr_mult__`."""
    return f"__{key}__" if key in KNOWN else key


def with_short_names(attrs):
    """Return the attributes, the known ones also without underscores."""
    short = {key.strip("_"): value for key, value in attrs.items() if key.strip("_") in KNOWN}
    return {**attrs, **short}


def __dir__():
    return "AttrScope with_short_names written".split()
