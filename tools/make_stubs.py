"""Make the stubs, from which editors know what is made of the operators' records.

Use: python tools/make_stubs.py

Operators, methods and the functions of `mx.np` are made when the package is read, so an
editor that only reads sources sees none of them. A stub is asked in place of a source;
what the sources say themselves is copied into it.
"""

import inspect
import subprocess
import sys
from pathlib import Path

import minihybrid as mx
from minihybrid.core import context, nd, switches, sym
from minihybrid.core.op import REQUIRED
from minihybrid.mxnet import util
from minihybrid.np.array import Numpy, _Symbol, ndarray
from minihybrid.ops import OPS, distributions, infix

ROOT = Path(__file__).parents[1]
HEAD = '''"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import Any, NoReturn, TypeVar

Same = TypeVar("Same")

'''
SAME = "Same"  # the class of `self`; jedi does not follow typing.Self to a subclass
# Where it is not an array that a function or method gives.
GIVES = {
    "asnumpy": "numpy.ndarray",
    "asscalar": "Any",
    "attr": "str | None",
    "attr_dict": "dict[str, dict[str, str]]",
    "bind": "Any",
    "eval": "Any",
    "get_children": "Symbol | None",
    "infer_shape": "tuple[Any, Any, Any]",
    "infer_shape_partial": "tuple[Any, Any, Any]",
    "infer_type": "tuple[Any, Any, Any]",
    "infer_type_partial": "tuple[Any, Any, Any]",
    "interpret": "Any",
    "item": "Any",
    "list_arguments": "list[str]",
    "list_attr": "dict[str, str]",
    "list_auxiliary_states": "list[str]",
    "list_inputs": "list[str]",
    "list_outputs": "list[str]",
    "load": "Any",
    "lines_up": "bool",
    "meshgrid": "Any",
    "ndim": "int",
    "nonzero": "tuple[Any, ...]",
    "opened": "Any",
    "replay": "list[Any]",
    "save": "None",
    "seed": "None",
    "shape": "tuple[int, ...]",
    "simple_bind": "Any",
    "size": "int",
    "symbols_in": "list[Symbol]",
    "to_dlpack_for_read": "Any",
    "to_dlpack_for_write": "Any",
    "tojson": "str",
    "tolist": "Any",
    "trace": "Any",
    "waitall": "None",
} | dict.fromkeys(
    """allclose array_equal average array_split cond dsplit dtype foreach hsplit load_frombuffer
    name split split_v2 unique vsplit while_loop""".split(),
    "Any",
)
PYTHONS = {
    "__bool__": "bool",
    "__float__": "float",
    "__format__": "str",
    "__hash__": "int",
    "__index__": "int",
    "__init__": "None",
    "__int__": "int",
    "__len__": "int",
    "__reduce__": "Any",
    "__repr__": "str",
    "__setitem__": "None",
    "__str__": "str",
}
SIGNS = {"__eq__": "", "__ne__": ""}  # where Python's own object says another type
SHOWN = (int, float, bool, str, type(None))


def default(value):
    """The text after `=`: the default, if it is a plain Python value."""
    parts = value if isinstance(value, tuple) else (value,)
    fits = all(type(part) in SHOWN and repr(part) not in ("inf", "-inf", "nan") for part in parts)
    return repr(value) if fits else "..."


def parameters(function):
    """The text between the brackets; a default follows after every default."""
    parts, last, optional = [], None, False
    for p in inspect.signature(function).parameters.values():
        if last is p.POSITIONAL_ONLY and p.kind is not last:
            parts.append("/")
        if p.kind is p.KEYWORD_ONLY and last not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            parts.append("*")
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        if p.default is not p.empty:
            kind = ": Any" * (p.default is not None)  # else editors take its type for the only one
            text, optional = f"{text}{kind}={default(p.default)}", True
        elif optional and p.kind is p.POSITIONAL_OR_KEYWORD:
            text += "=..."
        parts.append(text)
        last = p.kind
    return ", ".join([*parts, "/"] if last is inspect.Parameter.POSITIONAL_ONLY else parts)


def gives(op, usual):
    """What an operator gives: an array, or several where it always gives so many."""
    if callable(op.n_outputs):
        known = {k: d for k, (_, d) in op.attrs.items() if d is not REQUIRED}
        return usual if len(known) == len(op.attrs) and op.count_outputs(known) == 1 else "Any"
    return usual if op.n_outputs == 1 else f"tuple[{usual}, ...]"


def define(name, function, result, decorator=""):
    """One function or method, with the first paragraph of what it says of itself."""
    doc = "" if name.startswith("__") else inspect.getdoc(function) or ""
    doc = doc.partition("\n\n")[0]
    doc = doc and f'    """{doc}"""\n'
    marked = "  # type: ignore" if name in SIGNS else ""
    inside = parameters(function)
    if result == SAME:
        first, comma, rest = inside.partition(",")
        inside = f"{first}: {SAME}{comma}{rest}"
    head = f"{decorator}def {name}({inside}) -> {result}:{marked}\n"
    return head + (doc or "    ...\n")


def indented(text):
    """The same, one level deeper."""
    return "".join(f"    {line}" for line in text.splitlines(keepends=True))


def method(name, value, usual):
    """A member of a class; "" for what only says that arrays know no such thing."""
    if isinstance(value, property):
        result = GIVES.get(name, usual)
        own = f": {SAME}" * (result == SAME)
        return f"@property\ndef {name}(self{own}) -> {result}: ...\n"
    if isinstance(value, staticmethod):
        return define(name, value.__func__, GIVES.get(name, usual), "@staticmethod\n")
    if not inspect.isfunction(value):
        return "" if name.startswith("__") else f"{name}: Any\n"
    if "_no_sign" in value.__qualname__:
        return ""
    if "_refuse" in value.__qualname__ and not name.startswith("__"):
        return define(name, value, "NoReturn")
    op = OPS.get(name)
    result = PYTHONS.get(name) or GIVES.get(name) or (gives(op, usual) if op else usual)
    return define(name, value, result)


