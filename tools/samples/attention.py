"""Samples of attention: masks that repeat, blocks that overlap.

Where a key is hidden, its value must be finite, so these have kinds that stay finite.
"""

from sampling import bits, chance, of

BLOCKS = (2, 70, 5), (2, 130, 5), (2, 130, 3)
CAUSAL = [chance(2, n, 4) for n in (3, 5, 5)]
TOWARDS = [chance(2, 3, 4), chance(2, 3), chance(2, 3)]
GRAD = (2, 3, 2), (2, 3), (2, 3)  # of the result (B, L, V), lse, delta

SAMPLES = {
    "_attention": [
        of((2, 3, 4), (2, 5, 4), (2, 5, 2), scale=0.5),
        of(*CAUSAL, scale=1.0, causal=True),
        of(*CAUSAL, bits(2, 1, 5), scale=1.0, masked=True),
        of(*(chance(*shape) for shape in BLOCKS), scale=0.3, causal=True, smooth=False),
        of(*BLOCKS, scale=0.3, smooth=False),
    ],
    "_attention_grad": [
        of((2, 3, 4), (2, 5, 4), (2, 5, 2), *GRAD, scale=0.5),
        of(*CAUSAL, *TOWARDS, scale=0.4, causal=True),
        of(*CAUSAL, *TOWARDS, bits(1, 3, 5), scale=1.0, masked=True),
        of(
            *(chance(*shape) for shape in (*BLOCKS, (2, 70, 3), (2, 70), (2, 70))),
            scale=0.1,
            smooth=False,
        ),
    ],
    "scaled_dot_product_attention": [
        of((2, 3, 4), (2, 5, 4), (2, 5, 2)),
        of(*CAUSAL, is_causal=True),
        of(*(chance(2, 2, n, 3) for n in (2, 4, 4)), bits(2, 1, 1, 4), use_mask=True),
        of((3, 4), (5, 4), (5, 2), scale=0.7),
        of((0, 3, 4), (0, 5, 4), (0, 5, 2)),
    ],
}
