"""Chapter 21. memory: every buffer of a plan gets its place in one arena.

Takes:   a graph, fused or not.
Gives:   `Memory`: where each value lies. Outputs are fresh memory for the user; all
         else shares one arena, where a place is used again once its last reader is
         done. `arrange` finds the places.

What is left out: another order of the steps, which could need less; and a proof that
nothing smaller exists, where the arena is larger than what is alive at once.
"""

import bisect
import math
import random
from itertools import accumulate

from minihybrid.core.graph import the_graph

ALIGN = 64  # bytes: a cache line, the widest vector load
TRIES = 100  # orders that are tried at most,
EFFORT = 10**5, 20  # as long as no more pairs of values are looked at: all, and a value
AGAIN = "_again"  # how names end of steps that the backward pass computes again
IDLE = 8  # outputs that are looked at for one value


def recomputed(graph):
    """The steps that `remat` made of steps of a forward pass, also in fused ones."""
    nodes = [
        m for n in graph.nodes for m in (n.attrs["graph"].nodes if "graph" in n.attrs else [n])
    ]
    return [n for n in nodes if n.op is not None and n.name.endswith(AGAIN)]


def places(graph):
    """(node, i) -> the reference whose memory it shares; views own no memory."""
    root = {}
    for node in the_graph("plan_memory", graph).nodes:
        for i in range(node.n_outputs):
            is_view = node.op is not None and node.op.view
            root[node, i] = root[node.inputs[0]] if is_view else (node, i)
    return root


class Memory:
    """Where each value lies, and how many bytes that takes.

    offsets:  reference -> byte offset in the arena.
    outs:     reference -> number of the output whose memory it uses: as that output, or
              before it is written.
    copies:   (reference, output number): outputs that are inputs or other outputs.
    into:     output number -> the variable that it is written over.
    scratch:  step -> the reference of what its loops need beside, while they run.
    n_again:  how many steps of a forward pass are computed again.
    """

    n_again = 0

    def __init__(self, offsets, outs, copies, into, in_place, nbytes, outs_nbytes, steps, scratch):
        self.offsets, self.outs, self.copies, self.into = offsets, outs, copies, into
        self.in_place = in_place  # (written reference, reference it overwrites)
        self.nbytes = nbytes  # of the arena
        self.outs_nbytes = outs_nbytes  # of the fresh outputs
        self.steps = steps  # (name, nbytes, first step, last step, offset)
        self.scratch = scratch

    def __repr__(self):
        return self.show()

    def show(self):
        """The plan as text: a line a buffer, with a bar from birth to death."""
        from minihybrid.view.text import text

        return text(self)


def plan_memory(graph, scratch=None, into=None):
    """Find a place for every value that an operator computes.

    Two values share a place if one dies before the other is born, or, for an
    elementwise step, at the moment when it is born: the loop reads an element before it
    writes it.

    scratch: node -> what its loops need beside, by the rule of the target; `None` for
             NumPy, whose calls need nothing.
    into:    output number -> name of the variable whose new value it is. Where nobody
             reads the old one later, it is written over.
    Units:   all sizes and offsets are bytes.
    """
    root = places(graph)
    steps = [n for n in graph.nodes if n.op is not None and not n.op.view]
    number = {n: i for i, n in enumerate(steps)}
    birth = {(n, i): number[n] for n in steps for i in range(n.n_outputs)}
    scratch = {node: made for node in steps if (made := scratch and scratch(node))}
    birth |= {ref: number[node] for node, ref in scratch.items()}
    death = dict(birth)
    for node in steps:
        for ref in node.inputs:
            if root[ref] in death:
                death[root[ref]] = number[node]
    outs, copies = {}, []
    for k, ref in enumerate(graph.heads):
        if root[ref] in birth and root[ref] not in outs:
            outs[root[ref]] = k
            death[root[ref]] = len(steps)
        else:
            copies.append((ref, k))
    chain, in_place = _chains(graph, steps, root, number, death, outs)
    spans = _lifetimes(birth, death, chain)
    output = {chain.get(ref, ref): k for ref, k in outs.items()}
    into = _written_over(graph, steps, root, outs, chain, into or {})
    output |= share_outputs(spans, {ref: k for ref, k in output.items() if k not in into})
    offsets, nbytes = arrange({first: span for first, span in spans.items() if first not in output})
    names = graph.names() | {n: n.name for n, _ in scratch.values()}
    output = {ref: output.get(chain.get(ref, ref)) for ref in birth}
    where = {
        ref: f"at {offsets[chain.get(ref, ref)]}" if k is None else f"output {k}"
        for ref, k in output.items()
    }
    rows = [
        (names[n], n.specs[i].nbytes, birth[n, i], min(death[n, i], len(steps) - 1), where[n, i])
        for n, i in birth
    ]
    memory = Memory(
        {ref: offsets[chain.get(ref, ref)] for ref in birth if output[ref] is None},
        {ref: k for ref, k in output.items() if k is not None},
        copies,
        into,
        in_place,
        nbytes,
        sum(n.specs[i].nbytes for k, (n, i) in enumerate(graph.heads) if k not in into),
        rows,
        scratch,
    )
    memory.n_again = len(recomputed(graph))
    return memory


