"""Samples of operators: normalisations, further functions, output layers."""

from sampling import index, of, pos

STATES = (pos(3), pos(3))  # running mean and variance of three channels

SAMPLES = {
    # its gradient holds where mean and scale are the data's: it is tried in the norms
    "_normalized": [of((2, 3), (2, 1), pos(2, 1), (1, 3), (1, 3), count=3,
                       smooth=False)],
    "_squared_distance": [of((2, 3), (2, 1)), of((0, 3), (0, 1))],
    "BatchNorm": [
        of((4, 3, 2), (3,), (3,), *STATES, fix_gamma=False),
        of((4, 3), (3,), (3,), *STATES, eps=1e-2),
        of((2, 2, 2, 3), (3,), (3,), *STATES, axis=-1, fix_gamma=False),
        of((4, 3, 2), (3,), (3,), index(3), index(3), use_global_stats=True,
           fix_gamma=False, eps=0.1),
        of((4, 3), (3,), (3,), *STATES, output_mean_var=True, smooth=False)],
    "LayerNorm": [
        of((2, 5), (5,), (5,)), of((2, 3, 4), (3,), (3,), axis=1, eps=1e-2),
        of((3, 4), (4,), (4,), output_mean_var=True)],
    "GroupNorm": [
        of((2, 4, 3), (2,), (2,), num_groups=2), of((2, 3), (1,), (1,)),
        of((2, 4, 2, 2), (2,), (2,), num_groups=2, output_mean_var=True)],
    "InstanceNorm": [of((2, 3, 4), (3,), (3,)), of((2, 3, 2, 2), (3,), (3,), eps=1e-2)],
    "L2Normalization": [of((2, 3, 4)), of((2, 3, 4), mode="channel"),
                        of((2, 3, 4), mode="spatial", eps=0.1), of((2, 3))],
    "_window_sum": [of((2, 5, 3), size=3), of((2, 2), size=5)],
    "LRN": [of((2, 5, 2, 2), nsize=3, alpha=0.5), of((2, 4), nsize=5)],
    "moments": [of((2, 3, 4), axes=(0, 2)), of((2, 3), axes=1, keepdims=True),
                of((2, 3))],
}
