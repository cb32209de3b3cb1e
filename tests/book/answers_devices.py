"""Right and wrong answers to the exercises of chapter 37."""

import numpy as np

import minihybrid as mx
from minihybrid.gluon import utils

FOUR = [mx.cpu(k) for k in range(4)]


def split(n, devices=FOUR, **how):
    """A batch of n examples is divided among devices."""
    return lambda: utils.split_and_load(np.ones((n, 3), "float32"), devices, **how)


def doubling(arrays, links, partner=lambda i, k: i ^ (1 << k), send=True, at_once=True):
    """An all-reduce by doubling, or what's near it."""
    for k in range(len(arrays).bit_length() - 1):
        new = list(arrays) if at_once else arrays
        for i in range(len(arrays)):
            there = arrays[partner(i, k)]
            new[i] = arrays[i] + (links.send(partner(i, k), i, there) if send else there)
        arrays = new
    return arrays


def to_everyone(arrays, links):
    """The sum, but with a message to each of the others."""
    n = len(arrays)
    return [
        sum(a if i == k else links.send(k, i, a) for k, a in enumerate(arrays)) for i in range(n)
    ]


def sends_nothing_that_counts(arrays, links):
    """The sums are computed without the messages, which are empty."""
    for k in range(len(arrays).bit_length() - 1):
        for i, array in enumerate(arrays):
            links.send(i, i ^ (1 << k), array[:0])
    return [sum(arrays) for _ in arrays]


ANSWERS = {
    "37.2": (
        (960, 120, 60),
        [
            ((1024, 120, 60), "doesn't send to itself"),
            ((960, 128, 60), "the number for ring is not 128: there is one step less"),
            ((960, 120, 64), "the number for reduce_scatter is not 64"),
            ((960, 120, 120), "both halves"),
            ((64, 120, 60), "what the others send"),
        ],
    ),
    "37.3": (
        split(10),
        [
            (split(12), "isn't a multiple of the number of devices"),
            (split(10, []), "the second argument is a list of devices"),
            (lambda: splitt(10), "run the cells above"),
        ],
    ),
    "37.4": (
        doubling,
        [
            (lambda a, links: doubling(a, links, partner=lambda i, k: i ^ 1), "for 4 devices, dev"),
            (lambda a, links: doubling(a, links, at_once=False), "but the sum is"),
            (lambda a, links: doubling(a, links, send=False), "device 0 sent nothing"),
            (lambda a, links: doubling(a, links)[0], "expected a list of 2 arrays"),
            (to_everyone, "for 4 devices, device 0 sends 3 messages, and 2 are enough"),
            (sends_nothing_that_counts, "device 0 sends 0 bytes"),
        ],
    ),
}
