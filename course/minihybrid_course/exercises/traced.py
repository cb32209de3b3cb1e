"""Chapters 05 and 06: checkers of the exercises about nano.

Takes:   answers that are written with nano, the reader's own engine, or ours.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 5.4, which measures; the nine steps, which `minihybrid_course.steps` judges.
"""

from functools import partial

import numpy as np

from minihybrid_course.exercises.judging import (
    ELSEWHERE,
    Exercise,
    Part,
    Parts,
    Refusal,
    kind,
    need,
    tried,
)
from minihybrid_course.exercises.nano import engine

SCALED = {  # program -> (what it does, operators that are enough), small ones first
    "x + 2": (lambda n, x: x + 2, 1),
    "x * 2 * 3": (lambda n, x: x * 2 * 3, 1),
    "x * 2 * 3 * 4": (lambda n, x: x * 2 * 3 * 4, 1),
    "x * 2 + 3": (lambda n, x: x * 2 + 3, 2),
    "x + 2 + 3": (lambda n, x: x + 2 + 3, 2),
    "(x + 2) * 3 * 4": (lambda n, x: (x + 2) * 3 * 4, 2),
    "x * 2 * x * 3": (lambda n, x: x * 2 * x * 3, 3),
}
TURNED = {
    "transpose(x)": (lambda n, x: n.transpose(x), 1),
    "transpose(transpose(x))": (lambda n, x: n.transpose(n.transpose(x)), 0),
    "relu(transpose(x))": (lambda n, x: n.relu(n.transpose(x)), 2),
    "transpose(transpose(x)) * 2": (lambda n, x: n.transpose(n.transpose(x)) * 2, 1),
    "transpose, three times": (lambda n, x: n.transpose(n.transpose(n.transpose(x))), 1),
}


def improves(programs, advice, praise, pass_):
    """Check 5.2 and 6.2: a pass of nano keeps the semantics and shrinks programs."""
    n, x = engine(pass_), np.float32([[1, 2], [-3, 4]])
    for text, (function, enough) in programs.items():
        graph = n.trace(partial(function, n), x=x.shape)
        now = tried(f"the pass, of `{text}`,", pass_, graph)
        need(
            isinstance(now, n.Graph),
            f"a pass must return a Graph, but for `{text}` yours returns {kind(now)}",
        )
        seen = set()
        for node in now.nodes:
            early = all(i in seen for i in node.inputs)
            need(
                early,
                f"in `{text}`, {node.name} reads a node that doesn't come before it: use the "
                "new inputs, not those of the old node",
            )
            need(
                node not in seen,
                f"in `{text}`, {node.name} is in the list twice, as it replaces two old nodes: "
                "`dict.fromkeys` keeps one of each",
            )
            seen.add(node)
        need(set(now.heads) <= seen, f"in `{text}`, the output isn't a node of the new graph")
        wanted, found = (n.run(g, n.NDArray(x))[0].data for g in (graph, now))
        need(
            np.array_equal(found, wanted),
            f"the pass changes the semantics of `{text}`: for x = {x.tolist()}, the result was "
            f"{wanted.tolist()} before and is {found.tolist()} after",
        )
        alive = n.behind(now.heads)
        dead = [node.name for node in now.nodes if node.op and node not in alive]
        need(
            not dead,
            f"after the pass, {', '.join(dead)} of `{text}` is still computed, but it's dead code: "
            "dce removes it",
        )
        count = sum(node.op is not None for node in now.nodes)
        need(
            count <= enough,
            f"after the pass, `{text}` has {count} operators, but {enough} are enough: {advice}",
        )
    return praise


EXERCISES = {
    "5.1": Exercise(
        "a pair: the number of nodes after cse, and the number when the key omits attributes",
        Parts(
            "5.1",
            "two products with different scalars aren't equal",
            Part(
                "the number of nodes after cse",
                "68bd0d97fd",
                "count the placeholder, and each combination of operator, input and scalar",
                {
                    3: "`x * 2` and `x * 3` are two nodes; they'd be one without attributes",
                    2: "the placeholder and the sum are also nodes",
                    5: "x is one placeholder, however often it is used",
                },
            ),
            Part(
                "the number of nodes without attributes in the key",
                "fea8cb7edf",
                "how does cse tell the two products apart?",
                {
                    4: "that's with attributes; without them, the two products are one",
                    2: "the sum is left, and reads one node twice",
                    1: "the placeholder, the product and the sum are left",
                },
            ),
        ),
    ),
    "5.2": Exercise(
        "your pass fold_numbers(graph)",
        partial(
            improves,
            SCALED,
            "look at the new input, which may already be a product",
            "any chain of products becomes one, and sums are left alone",
        ),
    ),
    "5.3": Exercise(
        "a function that makes the error, such as `lambda: trace(...)`",
        Refusal(
            "the array would become a constant of the program, so it's rejected",
            TypeError,
            r"(?i)array",
            lambda found: (
                f"it returned {kind(found)}: make the function multiply x by one of nano's "
                "NDArrays; to nano, lists, NumPy arrays and nd arrays aren't values"
            ),
            {
                r"true nor false": "this branches on a symbol; mix an array with symbols instead",
                r"argument": "trace takes a function, and a shape per argument, by name",
                **ELSEWHERE,
            },
        ),
    ),
    "6.1": Exercise(
        "the number of plans",
        Parts(
            "6.1",
            "one plan per shape, and one of the four calls had a known shape",
            Part(
                "the number of plans",
                "40f1c3230b",
                "there's one plan per shape; which shapes did it get?",
                {
                    4: "the last call has the shape of the first and finds its plan",
                    1: "a plan has fixed shapes, so each number of images needs its own",
                    2: "there were three different numbers of images",
                },
            ),
        ),
    ),
    "6.2": Exercise(
        "your pass untwist(graph)",
        partial(
            improves,
            TURNED,
            "the result of transposing twice already exists",
            "two that cancel are removed, and a single one stays",
        ),
    ),
    "6.3": Exercise(
        "a pair: how many arguments the plan takes and how many gradients backward returns",
        Parts(
            "6.3",
            "every input is an argument, and each argument has a gradient",
            Part(
                "the number of arguments",
                "c20f3614fd",
                "the image, and the parameters of both layers",
                {
                    1: "if the parameters weren't arguments, training couldn't update them",
                    3: "each layer has a weight and a bias",
                    4: "the image is also an argument",
                    6: "g is an argument of backward, not of the plan",
                },
            ),
            Part(
                "the number of gradients",
                "c20f3614fd",
                "look at the variables that `with_gradient` differentiates by",
                {
                    4: "the image's gradient is also computed, although it's never used",
                    1: "g is an input; there's one gradient per argument",
                    6: "the first output is the value, not a gradient",
                },
            ),
        ),
    ),
    "6.4": Exercise(
        "a function that makes the error, such as `lambda: net.export(...)`",
        Refusal(
            "nano reports the attribute it missed, not the call you forgot",
            AttributeError,
            r"'graph'",
            lambda found: "the files were written, because this network had already been called",
            {
                r"no attribute": "something else is missing here: create a network, and export it",
                r"export": "that's the engine's message: export nano's network",
                **ELSEWHERE,
            },
        ),
    ),
}
