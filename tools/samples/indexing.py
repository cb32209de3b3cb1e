"""Samples of the operators that index, rearrange, order and factorize."""

from sampling import bits, chance, index, like, matrix, of, pos


def indexed():
    return {
        "_where": [
            of(bits(2, 3), (2, 3), (2, 3)),
            of(bits(3), (2, 3), (2, 1)),
            of(bits(0), (0,), (0,)),
        ],
        "where": [
            of(bits(2, 3), (2, 3), (2, 3)),
            of(bits(2), (2, 3), (2, 3)),
            of(bits(0), (0,), (0,)),
        ],
        "take": [
            of((3, 4), index(2, 3)),
            of((2, 3, 4), index(5), axis=1, mode="wrap"),
            of((2, 3), index(2), axis=-1, mode="raise"),
            of((3,), index(1)),
            of((3, 2), index(0)),
            of((3, 0), index(2)),
        ],
        "_put_take": [
            of((2, 3, 4), index(2, 3), like(3, 4)),
            of((2, 5, 4), index(5), like(2, 3, 4), axis=1, mode="wrap"),
            of((2, 0), index(2), like(3, 0)),
        ],
        "Embedding": [
            of(index(2, 4), (3, 5), input_dim=3, output_dim=5),
            of(index(2), (3, 1), input_dim=3, output_dim=1, sparse_grad=True),
            of(index(0), (3, 2), input_dim=3, output_dim=2),
        ],
        "_take_along": [
            of((2, 3, 4), index(2, 5, 4), axis=1),
            of((2, 3), index(2), mode="wrap"),
            of((0, 3), index(0, 2)),
        ],
        "_put_along": [
            of((2, 5, 4), index(2, 5, 4), like(2, 3, 4), axis=1),
            of((2,), index(2), like(2, 3), mode="wrap"),
            of((0, 2), index(0, 2), like(0, 3)),
        ],
        "pick": [
            of((2, 3), index(2)),
            of((2, 3, 4), index(2, 4), axis=1),
            of((2, 3), index(2, 1), keepdims=True),
            of((3, 2), index(2), axis=0),
            of((2, 3), index(2, 1), mode="wrap"),
            of((3,), index(1)),
            of((0, 3), index(0)),
        ],
        "batch_take": [of((2, 3), index(2)), of((0, 3), index(0))],
        "_flat_places": [
            of(index(2, 5), shape=(3, 4)),
            of(index(1, 2, 2), shape=(3,)),
            of(index(2, 0), shape=(3, 3)),
        ],
        "gather_nd": [
            of((3, 4), index(2, 5)),
            of((3, 4), index(1, 2, 2)),
            of((3, 3, 4), index(2, 1, 2)),
            of((3, 3), index(2, 0)),
        ],
        "scatter_nd": [
            of((5,), index(2, 5), shape=(3, 4)),
            of((2, 2, 4), index(1, 2, 2), shape=(3, 4)),
            of((0,), index(2, 0), shape=(3, 3)),
        ],
        "_contrib_index_copy": [of((3, 2), index(1), (1, 2)), of((4, 2, 2), index(1), (1, 2, 2))],
        "_ravel_multi_index": [
            of(index(2, 4), shape=(3, 3)),
            of(index(1, 2, 2), shape=(-1,)),
            of(index(3, 0), shape=(3, 3, 3)),
        ],
        "_unravel_index": [
            of(index(5), shape=(2, 2)),
            of(index(2, 2), shape=(4,)),
            of(index(0), shape=(2, 2)),
        ],
        "one_hot": [
            of(index(4), depth=3),
            of(index(2, 3), depth=2, on_value=5, off_value=-1),
            of(index(2), depth=3, dtype="int32"),
            of(index(0), depth=3),
        ],
        "fill_element_0index": [of((2, 3), (2,), index(2)), of((0, 3), (0,), index(0))],
    }


