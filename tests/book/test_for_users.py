"""The pages for users of MXNet and PyTorch say what is true: each line is run."""

import ast
import inspect
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd, sym
from minihybrid.gluon import nn

BOOK = Path(__file__).parents[2] / "book"
ROW = re.compile(r"^\| .* \| `([^|]*)` \| (?:`([^|]*)` )?\|$", re.MULTILINE)
PAGES = {
    name: ROW.findall((BOOK / f"{name}.md").read_text(encoding="utf-8"))
    for name in ("for_mxnet_users", "for_pytorch_users")
}
ROWS = [row for rows in PAGES.values() for row in rows]


@pytest.fixture
def known():
    """What the pages say that a line may use."""
    net = nn.Dense(2, in_units=3)
    net.initialize()
    own = {"net": net, "x": nd.ones((2, 3)), "symbol": net(sym.var("data"))}
    own |= {"np": np, "itertools": itertools}
    return own | dict(mx=mx, autograd=autograd, gluon=gluon, nd=nd, nn=nn, sym=sym)


@pytest.mark.parametrize("code, gives", [row for row in ROWS if row[1]])
def test_a_line_gives_what_stands_behind_it(code, gives, known):
    assert repr(eval(code, known)) == gives


@pytest.mark.parametrize("code", sorted({code for code, gives in ROWS if not gives}))
def test_a_line_that_gives_nothing_is_a_call_that_could_be(code, known):
    call = ast.parse(code, mode="eval").body
    function = eval(ast.unparse(call.func), known)
    args = [eval(ast.unparse(arg), known) for arg in call.args]
    if inspect.isbuiltin(function):  # a dict's methods tell no signature
        eval(code, known)
        return
    inspect.signature(function).bind(*args, **{k.arg: k.value for k in call.keywords})


@pytest.mark.parametrize("name", PAGES)
def test_no_line_of_a_table_is_passed_over(name):
    text = (BOOK / f"{name}.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    tables = text.count("|---|---|---|")
    assert tables >= 2 and len(lines) - 2 * tables == len(PAGES[name])


def left_out(page):
    """The code in the first column of the table below a page's words "left out"."""
    table = page.partition("left out")[2].partition("\n\n[")[0]
    rows = re.findall(r"^\| (.*?) \|", table.partition("|---")[2], re.MULTILINE)
    return [code for row in rows for code in re.findall(r"`(.*?)`", row)]


LEFT_OUT = left_out((BOOK / "for_mxnet_users.md").read_text(encoding="utf-8"))


def test_the_table_of_omissions_is_read():
    assert len(LEFT_OUT) >= 9


@pytest.mark.parametrize("code", LEFT_OUT)
def test_what_is_said_to_be_left_out_is(code, known):
    """There is no such name, or its call says in a sentence what is here."""
    if code.endswith(")"):
        with pytest.raises(mx.MXNetError, match="dense|'dist_sync' adds up"):
            eval(code, known)
    else:
        with pytest.raises(AttributeError, match=" has no "):
            eval(code, known)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy converts them")
def test_item_is_the_remedy_for_what_numpy_no_longer_converts(known):
    page = " ".join((BOOK / "for_mxnet_users.md").read_text(encoding="utf-8").split())
    names = known | {"loss": known["x"]}
    works, stops, remedy = re.findall(r"`(\"%f\" % .*?)`", page)
    assert eval(works, names) == "1.000000" and eval(remedy, names) == "0.500000"
    with pytest.raises(TypeError) as error:
        eval(stops, names)
    assert f"*{error.value}*" in page


def test_no_dataset_downloads_itself(tmp_path):
    with pytest.raises(mx.MXNetError, match="nothing is downloaded"):
        gluon.data.vision.MNIST(root=str(tmp_path))


@pytest.mark.parametrize("name", ["eval", "train", "state_dict", "parameters"])
def test_what_pytorch_calls_so_is_called_otherwise_here(name):
    assert not hasattr(nn.Dense(1), name)
