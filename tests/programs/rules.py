"""What fits each operator: the rules of the random programs.

An operator whose inputs are any numbers of one shape, or of shapes that stretch, and
whose attributes are of kinds that say what fits, needs no rule; nor does a new one.
"""

import math

import numpy as np

from minihybrid import nd
from minihybrid.core.op import REQUIRED, axes, boolean, choice, integer, number
from minihybrid.ops import OPS
from programs import np_rules
from programs.draft import made_by
from programs.run import CONTROL, INFIX

RULES = {}  # operator -> function of a Draft: (values, attributes)
LEFT_OUT = {  # operator, or the beginning of its name -> why no program has it
    "_random_": "random numbers have laws of their own; Dropout stands for them here",
    "_sample_": "as _random_",
    "_shuffle": "as _random_",
    "_np": "a function of mx.np",
    "RNN": "its packed parameters fit no other value; tests/gluon/test_rnn.py asks its cells",
}


def rule(*names):
    """Enter a rule for operators: (draft, operator) -> values, attributes, outputs."""

    def enter(function):
        for name in names:
            assert OPS[name].name not in RULES, name
            RULES[OPS[name].name] = function
        return function

    return enter


def elementwise(d, op):
    """Any numbers of one shape; two values may stretch where the operator says so."""
    first = d.value()
    if op.inputs == ("data",):
        return [first], d.attributes(op, first)
    if op.name.startswith("broadcast_"):
        return [first, d.beside(first)], {}
    return [d.shaped(d.shape_of(first), first) for _ in op.inputs], {}


def by_kinds(d, op):
    """One input; all attributes are of kinds that say what fits."""
    value = d.value()
    return [value], d.attributes(op, value)


def public_names(op):
    """What `F` calls an operator."""
    names = [n for n in dir(nd) if OPS.get(n) is op and n[0] != "_"] + [
        n for n, other in OPS.items() if other is op and n[0] != "_" and hasattr(nd, n)
    ]
    for folder in ("linalg", "contrib"):
        for name in dir(getattr(nd, folder)):
            if OPS.get(f"_{folder}_{name}") is op and name[0] != "_":
                names.append(f"{folder}.{name}")
    return sorted({n for n in names if not n.startswith("linalg_")})


def rule_of(op):
    """How an operator's arguments are drawn; `None` if nobody has said it."""
    if op.name in RULES:
        return RULES[op.name]
    if op.expr and not op.variadic and op.inputs and not callable(op.inputs):
        return elementwise
    kinds = {name: kind for name, (kind, default) in op.attrs.items() if default is REQUIRED}
    plain = all(
        kind in (boolean, axes, number)
        or made_by(kind, choice)
        or kind is integer
        and name in ("axis", "dim")
        for name, kind in kinds.items()
    )
    return by_kinds if op.inputs == ("data",) and not op.variadic and plain else None


def is_public(op):
    """Whether users call it: what begins with _ comes from these, or from `mx.np`."""
    return bool(public_names(op))


@rule("_plus_scalar")
def infix(d, op):
    """An infix sign between two values, or a value and a number."""
    first = d.value()
    if d.flag(0.3 if d.chain else 0.6):
        attrs = {"scalar": d.scalar()}
        if d.flag(0.3):
            attrs["reversed"] = True
        return [first], attrs
    return [first, d.beside(first)], {}


# -- shapes ----------------------------------------------------------------------------
@rule("Reshape")
def reshape(d, op):
    v = d.value()
    shape = list(d.cut(d.values[v].size, d.rng.randint(1, 4)))
    if d.flag(0.3) and 0 not in shape:
        shape[d.rng.randrange(len(shape))] = -1
    elif d.flag(0.2):
        return [v], {
            "shape": d.rng.choice(((-1, 0), (0, -1), (-3, -2), (-2,), (-1,))),
            **({"reverse": True} if d.flag(0.2) else {}),
        }
    return [v], {"shape": tuple(shape)}


for name in ("expand_dims", "squeeze", "transpose"):  # as np has them
    rule(name)(getattr(np_rules, name))


@rule("reverse")
def reverse(d, op):
    v = d.value()
    return [v], {
        "axis": d.rng.choice(
            [d.axis(d.ndim(v)), tuple(d.rng.sample(range(d.ndim(v)), d.rng.randint(1, d.ndim(v))))]
        )
    }


