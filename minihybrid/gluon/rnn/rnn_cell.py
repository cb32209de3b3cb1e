"""Recurrent cells: one step of a sequence, and combinations of cells.

A cell maps the input of a step (N, C) and a list of states (N, H) to (output, new states);
`unroll` processes whole sequences.
Defines: `RNNCell`, `LSTMCell`, `GRUCell`, stacks, bidirectional cells, dropout, zoneout,
         residuals.
Names of parameters and nodes, and the order of gates, are those of MXNet 1.9.
Not supported: convolutional cells.
"""

import itertools

from minihybrid.core import nd
from minihybrid.core.block import Block, HybridBlock
from minihybrid.core.hooks import own_names
from minihybrid.core.layers import _Stack
from minihybrid.core.op import AttrError, checked, count, described, length, shape
from minihybrid.core.op import rate as probability
from minihybrid.gluon.nn import LeakyReLU
from minihybrid.gluon.rnn.steps import (
    backwards,
    is_whole,
    listed,
    made_states,
    masked,
    merged,
    outputs_as,
    started,
    world,
)


class RecurrentCell(Block):
    """The base class of all cells.

    >>> cell = RNNCell(2); cell.initialize()
    >>> out, states = cell(nd.ones((1, 3)), cell.begin_state(batch_size=1))
    >>> out.shape, len(states)
    ((1, 2), 1)
    """

    def __init__(self, prefix=None, params=None):
        super().__init__(prefix, params)
        self._modified = False
        self.reset()

    def reset(self):
        """Reset the counters of steps and states."""
        # Not by setattr, which would recompile: these counters only name nodes.
        vars(self).update(_counter=-1, _states=itertools.count())
        for cell in self._children.values():
            if isinstance(cell, RecurrentCell):
                cell.reset()

    def state_info(self, batch_size=0):
        """Return the shape and layout of each state."""
        raise NotImplementedError(f"{type(self).__name__} has no state_info method; write it")

    def begin_state(self, batch_size=0, func=nd.zeros, **kwargs):
        """Return the initial states: zeros, or the result of `func` for a shape."""
        self._check_free()
        infos = self.state_info(batch_size)
        return made_states(infos, func, f"{self._prefix}begin_state_", self._states, kwargs)

    def _check_free(self):
        if self._modified:
            raise AttrError(f"{self.name}: another cell modifies this one; call that cell instead")

    def __call__(self, inputs, *states):
        """Run one step on an input and a list of states: (output, new states)."""
        vars(self)["_counter"] += 1
        return super().__call__(inputs, *([s] if is_whole(s) else s for s in states))

    def unroll(
        self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None
    ):
        """Run all steps of a sequence: (outputs, last states).

        merge_outputs: True for one array, False for a list of steps.
        valid_length:  (N,): the length of each sequence. Outputs after it are 0, and the states
                       are those of the last valid step.
        """
        self.reset()
        return self._unrolled(length, inputs, begin_state, layout, merge_outputs, valid_length)

    def _unrolled(self, length, inputs, states, layout, merge, valid_length):
        """Run all steps of a sequence: (outputs, last states)."""
        steps = listed(inputs, length, layout)
        F, states = world(steps), started(self, states, steps)
        outputs, history = [], []
        for step in steps:
            output, states = self(step, states)
            outputs.append(output)
            history.append(states)
        if valid_length is not None:
            states = [
                F.SequenceLast(F.stack(*each, axis=0), valid_length, use_sequence_length=True)
                for each in zip(*history, strict=True)
            ]
            outputs = masked(outputs, valid_length, layout)
        return outputs_as(outputs, length, layout, merge), states


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """The base class of cells that can be hybridized."""


