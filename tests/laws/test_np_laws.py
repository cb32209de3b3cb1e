"""All functions of `mx.np`, beside NumPy's: dtypes, numbers, gradients, arguments, errors."""

import inspect
import re
import warnings

import numpy as onp
import pytest
from rings import slow
from samples import np_calls

import minihybrid as mx
from minihybrid import autograd
from minihybrid.core.op import HybridError

DTYPES = "bool uint8 int8 int32 int64 float16 float32 float64".split()
NUMBERS = [True, False, 2, 0, -1, 300, 70_000, 2**40, 1.5, 2.0, -1e9, 1e39, onp.inf, onp.nan]
SCALARS = [onp.bool_(True), onp.int64(3), onp.float64(0.5), onp.float32(2), onp.array(1.5)]
CLOSE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-9}


def names(space, dtype, n=None):
    """What the expressions speak of, in NumPy or in `mx.np`."""
    make = (lambda v, d: space.array(v, dtype=d)) if space is mx.np else onp.array
    x = onp.array([1, 2, 3]).astype(dtype)
    y = onp.array([2, 1, 2]).astype(dtype)
    m = onp.array([[4, 1, 0], [1, 3, 1], [0, 1, 5]]).astype(dtype)
    w = onp.array([[1, 5, 3], [4, 2, 7]]).astype(dtype)
    values = {"x": (x, dtype), "y": (y, dtype), "m": (m, dtype), "w": (w, dtype)}
    values |= {"c": (onp.array([True, False, True]), "bool"), "i": (onp.array([2, 0, 1]), "int64")}
    return {"np": space, "n": n} | {key: make(*value) for key, value in values.items()}


def leaves(value):
    """The arrays of a result, one after another."""
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value.asnumpy() if isinstance(value, mx.nd.NDArray) else onp.asarray(value)]


def run(text, space, dtype, n=None):
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scope = names(space, dtype, n)
        return leaves(eval(text, scope))


# -- NumPy's answers -------------------------------------------------------------------
# What is not NumPy's, on purpose: (expressions, dtypes of the arrays, what differs, why).
WHOLE, NARROW, ANY = "bool uint8 int8 int32 int64", "uint8 int8 int32", " ".join(DTYPES)
EXCEPTIONS = [
    (r"(sum|prod|trace)\(", NARROW, "dtype", "as MXNet, sums keep the dtype of whole numbers"),
    (r"np\.where\((c|x), n, (2|n|0)\)", ANY, "dtype", "numbers alone are float32 in mx.np"),
    (r"np\.full\(\(2,\), n\)", ANY, "dtype", "numbers alone are float32 in mx.np"),
    (r"np\.(rint|fabs)\(", WHOLE, "dtype", "as MXNet: whole numbers stay what they are"),
    (r"np\.reciprocal\(", WHOLE, "dtype values", "1 / x of whole numbers is a float, not cut to 0"),
    (r"square|mod|remainder|%|power|\*\*", "bool", "dtype", "bool stays bool, not int8"),
    (r"np\.(cov|corrcoef|interp)", "float16", "dtype", "NumPy computes in float64; float32 is given"),
    (r"astype", ANY, "dtype", "the dtype that is asked for"),
    (r"np\.(arange|indices)", "float32", "dtype", "as MXNet: float32, and int32 places"),
    (r"mod|remainder|%", WHOLE, "refused", "a remainder by 0 is refused, not 0"),
    (r"clip", ANY, "refused", "bounds in the wrong order, or NaN, are refused"),
    (r"round|np\.diff|-x", "bool", "refused", "bools have no difference; convert them"),
    (r"ldexp", ANY, "refused", "2 ** 300 is no number of float32"),
    (r"power|\*\*", "bool int8 int32 int64", "lenient", "as MXNet: 2 ** -1 is cut to 0"),
    (r"ldexp", ANY, "lenient", "exponents may be fractions, and arrays float16"),
    (r"around|round", "bool", "lenient", "NumPy cannot scale bools"),
    (r"-x", "bool", "lenient", "as MXNet: -x is x * -1"),
    (r"np\.(round_|row_stack)", ANY, "lenient", "newer versions of NumPy lack this name"),
    (r"cholesky|det|inv|solve|svd", "float16", "lenient", "LAPACK lacks float16; float32 computes"),
]


def excepted(text, dtype, what):
    return any(
        re.search(pattern, text) and dtype in dtypes.split() and what in differs.split()
        for pattern, dtypes, differs, _ in EXCEPTIONS
    )


