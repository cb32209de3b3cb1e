"""C helper functions, types and literals for generated kernels.

Defines: `helper`, the source of a helper in `HELPERS` for a type; `literal`, `c_type`.

In C, integer overflow and out-of-range conversions from floats are undefined, and division
truncates; helpers define them. Vectors use GCC's and Clang's extension; for other
compilers, arrays and loops compute the same.
Not supported: complex numbers; float16.
"""

import math

import numpy as np

from minihybrid.codegen.ir import Type

FLOATS = {"float32": "f", "float64": ""}  # and how C marks their functions
C_TYPES = {"float32": "float", "float64": "double", "bool": "bool", "index": "int64_t"}
WRAPS = {"+": "wrap_add", "-": "wrap_sub", "*": "wrap_mul", "<<": "wrap_shift"}

HELPERS = {
    **{
        name: """INLINE {t} {f}({t} a, {t} b)
{{
    return ({t}) (({u}) a {sign} ({u}) b);
}}""".replace("{sign}", sign)
        for sign, name in WRAPS.items()
    },
    "div": """INLINE {t} {f}({t} a, {t} b)
{{
    if (b == 0 || b == -1)
        return b ? ({t}) (0 - ({u}) a) : 0;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}}""",
    "mod": """INLINE {t} {f}({t} a, {t} b)
{{
    if (b == 0 || b == -1)
        return 0;
    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}}""",
    "min": """INLINE {t} {f}({t} a, {t} b)
{{
    return b < a ? b : a;
}}""",
    "max": """INLINE {t} {f}({t} a, {t} b)
{{
    return b > a ? b : a;
}}""",
    "bits": """INLINE {t} {f}({other} a)
{{
    {t} x;
    memcpy(&x, &a, sizeof x);
    return x;
}}""",
    # A float out of range becomes the minimum, as on x86.
    "whole": """INLINE {t} {f}(double x)
{{
    return ({t}) (x >= -{end} && x < {end} ? (int{n}_t) x : INT{n}_MIN);
}}""",
    # Packed vectors are passed in memory, by the same ABI rule on every CPU.
    "vector": """#ifdef __GNUC__
typedef struct {{
    {e} v __attribute__((vector_size({nbytes})));
}} __attribute__((packed)) {v};
#else
typedef struct {{ {e} v[{n}]; }} {v};
#endif""",
    "load": """INLINE {v} {v}_load(const {t} *a)
{{
    {v} x;
    memcpy(&x, a, sizeof x);
    return x;
}}""",
    "store": """INLINE void {v}_store({t} *a, {v} x)
{{
    memcpy(a, &x, sizeof x);
}}""",
    "splat": """INLINE {v} {v}_splat({t} a)
{{
    {v} x;
    {t} all[{n}];
    for (int i = 0; i < {n}; i++)
        all[i] = a;
    memcpy(&x, all, sizeof x);
    return x;
}}""",
    "fma": """INLINE {v} {v}_fma({v} a, {v} b, {v} c)
{{
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
#ifdef __GNUC__
    c.v = a.v * b.v + c.v;
#else
    for (int i = 0; i < {n}; i++)
        c.v[i] = a.v[i] * b.v[i] + c.v[i];
#endif
    return c;
}}""",
    "total": """INLINE {t} {v}_total({v} a)
{{
    {e} x[{n}];
    memcpy(x, &a, sizeof x);
    for (int n = {n} / 2; n; n /= 2)
        for (int i = 0; i < n; i++)
            x[i] += x[i + n];
    return ({t}) x[0];
}}""",
    "load_some": """INLINE {v} {v}_load_some(const {t} *a, int64_t first, int64_t last)
{{
    {v} x;
    {t} all[{n}] = {{0}};
    for (int i = 0; i < {n}; i++)
        if (first <= i && i < last)
            all[i] = a[i];
    memcpy(&x, all, sizeof x);
    return x;
}}""",
    "store_some": """INLINE void {v}_store_some({t} *a, {v} x, int64_t first, int64_t last)
{{
    {t} all[{n}];
    memcpy(all, &x, sizeof x);
    for (int i = 0; i < {n}; i++)
        if (first <= i && i < last)
            a[i] = all[i];
}}""",
}


def c_type(kind: str) -> str:
    """Return the C name of a type.

    >>> c_type("float32"), c_type("int8"), c_type("bool")
    ('float', 'int8_t', 'bool')
    """
    return C_TYPES.get(kind, f"{kind}_t")


def stored(kind: str) -> str:
    """Return the C type of an element in memory, where a bool is a byte."""
    return c_type("uint8" if kind == "bool" else kind)


def type_of(type: Type) -> str:
    """Return the C name of a scalar or vector type."""
    return c_type(type.kind) if type.lanes == 1 else str(type)


def function_name(name: str, kind: str) -> str:
    """Return the name of a helper for a type."""
    return name if name in WRAPS.values() and kind == "int64" else f"{name}_{kind}"


def helper(name: str, type: Type, other: str) -> str:
    """Return the source of a helper function or type."""
    kind, lanes = type
    kind = "int64" if kind == "index" else kind
    unsigned = f"u{kind.removeprefix('u')}"
    n = "64" if kind in ("int64", "uint64", "uint32") else "32"
    fields = {
        "f": function_name(name, kind),
        "t": c_type(kind),
        "u": c_type(unsigned),
        "other": c_type(other),
        "v": str(type),
        "n": lanes if lanes > 1 else n,
        "e": c_type(kind if kind in FLOATS else unsigned),
        "nbytes": lanes * np.dtype(kind).itemsize,
        "end": repr(2.0 ** (int(n) - 1)),
    }
    return HELPERS[name].format(**fields)


def literal(value: float, kind: str) -> str:
    """Return a C literal of a type.

    >>> literal(1, "float32"), literal(3, "uint64"), literal(float("-inf"), "float64")
    ('1.0f', '3u', '-INFINITY')
    """
    if kind == "bool":
        return "true" if value else "false"
    if kind in FLOATS:
        value = np.dtype(kind).type(value)
        if not math.isfinite(value):
            return "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
        text = str(value)
        return text + ("" if {*text} & {*".e"} else ".0") + FLOATS[kind]
    text = "INT64_MIN" if value == -(2**63) else str(int(value))
    return text + "u" * (kind in ("uint32", "uint64"))
