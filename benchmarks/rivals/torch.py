"""PyTorch, CPU build."""

import math
import re
import warnings
from functools import partial

import steps
import torch
import walks
from torch import nn
from torch.nn import functional as F

VERSION = torch.__version__
MKL, ONEDNN = re.findall(r"(?:Math Kernel|MKL-DNN)\D+([\d.]+\d)", torch.__config__.show())
KERNELS = f"MKL {MKL}, oneDNN {ONEDNN}, {torch.backends.cpu.get_cpu_capability()}"
warnings.filterwarnings("ignore", message=".*torch.jit.*deprecated")
inference = torch.inference_mode()


def tensors(a, *names):
    return tuple(torch.from_numpy(a[name]) for name in names)


@torch.no_grad()
def fill(layers, a):
    for i, layer in enumerate(layers):
        layer.weight.copy_(torch.from_numpy(a[f"weight{i}"]))
        layer.bias.copy_(torch.from_numpy(a[f"bias{i}"]))


def mlp(a):
    net = nn.Sequential(
        nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2)
    )
    fill(net[::2], a)
    return net.eval(), tensors(a, "data")


def lenet(a):
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )
    fill([net[i] for i in (0, 3, 7, 9, 11)], a)
    return net, tensors(a, "data")


def train_lenet(a):
    net, (x,) = lenet(a)
    return net, (x, torch.from_numpy(a["label"]).long())


def layer_norm(a):
    net = nn.LayerNorm(len(a["gamma"]))
    net.load_state_dict(dict(zip(("weight", "bias"), tensors(a, "gamma", "beta"), strict=True)))
    return net, tensors(a, "data")


class Ops(walks.Named):
    """The operators of a walk; in training, normalization is by the batch's statistics."""

    training = False

    def conv(self, x, w, stride, groups):
        return F.conv2d(x, w, None, stride, w.shape[2] // 2, groups=groups)

    def norm(self, x, gamma, beta, mean, var):
        return F.batch_norm(x, mean, var, gamma, beta, self.training)

    def layer_norm(self, x, gamma, beta):
        return F.layer_norm(x, gamma.shape, gamma, beta)

    relu, relu6, gelu, add = map(staticmethod, (F.relu, F.relu6, F.gelu, torch.add))

    def concat(self, xs):
        return torch.cat(xs, 1)

    def max_pool(self, x):
        return F.max_pool2d(x, 3, 2, 1)

    def halve(self, x):
        return F.avg_pool2d(x, 2)

    def mean(self, x):
        return x.mean(dim=(2, 3))

    def dense(self, x, w, bias):
        return F.linear(x, w, bias)

    def heads(self, x, n):
        return x.reshape(x.shape[0], x.shape[1], n, -1).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def attend(self, q, k, v, c):
        return F.scaled_dot_product_attention(q, k, v, scale=1 / math.sqrt(c))


class Walk(nn.Module):
    """The walk over a net is shared; its weights are parameters."""

    def __init__(self, net, a, training=False):
        super().__init__()
        self.net, self.names = net, [name for name in a if name not in ("data", "label")]
        for name in self.names:
            tensor = torch.from_numpy(a[name].copy())
            if name.startswith(steps.CONSTANT):
                self.register_buffer(name, tensor)
            else:
                self.register_parameter(name, nn.Parameter(tensor))
        self.train(training)

    def forward(self, x):
        ops = Ops({name: getattr(self, name) for name in self.names})
        ops.training = self.training
        return ops.walk(self.net, x)


def walk(net, a):
    return Walk(net, a), tensors(a, "data")


def train_walk(name, a):
    net, optimizer, _ = steps.STEPS[name]
    label = torch.from_numpy(a["label"])
    data = (*tensors(a, "data"), label.long() if optimizer == "adam" else label)
    return (Walk(net, a, training=True), *steps.STEPS[name][1:]), data


def lstm(a):
    n = a["from_h"].shape[1]
    net = nn.LSTM(a["from_x"].shape[1], n)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    given = tensors(a, "from_x", "from_h", "bias_x", "bias_h")
    net.load_state_dict(dict(zip(names, given, strict=True)))
    return Function(lambda x: net(x)[0]), tensors(a, "data")


class Function(nn.Module):
    """A function of arrays as a net without weights."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *inputs):
        return self.f(*inputs)


def function(f, *names):
    return lambda a: (Function(f), tensors(a, *names))


def copy(a):
    target = torch.empty_like(*tensors(a, "data"))
    return Function(target.copy_), tensors(a, "data")


def eager(net, data):
    return lambda: net(*data)


def mode(wrap):
    """A mode of inference: wrap the net, then call it."""

    def prepare(net, data):
        inference.__enter__()  # once: entering it in each call would cost 1 to 2 us
        return eager(wrap(net, data), data)

    return prepare


def mean_square(y, label, reduction):
    return ((y - label) ** 2 / 2).flatten(1).mean(1)


OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


def trained(wrap):
    """A mode of training: a step of an optimizer a call."""

    def prepare(net, data):
        net, kind, rate = net if isinstance(net, tuple) else (net, "sgd", 0.1)
        x, label = data
        weights = [p for p in net.parameters() if p.ndim > 1 or isinstance(net, Walk)]
        optimizer = OPTIMIZERS[kind](net.parameters(), lr=rate)
        loss = mean_square if label.is_floating_point() else F.cross_entropy
        fast = wrap(net)

        def call():
            optimizer.zero_grad()
            losses = loss(fast(x), label, reduction="none")
            losses.mean().backward()
            optimizer.step()
            return losses, weights[0], weights[-1]

        return call

    return prepare


BUILD = {
    "mlp": mlp,
    "lenet": lenet,
    "train_lenet": train_lenet,
    "plain": function(lambda a, b, c: a * b + c, *"abc"),
    "elementwise": function(lambda a, b, c: torch.tanh(a * b + c) * a - torch.exp(-c * c), *"abc"),
    "softmax": function(lambda x: torch.softmax(x, dim=-1), "data"),
    "layer_norm": layer_norm,
    "lstm": lstm,
    **{net: partial(walk, net) for net in walks.WALKS},
    **{name: partial(train_walk, name) for name in steps.STEPS},
    "matmul": function(lambda x: x @ x, "data"),
    "copy": copy,
}


def frozen(net, data):
    """Weights are constants, and products are timed before one is chosen."""
    options = {"max_autotune": True, "freezing": True}
    return torch.compile(net.eval() if isinstance(net, nn.Module) else net, options=options)


MODES = {
    "eager": eager,
    "inference_mode": mode(lambda net, data: net),
    "jit.trace, optimized": mode(
        lambda net, data: torch.jit.optimize_for_inference(torch.jit.trace(net.eval(), data))
    ),
    "compile": mode(lambda net, data: torch.compile(net)),
    "compile, max-autotune, frozen": mode(frozen),
}
TRAIN = {"eager": trained(lambda net: net), "compile": trained(torch.compile)}


def to_numpy(result):
    return result.detach().numpy()
