"""The digits are those of the source, split fairly, with their license beside them."""

import numpy as np
from minihybrid.datasets import DIGITS, digits

PER_CLASS = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # as the source tells
INK = 561718  # sum of all pixels


def test_all_digits_are_there_once():
    (train_x, train_y), (test_x, test_y) = digits()
    labels = np.concatenate([train_y.asnumpy(), test_y.asnumpy()])
    images = np.concatenate([train_x.asnumpy(), test_x.asnumpy()]).reshape(-1, 64)
    assert np.bincount(labels.astype(int)).tolist() == PER_CLASS
    assert len(np.unique(images, axis=0)) == len(images)  # none is in both parts
    assert (images * 16).sum() == INK


def test_images_stayed_with_their_labels():
    """In the mean image of a class a digit of the class is the nearest to most."""
    (train_x, train_y), (test_x, test_y) = digits()
    means = np.stack([train_x.asnumpy()[train_y.asnumpy() == k].mean(0) for k in range(10)])
    distances = ((test_x.asnumpy()[:, None] - means) ** 2).sum(axis=(2, 3))
    assert (distances.argmin(1) == test_y.asnumpy()).mean() > 0.85


def test_every_class_is_split_alike():
    _, (_, test_y) = digits()
    in_test = np.bincount(test_y.asnumpy().astype(int))
    assert np.abs(in_test - 0.2 * np.array(PER_CLASS)).max() <= 0.5


def test_arrays_are_ready_for_a_network():
    for images, labels in digits():
        assert images.dtype == labels.dtype == np.float32
        assert images.shape == (len(labels), 8, 8)
        assert images.asnumpy().min() == 0 and images.asnumpy().max() == 1


def test_each_call_gives_new_memory():
    (first, _), _ = digits()
    first[:] = 7
    (second, _), _ = digits()
    assert second.asnumpy().max() == 1


def test_file_holds_plain_numbers_and_its_source_is_named():
    with np.load(DIGITS, allow_pickle=False) as stored:
        assert {stored[name].dtype for name in stored} == {np.dtype("uint8")}
    notice = DIGITS.with_name("NOTICE").read_text(encoding="utf-8")
    assert "Alpaydin" in notice and "Attribution 4.0" in notice
