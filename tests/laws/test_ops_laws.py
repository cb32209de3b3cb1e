"""Laws that every operator keeps, in every reading; a new operator adds no test here.

The samples of all operators are outputs of one graph, so that a dtype and a target cost
one compilation instead of five hundred.
"""

import functools
import itertools

import numpy as np
import pytest
from marks import external, for_each, slow
from minihybrid.nd import NDArray
from minihybrid.sym import Symbol, fromjson, trace
from samples import CASES, SAMPLES, UNIQUE, cases_of
from traced import (
    DTYPES,
    FORMULAS,
    NUMBERS,
    NUMPY_ONLY,
    SIBLINGS,
    SPECIAL,
    TARGETS,
    Program,
    apply,
    assert_all,
    assert_close,
    batch_params,
    compiled_cases,
    first_samples,
)

from minihybrid import autograd, nd, sym
from minihybrid.core.compiled import CompiledOp
from minihybrid.core.graph import Graph
from minihybrid.core.op import REQUIRED, UNKNOWN, HybridError, Op, Spec
from minihybrid.core.passes.gradient import joint_graph
from minihybrid.core.pipeline import Job
from minihybrid.core.plan import Plan
from minihybrid.core.serial import tojson
from minihybrid.ops import OPS
from minihybrid.passes import expand

every_op = for_each(UNIQUE)


def answers(dtype, target, cases):
    """[(outputs of the target, of eager arrays)] a case: plain, then special values."""
    made = Program(cases, dtype)
    run, given = made.compiled(target), [made.values]
    if dtype.startswith("float"):
        given.append(made.special)
    pairs = [zip(run(values), made.eager(values), strict=True) for values in given]
    return list(zip(*pairs, strict=True))


def loops_of(dtype):
    """The compiled samples of operators that are more than a formula."""
    return [c for c in compiled_cases(dtype) if not c.op.expr]


OTHER_CASES = {  # dtype -> samples that `make test-all` compiles
    "float64": compiled_cases("float64"),
    "int32": [c for c in compiled_cases("int32") if c.op.expr],
    "int64": compiled_cases("int64"),
}


def fits(case, dtype):
    """Whether a scalar beside arrays of a dtype is one of its numbers."""
    return dtype != "uint8" or case.attrs.get("scalar", 0) >= 0


@pytest.mark.per_op
@pytest.mark.parametrize(
    "dtype, target, cases",
    [
        param
        for dtype in (*DTYPES, *NUMPY_ONLY)
        for param in batch_params([c for c in CASES if fits(c, dtype)], dtype, "numpy")
    ]
    + slow(*batch_params(compiled_cases("float32"), "float32", "cpu"))
    + slow(*batch_params(loops_of("int32"), "int32", "cpu"))
    + [  # gradients are compiled in float64, formulas of whole numbers as one kernel
        param
        for dtype, cases in OTHER_CASES.items()
        for param in external(*batch_params(cases, dtype, "cpu"))
    ],
)
def test_target_agrees_with_eager(dtype, target, cases):
    """On plain numbers, and on arrays in which some are infinite or not a number."""

    def agree(case, made):
        for pairs, what in zip(made, ("", " on special values"), strict=False):
            for got, expected in zip(*pairs, strict=True):
                assert_close(got, expected, f"{case}{what}")

    assert_all(cases, functools.partial(answers, dtype, target), agree)


def test_the_operator_that_fails_in_a_batch_is_named():
    cases = [c for name in ("exp", "tanh", "dot", "sum") for c in cases_of(OPS[name])]

    def work(some):
        if any(c.op.name == "dot" for c in some):
            raise ValueError("broken")
        return [c.op.name for c in some]

    def agree(case, made):
        assert made == case.op.name != "tanh"

    with pytest.raises(ExceptionGroup) as caught:
        assert_all(cases, work, agree)
    notes = [error.__notes__ for error in caught.value.exceptions]
    assert notes == [["so tanh breaks the law"], ["so dot breaks the law"]]
    with pytest.raises(AssertionError, match="none alone: exp, tanh, dot, sum"):
        assert_all(cases, lambda some: some[: len(cases) - 1], agree)


