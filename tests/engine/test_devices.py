"""Devices and arrays on them, on a simulated GPU: memory, copies, parts, errors."""

import copy
import pickle
import sys
import threading
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from minihybrid.context import check_context
from samples import CASES

import minihybrid as mx
from minihybrid import autograd, nd, simulated_gpu
from minihybrid.core.lru_cache import LRUCache
from minihybrid.core.op import AttrError, HybridError, ShapeError
from minihybrid.core.placement import copy_to
from minihybrid.runtime import device_eager
from minihybrid.runtime.device import DEVICES, Device, bucket, device_of
from minihybrid.runtime.device_array import DeviceArray
from minihybrid.simt.driver import SimulatedDriver

GPU, OTHER = mx.simulated_gpu(), mx.simulated_gpu(1)
X = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.fixture
def x():
    return nd.array(X, ctx=GPU)


@pytest.fixture
def small():
    """A device of its own with 4096 bytes of memory."""
    return Device(mx.simulated_gpu(7), SimulatedDriver(memory=4096))


def same(array, expected):
    """Whether an array has these numbers, dtype and shape."""
    expected = np.asarray(expected)
    return (array.shape, np.dtype(array.dtype)) == (
        expected.shape,
        expected.dtype,
    ) and np.array_equal(array.asnumpy(), expected)


# -- contexts --------------------------------------------------------------------------
def test_contexts_are_told_apart_by_all_they_are():
    fast = mx.simulated_gpu(fast=True)
    assert repr(GPU) == "simulated_gpu(0)" and repr(mx.gpu(2)) == "gpu(2)"
    assert repr(fast) == "simulated_gpu(0, fast=True)"
    assert len({GPU, mx.simulated_gpu(), OTHER, fast, mx.gpu(), mx.cpu()}) == 5
    assert mx.Context(fast) == fast != GPU


@pytest.mark.parametrize("number", [-1, 0.5, "0", None])
def test_a_device_has_a_number(number):
    with pytest.raises(AttrError) as error:
        mx.gpu(number)
    assert str(error.value) == (
        f"Context: device_id={number!r} does not fit; needed: a whole number of at least 0"
    )


@pytest.mark.slow
def test_a_fast_device_computes_the_same():
    fast = mx.simulated_gpu(fast=True)
    x, y = nd.array(X, ctx=fast), nd.array(X, ctx=GPU)
    assert (x * 2 + 1).context == fast and same(x * 2 + 1, (y * 2 + 1).asnumpy())


@pytest.mark.parametrize("name", ["cpu_pinned", "cpu_shared"])
def test_pinned_and_shared_memory_is_the_processors(name):
    assert nd.zeros(2, ctx=mx.Context(name, 3)).context == mx.cpu()


def test_new_arrays_go_to_the_device_of_the_with_block():
    with GPU:
        assert nd.array([1]).context == nd.zeros(2).context == GPU
        assert mx.np.array([1]).context == mx.np.random.normal(size=2).context == GPU
        assert nd.random.uniform(shape=2).context == GPU
        assert nd.random_uniform(shape=2, ctx=mx.cpu()).context == mx.cpu()
        with mx.cpu():
            assert nd.ones(2).context == mx.cpu()
        assert mx.current_context() == GPU
    assert nd.zeros(2).context == mx.cpu()


@pytest.mark.parametrize(
    "make",
    [
        lambda c: nd.array([1, 2], ctx=c),
        lambda c: nd.empty((2,), ctx=c),
        lambda c: nd.full((2,), 3, ctx=c),
        lambda c: nd.arange(3, ctx=c),
        lambda c: nd.eye(2, ctx=c),
        lambda c: nd.random.randint(0, 5, (2,), ctx=c),
        lambda c: mx.np.ones(2, ctx=c),
        lambda c: mx.np.arange(3, ctx=c),
        lambda c: mx.np.indices((2, 2), ctx=c),
        lambda c: mx.np.random.choice(3, 2, ctx=c),
        lambda c: mx.np.random.randint(3, size=2, ctx=c),
    ],
)
def test_ctx_is_where_an_array_is_made(make):
    assert make(GPU).context == make(GPU).ctx == make(GPU).device == GPU
    assert make(None).context == mx.cpu()


