"""Chapter 06. Data: samples one by one, and batches of them.

Takes:   anything with a length and an index.
Gives:   `Dataset` and its children, samplers (which samples, in which order), and
         `DataLoader`, which makes batches.

Shuffling draws from the package's random numbers, so `random.seed` repeats it. Workers
are threads: NumPy lets others run while it computes, a batch need not be copied from
another process, and the dataset need not be picklable. A transform that is slow Python
gains nothing from threads, and one that draws random numbers is repeatable without
workers only.
What is left out: files of records, images, and pinned memory.
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from minihybrid.core import nd
from minihybrid.core.mistake import Signed
from minihybrid.core.nd import NDArray
from minihybrid.core.op import (
    AttrError,
    HybridError,
    checked,
    count,
    described,
    integer,
    optional,
    positive,
)
from minihybrid.core.op import length as lengths
from minihybrid.core.parameter import in_world
from minihybrid.ops.random import STREAM


# -- datasets --------------------------------------------------------------------------
class Dataset(metaclass=Signed):
    """The parent: a child gives `__len__` and `__getitem__`."""

    def __getitem__(self, idx):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def transform(self, fn, lazy=True):
        """`fn(*sample)` in place of each sample; now, or whenever one is asked for.

        >>> SimpleDataset([1, 2, 3]).transform(lambda x: 10 * x)[2]
        30
        """
        transformed = _Transformed(self, fn)
        return transformed if lazy else SimpleDataset(list(_each(transformed)))

    def transform_first(self, fn, lazy=True):
        """`fn(data)` in place of the first part of each sample, usually the data."""
        return self.transform(_First(fn), lazy)

    def filter(self, fn):
        """The samples for which `fn(sample)` is true."""
        return _SampledDataset(self, FilterSampler(fn, self))

    def take(self, count):
        """The first samples; all of them for `None`."""
        n = checked("take", "count", count, optional(lengths))
        n = len(self) if n is None else min(n, len(self))
        return _SampledDataset(self, SequentialSampler(n))

    def shard(self, num_shards, index):
        """One of several parts of equal size; the first may be longer by one.

        Raises:  AttrError if there is no such part.
        """
        num_shards = checked("shard", "num_shards", num_shards, integer)
        if not 0 <= checked("shard", "index", index, integer) < num_shards:
            raise AttrError(f"shard: part {index} of {num_shards} does not exist; "
                            f"needed: 0 to {num_shards - 1}")
        size, rest = divmod(len(self), num_shards)
        start = size * index + min(index, rest)
        return _SampledDataset(self, SequentialSampler(size + (index < rest), start))

    def sample(self, sampler):
        """The samples that a sampler names, in its order."""
        if not isinstance(sampler, Sampler):
            raise AttrError(f"sample: {sampler!r} is not a gluon.data.Sampler")
        return _SampledDataset(self, sampler)


def indexed(owner, data):
    """Data, if they have a length and an index.

    Raises:  AttrError, naming what was found.
    """
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise AttrError(f"{owner}: {described(data)} has no length or no index; "
                        "needed: a dataset, an array or a list")
    return data


def _each(dataset):
    return (dataset[i] for i in range(len(dataset)))


class SimpleDataset(Dataset):
    """A list, or anything with a length and an index, as a dataset."""

    def __init__(self, data):
        self._data = indexed("SimpleDataset", data)

    def __len__(self):
        return len(self._data)

    def __getitem__(self, idx):
        return self._data[idx]


class ArrayDataset(Dataset):
    """Arrays or lists of one length; sample i is the tuple of their parts i.

    >>> len(ArrayDataset(nd.zeros((3, 2)), [0, 1, 1]))
    3
    """

    def __init__(self, *args):
        lengths = [len(indexed("ArrayDataset", a)) for a in args]
        if not args or len(set(lengths)) > 1:
            raise AttrError(f"ArrayDataset: arrays of one length are needed, found "
                            f"lengths {lengths}")
        # Elements of a one-dimensional NDArray would have shape (1,), not ().
        self._data = [a.asnumpy() if isinstance(a, NDArray) and a.ndim == 1 else a
                      for a in args]

    def __len__(self):
        return len(self._data[0])

    def __getitem__(self, idx):
        parts = tuple(a[idx] for a in self._data)
        return parts if len(parts) > 1 else parts[0]


class _Transformed(Dataset):
    """A dataset whose samples pass through a function."""

    def __init__(self, dataset, fn):
        if not callable(fn):
            raise AttrError(f"transform: fn={described(fn)}, but a function of a "
                            "sample is needed")
        self._dataset, self._fn = dataset, fn

    def __len__(self):
        return len(self._dataset)

    def __getitem__(self, idx):
        sample = self._dataset[idx]
        return self._fn(*sample) if isinstance(sample, tuple) else self._fn(sample)


class _First:
    """A function of a sample that changes its first part only."""

    def __init__(self, fn):
        self._fn = fn

    def __call__(self, first, *rest):
        return (self._fn(first), *rest) if rest else self._fn(first)


class _SampledDataset(Dataset):
    """The samples that a sampler named when the dataset was made."""

    def __init__(self, dataset, sampler):
        self._dataset, self._indices = dataset, list(sampler)

    def __len__(self):
        return len(self._indices)

    def __getitem__(self, idx):
        return self._dataset[self._indices[idx]]


# -- samplers --------------------------------------------------------------------------
class Sampler(metaclass=Signed):
    """The parent: a child gives `__iter__`, over indices, and `__len__`."""

    def __iter__(self):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError


class SequentialSampler(Sampler):
    """start, start + 1, ...: `length` of them."""

    def __init__(self, length, start=0):
        start = checked("SequentialSampler", "start", start, integer)
        last = start + checked("SequentialSampler", "length", length, lengths)
        self._range = range(start, last)

    def __iter__(self):
        return iter(self._range)

    def __len__(self):
        return len(self._range)


class RandomSampler(Sampler):
    """0 to length - 1 in random order, another one each time it is gone through."""

    def __init__(self, length):
        self._length = checked("RandomSampler", "length", length, lengths)

    def __iter__(self):
        order = np.random.default_rng(STREAM.take(1)).permutation(self._length)
        return iter(order.tolist())

    def __len__(self):
        return self._length


class FilterSampler(Sampler):
    """The indices of the samples for which `fn(sample)` is true."""

    def __init__(self, fn, dataset):
        if not callable(fn):
            raise AttrError(f"FilterSampler: fn={described(fn)}, but a function of a "
                            "sample is needed")
        indexed("FilterSampler", dataset)
        self._indices = [i for i, sample in enumerate(_each(dataset)) if fn(sample)]

    def __iter__(self):
        return iter(self._indices)

    def __len__(self):
        return len(self._indices)


class BatchSampler(Sampler):
    """Lists of `batch_size` indices.

    last_batch:  what happens to a last, shorter list: "keep" it, "discard" it, or
                 "rollover": the next round begins with it.

    >>> list(BatchSampler(SequentialSampler(5), 2, "discard"))
    [[0, 1], [2, 3]]
    """

    def __init__(self, sampler, batch_size, last_batch="keep"):
        if last_batch not in ("keep", "discard", "rollover"):
            raise AttrError(f"BatchSampler: last_batch={last_batch!r}, but 'keep', "
                            "'discard' or 'rollover' is needed")
        if not hasattr(sampler, "__iter__"):
            raise AttrError(f"BatchSampler: {described(sampler)} is no sampler; "
                            "needed: a gluon.data.Sampler, or a list of places")
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


# -- batches ---------------------------------------------------------------------------
def default_batchify_fn(data):
    """A list of samples as one array, or as a list of arrays if samples are tuples.

    >>> [part.shape for part in default_batchify_fn([(nd.zeros((2,)), 1)] * 3)]
    [(3, 2), (3,)]
    """
    if not isinstance(data, (list, tuple)) or not data:
        raise AttrError(f"default_batchify_fn: {described(data)} is given, but a list "
                        "of samples is needed")
    if isinstance(data[0], NDArray):
        return in_world(nd.stack(*data))
    if isinstance(data[0], tuple):
        return [default_batchify_fn(part) for part in zip(*data, strict=True)]
    data = np.asarray(data)
    return in_world(nd.array(data, dtype=data.dtype))


class DataLoader(metaclass=Signed):
    """Goes through a dataset in batches; each `for` loop is one round.

    sampler, batch_sampler:  which samples, or lists of samples; instead of `shuffle`,
                             and of `batch_size`.
    batchify_fn:   a list of samples -> a batch.
    num_workers:   threads that make batches ahead; 0 makes each when it is asked for.
    prefetch:      how many batches ahead; twice the workers unless given.
    timeout:       seconds to wait for a worker's batch, then a HybridError.
    pin_memory, pin_device_id, thread_pool, auto_reload:  have no effect here.

    >>> loader = DataLoader(ArrayDataset([1.0, 2.0, 3.0]), batch_size=2)
    >>> [batch.shape for batch in loader]
    [(2,), (1,)]
    """

    def __init__(self, dataset, batch_size=None, shuffle=False, sampler=None,
                 last_batch=None, batch_sampler=None, batchify_fn=None, num_workers=0,
                 pin_memory=False, pin_device_id=0, prefetch=None, thread_pool=False,
                 timeout=120, auto_reload=False):
        indexed("DataLoader", dataset)
        num_workers = checked("DataLoader", "num_workers", num_workers, integer)
        prefetch = checked("DataLoader", "prefetch", prefetch, optional(lengths))
        timeout = checked("DataLoader", "timeout", timeout, positive)
        batch_size = checked("DataLoader", "batch_size", batch_size, optional(count))
        if batchify_fn is not None and not callable(batchify_fn):
            raise AttrError(f"DataLoader: batchify_fn={described(batchify_fn)}, but a "
                            "function of a list of samples is needed")
        if batch_sampler is None:
            if batch_size is None or shuffle and sampler is not None:
                raise AttrError("DataLoader: a batch_size is needed, and with a "
                                "sampler no shuffle")
            if sampler is None:
                kind = RandomSampler if shuffle else SequentialSampler
                sampler = kind(len(dataset))
            batch_sampler = BatchSampler(sampler, batch_size, last_batch or "keep")
        elif batch_size is not None or shuffle or sampler is not None or last_batch:
            raise AttrError("DataLoader: batch_sampler decides alone; batch_size, "
                            "shuffle, sampler and last_batch must not be given too")
        self._dataset, self._batch_sampler = dataset, batch_sampler
        self._batchify_fn = batchify_fn or default_batchify_fn
        self._num_workers, self._timeout = max(num_workers, 0), timeout
        ahead = 2 * self._num_workers if prefetch is None else prefetch
        self._prefetch = max(ahead, self._num_workers)

    def __len__(self):
        return len(self._batch_sampler)

    def _batch(self, indices):
        return self._batchify_fn([self._dataset[i] for i in indices])

    def _wait(self, future):
        try:
            return future.result(self._timeout)
        except TimeoutError as error:
            if future.done():  # raised by the dataset, not by the wait
                raise
            raise HybridError(f"DataLoader: a worker needs more than timeout="
                              f"{self._timeout} seconds for a batch; allow more, or "
                              "make the transform faster") from error

    def __iter__(self):
        if not self._num_workers:
            yield from map(self._batch, self._batch_sampler)
            return
        pool, waiting = ThreadPoolExecutor(self._num_workers), deque()
        try:
            for indices in self._batch_sampler:
                waiting.append(pool.submit(self._batch, indices))
                if len(waiting) > self._prefetch:
                    yield self._wait(waiting.popleft())
            while waiting:
                yield self._wait(waiting.popleft())
        finally:  # also when the loop over the batches is left early
            pool.shutdown(wait=False, cancel_futures=True)
