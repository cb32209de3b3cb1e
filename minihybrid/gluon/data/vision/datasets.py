"""Image datasets, read from the published files.

Defines: `MNIST`, `FashionMNIST`, `CIFAR10`, `CIFAR100`; `ImageFolderDataset`, a folder of
         folders of images, and `ImageRecordDataset`, a record file.

If a file is missing, the error names it and the folder. The size in a file's header is
compared with the file before memory is allocated.
Not supported: downloads.
"""

import gzip
import io
import os
import warnings
import zlib

import numpy as np

from minihybrid.core import nd
from minihybrid.core.files import FileError, path_of, read_whole
from minihybrid.core.hooks import own_names
from minihybrid.core.op import boolean, checked, unfit
from minihybrid.core.parameter import in_world
from minihybrid.core.switches import is_np_array
from minihybrid.gluon.data.dataset import Dataset, RecordFileDataset
from minihybrid.gluon.data.vision.image import imdecode, imread

PACKED = 1032  # the largest expansion of a byte by gzip
MAX_MEMBER = 1 << 28  # bytes of a file in an archive; the largest published one has 2^27
EXTENSIONS = (".jpg", ".jpeg", ".png")


class _FileDataset(Dataset):
    """Images and labels in memory. A subclass defines `_read`."""

    FOLDER = ""  # the default folder of the files, in MXNet's data folder

    def __init__(self, root=None, train=True, transform=None):
        name = type(self).__name__
        if root is None:
            home = os.environ.get("MXNET_HOME") or os.path.join("~", ".mxnet")
            root = os.path.join(home, "datasets", self.FOLDER)
        self._root = os.path.expanduser(path_of(root))
        self._train = checked(name, "train", train, boolean)
        self._transform = checked_transform(name, transform)
        data, label = self._read()
        self._data = in_world(nd.array(data, dtype="uint8"))
        label = label.astype(np.int32)
        self._label = in_world(nd.array(label, dtype="int32")) if is_np_array() else label

    def __len__(self):
        return len(self._label)

    def __getitem__(self, idx):
        sample = self._data[idx], self._label[idx]
        return sample if self._transform is None else self._transform(*sample)

    def _find(self, *names):
        """Return the path of the first of these files in the folder.

        Raises:  FileError if the folder contains none of them.
        """
        for name in names:
            if os.path.isfile(path := os.path.join(self._root, name)):
                return path
        raise FileError(
            f"{type(self).__name__}: the folder '{self._root}' has no {' and no '.join(names)}; "
            "nothing is downloaded, so put the files there that are published under this name, "
            "or give their folder as root="
        )

    def _read(self):
        """Return uint8 arrays: images (N, height, width, channels), labels (N,)."""
        raise NotImplementedError


def checked_transform(owner, transform):
    """Return the transform if it's a function or None."""
    if transform is not None and not callable(transform):
        raise unfit(owner, "transform", transform, "a function of data and label is needed")
    return transform


class MNIST(_FileDataset):
    """Handwritten digits: samples (uint8 image of shape (28, 28, 1), label).

    root:   a folder with `train-images-idx3-ubyte` and `train-labels-idx1-ubyte`, or for
            train=False those that start with `t10k`, possibly compressed as `.gz`.
    Source: LeCun, Cortes and Burges, The MNIST database of handwritten digits.
    """

    FOLDER = "mnist"

    def _read(self):
        part = "train" if self._train else "t10k"
        data, label = (
            read_idx(self._find(f"{part}-{kind}-ubyte", f"{part}-{kind}-ubyte.gz"), n_axes)
            for kind, n_axes in (("images-idx3", 3), ("labels-idx1", 1))
        )
        if len(data) != len(label):
            raise FileError(
                f"{type(self).__name__}: '{self._root}' has {len(data)} images and "
                f"{len(label)} labels of '{part}'; needed: as many of both"
            )
        return data[..., None], label


class FashionMNIST(MNIST):
    """Articles of clothing, in files with the same names as `MNIST`'s.

    Source: Xiao, Rasul and Vollgraf, arXiv:1708.07747.
    """

    FOLDER = "fashion-mnist"


def read_idx(path, n_axes):
    """Return the uint8 array in an idx file, possibly compressed with gzip.

    Raises:  FileError if it isn't one, or doesn't have the size in its header.
    """
    packed = read_whole(path)
    is_packed = packed[:2] == b"\x1f\x8b"
    limit = len(packed) * (PACKED if is_packed else 1)
    file = gzip.GzipFile(fileobj=io.BytesIO(packed)) if is_packed else io.BytesIO(packed)
    try:
        header = file.read(4 * (n_axes + 1))
        if len(header) < 4 * (n_axes + 1) or header[:4] != bytes((0, 0, 8, n_axes)):
            raise FileError(
                f"'{path}' isn't an idx file of bytes (axes: {n_axes}): it starts with "
                f"{header[:4].hex() or 'nothing'}"
            )
        shape = np.frombuffer(header, ">u4")[1:].tolist()
        size = int(np.prod(shape, dtype=object))
        body = file.read(size + 1) if size <= limit else b""
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"'{path}' can't be unpacked: {error}") from None
    if len(body) != size:
        more = "more" if len(body) > size else "fewer"
        raise FileError(
            f"'{path}': its header says {' x '.join(map(str, shape))} bytes, but there are {more}; "
            "is the file truncated?"
        )
    return np.frombuffer(body, np.uint8).reshape(shape)


