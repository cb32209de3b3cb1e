"""Operators with lengths: what is behind a length changes nothing before it, NaN included."""

import numpy as np
import pytest

from minihybrid import autograd, function, nd

TIME, BATCH, CLASSES = 5, 3, 4
LENGTHS = np.array([2, 5, 3])
INSIDE = np.arange(TIME)[:, None] < LENGTHS  # (time, batch)
CASES = {  # of data (time, batch, classes), which is what the lengths count
    "softmax": lambda x, n: nd.softmax(
        x.transpose((1, 2, 0)), nd.stack(*[n] * CLASSES, axis=1), axis=-1, use_length=True
    ).transpose((2, 0, 1)),
    "SequenceMask": lambda x, n: nd.SequenceMask(x, n, use_sequence_length=True, value=7),
    "SequenceReverse": lambda x, n: nd.SequenceReverse(x, n, use_sequence_length=True),
    "SequenceLast": lambda x, n: nd.SequenceLast(x, n, use_sequence_length=True),
    "CTCLoss": lambda x, n: nd.CTCLoss(
        x, nd.stack((n > 2) + 1, n * 0 + 3, axis=1), n, use_data_lengths=True
    ),
}


def slopes(name, hybrid, behind):
    """The output and the gradient inside of the lengths; `behind` is in data and in the seed."""
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, (TIME, BATCH, CLASSES))
    values[~INSIDE] = behind
    x, n = nd.array(values, dtype="float64"), nd.array(LENGTHS, dtype="int32")
    x.attach_grad()
    call = function(CASES[name], target="numpy") if hybrid else CASES[name]
    with autograd.record():
        out = call(x, n)
    seed = rng.uniform(0.5, 1.5, out.shape)
    has_time = out.shape[:2] == (TIME, BATCH)
    if has_time:
        seed[~INSIDE] = behind
    out.backward(nd.array(seed, dtype="float64"))
    return out.asnumpy()[INSIDE if has_time else ...], x.grad.asnumpy()[INSIDE]


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_behind_a_length_changes_what_is_before(name, hybrid):
    required = slopes(name, False, 0.0)
    assert np.abs(required[1]).max() > 0
    for behind in (1.0, np.nan, np.inf):
        for actual, right in zip(slopes(name, hybrid, behind), required, strict=True):
            np.testing.assert_allclose(actual, right, 1e-12, 1e-12, err_msg=str(behind))
