"""Random programs: any operator behind any other, each value used as often as you like.

    program = draw(7)
    print(source(program))

A program is drawn step by step and computed with eager arrays on the way, so shapes and
dtypes of all values are known; what an operator refuses is drawn again. The arguments
of an operator come from its record wherever its inputs are any numbers of one or of
matching shapes; the others have a rule in `rules`. Nothing comes from the
samples of the other tests.
A program of the world "np" has arrays of `mx.np`, its functions between the others,
arrays without axes, and more axes of length 0. With `control`, there are branches and loops.
What is left out: operators in `LEFT_OUT`, with the reasons.
"""

import numpy as np

from minihybrid import nd
from minihybrid.core.op import HybridError
from programs import np_rules
from programs.draft import ARRAYS, Draft
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
from programs.run import CONTROL, INFIX, Program, Step, all_steps, apply, trimmed

SIGNS = [*INFIX, *"+-*/" * 3]


def add_step(d, name):
    """One more step, of an operator; whether it takes what was drawn."""
    op = BY_NAME.get(name)
    how = BODIES.get(name) or np_rules.RULES.get(name) or (rule_of(op) if op else infix)
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


# -- branches and loops ----------------------------------------------------------------
def body_of(d, arrays, n_steps=None):
    """A draft inside of a step, whose first values are arrays."""
    inner = Draft(d.rng.random(), is_loose)
    inner.lengths, inner.mood, inner.exact = d.lengths, d.mood, d.exact
    inner.finite, inner.wild = True, False
    inner.control, inner.empty, inner.values = d.control - 1, False, list(arrays)
    left = n_steps or d.rng.randint(1, 3)
    for _ in range(20):
        for kind in kinds(inner):
            left -= add_step(inner, inner.rng.choice([n for n in kind if n != "Dropout"]))
        if left <= 0:
            break
    return inner


def like(inner, value, array):
    """The number of a value of an array's shape and dtype, made of this one."""
    old, rank = inner.values[value], array.ndim
    if old.shape != array.shape and old.size == array.size and array.size:
        value = inner.step("reshape", [value], {"shape": array.shape})
    elif old.shape != array.shape:
        value = inner.step("mean" if old.dtype.kind == "f" else "max", [value], {})
        value = inner.step("reshape", [value], {"shape": (1,) * rank})
        value = inner.step("broadcast_to", [value], {"shape": array.shape})
    if old.dtype != array.dtype:
        if old.dtype.kind != array.dtype.kind:  # whole numbers would cut gradients, not their sum
            value = inner.step("BlockGrad", [value], {})
        value = inner.step("cast", [value], {"dtype": array.dtype.name})
    return value


def closed(d, inner, n_given, outs, captured):
    """The draft as a program inside of a step; its inputs are captured from outside.

    captured: numbers of outer values; these, and new ones, are behind the first `n_given`.
    """
    places = {i: i for i in range(n_given)}
    for i, each in inner.inputs.items():
        places[i] = n_given + len(captured)
        d.inputs[len(d.values)] = each
        captured.append(len(d.values))
        d.values.append(inner.values[i])
    return inner, places, outs


def programs_of(bodies, n_given, captured):
    """The programs of closed drafts, which all read what any of them captures."""
    programs = []
    for inner, places, outs in bodies:
        places, at = dict(places), n_given + len(captured)
        steps = []
        for step, first in inner.steps:
            steps.append(
                Step(step.op, tuple(places[i] for i in step.inputs), step.attrs, step.n_outputs)
            )
            places.update((first + k, at + k) for k in range(step.n_outputs))
            at += step.n_outputs
        programs.append(Program((), tuple(steps), tuple(places[i] for i in outs)))
    return tuple(programs)


def some_of(d, inner, n_given):
    """One or two values of a draft, the last ones the likelier."""
    made = range(n_given, len(inner.values))
    made = [i for i in made if i not in inner.inputs] or range(n_given)
    return [d.rng.choice(made[-2:]) for _ in range(d.rng.choice((1, 1, 2)))]


def cond(d, name):
    """A branch: the other one is drawn, too, and gives values like those of the first."""
    given = [d.float() for _ in range(d.rng.choice((1, 2)))]
    arrays, n = [d.values[v] for v in given], len(given)
    then, other = body_of(d, arrays), body_of(d, arrays)
    outs = some_of(d, then, n)
    values = [
        like(other, i, then.values[o]) for i, o in zip(some_of(d, other, n) * 2, outs, strict=False)
    ]
    captured = []
    bodies = [closed(d, b, n, o, captured) for b, o in ((then, outs), (other, values))]
    limit = d.rng.choice((0.0, 0.37, -0.53, 50.0, -50.0))
    attrs = {"bodies": programs_of(bodies, n, captured), "limit": limit}
    return [*given, *captured], attrs, len(outs)