@pytest.fixture
def bindings(monkeypatch):
    """A module that stands for cuda.bindings.driver."""
    driver = SimpleNamespace(cuInit=lambda flags: (0,), cuDeviceGetCount=lambda: (0, 3))
    package = ModuleType("cuda.bindings")
    package.driver = driver
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", package)
    mx.num_gpus.cache_clear()
    yield driver
    mx.num_gpus.cache_clear()


def test_gpus_are_counted_by_the_driver(bindings):
    assert mx.num_gpus() == 3
    assert check_context(mx.gpu(2)) == mx.gpu(2)


def no_library(*_):
    raise RuntimeError("libcuda.so.1 was not found")


@pytest.mark.parametrize(
    "name, function", [("cuInit", no_library), ("cuDeviceGetCount", lambda: (100, None))]
)
def test_without_a_driver_there_is_no_gpu(bindings, name, function):
    setattr(bindings, name, function)
    assert mx.num_gpus() == 0


def test_a_gpu_that_is_not_there_says_what_else_there_is(monkeypatch):
    monkeypatch.setattr("minihybrid.context.num_gpus", lambda: 1)
    with pytest.raises(HybridError) as error:
        nd.zeros((2,), ctx=mx.gpu(1))
    assert str(error.value) == (
        "nd.zeros: gpu(1) is not available: this engine sees 1 GPUs; use mx.simulated_gpu() or "
        "mx.cpu()"
    )


def test_the_usual_question_for_a_gpu_finds_the_processor(monkeypatch):
    monkeypatch.setattr("minihybrid.context.num_gpus", lambda: 0)
    try:
        ctx = mx.gpu()
        nd.zeros((1,), ctx=ctx)
    except mx.base.MXNetError:
        ctx = mx.cpu()
    assert ctx == mx.cpu()


def test_a_list_of_devices_is_not_one():
    with pytest.raises(HybridError) as error:
        nd.zeros(2, ctx=[GPU, OTHER])
    assert str(error.value) == (
        "nd.zeros: [simulated_gpu(0), simulated_gpu(1)] (a list) is not one device; an array "
        "lives on one, such as mx.cpu(), mx.gpu(0) or mx.simulated_gpu()"
    )
    assert nd.zeros(2, ctx=[GPU]).context == GPU


# -- memory ----------------------------------------------------------------------------
def test_blocks_have_few_sizes_and_are_at_most_an_eighth_too_large():
    sizes = {n: bucket(n) for n in range(1, 70_000, 7)}
    assert all(s >= n and s % 256 == 0 for n, s in sizes.items())
    assert all(s <= max(n * 9 / 8 + 256, 256) for n, s in sizes.items())
    assert len(set(sizes.values())) < 60


def test_memory_that_was_dropped_is_used_again():
    device = device_of(GPU)
    kept = [nd.zeros((100,), ctx=GPU) for _ in range(3)]
    before = device.n_allocations
    for n in range(100, 120):
        x = nd.zeros((n,), ctx=GPU)
        x = x + kept[0][:1]  # the sum is made before the old x is dropped
    allocations = device.n_allocations - before
    assert allocations <= 4  # two sizes, two blocks of each
    del x
    for n in range(100, 120):
        nd.zeros((n,), ctx=GPU)
    assert device.n_allocations - before == allocations


def test_an_address_is_not_used_twice():
    arrays = [nd.full((10,), i, ctx=GPU) for i in range(50)]
    assert len({a.data.address for a in arrays}) == 50
    assert all(a.data.address % 256 == 0 for a in arrays)
    assert [a.asnumpy()[9] for a in arrays] == list(range(50))


