"""The view links what the engine says belongs together, both ways, and escapes it."""

import base64
import gzip
import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from minihybrid_course import canvas, packing, passes, walk_back
from minihybrid_course.tape import shown

from minihybrid import autograd, nd, simulated_gpu, sym
from minihybrid.core.op import HybridError, Spec
from minihybrid.core.plan import Plan
from minihybrid.gluon import HybridBlock, function, nn
from minihybrid.passes import cse, dce, expand, fold, fuse, optimize
from minihybrid.view.explain import Explanation, explain
from minihybrid.view.links import Links

MATRIX = Spec((3, 4), np.dtype("float32"))
EVIL = "</span><script>alert(1)</script><b x=\"'&"


def shared(a, b):
    nd.exp(a)
    left = nd.sigmoid(a * b)
    right = nd.sigmoid(a * b) * 1.0
    return left + right


class Helped(HybridBlock):
    """A net with a helper, a layer of ours, and a state."""

    def __init__(self):  # own names: numbers of blocks grow wider from 9 to 10
        super().__init__(prefix="helped_")
        self.hidden, self.norm = nn.Dense(5, prefix="dense_"), nn.BatchNorm(prefix="norm_")

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
    "numpy": lambda: explain(
        function(shared, target="numpy"), nd.ones((3, 4)), nd.ones((3, 4)), timings=False
    ),
    "gpu": lambda: made(shared, (3, 4), (3, 4), ctx=simulated_gpu()),
}


def sequence():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu"), nn.Dense(2))
    return net


@pytest.fixture(scope="module", params=PROGRAMS)
def explanation(request):
    return PROGRAMS[request.param]()


def linked(explanation):
    return Links(explanation.stages, explanation.plan)


def numbers(lines):
    return {i for line in lines for i in line.key}


# -- where nodes come from -------------------------------------------------------------
def test_every_node_of_every_stage_stands_for_traced_nodes(explanation):
    traced = set(explanation.stages[0][1].nodes)
    for _, graph in explanation.stages:
        for node in graph.nodes:
            assert graph.origin(node) and graph.origin(node) <= traced


def test_every_traced_operator_that_is_needed_is_in_a_kernel(explanation):
    links = linked(explanation)
    trace = links.trace
    needed = dce(trace).nodes
    expected = {links.number[n] for n in needed if n.op and not n.op.view}
    assert expected and numbers(links.code()) >= expected
    dead = {links.number[n] for n in trace.nodes if n.op} - {links.number[n] for n in needed}
    assert not numbers(links.code()) & dead


def test_every_traced_operator_has_a_line_of_the_program(explanation):
    links = linked(explanation)
    operators = {links.number[n] for n in links.trace.nodes if n.op}
    lines = [line for listing in links.listings() for line in listing.lines]
    assert numbers(lines) == operators


def test_lines_are_those_that_made_the_nodes():
    links = linked(made(shared, (3, 4), (3, 4)))
    (listing,) = links.listings()
    assert listing.first == shared.__code__.co_firstlineno
    actual = {
        line.text.strip(): [links.trace.nodes[i].op.name for i in line.key]
        for line in listing.lines
    }
    assert actual == {
        "def shared(a, b):": [],
        "nd.exp(a)": ["exp"],
        "left = nd.sigmoid(a * b)": ["elemwise_mul", "sigmoid"],
        "right = nd.sigmoid(a * b) * 1.0": ["elemwise_mul", "sigmoid", "_mul_scalar"],
        "return left + right": ["elemwise_add"],
    }


def test_a_helper_is_listed_and_its_caller_has_its_nodes_too():
    links = linked(made(Helped(), (2, 3)))
    names = [listing.name for listing in links.listings()]
    assert names == ["Helped.hybrid_forward", "Helped.half"]
    outer, helper = links.listings()
    inside = numbers(helper.lines)
    (call,) = (set(line.key) for line in outer.lines if "self.half(" in line.text)
    assert inside and call == inside


def test_layers_of_ours_are_listed_where_the_user_wrote_no_forward():
    links = linked(made(sequence(), (2, 3)))
    assert [listing.name for listing in links.listings()] == [
        "Dense.hybrid_forward",
        "Activation.hybrid_forward",
    ]
    assert {listing.first for listing in links.listings()} == {None}, "a moved line would show"


def test_kernel_lines_say_which_fused_node_they_compute():
    links = linked(made(shared, (3, 4), (3, 4)))
    by_text = {
        line.text.strip(): {links.trace.nodes[i].op.name for i in line.key} for line in links.code()
    }
    assert by_text["t2 = v0 * v1"] == {"elemwise_mul"}
    assert by_text["t4 = t3 + t3"] == {"elemwise_add"}
    assert by_text["t3 = sigmoid32(float32(t2))"] == {"sigmoid", "_mul_scalar"}
    assert by_text["import math"] == set()


def test_lines_that_add_up_are_the_sums():
    def total(x):
        return nd.relu(x).sum(axis=1)

    links = linked(made(total, (4, 5)))
    added = [line for line in links.code() if line.text.strip().startswith("acc")]
    assert len(added) == 2 and {links.trace.nodes[i].op.name for i in numbers(added)} == {"sum"}


