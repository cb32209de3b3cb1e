"""Chapters 11 and 15. What their exercises ask, and how the answers are judged.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: how fast a pass is; 15.4 counts multiplications.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import NDArray
from minihybrid.core.graph import GraphError
from minihybrid.core.op import HybridError
from minihybrid.core.passes import dce
from minihybrid.look.exercises.graphs import NUMBERS, graph_of
from minihybrid.look.exercises.judging import (
    Exercise,
    Part,
    Parts,
    Refusal,
    after,
    kind,
    means_the_same,
    need,
    tried,
)


def checkpoints(function):
    """Judge 11.3: nothing is kept, and the gradient is right for any gradient handed in."""
    runs, data = 0, np.float32([0.5, 1])

    def f(x):
        nonlocal runs
        runs += 1
        return x.tanh() * x

    x = nd.array(data)
    x.attach_grad()
    x.grad[:] = 7
    found = tried("checkpoint(f, x)", function, f, x)
    need(
        isinstance(found, tuple) and len(found) == 2,
        f"checkpoint gives {kind(found)}, but a pair is needed: the result, and a function",
    )
    y, gradient = found
    need(isinstance(y, NDArray), f"the result is {kind(y)}, but an array is needed")
    need(y.node is None, f"the result has a node, {y.node}: a tape is kept; compute f(x) outside")
    need(runs == 1, f"f ran {runs} times before anybody asked for a gradient; once is enough")
    slope = np.tanh(data) + data * (1 - np.tanh(data) ** 2)
    for g in ([1, 1], [2, -3]):
        got = tried(f"gradient(nd.array({g}))", gradient, nd.array(g))
        need(isinstance(got, NDArray), f"gradient gives {kind(got)}, but an array is needed")
        need(
            np.allclose(got.asnumpy(), slope * g, rtol=1e-4),
            f"for f(x) = tanh(x) * x, x = {data.tolist()} and g = {g} the gradient is "
            f"{got.asnumpy().round(4).tolist()}, but {(slope * g).round(4).tolist()} is "
            "needed; hand g to backward",
        )
    before = bool((x.grad == 7).asnumpy().all())
    need(before, "the gradient is right, but x.grad was written over: x.detach() gives a copy")
    return f"f ran {runs} times: no tape is kept in between"


def minus(x, times):
    """X with so many minus signs before it."""
    for _ in range(times):
        x = -x
    return x


SIGNS = {  # small ones first: the function, and how many operators are left
    "-x": (lambda x, y: -x, 1),
    "-(-x)": (lambda x, y: minus(x, 2), 0),
    "-(x + -x)": (lambda x, y: -(x + -x), 3),
    "-(-x) * -y": (lambda x, y: minus(x, 2) * -y, 2),
    "-(-(-x))": (lambda x, y: minus(x, 3), 1),
    "-(-(-(-x)))": (lambda x, y: minus(x, 4), 0),
}


def drops_signs(pass_):
    """Judge 15.3: pairs of minus signs go, and every meaning stays."""
    for text, (function, wanted) in SIGNS.items():
        graph = dce(graph_of(function, x=(2,), y=(2,)))
        now = after(pass_, graph, text)
        means_the_same(graph, now, text, NUMBERS)
        count = dce(now).n_ops
        need(
            count == wanted,
            f"after the pass and dce, `{text}` has {count} operators, but {wanted} are "
            "enough: two signs after one another are still there",
        )
    return "pairs of signs go, single ones stay"


def product_of_three(a, b, c):
    """The chain of 15.4."""
    return nd.dot(nd.dot(a, b), c)


def product_read_twice(a, b, c):
    """A chain whose inner product is a result, too."""
    inner = nd.dot(a, b)
    return nd.dot(inner, c), inner


CHAINS = {  # the function, the shapes, and how many multiplications are enough
    "dot(a, b)": (lambda a, b: nd.dot(a, b), ((2, 3), (3, 2)), 12),
    "dot(dot(a, b), c)": (product_of_three, ((3, 3), (3, 3), (3, 1)), 18),
    "dot(dot(a, b), c), where a is a row": (product_of_three, ((1, 3), (3, 3), (3, 3)), 18),
    "dot(dot(a, b), c), and dot(a, b) again": (product_read_twice, ((3, 3), (3, 3), (3, 1)), 36),
    "dot(dot(a, b, transpose_a=True), c)": (
        lambda a, b, c: nd.dot(nd.dot(a, b, transpose_a=True), c),
        ((2, 3), (2, 3), (3, 1)),
        27,
    ),
}


def multiplications(graph):
    """How many a graph's products take: n k m for (n, k) by (k, m)."""
    count = 0
    for node in graph.nodes:
        if node.op and node.op.name == "dot":
            (left, i), _ = node.inputs
            count += node.specs[0].size * left.specs[i].shape[not node.attrs["transpose_a"]]
    return count


