"""Executors: the same programs as with MXNet, and the answers of hybrid blocks."""

import importlib.util
import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import AttrError, HybridError, ShapeError, autograd, gluon, nd, sym

GOLDEN = Path(__file__).parents[1] / "golden/symbolic"
ANSWERS = json.loads((GOLDEN / "answers.json").read_text(encoding="utf-8"))


def programs():
    spec = importlib.util.spec_from_file_location("programs", GOLDEN / "programs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAMS = programs()


def same(actual, expected):
    """Nested lists of numbers and text, numbers to five places."""
    if isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(
            same(actual[k], expected[k]) for k in expected
        )
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(map(same, actual, expected))
        )
    if isinstance(expected, float):
        return actual == pytest.approx(expected, abs=3e-5)
    return actual == expected


@pytest.mark.parametrize("name", ANSWERS)
def test_programs_find_what_they_find_with_mxnet(name):
    program = getattr(PROGRAMS, name)
    with mx.name.NameManager():
        actual = PROGRAMS.plain(program(mx))
    assert same(json.loads(json.dumps(actual)), ANSWERS[name]), actual


def test_every_program_has_an_answer():
    made = {
        name
        for name, f in inspect.getmembers(PROGRAMS, inspect.isfunction)
        if list(inspect.signature(f).parameters) == ["mx"]
    }
    assert made - {"perceptron"} == ANSWERS.keys()


# -- beside Gluon ----------------------------------------------------------------------
def net_and_executor(grad_req="write"):
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(5, activation="tanh"), gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    x = nd.array(np.random.default_rng(0).normal(size=(4, 6)))
    net(x)
    params = net.collect_params()
    args = {name: p.data() for name, p in params.items()} | {"data": x}
    grads = {name: nd.zeros(a.shape) for name, a in args.items()}
    return net, x, net(sym.var("data")).bind(mx.cpu(), args, grads, grad_req)


@pytest.mark.slow
def test_an_executor_and_a_hybridized_block_compute_the_same():
    net, x, exe = net_and_executor()
    net.hybridize()
    np.testing.assert_array_equal(exe.forward()[0].asnumpy(), net(x).asnumpy())
    g = nd.array(np.random.default_rng(1).normal(size=(4, 3)))
    with autograd.record():
        y = net(x)
    y.backward(g)
    np.testing.assert_array_equal(exe.forward(is_train=True)[0].asnumpy(), y.asnumpy())
    exe.backward(g)
    for name, p in net.collect_params().items():
        np.testing.assert_allclose(
            exe.grad_dict[name].asnumpy(), p.grad().asnumpy(), rtol=1e-6, atol=1e-7
        )


def test_an_executor_runs_the_plan_of_a_hybridized_block():
    net, x, exe = net_and_executor()
    net.hybridize()
    net(x)
    plan, _, _ = net.plan_for(x)
    assert exe.plan.n_kernels == plan.n_kernels
    assert exe.plan.nbytes_moved == plan.nbytes_moved


def test_a_step_of_the_trainer_reaches_the_executor():
    net, x, exe = net_and_executor()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1})
    before = exe.forward()[0].asnumpy()
    with autograd.record():
        y = net(x)
    y.backward()
    trainer.step(1)
    assert not np.allclose(exe.forward()[0].asnumpy(), before)
    np.testing.assert_allclose(exe.outputs[0].asnumpy(), net(x).asnumpy(), rtol=1e-5)


def test_only_the_wanted_gradients_are_computed():
    _, _, exe = net_and_executor({"net_dense1_bias": "write"})
    exe.forward(is_train=True)
    exe.backward(nd.ones((4, 3)))
    assert exe.grad_dict["net_dense1_bias"].asnumpy().tolist() == [4, 4, 4]
    assert not exe.grad_dict["net_dense0_weight"].asnumpy().any()
    (op,) = exe._ops.values()
    assert len(op.backward_op.plan.out_specs) == 1


def test_dropout_follows_the_mode_and_its_gradient_the_mask():
    x, g = nd.ones((8, 8)), nd.zeros((8, 8))
    exe = sym.Dropout(sym.var("x"), p=0.5).bind(mx.cpu(), [x], [g])
    np.testing.assert_array_equal(exe.forward()[0].asnumpy(), x.asnumpy())
    mx.random.seed(3)
    first = exe.forward(is_train=True)[0].asnumpy()
    exe.backward(nd.ones((8, 8)))
    np.testing.assert_array_equal(g.asnumpy(), first)
    mx.random.seed(3)
    with autograd.train_mode():
        np.testing.assert_array_equal(nd.Dropout(x, p=0.5).asnumpy(), first)