@every_op
def test_samples_lie_inside_the_domain(op):
    for case in cases_of(op):
        if np.isfinite(case.attrs.get("value", 0)):
            for out in apply(
                case, list(map(NDArray, case.arrays("float64", np.random.default_rng(0))))
            ):
                assert np.isfinite(out.data).all(), case


def test_operator_without_sample_is_named():
    op = Op("_new", inputs=("data",), infer=None, doc="", attrs={"size": (int, REQUIRED)})
    with pytest.raises(LookupError, match="_new has no sample.*size"):
        cases_of(op)


def test_samples_are_of_operators():
    unknown = SAMPLES.keys() - {op.name for op in UNIQUE}
    assert not unknown, f"no operator is called so in files: {sorted(unknown)}"


@pytest.mark.per_op
@every_op
def test_shape_rule_agrees_with_eager(op):
    for dtype, case in itertools.product((*DTYPES, *NUMPY_ONLY), cases_of(op)):
        if not fits(case, dtype):
            continue
        values = [NDArray(a) for a in case.arrays(dtype, np.random.default_rng(0))]
        specs = [Spec(v.shape, np.dtype(v.dtype)) for v in values]
        completed, outs = op.infer(specs, **op.normalize(dict(case.attrs)))
        assert list(completed) == specs, (case, dtype)
        with autograd.train_mode():
            actual = [Spec(o.shape, np.dtype(o.dtype)) for o in apply(case, values)]
        assert [(s.shape, s.dtype.name) for s in outs] == [
            (s.shape, s.dtype.name) for s in actual
        ], (case, dtype)


def emptied(case):
    """The same operator on inputs whose first axis has length 0."""
    first = case.inputs[0].shape[:1]
    return case._replace(
        inputs=tuple(
            i._replace(shape=(0, *i.shape[1:])) if i.shape[:1] == first else i for i in case.inputs
        )
    )


@every_op
def test_empty_batch_is_answered_or_refused(op):
    """What the shape rule accepts has that shape; NumPy's own errors come never out."""
    if op.name.startswith("_"):
        return  # parts of others, which give them what fits
    for case in cases_of(op):
        if (
            not case.inputs
            or not case.inputs[0].shape
            or not {i.kind for i in case.inputs} <= {*NUMBERS, "bits", "index"}
        ):
            continue
        try:
            ((pairs, *_),) = answers("float32", "numpy", [emptied(case)])
        except HybridError as error:
            assert str(error).count(":") and "\n" not in str(error)
        else:
            for got, expected in zip(*pairs, strict=True):
                assert_close(got, expected, case)


@every_op
def test_unknown_inputs_are_completed_to_what_fits(op):
    """Known specs stay; what is found beside them is accepted, with the same answer."""
    for case in cases_of(op):
        attrs = op.normalize(dict(case.attrs))
        values = case.arrays("float32", np.random.default_rng(0))
        for i in range(len(values)):
            specs = [UNKNOWN if j == i else Spec(v.shape, v.dtype) for j, v in enumerate(values)]
            actual, outs = op.infer(specs, **attrs)
            for spec, given in zip(actual, specs, strict=True):
                assert given is UNKNOWN or spec == given, case
            if all(spec.known for spec in actual):
                assert op.infer(actual, **attrs) == (actual, outs), case


def test_float16_runs_on_numpy_and_says_why():
    made = Program([cases_of(OPS["tanh"])[0]], "float16")
    plan = Plan(made.graph, [], target="cpu")
    assert plan.target == "numpy" and "float16" in plan.target_note
    (got,) = plan([], plan.bind(list(made.values.values())))
    assert_close(got, made.eager(made.values)[0][0], "tanh")


