"""`python -m minihybrid`: what runs here, in which versions, and what is missing.

Takes:   `--demo`, to train the tour's net; `--empty-cache`, to delete compiled kernels;
         `convert`, `run` or `check`, for files of models (minihybrid/formats/convert.py).
Gives:   without any, lines to paste into a report of a fault.

What is left out: the versions of drivers of a GPU.
"""

import argparse
import inspect
import os
import platform
import re
import warnings
from importlib import metadata

from minihybrid.codegen import cache
from minihybrid.core import context, nd, targets
from minihybrid.core.op import HybridError
from minihybrid.formats.convert import add_commands
from minihybrid.gluon import autograd, init, nn
from minihybrid.gluon.data import bundled
from minihybrid.gluon.loss import SoftmaxCrossEntropyLoss
from minihybrid.gluon.trainer import Trainer
from minihybrid.mxnet import base
from minihybrid.ops.cpu import machine

INK = " .:-=+*#%@"  # from paper to ink
RATE = {"learning_rate": 0.5}


def value_or_error(value):
    """What a function returns, or the sentence with which it refuses."""
    try:
        return value()
    except HybridError as error:
        return str(error)


def installed(package):
    """The version of a package, or "missing"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def requirements():
    """extra -> names of its packages, as the installed package declares; "" has the usual."""
    try:
        lines = metadata.requires("minihybrid") or ()
    except metadata.PackageNotFoundError:  # a folder on the path
        lines = ()
    names = {}
    for line in lines:
        extra = re.search(r"extra == ['\"]([\w-]+)", line)
        names.setdefault(extra[1] if extra else "", []).append(re.match(r"[\w.-]+", line)[0])
    return names


def packages():
    """Lines: the versions of the usual packages, and which extra brings what is missing."""
    needed = requirements()
    if not needed:
        yield "packages", "unknown, minihybrid is not installed but found on the path"
        needed = {"": ["numpy", "numba", "scipy", "tqdm"]}
    for name in needed.pop(""):
        how = f'; python -m pip install "{name}"'
        version = installed(name)
        yield name, version + (how if version == "missing" else "")
    for extra, names in needed.items():
        lacking = ", ".join(name for name in names if installed(name) == "missing")
        how = f'missing {lacking}; python -m pip install "minihybrid[{extra}]"'
        yield f"[{extra}]", how if lacking else "complete"


def cached():
    """Number, size and folder of the kernels on disk, in words."""
    folder = cache.cache_dir()
    if folder is None:
        return "none, this user has no home folder; set MINIHYBRID_CACHE_DIR"
    files = cache.kept()
    size = sum(os.path.getsize(path) for path in files) / 1e6
    empty = "; empty it by python -m minihybrid --empty-cache" if files else ""
    return f"{len(files)} kernels, {size:.1f} MB in {folder}{empty}"


def report():
    """Everything, as lines `name: value`."""
    python = f"{platform.python_version()} ({platform.python_implementation()})"
    usable = [name for name, target in targets.TARGETS.items() if target.here and target.usable()]
    lines = {
        "minihybrid": f"{base.__version__} in {cache.ROOT}",
        "python": f"{python} on {platform.platform()}",
        **dict(packages()),
        "targets": f"{', '.join(usable)}; the usual one is {targets.best_target()}",
        "gpus": f"{context.num_gpus()}, and the simulated one",
        "threads": value_or_error(lambda: f"{machine.threads()} of {machine.cores()} cores"),
        "cache": value_or_error(cached),
    }
    width = max(map(len, lines)) + 1
    return "\n".join(f"{name + ':':{width}} {value}" for name, value in lines.items())


def train():
    """The tour's net in ten lines: handwritten digits, two layers."""
    (x, y), (test_x, test_y) = bundled.digits()
    net = nn.HybridSequential()
    net.add(nn.Dense(64, activation="relu"), nn.Dense(10))
    net.initialize(init.Xavier())
    net.hybridize()
    loss, trainer = SoftmaxCrossEntropyLoss(), Trainer(net.collect_params(), "sgd", RATE)
    for start in [*range(0, 1408, 32)] * 5:
        with autograd.record():
            loss(net(x[start : start + 32]), y[start : start + 32]).backward()
        trainer.step(32)
    return net, test_x, test_y


def picture(image, chances):
    """A digit, row by row, beside a bar for each of the ten answers."""
    rows = [f"{'':16}" for _ in range(10)]
    rows[1:9] = ["".join(INK[int(value * 9)] * 2 for value in row) for row in image]
    bars = (f"{n}  {'#' * round(40 * p)} {p:.0%}" for n, p in enumerate(chances))
    return "\n".join(f"    {row}    {bar}" for row, bar in zip(rows, bars, strict=True))


def demo():
    """Train, and show the program, how many it gets right, and one of its answers."""
    body = inspect.getsource(train).split('"""\n')[1].rpartition("    return")[0]
    net, x, y = train()
    right = int((net(x).argmax(axis=1) == y).sum().item())
    chances = nd.softmax(net(x[:1])).asnumpy()[0]
    answer = f"{right} of {len(y)} images that it has not seen are right; the first is a"
    drawn = picture(x[0].asnumpy(), chances)
    return f"{inspect.cleandoc(body)}\n\n{answer} {int(y[0].item())}:\n\n{drawn}"


def main(arguments=None):
    """Say what runs here, for a report of a fault; or work with the files of a model."""
    parser = argparse.ArgumentParser("python -m minihybrid", description=main.__doc__)
    parser.add_argument("--demo", action="store_true", help="train a net, and show an answer")
    parser.add_argument("--empty-cache", action="store_true", help="delete compiled kernels")
    add_commands(parser.add_subparsers(metavar="{convert,run,check}"))
    options = parser.parse_args(arguments)
    if hasattr(options, "command"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `check` lists missing operators itself
            try:
                for line in options.command(options):
                    print(line)
            except (HybridError, OSError, MemoryError) as error:
                parser.exit(2, f"{parser.prog}: {error}\n")
        return
    if options.empty_cache:
        number = len(cache.kept())
        cache.clear_cache()
        print(f"deleted {number - len(cache.kept())} kernels in {cache.cache_dir()}")
    else:
        print(demo() if options.demo else report())


if __name__ == "__main__":
    main()
