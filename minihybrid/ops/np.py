"""Chapter 02. The names of the NumPy-like interface, made of the records before.

Takes:   the records of Gluon's legacy arrays.
Gives:   `_npi_add`, `_np_sum`, `_npx_relu`, ...: what MXNet writes into files of `mx.np`
         programs. Most are compositions, so they bring no gradients and no loops.

Where the two worlds differ: a sum of everything has shape (), comparisons give bool,
places are int64, dtypes mix (a float wins over whole numbers, then the wider one wins),
whole numbers divide to float32.
What is left out: the promotion of small whole numbers to the machine's word in sums.
"""

from dataclasses import fields

import numpy as np

from minihybrid.op import (
    OPS,
    REQUIRED,
    Op,
    ShapeError,
    Spec,
    axes,
    boolean,
    dtype,
    integer,
    number,
    optional,
    register,
    shape,
)
from minihybrid.ops.elementwise import block_grad, cast, choose, sqrt, square
from minihybrid.ops.layout import concat, infer_length, reshape, transpose, view
from minihybrid.ops.neural import batch_dot
from minihybrid.ops.neural import dot as legacy_dot
from minihybrid.ops.reduce import sum_
from minihybrid.ops.shapes import (
    as_codes,
    axes_of,
    axis_of,
    broadcast,
    floating,
    known,
)

BOOL, FLOAT, LONG = np.dtype("bool"), np.dtype("float32"), np.dtype("int64")


def renamed(name, op, *aliases, **changes):
    """Enter the same record under the name that np programs use."""
    kept = {f.name: getattr(op, f.name) for f in fields(Op) if f.name != "name"}
    return register(name, *aliases, **kept | changes)


def promoted(*dtypes):
    """The dtype of a result: a float wins over whole numbers, then the wider one.

    >>> promoted(np.dtype("int64"), np.dtype("float32"))
    dtype('float32')
    """
    if None in [d and d.kind for d in dtypes]:
        return None
    return np.result_type(*([d for d in dtypes if d.kind == "f"] or dtypes))


def to(value, old, new):
    """The value in a dtype; itself if it has it already."""
    return value if old == new else cast(value, dtype=new)


def same(kind):
    """The rule "the result has the promoted dtype"."""
    return kind


def to_bool(kind):
    """The rule "the result is true or false"."""
    return kind and BOOL


# -- two inputs, or one and a scalar ---------------------------------------------------
def with_scalar(kind, scalar, is_int):
    """The dtype in which an array of a dtype and a Python number are computed."""
    if kind is None or kind.kind == "f":
        return kind
    if not is_int or scalar != scalar // 1:
        return FLOAT
    return LONG if kind.kind == "b" else kind


def pair(name, both, scalar=None, rscalar=None, inside=same, result=same):
    """Enter `_npi_name`, and its forms with a scalar, from the legacy records.

    inside:  promoted dtype -> the dtype to compute in;  result: -> that of the result.
    """
    both, doc = OPS[both], OPS[both].doc

    def infer(specs):
        kind = inside(promoted(*(s.dtype for s in specs)))
        _, (out,) = broadcast(name, [Spec(s.shape, kind) for s in specs])
        return specs, [Spec(out.shape, result(kind))]

    def expand(specs, lhs, rhs):
        kind = inside(promoted(*(s.dtype for s in specs)))
        out = both(to(lhs, specs[0].dtype, kind), to(rhs, specs[1].dtype, kind))
        return to(out, kind, result(kind))

    register(f"_npi_{name}", inputs=("lhs", "rhs"), infer=infer, expand=expand, doc=doc)
    for prefix, op in (("", scalar), ("r", rscalar)):
        if op:
            _pair_scalar(f"_npi_{prefix}{name}_scalar", OPS[op], inside, result)


def _pair_scalar(name, op, inside, result):
    def infer(specs, scalar, is_int):
        kind = inside(with_scalar(specs[0].dtype, scalar, is_int))
        return specs, [Spec(specs[0].shape, result(kind))]

    def expand(specs, data, scalar, is_int):
        kind = inside(with_scalar(specs[0].dtype, scalar, is_int))
        out = op(to(data, specs[0].dtype, kind), scalar=scalar)
        return to(out, kind, result(kind))

    register(name, inputs=("data",), infer=infer, expand=expand, doc=op.doc,
             attrs={"scalar": (number, REQUIRED), "is_int": (boolean, True)})