def test_a_pass_says_what_went_came_and_merged():
    graph = sym.trace(shared, {"a": MATRIX, "b": MATRIX})[0]
    plan = Plan(graph, ["a", "b"])
    links, stages = Links(plan.stages, plan), dict(plan.stages)
    change = links.change(stages["fold"], stages["cse"])
    assert sorted(n.op.name for n in change.merged) == ["elemwise_mul", "sigmoid"]
    assert change.new == set()
    assert len(change.removed) == 3 and len(change.added) == 1  # the sum reads another
    assert [
        line.text.split()[0] for line in links.change(stages["cse"], stages["dce"]).removed
    ] == ["exp0"]


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
            self.keys.setdefault(self.panel, []).append({int(i) for i in attrs["data-k"].split()})
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_part_is_linked_both_ways(explanation):
    """An operator of the program lights a node; a kernel line and a buffer, a line."""
    page = Page(explanation._repr_html_())
    links = linked(explanation)
    program = set().union(*page.keys["line of Python"])
    drawn = set().union(*page.keys["node"])
    assert program and program <= drawn
    for kind in ("line of the kernels", "buffer"):
        assert page.keys[kind] and all(key & program for key in page.keys[kind])
    assert len(page.keys["line of the kernels"]) == sum(bool(line.key) for line in links.code())
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
    assert html == two._repr_html_()
    assert len(html) < 150_000
    assert not re.search(
        r"<link|@import|url\(|\sid=|href|\ssrc=|\son\w+=|https?:",
        html.replace("http://www.w3.org/2000/svg", ""),
    )
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
    actual = explain(function(shared), x, x)
    page = Page(actual._repr_html_())
    assert "Accesses" in actual._repr_html_() and "benchmarks/gpu.py" in actual._repr_html_()
    assert len(page.keys["step"]) == len(actual.launches)


def test_passes_of_your_own_are_stepped_through():
    def own(graph):
        return fold(graph)

    graph = sym.trace(lambda x: sym.exp(x * 1.0), {"x": MATRIX})[0]
    actual = passes([("trace", graph), *optimize(graph, (own, cse))])
    page = Page(actual._repr_html_())
    assert "a pass of your own" in actual._repr_html_()
    assert actual._repr_html_().count("<svg ") == 2  # cse changed nothing
    assert set(page.keys) == {"line of Python", "node"}
    assert str(actual).splitlines()[-1].split() == ["cse", "1", "1", "96"]


# -- boxes to drag ---------------------------------------------------------------------
def chain_of_products():
    def steps(x, a, b, c, d):
        h = nd.tanh(nd.dot(nd.dot(x, a), b))
        return nd.dot(nd.dot(h, c), d)

    shapes = (16, 5), (5, 2), (2, 3), (3, 1), (1, 4)
    return explain(function(steps, target="numpy"), *map(nd.ones, shapes), timings=False).plan


def attributes(html, name):
    """The attributes of all tags that have a certain one."""
    return [attrs for _, attrs in Page(html).tags if name in attrs]


