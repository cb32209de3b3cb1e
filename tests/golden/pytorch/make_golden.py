"""Write this folder's `steps.json` with PyTorch: ten steps of training of small nets.

Run it in an environment that has PyTorch (benchmarks/README.md says how to make one):
    benchmarks/envs/torch/bin/python tests/golden/pytorch/make_golden.py
`test_torch_oracle` has the same nets, and runs this again where PyTorch is installed.
"""

import json
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

FILE = Path(__file__).parent / "steps.json"


def numbers(shape, k):
    """The same numbers in every run and in the tests."""
    return 0.6 * np.cos(1.7 * np.arange(np.prod(shape, dtype=int)) + k).reshape(shape)


def tensor(shape, k):
    return torch.tensor(numbers(shape, k), dtype=torch.float64)


class PerGroup(nn.Module):
    """MXNet 1.9's group norm: one factor and one shift a group, not a channel."""

    def __init__(self):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))

    def forward(self, x):
        wide = (1, 4, 1, 1)
        gamma, beta = (p.repeat_interleave(2).view(wide) for p in self.parameters())
        return F.group_norm(x, 2) * gamma + beta


def half_square(out):
    return 0.5 * F.mse_loss(out, tensor(out.shape, 9))


LAYERS = {
    "dense": ((4, 3), [lambda: nn.Linear(3, 2), nn.Tanh, lambda: nn.Linear(2, 3)]),
    "conv": ((2, 2, 5, 6), [lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1)]),
    "conv groups dilation": ((2, 4, 5, 5), [lambda: nn.Conv2d(4, 6, 2, dilation=2, groups=2)]),
    "conv depthwise": ((2, 3, 4, 4), [lambda: nn.Conv2d(3, 3, 3, padding=1, groups=3, bias=False)]),
    "conv 1d": ((2, 2, 7), [lambda: nn.Conv1d(2, 3, 3, stride=2, padding=2)]),
    "conv 3d": ((1, 2, 3, 4, 3), [lambda: nn.Conv3d(2, 2, (1, 2, 2), padding=(0, 1, 0))]),
    "conv transposed": (
        (2, 2, 3, 4),
        [lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1)],
    ),
    "conv transposed groups": (
        (2, 4, 3, 3),
        [lambda: nn.ConvTranspose2d(4, 2, 2, groups=2, bias=False)],
    ),
    "conv transposed 1d": ((2, 2, 4), [lambda: nn.ConvTranspose1d(2, 3, 3, stride=2, dilation=2)]),
    "max pool": (
        (2, 1, 6, 6),
        [lambda: nn.Conv2d(1, 2, 3, padding=1), lambda: nn.MaxPool2d(3, stride=2, padding=1)],
    ),
    "max pool full": (
        (2, 1, 6, 6),
        [lambda: nn.Conv2d(1, 2, 2), lambda: nn.MaxPool2d(2, ceil_mode=True)],
    ),
    "average pool": (
        (2, 1, 6, 6),
        [lambda: nn.Conv2d(1, 2, 3, padding=1), lambda: nn.AvgPool2d(3, stride=2, padding=1)],
    ),
    "average pool without padding": (
        (2, 1, 6, 6),
        [
            lambda: nn.Conv2d(1, 2, 3, padding=1),
            lambda: nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False),
        ],
    ),
    "pool 1d": (
        (2, 2, 8),
        [lambda: nn.Conv1d(2, 2, 3), lambda: nn.MaxPool1d(2), lambda: nn.AvgPool1d(2, stride=1)],
    ),
    "global pools": (
        (2, 2, 4, 4),
        [
            lambda: nn.Conv2d(2, 3, 2),
            lambda: nn.AdaptiveMaxPool2d(1),
            nn.Flatten,
            lambda: nn.Linear(3, 2),
        ],
    ),
    "global average": ((2, 2, 4, 4), [lambda: nn.Conv2d(2, 3, 2), lambda: nn.AdaptiveAvgPool2d(1)]),
    "batch norm": (
        (4, 3),
        [lambda: nn.Linear(3, 4), lambda: nn.BatchNorm1d(4), lambda: nn.Linear(4, 2)],
    ),
    "batch norm of images": (
        (3, 2, 4, 4),
        [lambda: nn.Conv2d(2, 3, 3), lambda: nn.BatchNorm2d(3, momentum=0.3), nn.ReLU],
    ),
    "layer norm": ((4, 3), [lambda: nn.Linear(3, 5), lambda: nn.LayerNorm(5)]),
    "group norm": ((2, 2, 3, 3), [lambda: nn.Conv2d(2, 4, 2), PerGroup]),
    "instance norm": (
        (2, 2, 4, 4),
        [lambda: nn.Conv2d(2, 3, 2), lambda: nn.InstanceNorm2d(3, affine=True)],
    ),
    "embedding": ((2, 4), [lambda: nn.Embedding(5, 3), lambda: nn.Linear(3, 2)]),
    "leaky": ((3, 4), [lambda: nn.Linear(4, 5), lambda: nn.LeakyReLU(0.1)]),
    "prelu": ((3, 4), [lambda: nn.Linear(4, 5), lambda: nn.PReLU(5)]),
    "elu": ((3, 4), [lambda: nn.Linear(4, 5), lambda: nn.ELU(0.7)]),
    "selu": ((3, 4), [lambda: nn.Linear(4, 5), nn.SELU]),
    "gelu": ((3, 4), [lambda: nn.Linear(4, 5), nn.GELU]),
    "swish": ((3, 4), [lambda: nn.Linear(4, 5), nn.SiLU]),
    "softrelu": ((3, 4), [lambda: nn.Linear(4, 5), nn.Softplus, nn.Softsign]),
}

