"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import TypeVar

Same = TypeVar("Same")

from minihybrid.core.block import Block as Block
from minihybrid.core.block import HybridBlock as HybridBlock
from minihybrid.core.block import SymbolBlock as SymbolBlock
from minihybrid.core.parameter import Constant as Constant
from minihybrid.core.parameter import DeferredInitializationError as DeferredInitializationError
from minihybrid.core.parameter import Parameter as Parameter
from minihybrid.core.parameter import ParameterDict as ParameterDict
from minihybrid.gluon import block as block
from minihybrid.gluon import contrib as contrib
from minihybrid.gluon import data as data
from minihybrid.gluon import loss as loss
from minihybrid.gluon import model_zoo as model_zoo
from minihybrid.gluon import nn as nn
from minihybrid.gluon import parameter as parameter
from minihybrid.gluon import rnn as rnn
from minihybrid.gluon import utils as utils
from minihybrid.gluon.function import function as function
from minihybrid.gluon.trainer import Trainer as Trainer