@rule("broadcast_to")
def broadcast_to(d, op):
    v = d.value()
    return [v], {"shape": tuple(d.length() if n == 1 else n for n in d.shape_of(v))}


@rule("broadcast_axis")
def broadcast_axis(d, op):
    v = d.value()
    ones = [i for i, n in enumerate(d.shape_of(v)) if n == 1]
    some = tuple(d.rng.sample(ones, d.rng.randint(1, len(ones))))
    return [v], {"axis": some, "size": tuple(d.length() for _ in some)}


@rule("broadcast_like")
def broadcast_like(d, op):
    v = d.value()
    return [v, d.shaped([d.length() if n == 1 else n for n in d.shape_of(v)])], {}


@rule("reshape_like")
def reshape_like(d, op):
    v = d.value()
    return [v, d.shaped(d.cut(d.values[v].size, d.rng.randint(1, 4)))], {}


@rule("slice")
def slice_(d, op):
    v = d.value()
    parts = [d.part(n) for n in d.shape_of(v)[: d.rng.randint(1, d.ndim(v))]]
    begin, end, step = map(tuple, zip(*parts, strict=True))
    return [v], {"begin": begin, "end": end, **({"step": step} if any(step) else {})}


@rule("slice_axis")
def slice_axis(d, op):
    v = d.value()
    axis = d.axis(d.ndim(v))
    begin, end, _ = d.part(d.shape_of(v)[axis], steps=False)
    return [v], {"axis": axis, "begin": begin or 0, "end": end}


@rule("slice_like")
def slice_like(d, op):
    v = d.value()
    other = d.shaped([d.rng.randint(1, max(n, 1)) for n in d.shape_of(v)])
    axes_ = tuple(d.rng.sample(range(d.ndim(v)), d.rng.randint(1, d.ndim(v))))
    return [v, other], {"axes": axes_} if d.flag() else {}


@rule("Concat", "stack")
def concat(d, op):
    first = d.value()
    axis = d.axis(d.ndim(first))
    others = []
    for _ in range(d.rng.randint(0, 3)):
        shape = list(d.shape_of(first))
        if op.name == "Concat":
            shape[axis] = d.length()
        others.append(d.shaped(shape, first))
    return [first, *others], {"dim" if op.name == "Concat" else "axis": axis}


@rule("add_n")
def add_n(d, op):
    first = d.value()
    return [first, *(d.shaped(d.shape_of(first), first) for _ in range(d.rng.randint(0, 3)))], {}


@rule("SliceChannel")
def split(d, op):
    v = d.value()
    axis = d.axis(d.ndim(v))
    n = d.shape_of(v)[axis]
    parts = d.rng.choice([k for k in (1, 2, 3, 5, 7) if n % k == 0])
    squeezed = n == parts and d.ndim(v) > 1 and d.flag()
    return (
        [v],
        {"num_outputs": parts, "axis": axis, **({"squeeze_axis": True} if squeezed else {})},
        parts,
    )


@rule("tile", "repeat")
def tile(d, op):
    v = d.value()
    if op.name == "tile":
        return [v], {
            "reps": tuple(d.rng.randint(1, 3) for _ in range(d.rng.randint(1, d.ndim(v) + 1)))
        }
    return [v], {
        "repeats": d.rng.randint(1, 3),
        **({"axis": d.axis(d.ndim(v))} if d.flag(0.7) else {}),
    }


@rule("Pad")
def pad(d, op):
    v = d.rank(d.rng.choice((4, 4, 5)))
    shape, mode = d.shape_of(v), d.rng.choice(("constant", "edge", "reflect"))
    most = [2 if mode != "reflect" else max(min(n - 1, 2), 0) for n in shape]
    width = [0] * 4 + [d.rng.randint(0, n) for n in most[2:] for _ in range(2)]
    more = {"constant_value": float(d.scalar())} if mode == "constant" else {}
    return [v], {"mode": mode, "pad_width": tuple(width), **more}


@rule("depth_to_space", "space_to_depth")
def to_space(d, op):
    n, b = d.rng.randint(1, 2), 2
    shape = (
        (n, 4 * d.rng.randint(1, 2), 2, 3)
        if op.name == "depth_to_space"
        else (n, d.rng.randint(1, 3), 2 * d.rng.randint(1, 2), 4)
    )
    return [d.shaped(shape)], {"block_size": b}


