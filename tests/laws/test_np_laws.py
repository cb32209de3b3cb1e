"""All functions of `mx.np`, beside NumPy's: dtypes, numbers, gradients, arguments, errors."""

import inspect
import re
import warnings

import numpy as onp
import pytest
from beside.page import BESIDE
from marks import for_each, slow
from samples import np_calls

import minihybrid as mx
from minihybrid.core import tape
from minihybrid.core.op import HybridError
from minihybrid.np.public import flat

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
    (r"np\.(cov|corrcoef|interp)", "float16", "dtype", "NumPy computes in float64"),
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


@for_each(np_calls.PLAIN + np_calls.MADE)
def test_a_function_gives_numpy_s_dtype_and_values(text):
    for dtype in DTYPES if text in np_calls.PLAIN else ["float32"]:
        actual = difference(text, dtype)
        assert actual is None or excepted(text, dtype, actual), (dtype, actual)


VIEWS = {"x[1]", "x[i]"}  # documented; and methods whose `copy=False` asks for one
SHARED = [t for t in np_calls.PLAIN if t not in VIEWS and "copy=False" not in t]


@for_each(SHARED)
def test_a_result_shares_memory_with_no_input(text):
    for dtype in ("float32", "int32", "bool"):
        scope = names(mx.np, dtype)
        arrays = [v for v in scope.values() if isinstance(v, mx.nd.NDArray)]
        with warnings.catch_warnings(), onp.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                results = flat(eval(text, scope))
            except HybridError:
                continue
        for out in results:
            if isinstance(out, mx.nd.NDArray):
                assert not any(onp.shares_memory(out.data, a.data) for a in arrays), dtype


@for_each(np_calls.NUMBERED)
def test_a_python_number_is_promoted_as_numpy_promotes_it(text):
    for dtype in DTYPES:
        for n in NUMBERS + SCALARS:
            actual = difference(text, dtype, n)
            assert actual is None or excepted(text, dtype, actual), (dtype, n, actual)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
@pytest.mark.parametrize("way", ["x {}= n", "np.{}(x, n, out=x)"], ids=["in place", "out"])
def test_writing_a_result_casts_as_numpy_casts(way, sign):
    """Within a kind only: a fraction does not vanish in whole numbers."""
    called = dict(zip("+-*/", ("add", "subtract", "multiply", "true_divide"), strict=True))
    text = way.format(sign if "{}=" in way else called[sign])
    for dtype in DTYPES:
        for n in (True, 2, 1.5):
            ends = []
            for space in (onp, mx.np):
                scope = names(space, dtype, n)
                try:
                    exec(text, scope)
                    ends += leaves(scope["x"])
                except (TypeError, HybridError) as error:
                    assert space is onp or "astype" in str(error), error
                    ends.append(None)
            theirs, ours = ends
            assert (theirs is None) == (ours is None), (dtype, n, ends)
            if ours is not None:
                assert ours.dtype == dtype
                onp.testing.assert_allclose(ours, theirs, 4e-3, err_msg=f"{text} {dtype} {n}")


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


@pytest.mark.parametrize("text", BESIDE)
def test_the_page_of_differences_says_what_happens(text):
    scope = {"np": mx.np, "x": mx.np.array([1.0, -1.0])}
    scope["b"] = scope["x"] > 0
    for name, dtype in (("i", "int32"), ("u", "uint8"), ("h", "float16")):
        scope[name] = mx.np.array([1, 2], dtype=dtype)
    try:
        actual = repr(eval(text, scope))
    except HybridError as error:
        actual = type(error).__name__
    assert actual == BESIDE[text][1]


def test_every_function_is_in_the_list():
    called = " ".join(np_calls.ALL)
    for space, prefix in ((mx.np, "np"), (mx.np.linalg, "np.linalg"), (mx.np.random, "np.random")):
        for name in dir(space):
            value = getattr(space, name)
            if name.startswith("_") or not callable(value) or isinstance(value, type):
                continue
            assert f"{prefix}.{name}(" in called or name in ("seed", "shuffle"), f"{prefix}.{name}"


# -- eager and hybridized --------------------------------------------------------------
NO_ARRAY = r"x\.dtype|np\.(full|shape|ndim|size)\("  # in what is called, or in what it gives
HYBRID = [t for t in np_calls.NUMBERED + np_calls.PLAIN if not re.search(NO_ARRAY, t)]


