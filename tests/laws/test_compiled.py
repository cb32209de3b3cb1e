"""Small programs with several results, compiled one after the other in one process.

What was compiled before must not matter; nor where a result lies over what it needs.
"""

import random

import numpy as np
import pytest

from minihybrid import sym
from minihybrid.core.op import Spec
from minihybrid.core.plan import Plan

F32 = np.dtype("float32")
SIZES = [(7, 5), (33, 17), (16, 16), (40, 1), (50, 48)]


def drawn(rng, width):
    """A function of three arrays and a square one, of sums, products and maps."""
    steps = [(rng.randrange(8), rng.random(), rng.random()) for _ in range(rng.randint(3, 14))]
    n_results, order = rng.randint(1, 4), rng.random()

    def run(*arrays):
        *values, square = arrays
        for kind, near, any_ in steps:
            a = values[-5:][int(near * len(values[-5:]))]
            b = values[int(any_ * len(values))]
            values.append(
                [
                    lambda a, b: a + b,
                    lambda a, b: sym.tanh(a) * b,
                    lambda a, b: sym.tanh(a),
                    lambda a, b: sym.sigmoid(a) - b,
                    lambda a, b: (
                        0.1 * sym.FullyConnected(a, square, num_hidden=width, no_bias=True)
                    ),
                    lambda a, b: sym.broadcast_maximum(a, b),
                    lambda a, b: sym.ones_like(a) + b * 0.5,
                    lambda a, b: a * 0.5,
                ][kind](a, b)
            )
        made = values[3:]
        random.Random(order).shuffle(made)
        return made[:n_results]

    return run


@pytest.mark.slow
def test_programs_compiled_one_after_the_other_give_the_answers_of_numpy():
    n_several = 0
    for seed in range(40):
        rng = random.Random(seed)
        shape = rng.choice(SIZES)
        specs = {f"x{i}": Spec(shape, F32) for i in range(3)} | {"x3": Spec((shape[1],) * 2, F32)}
        graph = sym.trace(drawn(rng, shape[1]), specs)[0]
        read = {v.name for v in graph.variables}
        names = [name for name in specs if name in read]
        arrays = [
            np.random.default_rng(seed).standard_normal(specs[n].shape).astype("f4") for n in names
        ]
        actual = []
        for target in ("numpy", "cpu"):
            plan = Plan(graph, names, target=target)
            actual.append(plan([a.copy() for a in arrays], plan.bind([])))
        n_several += sum(len(n.specs) > 1 for n in plan.graph.nodes if n.op)
        for expected, got in zip(*actual, strict=True):
            np.testing.assert_allclose(got, expected, 1e-3, 1e-4, err_msg=f"seed {seed}")
    assert n_several > 10