pair("add", "broadcast_add", "_plus_scalar")
pair("subtract", "broadcast_sub", "_minus_scalar", "_rminus_scalar")
pair("multiply", "broadcast_mul", "_mul_scalar")
pair("true_divide", "broadcast_div", "_div_scalar", "_rdiv_scalar", inside=floating)
pair("mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar")
pair("power", "broadcast_power", "_power_scalar", "_rpower_scalar")
pair("maximum", "broadcast_maximum", "_maximum_scalar")
pair("minimum", "broadcast_minimum", "_minimum_scalar")
for _name, _old in (("equal", "equal"), ("not_equal", "not_equal"),
                    ("greater", "greater"), ("greater_equal", "greater_equal"),
                    ("less", "lesser"), ("less_equal", "lesser_equal")):
    pair(_name, f"broadcast_{_old}", f"_{_old}_scalar", result=to_bool)
for _name in ("hypot", "arctan2"):
    if f"broadcast_{_name}" in OPS:
        pair(_name, f"broadcast_{_name}", inside=floating)


# -- one input -------------------------------------------------------------------------
SAME_NAME = """exp expm1 log log10 log2 log1p sqrt cbrt square reciprocal sin cos tan
    arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians sign
    negative floor ceil trunc rint fix""".split()
for _name in SAME_NAME:
    if _name in OPS:
        renamed(f"_npi_{_name}", OPS[_name])
renamed("_npi_absolute", OPS["abs"], "_npi_abs")
renamed("_npx_relu", OPS["relu"])
renamed("_npx_sigmoid", OPS["sigmoid"])
renamed("_np_copy", OPS["_copy"])


def _tested(name, expand, doc):
    """Enter a test of each number, which gives a bool."""
    def test(specs, data):
        data = to(data, specs[0].dtype, floating(specs[0].dtype))
        return cast(expand(data), dtype=BOOL)

    register(f"_npi_{name}", inputs=("data",), doc=doc, expand=test,
             infer=lambda specs: (specs, [Spec(specs[0].shape, BOOL)]))


_tested("logical_not", OPS["logical_not"], "True where the number is 0.")
_tested("isnan", lambda a: OPS["_not_equal"](a, a), "True where it is not a number.")
_tested("isinf", lambda a: OPS["_equal_scalar"](OPS["abs"](a), scalar=np.inf),
        "True where it is infinite.")
_tested("isfinite", lambda a: OPS["_lesser_scalar"](OPS["abs"](a), scalar=np.inf),
        "True where it is a number and not infinite.")
_tested("isposinf", lambda a: OPS["_equal_scalar"](a, scalar=np.inf),
        "True where it is positive infinity.")
_tested("isneginf", lambda a: OPS["_equal_scalar"](a, scalar=-np.inf),
        "True where it is negative infinity.")


# -- many to one -----------------------------------------------------------------------
def left_over(op, old, axis, keepdims):
    """The shape after a reduction; of all axes: ()."""
    gone = axes_of(op, axis, len(old))
    return tuple(1 if i in gone else n for i, n in enumerate(old)
                 if keepdims or i not in gone)


def reduction(name, compute, kind, doc, dtypes=True, **more):
    """Enter a reduction under np's rules for shapes and dtypes.

    compute: (data, its Spec, axes, keepdims, more attributes) -> the legacy result.
    kind:    dtype of the data -> of the result, where none is asked for.
    """
    def wanted(spec, dtype):
        return dtype or spec.dtype and kind(spec.dtype)

    def infer(specs, axis, keepdims, dtype=None, **more):
        new = None
        if known(specs):
            new = left_over(name, specs[0].shape, axis, keepdims)
        return specs, [Spec(new, wanted(specs[0], dtype))]

    def expand(specs, data, axis, keepdims, dtype=None, **more):
        (old, had), gives = specs[0], wanted(specs[0], dtype)
        gone = axes_of(name, axis, len(old))
        out = compute(to(data, had, gives if dtypes else had), Spec(old, gives), gone,
                      keepdims, **more)
        new = left_over(name, old, axis, keepdims)
        return out if new else reshape(out, shape=())

    register(name, inputs=("a",), infer=infer, expand=expand, doc=doc, attrs={
        "axis": (axes, None), **({"dtype": (dtype, None)} if dtypes else {}),
        "keepdims": (boolean, False), **more})


def _wide(kind):
    return LONG if kind.kind == "b" else kind


def _legacy(name):
    op = OPS[name]
    return lambda data, spec, gone, keepdims, **_: op(data, axis=gone or None,
                                                      keepdims=keepdims)


INITIAL = {"initial": (optional(number), None)}


