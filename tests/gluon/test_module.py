"""Modules: what MXNet's give, what a loop by hand gives, and wrong calls."""

import io
import json
import logging
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import envs
import numpy as np
import pytest
from minihybrid.io import DataBatch, NDArrayIter
from minihybrid.module import Module

import minihybrid as mx
from minihybrid import AttrError, HybridError, ShapeError, init, nd, sym
from minihybrid.core.files import FileError

PROGRAM = Path(__file__).parent / "elsewhere/modules.py"
X = np.random.default_rng(2).normal(size=(10, 3)).astype("float32")
CPU = mx.cpu()
Y = (X.sum(1) > 0).astype("float32")


@pytest.fixture(autouse=True)
def numpy_only(monkeypatch):
    """Plans run as NumPy code, which takes no time to compile."""
    monkeypatch.setattr("minihybrid.core.targets.best_target", lambda: "numpy")
    monkeypatch.setattr("minihybrid.executor.best_target", lambda: "numpy")
    monkeypatch.setattr("minihybrid.executor.target_of", lambda array: "numpy")


def net():
    x = sym.FullyConnected(sym.var("data"), num_hidden=4, name="first")
    x = sym.FullyConnected(sym.tanh(x), num_hidden=2, name="second")
    return sym.SoftmaxOutput(x, name="softmax")


def trained(num_epoch=2, context=CPU, optimizer="sgd", settings=None, **more):
    mx.random.seed(4)
    made = Module(net(), context=context)
    settings = settings or {"learning_rate": 0.5, "momentum": 0.9}
    made.fit(
        NDArrayIter(X, Y, 4),
        optimizer=optimizer,
        optimizer_params=settings,
        initializer=mx.init.Normal(0.5),
        num_epoch=num_epoch,
        **more,
    )
    return made


def numbers(made):
    return {name: array.asnumpy().copy() for name, array in made.get_params()[0].items()}


def same(actual, expected, rtol=0.0):
    assert actual.keys() == expected.keys()
    for name in actual:
        np.testing.assert_allclose(actual[name], expected[name], rtol=rtol, atol=rtol)


