"""Numbers in kernels of the simulated GPU are those of a real one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minihybrid import simt
from minihybrid.simt.numbers import CONSTRUCTORS
from minihybrid.simt.numbers import math as gpu

FLOATS = (
    "exp log log2 log10 log1p expm1 sqrt sin cos tan asin acos atan sinh cosh "
    "tanh asinh acosh atanh erf erfc gamma lgamma fabs floor ceil"
).split()
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e30, -1e30, math.inf, -math.inf, math.nan]


def one_of(expression, dtype="float32", **arrays):
    """What a kernel stores for an expression, checked and not."""
    params = [
        f"{name}: {array.dtype.name.replace('bool', 'boolean')}[{array.size}]"
        for name, array in arrays.items()
    ]
    annotation = dtype.replace("bool", "boolean")
    text = f"def k({', '.join([*params, f'out: {annotation}[1]'])}):\n    out[0] = {expression}\n"
    out = np.zeros(1, dtype)
    simt.Program(text).run(1, 1, [*arrays.values(), out])
    return out[0]


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("number", [np.float32, np.float64])
def test_functions_keep_the_dtype_and_never_raise(name, number):
    with np.errstate(all="ignore"):  # as in a launch
        assert {type(getattr(gpu, name)(number(x))) for x in EDGES} == {number}


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda: gpu.exp(np.float32(1000)), math.inf),
        (lambda: gpu.log(np.float32(0)), -math.inf),
        (lambda: gpu.log(np.float32(-1)), math.nan),
        (lambda: gpu.sqrt(np.float32(-1)), math.nan),
        (lambda: gpu.pow(np.float32(-8), np.float32(0.5)), math.nan),
        (lambda: gpu.pow(np.float32(0), np.float32(-1)), math.inf),
        (lambda: gpu.pow(np.float32(10), np.float32(60)), math.inf),
        (lambda: gpu.fmod(np.float32(1), np.float32(0)), math.nan),
        (lambda: gpu.gamma(np.float32(-1)), math.nan),
        (lambda: gpu.gamma(np.float32(500)), math.inf),
        (lambda: gpu.lgamma(np.float32(-2)), math.inf),
        (lambda: gpu.atanh(np.float32(1)), math.inf),
        (lambda: gpu.acosh(np.float32(0)), math.nan),
        (lambda: gpu.floor(np.float32(-2.5)), -3),
        (lambda: gpu.ceil(np.float32(math.inf)), math.inf),
        (lambda: gpu.atan2(np.float32(1), np.float32(0)), np.float32(math.pi / 2)),
    ],
)
def test_functions_at_their_edges(call, expected):
    with np.errstate(all="ignore"):  # as in a launch
        np.testing.assert_equal(call(), np.float32(expected))


@given(
    st.integers(-(2**70), 2**70),
    st.sampled_from("int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()),
)
def test_whole_numbers_wrap_around(x, dtype):
    info = np.iinfo(dtype)
    size = int(info.max) - int(info.min) + 1
    y = int(CONSTRUCTORS[dtype](x))
    assert info.min <= y <= info.max and (y - x) % size == 0


@pytest.mark.parametrize(
    "x, dtype, expected",
    [
        (2.9, "int32", 2),
        (-2.9, "int32", -2),
        (3e10, "int32", 2**31 - 1),
        (-math.inf, "int64", -(2**63)),
        (math.nan, "int32", 0),
        (-5.0, "uint8", 0),
        (1e30, "uint64", 2**64 - 1),
    ],
)
def test_floats_become_the_nearest_whole_number(x, dtype, expected):
    assert int(CONSTRUCTORS[dtype](np.float32(x))) == expected


def test_arithmetic_stays_in_float32():
    a = np.array([1 / 3], "float32")
    assert one_of("a[0] * a[0] + a[0]", a=a) == a[0] * a[0] + a[0]


@pytest.mark.parametrize(
    "expression, dtype, expected",
    [
        ("n[0] + n[0]", "int64", 2**32 - 2),  # computed with 64 bits, as in Numba
        ("n[0] + 1", "int32", -(2**31)),  # and cut when stored
        ("n[0] * 2", "uint8", 254),
        ("n[0] // 2", "int32", 2**30 - 1),
        ("n[0] > 3", "bool", True),
        ("n[0] / 2", "float64", (2**31 - 1) / 2),
        ("int8(n[0])", "int32", -1),
    ],
)
def test_whole_numbers_are_computed_with_64_bits(expression, dtype, expected):
    assert one_of(expression, dtype, n=np.array([2**31 - 1], "int32")) == expected


def test_uint64_wraps_around():
    key = np.array([2**63 + 7], "uint64")
    expected = (2**63 + 7) * 0x9E3779B97F4A7C15 % 2**64
    assert one_of("key[0] * uint64(0x9E3779B97F4A7C15)", "uint64", key=key) == expected
    assert one_of("key[0] >> uint64(60)", "int32", key=key) == 8


def test_booleans_are_added_as_numbers():
    assert one_of("b[0] + b[1]", "int32", b=np.array([True, True])) == 2


def test_nothing_is_raised_or_warned_of():
    zero = np.zeros(1, "float32")
    assert one_of("float32(1) / a[0]", a=zero) == math.inf
    assert math.isnan(one_of("a[0] / a[0]", a=zero))
    big = np.full(1, 1e30, "float32")
    assert one_of("a[0] * a[0]", a=big) == math.inf
    huge = np.array([1e300])
    assert one_of("a[0] * a[0]", "float64", a=huge) == math.inf
    assert one_of("float32(a[0])", a=huge) == math.inf


def test_max_and_min_leave_nan_out():
    """As C's fmaxf, which Numba calls on a GPU; Python's depend on the order."""
    a = np.array([math.nan, 2], "float32")
    for expression in ("max(a[0], a[1])", "max(a[1], a[0])", "min(a[0], a[1])", "min(a[1], a[0])"):
        assert one_of(expression, a=a) == 2


def test_device_functions_keep_float32():
    text = (
        "from minihybrid.codegen.device_math import INF, sigmoid32, unit\n"
        "def k(a: float32[2], out: float32[4], key: uint64):\n"
        "    out[0] = sigmoid32(a[0])\n"
        "    out[1] = sigmoid32(a[1])\n"
        "    out[2] = float32(unit(key, 0, 0))\n"
        "    out[3] = float32(INF)\n"
    )
    a, out = np.array([0, -1000], "float32"), np.zeros(4, "float32")
    simt.Program(text).run(1, 1, [a, out, 7])
    assert out.tolist() == [0.5, 0, np.float32(12104898 * 2.0**-24), math.inf]


# -- hidden float64 --------------------------------------------------------------------
WIDE = """
out[i] = a[i] * 2.0
out[i] = a[i] * 2
out[i] = a[i] + n[i]
out[i] = max(a[i], 0)
out[i] = i / 4
out[i] = 0.5
out[i] = math.sqrt(n[i])
out[i] = math.pow(a[i], 2.0)
out[i] += 1
out[i] = a[i] if a[i] > float32(0) else 0
p, q, r, s = load4(a, 0); out[i] = q * 0.1
store4(out, 0, (a[0], 0.1, a[2], a[3]))
if a[i] > math.pi: out[i] = a[i]
out[i] = float(a[i])
if a[i] > 0.1: out[i] = a[i]
out[i] = a[i] * i
""".strip().splitlines()
RIGHT = """
out[i] = a[i] * float32(2.0)
out[i] = a[i] * float32(1 / 3)
out[i] = a[i] + float32(n[i])
out[i] = a[i] if a[i] > 0 else float32(0)
out[i] = n[i]
out[i] = max(n[i], 3)
out[i] = max(a[i], float32(0))
out[i] = math.exp(a[i]) ** 2
out[i] = float32(n[i] / 4)
out[i] = -abs(a[i])
p, q, r, s = load4(a, 0); store4(out, 0, (s, r, q, p))
if not (a[i] > 0 and 1 < n[i]): out[i] = a[i]
if -1 < a[i] <= 0.5: out[i] = a[i]
p, q = (a[i], a[0]) if i > 1 else (a[0], a[i]); out[i] = p * q
""".strip().splitlines()


def text_of(line, dtype="float32"):
    return (
        f"def k(a: {dtype}[4], n: int32[4], out: {dtype}[4]):\n"
        "    i = cuda.threadIdx.x\n"
        f"    {line}\n"
    )


def launch(text, dtype="float32"):
    args = [np.ones(4, dtype), np.ones(4, "int32"), np.ones(4, dtype)]
    simt.Program(text).run(1, 1, args)


@pytest.mark.parametrize("line", WIDE)
def test_hidden_float64_is_found(line):
    with pytest.raises(simt.HiddenFloat64Error) as caught:
        launch(text_of(line))
    assert caught.value.line == 3 and caught.value.kernel == "k"


@pytest.mark.parametrize("line", RIGHT)
def test_float32_is_not_taken_for_float64(line):
    launch(text_of(line))


@pytest.mark.parametrize(
    "line", ["out[i] = a[i] * 2.0", "out[i] = max(a[i], 0.5)", "out[i] = math.sqrt(n[i])"]
)
def test_float64_is_fine_where_the_arrays_hold_it(line):
    launch(text_of(line, "float64"), "float64")


def test_a_kernel_of_whole_numbers_may_use_float64():
    text = "def k(n: int32[4]):\n    n[0] = int32(n[1] * 0.5)\n"
    simt.Program(text).run(1, 1, [np.ones(4, "int32")])


def test_a_sum_that_begins_as_a_whole_number():
    text = text_of("s = 0\n    for k in range(4):\n        s += a[k]\n    out[i] = s")
    with pytest.raises(simt.HiddenFloat64Error) as caught:
        launch(text)
    assert caught.value.line == 5
    assert "give s a float32 wherever it is assigned" in str(caught.value)


@pytest.mark.parametrize(
    "line, remedy",
    [
        ("out[i] = a[i] * i", "write float32(i)"),
        ("out[i] = a[i] * 0.5", "write float32(0.5)"),
        ("out[i] = 1.0", "write numbers as float32(...)"),
        ("out[i] = min(a[i], 1)", "write float32(1)"),
    ],
)
def test_what_to_write_instead(line, remedy):
    with pytest.raises(simt.HiddenFloat64Error) as caught:
        launch(text_of(line))
    assert str(caught.value).endswith(remedy)


def test_a_variable_that_becomes_float64_further_down():
    text = text_of("s = a[i]\n    t = s * s\n    s = math.pi\n    out[i] = t")
    with pytest.raises(simt.HiddenFloat64Error) as caught:
        launch(text)
    assert caught.value.line == 6


def test_a_float64_from_elsewhere_is_found_when_it_is_stored():
    text = "from minihybrid.codegen.device_math import unit\n" + text_of(
        "out[i] = unit(uint64(1), i, 0)"
    )
    with pytest.raises(simt.HiddenFloat64Error) as caught:
        launch(text)
    assert caught.value.line == 4
    assert caught.value.threads == (((0, 0, 0), (0, 0, 0)),)