def special_answers(dtype, target, cases):
    """[(outputs of the target, of eager arrays)] a case, on pairs of special values."""
    a, b = (v.ravel().astype(dtype) for v in np.meshgrid(SPECIAL, SPECIAL))
    given = dict(zip("abcde", (a, b, *(np.roll(a, n) for n in (3, 5, 6))), strict=True))

    def run(*values):
        return [apply(case, list(values[: len(case.op.inputs)]))[0] for case in cases]

    graph, _ = trace(run, {n: Spec(a.shape, a.dtype) for n in given})
    plan = Plan(graph, list(given), target=target)
    assert plan.target == target, plan.target_note
    outs = plan(list(given.values()), plan.bind([]))
    expected = [o.data for o in run(*map(NDArray, given.values()))]
    return list(zip(outs, expected, strict=True))


def formulas(dtype, target):
    """A parameter a batch of formulas."""
    cases = [c for c in FORMULAS if target == "numpy" or c.op not in SIBLINGS]
    return batch_params(cases, dtype, target)


@pytest.mark.parametrize(
    "dtype, target, cases",
    [
        param
        for dtype, target in (("float32", "numpy"), ("float64", "numpy"), ("float32", "cpu"))
        for param in formulas(dtype, target)
    ]
    + external(*formulas("float64", "cpu")),
)
def test_formula_of_special_values_is_as_in_numpy(dtype, target, cases):
    """Every pair of zeros of both signs, infinities, NaN and plain numbers."""
    assert_all(
        cases,
        functools.partial(special_answers, dtype, target),
        lambda case, pair: assert_close(*pair, case.op.name),
    )


# -- files, calls, memory --------------------------------------------------------------
@pytest.mark.per_op
@every_op
def test_json_round_trip_keeps_graph_and_answer(op):
    for case in cases_of(op):
        if any(0 in i.shape or i.shape == () for i in case.inputs):
            continue  # a file's shape says 0 for "unknown", and () for "all unknown"
        values = case.arrays("float32", np.random.default_rng(0))
        names = [f"x{i}" for i in range(len(values))]
        inputs = [
            sym.var(n, shape=v.shape, dtype=v.dtype) for n, v in zip(names, values, strict=True)
        ]
        symbol = sym.Group(
            apply(case, inputs)
            if inputs
            else [Symbol.interpret(op, [], op.normalize(dict(case.attrs)))]
        )
        again = fromjson(tojson(symbol))
        if not op.mxnet_name:  # it comes back as that operator of MXNet
            assert Graph.of(again).show() == Graph.of(symbol).show(), case
        answers = []
        for s in (symbol, again):
            answers.append(
                expand(Graph.of(s), True).evaluate(dict(zip(names, values, strict=True)), 7)
            )
        for got, expected in zip(*answers, strict=True):
            np.testing.assert_array_equal(got, expected, err_msg=str(case))


def columns_first(values):
    """The same numbers, columns one after the other in memory."""
    return np.array(values, order="F")


def with_gaps(values):
    """The same numbers, with others between them in memory."""
    return np.repeat(values[..., None], 2, -1)[..., 0]


def backwards(values):
    """The same numbers, the last first in memory."""
    return np.flip(np.flip(values).copy())


@every_op
def test_strided_inputs_are_read_as_contiguous_ones(op):
    for case in cases_of(op):
        values, expected = case.arrays("float32", np.random.default_rng(0)), None
        for layout in (np.array, columns_first, with_gaps, backwards):
            arrays = list(map(layout, values))
            nd.random.seed(7)
            with autograd.train_mode():
                outs = [o.data for o in apply(case, list(map(NDArray, arrays)))]
            for out, right in zip(outs, expected or outs, strict=True):
                assert out.flags.c_contiguous or any(out is a for a in arrays), (case, layout)
                assert_close(out, right, f"{case}, {layout}")
            expected = expected or outs


@pytest.mark.parametrize("target", TARGETS)
def test_plan_takes_strided_and_read_only_inputs(target):
    """As arguments, and as parameters that go by address."""
    x = np.random.default_rng(0).random((4, 3, 2))
    graph, _ = trace(lambda a, b: sym.exp(a) * b, dict.fromkeys("ab", Spec(x.shape, x.dtype)))
    plan = Plan(graph, ["a"], target=target)
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (x, frozen, columns_first(x), with_gaps(x), backwards(x)):
        (got,) = plan([given], plan.bind([given]))
        np.testing.assert_allclose(got, np.exp(x) * x, rtol=1e-14)


