"""Samples of operators: normalizations, further functions, output layers."""

from sampling import above, index, inside, of, pos

STATES = (pos(3), pos(3))  # running mean and variance of three channels

SAMPLES = {
    # its gradient holds where mean and scale are the data's: it is tried in the norms
    "_normalized": [of((2, 3), (2, 1), pos(2, 1), (1, 3), (1, 3), count=3, smooth=False)],
    "_squared_distance": [of((2, 3), (2, 1)), of((0, 3), (0, 1))],
    "BatchNorm": [
        of((4, 3, 2), (3,), (3,), *STATES, fix_gamma=False),
        of((4, 3), (3,), (3,), *STATES, eps=1e-2),
        of((2, 2, 2, 3), (3,), (3,), *STATES, axis=-1, fix_gamma=False),
        of(
            (4, 3, 2),
            (3,),
            (3,),
            index(3),
            index(3),
            use_global_stats=True,
            fix_gamma=False,
            eps=0.1,
        ),
        of((4, 3), (3,), (3,), *STATES, output_mean_var=True, smooth=False),
    ],
    "LayerNorm": [
        of((2, 5), (5,), (5,)),
        of((2, 3, 4), (3,), (3,), axis=1, eps=1e-2),
        of((3, 4), (4,), (4,), output_mean_var=True),
    ],
    "GroupNorm": [
        of((2, 4, 3), (2,), (2,), num_groups=2),
        of((2, 3), (1,), (1,)),
        of((2, 4, 2, 2), (2,), (2,), num_groups=2, output_mean_var=True),
    ],
    "InstanceNorm": [of((2, 3, 4), (3,), (3,)), of((2, 3, 2, 2), (3,), (3,), eps=1e-2)],
    "L2Normalization": [
        of((2, 3, 4)),
        of((2, 3, 4), mode="channel"),
        of((2, 3, 4), mode="spatial", eps=0.1),
        of((2, 3)),
    ],
    "_window_sum": [of((2, 5, 3), size=3), of((2, 2), size=5)],
    "LRN": [of((2, 5, 2, 2), nsize=3, alpha=0.5), of((2, 4), nsize=5)],
    "moments": [of((2, 3, 4), axes=(0, 2)), of((2, 3), axes=1, keepdims=True), of((2, 3))],
    # -- functions of one number
    **{
        name: [of(inside(2, 3)), of(inside(1)), of(inside(0, 3))]
        for name in ("arcsin", "arccos", "arctanh", "erfinv")
    },
    "arccosh": [of(above(2, 3)), of(above(1)), of(above(0, 3))],
    "log2": [of(pos(2, 3))],
    "log10": [of(pos(2, 3))],
    "_polygamma": [of(pos(2, 3)), of((2, 3), order=1), of(pos(1), order=3)],
    "hard_sigmoid": [of((2, 3)), of((2, 3), alpha=1, beta=0.25)],
    "smooth_l1": [of((2, 3)), of((2, 3), scalar=3), of((2, 3), scalar=0.5)],
    "LeakyReLU": [
        of((2, 3, 2), (3,), act_type="prelu"),
        of((2, 3), act_type="leaky"),
        of((2, 3), act_type="elu", slope=0.5),
        of((2, 3), act_type="selu"),
        of((2, 3), act_type="gelu"),
        of((2, 3), act_type="rrelu"),
        of((2, 3), (1,), act_type="prelu"),
        of((0, 3), slope=0.1),
    ],
    "softmin": [of((2, 3)), of((2, 3, 4), axis=1, temperature=2.0), of((2, 3), dtype="float64")],
    "SoftmaxActivation": [of((2, 3)), of((2, 3, 2)), of((2, 3, 2), mode="channel")],
    # -- outputs, whose gradient is another one on purpose
    "_softmax_head": [
        of((2, 3, 2), index(2, 1, 2), classes=3, smooth=False),
        of((2, 3, 1), (2, 3, 1), smooth=False),
    ],
    "SoftmaxOutput": [
        of((4, 3), index(4), smooth=False),
        of((2, 3), (2, 3), smooth=False),
        of(
            (2, 3, 4),
            index(2, 4),
            multi_output=True,
            use_ignore=True,
            ignore_label=1,
            normalization="valid",
            smooth=False,
        ),
        of(
            (2, 4, 3),
            index(2, 4),
            preserve_shape=True,
            normalization="batch",
            smooth_alpha=0.1,
            out_grad=True,
            smooth=False,
        ),
    ],
    **{
        name: [of((2, 3), (2, 3), smooth=False), of((3, 1), (3,), smooth=False)]
        for name in ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput")
    },
    **{
        name: [of((2, 3), (2, 3), smooth=False)]
        for name in ("_LinearRegressionOutput", "_LogisticRegressionOutput", "_MAERegressionOutput")
    },
    "_svm_head": [of((4, 3, 1), index(4, 1, 1), classes=3, smooth=False)],
    "SVMOutput": [
        of((4, 3), index(4), smooth=False),
        of((4, 3), index(4), use_linear=True, margin=0.5, smooth=False),
    ],
    "_loss_head": [of((2, 3), smooth=False), of((2, 3), above=0.1, smooth=False)],
    "make_loss": [of((2, 3), smooth=False)],
    "MakeLoss": [
        of((2, 3), grad_scale=2, smooth=False),
        of((2, 3), normalization="valid", smooth=False),
    ],
}
