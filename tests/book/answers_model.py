"""Right and wrong answers to the exercises of chapter 35."""

import math

import numpy as np


def leaks(net, x, cut=-1, copies=True, place=-1, answer=bool):
    """Whether scores depend on later characters, or what's near it."""
    before = net(x).asnumpy()
    other = x.copy() if copies else x
    other[0, place] = (x[0, place].item() + 1) % 61
    after = net(other).asnumpy()
    return answer(not np.allclose(before[:, :cut], after[:, :cut]))


def chances(scores, temperature, k, freezes=True, safe=True, first=True, total=True):
    """Probabilities of the k largest scores, or what's near it."""
    if freezes and temperature == 0:
        temperature, k = 1, 1
    order = np.argsort(-scores, kind="stable") if first else np.argsort(scores, kind="stable")[::-1]
    result, chosen = np.zeros(len(scores)), order[:k]
    top = scores.max() if safe else 0
    if not freezes:
        temperature = temperature or 1
    result[chosen] = np.exp((scores[chosen] - top) / temperature)
    every = np.exp((scores - top) / temperature).sum()
    return result / (result.sum() if total else every)


def step(q, k, v, keys, values, place, wraps=True, writes=True, counts=True, divides=True):
    """Attention of one query to a cache, or what's near it."""
    slots = len(keys)
    keys, values = (keys, values) if writes else (keys.copy(), values.copy())
    slot = place % slots if wraps else min(place, slots - 1)
    keys[slot], values[slot] = k, v
    n = min(place + 1, slots) if counts else slots
    scores = keys[:n] @ q / (math.sqrt(len(q)) if divides else 1)
    weights = np.exp(scores - scores.max())
    return weights @ values[:n] / weights.sum()


ANSWERS = {
    "35.1": (
        (448224, 57372672, 448224),
        [
            ((442368, 57372672, 448224), "the last dense layer is missing"),
            ((116448, 57372672, 448224), "there are four layers"),
            ((448224, 448224, 448224), "computes all 128 positions"),
            ((448224, 57372672, 57372672), "computes one position"),
        ],
    ),
    "35.2": (
        leaks,
        [
            (lambda net, x: False, "looks one character ahead, with 2 positions"),
            (lambda net, x: leaks(net, x, cut=None), "looks back only, with 2 positions"),
            (lambda net, x: leaks(net, x, copies=False), "change a copy"),
            (lambda net, x: leaks(net, x, answer=str), "must be True or False"),
        ],
    ),
    "35.3": (
        chances,
        [
            (lambda *a: chances(*a, freezes=False), "with temperature 0: the result"),
            (lambda *a: chances(*a, safe=False), "with scores above 1000: the result"),
            (lambda *a: chances(*a, first=False), "with k = 1 and two equal best scores"),
            (lambda *a: chances(*a, total=False), "with k = 3: the result"),
            (lambda s, t, k: chances(s, t, k)[:k], "with k = 3: the result has shape (3,)"),
        ],
    ),
    "35.4": (
        step,
        [
            (lambda *a: step(*a, wraps=False), "at place 3, with 3 slots: "),
            (lambda *a: step(*a, writes=False), "slot 0 of keys doesn't hold the new key"),
            (lambda *a: step(*a, counts=False), "at place 0, with 3 slots: the result is nan"),
            (lambda *a: step(*a, divides=False), "at place 1, with 3 slots: the result"),
        ],
    ),
}
