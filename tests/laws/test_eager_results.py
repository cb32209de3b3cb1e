"""Eager results: memory of their own, shapes as inferred, and gradients where hybrid has some."""

import itertools

import numpy as np
import pytest
from marks import for_each
from samples import UNIQUE, cases_of, has_samples

from minihybrid import autograd, contrib, function, nd, random
from minihybrid.core.op import HybridError, Op
from minihybrid.np.array import ndarray


def apply(case, arrays, kind=nd.NDArray):
    """The outputs of one sample, as a tuple."""
    out = case.op.applied(tuple(arrays), dict(case.attrs), base=kind)
    return out if isinstance(out, tuple) else (out,)


def sharing(case, training):
    """The outputs of three calls, the later ones from the cache, that share an input's memory."""
    rng, actual = np.random.default_rng(0), []
    with autograd.train_mode() if training else autograd.predict_mode():
        for call in range(3):
            arrays = [nd.NDArray(np.array(a)) for a in case.arrays("float32", rng)]
            for i, out in enumerate(apply(case, arrays)):
                if any(np.shares_memory(out.data, a.data) for a in arrays):
                    actual.append((call, i))
    return actual


@pytest.mark.per_op
@pytest.mark.parametrize("training", [False, True], ids=["predicts", "trains"])
@for_each(op for op in UNIQUE if has_samples(op))
def test_no_result_shares_memory_with_an_input(op, training):
    """Views are methods and indices of arrays, listed in `test_nd.py`; no operator gives one."""
    for case in cases_of(op):
        assert sharing(case, training) == [], str(case)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: nd.add_n(x),
        lambda x: nd.Dropout(x, p=0.5),
        lambda x: nd.Dropout(x, p=0.0),
        lambda x: nd.SequenceMask(x),
        lambda x: nd.concat(x, dim=0),
        lambda x: nd.Flatten(x),
        lambda x: nd.expand_dims(x, axis=0),
        lambda x: nd.identity(x),
        lambda x: nd.BlockGrad(x),
    ],
)
def test_writing_into_a_result_leaves_the_input(call):
    x = nd.ones((2, 3))
    for _ in range(3):
        call(x)[:] = 7
        assert (x.asnumpy() == 1).all()


def worlds_of(count):
    """Classes for `count` inputs: all of np, and one of np or of nd among the others."""
    worlds = nd.NDArray, ndarray
    mixed = [
        (other,) * i + (one,) + (other,) * (count - 1 - i)
        for one, other in itertools.permutations(worlds)
        for i in range(count)
    ]
    return {(ndarray,) * count, *mixed}


@pytest.mark.per_op
@pytest.mark.parametrize("records", [False, True], ids=["predicts", "records"])
@for_each(op for op in UNIQUE if has_samples(op))
def test_an_operator_gives_the_same_in_each_world(op, records):
    """Arrays of nd, of np, or of both, as a SymbolBlock has; the results are as the first."""
    for case in cases_of(op):
        arrays = case.arrays("float32", np.random.default_rng(0))

        def outputs(worlds, case=case, arrays=arrays):
            inputs = [world(np.array(a)) for world, a in zip(worlds, arrays, strict=True)]
            for x in inputs:
                if x.data.dtype.kind == "f":
                    x.attach_grad()
            random.seed(0)
            with autograd.record() if records else autograd.predict_mode():
                return apply(case, inputs)

        required = outputs((nd.NDArray,) * len(arrays))
        for worlds in worlds_of(len(arrays)) if arrays else ():
            actual = outputs(worlds)
            names = [world.__name__ for world in worlds]
            assert {type(out) for out in actual} == {worlds[0]}, f"{case}: {names}"
            for out, right in zip(actual, required, strict=True):
                np.testing.assert_array_equal(out.data, right.data, f"{case}: {names}")
                assert out.data.dtype == right.data.dtype, f"{case}: {names}"


def has_gradient(case, hybrid):
    """Whether backward from the first output answers, rather than raises."""
    rng = np.random.default_rng(0)
    arrays = [nd.array(a, dtype=a.dtype) for a in case.arrays("float32", rng)]
    for a in arrays:
        a.attach_grad()

    def first(*values):
        out = case.op.applied(values, dict(case.attrs))
        return (
            out[0] if case.op.count_outputs(case.op.normalize(dict(case.attrs))) > 1 else out
        ) + 0

    try:
        with autograd.record():
            out = (function(first, target="numpy") if hybrid else first)(*arrays)
        out.backward()
    except HybridError as error:
        assert "not on the tape" in str(error), error
        return False
    return True


GRADED = [
    op
    for op in UNIQUE
    if has_samples(op) and not op.random and not op.aux and cases_of(op)[0].inputs
]


@pytest.mark.per_op
@for_each(GRADED)
def test_backward_answers_or_raises_alike_line_by_line_and_hybridized(op):
    case = cases_of(op)[0]
    assert has_gradient(case, hybrid=True) == has_gradient(case, hybrid=False), str(case)


def test_argmax_has_no_gradient_beside_an_output_that_has_one():
    x = nd.ones((2,))
    x.attach_grad()
    f = function(lambda x: (x.argmax(axis=0) + 2, x * 2))
    with autograd.record():
        places, double = f(x)
    with pytest.raises(HybridError, match="not on the tape"):
        places.backward()
    double.backward()
    assert x.grad.asnumpy().tolist() == [2, 2]


@pytest.mark.parametrize(
    "eager, words",
    [
        (lambda x: x.astype("float64"), r"gave float64\[2x3\], but its infer says float32\[2x3\]"),
        (lambda x: x[:1], r"gave float32\[1x3\], but its infer says float32\[2x3\]"),
    ],
)
def test_an_operator_that_breaks_its_shape_rule_is_refused_at_each_call(eager, words):
    op = Op("mine", lambda ins: (ins, ins), "A definition with a mistake.", eager=eager)
    for _ in range(3):
        with pytest.raises(HybridError, match=f"mine: its eager function {words}"):
            op(nd.ones((2, 3)))


@pytest.mark.parametrize("index", [-1, 3, 3.5, 1e9])
def test_an_embedding_refuses_an_index_outside_of_its_rows(index):
    weight, good = nd.ones((3, 2)), nd.array([0, 2])
    for _ in range(3):
        assert nd.Embedding(good, weight, input_dim=3, output_dim=2).shape == (2, 2)
        with pytest.raises(HybridError, match="Embedding: index .* outside of an axis of length 3"):
            nd.Embedding(nd.array([0, index]), weight, input_dim=3, output_dim=2)


def test_cond_refuses_a_vector_line_by_line_and_hybridized():
    def f(x):
        return contrib.cond(x > 0, lambda: x, lambda: -x)

    for call in (f, function(f)):
        with pytest.raises(HybridError, match="one element|neither true nor false"):
            call(nd.ones((3,)))