def rearranged():
    def diagonals(name):
        return [
            of((3, 4)),
            of((2, 3, 4), **{name: -1}, axis1=1, axis2=2),
            of((3, 2, 2), **{name: 1}, axis1=0, axis2=-1),
        ]

    return {
        "repeat": [
            of((2, 3), repeats=2),
            of((2, 3), repeats=3, axis=0),
            of((2, 3), repeats=2, axis=-1),
            of((0, 3), repeats=2, axis=1),
        ],
        "tile": [
            of((2, 3), reps=(2, 2)),
            of((2, 3), reps=2),
            of((3,), reps=(2, 1, 2)),
            of((2, 3), reps=()),
            of((0, 3), reps=(2, 1)),
        ],
        "broadcast_axis": [of((1, 3, 1), axis=(0, 2), size=(2, 4)), of((2, 1), axis=-1, size=3)],
        "broadcast_like": [
            of((2, 1), like(2, 3)),
            of((2, 1), like(2, 0)),
            of((1,), like(3, 0)),
            of((3,), like(4, 3)),
            of((1, 3), like(5, 6, 7), lhs_axes=0, rhs_axes=-1),
        ],
        "_frame": [
            of((2, 3), pad_width=(1, 0, 2, 1), value=-1.0),
            of((0, 3), pad_width=(1, 1, 0, 0)),
        ],
        "_cut_frame": [
            of((3, 6), like(2, 3), pad_width=(1, 0, 2, 1)),
            of((2, 3), like(0, 3), pad_width=(1, 1, 0, 0)),
        ],
        "Pad": [
            of((1, 2, 2, 3), mode="constant", constant_value=2, pad_width=(0, 0, 0, 0, 1, 2, 0, 1)),
            of((1, 2, 3), mode="edge", pad_width=(0, 0, 1, 0, 2, 3)),
            of((2, 3, 3), mode="reflect", pad_width=(0, 0, 2, 1, 0, 2)),
            of((0, 3), mode="edge", pad_width=(0, 0, 1, 0)),
        ],
        "slice_like": [
            of((4, 5), like(2, 3)),
            of((4, 5), like(2, 3), axes=1),
            of((4, 5), like(2, 3, 4), axes=(0, -1)),
            of((4, 3), like(0, 3)),
        ],
        "_split_v2": [
            of((7, 2), indices=(0, 2, 5), axis=0),
            of((2, 6), sections=3),
            of((2, 3), sections=3, squeeze_axis=True),
            of((0, 4), indices=(0, 1)),
        ],
        "Crop": [
            of((1, 2, 4, 5), offset=(1, 2), h_w=(2, 2)),
            of((1, 2, 4, 5), like(1, 3, 2, 3), center_crop=True),
        ],
        "reverse": [of((2, 3), axis=0), of((2, 3, 2), axis=(0, -1)), of((0, 3), axis=1)],
        "_np_moveaxis": [
            of((2, 3, 4), source=0, destination=-1),
            of((2, 3, 4), source=(2, 0), destination=(0, 1)),
        ],
        "depth_to_space": [of((1, 8, 2, 3), block_size=2)],
        "space_to_depth": [of((1, 2, 4, 6), block_size=2)],
        "_diagonal": diagonals("offset"),
        "_put_diagonal": [
            of((3,), like(3, 4)),
            of((2, 2), like(2, 3, 4), offset=-1, axis1=1, axis2=2),
        ],
        "diag": [*diagonals("k"), of((3,)), of((2,), k=1), of((2,), k=-2)],
        "shape_array": [of((2, 3, 4)), of((0, 3))],
        "size_array": [of((2, 3, 4)), of((0, 3))],
        "_identity_with_attr_like_rhs": [of((2, 3), like(2, 3)), of((0, 3), like(0, 3))],
    }


def ordered():
    def lines(**more):
        return [
            of((2, 5), **more),
            of((2, 5, 2), axis=1, **more),
            of((2, 3), axis=None, **more),
            of((0, 3), **more),
        ]

    return {
        "_order": [
            of((2, 5)),
            of((2, 5, 2), axis=1, is_ascend=False),
            of((9,)),
            of(index(2, 7)),
            of(index(2, 7), is_ascend=False),
            of((0, 3)),
        ],
        "sort": [*lines(), of((2, 3), is_ascend=False)],
        "argsort": [*lines(), of((2, 3), is_ascend=False, dtype="int32")],
        "topk": [
            *lines(k=2),
            *lines(k=2, ret_typ="value"),
            of((2, 5), k=3, ret_typ="mask"),
            of((2, 5), k=0, ret_typ="both"),
            of((2, 5), axis=None, k=2, ret_typ="mask"),
            of((2, 5, 2), axis=1, k=2, ret_typ="both", is_ascend=True, dtype="int32"),
        ],
        "argmax_channel": [of((2, 3)), of((2, 3, 4))],
        "_running_sum": [of((2, 3)), of((2, 3, 4), axis=1), of((0, 3))],
        "_np_cumsum": [of((2, 3)), of((2, 3), axis=-1, dtype="float64"), of((0, 3), axis=0)],
        "_histogram": [
            of((2, 5), index(3), smooth=False),
            of((7,), bin_cnt=3, range=(-1.0, 1.0)),
            of((0,), bin_cnt=2, range=(0, 1)),
        ],
        "_linspace": [
            of(start=0, stop=1, num=5),
            of(start=2, stop=-1, num=4, endpoint=False, dtype="float64"),
            of(start=1, stop=2, num=1),
            of(start=1, stop=2, num=0),
        ],
        "_eye": [of(N=3), of(N=2, M=4, k=1), of(N=3, M=2, k=-1, dtype="int32")],
        "norm": [
            of((2, 3)),
            of((2, 3, 4), axis=1),
            of((2, 3), axis=(0,), keepdims=True),
            of((2, 3), ord=1, axis=1),
            of((2, 3), out_dtype="float64"),
        ],
        "multi_all_finite": [of((2, 3), (4,)), of((2,)), of((0, 3))],
        "multi_sum_sq": [
            of(*shapes, smooth=False)
            for shapes in ([(2, 3), (4,)], [(2, 3)], [(0, 3), (2,)])  # float32, too coarse
        ],
    }