def close(actual, expected, path=""):
    """Nested lists and dicts of numbers that are as near as MXNet's may be."""
    assert type(actual) is type(expected), path
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys(), path
        for name in expected:
            close(actual[name], expected[name], f"{path}/{name}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), path
        for i, pair in enumerate(zip(actual, expected, strict=True)):
            close(*pair, f"{path}/{i}")
    elif isinstance(expected, float):
        assert abs(actual - expected) <= 1e-5, (path, actual, expected)
    else:
        assert actual == expected, path


@pytest.mark.external
def test_programs_give_what_they_give_in_mxnet():
    """Without oneDNN, whose bias has a wrong gradient where the weight is fixed."""
    try:
        python = envs.python_of("mxnet")
    except envs.NotAvailable as reason:
        pytest.skip(str(reason))
    run = subprocess.run(
        [python, PROGRAM],
        capture_output=True,
        text=True,
        timeout=600,
        env={"MXNET_MKLDNN_ENABLED": "0"},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    program = PROGRAM.read_text().replace("import mxnet as mx", "import minihybrid as mx")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(program.replace("from mxnet", "from minihybrid"), PROGRAM, "exec"), {})
    close(json.loads(printed.getvalue()), json.loads(run.stdout.splitlines()[-1]))


def test_fit_is_the_loop_by_hand():
    batches, update = NDArrayIter(X, Y, 4), None
    made = Module(net())
    made.bind(batches.provide_data, batches.provide_label)
    mx.random.seed(4)
    made.init_params(mx.init.Normal(0.5))
    by_hand = net().simple_bind(mx.cpu(), data=(4, 3), softmax_label=(4,))
    by_hand.copy_params_from(*made.get_params())
    update = mx.optimizer.get_updater(
        mx.optimizer.SGD(learning_rate=0.5, momentum=0.9, rescale_grad=1 / 4)
    )
    for _ in range(2):
        batches.reset()
        for batch in batches:
            by_hand.forward(True, data=batch.data[0], softmax_label=batch.label[0])
            by_hand.backward()
            for i, name in enumerate(made._param_names):
                update(i, by_hand.grad_dict[name], by_hand.arg_dict[name])
    actual = numbers(trained())
    same(actual, {name: by_hand.arg_dict[name].asnumpy() for name in actual})


@pytest.mark.parametrize("n", [2, 3])
def test_several_devices_train_as_one_does(n):
    """Of 4 samples, three devices get 1, 1 and 2."""
    many = trained(context=[mx.cpu(i) for i in range(n)])
    same(numbers(many), numbers(trained()), 1e-5)
    outs = many.get_outputs(merge_multi_context=False)
    assert [a.shape[0] for a in outs[0]] == ([2, 2] if n == 2 else [1, 1, 2])
    assert many.get_outputs()[0].shape == (4, 2) and str(outs[0][1].context) == "cpu(1)"


def test_fixed_parameters_and_those_given_stay():
    first = {"first_weight": nd.ones((4, 3)), "second_bias": nd.array([3, 4])}
    batches = NDArrayIter(X, Y, 5)
    made = Module(net(), fixed_param_names=["first_weight"])
    made.fit(batches, num_epoch=1, arg_params=first, aux_params={}, allow_missing=True)
    actual = numbers(made)
    assert (actual["first_weight"] == 1).all() and not (actual["second_bias"] == [3, 4]).any()


def test_variables_have_initializers_and_rates_of_their_own():
    weight = sym.var("w", init=mx.init.Constant(0.25), lr_mult=0)
    bias = sym.var("b", init="ones")
    out = sym.FullyConnected(sym.var("data"), weight, bias, num_hidden=2, name="y")
    made = Module(sym.SoftmaxOutput(out, name="softmax"))
    made.fit(NDArrayIter(X, Y, 5), num_epoch=1)
    actual = numbers(made)
    assert (actual["w"] == 0.25).all() and (abs(actual["b"] - 1) > 1e-4).all()


def test_what_is_told_and_when():
    calls, texts = [], []
    logger = logging.Logger("own")
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())
    logger.addHandler(handler)
    made = Module(net(), logger=logger)
    made.fit(
        NDArrayIter(X, Y, 5),
        NDArrayIter(X, Y, 4),
        eval_metric="acc",
        validation_metric="ce",
        begin_epoch=3,
        num_epoch=5,
        batch_end_callback=[lambda p: calls.append(("batch", p.epoch, p.nbatch))],
        eval_batch_end_callback=lambda p: calls.append(("eval", p.epoch, p.nbatch)),
        eval_end_callback=lambda p: calls.append(("end", p.nbatch)),
        epoch_end_callback=lambda n, symbol, args, aux: calls.append(("epoch", n, len(args))),
    )
    one = [("batch", 3, 0), ("batch", 3, 1), ("epoch", 3, 4)]
    one += [("eval", 3, 0), ("eval", 3, 1), ("eval", 3, 2), ("end", 3)]
    assert calls[:7] == one and len(calls) == 14
    assert [t.partition("=")[0] for t in texts[:3]] == [
        "Epoch[3] Train-accuracy",
        "Epoch[3] Time cost",
        "Epoch[3] Validation-cross-entropy",
    ]
    made.bind([("data", (5, 3))])
    assert texts[-1] == "Already bound, ignoring bind()"