def test_unused_memory_is_given_back_before_an_error(small):
    first = small.alloc(2000)
    address = first.address
    del first  # 2048 bytes: in the free list, not the driver's
    assert small.free == {2048: [address]} and small.driver.heap.free == 2048
    second = small.alloc(3000)  # the driver alone has too little
    assert second.nbytes == 3072 and small.driver.heap.free == 1024
    with pytest.raises(HybridError) as error:
        small.alloc(1025)
    assert str(error.value) == (
        "simulated_gpu(7): 1280 bytes of memory are needed, but the device has no more, even "
        "with 0 unused bytes given back; use smaller batches, or drop arrays"
    )
    assert small.n_allocations == 2


def test_an_error_of_the_driver_is_told_in_its_words(small):
    small.driver.cuMemsetD8Async = lambda *_: (1,)
    with pytest.raises(HybridError) as error:
        small.fill(0, 0, 12)
    assert str(error.value) == (
        "simulated_gpu(7): filling 12 bytes failed with CUDA_ERROR_INVALID_VALUE (invalid "
        "argument); if a kernel wrote outside of its arrays, mx.simulated_gpu() shows where"
    )


def test_waiting_waits_for_every_device(monkeypatch):
    waited, x, y = [], nd.zeros(2, ctx=GPU), nd.zeros(2, ctx=OTHER)
    monkeypatch.setattr(Device, "synchronize", lambda self: waited.append(self.context))
    y.wait_to_read()
    assert waited == [OTHER]
    nd.waitall()
    assert sorted(map(str, waited[1:])) == sorted(str(d) for d in DEVICES)
    assert {x.context, y.context} <= {*waited[1:]}


# -- copies ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"]
)
@pytest.mark.parametrize("shape", [(2, 3), (1,), (0,), (2, 0, 3)])
def test_numbers_come_back_as_they_went(dtype, shape):
    a = (np.arange(np.prod(shape)) % 2).astype(dtype).reshape(shape)
    x = nd.array(a, ctx=GPU, dtype=dtype)
    assert same(x, a) and same(x.as_in_context(mx.cpu()), a)
    assert same(x.as_in_ctx(OTHER).to_device(GPU), a)
    assert len(x) == shape[0]


def test_as_in_context_copies_only_what_is_elsewhere(x):
    assert x.as_in_context(GPU) is x
    there = x.as_in_context(OTHER)
    there[0] = -1
    assert same(x, X) and there.context == OTHER
    copied = x.copyto(GPU)
    copied[0] = -1
    assert same(x, X) and copied.context == GPU


def test_copyto_writes_into_an_array_of_any_device(x):
    for ctx in (mx.cpu(), OTHER, GPU):
        y = nd.zeros((2, 3, 4), ctx=ctx)
        assert x.copyto(y) is y and same(y, X) and y.context == ctx
    y = nd.zeros((2, 3, 4), ctx=GPU)
    nd.array(X).copyto(y)
    assert same(y, X) and same(x.copy(), X)


def test_a_numpy_array_is_not_needed_after_it_was_copied():
    a = X.copy()
    x = nd.array(a, ctx=GPU)
    a[:] = 0
    assert same(x, X)


def test_numbers_are_shown_with_their_device(x):
    assert repr(x[0, :2, :2]) == ("\n[[0. 1.]\n [4. 5.]]\n<NDArray 2x2 @simulated_gpu(0)>")
    assert repr(mx.np.array([1, 2], ctx=GPU)) == "array([1., 2.])"
    assert repr(x.data) == "<DeviceArray float32[2, 3, 4] @simulated_gpu(0)>"
    y = nd.array([2], ctx=GPU)
    assert (float(y), int(y), y.asscalar(), y.item(), bool(y)) == (2, 2, 2, 2, True)
    assert [v.asnumpy().tolist() for v in nd.array([[1], [2]], ctx=GPU)] == [[1], [2]]
    assert mx.np.array([[1, 2]], ctx=GPU).tolist() == [[1, 2]]