@rule("diag")
def diag(d, op):
    v = d.value()
    if d.ndim(v) == 1:
        return [v], {"k": d.rng.randint(-2, 2)}
    one, two = d.rng.sample(range(d.ndim(v)), 2)
    return [v], {"k": d.rng.randint(-1, 1), **({"axis1": one, "axis2": two} if d.flag() else {})}


@rule("Crop")
def crop(d, op):
    v = d.rank(4)
    h, w = (d.rng.randint(1, max(n, 1)) for n in d.shape_of(v)[2:])
    return [v], {"h_w": (h, w), "center_crop": d.flag(), "num_args": 1}


@rule("Cast", "amp_cast")
def cast(d, op):
    v = d.value()
    return [v], {"dtype": d.rng.choice(("float32", "float64", *d.castable(v)))}


# -- reading at places -----------------------------------------------------------------
@rule("take")
def take(d, op):
    v = d.value()
    axis = d.axis(d.ndim(v))
    n, mode = d.shape_of(v)[axis], d.rng.choice(("clip", "wrap", None))
    more = 0 if mode is None or not n else 3
    return [v, d.index(d.shape(d.rng.choice((1, 1, 2))), n + more)], {
        **({"axis": axis} if d.flag(0.7) or axis else {}),
        **({"mode": mode} if mode else {}),
    }


@rule("pick")
def pick(d, op):
    v = d.value()
    axis, shape = d.axis(d.ndim(v)), list(d.shape_of(v))
    n, keep = shape[axis], d.flag(0.3)
    shape[axis : axis % len(shape) + 1] = [1] * keep
    return [v, d.index(shape or [1], n)], {"axis": axis, **({"keepdims": True} if keep else {})}


@rule("batch_take")
def batch_take(d, op):
    v = d.rank(2)
    n, m = d.shape_of(v)
    return [v, d.index((n,), m, "int32")], {}


@rule("gather_nd")
def gather_nd(d, op):
    v = d.value()
    m = d.rng.randint(1, d.ndim(v))
    places = d.length()
    rows = [d.rng.randrange(max(n, 1)) for n in d.shape_of(v)[:m] for _ in range(places)]
    return [v, d.new((m, places), "int32", role="data", values=rows)], {}


@rule("scatter_nd")
def scatter_nd(d, op):
    v = d.rank(1)
    n = d.shape_of(v)[0]
    shape = (n + d.rng.randint(0, 3),)
    places = d.rng.sample(range(shape[0]), n)
    return [v, d.new((1, n), "int32", role="data", values=places)], {"shape": shape}


@rule("one_hot")
def one_hot(d, op):
    depth = d.rng.randint(1, 5)
    more = {"on_value": float(d.scalar())} if d.flag(0.3) else {}
    if d.flag(0.3):
        whole = math.isfinite(more.get("on_value", 1)) and d.flag()
        more["dtype"] = "int32" if whole else "float32"
    return [d.index(d.shape(d.rng.choice((1, 2))), depth + 1)], {"depth": depth, **more}


@rule("Embedding")
def embedding(d, op):
    n, m = d.rng.randint(1, 5), d.rng.randint(1, 4)
    weight = d.shaped((n, m), dtype="float32")
    return [d.index(d.shape(d.rng.choice((1, 2))), n), weight], {"input_dim": n, "output_dim": m}


@rule("_contrib_index_copy")
def index_copy(d, op):
    v = d.value()
    n = d.shape_of(v)[0]
    k = d.rng.randint(1, n)
    places = d.new((k,), "int32", role="data", values=d.rng.sample(range(n), k))
    return [v, places, d.shaped((k, *d.shape_of(v)[1:]), v)], {}


@rule("_contrib_AdaptiveAvgPooling2D")
def adaptive_avg_pooling(d, op):
    return [d.rank(4)], {"output_size": (d.rng.randint(1, 4), d.rng.randint(1, 4))}


@rule("_contrib_BilinearResize2D")
def bilinear_resize(d, op):
    size = {"height": d.rng.randint(1, 5), "width": d.rng.randint(1, 5)}
    return [d.rank(4)], size | {"align_corners": d.flag()}


@rule("_contrib_ROIAlign", "ROIPooling")
def regions(d, op):
    v = d.rank(4)
    rois = d.index((d.rng.randint(1, 3), 5), 4, str(d.values[v].dtype))
    return [v, rois], {"pooled_size": (2, d.rng.randint(1, 2)), "spatial_scale": 0.5}


