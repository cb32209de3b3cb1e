"""Hybridized calls: known arguments of any nesting need few Python calls, new ones a plan."""

import itertools
import random
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from test_paths import n_calls

import minihybrid as mx
from minihybrid import autograd, nd
from minihybrid import np as mnp
from minihybrid.core.pytree import Keywords, nesting, reader
from minihybrid.gluon import nn

Pair = namedtuple("Pair", "left right")


class Sub(nd.NDArray):
    """An array of another class."""


class Name(str):
    """A text of another class."""


def ones(*shape, kind=nd.NDArray, dtype="float32"):
    return kind(np.ones(shape, dtype))


# Arguments of calls, of which each must have a plan of its own.
CALLS = [
    (ones(2),),
    (ones(3),),
    (ones(2, dtype="float64"),),
    (ones(2, kind=Sub),),
    (ones(2, kind=mnp.ndarray),),
    (nd.ones((2,), ctx=mx.cpu(1)),),
    (ones(),),
    (ones(2), ones(2)),
    ([ones(2), ones(2)],),
    ((ones(2), ones(2)),),
    (Pair(ones(2), ones(2)),),
    ([ones(2)], ones(2)),
    (ones(2), [ones(2)]),
    (ones(2), (ones(2),)),
    (ones(2), [[ones(2)]]),
    (ones(2), [ones(2), 1]),
    (ones(2), [1, ones(2)]),
    (ones(2), [ones(2)], []),
    (ones(2), {"a": ones(2)}),
    (ones(2), {"b": ones(2)}),
    (ones(2), {0: ones(2)}),
    (ones(2), {False: ones(2)}),
    (ones(2), {0.0: ones(2)}),
    (ones(2), {-0.0: ones(2)}),
    (ones(2), {Name("a"): ones(2)}),
    (ones(2), OrderedDict(a=ones(2))),
    (ones(2), Keywords(a=ones(2))),
    (ones(2), {"a": ones(2), "b": 1}),
    (ones(2), {"b": 1, "a": ones(2)}),
    *(
        (ones(2), value)
        for value in [
            *[None, 0, 1, 1.0, True, False, 0.0, -0.0, float("nan"), 1j, complex(1, -0.0)],
            *["", "1", "''", Name("1"), np.float32(1), np.float64(1), np.int64(1), np.float32],
            *[len, (), [], {}, (1,), [1], (1.0,), (None,), "nan", "0.0", "-0.0", b"1", mx.cpu()],
        ]
    ),
]


def test_a_reader_returns_no_key_of_another_call():
    """Whichever call was the last one, and whatever it takes the next one's arguments for."""
    keys = {reader(nesting(args))[0](args, False)[0]: i for i, args in enumerate(CALLS)}
    assert len(keys) == len(CALLS)
    for last, (i, args) in itertools.product(CALLS, enumerate(CALLS)):
        try:
            key, datas = reader(nesting(last))[0](args, False)
            hit = keys.get(key, i)
        except (LookupError, TypeError, ValueError, AttributeError):
            continue  # the call looks for the reader of its own nesting
        assert hit == i
        assert nesting(last) != nesting(args) or keys[key] == i
    assert keys.keys().isdisjoint(reader(nesting(args))[0](args, True)[0] for args in CALLS)


def arrays_in(value):
    """The arrays, or symbols, of nested values, without the engine's own walk."""
    if hasattr(value, "level"):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    return (
        [a for v in parts for a in arrays_in(v)] if isinstance(value, (list, tuple, dict)) else []
    )


@pytest.mark.parametrize("recorded", [False, True])
def test_calls_in_any_order_give_what_line_by_line_they_give(recorded):
    """Also beside symbols, and calls that fail; each array is read from its own place."""

    def f(*args, **kwargs):
        total = len(args)
        for k, a in enumerate(arrays_in([args, kwargs])):
            total = a * (k + 1) + total
        return [total, {"twice": (total * 2, None)}]

    compiled, rng = mx.function(f, target="numpy"), random.Random(0)
    fits = [
        args
        for args in CALLS
        if not {type(a) for a in arrays_in(args)} & {Sub, mnp.ndarray}
        and not any(a.context != mx.cpu() for a in arrays_in(args))
        and not isinstance(args[-1], Keywords)
        and (len(args) < 2 or type(args[1]) is not float)
    ]
    calls = [(args, {}) for args in fits]
    calls += [((ones(2),), {"b": ones(2)}), ((ones(2),), {"c": ones(2)}), ((), {"a": ones(2)})]
    for args, kwargs in rng.choices(calls, k=300):
        given = arrays_in([args, kwargs])
        for k, a in enumerate(given):
            a[...] = rng.random() + k
            if recorded:
                a.attach_grad()
        grads = []
        for call in (compiled, f):
            with autograd.record() if recorded else autograd.pause():
                first, more = call(*args, **kwargs)
            assert more["twice"][1] is None
            np.testing.assert_allclose(more["twice"][0].asnumpy(), 2 * first.asnumpy())
            if recorded:
                first.backward()
                grads.append([a.grad.asnumpy() for a in given])
            grads.append(first.asnumpy())
        half = len(grads) // 2
        for one, other in zip(grads[:half], grads[half:], strict=True):
            np.testing.assert_allclose(one, other, 1e-6)
        if rng.random() < 0.2:
            assert isinstance(compiled(mx.sym.var("x"), [1])[0], mx.sym.Symbol)
            with pytest.raises(mx.AttrError, match="NDArrays are needed"):
                compiled(rng.choice([1, [2], "a"]), b=3)
            with pytest.raises(mx.AttrError, match="must be plain values"):
                compiled(ones(2), rng.choice([{1}, np.ones(2), bytearray(b"a")]))