def _with_initial(name, join):
    start = _legacy(name)

    def compute(data, spec, gone, keepdims, initial):
        out = start(data, spec, gone, keepdims)
        return out if initial is None else OPS[join](out, scalar=initial)
    return compute


reduction("_np_sum", _with_initial("sum", "_plus_scalar"), _wide,
          "The sum over the axes.", **INITIAL)
reduction("_np_prod", _with_initial("prod", "_mul_scalar"), _wide,
          "The product over the axes.", **INITIAL)
reduction("_np_max", _legacy("max"), same, "The largest over the axes.", dtypes=False)
reduction("_np_min", _legacy("min"), same, "The smallest over the axes.", dtypes=False)
reduction("_npi_mean", _legacy("mean"), floating, "The mean over the axes.")


def _variance(data, spec, gone, keepdims, ddof):
    count = int(np.prod([spec.shape[a] for a in gone], dtype=np.int64))
    mean = OPS["mean"](data, axis=gone or None, keepdims=True)
    off = square(data.broadcast_sub(mean) if spec.shape else data - data)
    factor = 1 / (count - ddof) if count > ddof else np.nan
    return sum_(off, axis=gone or None, keepdims=keepdims) * factor


DDOF = {"ddof": (integer, 0)}
reduction("_npi_var", _variance, floating, "The mean square distance from the mean.",
          **DDOF)
reduction("_npi_std", lambda *args, **more: sqrt(_variance(*args, **more)), floating,
          "The square root of the variance.", **DDOF)


def _logical(name):
    def compute(data, spec, gone, keepdims):
        bits = cast(cast(block_grad(data), dtype=BOOL), dtype=LONG)
        return cast(OPS[name](bits, axis=gone or None, keepdims=keepdims), dtype=BOOL)
    return compute


reduction("_np_any", _logical("sum"), to_bool, "Whether any is not 0.", dtypes=False)
reduction("_np_all", _logical("prod"), to_bool, "Whether all are not 0.", dtypes=False)


def _places(name):
    """Enter argmax or argmin with int64 places."""
    def infer(specs, axis, keepdims):
        new = left_over(name, specs[0].shape, axis, keepdims) if known(specs) else None
        return specs, [Spec(new, LONG)]

    def expand(specs, data, axis, keepdims):
        out = cast(OPS[name](data, axis=axis, keepdims=keepdims), dtype=LONG)
        new = left_over(name, specs[0].shape, axis, keepdims)
        return reshape(out, shape=as_codes(new))

    register(f"_npi_{name}", inputs=("data",), infer=infer, expand=expand,
             attrs={"axis": (optional(integer), None), "keepdims": (boolean, False)},
             doc=f"{OPS[name].doc.removesuffix('float32.')}int64.")


_places("argmax")
_places("argmin")


# -- products --------------------------------------------------------------------------
def _product(name, rule, expand, doc):
    """Enter a product of two arrays whose dtypes mix."""
    def infer(specs, **attrs):
        kind = promoted(*(s.dtype for s in specs))
        new = rule(*(s.shape for s in specs)) if known(specs) else None
        return specs, [Spec(new, kind)]

    def mixed(specs, a, b):
        kind = promoted(*(s.dtype for s in specs))
        out = expand(to(a, specs[0].dtype, kind), to(b, specs[1].dtype, kind),
                     *(s.shape for s in specs))
        new = rule(*(s.shape for s in specs))
        return out if new else reshape(out, shape=())

    return register(name, inputs=("a", "b"), infer=infer, expand=mixed, doc=doc)


def _dot_rule(a, b):
    if not a or not b:
        return a or b
    if a[-1] != b[max(len(b) - 2, 0)]:
        raise ShapeError(f"dot: {a} times {b} does not work: the last length of the "
                         "first and the last but one of the second must be equal")
    return (*a[:-1], *b[:-2], *b[-1:]) if len(b) > 1 else a[:-1]


def _dot(a, b, old_a, old_b):
    if not old_a or not old_b:
        return OPS["broadcast_mul"](a, b)
    if len(old_b) > 2:
        order = list(range(len(old_b)))
        b = transpose(b, axes=(order[-2], *order[:-2], order[-1]))
    return legacy_dot(a, b)


dot = _product("_np_dot", _dot_rule, _dot,
               "The product over the last axis of a and the last but one of b.")


