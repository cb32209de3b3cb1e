"""Gluon: networks as Python classes.

Defines: `Block`, `HybridBlock`, `SymbolBlock`, `Parameter`, `nn`, `loss`, `Trainer`,
         `data`, `utils`, `contrib`, `model_zoo`.
"""

from minihybrid.core import lazy
from minihybrid.core.block import Block as Block
from minihybrid.core.block import HybridBlock as HybridBlock
from minihybrid.core.block import SymbolBlock as SymbolBlock
from minihybrid.core.hooks import own_names
from minihybrid.core.parameter import Constant as Constant
from minihybrid.core.parameter import DeferredInitializationError as DeferredInitializationError
from minihybrid.core.parameter import Parameter as Parameter
from minihybrid.core.parameter import ParameterDict as ParameterDict
from minihybrid.gluon.function import function as function

LATER = {"Trainer": "gluon.trainer:Trainer"}
__getattr__ = lazy.face(globals(), LATER)

MODULES = "block contrib data loss model_zoo nn parameter rnn utils".split()
CLASSES = [name for name, value in globals().items() if isinstance(value, type)]
__all__ = sorted([*CLASSES, *LATER, *MODULES, "function"])

__dir__ = own_names(globals())
