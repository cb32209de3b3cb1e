"""Graphs that went to ONNX come back and give the same answers."""

import re

import numpy as np
import pytest
from minihybrid.nd import NDArray
from minihybrid.onnx import import_to_gluon
from samples import UNIQUE, cases_of
from test_onnx_export import LAYERS, NETS, Sample, as_list, data_for, parts_of, specs_of

from minihybrid import nd, sym
from minihybrid.core.files import FileError
from minihybrid.core.op import Spec
from minihybrid.formats.onnx.export.draft import ExportError
from minihybrid.formats.onnx.export.model import write_onnx

pytest.importorskip(
    "onnx", reason="the library onnx is not installed: no graph goes there and back"
)


@pytest.mark.parametrize("name", [*LAYERS, *NETS])
def test_a_net_comes_back_for_every_batch(name, tmp_path):
    net, shape = (LAYERS | NETS)[name]
    path = write_onnx(*parts_of(net, shape), tmp_path / "net.onnx")
    again = import_to_gluon(path)
    for batch in (shape[0], 1, 5):
        x = data_for(net, (batch, *shape[1:]))
        for a, b in zip(as_list(again(x)), as_list(net(x)), strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), 1e-5, 1e-5)


def test_layers_come_back_as_what_they_were(tmp_path):
    """Not as their parts: compiled, they are as fast as before."""
    net, shape = NETS["resnet 18"]
    symbol, params, specs = parts_of(net, shape)
    again = import_to_gluon(write_onnx(symbol, params, specs, tmp_path / "net.onnx"))
    actual = [
        [node.op.name for node, _ in s.get_internals().refs if node.op]
        for s in (symbol, again._outputs)
    ]
    for op in ("Convolution", "BatchNorm", "FullyConnected", "Pooling"):
        assert actual[0].count(op) == actual[1].count(op) > 0
    weights = [p.name for p in again.collect_params().values() if p.grad_req != "null"]
    assert len(weights) == len([n for n in params if "running" not in n])


# What an ONNX file can hold, but these nets cannot be.
NOT_BACK = (
    "no output depends on an input",
    "its output .* is not supported",
    "an array with numbers is needed",
    "quantizelinear.*: not supported here",  # int8 is only written
)


@pytest.mark.slow
def test_operators_come_back(tmp_path):
    back, not_back = 0, 0
    for op in UNIQUE:
        for case in cases_of(op):
            sample = Sample(case)
            arrays = sample.arrays("float32")
            try:
                path = write_onnx(
                    sample.symbol, {}, specs_of(arrays), tmp_path / "net.onnx", dynamic=False
                )
            except ExportError:
                continue
            try:
                again = import_to_gluon(path)
            except FileError as error:
                assert any(re.search(words, str(error), re.I) for words in NOT_BACK)
                not_back += 1
                continue
            actual = as_list(again(*(NDArray(arrays[n]) for n in again._inputs)))
            for a, b in zip(actual, sample.answers(arrays), strict=True):
                assert a.shape == b.shape, case
                np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), 1e-5, 1e-5, err_msg=str(case))
            back += 1
    assert back > 1300 and not_back < 100


@pytest.mark.parametrize(
    "name", "expm1 log1p cbrt rint round broadcast_mod broadcast_hypot broadcast_arctan2".split()
)
def test_small_numbers_keep_their_digits_and_zeros_their_signs(name, tmp_path):
    """Of a function that ONNX has not, what comes back is the function itself."""
    x = np.float32(
        [
            0,
            -0.0,
            1e-30,
            1e-10,
            -1e-10,
            1e-4,
            0.3,
            -0.6,
            1,
            -1,
            5,
            -5,
            3e4,
            80,
            -80,
            np.inf,
            -np.inf,
            np.nan,
        ]
    )
    given = [x] if "broadcast" not in name else list(map(np.ravel, np.meshgrid(x, x)))
    function = getattr(sym, name)(*map(sym.var, "ab"[: len(given)]))
    specs = {n: Spec(x.shape, x.dtype) for n, x in zip("ab", given, strict=False)}
    path = write_onnx(function, {}, specs, tmp_path / "net.onnx", dynamic=False)
    got = import_to_gluon(path)(*map(NDArray, given)).asnumpy()
    expected = getattr(nd, name)(*map(NDArray, given)).asnumpy()
    np.testing.assert_allclose(got, expected, 2e-6, 0)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))
