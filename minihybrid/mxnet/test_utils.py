"""What MXNet's programs ask `mx.test_utils` for: comparisons and random arrays.

Takes:   arrays of any kind; symbols and the arrays of their arguments.
Gives:   `same`, `almost_equal`, `assert_almost_equal`, ...; `rand_ndarray` and its like;
         `get_mnist`; `simple_forward`, `check_symbolic_forward`, `check_symbolic_backward`,
         `numeric_grad`, `check_numeric_gradient`; `default_context`, `list_gpus`.

Tolerances are MXNet 1.9.1's, by dtype. Random numbers are NumPy's usual ones, as there.
What is left out: sparse arrays, other data from the web, statistics of random draws.
"""

import functools
import os
from contextlib import contextmanager

import numpy as np

from minihybrid.core import nd
from minihybrid.core import sym as symbols
from minihybrid.core.context import current_context, num_gpus
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError, described
from minihybrid.gluon.data.vision.datasets import MNIST

RTOL = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-5}  # 0 for other dtypes
ATOL = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-20}
EPS = {"float16": 2**-6, "float32": 2**-9, "float64": 2**-14}


def default_context():
    """The usual device."""
    return current_context()


def list_gpus():
    """The numbers of the GPUs that are here.

    >>> list_gpus() == list(range(num_gpus()))
    True
    """
    return list(range(num_gpus()))


def default_dtype():
    """float32."""
    return np.float32


def get_rtol(rtol=None, dtype="float64"):
    """A relative tolerance: the one that is given, or that of the dtype."""
    return RTOL.get(np.dtype(dtype).name, 0) if rtol is None else rtol


def get_atol(atol=None, dtype="float64"):
    """An absolute tolerance: the one that is given, or that of the dtype."""
    return ATOL.get(np.dtype(dtype).name, 0) if atol is None else atol


# -- random arrays ---------------------------------------------------------------------
def random_arrays(*shapes):
    """An array of NumPy with normal numbers, or a list of them for several shapes."""
    made = [np.asarray(np.random.randn(*shape), np.float32) for shape in shapes]
    return made[0] if len(made) == 1 else made


def rand_ndarray(shape, stype="default", density=None, dtype=None, ctx=None):
    """An NDArray with normal numbers; storage is dense."""
    if stype != "default":
        raise AttrError(f"rand_ndarray: stype={stype!r}, but storage is 'default' here")
    return nd.array(random_arrays(tuple(shape)), ctx, dtype)


def rand_shape_nd(num_dim, dim=10, allow_zero_size=False):
    """A shape of so many axes, each of a random length up to `dim`."""
    lengths = np.random.randint(0 if allow_zero_size else 1, dim + 1, size=num_dim)
    return tuple(lengths.tolist())


def rand_shape_2d(dim0=10, dim1=10, allow_zero_size=False):
    """A shape of two axes of random lengths."""
    return rand_shape_nd(1, dim0, allow_zero_size) + rand_shape_nd(1, dim1, allow_zero_size)


def rand_shape_3d(dim0=10, dim1=10, dim2=10, allow_zero_size=False):
    """A shape of three axes of random lengths."""
    rest = rand_shape_2d(dim1, dim2, allow_zero_size)
    return rand_shape_nd(1, dim0, allow_zero_size) + rest


# -- comparisons -----------------------------------------------------------------------
def _numpy(array):
    return array.asnumpy() if isinstance(array, NDArray) else np.asarray(array)


def same(a, b):
    """Whether all numbers are equal.

    >>> same(nd.ones((2,)), [1, 1])
    True
    """
    return np.array_equal(_numpy(a), _numpy(b))


def almost_equal(a, b, rtol=None, atol=None, equal_nan=False, use_broadcast=True):
    """Whether |a - b| <= atol + rtol |b| everywhere."""
    a, b = _numpy(a), _numpy(b)
    if not use_broadcast and a.shape != b.shape:
        raise AssertionError(f"shapes {a.shape} and {b.shape} are not equal")
    return np.allclose(a, b, rtol=get_rtol(rtol), atol=get_atol(atol), equal_nan=equal_nan)


def assert_almost_equal(
    a, b, rtol=None, atol=None, names=("a", "b"), equal_nan=False, use_broadcast=True
):
    """Nothing, if |a - b| <= atol + rtol |b| everywhere.

    rtol, atol:  numbers, or dicts by dtype; else those of the coarser dtype.
    Raises:      AssertionError naming the worst place and both numbers there.
    """
    a, b = _numpy(a), _numpy(b)
    rtol = max(_tolerance(x, rtol, RTOL) for x in (a, b))
    atol = max(_tolerance(x, atol, ATOL) for x in (a, b))
    if almost_equal(a, b, rtol, atol, equal_nan, use_broadcast):
        return
    a, b = np.broadcast_arrays(a, b)
    with np.errstate(all="ignore"):
        off = np.where(a == b, 0, np.abs(a.astype(float) - b)) / (atol + rtol * np.abs(b) + 1e-20)
        if equal_nan:
            off[np.isnan(a) & np.isnan(b)] = 0
    place = np.unravel_index(np.argmax(off), off.shape)
    raise AssertionError(
        f"Error {off[place]:.6g} exceeds tolerance rtol={rtol:e}, atol={atol:e} "
        f"(mismatch {100 * np.mean(~(off <= 1)):f}%); location of maximum error: "
        f"{tuple(map(int, place))}, {names[0]}={a[place]:.8f}, {names[1]}={b[place]:.8f}"
    )


