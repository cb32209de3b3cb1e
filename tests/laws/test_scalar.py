"""float32 functions of generated kernels: 4 units in the last place, and vectors.

A kernel is compiled once for both: its results are compared with those of float64 over
the whole range of float32, and LLVM's optimized text says whether it computes vectors.
"""

import functools
import math
import re
from contextlib import suppress
from importlib import import_module
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from minihybrid.sym import Symbol, trace
from numba.core import compiler, registry, typed_passes
from samples import UNIQUE, cases_of, has_samples
from scipy import special

import minihybrid as mx
from minihybrid import nd
from minihybrid.codegen.cpu.scalar import OPTIONS
from minihybrid.codegen.cpu.target import IMPORTS, functions
from minihybrid.codegen.numpy import special as eager
from minihybrid.codegen.source import Kernel
from minihybrid.core.op import AttrError, Spec, number
from minihybrid.ops import OPS
from minihybrid.ops.cpu.machine import registers
from minihybrid.passes import expand, fuse, optimize

F32 = np.dtype("float32")


# -- kernels, and what LLVM made of them -----------------------------------------------
def kernels(function, *specs):
    """The kernels of a traced function."""
    graph, _ = trace(function, {f"x{i}": spec for i, spec in enumerate(specs)})
    graph = optimize(expand(graph, False), (fuse,))[-1][1]
    return [Kernel(n, functions) for n in graph.nodes if n.op and not n.op.view]


@functools.cache
def compiled(text, kinds):
    """A kernel's text as a compiled function, for arguments of Numba's types."""
    scope = {"np": np, "math": math}
    for module, names in IMPORTS.items():
        scope |= {n: getattr(import_module(module), n) for n in names.split()}
    exec(text, scope)
    return numba.njit(kinds, **OPTIONS)(scope["kernel"])


def compile_kernel(kernel):
    """The compiled function of a kernel."""
    kinds = [
        numba.from_dtype(b.dtype)[::1]
        if b.shape
        else numba.types.Array(numba.from_dtype(b.dtype), 0, "C")
        for b in (*kernel.args, *kernel.outs.values())
    ]
    kinds += [numba.uint64 if n == "key" else numba.int64 for n in kernel.numbers]
    return compiled(kernel.text("kernel"), tuple(kinds))


def is_vector(function):
    """Whether vectors are stored, and nothing is computed one number at a time."""
    (text,) = function.inspect_llvm().values()
    text = next(
        part for part in text.split("\ndefine ")[1:] if "cpython" not in part.split("\n")[0]
    )
    called = re.findall(r"call[^@\n]*@\"?(?:llvm\.)?(\w+)", text)
    alone = [name for name in called if name.startswith("_Z") or name in LIBRARY]
    return bool(re.search(r"store <\d+ x", text)) and not alone and "frem" not in text


LIBRARY = """exp log log1p expm1 pow sin cos erf erfc lgamma lgammaf log1pf sqrtf
    numba_gamma numba_gammaf""".split()


def test_softmax_divides_once_a_row():
    """LLVM would make a division for each number of the product with 1 / sum."""
    (kernel,) = kernels(lambda x: x.softmax(), Spec((8, 1000), F32))
    (text,) = compile_kernel(kernel).inspect_llvm().values()
    divisions = re.findall(r"= fdiv [^\n]*", text)
    assert divisions and not [line for line in divisions if " x float>" in line]


def unary(name, **attrs):
    """The compiled kernel of an operator, or of what it expands to."""
    op = OPS[name]
    (kernel,) = kernels(
        lambda *x: Symbol.interpret(op, list(x), op.normalize(attrs)),
        *[Spec((64,), F32)] * len(op.inputs),
    )
    return compile_kernel(kernel)


# -- the error in units in the last place ----------------------------------------------
def numbers():
    """Every exponent with 2 000 mantissas, both signs, infinities, NaN, ends and 0."""
    rng = np.random.default_rng(0)
    mantissa = np.r_[:50, 2**23 - 50 : 2**23, rng.integers(0, 2**23, 1900)]
    bits = (np.arange(256)[:, None] << 23 | mantissa).astype(np.uint32)
    ends = np.float32([1, 88.72284, 89.4159, 103.97, 87.33655, 9.01, 3.92])[:, None]
    near = ends.view(np.int32) + np.arange(-1000, 1000, dtype=np.int32)
    x = np.r_[
        bits.ravel().view(F32),
        near.ravel().view(F32),
        np.arange(0, 200, 0.001, F32),
        0,
        np.inf,
        np.nan,
    ].astype(F32)
    return np.r_[x, -x]