@for_each(sorted(OPS))
def test_name_exists_for_arrays_and_symbols(name):
    is_public = not name.startswith("_")
    assert (name in dir(nd)) is (name in dir(sym)) is is_public
    assert callable(getattr(nd, name)) and callable(getattr(sym, name))


@for_each(sorted(set(OPS) - set(vars(nd))))
def test_attributes_by_position_and_by_keyword(name):
    """All names but those of `nd`'s own functions, whose arguments are Gluon's."""
    op = OPS[name]
    case = cases_of(op)[0]
    values = list(map(NDArray, case.arrays("float32", np.random.default_rng(0))))
    attrs = op.normalize(dict(case.attrs))
    by_keyword = dict(zip(op.input_names(attrs, len(values)), values, strict=True))
    absent = 0 if op.variadic else len(op.input_names(None)) - len(values)
    calls = [((*values, *[None] * absent, *attrs.values()), {})]
    calls.append((values, attrs) if op.variadic else ((), by_keyword | attrs))
    answers = []
    for args, kwargs in calls:
        nd.random.seed(7)
        with autograd.train_mode():
            out = getattr(nd, name)(*args, **kwargs)
        answers.append([o.data for o in (out if isinstance(out, tuple) else [out])])
    for got, expected in zip(*answers, strict=True):
        np.testing.assert_array_equal(got, expected)


# -- gradients -------------------------------------------------------------------------
STEP = 1e-6
SMOOTH = [c for c in CASES if c.smooth and c.op.name not in ("BlockGrad", "_detach")]


def variable(value):
    """An array whose gradient is wanted."""
    made = NDArray(value)
    made.attach_grad()
    return made


def on_tape(run, values):
    """The gradient of the weighed sum of outputs, one array a value; 0 off the tape."""
    variables = list(map(variable, values))
    nd.random.seed(7)
    with autograd.record():
        taped, seeds = weighed(run(variables))
    if taped:
        autograd.backward(taped, seeds)
    return [v.grad.data for v in variables]


def weights(outs):
    """Numbers that make one of many outputs: no symmetry can hide an error."""
    rng = np.random.default_rng(1)
    return [NDArray(rng.uniform(0.5, 1.5, o.shape).astype(o.dtype)) for o in outs]


def weighed(outs):
    """(outputs that are on the tape, their weights)."""
    pairs = [p for p in zip(outs, weights(outs), strict=True) if p[0].node is not None]
    return [o for o, _ in pairs], [w for _, w in pairs]


def central_difference(run, values, place, direction):
    """The slope of the weighed sum of outputs, as one input moves along a direction."""
    sides = []
    for step in (STEP, -STEP):
        moved = [v + step * direction if i == place else v for i, v in enumerate(values)]
        nd.random.seed(7)
        with autograd.train_mode():
            outs = run(list(map(variable, moved)))
        sides.append(
            sum(float((o.data * w.data).sum()) for o, w in zip(outs, weights(outs), strict=True))
        )
    return (sides[0] - sides[1]) / (2 * STEP)


def assert_gradient(case, run):
    """What the tape says of `run` is what central differences say, along three directions.

    No number of a direction is small, so each element of a gradient counts.
    """
    values, rng = case.arrays("float64", np.random.default_rng(0)), np.random.default_rng(2)
    taped = on_tape(run, values)
    for i, (kind, got) in enumerate(zip(case.inputs, taped, strict=True)):
        for _ in range(3 * (kind.kind not in ("index", "bits"))):
            direction = rng.uniform(0.5, 1.5, got.shape) * rng.choice([-1, 1], got.shape)
            parts, slope = got * direction, central_difference(run, values, i, direction)
            near = 1e-7 + 1e-5 * abs(parts).sum()
            np.testing.assert_allclose(parts.sum(), slope, 0, near, err_msg=f"{case} [{i}]")


@pytest.mark.per_op
@every_op
def test_gradient_agrees_with_central_difference(op):
    for case in SMOOTH:
        if case.op is op:
            assert_gradient(case, functools.partial(apply, case))


