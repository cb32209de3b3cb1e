"""Write this folder's answers with MXNet 1.9.1: norms, output layers, activations.

`operators.json` is a list of cases, with what was given and what MXNet answered;
`training.json` is what a net with BatchNorm did in three steps; and `net-*` is that net
as MXNet exports it.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):
    benchmarks/envs/mxnet/bin/python tests/golden/norm/make_golden.py
"""

import json
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

HERE = Path(__file__).parent
RNG = np.random.RandomState(5)
CASES = []


def write(name, cases):
    """One case a line, so that a change is readable."""
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def real(*shape):
    return np.float32(RNG.uniform(-2, 2, shape).round(3))


def positive(*shape):
    return np.float32(RNG.uniform(0.5, 3, shape).round(3))


def classes(*shape):
    return np.float32(RNG.randint(0, 3, shape))


def case(op, *inputs, training=True, n_states=0, **attrs):
    """Outputs, gradients with random head gradients, and states after the call."""
    arrays = [nd.array(x) for x in inputs]
    for x in arrays:
        x.attach_grad()
    with autograd.record(train_mode=training):
        outs = getattr(nd, op)(*arrays, **attrs)
    outs = outs if isinstance(outs, list) else [outs]
    head = real(*outs[0].shape)
    outs[0].backward(nd.array(head), train_mode=training)
    n = len(arrays) - n_states
    CASES.append(
        {
            "op": op,
            "attrs": attrs,
            "training": training,
            "inputs": [x.tolist() for x in inputs],
            "head": head.tolist(),
            "outputs": [o.asnumpy().tolist() for o in outs],
            "grads": [x.grad.asnumpy().tolist() for x in arrays[:n]],
            "states": [x.asnumpy().tolist() for x in arrays[n:]],
        }
    )


def norms():
    for training in (True, False):
        for attrs in (
            {},
            {"fix_gamma": False},
            {"use_global_stats": True},
            {"fix_gamma": False, "momentum": 0.4, "eps": 0.1},
            {"fix_gamma": False, "output_mean_var": True},
        ):
            case(
                "BatchNorm",
                real(4, 3, 2),
                real(3),
                real(3),
                real(3),
                positive(3),
                n_states=2,
                training=training,
                **attrs,
            )
    case(
        "BatchNorm",
        real(3, 2, 4),
        real(4),
        real(4),
        real(4),
        positive(4),
        n_states=2,
        axis=-1,
        fix_gamma=False,
    )
    case(
        "BatchNorm", real(5, 3), real(3), real(3), real(3), positive(3), n_states=2, fix_gamma=False
    )
    for attrs in ({}, {"axis": 1, "eps": 0.1}, {"output_mean_var": True}):
        n = 3 if "axis" in attrs else 4
        case("LayerNorm", real(2, 3, 4), real(n), real(n), **attrs)
    case("GroupNorm", real(2, 4, 3), real(2), real(2), num_groups=2)
    case("GroupNorm", real(2, 4, 3, 2), real(1), real(1), eps=0.1, output_mean_var=True)
    case("InstanceNorm", real(2, 3, 4), real(3), real(3))
    case("InstanceNorm", real(2, 3, 2, 2), real(3), real(3), eps=0.1)
    for mode in ("instance", "channel", "spatial"):
        case("L2Normalization", real(2, 3, 4), mode=mode)
    case("LRN", real(2, 5, 2, 2), nsize=3, alpha=0.5, beta=0.6, knorm=1.5)
    case("moments", real(2, 3, 4), axes=(0, 2))


