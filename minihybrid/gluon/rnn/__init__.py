"""Recurrent layers and cells: `gluon.rnn`."""

from minihybrid.core.hooks import own_names
from minihybrid.gluon.rnn.rnn_cell import BidirectionalCell as BidirectionalCell
from minihybrid.gluon.rnn.rnn_cell import DropoutCell as DropoutCell
from minihybrid.gluon.rnn.rnn_cell import GRUCell as GRUCell
from minihybrid.gluon.rnn.rnn_cell import HybridRecurrentCell as HybridRecurrentCell
from minihybrid.gluon.rnn.rnn_cell import HybridSequentialRNNCell as HybridSequentialRNNCell
from minihybrid.gluon.rnn.rnn_cell import LSTMCell as LSTMCell
from minihybrid.gluon.rnn.rnn_cell import ModifierCell as ModifierCell
from minihybrid.gluon.rnn.rnn_cell import RecurrentCell as RecurrentCell
from minihybrid.gluon.rnn.rnn_cell import ResidualCell as ResidualCell
from minihybrid.gluon.rnn.rnn_cell import RNNCell as RNNCell
from minihybrid.gluon.rnn.rnn_cell import SequentialRNNCell as SequentialRNNCell
from minihybrid.gluon.rnn.rnn_cell import ZoneoutCell as ZoneoutCell
from minihybrid.gluon.rnn.rnn_layer import GRU as GRU
from minihybrid.gluon.rnn.rnn_layer import LSTM as LSTM
from minihybrid.gluon.rnn.rnn_layer import RNN as RNN

__dir__ = own_names(globals())
