"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import TypeVar

Same = TypeVar("Same")

from minihybrid.core.attribute import AttrScope as AttrScope
from minihybrid.core.context import Context as Context
from minihybrid.core.op import AttrError as AttrError
from minihybrid.core.op import DTypeError as DTypeError
from minihybrid.core.op import HybridError as HybridError
from minihybrid.core.op import NumberError as NumberError
from minihybrid.core.op import PlaceError as PlaceError
from minihybrid.core.op import ShapeError as ShapeError

__version__: str
from minihybrid import gluon as gluon
from minihybrid import name as name
from minihybrid import np as np
from minihybrid import params as params
from minihybrid import runtime as runtime
from minihybrid import serial as serial
from minihybrid.core import attribute as attribute
from minihybrid.core import context as context
from minihybrid.core import nd as nd
from minihybrid.core import sym as sym
from minihybrid.core.context import cpu as cpu
from minihybrid.core.context import current_context as current_context
from minihybrid.core.context import gpu as gpu
from minihybrid.core.context import num_gpus as num_gpus
from minihybrid.core.context import simulated_gpu as simulated_gpu
from minihybrid.core.nd import random as random
from minihybrid.core.tracing import TraceError as TraceError
from minihybrid.formats import onnx as onnx
from minihybrid.gluon import autograd as autograd
from minihybrid.gluon import init as init
from minihybrid.gluon import lr_scheduler as lr_scheduler
from minihybrid.gluon import metric as metric
from minihybrid.gluon import optimizer as optimizer
from minihybrid.gluon.data.vision import image as image
from minihybrid.gluon.function import function as function
from minihybrid.gluon.transform import jvp as jvp
from minihybrid.gluon.transform import vjp as vjp
from minihybrid.gluon.transform import vmap as vmap
from minihybrid.minihybrid_course.exercises import check as check
from minihybrid.minihybrid_course.exercises import exercises as exercises
from minihybrid.minihybrid_course.exercises import hint as hint
from minihybrid.mxnet import base as base
from minihybrid.mxnet import callback as callback
from minihybrid.mxnet import executor as executor
from minihybrid.mxnet import io as io
from minihybrid.mxnet import kvstore as kvstore
from minihybrid.mxnet import model as model
from minihybrid.mxnet import module as module
from minihybrid.mxnet import monitor as monitor
from minihybrid.mxnet import profiler as profiler
from minihybrid.mxnet import recordio as recordio
from minihybrid.mxnet import test_utils as test_utils
from minihybrid.mxnet import util as util
from minihybrid.mxnet.base import cpu_pinned as cpu_pinned
from minihybrid.mxnet.base import cpu_shared as cpu_shared
from minihybrid.mxnet.util import np_shape as np_shape
from minihybrid.mxnet.util import use_np_shape as use_np_shape
from minihybrid.np import npx as npx
from minihybrid.runtime import interop as interop
from minihybrid.view import bench as bench
from minihybrid.view import viz as viz
from minihybrid.view.explain import explain as explain
from minihybrid.view.show import show as show
