"""Chapters 12, 13, 14 and 16. What their exercises ask, and how the answers are judged.

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
from minihybrid.look.exercises.graphs import of_two, refused
from minihybrid.look.exercises.judging import Exercise, Part, Parts, Refusal, kind, need, tried

ELSEWHERE = {r"is not defined": "this is Python's error; a name is missing, run the cells above"}
COUNTED = {  # small ones first
    "x + x": (lambda x: x + x, {"elemwise_add": 1}),
    "x * x * x": (lambda x: x * x * x, {"elemwise_mul": 2}),
    "tanh(x) + tanh(x)": (lambda x: nd.tanh(x) + nd.tanh(x), {"tanh": 2, "elemwise_add": 1}),
}


def counts(function):
    """Judge 13.3: operators by their names, each as often as it was called."""
    for text, (traced, wanted) in COUNTED.items():
        found = tried(f"count_operators of `{text}`", function, traced, (3,))
        need(hasattr(found, "items"), f"for `{text}` it gives {kind(found)}, no names and counts")
        names = dict(found)
        need(
            None not in names and "null" not in names,
            f"for `{text}` variables are counted, too: their `op` is None",
        )
        need(names == wanted, f"for `{text}` it gives {names}, but {wanted} are there")
    found = tried("with two shapes it", function, lambda x, y: x * y, (3,), (3,))
    need(dict(found) == {"elemwise_mul": 1}, f"for `x * y` it gives {dict(found)}")
    return "each operator as often as it was called"


def residual(make):
    """Judge 14.3: what the block makes, and the input on top, eagerly and hybridized."""
    inner = nn.Dense(3)
    block = tried("Residual(nn.Dense(3))", make, inner)
    need(isinstance(block, Block), f"a block is needed, but {kind(block)} was given")
    need(
        len(block.collect_params()) == 2,
        f"the block has {len(block.collect_params())} parameters and not 2: assign the inner "
        "block to an attribute, so that it is a child",
    )
    block.initialize()
    x = nd.array([[1, 2, 3], [4, 5, -6]])
    for how in ("", " after hybridize()"):
        found = tried(f"the block{how}", block, x)
        wanted, name = (x + inner(x)).asnumpy(), f"the block{how}"
        need(np.shape(found) == wanted.shape, f"{name} gives shape {np.shape(found)}, not (2, 3)")
        found = found.asnumpy()
        need(
            not np.allclose(found, inner(x).asnumpy()),
            f"{name} gives what the inner block gives; the input is not added",
        )
        need(
            np.allclose(found, wanted, atol=1e-5),
            f"{name} gives {found.tolist()}, but the input and what the inner block makes of "
            f"it are {wanted.tolist()}",
        )
        block.hybridize()
    return "the input passes by, and shapes follow from what comes"


def turned(pass_):
    """Judge 16.2: a pass that turns the nodes round, and optimise says so."""
    need(callable(pass_), f"a pass is a function, but {kind(pass_)} was handed in")
    graph = of_two(lambda x, y: x * y + x)
    found = tried("the pass", pass_, graph)
    need(hasattr(found, "heads"), f"a pass gives a Graph, but it gave {kind(found)}")
    need(
        len(found.nodes) == len(graph.nodes),
        f"{len(found.nodes)} nodes of {len(graph.nodes)} are left; only their order may change",
    )
    need(
        tuple(found.nodes) != tuple(graph.nodes),
        "the nodes have the old order; a list is turned round by [::-1]",
    )
    need(
        tuple(found.nodes) == tuple(graph.nodes)[::-1],
        f"the order is {', '.join(node.name for node in found.nodes)}, which is not the reverse",
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
                "what can be done to a number before it is written?",
                {
                    3: "that is one an operator; what is done element by element rides along",
                    2: "the product writes each number once, and may do the rest before",
                    0: "somebody must compute the product",
                },
            ),
        ),
    ),
    "12.2": Exercise(
        "a function that makes the error, such as `lambda: ...`",
        Refusal(
            "the text is read, for there may be enough to see; to run the graph takes a record",
            HybridError,
            r"squareminus",
            lambda found: (
                "the text was read, and nobody has run the graph yet: eval(x=...) does"
                if isinstance(found, Symbol)
                else "the graph was read and run; is squareminus really in the text?"
            ),
            {r"not JSON": "this is no text of a graph", **ELSEWHERE},
        ),
    ),
    "13.1": Exercise(
        "a pair: how many operators, and the first one's, as graph.show() writes it",
        Parts(
            "13.1",
            "0 + x is an operator, and comes first",
            Part(
                "the number of operators",
                "e128d0365b",
                "sum begins with a value of its own",
                {
                    2: "sum begins with 0, and 0 + x is an operator on an array and a number",
                    1: "each + is an operator; sum is a loop of Python's",
                    4: "x is a variable, and no operator",
                },
            ),
            Part(
                "the first one",
                "4feccad1c0",
                "look at the first line of graph.show() that is no variable, behind the =",
                {
                    "elemwise_add": "the first + adds a number to an array",
                    "_plusscalar0": "that is the node's name; the operator's stands behind the =",
                    "sum": "Python's sum is a loop, which the tracer does not see",
                },
            ),
        ),
    ),
    "13.2": Exercise(
        "a function that makes the error, such as `lambda: ...`",
        Refusal(
            "a traced function must give what it made of its inputs",
            HybridError,
            r"must return|returns? ",
            lambda found: f"it gave {kind(found)}: the function must return a number of Python's",
            ELSEWHERE,
        ),
    ),
    "13.3": Exercise("your function count_operators(function, *shapes)", counts),
    "14.1": Exercise(
        "four shapes: the weight and the output of the first layer, and those of the second",
        Parts(
            "14.1",
            "one layer joins the axes, the other keeps them",
            Part(
                "the first weight",
                "a75b37e4ee",
                "outputs by inputs; how many inputs has one sample?",
                {(15, 4): "a weight is outputs by inputs", (4, 5): "all axes but the first join"},
            ),
            Part(
                "the first output",
                "02c1ba9d66",
                "one row a sample",
                {(2, 3, 4): "the axes were joined", (4, 2): "samples come first"},
            ),
            Part(
                "the second weight",
                "14ef65efca",
                "not flattened, the layer works on the last axis",
                {(4, 15): "not flattened, only the last axis counts", (5, 4): "outputs by inputs"},
            ),
            Part(
                "the second output",
                "33d10c3452",
                "all axes but the last stay",
                {(2, 4): "the other axes stay", (6, 4): "the other axes stay apart"},
            ),
        ),
    ),
    "14.2": Exercise(
        "a function that makes the error, such as `lambda: net(...)`",
        Refusal(
            "the message names the operator, the shape that came and the one that fits",
            ShapeError,
            r"\(\d+, 6\)",
            lambda found: f"it gave shape {np.shape(found)}: 5 columns it knows, 6 are asked for",
            {r"shape": "shapes disagree, but not because of 6 columns", **ELSEWHERE},
        ),
    ),
    "14.3": Exercise("your class Residual", residual),
    "16.1": Exercise(
        "a pair: the numbers of the two rules, counted from 1",
        Parts(
            "16.1",
            "the other two hide infinities, zeros, and what is not a number",
            Part(
                "the first rule",
                "448c49a4ff",
                "relu of relu gives what relu gave",
                {2: "infinity minus infinity is not a number", 4: "zero by zero is not a number"},
            ),
            Part(
                "the second rule",
                "f61c02d22e",
                "which of the others is true also for infinity and zero?",
                {
                    2: "infinity minus infinity is not a number, and not 0",
                    4: "zero divided by zero is not a number, and not 1",
                },
            ),
            whole={(2, 4): "these are the two that are not true for all numbers"},
        ),
    ),
    "16.2": Exercise("your pass, a function from a graph to a graph", turned),
}
