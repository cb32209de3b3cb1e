"""Chapter 10. What kernels in C call beside the C library.

Takes:   names of helpers, as `c_kernels` notes them.
Gives:   `helpers`, their definitions, each once and after those that it uses.

Python divides towards minus infinity, and its compiled sums of whole numbers wrap
around, which C leaves undefined. Vectors are types of GCC and Clang where they are
there, else structs with loops, and both give the same.
What is left out: complex numbers; float16.
"""

import numpy as np

from minihybrid.codegen.c_kernels import FLOATS, Tile, Vector, c_type

WRAP = """static inline int64_t wrap_{name}(int64_t a, int64_t b)
{{
    return (int64_t) ((uint64_t) a {sign} (uint64_t) b);
}}"""
DIV = """static inline int64_t div_int64(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return b ? (int64_t) (0 - (uint64_t) a) : 0;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}"""
MOD = {"int64": """static inline int64_t mod_int64(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}""", "uint64": """static inline uint64_t mod_uint64(uint64_t a, uint64_t b)
{
    return b ? a % b : 0;
}"""}
MOD |= {dtype: f"""static inline {c} mod_{dtype}({c} a, {c} b)
{{
    {c} rest = fmod{f}(a, b);
    if (rest != 0 && (rest < 0) != (b < 0))
        rest += b;
    return rest == 0 ? copysign{f}(0, b) : rest;
}}""" for dtype, c, f in (("float32", "float", "f"), ("float64", "double", ""))}
POWER = {"uint64": """static inline uint64_t power_uint64(uint64_t a, uint64_t n)
{
    uint64_t out = 1;
    for (; n; n /= 2, a *= a)
        if (n % 2)
            out *= a;
    return out;
}"""}
POWER["int64"] = POWER["uint64"] + """

static inline int64_t power_int64(int64_t a, int64_t n)
{
    if (n < 0)
        return a == 1 || (a == -1 && n % 2 == 0) ? 1 : a == -1 ? a : 0;
    return (int64_t) power_uint64((uint64_t) a, (uint64_t) n);
}"""
# A float out of range becomes the smallest number, as processors have it.
WHOLE = """static inline int{n}_t whole_int{n}(double x)
{{
    return x >= {low} && x < {high} ? (int{n}_t) x : INT{n}_MIN;
}}"""
EXTREME = """static inline {c} {name}_{dtype}({c} a, {c} b)
{{
    return b {sign} a ? b : a;
}}"""
ABS = """static inline int64_t abs_int64(int64_t a)
{
    return a < 0 ? (int64_t) (0 - (uint64_t) a) : a;
}"""
SIGMOID = """static inline {c} sigmoid_{dtype}({c} x)
{{
    return 1 / (1 + exp{f}(-x));
}}"""
# Among all floats: whole numbers in the same order. NaN is beyond the others.
RANK = """static inline int{n}_t {name}_float{n}({c} x)
{{
    int{n}_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? INT{n}_{nan} : bits < 0 ? bits ^ INT{n}_MAX : bits;
}}"""
UNRANK = """static inline {c} unrank_int{n}(int{n}_t rank)
{{
    {c} x;
    rank = rank < 0 ? rank ^ INT{n}_MAX : rank;
    memcpy(&x, &rank, sizeof x);
    return x;
}}"""
ERFINV = """static double erfinv(double x)
{
    const double pi = 3.141592653589793;
    if (!(fabs(x) < 1))
        return fabs(x) == 1 ? INFINITY * x : NAN;
    double half = log1p(-x * x) / 2, centre = 2 / (pi * 0.147) + half;
    double y = sqrt(sqrt(centre * centre - 2 * half / 0.147) - centre);
    y = copysign(y, x);
    for (int i = 0; i < 3; i++) {
        double wrong = fabs(x) < 0.5 ? erf(y) - x :
            copysign(1, x) * (1 - fabs(x) - erfc(fabs(y)));
        y -= wrong * sqrt(pi) / 2 * exp(y * y);
    }
    return y;
}"""
POLYGAMMA = """static double polygamma(int64_t order, double x)
{
    static const double bernoulli[] = {
        1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
    double n = (double) order, sign = order % 2 ? 1 : -1, total = 0;
    if (!(x > -INFINITY))
        return NAN;
    if (x <= 0 && x == floor(x))
        return order ? sign * INFINITY : x == 0 ? -copysign(INFINITY, x) : NAN;
    for (; x < 16; x++)
        total += sign * tgamma(n + 1) / pow(x, n + 1);
    double series = tgamma(n + 1) / (2 * pow(x, n + 1));
    series += order ? tgamma(n) / pow(x, n) : -log(x);
    for (int i = 0; i < 7; i++) {
        double k = 2 * i + 2, ratio = order ? 1 : 1 / k;
        for (int64_t j = 1; j < order; j++)
            ratio *= k + (double) j;
        series += bernoulli[i] * ratio / pow(x, k + n);
    }
    return total + sign * series;
}"""

