"""Recurrent layers and cells: against numbers of MXNet 1.9.1, and against each other."""

import json

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd, sym
from minihybrid.core.op import ShapeError
from minihybrid.gluon import nn, rnn
from minihybrid.ops.recurrent import CELLS

# Mode -> a row of the outputs, of the last states, and of the gradient, by MXNet 1.9.1.
SEEN = {
    "rnn_relu": ([0.0, 0.0, 0.88552, 1.54576], [0.0, 3.94676], [0.0, 0.0, 0.80197]),
    "rnn_tanh": (
        [-0.52124, -0.78024, 0.5174, 0.774],
        [-0.59519, 0.94809],
        [0.63071, 0.90132, 1.16095],
    ),
    "lstm": (
        [-0.36055, 0.10834, 0.05066, 0.03108],
        [0.45553, 0.09397],
        [-0.13509, -0.09189, 0.02218],
    ),
    "gru": (
        [0.71748, 0.13533, 0.80002, 0.62484],
        [0.35802, 0.88151],
        [-0.28753, -0.00545, -0.00283],
    ),
}


@pytest.mark.parametrize("mode", CELLS)
def test_the_operator_computes_what_mxnet_does(mode):
    size = 2 * CELLS[mode][0] * 2 * 6
    weights = nd.array(np.sin(np.arange(size)))
    x = nd.array(np.cos(np.arange(12)).reshape(3, 2, 2))
    state = nd.array(0.1 * np.arange(8).reshape(2, 2, 2))
    weights.attach_grad()
    attrs = {"state_size": 2, "num_layers": 1, "bidirectional": True, "state_outputs": True}
    with autograd.record():
        outs = nd.RNN(x, weights, *[state] * CELLS[mode][1], mode=mode, **attrs)
        total = (outs[0] * outs[0]).sum()
    total.backward()
    actual = outs[0][1, 0], outs[-1][1, 1], weights.grad[:3]
    for value, expected in zip(actual, SEEN[mode], strict=True):
        np.testing.assert_allclose(value.asnumpy(), expected, atol=2e-5)


def layer(mode, **kwargs):
    kind = {"lstm": rnn.LSTM, "gru": rnn.GRU}.get(mode)
    made = kind(3, **kwargs) if kind else rnn.RNN(3, activation=mode[4:], **kwargs)
    made.initialize(mx.init.Normal(0.5))
    return made


def data(steps=4, samples=2, numbers=3):
    return nd.array(np.random.RandomState(1).normal(size=(steps, samples, numbers)))


def cells_of(net, n_layers, bidirectional):
    """The cells of a layer, which share its parameters."""
    mode, units = net._mode, net._attrs["state_size"]
    kinds = {"rnn_relu": rnn.RNNCell, "rnn_tanh": rnn.RNNCell, "lstm": rnn.LSTMCell}
    more = {"activation": mode[4:]} if mode.startswith("rnn") else {}
    made = rnn.HybridSequentialRNNCell(prefix=net.prefix, params=net.params)
    with made.name_scope():
        for i in range(n_layers):
            sides = [
                kinds.get(mode, rnn.GRUCell)(units, prefix=f"{side}{i}_", **more)
                for side in "lr"[: 1 + bidirectional]
            ]
            made.add(rnn.BidirectionalCell(*sides) if bidirectional else sides[0])
    return made


