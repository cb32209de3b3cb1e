"""Vectors and tiles in C: types, and functions of them.

Takes:   a type of vectors or tiles, and the name of a function of `codegen.vector`.
Gives:   `vector`, `tile`: the texts of the type and the function.

GCC and Clang have types of vectors, for any length. Elsewhere they are arrays, and
loops, which give the same.
What is left out: masks; where some lanes do not count, the others are copied.
"""

import numpy as np

from minihybrid.formats.c.values import FLOATS, c_type

# Packed, vectors are handed to functions in memory, by one rule on every processor.
VECTOR = """#ifdef __GNUC__
typedef struct {{
    {e} v __attribute__((vector_size({nbytes})));
}} __attribute__((packed)) {v};
#else
typedef struct {{ {e} v[{n}]; }} {v};
#endif"""
VECTOR_FUNCTIONS = {  # name -> the others that it calls, and its text
    "load": (
        [],
        """INLINE {v} {v}_load(const {t} *a, int64_t at)
{{
    {v} x;
    memcpy(&x, a + at, sizeof x);
    return x;
}}""",
    ),
    "store": (
        [],
        """INLINE void {v}_store({t} *a, int64_t at, {v} x)
{{
    memcpy(a + at, &x, sizeof x);
}}""",
    ),
    "fetch": (
        [],
        """INLINE void {v}_fetch(const {t} *a, int64_t at)
{{
#ifdef __GNUC__
    __builtin_prefetch((const char *) a + at * (int64_t) sizeof *a);
#else
    (void) a, (void) at;
#endif
}}""",
    ),
    "splat": (
        [],
        """INLINE {v} {v}_splat({t} a)
{{
    {v} x;
    {t} all[{n}];
    for (int i = 0; i < {n}; i++)
        all[i] = a;
    memcpy(&x, all, sizeof x);
    return x;
}}""",
    ),
    "fma": (
        [],
        """INLINE {v} {v}_fma({v} a, {v} b, {v} c)
{{
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
#ifdef __GNUC__
    c.v = a.v * b.v + c.v;
#else
    for (int i = 0; i < {n}; i++)
        c.v[i] = {sum_of_product};
#endif
    return c;
}}""",
    ),
    "total": (
        [],
        """INLINE {t} {v}_total({v} a)
{{
    {t} x[{n}];
    memcpy(x, &a, sizeof x);
    for (int n = {n} / 2; n; n /= 2)
        for (int i = 0; i < n; i++)
            x[i] = {sum};
    return x[0];
}}""",
    ),
    "transpose": (
        [],
        """INLINE void {v}_transpose(const {t} *from, int64_t at,
    int64_t step, {t} *to, int64_t put, int64_t stride)
{{
    for (int i = 0; i < {n}; i++)
        for (int j = 0; j < {n}; j++)
            to[put + j * stride + i] = from[at + i * step + j];
}}""",
    ),
    "some": (
        ["load"],
        """INLINE {v} {v}_some(const {t} *a, int64_t at, int64_t last)
{{
    {t} x[{n}] = {{0}};
    if (last >= {n})
        return {v}_load(a, at);
    for (int i = 0; i < last; i++)
        x[i] = a[at + i];
    return {v}_load(x, 0);
}}""",
    ),
    "put": (
        [],
        """INLINE void {v}_put({t} *a, int64_t at, {v} value,
    int64_t first, int64_t last)
{{
    {t} x[{n}];
    memcpy(x, &value, sizeof x);
    for (int i = 0; i < {n}; i++)
        if (first <= i && i < last)
            a[at + i] = x[i];
}}""",
    ),
}


def vector(kind, name):
    """The type of vectors of a dtype, and one function of them."""
    t = c_type(kind.dtype)
    fields = {
        "v": str(kind),
        "t": t,
        "n": kind.lanes,
        "e": t,
        "nbytes": kind.lanes * np.dtype(kind.dtype).itemsize,
        "sum_of_product": summed(kind.dtype, "a.v[i] * b.v[i]", "c.v[i]"),
        "sum": summed(kind.dtype, "x[i]", "x[i + n]"),
    }
    if kind.dtype not in FLOATS:
        fields["e"] = c_type(f"u{kind.dtype.removeprefix('u')}")
    needs, text = VECTOR_FUNCTIONS[name]
    return [
        VECTOR.format(**fields),
        *(t for n in needs for t in vector(kind, n)),
        text.format(**fields),
    ]


def summed(dtype, a, b):
    """The text of a sum; of whole numbers, one that wraps around."""
    if dtype in FLOATS:
        return f"{a} + {b}"
    wide = "uint64_t" if "64" in dtype else "uint32_t"
    return f"({c_type(dtype)}) (({wide}) {a} + ({wide}) {b})"


