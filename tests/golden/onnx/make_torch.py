"""Write small networks with both of PyTorch's ONNX exporters, and their answers.

Run in an environment with torch, onnx and onnxscript:  python make_torch.py
Made with PyTorch 2.13.0, onnx 1.23.2 and onnxscript 0.7.2.
"""

import logging
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = Path(__file__).parent
OLD, NEW = (9, 13, 17), (18, 20)


class Conv(nn.Module):
    """LeNet, whose reshape is a chain of Shape, Gather and Concat."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 6, 3)
        self.dense = nn.Sequential(nn.Linear(24, 12), nn.Tanh(), nn.Linear(12, 5))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.one(x)), 2)
        x = F.avg_pool2d(torch.sigmoid(self.two(x)), 2)
        return F.log_softmax(self.dense(x.view(x.size(0), -1)), 1)


class Unit(nn.Module):
    """A residual unit."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.skip = (
            nn.Identity()
            if stride == 1
            else nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )
        )

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class Windows(nn.Module):
    """Convolutions and pooling of all kinds."""

    def __init__(self):
        super().__init__()
        self.steps = nn.Sequential(
            nn.Conv2d(4, 8, 3, stride=2, padding=1),
            nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=2),
            nn.Conv2d(8, 8, (3, 1), padding=(1, 0), groups=8),
            nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1),
            nn.MaxPool2d(3, 2, padding=1, ceil_mode=True),
            nn.ConvTranspose2d(4, 4, 2, stride=2, groups=2, bias=False),
            nn.AvgPool2d(3, 2, padding=1, ceil_mode=True, count_include_pad=False),
            nn.ConvTranspose2d(4, 4, 3, dilation=2),
            nn.AvgPool2d(2, 3, ceil_mode=True),
        )
        self.line = nn.Conv1d(4, 3, 3)

    def forward(self, x):
        x = F.pad(self.steps(x), (1, 0, 0, 2), value=0.5)
        x = F.pad(x, (1, 1, 1, 1), mode="reflect")
        return self.line(x.flatten(2)), F.adaptive_max_pool2d(x, 1)


class Activations(nn.Module):
    """One slice of the data through each activation."""

    KINDS = [
        nn.ReLU6(),
        nn.Hardswish(),
        nn.Hardsigmoid(),
        nn.LeakyReLU(0.2),
        nn.PReLU(3, 0.3),
        nn.ELU(0.7),
        nn.SELU(),
        nn.Softplus(),
        nn.Mish(),
        nn.SiLU(),
        nn.GELU(),
        nn.GELU("tanh"),
        nn.CELU(0.6),
        nn.Tanh(),
        nn.Hardtanh(-0.5, 0.8),
        nn.Softsign(),
        nn.Softmax(1),
        nn.LogSoftmax(1),
        nn.Softmax(-1),
        nn.LogSigmoid(),
        nn.PReLU(1),
    ]

    def __init__(self):
        super().__init__()
        self.kinds = nn.ModuleList(self.KINDS)

    def forward(self, x):
        return torch.stack([kind(x) for kind in self.kinds], 1)


class Shapes(nn.Module):
    """Parts of arrays put together again, with lengths that follow from others."""

    def __init__(self):
        super().__init__()
        self.rows, self.scale = nn.Embedding(7, 6), nn.Parameter(torch.rand(1, 6))

    def forward(self, x):
        y = self.rows(x) * self.scale  # (N, 4, 6)
        a, b, c = torch.split(y, [1, 2, 3], 2)
        y = torch.cat([c, a, b], -1).permute(0, 2, 1)  # (N, 6, 4)
        y = torch.where(y > 0, y, y.mean(1, keepdim=True).expand_as(y))
        y = y.unsqueeze(1).reshape(y.size(0), 2, 3, -1)  # (N, 2, 3, 4)
        y = F.interpolate(y, scale_factor=2.0, mode="nearest")  # (N, 2, 6, 8)
        p, q = y[:, :, 1::2, :-1].chunk(2, 1)
        y = torch.maximum(p, q)[:, 0, :, ::2]  # (N, 3, 4)
        z = y.pow(2).sum((1, 2)).sqrt().reshape(-1, 1, 1) - y.amin(2, keepdim=True)
        y = y + z.clamp(-1, 1) * (y.argmax(2, keepdim=True) == 1).float()
        return y.transpose(1, 2).matmul(y), F.pixel_shuffle(torch.cat([p] * 4, 1), 2)


