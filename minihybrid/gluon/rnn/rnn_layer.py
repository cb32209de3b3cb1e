"""Recurrent layers: whole sequences at once, with the operator `RNN`.

Uses:    data (T, N, C), or (N, T, C) with layout="NTC"; states, by default zeros.
Defines: `RNN`, `LSTM`, `GRU`, with several layers and one or two directions.

Parameter names, in memory and in files, are those of MXNet 1.9.
Not supported: convolutional layers.
"""

import itertools

from minihybrid.core import nd, sym
from minihybrid.core.block import HybridBlock
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import (
    AttrError,
    ShapeError,
    boolean,
    checked,
    choice,
    count,
    length,
    optional,
    rate,
    unfit,
)
from minihybrid.core.sym import Symbol
from minihybrid.gluon.rnn.steps import is_whole, made_states
from minihybrid.ops.recurrent import CELLS, packed


class _Layer(HybridBlock):
    """The base class of the three kinds, with the `mode` of the operator RNN."""

    _mode = ""

    def __init__(
        self,
        hidden_size,
        num_layers=1,
        layout="TNC",
        dropout=0,
        bidirectional=False,
        input_size=0,
        i2h_weight_initializer=None,
        h2h_weight_initializer=None,
        i2h_bias_initializer="zeros",
        h2h_bias_initializer="zeros",
        projection_size=None,
        h2r_weight_initializer=None,
        state_clip_min=None,
        state_clip_max=None,
        state_clip_nan=False,
        dtype="float32",
        use_sequence_length=False,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix, params)
        kind = type(self).__name__
        if self._mode != "lstm" and (state_clip_min, state_clip_max) != (None, None):
            raise AttrError(f"{kind} doesn't clip its states: leave out state_clip_min and _max")
        self._layout = checked(kind, "layout", layout, choice("TNC", "NTC"))
        use_sequence_length = checked(kind, "use_sequence_length", use_sequence_length, boolean)
        projection = projection_size or None
        self._attrs = {
            "mode": self._mode,
            "state_size": checked(kind, "hidden_size", hidden_size, count),
            "num_layers": checked(kind, "num_layers", num_layers, count),
            "bidirectional": checked(kind, "bidirectional", bidirectional, boolean),
            "p": checked(kind, "dropout", dropout, rate),
            "projection_size": checked(kind, "projection_size", projection, optional(count)),
            "use_sequence_length": use_sequence_length,
            "lstm_state_clip_min": state_clip_min,
            "lstm_state_clip_max": state_clip_max,
            "lstm_state_clip_nan": state_clip_nan,
        }
        self._input_size = checked(kind, "input_size", input_size, length)
        self._dtype = dtype
        inits = {
            "i2h_weight": i2h_weight_initializer,
            "h2h_weight": h2h_weight_initializer,
            "h2r_weight": h2r_weight_initializer,
            "i2h_bias": i2h_bias_initializer,
            "h2h_bias": h2h_bias_initializer,
        }
        for name, size in self._shapes(self._input_size).items():
            param = self.params.get(
                name, shape=size, init=inits[name[3:]], allow_deferred_init=True, dtype=dtype
            )
            setattr(self, name, param)

    def _shapes(self, inputs):
        """Return name -> shape of the parameters, in the order in which `RNN` packs them."""
        attrs = self._attrs
        keys = ("state_size", "num_layers", "bidirectional", "mode", "projection_size")
        parts = packed(inputs, *(attrs[key] for key in keys))
        shapes = {}
        for part, groups in zip(("weight", "bias"), parts, strict=True):
            for k, group in enumerate(groups):
                layer, side = divmod(k, 1 + attrs["bidirectional"])
                for what, size in zip(("i2h", "h2h", "h2r"), group, strict=False):
                    shapes[f"{'lr'[side]}{layer}_{what}_{part}"] = size
        return shapes

    def _collect_params_with_prefix(self, prefix=""):
        """Return the parameters under the names of their cells, as in MXNet's files."""
        prefix += "." * bool(prefix)
        params = {}
        for name, param in self._reg_params.items():
            cell, what = name.split("_", 1)
            side = f"{cell[0]}_cell." if self._attrs["bidirectional"] else ""
            params[f"{prefix}_unfused.{cell[1:]}.{side}{what}"] = param
        return params

    def __repr__(self):
        attrs, (rows, columns) = self._attrs, self.l0_i2h_weight.shape
        more = f", num_layers={attrs['num_layers']}" if attrs["num_layers"] != 1 else ""
        more += f", dropout={attrs['p']}" if attrs["p"] else ""
        more += ", bidirectional" if attrs["bidirectional"] else ""
        sizes = f"{columns or None} -> {rows // CELLS[attrs['mode']][0]}"
        return f"{type(self).__name__}({sizes}, {self._layout}{more})"

    # -- states
    def state_info(self, batch_size=0):
        """Return the shape, layout and dtype of each state."""
        attrs = self._attrs
        layers = attrs["num_layers"] * (1 + attrs["bidirectional"])
        sizes = (attrs["projection_size"] or attrs["state_size"], attrs["state_size"])
        return [
            {"shape": (layers, batch_size, n), "__layout__": "LNC", "dtype": self._dtype}
            for n in sizes[: CELLS[attrs["mode"]][1]]
        ]

    def begin_state(self, batch_size=0, func=nd.zeros, **kwargs):
        """Return the initial states: zeros, or the result of `func` for a shape."""
        infos = self.state_info(batch_size)
        return made_states(infos, func, f"{self.prefix}h0_", itertools.count(), kwargs)

    def _begun(self, inputs):
        """Return zeros to match the inputs. For a symbol, the batch size is 0, meaning any."""
        if isinstance(inputs, Symbol):
            return self.begin_state(0, func=sym.zeros)
        batch = inputs.shape[self._layout.index("N")]
        return self.begin_state(batch, ctx=inputs.context, dtype=inputs.dtype)

    # -- calling
    def __call__(self, inputs, states=None, sequence_length=None):
        """Return the outputs of all steps or, with `states`, (outputs, last states).

        sequence_length: (N,), for use_sequence_length=True.
        """
        return super().__call__(*self._arranged(inputs, states, sequence_length))

    def plan_for(self, inputs, states=None, sequence_length=None):
        """Return (plan, input arrays, bound parameters) for a call's arguments."""
        return super().plan_for(*self._arranged(inputs, states, sequence_length))

    def _arranged(self, inputs, states=None, sequence_length=None):
        """Return (inputs, states, whether no states were passed) for `hybrid_forward`."""
        if not is_whole(inputs):
            return (inputs,)
        self._tell_inputs(inputs)
        alone = states is None
        if not (alone or is_whole(states) or isinstance(states, (list, tuple))):
            need = "an array or a list of arrays is needed; begin_state(batch_size) makes them"
            raise unfit(f"{type(self).__name__} '{self.name}'", "states", states, need)
        states = self._begun(inputs) if alone else [states] if is_whole(states) else list(states)
        if len(states) != CELLS[self._mode][1]:
            raise AttrError(
                f"{type(self).__name__} '{self.name}': the number of states is {len(states)}, but "
                f"{CELLS[self._mode][1]} is needed; begin_state(batch_size) makes them"
            )
        if (sequence_length is None) == self._attrs["use_sequence_length"]:
            need = "is needed" if sequence_length is None else "is given"
            raise AttrError(
                f"{self.name}: a sequence_length {need}, and the layer was made with "
                f"use_sequence_length={self._attrs['use_sequence_length']}"
            )
        if sequence_length is not None:
            states.append(sequence_length)
        return inputs, states, alone

    def _tell_inputs(self, inputs):
        """Infer the shape of the first layer's weights from the data."""
        shape = inputs.shape if isinstance(inputs, NDArray) else inputs.spec.shape
        if shape is None:
            return
        size = self.l0_i2h_weight.shape[1]
        if len(shape) != 3 or self.l0_i2h_weight.known and shape[2] not in (size, -1):
            axes = f"{', '.join(self._layout[:2])}, {size if size > 0 else 'C'}"
            raise ShapeError(
                f"{type(self).__name__} '{self.name}': the inputs have shape {shape}, but ({axes}) "
                "is needed: time steps T, batch size N, and features"
            )
        if shape[2] > 0:
            for side in "lr"[: 1 + self._attrs["bidirectional"]]:
                name = f"{side}0_i2h_weight"
                weight = getattr(self, name)
                if not weight.known:
                    weight.shape = self._shapes(shape[2])[name]

    def hybrid_forward(self, F, inputs, states, alone, **params):
        """Run all layers and steps."""
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, dim1=0, dim2=1)
        order = self._shapes(self._input_size)
        flat = [F.reshape(params[name], shape=(-1,)) for name in order]
        whole = F._internal._rnn_param_concat(*flat, dim=0)
        outputs, *states = F.RNN(inputs, whole, *states, state_outputs=True, **self._attrs)
        if self._layout == "NTC":
            outputs = F.swapaxes(outputs, dim1=0, dim2=1)
        return outputs if alone else (outputs, states)


