"""Gluon: networks as Python classes.

Defines: `Block`, `HybridBlock`, `SymbolBlock`, `Parameter`, `nn`, `loss`, `Trainer`,
         `data`, `utils`, `contrib`, `model_zoo`.
"""

from minihybrid.core import lazy
from minihybrid.core.block import Block, HybridBlock, SymbolBlock
from minihybrid.core.hooks import own_names
from minihybrid.core.parameter import (
    Constant,
    DeferredInitializationError,
    Parameter,
    ParameterDict,
)
from minihybrid.gluon.function import function

LATER = {"Trainer": "gluon.trainer:Trainer"}
__getattr__ = lazy.face(globals(), LATER)

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
    "SymbolBlock",
    "Trainer",
    "block",
    "contrib",
    "data",
    "function",
    "loss",
    "model_zoo",
    "nn",
    "parameter",
    "rnn",
    "utils",
]

__dir__ = own_names(globals())
