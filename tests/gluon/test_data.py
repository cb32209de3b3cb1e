"""Datasets, samplers and loaders keep every sample, in the order that was promised."""

import threading

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import AttrError, HybridError, nd
from minihybrid.gluon import data
from minihybrid.gluon.data import (
    ArrayDataset,
    BatchSampler,
    DataLoader,
    FilterSampler,
    RandomSampler,
    SequentialSampler,
    SimpleDataset,
)


def rows(n):
    """Samples (i, i + 1) with label i, as arrays."""
    return nd.array(np.arange(n)[:, None] + [0, 1]), nd.array(np.arange(n))


# -- datasets --------------------------------------------------------------------------
def test_samples_of_arrays_are_their_rows():
    x, y = rows(3)
    pairs, alone = ArrayDataset(x, y), ArrayDataset(x)
    assert len(pairs) == len(alone) == 3
    assert pairs[2][0].asnumpy().tolist() == alone[2].asnumpy().tolist() == [2, 3]
    assert pairs[2][1] == 2 and np.shape(pairs[2][1]) == ()


def test_arrays_of_different_lengths_are_an_error():
    with pytest.raises(AttrError, match=r"one length are .*, found lengths \[2, 3\]"):
        ArrayDataset([1, 2], [1, 2, 3])
    with pytest.raises(AttrError, match=r"found lengths \[\]"):
        ArrayDataset()


@pytest.mark.parametrize("lazy", [True, False])
def test_transforms_change_samples(lazy):
    calls = []
    pairs = ArrayDataset([1, 2], [10, 20])
    both = pairs.transform(lambda x, y: calls.append(x) or x + y, lazy)
    first = pairs.transform_first(lambda x: -x, lazy)
    assert calls == ([] if lazy else [1, 2])
    assert [both[i] for i in range(2)] == [11, 22]
    assert [first[i] for i in range(2)] == [(-1, 10), (-2, 20)]
    assert SimpleDataset([5]).transform_first(lambda x: -x, lazy)[0] == -5


def test_filter_take_and_sample_choose():
    numbers = SimpleDataset(list(range(10)))

    def all_of(chosen):
        return [chosen[i] for i in range(len(chosen))]

    assert all_of(numbers.filter(lambda x: x % 3 == 0)) == [0, 3, 6, 9]
    assert all_of(numbers.take(2)) == [0, 1] and len(numbers.take(None)) == 10
    assert all_of(numbers.take(99)) == list(range(10))
    assert all_of(numbers.sample(SequentialSampler(3, 4))) == [4, 5, 6]
    with pytest.raises(AttrError, match=r"\[1\] is not a gluon.data.Sampler"):
        numbers.sample([1])


@pytest.mark.parametrize("length", [0, 7, 8])
@pytest.mark.parametrize("num_shards", [1, 3, 4])
def test_shards_are_nearly_equal_and_together_everything(length, num_shards):
    numbers = SimpleDataset(list(range(length)))
    shards = [numbers.shard(num_shards, i) for i in range(num_shards)]
    assert [s[i] for s in shards for i in range(len(s))] == list(range(length))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    with pytest.raises(AttrError, match="does not exist"):
        numbers.shard(num_shards, num_shards)


# -- samplers --------------------------------------------------------------------------
def test_random_order_is_a_permutation_that_the_seed_repeats():
    mx.random.seed(1)
    sampler = RandomSampler(100)
    rounds = [list(sampler) for _ in range(2)]
    assert rounds[0] != rounds[1]
    assert all(sorted(r) == list(range(100)) for r in rounds)
    mx.random.seed(1)
    assert [list(sampler) for _ in range(2)] == rounds


def test_filter_sampler_names_the_chosen():
    sampler = FilterSampler(lambda x: x > 1, SimpleDataset([1, 2, 3]))
    assert list(sampler) == [1, 2] and len(sampler) == 2


@pytest.mark.parametrize("length", [0, 1, 5, 6])
@pytest.mark.parametrize(
    "last, rounds",
    [("keep", lambda n: [list(range(n))] * 3), ("discard", lambda n: [list(range(n - n % 3))] * 3)],
)
def test_batches_are_whole_and_counted(length, last, rounds):
    sampler = BatchSampler(SequentialSampler(length), 3, last)
    for expected in rounds(length):
        count, batches = len(sampler), list(sampler)
        assert len(batches) == count and sum(batches, []) == expected
        assert all(len(b) == 3 for b in batches[:-1])


def test_a_rolled_over_rest_begins_the_next_round():
    sampler = BatchSampler(SequentialSampler(5), 3, "rollover")
    assert len(sampler) == 1 and list(sampler) == [[0, 1, 2]]
    assert len(sampler) == 2 and list(sampler) == [[3, 4, 0], [1, 2, 3]]
    assert list(sampler) == [[4, 0, 1], [2, 3, 4]]
    with pytest.raises(AttrError, match="last_batch='drop' .*needed: one of keep, discard"):
        BatchSampler(SequentialSampler(5), 3, "drop")