# -- cells with parameters -------------------------------------------------------------
class _Gates(HybridRecurrentCell):
    """The base class of the three kinds: matrix products of the inputs and of the state."""

    GATES = N_STATES = 1

    def __init__(
        self,
        hidden_size,
        i2h_weight_initializer=None,
        h2h_weight_initializer=None,
        i2h_bias_initializer="zeros",
        h2h_bias_initializer="zeros",
        input_size=0,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix, params)
        kind = type(self).__name__
        self._hidden_size = units = checked(kind, "hidden_size", hidden_size, count)
        self._input_size = checked(kind, "input_size", input_size, length)
        self._rows = self.GATES * units
        for name, columns, init in (
            ("i2h_weight", (self._input_size,), i2h_weight_initializer),
            ("h2h_weight", (units,), h2h_weight_initializer),
            ("i2h_bias", (), i2h_bias_initializer),
            ("h2h_bias", (), h2h_bias_initializer),
        ):
            size = (self._rows, *columns)
            param = self.params.get(name, shape=size, init=init, allow_deferred_init=True)
            setattr(self, name, param)

    def state_info(self, batch_size=0):
        """Return the shape and layout of each state."""
        info = {"shape": (batch_size, self._hidden_size), "__layout__": "NC"}
        return [dict(info) for _ in range(self.N_STATES)]

    def _products(self, F, inputs, states, weights):
        if len(states) != self.N_STATES:
            raise AttrError(
                f"{type(self).__name__} '{self.name}': the number of states is {len(states)}, but "
                f"{self.N_STATES} is needed; begin_state(batch_size) makes them"
            )
        at, state = f"t{self._counter}_", states[0]
        return at, *(
            F.FullyConnected(
                x, weights[f"{n}_weight"], weights[f"{n}_bias"], num_hidden=self._rows, name=at + n
            )
            for n, x in (("i2h", inputs), ("h2h", state))
        )

    def __repr__(self):
        rows, columns = self.i2h_weight.shape
        more = f", {self._activation}" if type(self) is RNNCell else ""
        return f"{type(self).__name__}({columns or None} -> {rows}{more})"


def _activated(F, x, activation, name):
    """Apply an activation, given by name or as a block."""
    if isinstance(activation, str):
        return F.Activation(x, act_type=activation, name=name)
    if isinstance(activation, LeakyReLU):
        return F.LeakyReLU(x, act_type="leaky", slope=activation._alpha, name=name)
    return activation(x)


class RNNCell(_Gates):
    """A plain step: h = activation(W x + b + R h + c)."""

    def __init__(self, hidden_size, activation="tanh", *args, **kwargs):
        super().__init__(hidden_size, *args, **kwargs)
        self._activation = activation

    def _alias(self):
        return "rnn"

    def hybrid_forward(self, F, inputs, states, **weights):
        """Run one step."""
        at, x, h = self._products(F, inputs, states, weights)
        output = _activated(
            F, F.elemwise_add(x, h, name=at + "plus0"), self._activation, at + "out"
        )
        return output, [output]


class LSTMCell(_Gates):
    """A step with a memory cell: gates control what's kept, written and output.

    Source:  Hochreiter and Schmidhuber, Neural Computation 1997; the forget gate is of
             Gers, Schmidhuber and Cummins, 2000.
    """

    GATES, N_STATES = 4, 2

    def __init__(
        self, hidden_size, *args, activation="tanh", recurrent_activation="sigmoid", **kwargs
    ):
        super().__init__(hidden_size, *args, **kwargs)
        self._activation, self._recurrent_activation = activation, recurrent_activation

    def _alias(self):
        return "lstm"

    def hybrid_forward(self, F, inputs, states, **weights):
        """Run one step."""
        at, x, h = self._products(F, inputs, states, weights)
        gates = F.elemwise_add(x, h, name=at + "plus0")
        parts = F.SliceChannel(gates, num_outputs=4, name=at + "slice")
        gate, plain = self._recurrent_activation, self._activation
        write, keep, new, show = (
            _activated(F, part, kind, at + name)
            for part, kind, name in zip(parts, (gate, gate, plain, gate), "ifco", strict=True)
        )
        retained = F.elemwise_mul(keep, states[1], name=at + "mul0")
        memory = F.elemwise_add(
            retained, F.elemwise_mul(write, new, name=at + "mul1"), name=at + "state"
        )
        activated = _activated(F, memory, plain, at + "activation0")
        output = F.elemwise_mul(show, activated, name=at + "out")
        return output, [output, memory]


class GRUCell(_Gates):
    """A step with two gates, and no memory except the output.

    Source:  Cho et al., EMNLP 2014; the reset gate follows the product, as in cuDNN.
    """

    GATES = 3

    def _alias(self):
        return "gru"

    def hybrid_forward(self, F, inputs, states, **weights):
        """Run one step."""
        at, x, h = self._products(F, inputs, states, weights)
        xr, xz, xn = F.SliceChannel(x, num_outputs=3, name=at + "i2h_slice")
        hr, hz, hn = F.SliceChannel(h, num_outputs=3, name=at + "h2h_slice")
        reset = F.sigmoid(F.elemwise_add(xr, hr, name=at + "plus0"), name=at + "r_act")
        keep = F.sigmoid(F.elemwise_add(xz, hz, name=at + "plus1"), name=at + "z_act")
        part = F.elemwise_mul(reset, hn, name=at + "mul0")
        new = F.tanh(F.elemwise_add(xn, part, name=at + "plus2"), name=at + "h_act")
        fresh = F.elemwise_mul(1.0 - keep, new, name=at + "mul1")
        retained = F.elemwise_mul(keep, states[0], name=at + "mul20")
        output = F.elemwise_add(fresh, retained, name=at + "out")
        return output, [output]


