"""An explanation holds what the plan holds, in the order of a call, times apart."""

import re
from html import escape, unescape
from types import SimpleNamespace

import numpy as np
import pytest

from minihybrid import nd, simulated_gpu, sym
from minihybrid.core.op import AttrError, Spec
from minihybrid.core.plan import Plan, nbytes_moved
from minihybrid.core.targets import TARGETS
from minihybrid.gluon import function, nn, rnn
from minihybrid.runtime import kernel_times
from minihybrid.view.explain import LINES, Explanation, explain
from minihybrid.view.text import diff

FLOAT = np.dtype("float32")
DURATION = re.compile(r"\d+(\.\d+)?\s*(ns|µs|μs|us|ms|s)\b")


def shared(a, b):
    """Something for every pass: a constant, a repetition, a no-op, a dead end."""
    sym.exp(a)
    return sym.sigmoid(a * b) + sym.sigmoid(a * b) * 1.0


class Compiled:
    """The least that `explain` needs."""

    def __init__(self, f, target="cpu", **specs):
        self.plan = Plan(sym.trace(f, specs)[0], list(specs), target=target, title="f")
        self.calls = []

    def plan_for(self, *inputs):
        self.calls.append(inputs)
        arrays = [np.ones(s.shape, s.dtype) for s in inputs]
        return self.plan, arrays, self.plan.bind([])


SPECS = {"a": Spec((3, 4), FLOAT), "b": Spec((3, 4), FLOAT)}


@pytest.fixture(scope="module")
def compiled():
    return Compiled(shared, **SPECS)


@pytest.fixture(scope="module")
def untimed(compiled):
    return explain(compiled, *SPECS.values(), timings=False)


@pytest.fixture(scope="module")
def timed(compiled):
    return explain(compiled, *SPECS.values())


def headings(explanation):
    return [section.title.partition(":")[0] for section in explanation.sections()]


def test_stages_stand_in_the_order_of_a_call(untimed, timed):
    stages = ["trace", "expand", "fold", "cse", "dce", "fuse", "memory", "source"]
    assert headings(untimed) == stages
    assert headings(timed) == [*stages, "times"]
    places = [str(timed).index(f"\n{i}. {name}: ") for i, name in enumerate([*stages, "times"], 1)]
    assert places == sorted(places)


@pytest.mark.parametrize("target", ["numpy", "cpu"])
@pytest.mark.parametrize("doc", ["Leave every <node> as it is.\n\n    More.", None])
def test_a_pass_in_the_tuple_of_a_target_is_explained(target, doc, monkeypatch):
    """Nothing else must be edited: one function, one entry in the tuple."""

    def leave(graph):
        return graph

    leave.__doc__ = doc
    Compiled(shared, target, **SPECS)  # its module enters the target when it is first used
    own = TARGETS[target]
    monkeypatch.setitem(TARGETS, target, own._replace(passes=(*own.passes, leave)))
    actual = explain(Compiled(shared, target, **SPECS), *SPECS.values(), timings=False)
    words = doc.split(".")[0] if doc else "a pass of your own"
    assert f". leave: {words} (nothing here)" in str(actual)
    assert f"leave:</b> {escape(words)}" in actual._repr_html_()


def test_attributes_are_the_plans(compiled, untimed):
    plan = compiled.plan
    assert untimed.plan is plan
    assert untimed.stages is plan.stages
    assert untimed.source is plan.source
    assert untimed.memory is plan.memory


def test_the_inputs_are_passed_on():
    compiled = Compiled(shared, **SPECS)
    explain(compiled, *SPECS.values(), timings=False)
    assert compiled.calls == [tuple(SPECS.values())]