# -- the loader ------------------------------------------------------------------------
@pytest.mark.parametrize("num_workers", [0, 1, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_hold_every_sample_and_workers_change_nothing(num_workers, shuffle):
    mx.random.seed(5)
    alone = DataLoader(ArrayDataset(*rows(10)), 4, shuffle)
    first = [label.asnumpy() for _, label in alone]
    mx.random.seed(5)
    loader = DataLoader(ArrayDataset(*rows(10)), 4, shuffle, num_workers=num_workers)
    seen = []
    for x, y in loader:
        np.testing.assert_array_equal(x.asnumpy()[:, 0], y.asnumpy())
        seen.append(y.asnumpy())
    assert [len(y) for y in seen] == [4, 4, 2] and len(loader) == 3
    np.testing.assert_array_equal(np.concatenate(seen), np.concatenate(first))
    assert sorted(np.concatenate(seen)) == list(range(10))


@pytest.mark.parametrize(
    "last, sizes", [("keep", [4, 4, 2]), ("discard", [4, 4]), ("rollover", [4, 4])]
)
def test_the_last_batch(last, sizes):
    loader = DataLoader(ArrayDataset(rows(10)[0]), 4, last_batch=last)
    assert len(loader) == len(sizes)
    assert [len(batch) for batch in loader] == sizes


def test_batches_are_made_by_workers_ahead_of_the_loop():
    made, main = [], threading.get_ident()

    def note(x):
        made.append((x, threading.get_ident()))
        return x

    numbers = SimpleDataset(list(range(20))).transform(note)
    batches = iter(DataLoader(numbers, 1, num_workers=2))
    next(batches)
    batches.close()  # leaving the loop early gives the workers back
    assert main not in {thread for _, thread in made}
    assert 1 <= len(made) <= 6


def test_what_transforms_draw_does_not_depend_on_which_worker_is_faster():
    """Of two batches the first one draws first, then the second one does."""

    def drawn(first):
        turn = threading.Event()

        def jitter(x):
            if x != first:
                assert turn.wait(600)
            actual = x + nd.random.uniform(shape=(2,))
            turn.set()
            return actual

        mx.random.seed(3)
        loader = DataLoader(SimpleDataset([0, 1]).transform(jitter), 1, num_workers=2)
        return np.concatenate([batch.asnumpy() for batch in loader]), nd.random.uniform().item()

    (batches, after), (other_batches, other_after) = drawn(0), drawn(1)
    np.testing.assert_array_equal(batches, other_batches)
    assert after == other_after and len({*batches.ravel() % 1}) == 4


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_error_in_a_dataset_reaches_the_loop(num_workers):
    loader = DataLoader(
        SimpleDataset([1, 0]).transform(lambda x: 1 // x), 1, num_workers=num_workers
    )
    with pytest.raises(ZeroDivisionError):
        list(loader)


def test_a_worker_that_is_too_slow_is_an_error():
    go_on = threading.Event()
    slow = SimpleDataset([1]).transform(lambda x: go_on.wait(600) and x)
    try:
        with pytest.raises(HybridError, match="more than timeout=0.01 seconds"):
            list(DataLoader(slow, 1, num_workers=1, timeout=0.01))
    finally:
        go_on.set()


def test_batchify_functions_and_samplers_of_ones_own():
    loader = DataLoader(
        SimpleDataset(["a", "bc", "d"]), batch_sampler=[[2, 0], [1]], batchify_fn="".join
    )
    assert list(loader) == ["da", "bc"]
    loader = DataLoader(SimpleDataset([1.5, 2]), 1, sampler=SequentialSampler(1, 1))
    assert [b.asnumpy().tolist() for b in loader] == [[2]]


def test_dtypes_of_samples_are_kept():
    images = nd.array(np.zeros((2, 3)), dtype="uint8")
    ((x, y, z),) = DataLoader(ArrayDataset(images, np.int32([1, 2]), [0.5, 1]), 2)
    assert [a.dtype for a in (x, y, z)] == [np.uint8, np.int32, np.float64]
    (nested,) = DataLoader(SimpleDataset([(1, (2, 3))] * 2), 2)
    assert nested[1][1].asnumpy().tolist() == [3, 3]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({}, "a batch_size is needed"),
        ({"batch_size": 2, "shuffle": True, "sampler": SequentialSampler(2)}, "no shuffle"),
        ({"batch_size": 2, "batch_sampler": [[0]]}, "batch_sampler can't be combined"),
        ({"last_batch": "keep", "batch_sampler": [[0]]}, "batch_sampler can't be combined"),
    ],
)
def test_settings_that_contradict_each_other_are_errors(settings, message):
    with pytest.raises(AttrError, match=message):
        DataLoader(SimpleDataset([1, 2]), **settings)


def test_default_batches_are_public():
    assert data.default_batchify_fn([1, 2]).asnumpy().tolist() == [1, 2]


def test_loaders_say_what_they_go_through():
    assert repr(DataLoader(ArrayDataset([1, 2, 3]), 2, num_workers=1)) == (
        "DataLoader(ArrayDataset of 3 samples, in 2 batches, num_workers=1)"
    )
    endless = DataLoader([1, 2], batch_sampler=iter([[0], [1]]))
    assert repr(endless) == "DataLoader(list of 2 samples, in batches, num_workers=0)"
