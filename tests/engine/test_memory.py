"""Memory: how near the planner comes to the best plan, and what a call allocates."""

import re
import tracemalloc
from itertools import permutations, product

import numpy as np
import pytest
from minihybrid.sym import trace
from samples import CASES
from traced import Program

from minihybrid import autograd, nd, sym
from minihybrid.codegen.cpu import target as cpu
from minihybrid.core.op import Node, Spec
from minihybrid.core.passes.memory import (
    arrange,
    first_fit,
    neighbors,
    overwrites,
    places,
    recycled,
    share_outputs,
)
from minihybrid.core.plan import Plan
from minihybrid.gluon import nn
from minihybrid.ops import OPS
from minihybrid.passes import PASSES, expand, fuse, optimize, plan_memory

F32 = np.dtype("float32")


# -- nets of few values, each of a multiple of 64 bytes --------------------------------
def dense(rng, x, units=None):
    units = units or int(rng.integers(1, 20))
    weight = sym.var(f"weight{rng.integers(2**62)}")
    return sym.FullyConnected(x, weight, num_hidden=units, no_bias=True)


def chain(rng, x):
    for _ in range(rng.integers(3, 9)):
        x = dense(rng, x)
    return x


def diamond(rng, x):
    x, units, ends = dense(rng, x), int(rng.integers(1, 20)), []
    for _ in range(rng.integers(2, 4)):
        branch = dense(rng, x) if rng.integers(2) else x
        ends.append(dense(rng, branch, units))
    join = sym.concat(*ends, dim=1) if rng.integers(2) else sym.add_n(*ends)
    return dense(rng, dense(rng, join))


def residual(rng, x):
    x, units = dense(rng, x, 8), 8
    for _ in range(rng.integers(1, 4)):
        x = x + dense(rng, sym.tanh(dense(rng, x)), units)
    return dense(rng, x)


def unet(rng, x):
    skips = []
    for _ in range(rng.integers(2, 4)):
        x = dense(rng, x)
        skips.append(x)
    x = dense(rng, x)
    for skip in reversed(skips):
        x = dense(rng, sym.concat(x, skip, dim=1))
    return x


def tangle(rng, x):
    values = [dense(rng, x, 4)]
    for _ in range(rng.integers(4, 9)):
        a, b = (values[i] for i in rng.integers(len(values), size=2))
        values.append(
            (sym.tanh(a), dense(rng, a), sym.concat(a, b, dim=1), a.sum(axis=1, keepdims=True) * b)[
                rng.integers(4)
            ]
        )
    return values[-1] if rng.integers(2) else values[-2:]


def small_graph(build, rng):
    """A graph of at most ten values; every second one has fused kernels."""
    while True:
        graph, _ = trace(lambda x: build(rng, x), {"x": Spec((16, 8), F32)})
        passes = (*PASSES, fuse) if rng.integers(2) else PASSES
        graph = optimize(expand(graph), passes)[-1][1]
        if sum(n.op is not None and not n.op.view for n in graph.nodes) <= 10:
            return graph


# -- the exact answer ------------------------------------------------------------------
def least_height(spans, best):
    """The least arena for lifetimes, or `best` if nothing smaller exists.

    spans:   [(first step, last step, size)].

    In some best plan every value rests on the floor or on one that lives at the same
    time, or it could sink. So values are put down from the lowest to the highest, each
    on top of those that it meets; all orders are tried but those that cannot win.
    """

    def put(left, placed, floor):
        nonlocal best
        if not left:
            best = max((top for *_, top in placed), default=0)
            return
        rests = [
            (
                max((top for f, t, top in placed if f <= last and first <= t), default=0),
                (first, last, size),
            )
            for first, last, size in left
        ]
        if any(at + span[2] >= best for at, span in rests):
            return
        for i, (at, (first, last, size)) in enumerate(rests):
            if at >= floor and at + size < best:
                put(left[:i] + left[i + 1 :], [*placed, (first, last, at + size)], at)

    put(spans, [], 0)
    return best