def overwrites(node, i, root):
    """The inputs that an elementwise step may write over: each number is read where the
    result of it goes, and nowhere else in the same memory. The result needs it, so it is
    read before, in whatever order the compiler puts what does not depend on each other.
    Of a choice, such as `{b} if {a} != 0 else {c}`, only the test is always needed: where
    another output reads `c`, too, the compiler may copy all of `b` first.
    """
    inner, spec = node.attrs.get("graph"), node.specs[i]
    nodes = [n for n in inner.nodes if n.op] if inner else [node]
    texts = {(n, 0): n.op.scalar(n.attrs, n.specs[0].dtype) for n in nodes}
    if None in texts.values() or any(s != spec for s in node.specs):
        return []
    needed = {inner.heads[i] if inner else (node, 0)}
    for ref, text in reversed(texts.items()):
        test = (text.partition(" if ")[2] or text).partition(" else ")[0]
        needed.update(
            r
            for name, r in zip("abcdefgh", ref[0].inputs, strict=False)
            if ref in needed and f"{{{name}}}" in (text if len(node.specs) == 1 else test)
        )
    parts = {root[ref] for ref in node.inputs if _size(ref) != _size(root[ref])}
    own = [(v, 0) for v in inner.variables] if inner else node.inputs
    return [
        (n, j)
        for (n, j), ref in zip(node.inputs, own, strict=True)
        if ref in needed and n.specs[j] == spec and root[n, j] not in parts
    ]


def _size(ref):
    return ref[0].specs[ref[1]].size


def _chains(graph, steps, root, number, death, outs):
    """reference -> the first value of the chain that is written in one place."""
    chain, in_place = {}, []
    end = {}  # first value of a chain -> its newest value
    for node in steps:
        for ref in overwrites(node, 0, root):
            old = root[ref]
            first = chain.get(old, old)
            if (
                old in death
                and death[old] == number[node]
                and old not in outs
                and end.get(first, old) == old
            ):
                chain[node, 0] = first
                end[first] = (node, 0)
                in_place.append(((node, 0), old))
                break
    return chain, in_place


def _written_over(graph, steps, root, outs, chain, into):
    """output number -> name, for those whose variable is read last by the step that
    computes the output, element by element."""
    variables = {n.name: (n, 0) for n in graph.variables}
    last = {root[ref]: node for node in steps for ref in node.inputs}
    last |= {root[ref]: None for ref in graph.heads}  # read when all is done
    return {
        k: into[k]
        for (node, i), k in outs.items()
        if k in into
        and last.get(variables[into[k]]) is node
        and (node, i) not in chain
        and variables[into[k]] in overwrites(node, i, root)
    }


def _lifetimes(birth, death, chain):
    """first value of a chain -> (step that writes it, last step that reads, nbytes)."""
    spans = {}
    for ref, born in birth.items():
        first = chain.get(ref, ref)
        begin, end, nbytes = spans.get(first, (born, 0, int(first[0].specs[first[1]].nbytes)))
        spans[first] = min(begin, born), max(end, death[ref]), nbytes
    return spans


