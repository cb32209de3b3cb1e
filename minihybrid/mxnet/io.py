"""Data iterators of MXNet's symbolic API.

Defines: `NDArrayIter`, `MNISTIter`; `DataBatch`, which they yield; `DataDesc`, a name and a
         shape; `DataIter`, the base class.

Shuffling uses the package's random generator, so `random.seed` reproduces it.
Not supported: iterators over other files, and prefetching (use `gluon.data.DataLoader`).
"""

from collections import namedtuple

import numpy as np

from minihybrid.core import lazy, nd
from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.convert import dtype_of
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import (
    AttrError,
    ShapeError,
    boolean,
    checked,
    choice,
    count,
    described,
    length,
)
from minihybrid.gluon.data.vision.datasets import read_idx
from minihybrid.gluon.data.vision.image import BATCHES
from minihybrid.ops.random import STREAM

INSTEAD = {
    "ImageRecordIter": BATCHES,
    "ResizeIter": "stop after n batches with itertools.islice, or repeat with itertools.cycle",
}
__getattr__ = lazy.face(globals(), {}, INSTEAD)


# -- batches ---------------------------------------------------------------------------
class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """The name, shape, dtype and layout of an array in each batch.

    >>> DataDesc("data", (4, 3))
    DataDesc[data,(4, 3),<class 'numpy.float32'>,NCHW]
    """

    def __new__(cls, name, shape, dtype=np.float32, layout="NCHW"):
        """Create a (name, shape) pair with attributes dtype and layout."""
        desc = super().__new__(cls, name, shape)
        desc.dtype, desc.layout = dtype, layout
        return desc

    def __repr__(self):
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout):
        """Return the batch axis: the position of N in the layout; 0 without a layout."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes, types):
        """Return DataDescs from [(name, shape)] and [(name, dtype)], which may be None."""
        types = dict(types or ())
        return [DataDesc(name, shape, types.get(name, np.float32)) for name, shape in shapes]


class DataBatch(metaclass=CheckedCall):
    """A batch of samples: `data` and `label` are lists of arrays.

    pad:    how many of the last samples only fill the batch.
    """

    def __init__(
        self,
        data,
        label=None,
        pad=None,
        index=None,
        bucket_key=None,
        provide_data=None,
        provide_label=None,
    ):
        for name, value in (("data", data), ("label", label)):
            if not isinstance(value, (list, tuple, type(None))):
                raise AttrError(
                    f"DataBatch: {name}={described(value)}, but a list of arrays is needed"
                )
        self.data, self.label, self.pad, self.index = data, label, pad, index
        self.bucket_key = bucket_key
        self.provide_data, self.provide_label = provide_data, provide_label

    def __str__(self):
        data, label = ([a.shape for a in part or ()] for part in (self.data, self.label))
        return f"{type(self).__name__}: data shapes: {data} label shapes: {label or None}"


class DataIter(metaclass=CheckedCall):
    """The base class: define `iter_next`, `getdata`, `getlabel` and `getpad`, or `next`."""

    def __init__(self, batch_size=0):
        self.batch_size = batch_size

    def __iter__(self):
        return self

    def __next__(self):
        return self.next()

    def reset(self):
        """Restart."""

    def next(self):
        """Return the next batch.

        Raises:  StopIteration after the last.
        """
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self):
        """Advance to the next batch; return whether there is one."""
        raise NotImplementedError

    def getdata(self):
        """Return the data arrays of this batch."""
        raise NotImplementedError

    def getlabel(self):
        """Return the labels of this batch."""
        raise NotImplementedError

    def getindex(self):
        """Return the indices of this batch's samples, or None."""

    def getpad(self):
        """Return how many samples of this batch only fill it."""
        raise NotImplementedError