def test_boxes_are_those_of_the_plan():
    plan = chain_of_products()
    actual = packing(plan)
    assert actual.spans == {
        "dot0__matmul0": (0, 1, 128),
        "dot1__matmul0 = tanh0": (1, 3, 192),  # one is written over
        "dot2__matmul0": (3, 4, 64),
    }
    assert actual.nbytes == plan.memory.nbytes == actual.bound == 320
    boxes = attributes(actual._repr_html_(), "data-planner")
    assert (
        [int(box["data-planner"]) for box in boxes] == [*actual.offsets.values()] == [192, 0, 192]
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_planners_boxes_do_not_overlap_and_keep_the_bound(seed):
    rng = np.random.default_rng(seed)
    spans = {
        f"b{k}": (int(first), int(first + rng.integers(4)), int(rng.integers(1, 2000)))
        for k, first in enumerate(rng.integers(0, 8, 12))
    }
    actual = packing(spans)
    assert actual.bound <= actual.nbytes
    boxes = [
        (
            *map(int, (b["data-first"], b["data-last"], b["data-planner"])),
            int(b["data-planner"]) + int(b["data-bytes"]),
        )
        for b in attributes(actual._repr_html_(), "data-planner")
    ]
    assert len(boxes) == len(spans)
    for i, (first, last, low, high) in enumerate(boxes):
        for other_first, other_last, other_low, other_high in boxes[:i]:
            assert (
                last < other_first or other_last < first or high <= other_low or other_high <= low
            )
    sums = [
        sum(nbytes for first, last, nbytes in actual.spans.values() if first <= step <= last)
        for step in range(12)
    ]
    assert actual.bound == max(sums)


def test_boxes_start_on_top_of_each_other():
    boxes = attributes(packing({"a": (0, 1, 100), "b": (1, 1, 64)})._repr_html_(), "data-at")
    assert [(box["data-at"], box["data-bytes"]) for box in boxes] == [
        ("0", "128"),
        ("128", "64"),
    ]  # whole cache lines


# -- the tape walked back --------------------------------------------------------------
def recorded():
    x, w = nd.array([1, 2, 3]), nd.array([0.5, -1, 2])
    for leaf in (x, w):
        leaf.attach_grad()
    constant = nd.array([5, 6, 7])
    with autograd.record():
        y = (nd.tanh(x * w) * (x + constant) * x).sum()
    return y, x, w


def test_the_walk_ends_with_the_gradients_of_backward():
    y, x, w = recorded()
    walk = walk_back(y, x=x, w=w)
    last = {}
    for step in walk.steps:
        last |= step.grads
    y.backward()
    assert last["x"] == shown(x.grad.asnumpy())
    assert last["w"] == shown(w.grad.asnumpy())
    names = {name for name, _, _ in walk.rows}
    assert names - last.keys() == {"v0"}  # the constant is no variable


def test_the_walk_hands_on_what_the_rules_say_and_adds_it_up():
    x = nd.array([3])
    x.attach_grad()
    with autograd.record():
        y = x * x * x
    walk = walk_back(y, x=x)
    assert [step.text for step in walk.steps] == [
        "t1 begins with [1.]",
        "t1 = elemwise_mul(t0, x) hands [3.] to t0 and [9.] to x",
        "t0 = elemwise_mul(x, x) hands [9.] more to x and [9.] more to x",
    ]
    assert [step.grads.get("x") for step in walk.steps] == [None, "[9.]", "[27.]"]


def test_a_step_of_several_outputs_has_a_gradient_for_each():
    x = nd.array([1, 2])
    x.attach_grad()
    both = function(lambda x: (x[0:1] * 2, x[1:2] * 1))
    with autograd.record():
        a, b = both(x)
        y = a * b * b / 2
    walk = walk_back(y, x=x)
    y.backward()
    assert walk.steps[-1].grads["x"] == shown(x.grad.asnumpy()) == "[4., 4.]"
    assert {"t0[0]", "t0[1]"} <= {name for name, _, _ in walk.rows}


def test_the_page_of_a_walk_has_every_step_and_every_gradient():
    y, x, w = recorded()
    walk = walk_back(y, x=x, w=w)
    html = walk._repr_html_()
    assert html == walk_back(y, x=x, w=w)._repr_html_()
    assert len(attributes(html, "data-to")) == len(walk.steps)
    assert len(attributes(html, "data-from")) == sum(len(step.grads) for step in walk.steps)
    text = unescape(re.sub(r"<[^>]+>", "", html))
    for part in [step.text for step in walk.steps] + [*walk.values.values()]:
        assert part in text


def test_a_freed_tape_says_what_to_do():
    y, _, _ = recorded()
    y.backward()
    for array in (y, nd.ones(2)):
        with pytest.raises(HybridError, match="retain_graph=True"):
            walk_back(array)


def evil_boxes():
    return packing({EVIL: (0, 1, 64)})


def evil_walk():
    y, x, _ = recorded()
    return walk_back(y, **{EVIL: x})


# -- a canvas --------------------------------------------------------------------------
def digits_net():
    net = nn.HybridSequential(prefix=EVIL)
    net.add(nn.Dense(10, in_units=64, prefix=EVIL))
    net.initialize()
    net.hybridize(backend="numpy")
    net(nd.ones((1, 64)))
    return net


def test_a_canvas_holds_a_program_and_its_nodes():
    html = canvas(digits_net(), shape=(1, 64))._repr_html_()
    data = json.loads(
        gzip.decompress(base64.b64decode(re.search("<template>(.*?)</template>", html)[1]))
    )
    assert data["shape"] == [1, 64] and data["module"].startswith("// Generated by minihybrid")
    assert base64.b64decode(data["program"])[:4] == b"\0asm"
    assert [node["op"] for node in data["nodes"]] == ["input", "FullyConnected"]


def test_a_canvas_says_what_it_cannot_take():
    with pytest.raises(HybridError, match=r"shape \(1, 65\) is no square picture; needed"):
        canvas(digits_net(), shape=(1, 65))
    with pytest.raises(HybridError, match="canvas: there is no graph yet; call hybridize"):
        canvas(nn.Dense(10), shape=(1, 64))


def evil_canvas():
    return canvas(digits_net(), shape=(1, 64))


@pytest.mark.parametrize("make", [evil_boxes, evil_walk, evil_canvas])
def test_names_of_yours_stay_text(make):
    html = make()._repr_html_()
    assert html.count("<script>") == 1 and ("alert(1)" in html or make is evil_canvas)
    assert all("x" not in attrs for tag, attrs in Page(html).tags if tag == "b")


@pytest.mark.parametrize("target", ("numpy", "cpu"))
def test_every_call_of_a_plan_is_some_nodes_also_that_of_a_copy(target):
    net = nn.HybridLambda(lambda F, x: [x, F.relu(x), x])
    net.hybridize(backend=target)
    net(nd.ones((2, 3)))
    (plan,) = net.plans.values()
    calls = [call.node for call in plan.made.calls]
    assert len(calls) == 3 and set(calls) <= set(plan.graph.nodes)
    assert calls.count(plan.graph.nodes[0]) == 2