def outputs():
    for attrs in (
        {},
        {"grad_scale": 2.0},
        {"normalization": "batch"},
        {"normalization": "valid"},
        {"use_ignore": True, "ignore_label": 2.0},
        {"use_ignore": True, "ignore_label": 2.0, "normalization": "valid"},
        {"smooth_alpha": 0.1},
        {"out_grad": True},
    ):
        case("SoftmaxOutput", real(6, 3), classes(6), **attrs)
    case("SoftmaxOutput", real(4, 3), np.float32(RNG.dirichlet(np.ones(3), 4)))
    for normalization in ("null", "batch", "valid"):
        for use_ignore in (False, True):
            case(
                "SoftmaxOutput",
                real(2, 3, 4),
                classes(2, 4),
                multi_output=True,
                normalization=normalization,
                use_ignore=use_ignore,
                ignore_label=1.0,
            )
    case("SoftmaxOutput", real(2, 3, 2, 2), classes(2, 2, 2), multi_output=True)
    for normalization in ("null", "batch", "valid"):
        case(
            "SoftmaxOutput",
            real(2, 4, 3),
            classes(2, 4),
            preserve_shape=True,
            normalization=normalization,
        )
    for name in ("Linear", "Logistic", "MAE"):
        case(f"{name}RegressionOutput", real(3, 2), real(3, 2), grad_scale=1.5)
        case(f"{name}RegressionOutput", real(3, 1), real(3))
    for use_linear in (False, True):
        case(
            "SVMOutput",
            real(5, 3),
            classes(5),
            use_linear=use_linear,
            margin=0.5,
            regularization_coefficient=2.0,
        )
    case("make_loss", real(3, 2))
    for normalization in ("null", "batch", "valid"):
        case("MakeLoss", real(3, 2), grad_scale=3.0, normalization=normalization)
    case("SoftmaxActivation", real(2, 3, 2))
    case("SoftmaxActivation", real(2, 3, 2), mode="channel")
    case("softmin", real(2, 3))


def functions():
    x = np.float32([-2.5, -1.5, -0.5, -0.2, 0.2, 0.5, 1.5, 2.5, 3.5])
    for name in (
        "round",
        "rint",
        "fix",
        "trunc",
        "floor",
        "ceil",
        "sign",
        "erf",
        "gamma",
        "gammaln",
        "hard_sigmoid",
        "softsign",
        "reciprocal",
        "rcbrt",
        "cbrt",
        "degrees",
        "radians",
        "tan",
        "arctan",
        "sinh",
        "cosh",
        "arcsinh",
        "expm1",
        "logical_not",
    ):
        case(name, x)
    for name in ("erfinv", "arcsin", "arccos", "arctanh"):
        case(name, x[2:6])
    for name in ("log2", "log10", "log1p", "rsqrt"):
        case(name, x[4:])
    case("arccosh", x[6:])
    case("smooth_l1", x, scalar=2.0)
    case("broadcast_hypot", real(2, 3), real(1, 3))
    for kind in ("leaky", "elu", "selu", "gelu"):
        case("LeakyReLU", x, act_type=kind, slope=0.3)
    case("LeakyReLU", real(2, 3, 2), positive(3), act_type="prelu")
    case("LeakyReLU", real(2, 3), positive(1), act_type="prelu")


def training():
    """Three steps of a net in which BatchNorm stands twice, and its export."""
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(
            gluon.nn.Dense(4),
            gluon.nn.BatchNorm(momentum=0.8),
            gluon.nn.Activation("relu"),
            gluon.nn.BatchNorm(scale=False),
            gluon.nn.Dense(3),
            gluon.nn.LayerNorm(),
        )
    net.initialize()
    x, label = real(8, 5), classes(8)
    net.hybridize()
    net(nd.array(x))
    params = net.collect_params()
    for name, param in params.items():
        param.set_data(
            nd.array(positive(*param.shape) if name.endswith("var") else real(*param.shape))
        )
    before = {n: p.data().asnumpy().tolist() for n, p in params.items()}
    trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.1})
    loss_of, losses = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for _ in range(3):
        with autograd.record():
            loss = loss_of(net(nd.array(x)), nd.array(label))
        loss.backward()
        trainer.step(8)
        losses.append(loss.asnumpy().tolist())
    write(
        "training",
        [
            {
                "x": x.tolist(),
                "label": label.tolist(),
                "losses": losses,
                "before": before,
                "after": {n: p.data().asnumpy().tolist() for n, p in params.items()},
                "prediction": net(nd.array(x)).asnumpy().tolist(),
            }
        ],
    )
    net.export(str(HERE / "net"))


mx.random.seed(5)
norms()
outputs()
functions()
write("operators", CASES)
training()
