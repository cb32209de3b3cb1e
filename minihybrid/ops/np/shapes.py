"""Operators of the NumPy-like interface, continued: products, shapes, creation.

Defines: `_np_dot`, `_npi_matmul`, `_npi_einsum`; `_np_reshape`, `_npi_concatenate` and
         others; array creation.

Not supported: einsum with lists of axes instead of subscripts.
"""

import re

import numpy as np

from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    Spec,
    axes,
    boolean,
    choice,
    dtype,
    integer,
    items,
    number,
    optional,
    shape,
)
from minihybrid.ops.elementwise import choose, literal
from minihybrid.ops.integers import scalar_number
from minihybrid.ops.joining import concat
from minihybrid.ops.layout import (
    NPX_CODES,
    infer_length,
    reshape,
    reshaped,
    slice_axis,
    squeezed,
    stretched,
    transpose,
    view,
)
from minihybrid.ops.linalg import triangle
from minihybrid.ops.neural import batch_dot
from minihybrid.ops.neural import dot as legacy_dot
from minihybrid.ops.np.names import FLOAT, filling, promoted, renamed, to
from minihybrid.ops.ordering import eye
from minihybrid.ops.random import SHAPED
from minihybrid.ops.reduce import sum_
from minihybrid.ops.registry import OPS, register
from minihybrid.ops.shapes import as_codes, axes_of, axis_of, broadcast, forward, known
from minihybrid.ops.tiling import diagonal, pad, reverse


# -- products --------------------------------------------------------------------------
def _product(name, rule, expand, doc):
    """Register a product of two arrays, with dtype promotion."""

    def infer(specs, **attrs):
        kind = promoted(*(s.dtype for s in specs))
        new = rule(*(s.shape for s in specs)) if known(specs) else None
        return specs, [Spec(new, kind)]

    def mixed(specs, a, b):
        kind = promoted(*(s.dtype for s in specs))
        out = expand(
            to(a, specs[0].dtype, kind), to(b, specs[1].dtype, kind), *(s.shape for s in specs)
        )
        new = rule(*(s.shape for s in specs))
        return out if new else reshape(out, shape=())

    return register(name, inputs=("a", "b"), infer=infer, expand=mixed, doc=doc)


def _dot_rule(a, b):
    if not a or not b:
        return a or b
    if a[-1] != b[max(len(b) - 2, 0)]:
        raise ShapeError(
            f"dot: {a} times {b} does not work: the last length of the "
            "first and the last but one of the second must be equal"
        )
    return (*a[:-1], *b[:-2], *b[-1:]) if len(b) > 1 else a[:-1]


def _dot(a, b, old_a, old_b):
    if not old_a or not old_b:
        return OPS["broadcast_mul"](a, b)
    if len(old_b) > 2:
        order = list(range(len(old_b)))
        b = transpose(b, axes=(order[-2], *order[:-2], order[-1]))
    return legacy_dot(a, b)


dot = _product(
    "_np_dot", _dot_rule, _dot, "The product over the last axis of a and the last but one of b."
)


def _matmul_rule(a, b):
    if not a or not b:
        raise ShapeError("matmul: an array without axes has no product of matrices; use a * b")
    if len(a) < 3 and len(b) < 3:
        return _dot_rule(a, b)
    m, n = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
    if m[-1] != n[-2]:
        raise ShapeError(
            f"matmul: {a} times {b} does not work: the inner lengths "
            f"{m[-1]} and {n[-2]} must be equal"
        )
    batch = broadcast("matmul", [Spec(m[:-2], FLOAT), Spec(n[:-2], FLOAT)])[1][0].shape
    return (*batch, *m[-2:-1][: len(a) > 1], *n[-1:][: len(b) > 1])


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


matmul = _product(
    "_npi_matmul",
    _matmul_rule,
    _matmul,
    "Products of the matrices in the last two axes; others broadcast.",
)


