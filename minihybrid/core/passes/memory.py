"""Chapter 21. memory: assign every intermediate value an offset in one arena.

Defines: `plan_memory`, which returns a `Memory`; `arrange`, which packs live ranges.

Outputs get fresh memory; all other values share the arena, where memory is reused after a
value's last use.
Limits: the order of the steps is kept, though another might need less memory, and the
arena can exceed the peak of live bytes, the lower bound.
"""

import bisect
import math
import random
from itertools import accumulate

from minihybrid.core.graph import the_graph

ALIGN = 64  # bytes: a cache line, the widest vector load
TRIES = 100  # placement orders to try at most
EFFORT = 10**5, 20  # limit of interfering pairs: constant, and per value
AGAIN = "_again"  # name suffix of steps that the backward pass recomputes
IDLE = 8  # outputs to consider for one value


def recomputed(graph):
    """Return the forward steps that `remat` recomputes, also those inside fused nodes."""
    nodes = [
        m for n in graph.nodes for m in (n.attrs["graph"].nodes if "graph" in n.attrs else [n])
    ]
    return [n for n in nodes if n.op is not None and n.name.endswith(AGAIN)]


def places(graph):
    """Return (node, i) -> the reference whose memory it uses; views alias their input."""
    root = {}
    for node in the_graph("plan_memory", graph).nodes:
        for i in range(node.n_outputs):
            is_view = node.op is not None and node.op.view
            root[node, i] = root[node.inputs[0]] if is_view else (node, i)
    return root


