"""Chapters 12, 13, 14 and 16: checkers of their exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: exercises that measure, and those whose answer is a sentence.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.block import Block
from minihybrid.core.op import HybridError, ShapeError
from minihybrid.core.sym import Symbol
from minihybrid.gluon import nn
from minihybrid_course.exercises.graphs import of_two, refused
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal, kind, need, tried

ELSEWHERE = {r"is not defined": "this is Python's own error: run the cells above"}
COUNTED = {  # small ones first
    "x + x": (lambda x: x + x, {"elemwise_add": 1}),
    "x * x * x": (lambda x: x * x * x, {"elemwise_mul": 2}),
    "tanh(x) + tanh(x)": (lambda x: nd.tanh(x) + nd.tanh(x), {"tanh": 2, "elemwise_add": 1}),
}


def counts(function):
    """Check 13.3: operators by name, with the number of calls."""
    for text, (traced, wanted) in COUNTED.items():
        found = tried(f"count_operators of `{text}`", function, traced, (3,))
        need(
            hasattr(found, "items"),
            f"for `{text}`, expected names and counts, but got {kind(found)}",
        )
        names = dict(found)
        need(
            None not in names and "null" not in names,
            f"for `{text}`, variables are counted as well: their `op` is None",
        )
        need(names == wanted, f"for `{text}`, it returns {names} instead of {wanted}")
    found = tried("with two shapes it", function, lambda x, y: x * y, (3,), (3,))
    need(dict(found) == {"elemwise_mul": 1}, f"for `x * y`, it returns {dict(found)}")
    return "each operator with its number of calls"


def residual(make):
    """Check 14.3: the inner block's output plus the input, eager and hybridized."""
    inner = nn.Dense(3)
    block = tried("Residual(nn.Dense(3))", make, inner)
    need(isinstance(block, Block), f"expected a block, but got {kind(block)}")
    need(
        len(block.collect_params()) == 2,
        f"the block has {len(block.collect_params())} parameters instead of 2: assign the inner "
        "block to an attribute, which makes it a child",
    )
    block.initialize()
    x = nd.array([[1, 2, 3], [4, 5, -6]])
    for how in ("", " after hybridize()"):
        found = tried(f"the block{how}", block, x)
        wanted, name = (x + inner(x)).asnumpy(), f"the block{how}"
        need(np.shape(found) == wanted.shape, f"{name} returns shape {np.shape(found)}, not (2, 3)")
        found = found.asnumpy()
        need(
            not np.allclose(found, inner(x).asnumpy()),
            f"{name} returns the inner block's output, without the input",
        )
        need(
            np.allclose(found, wanted, atol=1e-5),
            f"{name} returns {found.tolist()}, but the input plus the inner block's output is "
            f"{wanted.tolist()}",
        )
        block.hybridize()
    return "the input bypasses the inner block, and shapes are inferred from the data"


def turned(pass_):
    """Check 16.2: a pass that reverses the nodes, and optimise reports it."""
    need(callable(pass_), f"expected a pass, which is a function, but got {kind(pass_)}")
    graph = of_two(lambda x, y: x * y + x)
    found = tried("the pass", pass_, graph)
    need(hasattr(found, "heads"), f"a pass must return a Graph, but yours returns {kind(found)}")
    need(
        len(found.nodes) == len(graph.nodes),
        f"{len(found.nodes)} of {len(graph.nodes)} nodes are left; change only their order",
    )
    need(
        tuple(found.nodes) != tuple(graph.nodes),
        "the nodes have the old order; [::-1] reverses a list",
    )
    need(
        tuple(found.nodes) == tuple(graph.nodes)[::-1],
        f"the order is {', '.join(node.name for node in found.nodes)}, which isn't the reverse",
    )
    return refused(graph, found)