def _is_parent_s(kind, value):
    """Whether a method is one of a parent's, with its arguments checked."""
    owner = getattr(inspect.unwrap(value), "__qualname__", "") if callable(value) else ""
    return owner.partition(".")[0] in {parent.__name__ for parent in kind.__mro__[1:]}


def class_of(kind, bases, usual=SAME):
    """A class with its methods."""
    body = "".join(
        method(name, value, usual)
        for name, value in vars(kind).items()
        if not name.startswith("_") or name.startswith("__") and inspect.isfunction(value)
        if not _is_parent_s(kind, value)
    )
    doc = f'"""{inspect.getdoc(kind).partition(chr(10))[0]}"""\n'
    return f"class {kind.__name__}{bases}:\n{indented(doc + body)}\n"


def space(name, thing, usual):
    """A part of a namespace, such as `nd.linalg`, as an object of a class with its functions."""
    body = ""
    for member in dir(thing):
        function = getattr(thing, member)
        if not member.startswith("_") and inspect.isroutine(function):
            result = GIVES.get(member, usual)
            body += define(member, function, result, "@staticmethod\n")
    return f"class _{name}:\n{indented(body)}\n{name}: _{name}\n"


def is_elsewhere(thing):
    """Whether a function is about devices or switches, and stands in a source."""
    return getattr(thing, "__module__", None) in (
        context.__name__,
        switches.__name__,
        util.__name__,
    )


def names(module, usual, parts=()):
    """The functions of a namespace; what a class is, or an own world, is named."""
    for name in dir(module):
        thing = getattr(module, name)
        if name in parts:
            yield space(name, thing, usual)
        elif inspect.isclass(thing) and thing.__module__ != module.__name__ or is_elsewhere(thing):
            yield f"from {thing.__module__} import {thing.__name__} as {name}\n"
        elif inspect.ismodule(thing):
            yield f"from minihybrid import {name} as {name}\n"
        elif inspect.isroutine(thing):
            op = OPS.get(name)
            yield define(name, thing, GIVES.get(name) or (gives(op, usual) if op else usual))
        elif not inspect.isclass(thing):
            yield f"{name}: Any\n"


def offered(package):
    """What a package imports when it is asked for, as if it did so at once."""
    for name in package.__all__:
        thing = getattr(package, name)
        if name in package.LATER:
            module, _, own = package.LATER[name].partition(":")
            module, own = (module, own) if own else (module.rpartition(".")[::2])
            home = f"minihybrid.{module}".rstrip(".")
        elif inspect.ismodule(thing):
            home, _, own = thing.__name__.rpartition(".")
        elif name.startswith("_"):
            yield f"{name}: {type(thing).__name__}\n"
            continue
        else:
            home, own = thing.__module__, thing.__name__
        yield f"from {home} import {own} as {name}\n"


PARTS = ("random", "linalg", "contrib")
NDARRAY = "from minihybrid.core.array import NDArray as NDArray\n"


def stubs():
    """path below minihybrid -> its text, before it is laid out."""
    value = class_of(infix.Value, "")
    helpers = "".join(
        define(name, getattr(infix, name), "Any")
        for name in ("is_number", "namespace", "public_names", "writable", "put", "reading")
    )
    table = "FUNCTIONS: dict[str, Any]\n"
    yield "ops/infix.pyi", value + class_of(infix.Part, "", "Any") + helpers + table
    yield "ops/distributions.pyi", class_of(distributions.Random, "", "Any")
    yield "core/nd.pyi", NDARRAY + "".join(names(nd, "NDArray", PARTS))
    symbol = "import numpy\n\nfrom minihybrid.ops.infix import Value\n\n"
    symbol += class_of(sym.Symbol, "(Value)", "Symbol")
    yield "core/sym.pyi", symbol + "".join(names(sym, "Symbol", PARTS))
    arrays = "from minihybrid.core.array import NDArray\nfrom minihybrid.core.sym import Symbol\n\n"
    arrays += class_of(Numpy, "") + class_of(ndarray, "(Numpy, NDArray)")
    yield "np/array.pyi", arrays + class_of(_Symbol, "(Numpy, Symbol)")
    yield "np/__init__.pyi", "".join(names(mx.np, "ndarray", PARTS))
    arrays = "from minihybrid.np.array import ndarray\n\n"
    yield "np/npx.pyi", arrays + "".join(names(mx.npx, "ndarray", PARTS))
    for package in (mx, mx.gluon, mx.onnx):
        path = "/".join([*package.__name__.split(".")[1:], "__init__.pyi"])
        yield path, "".join(offered(package))


def laid_out(path, text):
    """A stub as its file contains it, formatted by ruff."""
    for action in ("check --fix --exit-zero", "format"):
        command = [sys.executable, "-m", "ruff", *action.split(), "--quiet"]
        command += ["--stdin-filename", path, "-"]
        text = subprocess.run(
            command, input=text, stdout=subprocess.PIPE, check=True, cwd=ROOT, encoding="utf-8"
        ).stdout
    return text


def main():
    """Write them all; returns the paths of those that changed."""
    changed = []
    for name, text in stubs():
        path = ROOT / "minihybrid" / name
        text = laid_out(path, HEAD + text)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


if __name__ == "__main__":
    print(*main(), sep="\n")
