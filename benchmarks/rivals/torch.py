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


def mode(wrap):
    """A mode of inference: wrap the net, then call it."""
    def prepare(net, x):
        inference.__enter__()  # once: entering it in each call would cost 1 to 2 us
        fast = wrap(net, x)
        return lambda: fast(x)
    return prepare


BUILD = {"mlp": mlp}
MODES = {
    "eager": mode(lambda net, x: net),
    "jit.script": mode(lambda net, x: torch.jit.script(net)),
    "jit.trace, optimized": mode(
        lambda net, x: torch.jit.optimize_for_inference(torch.jit.trace(net, x))),
    "compile": mode(lambda net, x: torch.compile(net)),
    "compile, max-autotune": mode(
        lambda net, x: torch.compile(net, mode="max-autotune", fullgraph=True)),
}


def to_numpy(result):
    return result.numpy()
