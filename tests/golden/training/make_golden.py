"""Write this folder's answers with MXNet 1.9.1: losses, optimisers, metrics, iterators.

Each file is a list of cases, with what was given and what MXNet answered.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):
    benchmarks/envs/mxnet/bin/python tests/golden/training/make_golden.py
"""

import json
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

HERE = Path(__file__).parent
RNG = np.random.RandomState(7)


def write(name, cases):
    """One case a line, so that a change is readable."""
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def numbers(*shape, kind="real"):
    """Random inputs of a kind, as float32."""
    made = {
        "real": lambda: RNG.uniform(-2, 2, shape),
        "probability": lambda: RNG.uniform(0.05, 0.95, shape),
        "sign": lambda: RNG.choice([-1, 1], shape),
        "bit": lambda: RNG.choice([0, 1], shape),
        "class": lambda: RNG.randint(0, 4, shape),
        "count": lambda: RNG.choice([1, 2, 5], shape),
        "positive": lambda: RNG.uniform(0.5, 3, shape),
    }[kind]()
    return np.float32(made)


def distribution(*shape):
    raw = RNG.uniform(0.1, 1, shape)
    return np.float32(raw / raw.sum(-1, keepdims=True))


# -- losses ----------------------------------------------------------------------------
def losses():
    n, k = 3, 4
    cases = []

    def case(name, settings, *inputs):
        arrays = [None if x is None else nd.array(x) for x in inputs]
        arrays[0].attach_grad()
        loss, gradient = getattr(gluon.loss, name)(**settings), None
        out = loss(*arrays)
        if not settings.get("compute_full"):  # writes in place, which has no gradient
            with autograd.record():
                out = loss(*arrays)
            out.backward()
            gradient = arrays[0].grad.asnumpy().tolist()
        cases.append(
            {
                "loss": name,
                "settings": settings,
                "inputs": [None if x is None else np.asarray(x).tolist() for x in inputs],
                "value": out.asnumpy().tolist(),
                "gradient": gradient,
            }
        )

    def real():
        return numbers(n, k)

    weights = numbers(n, 1, kind="positive")
    for name in ("L2Loss", "L1Loss", "HuberLoss"):
        case(name, {}, real(), real())
        case(name, {"weight": 0.7}, real(), real(), weights)
    case("L2Loss", {"batch_axis": 1}, numbers(n, k, 2), numbers(n, k * 2))
    case("HuberLoss", {"rho": 0.4}, real(), real())
    for name in ("HingeLoss", "SquaredHingeLoss", "LogisticLoss"):
        case(name, {}, real(), numbers(n, k, kind="sign"))
        case(name, {"weight": 2.0}, real(), numbers(n, k, kind="sign"), weights)
    case("HingeLoss", {"margin": 0.3}, real(), numbers(n, k, kind="sign"))
    case("SquaredHingeLoss", {"margin": 2}, real(), numbers(n, k, kind="sign"))
    case("LogisticLoss", {"label_format": "binary"}, real(), numbers(n, k, kind="bit"))
    labels = numbers(n, kind="class")
    case("SoftmaxCrossEntropyLoss", {}, real(), labels)
    case("SoftmaxCrossEntropyLoss", {"weight": 0.5}, real(), labels, weights)
    case("SoftmaxCrossEntropyLoss", {"sparse_label": False}, real(), distribution(n, k))
    case("SoftmaxCrossEntropyLoss", {"from_logits": True}, -numbers(n, k, kind="positive"), labels)
    case("SoftmaxCrossEntropyLoss", {"axis": 1}, numbers(n, k, 2), numbers(n, 2, kind="class"))
    bits = numbers(n, k, kind="bit")
    case("SigmoidBinaryCrossEntropyLoss", {}, real(), bits)
    case("SigmoidBinaryCrossEntropyLoss", {"weight": 3.0}, real(), bits, weights)
    case(
        "SigmoidBinaryCrossEntropyLoss",
        {"from_sigmoid": True},
        numbers(n, k, kind="probability"),
        bits,
    )
    ones, positive = np.ones((n, 1), np.float32), numbers(1, k, kind="positive")
    case("SigmoidBinaryCrossEntropyLoss", {}, real(), bits, ones, positive)
    case(
        "SigmoidBinaryCrossEntropyLoss",
        {"from_sigmoid": True},
        numbers(n, k, kind="probability"),
        bits,
        ones,
        positive,
    )
    case("KLDivLoss", {}, np.log(distribution(n, k)), distribution(n, k))
    case("KLDivLoss", {"from_logits": False, "weight": 0.5}, real(), distribution(n, k), weights)
    case("KLDivLoss", {"from_logits": False, "axis": 1}, numbers(n, k, 2), distribution(n, k, 2))
    case("TripletLoss", {}, real(), real(), real())
    case("TripletLoss", {"margin": 20, "weight": 0.5}, real(), real(), real())
    counts = numbers(n, k, kind="count")
    case("PoissonNLLLoss", {}, real(), counts)
    case(
        "PoissonNLLLoss",
        {"from_logits": False, "weight": 2.0},
        numbers(n, k, kind="positive"),
        counts,
        weights,
    )
    case("PoissonNLLLoss", {"compute_full": True}, real(), counts)
    for settings in ({}, {"margin": 0.5}, {"margin": -0.9, "weight": 2.0}):
        case(
            "CosineEmbeddingLoss",
            settings,
            numbers(4, k),
            numbers(4, k),
            np.float32([1, -1, -1, 1]),
        )
    ctc_losses(case)
    for settings in ({}, {"smoothing_parameter": 0.1}):
        case("SDMLLoss", settings, own(4, 3), own(4, 3))
    write("losses", cases)


