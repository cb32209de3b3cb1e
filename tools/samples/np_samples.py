"""Samples of operators: those of the np and npx namespaces."""

from sampling import bits, of, pos, whole

from minihybrid.ops import OPS

SHAPES = (of((2, 3)), of(()), of((0, 3)))
TABLE = [
    op
    for op in {op.name: op for op in OPS.values()}.values()
    if op.name.startswith(("_npi_", "_np_", "_npx_"))
]
PAIRS = {
    op.name: [of((2, 1, 3), (4, 1)), of((), (2, 3)), of((0, 3), (1, 3)), of((), ())]
    for op in TABLE
    if op.inputs == ("lhs", "rhs")
}
SCALARS = {
    op.name: [
        of(shape, scalar=s, is_int=s == 2, smooth=bool(shape))
        for shape in ((2, 3), ())
        for s in (2.0, -1.5)
    ]
    for op in TABLE
    if "is_int" in op.attrs
}
RENAMED = {
    op.name: old.name
    for op in TABLE
    for old in OPS.values()
    if old.eager and old.eager is op.eager and old.name[:3] != "_np"
}


def reductions(**more):
    return [
        of((2, 3, 4), axis=(0, -1), **more),
        of((2, 3), **more),
        of((), **more),
        of((2, 3), axis=1, keepdims=True, **more),
        of((2, 0), axis=0, **more),
    ]


