"""Indexing, ordering, linalg and random numbers: MXNet's answers, and stories."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from marks import for_each

import minihybrid as mx
from minihybrid import autograd, gluon, nd, sym
from minihybrid.core.op import AttrError, HybridError, ShapeError

GOLDEN = Path(__file__).parents[1] / "golden" / "indexing"
ANSWERS = json.loads((GOLDEN / "answers.json").read_text())
spec = importlib.util.spec_from_file_location("expressions", GOLDEN / "make_golden.py")
expressions = importlib.util.module_from_spec(spec)
spec.loader.exec_module(expressions)


# -- what MXNet answers ----------------------------------------------------------------
@for_each(expressions.VALUES)
def test_values_are_mxnets(expression):
    actual = expressions.answer(expression, nd)
    assert [dtype for dtype, _ in actual] == [dtype for dtype, _ in ANSWERS[expression]]
    for (_, got), (_, expected) in zip(actual, ANSWERS[expression], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@for_each(expressions.GRADIENTS)
def test_gradients_are_mxnets(expression):
    np.testing.assert_allclose(
        expressions.gradient(expression, nd, autograd), ANSWERS[expression], rtol=1e-4, atol=1e-5
    )


# -- what is told ----------------------------------------------------------------------
X = nd.arange(6).reshape((2, 3))
ERRORS = [
    (
        lambda: nd.take(X, nd.array([2]), mode="raise"),
        ShapeError,
        "take: index 2 is outside of an axis of length 2; needed: whole numbers from 0 to 1",
    ),
    (lambda: nd.take(X, nd.array([-1]), mode="raise"), ShapeError, "take: index -1 is"),
    (
        lambda: nd.take(X, nd.array([0]), mode="near"),
        AttrError,
        "mode='near' does not fit; needed: one of clip, wrap, raise",
    ),
    (
        lambda: nd.take(nd.zeros((0, 3)), nd.array([0])),
        ShapeError,
        r"take: axis 0 of \(0, 3\) is empty, so there is nothing to take from it",
    ),
    (
        lambda: nd.gather_nd(X, nd.array([[5], [0]])),
        ShapeError,
        "gather_nd: index 5 is outside of an axis of length 2",
    ),
    (
        lambda: nd.gather_nd(X, nd.array([1, 0])),
        ShapeError,
        r"gather_nd: indices have shape \(2,\), but \(M, \.\.\.\)",
    ),
    (
        lambda: nd.scatter_nd(X, nd.array([[0, 1]]), shape=(2, 2)),
        ShapeError,
        r"scatter_nd: data has shape \(2, 3\), but \(2, 2\) is needed",
    ),
    (
        lambda: nd.Embedding(X, X, input_dim=4, output_dim=3),
        ShapeError,
        r"Embedding: weight has shape \(2, 3\), but \(4, 3\) is needed",
    ),
    (
        lambda: nd.pick(X, nd.array([0])),
        ShapeError,
        r"pick: index has shape \(1,\), but data \(2, 3\) with axis=1 needs \(2,\)",
    ),
    (lambda: nd.topk(X, k=4), ShapeError, "topk: k=4 is asked for, but the axis has length 3"),
    (lambda: nd.sort(X, axis=2), ShapeError, "axis 2 does not exist in 2 dimensions"),
    (lambda: nd.repeat(X, repeats=0), ShapeError, "repeat: repeats=0, but at least 1"),
    (
        lambda: nd.pad(X, mode="edge", pad_width=(1, 1)),
        ShapeError,
        r"pad: pad_width has 2 numbers, but \(2, 3\) needs 4: before and after each axis",
    ),
    (
        lambda: nd.pad(X, mode="reflect", pad_width=(0, 0, 3, 0)),
        ShapeError,
        r"pad: mode='reflect' cannot add \(3, 0\) to an axis of length 3",
    ),
    (
        lambda: nd.slice_like(X, nd.ones((3, 3))),
        ShapeError,
        r"slice_like: axis 0 of \(2, 3\) is shorter than in \(3, 3\)",
    ),
    (
        lambda: nd.broadcast_axis(X, axis=0, size=3),
        ShapeError,
        r"broadcast_axis: axis 0 of \(2, 3\) has not length 1",
    ),
    (
        lambda: nd.split_v2(X, 2, axis=1),
        ShapeError,
        r"split_v2: axis 1 of \(2, 3\) does not divide into 2 equal parts",
    ),
    (lambda: nd.diag(X, k=5), ShapeError, r"diag: \(2, 3\) has no diagonal 5"),
    (lambda: nd.depth_to_space(X, 2), ShapeError, r"\(N, C, H, W\) is needed"),
    (lambda: nd.ravel_multi_index(X, shape=(2, 3, 4)), ShapeError, "has 2 rows"),
    (lambda: nd.norm(X, ord=3), AttrError, "norm: ord=3 is given, but 1"),
    (
        lambda: sym.histogram(sym.var("x", shape=(3,)), 3).infer_shape(),
        AttrError,
        r"histogram: bins=3 with range=None",
    ),
    (
        lambda: nd.SequenceMask(X, nd.array([1]), use_sequence_length=True),
        ShapeError,
        "one length for each of 3 sequences is needed",
    ),
    (lambda: nd.linalg.potrf(-nd.eye(2)), HybridError, "not positive definite"),
    (lambda: nd.linalg.inverse(nd.ones((2, 2))), HybridError, "a matrix is singular"),
    (lambda: nd.linalg.det(X), ShapeError, r"square matrices \(\.\.\., N, N\)"),
    (lambda: nd.linalg.gemm2(X, X), ShapeError, "the inner lengths 3 and 2"),
    (lambda: nd.linalg.gemm2(X, X[0]), ShapeError, r"linalg.gemm2: matrices .* found \(2, 3\) and"),
    (
        lambda: nd.linalg.trsm(nd.eye(2), X[0]),
        ShapeError,
        r"triangle \(2, 2\) and \(3,\) don't fit",
    ),
    (lambda: nd.slice(X, (0,), (1,), (0,)), ShapeError, r"slice: step=\(0,\) contains 0"),
    (lambda: nd.stack(X, X[0]), ShapeError, r"stack: the shapes \(2, 3\) and \(3,\) must be equal"),
    (lambda: nd.Crop(X), ShapeError, r"Crop: \(0, 0\) at \(0, 0\) cannot be cut out of \(2, 3\)"),
    (lambda: nd.Crop(X, X), ShapeError, "Crop: 0 lengths at 2 offsets, but height and width"),
    (lambda: nd.cast(X, dtype=None), AttrError, "cast: dtype=None does not fit"),
    (lambda: nd.random.uniform(X, 3), AttrError, "must all be arrays or all be numbers"),
    (
        lambda: nd.zeros((2,), stype="csr"),
        HybridError,
        r"storage type 'csr' \(sparse\) is not supported",
    ),
    (lambda: X.tostype("row_sparse"), HybridError, "every array is dense"),
    (lambda: nd.sparse.csr_matrix([[1, 0]]), HybridError, "every array is dense"),
    (lambda: nd.from_numpy(np.ones((2, 3)).T), AttrError, "pass zero_copy=False"),
    (lambda: X[nd.array([5])], ShapeError, r"the array has shape \(2, 3\)"),
]


@pytest.mark.parametrize("run, kind, words", ERRORS, ids=[words for *_, words in ERRORS])
def test_error_says_what_is_needed(run, kind, words):
    with pytest.raises(kind, match=words):
        run()


# -- compiled --------------------------------------------------------------------------
def compiled(function, *arrays):
    """The outputs of a function, hybridized."""
    net = gluon.nn.HybridLambda(function)
    net.hybridize()
    return net(*arrays)


def test_what_follows_a_batch_of_products_is_written_to_its_own_product():
    a, b = nd.random.normal(shape=(3, 2, 4)), nd.random.normal(shape=(3, 4, 5))

    def function(F, a, b):
        return F.relu(F.batch_dot(a, b)) * 2

    np.testing.assert_allclose(
        compiled(function, a, b).asnumpy(), function(nd, a, b).asnumpy(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("is_ascend", (True, False))
def test_a_long_line_with_equal_numbers_and_nan_is_ordered_like_numpys(is_ascend):
    line = np.random.default_rng(0).integers(0, 50, (2, 777)).astype("f4")
    line[:, ::100] = np.nan
    x = nd.array(line)
    order = compiled(lambda F, x: F.argsort(x, is_ascend=is_ascend), x).asnumpy()
    np.testing.assert_array_equal(order, nd.argsort(x, is_ascend=is_ascend).asnumpy())
    values = np.take_along_axis(line, order.astype(int), 1)
    np.testing.assert_array_equal(values if is_ascend else values[:, ::-1], np.sort(line))


def test_infinity_is_found_by_compiled_code():
    x = nd.array([[1, np.inf], [2, 3]])
    for row, expected in ((x[0], 0), (x[1], 1)):
        assert compiled(lambda F, x: F.all_finite(x), row).asscalar() == expected


def test_compiled_code_clips_where_an_eager_array_raises():
    x, i = nd.array([1, 2, 3]), nd.array([7])
    with pytest.raises(ShapeError, match="index 7"):
        nd.take(x, i, mode="raise")
    taken = compiled(lambda F, x, i: F.take(x, i, mode="raise"), x, i)
    assert taken.asscalar() == 3


# -- indices of arrays -----------------------------------------------------------------
def test_copied_rows_keep_the_sign_of_zero():
    def function(F, *arrays):
        return F.contrib.index_copy(*arrays)

    arrays = nd.zeros((3, 2)), nd.array([2, 0]), nd.full((2, 2), -0.0)
    for out in (function(nd, *arrays), compiled(function, *arrays)):
        assert np.signbit(out.asnumpy()).tolist() == [[True] * 2, [False] * 2, [True] * 2]


def test_assignment_by_arrays_and_masks():
    x = nd.zeros((3, 4))
    x[nd.array([0, 2]), nd.array([1, 3])] = 5
    x[1, [0, 2]] = nd.array([7, 8])
    x[x.asnumpy() == 0] = -1
    assert x.asnumpy().tolist() == [[-1, 5, -1, -1], [7, -1, 8, -1], [-1, -1, -1, 5]]


def test_a_mask_has_a_gradient():
    x = nd.array([1, -2, 3])
    x.attach_grad()
    with autograd.record():
        y = (x[x.asnumpy() > 0] ** 2).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 0, 6]


def test_embedding_learns_only_the_rows_that_were_used():
    net = gluon.nn.Embedding(5, 3)
    net.initialize()
    before = net.weight.data().asnumpy()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    net.hybridize()
    with autograd.record():
        loss = net(nd.array([[1, 3], [3, 1]])).sum()
    loss.backward()
    trainer.step(1)
    change = net.weight.data().asnumpy() - before
    assert np.allclose(change, [[0] * 3, [-2] * 3, [0] * 3, [-2] * 3, [0] * 3])
    assert repr(net) == "Embedding(5 -> 3, float32)"


def test_an_embedding_learns_its_weights_shape_from_its_attributes():
    out = sym.Embedding(sym.var("i"), input_dim=7, output_dim=2, name="words")
    shapes, outs, _ = out.infer_shape(i=(4, 3))
    assert dict(zip(out.list_arguments(), shapes, strict=True))["words_weight"] == (7, 2)
    assert outs == [(4, 3, 2)]


# -- functions -------------------------------------------------------------------------
def test_a_file_in_memory_is_read(tmp_path):
    nd.save(str(tmp_path / "two"), {"a": X, "b": nd.ones(2)})
    actual = nd.load_frombuffer((tmp_path / "two").read_bytes())
    assert list(actual) == ["a", "b"]
    assert actual["a"].asnumpy().tolist() == X.asnumpy().tolist()


def test_numpys_memory_is_shared_or_copied():
    source = np.zeros(2, "f4")
    shared, copied = nd.from_numpy(source), nd.from_numpy(source, zero_copy=False)
    source[0] = 5
    assert shared.asnumpy().tolist() == [5, 0] and copied.asnumpy().tolist() == [0, 0]


def test_arrays_are_reset():
    a, b = nd.ones(2), nd.ones((1, 2))
    nd.reset_arrays(a, b, num_arrays=2)
    assert not a.asnumpy().any() and not b.asnumpy().any()


def test_a_histogram_without_a_range_spans_all_numbers():
    counts, edges = nd.histogram(nd.array([0, 1, 2, 2, 3]), bins=3)
    assert counts.asnumpy().tolist() == [1, 1, 3]
    assert edges.asnumpy().tolist() == [0, 1, 2, 3]


def test_dense_storage_is_the_default_and_the_only_one():
    assert X.stype == "default" and X.tostype("default") is X
    assert not isinstance(X, nd.sparse.CSRNDArray)


def test_an_identity_learns_its_shape_from_the_other_input():
    same = sym._internal._identity_with_attr_like_rhs(sym.var("a"), sym.var("b"))
    shapes, outs, _ = same.infer_shape(b=(2, 3))
    assert shapes == [(2, 3), (2, 3)] and outs == [(2, 3)]


def test_symbols_make_the_same_ranges_and_histograms():
    x = sym.var("x")
    made = sym.Group(
        [
            sym.linspace(0, 1, 3),
            sym.eye(2),
            *sym.histogram(x, 2, range=(0, 4)),
            *sym.histogram(x, sym.var("b")),
        ]
    )
    outs = made.eval(x=nd.array([1, 2, 4]), b=nd.array([0, 1.5, 9]))
    assert [o.asnumpy().tolist() for o in outs] == [
        [0, 0.5, 1],
        [[1, 0], [0, 1]],
        [1, 2],
        [0, 2, 4],
        [1, 2],
        [0, 1.5, 9],
    ]


def test_parts_between_places_of_a_symbol_are_its_outputs():
    parts = sym.split_v2(sym.var("x"), (2, 3), axis=1)
    assert parts.infer_shape(x=(2, 7))[1] == [(2, 2), (2, 1), (2, 4)]


# -- random numbers --------------------------------------------------------------------
# function, its arguments, the mean, the variance
DRAWS = [
    ("uniform", (-1, 3), 1, 16 / 12),
    ("normal", (2, 3), 2, 9),
    ("exponential", (2,), 2, 4),
    ("gamma", (0.5, 2), 1, 2),
    ("gamma", (9, 0.5), 4.5, 2.25),
    ("poisson", (3,), 3, 3),
    ("poisson", (40,), 40, 40),
    ("negative_binomial", (3, 0.4), 4.5, 11.25),
    ("generalized_negative_binomial", (3, 0.4), 3, 6.6),
    ("randint", (0, 10), 4.5, 99 / 12),
]


@pytest.mark.parametrize("name, args, mean, variance", DRAWS)
def test_draws_have_the_mean_and_the_variance_of_their_distribution(name, args, mean, variance):
    nd.random.seed(3)
    x = getattr(nd.random, name)(*args, shape=40_000).asnumpy().astype("f8")
    assert abs(x.mean() - mean) < 5 * (variance / len(x)) ** 0.5
    assert abs(x.var() - variance) < 0.08 * variance


def test_choices_come_as_often_as_their_probabilities_say():
    nd.random.seed(3)
    chances = nd.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0]])
    drawn = nd.random.multinomial(chances, shape=20_000).asnumpy()
    actual = [np.bincount(row, minlength=3) / 20_000 for row in drawn]
    np.testing.assert_allclose(actual, chances.asnumpy(), atol=0.02)


def test_shuffled_rows_are_all_there_in_another_order():
    nd.random.seed(3)
    x = nd.arange(40).reshape((20, 2))
    shuffled = nd.random.shuffle(x).asnumpy()
    assert sorted(shuffled.tolist()) == x.asnumpy().tolist() != shuffled.tolist()


def test_drawn_choices_have_probabilities_with_a_gradient():
    chances = nd.array([0.25, 0.75])
    chances.attach_grad()
    with autograd.record():
        place, logarithm = nd.random.multinomial(chances, get_prob=True)
    logarithm.backward()
    expected = np.zeros(2)
    expected[place.asscalar()] = 1 / chances.asnumpy()[place.asscalar()]
    np.testing.assert_allclose(chances.grad.asnumpy(), expected, rtol=1e-6)


def test_random_numbers_in_the_shape_of_an_array():
    x = nd.zeros((2, 3), dtype="float64")
    drawn = nd.random.uniform_like(x, low=5, high=6)
    assert drawn.shape == (2, 3) and drawn.dtype is np.float64
    assert (drawn.asnumpy() >= 5).all() and (drawn.asnumpy() < 6).all()
    assert mx.random.normal_like(x).shape == (2, 3)