# -- shapes ----------------------------------------------------------------------------
NEWSHAPE = {"newshape": (shape, REQUIRED)}
ORDER = {"order": (choice("C"), "C")}
np_reshape = view(
    "_np_reshape",
    "_npi_reshape",
    attrs=NEWSHAPE | ORDER,
    rule=lambda old, newshape, order: infer_length("reshape", old, list(newshape)),
    doc="The same numbers under another shape; one length may be -1.",
)
view(
    "_npx_reshape",
    rule=lambda old, newshape, reverse, order: reshaped(
        old, newshape, reverse, "npx.reshape", NPX_CODES
    ),
    attrs=NEWSHAPE | {"reverse": (boolean, False)} | ORDER,
    doc="The same numbers under another shape; codes -1, -2, -3, -4, -5, -6.",
)


view(
    "_np_squeeze",
    rule=squeezed,
    attrs={"axis": (axes, None)},
    doc="Take out axes of length 1, all of them unless told.",
)
register(
    "_np_transpose",
    inputs=("a",),
    attrs={"axes": (optional(shape), None)},
    infer=lambda specs, axes: transpose.infer(specs, axes=axes or ()),
    expand=lambda specs, a, axes: transpose(a, axes=axes or ()),
    doc=transpose.doc,
)


renamed(
    "_npi_broadcast_to",
    OPS["broadcast_to"],
    infer=forward(stretched),
    eager=lambda data, *, shape: np.broadcast_to(data, shape),
)  # here 0 is a length


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


# -- einsum ----------------------------------------------------------------------------
def _subscripts(op_shapes, subscripts):
    """Return (letters of each input, letters of the output, letter -> length).

    An ellipsis is replaced by unused letters, the same ones in each input, aligned at the
    last axis. An axis of length 1 broadcasts to the letter's length.
    """
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    ins = left.split(",")
    if len(ins) != len(op_shapes) or not re.fullmatch(
        r"([A-Za-z]*(\.{3})?[A-Za-z]*,)*", f"{left},{right},"
    ):
        raise AttrError(
            f"einsum: '{subscripts}' does not fit {len(op_shapes)} inputs; "
            "one group of letters an input is needed, such as 'ij,jk->ik'"
        )
    counts = [
        len(old) - len(letters) + 3 if "..." in letters else 0
        for letters, old in zip(ins, op_shapes, strict=True)
    ]
    free = [c for c in LETTERS if c not in left][: max([*counts, 0])]
    ins = [
        letters.replace("...", "".join(free[len(free) - max(n, 0) :]))
        for letters, n in zip(ins, counts, strict=True)
    ]
    if arrow:
        right = right.replace("...", "".join(free))
    else:
        once = sorted(c for c in set(left) - set(",.") if left.count(c) == 1)
        right = "".join([*free, *once])
    sizes = {}
    for letters, old in zip(ins, op_shapes, strict=True):
        if len(letters) != len(old):
            raise ShapeError(f"einsum: '{letters}' does not fit shape {old}")
        for c, n in zip(letters, old, strict=True):
            known_size = sizes.get(c, 1)
            if n != known_size and 1 not in (n, known_size):
                raise ShapeError(f"einsum: '{c}' means {known_size} and {n} in '{subscripts}'")
            sizes[c] = n if known_size == 1 else known_size
    if set(right) - sizes.keys() or len(set(right)) < len(right):
        raise AttrError(
            f"einsum: '{subscripts}': each letter of the result must be one of an input, once"
        )
    return ins, right, sizes


def _einsum_infer(specs, subscripts, optimize):
    kind = promoted(*(s.dtype for s in specs))
    if not known(specs):
        return specs, [Spec(None, kind)]
    _, right, sizes = _subscripts([s.shape for s in specs], subscripts)
    return specs, [Spec(tuple(sizes[c] for c in right), kind)]