TILE_FUNCTIONS = {  # name -> what it calls, its result, its arguments
    "tile": (["splat"], "{c}", "{t} a"),
    "inner": (
        ["some", "fma"],
        "{c}",
        "{c} sums, const {t} *a, int64_t at, const {t} *b,\n"
        "    int64_t place, int64_t step, int64_t count",
    ),
    "outer": (
        ["splat", "load", "fma"],
        "{c}",
        "{c} sums, const {t} *a, int64_t at, int64_t step,\n    const {t} *b, int64_t place",
    ),
    "slide": (
        ["splat", "load", "fma"],
        "{c}",
        "{c} sums, const {t} *a, int64_t plane, int64_t high,\n"
        "    int64_t wide, int64_t top, int64_t left, const {t} *w, int64_t place, int64_t rows,\n"
        "    int64_t columns, int64_t down, int64_t right, int64_t deep, int64_t far",
    ),
    "get": (["some"], "{c}", "{c} sums, const {t} *a, int64_t at, int64_t step,\n    int64_t last"),
    "put": (
        ["put"],
        "void",
        "{c} sums, {t} *a, int64_t at, int64_t step,\n    int64_t top, int64_t first, int64_t last",
    ),
    "put_totals": (
        ["total"],
        "void",
        "{c} sums, {t} *a, int64_t at, int64_t step,\n    int64_t top, int64_t first, bool more",
    ),
}


SLIDE = """for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {{
        const {v} by = {v}_splat(w[place + i * columns + j]);
        for (int r = 0; r < {rows}; r++)
            for (int c = 0; c < {columns}; c++) {{
                const int64_t y = top + r * down + i * deep;
                const int64_t first = left + c * {n} * right + j * far;
                {t} x[{n}] = {{0}};
                for (int lane = 0; lane < {n} && 0 <= y && y < high; lane++)
                    if (0 <= first + lane * right && first + lane * right < wide)
                        x[lane] = a[plane + y * wide + first + lane * right];
                sums.v[r * {columns} + c] = {v}_fma(by, {v}_load(x, 0), sums.v[r * {columns} + c]);
            }}
    }}"""


def tile(kind, name):
    """The type of a tile, and one function of it; each vector stands by itself, so that
    it can stay in a register."""
    v, c, t = str(kind.vector), str(kind), c_type(kind.vector.dtype)
    needs, result, args = TILE_FUNCTIONS[name]
    lines = tile_lines(kind, name, v)
    made = [f"{c} sums;"] if name == "tile" else []
    back = ["return sums;"] if result == "{c}" else []
    head = f"INLINE {result} {{c}}_{name}({args})".format(c=c, t=t)
    body = "\n".join(f"    {line}" for line in [*made, *lines, *back])
    return [
        *(text for n in needs for text in vector(kind.vector, n)),
        f"typedef struct {{ {v} v[{kind.rows * kind.columns}]; }} {c};",
        f"{head}\n{{\n{body}\n}}",
    ]


def tile_lines(kind, name, v):
    """What a function of tiles does, for row after row of vectors."""
    n = kind.vector.lanes
    places = [(i, i // kind.columns, i % kind.columns) for i in range(kind.rows * kind.columns)]
    rows = [f"at + {r} * step" for r in range(kind.rows)]
    if name == "tile":
        return [f"sums.v[{i}] = {v}_splat(a);" for i, _, _ in places]
    if name == "slide":
        fields = {"v": v, "t": c_type(kind.vector.dtype), "n": n}
        return SLIDE.format(**fields, **kind._asdict()).split("\n")
    if name == "get":
        return [
            f"sums.v[{i}] = {v}_some(a, {rows[r]} + {j * n}, last - {j * n});" for i, r, j in places
        ]
    if name == "put":
        return [
            f"if (top <= {r}) {v}_put(a, {rows[r]} + {j * n}, sums.v[{i}], "
            f"first - {j * n}, last - {j * n});"
            for i, r, j in places
        ]
    if name == "put_totals":
        lines = [f"{c_type(kind.vector.dtype)} *row, sum;"]
        for i, r, j in places:
            added = summed(kind.vector.dtype, f"row[{j}]", "sum")
            lines += [f"row = a + {rows[r]};"] * (j == 0)
            lines += [
                f"sum = {v}_total(sums.v[{i}]);",
                f"if (top <= {r} && first <= {j}) row[{j}] = more ? {added} : sum;",
            ]
        return lines
    left = [
        f"{v}_some(a, {row}, count)" if name == "inner" else f"{v}_splat(a[{row}])" for row in rows
    ]
    right = [
        f"{v}_some(b, place + {j} * step, count)"
        if name == "inner"
        else f"{v}_load(b, place + {j * n})"
        for j in range(kind.columns)
    ]
    return [
        *(f"const {v} left{r} = {text};" for r, text in enumerate(left)),
        *(f"const {v} right{j} = {text};" for j, text in enumerate(right)),
        *(f"sums.v[{i}] = {v}_fma(left{r}, right{j}, sums.v[{i}]);" for i, r, j in places),
    ]