def compiled(text, dtype, n, backend):
    """The arrays that an expression gives as a hybridized function of its arrays."""
    scope = names(mx.np, dtype, n)
    used = [k for k in ("x", "y", "m", "w", "c", "i") if re.search(rf"\b{k}\b", text)]

    class Net(mx.gluon.HybridBlock):
        def forward(self, *arrays):
            out = eval(text, scope | dict(zip(used, arrays, strict=True)))
            return list(out) if isinstance(out, tuple) else out

    net = Net()
    net.hybridize(backend=backend)
    return leaves(net(*(scope[k] for k in used)))


def agree(text, dtype, n, backend):
    eager = outcome(text, mx.np, dtype, n)
    try:
        with warnings.catch_warnings(), onp.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            hybrid = compiled(text, dtype, n, backend)
    except HybridError as error:
        if "NumPy computes it" in str(error) or "Symbol" in str(error):
            return  # no graph can hold it, which it says
        assert isinstance(eager, HybridError), (text, dtype, n, error)
        assert str(error).endswith(str(eager).partition(": ")[2]), (error, eager)
        return
    assert not isinstance(eager, Exception), (text, dtype, n, eager)
    for a, b in zip(eager, hybrid, strict=True):
        close = CLOSE.get(a.dtype.name, 0)
        assert a.dtype == b.dtype and a.shape == b.shape, (text, dtype, n)
        onp.testing.assert_allclose(
            a.astype("float64"), b.astype("float64"), close, close, err_msg=f"{text} {dtype} {n}"
        )


@for_each(HYBRID)
def test_a_function_gives_the_same_hybridized(text):
    for dtype in DTYPES:
        for n in (True, 2, -1, 1.5, 70_000) if text in np_calls.NUMBERED else (None,):
            agree(text, dtype, n, "numpy")


@pytest.mark.parametrize("text", slow(*(t for t in np_calls.NUMBERED if t in HYBRID)))
def test_a_number_is_promoted_the_same_by_kernels(text):
    for dtype, n in (("int32", 1.5), ("uint8", 2), ("float16", 1.5), ("bool", 2)):
        agree(text, dtype, n, "cpu")


# -- gradients -------------------------------------------------------------------------
# What is not smooth, or drawn without a gradient: its result, its places, is whole.
X = onp.array([1.3, 2.6, 0.7])
Y = onp.array([0.4, 3.1, 1.9])
M = onp.array([[4.0, 1.2, 0.3], [0.9, 3.0, 1.1], [0.2, 1.4, 5.0]])
W = onp.array([[1.1, 5.2, 3.4], [4.5, 2.3, 7.9]])
STEP = 1e-6


def weighed(text, values, recorded):
    """A sum of what an expression gives, each element with a weight; and its leaf."""
    scope = {"np": mx.np, "n": 1.5, "c": mx.np.array([1, 0, 1]) > 0}
    scope["i"] = mx.np.array([2, 0, 1], dtype="int64")
    scope |= {k: mx.np.array(v, dtype="float64") for k, v in values.items()}
    if recorded:
        for value in (scope[k] for k in values):
            value.attach_grad()
    mx.random.seed(7)
    with tape.modes(recording=recorded, training=recorded):
        out = eval(text, scope)
        parts = [v for v in flat(out) if isinstance(v, mx.nd.NDArray)]
        parts = [v for v in parts if onp.dtype(v.dtype).kind == "f"]
        weights = onp.random.default_rng(0)
        total = sum(
            (v * mx.np.array(weights.uniform(0.5, 1.5, v.shape), dtype="float64")).sum()
            for v in parts
        )
        for k in values:  # another term, beside which a lost gradient would be 0
            total = total + (scope[k] * 3).sum()
    return total, scope