CLASSES = torch.tensor([0, 2, 1, 1])
SIGNS = torch.tensor([[1.0, -1, 1], [-1, -1, 1], [1, 1, -1], [-1, 1, 1]]).double()
BITS = (SIGNS + 1) / 2


def cosine(out):
    return F.cosine_embedding_loss(out, tensor((4, 3), 9), SIGNS[:, 0], margin=0.1)


def triplet(out):
    near, far = tensor((4, 3), 9), tensor((4, 3), 5)
    return F.relu(1 + ((out - near) ** 2 - (out - far) ** 2).sum(1)).mean()


LOSSES = {  # of the outputs of a dense layer, (4, 3)
    "L2Loss": half_square,
    "L1Loss": lambda out: F.l1_loss(out, tensor((4, 3), 9)),
    "HuberLoss": lambda out: F.smooth_l1_loss(out, tensor((4, 3), 9), beta=0.3),
    "SoftmaxCrossEntropyLoss": lambda out: F.cross_entropy(out, CLASSES),
    "SigmoidBinaryCrossEntropyLoss": lambda out: F.binary_cross_entropy_with_logits(out, BITS),
    "KLDivLoss": lambda out: F.kl_div(
        F.log_softmax(out, 1), F.softmax(tensor((4, 3), 9), 1), reduction="batchmean"
    ),
    "HingeLoss": lambda out: F.relu(1 - out * SIGNS).mean(),
    "SquaredHingeLoss": lambda out: (F.relu(1 - out * SIGNS) ** 2).mean(),
    "LogisticLoss": lambda out: F.soft_margin_loss(out, SIGNS),
    "PoissonNLLLoss": lambda out: F.poisson_nll_loss(out, BITS, full=False),
    "CosineEmbeddingLoss": cosine,
    "TripletLoss": triplet,
}

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.02),
    "sgd momentum": lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.02),
    "nag": lambda p: torch.optim.SGD(p, 0.1, 0.9, nesterov=True, weight_decay=0.02),
    "adam": lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.02),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, eps=1e-10, weight_decay=0.02),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, 0.9),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.1),
    "adadelta": lambda p: torch.optim.Adadelta(p, 1.0, 0.9, eps=1e-5),
    "adamax": lambda p: torch.optim.Adamax(p, 0.01),
}


def train(shape, layers, loss=half_square, optimizer=OPTIMIZERS["sgd momentum"]):
    """{"losses": of ten steps, "outputs": after them, "states": of batch norms}."""
    net = nn.Sequential(*(make() for make in layers)).double()
    with torch.no_grad():
        for k, param in enumerate(net.parameters()):
            param.copy_(tensor(param.shape, k))
    x = tensor(shape, 7)
    if isinstance(net[0], nn.Embedding):
        x = torch.arange(x.numel()).reshape(shape) % 5
    steps, losses = optimizer(net.parameters()), []
    for _ in range(10):
        steps.zero_grad()
        value = loss(net(x))
        value.backward()
        steps.step()
        losses.append(value.item())
    states = [
        b.numpy().tolist() for name, b in net.named_buffers() if name.endswith(("mean", "var"))
    ]
    return {"losses": losses, "outputs": net(x).detach().numpy().tolist(), "states": states}


def answers():
    """name -> what `train` gives, for layers, losses and optimisers."""
    dense = LAYERS["dense"]
    return {
        "layers": {name: train(*net) for name, net in LAYERS.items()},
        "losses": {name: train(*dense, loss=loss) for name, loss in LOSSES.items()},
        "optimizers": {name: train(*dense, optimizer=make) for name, make in OPTIMIZERS.items()},
    }


def rounded(value):
    """Ten digits of every number: more than the tests compare."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.10g}")


if __name__ == "__main__":
    FILE.write_text(json.dumps(rounded(answers()), indent=None) + "\n")
