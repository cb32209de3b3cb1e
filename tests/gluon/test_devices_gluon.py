"""Training on a device: gradients, parameters, trainers, losses and metrics there."""

from pathlib import Path

import numpy as np
import pytest
from marks import external

import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.core.op import HybridError
from minihybrid.gluon import nn
from minihybrid.runtime.device import Device, device_of

GPU, OTHER = mx.simulated_gpu(), mx.simulated_gpu(1)
SGD = "sgd", {"learning_rate": 0.5, "momentum": 0.9, "wd": 0.01}
ADAM = "adam", {"learning_rate": 0.05}


def net_on(ctx, hybrid=False):
    mx.random.seed(5)
    net = nn.HybridSequential()
    net.add(nn.Dense(6, activation="tanh"), nn.Dense(3))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    if hybrid:
        net.hybridize(wait=True)
    return net


def data_on(ctx, n=8):
    rng = np.random.default_rng(1)
    return (nd.array(rng.normal(size=(n, 4)), ctx=ctx), nd.array(rng.integers(0, 3, n), ctx=ctx))


# -- gradients -------------------------------------------------------------------------
def test_a_gradient_lives_where_its_array_does():
    x = nd.array([1, 2, 3], ctx=GPU)
    x.attach_grad()
    assert x.grad.context == GPU and x.grad.asnumpy().tolist() == [0, 0, 0]
    with autograd.record():
        y = x * x * x
    y.backward()
    assert x.grad.context == GPU and x.grad.asnumpy().tolist() == [3, 12, 27]


@pytest.mark.parametrize("req, expected", [("write", [2, 4]), ("add", [4, 8])])
def test_gradients_are_written_or_added(req, expected):
    x = nd.array([1, 2], ctx=GPU)
    x.attach_grad(req)
    for _ in range(2):
        with autograd.record():
            y = x * x
        y.backward(nd.ones((2,), ctx=GPU))
    assert x.grad.asnumpy().tolist() == expected


def test_a_gradient_finds_its_way_back_over_a_copy():
    x = nd.array([1, 2], ctx=GPU)
    x.attach_grad()
    with autograd.record():
        y = (x * x).as_in_context(mx.cpu()) * 3
        z = y.copyto(OTHER) + 1
    z.backward()
    assert (y.context, z.context) == (mx.cpu(), OTHER)
    assert x.grad.context == GPU and x.grad.asnumpy().tolist() == [6, 12]


def test_parts_of_an_array_have_gradients_on_a_device():
    x = nd.array([[1, 2], [3, 4]], ctx=GPU)
    x.attach_grad()
    with autograd.record():
        y = x[0] * 2 + x[:, 1] + x[[1, 1]][0]
    y.backward()
    plain = nd.array([[1, 2], [3, 4]])
    plain.attach_grad()
    with autograd.record():
        y = plain[0] * 2 + plain[:, 1] + plain[[1, 1]][0]
    y.backward()
    assert np.array_equal(x.grad.asnumpy(), plain.grad.asnumpy())


def test_grad_gives_arrays_of_the_device():
    x = nd.array([1, 2], ctx=GPU)
    x.attach_grad()
    with autograd.record():
        (first,) = autograd.grad(x * x * x, [x], create_graph=True)
        first.sum().backward()
    assert first.context == GPU and x.grad.asnumpy().tolist() == [6, 12]


