"""CTC against its definition: the probability of a word is the sum over all ways to spell it."""

import itertools

import numpy as np
import pytest

from minihybrid import AttrError, PlaceError, ShapeError, autograd, gluon, nd


def spelt(way, blank):
    """What a way reads as: repetitions count once, and blanks not at all."""
    return [c for c, _ in itertools.groupby(way) if c != blank]


def by_definition(scores, word, blank):
    """-log of the sum over all C^T ways that spell the word; scores (T, C)."""
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    steps, characters = chances.shape
    return -np.log(
        sum(
            chances[np.arange(steps), way].prod()
            for way in itertools.product(range(characters), repeat=steps)
            if spelt(way, blank) == word
        )
    )


@pytest.mark.parametrize("blank", ["first", "last"])
@pytest.mark.parametrize("given", ["neither", "data", "label", "both"])
def test_the_loss_is_its_definition(given, blank):
    rng = np.random.default_rng(0)
    first = blank == "first"
    steps, characters = 5, 3
    words = [[1, 1], [0, 1], [1], [0], []] if given != "neither" else [[1, 1], [0, 1], [1], [0]]
    words = [[c + first for c in word] for word in words]
    label = [(word + [0 if first else -1] * 2)[:2] for word in words]
    scores = rng.normal(0, 1, (steps, len(words), characters))
    lengths = rng.integers(3, steps + 1, len(words)) if given in ("data", "both") else None
    named = {}
    if lengths is not None:
        named |= {"data_lengths": nd.array(lengths), "use_data_lengths": True}
    if given in ("label", "both"):
        named |= {"label_lengths": nd.array([*map(len, words)]), "use_label_lengths": True}
    actual = nd.ctc_loss(
        nd.array(scores, dtype="float64"), nd.array(label), blank_label=blank, **named
    )
    ends = [steps] * len(words) if lengths is None else lengths
    expected = [
        by_definition(scores[:n, i], word, 0 if first else characters - 1)
        for i, (word, n) in enumerate(zip(words, ends, strict=True))
    ]
    np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_word_that_needs_more_steps_costs_nothing_and_teaches_nothing(hybrid):
    """ "aa" needs three steps: a blank stands between."""
    loss = gluon.loss.CTCLoss(layout="TNC")
    loss.hybridize(hybrid, backend="numpy")
    x = nd.array(np.random.default_rng(0).normal(size=(2, 2, 3)))
    x.attach_grad()
    with autograd.record():
        out = loss(x, nd.array([[0, 0], [0, 1]]))
    out.backward()
    assert out[0].item() == 0 and out[1].item() > 0
    assert not x.grad[:, 0].asnumpy().any() and x.grad[:, 1].asnumpy().all()


def test_long_sequences_neither_vanish_nor_overflow():
    x = nd.array(np.random.default_rng(0).normal(0, 20, (400, 1, 3)))
    x.attach_grad()
    with autograd.record():
        out = nd.ctc_loss(x, nd.array([[1, 2, 1]]))
    out.backward()
    grad = x.grad.asnumpy()
    assert 1_000 < out.item() < 1e6 and np.isfinite(grad).all()
    np.testing.assert_allclose(grad.sum(axis=2), 0, atol=1e-4)  # a step's chances stay 1 in all


def test_a_character_without_a_chance_is_no_way():
    scores = np.zeros((2, 1, 3))
    scores[0, 0, 1] = -np.inf
    actual = nd.ctc_loss(nd.array(scores), nd.array([[1]])).item()
    assert actual == pytest.approx(-np.log(1 / 6), rel=1e-6)  # blank, then the character


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: nd.ctc_loss(nd.ones((2, 3)), nd.ones((2, 1))),
            ShapeError,
            r"\(T, N, C\) is needed",
        ),
        (
            lambda: nd.ctc_loss(nd.ones((2, 1, 3)), nd.ones((1, 3))),
            ShapeError,
            "label has shape .1, 3., but words of 1 to 2 characters are needed",
        ),
        (
            lambda: nd.ctc_loss(
                nd.ones((2, 2, 3)), nd.ones((2, 1)), nd.ones(1), use_data_lengths=True
            ),
            ShapeError,
            r"data_lengths has shape \(1,\), but \(2,\) is needed",
        ),
        (
            lambda: nd.ctc_loss(
                nd.ones((2, 1, 3)), nd.ones((1, 1)), None, [1], use_label_lengths=True
            ),
            AttrError,
            r"input 'label_lengths' is \[1\]",
        ),
        (
            lambda: gluon.loss.CTCLoss()(nd.ones((1, 2, 3)), nd.array([[2, -1]])),
            PlaceError,
            "the labels go from -1.0 to 2.0, but there are 2 classes; needed: numbers from -1 to 1",
        ),
    ],
)
def test_mistakes_are_sentences(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_inputs_that_are_left_out_may_stand_before_others():
    """By keyword, and by `None` at their place; of a GRU, the cell's state is no input."""
    x, label, lengths = nd.ones((3, 2, 2)), nd.array([[1, 0], [1, 1]]), nd.array([1, 2])
    by_name = nd.ctc_loss(x, label, label_lengths=lengths, use_label_lengths=True)
    in_place = nd.ctc_loss(x, label, None, lengths, use_label_lengths=True)
    assert (by_name == in_place).asnumpy().all()
    more = {"mode": "gru", "state_size": 1, "num_layers": 1, "use_sequence_length": True}
    given = x, nd.ones(15), nd.ones((1, 2, 1))
    by_name = nd.RNN(*given, sequence_length=lengths, **more)
    assert (by_name == nd.RNN(*given, lengths, **more)).asnumpy().all()