class Attention(nn.Module):
    """Two heads of attention and a layer norm, written out."""

    def __init__(self):
        super().__init__()
        self.all, self.out, self.norm = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.all(self.norm(x)).view(n, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
        weights = F.softmax(q @ k.transpose(-2, -1) / 2, -1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(n, t, c))


def nets():
    """name -> (network, input, opsets of the old exporter, of the new one)."""
    return {
        "mlp": (
            nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)),
            torch.randn(3, 8),
            OLD,
            NEW,
        ),
        "rows": (
            nn.Sequential(
                nn.Linear(4, 6),
                nn.GELU(),
                nn.LayerNorm(6),
                nn.Dropout(),
                nn.Linear(6, 5, bias=False),
                nn.Softmax(-1),
            ),
            torch.randn(2, 3, 4),
            OLD,
            (20,),
        ),
        "lenet": (Conv(), torch.randn(2, 1, 16, 16), OLD, NEW),
        "resnet": (
            nn.Sequential(
                nn.Conv2d(3, 4, 3, 1, 1),
                nn.BatchNorm2d(4),
                nn.ReLU(),
                nn.MaxPool2d(3, 2, 1),
                Unit(4, 4, 1),
                Unit(4, 8, 2),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
                nn.Dropout(0.5),
                nn.Linear(8, 3),
            ),
            torch.randn(2, 3, 12, 12),
            OLD,
            (20,),
        ),
        "windows": (Windows(), torch.randn(2, 4, 14, 13), (13,), (18,)),
        "activations": (Activations(), torch.randn(2, 3, 5), (12, 14), (20,)),
        "shapes": (Shapes(), torch.randint(0, 7, (3, 4)), (11, 13), (18,)),
        "attention": (Attention(), torch.randn(2, 5, 8), (12, 17), (20,)),
    }


def write(name, net, x, old, new):
    net.eval()
    for layer in net.modules():  # a fresh net's statistics, 0 and 1, would hide errors
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.running_mean)
            nn.init.uniform_(layer.running_var, 0.5, 2)
            nn.init.uniform_(layer.weight, 0.5, 2)
    with torch.no_grad():
        outs = net(x)
    outs = outs if isinstance(outs, tuple) else (outs,)
    np.savez_compressed(
        HERE / f"torch-{name}.npz", x=x.numpy(), **{f"y{i}": y.numpy() for i, y in enumerate(outs)}
    )
    for opset in old:
        torch.onnx.export(
            net,
            (x,),
            HERE / f"torch-{name}-old{opset}.onnx",
            dynamo=False,
            opset_version=opset,
            input_names=["x"],
            dynamic_axes={"x": [0]},
        )
    for opset in new:
        torch.onnx.export(
            net,
            (x,),
            HERE / f"torch-{name}-new{opset}.onnx",
            dynamo=True,
            opset_version=opset,
            external_data=False,
            dynamic_shapes=({0: "batch"},),
            verbose=False,
        )


def write_training():
    """A net with BatchNorm as it is for training, and five losses of plain SGD."""
    torch.manual_seed(2)
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4)
    )
    x, labels = torch.randn(8, 1, 6, 6), torch.arange(8) % 4
    torch.onnx.export(
        net,
        (x,),
        HERE / "torch-training.onnx",
        dynamo=False,
        opset_version=13,
        training=torch.onnx.TrainingMode.TRAINING,
        do_constant_folding=False,
        dynamic_axes={"x": [0]},
        input_names=["x"],
    )
    net.train()
    trainer, losses = torch.optim.SGD(net.parameters(), 0.1), []
    for _ in range(5):
        loss = F.cross_entropy(net(x), labels)
        trainer.zero_grad()
        loss.backward()
        trainer.step()
        losses.append(loss.item())
    np.savez_compressed(
        HERE / "torch-training.npz", x=x.numpy(), labels=labels.numpy(), losses=np.float32(losses)
    )


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    for i, name in enumerate(nets()):
        torch.manual_seed(i)
        write(name, *nets()[name])
    write_training()
    torch.manual_seed(9)  # weights in a file beside the model, as for large ones
    torch.onnx.export(
        nn.Linear(3, 2),
        (torch.randn(1, 3),),
        HERE / "torch-beside.onnx",
        dynamo=True,
        external_data=True,
        verbose=False,
    )


if __name__ == "__main__":
    main()