def drawn():
    samples = {
        "_random_randint": [
            of(low=-2, high=5, shape=(2, 3)),
            of(low=0, high=100, shape=4, dtype="int64"),
        ],
        "_sample_multinomial": [
            of(chance(2, 5)),
            of(chance(4), shape=3),
            of(chance(2, 3), shape=(2, 2), get_prob=True, dtype="float32"),
        ],
        "_shuffle": [of((5, 2)), of((4,)), of((0, 3))],
    }
    for name, params, other in (
        ("uniform", 2, {"low": -1, "high": 2}),
        ("normal", 2, {"loc": 1, "scale": 2}),
        ("exponential", 1, {"lam": 2}),
        ("gamma", 2, {"alpha": 0.5, "beta": 2}),
        ("poisson", 1, {"lam": 40}),
        ("negative_binomial", 2, {"k": 3, "p": 0.4}),
        ("generalized_negative_binomial", 2, {"mu": 20, "alpha": 0.3}),
    ):

        def arrays(*shape, name=name, params=params):
            last = chance(*shape) if name == "negative_binomial" else pos(*shape)
            return [pos(*shape)] * (params - 1) + [last]

        samples |= {
            f"_random_{name}": [of(shape=(2, 3)), of(shape=5, dtype="float64", **other)],
            f"_random_{name}_like": [of((2, 3), **other), of((0, 3))],
            # Numbers that were drawn have no gradient towards the parameters.
            f"_draw_{name}": [
                of(*arrays(2, 3), smooth=False),
                of(*arrays(4), smooth=False, dtype="float64"),
            ],
            f"_sample_{name}": [of(*arrays(2), smooth=False, shape=shape) for shape in ((), (3, 2))]
            + [of(*arrays(0), smooth=False, shape=2)],
        }
    return samples


def factorized():
    triangular = [
        of(matrix(3, 3), (3, 2)),
        of(matrix(2, 3, 3), (2, 2, 3), rightside=True, lower=False, alpha=2),
        of(matrix(1, 2, 2), (1, 2, 2), transpose=True),
        of(matrix(1, 2, 2), (1, 2, 2), transpose=True, rightside=True),
    ]
    square = [of(matrix(*shape)) for shape in ((3, 3), (2, 1, 2, 2), (0, 2, 2), (2, 3, 3))]
    # Only half of a symmetric matrix is read, but its gradient is symmetric.
    halves = [of(*inputs, smooth=False) for inputs, _, _ in square]
    return {
        "_triangle": [of((3, 4)), of((2, 3, 3), lower=False, offset=1), of((0, 2, 2))],
        "_linalg_gemm": [
            of((2, 3), (3, 4), (2, 4), alpha=2, beta=3),
            of((2, 3, 2), (2, 3, 4), (2, 2, 4), transpose_a=True),
        ],
        "_linalg_gemm2": [
            of((2, 3), (3, 4)),
            of((1, 2, 3, 4), (1, 2, 5, 4), transpose_b=True, alpha=-2),
            of((3, 2, 4), (4, 2, 5), axis=0),
        ],
        "_linalg_syrk": [of((2, 3)), of((2, 3, 2), transpose=True, alpha=2)],
        "_linalg_trmm": triangular,
        "_linalg_trsm": triangular,
        "_solve_triangle": [
            of(matrix(2, 3, 3), (2, 3, 2)),
            of(matrix(1, 3, 3), (1, 3, 2), transpose=True),
            of(matrix(1, 3, 3), (1, 3, 2), lower=False),
            of(matrix(0, 3, 3), (0, 3, 2)),
        ],
        "_linalg_potrf": halves,
        "_linalg_potri": square,
        "_linalg_inverse": square,
        "_linalg_slogdet": square,
        "_linalg_det": square,
        "_linalg_extractdiag": [of((3, 4), offset=1), of((2, 3, 3))],
        "_linalg_makediag": [of((3,), offset=-1), of((2, 3))],
        "_linalg_sumlogdiag": square[:2],
    }


def sequences():
    both = [
        of((4, 3, 2), index(3), use_sequence_length=True),
        of((3, 4), index(3), use_sequence_length=True, axis=1),
        of((4, 3)),
        of((2, 4, 2), axis=1),
        of((3, 0), index(0), use_sequence_length=True),
    ]
    return {
        "SequenceMask": [*both[:-1], of((3, 2), index(2), value=7, use_sequence_length=True)],
        "SequenceLast": both,
        "SequenceReverse": both,
    }


SAMPLES = drawn() | sequences() | factorized() | indexed() | rearranged() | ordered()