@pytest.mark.parametrize("mode", CELLS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_layer_is_its_cells(mode, bidirectional):
    net, x = layer(mode, num_layers=2, bidirectional=bidirectional), data()
    out, states = net(x, net.begin_state(batch_size=2))
    cells = cells_of(net, 2, bidirectional)
    assert set(cells.collect_params()) == set(net.collect_params())
    steps, ends = cells.unroll(4, x, layout="TNC", merge_outputs=True)
    np.testing.assert_allclose(out.asnumpy(), steps.asnumpy(), rtol=1e-5, atol=1e-6)
    kinds = CELLS[mode][1]
    for k, state in enumerate(states):
        expected = np.stack([end.asnumpy() for end in ends[k::kinds]])
        np.testing.assert_allclose(state.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    other = layer(mode, num_layers=2, bidirectional=bidirectional, layout="NTC")
    other(x.swapaxes(0, 1))
    pairs = zip(other.collect_params().values(), net.collect_params().values(), strict=True)
    for mine, its in pairs:
        mine.set_data(its.data())
    turned = other(x.swapaxes(0, 1)).swapaxes(0, 1)
    np.testing.assert_allclose(turned.asnumpy(), out.asnumpy(), rtol=1e-5, atol=1e-6)


def gradients(net, x):
    with autograd.record():
        total = (net(x) * net(x)).sum()
    total.backward()
    return [p.grad().asnumpy() for p in net.collect_params().values()]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_a_hybridized_layer_is_the_same(backend):
    net, x = layer("lstm", bidirectional=True), data(steps=2)
    before, slopes = net(x).asnumpy(), gradients(net, x)
    net.hybridize(backend=backend, wait=True)
    np.testing.assert_allclose(net(x).asnumpy(), before, rtol=1e-5, atol=1e-6)
    out, states = net(x, net.begin_state(batch_size=2))
    np.testing.assert_allclose(out.asnumpy(), before, rtol=1e-5, atol=1e-6)
    assert len(states) == 2 and net(x).shape == (2, 2, 6)  # alone again: no states
    for mine, expected in zip(gradients(net, x), slopes, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-5)


def test_lengths_of_sequences_hide_what_comes_after():
    net, x = layer("lstm", bidirectional=True, use_sequence_length=True), data()
    lengths = nd.array([2, 4])
    out, states = net(x, net.begin_state(batch_size=2), lengths)
    assert not out[2:, 0].asnumpy().any() and out[2:, 1].asnumpy().all()
    alone, ends = net(x[:2, :1], net.begin_state(batch_size=1), nd.array([2]))
    np.testing.assert_allclose(out[:2, :1].asnumpy(), alone.asnumpy(), atol=1e-6)
    for all_, one in zip(states, ends, strict=True):
        np.testing.assert_allclose(all_[:, :1].asnumpy(), one.asnumpy(), atol=1e-6)
    with pytest.raises(mx.AttrError, match="a sequence_length is needed"):
        net(x)


def test_projection_and_clipping():
    net = rnn.LSTM(3, projection_size=2, state_clip_min=-0.1, state_clip_max=0.1)
    net.initialize(mx.init.Normal(1))
    out, (h, c) = net(data(), net.begin_state(batch_size=2))
    assert out.shape == (4, 2, 2) and h.shape == (1, 2, 2) and c.shape == (1, 2, 3)
    assert abs(c.asnumpy()).max() <= np.float32(0.1)
    names = net._collect_params_with_prefix()
    assert sorted(names)[:2] == ["_unfused.0.h2h_bias", "_unfused.0.h2h_weight"]
    with pytest.raises(mx.AttrError, match="GRU doesn't clip its states"):
        rnn.GRU(3, state_clip_min=-0.1)


class Net(nn.HybridBlock):
    """Words, two recurrent layers and a Dense layer, as in tutorials."""

    def __init__(self):
        super().__init__(prefix="net_")
        with self.name_scope():
            self.words = nn.Embedding(9, 2)
            self.first = rnn.LSTM(3, layout="NTC", bidirectional=True)
            self.second = rnn.GRU(2, layout="NTC")
            self.last = nn.Dense(2)

    def hybrid_forward(self, F, x):
        return self.last(self.second(self.first(self.words(x))))


def test_files_are_mxnets(tmp_path):
    net, x = Net(), nd.array([[1, 2, 3], [4, 5, 6]])
    net.initialize(mx.init.Normal(0.5))
    expected = net(x).asnumpy()
    net.hybridize(backend="numpy")
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    files = net.export(str(tmp_path / "net"))
    nodes = json.loads((tmp_path / "net-symbol.json").read_text())["nodes"]
    ops = [n["op"] for n in nodes]
    assert (ops.count("RNN"), ops.count("_rnn_param_concat"), ops.count("_zeros")) == (2, 2, 3)
    zeros = next(n for n in nodes if n["op"] == "_zeros")
    assert zeros["attrs"]["shape"] == "(2, 0, 3)"  # for batches of any size
    loaded = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    np.testing.assert_allclose(loaded(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(loaded(x[:1]).asnumpy(), expected[:1], rtol=1e-5, atol=1e-6)
    net.save_parameters(str(tmp_path / "net.params"))
    assert "first._unfused.0.r_cell.i2h_weight" in nd.load(str(tmp_path / "net.params"))
    other = Net()
    other.load_parameters(str(tmp_path / "net.params"))
    np.testing.assert_allclose(other(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)


# -- cells -----------------------------------------------------------------------------
def stack(*cells):
    made = rnn.SequentialRNNCell()
    for cell in cells:
        made.add(cell)
    return made


MAKERS = {
    "plain": lambda: rnn.RNNCell(3),
    "lstm": lambda: rnn.LSTMCell(3),
    "gru": lambda: rnn.GRUCell(3),
    "residual": lambda: rnn.ResidualCell(rnn.GRUCell(3)),
    "zoneout": lambda: rnn.ZoneoutCell(rnn.RNNCell(3), 0.5, 0.5),
    "stack": lambda: stack(rnn.LSTMCell(2), rnn.DropoutCell(0.5), rnn.GRUCell(3)),
    "both": lambda: rnn.BidirectionalCell(rnn.LSTMCell(2), rnn.GRUCell(3)),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("layout", ["TNC", "NTC"])
def test_sequences_come_and_go_as_arrays_or_lists(kind, layout):
    cell, x = MAKERS[kind](), data()
    cell.initialize(mx.init.Normal(0.5))
    given = x if layout == "TNC" else x.swapaxes(0, 1)
    args = {"layout": layout, "valid_length": nd.array([2, 4])}
    whole, ends = cell.unroll(4, given, merge_outputs=True, **args)
    assert whole.shape[layout.index("T")] == 4
    for inputs in (given, list(x)):
        steps, states = cell.unroll(4, inputs, merge_outputs=False, **args)
        assert len(steps) == 4
        for t, step in enumerate(steps):
            expected = whole.slice_axis(layout.index("T"), t, t + 1).squeeze(layout.index("T"))
            np.testing.assert_allclose(step.asnumpy(), expected.asnumpy(), atol=1e-6)
        for mine, expected in zip(states, ends, strict=True):
            np.testing.assert_allclose(mine.asnumpy(), expected.asnumpy(), atol=1e-6)
    short, _ = cell.unroll(2, list(x[:2, :1]), layout=layout, merge_outputs=False)
    for t, step in enumerate(short):  # what comes after the end counts nowhere
        np.testing.assert_allclose(step.asnumpy(), steps[t][:1].asnumpy(), atol=1e-6)


def test_a_cell_of_symbols_has_mxnets_names():
    cell = rnn.LSTMCell(100, prefix="rnn_")
    steps = [sym.var(f"rnn_t{t}_data") for t in range(3)]
    outputs = sym.Group(cell.unroll(3, steps)[0])
    assert outputs.list_outputs() == [f"rnn_t{t}_out_output" for t in range(3)]
    assert {n for n in outputs.list_arguments() if "data" not in n} == set(cell.collect_params())
    shapes = {f"rnn_t{t}_data": (10, 50) for t in range(3)}
    assert outputs.infer_shape(**shapes)[1] == [(10, 100)] * 3


def test_a_hybridized_cell_keeps_its_plan():
    cell = rnn.LSTMCell(2)
    cell.initialize()
    x, states = nd.ones((1, 3)), cell.begin_state(batch_size=1)
    expected = cell(x, states)[0].asnumpy()
    cell.hybridize(backend="numpy")
    for _ in range(3):
        np.testing.assert_allclose(cell(x, states)[0].asnumpy(), expected, atol=1e-6)
    assert len(cell.plans) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rnn.LSTM(3, layout="CTN"), "LSTM: layout='CTN' does not fit"),
        (lambda: rnn.GRU(0), "GRU: hidden_size=0 does not fit"),
        (
            lambda: layer("gru")(nd.ones((2, 3))),
            "GRU '.*': the inputs have shape .2, 3., but .T, N, C.",
        ),
        (
            lambda: layer("gru")(data(), nd.ones((1, 5, 3))),
            "GRU '.*hidden_size=3: state has shape .1, 5, 3.",
        ),
        (lambda: layer("gru")([1.0]), "is given|are needed|is needed"),
        (lambda: rnn.LSTMCell(2).unroll(3, data()), "length=3, but the inputs .4, 2, 3."),
        (lambda: rnn.LSTMCell(2).unroll(3, [nd.ones((1, 2))] * 2), "length=3, but there are 2"),
        (lambda: rnn.LSTMCell(2).unroll(3, 5), "inputs=5 .an int., but an array"),
        (lambda: rnn.LSTMCell(2).unroll(3, data(), layout="T"), "layout='T' is unknown"),
        (lambda: rnn.ZoneoutCell(MAKERS["both"]()), "a BidirectionalCell has no steps"),
    ],
)
def test_errors_are_sentences(call, message):
    with pytest.raises(mx.MXNetError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_modified_cell_is_its_modifiers():
    base = rnn.GRUCell(3)
    rnn.ResidualCell(base)
    with pytest.raises(mx.AttrError, match="another cell modifies this one"):
        base.begin_state(batch_size=1)


def test_what_is_shown():
    net = rnn.LSTM(4, 2, layout="NTC", dropout=0.5, bidirectional=True, input_size=3)
    assert repr(net) == "LSTM(3 -> 4, NTC, num_layers=2, dropout=0.5, bidirectional)"
    assert repr(rnn.RNNCell(3)) == "RNNCell(None -> 3, tanh)"
    assert (
        repr(MAKERS["zoneout"]()) == "ZoneoutCell(p_out=0.5, p_state=0.5, RNNCell(None -> 3, tanh))"
    )


def test_a_sequence_has_thousands_of_steps_or_one_but_not_none():
    net, x = layer("gru"), data(steps=4100)
    expected = net(x)
    net.hybridize(backend="numpy")
    np.testing.assert_allclose(net(x).asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ShapeError, match=r"gru.*shape \(0, 2, 3\).* at least one step"):
        net(x[:0])
