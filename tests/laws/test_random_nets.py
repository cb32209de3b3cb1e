"""Random networks of all layers: eager, hybridized and exported, they are one function.

A net is drawn as names of layers with two numbers each, which choose among what fits
the shape that arrives; what does not fit is left out. A failure prints the net.
"""

import kernels_as_python as plain
import numpy as np
import pytest
from hypothesis import Phase, note
from marks import numbers_drawn, try_law
from random_nets import (
    LAYERS,
    STARTS,
    assert_all_close,
    check,
    few,
    nets,
    network,
    results,
    states_of,
)

from minihybrid import autograd, nd, simulated_gpu
from minihybrid.core import lengths
from minihybrid.gluon import SymbolBlock, nn

# -- layers: (shape, two numbers) -> block, or None where it does not fit --------------


@pytest.mark.slow
@numbers_drawn(40, 120)
def test_hybridized_agrees_with_eager_on_numpy(n_drawn):
    try_law(lambda net: check(net, "numpy"), nets(6), n_drawn, **few)


@pytest.mark.slow
@numbers_drawn(4, 8)
def test_hybridized_agrees_with_eager_compiled(n_drawn):
    drawn = [Phase.generate]  # smaller ones compile, too
    try_law(lambda net: check(net, "cpu"), nets(4), n_drawn, phases=drawn, **few)


def marked_batches_agree(net):
    """Of three batches: kernels have symbols for lengths, and each index is checked."""
    block, x, tolerance = network(net)
    states = states_of(block)
    batches = [x, nd.concat(x, x, x, dim=0), x[:1]]
    expected = [results(block, each, states) for each in batches]
    block.hybridize(backend="plain", dynamic="batch")
    for each, values in zip(batches, expected, strict=True):
        assert_all_close(results(block, each, states), values, tolerance)


def test_a_wrong_length_in_a_kernel_is_seen(monkeypatch):
    """A planted fault: each symbol reaches the kernels one too small."""
    net = (4, 3), "float32", False, [("dense", 1, 0)]
    with plain.target():
        marked_batches_agree(net)
        real = lengths.Length.of
        monkeypatch.setattr(
            lengths.Length, "of", lambda name, n: of_less(real(name, n), {name: int(n) - 1})
        )
        with pytest.raises(Exception, match=r"."):  # a wrong number, or an element never written
            marked_batches_agree(net)


def of_less(length, symbols):
    length.symbols = symbols
    return length


@pytest.mark.slow
@numbers_drawn(8, 25)
def test_on_a_simulated_gpu_agrees_with_the_processor(n_drawn):
    """Eager and hybridized; every access of every thread is checked on the way."""
    try_law(simulated_gpu_agrees, nets(4), n_drawn, **few)


def simulated_gpu_agrees(net):
    block, x, tolerance = network(net)
    note(repr(block))
    states = states_of(block)
    expected = results(block, x, states)
    block.collect_params().reset_ctx(simulated_gpu())
    x = x.as_in_context(simulated_gpu())
    assert_all_close(results(block, x, states), expected, tolerance)
    block.hybridize()
    for _ in range(2):
        assert_all_close(results(block, x, states), expected, tolerance)
    assert all(p.target == "gpu" for p in block.plans.values())


@pytest.mark.slow
@numbers_drawn(20, 60)
def test_exported_agrees_with_eager(tmp_path_factory, n_drawn):
    def exported_agrees(net):
        block, x, tolerance = network(net)
        note(repr(block))
        assert_export_agrees(block, x, tolerance, tmp_path_factory.mktemp("net"))

    try_law(exported_agrees, nets(6), n_drawn, **few)


def test_net_without_parameters_is_exported(tmp_path):
    net = (4, 2, 3), "float32", False, [("flatten", 0, 0)]
    assert_export_agrees(*network(net), tmp_path)


def assert_export_agrees(block, x, tolerance, folder):
    """The file's net has all that the net has; what is fixed (center=False) it learns."""
    states = states_of(block)
    expected = results(block, x, states)
    block.hybridize(backend="numpy")
    results(block, x, states)
    for param, value in zip(block.collect_params().values(), states.values(), strict=True):
        param.set_data(nd.array(value, dtype=value.dtype))
    files = block.export(str(folder / "net"))
    again = SymbolBlock.imports(files[0], ["data"], files[1])
    for active in (False, True):
        again.hybridize(active, backend="numpy")
        assert_all_close(results(again, x, states), expected, tolerance)


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_is_drawn(name):
    """Each layer fits some start, and prints, so that a failure can be read."""
    blocks = [LAYERS[name](s, i, j) for s in STARTS[:-1] for i in range(6) for j in range(6)]
    assert any(blocks) and all(repr(b) for b in blocks)


@pytest.mark.parametrize("backend", ("numpy", "cpu"))
def test_dropout_masks_depend_on_the_seed_alone(backend):
    block = nn.HybridSequential()
    block.add(nn.Dropout(0.5), nn.Dropout(0.5, axes=(0,)))
    x = nd.ones((8, 9))
    masks = []
    for seed in (3, 4):
        for active in (False, True):
            block.hybridize(active, backend=backend)
            nd.random.seed(seed)
            with autograd.record():
                masks.append(block(x).asnumpy())
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[2], masks[3])
    assert (masks[0] != masks[2]).any()
