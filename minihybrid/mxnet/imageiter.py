"""Iterators over batches of images, from RecordIO files or lists of files.

Defines: `ImageIter`, which is `mx.image.ImageIter`; `ImageRecordIter`, `mx.io.ImageRecordIter`.

Both yield float32 arrays of shape (batch, channels, height, width); their random choices are
reproducible with `mx.random.seed`. Images are read when their batch is requested.
Source:  MXNet 1.9.1: without random choices, all pixels are equal.
Not supported: prefetching (use `gluon.data.DataLoader`), object detection, and the rotation,
         scaling and color options of `ImageRecordIter`.
"""

import os

import numpy as np

from minihybrid.core import nd
from minihybrid.core.files import FileError, path_of, read_whole
from minihybrid.core.hooks import own_names
from minihybrid.core.op import (
    AttrError,
    HybridError,
    boolean,
    checked,
    choice,
    count,
    finite,
    integer,
    length,
)
from minihybrid.core.parameter import in_world
from minihybrid.gluon.data.vision.image import draws, imdecode, pixels, resized
from minihybrid.mxnet.augmenters import CreateAugmenter, picture_shape
from minihybrid.mxnet.io import DataBatch, DataDesc, DataIter
from minihybrid.mxnet.recordio import MXIndexedRecordIO, unpack
from minihybrid.ops.random import STREAM


class ImageIter(DataIter):
    """Iterates over batches of augmented images.

    data_shape:   (3, height, width).
    label_width:  the number of labels per image.
    path_imgrec:  a RecordIO file; path_imgidx: its index, which is optional.
    path_imglist, path_root:  instead, a file of lines `key TAB label TAB ... TAB file`.
    imglist:      instead, [(label, ..., file)].
    num_parts, part_index:  read only one of several parts of equal size.
    aug_list:     the augmenters, by default `CreateAugmenter(data_shape, **kwargs)`.
    dtype:        of the labels.
    last_batch_handle:  as in `io.NDArrayIter`: "pad", "discard" or "roll_over".

    Raises:  FileError for an invalid file.
    """

    def __init__(
        self,
        batch_size,
        data_shape,
        label_width=1,
        path_imgrec=None,
        path_imglist=None,
        path_root=None,
        path_imgidx=None,
        shuffle=False,
        part_index=0,
        num_parts=1,
        aug_list=None,
        imglist=None,
        data_name="data",
        label_name="softmax_label",
        dtype="float32",
        last_batch_handle="pad",
        **kwargs,
    ):
        super().__init__(checked("ImageIter", "batch_size", batch_size, count))
        self.data_shape = picture_shape("ImageIter", data_shape)
        self.label_width = checked("ImageIter", "label_width", label_width, count)
        self.dtype = checked(
            "ImageIter", "dtype", dtype, choice("float32", "float64", "int32", "int64")
        )
        handles = choice("pad", "discard", "roll_over")
        self.last_batch_handle = checked(
            "ImageIter", "last_batch_handle", last_batch_handle, handles
        )
        self.shuffle = checked("ImageIter", "shuffle", shuffle, boolean)
        labels = (self.label_width,) if self.label_width > 1 else ()
        self.provide_data = [DataDesc(data_name, (self.batch_size, *self.data_shape))]
        self.provide_label = [DataDesc(label_name, (self.batch_size, *labels), np.dtype(dtype))]
        self.auglist = CreateAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        if aug_list is not None and kwargs:
            raise AttrError(
                f"ImageIter: aug_list decides alone; {min(kwargs)} must not be given too"
            )
        self.path_root, self.imgrec, self.imglist = path_root or "", None, None
        if path_imgrec is not None:
            self.imgrec = MXIndexedRecordIO(path_imgidx, path_imgrec, "r")
        if path_imglist is not None:
            self.imglist = _listed(path_imglist)
        elif imglist is not None:
            self.imglist = {i: (item[:-1], item[-1]) for i, item in enumerate(imglist, 1)}
        if self.imgrec is None and self.imglist is None:
            raise AttrError("ImageIter: path_imgrec, path_imglist or imglist is needed")
        keys = list(self.imglist if self.imgrec is None else self.imgrec.keys)
        size = len(keys) // checked("ImageIter", "num_parts", num_parts, count)
        begin = size * _part("ImageIter", part_index, num_parts)
        self.seq = keys if num_parts == 1 else keys[begin : begin + size]
        if not self.seq:
            raise AttrError(f"ImageIter: of {len(keys)} pictures, part {part_index} has none")
        self._left = []  # samples of an incomplete last batch
        self.reset()

    def reset(self):
        """Restart, in a new order if shuffled."""
        self.cur = 0
        if self.shuffle:
            self.seq = [self.seq[i] for i in draws().permutation(len(self.seq))]

    def hard_reset(self):
        """Restart, and drop the samples of an incomplete last batch."""
        self._left = []
        self.reset()

    def next_sample(self):
        """Return (label, bytes of the image file) of the next sample.

        Raises:  StopIteration after the last.
        """
        if self.cur >= len(self.seq):
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            label, name = self.imglist[key]
            return label, read_whole(os.path.join(self.path_root, name))
        header, data = unpack(self.imgrec.read_idx(key))
        if self.imglist is not None and key not in self.imglist:
            raise FileError(f"ImageIter: the list of pictures has no line for the record {key}")
        return (header.label if self.imglist is None else self.imglist[key][0]), data

    def _sample(self):
        """Return (label, augmented image)."""
        label, data = self.next_sample()
        try:
            picture = imdecode(data)
        except FileError as error:
            raise FileError(f"ImageIter: sample {self.seq[self.cur - 1]}: {error}") from None
        for change in self.auglist:
            picture = change(picture)
        values = picture.asnumpy().transpose(2, 0, 1)
        if values.shape != self.data_shape:
            raise AttrError(
                f"ImageIter: the augmenters made {values.shape} of a picture, but "
                f"data_shape={self.data_shape} is needed"
            )
        return _labels("ImageIter", label, self.label_width), values

    def next(self):
        """Return the next batch."""
        samples, self._left = self._left, []
        rolled = self.batch_size - len(samples) if samples else 0  # MXNet also counts new samples
        while len(samples) < self.batch_size and self.cur < len(self.seq):
            samples.append(self._sample())
        pad = self.batch_size - len(samples)
        if pad == self.batch_size or pad and self.last_batch_handle == "discard":
            raise StopIteration
        if pad and self.last_batch_handle == "roll_over":
            self._left = samples
            raise StopIteration
        if pad:  # repeat the first images as often as needed
            while len(samples) < self.batch_size:
                self.cur = self.cur % len(self.seq)
                samples.append(self._sample())
            self.cur = len(self.seq)
        labels, values = zip(*samples, strict=True)
        return DataBatch(
            [_array(values, "float32")],
            [_array(np.reshape(labels, self.provide_label[0].shape), self.dtype)],
            pad or rolled,
        )


