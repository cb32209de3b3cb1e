"""Right and wrong answers to the exercises of chapter 31."""

import math

import numpy as np

from minihybrid.simt import cuda, float32

K, V, S = 1, 2, 3


def kernel(whole=False, hides=True, scores_wait=True, tiles_wait=True, late=False):
    """Causal attention, or what's near it."""

    @cuda.jit
    def causal(q, k, v, out):
        tile = cuda.shared.array((4, 16, 17), float32)
        tx, ty, first = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x * 16
        tile[0, ty, tx] = q[first + ty, tx]
        top, total, mine = float32(-math.inf), float32(0), float32(0)
        for j in range(0, k.shape[0] if whole else first + 16, 16):
            tile[K, ty, tx], tile[V, ty, tx] = k[j + ty, tx], v[j + ty, tx]
            cuda.syncthreads()
            score = float32(0)
            for c in range(16):
                score += tile[0, ty, c] * tile[K, tx, c] * float32(0.25)
            seen = j + tx <= first + ty - late or not hides
            tile[S, ty, tx] = score if seen else float32(-math.inf)
            if scores_wait:
                cuda.syncthreads()
            for i in range(16):
                new = max(top, tile[S, ty, i])
                change, weight = math.exp(top - new), math.exp(tile[S, ty, i] - new)
                total, mine = total * change + weight, mine * change + weight * tile[V, i, tx]
                top = new
            if tiles_wait:
                cuda.syncthreads()
        out[first + ty, tx] = mine / total

    return causal


def launched(run, grid=4):
    """A call of a kernel, for 64 words."""
    q, k, v = (np.ones((64, 16), np.float32) for _ in range(3))
    return lambda: run[grid, (16, 16)](q, k, v, np.zeros_like(q))


def merge(a, b, corrects=True, safe=True, divides=False, turned=True):
    """The state of both halves, or what's near it."""
    new = np.maximum(a[0], b[0])
    base = np.where(np.isinf(new), 0, new) if safe else new
    left, right = (np.exp(s[0] - base) if corrects else np.ones_like(new) for s in (a, b))
    total = a[1] * left + b[1] * right
    left, right = (left[:, None], right[:, None]) if turned else (left[:2], right[:2])
    mine = a[2] * left + b[2] * right
    return new, total, mine / total[:, None] if divides else mine


def merge_without_top(a, b):
    """It forms exp(top), which overflows."""
    new, left, right = np.maximum(a[0], b[0]), np.exp(a[0]), np.exp(b[0])
    base = np.exp(np.where(np.isinf(new), 0, new))
    mine = a[2] * left[:, None] + b[2] * right[:, None]
    return new, (a[1] * left + b[1] * right) / base, mine / base[:, None]


ANSWERS = {
    "31.1": (
        (135168, 69632, 36864),
        [
            ((8448, 69632, 36864), "a row has 16 elements"),
            ((131072, 69632, 36864), "the queries are also loaded"),
            ((135168, 67584, 36864), "only keys and values are"),
            ((135168, 69632, 33792), "only keys and values are"),
            ((12288, 12288, 12288), "every block loads all keys"),
        ],
    ),
    "31.2": (
        launched(kernel(tiles_wait=False, whole=True)),
        [
            (launched(kernel()), "is the last barrier gone"),
            (launched(kernel(scores_wait=False)), "the race for the scores"),
            (launched(kernel(whole=True), grid=5), "4 blocks of 16 by 16"),
            (lambda: brokenn(0), "run the cells above"),
        ],
    ),
    "31.3": (
        merge,
        [
            (lambda a, b: merge(a, b, corrects=False), "for 3 and 3 keys: total is"),
            (lambda a, b: merge(a, b, divides=True), "for 3 and 3 keys: mine is"),
            (lambda a, b: merge(a, b, safe=False), "for no keys on either side: total is nan"),
            (lambda a, b: merge(a, b, turned=False), "for 3 and 3 keys: mine is"),
            (merge_without_top, "for scores near 1,000: total is nan"),
            (lambda a, b: merge(a, b)[1:], "expected a state (top, total, mine)"),
            (lambda a, b: (a[0].max(), *a[1:]), "top has shape ()"),
        ],
    ),
    "31.4": (
        kernel(),
        [
            (kernel(whole=True), "end the loop over j at the diagonal"),
            (kernel(hides=False), "for 16 words: out[0"),
            (kernel(late=True), "for 16 words: out[0"),
            (kernel(scores_wait=False), "tile[3, 0, 1] is read"),
            (merge, "with @cuda.jit above it"),
        ],
    ),
}