def most_alive(spans):
    return max((sum(s for f, t, s in spans if f <= k <= t) for k, *_ in spans), default=0)


def least_arena(graph):
    """The bytes of the smallest arena for this order of steps.

    A loop may write over what it reads last, and values may lie in the memory of an
    output of their size that is not in use; every such choice is tried.
    """
    root, steps = places(graph), [n for n in graph.nodes if n.op and not n.op.view]
    spans = {
        (n, i): [k, k, n.specs[i].nbytes] for k, n in enumerate(steps) for i in range(n.n_outputs)
    }
    for k, node in enumerate(steps):
        for ref in node.inputs:
            if root[ref] in spans:
                spans[root[ref]][1] = k
    outs = {root[ref] for ref in graph.heads if root[ref] in spans}
    for ref in outs:
        spans[ref][1] = len(steps)
    choices = [
        [
            None,
            *{
                root[ref]
                for ref in overwrites(node, 0, root)
                if root[ref] in spans and spans[root[ref]][1] == k and root[ref] not in outs
            },
        ]
        for k, node in enumerate(steps)
    ]
    plans = [
        plan for chosen in product(*choices) for plan in homes(merged(spans, steps, chosen), outs)
    ]
    best = sum(size for *_, size in spans.values())
    for plan in sorted(plans, key=most_alive):
        best = least_height(plan, best)
    return best


def merged(spans, steps, chosen):
    """{values that share a place: (first, last, size)}, given who overwrites whom."""
    groups = {ref: (ref,) for ref in spans}
    for node, old in zip(steps, chosen, strict=True):
        if old is not None:
            group = (*groups[old], (node, 0))
            groups |= dict.fromkeys(group, group)
    return {
        group: (
            min(spans[r][0] for r in group),
            max(spans[r][1] for r in group),
            spans[group[0]][2],
        )
        for group in groups.values()
    }


def homes(groups, outs):
    """Every way to move groups from the arena into outputs: what stays there."""
    kept = {g: [span] for g, span in groups.items() if outs.intersection(g)}
    rest = [g for g in groups if g not in kept]
    fits = [
        [None, *(k for k in kept if k[0][0].specs[k[0][1]].size == g[0][0].specs[g[0][1]].size)]
        for g in rest
    ]
    for chosen in product(*fits):
        used = {
            k: [groups[g] for g, home in zip(rest, chosen, strict=True) if home == k] + kept[k]
            for k in kept
        }
        if all(most_alive(spans) == spans[-1][2] for spans in used.values()):
            yield [groups[g] for g, home in zip(rest, chosen, strict=True) if not home]


def ratios(build, n):
    """The planner's arena over the least one, for graphs made by chance."""
    rng, actual = np.random.default_rng(7), []
    for _ in range(n):
        graph = small_graph(build, rng)
        memory, least = plan_memory(graph, scratch=False), least_arena(graph)
        actual.append(memory.nbytes / least if least else 1 + memory.nbytes)
    print(f"{build.__name__}: worst {max(actual):.3f}, mean {np.mean(actual):.4f}")
    return np.array(actual)


@pytest.mark.slow
@pytest.mark.parametrize("build", (chain, diamond), ids=lambda build: build.__name__)
def test_chains_and_diamonds_are_within_five_percent_of_the_best(build):
    actual = ratios(build, 50)
    assert actual.min() >= 1 and actual.max() <= 1.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "build, n", ((residual, 80), (unet, 10), (tangle, 100)), ids=("residual", "unet", "tangle")
)
def test_other_graphs_are_nearly_always_within_five_percent(build, n):
    """One in a hundred is not: there, which value lies in an output was decided badly."""
    actual = ratios(build, n)
    assert actual.min() >= 1 and actual.mean() <= 1.01
    assert np.mean(actual > 1.05) <= 0.02


