"""Elementwise code is IEEE: every target gives NumPy's numbers, bit for bit.

An operator is held to it if its expression has nothing but signs, comparisons and
functions that are rounded exactly. Compilers break it where they may take sums in
another order, multiply and add at once, or take infinity, NaN or -0 for what is not
there. Functions such as `exp` are not NumPy's: `test_scalar` has their bounds.
"""

import re
import shutil
import subprocess

import numpy as np
import pytest
from samples import UNIQUE, cases_of, has_samples

from minihybrid import nd, simulated_gpu
from minihybrid.gluon import HybridBlock
from minihybrid.ops import OPS

CC = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
EXACT = set("T F U abs floor ceil sqrt mod".split())
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


class Program(HybridBlock):
    """A function of F and arrays."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, *inputs):
        outs = self.function(F, *inputs)
        return tuple(outs) if isinstance(outs, (list, tuple)) else outs


def run(function, arrays, ctx=None, **how):
    """What a program gives, as a list of ndarrays; eager without `how`."""
    net = Program(function)
    if how:
        net.hybridize(**how)
    actual = net(*[nd.array(a, dtype=a.dtype, ctx=ctx) for a in arrays])
    actual = actual if isinstance(actual, (list, tuple)) else [actual]
    return [y.asnumpy() for y in actual]


PLANS = {"compiled": {"wait": True}, "numpy": {"backend": "numpy"}}


def run_c(function, arrays, folder):
    """What a program gives that is exported to C."""
    net = Program(function)
    net.hybridize(wait=True)
    expected = net(*[nd.array(a, dtype=a.dtype) for a in arrays])
    expected = expected if isinstance(expected, (list, tuple)) else [expected]
    folder.mkdir()
    net.export(str(folder / "net"), format="c")
    (weights,) = folder.glob("*.weights")
    subprocess.run(
        [
            CC,
            "-std=c99",
            "-O2",
            "-ffp-contract=off",
            "-DNET_MAIN",
            folder / "net.c",
            "-lm",
            "-o",
            folder / "net",
        ],
        check=True,
    )
    files = [folder / f"{i}.bin" for i in range(len(arrays) + len(expected))]
    for file, a in zip(files, arrays, strict=False):
        a.tofile(file)
    subprocess.run([folder / "net", weights, *files], check=True)
    return [
        np.fromfile(f, y.dtype).reshape(y.shape)
        for f, y in zip(files[len(arrays) :], expected, strict=True)
    ]


def bits(array):
    """An array as whole numbers; every NaN is one of them."""
    array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.view(f"int{8 * array.itemsize}")


def assert_same_bits(actual, expected, inputs, what):
    for i, (y, z) in enumerate(zip(actual, expected, strict=True)):
        assert (y.dtype, y.shape) == (z.dtype, z.shape)
        if y.dtype.kind != "f":
            np.testing.assert_array_equal(y, z)
            continue
        wrong = np.flatnonzero(bits(y).ravel() != bits(z).ravel())
        if len(wrong):
            k = wrong[0]
            at = [x.ravel()[k % x.size] for x in inputs]
            raise AssertionError(
                f"{what}, output {i}: {y.ravel()[k]!r}, not "
                f"{z.ravel()[k]!r} of {at}, and {len(wrong)} more"
            )


def special(dtype):
    """Numbers at the ends of a dtype, around 1, and rounding ones."""
    info = np.finfo(dtype)
    up = 1 / info.eps
    actual = [
        0,
        0.1,
        1 / 3,
        0.5,
        1,
        1 + info.eps,
        2,
        2.5,
        3,
        7.7,
        up,
        1.5 * up,
        up**2 * 1e3,
        info.max,
        info.max / 2,
        info.tiny,
        info.tiny / 2,
        info.smallest_subnormal,
        np.sqrt(info.max) * 3,
        np.sqrt(info.tiny) / 3,
        np.inf,
    ]
    return np.array([*actual, *(-x for x in actual), np.nan], dtype)


def pairs(dtype):
    """Every two of them, as two arrays, and as many at random."""
    x = special(dtype)
    a, b = (v.ravel() for v in np.meshgrid(x, x))
    rng = np.random.default_rng(0)
    more = rng.standard_normal((2, a.size)) * 2.0 ** rng.integers(-40, 40, a.size)
    return np.r_[a, more[0]].astype(dtype), np.r_[b, more[1]].astype(dtype)


# -- each operator ---------------------------------------------------------------------
def is_exact(op, attrs):
    """Whether NumPy, too, computes an operator of floats by what its expression has."""
    expr = op.scalar(attrs)
    return (
        expr is not None
        and not op.random
        and not re.search(r"{i}|[&|^~]", expr)
        and set(re.findall(r"(\w+)\(", expr)) <= EXACT
    )


def exact_operators():
    """(operator, attributes of a sample, how many inputs) of all that are exact."""
    actual = {}
    for op in UNIQUE:
        for case in cases_of(op) if has_samples(op) else ():
            n, attrs = len(case.inputs), op.normalize(dict(case.attrs))
            if 0 < n < 4 and is_exact(op, attrs):
                actual[op.name] = op, case.attrs, n
    return list(actual.values())


CHOSEN = exact_operators()
TARGETS = ("compiled", "numpy", "simulated GPU")


def all_of(F, a, b):
    """Every exact operator, each an output."""
    given = {1: [a], 2: [a, b], 3: [a > b, a, b]}
    return [op(*given[n], **attrs) for op, attrs, n in CHOSEN]


def answers(function, arrays, target):
    """What a program gives on a target."""
    if target == "simulated GPU":
        return run(function, arrays, simulated_gpu(5), wait=True)
    return run(function, arrays, **PLANS[target])


def test_the_exact_operators_are_most():
    names = {op.name for op, *_ in CHOSEN}
    assert {
        "elemwise_add",
        "_div_scalar",
        "sqrt",
        "_where",
        "floor",
        "clip",
        "_mod",
        "_squared_distance",
        "rsqrt",
        "softsign",
        "Cast",
    } <= names
    assert len(names) > 60


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("target", TARGETS)
def test_an_exact_operator_gives_the_bits_of_numpy(dtype, target):
    arrays = pairs(dtype)
    actual, expected = answers(all_of, arrays, target), run(all_of, arrays)
    for (op, attrs, _), y, z in zip(CHOSEN, actual, expected, strict=True):
        if z.dtype.kind == "f":  # what a float beyond whole numbers becomes is open
            assert_same_bits([y], [z], arrays, f"{op.name} {attrs}")


# -- compositions ----------------------------------------------------------------------
def above(x):
    """A zero of two signs, which is the larger, NumPy leaves open: here it has none."""
    return x + 0.0


STEPS = [
    lambda x, y, z: x + y,
    lambda x, y, z: x - y,
    lambda x, y, z: x * y,
    lambda x, y, z: x / y,
    lambda x, y, z: x * y + z,
    lambda x, y, z: x - y * z,
    lambda x, y, z: (x + y) - x,
    lambda x, y, z: x + x,
    lambda x, y, z: x - x,
    lambda x, y, z: x * 0 + y * 0,
    lambda x, y, z: -x,
    lambda x, y, z: abs(x),
    lambda x, y, z: x * 2.5,
    lambda x, y, z: 1 / x,
    lambda x, y, z: x / 3.0,
    lambda x, y, z: x - 0.1,
    lambda x, y, z: 3.0 - x,
    lambda x, y, z: (x * 8.0) * 0.1,
    lambda x, y, z: OPS["sqrt"](x),
    lambda x, y, z: OPS["square"](x),
    lambda x, y, z: OPS["floor"](x),
    lambda x, y, z: OPS["where"](x > y, y, z),
    lambda x, y, z: OPS["where"](x == y, z, x),
    lambda x, y, z: (x < y) * z,
    lambda x, y, z: above(OPS["broadcast_maximum"](x, y)),
    lambda x, y, z: above(OPS["broadcast_minimum"](x, z)),
    lambda x, y, z: OPS["clip"](x, a_min=-3, a_max=7),
    lambda x, y, z: x**2,
    lambda x, y, z: OPS["rsqrt"](x),
    lambda x, y, z: OPS["broadcast_sub"](x, y) * z,
]


def composition(seed, n_steps=60):
    """A program of many steps, each of values that any earlier one has given."""

    def function(F, a, b):
        rng, values = np.random.default_rng(seed), [a, b, a * 0.1 + b]
        for k in rng.permutation(np.arange(n_steps) % len(STEPS)):
            x, y, z = (values[-1 - min(int(i), len(values) - 1)] for i in rng.geometric(0.2, 3) - 1)
            values.append(STEPS[k](x, y, z))
        return values[3:]

    return function


@pytest.mark.slow
@pytest.mark.parametrize("seed, dtype", [(0, "float32"), (1, "float64")])
def test_a_composition_gives_the_bits_of_numpy(seed, dtype):
    program, arrays = composition(seed), pairs(dtype)
    expected = run(program, arrays)
    for target in TARGETS:
        actual = answers(program, arrays, target)
        assert_same_bits(actual, expected, arrays, f"{target}, seed {seed}")


# -- what was found --------------------------------------------------------------------
def two_sum(F, a, b):
    """What rounding loses of a + b (Knuth)."""
    s = a + b
    taken = s - a
    return (a - (s - taken)) + (b - taken)


def kahan(F, a, b):
    """1 + 20 times 1e-8, which float32 can only add up with what was lost before."""
    total, lost = a * 0 + 1, a * 0
    for _ in range(20):
        x = b * 0 + 1e-8 - lost
        new = total + x
        total, lost = new, (new - total) - x
    return total


def doublings(F, a, b):
    for _ in range(128):
        a = a + a
    return a


FOUND = {
    "(a + b) - a": lambda F, a, b: (a + b) - a,
    "two sum": two_sum,
    "Kahan": kahan,
    "rounding by a large number": lambda F, a, b: (a + 12582912) - 12582912,
    "there and back": lambda F, a, b: (a * 1e30) * 1e-30,
    "x - x": lambda F, a, b: a - a,
    "x * 0": lambda F, a, b: a * 0 + a * 0,
    "doublings": doublings,
    "a product and a sum": lambda F, a, b: a * b - b * a,
    "halves": lambda F, a, b: a / 3.0 * 3.0 - a,
    "x + 0": lambda F, a, b: -(a + 0.0),
}


@pytest.mark.parametrize("target", TARGETS)
def test_sums_and_products_keep_their_order(target):
    arrays = pairs("float32")

    def program(F, a, b):
        return [f(F, a, b) for f in FOUND.values()]

    actual, expected = answers(program, arrays, target), run(program, arrays)
    for name, y, z in zip(FOUND, actual, expected, strict=True):
        assert_same_bits([y], [z], arrays, name)


def test_a_sum_of_differences_sees_nan():
    x = np.float32([1, np.nan, 3, np.inf])
    for bad in x[1:2], x[3:], x:
        (actual,) = run(lambda F, x: F.sum(x - x), [bad], wait=True)
        assert np.isnan(actual).all()


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("target", TARGETS)
def test_a_root_of_minus_infinity_by_a_power_is_infinite(target, dtype):
    x = np.array([-np.inf, np.inf, -0.0, 4, -4], dtype)
    (actual,) = answers(lambda F, x: x**0.5, [x], target)
    np.testing.assert_array_equal(actual, [np.inf, np.inf, 0, 2, np.nan])


@pytest.mark.slow
@pytest.mark.skipif(CC is None, reason="no C compiler (gcc, cc, clang) here")
def test_files_in_c_give_the_bits_of_numpy(tmp_path):
    arrays = pairs("float32")

    def program(F, a, b):
        return composition(0)(F, a, b) + [f(F, a, b) for f in FOUND.values()]

    actual = run_c(program, arrays, tmp_path / "net")
    assert_same_bits(actual, run(program, arrays), arrays, "C")


# -- a name that NumPy has, too --------------------------------------------------------
PREFIX = re.compile("^(_contrib_|_npi_|_np_|broadcast_|elemwise_|_)")
NAMESAKES = {
    name: getattr(np, PREFIX.sub("", name))
    for name, op in OPS.items()
    if isinstance(getattr(np, PREFIX.sub("", name), None), np.ufunc)
    and len(op.inputs) == getattr(np, PREFIX.sub("", name)).nin
    and not re.search("bitwise|matmul|rint", name)
}  # rint: ties as in MXNet


def test_an_operator_that_numpy_has_too_gives_its_numbers():
    """Operators that are written with others have no other reference."""
    values = np.array(
        [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, 2, -2, 3.7, -3.7, np.inf, -np.inf, np.nan]
    )
    assert len(NAMESAKES) > 100
    for name, function in NAMESAKES.items():
        args = [values] if function.nin == 1 else [a.ravel() for a in np.meshgrid(values, values)]
        with np.errstate(all="ignore"):
            expected = function(*args)
        actual = nd.NDArray.interpret(
            OPS[name], [nd.array(a, dtype="float64") for a in args], {}
        ).asnumpy()
        np.testing.assert_allclose(actual, expected, 1e-9, 1e-12, err_msg=name)
