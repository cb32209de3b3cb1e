"""PyTorch, CPU build."""
import warnings

import torch
from torch import nn

VERSION = torch.__version__
warnings.filterwarnings("ignore", message=".*torch.jit.*deprecated")
inference = torch.inference_mode()


def mlp(a):
    net = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                        nn.Linear(128, 2))
    with torch.no_grad():
        for i, layer in enumerate(net[::2]):
            layer.weight.copy_(torch.from_numpy(a[f"weight{i}"]))
            layer.bias.copy_(torch.from_numpy(a[f"bias{i}"]))
    return net.eval(), torch.from_numpy(a["data"])


def lenet(a):
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10))
    with torch.no_grad():
        for i, at in enumerate((0, 3, 7, 9, 11)):
            net[at].weight.copy_(torch.from_numpy(a[f"weight{i}"]))
            net[at].bias.copy_(torch.from_numpy(a[f"bias{i}"]))
    return net, torch.from_numpy(a["data"])


def train_lenet(a):
    net, x = lenet(a)
    return net, (x, torch.from_numpy(a["label"]).long())


def trained(wrap):
    """A mode of training: a step of SGD a call."""
    def prepare(net, data):
        x, label = data
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        fast = wrap(net)

        def call():
            optimizer.zero_grad()
            losses = nn.functional.cross_entropy(fast(x), label, reduction="none")
            losses.mean().backward()
            optimizer.step()
            return losses, net[0].weight, net[11].weight

        return call

    return prepare


def mode(wrap):
    """A mode of inference: wrap the net, then call it."""
    def prepare(net, x):
        inference.__enter__()  # once: entering it in each call would cost 1 to 2 us
        fast = wrap(net, x)
        return lambda: fast(x)
    return prepare


BUILD = {"mlp": mlp, "lenet": lenet, "train_lenet": train_lenet}
MODES = {
    "eager": mode(lambda net, x: net),
    "jit.script": mode(lambda net, x: torch.jit.script(net)),
    "jit.trace, optimized": mode(
        lambda net, x: torch.jit.optimize_for_inference(torch.jit.trace(net, x))),
    "compile": mode(lambda net, x: torch.compile(net)),
    "compile, max-autotune": mode(
        lambda net, x: torch.compile(net, mode="max-autotune", fullgraph=True)),
}
TRAIN = {"eager": trained(lambda net: net), "compile": trained(torch.compile)}


def to_numpy(result):
    return result.detach().numpy()