def by_hand(spans, order):
    """The arena of first fit in a given order."""
    size = {name: nbytes for name, (_, _, nbytes) in spans.items()}
    offsets = first_fit(order, size, neighbors(spans, size)[0])
    return max(at + size[name] for name, at in offsets.items())


def random_spans(rng, n, longest=5):
    births = sorted(rng.integers(0, n, size=n).tolist())
    return {
        k: (b, b + int(rng.integers(longest)), 64 * int(rng.integers(1, 20)))
        for k, b in enumerate(births)
    }


def test_the_exact_answer_is_that_of_all_orders():
    """First fit in the order of a best plan's offsets is a best plan: it sinks."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        spans = random_spans(rng, 5)
        assert least_height([*spans.values()], 10**9) == min(
            by_hand(spans, order) for order in permutations(spans)
        )


@pytest.mark.slow
def test_no_simple_order_is_within_five_percent_but_the_search_is():
    rng = np.random.default_rng(3)
    worst = dict.fromkeys(("as written", "largest first", "arranged"), 0)
    for _ in range(100):
        spans = random_spans(rng, int(rng.integers(4, 9)))
        least = least_height([*spans.values()], 10**9)
        largest = sorted(spans, key=lambda name: -spans[name][2])
        for how, nbytes in (
            ("as written", by_hand(spans, spans)),
            ("largest first", by_hand(spans, largest)),
            ("arranged", arrange(spans)[1]),
        ):
            worst[how] = max(worst[how], nbytes / least)
    print(worst)
    assert worst["as written"] > 1.3 and worst["largest first"] > 1.1
    assert worst["arranged"] <= 1.05


# -- any lifetimes ---------------------------------------------------------------------
def assert_nothing_overlaps(spans, offsets, nbytes):
    assert offsets.keys() == spans.keys()
    for a, (first, last, size) in spans.items():
        assert offsets[a] % 64 == 0 and 0 <= offsets[a] <= nbytes - size
        for b, (start, end, other) in spans.items():
            if a != b and start <= last and first <= end:
                assert offsets[a] + size <= offsets[b] or offsets[b] + other <= offsets[a]


def test_values_that_live_together_are_apart():
    """Also by the plan for too many pairs to search."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        spans = random_spans(rng, 30, longest=12)
        spans = {k: (b, e, n + int(rng.integers(-63, 1))) for k, (b, e, n) in spans.items()}
        size = {k: -(-n // 64) * 64 for k, (_, _, n) in spans.items()}
        assert_nothing_overlaps(spans, *arrange(spans))
        assert_nothing_overlaps(spans, recycled(spans, size), sum(size.values()))
        assert arrange(spans) == arrange(spans)  # the same source text, every time


def test_a_long_chain_needs_what_two_neighbors_need():
    rng = np.random.default_rng(0)
    sizes = (64 * rng.integers(1, 100, size=20_000)).tolist()
    spans = {k: (k, k + 1, size) for k, size in enumerate(sizes)}
    assert arrange(spans)[1] == max(map(sum, zip(sizes, sizes[1:], strict=False)))


def test_thousands_that_live_together_are_planned_without_a_search():
    n = 2000
    spans = {k: (k, 2 * n - k, 64) for k in range(n)}
    spans |= {n + k: (2 * n - k, 2 * n + 1 - k, 64) for k in range(n)}
    assert arrange(spans)[1] == 64 * (n + 1)


# -- outputs ---------------------------------------------------------------------------
def test_an_output_that_is_not_written_yet_holds_other_values():
    def equal(x, w):
        for _ in range(5):
            x = sym.dot(x, w)
        return x

    spec = Spec((16, 16), F32)
    graph, _ = trace(equal, {"x": spec, "w": spec})
    memory = plan_memory(graph)
    names = [n for n in graph.nodes if n.op]
    assert {names.index(n) for n, _ in memory.outs} == {0, 2, 4}  # never the one before
    assert memory.nbytes == memory.outs_nbytes == spec.nbytes


def test_values_in_one_output_never_meet():
    """Not in one step, either: it reads the one while it writes the other."""
    rng, n_shared = np.random.default_rng(0), 0
    for _ in range(30):
        refs = [(Node(OPS["relu"], (), {}, f"n{i}", (Spec((16,), F32),)), 0) for i in range(30)]
        births = sorted(rng.integers(0, 30, size=30).tolist())
        spans = {r: (b, b + int(rng.integers(1, 6)), 64) for r, b in zip(refs, births, strict=True)}
        outs = {refs[i]: k for k, i in enumerate(rng.choice(30, 4, replace=False).tolist())}
        shared = share_outputs(spans, outs)
        n_shared += len(shared)
        for a, b in permutations([*shared, *outs], 2):
            if (shared | outs)[a] == (shared | outs)[b] and spans[a][0] <= spans[b][0]:
                assert a not in outs and spans[a][1] < spans[b][0]
    assert n_shared > 100


def test_scratch_stays_in_the_arena():
    """Also where an output has its size and its dtype."""
    order = OPS["_order"]
    graph, _ = trace(lambda x: order(order(x)), {"x": Spec((2, 32), F32)})
    memory = plan_memory(graph)
    (scratch, _), *_ = memory.scratch.values()
    assert scratch.specs[0].nbytes == memory.outs_nbytes
    assert memory.offsets.keys() >= set(memory.scratch.values())


# -- a call ----------------------------------------------------------------------------
@pytest.fixture(scope="module")
def net():
    """Three layers; weights of 768 kB, results of 4 kB."""
    net = nn.HybridSequential()
    net.add(
        nn.Dense(256, activation="tanh", in_units=256),
        nn.Dense(256, in_units=256),
        nn.Dense(256, in_units=256),
    )
    net.initialize()
    net.hybridize()
    return net


def traced_peak(call):
    """Bytes that a call had allocated at most, beside what was there before."""
    call()
    tracemalloc.start()
    try:
        call()  # the interpreter's own caches
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = call()
        return tracemalloc.get_traced_memory()[1] - before, result
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_call_allocates_its_results_and_nothing_else(net):
    x = nd.ones((4, 256))
    hybrid, y = traced_peak(lambda: net(x))
    assert 0 <= hybrid - y.data.nbytes < 2048  # the rest: NDArray, tuples
    net.hybridize(False)
    eager, _ = traced_peak(lambda: net(x))
    net.hybridize()
    assert eager > 2 * y.data.nbytes  # which shows that the counter counts


def test_a_recorded_call_copies_no_result():
    """Large ones lie in memory that was used before; a copy of each would be new."""
    net, x = nn.Dense(256, in_units=256), nd.ones((2048, 256))
    net.initialize()
    net.hybridize()

    def call():
        with autograd.record():
            return net(x)

    peak, y = traced_peak(call)
    assert y.data.nbytes >= 2**20 and peak < y.data.nbytes // 2


def test_a_plan_allocates_its_outputs_and_nothing_else():
    def f(x, w):
        y = sym.dot(sym.tanh(sym.dot(x, w)), w)
        return y, sym.softmax(y) * 2, y.sum(axis=1)

    graph, _ = trace(f, {"x": Spec((32, 64), F32), "w": Spec((64, 64), F32)})
    plan = Plan(graph, ["x"])
    bound, x = plan.bind([np.ones((64, 64), "f4")]), np.ones((32, 64), "f4")
    peak, outs = traced_peak(lambda: plan([x], bound))
    assert plan.memory.nbytes > 0
    assert sum(out.nbytes for out in outs) == plan.memory.outs_nbytes
    assert 0 <= peak - plan.memory.outs_nbytes < 2048


@pytest.mark.slow
def test_no_kernel_makes_an_array():
    """Numba's own allocations are not traced, but all that makes one is in the text."""
    texts = []
    for case in CASES:
        graph = optimize(expand(Program([case], "float32").graph))[-1][1]
        if cpu.unsupported(graph) is None:
            graph = fuse(graph)
            texts.append(cpu.generate(graph, plan_memory(graph), [])[0])
    makers = re.compile(r"\bnp\.(empty|zeros|ones|full|arange|array)\w*\(|\.copy\(")
    assert len(texts) > 500
    assert not [actual[0] for text in texts if (actual := makers.search(text))]
    assert makers.search("    line = np.empty(9, np.int64)")


def test_weights_are_read_where_they_are(net):
    x = nd.ones((4, 256))
    net(x)
    (plan,) = net.plans.values()
    arrays = [p.data().data for p in net.collect_params().values()]
    arrays = [
        a
        for name in plan.params
        for p, a in zip(net.collect_params().values(), arrays, strict=True)
        if p.name == name
    ]
    table, _ = plan.bind(arrays)
    assert table.tolist() == [a.ctypes.data for a in arrays] and len(arrays) == 6
    net[2].weight.data()[:] = 0  # no word to the plan
    peak, y = traced_peak(lambda: net(x))
    assert not y.asnumpy().any()
    assert peak < net[2].weight.data().data.nbytes


def test_plans_report_their_bytes(net):
    net(nd.ones((4, 256)))
    (plan,) = net.plans.values()
    memory = plan.memory
    assert plan.nbytes_planned == memory.nbytes + memory.outs_nbytes
    assert f"{plan.nbytes_planned} bytes" in repr(net.plans)
    assert f"{plan.nbytes_eager} bytes eager, {plan.nbytes_planned} planned" in plan.show()


def test_the_bytes_of_what_is_kept_for_backward_are_counted(net):
    with autograd.record():
        loss = net(nd.ones((8, 256))).sum()
    loss.backward()
    plan = next(plan for signature, plan in net.plans.items() if "8x256" in str(signature))
    # the result, and what the second and the third layer read
    assert plan.memory.outs_nbytes == 3 * 8 * 256 * 4


def test_a_bar_is_no_longer_than_a_line():
    graph, _ = trace(lambda x: [x := sym.dot(x, x) for _ in range(1000)], {"x": Spec((2, 2), F32)})
    lines = plan_memory(graph).show().splitlines()
    assert len(lines) == 1001 and max(map(len, lines)) < 120


# -- what is written over what is read -------------------------------------------------
def only_kernel(f, n_inputs=2):
    """The one kernel of a function of arrays, and where its values lie."""
    specs = {f"x{i}": Spec((64,), F32) for i in range(n_inputs)}
    graph = optimize(trace(f, specs)[0], [expand, fuse])[-1][1]
    (node,) = [n for n in graph.nodes if n.op and not n.op.view]
    return node, places(graph), [ref[0].name for ref in node.inputs]


def test_a_result_lies_over_what_it_needs():
    node, root, _ = only_kernel(lambda a, b: (a * b, b + 1))
    assert [ref[0].name for ref in overwrites(node, 0, root)] == ["x0", "x1"]
    assert [ref[0].name for ref in overwrites(node, 1, root)] == ["x1"]


def test_a_result_does_not_lie_over_what_only_one_choice_needs():
    """The compiler might copy all of `b` to the result before `t + a` is computed."""

    def both(a, b, p):
        t = sym.sin(a)
        return sym.where(p, t, b), t + a

    node, root, _ = only_kernel(both, 3)
    assert [ref[0].name for ref in overwrites(node, 0, root)] == ["x2"]
    assert [ref[0].name for ref in overwrites(node, 1, root)] == ["x0"]
    node, root, _ = only_kernel(lambda a, b, p: sym.where(p, sym.sin(a), b), 3)
    assert {ref[0].name for ref in overwrites(node, 0, root)} == {"x0", "x1", "x2"}


def test_a_result_does_not_lie_over_what_it_only_has_the_shape_of():
    """The compiler might write it before the other result's number is read there."""
    node, root, names = only_kernel(lambda a, b: (sym.ones_like(a) + b, a * b))
    assert "x0" in names
    assert [ref[0].name for ref in overwrites(node, 0, root)] == ["x1"]