def _einsum_expand(specs, *data, subscripts, optimize):
    """Contract the inputs from left to right by matrix products over shared letters."""
    kind = promoted(*(s.dtype for s in specs))
    ins, right, sizes = _subscripts([s.shape for s in specs], subscripts)
    done, have = None, ""
    for i, (value, letters) in enumerate(zip(data, ins, strict=True)):
        value = to(value, specs[i].dtype, kind)
        new = tuple(sizes[c] for c in letters)
        if new != specs[i].shape:
            value = OPS["_npi_broadcast_to"](value, shape=new)
        for c in [c for c in dict.fromkeys(letters) if letters.count(c) > 1]:
            while letters.count(c) > 1:  # a repeated letter: take the diagonal, as last axis
                one, two = [k for k, d in enumerate(letters) if d == c][:2]
                value = diagonal(value, offset=0, axis1=one, axis2=two)
                letters = "".join(d for k, d in enumerate(letters) if k not in (one, two)) + c
        needed = right + "".join(ins[i + 1 :])
        if done is None:
            done, have = value, letters
        else:
            done, have = _contract(done, have, value, letters, needed, sizes)
    axes = [k for k, c in enumerate(have) if c not in right]
    if axes:
        done = sum_(done, axis=tuple(axes))
    have = "".join(c for c in have if c in right)
    if not right:
        return np_reshape(done, newshape=())
    return transpose(done, axes=tuple(have.index(c) for c in right))


def _contract(a, left, b, right, needed, sizes):
    """Sum over shared letters that aren't used later; return (value, its letters)."""
    batch = [c for c in left if c in right and c in needed]
    inner = [c for c in left if c in right and c not in needed]
    only_a, only_b = ([c for c in x if c not in y] for x, y in ((left, right), (right, left)))

    def matrices(value, letters, *groups):
        order = tuple(letters.index(c) for group in groups for c in group)
        value = transpose(value, axes=order) if order else value
        return np_reshape(
            value,
            newshape=[int(np.prod([sizes[c] for c in group], dtype=np.int64)) for group in groups],
        )

    out = batch_dot(
        matrices(a, left, batch, only_a, inner), matrices(b, right, batch, inner, only_b)
    )
    letters = [*batch, *only_a, *only_b]
    return np_reshape(out, newshape=[sizes[c] for c in letters]), "".join(letters)


def einsum_letters(value):
    """Parse einsum subscripts, such as 'ij,jk->ik'."""
    if not re.fullmatch("[A-Za-z,. ]{0,200}(->[A-Za-z. ]{0,60})?", value):
        raise ValueError
    return value


einsum = register(
    "_npi_einsum",
    variadic=True,
    infer=_einsum_infer,
    expand=_einsum_expand,
    attrs={"subscripts": (einsum_letters, REQUIRED), "optimize": (integer, 0)},
    doc="Sums of products over letters: 'ij,jk->ik' is a product of matrices.",
)


# -- reordering ------------------------------------------------------------------------
def _roll_rule(old, shift, axis):
    count = len(axes_of("roll", axis, len(old))) if axis is not None else 1
    if len(shift) not in (1, count):
        raise ShapeError(
            f"roll: {len(shift)} shifts for {count} axes; one for each, or one for all, is needed"
        )
    return old


def _rolled(specs, data, shift, axis):
    old = specs[0].shape
    flat = reshape(data, shape=(-1,)) if axis is None else data
    now = (specs[0].size,) if axis is None else old
    places = (0,) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for a, by in zip(places, shift * len(places) if len(shift) == 1 else shift, strict=True):
        a = axis_of("roll", a, len(now))
        cut = now[a] - by % now[a] if now[a] else 0
        flat = concat(
            slice_axis(flat, axis=a, begin=cut, end=None),
            slice_axis(flat, axis=a, begin=0, end=cut),
            dim=a,
        )
    return flat if axis is not None else np_reshape(flat, newshape=old)


