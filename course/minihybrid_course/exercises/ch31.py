"""Chapter 31: checkers of its exercises.

Takes:   kernels, functions, numbers, and functions that raise an error.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 31.5, which measures.
"""

import numpy as np

from minihybrid_course.exercises.ch25 import does
from minihybrid_course.exercises.judging import Exercise, equal_each, expect, need, tried


def state_of(scores, values):
    """What online softmax knows after some keys: the specification of a state."""
    top = scores.max(axis=1, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top)[:, None])
    return top, weights.sum(axis=1), weights @ values


def merges(merge):
    """Check 31.3: the state of all keys, from the states of two halves."""
    rng = np.random.default_rng(0)
    scores, values = rng.normal(size=(3, 6)) * 3, rng.normal(size=(6, 2))
    for case, cut in (("3 and 3 keys", 3), ("5 keys and 1", 5), ("6 keys and none", 6)):
        halves = [state_of(scores[:, s], values[s]) for s in (slice(cut), slice(cut, None))]
        for order, (a, b) in (("", halves), (", swapped", halves[::-1])):
            compared(f"for {case}{order}", tried("merge", merge, a, b), state_of(scores, values))
    halves = [state_of(999 * scores[:, s], values[s]) for s in (slice(3), slice(3, None))]
    compared(
        "for scores near 1,000", tried("merge", merge, *halves), state_of(999 * scores, values)
    )
    none = state_of(scores[:, :0], values[:0])
    compared("for no keys on either side", tried("merge", merge, none, none), none)
    return "both halves are corrected to the larger maximum, in any order"


def compared(case, state, expected):
    """A merged state is the one that is wanted."""
    expect(state, (tuple, list), "a state (top, total, mine)", f"{case}: ", length=3)
    equal_each(("top", "total", "mine"), state, expected, f"{case}: {{}}")


def causally(q, k, v):
    """The specification of 31.4."""
    scores = q @ k.T / 4
    scores = np.where(np.tri(len(q), dtype=bool), scores, -np.inf)
    _, total, mine = state_of(scores, v)
    return (mine / total[:, None]).astype("float32")


def skips(kernel):
    """Check 31.4: causal attention that doesn't load what no query of the block sees."""
    rng = np.random.default_rng(0)
    for blocks in (1, 2):
        inputs = [rng.normal(size=(16 * blocks, 16)).astype("float32") for _ in range(3)]
        case = f"for {16 * blocks} words"
        does(kernel, case, causally, inputs, blocks, (16, 16))
        loads, least = kernel.counts.global_loads, 256 * blocks * (blocks + 2)
        need(
            loads <= least,
            f"{case}: out is right, but the blocks load {loads} elements, and {least} are enough: "
            "end the loop over j at the diagonal",
        )
    return "tiles above the diagonal are neither loaded nor computed"


EXERCISES = {
    "31.3": Exercise("your function merge(a, b)", merges),
    "31.4": Exercise("your kernel of q, k, v and out, for blocks of 16 by 16", skips),
}