class RNN(_Layer):
    """Plain recurrent layers: h = activation(W x + b + R h + c), from step to step.

    >>> layer = RNN(4); layer.initialize(); layer(nd.ones((3, 2, 5))).shape
    (3, 2, 4)
    """

    def __init__(
        self,
        hidden_size,
        num_layers=1,
        activation="relu",
        layout="TNC",
        dropout=0,
        bidirectional=False,
        **kwargs,
    ):
        self._mode = f"rnn_{checked('RNN', 'activation', activation, choice('relu', 'tanh'))}"
        super().__init__(hidden_size, num_layers, layout, dropout, bidirectional, **kwargs)


class LSTM(_Layer):
    """LSTM layers, with two states: outputs and memory cells.

    projection_size:  the size to which outputs are projected (Sak et al., 2014).
    state_clip_min, state_clip_max:  limits of the memory cell.

    >>> layer = LSTM(4, num_layers=2, bidirectional=True); layer.initialize()
    >>> out, states = layer(nd.ones((3, 2, 5)), layer.begin_state(batch_size=2))
    >>> out.shape, [s.shape for s in states]
    ((3, 2, 8), [(4, 2, 4), (4, 2, 4)])
    """

    _mode = "lstm"


class GRU(_Layer):
    """GRU layers.

    >>> layer = GRU(4, layout="NTC"); layer.initialize(); layer(nd.ones((2, 3, 5))).shape
    (2, 3, 4)
    """

    _mode = "gru"


__dir__ = own_names(globals())