register(
    "_np_roll",
    expand=_rolled,
    infer=forward(_roll_rule),
    attrs={"shift": (shape, REQUIRED), "axis": (axes, None)},
    doc="Each element moved by `shift` places; those at the end come first.",
)
register(
    "_npi_flip",
    attrs={"axis": (axes, None)},
    infer=forward(lambda old, axis: (axes_of("flip", axis, len(old)), old)[1]),
    expand=lambda specs, data, axis: reverse(data, axis=axes_of("flip", axis, len(specs[0].shape))),
    doc="Axes read from back to front, all of them unless told.",
)
register(
    "_np_diag",
    attrs={"k": (integer, 0)},
    infer=lambda specs, k: OPS["diag"].infer(specs, k=k, axis1=0, axis2=1),
    expand=lambda specs, data, k: OPS["diag"](data, k=k),
    doc=OPS["diag"].doc,
)
renamed("_np_diagonal", diagonal)


register(
    "_npi_tril",
    attrs={"k": (integer, 0)},
    infer=lambda specs, k: triangle.infer(specs),
    expand=lambda specs, data, k: triangle(data, offset=k),
    doc="The lower triangle of matrices, zeros elsewhere.",
)


def widths(value):
    """Parse (before, after) pad widths for each axis, as a tuple of pairs."""
    return tuple((integer(a), integer(b)) for a, b in items(value))


def _flat(pad_width):
    return tuple(n for pair in pad_width for n in pair)


register(
    "_npi_pad",
    attrs={
        "pad_width": (widths, REQUIRED),
        "mode": (choice("constant", "edge", "reflect"), "constant"),
        "constant_value": (number, 0.0),
    },
    infer=lambda specs, pad_width, **more: pad.infer(specs, pad_width=_flat(pad_width), **more),
    expand=lambda specs, data, pad_width, **more: pad(data, pad_width=_flat(pad_width), **more),
    doc=pad.doc,
)


# -- joining ---------------------------------------------------------------------------
def _join(name, prepare, doc, **attrs):
    """Register a joining operator; `prepare` returns the arrays' shapes and the axis."""

    def infer(specs, **attrs):
        kind = promoted(*(s.dtype for s in specs))
        if not known(specs):
            return specs, [Spec(None, kind)]
        shapes, axis = prepare([s.shape for s in specs], **attrs)
        try:
            _, (out,) = concat.infer([Spec(s, kind) for s in shapes], dim=axis)
        except ShapeError as error:
            public_name = name.rpartition("npi_")[2]
            raise ShapeError(str(error).replace(concat.name, public_name, 1)) from None
        return specs, [out]

    def expand(specs, *data, **attrs):
        kind = promoted(*(s.dtype for s in specs))
        shapes, axis = prepare([s.shape for s in specs], **attrs)
        return concat(
            *(
                np_reshape(to(d, s.dtype, kind), newshape=new)
                if new != s.shape
                else to(d, s.dtype, kind)
                for d, s, new in zip(data, specs, shapes, strict=True)
            ),
            dim=axis,
        )

    return register(name, variadic=True, infer=infer, expand=expand, doc=doc, attrs=attrs)


def _one_more(olds, axis):
    axis = axis_of("stack", axis, len(olds[0]) + 1)
    if len(set(olds)) > 1:
        raise ShapeError(f"stack: the shapes {' and '.join(map(str, olds))} must be equal")
    return [(*s[:axis], 1, *s[axis:]) for s in olds], axis


def at_least(n, old):
    """Return the shape padded with axes of length 1, as atleast_1d, 2d and 3d do."""
    if n == 3 and len(old) == 2:
        return (*old, 1)
    if n == 3 and len(old) == 1:
        return (1, *old, 1)
    return (1,) * (n - len(old)) + tuple(old)


