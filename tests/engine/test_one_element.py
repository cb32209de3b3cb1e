"""What `asnumpy()` gives of one element is a number for Python, and a plain array for NumPy."""

import pickle

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import nd

DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64")
SHAPES = ((1,), (1, 1), (1, 1, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("array", [nd.array, mx.np.array], ids=["nd", "np"])
def test_python_takes_it_as_a_number(array, shape, dtype):
    actual = array(np.full(shape, 3), dtype=dtype).asnumpy()
    assert (actual.shape, actual.dtype) == (shape, dtype) and isinstance(actual, np.ndarray)
    assert ("%.1f" % actual, "%d" % actual) == ("3.0", "3")  # noqa: UP031, what old programs write
    assert (float(actual), int(actual)) == (3.0, 3)
    same = np.full(shape, 3, dtype)
    assert (repr(actual), str(actual)) == (repr(same), str(same))


@pytest.mark.parametrize("shape", [(0,), (2,), (1, 2)])
def test_other_arrays_are_plain_and_no_numbers(shape):
    actual = nd.ones(shape).asnumpy()
    assert type(actual) is np.ndarray
    with pytest.raises(TypeError):
        float(actual)


RESULTS = {
    "sum of both": lambda a, b: a + b,
    "sum of itself": lambda a, b: a + a,
    "behind": lambda a, b: b - a,
    "power": lambda a, b: a**2,
    "comparison": lambda a, b: a > b,
    "function": lambda a, b: np.exp(a),
    "product": lambda a, b: b @ a,
    "dot": lambda a, b: b.dot(a),
    "joined": lambda a, b: np.concatenate([a, a]),
    "stacked": lambda a, b: np.stack([a, a]),
    "rounded": lambda a, b: np.round(a),
    "chosen": lambda a, b: np.where(a > 1, a, 0),
    "as an array": lambda a, b: np.asarray(a),
    "a copy": lambda a, b: np.array(a),
    "pickled": lambda a, b: pickle.loads(pickle.dumps(a)),
    "an array here": lambda a, b: nd.array(a).data,
    "the same memory": lambda a, b: nd.from_numpy(a).data,
}


@pytest.mark.parametrize("name", RESULTS)
def test_what_is_computed_from_it_is_plain(name):
    b = np.full((3, 1), 2, "float32")
    actual = RESULTS[name](nd.array([2.5]).asnumpy(), b)
    assert type(actual) is np.ndarray
    if name not in ("an array here", "the same memory"):
        np.testing.assert_array_equal(actual, RESULTS[name](np.array([2.5], "float32"), b))


@pytest.mark.parametrize("reduce", [np.sum, np.mean, np.max, np.std, np.argmax])
def test_a_reduction_gives_a_scalar(reduce):
    a = nd.array([2.5]).asnumpy()
    assert type(reduce(a)) is type(reduce(np.asarray(a))) and reduce(a) == reduce(np.asarray(a))


def test_its_memory_is_its_own():
    x = nd.array([1])
    a = x.asnumpy()
    a[:] = 5
    a += 1
    assert (a.item(), x.item()) == (6, 1)