@rule("_contrib_MultiBoxPrior")
def multibox_prior(d, op):
    return [d.rank(4)], {"sizes": (0.5, 0.25), "ratios": (1.0, 2.0), "clip": d.flag()}


@rule("_contrib_MultiBoxTarget")
def multibox_target(d, op):
    b, n, m, classes = (d.rng.randint(1, 3) for _ in range(4))
    sizes = (1, n, 4), (b, m, 5), (b, classes, n)
    return [d.shaped(size, dtype="float32") for size in sizes], {}, 3


@rule("_contrib_MultiBoxDetection")
def multibox_detection(d, op):
    b, n, classes = (d.rng.randint(1, 3) for _ in range(3))
    sizes = (b, classes, n), (b, 4 * n), (1, n, 4)
    return [d.shaped(size, dtype="float32") for size in sizes], {"nms_topk": d.rng.randint(-1, 2)}


@rule("_contrib_box_iou")
def box_iou(d, op):
    first = d.shaped((d.rng.randint(1, 4), 4), dtype="float32")
    return [first, d.shaped((d.rng.randint(1, 4), 4), dtype="float32")], d.attributes(op, first)


@rule("_contrib_box_nms")
def box_nms(d, op):
    boxes = d.shaped((d.rng.randint(1, 4), 6), dtype="float32")
    form = d.rng.choice(("corner", "center"))  # of two, MXNet's gradient forgets one
    return [boxes], {
        "id_index": d.rng.randint(-1, 0),
        "topk": d.rng.randint(-1, 5),
        "in_format": form,
        "out_format": form,
    }


@rule("_contrib_bipartite_matching")
def bipartite_matching(d, op):
    scores = d.shaped((d.rng.randint(1, 4), d.rng.randint(1, 4)), dtype="float32")
    return [scores], {"threshold": 0.5, "is_ascend": d.flag(), "topk": d.rng.randint(-1, 2)}, 2


@rule("_contrib_box_encode")
def box_encode(d, op):
    b, n, m = d.rng.randint(1, 2), d.rng.randint(1, 4), d.rng.randint(1, 3)
    places = [d.index((b, n), k, "float32") for k in (2, m)]
    sizes = ((b, n, 4), (b, m, 4), (4,), (4,))
    return [*places, *(d.shaped(size, dtype="float32") for size in sizes)], {}, 2


@rule("_contrib_box_decode")
def box_decode(d, op):
    b, n = d.rng.randint(1, 2), d.rng.randint(1, 4)
    boxes = [d.shaped(size, dtype="float32") for size in ((b, n, 4), (1, n, 4))]
    return boxes, {"std0": 0.5, "format": d.rng.choice(("corner", "center"))}


@rule("_contrib_arange_like")
def arange_like(d, op):
    v = d.value()
    axis = d.rng.randrange(len(d.shape_of(v))) if d.flag() else None
    return [v], {"start": 1, "repeat": d.rng.randint(1, 2), "axis": axis}


@rule("fill_element_0index")
def fill_element(d, op):
    v = d.rank(2)
    n, m = d.shape_of(v)
    return [v, d.shaped((n,), v), d.index((n,), m, str(d.values[v].dtype))], {}


@rule("_unravel_index", "_ravel_multi_index")
def ravel(d, op):
    shape, n = (d.rng.randint(1, 3), d.rng.randint(1, 4)), d.length()
    kind = d.rng.choice(("int32", "int64"))
    if op.name == "_unravel_index":
        return [d.index((n,), shape[0] * shape[1], kind)], {"shape": shape}
    rows = [d.rng.randrange(k) for k in shape for _ in range(n)]
    return [d.new((2, n), kind, role="data", values=rows)], {"shape": shape}


@rule("where")
def where(d, op):
    x = d.value()
    y = d.shaped(d.shape_of(x), x)
    condition = d.shaped(d.shape_of(x)) if d.flag(0.8) else d.shaped(d.shape_of(x)[:1])
    return [condition, x, y], {}


@rule("clip")
def clip(d, op):
    low, high = sorted((float(d.scalar()), float(d.scalar())))
    return [d.value()], {"a_min": low, "a_max": high}