def test_states_are_bound_and_written_in_training():
    s = sym.BatchNorm(sym.var("x"), name="bn", fix_gamma=False)
    exe = s.simple_bind(mx.cpu(), x=(6, 3))
    assert list(exe.aux_dict) == ["bn_moving_mean", "bn_moving_var"]
    x = np.random.default_rng(0).normal(2, 3, (6, 3))
    exe.copy_params_from(
        {"x": nd.array(x), "bn_gamma": nd.ones((3,))}, {"bn_moving_var": nd.ones((3,))}
    )
    exe.forward()
    assert not exe.aux_arrays[0].asnumpy().any()
    held = exe.aux_arrays[0]
    exe.forward(is_train=True)
    exe.backward(nd.ones((6, 3)))
    np.testing.assert_allclose(held.asnumpy(), 0.1 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(exe.grad_dict["bn_beta"].asnumpy(), [6, 6, 6])
    with pytest.raises(AttrError, match="aux_states has no array for 'bn_moving_mean'"):
        s.bind(mx.cpu(), exe.arg_dict)


# -- watching --------------------------------------------------------------------------
@pytest.mark.parametrize("everything", [False, True])
def test_a_monitor_sees_every_value_and_changes_none(everything):
    _, x, exe = net_and_executor()
    expected = exe.forward()[0].asnumpy()
    exe.backward(nd.ones((4, 3)))
    grads = {name: g.asnumpy() for name, g in exe.grad_dict.items()}
    seen = {}
    exe.set_monitor_callback(
        lambda name, a: seen.update({name: a.asnumpy()}), monitor_all=everything
    )
    exe.forward(is_train=True)
    exe.backward(nd.ones((4, 3)))
    np.testing.assert_array_equal(exe.outputs[0].asnumpy(), expected)
    for name, g in grads.items():
        np.testing.assert_allclose(exe.grad_dict[name].asnumpy(), g, rtol=1e-6)
    inner = exe._symbol.get_internals()
    names = inner.list_outputs()
    assert list(seen) == [n for n in names if everything or n.endswith("_output")]
    for name in seen:
        part = inner[name]
        value = part.eval(**{n: exe.arg_dict[n] for n in part.list_arguments()})[0]
        np.testing.assert_allclose(seen[name], value.asnumpy(), rtol=1e-6)


def test_an_executor_describes_itself():
    _, _, exe = net_and_executor()
    text = exe.debug_str()
    assert text.startswith(exe._symbol.debug_str())
    assert f"Total {exe.plan.nbytes_planned} bytes allocated" in text
    best = exe.get_optimized_symbol()
    assert sorted(best.list_arguments()) == sorted(exe.arg_dict)
    values = {n: exe.arg_dict[n] for n in best.list_arguments()}
    np.testing.assert_allclose(
        best.eval(**values)[0].asnumpy(), exe.forward()[0].asnumpy(), rtol=1e-6
    )


# -- shared memory ---------------------------------------------------------------------
def test_a_smaller_executor_works_on_the_memory_of_the_larger():
    _, x, exe = net_and_executor()
    small = exe.reshape(data=(2, 6))
    small.forward()
    np.testing.assert_array_equal(exe.outputs[0].asnumpy()[:2], small.outputs[0].asnumpy())
    small.arg_dict["data"][:] = 9
    assert (x.asnumpy()[:2] == 9).all() and not (x.asnumpy()[2:] == 9).any()
    small.backward(nd.ones((2, 3)))
    assert exe.grad_dict["net_dense1_bias"].asnumpy().tolist() == [2, 2, 2]


def test_arguments_can_be_shared_with_another_executor():
    net = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")
    first = net.simple_bind(mx.cpu(), data=(4, 5))
    second = net.simple_bind(
        mx.cpu(), data=(2, 5), shared_exec=first, shared_arg_names=["fc_weight", "fc_bias"]
    )
    first.arg_dict["fc_bias"][:] = 5
    assert (second.forward()[0].asnumpy() == 5).all()
    assert second.arg_dict["data"].shape == (2, 5)


# -- errors ----------------------------------------------------------------------------
A, B = sym.var("a"), sym.var("b")
X = nd.ones((2, 2))


def bound():
    return (A * B).bind(mx.cpu(), [X, X], [nd.zeros((2, 2)), nd.zeros((2, 2))])


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda: (A * B).bind(mx.cpu(), {"a": X}),
            AttrError,
            "args has no array for 'b'; needed: a, b",
        ),
        (
            lambda: (A * B).bind(mx.cpu(), [X]),
            AttrError,
            "args has 1 entries, but 2 are needed: a, b",
        ),
        (
            lambda: (A * B).bind(mx.cpu(), [X, 3]),
            AttrError,
            "args['b'] is 3 (an int), but an NDArray is needed",
        ),
        (
            lambda: (A * B).bind(mx.cpu(), [X, nd.ones((3, 3))]),
            ShapeError,
            "elemwise_mul: the inputs have shapes (2, 2) and (3, 3)",
        ),
        (
            lambda: (A * B).bind(mx.cpu(), [X, X.astype("float64")]),
            mx.DTypeError,
            "elemwise_mul: the inputs are float32 and float64",
        ),
        (
            lambda: (A * B).bind(mx.cpu(), [X, X], [X, nd.ones((3,))]),
            ShapeError,
            "args_grad['b'] has shape (3,), but args['b'] has (2, 2)",
        ),
        (
            lambda: (A * B).bind(mx.cpu(), [X, X], grad_req="sum"),
            AttrError,
            "grad_req of 'a' is 'sum'; needed: write, add or null",
        ),
        (
            lambda: (A * B).bind(mx.cpu(), [X, X], grad_req=["add"]),
            AttrError,
            "grad_req has 1 entries, but 2 are needed",
        ),
        (
            lambda: (A * sym.var("a")).bind(mx.cpu(), [X, X]),
            AttrError,
            "two variables are called 'a'",
        ),
        (lambda: (A * B).bind(mx.gpu(9), [X, X]), HybridError, "gpu(9) is not available"),
        (lambda: (A * B).eval(a=X), AttrError, "args has no array for 'b'"),
        (
            lambda: (A * B).simple_bind(mx.cpu()),
            ShapeError,
            "the shapes of a, b do not follow from nothing; pass them, as in a=(2, 3)",
        ),
        (
            lambda: (A * B).simple_bind(mx.cpu(), a=(0, 3)),
            ShapeError,
            "the shapes of a, b do not follow from a",
        ),
        (
            lambda: bound().forward(c=X),
            AttrError,
            "forward: no argument is called 'c'; there are a, b",
        ),
        (
            lambda: bound().forward(a=nd.ones((2, 3))),
            ShapeError,
            "forward: a has shape (2, 3), but the bound array has (2, 2)",
        ),
        (lambda: bound().forward(a=[1, 2]), AttrError, "forward: a is [1, 2] (a list)"),
        (
            lambda: bound().backward(),
            HybridError,
            "the output '_mul0_output' is no loss, so its gradient is needed",
        ),
        (
            lambda: bound().backward(nd.ones((3,))),
            ShapeError,
            "the gradient of '_mul0_output' has shape (3,), but the output has (2, 2)",
        ),
        (
            lambda: bound().backward([X, X]),
            AttrError,
            "2 gradients are given, but there are 1 outputs (_mul0_output)",
        ),
        (lambda: bound().backward([3]), AttrError, "is 3 (an int), but an NDArray is"),
        (
            lambda: bound().copy_params_from({"c": X}),
            AttrError,
            "no argument is called 'c'; there are a, b; or pass allow_extra_params=True",
        ),
        (
            lambda: bound().copy_params_from({"a": nd.ones((1,))}),
            ShapeError,
            "copy_params_from: a has shape (1,), but the bound array has (2, 2)",
        ),
        (
            lambda: bound().reshape(a=(4, 4), b=(4, 4)),
            ShapeError,
            "a has shape (2, 2), which is too small for (4, 4)",
        ),
        (lambda: bound().reshape(a=(1, 2)), ShapeError, "(1, 2) and (2, 2)"),
    ],
)
def test_errors_are_one_sentence(call, error, words):
    with mx.name.NameManager(), pytest.raises(error, match=re.escape(words)) as caught:
        call()
    assert "\n" not in str(caught.value)