def test_counts_are_the_plans(compiled, untimed):
    plan = compiled.plan
    head, *lines = untimed.counts()
    assert head == ("stage", "operators", "kernels", "bytes moved")
    assert [line[0] for line in lines] == [name for name, _ in plan.stages]
    for (_, n_ops, _, nbytes), (_, graph) in zip(lines, plan.stages, strict=True):
        assert n_ops == str(graph.n_ops)
        assert nbytes == f"{nbytes_moved(graph):,}"
    assert lines[-1][1:] == (str(plan.graph.n_ops), str(plan.n_kernels), f"{plan.nbytes_moved:,}")
    assert [int(line[1]) for line in lines] == [7, 7, 6, 4, 3, 1]


def test_text_holds_graph_changes_memory_and_source(compiled, untimed):
    plan, text = compiled.plan, str(untimed)
    graphs = dict(plan.stages)
    assert graphs["trace"].show() in text
    for before, after in (("expand", "fold"), ("fold", "cse"), ("cse", "dce"), ("dce", "fuse")):
        assert diff(graphs[before], graphs[after]) in text
    assert plan.memory.show() in text
    assert plan.source.rstrip() in text
    assert f"{plan.nbytes_planned:,} bytes planned; {plan.nbytes_eager:,} bytes" in text
    assert "1 kernel\n" in text


def test_a_pass_that_finds_nothing_says_so(untimed):
    expand = untimed.sections()[1]
    assert expand.title.endswith("(nothing here)")
    assert expand.text == "unchanged"


def test_html_is_the_view_with_all_texts(timed):
    html = timed._repr_html_()
    assert html.startswith('<div class="mh-look"><div class="mh-view">')
    text = unescape(re.sub(r"<[^>]+>", "", html))
    lines = timed.source.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith(("@", "def ")))
    for line in lines[first:]:  # below the imports
        assert line in text
    for label, _ in timed.steps[1:]:
        assert label in text


def test_without_timings_every_run_shows_the_same():
    one, two = (
        explain(Compiled(shared, **SPECS), *SPECS.values(), timings=False) for _ in range(2)
    )
    assert one.steps is None
    assert str(one) == str(two)
    assert one._repr_html_() == two._repr_html_()
    assert not DURATION.search(str(one))


def test_times_stand_in_the_last_section_and_nowhere_else(compiled, timed, untimed):
    *rest, times = timed.sections()
    assert rest == untimed.sections()
    assert [label for label, _ in timed.steps] == [
        "call",
        *(line.split()[0] for line in times.text.split("\n")[2:-2]),
    ]
    assert len(timed.steps) == 1 + compiled.plan.n_kernels
    assert all(elapsed_s >= 0 for _, elapsed_s in timed.steps)
    assert len(DURATION.findall(times.text)) == len(timed.steps) + 2
    for line in times.text.split("\n")[1:]:  # one form, whatever the digits
        assert DURATION.sub("TIME", line).endswith("  TIME")


def test_a_target_without_timed_steps_says_so():
    net = Compiled(shared, target="numpy", **SPECS)
    explanation = explain(net, *SPECS.values())
    assert headings(explanation)[-2:] == ["source", "times"]
    assert explanation.sections()[-1].title == "times: not measured"
    assert "numpy" in explanation.sections()[-1].text
    assert explanation.steps is None
    assert "fuse" not in headings(explanation)


def test_a_long_text_is_cut_and_says_so(compiled, untimed):
    plan = SimpleNamespace(**vars(compiled.plan), nbytes_planned=0, nbytes_eager=0)
    plan.source = "pass\n" * (LINES + 50)
    text = Explanation(plan).sections()[-1].text
    assert text.count("pass") == LINES
    assert text.endswith("... and 50 more lines")


def test_a_big_graph_is_not_compared_line_by_line(monkeypatch):
    def net(a, b):
        for _ in range(150):
            a = sym.tanh(a) * 1.0
        return a + b

    def refuse(before, after):
        raise AssertionError("a comparison of this size takes minutes")

    monkeypatch.setitem(explain.__globals__, "diff", refuse)
    text = str(explain(Compiled(net, target="numpy", **SPECS), *SPECS.values(), timings=False))
    assert "more than 200 nodes, too many to compare line by line" in text