def test_a_function_with_a_gradient_of_its_own_runs_on_a_device():
    class Double(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return dy * 5

    x = nd.array([1, 2], ctx=GPU)
    x.attach_grad()
    with autograd.record():
        y = Double()(x)
    y.backward()
    assert y.context == GPU and x.grad.asnumpy().tolist() == [5, 5]


# -- parameters ------------------------------------------------------------------------
def test_a_parameter_says_where_it_lives():
    p = gluon.Parameter("w", shape=(2, 3))
    p.initialize(ctx=GPU)
    assert p.list_ctx() == [GPU] and p.data().context == p.data(GPU).context == GPU
    assert p.grad().context == p.grad(GPU).context == GPU
    with pytest.raises(HybridError) as error:
        p.data(mx.cpu())
    assert str(error.value) == (
        "Parameter 'w' lives on simulated_gpu(0), not on cpu(0); move the input by "
        "x.as_in_context(simulated_gpu(0)) or the net by net.reset_ctx(cpu(0))"
    )
    with pytest.raises(HybridError, match="^Parameter 'w' lives on simulated_gpu"):
        p.grad(OTHER)


def test_a_parameter_moves_with_its_numbers_and_leaves_its_gradient():
    p = gluon.Parameter("w", shape=(2,))
    p.initialize("ones", ctx=GPU)
    p.set_data(nd.array([3, 4]))
    p.grad()[:] = 7
    p.reset_ctx(OTHER)
    assert p.list_ctx() == [OTHER] and p.data().asnumpy().tolist() == [3, 4]
    assert p.grad().context == OTHER and p.grad().asnumpy().tolist() == [0, 0]
    before = p.data()
    p.reset_ctx(OTHER)
    assert p.data() is before
    p.zero_grad()
    p.cast("float64")
    assert p.data().context == OTHER and p.data().dtype is np.float64


def test_a_shape_that_comes_later_does_not_forget_the_device():
    net = net_on(GPU)
    assert net[0].weight.list_ctx() == [GPU]
    net(data_on(GPU)[0])
    assert net[0].weight.data().context == GPU
    late = nn.Dense(2)
    late.initialize(ctx=GPU)
    late.collect_params().reset_ctx(OTHER)
    late(nd.ones((1, 2), ctx=OTHER))
    assert late.weight.data().context == OTHER


def test_the_device_of_the_with_block_is_the_default_of_initialize():
    with GPU:
        net = nn.Dense(2, in_units=3)
        net.initialize()
    assert net.weight.list_ctx() == [GPU] == net.collect_params().list_ctx()


def test_a_seed_initializes_alike_on_every_device():
    nets = [net_on(ctx) for ctx in (mx.cpu(), GPU)]
    for net, ctx in zip(nets, (mx.cpu(), GPU), strict=True):
        net(data_on(ctx)[0])
    first, second = ([p.data().asnumpy() for p in net.collect_params().values()] for net in nets)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_device_and_the_processor_train_one_net():
    net = nn.Dense(2, in_units=1)
    net.initialize(mx.init.One(), ctx=[GPU, mx.cpu()])
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    with autograd.record():
        losses = [net(nd.full((1, 1), k, ctx=c)).sum() for k, c in ((2, GPU), (3, mx.cpu()))]
    for loss in losses:
        loss.backward()
    trainer.step(5)
    assert [w.context for w in net.weight.list_data()] == [GPU, mx.cpu()]
    assert all((w.asnumpy() == 0).all() for w in net.weight.list_data())


@pytest.mark.parametrize("hybrid", [False, True])
def test_an_input_elsewhere_than_the_parameters_is_named(hybrid):
    net = nn.Dense(2, in_units=3, prefix="dense_")
    net.initialize(ctx=GPU)
    net.hybridize(hybrid)
    with pytest.raises(HybridError) as error:
        net(nd.ones((1, 3)))
    assert "cpu(0)" in str(error.value) and "simulated_gpu(0)" in str(error.value)
    assert "weight" in str(error.value) and "as_in_context" in str(error.value)
    assert net(nd.ones((1, 3), ctx=GPU)).context == GPU
    net.reset_device(mx.cpu())
    assert net(nd.ones((1, 3))).context == mx.cpu()


def test_parameters_go_through_files_to_any_device(tmp_path):
    file = str(tmp_path / "net.params")
    net, x = net_on(GPU), data_on(GPU)[0]
    expected = net(x).asnumpy()
    net.save_parameters(file)
    for ctx in (mx.cpu(), OTHER):
        again = net_on(GPU)
        again.load_parameters(file, ctx=ctx)
        assert again.collect_params().list_ctx() == [ctx]
        actual = again(x.as_in_context(ctx)).asnumpy()
        assert np.allclose(actual, expected, atol=1e-6)
    fresh = nn.HybridSequential()
    fresh.add(nn.Dense(6, activation="tanh"), nn.Dense(3))
    fresh.load_parameters(file, ctx=GPU)
    assert np.array_equal(fresh(x).asnumpy(), expected)


# -- training --------------------------------------------------------------------------
def train(ctx, hybrid, optimizer, settings, steps=20):
    """Losses of a loop as in every tutorial, its accuracy, and the weights."""
    net, (x, y) = net_on(ctx, hybrid), data_on(ctx)
    loss_of, accuracy = gluon.loss.SoftmaxCrossEntropyLoss(), mx.metric.Accuracy()
    trainer = gluon.Trainer(net.collect_params(), optimizer, settings)
    losses = []
    for _ in range(steps):
        with autograd.record():
            out = net(x)
            loss = loss_of(out, y)
        loss.backward()
        trainer.step(len(x))
        accuracy.update(y, out)
        losses.append(loss.mean().asscalar())
    assert loss.context == out.context == ctx
    weights = [p.data().asnumpy() for p in net.collect_params().values()]
    return np.array(losses), accuracy.get()[1], weights


@pytest.mark.slow
@pytest.mark.parametrize(
    "hybrid, optimizer, settings",
    [(False, *SGD), (True, *ADAM), *external(pytest.param(True, *SGD), pytest.param(False, *ADAM))],
)
def test_training_on_a_device_gives_what_the_processor_gives(hybrid, optimizer, settings):
    losses, accuracy, weights = train(GPU, hybrid, optimizer, settings)
    expected = train(mx.cpu(), hybrid, optimizer, settings)
    assert losses[-1] < losses[0] / 2
    assert np.allclose(losses, expected[0], atol=1e-5) and accuracy == expected[1]
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(weights, expected[2], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("hybrid", [False, True])
def test_a_step_of_training_brings_no_number_to_the_processor(monkeypatch, hybrid):
    net, (x, y) = net_on(GPU, hybrid), data_on(GPU)
    net.add(nn.Dense(1))  # its bias has one number, which is as good as many
    net[2].initialize(ctx=GPU)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})

    def step():
        with autograd.record():
            loss = gluon.loss.L2Loss()(net(x), y)
        loss.backward()
        trainer.step(len(x))
        return loss

    first = step().mean().asscalar()
    with monkeypatch.context() as patch:
        patch.setattr(Device, "download", None)
        for _ in range(5):
            loss = step()
    assert loss.mean().asscalar() < first