OWN = np.random.RandomState(11)  # what came later leaves the numbers above as they were


def own(*shape):
    return np.float32(OWN.uniform(-2, 2, shape))


def ctc_losses(case):
    """Words that fit: of others, MXNet's gradient is what was in memory."""
    scores, words = own(3, 6, 5), [[1, 0, -1], [3, 3, 2], [0, -1, -1]]
    case("CTCLoss", {}, scores, words)
    turned = {"layout": "TNC", "label_layout": "TN", "weight": 0.5}
    case("CTCLoss", turned, own(6, 3, 5), np.transpose(words))
    case("CTCLoss", {}, scores, words, [6, 5, 2])
    words = [[1, 0, 1], [3, 3, 2], [0, 1, 1]]
    case("CTCLoss", {}, scores, words, None, [1, 2, 3])
    case("CTCLoss", {}, scores, words, [3, 5, 6], [1, 2, 3], [0.5, 2, 1])


# -- optimisers ------------------------------------------------------------------------
STEPS, SHAPES = 10, ((2, 3), (1,), (4,))
LR_MULT, WD_MULT = (1.0, 0.5, 2.0), (1.0, 0.0, 3.0)
COMMON = {"wd": 0.03, "clip_gradient": 0.4, "rescale_grad": 0.5}
OPTIMIZERS = [
    ("sgd", {"learning_rate": 0.1}),
    ("sgd", {"learning_rate": 0.1, **COMMON}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, **COMMON}),
    ("nag", {"learning_rate": 0.1, "momentum": 0.9}),
    ("nag", COMMON),
    ("nag", {"learning_rate": 0.1, "momentum": 0.9, **COMMON}),
    ("adam", {}),
    ("adam", {"learning_rate": 0.1, **COMMON}),
    ("adam", {"beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3}),
    ("rmsprop", {}),
    ("rmsprop", {"learning_rate": 0.1, **COMMON}),
    ("rmsprop", {"centered": True}),
    ("rmsprop", {"centered": True, "gamma1": 0.8, "learning_rate": 0.05, **COMMON}),
    ("rmsprop", {"clip_weights": 0.5}),
    ("adagrad", {}),
    ("adagrad", {"learning_rate": 0.1, "eps": 1e-3, **COMMON}),
    ("adadelta", {}),
    ("adadelta", {"rho": 0.5, "epsilon": 1e-3, **COMMON}),
    ("adamax", {}),
    ("adamax", {"learning_rate": 0.1, **COMMON}),
    ("adamw", {}),
    ("adamw", {"learning_rate": 0.1, **COMMON}),
    ("adamw", {"correct_bias": False, "epsilon": 1e-3, "wd": 0.1}),
    ("nadam", {}),
    ("nadam", {"learning_rate": 0.1, "schedule_decay": 0.1, "beta1": 0.8, **COMMON}),
    ("ftml", {}),
    ("ftml", {"learning_rate": 0.1, "beta1": 0.3, "epsilon": 1e-3, **COMMON}),
    ("ftrl", {}),
    ("ftrl", {"learning_rate": 0.3, "lamda1": 0.1, "beta": 2.0, **COMMON}),
    ("signum", {}),
    ("signum", {"learning_rate": 0.1, "momentum": 0.5, "wd_lh": 0.1, **COMMON}),
    ("signum", {"learning_rate": 0.1, "momentum": 0.0, **COMMON}),
    ("lamb", {}),
    ("lamb", {"learning_rate": 0.1, "lower_bound": 2.0, "upper_bound": 3.0, **COMMON}),
    ("lamb", {"learning_rate": 0.1, "bias_correction": False}),
    ("lars", {}),
    ("lars", {"learning_rate": 10.0, "momentum": 0.9, "eta": 0.05, "eps": 1e-3, **COMMON}),
    ("dcasgd", {}),
    ("dcasgd", {"learning_rate": 0.1, "lamda": 0.5, **COMMON}),
    ("ccsgd", {"learning_rate": 0.1, "momentum": 0.9, **COMMON}),
]


class AdamW(mx.optimizer.Optimizer):
    """MXNet 1.9.1 has AdamW's operator, but no class around it."""

    def __init__(
        self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-6, correct_bias=True, **kwargs
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.options = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        self.correct_bias = correct_bias

    def create_state(self, index, weight):
        return nd.zeros(weight.shape), nd.zeros(weight.shape)

    def update(self, index, weight, grad, state):
        self._update_count(index)
        t, lr = self._index_update_count[index], 1.0
        if self.correct_bias:
            beta1, beta2 = self.options["beta1"], self.options["beta2"]
            lr = (1 - beta2**t) ** 0.5 / (1 - beta1**t)
        clip = {"clip_gradient": self.clip_gradient} if self.clip_gradient else {}
        nd.contrib.adamw_update(
            weight,
            grad,
            *state,
            nd.array([self.rescale_grad]),
            lr=lr,
            eta=self._get_lr(index),
            wd=self._get_wd(index),
            out=weight,
            **clip,
            **self.options,
        )


class NAG(mx.optimizer.NAG):
    """MXNet's NAG, told to write elsewhere: in place it reads what it has written."""

    def update(self, index, weight, grad, state):
        if state is None:
            return super().update(index, weight, grad, state)
        self._update_count(index)
        clip = {"clip_gradient": self.clip_gradient} if self.clip_gradient else {}
        weight[:] = nd.nag_mom_update(
            weight,
            grad,
            state,
            lr=self._get_lr(index),
            wd=self._get_wd(index),
            momentum=self.momentum,
            rescale_grad=self.rescale_grad,
            **clip,
        )

    update_multi_precision = update


class Nadam(mx.optimizer.Nadam):
    """MXNet's Nadam, told to keep a schedule for each weight: it has one for all."""

    def update(self, index, weight, grad, state):
        self.schedules = getattr(self, "schedules", {})
        self.m_schedule = self.schedules.get(index, 1.0)
        super().update(index, weight, grad, state)
        self.schedules[index] = self.m_schedule


def optimizers():
    cases = []
    weights = [numbers(*s) for s in SHAPES]
    gradients = [[numbers(*s) for s in SHAPES] for _ in range(STEPS)]
    mx.optimizer.Optimizer.register(AdamW)
    mx.optimizer.Optimizer.register(NAG)
    mx.optimizer.Optimizer.register(Nadam)
    for name, settings in OPTIMIZERS:
        optimizer = mx.optimizer.create(name, **settings)
        optimizer.set_lr_mult(dict(enumerate(LR_MULT)))
        optimizer.set_wd_mult(dict(enumerate(WD_MULT)))
        updater = mx.optimizer.get_updater(optimizer)
        arrays, after = [nd.array(w) for w in weights], []
        for step in gradients:
            for i, (w, g) in enumerate(zip(arrays, step, strict=True)):
                updater(i, nd.array(g), w)
            after.append([w.asnumpy().tolist() for w in arrays])
        cases.append({"optimizer": name, "settings": settings, "after": after})
    given = {
        "weights": [w.tolist() for w in weights],
        "lr_mult": LR_MULT,
        "wd_mult": WD_MULT,
        "gradients": [[g.tolist() for g in step] for step in gradients],
    }
    write("optimizers", [given, *cases])


def by_hand():
    """Optimisers that are no rule: with rows, or with gradients of several updates."""
    rng, cases = np.random.RandomState(8), []
    weights = [rng.normal(size=s).astype("float32") for s in ((2, 3), (4, 2))]
    gradients = [[rng.normal(size=w.shape).astype("float32") for w in weights] for _ in range(7)]
    for name, settings in (
        ("groupadagrad", {"learning_rate": 0.1}),
        ("groupadagrad", {"eps": 0.1, "clip_gradient": 0.4, "rescale_grad": 0.5}),
        ("lbsgd", {"learning_rate": 0.1}),
        ("lbsgd", {"momentum": 0.9, "batch_scale": 2, "updates_per_epoch": 1, **COMMON}),
        ("lbsgd", {"batch_scale": 3, "warmup_strategy": "power2", "updates_per_epoch": 2}),
        ("lbsgd", {"batch_scale": 2, "warmup_strategy": "sqrt", "begin_epoch": 1}),
        ("lbsgd", {"momentum": 0.9, "warmup_strategy": "lars", "warmup_epochs": 0, **COMMON}),
    ):
        update = mx.optimizer.get_updater(mx.optimizer.create(name, **settings))
        arrays, after = [nd.array(w) for w in weights], []
        for step in gradients:
            for i, (w, g) in enumerate(zip(arrays, step, strict=True)):
                update(i, nd.array(g), w)
            after.append([w.asnumpy().tolist() for w in arrays])
        cases.append({"optimizer": name, "settings": settings, "after": after})
    given = [w.tolist() for w in weights], [[g.tolist() for g in step] for step in gradients]
    write("optimizers_by_hand", [*given, *cases])


# -- schedules -------------------------------------------------------------------------
def schedules():
    warm = {"warmup_steps": 4, "warmup_begin_lr": 0.1}
    cases = []
    for name, settings in [
        ("FactorScheduler", {"step": 3, "factor": 0.5, "base_lr": 1.0}),
        (
            "FactorScheduler",
            {"step": 2, "factor": 0.5, "stop_factor_lr": 0.2, "base_lr": 1.0, **warm},
        ),
        ("MultiFactorScheduler", {"step": [3, 8, 9], "factor": 0.1, "base_lr": 2.0}),
        (
            "MultiFactorScheduler",
            {"step": [6, 9], "factor": 0.1, "base_lr": 2.0, **warm, "warmup_mode": "constant"},
        ),
        ("PolyScheduler", {"max_update": 9, "base_lr": 1.0}),
        ("PolyScheduler", {"max_update": 9, "base_lr": 1.0, "pwr": 1, "final_lr": 0.2, **warm}),
        ("CosineScheduler", {"max_update": 9, "base_lr": 1.0}),
        ("CosineScheduler", {"max_update": 9, "base_lr": 1.0, "final_lr": 0.2, **warm}),
    ]:
        schedule = getattr(mx.lr_scheduler, name)(**settings)
        cases.append(
            {"schedule": name, "settings": settings, "rates": [schedule(t) for t in range(15)]}
        )
    write("schedules", cases)


# -- metrics ---------------------------------------------------------------------------
def metrics():
    cases = []
    classes = [numbers(6, kind="class") for _ in range(2)], [distribution(6, 4) for _ in range(2)]
    bits = [numbers(8, kind="bit") for _ in range(2)], [distribution(8, 2) for _ in range(2)]
    reals = [numbers(5, 2) for _ in range(2)], [numbers(5, 2) for _ in range(2)]
    lines = [numbers(5) for _ in range(2)], [numbers(5) for _ in range(2)]
    for name, settings, (labels, preds) in [
        ("acc", {}, classes),
        ("acc", {"axis": 0}, ([numbers(4, kind="class")] * 2, [distribution(6, 4)] * 2)),
        ("accuracy", {}, (classes[0], classes[0][::-1])),
        ("top_k_accuracy", {"top_k": 2}, classes),
        ("f1", {}, bits),
        ("f1", {"average": "micro"}, bits),
        ("mae", {}, reals),
        ("mse", {}, reals),
        ("rmse", {}, reals),
        ("mae", {}, lines),
        ("mse", {}, lines),
        ("rmse", {}, lines),
        ("ce", {}, classes),
        ("nll_loss", {}, classes),
        ("perplexity", {"ignore_label": None}, classes),
        ("perplexity", {"ignore_label": 1}, classes),
        ("pearsonr", {}, reals),
        ("pearsonr", {"average": "micro"}, reals),
        ("loss", {}, reals),
        (["acc", "ce"], {}, classes),
        ("mcc", {}, bits),
        ("mcc", {"average": "micro"}, bits),
        ("pcc", {}, bits),
        ("pcc", {}, classes),
        ("pcc", {}, (classes[0], classes[0][::-1])),
        ("torch", {}, reals),
        ("caffe", {}, reals),
        (["f1", "mcc", "pcc"], {}, bits),
    ]:
        metric = mx.metric.create(name, **settings)
        after = []
        for label, pred in zip(labels, preds, strict=True):
            metric.update([nd.array(label)], [nd.array(pred)])
            after.append([[n, float(v)] for n, v in metric.get_name_value()])
        metric.reset_local()
        metric.update(*([nd.array(both[0])] * 2 for both in (labels, preds)))
        again = [
            [[n, float(v)] for n, v in pairs]
            for pairs in (metric.get_name_value(), metric.get_global_name_value())
        ]
        cases.append(
            {
                "metric": name,
                "settings": settings,
                "labels": [x.tolist() for x in labels],
                "preds": [x.tolist() for x in preds],
                "after": after,
                "again": again,  # after reset_local, the first batch twice: these, and all
            }
        )
    write("metrics", cases)


# -- iterators -------------------------------------------------------------------------
def iterators():
    """What four rounds give: (data, label, pad) of each batch."""
    cases = []
    for n, size in ((1, 1), (4, 2), (5, 2), (5, 3), (7, 3), (3, 8)):
        for handle in ("pad", "discard", "roll_over")[: 1 if size > n else 3]:
            x, y = np.arange(2 * n).reshape(n, 2), -np.arange(n)
            made = mx.io.NDArrayIter(x, {"b": y, "a": 2 * y}, size, last_batch_handle=handle)
            rounds = []
            for i in range(4):
                rounds.append(
                    [[*(a.asnumpy().tolist() for a in (*b.data, *b.label)), b.pad] for b in made]
                )
                made.hard_reset() if i == 2 else made.reset()
            described = [repr(d) for d in made.provide_data + made.provide_label]
            cases.append([n, size, handle, described, rounds])
    write("iterators", cases)


if __name__ == "__main__":
    losses()
    optimizers()
    by_hand()
    schedules()
    metrics()
    iterators()
