"""User attributes of symbols: strings by name, saved in files.

Defines: `AttrScope`.

An operator's own attributes define what it computes; user attributes are metadata, such
as a parameter's learning rate.
Source:  MXNet's mxnet.attribute; here no attribute moves an operator to another device.
"""

from minihybrid.core.op import unfit
from minihybrid.core.switches import Nested, Opened

# Names whose underscores may be omitted.
KNOWN = frozenset(("ctx_group", "force_mirroring", "lr_mult", "mirror_stage", "wd_mult"))
# Codes of dtypes in files.
DTYPES = dict(enumerate("float32 float64 float16 uint8 int32 int8 int64 bool".split()))
DTYPES[12] = "bfloat16"
TYPE_FLAGS = {name: flag for flag, name in DTYPES.items()}


class AttrScope(Nested):
    """Give symbols created inside this `with` block these attributes.

    Raises:  AttrError for a value that isn't a string.

    >>> from minihybrid.core import sym
    >>> with AttrScope(__group__="4"):
    ...     x = sym.var("x")
    >>> x.attr("__group__")
    '4'
    """

    def __init__(self, /, **kwargs):
        self.local = self.attrs = as_text("AttrScope", kwargs)

    def get(self, attr=None):
        """Return the scope's attributes, overridden by the given ones."""
        return {**self.attrs, **(attr or {})}

    def __enter__(self):
        self.attrs = AttrScope.current().get(self.local)
        return super().__enter__()


def as_text(owner, attrs):
    """Return a user's attributes under the names in files; raise AttrError unless they are text."""
    for key, value in attrs.items():
        if not isinstance(value, str):
            raise unfit(owner, key, value, f"attributes are text; write '{value}'")
    return {written(key): value for key, value in attrs.items()}


def written(key):
    """Return a name as it is saved: `lr_mult` -> `__lr_mult__`."""
    return f"__{key}__" if key in KNOWN else key


def with_short_names(attrs):
    """Return the attributes, the known ones also without underscores."""
    short = {key.strip("_"): value for key, value in attrs.items() if key.strip("_") in KNOWN}
    return {**attrs, **short}


AttrScope.opened = Opened(AttrScope)


def __dir__():
    return "AttrScope with_short_names written".split()