@pytest.mark.slow
def test_a_loop_needs_no_more_memory_than_its_first_steps():
    train(GPU, True, "sgd", {"learning_rate": 0.1}, steps=3)
    device = device_of(GPU)
    net, (x, y) = net_on(GPU, True), data_on(GPU)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    counts = []
    for _ in range(8):
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(len(x))
        counts.append(device.n_allocations)
    assert counts[3:] == counts[3:4] * 5


def test_rates_go_to_the_device_only_when_they_change(monkeypatch):
    net, x = net_on(GPU), data_on(GPU)[0]
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    uploads = []
    device = device_of(GPU)

    def step():
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        monkeypatch.setattr(device, "upload", lambda *args: uploads.append(args))
        trainer.step(1)
        monkeypatch.undo()

    step()
    uploads.clear()
    step()
    assert uploads == []
    trainer.set_learning_rate(0.2)
    step()
    assert len(uploads) == 1  # of all parameters' rates


def test_states_move_with_their_weights_and_go_through_files(tmp_path):
    net, x = net_on(GPU), data_on(GPU)[0]
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})

    def step(ctx):
        with autograd.record():
            loss = (net(x.as_in_context(ctx)) ** 2).sum()
        loss.backward()
        trainer.step(1)
        return [p.data().asnumpy() for p in net.collect_params().values()]

    step(GPU)
    trainer.save_states(str(tmp_path / "states"))
    net.save_parameters(str(tmp_path / "net"))
    expected = step(GPU)
    for ctx in (mx.cpu(), OTHER):
        net.load_parameters(str(tmp_path / "net"), ctx=ctx)
        trainer.load_states(str(tmp_path / "states"))
        actual = step(ctx)
        assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(actual, expected, strict=True))
    net.reset_ctx(GPU)
    step(GPU)  # no word of states on another device
    assert all(s.context == GPU for s in trainer._updater.states.values())