def units(actual, exact):
    """The distance in units in the last place; infinite where the kind is wrong.

    Beyond the largest float32 the next power of two stands for infinity.
    """
    with np.errstate(over="ignore", under="ignore"):
        expected = exact.astype(F32)
    last = np.spacing(
        np.abs(np.clip(expected, *[np.finfo(F32).max * s for s in (-1, 1)])).astype(F32)
    ).astype(float)
    low, high = -(2.0**128), 2.0**128
    away = np.abs(np.clip(actual.astype(float), low, high) - np.clip(exact, low, high)) / last
    good = np.isnan(actual) == np.isnan(exact)
    good &= (np.signbit(actual) == np.signbit(exact)) | np.isnan(exact)
    return np.where(good, np.where(np.isnan(exact) | (actual == expected), 0, away), np.inf)


def assert_exact(actual, exact, *args):
    away = units(actual, exact)
    worst = away.argmax()
    assert away[worst] <= 4, f"{[a[worst] for a in args]}: {actual[worst]}, not {exact[worst]}"


REFERENCES = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "arcsinh": np.arcsinh,
    "arccosh": np.arccosh,
    "arctanh": np.arctanh,
    "erf": special.erf,
    "erfinv": lambda x: np.copysign(special.erfinv(x), x),  # SciPy makes 0 of -0
    "cbrt": np.cbrt,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "sigmoid": special.expit,
    "softrelu": lambda x: np.logaddexp(x, 0),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "reciprocal": lambda x: 1 / x,
    "softsign": lambda x: x / (1 + np.abs(x)),
}


@pytest.mark.per_op
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", REFERENCES)
def test_a_function_is_exact_to_4_units_over_the_whole_range(op):
    x = numbers()
    actual = np.empty_like(x)
    unary(op)(x, actual, x.size)
    assert_exact(actual, REFERENCES[op](x.astype(float)), x)
    if op in ("tanh", "erf", "sin", "cos", "sigmoid", "softsign"):
        assert not (np.abs(actual) > 1).any()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_erfinv_is_exact_to_4_units_near_1_and_for_many_eager_numbers():
    rng = np.random.default_rng(0)
    x = np.float32(
        np.r_[1 - np.exp2(-24 * rng.random(20_000)), rng.random(20_000), 1, 2, 0, np.nan]
    )
    x = np.r_[x, -x]
    actual = np.empty_like(x)
    unary("erfinv")(x, actual, x.size)
    for out in (actual, nd.erfinv(nd.array(x)).asnumpy()):
        assert_exact(out, REFERENCES["erfinv"](x.astype(float)), x)


SPECIAL = {  # SciPy has other limits at -inf for these two: C's, and none
    "gamma": (eager.gamma, special.gamma, ()),
    "erf": (eager.erf, special.erf, ()),
    "erfinv": (eager.erfinv, special.erfinv, ()),
    "gammaln": (eager.gammaln, special.gammaln, (-np.inf,)),
    **{
        f"polygamma {n}": (
            functools.partial(eager.polygamma, order=n),
            functools.partial(special.polygamma, n),
            (-np.inf,),
        )
        for n in (1, 2, 3)
    },
    "polygamma 0": (functools.partial(eager.polygamma, order=0), special.digamma, ()),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SPECIAL)
def test_functions_that_numpy_does_not_have_are_scipys(name):
    """Eager answers, to which all targets are compared: also at and between poles."""
    actual, expected, left_out = SPECIAL[name]
    x = np.array(
        [
            -170.5,
            -20.5,
            -3.5,
            -2.5,
            -1.5,
            -1.25,
            -0.3,
            -1e-3,
            -3,
            -2,
            -1,
            -0.0,
            0.0,
            1e-3,
            0.25,
            0.5,
            0.75,
            0.999,
            1,
            1.5,
            2,
            10.5,
            30,
            170,
            np.inf,
            np.nan,
            *{-np.inf}.difference(left_out),
        ]
    )
    np.testing.assert_allclose(actual(x), expected(x), 1e-9, 1e-12)