# -- composite cells -------------------------------------------------------------------
class _Stacked(_Stack):
    """The base class of both stacks: the output of one cell is the input of the next."""

    def state_info(self, batch_size=0):
        """Return the shape and layout of the states of all cells."""
        return [info for cell in self._children.values() for info in cell.state_info(batch_size)]

    def begin_state(self, **kwargs):
        """Return the initial states of all cells."""
        self._check_free()
        return [state for cell in self._children.values() for state in cell.begin_state(**kwargs)]

    def _split(self, states):
        """Yield pairs of a cell and its states."""
        at = 0
        for cell in self._children.values():
            n = len(cell.state_info())
            yield cell, states[at : at + n]
            at += n

    def _step(self, inputs, states):
        if not is_whole(inputs) or not isinstance(states, (list, tuple)):
            raise AttrError(
                f"{self.name}: {described(inputs)} and {described(states)} are given, but an "
                "array and a list of states are needed, such as begin_state(batch_size=...)"
            )
        new = []
        for cell, part in self._split(states):
            inputs, part = cell(inputs, part)
            new += part
        return inputs, new

    def _unrolled(self, length, inputs, states, layout, merge, valid_length):
        """Run all steps of the first cell, then of the next: (outputs, last states)."""
        steps = listed(inputs, length, layout)
        states, new = started(self, states, steps), []
        for i, (cell, part) in enumerate(self._split(states), 1):
            last_merge = merge if i == len(self) else None
            inputs, part = cell.unroll(length, inputs, part, layout, last_merge, valid_length)
            new += part
        return inputs, new


class SequentialRNNCell(_Stacked, RecurrentCell):
    """A stack of cells.

    >>> stack = SequentialRNNCell(); stack.add(LSTMCell(2)); stack.add(GRUCell(3)); len(stack)
    2
    """

    def forward(self, inputs, states):
        """Run one step of each cell."""
        return self._step(inputs, states)


class HybridSequentialRNNCell(_Stacked, HybridRecurrentCell):
    """A stack of cells that can be hybridized."""

    def hybrid_forward(self, F, inputs, states):
        """Run one step of each cell."""
        return self._step(inputs, states)


class DropoutCell(HybridRecurrentCell):
    """Dropout at each step, without states.

    axes:  along these, all elements are dropped or kept together.
    """

    def __init__(self, rate, axes=(), prefix=None, params=None):
        super().__init__(prefix, params)
        self._rate = checked("DropoutCell", "rate", rate, probability)
        self._axes = checked("DropoutCell", "axes", axes, shape)

    def _alias(self):
        return "dropout"

    def __repr__(self):
        return f"DropoutCell(rate={self._rate}, axes={self._axes})"

    def state_info(self, batch_size=0):
        """Return no states."""
        return []

    def hybrid_forward(self, F, inputs, states):
        """Apply dropout, and return the states unchanged."""
        if self._rate > 0:
            name = f"t{self._counter}_fwd"
            inputs = F.Dropout(inputs, p=self._rate, axes=self._axes, name=name)
        return inputs, states

    def _unrolled(self, length, inputs, states, layout, merge, valid_length):
        """Apply dropout to all steps at once."""
        inputs = outputs_as(inputs, length, layout, merge)
        if is_whole(inputs):
            return self(inputs, [])
        return super()._unrolled(length, inputs, states, layout, merge, None)


class ModifierCell(HybridRecurrentCell):
    """The base class of cells that modify another cell, whose only owner they become."""

    def __init__(self, base_cell):
        base_cell._check_free()
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias())
        self.base_cell = base_cell

    def __repr__(self):
        return f"{type(self).__name__}({self.base_cell})"

    @property
    def params(self):
        """Return the base cell's."""
        return self.base_cell.params

    def state_info(self, batch_size=0):
        """Return the base cell's."""
        return self.base_cell.state_info(batch_size)

    def begin_state(self, **kwargs):
        """Return the base cell's."""
        self._check_free()
        return self._of_base("begin_state", **kwargs)

    def _of_base(self, method, *args, **kwargs):
        """Call a method of the base cell."""
        self.base_cell._modified = False
        try:
            return getattr(self.base_cell, method)(*args, **kwargs)
        finally:
            self.base_cell._modified = True