def test_layers_may_live_on_different_devices():
    """A net in two parts, one a device, with a copy between."""
    first, second = nn.Dense(4, in_units=3), nn.Dense(2, in_units=4)
    first.initialize(ctx=GPU)
    second.initialize(ctx=OTHER)
    params = first.collect_params()
    params.update(second.collect_params())
    trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.1})
    before = [p.data().asnumpy() for p in params.values()]
    with autograd.record():
        loss = second(first(nd.ones((2, 3), ctx=GPU)).as_in_context(OTHER)).sum()
    loss.backward()
    trainer.step(2)
    assert params.list_ctx() == [GPU, OTHER]
    assert all(
        (a != p.data().asnumpy()).any() for a, p in zip(before, params.values(), strict=True)
    )


# -- around training -------------------------------------------------------------------
def test_batches_are_loaded_onto_a_device():
    parts = gluon.utils.split_and_load(np.ones((4, 2)), [GPU])
    assert [p.context for p in parts] == [GPU]
    parts = gluon.utils.split_and_load(nd.arange(4), [GPU, mx.cpu()])
    assert [p.context for p in parts] == [GPU, mx.cpu()]
    assert [p.asnumpy().tolist() for p in parts] == [[0, 1], [2, 3]]
    dataset = gluon.data.ArrayDataset(np.arange(6, dtype="float32"), np.arange(6))
    loader = gluon.data.DataLoader(dataset, 3, pin_memory=True)
    assert [x.as_in_context(GPU).context for x, _ in loader] == [GPU, GPU]


@pytest.mark.parametrize(
    "metric", [mx.metric.Accuracy(), mx.metric.MSE(), mx.metric.CrossEntropy()]
)
def test_metrics_read_arrays_of_any_device(metric):
    label = nd.array([0, 1])
    scores = nd.array([[0.9, 0.1], [0.4, 0.6]])
    label, scores = (label, scores[:, 1]) if metric.name == "mse" else (label, scores)
    actual = []
    for ctx in (mx.cpu(), GPU):
        metric.reset()
        metric.update([label.as_in_context(ctx)], [scores.as_in_context(ctx)])
        actual.append(metric.get())
    assert actual[0] == actual[1]


def test_a_norm_is_clipped_on_the_device():
    gradients = [nd.array([3], ctx=GPU), nd.array([4], ctx=GPU)]
    assert gluon.utils.clip_global_norm(gradients, 1.0) == pytest.approx(5)
    assert gradients[0].item() == pytest.approx(0.6)


def test_a_net_is_exported_from_a_device_as_from_the_processor(tmp_path):
    net, x = net_on(GPU, hybrid=True), data_on(GPU)[0]
    expected = net(x).asnumpy()
    files = [net.export(str(tmp_path / "net"), format=f) for f in ("mxnet", "numpy")]
    again = gluon.SymbolBlock.imports(files[0][0], ["data"], files[0][1], ctx=OTHER)
    assert again.collect_params().list_ctx() == [OTHER]
    assert np.allclose(again(x.as_in_context(OTHER)).asnumpy(), expected, atol=1e-6)
    program, weights = (Path(file).read_bytes() for file in files[1])
    net.reset_ctx(mx.cpu())
    net(x.as_in_context(mx.cpu()))
    files = net.export(str(tmp_path / "net"), format="numpy")
    assert (program, weights) == tuple(Path(file).read_bytes() for file in files)
