"""Optimizers give MXNet's numbers, one by one and compiled; schedules; the Trainer."""

import json
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from minihybrid.optimizer import Optimizer, states_in

import minihybrid as mx
from minihybrid import (
    AttrError,
    HybridError,
    ShapeError,
    autograd,
    gluon,
    lr_scheduler,
    nd,
    optimizer,
    simulated_gpu,
)
from minihybrid.core.files import FileError
from minihybrid.gluon.trainer import CompiledUpdate
from minihybrid.runtime.device import device_of

GOLDEN = Path(__file__).parents[1] / "golden/training"
GIVEN, *CASES = json.loads((GOLDEN / "optimizers.json").read_text())
SCHEDULES = json.loads((GOLDEN / "schedules.json").read_text())
# MXNet's Adam kernels form 1 - beta2 in float32, off by 1e-5 of it; ours do not.
TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}
ADAM = {"rtol": 1e-5, "atol": 1e-5}
WEIGHTS, GRADIENTS, *BY_HAND = json.loads((GOLDEN / "optimizers_by_hand.json").read_text())
every_case = pytest.mark.parametrize(
    "case", CASES, ids=lambda c: " ".join([c["optimizer"], *c["settings"]])
)


def made(case):
    """The optimizer of a case, with the golden multipliers of rate and decay."""
    made = optimizer.create(case["optimizer"], **case["settings"])
    made.set_lr_mult(dict(enumerate(GIVEN["lr_mult"])))
    made.set_wd_mult(dict(enumerate(GIVEN["wd_mult"])))
    return made


def test_every_optimizer_has_golden_numbers():
    """But for the one that draws them."""
    assert {c["optimizer"] for c in CASES + BY_HAND} == set(Optimizer.opt_registry) - {"sgld"}


@pytest.mark.parametrize("case", BY_HAND, ids=lambda c: " ".join([c["optimizer"], *c["settings"]]))
def test_rows_and_large_batches_take_the_steps_of_mxnet(case):
    update = optimizer.Updater(optimizer.create(case["optimizer"], **case["settings"]))
    weights = [nd.array(w) for w in WEIGHTS]
    for gradients, after in zip(GRADIENTS, case["after"], strict=True):
        update([0, 1], [nd.array(g) for g in gradients], weights)
        for weight, expected in zip(weights, after, strict=True):
            np.testing.assert_allclose(weight.asnumpy(), expected, **TOLERANCE)


def test_gradients_that_are_written_again_are_added_up_as_they_were():
    """MXNet keeps the first one itself, which the next backward overwrites."""
    update = optimizer.Updater(optimizer.create("lbsgd", learning_rate=1.0, batch_scale=2))
    weight, grad = nd.zeros((1, 1)), nd.ones((1, 1))
    update(0, grad, weight)
    grad[:] = 3
    update(0, grad, weight)
    rate = 1 + 2 / (5 * 32)
    np.testing.assert_allclose(weight.asnumpy(), [[-2 * rate]], rtol=1e-6)


def test_rows_need_two_axes_and_no_decay():
    made = optimizer.create("groupadagrad")
    assert type(made) is optimizer.contrib.GroupAdaGrad
    with pytest.raises(ShapeError, match=r"shape \(3,\), but two axes are needed"):
        optimizer.Updater(made)(0, nd.ones(3), nd.ones(3))
    with pytest.raises(AttrError, match="wd=0.1, but it has no weight decay"):
        decaying = optimizer.create("groupadagrad", wd=0.1)
        optimizer.Updater(decaying)(0, nd.ones((1, 1)), nd.ones((1, 1)))
    with pytest.raises(AttrError, match="LBSGD: warmup_strategy='x' does not fit"):
        optimizer.LBSGD(warmup_strategy="x")


@every_case
def test_ten_steps_are_those_of_mxnet(case):
    update, tolerance = (
        optimizer.Updater(made(case)),
        ADAM if case["optimizer"].startswith("adam") else TOLERANCE,
    )
    weights = [nd.array(w) for w in GIVEN["weights"]]
    for gradients, after in zip(GIVEN["gradients"], case["after"], strict=True):
        update([0, 1, 2], [nd.array(g) for g in gradients], weights)
        for weight, expected in zip(weights, after, strict=True):
            np.testing.assert_allclose(weight.asnumpy(), expected, **tolerance)


