"""Loops that are Python functions: as they stand, and written into kernels."""

import ast
import copy
from contextlib import contextmanager

import numpy as np
import pytest
from samples import CASES, UNIQUE

from minihybrid import HybridError, cpu, nd, simulated_gpu
from minihybrid.core.op import Spec
from minihybrid.gluon import HybridBlock
from minihybrid.ops import OPS, windows
from minihybrid.ops.loops import Loops, T, add_up, copied, definition, each, loops, store, then
from minihybrid.ops.pooling import tiles

LOOPS = [op for op in UNIQUE if isinstance(op.cpu, Loops)]
OF_LOOPS = [case for case in CASES if case.op in LOOPS]
UNPOOLS = {"sums": "_unpool_sum", "best": "_unpool_max"}
FUNCTIONS = {f.function: op for op in LOOPS for f in (op.cpu, op.gpu) if isinstance(f, Loops)}


def test_each_such_operator_has_samples():
    assert len(LOOPS) >= 18
    assert {case.op.name for case in OF_LOOPS} == {op.name for op in LOOPS}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_as_they_stand_they_give_what_numpy_gives(dtype):
    """A student steps through this very function."""
    tried = set()
    for case in OF_LOOPS:
        op, attrs = case.op, case.op.normalize(dict(case.attrs))
        arrays = case.arrays(dtype, np.random.default_rng(4))
        ins, outs = op.infer([Spec(a.shape, a.dtype) for a in arrays], **attrs)
        expected = op.eager(*arrays, **attrs)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for form in (op.cpu, op.gpu):
            if not isinstance(form, Loops):
                continue
            if dtype == "int32" and attrs.get("count", "none") != "none":
                continue  # a kernel's T cuts off what is no whole number, Python's does not
            actual = [np.full(s.shape, 77, s.dtype) for s in outs]
            n_work = op.scratch(ins, outs, **attrs) if op.scratch else 0
            form.run(*arrays, *actual, work=np.zeros(n_work, outs[0].dtype), **attrs)
            for out, right in zip(actual, expected, strict=True):
                np.testing.assert_allclose(out, right, rtol=1e-4, atol=1e-5, err_msg=str(case))
            tried.add(op)
    assert tried == set(LOOPS)


@pytest.mark.parametrize("name", ["sums", "best"])
@pytest.mark.parametrize("way", ["share", "add", "ask"])
def test_gradients_of_pooling_as_they_stand(way, name):
    """Their records choose among these."""
    op, form, tried = OPS[UNPOOLS[name]], getattr(windows, f"{way}_{name}"), 0
    for case in (case for case in CASES if case.op is op):
        attrs = op.normalize(dict(case.attrs))
        if way == "share" and not tiles(**attrs):
            continue
        arrays = case.arrays("float32", np.random.default_rng(4))
        expected = op.eager(*arrays, **attrs)
        actual = np.full_like(expected, 77)
        form.run(*arrays, actual, **attrs)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
        tried += 1
    assert tried


def stored(function):
    """Whether a function calls `store`."""
    return any(
        isinstance(n, ast.Call) and ast.unparse(n.func) == "store"
        for s in definition(function)[1]
        for n in ast.walk(s)
    )


def written(function):
    """The arrays among its parameters to whose elements it assigns."""
    names, body = definition(function)
    return {
        n.value.id
        for s in body
        for n in ast.walk(s)
        if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and n.value.id in names
    }


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_record_says_stores_where_the_text_calls_store(function):
    op = FUNCTIONS[function]
    assert op.stores == stored(function)
    if op.stores:
        assert written(function) <= {"work"}


# -- what is written -------------------------------------------------------------------
class Lines:
    """A kernel's writer that only collects."""

    def __init__(self):
        self.lines, self.depth = [], 0

    def __call__(self, line):
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, header):
        self(header)
        self.depth += 1
        yield
        self.depth -= 1

    def loop(self, name, stop, start=0, step=1):
        return self.block(f"for {name} in range({start}, {stop}, {step}):")

    def each(self, *ranges, work=""):
        return self.block(f"each {ranges} {work}".rstrip())

    def store(self, index, value):
        self(f"store {index}: {value}")

    def then(self):
        self("then")


def lines(function, *lengths):
    """What is written for arrays a and b, and those lengths."""
    k = Lines()
    loops(lambda a, b: lengths)(function)(k, "a", "b")
    return k.lines


def neighbors(i, n, sizes):
    """Numbers around one, which exist."""
    for j in range(max(i - 1, 0), min(i + sizes[1], n)):
        yield j * sizes[0]


def test_a_generator_is_written_around_the_body_that_it_serves():
    def summed(a, b, n, sizes):
        for i in each(n, *sizes[2], work=7):
            for at in neighbors(i, n, sizes):
                b[i] += a[at]

    assert lines(summed, 5, (3, 2, ())) == [
        "each (('i', 5),) 7",
        "    for j_neighbors in range(max(i - 1, 0), min(i + 2, 5)):",
        "        at = j_neighbors * 3",
        "        b[i] += a[at]",
    ]


