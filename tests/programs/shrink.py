"""The smallest program that still has a fault."""

import itertools
from dataclasses import replace

import numpy as np

from minihybrid import nd
from programs.draft import ARRAYS
from programs.run import Input, arrays_of, first_of, run, trimmed, with_attributes


def shrunk(program, has_fault, most=400):
    """A program with the same fault from which nothing can be taken away any more.

    has_fault:  program -> bool.
    most:       how many programs are tried.
    """
    tried = 0
    improved = True
    while improved:
        improved = False
        for smaller in candidates(program):
            tried += 1
            if tried > most:
                return program
            if smaller != program and works(smaller) and has_fault(smaller):
                program, improved = smaller, True
                break
    return program


def works(program):
    """Whether eager arrays run it."""
    try:
        values_of(program)
        return True
    except Exception:  # a step was taken away that others needed
        return False


def values_of(program):
    """Every value of a program, eagerly."""
    number = len(program.inputs) + sum(step.n_outputs for step in program.steps)
    inputs = [ARRAYS[program.world](a) for a in arrays_of(program)]
    values = run(nd, program.but(outputs=tuple(range(number))), inputs)
    return [np.asarray(v.asnumpy()) for v in values]


def candidates(program):
    """Programs with a little less, those with much less first."""
    for outputs in ([o] for o in program.outputs if len(program.outputs) > 1):
        yield trimmed(program.but(outputs=tuple(outputs)))
    for end in range(len(program.steps) - 1, -1, -1):  # an earlier value is the answer
        first = first_of(program, end)
        yield trimmed(program.but(outputs=(first,)))
    yield from with_values_given(program)
    yield from bypassed(program)
    yield from emptied(program)
    for k in range(len(program.outputs)):
        if len(program.outputs) > 1:
            outs = program.outputs[:k] + program.outputs[k + 1 :]
            yield trimmed(program.but(outputs=outs))
    if program.second:
        yield program.but(second=False)
    if program.train:
        yield program.but(train=False, second=False)
    yield from shorter(program)
    yield from simpler(program)


def with_values_given(program):
    """A step's result is an input instead."""
    try:
        values = values_of(program)
    except Exception:
        return
    n = len(program.inputs)
    for k in range(len(program.steps)):
        first, count = first_of(program, k), program.steps[k].n_outputs
        made = tuple(
            Input(v.shape, v.dtype.name, tuple(v.ravel().tolist()))
            for v in values[first : first + count]
        )

        def place(i, first=first, count=count):
            if i < n:
                return i
            return i + count if i < first else i - first + n if i < first + count else i

        steps = program.steps[:k] + program.steps[k + 1 :]
        yield trimmed(
            program.but(
                inputs=program.inputs + made,
                steps=tuple(replace(s, inputs=tuple(map(place, s.inputs))) for s in steps),
                outputs=tuple(map(place, program.outputs)),
            )
        )


def bypassed(program):
    """A step's result is one of its inputs instead."""
    for k, step in enumerate(program.steps):
        first = first_of(program, k)
        for i in dict.fromkeys(step.inputs):

            def place(j, first=first, i=i):
                return i if j == first else j

            steps = [
                s if at <= k else replace(s, inputs=tuple(map(place, s.inputs)))
                for at, s in enumerate(program.steps)
            ]
            yield trimmed(
                program.but(steps=tuple(steps), outputs=tuple(map(place, program.outputs)))
            )


def emptied(program):
    """A body of a branch or a loop gives what it reads, or has fewer steps."""
    for k, step in enumerate(program.steps):
        bodies = step.attrs.get("bodies", ())
        for b, body in enumerate(bodies):
            n = len(step.inputs)
            for at, j in itertools.product(range(len(body.outputs)), range(n)):
                outs = (*body.outputs[:at], j, *body.outputs[at + 1 :])
                less = body.but(outputs=outs)
                while less.steps and max(outs) < n + sum(s.n_outputs for s in less.steps[:-1]):
                    less = less.but(steps=less.steps[:-1])
                if body.outputs[at] >= n and step.op != "contrib.while_loop":
                    new = (*bodies[:b], less, *bodies[b + 1 :])
                    new = replace(step, attrs=step.attrs | {"bodies": new})
                    steps = (*program.steps[:k], new, *program.steps[k + 1 :])
                    yield trimmed(program.but(steps=steps))


def shorter(program):
    """Axes of one length become shorter, in all inputs and in attributes."""
    for n in sorted({n for i in program.inputs for n in i.shape if n > 1}):
        for m in {1, 2, n - 1} - {n}:
            inputs = []
            for each in program.inputs:
                cut = each.array()[tuple(slice(m if k == n else None) for k in each.shape)]
                inputs.append(replace(each, shape=cut.shape, values=tuple(cut.ravel().tolist())))
            yield program.but(inputs=tuple(inputs))
            new = with_attributes(program, lambda value, n=n, m=m: swapped(value, n, m))
            yield new.but(inputs=tuple(inputs))
    for i, each in enumerate(program.inputs):
        for axis, n in enumerate(each.shape):
            if n > 1:
                cut = np.take(each.array(), [0], axis)
                yield with_input(
                    program, i, replace(each, shape=cut.shape, values=tuple(cut.ravel().tolist()))
                )


def swapped(value, n, m):
    """An attribute in which a length n has become m."""
    if isinstance(value, tuple):
        return tuple(swapped(v, n, m) for v in value)
    return m if value == n and not isinstance(value, bool) else value


def with_input(program, i, new):
    return program.but(inputs=program.inputs[:i] + (new,) + program.inputs[i + 1 :])


def simpler(program):
    """Fewer attributes, rounder numbers."""
    for k, step in enumerate(program.steps):
        for name in step.attrs:
            less = {a: v for a, v in step.attrs.items() if a != name}
            steps = list(program.steps)
            steps[k] = replace(step, attrs=less)
            yield program.but(steps=tuple(steps))
    for i, each in enumerate(program.inputs):
        if each.role == "param":
            yield with_input(program, i, replace(each, role="data"))
        values = np.array(each.values, np.float64)
        for new in (
            np.zeros_like(values),
            np.ones_like(values),
            np.arange(values.size) % 5 + 1.0,
            values.round(),
        ):
            new = tuple(
                new.tolist()
                if each.dtype[0] == "f"
                else [int(v) for v in np.where(np.isfinite(new), new, 0)]
            )
            if new != each.values and each.values not in (
                tuple(np.zeros_like(values)),
                tuple(np.ones_like(values)),
            ):
                yield with_input(program, i, replace(each, values=new))
