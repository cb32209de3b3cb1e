"""Samples of operators: convolution, pooling and their kin."""

from sampling import In, of

# Their attributes are numbers that no law could guess: size, kernel, stride, ...
PLAIN = {"size": (5, 6), "kernel": (3, 2), "stride": (1, 1), "dilate": (1, 1), "pad": (1, 0)}
STRIDED = {
    "size": (6, 5),
    "kernel": (3, 2),
    "stride": (2, 3),
    "dilate": (1, 2),
    "pad": (1, 1),
    "num_group": 2,
}  # out: (3, 2)
LINE = {"size": (7,), "kernel": (3,), "stride": (1,), "dilate": (2,), "pad": (2,)}
WIDE = {"size": (3, 4), "kernel": (1, 1), "stride": (2, 1), "dilate": (1, 1), "pad": (0, 0)}
POOL = {"size": (5, 4), "kernel": (2, 2), "stride": (2, 2), "pad": (0, 0), "outs": (2, 2)}
TILES = {"size": (4, 4), "kernel": (2, 2), "stride": (2, 2), "pad": (0, 0), "outs": (2, 2)}
EDGES = {"size": (4, 5), "kernel": (3, 2), "stride": (2, 2), "pad": (1, 1), "outs": (3, 3)}

SAMPLES = {
    "_conv": [
        of((2, 2, 5, 6), (3, 2, 3, 2), **PLAIN),
        of((2, 4, 6, 5), (6, 2, 3, 2), **STRIDED),
        of((2, 2, 7), (1, 2, 3), **LINE),
        of((1, 5, 3, 4), (7, 5, 1, 1), **WIDE),
        of((0, 2, 5, 6), (3, 2, 3, 2), **PLAIN),
    ],
    "_conv_data": [
        of((2, 3, 5, 5), (3, 2, 3, 2), **PLAIN),
        of((2, 6, 3, 2), (6, 2, 3, 2), **STRIDED),
        of((2, 1, 7), (1, 2, 3), **LINE),
        of((1, 7, 2, 4), (7, 5, 1, 1), **WIDE),
        of((0, 3, 5, 5), (3, 2, 3, 2), **PLAIN),
    ],
    "_conv_weight": [
        of((2, 2, 5, 6), (2, 3, 5, 5), **PLAIN),
        of((2, 4, 6, 5), (2, 6, 3, 2), **STRIDED),
        of((2, 2, 7), (2, 1, 7), **LINE),
        of((1, 5, 3, 4), (1, 7, 2, 4), **WIDE),
        of((0, 2, 5, 6), (0, 3, 5, 5), **PLAIN),
    ],
    "Convolution": [
        of((2, 2, 5, 4), (3, 2, 3, 3), (3,), kernel=(3, 3), num_filter=3),
        of(
            (2, 4, 5, 5),
            (2, 2, 3, 2),
            (2,),
            kernel=(3, 2),
            stride=(2, 1),
            pad=(1, 1),
            dilate=(1, 2),
            num_group=2,
            num_filter=2,
        ),
        of((2, 3, 6), (4, 3, 2), kernel=(2,), num_filter=4, no_bias=True),
        of(
            (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), (2,), kernel=(2, 2, 2), stride=(1, 2, 1), num_filter=2
        ),
        of((0, 2, 5, 4), (3, 2, 3, 3), (3,), kernel=(3, 3), num_filter=3),
    ],
    "Deconvolution": [
        of(
            (2, 4, 3, 3),
            (4, 1, 3, 2),
            (2,),
            kernel=(3, 2),
            stride=(2, 2),
            pad=(1, 0),
            adj=(1, 0),
            num_group=2,
            num_filter=2,
            no_bias=False,
        ),
        of((2, 2, 3, 4), (2, 3, 3, 3), kernel=(3, 3), num_filter=3),
        of(
            (2, 3, 3, 3),
            (3, 2, 4, 4),
            kernel=(4, 4),
            stride=(2, 2),
            target_shape=(6, 6),
            num_filter=2,
        ),
        of((2, 3, 4), (3, 2, 3), kernel=(3,), dilate=(2,), num_filter=2),
    ],
    "_pool_sum": [
        of((2, 3, 5, 4), **POOL),
        of((2, 3, 4, 5), **EDGES, count="numbers"),
        of((2, 3, 4, 5), **EDGES, count="padding"),
        of((2, 3, 5, 4), **POOL, count="padding"),
        of((0, 3, 5, 4), **POOL),
    ],
    "_unpool_sum": [
        of((2, 3, 2, 2), **POOL),
        of((2, 3, 2, 2), **TILES, count="numbers"),
        of((2, 3, 3, 3), **EDGES, count="numbers"),
        of((2, 3, 3, 3), **EDGES, count="padding"),
    ],
    "_pool_max": [of((2, 3, 5, 4), **POOL), of((2, 3, 4, 5), **EDGES), of((0, 3, 5, 4), **POOL)],
    "_unpool_max": [
        of((2, 3, 2, 2), (2, 3, 5, 4), **POOL),
        of((2, 3, 2, 2), (2, 3, 4, 4), **TILES),
        of((2, 3, 3, 3), (2, 3, 4, 5), **EDGES),
    ],
    "_repool_max": [
        of((2, 3, 5, 4), (2, 3, 5, 4), **POOL),
        of((2, 3, 4, 5), (2, 3, 4, 5), **EDGES),
    ],
    "Pooling": [
        of((2, 3, 5, 4), kernel=(2, 2)),
        of(
            (2, 3, 5, 5),
            kernel=(3, 2),
            stride=(2, 2),
            pad=(1, 0),
            pool_type="avg",
            pooling_convention="full",
        ),
        of(
            (2, 3, 5, 5),
            kernel=(3, 3),
            stride=(2, 2),
            pad=(1, 1),
            pool_type="avg",
            count_include_pad=False,
        ),
        of((2, 3, 7), kernel=(3,), stride=(2,), pool_type="sum"),
        of((2, 3, 4, 5), kernel=(2, 2), pool_type="lp", p_value=2),
        of((2, 3, 4, 5), global_pool=True, pool_type="avg"),
        of((2, 3, 4, 5), global_pool=True),
        of((1, 2, 3, 4, 3), kernel=(2, 2, 2), pool_type="max"),
    ],
    "UpSampling": [
        of((2, 3, 2, 3), scale=2, sample_type="nearest"),
        of((2, 3, 2, 3), (3, 1, 4, 4), scale=2, sample_type="bilinear"),
        of((1, 2, 2, 2), (1, 3, 4, 4), scale=4, sample_type="nearest"),
    ],
    "_quantize": [of((2, 3), scale=0.01, smooth=False), of((0, 3), scale=2.0)],
    "_windows": [
        of((2, 4, 5), kernel=(3,), stride=(2,), dilate=(1,), smooth=False),
        of((1, 4, 6, 5), kernel=(2, 1), stride=(2, 3), dilate=(3, 1), num_group=2, smooth=False),
    ],
    "_int8_dot": [
        of(In((2, 3, 5), "int8"), In((2, 7, 5), "int8"), smooth=False),
        of(In((1, 2, 1100), "int8"), In((1, 4, 1100), "int8"), smooth=False),
    ],
    "_quantized_fully_connected": [
        of(
            In((3, 2, 4), "int8"),
            In((5, 8), "int8"),
            In((5,), "scale"),
            In((5,), "scale"),
            num_hidden=5,
            data_scale=0.5,
            smooth=False,
        ),
        of(
            In((3, 2, 4), "int8"),
            In((5, 4), "int8"),
            In((5,), "scale"),
            num_hidden=5,
            data_scale=0.5,
            smooth=False,
            no_bias=True,
            flatten=False,
        ),
    ],
    "_quantized_convolution": [
        of(
            In((2, 4, 5, 6), "int4"),  # so that no gradient cancels
            In((6, 2, 3, 2), "int4"),
            In((6,), "scale"),
            In((6,), "scale"),
            kernel=(3, 2),
            stride=(2, 1),
            pad=(1, 0),
            num_filter=6,
            num_group=2,
            data_scale=0.5,
            smooth=False,
        )
    ],
}