def test_a_gradient_that_is_wrong_in_one_element_is_seen():
    case = cases_of(OPS["relu"])[0]

    def run(values, block):
        x = values[0].reshape((-1,))
        return [nd.concat(x[:-1], block(x[-1:]), dim=0)]

    assert_gradient(case, functools.partial(run, block=nd.identity))
    with pytest.raises(AssertionError, match="relu"):
        assert_gradient(case, functools.partial(run, block=nd.BlockGrad))


def test_no_gradient_passes_a_block():
    x = np.float64([2, 3])
    (grad,) = on_tape(lambda v: [nd.BlockGrad(v[0]) * v[0]], [x])
    np.testing.assert_allclose(grad, x * weights([NDArray(grad)])[0].data)


def gradient_of(run, variables):
    """The gradients of the weighed outputs, on the tape themselves."""
    with autograd.record():
        taped, seeds = weighed(run(variables))
        if not taped:
            return []
        return autograd.grad(taped, variables, seeds, create_graph=True)


@every_op
def test_second_derivative_agrees_with_central_difference(op):
    for case in SMOOTH:
        if case.op is op and not any(0 in i.shape for i in case.inputs):
            assert_gradient(case, functools.partial(gradient_of, functools.partial(apply, case)))


def compiled_operator(made, target):
    """Variables -> the outputs of a program on the tape, as one compiled operator."""
    op = CompiledOp(Job(expand(made.graph, True), (), True, target))
    backward = Plan(op.backward, [], target=target, expanded=True)
    for plan in (op.plan, backward):
        assert plan.target == target, plan.target_note
    return lambda variables: op.apply(dict(zip(made.values, variables, strict=True)))


def gradients(target, order, cases):
    """[[(gradient by the compiled operator, by the tape)] an input] a case."""
    made = Program(cases, "float64")

    def tape(variables):
        return [o for row in made.apply_all(*variables) for o in row]

    runs = [compiled_operator(made, target), tape]
    if order == 2:
        runs = [functools.partial(gradient_of, run) for run in runs]
    actual = [on_tape(run, made.values.values()) for run in runs]
    pairs = dict(zip(made.values, zip(*actual, strict=True), strict=True))
    return [[pairs[name] for name in names] for names in made.names]


CURVED = ("elemwise_div", "_power", "tanh", "softmax", "FullyConnected", "broadcast_mul")


FIRST = first_samples(SMOOTH)


@pytest.mark.parametrize(
    "dtype, cases",
    [param for dtype in ("float16", "float32") for param in batch_params(SMOOTH, dtype)],
)
def test_gradient_graph_has_the_shape_and_dtype_of_the_input(dtype, cases):
    def specs(some):
        made = Program(some, dtype)
        graph = expand(made.graph, True)
        expected = {n.name: n.specs[0] for n in graph.variables}
        heads = joint_graph(graph, list(expected)).heads[len(graph.heads) :]
        actual = {
            name: (n.specs[i], expected[name]) for name, (n, i) in zip(expected, heads, strict=True)
        }
        return [[actual[name] for name in names if name in actual] for names in made.names]

    def agree(case, pairs):
        for got, expected in pairs:
            assert got == expected, f"{case}: {got} for {expected}"

    assert_all(cases, specs, agree)


@pytest.mark.parametrize(
    "order, target, cases",
    [
        *batch_params(SMOOTH, 1, "numpy"),
        *batch_params(FIRST, 1, "cpu"),
        *batch_params(FIRST, 2, "numpy"),
        *batch_params([c for c in FIRST if c.op.name in CURVED], 2, "cpu"),
    ],
)
def test_compiled_gradient_agrees_with_the_tape(order, target, cases):
    """Order 2 is the gradient of a gradient."""

    def agree(case, pairs):
        for j, (got, expected) in enumerate(pairs):
            np.testing.assert_allclose(
                got, expected, rtol=1e-10, atol=1e-12, err_msg=f"{case} [{j}]"
            )

    assert_all(cases, functools.partial(gradients, target, order), agree)