PAIRS = {"_power": np.power, "_hypot": np.hypot, "_arctan2": np.arctan2}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PAIRS)
def test_a_function_of_two_numbers_is_exact_to_4_units(name):
    rng = np.random.default_rng(0)
    a, b = rng.permutation(numbers()), rng.permutation(numbers())
    within = (rng.uniform(-150, 129, a.size) / np.log2(np.abs(a.astype(float)))).astype(
        F32
    )  # powers that are float32 numbers
    ends = np.float32(
        [
            0,
            -0.0,
            1,
            -1,
            np.inf,
            -np.inf,
            np.nan,
            2,
            -2,
            0.5,
            -0.5,
            3,
            -3,
            1e-45,
            -1e-45,
            3e38,
            -3e38,
            2**24,
            2**24 + 2,
            1 - 2**-24,
        ]
    )
    every = np.stack(np.meshgrid(ends, ends), -1).reshape(-1, 2)
    a = np.r_[a, np.abs(a), np.round(a), every[:, 0]]
    b = np.r_[b, within, np.round(within), every[:, 1]]
    actual = np.empty_like(a)
    unary(name)(a, b, actual, a.size)
    assert_exact(actual, PAIRS[name](a.astype(float), b.astype(float)), a, b)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("scalar", (2, 3, -1, 0.5, 2.5, -3, 0))
def test_a_power_that_is_known_is_exact_and_a_short_one_is_short(scalar):
    x = numbers()
    actual, function = np.empty_like(x), unary("_power_scalar", scalar=scalar)
    function(x, actual, x.size)
    # An array of exponents: of one number, NumPy takes roots, NaN of -inf.
    assert_exact(actual, np.power(x.astype(float), np.full(x.shape, scalar, float)), x)
    (text,) = function.inspect_llvm().values()
    assert (" double" in text) == (scalar in (2.5, -3))


# -- types -----------------------------------------------------------------------------
NUMBERS = (0.0, -2.5, 3.0, math.inf, math.nan, 1e300, -1e-320)


def expressions(op):
    """The scalar expressions of an operator, for numbers that somebody may give."""
    cases = [dict(case.attrs) for case in cases_of(op)] if has_samples(op) else []
    names = [name for name, (kind, _) in op.attrs.items() if kind is number]
    for attrs in [
        *cases,
        *({**cases[0], name: value} for name in names * bool(cases) for value in NUMBERS),
    ]:
        with suppress(AttrError):  # one that its record refuses
            yield op.scalar(op.normalize(attrs))


SOME_OR_ALL = pytest.mark.parametrize(
    "every",
    [  # `make test` tries one in eight
        pytest.param(8, id="some"),
        pytest.param(1, id="all", marks=pytest.mark.external),
    ],
)


@pytest.mark.slow
@SOME_OR_ALL
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_an_expression_gives_has_the_dtype_of_its_operator(dtype, every):
    """So any may stand in any other: erfinv(x) ** 3 took the bits of a float64."""
    registry.cpu_target.typing_context.refresh()
    registry.cpu_target.target_context.refresh()
    scope = {"np": np, "math": math}
    for module, names in IMPORTS.items():
        scope |= {n: getattr(import_module(module), n) for n in names.split()}
    maker = SimpleNamespace(functions=functions)
    letters = dict(zip("abcdefgh", "abcdefgh", strict=True))
    actual, kind = {}, numba.from_dtype(np.dtype(dtype))
    texts = {
        text.format(**letters, i="(i)")
        for op in UNIQUE
        for text in expressions(op)
        if text and not op.name.startswith("_npi_bitwise")
    }
    assert len(texts) > 200 and all(any(expressions(op)) for op in UNIQUE if op.expr)
    for text in sorted(texts)[::every]:
        code = Kernel.translate(maker, text, np.dtype(dtype))
        exec(f"def value({', '.join(letters)}, i, key):\n    return {code}", scope)
        actual[code] = str(
            typed_passes.type_inference_stage(
                registry.cpu_target.typing_context,
                registry.cpu_target.target_context,
                compiler.run_frontend(scope["value"]),
                (kind,) * len(letters) + (numba.int64, numba.uint64),
                None,
            ).return_type
        )
    assert {code: name for code, name in actual.items() if name != dtype} == {}


def test_powers_of_a_function_of_float64_compile():
    def powers(x):
        return [x.erfinv() ** n for n in (3, 2, -1, 0.5, 2.5)]

    x, f = nd.array([0.25, -0.5]), mx.function(powers)
    for a, b in zip(f(x), powers(x), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), 1e-6)
    assert [plan.target for plan in f.plans.values()] == ["cpu"]


@pytest.mark.parametrize("scalar", [0, 1e300, 1e-320, math.inf, math.nan])
def test_numbers_that_python_cannot_square_are_attributes_too(scalar):
    def losses(x):
        return nd.smooth_l1(x, scalar=scalar), nd.one_hot(
            nd.zeros_like(x), 2, on_value=scalar, off_value=-scalar
        )

    actual = []
    for function in (losses, mx.function(losses)):
        x = nd.array([0, -0.5, 3, np.inf, np.nan])
        x.attach_grad()
        with mx.autograd.record():
            out = function(x)
        out[0].backward()
        actual.append([a.asnumpy() for a in (*out, *function(x), x.grad)])
    for a, b in zip(*actual, strict=True):
        np.testing.assert_array_equal(a, b)


