"""Joining: concat, stack, add_n."""

import numpy as np

from minihybrid.core.op import REQUIRED, AttrError, ShapeError, Spec, integer
from minihybrid.ops.cpu.machine import MOVED
from minihybrid.ops.layout import expand_dims, slice_axis
from minihybrid.ops.reduce import split_at
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import agree, axis_of, common_dtype, forward, known, merge, same_shape


def _concat_infer(specs, dim):
    kind = common_dtype("Concat", specs)
    if not known(specs):
        return specs, [Spec(None, kind)]
    first = specs[0].shape
    dim = axis_of("Concat", dim, len(first))
    rest = first[:dim] + first[dim + 1 :]
    if not all(agree(s.shape[:dim] + s.shape[dim + 1 :], rest) for s in specs):
        shapes = ", ".join(str(s.shape) for s in specs[:5])
        raise ShapeError(
            f"Concat: the inputs have shapes {shapes}, but along axis {dim} only arrays of "
            "otherwise equal lengths can be joined; choose another dim, or reshape them"
        )
    total = sum(s.shape[dim] for s in specs)
    return specs, [Spec((*first[:dim], total, *first[dim + 1 :]), kind)]


def _concat_cpu(k, *data, dim):
    *data, out = data
    before, work = 0, MOVED * out.size
    outer, total, inner = split_at(out.shape, dim)
    for part in data:
        n = part.shape[dim] * inner
        with k.share("i", outer, work=work), k.share("j", n, work=work):
            k(f"{out}[i * {total * inner} + {before} + j] = {part}[i * {n} + j]")
        before += n


def _concat_gpu(k, *data, dim):
    """Use a thread per element of the result, which finds its source array."""
    *data, out = data
    ends, keyword = 0, "if"
    outer, total, inner = split_at(out.shape, dim)
    with k.each(("i", outer), ("j", total * inner)):
        for part in data:
            n = part.shape[dim] * inner
            with k.block(f"{keyword} j < {ends + n}:"):
                k(f"{out}[i * {total * inner} + j] = {part}[i * {n} + j - {ends}]")
            ends, keyword = ends + n, "elif"


concat = register(
    "Concat",
    "concat",
    variadic=True,
    attrs={"dim": (integer, 1)},
    infer=_concat_infer,
    eager=lambda *data, dim: np.concatenate(data, axis=dim),
    cpu=_concat_cpu,
    gpu=_concat_gpu,
    contiguous_concat=lambda specs, dim: split_at(specs[0].shape, dim)[0] == 1,
    grad=lambda g, out, *data, dim: tuple(
        concat_part(g, *data, dim=dim, number=i) for i in range(len(data))
    ),
    doc="Join arrays along an existing axis.",
)


def _concat_part_expand(specs, joined, *data, dim, number):
    begin = sum(s.shape[dim] for s in specs[1 : number + 1])
    return slice_axis(joined, axis=dim, begin=begin, end=begin + specs[number + 1].shape[dim])


def _concat_part_infer(specs, dim, number):
    (joined, kind), *parts = specs
    if not 0 <= number < len(parts):
        raise AttrError(f"_concat_part: there is no part {number} of {len(parts)}")
    _, (whole,) = _concat_infer([Spec(p.shape, kind) for p in parts], dim)
    if known(specs):
        merge("_concat_part", "the joined array", joined, whole.shape)
    return specs, [Spec(parts[number].shape, kind)]


concat_part = register(
    "_concat_part",
    variadic=True,
    attrs={"dim": (integer, 1), "number": (integer, REQUIRED)},
    infer=_concat_part_infer,
    expand=_concat_part_expand,
    doc="One part of a joined array (the first input), which was made of the others.",
)


def _stack_rule(*olds, axis):
    axis = axis_of("stack", axis, len(olds[0]) + 1)
    if any(old != olds[0] for old in olds):
        raise ShapeError(f"stack: the shapes {' and '.join(map(str, olds))} must be equal")
    return (*olds[0][:axis], len(olds), *olds[0][axis:])


stack = register(
    "stack",
    variadic=True,
    attrs={"axis": (integer, 0)},
    infer=forward(_stack_rule),
    expand=lambda specs, *data, axis: concat(
        *(expand_dims(d, axis=axis) for d in data),
        dim=axis_of("stack", axis, len(specs[0].shape) + 1),
    ),
    doc="Join arrays along a new axis.",
)


add_n = register(
    "add_n",
    "ElementWiseSum",
    variadic=True,
    infer=lambda specs: same_shape("add_n", specs),
    expand=lambda specs, first, *others: sum(others, first),
    doc="The sum of arrays of one shape.",
)
