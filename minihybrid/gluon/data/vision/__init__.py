"""Image data: datasets from published files, and transforms."""

from minihybrid.core.hooks import own_names
from minihybrid.gluon.data.vision import transforms
from minihybrid.gluon.data.vision.datasets import (
    CIFAR10,
    CIFAR100,
    MNIST,
    FashionMNIST,
    ImageFolderDataset,
    ImageRecordDataset,
)

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "MNIST",
    "FashionMNIST",
    "ImageFolderDataset",
    "ImageRecordDataset",
    "transforms",
]

__dir__ = own_names(globals())
