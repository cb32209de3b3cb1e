"""Datasets of samples.

Defines: `Dataset` and its subclasses, which have a length and can be indexed.
"""

import os

from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.files import path_of
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError, checked, integer, optional, unfit
from minihybrid.core.op import length as lengths
from minihybrid.gluon.data.sampler import FilterSampler, Sampler, SequentialSampler, each, indexed


class Dataset(metaclass=CheckedCall):
    """The base class. A subclass defines `__len__` and `__getitem__`."""

    def __getitem__(self, idx):
        raise NotImplementedError(f"{type(self).__name__}: write __getitem__(self, idx)")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__}: write __len__(self)")

    def transform(self, fn, lazy=True):
        """Replace each sample by `fn(*sample)`, now or lazily.

        >>> SimpleDataset([1, 2, 3]).transform(lambda x: 10 * x)[2]
        30
        """
        transformed = _Transformed(self, fn)
        return transformed if lazy else SimpleDataset(list(each(transformed)))

    def transform_first(self, fn, lazy=True):
        """Replace the first element of each sample, usually the data, by `fn(data)`."""
        return self.transform(_First(fn), lazy)

    def filter(self, fn):
        """Return the samples for which `fn(sample)` is true."""
        return _SampledDataset(self, FilterSampler(fn, self))

    def take(self, count):
        """Return the first `count` samples, or all for `None`."""
        n = checked("take", "count", count, optional(lengths))
        n = len(self) if n is None else min(n, len(self))
        return _SampledDataset(self, SequentialSampler(n))

    def shard(self, num_shards, index):
        """Return one of several parts of equal size; the first ones may be longer by one.

        Raises:  AttrError if there's no such part.
        """
        num_shards = checked("shard", "num_shards", num_shards, integer)
        if not 0 <= checked("shard", "index", index, integer) < num_shards:
            raise AttrError(
                f"shard: part {index} of {num_shards} does not exist; needed: 0 to {num_shards - 1}"
            )
        size, rest = divmod(len(self), num_shards)
        start = size * index + min(index, rest)
        return _SampledDataset(self, SequentialSampler(size + (index < rest), start))

    def sample(self, sampler):
        """Return the samples at a sampler's indices, in its order."""
        if not isinstance(sampler, Sampler):
            raise AttrError(f"sample: {sampler!r} is not a gluon.data.Sampler")
        return _SampledDataset(self, sampler)


class SimpleDataset(Dataset):
    """A sequence (an object with a length and indexing) as a dataset."""

    def __init__(self, data):
        self._data = indexed("SimpleDataset", data)

    def __len__(self):
        return len(self._data)

    def __getitem__(self, idx):
        return self._data[idx]


class ArrayDataset(Dataset):
    """Arrays or lists of equal length. Sample i is the tuple of their elements i.

    >>> from minihybrid import nd
    >>> len(ArrayDataset(nd.zeros((3, 2)), [0, 1, 1]))
    3
    """

    def __init__(self, *args):
        lengths = [len(indexed("ArrayDataset", a)) for a in args]
        if not args or len(set(lengths)) > 1:
            raise AttrError(
                f"ArrayDataset: arrays of one length are needed, found lengths {lengths}"
            )
        # Elements of a one-dimensional NDArray would have shape (1,), not ().
        self._data = [a.asnumpy() if isinstance(a, NDArray) and a.ndim == 1 else a for a in args]

    def __len__(self):
        return len(self._data[0])

    def __getitem__(self, idx):
        parts = tuple(a[idx] for a in self._data)
        return parts if len(parts) > 1 else parts[0]


class RecordFileDataset(Dataset):
    """The records of a file `name.rec`, in the order of its index, `name.idx`: bytes.

    Raises:  FileError for other kinds of files.
    """

    def __init__(self, filename):
        self.filename = os.fspath(path_of(filename))
        self.idx_file = os.path.splitext(self.filename)[0] + ".idx"
        from minihybrid.mxnet.recordio import MXIndexedRecordIO

        self._record = MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __len__(self):
        return len(self._record.keys)

    def __getitem__(self, idx):
        return self._record.read_idx(self._record.keys[idx])


def _function(owner, fn):
    if not callable(fn):
        raise unfit(owner, "fn", fn, "a function of a sample is needed")
    return fn


class _Transformed(SimpleDataset):
    """A dataset with a function applied to its samples."""

    def __init__(self, dataset, fn):
        self._data, self._fn = dataset, _function("transform", fn)

    def __getitem__(self, idx):
        sample = self._data[idx]
        return self._fn(*sample) if isinstance(sample, tuple) else self._fn(sample)


class _First:
    """A function that changes only the first element of a sample."""

    def __init__(self, fn):
        self._fn = _function("transform_first", fn)

    def __call__(self, first, *rest):
        return (self._fn(first), *rest) if rest else self._fn(first)


class _SampledDataset(Dataset):
    """The samples at a sampler's indices, which are drawn when the dataset is created."""

    def __init__(self, dataset, sampler):
        self._dataset, self._indices = dataset, list(sampler)

    def __len__(self):
        return len(self._indices)

    def __getitem__(self, idx):
        return self._dataset[self._indices[idx]]


__dir__ = own_names(globals())