# -- vectors ---------------------------------------------------------------------------
ONE_BY_ONE = {
    "exact remainders, which C finds bit by bit": "_mod _mod_scalar _rmod_scalar broadcast_mod",
    "no short form": "gamma gammaln _polygamma",
    "a draw in float64, with the C library's logarithm": (
        "_random_normal _random_normal_like _draw_normal _npi_normal _random_exponential "
        "_random_exponential_like _draw_exponential"
    ),
    "a loop until a draw is accepted": " ".join(
        f"{how}_{name}{like}"
        for how, like in (("_random", ""), ("_random", "_like"), ("_draw", ""))
        for name in ("gamma", "poisson", "negative_binomial", "generalized_negative_binomial")
    ),
    "a place is compared, nothing is computed": "_eye _npi_eye _npi_identity",
    "memory is filled": "_zeros zeros_like _npi_zeros",
    "the upper half of a product of 64 bits": "_random_randint",
}
if registers() in ((32, 16), (16, 16)):  # an x86 processor without AVX-512
    ONE_BY_ONE["no instruction makes whole numbers of a vector of float64"] = (
        "sin cos tan _npi_sin _npi_cos _npi_tan"
    )
EXPRESSIONS = [
    op
    for op in UNIQUE
    if has_samples(op)
    and op.scalar(op.normalize(dict(cases_of(op)[0].attrs))) is not None
    and not op.name.startswith("_npi_bitwise")
]  # of whole numbers only


def kernel_of(op):
    """The kernel of an operator on float32 arrays of one axis."""
    case = next(c for c in cases_of(op) if all(np.prod(i.shape) for i in c.inputs))
    attrs = op.normalize(dict(case.attrs))
    (kernel,) = kernels(
        lambda *x: Symbol.interpret(op, list(x), attrs), *[Spec((640,), F32)] * len(case.inputs)
    )
    return kernel


@pytest.mark.slow
@SOME_OR_ALL
def test_float32_expressions_are_computed_in_vectors_but_those_listed_with_a_reason(every):
    listed = set(" ".join(ONE_BY_ONE.values()).split())
    tried = EXPRESSIONS[::every]
    alone = {op.name for op in tried if not is_vector(compile_kernel(kernel_of(op)))}
    assert alone == listed & {op.name for op in tried} and alone


def spec(*shape, dtype="float32"):
    return Spec(shape, np.dtype(dtype))


def gate(a, b, c):
    return (a * b + c).tanh() * a - (-c * c).exp()


def choice(a, b):
    return OPS["where"](a > b, a.exp(), OPS["clip"](b, a_min=-1, a_max=1).sqrt())


def row(a, b):
    return a.broadcast_add(b).sigmoid()


def cast(dtype):
    return lambda a, b: OPS["Cast"](a * 2 + b, dtype=dtype)


def sum_of_many(*x):
    return functools.reduce(lambda a, b: a * b + b, x)


GROUPS = {
    "mixed": (gate, [spec(640)] * 3),
    "choice": (choice, [spec(640)] * 2),
    "gelu": (lambda a: OPS["LeakyReLU"](a, act_type="gelu"), [spec(640)]),
    "selu": (lambda a: OPS["LeakyReLU"](a, act_type="selu"), [spec(640)]),
    "swish": (lambda a: a * a.sigmoid(), [spec(640)]),
    "row": (row, [spec(30, 640), spec(640)]),
    "column": (row, [spec(30, 640), spec(30, 1)]),
    "channel": (row, [spec(30, 16, 12, 12), spec(1, 16, 1, 1)]),
    "three channels last": (row, [spec(30, 3), spec(3)]),
    "one number": (row, [spec(30, 640), spec(1, 1)]),
    "part": (lambda a: a.slice_axis(axis=1, begin=3, end=50).exp(), [spec(64, 64)]),
    "twelve inputs": (sum_of_many, [spec(640)] * 12),
    **{f"to {d}": (cast(d), [spec(640)] * 2) for d in ("int8", "int32", "float64")},
    **{
        f"of {d}": (cast("float32"), [spec(640, dtype=d)] * 2)
        for d in ("int8", "int32", "int64", "uint8", "float64")
    },
}


@pytest.mark.parametrize("name", GROUPS)
def test_a_fused_group_is_one_kernel_that_computes_vectors(name):
    function, specs = GROUPS[name]
    (kernel,) = kernels(function, *specs)
    assert is_vector(compile_kernel(kernel))
