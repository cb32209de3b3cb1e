"""What fits the functions of `mx.np` and `mx.npx`: rules of the random programs.

A name is the path in `F`, such as "np.sum" or "np.linalg.norm"; "[]" reads parts of an
array. These functions also take arrays without axes, and axes of length 0.
What is left out: functions whose shapes depend on numbers, and those that MXNet itself
hands to NumPy.
"""

import math

RULES = {}  # name -> function of a Draft: (values, attributes, number of outputs)
LEFT_OUT = {  # why no program has these functions of `mx.np` -> their names
    "they read no array": "arange array bool bool_ empty empty_like eye float16 float32 float64 "
    "full identity indices int32 int64 int8 linspace logspace ndarray ones uint8 zeros",
    "NumPy computes them, outside of a graph": "bincount corrcoef count_nonzero cov histogram "
    "interp isin lcm ldexp median percentile quantile searchsorted",
    "their shapes depend on values": "argwhere nonzero unique",
    "they give Python's numbers": "allclose array_equal ndim shape size",
    "they are another function with an argument": "append hsplit row_stack vsplit",
    "what is near, and rounded down, noise decides": "floor_divide isclose",
}
LOOSE = set()  # names whose results add up, or apply functions in turn
EXACT = set(
    "square reciprocal sqrt negative floor ceil trunc rint fix absolute sign isnan "
    "isinf isfinite isposinf isneginf logical_not add subtract multiply true_divide "
    "equal not_equal greater greater_equal less less_equal logical_and logical_or "
    "logical_xor any all argmax argmin reshape ravel transpose swapaxes moveaxis "
    "squeeze expand_dims broadcast_to flip roll repeat tile diag diagonal tril triu "
    "pad concatenate stack vstack hstack dstack column_stack split array_split where "
    "clip take sort argsort meshgrid full_like zeros_like ones_like atleast_1d "
    "atleast_2d atleast_3d copysign bitwise_and bitwise_or bitwise_xor".split()
)
EXACT = {f"np.{name}" for name in EXACT} | {"npx.relu", "npx.one_hot", "npx.pick", "[]"}


def rule(*names, loose=False):
    """Enter a rule for functions: (draft, name) -> values, attributes, outputs."""

    def enter(function):
        for name in names:
            path = name if name.startswith(("np", "[")) else f"np.{name}"
            assert path not in RULES, path
            RULES[path] = function
            if loose:
                LOOSE.add(path)
        return function

    return enter


def axis_or_none(d, v):
    return d.axis(d.ndim(v)) if d.ndim(v) and d.flag(0.7) else None


def with_axes(d, value):
    """A value with at least one axis; a new one where `value` has none."""
    return value if d.ndim(value) else d.new(d.shape(d.rng.choice((1, 2, 3))))


# -- of one number, of two -------------------------------------------------------------
@rule(
    *"""exp expm1 log log10 log2 log1p sqrt cbrt square reciprocal sin cos tan arcsin
      arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians sign negative
      floor ceil trunc rint fix absolute logical_not isnan isinf isfinite isposinf
      isneginf zeros_like ones_like atleast_1d atleast_2d atleast_3d ravel nan_to_num
      abs fabs deg2rad rad2deg copy
      npx.relu npx.sigmoid npx.erf""".split()
)
def of_one(d, name):
    return [d.value()], {}


@rule("npx.gammaln", "npx.gamma", "npx.erfinv")
def special(d, name):
    return [d.float(kind="positive")], {}


@rule(
    *"""add subtract multiply true_divide mod power maximum minimum equal not_equal
      greater greater_equal less less_equal hypot arctan2 logical_and logical_or
      logical_xor copysign divide remainder""".split()
)
def of_two(d, name):
    first = d.value()
    if d.flag(0.3):
        return [first], {"x2": d.scalar()}
    return [first, d.beside(first)], {}


@rule("bitwise_and", "bitwise_or", "bitwise_xor")
def of_bits(d, name):
    whole = [v for v in range(len(d.values)) if d.values[v].dtype.kind in "iu"]
    first = d.rng.choice(whole) if whole else d.new(d.shape(), "int32")
    return [first, d.beside(first)], {}


