"""Chapter 15. Calls that kernels make, in C.

Takes:   a call, the C of its arguments, and the kernel `k` that makes it.
Gives:   `call` and `cast`; the kernel notes which helpers they use.

Functions of float32 numbers are those of the C library.
What is left out: random numbers; a file of code draws none.
"""

import ast

from minihybrid.codegen.c.values import (
    ATOM,
    FLOATS,
    UNARY,
    Tile,
    Value,
    Vector,
    c_type,
    common,
    joined,
    literal,
    operation,
    truth,
    within,
)

MATH = set("acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf exp expm1 hypot "
           "lgamma log log10 log1p log2 sin sinh tan tanh".split())
SIMPLE = {"root": "sqrt", "np.floor": "floor", "np.ceil": "ceil", "cbrt": "cbrt",
          **{f"math.{name}": name for name in MATH}, "power32": "pow",
          **{f"{name}{'_' * name[-1].isdigit()}32": name for name in MATH}}
OURS = {"sigmoid": "sigmoid", "sigmoid32": "sigmoid", "rank_up": "rank_up",
        "rank_down": "rank_down", "unrank": "unrank", "lost": "lost",
        "lost32": "lost", "mod": "mod"}  # one for each dtype
SPECIAL = {"gamma": "tgamma", "erfinv": "erfinv", "polygamma": "polygamma"}
WHOLE = {"whole_div": "cut", "whole_mod": "mod", "whole_power": "power"}
CASTS = {name: name for name in ("float32", "float64", "int8", "int16", "int32",
                                 "int64", "uint8", "uint16", "uint32", "uint64")}
CASTS |= {"bool": "bool", "bool_": "bool", "boolean": "bool", "int": "int64",
          "float": "float64"}
WRITES = {"store": 0, "transpose": 3, "put": 1, "put_totals": 1}  # which argument
RANKS = {"float32": "int32", "float64": "int64", "int32": "float32", "int64": "float64"}


def _named(k, kind, what, *values, gives=None):
    args = ", ".join(v.text for v in values)
    return Value(f"{'_'.join(map(str, k.help((kind, what))))}({args})", gives)


VECTORS = {
    "load": lambda k, array, at: _named(
        k, v := Vector(array.type.dtype), "load", array, at, gives=v),
    "store": lambda k, array, at, value: _named(
        k, value.type, "store", array, at, value),
    "splat": lambda k, value: _named(
        k, v := Vector(value.type), "splat", value, gives=v),
    "fma": lambda k, a, b, c: _named(k, c.type, "fma", a, b, c, gives=c.type),
    "total": lambda k, a: _named(k, a.type, "total", a, gives=a.type.dtype),
    "transpose": lambda k, source, *rest: _named(
        k, Vector(source.type.dtype), "transpose", source, *rest),
    "tile": lambda k, value, rows, columns: _named(
        k, t := Tile(Vector(value.type), rows.number, columns.number), "tile", value,
        gives=t),
    **{name: lambda k, tile, *rest, name=name: _named(
        k, tile.type, name, tile, *rest, gives=tile.type)
        for name in ("inner", "outer", "get")},
    **{name: lambda k, tile, *rest, name=name: _named(
        k, tile.type, name, tile, *rest) for name in ("put", "put_totals")},
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
        return whole_or_float(k, "power", values)
    if name in WHOLE:
        return whole_or_float(k, WHOLE[name], values, common(*[values[1].type] * 2))
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
    if name in SPECIAL:
        if name != "gamma":
            k.help(SPECIAL[name])
        args = ", ".join(v.text for v in values)
        return Value(f"{SPECIAL[name]}({args})", "float64")
    return k.fail(node)


def taken(k, name, result, value):
    """One number more of a sum or product, which C makes in one order: of floats with
    the digits of a double."""
    sign, kind = {"add_up": "+", "multiply_up": "*"}[name], result.type
    if kind in FLOATS:
        return operation(sign, result, value, "float64")
    return Value(f"{k.help({'+': 'wrap_add', '*': 'wrap_mul'}[sign])}({result.text}, "
                 f"{value.text})", "int64")


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
    return Value(f"({c_type(kind)}) {within(value, UNARY)}", kind, UNARY,
                 value.place and keeps, value.natural and keeps)


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
    natural = all(v.natural for v in values) or \
        name == "max" and any(v.natural for v in values)
    place = all(v.place for v in values) or \
        name == "min" and natural and any(v.place for v in values)
    return Value(f"{'_'.join(k.help((name, kind)))}({args})", kind, ATOM, place,
                 natural)


def whole_or_float(k, name, values, kind=None):
    """np.power, or what stands for them of whole numbers."""
    kind = kind or common(*(v.type for v in values))
    args = ", ".join(cast(k, v, kind).text for v in values)
    if kind in FLOATS and name == "power":
        return Value(f"pow{FLOATS[kind]}({args})", kind)
    return Value(f"{'_'.join(k.help((name, kind)))}({args})", kind)
