"""Sample inputs for every operator: what the laws of `test_ops_laws` are tried on.

An operator whose inputs are any numbers of one shape needs no entry: it is tried on
shapes (2, 3), (1,), (0, 3) and (). Any other operator needs one in `SAMPLES`, here or
in the file of its subject.
"""

from sampling import Case, In, index, like, of, pos, products, reductions

import minihybrid.np  # noqa: F401  its operators are read when asked for
from minihybrid.core.op import REQUIRED
from minihybrid.ops import OPS
from samples import attention, convolution, ctc, detection, indexing, norm, np_samples

FILES = (attention, convolution, ctc, detection, indexing, norm, np_samples)

NAMES = sorted({op.name for op in OPS.values()})
BROADCAST = {
    name: [
        of((2, 3), (3,)),
        of((2, 1, 3), (4, 1)),
        of((1,), (2, 3)),
        of((0, 3), (1, 3)),
        of((3, 1), (1, 2)),
        of((), (3,)),
        of((), ()),
    ]
    for name in NAMES
    if name.startswith("broadcast_") and OPS[name].expr
}
BY_SCALAR = {
    name: [
        of(shape, scalar=s)
        for shape in ((2, 3), (1,), (0, 3), ())
        for s in ((2.0,) if shape == (1,) else (1.5, -2.0))
    ]
    for name in NAMES
    if name.endswith("_scalar") and name[:3] != "_np"
}
ABOVE_ZERO = {
    name: [of(pos(2, 3)), of(pos(1)), of(pos(0, 3)), of(pos())]
    for name in ("log", "log1p", "sqrt", "rsqrt")
}

