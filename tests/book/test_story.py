"""Chapter 35's language model: its text, its weights, and the page that goes on writing."""

import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import story
import train_oz

import minihybrid as mx
from minihybrid import nd

ROOT = Path(__file__).resolve().parents[2]
NODE = shutil.which("node")
TEXT = '"Toto," said Dorothy'
RUN = """
import { Writer } from "./story.mjs";
import facts from "./net/oz_facts.mjs";
import { load, tensor } from "./net/oz.mjs";
const writer = new Writer(await load(), tensor, facts);
writer.read(TEXT);
let text = "";
for (let i = 0; i < 200; i++) text += writer.write(0.01, () => 0.5);
console.log(JSON.stringify(text));
"""


@pytest.fixture(scope="module")
def names():
    return train_oz.cells()


@pytest.fixture(scope="module")
def net(names):
    net = names["Transformer"](**train_oz.SHAPE)
    net.load_parameters(str(mx.datasets.stored("oz.params")), cast_dtype=True)
    net.hybridize(backend="numpy")
    return net


def test_the_weights_are_float16_and_better_than_counts(names, net):
    stored = nd.load(str(mx.datasets.stored("oz.params")))
    assert {str(np.dtype(a.dtype)) for a in stored.values()} == {"float16"}
    assert names["bits_of"](net, names["codes"][1][:5000]) < 1.75


def test_no_score_depends_on_a_later_letter(names, net):
    x, _ = names["windows"](names["codes"][1], [0])
    other = x.copy()
    other[0, 60:] = 7
    a, b = net(x).asnumpy(), net(other).asnumpy()
    assert (a[0, :56] == b[0, :56]).all() and (a[0, 56:] != b[0, 56:]).any(axis=1).all()


def continued(names, net, text, n):
    """The likeliest characters after a text, with the cache, and the greatest difference of a
    step's scores from those of a window."""
    letters, window = names["letters"], names["WINDOW"]
    codes = [0] * 4 + [letters.index(c) for c in text]
    cache, far = [nd.zeros((1, 4, window, 24)) for _ in range(8)], 0
    for place in range(len(text) + n - 1):
        scores, *cache = net(nd.array([codes[place : place + 5]]), nd.array([[place]]), *cache)
        if place < window:
            row = np.zeros((1, window + 4))
            row[0, : len(codes)] = codes[: window + 4]
            whole = net(nd.array(row))[0, place].asnumpy()
            far = max(far, abs(whole - scores[0, 0].asnumpy()).max())
        if place + 5 == len(codes):
            codes.append(int(scores[0, 0].argmax(axis=0).item()))
    return "".join(letters[i] for i in codes[4 + len(text) :]), far


def test_a_step_with_the_cache_is_a_position_of_the_window(names, net):
    text, far = continued(names, net, TEXT, 40)
    assert len(text) == 40 and far < 1e-4


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="NOT CHECKED: there is no node; install Node.js 20")
def test_the_page_writes_what_the_network_writes(names, net, tmp_path):
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=str(tmp_path))
    story.export_net(app)
    folder = tmp_path / "_static"
    shutil.copy(ROOT / "book/_static/story.js", folder / "story.mjs")
    (folder / "run.mjs").write_text(RUN.replace("TEXT", json.dumps(TEXT)), encoding="utf-8")
    done = subprocess.run([NODE, folder / "run.mjs"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == continued(names, net, TEXT, 200)[0]
