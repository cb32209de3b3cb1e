"""Image data: datasets from published files, and transforms."""

from minihybrid.core.hooks import own_names
from minihybrid.gluon.data.vision import transforms as transforms
from minihybrid.gluon.data.vision.datasets import CIFAR10 as CIFAR10
from minihybrid.gluon.data.vision.datasets import CIFAR100 as CIFAR100
from minihybrid.gluon.data.vision.datasets import MNIST as MNIST
from minihybrid.gluon.data.vision.datasets import FashionMNIST as FashionMNIST
from minihybrid.gluon.data.vision.datasets import ImageFolderDataset as ImageFolderDataset
from minihybrid.gluon.data.vision.datasets import ImageRecordDataset as ImageRecordDataset

__dir__ = own_names(globals(), "transforms")
