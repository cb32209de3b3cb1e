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
from minihybrid.core.tracing import TraceError as TraceError

__version__: str
from minihybrid import arrays as arrays
from minihybrid import autograd as autograd
from minihybrid import base as base
from minihybrid import callback as callback
from minihybrid import contrib as contrib
from minihybrid import datasets as datasets
from minihybrid import executor as executor
from minihybrid import files as files
from minihybrid import gluon as gluon
from minihybrid import image as image
from minihybrid import init as init
from minihybrid import io as io
from minihybrid import kvstore as kvstore
from minihybrid import look as look
from minihybrid import lr_scheduler as lr_scheduler
from minihybrid import metric as metric
from minihybrid import model as model
from minihybrid import module as module
from minihybrid import monitor as monitor
from minihybrid import name as name
from minihybrid import np as np
from minihybrid import npx as npx
from minihybrid import onnx as onnx
from minihybrid import optimizer as optimizer
from minihybrid import params as params
from minihybrid import recordio as recordio
from minihybrid import runtime as runtime
from minihybrid import serial as serial
from minihybrid import symbols as symbols
from minihybrid import test_utils as test_utils
from minihybrid import util as util
from minihybrid import viz as viz
from minihybrid.base import cpu_pinned as cpu_pinned
from minihybrid.base import cpu_shared as cpu_shared
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
from minihybrid.device import interop as interop
from minihybrid.gluon.function import function as function
from minihybrid.look.exercises import check as check
from minihybrid.look.exercises import exercises as exercises
from minihybrid.look.exercises import hint as hint
from minihybrid.look.explain import explain as explain
from minihybrid.look.show import show as show
from minihybrid.run import eager as eager
from minihybrid.util import np_shape as np_shape
from minihybrid.util import use_np_shape as use_np_shape
