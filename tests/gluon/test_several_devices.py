"""Chapter 07. Training on several devices, of which the processor has as many as asked."""

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import envs
import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.core.op import HybridError
from minihybrid.gluon import nn
from minihybrid.gluon.utils import split_and_load

PROGRAM = Path(__file__).parent / "elsewhere/two_contexts.py"
TWO = [mx.cpu(0), mx.cpu(1)]


def numbers(*shape):
    return np.random.default_rng(7).normal(size=shape).astype("float32")


def made(ctx=TWO, hybridize=False, **known):
    net = nn.HybridSequential()
    net.add(nn.Dense(5, activation="tanh", **known), nn.Dense(1))
    mx.random.seed(3)
    net.initialize(mx.init.Normal(0.5), ctx=ctx)
    if hybridize:
        net.hybridize()
    return net


# -- arrays ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "make",
    [
        lambda c: nd.array([1, 2], ctx=c),
        lambda c: nd.zeros((2,), c),
        lambda c: nd.ones((2,), ctx=c),
        lambda c: nd.full((2,), 3, ctx=c),
        lambda c: nd.arange(2, ctx=c),
        lambda c: nd.linspace(0, 1, 2, ctx=c),
        lambda c: nd.eye(2, ctx=c),
        lambda c: nd.empty((2,), ctx=c),
        lambda c: nd.random.normal(shape=2, ctx=c),
        lambda c: nd.random.uniform(shape=2, ctx=c),
        lambda c: mx.np.array([1, 2], ctx=c),
        lambda c: mx.np.zeros(2, ctx=c),
        lambda c: mx.np.arange(2, ctx=c),
        lambda c: mx.np.random.normal(size=2, ctx=c),
        lambda c: nd.zeros((2,)).as_in_context(c),
        lambda c: nd.zeros((2,)).copyto(c),
        lambda c: mx.np.zeros(2).as_in_ctx(c),
    ],
)
def test_arrays_are_where_they_were_made_and_so_is_what_comes_of_them(make):
    x = make(mx.cpu(2))
    views = [x, x + 1, x * x, x[0], x[0:1], x.copy(), x.reshape((-1,)), x.T, x.sum(), x.detach()]
    views += [x.zeros_like(), x.astype("int32"), x == x, x[nd.array([0])], copy.deepcopy(x)]
    views += [pickle.loads(pickle.dumps(x)), x.as_in_context(mx.cpu(2))]
    assert [v.context for v in views] == [mx.cpu(2)] * len(views)
    assert "@cpu(2)" in repr(x.as_nd_ndarray())
    assert x.as_in_context(mx.cpu(2)) is x and x.as_in_context(mx.cpu(0)).context == mx.cpu()


def test_a_block_of_with_says_where_new_arrays_are():
    with mx.Context(mx.cpu(1)):
        assert nd.zeros(2).context == nd.random.normal(shape=2).context == mx.cpu(1)
        net = nn.Dense(1, in_units=2)
        net.initialize()
    assert net.weight.list_ctx() == [mx.cpu(1)] and mx.context.num_gpus() == mx.num_gpus()


def test_a_copy_has_memory_of_its_own_and_a_view_has_not():
    x = nd.zeros((2, 2), ctx=mx.cpu(1))
    y = x.copyto(mx.cpu(2))
    x[0][:] = 5
    assert x.asnumpy().tolist() == [[5, 5], [0, 0]] and not y.asnumpy().any()
    y[:] = x
    x[1, 0] = 7
    assert y.asnumpy().tolist() == [[5, 5], [0, 0]] and y.context == mx.cpu(2)
    assert x.reshape((4,)).copyto(y.reshape((4,))).context == mx.cpu(2)


def test_the_first_input_says_where_the_result_is_as_in_mxnet():
    x, y = nd.ones((2, 2), ctx=mx.cpu(0)), nd.ones((2, 2), ctx=mx.cpu(1))
    for a, b in ((x, y), (y, x)):
        actual = [a + b, nd.dot(a, b), nd.concat(a, b), a == b, nd.add_n(a, b)]
        assert {v.context for v in actual} == {a.context}
        assert (actual[0].asnumpy() == 2).all()