# -- iterators -------------------------------------------------------------------------
class NDArrayIter(DataIter):
    """Iterates over arrays in batches of equal size.

    data, label:  an array, a list of arrays, or a dict by name; all of one length.
    last_batch_handle:  an incomplete last batch is filled with the first samples ("pad"),
                  dropped ("discard"), or starts the next epoch ("roll_over").
    layout:       its N marks the batch axis.

    >>> [batch.pad for batch in NDArrayIter(nd.zeros((5, 2)), batch_size=3)]
    [0, 1]
    """

    def __init__(
        self,
        data,
        label=None,
        batch_size=1,
        shuffle=False,
        last_batch_handle="pad",
        data_name="data",
        label_name="softmax_label",
        layout="NCHW",
    ):
        super().__init__(checked("NDArrayIter", "batch_size", batch_size, count))
        self.last_batch_handle = checked(
            "NDArrayIter",
            "last_batch_handle",
            last_batch_handle,
            choice("pad", "discard", "roll_over"),
        )
        self.shuffle, self.layout = checked("NDArrayIter", "shuffle", shuffle, boolean), layout
        self._axis = DataDesc.get_batch_axis(layout)
        self.data = _name_value_pairs(data, data_name, "data")
        self.label = [] if label is None else _name_value_pairs(label, label_name, "label")
        lengths = {name: a.shape[self._axis] for name, a in self.data + self.label}
        if len(set(lengths.values())) != 1:
            raise ShapeError(
                f"NDArrayIter: arrays of one length are needed along axis {self._axis}, "
                f"found {lengths or 'none'}"
            )
        self.num_data = next(iter(lengths.values()))
        if self.num_data < self.batch_size and self.last_batch_handle == "roll_over":
            raise ShapeError(
                f"NDArrayIter: batch_size={batch_size} is more than the {self.num_data} samples, "
                "so that no batch is ever full; use a smaller one, or last_batch_handle='pad'"
            )
        self.hard_reset()

    def _described(self, arrays):
        def shape(array):
            return *array.shape[: self._axis], self.batch_size, *array.shape[self._axis + 1 :]

        return [DataDesc(name, shape(a), a.dtype, self.layout) for name, a in arrays]

    @property
    def provide_data(self):
        """The name and shape of each data array of a batch."""
        return self._described(self.data)

    @property
    def provide_label(self):
        """The name and shape of each label of a batch."""
        return self._described(self.label)

    def hard_reset(self):
        """Restart, and drop the samples of an incomplete last batch."""
        self._left, self.cursor = None, -self.batch_size
        self._shuffle()

    def reset(self):
        """Restart, in a new order if shuffled."""
        rest = self.num_data - self.cursor
        if self.last_batch_handle == "roll_over" and 0 < rest < self.batch_size:
            self._left = self._between(self.cursor, self.num_data)
            self.cursor = -rest - self.batch_size
        else:
            self._left, self.cursor = None, -self.batch_size
        self._shuffle()

    def _shuffle(self):
        if self.shuffle:
            order = np.random.default_rng(STREAM.take(1)).permutation(self.num_data)
            self.data, self.label = (
                [(name, _take(a, order, self._axis)) for name, a in part]
                for part in (self.data, self.label)
            )

    def _between(self, begin, end):
        """Return (data, labels) of samples [begin, end)."""
        return tuple(
            [a.slice_axis(axis=self._axis, begin=begin, end=end) for _, a in part]
            for part in (self.data, self.label)
        )

    def iter_next(self):
        """Advance to the next batch; return whether there is one."""
        self.cursor += self.batch_size
        shorter = self.last_batch_handle != "pad"
        return self.cursor + shorter * (self.batch_size - 1) < self.num_data

    def _parts(self):
        """Return (data, labels) of this batch, each as consecutive parts."""
        begin, end = self.cursor, self.cursor + self.batch_size
        if begin < 0:  # the rest of the last epoch, then the first samples
            return [self._left, self._between(0, end)]
        pieces = [self._between(begin, min(end, self.num_data))]
        while end > self.num_data:
            end -= self.num_data
            pieces.append(self._between(0, min(end, self.num_data)))
        return pieces

    def _batch(self, which):
        pieces = [part[which] for part in self._parts()]
        joined = zip(*pieces, strict=True)
        return [a[0] if len(a) == 1 else nd.concat(*a, dim=self._axis) for a in joined]

    def getdata(self):
        """Return the data arrays of this batch."""
        return self._batch(0)

    def getlabel(self):
        """Return the labels of this batch."""
        return self._batch(1)

    def getpad(self):
        """Return how many samples of this batch only fill it, or are from the last epoch."""
        if self.cursor < 0:
            return -self.cursor
        return max(self.cursor + self.batch_size - self.num_data, 0)


def _name_value_pairs(arrays, name, what):
    """Return [(name, NDArray)] in the order of the names."""
    if isinstance(arrays, (NDArray, np.ndarray)):
        arrays = [arrays]
    if isinstance(arrays, (list, tuple)) and arrays:
        names = [name] if len(arrays) == 1 else [f"_{i}_{name}" for i in range(len(arrays))]
        arrays = dict(zip(names, arrays, strict=True))
    if not isinstance(arrays, dict):
        raise AttrError(
            f"NDArrayIter: {what}={described(arrays)}, but an array, a list of arrays or a dict of "
            "them is needed"
        )
    return [(k, a if isinstance(a, NDArray) else nd.array(a)) for k, a in sorted(arrays.items())]


def _take(array, order, axis):
    values = array.asnumpy().take(order, axis)
    return nd.array(values, array.context, dtype_of("NDArrayIter", array.dtype))


class MNISTIter(NDArrayIter):
    """Iterates over digits in idx files, optionally gzipped; labels are integers.

    flat:    images are vectors of values in [0, 1), else arrays of shape (1, height, width).
    shuffle: use one random order, given by `seed`, for all epochs.
    num_parts, part_index:  read only one of several parts of the files.
    silent, input_shape, data_shape:    ignored.
    """

    def __init__(
        self,
        image="./train-images-idx3-ubyte",
        label="./train-labels-idx1-ubyte",
        batch_size=128,
        shuffle=True,
        flat=False,
        seed=0,
        silent=False,
        num_parts=1,
        part_index=0,
        input_shape=None,
        data_shape=None,
    ):
        data, labels = read_idx(image, 3), read_idx(label, 1)
        if len(data) != len(labels):
            raise ShapeError(
                f"MNISTIter: '{image}' has {len(data)} pictures and '{label}' {len(labels)} labels"
            )
        num_parts = checked("MNISTIter", "num_parts", num_parts, count)
        part_index = checked("MNISTIter", "part_index", part_index, length)
        begin, end = (len(data) * i // num_parts for i in (part_index, part_index + 1))
        order = np.arange(len(data))[begin:end]
        if checked("MNISTIter", "shuffle", shuffle, boolean):
            order = np.random.default_rng(seed).permutation(order)
        data = data[order].reshape(len(order), *((-1,) if flat else (1, *data.shape[1:])))
        # MXNet divides by 256, which is exact, not by the maximum, 255.
        super().__init__(
            data.astype(np.float32) / 256, labels[order], batch_size, last_batch_handle="discard"
        )


__dir__ = own_names(globals())
