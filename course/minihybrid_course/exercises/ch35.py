"""Chapter 35: checkers of its exercises.

Takes:   numbers and functions.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 35.5, which measures.
"""

import numpy as np

from minihybrid.core.nd import array
from minihybrid_course.exercises.judging import Exercise, equal, need, same, tried, yes_or_no

KINDS = 61  # of letters


def looking(ahead):
    """A network whose scores at position i depend on the letters up to i + 4 + ahead."""

    def net(x):
        codes = np.asarray(x.asnumpy() if hasattr(x, "asnumpy") else x)
        length = codes.shape[1] - 4
        table = np.random.default_rng(0).normal(size=(KINDS, KINDS))
        last = np.minimum(np.arange(length) + 4 + ahead, codes.shape[1] - 1)
        before = np.cumsum(table[codes.astype(int)], axis=1)  # each letter leaves a trace
        return array(before[:, last])

    return net


def finds_leaks(leaks):
    """Check 35.2: networks that look ahead, and one that doesn't."""
    draw = np.random.default_rng(1)
    for length in (2, 9):
        x = array(draw.integers(0, KINDS, (1, length + 4)))
        before = x.asnumpy()
        cases = [("looks back only", 0, False), ("looks one character ahead", 1, True)]
        cases += [("sees the whole text", length, True)]
        for name, ahead, right in cases:
            answer = yes_or_no(tried("leaks(net, x)", leaks, looking(ahead), x), "leaks(net, x)")
            same(answer, right, f"for a network that {name}, with {length} positions, leaks")
        need(
            np.array_equal(x.asnumpy(), before), "leaks changes x itself; change a copy, `x.copy()`"
        )
    return "a change of the last character reaches no position but the last one"


def chances(scores, temperature, k):
    """The specification of 35.3."""
    k, temperature = (k, temperature) if temperature else (1, 1)
    chosen = np.argsort(-scores, kind="stable")[:k]
    result = np.zeros(len(scores))
    result[chosen] = np.exp((scores[chosen] - scores.max()) / temperature)
    return result / result.sum()


def draws_from_the_top(function):
    """Check 35.3: temperature and the k largest scores."""
    scores = np.array([1.0, 3.0, 2.0, 3.0, -1.0])
    cases = [
        ("with all scores and temperature 1", scores, 1, 5),
        ("with temperature 0.5", scores, 0.5, 5),
        ("with k = 3", scores, 1, 3),
        ("with k = 1 and two equal best scores", scores, 1, 1),
        ("with temperature 0", scores, 0, 4),
        ("with scores above 1000", scores * 1000, 1, 3),
    ]
    for case, values, temperature, k in cases:
        handed = values.copy()
        result = tried("chances", function, handed, temperature, k)
        equal(result, chances(values, temperature, k), f"{case}: the result")
        need(np.array_equal(handed, values), f"{case}: chances changes the scores; copy them")
    return "likely characters stay likely, and the others are out"


def steps_with_a_cache(step):
    """Check 35.4: the result of each step is attention over the last T characters."""
    draw, size, slots = np.random.default_rng(2), 4, 3
    q, k, v = draw.normal(size=(3, 8, size))
    keys, values = np.full((2, slots, size), np.nan)
    for place in range(8):
        case = f"at place {place}, with {slots} slots"
        seen = slice(max(0, place + 1 - slots), place + 1)
        weights = np.exp(k[seen] @ q[place] / np.sqrt(size))
        result = tried("step", step, q[place], k[place], v[place], keys, values, place)
        equal(result, weights @ v[seen] / weights.sum(), f"{case}: the result")
        stored = keys[place % slots]
        need(
            np.array_equal(stored, k[place]),
            f"{case}: slot {place % slots} of keys doesn't hold the new key; write it in place",
        )
    return "one plan's worth of memory, for a text of any length"


EXERCISES = {
    "35.2": Exercise("your function leaks(net, x)", finds_leaks),
    "35.3": Exercise("your function chances(scores, temperature, k)", draws_from_the_top),
    "35.4": Exercise("your function step(q, k, v, keys, values, place)", steps_with_a_cache),
}