class CIFAR10(_FileDataset):
    """Small color images: samples (uint8 image of shape (32, 32, 3), label 0 to 9).

    root:   a folder with `cifar-10-binary.tar.gz`, or with its contents.
    Source: Krizhevsky, Learning multiple layers of features from tiny images, 2009.
    """

    FOLDER = "cifar10"
    ARCHIVE, INSIDE = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"
    TRAIN = [f"data_batch_{i}.bin" for i in range(1, 6)]
    TEST = ["test_batch.bin"]
    N_LABELS, LABEL = 1, 0  # labels per image, and the index of the one to use

    def _read(self):
        names = self.TRAIN if self._train else self.TEST
        pairs = [self._pictures(name, self._bytes(name)) for name in names]
        data, label = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        return data, label

    def _bytes(self, name):
        """Return the contents of the file with this name, in the folder or in the archive."""
        path = self._find(name, os.path.join(self.INSIDE, name), self.ARCHIVE)
        if not path.endswith(self.ARCHIVE):
            return read_whole(path)
        import tarfile  # slow to import, rarely needed

        try:
            with tarfile.open(fileobj=io.BytesIO(read_whole(path))) as archive:
                for member in archive:
                    if member.isfile() and os.path.basename(member.name) == name:
                        if member.size > MAX_MEMBER:
                            raise FileError(
                                f"'{path}' says that its {name} has {member.size} bytes; at most "
                                f"{MAX_MEMBER} are read"
                            )
                        return archive.extractfile(member).read()
        except FileError:
            raise
        except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
            raise FileError(f"'{path}' can't be unpacked: {error}") from None
        raise FileError(f"'{path}' has no {name}; is it the archive of {type(self).__name__}?")

    def _pictures(self, name, data):
        row = self.N_LABELS + 3 * 32 * 32
        if not data or len(data) % row:
            raise FileError(
                f"{type(self).__name__}: {name} in '{self._root}' has {len(data)} bytes; needed: "
                f"{row} per image"
            )
        rows = np.frombuffer(data, np.uint8).reshape(-1, row)
        pictures = rows[:, self.N_LABELS :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return pictures, rows[:, self.LABEL]


class CIFAR100(CIFAR10):
    """CIFAR10 with 100 classes in 20 groups.

    root:        a folder with `cifar-100-binary.tar.gz`, or with its contents.
    fine_label:  whether the label is the class, or the group.
    """

    FOLDER = "cifar100"
    ARCHIVE, INSIDE = "cifar-100-binary.tar.gz", "cifar-100-binary"
    TRAIN, TEST = ["train.bin"], ["test.bin"]
    N_LABELS = 2

    def __init__(self, root=None, fine_label=False, train=True, transform=None):
        self.LABEL = int(checked("CIFAR100", "fine_label", fine_label, boolean))
        super().__init__(root, train, transform)


class ImageFolderDataset(Dataset):
    """Images in one folder per class: samples (image, label).

    root:     a folder of folders with files .jpg, .jpeg and .png.
    flag:     1 for three channels, 0 for one.
    synsets:  the folders' names. Label i belongs to `synsets[i]`.
    items:    [(path of a file, label)].
    """

    def __init__(self, root, flag=1, transform=None):
        self._root = os.path.expanduser(path_of(root))
        self._flag = int(checked("ImageFolderDataset", "flag", flag, boolean))
        self._transform = checked_transform("ImageFolderDataset", transform)
        try:
            folders = sorted(os.listdir(self._root))
        except OSError as error:
            raise FileError(
                f"ImageFolderDataset: cannot read the folder '{self._root}': {error.strerror}"
            ) from None
        self.synsets, self.items, left_out = [], [], []
        for folder in folders:
            path = os.path.join(self._root, folder)
            if not os.path.isdir(path):
                left_out.append(f"'{path}' is no folder")
                continue
            for file in (os.path.join(path, name) for name in sorted(os.listdir(path))):
                if file.lower().endswith(EXTENSIONS):
                    self.items.append((file, len(self.synsets)))
                else:
                    left_out.append(f"'{file}' is none of {', '.join(EXTENSIONS)}")
            self.synsets.append(folder)
        for reason in left_out:
            warnings.warn(f"ImageFolderDataset: {reason}, and left out", stacklevel=3)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, idx):
        path, label = self.items[idx]
        sample = imread(path, self._flag), label
        return sample if self._transform is None else self._transform(*sample)


class ImageRecordDataset(RecordFileDataset):
    """Images in a record file, with its index in the same folder: samples (image, label).

    flag:     1 for three channels, 0 for one.
    Raises:   FileError for a record without an image.
    """

    def __init__(self, filename, flag=1, transform=None):
        super().__init__(filename)
        self._flag = int(checked("ImageRecordDataset", "flag", flag, boolean))
        self._transform = checked_transform("ImageRecordDataset", transform)

    def __getitem__(self, idx):
        from minihybrid.mxnet.recordio import unpack

        header, data = unpack(super().__getitem__(idx))
        sample = imdecode(data, self._flag), header.label
        return sample if self._transform is None else self._transform(*sample)


__dir__ = own_names(globals())