# -- reductions and orders -------------------------------------------------------------
@rule("norm")
def norm(d, op):
    v = d.float()
    axis = d.axes(d.ndim(v))
    if isinstance(axis, tuple) and len(axis) > 2:
        axis = axis[:2]
    return [v], {
        "ord": d.rng.choice((1, 2)),
        **({} if axis is None else {"axis": axis}),
        **({"keepdims": True} if d.flag(0.4) else {}),
    }


@rule("moments")
def moments(d, op):
    v = d.float()
    axis = d.axes(d.ndim(v))
    axis = tuple(range(d.ndim(v))) if axis is None else (axis,) if isinstance(axis, int) else axis
    return [v], {"axes": axis, "keepdims": d.flag()}, 2


@rule("topk")
def topk(d, op):
    v = d.value()
    axis = d.axis(d.ndim(v))
    kind = d.rng.choice(("value", "indices", "both", "mask"))
    attrs = {
        "axis": axis,
        "k": d.rng.randint(1, max(d.shape_of(v)[axis], 1)),
        "ret_typ": kind,
        "is_ascend": d.flag(),
    }
    return [v], attrs, 2 if kind == "both" else 1


@rule("multi_sum_sq", "multi_all_finite")
def many(d, op):
    values = [d.float() for _ in range(d.rng.randint(1, 3))]
    return values, {"num_arrays": len(values)}


@rule("softmax", "log_softmax", "softmin")
def softmax(d, op):
    v = d.float()
    attrs = {"axis": d.axis(d.ndim(v))} if d.flag(0.7) else {}
    if d.flag(0.2):
        attrs["temperature"] = d.rng.choice((0.5, 2.0))
    if op.name == "softmax" and d.ndim(v) > 1 and d.flag(0.15):
        axis = attrs.get("axis", -1)
        shape = list(d.shape_of(v))
        n = shape.pop(axis)
        return [v, d.index(shape, n + 1, "int32")], attrs | {"use_length": True}
    return [v], attrs


@rule("softmax_cross_entropy", "SoftmaxOutput", "SVMOutput")
def with_classes(d, op):
    v = d.rank(2)
    n, classes = d.shape_of(v)
    label = d.index((n,), classes, str(d.values[v].dtype))
    return [v, label], {} if op.name == "softmax_cross_entropy" else d.attributes(
        op, v, "grad_scale", "use_ignore", "normalization", "margin", "use_linear"
    )


@rule("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput")
def regression(d, op):
    v = d.float()
    return [v, d.shaped(d.shape_of(v), v)], d.attributes(op, v)


# -- products --------------------------------------------------------------------------
@rule("dot")
def dot(d, op):
    a = d.float() if d.flag(0.8) else d.value()
    shape, t_a, t_b = d.shape_of(a), d.flag(0.3), d.flag(0.3)
    k = shape[0 if t_a else -1]
    if d.flag(0.2):
        return [a, d.shaped((k,), a)], {"transpose_a": True} if t_a else {}
    b = d.shaped((d.length(), k) if t_b else (k, d.length()), a)
    return [a, b], {"transpose_a": t_a, "transpose_b": t_b}


@rule("batch_dot", "_linalg_gemm2", "_linalg_gemm")
def batch_dot(d, op):
    a = d.rank(3)
    n, rows, k = d.shape_of(a)
    t_a, t_b, m = d.flag(0.4), d.flag(0.4), d.length()
    rows, k = (k, rows) if t_a else (rows, k)
    b = d.shaped((n, m, k) if t_b else (n, k, m), a)
    attrs = {"transpose_a": t_a, "transpose_b": t_b}
    if op.name == "_linalg_gemm":
        return [a, b, d.shaped((n, rows, m), a)], attrs | {"alpha": 2.0, "beta": -0.5}
    return [a, b], attrs


@rule("scaled_dot_product_attention")
def attention(d, op):
    q = d.rank(3)
    n, rows, size = d.shape_of(q)
    if not size:
        q = d.new((n, rows, size := 2))
    keys, attrs = d.length(), {}
    k, v = d.shaped((n, keys, size), q), d.shaped((n, keys, d.length()), q)
    mask = []
    if np.isfinite(d.values[v]).all():  # a hidden key's value times 0 is no rule's business
        attrs = {"is_causal": d.flag(0.3)}
        mask = [d.shaped(d.rng.choice(((n, rows, keys), (n, 1, keys), (keys,))))] * d.flag(0.3)
    return [q, k, v, *mask], attrs | ({"scale": 0.5} if d.flag(0.3) else {})