# -- parts -----------------------------------------------------------------------------
DENSE = [
    0,
    -1,
    (1, 2),
    (0, slice(1, 3)),
    slice(0, 1),
    Ellipsis,
    slice(None),
    (1, 2, 3),
    (1, Ellipsis),
    slice(1, 1),
    (0, slice(2, 3), slice(0, 2)),
    (slice(1, 2), slice(None), slice(None)),
    slice(None, None, 2),
]
GAPS = [
    (slice(None), 1),
    (Ellipsis, 2),
    slice(None, None, -1),
    (0, slice(None), 1),
    (slice(None), slice(0, 2)),
    (Ellipsis, slice(None, None, 2)),
]
GATHERED = [[1, 0, 1], (slice(None), [2, 0]), X > 11, (0, [1, 1], [2, 3])]


@pytest.mark.parametrize("key", DENSE, ids=str)
@pytest.mark.parametrize("world", [nd, mx.np], ids=["nd", "np"])
def test_a_dense_part_is_the_same_memory(world, key):
    x = world.array(X, ctx=GPU)
    plain, part = X.copy(), x[key]
    assert part.context == GPU and part.asnumpy().shape == (
        X[key].shape or ((1,) if world is nd else ())
    )
    assert np.array_equal(part.asnumpy().ravel(), X[key].ravel())
    part[...] = -5
    plain[key] = -5
    assert np.array_equal(x.asnumpy(), plain)


@pytest.mark.parametrize("key", GAPS + GATHERED, ids=str)
@pytest.mark.parametrize("world", [nd, mx.np], ids=["nd", "np"])
def test_another_part_is_gathered_by_a_kernel(monkeypatch, world, key):
    x = world.array(X, ctx=GPU)
    with monkeypatch.context() as patch:  # no number may come to the processor
        patch.setattr(DeviceArray, "__array__", None)
        part = x[key]
    assert part.context == GPU and same(part, X[key])


@pytest.mark.parametrize("key", DENSE + GAPS + GATHERED, ids=str)
@pytest.mark.parametrize("value", [3, 0.5, -0.0, "array", "device"], ids=str)
def test_every_part_can_be_written(key, value):
    x, plain = nd.array(X, ctx=GPU), X.copy()
    if isinstance(value, str):
        made = np.arange(X[key].size, dtype="float32").reshape(X[key].shape) + 50
        plain[key] = made
        value = made if value == "array" else copy_to(made, GPU)
        value = nd.NDArray(value) if isinstance(value, DeviceArray) else value
    else:
        plain[key] = value
    x[key] = value
    assert same(x, plain)


def test_a_value_is_broadcast_and_converted_as_numpy_does():
    x = nd.zeros((2, 3), ctx=GPU, dtype="int32")
    x[:] = nd.array([1.9, 2, 3], ctx=OTHER)
    assert same(x, np.int32([[1, 2, 3], [1, 2, 3]]))
    x[1] = nd.array([7], ctx=GPU)
    x[0, 1:] = np.array([[5, 6]])
    assert same(x, np.int32([[1, 5, 6], [7, 7, 7]]))


def test_an_index_may_be_an_array_on_the_device(x):
    assert same(x[nd.array([1, 1], ctx=GPU)], X[[1, 1]])
    assert same(x.as_np_ndarray()[x.as_np_ndarray() > 11], X[X > 11])
    x[nd.array([0], ctx=GPU)] = 0
    assert x.asnumpy()[0].sum() == 0


@pytest.mark.parametrize(
    "ask", [lambda x: x[2], lambda x: x[0, 3], lambda x: x[[5]], lambda x: x[0, 0, 0, 0]]
)
def test_a_place_that_is_not_there_is_an_error(x, ask):
    with pytest.raises(ShapeError, match=r"^x\[\.\.\.\]: .*shape \(2, 3, 4\)$"):
        ask(x)
    with pytest.raises(ShapeError, match=r"does not broadcast"):
        x[0] = np.ones(7)


