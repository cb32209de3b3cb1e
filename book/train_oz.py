"""Train chapter 35's language model, and store its weights: python book/train_oz.py [steps]

It runs the cells of the chapter that are tagged `network`, so there's one definition of the
network and of its training. It writes minihybrid/data/oz.params, whose weights are float16,
and prints the bits per character on the test text, before and after they are rounded.
"""

import json
import sys
import time
from pathlib import Path

from tqdm import tqdm

import minihybrid as mx
from minihybrid import autograd, nd
from minihybrid.gluon import nn

CHAPTER = Path(__file__).resolve().parents[1] / "notebooks/35_a_language_model.ipynb"
SHAPE = {"width": 96, "heads": 4, "depth": 4}
STEPS = 3260


def cells():
    """The names that the chapter's cells with the network define."""
    names = {"mx": mx, "nd": nd, "nn": nn, "autograd": autograd}
    for cell in json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]:
        if "network" in cell["metadata"].get("tags", []):
            exec(compile("".join(cell["source"]), CHAPTER.name, "exec"), names)
    return names


def main(steps):
    names = cells()
    mx.random.seed(0)
    net = names["Transformer"](**SHAPE)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    start = time.perf_counter(), time.process_time()
    bar = tqdm(total=steps)
    names["fit"](net, steps, watch=lambda _: bar.update())
    elapsed_s, cpu_s = time.perf_counter() - start[0], time.process_time() - start[1]
    print(f"{steps} steps: {elapsed_s:.0f} s, of which {cpu_s:.0f} s on processors")
    print(f"float32: {names['bits_of'](net):.4f} bits per character")
    for param in net.collect_params().values():
        param.cast("float16")
    net.save_parameters(str(mx.datasets.stored("oz.params")))
    for param in net.collect_params().values():
        param.cast("float32")
    print(f"float16: {names['bits_of'](net):.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else STEPS)