@rule("around", "round", "round_")
def around(d, name):
    return [d.value()], {"decimals": d.rng.choice((0, 0, 1, 2))}


@rule("clip")
def clip(d, name):
    low, high = sorted((d.scalar(), d.scalar()))
    return [d.value()], {"a_min": low, "a_max": high}


@rule("full_like")
def full_like(d, name):
    return [d.value()], {"fill_value": d.scalar()}


@rule("where")
def where(d, name):
    condition, x = d.value(), d.value()
    return [condition, x, d.beside(x)], {}


# -- many to one -----------------------------------------------------------------------
@rule("sum", "prod", "mean", "max", "min", "amax", "amin", "any", "all", loose=True)
def reduction(d, name):
    v = d.value()
    attrs = {"axis": d.axes(d.ndim(v))} if d.ndim(v) and d.flag(0.7) else {}
    return [v], attrs | ({"keepdims": True} if d.flag(0.4) else {})


@rule("var", "std", loose=True)
def variance(d, name):
    values, attrs = reduction(d, name)
    return values, attrs | ({"ddof": 1} if d.flag(0.3) else {})


@rule("argmax", "argmin")
def place(d, name):
    v = d.value()
    return [v], {"axis": axis_or_none(d, v), "keepdims": d.flag(0.3)}


@rule("average", "cumsum", loose=True)
def along(d, name):
    v = d.value()
    return [v], {"axis": axis_or_none(d, v)}


@rule("np.linalg.norm", loose=True)
def norm(d, name):
    v = d.float()
    some = (
        {"axis": d.axis(d.ndim(v)), "ord": d.rng.choice((1, 2, None))}
        if d.ndim(v) and d.flag()
        else {}
    )
    return [v], some | ({"keepdims": True} if d.flag(0.3) else {})


@rule("npx.softmax", "npx.log_softmax", loose=True)
def softmax(d, name):
    v = with_axes(d, d.float())
    return [v], {"axis": d.axis(d.ndim(v))}


@rule("npx.layer_norm", loose=True)
def layer_norm(d, name):
    v = with_axes(d, d.float())
    axis = d.axis(d.ndim(v))
    n = (d.shape_of(v)[axis],)
    return [v, d.shaped(n, v), d.shaped(n, v)], {"axis": axis, "eps": 0.01}


# -- shapes ----------------------------------------------------------------------------
@rule("reshape")
def reshape(d, name):
    v = d.value()
    size = d.values[v].size
    if size == 1 and d.flag(0.3):
        return [v], {"newshape": ()}
    shape = list(d.cut(size, d.rng.randint(1, 4)))
    if d.flag(0.3) and 0 not in shape:
        shape[d.rng.randrange(len(shape))] = -1
    return [v], {"newshape": tuple(shape)}


@rule("npx.reshape")
def reshape_by_codes(d, name):
    some = ((-1,), (-2, -1), (-4,), (-2, -4), (-5,), (-5, -4), (-1, 1))
    return [d.value()], {"newshape": d.rng.choice(some)}


@rule("transpose")
def transpose(d, name):
    v = d.value()
    order = d.rng.sample(range(d.ndim(v)), d.ndim(v))
    return [v], {"axes": tuple(order)} if d.flag(0.7) else {}


@rule("swapaxes", "moveaxis")
def swapped(d, name):
    v = with_axes(d, d.value())
    one, two = d.axis(d.ndim(v)), d.axis(d.ndim(v))
    keys = ("axis1", "axis2") if name == "np.swapaxes" else ("source", "destination")
    return [v], dict(zip(keys, (one, two), strict=True))


@rule("squeeze")
def squeeze(d, name):
    v = d.value()
    ones = [i for i, n in enumerate(d.shape_of(v)) if n == 1]
    return [v], {"axis": d.rng.choice(ones)} if ones and d.flag() else {}


@rule("expand_dims")
def expand_dims(d, name):
    v = d.value()
    return [v], {"axis": d.rng.randint(-d.ndim(v) - 1, d.ndim(v))}


@rule("broadcast_to")
def broadcast_to(d, name):
    v = d.value()
    more = [d.length() for _ in range(d.rng.randint(0, 1))]
    return [v], {"shape": (*more, *(d.length() if n == 1 else n for n in d.shape_of(v)))}


