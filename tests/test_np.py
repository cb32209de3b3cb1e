"""`mx.np` beside MXNet 1.9.1's answers, and what np programs rely on."""
import json
import pathlib

import numpy as onp
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd, np, npx, sym
from minihybrid.op import AttrError, DTypeError, HybridError, ShapeError
from minihybrid.tracing import TraceError

GOLDEN = pathlib.Path(__file__).parent / "golden" / "np"
ANSWERS = json.loads((GOLDEN / "expressions.json").read_text(encoding="utf-8"))
# Text that says the same in NumPy's words of today.
WORDS = {"dtype[float32]": "Float32DType", "dtype[bool_]": "BoolDType"}
LAST_DIGITS = 2e-6


@pytest.fixture
def in_np():
    npx.set_np()
    yield
    npx.reset_np()


@pytest.fixture(scope="module")
def scope():
    made = {"np": np, "npx": npx, "mx": mx}
    exec(ANSWERS["names"], made)
    return made


def assert_as_described(value, wanted, what):
    """Class, shape and dtype are equal; numbers, too, but for their last digits."""
    if isinstance(wanted, list):
        assert isinstance(value, (list, tuple)) and len(value) == len(wanted), what
        for v, w in zip(value, wanted, strict=True):
            assert_as_described(v, w, what)
        return
    if "values" not in wanted:
        assert repr(value) == wanted["text"], what
        return
    assert type(value).__name__ == wanted["type"], what
    assert list(value.shape) == wanted["shape"], what
    assert str(onp.dtype(value.dtype)) == wanted["dtype"], what
    numbers = onp.array(wanted["values"]).reshape(value.shape)
    onp.testing.assert_allclose(value.asnumpy(), numbers, LAST_DIGITS, LAST_DIGITS,
                                err_msg=what)
    if onp.array_equal(value.asnumpy(), numbers, equal_nan=True):
        assert repr(value) == wanted["text"], what


@pytest.mark.parametrize("expression", ANSWERS["expressions"])
def test_expression_gives_what_mxnet_gives(expression, scope, in_np):
    assert_as_described(eval(expression, scope), ANSWERS["expressions"][expression],
                        expression)
