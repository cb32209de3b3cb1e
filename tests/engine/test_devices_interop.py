"""Other libraries write through our memory and we through theirs; both see it."""

import ctypes
import importlib.util
import os
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import nd
from minihybrid.core.op import AttrError, HybridError, ShapeError
from minihybrid.runtime.device import DEVICES, Device
from minihybrid.runtime.dlpack import LENT, Managed, Producer, Versioned, opened
from minihybrid.simt.driver import SimulatedDriver

TESTS = Path(__file__).parents[1]
SIMULATED = mx.simulated_gpu()
HOST = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
DTYPES = ["float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"]


class Driver(SimulatedDriver):
    """A driver that passes for a real one."""

    CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9)
    waited = ()

    def cuPointerGetAttribute(self, attribute, address):
        return 0, 0

    def cuStreamSynchronize(self, stream):
        self.waited = (*self.waited, int(stream))
        return (0,)


@pytest.fixture
def gpu(monkeypatch):
    """What passes for a real GPU, but for its kernels, which are simulated."""
    device = Device(mx.gpu(), Driver())
    device.is_simulated = True
    monkeypatch.setitem(DEVICES, mx.gpu(), device)
    monkeypatch.setattr("minihybrid.context.num_gpus", lambda: 1)
    return device


# -- NumPy -----------------------------------------------------------------------------
@pytest.mark.parametrize("ctx", [mx.cpu(), SIMULATED], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_shares_our_memory(ctx, dtype):
    x = nd.array([[1, 0, 1], [0, 1, 1]], ctx=ctx, dtype=dtype)
    seen = np.from_dlpack(x)
    assert seen.dtype == x.asnumpy().dtype and seen.tolist() == x.asnumpy().tolist()
    seen[0, 1] = 1
    x[1, 0] = 1
    assert x.asnumpy().all() and seen.all()


@pytest.mark.parametrize("ctx", [mx.cpu(), SIMULATED], ids=str)
def test_arrays_without_axes_or_numbers_are_shared_too(ctx):
    assert np.from_dlpack(mx.np.array(3.5, ctx=ctx)) == 3.5
    assert np.from_dlpack(nd.zeros((2, 0, 3), ctx=ctx)).shape == (2, 0, 3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_we_share_numpys_memory(dtype):
    theirs = np.zeros((2, 2), dtype)
    ours = nd.from_dlpack(theirs)
    ours[0] = 1
    theirs[1, 0] = 1
    assert ours.asnumpy().tolist() == theirs.tolist() == [[1, 1], [1, 0]]
    assert ours.context == mx.cpu()


def test_a_part_of_an_array_is_lent_from_where_it_begins():
    x = nd.array(np.arange(12).reshape(3, 4), ctx=SIMULATED)
    np.from_dlpack(x[1])[:] = -1
    assert x.asnumpy().tolist() == [[0, 1, 2, 3], [-1] * 4, [8, 9, 10, 11]]


@pytest.mark.parametrize("key", [(slice(None), 1), slice(None, None, 2), slice(None, None, -1)])
def test_gaps_are_refused(key):
    theirs = np.zeros((4, 3), "float32")[key]
    with pytest.raises(HybridError) as error:
        nd.from_dlpack(theirs)
    dense = np.ascontiguousarray(theirs)
    assert str(error.value) == (
        f"from_dlpack: the array of shape {theirs.shape} has strides of {theirs.strides} bytes, "
        f"but {dense.strides} are needed; make it contiguous first"
    )
    assert nd.from_dlpack(dense).shape == theirs.shape


def test_strides_along_axes_of_length_1_do_not_matter():
    assert nd.from_dlpack(np.zeros((1, 6), "int32")[:, ::2][:, :1]).shape == (1, 1)


# -- capsules --------------------------------------------------------------------------
def test_a_capsule_is_what_dlpack_h_says():
    x = nd.array(np.arange(6).reshape(2, 3), ctx=SIMULATED, dtype="float64")
    capsule = x.__dlpack__()
    at = HOST(capsule, b"dltensor")
    data, kind, number, ndim, code, bits, lanes, shape, strides, offset = struct.unpack(
        "QiiiBBHQQQ", ctypes.string_at(at, 48)
    )
    assert (data, kind, number, ndim) == (x.data.address, 1, 0, 2)
    assert (code, bits, lanes, offset) == (2, 64, 1, 0)
    assert struct.unpack("qq", ctypes.string_at(shape, 16)) == (2, 3)
    assert struct.unpack("qq", ctypes.string_at(strides, 16)) == (3, 1)
    assert struct.unpack("6d", ctypes.string_at(data, 48)) == (0, 1, 2, 3, 4, 5)


def test_a_versioned_capsule_tells_its_version_first():
    x = nd.array([1, 2], ctx=SIMULATED)
    capsule = x.__dlpack__(max_version=(1, 1))
    at = HOST(capsule, b"dltensor_versioned")
    major, minor, manager, deleter, flags, data = struct.unpack("IIQQQQ", ctypes.string_at(at, 40))
    assert (major, minor, manager, flags, data) == (1, 0, 0, 0, x.data.address)
    assert deleter


def test_a_gpus_memory_is_told_as_that(gpu):
    x = nd.array([1, 2, 3], ctx=mx.gpu())
    assert x.__dlpack_device__() == (2, 0) and x.context == mx.gpu()
    capsule = x.__dlpack__()
    _, managed = opened(capsule)
    assert (managed.tensor.device_type, managed.tensor.device_id) == (2, 0)
    assert (
        nd.zeros(1).__dlpack_device__() == (1, 0) == nd.zeros(1, ctx=SIMULATED).__dlpack_device__()
    )


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_lent_memory_lives_until_it_is_not_needed(version):
    x, before = nd.array([1, 2], ctx=SIMULATED), len(LENT)
    address = x.data.address
    seen = np.from_dlpack(Producer(x.__dlpack__(max_version=version)))
    del x
    other = nd.zeros((2,), ctx=SIMULATED)
    assert len(LENT) == before + 1 and seen.tolist() == [1, 2]
    assert other.data.address != address
    del seen
    assert len(LENT) == before
    assert nd.zeros((2,), ctx=SIMULATED).data.address == address


def test_a_capsule_that_nobody_opens_lends_nothing():
    x, before = nd.array([1, 2], ctx=SIMULATED), len(LENT)
    capsules = [x.to_dlpack_for_read(), nd.to_dlpack_for_write(x)]
    assert len(LENT) == before + 2
    del capsules
    assert len(LENT) == before


def test_memory_is_used_again_after_the_consumers_stream(gpu):
    x = nd.array([1, 2], ctx=mx.gpu())
    gpu.driver.waited = ()
    capsule = x.__dlpack__(stream=77)
    assert gpu.driver.waited == (int(gpu.stream),)  # our work comes first
    del capsule
    assert gpu.driver.waited[1:] == (77,)
    x.__dlpack__(stream=-1)
    assert len(gpu.driver.waited) == 2  # they wait for nothing, and we neither


def test_capsules_go_in_and_out_as_mxnet_spells_it():
    x = nd.array([1, 2, 3])
    for capsule in (nd.to_dlpack_for_write(x), x.to_dlpack_for_write()):
        nd.from_dlpack(capsule)[0] += 1
    assert x.asnumpy().tolist() == [3, 2, 3]
    assert nd.from_dlpack(nd.to_dlpack_for_read(x)).asnumpy().tolist() == [3, 2, 3]
    with pytest.raises(AttrError, match="^from_dlpack: the capsule was used already"):
        nd.from_dlpack(capsule)


def test_what_was_lent_for_reading_is_not_written():
    ours = nd.from_dlpack(nd.to_dlpack_for_read(nd.array([1], ctx=SIMULATED)))
    with pytest.raises(ShapeError, match="read-only"):
        ours[0] = 2


def test_a_copy_can_be_asked_for():
    x = nd.array([1, 2], ctx=SIMULATED)
    seen = np.from_dlpack(Producer(x.__dlpack__(max_version=(1, 0), copy=True)))
    seen[0] = 9
    assert x.asnumpy().tolist() == [1, 2]


def test_another_device_than_the_arrays_is_refused(gpu):
    x = nd.array([1], ctx=mx.gpu())
    with pytest.raises(BufferError) as error:
        x.__dlpack__(dl_device=(1, 0))
    assert str(error.value) == (
        "__dlpack__: the array is on gpu(0), but the device (1, 0) is asked for; move "
        "it there first, by x.as_in_context(...)"
    )
    assert opened(x.__dlpack__(dl_device=(2, 0)))


@pytest.mark.parametrize("thing", [3, [1, 2], None])
def test_what_is_no_array_is_refused(thing):
    with pytest.raises(AttrError, match="has no __dlpack__ method; make an array of i"):
        nd.from_dlpack(thing)


# -- GPUs ------------------------------------------------------------------------------
class Theirs:
    """Another library's array on a GPU, of ours."""

    def __init__(self, array, version=None, fields=None):
        self.array, self.version, self.fields, self.streams = array, version, fields, []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        capsule = self.array.__dlpack__(stream=-1, max_version=self.version)
        for name, value in (self.fields or {}).items():
            setattr(opened(capsule)[1].tensor, name, value)
        return capsule


@pytest.mark.parametrize("version, kind", [(None, Managed), ((1, 0), Versioned)])
def test_an_array_of_a_gpu_is_taken_where_it_lies(gpu, version, kind):
    x, before = nd.array([[1, 2], [3, 4]], ctx=mx.gpu()), len(LENT)
    theirs = Theirs(x, version)
    ours = nd.from_dlpack(theirs)
    assert isinstance(opened(x.__dlpack__(max_version=version))[1], kind)
    assert ours.context == mx.gpu() and ours.data.address == x.data.address
    assert theirs.streams == [int(gpu.stream)]
    ours[1] = 7
    assert x.asnumpy().tolist() == [[1, 2], [7, 7]]
    assert len(LENT) == before + 1
    part = ours[0]
    del ours
    assert len(LENT) == before + 1  # a part keeps the whole
    gpu.driver.waited = ()
    del part
    assert len(LENT) == before and gpu.driver.waited == (int(gpu.stream),)


def test_gaps_on_a_gpu_are_refused_and_an_offset_is_not(gpu):
    x, two = nd.array([[1, 2], [3, 4]], ctx=mx.gpu()), (ctypes.c_int64 * 2)(1, 2)
    ours = nd.from_dlpack(Theirs(x[:1], fields={"byte_offset": 8, "shape": two}))
    assert ours.asnumpy().tolist() == [[3, 4]]
    gaps = (ctypes.c_int64 * 2)(1, 2)
    with pytest.raises(HybridError, match=r"strides of \(4, 8\) bytes, but \(8, 4\)"):
        nd.from_dlpack(Theirs(x, fields={"strides": gaps}))


def test_numbers_that_numpy_has_not_are_refused(gpu):
    x = nd.array([1, 2], ctx=mx.gpu(), dtype="float16")
    with pytest.raises(HybridError) as error:
        nd.from_dlpack(Theirs(x, fields={"code": 4}))  # bfloat16
    assert str(error.value) == (
        "from_dlpack: numbers of DLPack's type 4 with 16 bits "
        "are unknown here; make them float32 first"
    )


def test_the_cuda_array_interface_is_told_on_gpus_only(gpu):
    x = nd.array([[1, 2, 3]], ctx=mx.gpu(), dtype="float16")
    assert x.__cuda_array_interface__ == {
        "shape": (1, 3),
        "typestr": "<f2",
        "data": (x.data.address, False),
        "strides": None,
        "version": 3,
        "stream": int(gpu.stream),
    }
    assert nd.zeros((0, 2), ctx=mx.gpu()).__cuda_array_interface__["data"] == (0, False)
    assert not hasattr(nd.zeros(1), "__cuda_array_interface__")
    assert not hasattr(nd.zeros(1, ctx=SIMULATED), "__cuda_array_interface__")


@pytest.mark.parametrize("strides", [None, (8, 4)])
def test_the_cuda_array_interface_is_read(gpu, strides):
    x = nd.array([[1, 2], [3, 4]], ctx=mx.gpu())
    interface = x.__cuda_array_interface__ | {"strides": strides, "stream": 5}
    theirs = SimpleNamespace(__cuda_array_interface__=interface, owner=x)
    gpu.driver.waited = ()
    ours = nd.from_dlpack(theirs)
    assert gpu.driver.waited == (5,)
    ours[0] = 0
    assert x.asnumpy().tolist() == [[0, 0], [3, 4]]
    address = x.data.address
    del x, theirs, interface
    assert nd.zeros((2, 2), ctx=mx.gpu()).data.address != address


def test_gaps_in_the_cuda_array_interface_are_refused(gpu):
    interface = nd.zeros((2, 2), ctx=mx.gpu()).__cuda_array_interface__
    theirs = SimpleNamespace(__cuda_array_interface__=interface | {"strides": (4, 8)})
    with pytest.raises(HybridError, match=r"strides of \(4, 8\) bytes, but \(8, 4\)"):
        nd.from_dlpack(theirs)


# -- other libraries -------------------------------------------------------------------
@pytest.mark.external
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_another_library_shares_memory_with_us(library):
    """Here, or in the environment of the benchmarks that has it."""
    python = Path(sys.executable)
    if importlib.util.find_spec(library) is None:
        python = TESTS.parent / "benchmarks/envs" / library / "bin/python"
    if not python.exists():
        pytest.skip(
            f"{library} is not installed, and `python benchmarks/envs.py {library}` was not run"
        )
    done = subprocess.run(
        [python, TESTS / "share_memory.py", library],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
    )
    assert (done.returncode, done.stderr) == (0, "")