@for_each(np_calls.NUMBERED + np_calls.PLAIN + np_calls.DRAWN)
def test_under_record_a_function_has_its_gradient_or_refuses(text):
    """None leaves the tape in silence."""
    values = {
        k: v for k, v in zip("xymw", (X, Y, M, W), strict=True) if re.search(rf"\b{k}\b", text)
    }
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            total, scope = weighed(text, values, True)
        except HybridError as error:
            known = ("has no gradient", "whole numbers", "on the tape", "does not fit", "np.lcm")
            assert any(words in str(error) for words in known), error
            return
        if values:
            total.backward()
        for k, v in values.items():
            slope = onp.zeros(v.shape)
            for place in onp.ndindex(v.shape):
                ends = []
                for step in (STEP, -STEP):
                    moved = v.copy()
                    moved[place] += step
                    ends.append(weighed(text, values | {k: moved}, False)[0].item())
                slope[place] = (ends[0] - ends[1]) / (2 * STEP)
            actual = scope[k].grad.asnumpy()
            onp.testing.assert_allclose(actual, slope, 1e-5, 1e-5, err_msg=f"{text}: {k}")


# -- arguments -------------------------------------------------------------------------
CALLS = {}  # public name -> the first expression that calls it, and nothing around it
for _text in np_calls.PLAIN + np_calls.MADE + np_calls.DRAWN:
    _call = re.fullmatch(r"(np(?:\.\w+)+|[xmw]\.[a-z]\w*)\((?:[^()]|\([^()]*\))*\)", _text)
    if _call:
        CALLS.setdefault(_call.group(1), _text)
UFUNC = ("out", "where", "casting", "order", "dtype", "subok", "signature")
# A value for each argument that NumPy's functions have, which changes the answer or nothing.
VALUES = {
    "dtype": "'float64'",
    "order": "'F'",
    "casting": "'no'",
    "where": "np.array([True, False, True]) > 0",
    "keepdims": "True",
    "keepdim": "True",
    "axis": "0",
    "axis1": "1",
    "axis2": "0",
    "initial": "100",
    "ddof": "1",
    "decimals": "1",
    "copy": "True",
    "ndmin": "4",
    "subok": "False",
    "kind": "'stable'",
    "mode": "'wrap'",
    "k": "1",
    "offset": "1",
    "indexing": "'ij'",
    "returned": "True",
    "endpoint": "False",
    "base": "2.0",
    "weights": "np.array([1.0, 2.0, 3.0])",
    "reverse": "True",
}


def with_argument(text, argument):
    """A call with one more argument, by name."""
    return f"{text[:-1]}{'' if text.endswith('()') else ', '}{argument})"


def numpys_arguments(name):
    """The arguments of NumPy's function of a name, as far as it says them."""
    function = onp
    try:
        for part in name.split(".")[1:]:
            function = getattr(function, part)
    except AttributeError:
        return ()
    if isinstance(function, onp.ufunc):
        return UFUNC
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # it is written in C
        return ("dtype", "order", "out", "copy", "casting", "like")


@for_each(sorted(CALLS))
def test_an_unknown_argument_is_refused(name):
    public = name if name.startswith("np.") else f"ndarray.{name[2:]}"
    for word in ("misspelt", "otu", "axs", "dtpye"):
        error = outcome(with_argument(CALLS[name], f"{word}=None"), mx.np, "float32")
        assert isinstance(error, HybridError), (name, word)
        assert re.match(rf"{public}: |np{name[1:]}: |{name[2:]}: ", str(error)), error
        assert f"no argument is called '{word}'" in str(error), error
    for word, meant in (("otu", "out"), ("axs", "axis"), ("dtpye", "dtype")):
        error = outcome(with_argument(CALLS[name], f"{word}=None"), mx.np, "float32")
        takes = re.split(r", | ", str(error).partition("it takes ")[2])
        assert meant not in takes or f"did you mean '{meant}'?" in str(error), error


@for_each(sorted(n for n in CALLS if n.startswith("np.")))
def test_an_argument_of_numpy_s_is_honored_or_refused(name):
    """Never ignored: the answer with it is NumPy's."""
    if name.startswith("np.random"):
        return
    for key in numpys_arguments(name):
        if key not in VALUES or f"{key}=" in CALLS[name]:
            continue
        text = with_argument(CALLS[name], f"{key}={VALUES[key]}")
        ours, theirs = outcome(text, mx.np, "float32"), outcome(text, onp, "float32")
        if isinstance(ours, Exception):
            assert re.match(re.escape(name), str(ours)), ours
            continue
        if isinstance(theirs, Exception):
            continue  # NumPy has no such combination
        assert [v.shape for v in ours] == [v.shape for v in theirs], text
        for a, b in zip(ours, theirs, strict=True):
            onp.testing.assert_allclose(a, b.astype(a.dtype), 1e-5, 1e-5, err_msg=text)
            assert key != "dtype" or a.dtype == b.dtype, text


