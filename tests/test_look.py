"""The view links what the engine says belongs together, both ways, and escapes it."""
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from minihybrid import nd, simulated_gpu, sym
from minihybrid.explain import Explanation, explain
from minihybrid.gluon import HybridBlock, function, nn
from minihybrid.look.links import Links
from minihybrid.op import Spec
from minihybrid.passes import cse, dce, expand, fold, fuse
from minihybrid.plan import Plan

MATRIX = Spec((3, 4), np.dtype("float32"))
EVIL = "</span><script>alert(1)</script><b x=\"'&"


def shared(a, b):
    nd.exp(a)
    left = nd.sigmoid(a * b)
    right = nd.sigmoid(a * b) * 1.0
    return left + right


class Helped(HybridBlock):
    """A net with a helper, a layer of ours, and a state."""

    def __init__(self):
        super().__init__()
        self.hidden, self.norm = nn.Dense(5), nn.BatchNorm()

    def half(self, F, x):
        return F.softmax(x * 0.5)

    def hybrid_forward(self, F, x):
        h = self.norm(self.hidden(x))
        return self.half(F, h)


class Images(HybridBlock):
    """A maximum over windows goes to its convolution, past what stands between."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(2, 3)

    def hybrid_forward(self, F, x):
        y = self.conv(x)
        y = F.relu(y)
        return F.Pooling(y, kernel=(2, 2), stride=(2, 2), pool_type="max")


def made(net, *shapes, ctx=None):
    if isinstance(net, HybridBlock):
        net.initialize()
    else:
        net = function(net)
    return explain(net, *(nd.ones(s, ctx=ctx) for s in shapes), timings=False)


PROGRAMS = {
    "shared": lambda: made(shared, (3, 4), (3, 4)),
    "helped": lambda: made(Helped(), (2, 3)),
    "images": lambda: made(Images(), (1, 1, 8, 8)),
    "sequence": lambda: made(sequence(), (2, 3)),
    "numpy": lambda: explain(function(shared, target="numpy"), nd.ones((3, 4)),
                             nd.ones((3, 4)), timings=False),
    "gpu": lambda: made(shared, (3, 4), (3, 4), ctx=simulated_gpu()),
}


def sequence():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu"), nn.Dense(2))
    return net


@pytest.fixture(scope="module", params=PROGRAMS)
def explanation(request):
    return PROGRAMS[request.param]()


def numbers(lines):
    return {i for line in lines for i in line.key}


# -- where nodes come from -------------------------------------------------------------
def test_every_node_of_every_stage_stands_for_traced_nodes(explanation):
    traced = set(explanation.stages[0][1].nodes)
    for _, graph in explanation.stages:
        for node in graph.nodes:
            assert graph.origin(node) and graph.origin(node) <= traced


def test_every_traced_operator_that_is_needed_is_in_a_kernel(explanation):
    links = Links(explanation.plan)
    trace = links.trace
    needed = dce(trace).nodes
    expected = {links.number[n] for n in needed if n.op and not n.op.view}
    assert expected and numbers(links.code()) >= expected
    dead = {links.number[n] for n in trace.nodes if n.op} - {
        links.number[n] for n in needed}
    assert not numbers(links.code()) & dead


def test_every_traced_operator_has_a_line_of_the_program(explanation):
    links = Links(explanation.plan)
    operators = {links.number[n] for n in links.trace.nodes if n.op}
    lines = [line for listing in links.listings() for line in listing.lines]
    assert numbers(lines) == operators


def test_lines_are_those_that_made_the_nodes():
    links = Links(made(shared, (3, 4), (3, 4)).plan)
    (listing,) = links.listings()
    assert listing.first == shared.__code__.co_firstlineno
    found = {line.text.strip(): [links.trace.nodes[i].op.name for i in line.key]
             for line in listing.lines}
    assert found == {
        "def shared(a, b):": [], "nd.exp(a)": ["exp"],
        "left = nd.sigmoid(a * b)": ["elemwise_mul", "sigmoid"],
        "right = nd.sigmoid(a * b) * 1.0": ["elemwise_mul", "sigmoid", "_mul_scalar"],
        "return left + right": ["elemwise_add"]}


def test_a_helper_is_listed_and_its_caller_has_its_nodes_too():
    links = Links(made(Helped(), (2, 3)).plan)
    names = [listing.name for listing in links.listings()]
    assert names == ["Helped.hybrid_forward", "Helped.half"]
    outer, helper = links.listings()
    inside = numbers(helper.lines)
    (call,) = (set(line.key) for line in outer.lines if "self.half(" in line.text)
    assert inside and call == inside


def test_layers_of_ours_are_listed_where_the_user_wrote_no_forward():
    links = Links(made(sequence(), (2, 3)).plan)
    assert [listing.name for listing in links.listings()] == [
        "Dense.hybrid_forward", "Activation.hybrid_forward"]


def test_kernel_lines_say_which_fused_node_they_compute():
    links = Links(made(shared, (3, 4), (3, 4)).plan)
    by_text = {line.text.strip(): {links.trace.nodes[i].op.name for i in line.key}
               for line in links.code()}
    assert by_text["t2 = v0 * v1"] == {"elemwise_mul"}
    assert by_text["t4 = t3 + t3"] == {"elemwise_add"}
    assert by_text["t3 = sigmoid32(float32(t2))"] == {"sigmoid", "_mul_scalar"}
    assert by_text["import math"] == set()


def test_a_pass_says_what_went_came_and_merged():
    graph = sym.trace(shared, {"a": MATRIX, "b": MATRIX})[0]
    plan = Plan(graph, ["a", "b"])
    links, stages = Links(plan), dict(plan.stages)
    change = links.change(stages["fold"], stages["cse"])
    assert sorted(n.op.name for n in change.merged) == ["elemwise_mul", "sigmoid"]
    assert change.new == set()
    assert len(change.gone) == 3 and len(change.came) == 1  # the sum reads another
    assert [line.text.split()[0] for line in
            links.change(stages["cse"], stages["dce"]).gone] == ["exp0"]


def test_passes_alone_keep_origins():
    graph = sym.trace(lambda x: sym.sigmoid(x * 1.0) * 2, {"x": MATRIX})[0]
    product = graph.nodes[1]
    for run in (expand, fold, cse, dce, fuse):
        graph = run(graph)
        assert any(product in graph.origin(n) for n in graph.nodes)


# -- the page --------------------------------------------------------------------------
class Page(HTMLParser):
    """Checks that tags are nested, and collects keys by the panel they stand in."""

    VOID = {"input", "meta", "br"}

    def __init__(self, html):
        super().__init__()
        self.open, self.keys, self.tags, self.panel = [], {}, [], None
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if "data-kind" in attrs and tag == "section":
            self.panel = attrs["data-kind"]
        if "data-k" in attrs:
            self.keys.setdefault(self.panel, []).append(
                {int(i) for i in attrs["data-k"].split()})
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_part_is_linked_both_ways(explanation):
    """An operator of the program lights a node; a kernel line and a buffer, a line."""
    page = Page(explanation._repr_html_())
    links = Links(explanation.plan)
    program = set().union(*page.keys["line of Python"])
    drawn = set().union(*page.keys["node"])
    assert program and program <= drawn
    for kind in ("line of the kernels", "buffer"):
        assert page.keys[kind] and all(key & program for key in page.keys[kind])
    assert len(page.keys["line of the kernels"]) == sum(
        bool(line.key) for line in links.code())
    assert len(page.keys["buffer"]) >= len(explanation.memory.steps)


def test_every_stage_that_changes_something_is_drawn(explanation):
    html = explanation._repr_html_()
    graphs = [graph for _, graph in explanation.stages]
    changed = [a.show() != b.show() for a, b in zip(graphs, graphs[1:], strict=False)]
    picture = explanation.memory.nbytes > 0
    assert html.count("<svg ") == 1 + sum(changed) + picture
    assert html.count('class="stage"') == len(graphs)
    for graph in (graphs[0], graphs[-1]):
        for name in graph.names().values():
            assert name in unescape(html)


def test_the_page_is_small_alone_and_the_same_each_time():
    one, two = (made(Helped(), (2, 3)) for _ in range(2))
    html = one._repr_html_()
    again = two._repr_html_()
    for counter in r"helped\d+", r"dense\d+", r"batchnorm\d+":  # names count blocks
        html, again = (re.sub(counter, "net", text) for text in (html, again))
    assert html == again
    assert len(html) < 150_000
    assert not re.search(r"<link|@import|url\(|\sid=|href|\ssrc=|\son\w+=|https?:",
                         html.replace("http://www.w3.org/2000/svg", ""))
    assert html.count("<script>") == html.count("</script>") == 1


def test_names_from_files_stay_text():
    def evil(a):
        return sym.relu(a * 2, name=EVIL)

    plan = Plan(sym.trace(evil, {"a": MATRIX})[0], ["a"], title=EVIL)
    html = Explanation(plan, note=EVIL)._repr_html_()
    tags = [tag for tag, _ in Page(html).tags]
    assert tags.count("script") == 1 and "b" in tags
    assert "alert(1)" in html and html.count("<script>") == 1
    assert all("x" not in attrs for tag, attrs in Page(html).tags if tag == "b")
    assert unescape(html).count(EVIL) >= 3


def test_a_program_whose_text_is_lost_is_shown_without_it():
    scope = {}
    exec("def lost(a):\n    return a * 2", scope)
    html = made(scope["lost"], (3,))._repr_html_()
    assert "its text is not in a file" in html
    Page(html)


def test_a_simulated_gpu_shows_its_accesses():
    x = nd.ones((7, 9), ctx=simulated_gpu())
    found = explain(function(shared), x, x)
    page = Page(found._repr_html_())
    assert "Accesses" in found._repr_html_() and "benchmarks/gpu.py" in \
        found._repr_html_()
    assert len(page.keys["step"]) == len(found.launches)