EXERCISES = {
    "12.1": Exercise(
        "the number of kernels",
        Parts(
            "12.1",
            "a product with an epilogue",
            Part(
                "the number of kernels",
                "1416d3cb3e",
                "what can be done to an element before it's stored?",
                {
                    3: "that's one per operator, but elementwise ones are fused into the product",
                    2: "the product stores each element once, and can apply the rest before",
                    0: "the product needs a kernel",
                },
            ),
        ),
    ),
    "12.2": Exercise(
        "a function that makes the error, such as `lambda: ...`",
        Refusal(
            "loading succeeds, since there's a graph to look at; running it needs the definition",
            HybridError,
            r"squareminus",
            lambda found: (
                "the graph was loaded, but hasn't been run yet: call eval(x=...)"
                if isinstance(found, Symbol)
                else "the graph was loaded and run; does the text really contain squareminus?"
            ),
            {r"not JSON": "that text isn't a graph", **ELSEWHERE},
        ),
    ),
    "13.1": Exercise(
        "a pair: how many operators, and the first one's, as graph.show() writes it",
        Parts(
            "13.1",
            "0 + x is an operator, and it comes first",
            Part(
                "the number of operators",
                "e128d0365b",
                "sum starts from an initial value",
                {
                    2: "sum starts from 0, and 0 + x is an operator on an array and a scalar",
                    1: "each + is an operator; Python's sum is a loop",
                    4: "x is a variable, not an operator",
                },
            ),
            Part(
                "the first one",
                "4feccad1c0",
                "look at the first line of graph.show() that isn't a variable, after the =",
                {
                    "elemwise_add": "the first + adds a scalar to an array",
                    "_plusscalar0": "that's the name of the node; the operator comes after the =",
                    "sum": "Python's sum is a loop, and the tracer sees only its operators",
                },
            ),
        ),
    ),
    "13.2": Exercise(
        "a function that makes the error, such as `lambda: ...`",
        Refusal(
            "a traced function must return symbols computed from its inputs",
            HybridError,
            r"must return|returns? ",
            lambda found: f"it returned {kind(found)}: make the function return a Python number",
            ELSEWHERE,
        ),
    ),
    "13.3": Exercise("your function count_operators(function, *shapes)", counts),
    "14.1": Exercise(
        "four shapes: the weight and the output of the first layer, and those of the second",
        Parts(
            "14.1",
            "one layer merges the axes, the other keeps them",
            Part(
                "the first weight",
                "a75b37e4ee",
                "outputs by inputs; how many inputs does a sample have?",
                {
                    (15, 4): "a weight is outputs by inputs",
                    (4, 5): "all axes but the first are merged",
                },
            ),
            Part(
                "the first output",
                "02c1ba9d66",
                "one row per sample",
                {(2, 3, 4): "the axes were merged", (4, 2): "samples come first"},
            ),
            Part(
                "the second weight",
                "14ef65efca",
                "without flattening, the layer works on the last axis",
                {
                    (4, 15): "without flattening, only the last axis counts",
                    (5, 4): "outputs by inputs",
                },
            ),
            Part(
                "the second output",
                "33d10c3452",
                "all axes but the last stay",
                {(2, 4): "the other axes stay", (6, 4): "the other axes aren't merged"},
            ),
        ),
    ),
    "14.2": Exercise(
        "a function that makes the error, such as `lambda: net(...)`",
        Refusal(
            "the message names the operator, the shape it got and the shape it needs",
            ShapeError,
            r"\(\d+, 6\)",
            lambda found: f"it returned shape {np.shape(found)}: it knows 5 columns, so pass it 6",
            {r"shape": "the shapes don't match, but not because of 6 columns", **ELSEWHERE},
        ),
    ),
    "14.3": Exercise("your class Residual", residual),
    "16.1": Exercise(
        "a pair: the numbers of the two rules, counted from 1",
        Parts(
            "16.1",
            "the other two hide infinities, zeros and NaN",
            Part(
                "the first rule",
                "448c49a4ff",
                "applying relu twice gives the same as once",
                {2: "infinity minus infinity is NaN", 4: "zero divided by zero is NaN"},
            ),
            Part(
                "the second rule",
                "f61c02d22e",
                "which of the others also holds for infinity and zero?",
                {
                    2: "infinity minus infinity is NaN, not 0",
                    4: "zero divided by zero is NaN, not 1",
                },
            ),
            whole={(2, 4): "these are the two that fail on some floats"},
            ordered=False,
        ),
    ),
    "16.2": Exercise("your pass, a function from a graph to a graph", turned),
}
