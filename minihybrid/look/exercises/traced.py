"""Chapters 05 and 06. What the exercises of nano ask, and how the answers are judged.

Takes:   answers that are written with nano, the reader's own engine, or ours.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 5.4, which measures; the nine steps, which `look.steps` judges.
"""

from functools import partial

import numpy as np

from minihybrid.look.exercises.judging import (
    ELSEWHERE,
    Exercise,
    Part,
    Parts,
    Refusal,
    kind,
    need,
    tried,
)
from minihybrid.look.exercises.nano import engine

SCALED = {  # program -> (what it does, operators that are enough), small ones first
    "x + 2": (lambda n, x: x + 2, 1),
    "x * 2 * 3": (lambda n, x: x * 2 * 3, 1),
    "x * 2 * 3 * 4": (lambda n, x: x * 2 * 3 * 4, 1),
    "x * 2 + 3": (lambda n, x: x * 2 + 3, 2),
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
    """Judge 5.2 and 6.2: a pass of nano keeps what programs mean, and makes them smaller."""
    n, x = engine(pass_), np.float32([[1, 2], [-3, 4]])
    for text, (function, enough) in programs.items():
        graph = n.trace(partial(function, n), x=x.shape)
        now = tried(f"the pass, of `{text}`,", pass_, graph)
        need(isinstance(now, n.Graph), f"a pass gives a Graph, but for `{text}` {kind(now)} came")
        seen = set()
        for node in now.nodes:
            early = all(i in seen for i in node.inputs)
            need(
                early,
                f"in `{text}`, {node.name} reads what does not come before it: take the new "
                "inputs, not those of the old node",
            )
            need(
                node not in seen,
                f"in `{text}`, {node.name} stands in the list twice, as what two old nodes have "
                "become: `dict.fromkeys` keeps each once",
            )
            seen.add(node)
        need(set(now.heads) <= seen, f"in `{text}`, the head is no node of the new graph")
        wanted, found = (n.run(g, n.NDArray(x))[0].data for g in (graph, now))
        need(
            np.array_equal(found, wanted),
            f"the pass changes what `{text}` means: for x = {x.tolist()} it gave "
            f"{wanted.tolist()} before, and {found.tolist()} after",
        )
        alive = n.behind(now.heads)
        dead = [node.name for node in now.nodes if node.op and node not in alive]
        need(
            not dead,
            f"after the pass, {', '.join(dead)} of `{text}` is still computed, and nobody reads "
            "it: dce drops that",
        )
        count = sum(node.op is not None for node in now.nodes)
        need(
            count <= enough,
            f"after the pass `{text}` has {count} operators, but {enough} will do: {advice}",
        )
    return praise


EXERCISES = {
    "5.1": Exercise(
        "a pair: the number of nodes after cse, and the number when the key omits attributes",
        Parts(
            "5.1",
            "two products that differ in a number only are two",
            Part(
                "the number of nodes after cse",
                "68bd0d97fd",
                "count the placeholder, and what is applied to what with which number",
                {
                    3: "`x * 2` and `x * 3` are two nodes; without attributes they would be one",
                    2: "the placeholder and the sum are nodes, too",
                    5: "x is one placeholder, however often it is used",
                },
            ),
            Part(
                "the number of nodes without attributes in the key",
                "fea8cb7edf",
                "what is left to tell the two products apart?",
                {
                    4: "that is with attributes; without them the two products are one",
                    2: "the sum is left: it reads one node twice",
                    1: "the placeholder and the product are left, and the sum",
                },
            ),
        ),
    ),
    "5.2": Exercise(
        "your pass fold_numbers(graph)",
        partial(
            improves,
            SCALED,
            "look at the new input, which may be a product already",
            "one product for any number of them, and sums are left alone",
        ),
    ),
    "5.3": Exercise(
        "a function that makes the error, such as `lambda: trace(...)`",
        Refusal(
            "the array would be frozen into the program, so it is refused",
            TypeError,
            r"(?i)array",
            lambda found: (
                f"it gave {kind(found)}: let the function multiply x by an NDArray of "
                "nano; lists, NumPy's arrays and those of nd are not values to it"
            ),
            {
                r"true nor false": "this decides on a symbol; an array among symbols is meant",
                r"argument": "trace takes a function, and a shape for each argument by its name",
                **ELSEWHERE,
            },
        ),
    ),
    "6.1": Exercise(
        "the number of plans",
        Parts(
            "6.1",
            "a plan a signature, and one of the four calls had a signature that was known",
            Part(
                "the number of plans",
                "40f1c3230b",
                "a plan belongs to a shape; which shapes did it see?",
                {
                    4: "the last call has the shape of the first, and finds its plan",
                    1: "a plan knows its shapes, so each number of images needs another",
                    2: "three different numbers of images were asked about",
                },
            ),
        ),
    ),
    "6.2": Exercise(
        "your pass untwist(graph)",
        partial(
            improves,
            TURNED,
            "what a transpose of a transpose gives, somebody has already",
            "two that cancel are gone, and a single one stays",
        ),
    ),
    "6.3": Exercise(
        "a pair: how many arguments the plan takes and how many gradients backward returns",
        Parts(
            "6.3",
            "what comes in is an argument, and each argument has a gradient",
            Part(
                "the number of arguments",
                "c20f3614fd",
                "the image, and what each of the two layers knows",
                {
                    1: "were the parameters no arguments, training could not move them",
                    3: "each layer has a weight and a bias",
                    4: "the image is an argument, too",
                    6: "g is an argument of backward, not of the plan",
                },
            ),
            Part(
                "the number of gradients",
                "c20f3614fd",
                "`with_gradient` says for which variables it asks",
                {
                    4: "that of the image is computed, too, though nobody asked: see its last line",
                    1: "g comes in; there is a gradient for each argument",
                    6: "the first head is the value, no gradient",
                },
            ),
        ),
    ),
    "6.4": Exercise(
        "a function that makes the error, such as `lambda: net.export(...)`",
        Refusal(
            "nano names what its own lines missed, and not what you forgot",
            AttributeError,
            r"'graph'",
            lambda found: "the files were written: this network had been called before",
            {
                r"no attribute": "something else is missing here; make a network, and export it",
                r"export": "this is the engine's message; let nano's network be exported",
                **ELSEWHERE,
            },
        ),
    ),
}
