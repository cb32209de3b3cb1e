"""Samplers: the selection and order of samples.

Defines: `Sampler` and its subclasses, which iterate over indices, and `BatchSampler`, over
         lists of them.

Shuffling uses the package's random stream, so `random.seed` makes it reproducible.
Not supported: weighted sampling.
"""

import numpy as np

from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.hooks import own_names
from minihybrid.core.op import checked, choice, count, integer, unfit
from minihybrid.core.op import length as lengths
from minihybrid.ops.random import STREAM


def indexed(owner, data):
    """Return the data if it has a length and can be indexed.

    Raises:  AttrError for other objects.
    """
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise unfit(owner, "", data, "a dataset, an array or a list is needed")
    return data


def each(dataset):
    """Iterate over the samples of a dataset, in order."""
    return (dataset[i] for i in range(len(dataset)))


class Sampler(metaclass=CheckedCall):
    """The base class. A subclass defines `__iter__`, over indices, and `__len__`."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__}: write __iter__(self)")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__}: write __len__(self)")


class _Listed(Sampler):
    """The base class of samplers whose indices are the same in each iteration."""

    def __iter__(self):
        return iter(self._indices)

    def __len__(self):
        return len(self._indices)


class SequentialSampler(_Listed):
    """The `length` indices start, start + 1, ..."""

    def __init__(self, length, start=0):
        start = checked("SequentialSampler", "start", start, integer)
        last = start + checked("SequentialSampler", "length", length, lengths)
        self._indices = range(start, last)


class RandomSampler(Sampler):
    """0 to length - 1 in random order, different in each iteration."""

    def __init__(self, length):
        self._length = checked("RandomSampler", "length", length, lengths)

    def __iter__(self):
        order = np.random.default_rng(STREAM.take(1)).permutation(self._length)
        return iter(order.tolist())

    def __len__(self):
        return self._length


class FilterSampler(_Listed):
    """The indices of the samples for which `fn(sample)` is true."""

    def __init__(self, fn, dataset):
        if not callable(fn):
            raise unfit("FilterSampler", "fn", fn, "a function of a sample is needed")
        indexed("FilterSampler", dataset)
        self._indices = [i for i, sample in enumerate(each(dataset)) if fn(sample)]


class BatchSampler(Sampler):
    """Lists of `batch_size` indices.

    last_batch:  for a shorter last batch: "keep" it, "discard" it, or "rollover" to start the
                 next epoch with it.

    >>> list(BatchSampler(SequentialSampler(5), 2, "discard"))
    [[0, 1], [2, 3]]
    """

    def __init__(self, sampler, batch_size, last_batch="keep"):
        kinds = choice("keep", "discard", "rollover")
        last_batch = checked("BatchSampler", "last_batch", last_batch, kinds)
        if not hasattr(sampler, "__iter__"):
            need = "a gluon.data.Sampler, or a list of indices is needed"
            raise unfit("BatchSampler", "sampler", sampler, need)
        self._sampler = sampler
        self._batch_size = checked("BatchSampler", "batch_size", batch_size, count)
        self._last_batch, self._left = last_batch, []

    def __iter__(self):
        batch, self._left = self._left, []
        for i in self._sampler:
            batch.append(i)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif self._last_batch == "rollover":
            self._left = batch

    def __len__(self):
        count = len(self._sampler) + len(self._left)
        extra = self._batch_size - 1 if self._last_batch == "keep" else 0
        return (count + extra) // self._batch_size


__dir__ = own_names(globals())
