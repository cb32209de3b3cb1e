"""Suggestions for names of PyTorch, and of arrays while tracing, in the error of a missing one.

Defines: `instead`, the error message; `HERE`, the table, from `pytorch_names.toml`.

It's used only after an attribute lookup failed, so existing names have no overhead.
Not supported: whole PyTorch programs (the book has a page for PyTorch users).
"""

import tomllib
from pathlib import Path

from minihybrid.core import nd
from minihybrid.core.block import Block
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.parameter import Parameter
from minihybrid.core.sym import NOT_YET, Symbol
from minihybrid.core.tracing import IMPERATIVE, is_tracing, user_line
from minihybrid.ops.infix import Value

FILE = Path(__file__).with_suffix(".toml")
HERE = tomllib.loads(FILE.read_text(encoding="utf-8"))  # kind -> PyTorch's name -> our equivalent
FUNCTIONS = {name: here.format(F="nd") for name, here in HERE["nd"].items() if name != "view"}
HERE["minihybrid"] = FUNCTIONS | HERE["minihybrid"]

KINDS = {Block: "block", Parameter: "parameter", Value: "array"}  # all others are optimizers


HELD = "pass arrays as inputs, or hold them as constants (self.params.get_constant)"
TRACED = {"array": HELD, "from_numpy": HELD, "empty": "use F.zeros", "concatenate": "use F.concat"}


def while_tracing(owner, name):
    """Return the message that a name works on arrays only, or `None`."""
    is_method = hasattr(NDArray, name)
    if isinstance(owner, Symbol) and is_method:
        what, why = f"x.{name} on the Symbol '{owner.name}'", NOT_YET
        remedy = "read it outside of the block"
    elif (
        isinstance(owner, str) and owner == "sym" and is_tracing() and hasattr(nd, name) | is_method
    ):
        what, why = f"F.{name}", f"the block is traced, with F = mx.sym, and {NOT_YET}"
        remedy = "return x and convert the result" if is_method else "call it outside of the block"
        remedy = TRACED.get(name, remedy)
    else:
        return None
    return f"{what}{user_line()}: {why}; {remedy}, {IMPERATIVE}"


def instead(owner, name):
    """Return the message that an object or namespace lacks a name, or `None`.

    >>> instead(Block(), "eval")
    "Block has no 'eval', as PyTorch has; it isn't needed: outside of autograd.record() a net \
predicts"
    """
    if message := while_tracing(owner, name):
        return message
    if isinstance(owner, str):
        title, kind = owner, "nd" if owner == "sym" else owner
    else:
        title = type(owner).__name__
        kind = next((k for parent, k in KINDS.items() if isinstance(owner, parent)), "optimizer")
    entry = HERE.get(kind, {}).get(name)
    if entry is None and kind in ("nd", "np") and hasattr(NDArray, name):
        part = f"the method; write x.{name}()"
        if not callable(getattr(NDArray, name)):
            part = f"the property; write x.{name}"
        return f"{title} has no function '{name}', but arrays have {part}"
    if entry is None:
        return None
    here = entry.format(F=title)
    remedy = f"it isn't needed: {here[2:]}" if here.startswith("- ") else f"use {here}"
    return f"{title} has no '{name}', as PyTorch has; {remedy}"


__dir__ = own_names(globals())
