"""Attention beside its definition: masks, lengths that blocks don't divide, memory, errors."""

import re

import numpy as np
import pytest
from minihybrid.sym import trace

from minihybrid import ShapeError, autograd, nd, npx, simulated_gpu
from minihybrid import np as mnp
from minihybrid.core.op import Spec
from minihybrid.core.passes.gradient import joint_graph
from minihybrid.gluon import HybridBlock
from minihybrid.ops.cpu import machine
from minihybrid.ops.cpu.flash import backward_scratch, forward_scratch
from minihybrid.passes import expand


def attention(F, q, k, v, *mask, **attrs):
    return F.scaled_dot_product_attention(q, k, v, *mask, **attrs)


class Attention(HybridBlock):
    def __init__(self, **attrs):
        super().__init__()
        self.attrs = attrs

    def hybrid_forward(self, F, *inputs):
        return attention(F, *inputs, **self.attrs)


def by_definition(q, k, v, mask=1, is_causal=False):
    """The result, and the gradients of q, k and v where that of the result is its cosine."""
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(-1, -2) * scale
    seen = np.broadcast_to(mask, scores.shape) != 0
    if is_causal:
        seen = seen & np.tri(*scores.shape[-2:], dtype=bool)
    weights = np.where(seen, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    out = weights @ v
    up = np.cos(out)
    towards = up @ v.swapaxes(-1, -2)
    towards = weights * (towards - (towards * weights).sum(-1, keepdims=True)) * scale
    return out, towards @ k, towards.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ up


def drawn(lead, length, keys, size, deep):
    rng = np.random.default_rng(length + keys)
    return [rng.standard_normal((*lead, *s)) for s in ((length, size), (keys, size), (keys, deep))]


def on_tape(net, arrays, mask, ctx=None):
    inputs = [nd.array(a, dtype=a.dtype, ctx=ctx) for a in arrays]
    for x in inputs:
        x.attach_grad()
    with autograd.record():
        out = net(*inputs, *(nd.array(m, ctx=ctx) for m in mask))
    out.backward(out.cos())
    return [a.asnumpy() for a in (out, *(x.grad for x in inputs))]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "lead, length, keys, size, deep",
    [
        ((2, 3), 5, 7, 4, 6),
        ((2,), 100, 130, 16, 32),  # blocks that overlap
        ((1, 2), 65, 64, 64, 64),
        ((), 1, 70, 8, 3),  # a query alone, as in sampling
    ],
)
def test_lengths_of_all_kinds(lead, length, keys, size, deep, is_causal):
    arrays = drawn(lead, length, keys, size, deep)
    expected = by_definition(*arrays, is_causal=is_causal)
    for hybrid in (False, True):
        net = Attention(is_causal=is_causal)
        net.hybridize(hybrid)
        for a, b in zip(on_tape(net, arrays, ()), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_tiles_whose_width_does_not_divide_a_row(monkeypatch):
    """With 16 registers, a row of five vectors takes tiles of two or three; the last overlap."""
    nbytes, _ = machine.registers()
    monkeypatch.setattr("minihybrid.ops.cpu.products.registers", lambda: (nbytes, 16))
    five = 5 * machine.width(8)
    arrays = drawn((2,), five, five, five, five)
    net = Attention()
    net.hybridize()
    for a, b in zip(on_tape(net, arrays, ()), by_definition(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [3, 20, 5 * machine.width(8), 100])
def test_symbolic_sizes(size):
    arrays = drawn((2,), 30, 40, size, size)
    net = Attention()
    net.hybridize(dynamic={2: "size"})
    for a, b in zip(on_tape(net, arrays, ()), by_definition(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("ctx", [None, simulated_gpu()], ids=str)
@pytest.mark.parametrize("shape", [(5, 7), (1, 7), (5, 1), (2, 1, 1, 7), (1, 3, 5, 7), (7,)])
def test_a_mask_repeats_along_axes_of_length_1(shape, ctx):
    arrays = drawn((2, 3), 5, 7, 4, 6)
    mask = (np.arange(np.prod(shape)) % 3 != 1).reshape(shape).astype("f8")
    if shape[-2:-1] == (5,):
        mask[..., 0, :] = 0  # a query that sees no key
    net = Attention()
    net.hybridize()
    for a, b in zip(on_tape(net, arrays, [mask], ctx), by_definition(*arrays, mask), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_gpu_hides_later_keys_as_well():
    arrays = drawn((2,), 5, 7, 4, 6)
    net = Attention(is_causal=True)
    net.hybridize()
    expected = by_definition(*arrays, is_causal=True)
    for a, b in zip(on_tape(net, arrays, (), simulated_gpu()), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_given_mask_is_used_under_every_name():
    arrays = drawn((2,), 3, 4, 5, 6)
    mask = np.array([1, 0, 1, 1])
    expected, *_ = by_definition(*arrays, mask)
    q, k, v, m = (nd.array(a, dtype=a.dtype) for a in (*arrays, mask))
    results = [
        nd.scaled_dot_product_attention(q, k, v, m),
        nd.scaled_dot_product_attention(q, k, v, mask=m),
        nd.scaled_dot_product_attention(query=q, key=k, value=v, mask=m, use_mask=True),
        npx.scaled_dot_product_attention(
            *(mnp.array(a, dtype="float64") for a in arrays), mnp.array(mask) > 0
        ),
    ]
    for result in results:
        np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-12)


def test_no_value_of_the_graph_has_an_element_for_each_pair():
    """Nor do kernels need more memory for longer sequences."""
    length = 1000
    spec = Spec((length, 8), np.dtype("float32"))
    graph, _ = trace(
        lambda q, k, v: attention(nd, q, k, v, is_causal=True), dict.fromkeys("qkv", spec)
    )
    joint = joint_graph(expand(graph, True), list("qkv"))
    sizes = [s.size for node in joint.nodes for s in node.specs]
    assert len(joint.heads) == 4 and max(sizes) == spec.size
    for needs in (forward_scratch, backward_scratch):
        assert needs(*2 * [[Spec((2, 512, 64), spec.dtype)] * 3]) == needs(
            *2 * [[Spec((2, 4096, 64), spec.dtype)] * 3]
        )


@pytest.mark.parametrize(
    "shapes, message",
    [
        (
            [(2, 3, 4), (2, 5, 3), (2, 5, 6)],
            "scaled_dot_product_attention: query (2, 3, 4), key (2, 5, 3) and value (2, 5, 6) "
            "don't fit together; needed: (..., L, E), (..., S, E) and (..., S, V) with the same "
            "leading axes, which broadcast_to can repeat",
        ),
        ([(2, 3, 4), (1, 5, 4), (1, 5, 6)], "don't fit together"),
        ([(2, 3, 4), (2, 5, 4), (2, 6, 6)], "don't fit together"),
        ([(4,), (4,), (4,)], "don't fit together"),
        (
            [(2, 3, 4), (2, 5, 4), (2, 5, 6), (2, 5)],
            "scaled_dot_product_attention: the mask has shape (2, 5), but one that broadcasts to "
            "the scores' shape (2, 3, 5) is needed; reshape it, with 1 for each axis that it "
            "repeats",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes, message):
    with pytest.raises(ShapeError, match=re.escape(message)):
        nd.scaled_dot_product_attention(*map(nd.ones, shapes))
