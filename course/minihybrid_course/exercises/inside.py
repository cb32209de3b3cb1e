"""Chapters 11 and 15: checkers of their exercises.

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
from minihybrid_course.exercises.graphs import NUMBERS, graph_of
from minihybrid_course.exercises.judging import (
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
    """Check 11.3: no tape is kept, and the gradient is right for any incoming gradient."""
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
        f"expected a pair of the result and a function, but checkpoint returns {kind(found)}",
    )
    y, gradient = found
    need(isinstance(y, NDArray), f"the result is {kind(y)}, but should be an array")
    need(y.node is None, f"the result has a node, {y.node}, so a tape was kept; don't record")
    need(runs == 1, f"f ran {runs} times before any gradient was requested; once is enough")
    slope = np.tanh(data) + data * (1 - np.tanh(data) ** 2)
    for g in ([1, 1], [2, -3]):
        got = tried(f"gradient(nd.array({g}))", gradient, nd.array(g))
        need(isinstance(got, NDArray), f"gradient returns {kind(got)}, but should return an array")
        need(
            np.allclose(got.asnumpy(), slope * g, rtol=1e-4),
            f"for f(x) = tanh(x) * x, x = {data.tolist()} and g = {g}, the gradient is "
            f"{got.asnumpy().round(4).tolist()} instead of {(slope * g).round(4).tolist()}: "
            "pass g to backward",
        )
    before = bool((x.grad == 7).asnumpy().all())
    need(before, "the gradient is right, but you overwrote x.grad: use x.detach()")
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
    """Check 15.3: pairs of minus signs go, and the semantics stay."""
    for text, (function, wanted) in SIGNS.items():
        graph = dce(graph_of(function, x=(2,), y=(2,)))
        now = after(pass_, graph, text)
        means_the_same(graph, now, text, NUMBERS)
        count = dce(now).n_ops
        need(
            count == wanted,
            f"after the pass and dce, `{text}` has {count} operators, but {wanted} are "
            "enough: there are still two consecutive signs",
        )
    return "pairs of signs are removed, single ones stay"


def product_of_three(a, b, c):
    """The chain of 15.4."""
    return nd.dot(nd.dot(a, b), c)


def product_read_twice(a, b, c):
    """A chain whose inner product is also a result."""
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
    """Check 15.4: the semantics stay, and no product takes more than it must."""
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
    return "it picks the cheaper order, and leaves a product with other users alone"


EXERCISES = {
    "11.1": Exercise(
        "four numbers: the three of x.grad, and how many gradients were added up",
        Parts(
            "11.1",
            "each use of x contributes a gradient, and they add up",
            Part(
                "x.grad[0]",
                "1f4ade6494",
                "evaluate the derivative of the whole expression at the first element",
                {
                    2: "that may be the slope of x * x alone; + x also has a slope",
                    1: "that may be the slope of + x alone; x * x also has a slope",
                    15: "backward computes one gradient per element, not their sum",
                },
            ),
            Part(
                "x.grad[1]",
                "6a8efda02a",
                "evaluate the derivative at the second element",
                {4: "that may be the slope of x * x alone; + x also has a slope"},
            ),
            Part(
                "x.grad[2]",
                "93dbe0ad8d",
                "evaluate the derivative at the last element",
                {6: "that may be the slope of x * x alone; + x also has a slope"},
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
            "the message names the missing call, and when to make it",
            HybridError,
            r"a variable has no place on the tape",
            lambda found: "this array has a gradient; use one without attach_grad()",
            {
                r"not on the tape": "y has no tape; compute it inside autograd.record()",
                r"is not defined": "this is Python's own error: run the cells above",
            },
        ),
    ),
    "11.4": Exercise(
        "the step with the smallest error, such as 0.1",
        Parts(
            "11.4",
            "a longer step measures the curvature, a shorter one only the last digits",
            Part(
                "the step",
                "3610a41cfb",
                "print the largest error for each of the steps in the starter cell",
                {
                    0.1: "such a long step measures the curvature: the error falls with its square",
                    0.001: "the error falls with the square of the step, and keeps falling",
                    1e-11: "the two values you subtract agree in almost all digits",
                    1e-9: "the two values you subtract agree in most of their digits",
                    1e-7: "here the rounding error already exceeds that of the curvature",
                    5: "that's the exponent; the step is 10.0 to the power of minus that",
                },
            ),
        ),
    ),
    "11.3": Exercise("your function checkpoint(f, x)", checkpoints),
    "15.1": Exercise(
        "three numbers: the operators left after fold, after cse, and after fuse",
        Parts(
            "15.1",
            "fold makes the two sums equal, cse merges them, and fuse makes one loop",
            Part(
                "the number after fold",
                "327aa4a9d0",
                "which operators change nothing, whatever x and y are?",
                {
                    5: "x * 1 and - 0 change nothing",
                    4: "neither x * 1 nor - 0 changes anything",
                    2: "fold doesn't merge equal sums; cse does",
                },
            ),
            Part(
                "the number after cse",
                "818e3b155a",
                "which operators have the same inputs now?",
                {
                    3: "without x * 1, both sums read x and y, so they are equal",
                    1: "cse merges equal operators, and the product isn't a sum",
                },
            ),
            Part(
                "the number after fuse",
                "4570983e71",
                "what can run in one loop over the elements?",
                {2: "sum and product are both elementwise, so they share a loop"},
            ),
        ),
    ),
    "15.2": Exercise(
        "a function that makes the error, such as `lambda: optimise(...)`",
        Refusal(
            "the node in the message belongs to the old graph",
            GraphError,
            r"does not come before",
            lambda found: (
                "pass your pass to optimise, which checks it, and use a graph with two replacements"
            ),
            {
                r"is no node|the rule gave": "the rule must return a list of places",
                r"is not defined": "this is Python's own error: run the cells above",
            },
        ),
    ),
    "15.3": Exercise("your pass double_negative(graph)", drops_signs),
    "15.4": Exercise("your pass reassociate(graph)", reassociates),
}
