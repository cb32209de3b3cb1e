"""Datasets, samplers and data loaders."""

from minihybrid.core.hooks import own_names
from minihybrid.gluon.data import vision as vision
from minihybrid.gluon.data.dataloader import DataLoader as DataLoader
from minihybrid.gluon.data.dataloader import default_batchify_fn as default_batchify_fn
from minihybrid.gluon.data.dataset import ArrayDataset as ArrayDataset
from minihybrid.gluon.data.dataset import Dataset as Dataset
from minihybrid.gluon.data.dataset import RecordFileDataset as RecordFileDataset
from minihybrid.gluon.data.dataset import SimpleDataset as SimpleDataset
from minihybrid.gluon.data.sampler import BatchSampler as BatchSampler
from minihybrid.gluon.data.sampler import FilterSampler as FilterSampler
from minihybrid.gluon.data.sampler import RandomSampler as RandomSampler
from minihybrid.gluon.data.sampler import Sampler as Sampler
from minihybrid.gluon.data.sampler import SequentialSampler as SequentialSampler

__dir__ = own_names(globals(), "vision")
