"""What readers hand in for the exercises of chapter 29: right answers, and wrong ones."""

import json
import operator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from minihybrid_course.building import stage
from minihybrid_course.exercises.ch29 import stormy

from minihybrid import autograd, nd

CHAPTER = Path(__file__).parents[2] / "notebooks/29_guards_and_shapes.ipynb"


# -- 29.2: the cells of the chapter --------------------------------------------------------
def of_the_chapter(*texts):
    """The names of nano and of the chapter's cells that contain one of these texts."""
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    nano = {}
    exec(stage(9), nano)
    names = {"np": np, "nano": SimpleNamespace(**nano)}
    for cell in cells:
        source = "".join(cell["source"])
        own = cell["cell_type"] == "code" and not source.startswith("#@title")
        if own and any(text in source for text in texts):
            exec(source, names)
    return SimpleNamespace(**names)


CELLS = of_the_chapter("class Dim:", "def infer(op")
OPS, N = CELLS.nano, CELLS.N


def infer(op, *shapes, **attrs):
    return lambda: CELLS.infer(op, *shapes, **attrs)


# -- 29.3 ----------------------------------------------------------------------------------
def calm(pad=True, cut=True, divide=True, outside=False, hybrid=True):
    def train(net, trainer, batches):
        size = len(batches[0][0])
        net.hybridize(hybrid, backend="numpy")
        for step, (x, y) in enumerate(batches):
            n = len(x)
            if pad and n < size:
                zeros = nd.zeros((size - n, 3))
                x, y = nd.concat(x, zeros, dim=0), y if cut else nd.concat(y, zeros[:, :1], dim=0)
            if outside:
                net(x)
            with autograd.record():
                result = net(x)[: n if cut else None] / (1 + 0.5**step if divide else 1)
                loss = ((result - y) ** 2).sum()
            loss.backward()
            trainer.step(n)

    return train


# -- 29.4 ----------------------------------------------------------------------------------
def pad_to(choose=lambda n, sizes: min(s for s in sizes if s >= n), fill=0, dtype=None, limit=True):
    def pad(x, sizes):
        if len(x) > max(sizes):
            if limit:
                raise ValueError
            return x
        size = choose(len(x), sizes)
        if size == len(x):
            return x
        rest = nd.full((size - len(x), *x.shape[1:]), fill, dtype=dtype or x.dtype)
        return nd.concat(x.astype(dtype or x.dtype), rest, dim=0)

    return pad


# -- 29.6 ----------------------------------------------------------------------------------
class Length:
    shared = None

    def __init__(self, hint):
        self.hint, self.guards = hint, [] if self.shared is None else self.shared

    def compare(self, sign, number):
        outcome = sign(self.hint, number)
        self.guards.append((sign, number, outcome))
        return outcome

    def fits(self, n):
        return all(sign(n, number) == outcome for sign, number, outcome in self.guards)

    def __lt__(self, number):
        return self.compare(operator.lt, number)

    def __le__(self, number):
        return self.compare(operator.le, number)

    def __gt__(self, number):
        return self.compare(operator.gt, number)

    def __ge__(self, number):
        return self.compare(operator.ge, number)


class Exact(Length):
    def fits(self, n):
        return not self.guards or n == self.hint


class OnlyTrue(Length):
    def fits(self, n):
        return all(sign(n, number) for sign, number, _ in self.guards)


class Anything(Length):
    def fits(self, n):
        return True


class Shared(Length):
    shared = []


class Swapped(Length):
    def __gt__(self, number):
        return self.compare(operator.ge, number)


ANSWERS = {
    "29.6": (
        Length,
        [
            (Exact, "with the hint 1, `n > 4` is evaluated, and then fits(2) is False"),
            (OnlyTrue, "with the hint 1, `n > 4` is evaluated, and then fits(1) is False"),
            (Anything, "with the hint 1, `n > 4` is evaluated, and then fits(5) is True"),
            (Shared, "with the hint 5, `n > 4` is evaluated, and then fits(5) is False"),
            (Swapped, "with the hint 1, `n > 4` is evaluated, and then fits(4) is False"),
            (Length(5), "pass the class itself"),
        ],
    ),
    "29.1": (
        (4, 5),
        [
            ((6, 5), "has the same key as the first"),
            ((5, 5), "the recorded call and the last one"),
            ((4, 4), "a recorded call runs a plan of its own"),
            ((3, 5), "training is part of the key"),
        ],
    ),
    "29.2": (
        infer(OPS.reshape, (N, 4), shape=(-1,)),
        [
            (infer(OPS.relu, (N, 4)), "infer returned (n, 4)"),
            (infer(OPS.reshape, (N, 4)), "pass the operator's attributes by name"),
            (infer(OPS.reshape, (N, 4), shape=(3, 3)), "NumPy rejects these shapes"),
            (lambda: infr(1), "run the cells above"),
        ],
    ),
    "29.3": (
        calm(),
        [
            (stormy, "annealed.temperature was set to"),
            (calm(pad=False), "pad the last batch"),
            (calm(outside=True), "call the network inside record() only"),
            (calm(cut=False), "mustn't add to the loss"),
            (calm(hybrid=False), "never compiled"),
        ],
    ),
    "29.4": (
        pad_to(),
        [
            (pad_to(lambda n, sizes: max(sizes)), "for 1 row and the sizes [8, 2, 4], the shape"),
            (pad_to(lambda n, sizes: min(s for s in (*sizes, 16) if s > n)), "for 2 rows"),
            (pad_to(fill=1), "aren't zero"),
            (pad_to(dtype="float32"), "the dtype is float32"),
            (pad_to(limit=False), "a ValueError is needed"),
            (lambda x, sizes: x[:1], "for 1 row and the sizes [8, 2, 4], the shape is (1, 3)"),
        ],
    ),
}