def test_places_are_written_in_place(x):
    before = x.data.address
    x += 1
    x *= 2
    x -= nd.ones((4,), ctx=GPU)
    x /= 2
    assert x.data.address == before and same(x, (X + 0.5).astype("float32"))


# -- operators -------------------------------------------------------------------------
def test_operators_compute_where_their_inputs_are(x):
    y = nd.relu(x - 10) * 2 + np.float32(1)
    assert y.context == GPU and same(y, np.maximum(X - 10, 0) * 2 + 1)
    assert same(x > 3, (X > 3).astype("float32"))
    assert (x + X).context == GPU
    assert same(mx.np.array(X, ctx=GPU) + X, X + X)


@pytest.mark.slow
def test_composite_operators_and_their_gradients_stay_on_the_device():
    """What they are made of has operators without inputs, such as `arange`."""
    gpu, composite = simulated_gpu(), [case for case in CASES if case.op.eager is None]
    for case in {case.op: case for case in composite}.values():
        arrays = case.arrays("float32", np.random.default_rng(4))
        inputs = [nd.array(a, dtype=a.dtype, ctx=gpu) for a in arrays]
        for x in inputs:
            x.attach_grad()
        with autograd.record():
            outs = case.op(*inputs, **dict(case.attrs))
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        assert {out.context for out in outs} == {gpu}, case
        try:
            autograd.backward(outs)
        except HybridError as error:
            assert "the array is not on the tape" in str(error), case
    assert len(composite) > 190


def test_an_operator_is_one_launch_and_a_copy_or_a_dense_part_is_none(x):
    device, y = device_of(GPU), x * 1
    counts = []
    for act in (
        lambda: x + y,
        lambda: nd.relu(x),
        lambda: x[:, 1],
        lambda: x[1],
        lambda: x[1].asnumpy(),
        lambda: y.copyto(x),
        lambda: x.copyto(OTHER),
        lambda: x.detach(),
        lambda: x.__setitem__(0, 0),
    ):
        before = device.n_launches
        act()
        counts.append(device.n_launches - before)
    assert counts == [1, 1, 1, 0, 0, 0, 0, 0, 0]


def test_numpys_own_functions_give_arrays_of_the_device():
    x = mx.np.array([3, 1, 3], ctx=GPU)
    actual = mx.np.unique(x)
    assert actual.context == GPU and actual.tolist() == [1, 3]
    assert mx.np.median(x).item() == 3


def test_a_seed_gives_the_same_numbers_on_every_device():
    drawn = []
    for ctx in (mx.cpu(), GPU, OTHER):
        mx.random.seed(11)
        drawn.append(
            [
                nd.random.uniform(shape=(5,), ctx=ctx).asnumpy(),
                nd.random.randint(0, 100, shape=(5,), ctx=ctx).asnumpy(),
                mx.np.random.choice(10, 4, ctx=ctx).asnumpy(),
            ]
        )
    for again in drawn[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(drawn[0], again, strict=True))


@pytest.mark.parametrize(
    "apply, message",
    [
        (
            lambda x, y: x + y,
            "x + y: its input 'lhs' is on simulated_gpu(0), but 'rhs' is on cpu(0); bring "
            "both to one device, for example by x.as_in_context(simulated_gpu(0))",
        ),
        (
            lambda x, y: y * x,
            "x * y: its input 'lhs' is on cpu(0), but 'rhs' is on simulated_gpu(0); bring "
            "both to one device, for example by x.as_in_context(simulated_gpu(0))",
        ),
        (
            lambda x, y: nd.FullyConnected(x, y, no_bias=True, num_hidden=2),
            "FullyConnected: its input 'data' is on simulated_gpu(0), but 'weight' is on cpu(0); "
            "bring both to one device, for example by x.as_in_context(simulated_gpu(0))",
        ),
        (
            lambda x, y: nd.concat(x, x, y, dim=0),
            "concat: its input 'data0' is on simulated_gpu(0), but 'data2' is on cpu(0); bring "
            "both to one device, for example by x.as_in_context(simulated_gpu(0))",
        ),
    ],
)
def test_inputs_on_different_devices_are_named(apply, message):
    with pytest.raises(HybridError) as error:
        apply(nd.ones((2, 2), ctx=GPU), nd.ones((2, 2)))
    assert str(error.value) == message