def loop_of(d, arrays, states, like_state):
    """(numbers of outputs, then of new states; the draft) of an iteration.

    arrays:  what it reads, of which the last ones are `states`.
    like_state: whether the output is like the first state.
    """
    n = len(arrays)
    inner = body_of(d, arrays)
    outs = some_of(d, inner, n)
    outs = [like(inner, outs[0], states[0])] if like_state else outs
    for k, state in enumerate(states):
        value = like(inner, some_of(d, inner, n)[0], state)
        if d.flag():
            value = inner.step("+", [value, n - len(states) + k], {})
        outs.append(value)
    return outs, inner


def foreach(d, name):
    """A loop over the rows of one or two arrays of one length."""
    first = d.value()
    rows = [first]
    if d.flag(0.3):
        rows.append(d.shaped(d.shape_of(first)))
    states = [d.float() for _ in range(d.rng.choice((1, 1, 2)))]
    arrays = [apply(nd, FIRST, [ARRAYS["nd"](d.values[v])])[0].asnumpy() for v in rows]
    arrays = [a.reshape(a.shape[1:] or (1,)) for a in arrays]
    old = [d.values[v] for v in states]
    outs, inner = loop_of(d, [*arrays, *old], old, False)
    captured, n = [], len(rows) + len(states)
    bodies = [closed(d, inner, n, outs, captured)]
    attrs = {
        "bodies": programs_of(bodies, n, captured),
        "n_rows": len(rows),
        "n_states": len(states),
    }
    return [*rows, *states, *captured], attrs, len(outs)


def while_loop(d, name):
    """A loop that ends when the mean of its first variable is large, or before."""
    states = [d.float() for _ in range(d.rng.choice((1, 2)))]
    old = [d.values[v] for v in states]
    outs, inner = loop_of(d, old, old, True)
    captured, n = [], len(states)
    bodies = [closed(d, inner, n, outs, captured)]
    mean = float(np.mean(old[0])) if old[0].size and np.isfinite(old[0]).all() else 0.0
    attrs = {
        "bodies": programs_of(bodies, n, captured),
        "n_states": n,
        "most": d.rng.randint(1, 4),
        "limit": round(mean + d.rng.choice((-0.7, 0.3, 1.3, 5.1, 50.0)), 2),
    }
    return [*states, *captured], attrs, len(outs)


FIRST = Step("slice_axis", (0,), {"axis": 0, "begin": 0, "end": 1})
BODIES = {"contrib.cond": cond, "contrib.foreach": foreach, "contrib.while_loop": while_loop}


# -- the whole -------------------------------------------------------------------------
def draw(seed, n_steps=None, world="nd", first=(), control=0):
    """The program of a seed.

    first:   its first step is one of these operators, if one takes what is drawn for it.
    control: how deep branches and loops are inside of each other.
    """
    d = Draft(seed, is_loose, world)
    if control:  # eager gradients don't pass a branch that isn't taken, but 0 times NaN would
        d.control, d.finite, d.wild, d.empty = control, True, False, False
    some = (4, 5, 6, 7, 8, 10) if d.chain else (1, 2, 3, 4, 5, 6, 8, 10, 14)
    n_steps = n_steps or d.rng.choice((1, 2, 2, 3, 4, 6) if control else some)
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
    if d.control > 0:
        return d.rng.choices((SIGNS, NAMES, ROWS, MOVES, [*CONTROL]), (5, 4, 2, 2, 9))
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
    train = d.finite or d.flag(0.6)
    program = Program(
        tuple(d.inputs.values()),
        tuple(steps),
        tuple(places[i] for i in outs),
        train,
        d.exact,
        seed,
        world=d.world,
        second=train and d.flag(0.4) and not any(s.op == "Dropout" for s in steps),
    )
    if d.control and any(s.op in OUTPUT_LAYERS for s in all_steps(program)):
        program = program.but(second=False)  # see the limits of `passes/scan.py`
    return trimmed(program)


OUTPUT_LAYERS = {  # their gradients don't depend on the incoming one
    "SoftmaxOutput",
    "Softmax",
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
    "SVMOutput",
    "make_loss",
    "MakeLoss",
}