# GCC and Clang have types of vectors; elsewhere they are arrays, and loops. Packed ones
# are handed to functions in memory, by the same rules on every processor.
VECTOR = """#ifdef __GNUC__
typedef struct {{
    {e} v __attribute__((vector_size({nbytes})));
}} __attribute__((packed)) {v};
#else
typedef struct {{ {e} v[{n}]; }} {v};
#endif"""
VECTOR_FUNCTIONS = {  # name -> the others that it calls, and its text
    "load": ([], """INLINE {v} {v}_load(const {t} *a, int64_t at)
{{
    {v} x;
    memcpy(&x, a + at, sizeof x);
    return x;
}}"""),
    "store": ([], """INLINE void {v}_store({t} *a, int64_t at, {v} x)
{{
    memcpy(a + at, &x, sizeof x);
}}"""),
    "splat": ([], """INLINE {v} {v}_splat({t} a)
{{
    {v} x;
    {t} all[{n}];
    for (int i = 0; i < {n}; i++)
        all[i] = a;
    memcpy(&x, all, sizeof x);
    return x;
}}"""),
    "fma": ([], """INLINE {v} {v}_fma({v} a, {v} b, {v} c)
{{
#ifdef __GNUC__
    c.v = a.v * b.v + c.v;
#else
    for (int i = 0; i < {n}; i++)
        c.v[i] = {sum_of_product};
#endif
    return c;
}}"""),
    "total": ([], """INLINE {t} {v}_total({v} a)
{{
    {t} x[{n}];
    memcpy(x, &a, sizeof x);
    for (int n = {n} / 2; n; n /= 2)
        for (int i = 0; i < n; i++)
            x[i] = {sum};
    return x[0];
}}"""),
    "transpose": ([], """INLINE void {v}_transpose(const {t} *from, int64_t at,
    int64_t step, {t} *to, int64_t put, int64_t stride)
{{
    for (int i = 0; i < {n}; i++)
        for (int j = 0; j < {n}; j++)
            to[put + j * stride + i] = from[at + i * step + j];
}}"""),
    "some": (["load"], """INLINE {v} {v}_some(const {t} *a, int64_t at, int64_t last)
{{
    {t} x[{n}] = {{0}};
    if (last >= {n})
        return {v}_load(a, at);
    for (int i = 0; i < last; i++)
        x[i] = a[at + i];
    return {v}_load(x, 0);
}}"""),
    "put": ([], """INLINE void {v}_put({t} *a, int64_t at, {v} value,
    int64_t first, int64_t last)
{{
    {t} x[{n}];
    memcpy(x, &value, sizeof x);
    for (int i = 0; i < {n}; i++)
        if (first <= i && i < last)
            a[at + i] = x[i];
}}"""),
}


def helpers(names):
    """The definitions of helpers, in the order in which C must read them.

    >>> print("\\n".join(helpers([("sigmoid", "float32")])))
    static inline float sigmoid_float32(float x)
    {
        return 1 / (1 + expf(-x));
    }
    """
    found = {}
    for name in names:
        for text in definitions(name):
            found[text] = None
    return list(found)


def definitions(name):
    """The texts that a helper needs, its own last."""
    if isinstance(name, str):
        if name.startswith("wrap_"):
            sign = {"wrap_add": "+", "wrap_sub": "-", "wrap_mul": "*"}[name]
            return [WRAP.format(name=name.removeprefix("wrap_"), sign=sign)]
        return [{"erfinv": ERFINV, "polygamma": POLYGAMMA}[name]]
    what, kind = name
    if isinstance(what, Vector):
        return vector(what, kind)
    if isinstance(what, Tile):
        return tile(what, kind)
    fields = {"name": what, "dtype": kind, "c": c_type(kind), "n": kind[-2:],
              "f": "f" * (kind == "float32")}
    if what == "whole":
        return whole(kind)
    if what in ("mod", "div", "abs", "power"):
        return [{"mod": MOD.get(kind), "div": DIV, "abs": ABS,
                 "power": POWER.get(kind)}[what]]
    if what in ("min", "max"):
        return [EXTREME.format(**fields, sign="<" if what == "min" else ">")]
    if what == "unrank":
        return [UNRANK.format(n=kind[-2:], c="float" if kind == "int32" else "double")]
    if what in ("rank_up", "rank_down"):
        return [RANK.format(**fields, nan="MAX" if what == "rank_up" else "MIN")]
    return [SIGMOID.format(**fields)]