class Memory:
    """A memory plan: the location of each value, and the total size.

    offsets:  reference -> byte offset in the arena.
    outs:     reference -> number of the output whose buffer it uses: as that output, or
              borrowed before the output is computed.
    copies:   (reference, output number): outputs that equal inputs or other outputs.
    into:     output number -> the variable whose buffer it overwrites.
    scratch:  step -> the reference of its scratch memory.
    n_again:  number of forward steps that the backward pass recomputes.
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
        """Return the plan as text: one line per buffer, with a bar for its live range."""
        from minihybrid.view.text import text

        return text(self)


def plan_memory(graph, scratch=None, into=None):
    """Assign memory to every value that an operator computes.

    Two values share memory if their live ranges don't overlap. An elementwise step may
    also write into an operand whose live range ends there, because the loop loads each
    element before it stores the result.

    scratch: node -> its scratch memory, by the target's rule; `None` for NumPy.
    into:    output number -> name of the variable whose new value it is, and whose buffer
             it overwrites if the old value has no later use.
    Units:   all sizes and offsets are bytes.
    """
    root = places(graph)
    steps = [n for n in graph.nodes if n.op is not None and not n.op.view]
    number = {n: i for i, n in enumerate(steps)}
    birth = {(n, i): number[n] for n in steps for i in range(n.n_outputs)}
    scratch = {node: buffer for node in steps if (buffer := scratch and scratch(node))}
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
    """Return the inputs that an elementwise step may overwrite.

    Each element must be loaded at the offset of its result, and nowhere else in that
    buffer. The result must depend on it, so that no reordering by the compiler moves the
    load after the store. In a conditional, such as `{b} if {a} != 0 else {c}`, only the
    test always counts: if another output also reads `c`, the compiler may store all of
    `b` first. So it may if the result folds to a constant, as `{a} % 1` of integers and
    `power({a}, 0)` do.
    """
    inner, spec = node.attrs.get("graph"), node.specs[i]
    nodes = [n for n in inner.nodes if n.op] if inner else [node]
    texts = {(n, 0): n.op.scalar(n.attrs, n.specs[0].dtype) for n in nodes}
    if None in texts.values() or any(s != spec for s in node.specs):
        return []
    heads = inner.heads if inner else [(node, 0)]
    needed, elsewhere = {heads[i]}, {*heads} - {heads[i]}
    folds = spec.dtype.kind in "iub" or any("power(" in text for text in texts.values())
    for ref in reversed(texts):
        elsewhere.update(ref[0].inputs if folds and ref in elsewhere else ())
    for ref, text in reversed(texts.items()):
        test = (text.partition(" if ")[2] or text).partition(" else ")[0]
        needed.update(
            r
            for name, r in zip("abcdefgh", ref[0].inputs, strict=False)
            if ref in needed and f"{{{name}}}" in (text if len(node.specs) == 1 else test)
        )
    parts = {root[ref] for ref in node.inputs if _size(ref) != _size(root[ref])}
    operands = [(v, 0) for v in inner.variables] if inner else node.inputs
    return [
        (n, j)
        for (n, j), ref in zip(node.inputs, operands, strict=True)
        if ref in needed - elsewhere and n.specs[j] == spec and root[n, j] not in parts
    ]


def _size(ref):
    return ref[0].specs[ref[1]].size


def _chains(graph, steps, root, number, death, outs):
    """Return reference -> the first value of its chain of in-place updates."""
    chain, in_place = {}, []
    end = {}  # first value of a chain -> its last
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
    """Return output number -> name of the variable that it can overwrite: the one whose
    last use is the elementwise step that computes the output."""
    variables = {n.name: (n, 0) for n in graph.variables}
    last = {root[ref]: node for node in steps for ref in node.inputs}
    last |= {root[ref]: None for ref in graph.heads}  # live to the end
    return {
        k: into[k]
        for (node, i), k in outs.items()
        if k in into
        and last.get(variables[into[k]]) is node
        and (node, i) not in chain
        and variables[into[k]] in overwrites(node, i, root)
    }


def _lifetimes(birth, death, chain):
    """Return first value of a chain -> (first step, last step, nbytes) of its live range."""
    spans = {}
    for ref, born in birth.items():
        first = chain.get(ref, ref)
        begin, end, nbytes = spans.get(first, (born, 0, int(first[0].specs[first[1]].nbytes)))
        spans[first] = min(begin, born), max(end, death[ref]), nbytes
    return spans


def share_outputs(spans, outs):
    """Return value -> an output of equal size and dtype whose buffer it borrows.

    An output's buffer is free until the output is computed. Values are assigned greedily,
    first those that are live while the arena is fullest. Scratch memory stays in the
    arena, where kernels expect it.
    """

    def kind(ref):
        return ref[0].specs[ref[1]].size, ref[0].specs[ref[1]].dtype

    change = [0] * (2 + max((last for _, last, _ in spans.values()), default=0))
    for ref, (first, last, nbytes) in spans.items():
        if ref not in outs:
            change[first] += nbytes
            change[last + 1] -= nbytes
    # The fourth power lets peaks outweigh long, low plateaus.
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


# -- offsets in the arena --------------------------------------------------------------
def arrange(spans):
    """Return (name -> byte offset, size of the arena) for name -> (first, last, nbytes).

    First fit, largest first: each buffer gets the lowest offset that is free during its
    live range. If the arena exceeds the peak of live bytes, the buffers above that peak
    go first in the next try; if there aren't fewer of them, the order is randomized. The
    best try wins.

    Source:  largest first is TensorFlow Lite's offset calculator; promoting the failures is
             squeaky wheel optimization (Joslin, Clements, 1999).

    >>> arrange({"a": (0, 1, 128), "b": (1, 2, 64), "c": (2, 3, 128)})
    ({'a': 0, 'c': 0, 'b': 128}, 192)
    """
    size = {name: max(-(-nbytes // ALIGN), 1) * ALIGN for name, (_, _, nbytes) in spans.items()}
    effort = EFFORT[0] + EFFORT[1] * len(spans)
    near, n_pairs, bound = neighbors(spans, size, effort)
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


def neighbors(spans, size, limit=math.inf):
    """Return (name -> interfering names, number of such pairs, peak of live bytes).

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
    """Return name -> offset: in order, the lowest that is free among interfering buffers."""
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
    """Return name -> offset, reusing freed memory for equal sizes only.

    For thousands of simultaneously live values.
    """
    offsets, free, end = {}, {}, 0
    leaving = iter(sorted(spans, key=lambda name: spans[name][1]))
    expired = next(leaving, None)
    for name in sorted(spans, key=lambda name: spans[name][0]):
        while spans[expired][1] < spans[name][0]:
            free.setdefault(size[expired], []).append(offsets[expired])
            expired = next(leaving)
        if free.get(size[name]):
            offsets[name] = free[size[name]].pop()
        else:
            offsets[name], end = end, end + size[name]
    return offsets