def _matmul_rule(a, b):
    if not a or not b:
        raise ShapeError("matmul: an array without axes has no product of matrices; "
                         "use a * b")
    if len(a) < 3 and len(b) < 3:
        return _dot_rule(a, b)
    m, n = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
    if m[-1] != n[-2]:
        raise ShapeError(f"matmul: {a} times {b} does not work: the inner lengths "
                         f"{m[-1]} and {n[-2]} must be equal")
    batch = broadcast("matmul", [Spec(m[:-2], FLOAT), Spec(n[:-2], FLOAT)])[1][0].shape
    return (*batch, *m[-2:-1][:len(a) > 1], *n[-1:][:len(b) > 1])


def _matmul(a, b, old_a, old_b):
    if len(old_a) < 3 and len(old_b) < 3:
        return legacy_dot(a, b)
    m = old_a if len(old_a) > 1 else (1, *old_a)
    n = old_b if len(old_b) > 1 else (*old_b, 1)
    batch = np.broadcast_shapes(m[:-2], n[:-2])
    size = int(np.prod(batch, dtype=np.int64))
    parts = []
    for value, old, now in ((a, old_a, m), (b, old_b, n)):
        value = value if old == now else reshape(value, shape=as_codes(now))
        if now[:-2] != batch:
            value = value.broadcast_to((*batch, *now[-2:]))
        parts.append(np_reshape(value, newshape=(size, *now[-2:])))
    return np_reshape(batch_dot(*parts), newshape=_matmul_rule(old_a, old_b))


matmul = _product("_npi_matmul", _matmul_rule, _matmul,
                  "Products of the matrices in the last two axes; others broadcast.")