class ZoneoutCell(ModifierCell):
    """In training, some outputs and states keep their values from the previous step.

    Source:  Krueger et al., ICLR 2017.
    """

    def __init__(self, base_cell, zoneout_outputs=0.0, zoneout_states=0.0):
        if isinstance(base_cell, BidirectionalCell):
            raise AttrError("ZoneoutCell: a BidirectionalCell has no steps; modify the cells in it")
        super().__init__(base_cell)
        self.zoneout_outputs = checked(
            "ZoneoutCell", "zoneout_outputs", zoneout_outputs, probability
        )
        self.zoneout_states = checked("ZoneoutCell", "zoneout_states", zoneout_states, probability)

    def _alias(self):
        return "zoneout"

    def __repr__(self):
        rates = f"p_out={self.zoneout_outputs}, p_state={self.zoneout_states}"
        return f"ZoneoutCell({rates}, {self.base_cell})"

    def reset(self):
        """Reset the counters and the last output."""
        super().reset()
        vars(self)["_last"] = None

    def hybrid_forward(self, F, inputs, states):
        """Run one step."""
        output, new = self.base_cell(inputs, states)
        last = F.zeros_like(output) if self._last is None else self._last
        output = _mixed(F, self.zoneout_outputs, output, last)
        vars(self)["_last"] = output
        pairs = zip(new, states, strict=True)
        return output, [_mixed(F, self.zoneout_states, a, b) for a, b in pairs]


def _mixed(F, p, new, old):
    """Select the new values or, in training with probability p, the old ones."""
    return new if p == 0 else F.where(F.Dropout(F.ones_like(new), p=p), new, old)


class ResidualCell(ModifierCell):
    """The base cell's output plus its input.

    Source:  Wu et al., arXiv:1609.08144.
    """

    def _alias(self):
        return "residual"

    def hybrid_forward(self, F, inputs, states):
        """Run one step."""
        output, states = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), states

    def _unrolled(self, length, inputs, states, layout, merge, valid_length):
        """Run all steps: (outputs, last states)."""
        args = length, inputs, states, layout, merge, valid_length
        outputs, states = self._of_base("unroll", *args)
        if valid_length is not None:
            inputs = masked(inputs, valid_length, layout)
        inputs = outputs_as(inputs, length, layout, is_whole(outputs))
        if is_whole(outputs):
            return outputs + inputs, states
        return [a + b for a, b in zip(outputs, inputs, strict=True)], states


class BidirectionalCell(HybridRecurrentCell):
    """Two cells, one for each direction of a sequence, with concatenated outputs."""

    def __init__(self, l_cell, r_cell, output_prefix="bi_"):
        super().__init__(prefix="")
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs, states):
        """Raise an error, because the backward cell starts at the end."""
        raise NotImplementedError("BidirectionalCell: it has no steps; call unroll")

    def __repr__(self):
        left, right = self._children.values()
        return f"BidirectionalCell(forward={left}, backward={right})"

    state_info, begin_state = _Stacked.state_info, _Stacked.begin_state

    def _unrolled(self, length, inputs, states, layout, merge, valid_length):
        """Run both cells: (outputs, last states of the forward, then of the backward cell)."""
        steps = listed(inputs, length, layout)
        states = started(self, states, steps)
        left, right = self._children.values()
        n = len(left.state_info())
        ahead, first = left.unroll(length, steps, states[:n], layout, merge, valid_length)
        back, last = right.unroll(
            length, backwards(steps, valid_length), states[n:], layout, False, valid_length
        )
        back, F = backwards(back, valid_length), world(steps)
        merge = is_whole(ahead) if merge is None else merge
        if merge:
            name = f"{self._output_prefix}out"
            out = F.concat(merged(ahead, layout), merged(back, layout), dim=2, name=name)
        else:
            pairs = enumerate(zip(ahead, back, strict=True))
            out = [F.concat(*two, dim=1, name=f"{self._output_prefix}t{i}") for i, two in pairs]
        if valid_length is not None:
            out = outputs_as(masked(out, valid_length, layout), length, layout, merge)
        return out, first + last


__dir__ = own_names(globals())
