"""Datasets, samplers and data loaders."""

from minihybrid.core.hooks import own_names
from minihybrid.gluon.data import vision
from minihybrid.gluon.data.dataloader import DataLoader, default_batchify_fn
from minihybrid.gluon.data.dataset import ArrayDataset, Dataset, RecordFileDataset, SimpleDataset
from minihybrid.gluon.data.sampler import (
    BatchSampler,
    FilterSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

__all__ = [
    "ArrayDataset",
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "FilterSampler",
    "RandomSampler",
    "RecordFileDataset",
    "Sampler",
    "SequentialSampler",
    "SimpleDataset",
    "default_batchify_fn",
    "vision",
]

__dir__ = own_names(globals())