@rule("flip")
def flip(d, name):
    v = d.value()
    return [v], {"axis": d.axes(d.ndim(v)) if d.ndim(v) else None}


@rule("fliplr", "flipud")
def flip_matrix(d, name):
    v = d.any(lambda v: d.ndim(v) > 1)
    return [d.new(d.shape(2)) if v is None else v], {}


@rule("roll")
def roll(d, name):
    v = d.value()
    return [v], {"shift": d.rng.randint(-3, 3), "axis": axis_or_none(d, v)}


@rule("repeat")
def repeat(d, name):
    v = d.value()
    return [v], {"repeats": d.rng.randint(1, 3), "axis": axis_or_none(d, v)}


@rule("tile")
def tile(d, name):
    v = d.value()
    return [v], {"reps": tuple(d.rng.randint(1, 3) for _ in range(d.rng.randint(0, d.ndim(v) + 1)))}


@rule("diag", "tril", "triu")
def diag(d, name):
    few = (1, 2) if name == "np.diag" else (2, 3)
    v = d.any(lambda v: d.ndim(v) in few)
    v = d.new(d.shape(d.rng.choice(few))) if v is None else v
    return [v], {"k": d.rng.randint(-2, 2)}


@rule("diagonal")
def diagonal(d, name):
    v = d.any(lambda v: d.ndim(v) > 1)
    v = d.new(d.shape(2)) if v is None else v
    one, two = d.rng.sample(range(d.ndim(v)), 2)
    return [v], {"offset": d.rng.randint(-1, 1), "axis1": one, "axis2": two}


@rule("trace", loose=True)
def trace(d, name):
    return diagonal(d, name)


@rule("pad")
def pad(d, name):
    v = with_axes(d, d.value())
    mode = d.rng.choice(("constant", "edge", "reflect"))
    most = [2 if mode != "reflect" else max(min(n - 1, 2), 0) for n in d.shape_of(v)]
    width = tuple((d.rng.randint(0, n), d.rng.randint(0, n)) for n in most)
    more = {"constant_values": d.scalar()} if mode == "constant" else {}
    return [v], {"pad_width": width, "mode": mode, **more}


@rule("diff")
def diff(d, name):
    v = with_axes(d, d.value())
    return [v], {"n": d.rng.choice((1, 1, 2)), "axis": d.axis(d.ndim(v))}


# -- joining and cutting ---------------------------------------------------------------
@rule("concatenate")
def concatenate(d, name):
    first = with_axes(d, d.value())
    if d.flag(0.2):
        return [first, d.shaped(d.shape(), first)], {"axis": None}
    axis, others = d.axis(d.ndim(first)), []
    for _ in range(d.rng.randint(0, 2)):
        shape = list(d.shape_of(first))
        shape[axis] = d.length()
        others.append(d.shaped(shape, first))
    return [first, *others], {"axis": axis}


@rule("stack")
def stack(d, name):
    values, _ = stacked(d, name)
    n = d.ndim(values[0]) + 1
    return values, {"axis": d.rng.randrange(-n, n)}


@rule("vstack", "hstack", "dstack", "column_stack")
def stacked(d, name):
    first = d.value()
    return [first, *(d.shaped(d.shape_of(first), first) for _ in range(d.rng.randint(0, 2)))], {}


@rule("split")
def split(d, name):
    v = with_axes(d, d.value())
    axis = d.axis(d.ndim(v))
    n = d.shape_of(v)[axis]
    parts = d.rng.choice([k for k in (1, 2, 3, 5, 7) if n % k == 0])
    return [v], {"indices_or_sections": parts, "axis": axis}, parts


@rule("array_split")
def array_split(d, name):
    v = with_axes(d, d.value())
    axis, parts = d.axis(d.ndim(v)), d.rng.randint(1, 4)
    if d.flag():
        return [v], {"indices_or_sections": parts, "axis": axis}, parts
    places = tuple(sorted(d.rng.randint(0, 5) for _ in range(parts - 1)))
    return [v], {"indices_or_sections": places, "axis": axis}, parts


@rule("meshgrid")
def meshgrid(d, name):
    n = d.rng.choice((2, 2, 3))
    return [d.shaped((d.length(),)) for _ in range(n)], {"indexing": d.rng.choice(("xy", "ij"))}, n