class ImageRecordIter(DataIter):
    """Iterates over batches of the images in a RecordIO file.

    data_shape:   (channels, height, width); 1 channel is gray, 3 are RGB.
    path_imgidx:  the index of the file, which is optional.
    resize:       the new length of the shorter edge, applied first; -1 means no resizing. An
                  image that is still too small is enlarged to the crop's size.
    rand_crop:    crop at a random position, else at the center; rand_mirror: flip half of them.
    mean_r, ...:  each channel becomes (value - mean) * scale / std.
    shuffle:      use a new order in each epoch, reproducible by `seed`.
    round_batch:  fill an incomplete last batch with the first images of the next epoch, which
                  starts after them; else with zeros, counted in its `pad`.
    preprocess_threads, prefetch_buffer, verbose, ctx, device_id:  ignored.
    """

    def __init__(
        self,
        path_imgrec,
        data_shape,
        batch_size,
        path_imgidx=None,
        label_width=1,
        shuffle=False,
        seed=None,
        num_parts=1,
        part_index=0,
        round_batch=True,
        resize=-1,
        rand_crop=False,
        rand_mirror=False,
        mirror=False,
        mean_r=0.0,
        mean_g=0.0,
        mean_b=0.0,
        std_r=1.0,
        std_g=1.0,
        std_b=1.0,
        scale=1.0,
        inter_method=1,
        data_name="data",
        label_name="softmax_label",
        preprocess_threads=4,
        prefetch_buffer=4,
        verbose=True,
        ctx="cpu",
        device_id=0,
    ):
        owner = "ImageRecordIter"
        super().__init__(checked(owner, "batch_size", batch_size, count))
        self._shape = picture_shape(owner, data_shape, (1, 3))
        self._label_width = checked(owner, "label_width", label_width, count)
        self._resize = checked(owner, "resize", resize, integer)
        self._rand_crop = checked(owner, "rand_crop", rand_crop, boolean)
        self._rand_mirror = checked(owner, "rand_mirror", rand_mirror, boolean)
        self._mirror = checked(owner, "mirror", mirror, boolean)
        self._shuffle = checked(owner, "shuffle", shuffle, boolean)
        self._round = checked(owner, "round_batch", round_batch, boolean)
        kinds = {str(i): i for i in range(5)}  # OpenCV's; MXNet draws others at random
        self._kind = kinds[checked(owner, "inter_method", str(inter_method), choice(*kinds))]
        means, stds = (mean_r, mean_g, mean_b), (std_r, std_g, std_b)
        numbers = [checked(owner, "mean, std or scale", v, finite) for v in (*means, *stds, scale)]
        n = self._shape[0]
        self._mean, std = np.float32(numbers[:n]), np.float32(numbers[3 : 3 + n])
        if not std.all():
            raise AttrError(f"{owner}: a std of 0 divides by nothing; 1 leaves the values")
        self._factor = np.float32(numbers[6]) / std
        self._file = MXIndexedRecordIO(path_imgidx or None, path_imgrec, "r")
        self._seq = self._keys_of(checked(owner, "num_parts", num_parts, count), part_index)
        if not self._seq:
            raise AttrError(f"{owner}: '{path_imgrec}' has no pictures for part {part_index}")
        self._rng = np.random.default_rng(STREAM.take(1) if seed is None else seed)
        labels = (self._label_width,) if self._label_width > 1 else ()
        self.provide_data = [DataDesc(data_name, (self.batch_size, *self._shape))]
        self.provide_label = [DataDesc(label_name, (self.batch_size, *labels))]
        self._next, self._is_over = 0, False
        self._begin()

    def _keys_of(self, num_parts, part_index):
        """Return the records of a part: by index if there is one, else by file offset."""
        index = _part("ImageRecordIter", part_index, num_parts)
        keys = self._file.keys
        if self._file.idx_path is not None:
            step = -(-len(keys) // num_parts)
            return keys[step * index : step * (index + 1)]
        step = -(-os.path.getsize(self._file.uri) // num_parts)
        step += -step % 4
        return [k for k in keys if step * index <= self._file.idx[k] < step * (index + 1)]

    def _begin(self):
        self._next = 0
        if self._shuffle:
            self._rng.shuffle(self._seq)

    def reset(self):
        """Start the next epoch, after the images that filled this one's last batch."""
        if not (self._round and self._is_over):
            self._begin()
        self._is_over = False

    def _sample(self):
        """Return (label, image) of the next record."""
        key = self._seq[self._next]
        self._next += 1
        header, data = unpack(self._file.read_idx(key))
        label = _labels("ImageRecordIter", header.label, self._label_width)
        name = f"'{self._file.uri}', record {key}"
        return label, self._changed(pixels(bytes(data), name, int(self._shape[0] == 3)))

    def _changed(self, values):
        """Convert bytes of shape (height, width, channels) to a net's input."""
        _, h, w = self._shape
        rows, columns = values.shape[:2]
        if self._resize > 0:
            tall = rows > columns
            short = min(rows, columns)
            size = self._resize * rows // short, self._resize * columns // short
            size = (size[0], self._resize) if tall else (self._resize, size[1])
            values = resized(values, *size, self._kind)
        rows, columns = values.shape[:2]
        if rows < h:
            columns = int(np.float32(h) / np.float32(rows) * np.float32(columns))
            values, rows = resized(values, h, columns, self._kind), h
        if columns < w:
            rows = int(np.float32(w) / np.float32(columns) * np.float32(rows))
            values, columns = resized(values, rows, w, self._kind), w
        y, x = (rows - h) // 2, (columns - w) // 2
        if self._rand_crop:
            y, x = (int(self._rng.integers(most + 1)) for most in (rows - h, columns - w))
        values = values[y : y + h, x : x + w]
        if self._mirror or self._rand_mirror and self._rng.random() < 0.5:
            values = values[:, ::-1]
        return ((values - self._mean) * self._factor).transpose(2, 0, 1)

    def next(self):
        """Return the next batch."""
        if self._is_over or self._next >= len(self._seq):
            raise StopIteration
        samples = []
        while len(samples) < self.batch_size and self._next < len(self._seq):
            samples.append(self._sample())
        pad = self.batch_size - len(samples)
        if pad and self._round:
            if pad > len(self._seq):
                raise HybridError(
                    f"ImageRecordIter: {len(self._seq)} pictures do not fill a batch of "
                    f"{self.batch_size} twice; use a smaller one, or round_batch=False"
                )
            self._begin()
            self._is_over = True
            samples += [self._sample() for _ in range(pad)]
        labels = np.zeros((self.batch_size, self._label_width), np.float32)
        values = np.zeros((self.batch_size, *self._shape), np.float32)
        for i, (label, picture) in enumerate(samples):
            labels[i], values[i] = label, picture
        labels = labels.reshape(self.provide_label[0].shape)
        return DataBatch([_array(values, "float32")], [_array(labels, "float32")], pad)


def _array(values, dtype):
    return in_world(nd.array(np.asarray(values, dtype), dtype=dtype))


def _labels(owner, label, width):
    """Return the labels of an image, `width` of them."""
    labels = np.asarray(label).reshape(-1)
    if len(labels) != width:
        raise FileError(
            f"{owner}: a picture has {len(labels)} labels, but label_width={width} is given"
        )
    return labels


def _part(owner, part_index, num_parts):
    index = checked(owner, "part_index", part_index, length)
    if index >= num_parts:
        raise AttrError(f"{owner}: part_index={index}, but there are parts 0 to {num_parts - 1}")
    return index


def _listed(path):
    """Parse lines of tab-separated fields; return key -> (labels, file name)."""
    entries = {}
    for n, line in enumerate(read_whole(path_of(path)).splitlines(), 1):
        try:
            key, *labels, name = line.decode().split("\t")
            if labels:
                entries[int(key)] = [float(label) for label in labels], name.strip()
                continue
        except ValueError:
            pass
        if line.strip():
            raise FileError(
                f"'{path}', line {n}: {line[:60]!r}; needed: a whole number, labels and a file's "
                "name, with tabs between"
            )
    return entries


def __dir__():
    return own_names(globals())