SAMPLES = {
    **BROADCAST,
    **BY_SCALAR,
    **ABOVE_ZERO,
    "_power": [of(pos(2, 3), pos(2, 3)), of(pos(0, 3), pos(0, 3))],
    "broadcast_power": [of(pos(2, 3), pos(3)), of(pos(2, 1), pos(1, 3))],
    "_power_scalar": [
        of(pos(2, 3), scalar=2.5),
        of((2, 3), scalar=3),
        of((2, 3), scalar=2),
        of((2, 3), scalar=1),
        of((0, 3), scalar=2),
    ],
    "_rpower_scalar": [of(pos(2, 3), scalar=1.7), of(pos(0, 3), scalar=2.0)],
    "clip": [
        of((2, 3), a_min=-0.9, a_max=1.0),
        of((1,), a_min=-5, a_max=5),
        of((0, 3), a_min=0, a_max=1),
        of((), a_min=0, a_max=1),
    ],
    "Cast": [
        of((2, 3), dtype="float64"),
        of((2, 3), dtype="float32", smooth=False),
        of((2, 3), dtype="int32", smooth=False),
        of((0, 3), dtype="float64"),
    ],
    "amp_cast": [
        of((2, 3), dtype="float64"),
        of((2, 3), dtype="int32", smooth=False),
        of((0, 3), dtype="float64"),
    ],
    "_cast_like": [of((2, 3), like(4)), of((2, 3), index(4), smooth=False)],
    "_unbroadcast": [
        of((2, 3), like(2, 1)),
        of((2, 3), like(3)),
        of((2, 3), like(2, 3)),
        of((4, 2, 3), like(1, 3)),
        of((2, 3), like(1)),
        of((0, 3), like(3)),
    ],
    "sum": reductions(),
    "prod": reductions(),
    "mean": reductions()[:-1],
    "max": reductions(),
    "min": reductions(),
    "argmax": [
        of((2, 3, 4), axis=1),
        of((2, 3), axis=-1, keepdims=True),
        of((2, 3)),
        of((0, 3), axis=1),
    ],
    "_long_argmax": [of((2, 3, 4), axis=1), of((2, 3))],
    "_long_argmin": [of((2, 3, 4), axis=1), of((2, 3))],
    "argmin": [
        of((2, 3, 4), axis=1),
        of((2, 3), axis=-1, keepdims=True),
        of((2, 3)),
        of((0, 3), axis=1),
    ],
    "_unreduce": [
        of((2, 4), like(2, 3, 4), axis=(1,)),
        of((1,), like(2, 3)),
        of((3,), like(2, 3), axis=1, exclude=True),
        of((0,), like(0, 3), axis=1),
    ],
    "Reshape": [
        of((2, 3, 4), shape=(-1, 2)),
        of((2, 3, 4), shape=(0, -1)),
        of((2, 3, 4), shape=(-3, 4)),
        of((2, 6), shape=(0, -4, 2, 3)),
        of((2, 3, 4), shape=(-1, 0), reverse=True),
        of((2, 3, 4), shape=(-2,)),
        of((0, 3), shape=(-1,)),
    ],
    "RNN": [
        of((2, 1, 2), (20,), (1, 1, 1), (1, 1, 1), mode="lstm", state_size=1, num_layers=1),
        of((2, 1, 2), (15,), (1, 1, 1), mode="gru", state_size=1, num_layers=1, state_outputs=True),
        of(
            *((2, 1, 2), (10,), (2, 1, 1)),
            **{"mode": "rnn_tanh", "state_size": 1, "num_layers": 1, "bidirectional": True},
        ),
    ],
    "_rnn_param_concat": [of((3,), (2,), dim=0), of((3,), dim=0), of((0,), (2,), dim=0)],
    "Flatten": [of((2, 3, 4)), of((3,)), of((0, 3, 2))],
    "expand_dims": [of((2, 3), axis=1), of((2, 3), axis=-1), of((0, 3), axis=0)],
    "squeeze": [of((2, 1, 3, 1)), of((2, 1, 3, 1), axis=(1,)), of((1, 1)), of((0, 1))],
    "reshape_like": [
        of((2, 3), like(3, 2)),
        of((0, 3), like(3, 0)),
        of((6, 2), like(3, 2, 4), lhs_end=1, rhs_end=2),
        of((1, 2, 3), like(6, 5), lhs_begin=1, rhs_end=-1),
    ],
    "transpose": [
        of((2, 3)),
        of((2, 3, 4), axes=(1, 2, 0)),
        of((2, 3, 4), axes=(-1, 0, 1)),
        of((3,)),
        of((0, 3)),
    ],
    "SwapAxis": [of((2, 3, 4), dim1=0, dim2=2), of((2, 3), dim1=-1, dim2=0), of((0, 3))],
    "broadcast_to": [
        of((2, 1), shape=(2, 3)),
        of((3,), shape=(4, 3)),
        of((1, 3), shape=(2, 0)),
        of((1,), shape=(2, 3)),
    ],
    "slice": [
        of((4, 5), begin=(1, None), end=(3, 4)),
        of((4, 5), begin=(None, -1), end=(None, None), step=(2, -2)),
        of((4, 5), begin=(-2,), end=(None,)),
        of((4, 5), begin=(2,), end=(2,)),
        of((0, 3), begin=(0, 1), end=(0, 3)),
    ],
    "_put_slice": [
        of((2, 4), like(4, 5), begin=(1, None), end=(3, 4)),
        of((4, 2), like(4, 5), begin=(None, 3), end=(None, 0), step=(None, -2)),
    ],
    "slice_axis": [
        of((4, 5), axis=1, begin=1, end=4),
        of((4, 5), axis=-1, begin=-2, end=None),
        of((4, 5), axis=0, begin=2, end=2),
    ],
    "Concat": [
        of((2, 3), (2, 1), (2, 2)),
        of((2, 3), (1, 3), dim=0),
        of((2, 3), dim=-1),
        of((2, 2, 3), (2, 1, 3), dim=-2),
        of((0, 3), (2, 3), dim=0),
    ],
    "_concat_part": [
        of((2, 6), like(2, 3), like(2, 1), like(2, 2), number=1),
        of((2, 3), like(2, 3), dim=-1, number=0),
    ],
    "stack": [of((2, 3), (2, 3)), of((2, 3), (2, 3), (2, 3), axis=-1), of((0, 3), axis=1)],
    "add_n": [of((2, 3), (2, 3), (2, 3)), of((2, 3)), of((0, 3), (0, 3))],
    "SliceChannel": [
        of((2, 6), num_outputs=3),
        of((4, 3), num_outputs=2, axis=0),
        of((2, 3), num_outputs=3, axis=-1, squeeze_axis=True),
        of((2, 3), num_outputs=1),
        of((0, 4), num_outputs=2),
    ],
    "_zeros": [of(shape=(2, 3)), of(shape=(0,), dtype="int64")],
    "_ones": [of(shape=(2, 3), dtype="float64"), of(shape=4)],
    "_full": [
        of(shape=(2, 3), value=1.5),
        of(shape=2, value=-3, dtype="int32"),
        of(shape=2, value=float("nan")),
        of(shape=2, value=float("-inf")),
    ],
    "_arange": [
        of(start=5),
        of(start=1, stop=2, step=0.3, repeat=2),
        of(start=4, stop=-4, step=-3, dtype="int64"),
        of(start=0),
    ],
    "_matmul": [
        *products(),
        of((0, 3), (3, 2)),
        of((2, 0), (0, 3)),
        of((0, 3), (2, 3), transpose_b=True),
        of((1, 7), (5, 7), transpose_b=True),
    ],
    "dot": [
        of((2, 3), (3, 4)),
        of((3,), (3,)),
        of((2, 3), (3,)),
        of((2, 3, 4), (4, 2)),
        of((3, 2), (4, 3), transpose_a=True, transpose_b=True),
        of((3,), (3, 2), transpose_a=True),
        of((2, 3), (2, 4, 3), transpose_b=True),
    ],
    "batch_dot": [*products(2), of((0, 2, 3), (0, 3, 2)), of((2, 1, 2, 3), (2, 1, 3, 2))],
    "FullyConnected": [
        of((5, 3), (6, 3), (6,), num_hidden=6),
        of((1, 3), (2, 3), num_hidden=2, no_bias=True),
        of((2, 3, 4), (5, 12), (5,), num_hidden=5),
        of((2, 3, 4), (5, 4), (5,), num_hidden=5, flatten=False),
        of((0, 3, 4), (2, 12), (2,), num_hidden=2),
        of((5,), (3, 1), (3,), num_hidden=3),
        of((5,), (3, 5), (3,), num_hidden=3, flatten=False),
    ],
    "Activation": [
        of((2, 3), act_type=kind) for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign")
    ],
    "softmax": [
        of((2, 3, 4), index(2, 4), axis=1, use_length=True),
        of((5, 4), index(5), temperature=2.0, use_length=True),
        of((2, 3)),
        of((2, 3, 4), axis=1),
        of((2, 3), axis=0, temperature=2.0),
        of((0, 3)),
        of((2, 3), dtype="float64"),
    ],
    "log_softmax": [
        of((2, 3)),
        of((2, 3, 4), axis=1),
        of((2, 3), dtype="float64"),
        of((2, 3), axis=0, temperature=2.0),
        of((0, 3)),
    ],
    "softmax_cross_entropy": [of((2, 3), index(2))],
    "_dropout_mask": [of((4, 5), p=0.5), of((4, 5), p=0.3, axes=(1,)), of((0, 3))],
    "Dropout": [
        of((4, 5), p=0.5),
        of((4, 5), p=0.3, axes=(0,)),
        of((4, 5), p=0),
        of((2, 3), mode="always"),
    ],
}