def _tolerance(array, given, usual):
    if isinstance(given, dict):
        given = {np.dtype(dtype).name: tolerance for dtype, tolerance in given.items()}
        usual, given = usual | given, None
    return usual.get(array.dtype.name, 0) if given is None else given


def assert_allclose(a, b, rtol=1e-07, atol=0, equal_nan=True):
    """`assert_almost_equal` with NumPy's tolerances."""
    assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)


def assert_almost_equal_ignore_nan(a, b, rtol=None, atol=None, names=("a", "b")):
    """`assert_almost_equal` where neither number is NaN."""
    a, b = _numpy(a), _numpy(b)
    some_nan = np.isnan(a) | np.isnan(b)
    assert_almost_equal(np.where(some_nan, 0, a), np.where(some_nan, 0, b), rtol, atol, names)


def assert_exception(f, exception_type, *args, **kwargs):
    """Nothing, if the call raises this error; else an AssertionError."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{f} raised no {exception_type.__name__}")


def retry(n):
    """A decorator: a test that fails may be tried n times."""
    if not isinstance(n, int) or n < 1:
        raise AttrError(f"retry: n={described(n)}, but a whole number of at least 1 is needed")

    def decorate(test):
        @functools.wraps(test)
        def call(*args, **kwargs):
            for left in reversed(range(n)):
                try:
                    return test(*args, **kwargs)
                except AssertionError:
                    if not left:
                        raise

        return call

    return decorate


@contextmanager
def environment(*args):
    """Inside, variables of the environment have other values; None is no value.

    args:  a name and its value, or a dict.
    """
    values = args[0] if isinstance(args[0], dict) else dict([args])
    before = {name: os.environ.get(name) for name in values}
    try:
        _set(values)
        yield
    finally:
        _set(before)


def _set(values):
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def get_mnist(path="."):
    """Digits of MNIST from files in a folder; nothing is downloaded.

    Returns: train_data, train_label, test_data and test_label by name: NumPy's arrays of shape
             (N, 1, 28, 28) from 0 to 1, and (N,).
    """
    found = {}
    for name, train in (("train", True), ("test", False)):
        digits = MNIST(path, train)
        found[f"{name}_data"] = digits._data.asnumpy().transpose(0, 3, 1, 2) / np.float32(255)
        found[f"{name}_label"] = _numpy(digits._label).astype(np.int8)
    return found


# -- symbols ---------------------------------------------------------------------------
def _by_name(names, given, ctx, dtype):
    """name -> NDArray of what is given as a list or a dict; None stays."""
    if given is None:
        return None
    if not isinstance(given, dict):
        given = dict(zip(names, given, strict=False))
    if unknown := given.keys() - set(names):
        raise ValueError(f"there are no arguments {sorted(unknown)}; there are {list(names)}")
    return {
        name: a
        if isinstance(a, NDArray)
        else nd.array(a, ctx, np.asarray(a).dtype if dtype == "asnumpy" else dtype)
        for name, a in given.items()
    }


def simple_forward(sym, ctx=None, is_train=False, **inputs):
    """The outputs of a symbol as NumPy's arrays; one alone without a list.

    >>> from minihybrid.core import sym
    >>> simple_forward(sym.var("x") * 2, x=np.ones(2)).tolist()
    [2.0, 2.0]
    """
    made = sym.bind(ctx or current_context(), {name: nd.array(a) for name, a in inputs.items()})
    outputs = [a.asnumpy() for a in made.forward(is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def check_symbolic_forward(
    sym,
    location,
    expected,
    rtol=None,
    atol=None,
    aux_states=None,
    ctx=None,
    equal_nan=False,
    dtype=np.float32,
):
    """The outputs of a symbol at a point, which must be those that are expected.

    location, expected, aux_states:  lists in the order of the symbol, or dicts by name.
    """
    ctx = ctx or current_context()
    made = sym.bind(
        ctx,
        _by_name(sym.list_arguments(), location, ctx, dtype),
        aux_states=_by_name(sym.list_auxiliary_states(), aux_states, ctx, dtype),
    )
    names, outputs = sym.list_outputs(), made.forward(False)
    expected = [expected[name] for name in names] if isinstance(expected, dict) else expected
    for name, wanted, found in zip(names, expected, outputs, strict=True):
        told = f"EXPECTED_{name}", f"FORWARD_{name}"
        assert_almost_equal(wanted, found, rtol, atol, told, equal_nan)
    return outputs


def check_symbolic_backward(
    sym,
    location,
    out_grads,
    expected,
    rtol=None,
    atol=None,
    aux_states=None,
    grad_req="write",
    ctx=None,
    equal_nan=False,
    dtype=np.float32,
):
    """The gradients of a symbol at a point, which must be those that are expected."""
    ctx, names = ctx or current_context(), sym.list_arguments()
    location = _by_name(names, location, ctx, dtype)
    if not isinstance(expected, dict):
        expected = dict(zip(names, expected, strict=False))
    if not isinstance(grad_req, dict):
        reqs = [grad_req] * len(names) if isinstance(grad_req, str) else grad_req
        grad_req = dict(zip(names, reqs, strict=True))
    before = {name: np.random.normal(size=location[name].shape) for name in expected}
    grads = {n: nd.array(a, ctx, location[n].dtype) for n, a in before.items()}
    aux_states = _by_name(sym.list_auxiliary_states(), aux_states, ctx, dtype)
    made = sym.bind(ctx, location, grads, grad_req, aux_states)
    made.forward(True)
    if out_grads is not None:
        out_grads = list(_by_name(sym.list_outputs(), out_grads, ctx, dtype).values())
    made.backward(out_grads)
    for name, wanted in expected.items():
        told = f"EXPECTED_{name}", f"BACKWARD_{name}"
        found = _grad(grads[name].asnumpy(), before[name], grad_req[name])
        wanted = before[name] if grad_req[name] == "null" else wanted
        assert_almost_equal(wanted, found, rtol, atol, told, equal_nan)
    return grads


def _grad(found, before, req):
    """What was added to what stood there, or what stands there now."""
    return found - before.astype(found.dtype) if req == "add" else found


def numeric_grad(executor, location, aux_states=None, eps=1e-4, use_forward_train=True):
    """name -> the gradient of the sum of the first output, by small differences.

    location:  name -> NumPy's array.
    In loops:  for each argument, each element: (f(x + eps/2) - f(x - eps/2)) / eps
    """
    found = {}
    for name, values in location.items():
        values, target = np.array(values, order="C"), executor.arg_dict[name]
        found[name] = np.zeros(values.shape)
        for i in np.ndindex(values.shape if values.dtype.kind == "f" else (0,)):
            sums = []
            for step in (eps / 2, -eps / 2):
                moved = values.copy()
                moved[i] += step
                target[:] = moved
                for key, state in (aux_states or {}).items():
                    executor.aux_dict[key][:] = state
                out = executor.forward(use_forward_train)[0]
                sums.append(out.asnumpy().sum(dtype=np.float64))
            found[name][i] = (sums[0] - sums[1]) / eps
        target[:] = values
    return found


def check_numeric_gradient(
    sym,
    location,
    aux_states=None,
    numeric_eps=None,
    rtol=None,
    atol=None,
    grad_nodes=None,
    use_forward_train=True,
    ctx=None,
    dtype=np.float32,
):
    """Nothing, if the gradients of a symbol are those of small differences.

    grad_nodes:  the names of the arguments that are looked at, or a dict name -> grad_req.
    """
    ctx, names = ctx or current_context(), sym.list_arguments()
    location = _by_name(names, location, ctx, dtype)
    states = _by_name(sym.list_auxiliary_states(), aux_states, ctx, dtype)
    reqs = (
        grad_nodes if isinstance(grad_nodes, dict) else dict.fromkeys(grad_nodes or names, "write")
    )
    out = sym.infer_shape(**{name: a.shape for name, a in location.items()})[1][0]
    weights = symbols.var("__random_proj")
    location["__random_proj"] = nd.array(np.random.rand(*out) + 0.1, ctx, dtype)
    before = {name: np.random.normal(0, 0.01, location[name].shape) for name in reqs}
    grads = {name: nd.array(a, ctx, dtype) for name, a in before.items()}
    points = {name: location[name].asnumpy() for name in reqs}
    kept = None if states is None else {name: a.asnumpy() for name, a in states.items()}
    made = symbols.make_loss(sym * weights).bind(ctx, location, grads, reqs, states)
    made.forward(True)
    made.backward()
    eps = EPS[np.dtype(dtype).name] if numeric_eps is None else numeric_eps
    numeric = numeric_grad(made, points, kept, eps, use_forward_train)
    for name, req in reqs.items():
        told = f"NUMERICAL_{name}", f"BACKWARD_{name}"
        found = _grad(grads[name].asnumpy(), before[name], req)
        wanted = before[name] if req == "null" else numeric[name]
        assert_almost_equal(wanted.astype(found.dtype), found, rtol, atol, told)


def __dir__():
    return own_names(globals())
