"""Chapter 15. What kernels in C call beside the C library.

Takes:   names of helpers, as `kernels` notes them.
Gives:   `helpers`, their definitions, each once and after those that it uses.

Python divides towards minus infinity, and compiled sums of whole numbers wrap around,
which C leaves undefined.
What is left out: complex numbers; float16.
"""

from minihybrid.codegen.c.values import Tile, Vector, c_type
from minihybrid.codegen.c.vectors import tile, vector

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
CUT = {"int64": """static inline int64_t cut_int64(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return b ? (int64_t) (0 - (uint64_t) a) : 0;
    return a / b;
}""", "uint64": """static inline uint64_t cut_uint64(uint64_t a, uint64_t b)
{
    return b ? a / b : 0;
}"""}
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
    {c} small = exp{f}(-fabs{f}(x));
    return (x < 0 ? small : 1) / (1 + small);
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
# What rounding loses of a sum; 0 of what is not finite.
LOST = """static inline {c} lost_{dtype}({c} total, {c} x)
{{
    const {c} rounded = total + x, taken = rounded - total;
    const {c} rest = (total - (rounded - taken)) + (x - taken);
    return rest == rest ? rest : 0;
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

def helpers(names):
    """The definitions of helpers, in the order in which C must read them.

    >>> print("\\n".join(helpers([("sigmoid", "float32")])))
    static inline float sigmoid_float32(float x)
    {
        float small = expf(-fabsf(x));
        return (x < 0 ? small : 1) / (1 + small);
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
    if what in ("mod", "div", "cut", "abs", "power"):
        return [{"mod": MOD.get(kind), "div": DIV, "cut": CUT.get(kind), "abs": ABS,
                 "power": POWER.get(kind)}[what]]
    if what in ("min", "max"):
        return [EXTREME.format(**fields, sign="<" if what == "min" else ">")]
    if what == "unrank":
        return [UNRANK.format(n=kind[-2:], c="float" if kind == "int32" else "double")]
    if what in ("rank_up", "rank_down"):
        return [RANK.format(**fields, nan="MAX" if what == "rank_up" else "MIN")]
    return [{"lost": LOST, "sigmoid": SIGMOID}[what].format(**fields)]


def whole(kind):
    """How a float becomes a whole number: small types by way of 32 bits."""
    n = 64 if kind in ("int64", "uint64", "uint32") else 32
    texts = [WHOLE.format(n=n, low=f"-{2.0 ** (n - 1)!r}", high=f"{2.0 ** (n - 1)!r}")]
    if kind != f"int{n}":
        texts.append(f"static inline {kind}_t whole_{kind}(double x)\n{{\n"
                     f"    return ({kind}_t) whole_int{n}(x);\n}}")
    return texts
