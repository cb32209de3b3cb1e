"""Random programs: any operator behind any other, each value used as often as you like.

    program = draw(7)
    print(source(program))

A program is drawn step by step and computed with eager arrays on the way, so shapes and
dtypes of all values are known; what an operator refuses is drawn again. The arguments
of an operator come from its record wherever its inputs are any numbers of one or of
matching shapes; the others have a rule in `rules`. Nothing comes from the
samples of the other tests.
A program of the world "np" has arrays of `mx.np`, its functions between the others,
arrays without axes, and more axes of length 0.
What is left out: operators in `LEFT_OUT`, with the reasons.
"""

from minihybrid.core.op import HybridError
from programs import np_rules
from programs.draft import Draft
from programs.rules import (
    BY_NAME,
    MOVES,
    NAMES,
    ROWS,
    SAME_SHAPE,
    infix,
    is_exact,
    is_loose,
    rule_of,
)
from programs.run import INFIX, Program, Step, trimmed

SIGNS = [*INFIX, *"+-*/" * 3]


def add_step(d, name):
    """One more step, of an operator; whether it takes what was drawn."""
    op = BY_NAME.get(name)
    how = np_rules.RULES.get(name) or (rule_of(op) if op else infix)
    before = len(d.values)
    try:
        values, attrs, *n_outputs = how(d, op or name)
        first = d.step(name, values, attrs, *n_outputs)
        dtypes = [a.dtype for a in d.values[first:]]
        if d.exact and not is_exact(d.steps[-1][0], dtypes):
            raise ValueError("not exact")
        return True
    except (HybridError, ValueError, IndexError, ZeroDivisionError) as error:
        d.refused.append((name, error))
        d.forget(before)
        return False


def draw(seed, n_steps=None, world="nd", first=()):
    """The program of a seed.

    first:   its first step is one of these operators, if one takes what is drawn for it.
    """
    d = Draft(seed, is_loose, world)
    some = (4, 5, 6, 7, 8, 10) if d.chain else (1, 2, 3, 4, 5, 6, 8, 10, 14)
    n_steps = n_steps or d.rng.choice(some)
    d.new(d.shape(), role="data")
    if first:
        any(add_step(d, d.rng.choice(first)) for _ in range(20))
    for _ in range(40 * n_steps):
        for kind in kinds(d):
            n_steps -= add_step(d, d.rng.choice(kind))
        if n_steps <= 0:
            break
    return finished(d, seed)


def kinds(d):
    """Of which kinds the next operators are: one of any, or several that loops join."""
    if d.chain and d.flag(0.3):
        return SAME_SHAPE, MOVES, [*"+-*/"], ROWS
    if d.world == "np":
        return d.rng.choices((SIGNS, np_rules.NAMES, NAMES, ROWS), (3, 10, 4, 2))
    return d.rng.choices((SIGNS, NAMES, ROWS, MOVES), (5, 7 - 5 * d.chain, 4, 4))


def finished(d, seed):
    """The draft as a program; what nobody reads is an output."""
    made = [first + k for step, first in d.steps for k in range(step.n_outputs)]
    places = {old: new for new, old in enumerate([*d.inputs, *made])}
    steps = [
        Step(s.op, tuple(places[i] for i in s.inputs), s.attrs, s.n_outputs) for s, _ in d.steps
    ]
    read = {i for step, _ in d.steps for i in step.inputs}
    outs = [i for i in made if i not in read or d.flag(0.15)][-8:] or [0]
    train = d.flag(0.6)
    return trimmed(
        Program(
            tuple(d.inputs.values()),
            tuple(steps),
            tuple(places[i] for i in outs),
            train,
            d.exact,
            seed,
            world=d.world,
            second=train and d.flag(0.4) and not any(s.op == "Dropout" for s in steps),
        )
    )