def test_predictions_leave_out_what_fills_the_last_batch():
    made = trained(1)
    whole = made.predict(X).asnumpy()
    batches = NDArrayIter(X, Y, 4)
    np.testing.assert_allclose(made.predict(batches).asnumpy(), whole, rtol=1e-6)
    parts = made.predict(batches, merge_batches=False)
    assert [part[0].shape for part in parts] == [(4, 2), (4, 2), (2, 2)]
    assert made.predict(batches, num_batch=1, always_output_list=True)[0].shape == (4, 2)
    assert [(n, b.pad) for _, n, b in made.iter_predict(batches)] == [(0, 0), (1, 0), (2, 2)]
    ((name, value),) = made.score(NDArrayIter(X, Y, 5), "acc")
    assert (name, value) == ("accuracy", (whole.argmax(1) == Y).mean())


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("context", [mx.cpu(), [mx.cpu(0), mx.cpu(1)]])
def test_a_checkpoint_goes_on_as_if_nothing_had_been(tmp_path, optimizer, context):
    settings = {"learning_rate": 0.1} | ({"momentum": 0.9} if optimizer == "sgd" else {})
    prefix, how = str(tmp_path / "net"), (context, optimizer, settings)
    made = trained(1, *how)
    made.save_checkpoint(prefix, 1, save_optimizer_states=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "net-0001.params",
        "net-0001.states",
        "net-symbol.json",
    ]
    again = Module.load(prefix, 1, load_optimizer_states=True, context=context)
    again.fit(
        NDArrayIter(X, Y, 4),
        optimizer=optimizer,
        optimizer_params=settings,
        begin_epoch=1,
        num_epoch=2,
    )
    same(numbers(again), numbers(trained(2, *how)))
    other = trained(1, context, "sgd", {"learning_rate": 0.1})
    with pytest.raises(FileError, match="but SGD needs"):
        other.load_optimizer_states(f"{prefix}-0001.states")
    with pytest.raises(FileError, match="holds no states that save_optimizer_states wrote"):
        other.load_optimizer_states(f"{prefix}-0001.params")


def test_parameters_go_through_a_file_of_their_own(tmp_path):
    made, other = trained(1), trained(2)
    made.save_params(tmp_path / "x.params")
    other.load_params(tmp_path / "x.params")
    same(numbers(other), numbers(made))
    np.testing.assert_array_equal(other.predict(X).asnumpy(), made.predict(X).asnumpy())


def test_a_store_of_several_processes_divides_by_all_their_samples(monkeypatch):
    store = mx.kv.create("local")
    monkeypatch.setattr(type(store), "type", "dist_sync")
    monkeypatch.setattr(type(store), "num_workers", 3)
    made = trained(1, kvstore=store)
    assert made._optimizer.rescale_grad == 1 / 12
    alone = trained(1, settings={"learning_rate": 0.5, "momentum": 0.9, "rescale_grad": 1 / 12})
    same(numbers(made), numbers(alone), 1e-6)


def test_gradients_of_the_data_and_from_outside():
    made = Module(sym.var("data") * sym.var("w"), label_names=())
    made.bind([("data", (2, 3))], inputs_need_grad=True)
    made.init_params(arg_params={"w": nd.ones((2, 3)) * 5}, aux_params={})
    made.forward(DataBatch([nd.ones((2, 3))]), is_train=True)
    made.backward(nd.ones((2, 3)) * 2)
    assert (made.get_input_grads()[0].asnumpy() == 10).all()


