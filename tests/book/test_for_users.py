"""The pages for users of MXNet and PyTorch say what is true: each line is run."""

import ast
import inspect
import re
from pathlib import Path

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


@pytest.mark.parametrize("name", ["profiler"])
def test_what_is_said_to_be_left_out_is(name):
    assert not hasattr(mx, name)


@pytest.mark.parametrize("name", ["eval", "train", "state_dict", "parameters"])
def test_what_pytorch_calls_so_is_called_otherwise_here(name):
    assert not hasattr(nn.Dense(1), name)