@rule("FullyConnected")
def fully_connected(d, op):
    v = d.float()
    flat, n, bias = d.flag(0.7), d.rng.randint(1, 5), d.flag()
    shape = d.shape_of(v)
    k = math.prod(shape[1:]) if flat else shape[-1]
    return [v, d.shaped((n, k), v), *([d.shaped((n,), v)] if bias else [])], {
        "num_hidden": n,
        **({} if flat else {"flatten": False}),
        **({} if bias else {"no_bias": True}),
    }


@rule("_linalg_syrk", "_linalg_extractdiag", "_linalg_makediag")
def matrix(d, op):
    v = d.rank(2)
    if op.name == "_linalg_syrk":
        return [v], {"transpose": d.flag(), "alpha": d.rng.choice((1.0, -2.0))}
    return [v], {"offset": d.rng.randint(-1, 1)}


@rule("_linalg_trmm", "_linalg_trsm")
def triangular(d, op):
    a, n = d.positive_matrix()
    right, m = d.flag(), d.length()
    b = d.shaped((m, n) if right else (n, m), a)
    return [a, b], {"rightside": right, "transpose": d.flag(), "lower": d.flag()}


@rule("_linalg_potrf", "_linalg_potri", "_linalg_inverse", "_linalg_det", "_linalg_sumlogdiag")
def square_matrix(d, op):
    return [d.positive_matrix()[0]], {}


@rule("_linalg_slogdet")
def slogdet(d, op):
    return [d.positive_matrix()[0]], {}, 2