CALLS = {
    "unbound": (lambda m: m.init_params(), HybridError, r"init_params: call bind\(...\) first"),
    "early": (lambda m: m.forward(DataBatch([])), HybridError, r"forward: call bind\(...\) first"),
    "rounds": (lambda m: m.fit(NDArrayIter(X, Y, 5)), AttrError, "how many rounds, such as 10"),
    "names": (lambda m: m.bind([("x", (2, 3))]), AttrError, r"for \['x'\], but data_names are"),
    "sizes": (
        lambda m: m.bind([("data", (2, 3))], [("softmax_label", (3,))]),
        ShapeError,
        "one batch size",
    ),
    "grads": (
        lambda m: m.bind([("data", (2, 3))], None, False, True),
        AttrError,
        "needs for_training=True",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_too_early_or_wrong_are_one_sentence(name):
    call, error, message = CALLS[name]
    with pytest.raises(error, match=message):
        call(Module(net()))


READY = {
    "missing": (
        lambda m: m.init_params(None, {"first_bias": nd.ones(4)}, {}, force_init=True),
        "not among what is given .first_bias.; or pass allow_missing=True",
    ),
    "extra": (lambda m: m.set_params({"x": nd.ones(1)}, {}), "has no 'x', but first_weight"),
    "shape": (
        lambda m: m.set_params({"first_bias": nd.ones(3)}, {}, allow_missing=True),
        r"'first_bias' is \(3,\), but an array of shape \(4,\)",
    ),
    "features": (lambda m: m.predict(np.ones((2, 7))), r"'first_weight' would have the shape"),
    "arrays": (lambda m: m.forward(DataBatch([])), "has 0 arrays of data, but 1 are needed"),
    "iterator": (lambda m: m.score([1], "acc"), "an iterator is needed"),
    "input": (lambda m: m.get_input_grads(), "bind with inputs_need_grad=True"),
    "optimizer": (lambda m: m.init_optimizer(force_init=True, optimizer="x"), "'x' is unknown"),
    "argument": (lambda m: m.predict(X, sparse_row_id_fn=1), "sparse_row_id_fn"),
}


@pytest.mark.parametrize("name", READY)
def test_what_does_not_fit_is_one_sentence(name):
    call, message = READY[name]
    with pytest.raises((AttrError, ShapeError, HybridError, TypeError), match=message):
        call(trained(1))


def test_devices_data_names_and_batches_must_fit():
    with pytest.raises(AttrError, match="data_names has 'x', but the symbol's variables are data"):
        Module(net(), data_names=["x"])
    with pytest.raises(AttrError, match="equal parts of a batch"):
        Module(net(), context=[mx.cpu(0), mx.cpu(1)], work_load_list=[1, 2])
    many = Module(net(), context=[mx.cpu(i) for i in range(4)])
    with pytest.raises(ShapeError, match="of 3 samples does not reach for 4 devices"):
        many.bind([("data", (3, 3))])


def test_what_is_given_in_vain_is_warned_of():
    made = trained(1)
    with pytest.warns(UserWarning, match="parameters already; or pass force_init=True"):
        made.init_params(arg_params={"first_bias": nd.ones(4)})
    with pytest.warns(UserWarning, match="rescale_grad=1.0, not 1/4"):
        made.init_optimizer(optimizer=mx.optimizer.SGD(), force_init=True)


def test_other_modules_name_what_does_as_much():
    with pytest.raises(AttributeError, match="has no 'BucketingModule'; pad sequences"):
        mx.mod.BucketingModule  # noqa: B018, reading it raises
    with pytest.raises(AttributeError, match="no 'FeedForward'; mx.mod.Module has fit"):
        mx.model.FeedForward  # noqa: B018, reading it raises
    with pytest.raises(AttributeError, match="has no 'x'"):
        mx.mod.x  # noqa: B018, reading it raises
    assert mx.mod.Module is mx.module.Module is Module and "Module" in dir(mx.mod)
    assert sys.modules["minihybrid.mod"].Module is Module


def test_modules_share_their_parameters():
    """MXNet's tutorials train one module, and test by another that is bound to it."""
    data = sym.var("data")
    net = sym.SoftmaxOutput(sym.FullyConnected(sym.BatchNorm(data), num_hidden=3), name="softmax")
    trained, tested = Module(net), Module(net)
    with pytest.raises(HybridError, match="shared_module"):
        tested.bind([("data", (1, 2))], for_training=False, shared_module=trained)
    x = nd.array([[1, 2], [3, 5], [-1, 0.5], [2, 2]])
    batches = NDArrayIter(x, nd.array([0, 1, 2, 0]), batch_size=2)
    trained.fit(batches, num_epoch=1, initializer=init.Uniform(0.5))
    tested.bind([("data", (1, 2))], for_training=False, shared_module=trained)

    def answer(module):
        module.forward(DataBatch([x[:1]]), is_train=False)
        return module.get_outputs()[0].asnumpy()

    for rounds in range(2):
        theirs = trained.get_params()
        for here, there in zip(tested.get_params(), theirs, strict=True):
            assert here.keys() == there.keys() and here
            for name in here:
                np.testing.assert_array_equal(here[name].asnumpy(), there[name].asnumpy())
        np.testing.assert_allclose(answer(tested), answer(trained), rtol=1e-6)
        before = answer(tested)
        if not rounds:  # what one learns later, the other knows
            trained.fit(batches, num_epoch=2, optimizer_params={"learning_rate": 0.5})
            assert not np.allclose(answer(tested), before)
