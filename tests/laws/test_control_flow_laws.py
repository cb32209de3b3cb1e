"""Random programs with branches and loops: hybridized ones agree with eager float64.

A branch that isn't taken would compute log(0) or sqrt(-1) here: neither its values nor its
gradients may reach the result. On NumPy, values off the tape agree bit for bit.
"""

import operator
import random

import numpy as np
import pytest
from marks import external

from minihybrid import autograd, gluon, nd
from minihybrid.core.backprop import gradient
from minihybrid.core.sym import Symbol
from minihybrid.passes.branches import If

UNARY = ["sin", "tanh", "square", "negative", "cos", "sigmoid", "softmax", "cumsum"]
BINARY = {"add": operator.add, "multiply": operator.mul, "subtract": operator.sub}
POLES = ["log", "sqrt", "reciprocal"]  # not finite, or without a finite slope, at 0


def drawn(rng, depth=2):
    """A program: a list of statements that each append a value to those before."""
    statements = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(
            ["unary", "binary", "cond", "while", "each"] if depth else ["unary", "binary"]
        )
        picks = rng.randrange(9), rng.randrange(9)
        if kind == "unary":
            statements.append((kind, rng.choice(UNARY), picks))
        elif kind == "binary":
            statements.append((kind, rng.choice([*BINARY]), picks))
        elif kind == "cond":
            threshold = rng.choice([0.0, 0.0, 0.37])
            inner = [drawn(rng, depth - 1), drawn(rng, depth - 1)]
            statements.append((kind, threshold, picks, rng.choice(POLES), inner))
        elif kind == "each":
            statements.append((kind, None, picks, drawn(rng, depth - 1)))
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
        elif kind == "each":

            def turn(row, state, body=more[0]):
                out = F.tanh(run(F, body, [*values, row, state]))
                return out, out + state

            outs, last = F.contrib.foreach(turn, F.stack(a, b), a)
            values.append(F.sum(outs, axis=0) + last)
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
        expected = results(Program(statements), inputs)
        net = Program(statements)
        net.hybridize(backend=backend)
        actual = results(net, inputs)
    for what, a, b in zip(["value", "taped value", "dx", "dy"], expected, actual, strict=True):
        try:
            same_bits = backend == "numpy" and what == "value"
            np.testing.assert_allclose(b, a, *((0, 0) if same_bits else (1e-9, 1e-12)))
        except AssertionError as error:
            return f"seed {seed}, {what}: {error}\n{statements}\n{inputs}"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("first", [*range(0, 200, 50), *external(*range(200, 1000, 50))])
def test_random_control_flow_equals_eager(first):
    for seed in range(first, first + 50):
        problem = difference(seed, "cpu" if seed % 10 == 0 else "numpy")
        assert problem is None, problem


@pytest.mark.parametrize("fault", ["sides of a value", "sides of a gradient", "both sides"])
def test_the_programs_see_faults(monkeypatch, fault):
    """Each seed is checked until one of them sees the fault."""
    if fault == "sides of a value":
        monkeypatch.setattr(If, "eager", swapped(If.eager))
    elif fault == "sides of a gradient":
        backward = If._backward

        def other(self, *args):
            op, *rest = backward(self, *args)
            return op and If(op.graphs[::-1], op.places[::-1]), *rest

        monkeypatch.setattr(If, "_backward", other)
    else:  # what `where` between two computed branches does to gradients
        both = If.lower

        def leaks(self, g, out, *inputs, **_):
            values = both(self, None, *inputs)
            gs = g if isinstance(g, tuple) else (g,)
            heads = [ref for ref, x in zip(values.refs, gs, strict=True) if x is not None]
            gs, refs = [x for x in gs if x is not None], [x.refs[0] for x in inputs]
            actual = gradient(heads, gs, refs, lambda ref: Symbol([ref]))
            return tuple(actual.get(ref) for ref in refs)

        monkeypatch.setattr(If, "grad", leaks)
    assert any(difference(seed, "numpy") for seed in range(40))


def swapped(eager):
    """Runs the other side."""

    def other(self, predicate, *inputs, **more):
        return eager(self, (predicate == 0).astype(predicate.dtype), *inputs, **more)

    return other
