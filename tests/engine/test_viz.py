"""Drawings are tested on what they hold: boxes, arrows, words, and their places."""

import itertools
import re
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from minihybrid.viz import draw, memory_map, plot_network

from minihybrid import nd, sym
from minihybrid.core.graph import Graph
from minihybrid.core.op import HybridError, Spec
from minihybrid.passes import fuse, plan_memory
from minihybrid.view.drawing import (
    KINDS,
    boxes_of,
    columns,
    crossings,
    kind_of,
    layout,
    order,
    place,
    rows,
)

SVG = "{http://www.w3.org/2000/svg}"
ROW, VECTOR = (Spec(s, np.dtype("float32")) for s in ((2, 3), (3,)))
EVIL = "<script>alert(1)</script>\"'&]]>--\n"


def traced(function, **specs):
    return sym.trace(function, specs)[0]


def mlp():
    def net(x, w0, b0, w1, b1):
        h = sym.relu(sym.FullyConnected(x, w0, b0, num_hidden=3))
        return sym.FullyConnected(h, w1, b1, num_hidden=3)

    square = Spec((3, 3), np.dtype("float32"))
    return traced(net, x=ROW, w0=square, b0=VECTOR, w1=square, b1=VECTOR)


def two_outputs():
    def net(x):
        a, b = sym.split(x, num_outputs=2, axis=1)
        return a * b, sym.mean(b - a)

    return traced(net, x=Spec((2, 4), np.dtype("float32")))


def diamond():
    return traced(lambda a, b, c, d: (a + b) * (c + d), a=ROW, b=ROW, c=ROW, d=ROW)


def residual():
    def net(x):
        for _ in range(4):
            x = x + sym.relu(sym.tanh(x))
        return x

    return traced(net, x=ROW)


def only_an_input():
    return traced(lambda x: x, x=ROW)


def fused():
    return fuse(mlp())


