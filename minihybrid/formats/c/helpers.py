"""What kernels in C call beside the C library.

Takes:   names of helpers, as `kernels` notes them.
Gives:   `helpers`, their definitions, each once and after those that it uses.

Python divides towards minus infinity, and compiled sums of whole numbers wrap around,
which C leaves undefined. Functions of `codegen.device_math` are translated as kernels are.
What is left out: complex numbers; float16.
"""

import ast
import inspect
import math

from minihybrid.codegen.device_math import PLAIN
from minihybrid.formats.c.calls import parameters
from minihybrid.formats.c.kernels import RESULT, Function
from minihybrid.formats.c.values import FLOATS, Tile, Vector, c_type
from minihybrid.formats.c.vectors import tile, vector

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
CUT = {
    "int64": """static inline int64_t cut_int64(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return b ? (int64_t) (0 - (uint64_t) a) : 0;
    return a / b;
}""",
    "uint64": """static inline uint64_t cut_uint64(uint64_t a, uint64_t b)
{
    return b ? a / b : 0;
}""",
}
MOD = {
    "int64": """static inline int64_t mod_int64(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}""",
    "uint64": """static inline uint64_t mod_uint64(uint64_t a, uint64_t b)
{
    return b ? a % b : 0;
}""",
}
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


class Translated(Function):
    """A function of `codegen.device_math` in C, for numbers of a dtype.

    >>> print(Translated("mod", "float32").text.splitlines()[0])
    static inline float mod_float32(float a, float b)
    """

    def __init__(self, name, dtype):
        (tree,) = ast.parse(inspect.getsource(PLAIN[name])).body
        tree.body = tree.body[1:]  # without the docstring
        count = len(tree.args.args)
        tree = ast.fix_missing_locations(_Known(dtype).visit(tree))
        self.translate(tree, f"{name}_{dtype}", parameters(name, dtype)[-count:])

    def head(self):
        """What the function is called, and its parameters."""
        args = ", ".join(self.declared(arg) for arg in self.args)
        yield f"static inline {c_type(self.types[RESULT])} {self.name}({args})"


class _Known(ast.NodeTransformer):
    """Writes numbers where Python computes them: the dtype, `math.pi`, lists of numbers."""

    def __init__(self, dtype):
        self.names = {"T": ast.Name(dtype, ast.Load())}

    def visit_Name(self, node):
        """What a name stands for."""
        return self.names.get(node.id, node)

    def visit_Attribute(self, node):
        """`np.uint64` is called `uint64` in kernels."""
        return ast.Name(node.attr, node.ctx) if node.value.id == "np" else self.generic_visit(node)

    def visit_Assign(self, node):
        """A list of numbers is written where it is read."""
        match self.generic_visit(node):
            case ast.Assign([ast.Name(name)], ast.Tuple() as numbers):
                self.names[name] = numbers
                return None
        return node

    def generic_visit(self, node):
        """An expression of numbers and `math` is a number."""
        if isinstance(node, (ast.BinOp, ast.Call, ast.Attribute)):
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            if names <= {"math"} and not callable(found := eval(ast.unparse(node), {"math": math})):
                return ast.Constant(found)
        return super().generic_visit(node)


def helpers(names):
    """The definitions of helpers, in the order in which C must read them.

    >>> print("\\n".join(helpers([("sigmoid", "float32")])))
    static inline float sigmoid_float32(float x)
    {
        float small = expf(-fabsf(x));
        return (x < 0.0f ? small : 1.0f) / (1.0f + small);
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
        sign = {"wrap_add": "+", "wrap_sub": "-", "wrap_mul": "*"}[name]
        return [WRAP.format(name=name.removeprefix("wrap_"), sign=sign)]
    what, kind = name
    if isinstance(what, Vector):
        return vector(what, kind)
    if isinstance(what, Tile):
        return tile(what, kind)
    if what in PLAIN and (kind in FLOATS or what == "whole_power"):
        function = Translated(what, kind)
        return [*helpers(function.helpers), function.text]
    fields = {"name": what, "dtype": kind, "c": c_type(kind), "n": kind[-2:]}
    if what == "whole":
        return whole(kind)
    if what in ("mod", "div", "cut", "abs"):
        return [{"mod": MOD.get(kind), "div": DIV, "cut": CUT.get(kind), "abs": ABS}[what]]
    if what in ("min", "max"):
        return [EXTREME.format(**fields, sign="<" if what == "min" else ">")]
    if what == "unrank":
        return [UNRANK.format(n=kind[-2:], c="float" if kind == "int32" else "double")]
    return [RANK.format(**fields, nan="MAX" if what == "rank_up" else "MIN")]


def whole(kind):
    """How a float becomes a whole number: small types by way of 32 bits."""
    n = 64 if kind in ("int64", "uint64", "uint32") else 32
    texts = [WHOLE.format(n=n, low=f"-{2.0 ** (n - 1)!r}", high=f"{2.0 ** (n - 1)!r}")]
    if kind != f"int{n}":
        texts.append(
            f"static inline {kind}_t whole_{kind}(double x)\n{{\n"
            f"    return ({kind}_t) whole_int{n}(x);\n}}"
        )
    return texts
