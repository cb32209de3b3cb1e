"""Data loaders: batches of samples.

Defines: `DataLoader`, which assembles batches, and `default_batchify_fn`.

Workers are threads: NumPy releases the GIL while it computes, batches aren't copied between
processes, and the dataset doesn't have to be picklable. Transforms in pure Python don't
speed up with threads. Each batch has its own random stream, so results are reproducible
with `mx.random.seed`, whatever the order of the workers.
Not supported: pinned memory.
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from minihybrid.core import nd
from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import (
    AttrError,
    HybridError,
    checked,
    count,
    integer,
    optional,
    positive,
    unfit,
)
from minihybrid.core.op import length as lengths
from minihybrid.core.parameter import in_world
from minihybrid.gluon.data.sampler import BatchSampler, RandomSampler, SequentialSampler, indexed
from minihybrid.ops.random import STREAM


def default_batchify_fn(data):
    """Stack samples into one array, or into a list of arrays if samples are tuples.

    >>> [part.shape for part in default_batchify_fn([(nd.zeros((2,)), 1)] * 3)]
    [(3, 2), (3,)]
    """
    if not isinstance(data, (list, tuple)) or not data:
        raise unfit("default_batchify_fn", "", data, "a list of samples is needed")
    if isinstance(data[0], NDArray):
        return in_world(nd.stack(*data))
    if isinstance(data[0], tuple):
        return [default_batchify_fn(part) for part in zip(*data, strict=True)]
    data = np.asarray(data)
    return in_world(nd.array(data, dtype=data.dtype))


class DataLoader(metaclass=CheckedCall):
    """Iterate over a dataset in batches. Each `for` loop is one epoch.

    sampler, batch_sampler:  which samples, or lists of samples, to use instead of `shuffle`
                             or `batch_size`.
    batchify_fn:   a list of samples -> a batch.
    num_workers:   threads that prepare batches in advance. With 0, batches are made on demand.
    prefetch:      the number of batches in advance, by default twice the workers.
    timeout:       seconds to wait for a worker's batch before a HybridError.
    pin_memory, pin_device_id, thread_pool, auto_reload:  ignored.

    >>> loader = DataLoader([1.0, 2.0, 3.0], batch_size=2)
    >>> [batch.shape for batch in loader]
    [(2,), (1,)]
    """

    def __init__(
        self,
        dataset,
        batch_size=None,
        shuffle=False,
        sampler=None,
        last_batch=None,
        batch_sampler=None,
        batchify_fn=None,
        num_workers=0,
        pin_memory=False,
        pin_device_id=0,
        prefetch=None,
        thread_pool=False,
        timeout=120,
        auto_reload=False,
    ):
        indexed("DataLoader", dataset)
        num_workers = checked("DataLoader", "num_workers", num_workers, integer)
        prefetch = checked("DataLoader", "prefetch", prefetch, optional(lengths))
        timeout = checked("DataLoader", "timeout", timeout, positive)
        batch_size = checked("DataLoader", "batch_size", batch_size, optional(count))
        if batchify_fn is not None and not callable(batchify_fn):
            need = "a function of a list of samples is needed"
            raise unfit("DataLoader", "batchify_fn", batchify_fn, need)
        if batch_sampler is None:
            if batch_size is None or shuffle and sampler is not None:
                raise AttrError("DataLoader: a batch_size is needed, and with a sampler no shuffle")
            if sampler is None:
                kind = RandomSampler if shuffle else SequentialSampler
                sampler = kind(len(dataset))
            batch_sampler = BatchSampler(sampler, batch_size, last_batch or "keep")
        elif batch_size is not None or shuffle or sampler is not None or last_batch:
            raise AttrError(
                "DataLoader: batch_sampler can't be combined with batch_size, shuffle, sampler or "
                "last_batch; remove those"
            )
        self._dataset, self._batch_sampler = dataset, batch_sampler
        self._batchify_fn = batchify_fn or default_batchify_fn
        self._num_workers, self._timeout = max(num_workers, 0), timeout
        ahead = 2 * self._num_workers if prefetch is None else prefetch
        self._prefetch = max(ahead, self._num_workers)

    def __len__(self):
        return len(self._batch_sampler)

    def __repr__(self):
        sized = hasattr(self._batch_sampler, "__len__")
        batches = f"in {len(self)} batches" if sized else "in batches"
        samples = f"{type(self._dataset).__name__} of {len(self._dataset)} samples"
        return f"DataLoader({samples}, {batches}, num_workers={self._num_workers})"

    def _batch(self, indices):
        return self._batchify_fn([self._dataset[i] for i in indices])

    def _branched(self, key, indices):
        with STREAM.branch(key):
            return self._batch(indices)

    def _wait(self, future):
        try:
            return future.result(self._timeout)
        except TimeoutError as error:
            if future.done():  # raised by the dataset, not by waiting
                raise
            raise HybridError(
                f"DataLoader: a worker needs more than timeout={self._timeout} seconds for a "
                "batch; allow more, or make the transform faster"
            ) from error

    def __iter__(self):
        if not self._num_workers:
            yield from map(self._batch, self._batch_sampler)
            return
        pool, waiting = ThreadPoolExecutor(self._num_workers), deque()
        try:
            for indices in self._batch_sampler:
                waiting.append(pool.submit(self._branched, STREAM.take(1), indices))
                if len(waiting) > self._prefetch:
                    yield self._wait(waiting.popleft())
            while waiting:
                yield self._wait(waiting.popleft())
        finally:  # also after a break from the loop
            pool.shutdown(wait=False, cancel_futures=True)


__dir__ = own_names(globals())