def test_the_processor_and_a_device_do_not_combine():
    y = nd.ones(2, ctx=mx.cpu(1))
    with pytest.raises(HybridError, match=r"is on cpu\(1\), but 'rhs' is on simulated_gpu\(0\)"):
        y + nd.ones(2, ctx=mx.simulated_gpu())


def test_an_operator_elsewhere_that_fails_says_the_same():
    messages = []
    for context in TWO:
        x = nd.array([0, 0, 0], ctx=context)
        with pytest.raises(HybridError) as error:
            nd.linalg.potrf(-nd.ones((2, 2), ctx=context) + x[0])
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_gradients_go_the_way_back_between_devices():
    x, w = nd.array([1, 2]), nd.array([3, 4], ctx=mx.cpu(1))
    x.attach_grad(), w.attach_grad()
    with autograd.record():
        z = (x.as_in_context(mx.cpu(1)) * w).sum()
    z.backward()
    assert x.grad.context == mx.cpu() and x.grad.asnumpy().tolist() == [3, 4]
    assert w.grad.context == mx.cpu(1) and w.grad.asnumpy().tolist() == [1, 2]


# -- parameters ------------------------------------------------------------------------
@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("known", [{}, {"in_units": 3}], ids=["deferred", "known"])
def test_a_net_has_a_copy_on_each_device_and_the_input_says_which_is_read(hybridize, known):
    net = made(hybridize=hybridize, **known)
    x = numbers(4, 3)
    outs = [net(nd.array(x, ctx=c)) for c in TWO for _ in range(2)]
    assert [o.context for o in outs] == [TWO[0]] * 2 + [TWO[1]] * 2
    assert all((o.asnumpy() == outs[0].asnumpy()).all() for o in outs)
    weight = net[0].weight
    assert weight.list_ctx() == TWO and net.collect_params().list_ctx() == TWO
    assert [w.context for w in weight.list_data()] == [g.context for g in weight.list_grad()] == TWO
    weight.data(TWO[1])[:] = 0  # the other copy is another array
    assert weight.data().asnumpy().any() and not weight.data(TWO[1]).asnumpy().any()
    changed = [net(nd.array(x, ctx=c)).asnumpy() for c in TWO]
    assert (changed[0] == outs[0].asnumpy()).all() and np.ptp(changed[1]) == 0
    with mx.cpu(1):
        assert weight.data().context == mx.cpu(1)
    weight.set_data(nd.ones((5, 3)))
    assert all((w.asnumpy() == 1).all() for w in weight.list_data())
    with pytest.raises(HybridError, match=r"lives on cpu\(0\), cpu\(1\), not on cpu\(2\)"):
        net(nd.array(x, ctx=mx.cpu(2)))
    with pytest.raises(HybridError, match=r"not on cpu\(2\)"):
        weight.grad(mx.cpu(2))


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_forward_without_f_reads_the_copy_of_its_input(hybridize):
    class Scaled(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.scale = gluon.Parameter("scale", shape=(1,), init="ones")

        def forward(self, x):
            return x * self.scale.data()

    block = Scaled()
    block.initialize(ctx=TWO)
    block.scale.data(TWO[1])[:] = 3
    if hybridize:
        block.hybridize()
    actual = [block(nd.ones((1,), ctx=c)) for c in TWO]
    assert [v.asscalar() for v in actual] == [1, 3] and [v.context for v in actual] == TWO


def test_a_net_moves_between_sets_of_devices_and_back():
    net, three = made(in_units=3), [mx.cpu(k) for k in (1, 2, 3)]
    x, before = numbers(4, 3), None
    for contexts in (TWO, three, mx.cpu(5), [mx.cpu(0)]):
        net.collect_params().reset_ctx(contexts)
        contexts = contexts if isinstance(contexts, list) else [contexts]
        outs = [net(nd.array(x, ctx=c)).asnumpy() for c in contexts]
        before = outs[0] if before is None else before
        assert net[1].bias.list_ctx() == contexts
        for out in outs:  # a mean of three is rounded
            np.testing.assert_allclose(out, before, atol=1e-6)


def test_files_hold_the_mean_of_the_copies_and_load_onto_all(tmp_path):
    net, path = made(in_units=3), str(tmp_path / "net.params")
    net(nd.ones((1, 3)))
    net[1].bias.data(TWO[0])[:] = 1
    net[1].bias.data(TWO[1])[:] = 4
    net.save_parameters(path)
    again = made(ctx=mx.cpu(0), in_units=3)
    again.load_parameters(path, ctx=[mx.cpu(1), mx.cpu(2)])
    assert again[1].bias.list_ctx() == [mx.cpu(1), mx.cpu(2)]
    assert [b.asscalar() for b in again[1].bias.list_data()] == [2.5, 2.5]
    net.load_parameters(path)
    assert [b.asscalar() for b in net[1].bias.list_data()] == [2.5, 2.5]


def test_a_cast_and_another_grad_req_hold_for_every_copy():
    net = made(in_units=3)
    net.cast("float64")
    net.collect_params().setattr("grad_req", "add")
    for context in TWO:
        x = nd.ones((1, 3), ctx=context, dtype="float64")
        for _ in range(2):
            with autograd.record():
                loss = net(x).sum()
            loss.backward()
    first, second = net[0].weight.list_grad()
    assert first.dtype == np.float64 and (first.asnumpy() == second.asnumpy()).all()
    assert first.asnumpy().any()
    net.collect_params().zero_grad()
    assert not any(g.asnumpy().any() for g in net[0].weight.list_grad())


def test_copies_and_pickles_of_a_net_keep_its_devices():
    net = made(in_units=3)
    net(nd.ones((1, 3)))
    for again in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert again[0].weight.list_ctx() == TWO
        assert again(nd.ones((1, 3), ctx=mx.cpu(1))).context == mx.cpu(1)


# -- training --------------------------------------------------------------------------
def trained(contexts, optimizer, settings, hybridize=False, steps=4, **more):
    """A net's weights, trained as the tutorials do, each batch split over the devices."""
    net = made(contexts, hybridize)
    loss_of, x, y = gluon.loss.L2Loss(), numbers(steps * 8, 3), numbers(steps * 8, 1)
    trainer = gluon.Trainer(net.collect_params(), optimizer, settings, **more)
    metric = mx.metric.MSE()
    for at in range(0, len(x), 8):
        data = split_and_load(nd.array(x[at : at + 8]), contexts)
        labels = split_and_load(nd.array(y[at : at + 8]), contexts)
        with autograd.record():
            outs = [net(part) for part in data]
            losses = [loss_of(out, label) for out, label in zip(outs, labels, strict=True)]
        for loss in losses:
            loss.backward()
        if more.get("update_on_kvstore") is False:
            trainer.allreduce_grads()
            trainer.update(8)
        else:
            trainer.step(8)
        metric.update(labels, outs)
    return net, trainer, metric.get()[1]


def weights_of(net, context=None):
    # by place: the names count up
    params = net.collect_params().values()
    return np.concatenate([p.data(context).asnumpy().ravel() for p in params])


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("more", [{}, {"update_on_kvstore": False}], ids=["step", "update"])
@pytest.mark.parametrize(
    "optimizer, settings",
    [("sgd", {"learning_rate": 0.1, "momentum": 0.9}), ("adam", {}), ("nadam", {})],
)
def test_two_devices_train_to_the_weights_of_one(optimizer, settings, more, hybridize):
    one, _, metric = trained([mx.cpu()], optimizer, settings, hybridize)
    for contexts in (TWO, [mx.cpu(k) for k in (3, 1, 0, 2)]):
        net, _, other = trained(contexts, optimizer, settings, hybridize, **more)
        for context in contexts:
            np.testing.assert_allclose(weights_of(net, context), weights_of(one), atol=1e-6)
        assert other == pytest.approx(metric, abs=1e-6)
    start = made([mx.cpu()], in_units=3)
    start(nd.ones((1, 3)))
    assert abs(weights_of(one) - weights_of(start)).max() > 1e-3  # something was learned


def test_batch_norm_has_statistics_of_each_part():
    net = nn.BatchNorm(in_channels=1)
    net.initialize(ctx=TWO)
    for k, context in enumerate(TWO):
        with autograd.record():
            net(nd.full((4, 1), k + 1, ctx=context))
    means = [m.asscalar() for m in net.running_mean.list_data()]
    assert means == pytest.approx([0.1, 0.2])


def test_a_copy_without_a_gradient_is_named():
    net = made(in_units=3)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    with autograd.record():
        loss = net(nd.ones((2, 3)))
    loss.backward()
    with pytest.raises(HybridError, match=r"of '\w+' on cpu\(1\) since the last step"):
        trainer.step(2)
    trainer.step(2, ignore_stale_grad=True)
    first, second = net[0].weight.list_data()
    assert (first.asnumpy() == second.asnumpy()).all()


def test_states_are_stored_and_go_on_on_every_copy(tmp_path):
    more = {"update_on_kvstore": False}
    net, trainer, _ = trained(TWO, "adam", {}, **more)
    trainer.save_states(str(tmp_path / "adam.states"))
    again = gluon.Trainer(net.collect_params(), "adam", {}, **more)
    again.load_states(str(tmp_path / "adam.states"))
    with autograd.record():
        losses = [net(nd.ones((2, 3), ctx=c)) for c in TWO]
    for loss in losses:
        loss.backward()
    again.allreduce_grads()
    again.update(4)
    weights = [weights_of(net, c) for c in TWO]
    assert (weights[0] == weights[1]).all()
    assert again._counts == [dict.fromkeys(range(4), 5)] * 2


def test_a_step_by_hand_as_the_book_writes_it():
    """D2L's chapter on several devices, from scratch: copies, sums, and their way back."""
    given, x, y = numbers(3, 1), numbers(8, 3), numbers(8, 1)

    def run(contexts):
        copies = [nd.array(given).copyto(c) for c in contexts]
        for w in copies:
            w.attach_grad()
        for _ in range(3):
            with autograd.record():
                losses = [
                    ((nd.dot(a, w) - b) ** 2).sum()
                    for a, b, w in zip(
                        split_and_load(x, contexts),
                        split_and_load(y, contexts),
                        copies,
                        strict=True,
                    )
                ]
            for loss in losses:
                loss.backward()
            for w in copies[1:]:
                copies[0].grad[:] += w.grad.copyto(copies[0].context)
            for w in copies[1:]:
                copies[0].grad.copyto(w.grad)
            for w in copies:
                w[:] -= 0.01 * w.grad
        return [w.asnumpy() for w in copies]

    (one,) = run([mx.cpu()])
    for w in run(TWO):
        np.testing.assert_allclose(w, one, atol=1e-6)


def test_executors_run_on_the_device_that_they_are_bound_to():
    x = mx.sym.var("x")
    run = (x * 2).simple_bind(ctx=mx.cpu(1), x=(2,))
    run.forward(is_train=True, x=nd.array([1, 2]))
    run.backward(nd.ones(2))
    assert run.outputs[0].context == run.grad_dict["x"].context == mx.cpu(1)
    assert run.outputs[0].asnumpy().tolist() == [2, 4]
    assert (x * 2).bind(mx.cpu(1), {"x": nd.ones(2)}).forward()[0].asnumpy().tolist() == [2, 2]


@pytest.mark.external
def test_a_program_finds_what_it_finds_in_mxnet(tmp_path):
    """Only its import lines are changed."""
    try:
        python = envs.python_of("mxnet")
    except envs.NotAvailable as reason:
        pytest.skip(f"MXNet 1.9.1: {reason}")
    ours = PROGRAM.read_text("utf-8").replace("mxnet as", "minihybrid as")
    (tmp_path / "ours.py").write_text(ours.replace("from mxnet", "from minihybrid"), "utf-8")
    printed = [
        subprocess.run([*run], text=True, capture_output=True, check=True).stdout.splitlines()[-1]
        for run in ((python, PROGRAM), (sys.executable, tmp_path / "ours.py"))
    ]
    theirs, actual = map(json.loads, printed)
    assert theirs.keys() == actual.keys() and len(actual) == 13
    for name, value in theirs.items():
        if "step" not in name and "update" not in name:
            assert actual[name] == value, name
            continue
        (numbers, contexts, metric), (own, own_contexts, own_metric) = value, actual[name]
        assert contexts == own_contexts and own_metric == pytest.approx(metric, rel=1e-5)
        for a, b in zip(numbers, own, strict=True):
            np.testing.assert_allclose(np.array(b), np.array(a), atol=1e-5, err_msg=name)
