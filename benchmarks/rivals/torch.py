"""PyTorch, CPU build."""

import warnings

import resnet
import torch
from torch import nn
from torch.nn import functional as F

VERSION = torch.__version__
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


class ResNet(nn.Module):
    """The walk over the net is shared; the layers are PyTorch's."""

    def __init__(self, a):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(n_in, n_out, size, stride, pad, bias=False)
            for n_out, n_in, size, stride, pad in resnet.convolutions()
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(conv.out_channels) for conv in self.convs)
        self.dense = nn.Linear(resnet.CHANNELS[-1], resnet.CLASSES)
        state = {"dense.weight": a["weight"], "dense.bias": a["bias"]}
        for i in range(len(self.convs)):
            state[f"convs.{i}.weight"] = a[f"weight{i}"]
            for name, ours in (
                ("weight", "gamma"),
                ("bias", "beta"),
                ("running_mean", "mean"),
                ("running_var", "var"),
            ):
                state[f"norms.{i}.{name}"] = a[f"{ours}{i}"]
        self.load_state_dict({name: torch.from_numpy(v) for name, v in state.items()}, strict=False)

    def forward(self, x):
        return resnet.forward(self, x)

    def conv(self, x, i, stride, pad):
        return self.norms[i](self.convs[i](x))

    def relu(self, x):
        return F.relu(x)

    def pool(self, x):
        return F.max_pool2d(x, 3, 2, 1)

    def add(self, x, y):
        return x + y

    def head(self, x):
        return self.dense(x.mean(dim=(2, 3)))


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


def trained(wrap):
    """A mode of training: a step of SGD a call."""

    def prepare(net, data):
        x, label = data
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        fast = wrap(net)

        def call():
            optimizer.zero_grad()
            losses = F.cross_entropy(fast(x), label, reduction="none")
            losses.mean().backward()
            optimizer.step()
            return losses, net[0].weight, net[11].weight

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
    "resnet18": lambda a: (ResNet(a).eval(), tensors(a, "data")),
    "matmul": function(lambda x: x @ x, "data"),
    "copy": copy,
}
MODES = {
    "eager": eager,
    "inference_mode": mode(lambda net, data: net),
    "jit.trace, optimized": mode(
        lambda net, data: torch.jit.optimize_for_inference(torch.jit.trace(net.eval(), data))
    ),
    "compile": mode(lambda net, data: torch.compile(net)),
}
TRAIN = {"eager": trained(lambda net: net), "compile": trained(torch.compile)}


def to_numpy(result):
    return result.detach().numpy()