@for_each(sorted(n for n in CALLS if n.startswith("np.")))
def test_out_is_written(name):
    dtype = "int32" if re.search("bitwise|lcm", name) else "float32"
    result = run(CALLS[name], mx.np, dtype)
    if len(result) != 1 or not result[0].shape or "out" not in numpys_arguments(name):
        return
    scope = names(mx.np, dtype)
    scope["out"] = mx.np.full(result[0].shape, -7, dtype=result[0].dtype)
    mx.random.seed(0)
    given = eval(with_argument(CALLS[name], "out=out"), scope)
    assert given is scope["out"]
    onp.testing.assert_array_equal(scope["out"].asnumpy(), result[0], err_msg=name)


WRONG = ["'text'", "None", "{'a': 1}", "object()", "[x, 'a']", "1e400", "-1", "x > 0", "m", "()"]


@pytest.mark.parametrize("hybridized", [False, True])
@for_each(sorted(CALLS))
def test_an_error_begins_with_the_name_that_the_caller_wrote(name, hybridized):
    public = rf"{re.escape(name)}: " if name.startswith("np.") else rf"(ndarray|np)\.{name[2:]}: "
    calls = [f"{name}({', '.join(args)})" for v in WRONG for args in ((v,), ("x", v), ("m", v, v))]
    if "axis" not in CALLS[name]:
        calls += [with_argument(CALLS[name], f"axis={axis}") for axis in (7, "'a'", "x", "(0, 0)")]
    calls += [f"{name}()", f"{name}({', '.join('x' * 12)})"]
    for call in calls:
        with warnings.catch_warnings(), onp.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                if hybridized:
                    compiled(f"({call}) + 0 * x.sum()", "float32", None, "numpy")
                else:
                    eval(call, names(mx.np, "float32"))
            except Exception as error:
                text = str(error)
                if hybridized and re.match(r"x \+ y: |a traced function|take: index|unsupp", text):
                    continue  # the sum does not take what the call gives
                assert isinstance(error, HybridError), (call, repr(error))
                assert re.match(public, text), (call, text)
                assert "_npi_" not in text and "_np_" not in text, (call, text)


@for_each(sorted(n for n in CALLS if n.startswith("np.") and "axis" not in n))
def test_a_symbol_s_error_has_no_operator_s_name(name):
    """Also where a shape is wrong that is known only when the symbol is bound."""
    symbols = {k: mx.sym.var(k).as_np_ndarray() for k in "xymwic"}
    arrays = {k: v.as_nd_ndarray() for k, v in names(mx.np, "float32").items() if k in symbols}
    for call in (
        CALLS[name],
        with_argument(CALLS[name], "axis=9"),
        f"{name}(x, 9)",
        f"{name}(x, m, w)",
    ):
        try:
            out = eval(call, symbols | {"np": mx.sym.np})
            heads = [out] if isinstance(out, mx.sym.Symbol) else flat(out)
            mx.sym.Group(heads).eval(**arrays)
        except SyntaxError:  # it has an axis already
            continue
        except Exception as error:
            text = str(error)
            assert isinstance(error, HybridError), (call, repr(error))
            assert "_np" not in text, (call, text)


@pytest.mark.parametrize(
    "text, words",
    [
        ("np.median(w, axis=4)", "np.median: axis 4 is out of bounds"),
        ("np.quantile(w, 0.5, axis=4)", "np.quantile: axis 4 is out of bounds"),
        ("np.unique(w, axis=4)", "np.unique: axis 4 is out of bounds"),
        ("np.histogram(x, bins='none')", "np.histogram: 'none' is not a valid estimator"),
        ("np.median(w, axs=0)", "np.median: no argument is called 'axs' .did you mean 'axis'"),
    ],
)
def test_a_wrong_value_of_numpy_s_argument_is_not_called_unknown(text, words):
    with pytest.raises(HybridError, match=words):
        run(text, mx.np, "float32")