def random_graph(seed=0, n_nodes=60):
    rng = np.random.default_rng(seed)

    def net(x):
        made = [x]
        for _ in range(n_nodes):
            a, b = rng.integers(max(len(made) - 9, 0), len(made), 2)
            made.append(made[a] * made[b])
        return made[-1], made[n_nodes // 2]

    return traced(net, x=ROW)


GRAPHS = [mlp, two_outputs, diamond, residual, only_an_input, fused, random_graph]


def drawn(graph, **how):
    return ElementTree.fromstring(draw(graph, **how).svg)


def boxes(root):
    return root.findall(f".//{SVG}g[@data-kind]")


def arrows(root):
    return root.findall(f".//{SVG}path")


def n_edges(graph):
    """One arrow for each pair of a node and one that reads it, outputs included."""
    read = sum(len({n for n, _ in node.inputs}) for node in graph.nodes)
    return read + len(graph.heads)


def placed(graph):
    """The boxes of a graph beside each other: (table of rows, boxes that are nodes)."""
    nodes = boxes_of(graph, len(graph.nodes))
    table = rows(nodes)
    order(table)
    place(table, columns(table))
    return table, nodes


@pytest.mark.parametrize("make", GRAPHS)
class TestEveryGraph:
    def test_every_node_and_output_is_a_box_and_every_read_an_arrow(self, make):
        graph = make()
        root = drawn(graph)
        assert len(boxes(root)) == len(graph.nodes) + len(graph.heads)
        assert len(arrows(root)) == n_edges(graph)

    def test_kinds_are_counted(self, make):
        graph = make()
        actual = [box.get("data-kind") for box in boxes(drawn(graph))]
        for kind in KINDS:
            expected = (
                len(graph.heads)
                if kind == "output"
                else sum(kind_of(node) == kind for node in graph.nodes)
            )
            assert actual.count(kind) == expected

    def test_the_same_graph_gives_the_same_picture(self, make):
        assert draw(make())._repr_html_() == draw(make())._repr_html_()

    def test_boxes_of_a_row_keep_apart(self, make):
        for row in placed(make())[0]:
            for left, right in itertools.pairwise(row):
                assert left.x + left.width / 2 < right.x - right.width / 2

    def test_boxes_stand_inside_the_picture(self, make):
        nodes = boxes_of(make(), 99)
        width, height = layout(nodes)
        for box in nodes:
            assert 0 <= box.x - box.width / 2 and box.x + box.width / 2 <= width
            assert 0 <= box.y and box.y + box.height <= height

    def test_arrows_point_down(self, make):
        nodes = boxes_of(make(), 99)
        layout(nodes)
        for box in nodes:
            for source in box.inputs:
                assert source.y + source.height < box.y

    def test_text_is_the_printed_graph(self, make):
        graph = make()
        assert repr(draw(graph)) == graph.show()

    def test_table_lists_every_node(self, make):
        graph = make()
        html = draw(graph)._repr_html_()
        names = re.findall(r"<th scope=row[^>]*>(.*?)</th>", html)
        assert [unescape(name) for name in names] == list(graph.names().values())

    def test_it_has_a_title_and_a_description_for_who_does_not_see_it(self, make):
        root = drawn(make())
        assert root.get("role") == "img"
        assert root.find(f"{SVG}title").text.startswith("Graph: ")
        assert root.find(f"{SVG}desc").text.startswith("In order: ")


def test_a_box_says_operator_shape_and_dtype():
    texts = [t.text for t in drawn(mlp()).iter(f"{SVG}text")]
    assert texts.count("FullyConnected") == 2
    assert texts.count("relu") == 1
    assert texts.count("float32[2x3]") == 4  # x, and the three results


def test_a_fused_box_lists_its_operators():
    [box] = [b for b in boxes(drawn(fused())) if b.get("data-kind") == "fused"]
    assert [t.text for t in box.iter(f"{SVG}text")] == ["FullyConnected", "relu", "float32[2x3]"]


def test_arrows_from_several_outputs_say_which():
    labels = [t.text for t in drawn(two_outputs()).iter(f"{SVG}text") if t.text.startswith("[")]
    assert sorted(labels) == ["[0][1]", "[1][0]"]


def test_a_value_read_twice_by_one_node_is_one_arrow():
    assert len(arrows(drawn(traced(lambda x: x * x, x=ROW)))) == 2


# -- the layout
def test_a_deep_chain_does_not_drift():
    def net(x):
        for _ in range(150):
            x = sym.tanh(x)
        return x

    _, nodes = placed(traced(net, x=ROW))
    assert len({box.x for box in nodes}) == 1


def test_the_chain_of_a_deep_net_is_straight_beside_its_parameters():
    names = ["x", *(f"{kind}{i}" for i in range(20) for kind in "wb")]

    def net(x, *params):
        for i in range(20):
            x = sym.relu(sym.FullyConnected(x, params[2 * i], params[2 * i + 1], num_hidden=3))
        return x

    spec_of = {"x": ROW, "w": Spec((3, 3), ROW.dtype), "b": VECTOR}
    specs = {name: spec_of[name[0]] for name in names}
    _, nodes = placed(traced(net, **specs))
    assert len({box.x for box in nodes if box.kind != "variable"}) == 1


def test_long_edges_pass_beside_the_boxes_on_one_line():
    table, nodes = placed(residual())
    ways = [way for box in nodes for way in box.ways.values() if way]
    assert len(ways) == 4
    assert len({box.x for box in nodes if box.kind != "variable"}) == 1
    for way in ways:
        assert len({point.x for point in way}) == 1
    assert crossings(table) == 0


def test_parameters_stand_just_above_their_reader():
    for box in placed(mlp())[1]:
        for source in box.inputs:
            assert box.row - source.row == 1


def test_a_sum_of_two_sums_is_symmetric():
    boxes_at = [b.x for b in placed(diamond())[1]]
    a, b, c, d = boxes_at[:4]
    product, output = boxes_at[-2:]
    assert product == output == pytest.approx((a + b + c + d) / 4)


def test_sorting_removes_crossings_that_can_be_removed():
    graph = traced(lambda a, b, c, d: (a * d, b * c, a + c), a=ROW, b=ROW, c=ROW, d=ROW)
    table = rows(boxes_of(graph, 99))
    for row in table:
        for i, box in enumerate(row):
            box.index = i
    before = crossings(table)
    order(table)
    assert before > 0 and crossings(table) == 0


def test_columns_do_not_cross_each_other():
    table = rows(boxes_of(random_graph(), 99))
    order(table)
    column = columns(table)
    place(table, column)
    for upper, lower in itertools.pairwise(table):
        tied = [(a, b) for a in upper for b in lower if column[a] is column[b]]
        assert all(a.x == b.x for a, b in tied)
        below = [b.index for _, b in tied]
        assert below == sorted(set(below))


# -- big and hostile graphs
def test_a_big_graph_is_drawn_in_part_and_says_so():
    def net(x):
        for _ in range(10_000):
            x = sym.tanh(x)
        return x

    graph = traced(net, x=ROW)
    html = draw(graph)._repr_html_()
    assert html.count('data-kind="') == 200
    assert "The first 200 of 10001 nodes are drawn." in html
    assert len(html) < 120_000


def test_a_limit_leaves_nothing_dangling():
    graph = mlp()
    root = drawn(graph, limit=6)
    assert [b.get("data-kind") for b in boxes(root)] == ["variable"] * 5 + ["core"]
    assert len(arrows(root)) == 3
    assert "The first 6 of 8 nodes are drawn." in root.find(f"{SVG}title").text


class Tags(HTMLParser):
    """Notes every element, and that all are closed in order."""

    VOID = {"rect", "path"}

    def __init__(self, html):
        super().__init__()
        self.seen, self.open = [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def evil_graph():
    return Graph.of(sym.relu(sym.var(EVIL), name="</title></svg><b>"))


def test_names_from_files_are_never_markup():
    html = draw(evil_graph())._repr_html_()
    tags = Tags(html)
    assert tags.open == []
    assert not {"script", "b"} & set(tags.seen)
    assert "&lt;script&gt;" in html


def test_a_saved_picture_with_hostile_names_is_well_formed(tmp_path):
    path = tmp_path / "graph.svg"
    draw(evil_graph()).save(path)
    root = ElementTree.parse(path).getroot()
    assert len(boxes(root)) == 3
    assert root.find(f".//{SVG}g[@data-kind='variable']/{SVG}title").text.startswith("<script>")


def test_long_names_keep_their_end():
    name = "hybridsequential0_dense0_weight_of_the_second_kind"
    root = drawn(Graph.of(sym.relu(sym.var(name))))
    shown = next(t.text for t in root.iter(f"{SVG}text"))
    assert len(shown) == 26 and shown.endswith("second_kind") and "…" in shown
    assert name in root.find(f".//{SVG}g[@data-kind='variable']/{SVG}title").text


def test_unknown_shapes_are_left_out():
    texts = [t.text for t in drawn(Graph.of(sym.relu(sym.var("x")))).iter(f"{SVG}text")]
    assert texts == ["x", "relu", "output"]


def test_nothing_is_loaded_and_no_name_is_given_twice_on_a_page():
    html = draw(mlp())._repr_html_()
    assert not re.search(r"<script|<link|@import|url\(|\sid=|href|src=", html)


# -- other forms
def test_dot_has_every_node_and_edge_and_quotes_names():
    graph = mlp()
    dot = draw(graph).to_dot()
    assert dot.count("[label=") == len(graph.nodes)
    assert dot.count(" -> ") == sum(len(n.inputs) for n in graph.nodes) + 1
    evil = draw(evil_graph()).to_dot()
    assert '\\"' in evil and EVIL not in evil


def test_dot_is_saved_by_its_ending(tmp_path):
    drawing = draw(mlp())
    drawing.save(tmp_path / "g.dot")
    assert (tmp_path / "g.dot").read_text(encoding="utf-8") == drawing.to_dot()


def test_another_ending_is_an_error(tmp_path):
    with pytest.raises(HybridError, match=r"'g\.png', but a name that ends in"):
        draw(mlp()).save(tmp_path / "g.png")
    assert list(tmp_path.iterdir()) == []


def test_a_symbol_is_drawn_as_its_graph():
    y = sym.relu(sym.var("x"))
    assert draw(y).svg == draw(Graph.of(y)).svg


def test_anything_else_is_an_error():
    with pytest.raises(HybridError, match="found a value of type NDArray, but a Graph"):
        draw(nd.ones(3))


# -- memory
def test_memory_map_has_a_block_for_each_value_of_the_arena():
    graph = mlp()
    memory = plan_memory(graph)
    root = ElementTree.fromstring(memory_map(graph, memory))
    tips = [t.text for t in root.findall(f".//{SVG}g/{SVG}title")]
    assert len(root.findall(f".//{SVG}rect")) == len(memory.offsets) == len(tips) == 2
    assert tips[0] == "fullyconnected0: 24 bytes at 0, steps 0 to 1"


def test_memory_map_is_a_group_only_where_its_blocks_are_visited():
    graph = mlp()
    memory = plan_memory(graph)
    marked = memory_map(graph, memory, dict.fromkeys(memory.offsets, ' tabindex="0"'))
    assert ElementTree.fromstring(marked).get("role") == "group"
    assert ElementTree.fromstring(memory_map(graph, memory)).get("role") == "img"


def test_memory_map_has_a_block_for_what_loops_need_beside():
    square = Spec((200, 200), np.dtype("float32"))
    product = sym._internal._matmul
    graph = traced(lambda a, b, c: product(product(a, b), c), a=square, b=square, c=square)
    memory = plan_memory(graph)
    root = ElementTree.fromstring(memory_map(graph, memory))
    tips = [t.text for t in root.findall(f".//{SVG}g/{SVG}title")]
    assert len(memory.scratch) == 2
    assert [t.split(":")[0] for t in tips] == ["_matmul0", "scratch", "scratch"]


def test_memory_map_of_nothing_is_a_picture_too():
    graph = only_an_input()
    root = ElementTree.fromstring(memory_map(graph, plan_memory(graph)))
    assert root.findall(f".//{SVG}rect") == []


# -- MXNet's name for a picture --------------------------------------------------------
def network():
    x = sym.Convolution(sym.var("data"), kernel=(3, 3), num_filter=2, name="conv")
    x = sym.Activation(sym.BatchNorm(x, name="bn"), act_type="relu", name="act")
    return sym.FullyConnected(x, num_hidden=3, name="fc")


def test_plot_network_hides_parameters_and_tells_shapes():
    drawn = plot_network(network(), shape={"data": (1, 1, 6, 6)})
    assert drawn.svg.count("<rect") == 6  # data, four operators, output
    assert "float32[1x2x4x4]" in drawn.svg and "conv_weight" not in drawn.svg
    assert "conv_weight" in repr(drawn)
    whole = plot_network(network(), hide_weights=False)
    assert whole.svg.count("<rect") == 6 + 8 and "float32" not in whole.svg
    half = plot_network(network(), "net", "png", {"data": (1, 1, 6, 6)}, {"data": "float16"})
    assert "float16[1x3]" in half.svg
    alone = plot_network(sym.var("a_weight"))
    assert alone.svg.count("<rect") == 2  # what is all that there is, is drawn


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: plot_network("net"), "found 'net' .*but a Symbol is needed"),
        (
            lambda: plot_network(network(), shape={}),
            "shapes of data, .* do not follow from nothing",
        ),
        (lambda: plot_network(network(), shape={"x": (1,)}), "no input x; there are data, conv_w"),
        (lambda: plot_network(network(), shapes=1), r"\(did you mean 'shape'\?\)"),
    ],
)
def test_plot_network_refuses_in_a_sentence(call, message):
    with pytest.raises(HybridError, match=message):
        call()