def share_outputs(spans, outs):
    """value -> an output of its size and dtype, for values that die before that begins.

    An output's memory is free until its value is computed. Values are placed greedily,
    first those that are alive while the arena is fullest. Scratch stays in the arena,
    where each kernel looks for it.
    """

    def kind(ref):
        return ref[0].specs[ref[1]].size, ref[0].specs[ref[1]].dtype

    change = [0] * (2 + max((last for _, last, _ in spans.values()), default=0))
    for ref, (first, last, nbytes) in spans.items():
        if ref not in outs:
            change[first] += nbytes
            change[last + 1] -= nbytes
    # The fourth power lets the largest sum of bytes outweigh many small ones.
    pressure = [0, *accumulate(alive**4 for alive in accumulate(change))]

    def relief(ref):
        first, last, _ = spans[ref]
        return pressure[last + 1] - pressure[first], last

    idle, shared = {}, {}  # kind -> [(output, the steps in which it is used)]
    for ref, k in sorted(outs.items(), key=lambda out: -spans[out[0]][0]):
        idle.setdefault(kind(ref), []).append((k, [(spans[ref][0], math.inf)]))
    fitting = [
        ref for ref in spans if ref[0].op is not None and ref not in outs and kind(ref) in idle
    ]
    for ref in sorted(fitting, key=relief, reverse=True):
        first, last, _ = spans[ref]
        for k, used in idle[kind(ref)][:IDLE]:
            at = bisect.bisect(used, (first, last))
            if (at == 0 or used[at - 1][1] < first) and last < used[at][0]:
                used.insert(at, (first, last))
                shared[ref] = k
                break
    return shared


# -- places in the arena ---------------------------------------------------------------
def arrange(spans):
    """(name -> byte offset, bytes of the arena), for name -> (first, last, nbytes).

    Largest first, each at the lowest place that is free while it lives. If the arena is
    larger than what lives at one time, those that stick out choose first in the next
    try; if these do not become fewer, chance has a say in it. The best try counts.

    Source:  largest first is the offset calculator of TensorFlow Lite; to serve first
             who fared badly is squeaky wheel optimisation (Joslin, Clements, 1999).

    >>> arrange({"a": (0, 1, 128), "b": (1, 2, 64), "c": (2, 3, 128)})
    ({'a': 0, 'c': 0, 'b': 128}, 192)
    """
    size = {name: max(-(-nbytes // ALIGN), 1) * ALIGN for name, (_, _, nbytes) in spans.items()}
    effort = EFFORT[0] + EFFORT[1] * len(spans)
    near, n_pairs, bound = neighbours(spans, size, effort)
    tries = min(TRIES, effort // max(n_pairs, 1))
    best, least, few = recycled(spans, size) if tries == 0 else {}, math.inf, math.inf
    order, chance = sorted(spans, key=lambda name: -size[name]), random.Random(0)
    for _ in range(tries):
        offsets = first_fit(order, size, near)
        ends = {name: at + size[name] for name, at in offsets.items()}
        peak = max(ends.values(), default=0)
        if peak < least:
            best, least = offsets, peak
        if least == bound:
            break
        too_high = {name for name in order if ends[name] > bound}
        if len(too_high) < few:
            order.sort(key=lambda name: name not in too_high)
            few = len(too_high)
        else:
            order.sort(key=lambda name: -size[name] * chance.random())
            few = math.inf
    return best, max((at + spans[name][2] for name, at in best.items()), default=0)


def neighbours(spans, size, limit=math.inf):
    """(name -> names that live at the same time, pairs of them, most bytes at once).

    Stops above a limit of pairs.
    """
    near, alive, n_pairs, most = {}, [], 0, 0
    for name in sorted(spans, key=lambda name: spans[name][0]):
        alive = [other for other in alive if spans[other][1] >= spans[name][0]]
        near[name] = alive.copy()
        for other in alive:
            near[other].append(name)
        n_pairs += len(alive)
        if n_pairs > limit:
            break
        alive.append(name)
        most = max(most, sum(map(size.get, alive)))
    return near, n_pairs, most


def first_fit(order, size, near):
    """name -> offset: each in turn at the lowest place between its neighbours."""
    offsets = {}
    for name in order:
        at, placed = 0, [other for other in near[name] if other in offsets]
        for start, end in sorted((offsets[n], offsets[n] + size[n]) for n in placed):
            if start - at >= size[name]:
                break
            at = max(at, end)
        offsets[name] = at
    return offsets


def recycled(spans, size):
    """name -> offset: a place that has become free is used for the same size only.

    The plan for thousands of values that all live at one time.
    """
    offsets, free, end = {}, {}, 0
    leaving = iter(sorted(spans, key=lambda name: spans[name][1]))
    gone = next(leaving, None)
    for name in sorted(spans, key=lambda name: spans[name][0]):
        while spans[gone][1] < spans[name][0]:
            free.setdefault(size[gone], []).append(offsets[gone])
            gone = next(leaving)
        if free.get(size[name]):
            offsets[name] = free[size[name]].pop()
        else:
            offsets[name], end = end, end + size[name]
    return offsets
