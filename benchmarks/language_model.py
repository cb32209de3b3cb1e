"""Chapter 35's language model in minihybrid and in PyTorch: a training step, and a step of writing.

Both start from the weights that the package has, and get the same batch of 8 windows of 128
characters, or the same cache of keys and values. PyTorch's version is written as its users write
it: tables of angles, a cache that is written in place, fused AdamW.
"""

import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

WINDOW, WIDTH, HEADS, DEPTH, PLACE = 128, 96, 4, 4, 64
ANSWERS = {"step": 1e-4, "sample": 1e-3}  # mode -> by how much answers may differ


def chapter():
    """The names that the chapter's cells define, and its network with the stored weights."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "book"))
    from train_oz import SHAPE, cells

    import minihybrid as mx

    with redirect_stdout(sys.stderr):  # answers go to standard output
        names = cells()
    net = names["Transformer"](**SHAPE)
    net.load_parameters(str(mx.datasets.stored("oz.params")), cast_dtype=True)
    return names, net


def store(path):
    """Write the batch, the cache, and the weights in order of use, for every process."""
    names, net = chapter()
    x, y = names["windows"](names["codes"][0], np.arange(8) * 4000)
    shape = (2 * DEPTH, 1, HEADS, WINDOW, WIDTH // HEADS)
    cache = np.random.default_rng(0).standard_normal(shape, dtype="f4")
    arrays = [p.data().asnumpy() for name, p in net.collect_params().items() if "speed" not in name]
    np.savez(
        path,
        x=x.asnumpy(),
        y=y.asnumpy(),
        cache=cache,
        **{f"w{i}": a for i, a in enumerate(arrays)},
    )


def ours(path, mode):
    """A function of no arguments that returns the losses' mean, or the scores."""
    from minihybrid import autograd, gluon, nd

    (names, net), stored = chapter(), np.load(path)
    net.hybridize()
    if mode == "sample":
        x, place = nd.array(stored["x"][:1, :5]), nd.array([[PLACE]])
        cache = [nd.array(a) for a in stored["cache"]]

        def sample():
            scores, *state = net(x, place, *cache)
            scores.wait_to_read()
            return scores

        return sample
    x, y = nd.array(stored["x"]), nd.array(stored["y"])
    settings = {"learning_rate": 0.003, "beta2": 0.98, "wd": 0.1}
    trainer = gluon.Trainer(net.collect_params(), "adamw", settings)

    def step():
        with autograd.record():
            loss = names["loss_of"](net(x), y).mean()
        loss.backward()
        trainer.step(1)
        nd.waitall()
        return loss

    return step


def theirs(path, mode, compiled):
    """The same for PyTorch."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.qkv = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH, bias=False)
            self.out, self.norm2 = nn.Linear(WIDTH, WIDTH, bias=False), nn.LayerNorm(WIDTH)
            self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
            self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

        def forward(self, x, turn, cache=None, place=None, mask=None):
            heads = self.qkv(self.norm(x)).unflatten(2, (3 * HEADS, -1)).transpose(1, 2)
            q, k, v = heads.chunk(3, 1)
            q, k = rotated(q, *turn), rotated(k, *turn)
            if cache is not None:
                k, v = (c.index_copy_(2, place, a) for c, a in zip(cache, (k, v), strict=True))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=cache is None)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            return x + self.down(F.relu(self.up(self.norm2(x))))

    def rotated(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(n_letters, WIDTH) for _ in range(5))
            self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
            self.norm, self.end = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, n_letters)
            half = WIDTH // HEADS // 2
            speed = 1000 ** (-torch.arange(half) / half)
            angle = torch.arange(WINDOW)[:, None] * speed
            self.cos, self.sin = angle.cos(), angle.sin()

        def forward(self, x, place=None, cache=None):
            length = x.shape[1] - 4
            h = sum(table(x[:, i : i + length]) for i, table in enumerate(self.tables))
            turn, mask = (self.cos, self.sin), None
            if cache is not None:
                turn = self.cos[place], self.sin[place]
                mask = torch.arange(WINDOW)[None] <= place
            for i, layer in enumerate(self.layers):
                part = None if cache is None else cache[2 * i : 2 * i + 2]
                h = layer(h, turn, part, place, mask)
            return self.end(self.norm(h))

    stored = np.load(path)
    n_letters = len(stored["w0"])
    net = Transformer()
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(torch.from_numpy(stored[f"w{i}"]))
    wrapped = torch.compile if compiled else lambda f: f
    if mode == "sample":
        run, x = wrapped(net), torch.from_numpy(stored["x"][:1, :5]).long()
        place, cache = torch.tensor([PLACE]), [torch.from_numpy(a) for a in stored["cache"].copy()]
        return torch.inference_mode()(lambda: run(x, place, cache))
    x, y = (torch.from_numpy(stored[name]).long() for name in "xy")
    loss_of = wrapped(lambda: F.cross_entropy(net(x).flatten(0, 1), y.flatten()))
    adam = torch.optim.AdamW(net.parameters(), 0.003, (0.9, 0.98), weight_decay=0.1, fused=True)

    def step():
        adam.zero_grad()
        loss = loss_of()
        loss.backward()
        adam.step()
        return loss.detach()

    return step
