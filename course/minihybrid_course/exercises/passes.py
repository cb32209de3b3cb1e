"""Checks of passes over the engine's graphs and over nano's.

Uses:    a reader's pass, and programs.
Defines: `after`, a pass's result, if it's a valid graph; `means_the_same`, which compares the
         values of two graphs; `shrinks` and `rearranges`, the checks of whole exercises.
"""

import numpy as np

from minihybrid.core.graph import GraphError
from minihybrid.core.op import Spec
from minihybrid.core.passes import dce, expand, optimize
from minihybrid.core.sym import trace
from minihybrid_course.exercises.judging import NotYet, kind, need, same, tried


def graph_of(function, **shapes):
    """The graph of a function of symbols with these shapes."""
    specs = {name: Spec(shape, np.dtype("float32")) for name, shape in shapes.items()}
    return trace(function, specs)[0]


def after(pass_, graph, text):
    """Return the result of a pass; raise if it isn't a graph."""
    result = tried(f"{getattr(pass_, '__name__', 'the pass')} of `{text}`", pass_, graph)
    need(
        isinstance(result, type(graph)),
        f"a pass must return a Graph, but for `{text}` yours returns {kind(result)}",
    )
    seen = set()
    for node in result.nodes:
        for old in node.inputs:
            old = old[0] if isinstance(old, tuple) else old  # the engine's, or nano's
            need(
                old in seen,
                f"in `{text}`, {node.name} reads {old.name}, which doesn't come before it: "
                "use the new inputs, not those of the old node",
            )
        need(
            node not in seen,
            f"in `{text}`, {node.name} is in the list twice, as it replaces two old nodes: "
            "`dict.fromkeys` keeps one of each",
        )
        seen.add(node)
    for head in result.heads:
        head = head[0] if isinstance(head, tuple) else head
        need(head in seen, f"in `{text}`, the output {head.name} isn't a node of the new graph")
    missing = {v.name for v in graph.variables} - {v.name for v in result.variables}
    need(not missing, f"in `{text}` the variable {min(missing, default='')} is gone")
    return result


def evaluate(graph, values):
    """The values of one of the engine's graphs."""
    return expand(graph).evaluate({v.name: values[v.name] for v in graph.variables})


def means_the_same(before, now, text, values, run=evaluate, rtol=1e-4, atol=1e-5):
    """Check that both graphs compute the same; values: name -> array."""
    for expected, actual in zip(run(before, values), run(now, values), strict=True):
        shapes = f"`{text}` has shape {actual.shape}, but had {expected.shape}"
        need(actual.shape == expected.shape, f"after the pass, {shapes}")
        numbers = ", ".join(f"{name} = {value.tolist()}" for name, value in values.items())
        need(
            np.allclose(actual, expected, rtol=rtol, atol=atol),
            f"the pass changes the semantics of `{text}`: for {numbers}, the result was "
            f"{expected.tolist()} before and is {actual.tolist()} after",
        )


def shrinks(programs, count, what, praise, pass_):
    """Check a pass that keeps the semantics of programs, and makes them cheap enough.

    programs: text -> (function, the highest count, perhaps the shapes of a, b and c).
    count:    a function of the new graph without dead code;  what: a sentence on the count.
    """
    for text, (function, enough, *shapes) in programs.items():
        shapes = dict(zip("abc", *shapes, strict=False)) if shapes else {"x": (2,), "y": (2,)}
        values = {
            name: (np.arange(np.prod(shape)).reshape(shape) + 2 * k + 1.0).astype("float32")
            for k, (name, shape) in enumerate(shapes.items())
        }
        graph = dce(graph_of(function, **shapes))
        now = after(pass_, graph, text)
        means_the_same(graph, now, text, values)
        left = count(dce(now))
        sentence = what.format(text=f"`{text}`", count=left)
        sizes = ", ".join(f"{name}{shape}" for name, shape in shapes.items())
        need(left <= enough, f"after the pass, {sentence} for {sizes}, but {enough} are enough")
    return praise


def rearranges(expected, advice, pass_):
    """Check a pass that returns `expected` of a graph's nodes, and that optimize reports it."""
    graph = graph_of(lambda x, y: x * y + x, x=(2,), y=(2,))
    new = tried("the pass", pass_, graph)
    need(hasattr(new, "heads"), f"a pass must return a Graph, but yours returns {kind(new)}")
    names = ([node.name for node in nodes] for nodes in (new.nodes, expected(graph.nodes)))
    same(*names, "the list of nodes", advice)
    try:
        optimize(graph, (lambda graph: new,))
    except GraphError as error:
        return f"optimize reports: {error}"
    raise NotYet("optimize accepts this graph, so it isn't broken")
