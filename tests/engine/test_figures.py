"""Figures say what the engine says: their numbers are those of plans, tapes and launches."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from minihybrid_course import figures
from minihybrid_course.figures.calls import n_python
from minihybrid_course.ink import LETTER, WIDTH, Figure, Film, Panel

from minihybrid import autograd, gluon, nd, simulated_gpu, sym
from minihybrid.core.op import HybridError, Spec
from minihybrid.core.plan import nbytes_moved
from minihybrid.gluon import function, nn
from minihybrid.ops import OPS
from minihybrid.passes import cse, dce, fold, fuse, optimize, plan_memory
from minihybrid.simt import cuda, float32, traffic

EVIL = "</text><script>alert(1)</script>&\"'"
NAME = "{http://www.w3.org/2000/svg}"


def graph_of(f, *names, shape=(2, 3)):
    return sym.trace(f, dict.fromkeys(names, Spec(shape, np.dtype("float32"))))[0]


def wasteful(x, y):
    nd.exp(x)
    scale = sym.full((2, 3), 2) + 1
    return (x * y * scale + x * y) * 1


def stages():
    graph = graph_of(wasteful, "x", "y")
    return [("trace", graph), *optimize(graph, (fold, cse, dce, fuse))]


def bill(price, count, tax):
    goods = price * count
    duty = goods * tax
    return goods + duty


def two_layers():
    net = nn.HybridSequential(prefix="two_")
    with net.name_scope():
        net.add(nn.Dense(4, activation="relu", in_units=5), nn.Dense(3, in_units=4))
    net.initialize()
    return net


def hybrid():
    net = two_layers()
    net.hybridize(backend="numpy")
    return net


def recorded():
    x = nd.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        y = (x * x * x).sum()
    return x, y


def exported(folder):
    net = hybrid()
    net(nd.ones((1, 5)))
    return net, *net.export(str(folder / "net"))


@cuda.jit
def numbers_of(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = i


@cuda.jit
def summed(a, out):
    s = cuda.shared.array(4, float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    half = 2
    while half > 0:
        if i < half:
            s[i] += s[i + half]
        cuda.syncthreads()
        half //= 2
    if i == 0:
        out[0] = s[0]


@cuda.jit
def product(a, b, out):
    x, y = cuda.grid(2)
    total = float32(0)
    for k in range(a.shape[1]):
        total += a[y, k] * b[k, x]
    out[y, x] = total


@cuda.jit
def by_tiles(a, b, out):
    sa = cuda.shared.array((4, 4), float32)
    sb = cuda.shared.array((4, 4), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    total = float32(0)
    for k in range(0, a.shape[1], 4):
        sa[ty, tx] = a[y, k + tx]
        sb[ty, tx] = b[k + ty, x]
        cuda.syncthreads()
        for i in range(4):
            total += sa[ty, i] * sb[i, tx]
        cuda.syncthreads()
    out[y, x] = total


def columns(pitch):
    @cuda.jit
    def kernel(out):
        s = cuda.shared.array((16, pitch), float32)
        t = cuda.threadIdx.x
        s[t, 0] = t
        cuda.syncthreads()
        out[t] = s[t, 0]

    return kernel[1, 16]


def on_gpu(hybridized=True):
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu", in_units=5), nn.Dense(3, in_units=4))
    net.initialize(ctx=simulated_gpu())
    net.hybridize(hybridized)
    return net, nd.ones((2, 5), ctx=simulated_gpu())


class WithLoss(nn.HybridBlock):
    def __init__(self, net):
        super().__init__()
        self.net, self.loss = net, gluon.loss.L2Loss()

    def hybrid_forward(self, F, x, label):
        return self.loss(self.net(x), label)


def trained():
    model = WithLoss(two_layers())
    model.hybridize(backend="numpy")
    trainer = gluon.Trainer(model.collect_params(), "sgd")
    with autograd.record():
        loss = model(nd.ones((2, 5)), nd.ones((2, 3)))
    loss.backward()
    trainer.step(2)
    return model, trainer


def plan_of(f, *arrays, target="numpy"):
    return function(f, target=target).plan_for(*arrays)[0]


def crossing():
    """A graph, and groups that no order of kernels fits."""
    graph = graph_of(lambda x: nd.tanh(x * 2) + nd.exp(nd.tanh(x * 2)), "x")
    return graph, {
        node: "odd" if i % 2 else "even" for i, node in enumerate(graph.nodes) if node.op
    }


def circle():
    graph, groups = crossing()
    return figures.grouped(graph, mixed_up=groups)


FACTORS = [np.ones((8, 8), np.float32) for _ in range(3)]
WIDE = [np.ones((32, 32), np.float32) for _ in range(3)]
MEMORY = plan_memory(stages()[3][1])
ROWS = {"call_1": nd.ones((1, 5)), "call_2": nd.ones((1, 5)), "new_shape": nd.ones((2, 5))}
DRAWN = {
    "bill": lambda _: figures.bill(hybrid(), nd.ones((1, 5))),
    "microseconds": lambda _: figures.microseconds(hybrid(), nd.ones((1, 5)), (1, 2)),
    "who_calls": lambda _: figures.who_calls(hybrid(), **ROWS),
    "vanishing": lambda _: figures.vanishing(stages()),
    "tape": lambda _: figures.tape(recorded()[1], (sym.var("x") ** 2).sum()),
    "shape_flow": lambda _: figures.shape_flow(two_layers()(sym.var("data")), data=(2, 5)),
    "lifetimes": lambda _: figures.lifetimes(MEMORY),
    "travel": lambda _: figures.travel(stages()[3][1], stages()[4][1]),
    "walks": lambda _: figures.walks(),
    "cache_lines": lambda _: figures.cache_lines(1024, (1, 4, 16)),
    "sharing": lambda _: figures.sharing(X, row=X[0], column=X[:, 0]),
    "journey": lambda folder: figures.journey(*exported(folder)),
    "readers": lambda _: figures.readers(OPS["relu"]),
    "two_ways": lambda _: figures.two_ways(bill, 4.0, 5.0, 0.25),
    "grid": lambda _: figures.grid(numbers_of[3, 4], np.zeros(10, np.float32)),
    "tree": lambda _: figures.tree(summed[1, 4], np.ones(4, np.float32), np.zeros(1, np.float32)),
    "tiles": lambda _: figures.tiles([product[TWICE], by_tiles[TWICE]], *FACTORS),
    "registers": lambda _: figures.registers({(1, 1): 2.0, (6, 2): 8 / 12}),
    "pieces": lambda _: figures.pieces({"as it is": product[1, (32, 1)]}, *WIDE, arrays="ab"),
    "banks": lambda _: figures.banks(BANKED, np.zeros(16, np.float32), array="s"),
    "stream": lambda _: figures.stream(*on_gpu()),
    "stages": lambda _: figures.stages(plan_of(wasteful, X, X)),
    "tiers": lambda _: figures.tiers(*(plan_of(wasteful, X, X, target=t) for t in TARGETED)),
    "training_step": lambda _: figures.training_step(*trained()),
    "grouped": lambda _: circle(),
    "roofline": lambda _: figures.roofline(8e12, 0.5e12, {"naive": 0.25, "tiled": 32}),
}
TARGETED = "numpy", "cpu"
TWICE = (2, 2), (4, 4)
BANKED = {"16": columns(16), "17": columns(17)}
X = nd.array([[1, 2, 3], [4, 5, 6]])


@pytest.fixture(params=DRAWN)
def figure(request, tmp_path):
    return DRAWN[request.param](tmp_path)


def test_every_figure_is_drawn_here():
    assert set(DRAWN) == set(figures.__all__)


def test_a_figure_describes_itself_and_asks_for_nothing(figure):
    page = figure._repr_html_()
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert figure.panels and figure.caption in repr(figure)
    for panel in figure.panels:
        svg = ET.fromstring(panel.svg)
        assert svg.find(f"{NAME}title").text == panel.title
        assert svg.find(f"{NAME}desc").text == " ".join(panel.sentences) != ""
        assert svg.get("role") == "img"


def test_what_a_figure_draws_fits_a_phone(figure):
    for panel in figure.panels:
        assert panel.width <= WIDTH
        svg = ET.fromstring(panel.svg)
        left, top, width, height = map(float, svg.get("viewBox").split())
        for box in svg.iter(f"{NAME}rect"):
            x, y, wide, high = (float(box.get(k)) for k in ("x", "y", "width", "height"))
            assert left <= x and x + wide <= left + width and top <= y and y + high <= height
        for text in svg.iter(f"{NAME}text"):
            wide, x = LETTER * len(text.text), float(text.get("x"))
            start = x - wide * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
            assert left - 1 <= start and start + wide <= left + width + 1, text.text


def test_names_are_escaped():
    panel = Panel(EVIL)
    panel.box(0, panel.y, 300, 20, EVIL)
    panel.tell(EVIL)
    page = Figure(EVIL, panel)._repr_html_()
    assert "<script" not in page
    assert ET.fromstring(panel.svg).find(f"{NAME}title").text == EVIL


def test_a_film_shows_one_panel_at_a_time():
    shown = {name: Panel(f"of {name}") for name in ("one", EVIL)}
    page = Film("two", "which?", shown, Panel("stays"))._repr_html_()
    assert "<script" not in page and page.count("<svg") == 3
    assert page.count('type="radio"') == 2 and page.count(" checked") == 1
    hidden = re.findall(r":nth-of-type\((\d)\) :checked\)\)>div>:nth-child\((\d)\)", page)
    assert hidden == [("1", "1"), ("2", "2")]  # what isn't chosen; the third always shows
    assert page.index("@media screen{") < page.index("{display:none}")  # paper shows all


def test_a_walk_loads_each_line_once_if_all_fit():
    (total,) = {p.title.partition(": ")[2] for p in figures.walks(8, 4, 1000).panels}
    assert total == f"{3 * 8 * 8 // 4} loads"


def test_tiles_that_fit_are_loaded_once_each():
    """64 products of tiles load 4 lines of a and 4 of b; and out has 64 lines."""
    tile = {panel.title: panel for panel in figures.walks().panels}
    assert f"tile 4: {64 * 8 + 64} loads" in tile
    naive = " ".join(tile["three loops: 5,376 loads"].sentences)
    assert "line of b: 64." in naive  # it's never in the cache when it's needed again


def numbers(panel, unit="bytes"):
    """The numbers before a unit in what a panel tells."""
    return [
        int(n.replace(",", "")) for n in re.findall(rf"([\d,]+) {unit}", " ".join(panel.sentences))
    ]


@pytest.mark.parametrize("name", ["trace", "fuse"])
def test_what_travels_is_what_the_graph_moves(name):
    graph = dict(stages())[name]
    (panel,) = figures.travel(graph).panels
    assert sum(numbers(panel)) == nbytes_moved(graph)
    assert f"{nbytes_moved(graph):,} bytes" in panel.title


def test_the_most_in_use_is_what_is_planned():
    memory = plan_memory(graph_of(lambda x: nd.dot(nd.exp(x), x.T) * 2, "x"))
    (panel,) = figures.lifetimes(memory).panels
    *sizes, most = numbers(panel)
    assert sizes == [nbytes for _, nbytes, *_ in memory.steps]
    assert max(sizes) <= most <= memory.nbytes + memory.outs_nbytes


def test_microseconds_are_overhead_and_arithmetic():
    figure = figures.microseconds(hybrid(), nd.ones((1, 5)), (1, 2))
    for panel, title in zip(figure.panels, ("1 row at once", "2 rows at once"), strict=True):
        total, overhead, fast = map(float, re.findall(r"[\d.]+\d", " ".join(panel.sentences)))
        assert panel.title == title and 0 < overhead <= total and fast > 0


def test_the_last_panel_shows_the_bytes_after_each_pass():
    figure = figures.vanishing(stages())
    text = " ".join(figure.panels[-1].sentences)
    for name, graph in stages():
        assert f"{name}: {nbytes_moved(graph):,} bytes." in text
    most, least = (nbytes_moved(graph) for _, graph in (stages()[0], stages()[-1]))
    assert f"save {most - least:,} of {most:,} bytes" in figure.caption


def test_the_bill_counts_what_runs():
    net, x = hybrid(), nd.ones((1, 5))
    left, right = figures.bill(net, x).panels
    (plan,) = net.plans.values()
    assert numbers(right, "function") == [n_python(net, x)]
    assert numbers(left, "function") > [20] and "about" in left.sentences[0]
    assert numbers(right, "kernel") == [plan.n_kernels]
    assert numbers(right)[-1] == plan.nbytes_planned


def test_only_a_new_signature_is_traced():
    (panel,) = figures.who_calls(hybrid(), **ROWS).panels
    assert ["trace" in sentence for sentence in panel.sentences] == [True, False, True]
    assert all("run kernels" in sentence for sentence in panel.sentences)


def test_each_pass_marks_what_goes():
    *passes, last, _ = figures.vanishing(stages()).panels
    gone = {panel.title.partition(":")[0]: panel.sentences[0] for panel in passes}
    assert "plus_scalar 1, mul_scalar 1 are removed" in gone["fold"]
    assert "exp, full are removed" in gone["dce"]
    assert "mul, mul, add become one loop" in gone["fuse"]
    assert last.sentences == [f"1 operator, {nbytes_moved(stages()[-1][1])} bytes."]


def test_the_tape_has_values_and_the_graph_shapes():
    x, y = recorded()
    tape, graph = figures.tape(y, (sym.var("x") * 2).sum(), x=x).panels
    assert "x [1., 2., 3.]" in tape.sentences[0] and "[36.]" in tape.sentences[0]
    assert "?[?]" in graph.sentences[0]


def test_shapes_flow_back_from_where_they_are_needed():
    total = sym.relu(sym.var("x")) + sym.var("bias")
    figure = figures.shape_flow(total, bias=(2, 3))
    assert figure.caption.endswith("inputs: 1; from the operators that read them: 2")
    (panel,) = figure.panels
    assert panel.sentences[0] == "x: 2x3, from below."
    assert panel.sentences[2] == "bias: 2x3, given."
    (panel,) = figures.shape_flow(total).panels
    assert all(sentence.endswith("open.") for sentence in panel.sentences)


def test_views_share_and_copies_do_not():
    figure = figures.sharing(X, row=X[1], column=X[:, 0])
    assert figure.caption == "1 of 2 arrays alias the 24 bytes of x: row"
    (panel,) = figure.panels
    assert panel.sentences == [
        "row aliases elements 3 to 5 of x.",
        "column has 8 bytes of its own.",
    ]


def test_the_files_hold_what_the_class_held(tmp_path):
    net, symbol, params = exported(tmp_path)
    (panel,) = figures.journey(net, symbol, params).panels
    assert panel.sentences[0].split(", ")[1:] == panel.sentences[-1].split(", ")[1:]
    assert (tmp_path / "net-0000.params").stat().st_size == numbers(panel)[1]


def test_an_empty_field_is_said_to_be_empty():
    figure = figures.readers(OPS["dot"])
    assert figure.caption == "One definition of dot serves 2 parts of the engine"
    (panel,) = figure.panels
    assert panel.sentences[3] == "kernels: expr, one element of a loop: empty."


def test_lines_have_their_values():
    *lines, uses = figures.two_ways(bill, 4.0, 5.0, 0.25).panels
    assert [panel.sentences for panel in lines] == [
        ["goods = price * count: 20.0; recorded: _mul0."],
        ["duty = goods * tax: 5.0; recorded: _mul1."],
        ["return goods + duty: 25.0; recorded: _plus0."],
    ]
    assert uses.sentences[-1].endswith("the result.") and len(uses.sentences) == 3


def test_a_line_that_computes_nothing_records_no_node():
    def printed(x):
        y = x + 1
        print(end="")
        return y * 2

    texts = [panel.sentences[0] for panel in figures.two_ways(printed, 4.0).panels]
    assert texts[1].endswith("recorded: nothing.") and "recorded: _mulscalar0" in texts[2]


def test_what_is_too_much_is_refused():
    def long(x):
        for _ in range(20):
            x = nd.tanh(x)
        return x

    graph = graph_of(long, "x")
    for draw in (figures.travel, lambda g: figures.lifetimes(plan_memory(g))):
        with pytest.raises(HybridError, match="can be drawn"):
            draw(graph)
    with pytest.raises(HybridError, match="at most 14 nodes"):
        figures.vanishing([("trace", graph), ("dce", graph)])


def test_a_compiled_function_has_a_story_too():
    (panel,) = figures.who_calls(function(lambda x: nd.relu(x), target="numpy"), one=X).panels
    assert "your Python" in panel.sentences[0]


def test_threads_without_work_are_idle():
    (panel,) = DRAWN["grid"](None).panels
    assert panel.sentences == ["10 of 12 threads use memory.", "Idle: 10, 11."]


def test_a_tree_halves():
    (panel,) = DRAWN["tree"](None).panels
    assert panel.sentences == [
        "Step 1: 4 threads write.",
        "Step 2: s[0] from 0 and 2, s[1] from 1 and 3.",
        "Step 3: s[0] from 0 and 1.",
    ]


def test_tiles_hold_less_and_load_less():
    naive, tiled = DRAWN["tiles"](None).panels
    assert naive.sentences[0] == "a: 32 elements, 32 of them in one step."
    assert tiled.sentences[0] == "a: 32 elements, 16 of them in one step."
    assert (naive.sentences[-1], tiled.sentences[-1]) == tuple(
        f"Each element of the factors is loaded {n} times." for n in (8, 2)
    )


def test_sectors_and_cycles_are_those_of_the_traffic():
    (panel,) = DRAWN["pieces"](None).panels
    assert panel.sentences == ["a: 1 element in 1 sector.", "b: 32 elements in 4 sectors."]
    for title, panel in zip(BANKED, DRAWN["banks"](None).panels, strict=True):
        seen = traffic(BANKED[title], np.zeros(16, np.float32)).rows
        (row,) = [row for row in seen if (row.name, row.kind) == ("s", "read")]
        assert numbers(panel, "cycle") == [row.transactions]


def test_launches_are_counted():
    apart, together = DRAWN["stream"](None).panels
    assert numbers(apart, "launch") == [3] and numbers(together, "launch") == [1]
    assert together.sentences[0].count("k_") == 2


def test_the_roof_bends_where_memory_suffices():
    (panel,) = DRAWN["roofline"](None).panels
    assert panel.sentences[-1] == "The ridge is at 16 operations per byte."
    assert "at most 100%" in panel.sentences[1] and "at most 2%" in panel.sentences[0]


def test_too_many_threads_are_refused():
    with pytest.raises(HybridError, match="at most 64 can be drawn"):
        figures.grid(numbers_of[9, 32], np.zeros(10, np.float32))
    with pytest.raises(HybridError, match="at most 16 can be drawn"):
        figures.tree(by_tiles[1, (4, 4)], *FACTORS, array="a")


def test_the_stages_end_in_what_is_planned():
    plan = plan_of(wasteful, X, X)
    (panel,) = figures.stages(plan).panels
    assert panel.sentences[0] == f"trace: 8 loops, {nbytes_moved(plan.stages[0][1])} bytes moved."
    assert f"memory: {plan.nbytes_planned} bytes planned." in panel.sentences
    assert panel.sentences[-1] == "function: target numpy."


def test_a_step_of_training_has_three_plans():
    model, trainer = trained()
    (panel,) = figures.training_step(model, trainer).panels
    forward, backward = model.plans.values()
    ((update,),) = trainer._compiled.values()
    plans = forward, backward, update.plan
    assert numbers(panel, "kernel") == [plan.n_kernels for plan in plans]
    with pytest.raises(HybridError, match="was not trained yet"):
        figures.training_step(hybrid(), trainer)


def test_groups_that_wait_for_each_other_are_found():
    graph, groups = crossing()
    mixed, one = figures.grouped(graph, mixed_up=groups, all=dict.fromkeys(groups, "all")).panels
    assert mixed.sentences == ["groups 1 and 2 need each other.", "2 groups."]
    assert (mixed.title, one.sentences) == ("mixed up: 2 groups", ["1 group."])


def test_a_step_wastes_its_lines():
    (panel,) = figures.cache_lines(1024, (1, 4, 16)).panels
    assert numbers(panel, "line") == [64, 256, 1024] and numbers(panel)[-1] == 1024 * 64


def test_more_outputs_need_fewer_loads():
    _, panel = DRAWN["registers"](None).panels
    assert panel.sentences == ["8 loads, 12 multiply-adds: 0.667 each."]