SAMPLES = {
    **PAIRS,
    **SCALARS,
    "_npi_mod": [of((2, 3), (3,), smooth=False), of((), (2, 3), smooth=False)],
    "_npi_power": [of(pos(2, 3), pos(3)), of(pos(), pos(2))],
    "_npi_power_scalar": [of(pos(2, 3), scalar=2.5, is_int=False), of((2,), scalar=3)],
    "_npi_rpower_scalar": [of(pos(2, 3), scalar=1.7, is_int=False), of(pos(), scalar=2)],
    "_np_sum": [*reductions(), of((2, 3), dtype="float64", initial=2.0)],
    "_np_prod": [*reductions(), of((2, 3), axis=0, initial=2.0)],
    "_np_max": reductions(),
    "_np_min": reductions(),
    "_np_any": reductions(),
    "_np_all": reductions(),
    "_npi_mean": reductions()[:-1],
    "_npi_std": reductions(ddof=0)[:2],
    "_npi_var": [*reductions()[:-1], of((2, 3), axis=1, ddof=1)],
    "_npi_argmax": [
        of((2, 3)),
        of((2, 3, 4), axis=1),
        of((2, 3), axis=-1, keepdims=True),
        of((3,)),
    ],
    "_npi_argmin": [of((2, 3)), of((2, 3, 4), axis=1), of((3,), axis=0)],
    "_np_dot": [
        of((2, 3), (3, 4)),
        of((3,), (3,)),
        of((2, 3), (3,)),
        of((3,), (2, 3, 4)),
        of((2, 3), (4, 3, 2)),
        of((), (2, 3)),
        of((0, 3), (3, 2)),
    ],
    "_npi_matmul": [
        of((2, 3), (3, 4)),
        of((3,), (3,)),
        of((2, 1, 3, 2), (4, 2, 3)),
        of((3,), (2, 3, 4)),
        of((2, 3, 4), (4,)),
        of((0, 2, 3), (3, 2)),
    ],
    "_np_reshape": [
        of((2, 3), newshape=(3, -1)),
        of((1, 1), newshape=()),
        of((), newshape=(1,)),
        of((0, 3), newshape=(3, 0)),
    ],
    "_npx_reshape": [
        of((2, 3, 4), newshape=(-2, -5)),
        of((2, 1, 6), newshape=(-2, -3, -6, 2, -1)),
        of((2, 3, 4), newshape=(-4,)),
        of((2, 3, 4), newshape=(-1, -2), reverse=True),
    ],
    "_np_squeeze": [of((2, 1, 3, 1)), of((2, 1, 3, 1), axis=1), of((1, 1)), of((0, 1))],
    "_np_transpose": [of((2, 3)), of((2, 3, 4), axes=(1, 2, 0)), of(()), of((0, 3))],
    "_npi_concatenate": [
        of((2, 3), (1, 3)),
        of((2, 3), (2, 1), axis=1),
        of((2, 3), (4,), axis=None),
        of((0, 3), (2, 3)),
    ],
    "_npi_stack": [of((2, 3), (2, 3)), of((2,), (2,), axis=-1), of((), ())],
    "_npi_vstack": [of((3,), (3,)), of((2, 3), (1, 3))],
    "_npi_hstack": [of((3,), (2,)), of((2, 3), (2, 1)), of((), ())],
    "_npi_dstack": [of((3,), (3,)), of((2, 3), (2, 3))],
    "_npi_column_stack": [of((3,), (3,)), of((3,), (3, 2))],
    "_npi_arange": [
        of(start=5),
        of(start=1, stop=2, step=0.3),
        of(start=4, stop=-4, step=-3, dtype="int64"),
        of(start=0),
    ],
    **{
        f"_npi_bitwise_{name}": [
            of(whole(2, 3), whole(3), smooth=False),
            of(whole(), whole(2), smooth=False),
        ]
        for name in ("and", "or", "xor")
    },
    "_npi_norm": [
        of((2, 3)),
        of((2, 3), axis=1, ord=1),
        of((2, 3), axis=0, ord=3),
        of((3,), ord=float("inf")),
        of((2, 3), axis=(0, 1), keepdims=True),
    ],
    "_npi_einsum": [
        of((2, 3), (3, 4), subscripts="ij,jk->ik"),
        of((3, 3), subscripts="ii"),
        of((2, 3), subscripts="ij->ji"),
        of((2, 3), (2, 3, 4), (4,), subscripts="bi,bij,j->b"),
        of((2, 2, 3), (3,), subscripts="iij,j"),
        of((2,), (3,), subscripts="i,j->ji"),
    ],
    "_np_roll": [
        of((2, 3), shift=1),
        of((2, 3), shift=(1, -2), axis=(0, 1)),
        of((0, 3), shift=2, axis=0),
    ],
    "_npi_flip": [of((2, 3)), of((2, 3), axis=1), of(())],
    "_np_diag": [of((3,), k=1), of((2, 3), k=-1), of((3, 3))],
    "_npi_uniform": [of(size=(2, 3)), of(size=(), low=-1, high=2)],
    "_npi_normal": [of(size=(2, 3)), of(size=(), loc=1, scale=2)],
    "_npi_eye": [of(N=3), of(N=2, M=3, k=1, dtype="float64")],
    "_npi_identity": [of(shape=(3, 3))],
    "_npi_tril": [of((2, 3)), of((2, 3, 3), k=-1)],
    "_npi_pad": [
        of((2, 3), pad_width=((1, 0), (0, 2)), constant_value=1.5),
        of((2, 3), pad_width=((1, 1), (2, 0)), mode="reflect"),
        of((2, 3), pad_width=((1, 1), (2, 0)), mode="edge"),
    ],
    "_npi_broadcast_to": [
        of((2, 1), shape=(2, 3)),
        of((), shape=(2,)),
        of((1, 3), shape=(2, 4, 3)),
        of((2, 1), shape=(2, 0)),
    ],
    "_npi_full_like": [of((2, 3), fill_value=1.5), of((), fill_value=2, dtype="float64")],
    "_npi_around": [of((2, 3), decimals=1, smooth=False), of((), smooth=False)],
    "_np_trace": [of((2, 3)), of((3, 3), offset=-1), of((2, 3, 4), axis1=2, axis2=0)],
    "_npi_average": [of((2, 3), weighted=False), of((2, 3), pos(2, 3), axis=(1,))],
    "_npi_tensordot": [
        of((2, 3), (4, 3, 2), a_axes_summed=(0, 1), b_axes_summed=(2, 1)),
        of((2, 3), (3,), a_axes_summed=(-1,), b_axes_summed=(0,)),
    ],
    "_npi_tensordot_int_axes": [
        of((2, 3), (3, 4), axes=1),
        of((2,), (3,), axes=0),
        of((2, 3), (2, 3), axes=2),
    ],
    "_npi_diff": [of((2, 3)), of((4, 3), n=2, axis=0)],
    "_npi_nan_to_num": [of((2, 3)), of((), nan=1.0, posinf=2.0, neginf=-2.0)],
    "_npi_where_lscalar": [of(bits(2, 3), (3,), scalar=1.5)],
    "_npi_where_rscalar": [of(bits(3), (2, 3), scalar=-2.0)],
    "_npi_where_scalar2": [of(bits(2, 3), x=1.5, y=-1.0, smooth=False)],
    "_npi_where": [of(bits(2, 3), (2, 3), (3,)), of(bits(3), (2, 3), ()), of(bits(0), (0,), (0,))],
}
