"""Calls that kernels make, in C.

Takes:   a call, the C of its arguments, and the kernel `k` that makes it.
Gives:   `call` and `cast`; the kernel notes which helpers they use.

Functions of float32 numbers are those of the C library.
What is left out: random numbers; a file of code draws none.
"""

import ast

from minihybrid.codegen.device_math import NUMBERS, SAME
from minihybrid.codegen.ir import common
from minihybrid.formats.c.values import (
    ATOM,
    FLOATS,
    UNARY,
    Tile,
    Value,
    Vector,
    c_type,
    joined,
    literal,
    operation,
    truth,
    within,
)

MATH = [*SAME, "cbrt", "copysign", "erfc", "fmod"]
SIMPLE = {
    "root": "sqrt",
    "floor": "floor",
    "np.floor": "floor",
    "np.ceil": "ceil",
    "cbrt": "cbrt",
    **{f"math.{name}": name for name in MATH},
    "power32": "pow",
    **{f"{name}{'_' * name[-1].isdigit()}32": name for name in MATH},
}
OURS = {
    "sigmoid": "sigmoid",
    "sigmoid32": "sigmoid",
    "rank_up": "rank_up",
    "rank_down": "rank_down",
    "unrank": "unrank",
    "lost": "lost",
    "lost32": "lost",
    "mod": "mod",
}  # one for each dtype
WHOLE = {"whole_div": "cut", "whole_mod": "mod"}
CASTS = {name: name for name in NUMBERS}
CASTS |= {"bool": "bool", "bool_": "bool", "boolean": "bool", "int": "int64", "float": "float64"}
WRITES = {"store": 0, "transpose": 3, "put": 1, "put_totals": 1}  # which argument
RANKS = {"float32": "int32", "float64": "int64", "int32": "float32", "int64": "float64"}


def _named(k, kind, what, *values, gives=None):
    args = ", ".join(v.text for v in values)
    return Value(f"{'_'.join(map(str, k.help((kind, what))))}({args})", gives)


VECTORS = {
    "load": lambda k, array, at: _named(
        k, v := Vector(array.type.dtype), "load", array, at, gives=v
    ),
    "store": lambda k, array, at, value: _named(k, value.type, "store", array, at, value),
    "fetch": lambda k, array, at: _named(k, Vector(array.type.dtype), "fetch", array, at),
    "splat": lambda k, value: _named(k, v := Vector(value.type), "splat", value, gives=v),
    "fma": lambda k, a, b, c: _named(k, c.type, "fma", a, b, c, gives=c.type),
    "total": lambda k, a: _named(k, a.type, "total", a, gives=a.type.dtype),
    "transpose": lambda k, source, *rest: _named(
        k, Vector(source.type.dtype), "transpose", source, *rest
    ),
    "tile": lambda k, value, rows, columns: _named(
        k, t := Tile(Vector(value.type), rows.number, columns.number), "tile", value, gives=t
    ),
    **{
        name: lambda k, tile, *rest, name=name: _named(
            k, tile.type, name, tile, *rest, gives=tile.type
        )
        for name in ("inner", "outer", "slide", "get")
    },
    **{
        name: lambda k, tile, *rest, name=name: _named(k, tile.type, name, tile, *rest)
        for name in ("put", "put_totals")
    },
}


def call(k, node, *values):
    """A call of one of the functions that kernels know."""
    name = ast.unparse(node.func)
    if name in CASTS:
        return cast(k, values[0], CASTS[name])
    if name in VECTORS:
        return VECTORS[name](k, *values)
    if name in ("add_up", "multiply_up"):
        return taken(k, name, *values)
    if name in ("abs", "min", "max"):
        return smallest(k, name, values)
    if name == "np.power":
        return power(k, node, *values)
    if name in WHOLE:
        kind = common(*[values[1].type] * 2)
        return _ours(k, WHOLE[name], kind, values)
    if name == "whole_power":
        kind = common(*[values[1].type] * 2)
        return _ours(k, name, kind, values)._replace(type="uint64")
    if name in ("erfinv", "erfinv32", "polygamma"):
        return _ours(k, name.removesuffix("32"), "float64", values)
    if name == "gamma":
        return Value(f"tgamma({values[0].text})", "float64")
    kinds = {v.type for v in values}
    if name in SIMPLE:
        kind = "float32" if kinds == {"float32"} else "float64"
        args = ", ".join(cast(k, v, kind).text for v in values)
        return Value(f"{SIMPLE[name]}{FLOATS[kind]}({args})", kind)
    if name in OURS:
        kind = joined(values[0].type, values[-1].type)
        helper = k.help((OURS[name], kind))
        kind = RANKS.get(kind, kind) if "rank" in name else kind
        args = ", ".join(v.text for v in values)
        return Value(f"{'_'.join(helper)}({args})", kind)
    return k.fail(node)


def taken(k, name, result, value):
    """One number more of a sum or product, which C makes in one order: of floats with
    the digits of a double."""
    sign, kind = {"add_up": "+", "multiply_up": "*"}[name], result.type
    if kind in FLOATS:
        return operation(sign, result, value, "float64")
    return Value(
        f"{k.help({'+': 'wrap_add', '*': 'wrap_mul'}[sign])}({result.text}, {value.text})", "int64"
    )


def cast(k, value, kind):
    """A number as another type of number."""
    if value.number is not None:
        return literal(value.number, kind)
    if value.type == kind:
        return value
    if kind == "bool":
        return truth(value)
    if value.type in FLOATS and kind not in FLOATS:
        return Value(f"{k.help(('whole', kind))[0]}_{kind}({value.text})", kind)
    keeps = kind == "int64" and value.type != "uint64"
    return Value(
        f"({c_type(kind)}) {within(value, UNARY)}",
        kind,
        UNARY,
        value.place and keeps,
        value.natural and keeps,
    )


def smallest(k, name, values):
    """abs, min or max; of floats, NaN stays if it comes first, as in Numba."""
    kind = values[0].type
    for value in values[1:]:
        kind = common(kind, value.type)
    if name == "abs":
        if kind in FLOATS:
            return Value(f"fabs{FLOATS[kind]}({values[0].text})", kind)
        if kind.startswith("uint"):
            return values[0]
    kind = kind if kind in FLOATS else "int64"
    args = ", ".join(cast(k, v, kind).text for v in values)
    natural = all(v.natural for v in values) or name == "max" and any(v.natural for v in values)
    place = (
        all(v.place for v in values) or name == "min" and natural and any(v.place for v in values)
    )
    return Value(f"{'_'.join(k.help((name, kind)))}({args})", kind, ATOM, place, natural)


def power(k, _, a, b):
    """a to the power b, of floats."""
    kind = common(a.type, b.type)
    return Value(f"pow{FLOATS[kind]}({cast(k, a, kind).text}, {cast(k, b, kind).text})", kind)


def parameters(name, dtype):
    """The types of a helper's parameters; the last is what it computes in."""
    first = {"polygamma": ["int64"], "whole_power": ["uint64"], "erfinv": []}
    return [*first.get(name, [dtype]), dtype]


def _ours(k, name, kind, values):
    """A call of a helper, its arguments in the types that it takes."""
    args = (cast(k, v, t).text for v, t in zip(values, parameters(name, kind), strict=True))
    return Value(f"{'_'.join(k.help((name, kind)))}({', '.join(args)})", kind)