@pytest.mark.parametrize(
    "thing, kind", [(abs, "builtin_function_or_method"), (3, "int"), (shared, "function")]
)
def test_what_has_no_plan_is_an_error_that_says_what_to_do(thing, kind):
    with pytest.raises(AttrError) as caught:
        explain(thing)
    assert str(caught.value) == (
        f"explain: found a value of type {kind}, which has no plans, but a HybridBlock "
        "or a compiled function is needed; derive the net from HybridBlock, or wrap "
        "the function as minihybrid.function(f)"
    )


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_net_is_explained_before_and_after_hybridize(hybridize):
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu"), nn.Dense(2))
    net.initialize()
    if hybridize:
        net.hybridize()
    explanation = explain(net, nd.ones((1, 3)), timings=False)
    assert explanation.plan.n_kernels == 2
    assert explanation.stages[0][1].n_ops == 3
    assert "float32[1x3]" in explanation.title


def test_a_compiled_function_is_explained():
    f = function(lambda a, b: a * b + a)
    explanation = explain(f, nd.ones((2, 3)), nd.ones((2, 3)), timings=False)
    assert explanation.counts()[-1] == ("fuse", "1", "1", "72")


def test_inputs_that_are_views_of_memory_can_be_timed():
    f = function(lambda a: a * 2 + 1)
    transposed = nd.array(np.arange(6.0).reshape(2, 3)).T
    assert len(explain(f, transposed).steps) == 2


def test_a_simulated_gpu_counts_what_its_kernels_read_and_write():
    """For elementwise kernels the bytes that were moved are those that were planned."""
    x = nd.ones((7, 9), ctx=simulated_gpu())
    net = function(lambda a, b: (nd.relu(a * b) + a).sum(axis=1) * 2)
    actual = explain(net, x, x)
    titles = [section.title.partition(":")[0] for section in actual.sections()]
    assert titles[-4:] == ["memory", "source", "accesses", "times"]
    (launch,) = actual.launches
    assert (launch.counts.global_loads, launch.counts.global_stores) == (2 * 63, 7)
    nbytes = sum(launch.counts.total(f"nbytes_{what}") for what in ("loaded", "stored"))
    assert nbytes == actual.plan.nbytes_moved
    row = actual.sections()[-2].text.splitlines()[1].split()
    assert row[0] == actual.plan.labels[0] and row[2:4] == ["126", "7"]
    assert row[-1] == str(nbytes)
    assert "benchmarks/gpu.py" in actual.sections()[-1].text
    assert [s.title.partition(":")[0] for s in explain(net, x, x, timings=False).sections()][
        -1
    ] == "accesses"


@pytest.mark.parametrize("layout", ["TNC", "NTC"])
def test_a_recurrent_layer_is_explained_as_it_is_called(layout):
    lstm = rnn.LSTM(3, layout=layout)
    lstm.initialize()
    x = nd.ones((2, 4, 5))
    assert explain(lstm, x, timings=False).plan.out_specs == [Spec((2, 4, 3), np.dtype("f4"))]
    states = lstm.begin_state(x.shape[layout.index("N")])
    assert len(explain(lstm, x, states, timings=False).plan.out_specs) == 3


def test_a_large_net_is_timed_a_few_times(compiled, monkeypatch):
    """All its steps so far, once for each of them: two hundred times would take minutes."""
    plan, arrays, bound = compiled.plan_for(*SPECS.values())
    plan(arrays, bound)
    stops, run = [], plan.function
    monkeypatch.setattr(plan, "function", lambda *args: stops.append(args[-3]) or run(*args))
    monkeypatch.setattr(kernel_times, "ENOUGH_S", 0)
    monkeypatch.setattr(kernel_times, "SHORT_S", 0)
    kernel_times.time_steps(plan, arrays, bound, repeats=200)
    once = list(range(plan.n_kernels + 1))
    assert stops[-len(once) * kernel_times.FEWEST :] == once * kernel_times.FEWEST
    assert len(stops) <= 2 + len(once) * kernel_times.FEWEST