class Sum(nn.HybridBlock):
    """The sum of all arrays among its inputs."""

    def hybrid_forward(self, F, *inputs):
        first, *others = arrays_in(inputs)
        for other in others:
            first = first + other
        return first * 2


def bracketed(inputs):
    return [(a,) for a in inputs]


NESTED = {  # how arrays are passed -> the most Python functions beside those of one array
    "in a row": (lambda inputs: inputs, 0),
    "in a list": (lambda inputs: [inputs], 0),
    "in lists": (bracketed, 0),
    "in a dict": (lambda inputs: [inputs[0], {f"x{k}": a for k, a in enumerate(inputs)}], 0),
    "beside a number and a text": (lambda inputs: [*inputs, 2.5, "text"], 2),
}


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("how", NESTED)
def test_a_known_call_runs_few_python_functions_however_many_arrays(how, n):
    nested, more = NESTED[how]
    net, one = Sum(), Sum()
    for block in (net, one):
        block.hybridize(backend="numpy")
    inputs = nested([ones(4, 4) for _ in range(n)])
    base = n_calls(one, ones(4, 4))
    assert base <= 9
    assert n_calls(net, *inputs) <= base + more
    assert n_calls(one, ones(4, 4)) == base


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_keywords_and_several_results_run_few_python_functions(n):
    """And calls that take turns have all their readers at hand."""
    f = mx.function(lambda x, **more: x + sum(more.values()), target="numpy")
    g = mx.function(lambda *inputs: [inputs[0] * 2, {"a": sum(inputs)}], target="numpy")
    x, inputs = ones(4), {f"x{k}": ones(4) for k in range(n)}
    assert n_calls(lambda: f(x, **inputs)) <= 11
    assert n_calls(lambda: g(*[x] * n)) <= 15  # each result is an array, poisoned by the tests
    assert n_calls(lambda: (g(x), g(*[x] * n), g(x))) <= 45


def test_a_function_takes_arguments_by_name():
    f = mx.function(lambda x, y=2, *, z=None: x * y if z is None else x * y + z, target="numpy")
    x, z = nd.array([1.0, 2.0]), nd.array([5.0, 7.0])
    for _ in range(2):
        assert f(x).asnumpy().tolist() == [2, 4]
        assert f(x, y=3).asnumpy().tolist() == f(y=3, x=x).asnumpy().tolist() == [3, 6]
        assert f(x, y=x, z=z).asnumpy().tolist() == [6, 11]
        assert f(x, z=z).asnumpy().tolist() == [7, 11]
    assert f(mx.sym.var("x"), y=3).list_arguments() == ["x"]
    assert f.plan_for(x, z=z)[1][1] is z.data
    with pytest.raises(TypeError, match="unexpected keyword argument 'w'"):
        f(x, w=1)


def test_only_a_function_can_be_hybridized():
    with pytest.raises(mx.AttrError, match=r"function: 3 \(an int\) is given, but a Python fun"):
        mx.function(3)


def test_the_plans_that_calls_use_are_kept():
    f = mx.function(lambda x, size: nd.tile(x, reps=(size,)), target="numpy")
    x, y = ones(2), ones(3)
    f(x, 1), f(y, 1)
    with pytest.warns(RuntimeWarning, match="of which the newest"):
        for size in range(2, 150):
            assert f(x, 1).shape == (2,)  # used all along; that of y is not
            f(x, size)
    kept = f.hybrid.entries
    assert len(kept) == 100
    assert f.hybrid.key((x, 1)) in kept and f.hybrid.key((y, 1)) not in kept
    assert not any("argument 1 is 1," in reason for reason in f.plans.reasons), "traced again"