def reassociates(pass_):
    """Judge 15.4: every meaning stays, and no product takes more than it must."""
    for text, (function, shapes, enough) in CHAINS.items():
        shapes = dict(zip("abc", shapes, strict=False))
        graph = graph_of(function, **shapes)
        now = after(pass_, graph, text)
        given = {
            name: np.arange(1, 1 + np.prod(shape), dtype="float32").reshape(shape)
            for name, shape in shapes.items()
        }
        means_the_same(graph, now, text, given)
        count = multiplications(dce(now))
        need(
            count <= enough,
            f"with shapes {', '.join(map(str, shapes.values()))}, `{text}` takes {count} "
            f"multiplications after the pass, but {enough} are enough",
        )
    return "the cheaper order is chosen, and a product that others read is left alone"


EXERCISES = {
    "11.1": Exercise(
        "four numbers: the three of x.grad, and how many gradients were added up",
        Parts(
            "11.1",
            "each read of x gives a gradient, and they are added up",
            Part(
                "x.grad[0]",
                "1f4ade6494",
                "put the first number into the derivative of the whole expression",
                {
                    2: "this may be the slope of x * x alone; + x has a slope, too",
                    1: "this may be the slope of + x alone; x * x has a slope, too",
                    15: "backward gives one gradient for each element, not their sum",
                },
            ),
            Part(
                "x.grad[1]",
                "6a8efda02a",
                "put the second number into the derivative",
                {4: "this may be the slope of x * x alone; + x has a slope, too"},
            ),
            Part(
                "x.grad[2]",
                "93dbe0ad8d",
                "put the last number into the derivative",
                {6: "this may be the slope of x * x alone; + x has a slope, too"},
            ),
            Part(
                "the number of gradients",
                "1f4ade6494",
                "count how often x is an input of a node",
                {
                    2: "a product of x with itself reads x twice",
                    1: "x is read more than once: look at both operators",
                },
            ),
        ),
    ),
    "11.2": Exercise(
        "a function that makes the error, such as `lambda: autograd.grad(y, [b])`",
        Refusal(
            "the message says what the array needs, and when",
            HybridError,
            r"a variable has no place on the tape",
            lambda found: "this array has a gradient; take one without attach_grad()",
            {
                r"not on the tape": "y has no tape; compute it inside of autograd.record()",
                r"is not defined": "this is Python's error; run the cells above",
            },
        ),
    ),
    "11.4": Exercise(
        "the step with the smallest error, such as 0.1",
        Parts(
            "11.4",
            "a longer step measures a curve, a shorter one the last digits",
            Part(
                "the step",
                "3610a41cfb",
                "take the steps 0.1, 0.001 and so on, and print the largest error for each",
                {
                    0.1: "so long a step measures a curve: the error falls with its square",
                    0.001: "the error falls with the square of the step, and goes on falling",
                    1e-11: "two numbers are subtracted that agree in almost all digits",
                    1e-9: "two numbers are subtracted that agree in most of their digits",
                    1e-7: "here the last digits are already worse than the curve",
                    5: "this is the power; the step is 10.0 to the minus that",
                },
            ),
        ),
    ),
    "11.3": Exercise("your function checkpoint(f, x)", checkpoints),
    "15.1": Exercise(
        "three numbers: the operators left after fold, after cse, and after fuse",
        Parts(
            "15.1",
            "fold makes the two sums equal, cse one of them, and fuse one loop of the rest",
            Part(
                "the number after fold",
                "327aa4a9d0",
                "which operators change nothing, whatever x and y are?",
                {
                    5: "x * 1 and - 0 change nothing",
                    4: "x * 1 changes nothing, and - 0 neither",
                    2: "fold does not see that the sums are equal; that is for cse",
                },
            ),
            Part(
                "the number after cse",
                "818e3b155a",
                "which operators read the same inputs now?",
                {
                    3: "without x * 1, both sums read x and y, so they are equal",
                    1: "cse merges equal operators; the product is no sum",
                },
            ),
            Part(
                "the number after fuse",
                "4570983e71",
                "what can run in one loop over the elements?",
                {2: "sum and product are both done element by element, so they share a loop"},
            ),
        ),
    ),
    "15.2": Exercise(
        "a function that makes the error, such as `lambda: optimise(...)`",
        Refusal(
            "the node that it names belongs to the old graph",
            GraphError,
            r"does not come before",
            lambda found: "the pass did its work: in this graph nothing was replaced before",
            {
                r"is no node|the rule gave": "the rule gives something else than a list of places",
                r"is not defined": "this is Python's error; run the cells above",
            },
        ),
    ),
    "15.3": Exercise("your pass double_negative(graph)", drops_signs),
    "15.4": Exercise("your pass reassociate(graph)", reassociates),
}