def compiled_and_eager(case, dtype):
    """Weights and states after three steps: as one plan, and one by one."""
    results = []
    for compiled in (True, False):
        opt = made(case)
        update = optimizer.Updater(opt)
        weights = [nd.array(w, dtype=dtype) for w in GIVEN["weights"]]
        grads = [nd.zeros(w.shape, dtype=dtype) for w in weights]
        states = [states_in(update.state(i, w)) for i, w in enumerate(weights)]
        plan = None
        for step in GIVEN["gradients"][:3]:
            for grad, numbers in zip(grads, step, strict=True):
                grad[:] = np.array(numbers, dtype)
            if not compiled:
                update([0, 1, 2], grads, weights)
                continue
            opt._update_count([0, 1, 2])
            numbers = [opt.numbers(i) for i in range(3)]
            plan = plan or CompiledUpdate(
                opt, list(zip(weights, grads, states, strict=True)), numbers
            )
            plan(numbers)
        results.append([a.asnumpy() for a in (*weights, *sum(states, ()))])
    return results


@every_case
def test_all_weights_in_one_plan_is_the_same_update(case, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # target "numpy"
    for mine, expected in zip(*compiled_and_eager(case, "float64"), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-12, atol=1e-14)


@every_case
def test_a_step_writes_over_weights_and_states_as_numpy_computes_them(case):
    """Long vectors, two threads' pieces: whoever writes has read all that it needs."""
    rng, results = np.random.default_rng(0), []
    start, *gradients = rng.standard_normal((4, 3, 2**18 + 5)).astype("float32")
    for target in ("cpu", "numpy"):
        opt = made(case)
        update = optimizer.Updater(opt)
        weights = [nd.array(w) for w in start]
        grads = [nd.zeros(w.shape) for w in weights]
        states = [states_in(update.state(i, w)) for i, w in enumerate(weights)]
        opt._update_count([0, 1, 2])
        numbers = [opt.numbers(i) for i in range(3)]
        with mock.patch("minihybrid.gluon.trainer.target_of", mock.Mock(return_value=target)):
            step = CompiledUpdate(opt, list(zip(weights, grads, states, strict=True)), numbers)
        memory = [w.data.ctypes.data for w in weights]
        for gradient in gradients:
            for grad, new in zip(grads, gradient, strict=True):
                grad[:] = new
            step(numbers)
        assert step.plan.target == target
        assert not (target == "numpy" and step.plan.into)
        assert memory == [w.data.ctypes.data for w in weights]
        results.append([a.asnumpy() for a in (*weights, *sum(states, ()))])
    for mine, expected in zip(*results, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=2e-5, atol=1e-6)


def test_a_step_of_adam_makes_no_new_arrays():
    weight, grad = nd.ones((2**18,)), nd.ones((2**18,))
    opt = optimizer.create("adam")
    states = states_in(opt.create_state(0, weight))
    opt._update_count([0])
    step = CompiledUpdate(opt, [(weight, grad, states)], [opt.numbers(0)])
    assert sorted(step.bound.tiers.last().into) == [0, 1, 2]  # the weight and two means
    assert step.bound.tiers.last().memory.outs_nbytes == 0


def test_the_compiled_update_is_one_call_with_one_kernel_a_weight():
    params = [gluon.Parameter(f"p{i}", shape=(n,)) for i, n in enumerate((2, 3, 4))]
    trainer = gluon.Trainer(params, "adam", {"learning_rate": 0.1, "wd": 0.1})
    eager = optimizer.Updater(optimizer.create("adam", learning_rate=0.1, wd=0.1))
    for p in params:
        p.initialize("ones")
    weights = [p.data().copy() for p in params]
    for step in range(3):
        with autograd.record():
            loss = sum((p.data() ** 2).sum() for p in params)
        loss.backward()
        eager([0, 1, 2], [p.grad() / 2 for p in params], weights)
        trainer.step(2)
        for p, w in zip(params, weights, strict=True):
            np.testing.assert_allclose(p.data().asnumpy(), w.asnumpy(), rtol=1e-6)
        trainer.set_learning_rate(0.1 / (step + 2))
        eager.optimizer.set_learning_rate(0.1 / (step + 2))
    ((compiled,),) = trainer._compiled.values()  # new rates were no new program
    assert compiled.plan.target == "cpu" and compiled.plan.n_kernels == 3


def test_on_a_device_weights_and_states_are_written_in_place():
    param = gluon.Parameter("p", shape=(5,))
    param.initialize("ones", ctx=simulated_gpu())
    trainer = gluon.Trainer([param], "adam", {"learning_rate": 0.1})
    device, counts = device_of(simulated_gpu()), []
    for _ in range(3):
        with autograd.record():
            loss = (param.data() ** 2).sum()
        loss.backward()
        before = device.n_launches
        trainer.step(1)
        counts.append(device.n_launches - before)
    ((compiled,),) = trainer._compiled.values()
    assert len(compiled.plan.into) == 3  # the weight and its two states
    assert counts[1:] == [1, 1]


# -- the parts of an optimizer ---------------------------------------------------------
def test_names_in_any_case_create_optimizers_and_wrong_ones_are_errors():
    assert type(optimizer.create("SGD")) is optimizer.SGD
    with pytest.raises(AttrError, match="'sdg' is unknown; there are adadelta, "):
        optimizer.create("sdg")
    with pytest.raises(AttrError, match="'lr' .*mean 'learning_rate'.*momentum"):
        optimizer.create("sgd", lr=1)


def test_weights_that_are_no_weights_do_not_decay():
    opt = optimizer.SGD(wd=0.5, param_idx2name={0: "fc_weight", 1: "fc_bias"})
    assert [opt._get_wd(0), opt._get_wd(1)] == [0.5, 0]
    opt.set_wd_mult({"fc_bias": 2.0})
    assert opt._get_wd(1) == 1


def test_optimizers_and_trainers_say_their_settings():
    adam = optimizer.Adam(wd=0.1, lr_scheduler=lr_scheduler.FactorScheduler(3, base_lr=0.5))
    settings = "wd=0.1, beta1=0.9, beta2=0.999, epsilon=1e-08"
    # A rate that is given is the schedule's: Adam has one by itself.
    assert repr(adam) == f"Adam(learning_rate=0.001, {settings}, lr_scheduler=FactorScheduler)"
    trainer = gluon.Trainer(gluon.nn.Dense(1).collect_params(), "sgd", {"momentum": 0.5})
    assert repr(trainer) == "Trainer(SGD(learning_rate=0.01, momentum=0.5), 2 parameters)"
    own = SignOnly(learning_rate=2, rescale_grad=0.5)
    assert repr(own) == "SignOnly(learning_rate=2, rescale_grad=0.5)"
    assert "warmup_strategy=linear" in repr(optimizer.create("lbsgd"))


def test_multipliers_in_a_symbol_are_read():
    weight = mx.sym.var("w", lr_mult=3, wd_mult=0.5)
    opt = optimizer.SGD(learning_rate=1, wd=1, sym=weight, param_idx2name={0: "w"})
    assert opt._get_lr(0) == 3 and opt._get_wd(0) == 0.5


def test_mixed_precision_keeps_small_steps_that_float16_would_lose():
    weight, grad = nd.ones((1,), dtype="float16"), nd.ones((1,), dtype="float16")
    for mixed, expected in ((False, 1.0), (True, 0.99)):
        w = weight.copy()
        update = optimizer.Updater(optimizer.SGD(learning_rate=1e-4, multi_precision=mixed))
        for _ in range(100):
            update(0, grad, w)
        assert w.asnumpy() == pytest.approx(expected, abs=1e-3) and w.dtype == np.float16


@optimizer.register
class SignOnly(Optimizer):
    """A custom optimizer, as tutorials write it."""

    def create_state(self, index, weight):
        return nd.zeros(weight.shape)

    def update(self, index, weight, grad, state):
        self._update_count(index)
        state += 1
        weight -= self._get_lr(index) * nd.sign(grad * self.rescale_grad)


del Optimizer.opt_registry["signonly"]  # the laws are about the package's own


def test_each_weight_has_its_own_schedule_of_nadam():
    """However many weights there are, and where states were loaded."""
    gradients = [nd.array([0.5]), nd.array([-1.0]), nd.array([2.0])]
    actual = []
    for n in (1, 3):
        update = optimizer.Updater(optimizer.Nadam(learning_rate=0.1))
        weights = [nd.array([1.0]) for _ in range(n)]
        for g in gradients:
            update(list(range(n)), [g] * n, weights)
        actual += [w.item() for w in weights]
    assert len(set(actual)) == 1
    t = np.arange(1, 8)
    nadam = optimizer.Nadam()
    nadam._index_update_count = {0: 7}
    product = np.prod(nadam.momentum(t))
    assert nadam.rates(0)["of_grad"] == pytest.approx((1 - nadam.momentum(7)) / (1 - product))


def test_momentum_of_lars_follows_the_schedule_and_biases_have_no_rate_of_their_own():
    """The weights are those that MXNet 1.9.1 has."""
    schedule = lr_scheduler.FactorScheduler(2, 0.5, base_lr=2.0)
    lars = optimizer.create(
        "lars",
        **dict(momentum=0.9, eta=0.1, wd=0.1, lr_scheduler=schedule, learning_rate=2.0),
        param_idx2name={0: "a_weight", 1: "a_bias"},
    )
    update, weights = optimizer.Updater(lars), [nd.array([1.0, 2.0]), nd.array([1.0])]
    for t in range(6):
        update([0, 1], [nd.array([0.5, -1.0 * t]), nd.array([0.25])], weights)
    actual = [x for w in weights for x in w.asnumpy().tolist()]
    assert actual == pytest.approx([-0.700738, 3.299456, -3.084836], abs=2e-6)


def test_noise_has_the_variance_of_the_rate():
    mx.random.seed(2)
    w, g = nd.ones((20000,)), nd.ones((20000,))
    optimizer.SGLD(learning_rate=0.04, wd=0.5).update(0, w, g, None)
    assert w.asnumpy().mean() == pytest.approx(1 - 0.02 * 1.5, abs=0.006)
    assert w.asnumpy().std() == pytest.approx(0.2, rel=0.02)


def test_old_weights_are_corrected_with_momentum_too():
    """MXNet 1.9.1 refuses momentum here: it asks an array whether it is true."""
    opt, w = optimizer.DCASGD(learning_rate=0.5, momentum=0.5, lamda=2.0), nd.array([1.0])
    state = opt.create_state(0, w)
    opt.update(0, w, nd.array([1.0]), state)
    assert w.item() == 0.5 and [s.item() for s in state] == [1.0, -0.5]
    opt.update(0, w, nd.array([1.0]), state)
    # m = 0.5 * -0.5 - 0.5 * (1 + 2 * 1 * (0.5 - 1)) = -0.25
    assert w.item() == 0.25 and [s.item() for s in state] == [0.5, -0.25]


# -- schedules -------------------------------------------------------------------------
@pytest.mark.parametrize("case", SCHEDULES, ids=lambda c: c["schedule"])
def test_rates_are_those_of_mxnet(case):
    schedule = getattr(lr_scheduler, case["schedule"])(**case["settings"])
    assert [schedule(t) for t in range(15)] == pytest.approx(case["rates"], rel=1e-12)


def test_every_schedule_has_golden_numbers():
    public = {
        n
        for n, c in vars(lr_scheduler).items()
        if isinstance(c, type) and issubclass(c, lr_scheduler.LRScheduler) and not n.startswith("_")
    }
    assert {c["schedule"] for c in SCHEDULES} == public - {"LRScheduler"}


@pytest.mark.parametrize(
    "name, settings, message",
    [
        (
            "FactorScheduler",
            {"step": 0},
            "step=0 does not fit; needed: a whole number of at least 1",
        ),
        ("FactorScheduler", {"step": 1, "factor": 2}, "factor=2, but at most 1"),
        ("MultiFactorScheduler", {"step": [3, 3]}, "rising whole numbers"),
        ("PolyScheduler", {"max_update": 0}, "max_update=0 does not fit; needed: a whole number"),
        ("CosineScheduler", {"max_update": 9, "warmup_mode": "slow"}, "one of linear, constant"),
        ("CosineScheduler", {"max_update": 9, "warmup_begin_lr": 1}, "at most base_lr=0"),
    ],
)
def test_schedules_that_make_no_sense_are_errors(name, settings, message):
    with pytest.raises(AttrError, match=message):
        getattr(lr_scheduler, name)(**settings)


# -- the trainer -----------------------------------------------------------------------
@pytest.fixture
def numpy_only(monkeypatch):
    """The trainer's plans run as NumPy code, which takes no time to compile."""
    monkeypatch.setattr("minihybrid.core.targets.best_target", lambda: "numpy")


def parameter(name="w", n=2, **kwargs):
    made = gluon.Parameter(name, shape=(n,), **kwargs)
    made.initialize("ones")
    return made


def backward(*params):
    with autograd.record():
        loss = sum((p.data() ** 2).sum() for p in params)
    loss.backward()


def test_the_schedule_and_the_parameters_own_factors_decide_the_rate(numpy_only):
    schedule = lr_scheduler.FactorScheduler(step=1, factor=0.5, base_lr=0.1)
    slow, fast = parameter("slow"), parameter("fast", lr_mult=2.0)
    trainer = gluon.Trainer([slow, fast], "sgd", {"lr_scheduler": schedule})
    backward(slow, fast)
    trainer.step(1)
    assert trainer.learning_rate == 0.1
    assert slow.data().asnumpy() == pytest.approx(1 - 0.1 * 2)
    assert fast.data().asnumpy() == pytest.approx(1 - 0.2 * 2)
    backward(slow, fast)
    trainer.step(1)
    assert trainer.learning_rate == 0.05
    assert slow.data().asnumpy() == pytest.approx(0.8 - 0.05 * 1.6)
    with pytest.raises(AttrError, match="lr_scheduler decides"):
        trainer.set_learning_rate(1)


def test_a_step_goes_down_by_the_mean_of_a_batch(numpy_only):
    net = gluon.nn.Dense(1, in_units=3)
    net.initialize()
    weight, before = net.weight, net.weight.data().asnumpy()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    with autograd.record():
        total = net(nd.ones((4, 3))).sum()
    total.backward()
    trainer.step(4)
    moved = before - weight.data().asnumpy()
    np.testing.assert_allclose(moved, np.full((1, 3), 0.5), rtol=1e-5)


def test_a_gradient_that_backward_did_not_write_is_an_error_or_left_out(numpy_only):
    used, unused = parameter("used"), parameter("unused")
    trainer = gluon.Trainer({"a": used, "b": unused}, "sgd", {"learning_rate": 0.5})
    backward(used)
    with pytest.raises(HybridError, match="not written the gradient of 'unused'"):
        trainer.step(1)
    trainer.step(1, ignore_stale_grad=True)
    assert (used.data().asnumpy() == 0).all() and (unused.data().asnumpy() == 1).all()
    with pytest.raises(HybridError, match="'used' since the last step"):
        trainer.step(1)


def test_parameters_without_a_gradient_stay(numpy_only):
    frozen, trained = parameter("frozen", grad_req="null"), parameter("trained")
    trainer = gluon.Trainer([frozen, trained], "sgd", {"learning_rate": 0.5})
    backward(trained)
    trainer.step(1)
    assert (frozen.data().asnumpy() == 1).all()
    assert (trained.data().asnumpy() == 0).all()


def test_a_parameter_in_new_memory_is_updated_there(numpy_only):
    p = parameter()
    trainer = gluon.Trainer([p], "sgd", {"learning_rate": 0.25})
    for initial in ("ones", mx.init.Constant(2)):
        p.initialize(initial, force_reinit=True)
        backward(p)
        trainer.step(1)
    assert (p.data().asnumpy() == 1).all()


def test_a_setting_that_changes_has_an_effect(numpy_only):
    p = parameter()
    trainer = gluon.Trainer([p], "sgd", {"learning_rate": 1, "clip_gradient": 0.5})
    backward(p)
    trainer.step(1)
    assert (p.data().asnumpy() == 0.5).all()
    trainer.optimizer.clip_gradient = 0.25
    backward(p)
    trainer.step(1)
    assert (p.data().asnumpy() == 0.25).all()


def test_float16_weights_are_trained_in_float16_or_by_a_float32_copy():
    for mixed in (False, True):
        p = parameter(dtype="float16")
        trainer = gluon.Trainer([p], "adam", {"learning_rate": 0.25, "multi_precision": mixed})
        backward(p)
        trainer.step(1)
        assert p.data().asnumpy() == pytest.approx(0.75, abs=2e-3)
        assert p.data().dtype == np.float16
        states = states_in(trainer._updater.states[0])
        assert {np.dtype(s.dtype).name for s in states} == ({"float32"} if mixed else {"float16"})


def test_somebodys_own_optimizer_is_called_for_each_parameter():
    p = parameter()
    trainer = gluon.Trainer([p], SignOnly(learning_rate=0.5))
    for _ in range(2):
        backward(p)
        trainer.step(4)
    assert (p.data().asnumpy() == 0).all() and not trainer._compiled
    assert (trainer._updater.states[0].asnumpy() == 2).all()


@pytest.mark.parametrize(
    "case", [c for c in CASES if len(c["settings"]) > 1], ids=lambda c: c["optimizer"]
)
def test_training_goes_on_from_saved_states(case, tmp_path, numpy_only):
    runs = []
    for interrupted in (False, True):
        p = parameter()
        trainer = gluon.Trainer([p], case["optimizer"], case["settings"])
        for step in range(4):
            if interrupted and step == 2:
                trainer.save_states(str(tmp_path / "states"))
                trainer = gluon.Trainer([p], case["optimizer"], case["settings"])
                trainer.load_states(str(tmp_path / "states"))
            backward(p)
            trainer.step(1)
        runs.append(p.data().asnumpy())
    np.testing.assert_array_equal(*runs)


def test_states_of_another_optimizer_or_net_are_an_error(tmp_path, numpy_only):
    p, path = parameter(), str(tmp_path / "states")
    trainer = gluon.Trainer([p], "adam")
    backward(p)
    trainer.step(1)
    trainer.save_states(path)
    with pytest.raises(FileError, match=r"of 'w' have shapes .*\(2,\)\], but SGD "):
        gluon.Trainer([p], "sgd").load_states(path)
    with pytest.raises(FileError, match="states of parameter 0, but there are 0"):
        gluon.Trainer([], "adam").load_states(path)
    nd.save(path, {"num_update": nd.ones((1,)), "count:x": nd.ones((1,))})
    with pytest.raises(FileError, match="holds no states of a Trainer"):
        trainer.load_states(path)
    with pytest.raises(AttrError, match="optimizer_params are for an optimizer's name"):
        gluon.Trainer([p], optimizer.SGD(), {"learning_rate": 1})


def test_a_variable_that_nothing_comes_back_to_has_the_gradient_0():
    x = nd.ones((2,))
    x.attach_grad()
    x.grad[:] = 5
    with autograd.record():
        y = nd.sign(x) * 2
    y.backward()
    assert (x.grad.asnumpy() == 0).all()


@pytest.mark.parametrize("first", [0, 8, 9, 98])
def test_states_fit_the_same_net_whose_layers_are_counted_further(first, tmp_path):
    """As text, dense10_ sorts before dense9_: a net made again would have another order."""
    actual = []
    for start in (0, first):
        net = gluon.nn.Sequential()
        for i, units in enumerate((3, 4, 5)):
            net.add(gluon.nn.Dense(units, in_units=units - 1, prefix=f"dense{start + i}_"))
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "adam")
        with autograd.record():
            loss = net(nd.ones((1, 2))).sum()
        loss.backward()
        trainer.step(1)
        actual.append([p.name.partition("_")[2] + str(p.shape) for p in trainer._params])
        if start == 0 and len(actual) == 1:
            trainer.save_states(str(tmp_path / "states"))
    trainer.load_states(str(tmp_path / "states"))
    assert actual[0] == actual[1]
