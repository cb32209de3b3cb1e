"""Chapter 09. memory: every buffer of a plan gets its place in one arena.

Takes:   a graph, fused or not.
Gives:   `Memory`: where each value lies. Outputs are fresh memory for the user; all
         else shares one arena, where a place is used again once its last reader is
         done.

What is left out: an exact solution; the places are found by best fit, in program order.
"""

import bisect

from minihybrid.op import Node, Spec
from minihybrid.passes.rows import rows_of

ALIGN = 64  # bytes: a cache line, the widest vector load


def places(graph):
    """(node, i) -> the reference whose memory it shares; views own no memory."""
    root = {}
    for node in graph.nodes:
        for i in range(node.n_outputs):
            is_view = node.op is not None and node.op.view
            root[node, i] = root[node.inputs[0]] if is_view else (node, i)
    return root


class Memory:
    """Where each value lies, and how many bytes that takes.

    offsets:  reference -> byte offset in the arena.
    outs:     reference -> number of the output whose memory it uses.
    copies:   (reference, output number): outputs that are inputs or other outputs.
    scratch:  step -> the reference of what its loops need beside, while they run.
    """

    def __init__(self, offsets, outs, copies, in_place, nbytes, outs_nbytes, steps,
                 scratch):
        self.offsets, self.outs, self.copies = offsets, outs, copies
        self.in_place = in_place        # (written reference, reference it overwrites)
        self.nbytes = nbytes            # of the arena
        self.outs_nbytes = outs_nbytes  # of the fresh outputs
        self.steps = steps              # (name, nbytes, first step, last step, offset)
        self.scratch = scratch

    def show(self):
        """The plan as text: a line a buffer, with a bar from birth to death."""
        lines = [f"arena {self.nbytes} bytes, outputs {self.outs_nbytes} bytes"]
        end = max((last for *_, last, _ in self.steps), default=0)
        for name, nbytes, first, last, where in self.steps:
            bar = "." * first + "#" * (last - first + 1) + "." * (end - last)
            lines.append(f"{name:<20} {nbytes:>9} bytes  {where:<12} {bar}")
        return "\n".join(lines)


def plan_memory(graph, scratch=True):
    """Find a place for every value that an operator computes.

    Two values share a place if one dies before the other is born, or, for an
    elementwise step, at the moment when it is born: the loop reads an element before it
    writes it.

    scratch: reserve what compiled loops need beside; NumPy's calls need nothing.
    Units:   all sizes and offsets are bytes.
    """
    root = places(graph)
    steps = [n for n in graph.nodes if n.op is not None and not n.op.view]
    number = {n: i for i, n in enumerate(steps)}
    birth = {(n, i): number[n] for n in steps for i in range(n.n_outputs)}
    scratch = {node: made for node in steps if (made := scratch and scratch_of(node))}
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
    chained_outs = {chain.get(ref, ref): k for ref, k in outs.items()}
    offsets, nbytes = _place(_lifetimes(birth, death, chain, chained_outs))
    names = graph.names() | {n: n.name for n, _ in scratch.values()}
    found = {ref: chained_outs.get(chain.get(ref, ref)) for ref in birth}
    rows = [(names[n], n.specs[i].nbytes, birth[n, i], min(death[n, i], len(steps) - 1),
             f"output {found[n, i]}" if found[n, i] is not None else
             f"at {offsets[chain.get((n, i), (n, i))]}") for n, i in birth]
    return Memory(
        {ref: offsets[chain.get(ref, ref)] for ref in birth if found[ref] is None},
        {ref: k for ref, k in found.items() if k is not None},
        copies, in_place, nbytes, sum(n.specs[i].nbytes for n, i in graph.heads), rows,
        scratch)


def scratch_of(node):
    """A value that holds what a step's loops need beside; `None` if that is nothing."""
    inner, rows = node.attrs.get("graph"), rows_of(node)
    size, dtype = rows.scratch if rows else (0, None)
    for n in inner.nodes if inner else [node]:
        if n.op is not None and n.op.scratch and not size:
            ins = [m.specs[i] for m, i in n.inputs]
            size, dtype = n.op.scratch(ins, n.specs, **n.attrs), n.specs[0].dtype
    if not size:
        return None
    return Node(None, name="scratch", specs=(Spec((size,), dtype),)), 0


def overwrites(node, i):
    """The inputs that an elementwise step may write over: read at one place."""
    inner = node.attrs.get("graph")
    nodes = [n for n in inner.nodes if n.op] if inner else [node]
    if i or not all(n.op.scalar(n.attrs) is not None for n in nodes):
        return []
    spec = node.specs[i]
    if any(s != spec for s in node.specs):
        return []
    return [ref for ref in node.inputs if ref[0].specs[ref[1]] == spec]


def _chains(graph, steps, root, number, death, outs):
    """reference -> the first value of the chain that is written in one place."""
    chain, in_place = {}, []
    end = {}  # first value of a chain -> its newest value
    for node in steps:
        for ref in overwrites(node, 0):
            old = root[ref]
            first = chain.get(old, old)
            if old in death and death[old] == number[node] and old not in outs and \
                    end.get(first, old) == old:
                chain[node, 0] = first
                end[first] = (node, 0)
                in_place.append(((node, 0), old))
                break
    return chain, in_place


def _lifetimes(birth, death, chain, outs):
    """(birth, death, nbytes, reference) of every chain that is not an output's."""
    spans = {}
    for ref, born in birth.items():
        first = chain.get(ref, ref)
        if first in outs:
            continue
        old = spans.get(first, (born, 0))
        spans[first] = (min(old[0], born), max(old[1], death[ref]))
    return sorted(((b, d, first[0].specs[first[1]].nbytes, first)
                   for first, (b, d) in spans.items()), key=lambda row: row[:2])


def _place(lifetimes):
    """reference -> offset by best fit, and the arena's size."""
    free, free_at, dying, end = [], {}, {}, 0
    offsets, now = {}, 0
    for born, dies, nbytes, ref in lifetimes:
        for step in range(now, born):
            for offset, size in dying.pop(step, ()):
                free, free_at = _release(free, free_at, offset, size)
        now = max(now, born)
        size = max(-(-nbytes // ALIGN) * ALIGN, ALIGN)
        at = bisect.bisect_left(free, (size, 0))
        if at < len(free):
            found, offset = free.pop(at)
            del free_at[offset]
            if found > size:
                free, free_at = _release(free, free_at, offset + size, found - size)
        elif end in {o + s for o, s in free_at.items()}:  # grow the last free place
            offset = next(o for o, s in free_at.items() if o + s == end)
            free.remove((free_at.pop(offset), offset))
            end = offset + size
        else:
            offset, end = end, end + size
        offsets[ref] = offset
        dying.setdefault(dies, []).append((offset, size))
    return offsets, max((offsets[r] + n for *_, n, r in lifetimes), default=0)


def _release(free, free_at, offset, size):
    """Give a place back, joined with the free places on both sides."""
    for start, length in list(free_at.items()):
        if start + length == offset or offset + size == start:
            free.remove((length, start))
            del free_at[start]
            offset, size = min(offset, start), size + length
    bisect.insort(free, (size, offset))
    free_at[offset] = size
    return free, free_at