@rule("[]")
def part(d, name):
    """An index of slices, numbers, new axes and dots; written so that JSON has it."""
    v, key = d.value(), []
    shape = d.shape_of(v)
    for n in shape[: d.rng.randint(0, len(shape))]:
        if d.flag(0.15):
            key.append(("new",))
        if n and d.flag(0.3):
            key.append(("int", d.rng.randrange(-n, n)))
        else:
            key.append(("slice", *d.part(n)))
    if d.flag(0.2):
        key.insert(d.rng.choice((0, len(key))), ("...",))
    return [v], {"key": tuple(key)}


# -- picking and ordering --------------------------------------------------------------
@rule("sort", "argsort")
def order(d, name):
    v = with_axes(d, d.value())
    return [v], {"axis": d.axis(d.ndim(v))}


@rule("take")
def take(d, name):
    v = d.value()
    axis, mode = axis_or_none(d, v), d.rng.choice(("clip", "wrap"))
    n = d.values[v].size if axis is None else d.shape_of(v)[axis]
    return [v, d.index(d.shape(), n, "int32")], {"axis": axis, "mode": mode}


@rule("npx.one_hot")
def one_hot(d, name):
    depth = d.rng.randint(1, 5)
    return [d.index(d.shape(), depth, "int32")], {"depth": depth}


@rule("npx.pick")
def pick(d, name):
    v = with_axes(d, d.value())
    axis, shape = d.axis(d.ndim(v)), list(d.shape_of(v))
    n = shape.pop(axis)
    return [v, d.index(shape, n, "int32")], {"axis": axis}


# -- products --------------------------------------------------------------------------
@rule("dot", "matmul", loose=True)
def matmul(d, name):
    a = with_axes(d, d.float())
    k = d.shape_of(a)[-1]
    batch = d.shape_of(a)[:-2] if d.flag() and name == "np.matmul" else ()
    return [a, d.shaped(d.rng.choice([(k,), (*batch, k, d.length())]), a)], {}


@rule("inner", loose=True)
def inner(d, name):
    a = with_axes(d, d.float())
    k = d.shape_of(a)[-1]
    return [a, d.shaped(d.rng.choice([(k,), (d.length(), k)]), a)], {}


@rule("outer")
def outer(d, name):
    a = d.float()
    return [a, d.shaped(d.shape(1), a)], {}


@rule("vdot", loose=True)
def vdot(d, name):
    a = d.float()
    return [a, d.shaped(d.shape_of(a), a)], {}


@rule("tensordot", loose=True)
def tensordot(d, name):
    a = with_axes(d, d.float())
    n = d.rng.randint(0, min(d.ndim(a), 2))
    shape = d.shape_of(a)[d.ndim(a) - n :]
    more = tuple(d.length() for _ in range(d.rng.randint(0 if n else 1, 1)))
    return [a, d.shaped((*shape, *more), a)], {"axes": n}


SUBSCRIPTS = (
    "ij,jk->ik",
    "ij,kj->ik",
    "ii",
    "ij->ji",
    "bij,bjk->bik",
    "i,i",
    "i,j->ji",
    "ij->",
    "ij->i",
    "ijk->k",
    "bi,bij->bj",
    "ij,ij->j",
    "iij->j",
    "ii->i",
)


@rule("einsum", loose=True)
def einsum(d, name):
    text = d.rng.choice(SUBSCRIPTS)
    lengths = {letter: d.length() for letter in "ijkb"}
    first, *rest = [tuple(lengths[c] for c in part) for part in text.split("->")[0].split(",")]
    a = d.float(lambda v: d.shape_of(v) == first, shape=first)
    return [a, *(d.shaped(shape, a) for shape in rest)], {"subscripts": text}


@rule("npx.fully_connected", loose=True)
def fully_connected(d, name):
    v = with_axes(d, d.float())
    n, shape = d.rng.randint(1, 4), d.shape_of(v)
    flat = d.flag()
    weight = d.shaped((n, math.prod(shape[1:]) if flat else shape[-1]), v)
    return [v, weight, d.shaped((n,), v)], {"num_hidden": n, "flatten": flat}


NAMES = sorted(RULES)