for file in FILES:
    again = SAMPLES.keys() & file.SAMPLES.keys()
    assert not again, f"{file.__name__} has samples that exist: {sorted(again)}"
    SAMPLES |= file.SAMPLES
SAMPLES |= {new: SAMPLES[old] for new, old in np_samples.RENAMED.items() if old in SAMPLES}


def cases_of(op):
    """The samples of one operator.

    Raises:  LookupError for an operator that needs samples and has none.
    """
    if op.name in SAMPLES:
        return [Case(op, *sample) for sample in SAMPLES[op.name]]
    needed = [name for name, (_, default) in op.attrs.items() if default is REQUIRED]
    if needed or not op.inputs or callable(op.inputs) or op.variadic:
        raise LookupError(
            f"{op.name} has no sample: write one into tools/samples, "
            f"with inputs and {', '.join(needed) or 'attributes'}"
        )
    return [
        Case(op, tuple(In(shape) for _ in op.inputs), {}) for shape in ((2, 3), (1,), (0, 3), ())
    ]


def has_samples(op):
    """Whether there is something to try an operator on; its laws fail if not."""
    try:
        return bool(cases_of(op))
    except LookupError:
        return False


UNIQUE = list({op.name: op for op in OPS.values()}.values())
CASES = [case for op in UNIQUE if has_samples(op) for case in cases_of(op)]