def whole(kind):
    """How a float becomes a whole number: small types by way of 32 bits."""
    n = 64 if kind in ("int64", "uint64", "uint32") else 32
    texts = [WHOLE.format(n=n, low=f"-{2.0 ** (n - 1)!r}", high=f"{2.0 ** (n - 1)!r}")]
    if kind != f"int{n}":
        texts.append(f"static inline {kind}_t whole_{kind}(double x)\n{{\n"
                     f"    return ({kind}_t) whole_int{n}(x);\n}}")
    return texts


def vector(kind, name):
    """The type of vectors of a dtype, and one function of them."""
    t = c_type(kind.dtype)
    fields = {"v": str(kind), "t": t, "n": kind.lanes, "e": t,
              "nbytes": kind.lanes * np.dtype(kind.dtype).itemsize,
              "sum_of_product": summed(kind.dtype, "a.v[i] * b.v[i]", "c.v[i]"),
              "sum": summed(kind.dtype, "x[i]", "x[i + n]")}
    if kind.dtype not in FLOATS:
        fields["e"] = c_type(f"u{kind.dtype.removeprefix('u')}")
    needs, text = VECTOR_FUNCTIONS[name]
    return [VECTOR.format(**fields), *(t for n in needs for t in vector(kind, n)),
            text.format(**fields)]


def summed(dtype, a, b):
    """The text of a sum; of whole numbers, one that wraps around."""
    if dtype in FLOATS:
        return f"{a} + {b}"
    wide = "uint64_t" if "64" in dtype else "uint32_t"
    return f"({c_type(dtype)}) (({wide}) {a} + ({wide}) {b})"


TILE_FUNCTIONS = {  # name -> what it calls, its result, its arguments
    "tile": (["splat"], "{c}", "{t} a"),
    "inner": (["some", "fma"], "{c}",
              "{c} sums, const {t} *a, int64_t at, const {t} *b,\n"
              "    int64_t place, int64_t step, int64_t count"),
    "outer": (["splat", "load", "fma"], "{c}",
              "{c} sums, const {t} *a, int64_t at, int64_t step,\n"
              "    const {t} *b, int64_t place"),
    "get": (["some"], "{c}", "{c} sums, const {t} *a, int64_t at, int64_t step,\n"
                             "    int64_t last"),
    "put": (["put"], "void", "{c} sums, {t} *a, int64_t at, int64_t step,\n"
                             "    int64_t top, int64_t first, int64_t last"),
    "put_totals": (["total"], "void", "{c} sums, {t} *a, int64_t at, int64_t step,\n"
                                      "    int64_t top, int64_t first, bool more"),
}


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
    return [*(text for n in needs for text in vector(kind.vector, n)),
            f"typedef struct {{ {v} v[{kind.rows * kind.columns}]; }} {c};",
            f"{head}\n{{\n{body}\n}}"]


def tile_lines(kind, name, v):
    """What a function of tiles does, for row after row of vectors."""
    n = kind.vector.lanes
    places = [(i, i // kind.columns, i % kind.columns)
              for i in range(kind.rows * kind.columns)]
    rows = [f"at + {r} * step" for r in range(kind.rows)]
    if name == "tile":
        return [f"sums.v[{i}] = {v}_splat(a);" for i, _, _ in places]
    if name == "get":
        return [f"sums.v[{i}] = {v}_some(a, {rows[r]} + {j * n}, last - {j * n});"
                for i, r, j in places]
    if name == "put":
        return [f"if (top <= {r}) {v}_put(a, {rows[r]} + {j * n}, sums.v[{i}], "
                f"first - {j * n}, last - {j * n});" for i, r, j in places]
    if name == "put_totals":
        lines = [f"{c_type(kind.vector.dtype)} *row, sum;"]
        for i, r, j in places:
            added = summed(kind.vector.dtype, f"row[{j}]", "sum")
            lines += [f"row = a + {rows[r]};"] * (j == 0)
            lines += [f"sum = {v}_total(sums.v[{i}]);",
                      f"if (top <= {r} && first <= {j}) "
                      f"row[{j}] = more ? {added} : sum;"]
        return lines
    left = [f"{v}_some(a, {row}, count)" if name == "inner" else f"{v}_splat(a[{row}])"
            for row in rows]
    right = [f"{v}_some(b, place + {j} * step, count)" if name == "inner" else
             f"{v}_load(b, place + {j * n})" for j in range(kind.columns)]
    return [*(f"const {v} left{r} = {text};" for r, text in enumerate(left)),
            *(f"const {v} right{j} = {text};" for j, text in enumerate(right)),
            *(f"sums.v[{i}] = {v}_fma(left{r}, right{j}, sums.v[{i}]);"
              for i, r, j in places)]