# -- shapes ----------------------------------------------------------------------------
def _np_codes(old, codes):
    """The shape that npx.reshape's codes mean: -1 to -6."""
    new, i, codes = [], 0, list(codes)
    while codes:
        code = codes.pop(0)
        if code in (-2, -3, -5, -6) and i + (code == -5) >= len(old):
            raise ShapeError(f"npx.reshape: code {code} needs an axis that {old} has "
                             "not")
        if code == -2:
            new.append(old[i])
        elif code == -3 and old[i] != 1:
            raise ShapeError(f"npx.reshape: code -3 takes out an axis of length 1, "
                             f"but axis {i} of {old} has length {old[i]}")
        elif code == -4:
            new += old[i:]
        elif code == -5:
            new.append(old[i] * old[i + 1])
        elif code == -6:
            left, right = codes.pop(0), codes.pop(0)
            left = old[i] // right if left == -1 else left
            new += [left, old[i] // left if right == -1 else right]
        elif code < -6:
            raise ShapeError(f"npx.reshape: there is no code {code}; -1 to -6 have a "
                             "meaning")
        elif code != -3:
            new.append(code)
        i = {-4: len(old), -5: i + 2}.get(code, i + 1)
    return infer_length("npx.reshape", old, new)


def _np_codes_either_way(old, newshape, reverse, order):
    if not reverse:
        return _np_codes(old, newshape)
    return tuple(reversed(_np_codes(old[::-1], newshape[::-1])))


NEWSHAPE = {"newshape": (shape, REQUIRED)}
ORDER = {"order": (str, "C")}
np_reshape = view("_np_reshape", "_npi_reshape", attrs=NEWSHAPE | ORDER,
                  rule=lambda old, newshape, order: infer_length("reshape", old,
                                                                 list(newshape)),
                  doc="The same numbers under another shape; one length may be -1.")
view("_npx_reshape", rule=_np_codes_either_way,
     attrs=NEWSHAPE | {"reverse": (boolean, False)} | ORDER,
     doc="The same numbers under another shape; codes -1, -2, -3, -4, -5, -6.")


def _squeezed(old, axis):
    gone = [i for i, n in enumerate(old) if n == 1] if axis is None else \
        axes_of("squeeze", axis, len(old))
    if any(old[i] != 1 for i in gone):
        raise ShapeError(f"squeeze: axis {axis} of {old} has not length 1")
    return tuple(n for i, n in enumerate(old) if i not in gone)


view("_np_squeeze", rule=_squeezed, attrs={"axis": (axes, None)},
     doc="Take out axes of length 1, all of them unless told.")
register("_np_transpose", inputs=("a",), attrs={"axes": (optional(shape), None)},
         infer=lambda specs, axes: transpose.infer(specs, axes=axes or ()),
         expand=lambda specs, a, axes: transpose(a, axes=axes or ()),
         doc=transpose.doc)
renamed("_npi_broadcast_to", OPS["broadcast_to"])


# -- joining ---------------------------------------------------------------------------
def _join(name, prepare, doc, **attrs):
    """Enter a way to join arrays; `prepare` gives each array's shape, and the axis."""
    def infer(specs, **attrs):
        kind = promoted(*(s.dtype for s in specs))
        if not known(specs):
            return specs, [Spec(None, kind)]
        shapes, axis = prepare([s.shape for s in specs], **attrs)
        _, (out,) = concat.infer([Spec(s, kind) for s in shapes], dim=axis)
        return specs, [out]

    def expand(specs, *data, **attrs):
        kind = promoted(*(s.dtype for s in specs))
        shapes, axis = prepare([s.shape for s in specs], **attrs)
        return concat(*(np_reshape(to(d, s.dtype, kind), newshape=new)
                        if new != s.shape else to(d, s.dtype, kind)
                        for d, s, new in zip(data, specs, shapes, strict=True)),
                      dim=axis)

    return register(name, inputs=("data",), variadic=True, infer=infer, expand=expand,
                    doc=doc, attrs=attrs)


def _one_more(olds, axis):
    axis = axis_of("stack", axis, len(olds[0]) + 1)
    if len(set(olds)) > 1:
        raise ShapeError(f"stack: the shapes {' and '.join(map(str, olds))} must be "
                         "equal")
    return [(*s[:axis], 1, *s[axis:]) for s in olds], axis


def _at_least(n, old):
    """The shape with axes of length 1 added, as atleast_1d, 2d and 3d do."""
    if n == 3 and len(old) == 2:
        return (*old, 1)
    if n == 3 and len(old) == 1:
        return (1, *old, 1)
    return (1,) * (n - len(old)) + tuple(old)


_join("_npi_concatenate", lambda olds, axis: (
    ([(int(np.prod(s, dtype=np.int64)),) for s in olds], 0) if axis is None
    else (olds, axis)), "Join arrays along an axis; `None` joins them flat.",
      axis=(optional(integer), 0))
_join("_npi_stack", _one_more, "Join arrays along a new axis.", axis=(integer, 0))
_join("_npi_vstack", lambda olds: ([_at_least(2, s) for s in olds], 0),
      "Join arrays as rows.")
_join("_npi_hstack", lambda olds: ([_at_least(1, s) for s in olds],
                                   min(len(_at_least(1, olds[0])) - 1, 1)),
      "Join arrays along the second axis; vectors along their only one.")
_join("_npi_dstack", lambda olds: ([_at_least(3, s) for s in olds], 2),
      "Join arrays along the third axis.")
_join("_npi_column_stack", lambda olds: (
    [s if len(s) > 1 else (int(np.prod(s)), 1) for s in olds], 1),
      "Join vectors as columns.")


# -- made from nothing, or from a shape ------------------------------------------------
renamed("_npi_zeros", OPS["_zeros"])
renamed("_npi_ones", OPS["_ones"])
register("_npi_arange", inputs=(), doc=OPS["_arange"].doc,
         attrs={"start": (number, REQUIRED), "stop": (optional(number), None),
                "step": (number, 1.0), "dtype": (dtype, FLOAT)},
         infer=lambda specs, **a: OPS["_arange"].infer(specs, repeat=1, **a),
         eager=lambda **a: OPS["_arange"].eager(repeat=1, **a),
         cpu=lambda k, out, **a: OPS["_arange"].cpu(k, out, repeat=1, **a))


def _full_like_expr(fill_value, dtype):
    return OPS["_full"].expr((), None, fill_value)


register("_npi_full_like", inputs=("a",),
         attrs={"fill_value": (number, REQUIRED), "dtype": (dtype, None)},
         infer=lambda specs, fill_value, dtype: (
             specs, [Spec(specs[0].shape, dtype or specs[0].dtype)]),
         eager=lambda a, *, fill_value, dtype: np.full_like(a, fill_value, dtype),
         expr=_full_like_expr, grad=lambda g, out, a, **_: (None,),
         doc="One value in the shape of the input.")


def _where_infer(specs):
    kind = promoted(*(s.dtype for s in specs[1:]))
    _, (out,) = broadcast("where", [Spec(s.shape, kind) for s in specs])
    return specs, [out]


def _where_expand(specs, condition, x, y):
    kind = promoted(*(s.dtype for s in specs[1:]))
    return choose(condition, to(x, specs[1].dtype, kind), to(y, specs[2].dtype, kind))


register("_npi_where", inputs=("condition", "x", "y"), infer=_where_infer,
         expand=_where_expand, doc="x where the condition is not 0, else y.")