# -- layers ----------------------------------------------------------------------------
@rule("Convolution")
def convolution(d, op):
    rank = d.rng.choice((1, 2, 2))
    v = d.rank(rank + 2)
    shape = d.shape_of(v)
    kernel = tuple(d.rng.randint(1, min(max(n, 1), 3)) for n in shape[2:])
    group = shape[1] if d.flag(0.2) and shape[1] <= 4 else 1
    n, bias = group * d.rng.randint(1, 3), d.flag()
    weight = d.shaped((n, shape[1] // max(group, 1), *kernel), v)
    return [v, weight, *([d.shaped((n,), v)] if bias else [])], {
        "kernel": kernel,
        "num_filter": n,
        **d.steps_of_window(rank),
        **({"num_group": group} if group > 1 else {}),
        **({} if bias else {"no_bias": True}),
    }


@rule("Deconvolution")
def deconvolution(d, op):
    rank = d.rng.choice((1, 2))
    v = d.rank(rank + 2)
    kernel = tuple(d.rng.randint(1, 3) for _ in range(rank))
    n, bias = d.rng.randint(1, 3), d.flag(0.3)
    weight = d.shaped((d.shape_of(v)[1], n, *kernel), v)
    stride = tuple(d.rng.randint(1, 2) for _ in range(rank))
    return [v, weight, *([d.shaped((n,), v)] if bias else [])], {
        "kernel": kernel,
        "num_filter": n,
        "stride": stride,
        "no_bias": not bias,
        **({"pad": (1,) * rank} if d.flag(0.3) and min(kernel) > 1 else {}),
    }


@rule("Pooling")
def pooling(d, op):
    rank = d.rng.choice((1, 2, 2))
    v = d.rank(rank + 2)
    kind = d.rng.choice(("max", "avg", "sum"))
    if d.flag(0.2):
        return [v], {"kernel": (1,) * rank, "global_pool": True, "pool_type": kind}
    kernel = tuple(d.rng.randint(1, min(max(n, 1), 3)) for n in d.shape_of(v)[2:])
    attrs = {
        "kernel": kernel,
        "pool_type": kind,
        "stride": tuple(d.rng.randint(1, 2) for _ in range(rank)),
    }
    if min(kernel) > 1 and d.flag(0.3):
        attrs["pad"] = (1,) * rank
    if d.flag(0.3):
        attrs["pooling_convention"] = "full"
    if kind == "avg" and d.flag(0.3):
        attrs["count_include_pad"] = d.flag()
    return [v], attrs


@rule("UpSampling")
def up_sampling(d, op):
    return [d.rank(4, 20)], {"scale": 2, "sample_type": "nearest", "num_args": 1}


@rule("LRN")
def lrn(d, op):
    return [d.rank(4)], {"nsize": d.rng.choice((1, 3, 5))}


@rule("LeakyReLU")
def leaky(d, op):
    v = d.float()
    kind = d.rng.choice(("leaky", "elu", "selu", "gelu", "prelu"))
    if kind == "prelu" and d.ndim(v) > 1:
        return [v, d.shaped((d.shape_of(v)[1],), v)], {"act_type": "prelu"}
    return [v], {
        "act_type": "leaky" if kind == "prelu" else kind,
        **({"slope": 0.1} if d.flag() else {}),
    }


@rule("Activation", "SoftmaxActivation", "L2Normalization")
def of_floats(d, op):
    v = d.float(lambda v: d.ndim(v) > 1)
    return [v], d.attributes(op, v, *(n for n in op.attrs if n != "eps"))


@rule("LayerNorm")
def layer_norm(d, op):
    v = d.float()
    axis = d.axis(d.ndim(v))
    n = d.shape_of(v)[axis]
    return [v, d.shaped((n,), v), d.shaped((n,), v)], {
        "axis": axis,
        **({"eps": 0.01} if d.flag() else {}),
    }


@rule("InstanceNorm", "GroupNorm")
def instance_norm(d, op):
    v = d.rank(d.rng.choice((3, 4)))
    n = d.shape_of(v)[1]
    groups = d.rng.choice([k for k in (1, 2, 3) if n % k == 0])
    more = {"num_groups": groups} if op.name == "GroupNorm" else {}
    return [v, d.shaped((n,), v), d.shaped((n,), v)], {**more, "eps": 0.01}


@rule("BatchNorm")
def batch_norm(d, op):
    v = d.float(lambda v: d.ndim(v) > 1, shape=d.shape(d.rng.choice((2, 3, 4))))
    axis = d.rng.choice((1, 1, 1, -1))
    n, kind = d.shape_of(v)[axis], str(d.values[v].dtype)
    if not n:
        raise ValueError("a parameter without elements")
    mean = d.new((n,), kind, role="state")
    var = d.new((n,), kind, "positive", role="state")
    return [v, d.shaped((n,), v), d.shaped((n,), v), mean, var], {
        "eps": 0.01,
        **({"axis": axis} if axis != 1 else {}),
        **d.attributes(op, v, "fix_gamma", "use_global_stats"),
        **({"momentum": 0.5} if d.flag() else {}),
    }


@rule("Dropout")
def dropout(d, op):
    v = d.float()
    return [v], {
        "p": d.rng.choice((0.0, 0.3, 0.5)),
        **({"axes": (d.rng.randrange(d.ndim(v)),)} if d.flag(0.3) else {}),
    }


@rule("SequenceMask", "SequenceLast", "SequenceReverse")
def sequence(d, op):
    v = d.rank(d.rng.choice((2, 3)))
    steps, batch = d.shape_of(v)[:2]
    valued = op.name == "SequenceMask" and d.flag()
    more = {"value": float(d.scalar())} if valued else {}
    if d.flag(0.2):
        return [v], more
    length = d.new(
        (batch,),
        "float32",
        role="data",
        values=[d.rng.randint(1, max(steps, 1)) for _ in range(batch)],
    )
    return [v, length], {"use_sequence_length": True, **more}


@rule("CTCLoss")
def ctc_loss(d, op):
    v = d.rank(3)
    steps, batch, characters = d.shape_of(v)
    if not steps or characters < 2:
        raise ValueError("no step, or a blank alone")
    n, last = d.rng.randint(1, steps), d.flag()
    word = [d.rng.randrange(characters - 1) + (not last) for _ in range(batch * n)]
    lengths = {
        name: [d.rng.randint(1, most) for _ in range(batch)]
        for name, most in (("use_data_lengths", steps), ("use_label_lengths", n))
        if d.flag(0.3)
    }
    if "use_label_lengths" not in lengths:  # shorter words, then, are padded
        ends = [d.rng.randint(1, n) for _ in range(batch)]
        word = [c if i % n < ends[i // n] else -last for i, c in enumerate(word)]
    given = [((batch, n), word), *(((batch,), some) for some in lengths.values())]
    return [v, *(d.new(s, "float32", role="data", values=some) for s, some in given)], {
        **dict.fromkeys(lengths, True),
        **({"blank_label": "last"} if last else {}),
    }


# -- arrays out of nothing -------------------------------------------------------------
@rule("_zeros", "_ones", "_full")
def filled(d, op):
    more = {"val": float(d.scalar())} if op.name == "_full" else {}
    return [], {"shape": d.shape(), **more, "dtype": d.dtype()}


@rule("_arange")
def arange(d, op):
    start, step = d.rng.randint(-3, 3), d.rng.choice((1.0, 0.5, 2.0))
    return [], {
        "start": start,
        "stop": start + step * d.rng.randint(1, 5),
        "step": step,
        "dtype": d.dtype(),
    }


@rule("_eye")
def eye(d, op):
    return [], {"N": d.rng.randint(1, 4), "M": d.rng.randint(0, 4), "k": d.rng.randint(-1, 1)}


# -- which there are -------------------------------------------------------------------
def is_drawn(op):
    """Whether programs have an operator: its arguments can be drawn."""
    return bool(public_names(op)) and bool(rule_of(op)) and not op.name.startswith(tuple(LEFT_OUT))


OPERATORS = list({op.name: op for op in OPS.values()}.values())
BY_NAME = {name: op for op in OPERATORS if is_drawn(op) for name in public_names(op)}
NAMES = sorted(BY_NAME)
# What meets in one loop, so that it has to be drawn often: what goes over rows, and
# what reads at other places.
ROWS = sorted(
    set(NAMES)
    & set(
        "softmax softmax log_softmax softmin LayerNorm InstanceNorm BatchNorm "
        "L2Normalization norm sum sum mean mean max min prod argmax moments".split()
    )
)
SAME_SHAPE = "softmax log_softmax softmin L2Normalization LayerNorm".split()
MOVES = sorted(
    set(NAMES)
    & set("transpose reverse swapaxes slice slice_axis reshape tile broadcast_to".split())
)


# -- which of them round ---------------------------------------------------------------
# Not max and min: which of 0 and -0 is the larger, NumPy leaves to its loops.
EXACT = set(INFIX) - {"**", "%"} | set(
    "abs sign negative floor ceil rint round trunc relu square reciprocal sqrt logical_not _copy "
    "BlockGrad zeros_like ones_like clip where transpose SwapAxis Reshape Flatten expand_dims "
    "squeeze slice slice_axis slice_like Concat stack SliceChannel take pick gather_nd one_hot "
    "sort argsort topk argmax argmin argmax_channel Cast amp_cast Embedding repeat tile reverse "
    "Pad broadcast_to broadcast_like broadcast_axis batch_take diag SequenceMask SequenceLast "
    "SequenceReverse depth_to_space space_to_depth reshape_like elemwise_add elemwise_sub "
    "elemwise_mul elemwise_div broadcast_add broadcast_sub broadcast_mul broadcast_div "
    "broadcast_equal broadcast_not_equal broadcast_greater broadcast_greater_equal "
    "broadcast_lesser broadcast_lesser_equal broadcast_logical_and broadcast_logical_or "
    "broadcast_logical_xor Crop _zeros _ones _full _arange _eye shape_array size_array "
    "UpSampling _linalg_extractdiag _linalg_makediag make_loss _unravel_index _ravel_multi_index "
    "_contrib_index_copy fill_element_0index scatter_nd".split()
)
FLOATS = [np.dtype("float32")]
ROUND_WHOLE_NUMBERS = {"mean", "norm", "**"}


def is_exact(step, dtypes):
    """Whether a step's results are the nearest numbers to the true ones, or its inputs.

    dtypes:  of its outputs.
    """
    name = BY_NAME[step.op].name if step.op in BY_NAME else step.op
    if name in CONTROL:
        return all(is_exact(s, FLOATS) for body in step.attrs["bodies"] for s in body.steps)
    if name == "Pooling":
        return step.attrs["pool_type"] == "max"
    return (
        name in EXACT | np_rules.EXACT
        or name not in ROUND_WHOLE_NUMBERS
        and all(d.kind in "iub" for d in dtypes)
    )


def is_loose(step):
    """Whether rounding inside a step can change its results by more than their last
    digits: it adds up, or applies functions in turn."""
    if step.op in CONTROL:
        return any(is_loose(s) for body in step.attrs["bodies"] for s in body.steps)
    return step.op in np_rules.LOOSE or step.op in BY_NAME and BY_NAME[step.op].expr is None
