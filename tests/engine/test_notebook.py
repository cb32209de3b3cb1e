"""What a notebook shows of nets and symbols that stand last in a cell."""

import re
from types import SimpleNamespace

import pytest
from IPython.core.formatters import DisplayFormatter

from minihybrid import gluon, nd, sym
from minihybrid.core import lazy
from minihybrid.gluon import nn
from minihybrid.registrations import VIEWS, tell
from minihybrid.view import notebook


class Pair(gluon.HybridBlock):
    """Two layers with one weight."""

    def __init__(self):
        super().__init__()
        self.a = nn.Dense(3, in_units=2)
        self.b = nn.Dense(3, in_units=2, params=self.a.params)


def nested():
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu"), nn.HybridSequential())
    net[1].add(nn.Dense(2, in_units=4, use_bias=False), Pair())
    return net


@pytest.fixture
def shown():
    """What IPython makes of a value: kind -> text."""
    formatter = DisplayFormatter()
    shell = SimpleNamespace(display_formatter=formatter)
    tell(SimpleNamespace(get_ipython=lambda: shell))
    return lambda value: formatter.format(value)[0]


def cells(html):
    """The texts of a table, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_a_net_is_a_table_of_its_layers(shown):
    head, *rows = cells(shown(nested())["text/html"])
    assert head == ["path", "layer", "parameters", "numbers"]
    assert rows == [
        ["net", "HybridSequential", "", ""],
        ["net.0", "Dense(None -&gt; 4, Activation(relu))", "weight 4 x ?, bias 4", "?"],
        ["net.0.act", "Activation(relu)", "", ""],
        ["net.1", "HybridSequential", "", ""],
        ["net.1.0", "Dense(4 -&gt; 2, linear)", "weight 2 x 4", "8"],
        ["net.1.1", "Pair", "", ""],
        ["net.1.1.a", "Dense(2 -&gt; 3, linear)", "weight 3 x 2, bias 3", "9"],
        ["net.1.1.b", "Dense(2 -&gt; 3, linear)", "weight 3 x 2, bias 3", "shared"],
    ]


def test_paths_are_those_of_the_file(tmp_path):
    net = nested()
    net.initialize()
    net[0](nd.ones((1, 3)))
    net.save_parameters(tmp_path / "net.params")
    paths = {row[0] for row in cells(notebook.net(net))}
    for name in nd.load(tmp_path / "net.params"):
        assert f"net.{name}".rpartition(".")[0] in paths


def test_the_first_call_tells_how_many_numbers_there_are():
    net = nn.Dense(2)
    assert "Dense: 2 parameters, ? numbers" in notebook.net(net)
    net.initialize()
    net(nd.ones((1, 600)))
    assert "Dense: 2 parameters, 1,202 numbers" in notebook.net(net)


def test_a_symbol_is_its_text_and_its_graph_to_unfold(shown):
    html = shown(sym.relu(sym.var("x"), name="y"))["text/html"]
    assert html.startswith("<div><code>&lt;Symbol y&gt;</code>\n<details><summary>Graph: 1 inputs")
    assert "<svg" in html and ["y", "relu", "x", "?[?]"] in cells(html)


def test_an_imported_net_is_its_graph(shown, tmp_path):
    sym.relu(sym.var("data"), name="y").save(tmp_path / "y.json")
    net = gluon.SymbolBlock.imports(str(tmp_path / "y.json"), ["data"])
    assert "<svg" in shown(net)["text/html"]


@pytest.mark.parametrize("value", [nested(), sym.var("x") + 1, gluon.loss.L2Loss()])
def test_the_text_stays_as_it_is(shown, value):
    assert shown(value)["text/plain"] == repr(value)


def test_arrays_are_shown_as_text(shown):
    assert list(shown(nd.ones(2))) == ["text/plain"]


def test_names_and_texts_are_never_markup():
    class Bad(gluon.HybridBlock):
        def __repr__(self):
            return "<script>layer</script>"

    net = nn.HybridSequential()
    net.add(Bad())
    net.register_child(Bad(), "<script>child</script>")
    for html in (notebook.net(net), notebook.symbol(sym.var("<script>x</script>") * 2)):
        assert "<script" not in html and "&lt;script&gt;" in html


def test_of_large_nets_and_graphs_a_part_is_shown():
    net, x = nn.HybridSequential(), sym.var("x")
    net.add(*(nn.Dense(1, in_units=1) for _ in range(300)))
    for _ in range(100):
        x = sym.relu(x)
    html = notebook.net(net)
    assert "600 parameters, 600 numbers; the first 200 of 301 layers" in html
    assert len(cells(html)) == 201
    assert "The first 60 of 101 nodes are drawn" in notebook.symbol(x)


def test_many_parameters_of_one_layer_are_counted():
    net = gluon.Block()
    for i in range(6):
        net.params.get(f"w{i}", shape=(1, 2))
        net._reg_params[f"w{i}"] = net.params.get(f"w{i}")
    assert "w3 1 x 2, and 2 more" in notebook.net(net)


def test_headings_are_headings_and_the_frame_is_reached_by_keyboard():
    html = notebook.net(nested())
    assert html.count("scope=col") == 4 and html.count("scope=row") == 8
    assert 'tabindex="0"' in html and 'aria-label="layers"' in html


@pytest.mark.parametrize(
    "ipython", [None, SimpleNamespace(), SimpleNamespace(get_ipython=lambda: None)]
)
def test_without_a_notebook_nothing_is_told(ipython):
    tell(ipython)


def test_roads_lead_to_functions_and_classes():
    for (module, name), road in VIEWS.items():
        actual = lazy.resolve
        assert isinstance(actual(f"{module}:{name}"), type) and callable(actual(road))