_join(
    "_npi_concatenate",
    lambda olds, axis: (
        ([(int(np.prod(s, dtype=np.int64)),) for s in olds], 0) if axis is None else (olds, axis)
    ),
    "Join arrays along an axis; `None` joins them flat.",
    axis=(optional(integer), 0),
)
_join("_npi_stack", _one_more, "Join arrays along a new axis.", axis=(integer, 0))
_join("_npi_vstack", lambda olds: ([at_least(2, s) for s in olds], 0), "Join arrays as rows.")
_join(
    "_npi_hstack",
    lambda olds: ([at_least(1, s) for s in olds], min(len(at_least(1, olds[0])) - 1, 1)),
    "Join arrays along the second axis; vectors along their only one.",
)
_join(
    "_npi_dstack",
    lambda olds: ([at_least(3, s) for s in olds], 2),
    "Join arrays along the third axis.",
)
_join(
    "_npi_column_stack",
    lambda olds: ([s if len(s) > 1 else (int(np.prod(s)), 1) for s in olds], 1),
    "Join vectors as columns.",
)


# -- array creation --------------------------------------------------------------------
renamed("_npi_zeros", OPS["_zeros"])
renamed("_npi_ones", OPS["_ones"])
register(
    "_npi_arange",
    inputs=(),
    doc=OPS["_arange"].doc,
    attrs={
        "start": (number, REQUIRED),
        "stop": (optional(number), None),
        "step": (number, 1.0),
        "dtype": (dtype, FLOAT),
    },
    infer=lambda specs, **a: OPS["_arange"].infer(specs, repeat=1, **a),
    eager=lambda **a: OPS["_arange"].eager(repeat=1, **a),
    stores=True,
    cpu=lambda k, out, **a: OPS["_arange"].cpu(k, out, repeat=1, **a),
)


def _sized(name, op):
    """Register a random operator whose shape argument is `size`."""

    def shaped(function):
        return lambda *specs, size, **a: function(*specs, shape=size or (), **a)

    attrs = {k: v for k, v in op.attrs.items() if k not in SHAPED}
    attrs = attrs | {"size": (optional(shape), ()), "dtype": SHAPED["dtype"]}
    renamed(
        name, op, infer=shaped(op.infer), eager=shaped(op.eager), expr=shaped(op.expr), attrs=attrs
    )


_sized("_npi_uniform", OPS["_random_uniform"])
_sized("_npi_normal", OPS["_random_normal"])


def _eye(name, shape_of, attrs):
    def created(op):
        return lambda *specs, dtype, **a: op(*specs, **shape_of(**a), dtype=dtype)

    renamed(
        name,
        eye,
        infer=created(eye.infer),
        eager=created(eye.eager),
        expr=created(eye.expr),
        attrs={**attrs, "dtype": (dtype, FLOAT)},
    )


_eye(
    "_npi_eye",
    lambda N, M, k: {"N": N, "M": M or 0, "k": k},
    {"N": (integer, REQUIRED), "M": (optional(integer), None), "k": (integer, 0)},
)
_eye("_npi_identity", lambda shape: {"N": shape[0], "M": 0, "k": 0}, {"shape": (shape, REQUIRED)})


def _full_like_infer(specs, fill_value, dtype):
    kind = dtype or specs[0].dtype
    filling("full_like", fill_value, kind)
    return specs, [Spec(specs[0].shape, kind)]


register(
    "_npi_full_like",
    inputs=("a",),
    attrs={"fill_value": (scalar_number, REQUIRED), "dtype": (dtype, None)},
    infer=_full_like_infer,
    eager=lambda a, *, fill_value, dtype: np.full_like(a, fill_value, dtype),
    expr=lambda fill_value, dtype: literal(fill_value),
    grad=lambda g, out, a, **_: (None,),
    doc="One value in the shape of the input.",
)


def _where_infer(specs):
    kind = promoted(*(s.dtype for s in specs[1:]))
    _, (out,) = broadcast("where", [Spec(s.shape, kind) for s in specs])
    return specs, [out]


def _where_expand(specs, condition, x, y):
    kind = promoted(*(s.dtype for s in specs[1:]))
    return choose(condition, to(x, specs[1].dtype, kind), to(y, specs[2].dtype, kind))


register(
    "_npi_where",
    inputs=("condition", "x", "y"),
    infer=_where_infer,
    expand=_where_expand,
    doc="x where the condition is not 0, else y.",
)