def halves(x):
    return x * 0.5


def swapped(a, i, j):
    """Change two numbers."""
    x = a[i]
    a[i] = a[j]
    a[j] = x
    return x + 1


def rich(a, b, n, low, up, sizes):
    """Has everything that loops may have."""
    for i, j in each(n, n * 2):
        top = a[i * (n * 4) + j] + low
        if up and n > 2:
            top += 1
        else:
            top -= low
        if not up:
            top = T(-np.sqrt(low))
        for p in range(n - 3):
            top += p
        for p in range(i, n):
            top = max(top, min(n, 2)) if p < i else halves(a[p])
        store(b, i * 1 + 0, top * sizes[j])
    then()
    while n > low:
        _ = swapped(a, n, n + 1)
        swapped(a, 0, 1)
        a[0] = add_up(T(low), -n)


def test_numbers_decide_what_they_can():
    assert (
        lines(rich, 3, float("-inf"), True, (2, 3))
        == """\
each (('i', 3), ('j', 6))
    top = a[i * 12 + j] + -inf
    top += 1
    for p in range(i, 3):
        top = max(top, 2) if p < i else a[p] * 0.5
    store i: top * (2, 3)[j]
then
while 3 > -inf:
    x_swapped = a[3]
    a[3] = a[4]
    a[4] = x_swapped
    _ = x_swapped + 1
    x_swapped = a[0]
    a[0] = a[1]
    a[1] = x_swapped
    a[0] = add_up(T(-inf), -3)""".splitlines()
    )


def test_the_other_branch():
    text = lines(rich, 2, 4, False, ())
    assert "    top -= 4" in text and "    top = T(-sqrt(4))" in text
    assert not any("+= 1" in line or "for p in range(0" in line for line in text)


# -- mistakes --------------------------------------------------------------------------
def with_a_list(a, b, n):
    for i in each(n):
        b[i] = [a[i]]
    print(n)


def with_items(a, b, n):
    for i in a:
        b[0] = i


def test_a_statement_that_kernels_lack_is_named():
    with pytest.raises(
        HybridError,
        match="with_a_list: loops have no statement "
        r"`print\(n\)`; needed: for, while",
    ):
        lines(with_a_list, 3)
    with pytest.raises(HybridError, match="no statement `for i in a:`"):
        lines(with_items, 3)


def test_lengths_that_are_not_the_parameters():
    with pytest.raises(
        HybridError,
        match=r"rich: its parameters are a, b, n, low, up, "
        r"sizes, but 3 values were given",
    ):
        lines(rich, 3)


def test_a_function_without_text():
    scope = {}
    exec("def made(a, b): b[0] = a[0]", scope)
    with pytest.raises(HybridError, match="made: its text is not known.*in a file"):
        lines(scope["made"])


def test_an_array_in_pieces_cannot_be_run():
    @loops(lambda a, b: (a.size,))
    def copied(a, b, n):
        for i in each(n):
            store(b, i, a[i])

    out = np.zeros(6)
    copied.run(np.arange(6.0).reshape(2, 3), out)
    assert out.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="copy"):
        copied.run(np.arange(6.0).reshape(2, 3).T, out)


class Uncopied:
    """What a library hangs on a node, and what must not be copied."""

    def __deepcopy__(self, _):
        raise AssertionError("a copy of a syntax tree goes beyond the tree")


def test_what_others_hang_on_the_nodes_of_all_trees_is_not_copied(monkeypatch, tmp_path):
    """IPython's tracebacks give a parent to `Load()`, which all trees share."""
    (shared, other) = (ast.parse("x", mode="eval").body.ctx for _ in range(2))
    assert shared is other
    monkeypatch.setattr(shared, "parent", Uncopied(), raising=False)
    with pytest.raises(AssertionError, match="beyond the tree"):
        copy.deepcopy(shared)
    tree = ast.parse("[f(a, b=1)[i:] for a in b if c]")
    assert ast.dump(copied(tree), include_attributes=True) == ast.dump(
        tree, include_attributes=True
    )
    net = Sorted()
    for ctx in (cpu(), simulated_gpu()):  # texts of kernels, and kernels that are read again
        net.hybridize()
        y = net(nd.array([[3.0, 1.0, 2.0]], ctx=ctx))
        np.testing.assert_allclose(y.asnumpy(), [[1.8427008, 1.9953223, 1.9999779]], rtol=1e-5)
    assert len(net.export(str(tmp_path / "net"), format="numpy")) == 2


class Sorted(HybridBlock):
    def hybrid_forward(self, F, x):
        return F.erf(F.sort(x)) + F.cast(F.argsort(x) < 99, "float32")
