"""Random programs with branches and loops: hybridized ones agree with eager float64.

A branch that isn't taken computes log(0) or sqrt(-1) here: neither its values nor its gradients
may reach the result. Values on the path that is taken have finite slopes: a gradient of 0 times
an infinite slope is NaN in a graph, while the tape of eager calls has no such step.
"""

import operator
import random

import numpy as np
import pytest
from marks import external

from minihybrid import autograd, gluon, nd
from minihybrid.gluon import control_flow

UNARY = ["sin", "tanh", "square", "negative", "cos", "sigmoid", "softmax", "cumsum"]
BINARY = {"add": operator.add, "multiply": operator.mul, "subtract": operator.sub}
POLES = ["log", "sqrt", "reciprocal"]  # not finite, or without a finite slope, at 0


def drawn(rng, depth=2):
    """A program: a list of statements that each append a value to those before."""
    statements = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(["unary", "binary", "cond", "while"] if depth else ["unary", "binary"])
        picks = rng.randrange(9), rng.randrange(9)
        if kind == "unary":
            statements.append((kind, rng.choice(UNARY), picks))
        elif kind == "binary":
            statements.append((kind, rng.choice([*BINARY]), picks))
        elif kind == "cond":
            threshold = rng.choice([0.0, 0.0, 0.37])
            inner = [drawn(rng, depth - 1), drawn(rng, depth - 1)]
            statements.append((kind, threshold, picks, rng.choice(POLES), inner))
        else:
            limit = rng.choice([-5.0, 0.53, 1.7, 50.0])
            statements.append((kind, limit, picks, rng.randint(1, 3), drawn(rng, depth - 1)))
    return statements


def run(F, statements, values):
    """The last value of a program whose first values are given."""
    values = list(values)
    for kind, what, (i, j), *more in statements:
        a, b = values[i % len(values)], values[j % len(values)]
        if kind == "unary":
            values.append(getattr(F, what)(a))
        elif kind == "binary":
            values.append(BINARY[what](a, b))
        elif kind == "cond":
            pole, (then, other) = more
            values.append(
                F.contrib.cond(
                    F.min(a) > what,
                    lambda a=a, then=then, pole=pole: getattr(F, pole)(a) + run(F, then, values),
                    lambda other=other: run(F, other, values),
                )
            )
        else:
            most, body = more

            def step(a, b, body=body):
                out = F.tanh(run(F, body, [*values, a, b]))
                return out, [out + a, b + 1]

            outs, (last, count) = F.contrib.while_loop(
                lambda a, b, limit=what: F.sum(a) + F.sum(b) < limit,
                step,
                [a, F.zeros_like(a)],
                max_iterations=most,
            )
            padded = 0 if isinstance(outs, list) else F.sum(outs, axis=0)
            values.append(last + count + padded)
    return values[-1]


class Program(gluon.HybridBlock):
    def __init__(self, statements):
        super().__init__()
        self.statements = statements

    def hybrid_forward(self, F, x, y):
        return run(F, self.statements, [x, y])


def results(net, inputs):
    """What a call gives off the tape, on it, and the gradients of its inputs."""
    arrays = [nd.array(x, dtype=x.dtype) for x in inputs]
    plain = net(*arrays)
    for a in arrays:
        a.attach_grad()
    with autograd.record():
        out = net(*arrays)
    if out.node is not None:
        out.backward()
    return [a.asnumpy() for a in (plain, out, *(a.grad for a in arrays))]


def difference(seed, backend):
    """`None`, or which result of a program differs, and by how much."""
    rng = random.Random(seed)
    statements = drawn(rng)
    inputs = [np.array([rng.choice([0.0, rng.uniform(-2, 2)]) for _ in range(3)]) for _ in "xy"]
    if rng.random() < 0.5:
        inputs[rng.randrange(2)][:] = 0.0
    with np.errstate(all="ignore"):
        wanted = results(Program(statements), inputs)
        net = Program(statements)
        net.hybridize(backend=backend)
        found = results(net, inputs)
    for what, a, b in zip(["value", "taped value", "dx", "dy"], wanted, found, strict=True):
        try:
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)
        except AssertionError as error:
            return f"seed {seed}, {what}: {error}\n{statements}\n{inputs}"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("first", [*range(0, 200, 50), *external(*range(200, 2000, 50))])
def test_random_control_flow_equals_eager(first):
    for seed in range(first, first + 50):
        problem = difference(seed, "cpu" if seed % 10 == 0 else "numpy")
        assert problem is None, problem


def test_the_programs_see_a_gradient_that_leaks_out_of_a_branch(monkeypatch):
    monkeypatch.setitem(control_flow.OPS, "_gate", lambda data, chosen: data * 1)
    assert any(difference(seed, "numpy") for seed in range(20))