def test_a_missing_input_is_named_on_devices_too():
    with pytest.raises(AttrError, match="^FullyConnected: the input 'weight' is miss"):
        nd.FullyConnected(nd.ones((2, 2), ctx=GPU), num_hidden=2)


def test_threads_share_a_device():
    wrong = []

    def work(k):
        for _ in range(10):
            x = nd.full((50,), k, ctx=GPU)
            y = (x * 2 + x) * x - 1
            if not np.array_equal(y.asnumpy(), np.full(50, 3 * k * k - 1)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# -- files -----------------------------------------------------------------------------
def test_files_hold_numbers_of_any_device(tmp_path, x):
    nd.save(str(tmp_path / "a"), {"x": x, "y": nd.array([1])})
    actual = nd.load(str(tmp_path / "a"))
    assert actual["x"].context == mx.cpu() and same(actual["x"], X)
    with GPU:
        assert nd.load(str(tmp_path / "a"))["y"].context == GPU


def test_an_array_of_a_device_can_be_pickled_and_copied_deeply(x):
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert again.context == GPU and same(again, X)
        again[0] = 0
    assert same(x, X)


# -- symbols ---------------------------------------------------------------------------
def test_an_executor_runs_where_its_arrays_are():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    values, grads = ([nd.array([v, 2], ctx=GPU) for v in start] for start in ((3, 4), (10, 10)))
    run = (a * b).bind(GPU, values, grads, {"a": "write", "b": "add"})
    run.forward(is_train=True, a=nd.array([5, 6]))
    run.backward(nd.ones((2,), ctx=GPU))
    assert run.outputs[0].context == GPU and same(run.outputs[0], np.float32([20, 12]))
    assert same(grads[0], np.float32([4, 2])) and same(grads[1], np.float32([15, 8]))
    assert (a + 1).eval(a=values[0])[0].context == GPU
    made = (a * b).simple_bind(OTHER, a=(2,), b=(2,))
    assert {v.context for v in made.arg_arrays + made.grad_arrays} == {OTHER}
    assert made.reshape(a=(1,), b=(1,)).forward()[0].context == OTHER


def test_an_executor_names_the_array_that_is_elsewhere():
    with pytest.raises(HybridError) as error:
        mx.sym.var("a").bind(GPU, {"a": nd.zeros(2)})
    assert str(error.value) == (
        "bind: the array of 'a' is on cpu(0), but ctx=simulated_gpu(0) is given; move "
        "it by x.as_in_context(simulated_gpu(0))"
    )


def test_a_new_scalar_is_no_new_kernel(monkeypatch):
    monkeypatch.setattr(device_eager, "PLANS", LRUCache(100))
    x = nd.array([1, 2, 4], ctx=simulated_gpu())
    for y in (x * 2, 2 / x, x**2, x > 2):
        y.wait_to_read()
    before = len(device_eager.PLANS)
    actual = [(x * i, i / x, x**i, x > i) for i in (3, -0.0, 0.5, float("nan"))]
    assert len(device_eager.PLANS) == before + 4  # but NaN is written into the text
    plain = nd.array([1, 2, 4])
    for i, row in zip((3, -0.0, 0.5, float("nan")), actual, strict=True):
        expected = plain * i, i / plain, plain**i, plain > i
        for a, b in zip(row, expected, strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)
            assert (np.signbit(a.asnumpy()) == np.signbit(b.asnumpy())).all()