def beside(dtype, n):
    """The dtype of a number beside arrays of a dtype, as the rule says it."""
    kind = onp.dtype(dtype)
    if kind.kind == "f" or isinstance(n, (bool, onp.bool_)):
        return kind
    if not isinstance(n, (int, onp.integer)):
        return onp.dtype("float32")
    return onp.dtype("int64") if kind.kind == "b" else kind


def is_beyond(kind, n):
    """Whether a dtype cannot hold a number."""
    if kind.kind == "f":
        with onp.errstate(over="ignore"):
            return bool(onp.isfinite(n) and onp.isinf(kind.type(n)))
    return kind.kind != "b" and not onp.iinfo(kind).min - 1 < n < onp.iinfo(kind).max + 1


def holder(text, dtype, n):
    """The dtype that has to hold the number of an expression."""
    if re.search(r"np\.where\((c|x), n, [2n0]\)|np\.full\(\(2,\), n\)", text):
        return onp.dtype("float32")
    into = re.search(r"full|constant_values|initial", text)
    return onp.dtype(dtype) if into else beside(dtype, n)


def outcome(text, space, dtype, n=None):
    """The arrays that an expression gives, or the error."""
    try:
        return run(text, space, dtype, n)
    except Exception as error:
        assert space is onp or isinstance(error, HybridError), (text, dtype, n, repr(error))
        return error


def difference(text, dtype, n=None):
    """How the answer differs from NumPy's: `dtype`, `values`, ...; `None` if it does not."""
    theirs = outcome(text, onp, dtype, n.item() if hasattr(n, "item") else n)
    ours = outcome(text, mx.np, dtype, n)
    if isinstance(ours, mx.core.op.NumberError) and is_beyond(holder(text, dtype, n), n):
        return None
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        same = isinstance(theirs, Exception) and isinstance(ours, Exception)
        return None if same else "refused" if isinstance(ours, Exception) else "lenient"
    if [a.shape for a in ours] != [a.shape for a in theirs]:
        return "shape"
    usual = onp.dtype(dtype if dtype.startswith("float") else "float32")
    for a, b in zip(ours, theirs, strict=True):
        close = max(CLOSE.get(a.dtype.name, 0), CLOSE.get(b.dtype.name, 0))
        with onp.errstate(all="ignore"):
            a64, b64 = a.astype("float64"), b.astype(a.dtype).astype("float64")
        if n is not None and is_beyond(onp.dtype("float16"), n) and b.dtype == "float16":
            continue  # NumPy's smaller float overflows
        if not onp.allclose(a64, b64, close, close, equal_nan=True):
            return "values"
        if a.dtype != (usual if b.dtype.kind == "f" else b.dtype):
            return "dtype"
    return None


@pytest.mark.parametrize("text", np_calls.PLAIN + np_calls.MADE)
def test_a_function_gives_numpy_s_dtype_and_values(text):
    for dtype in DTYPES if text in np_calls.PLAIN else ["float32"]:
        found = difference(text, dtype)
        assert found is None or excepted(text, dtype, found), (dtype, found)


@pytest.mark.parametrize("text", np_calls.NUMBERED)
def test_a_python_number_is_promoted_as_numpy_promotes_it(text):
    for dtype in DTYPES:
        for n in NUMBERS + SCALARS:
            found = difference(text, dtype, n)
            assert found is None or excepted(text, dtype, found), (dtype, n, found)


def test_each_exception_is_one():
    """What no longer differs from NumPy leaves the table."""
    for pattern, dtypes, differs, why in EXCEPTIONS:
        texts = [t for t in np_calls.ALL if re.search(pattern, t)]
        assert any(
            difference(text, dtype, n) in differs.split()
            for text in texts
            for dtype in dtypes.split()
            for n in (None, *NUMBERS)
            if (n is None) == (text not in np_calls.NUMBERED)
        ), (pattern, why)


def test_every_function_is_in_the_list():
    called = " ".join(np_calls.ALL)
    for space, prefix in ((mx.np, "np"), (mx.np.linalg, "np.linalg"), (mx.np.random, "np.random")):
        for name in dir(space):
            value = getattr(space, name)
            if name.startswith("_") or not callable(value) or isinstance(value, type):
                continue
            assert f"{prefix}.{name}(" in called or name in ("seed", "shuffle"), f"{prefix}.{name}"
