"""Key-value stores: arrays shared by several devices or processes (data parallelism).

Defines: `create`, `KVStore`; `processes_of`, the processes that a Trainer all-reduces
         gradients with.

    mpiexec -n 2 python train.py     two processes, each with kvstore="dist_sync"

Each process has the whole net, computes the gradients of its shard of a batch, and receives
the sum of all: so all take the same step. Gradients are packed into one buffer per dtype, so
a step needs two all-reduces, however many parameters there are: which gradients exist, and
their values.
Source:  MXNet's mxnet.kvstore, with the same sums and initial values; here over MPI, by
         mpi4py, without parameter servers.
Not supported: overlap of communication with the backward pass, sparse rows, asynchronous
steps ("dist_async"), and gradient compression.
"""

import atexit
import time
import warnings
from functools import cache

import numpy as np

from minihybrid.core.checked_call import CheckedCall, signed
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError, HybridError, ShapeError, described, unfit
from minihybrid.gluon.optimizer import Optimizer, get_updater

# Single-process kinds: MXNet sums on different devices, with the same results.
ALONE = (
    "local", "device", "nccl", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device",
)  # fmt: skip
# Unsupported multi-process kinds: name -> reason.
NOT_HERE = {
    "dist_async": "whose steps wait for nobody, so that no two runs give the same",
    "dist_device_async": "whose steps wait for nobody, so that no two runs give the same",
    "dist_device_sync": "which adds up on GPUs",
    "dist_sync_device": "which adds up on GPUs",
    "p3": "which sends parts of gradients in an order of its own",
    "horovod": "a library that adds up by MPI, too",
    "byteps": "a library with servers of its own",
}
SENT_AS = {"float16": "float32", "bool": "int32"}  # dtypes that MPI can't sum
LEFT = 7  # the tag of the message a process sends at exit
PATIENCE_S = 1e-3  # the longest polling interval


class KVStore(metaclass=CheckedCall):
    """Arrays by key, to which several devices add their gradients.

    `push` sums a key's arrays, one per device, and stores the sum, or passes it to the
    optimizer if one is set; `pull` copies the stored value into arrays.

    Raises:  AttrError for a key that `init` wasn't called with.

    >>> from minihybrid.core import nd
    >>> kv = create("local")
    >>> kv.init("w", nd.zeros(2))
    >>> kv.push("w", [nd.ones(2), nd.ones(2)]); out = nd.zeros(2); kv.pull("w", out)
    >>> kv.type, kv.rank, kv.num_workers, out.asnumpy()
    ('local', 0, 1, array([2., 2.], dtype=float32))
    """

    def __init__(self, type="local", processes=None):
        self._type, self._stored, self._updater = type, {}, None
        self.processes = One() if processes is None else processes

    @property
    def type(self):
        """The kind passed to `create`."""
        return self._type

    @property
    def rank(self):
        """The index of this process, from 0."""
        return self.processes.rank

    @property
    def num_workers(self):
        """The number of processes."""
        return self.processes.size

    def __repr__(self):
        return f"KVStore({self.type!r}, rank {self.rank} of {self.num_workers})"

    @signed
    def init(self, key, value):
        """Store an array under a key, or a list under several; rank 0's values are used."""
        copies = []
        for name, array in _pairs("init", key, value):
            if name in self._stored:
                raise AttrError(f"KVStore.init: the key {name!r} has a value already")
            self._stored[name] = array[0].copy()
            copies.append(self._stored[name])
        self.processes.spread(copies)

    @signed
    def push(self, key, value, priority=0):
        """Sum the arrays of a key over devices and processes, and store the sum.

        With an optimizer, the sum is the gradient of a step of the stored value.
        All processes must push the same keys in the same order.
        """
        sums = {}
        for name, arrays in _pairs("push", key, value):
            stored = self._of("push", name)
            _fit("push", name, stored, arrays)
            sums[name] = sum(a.as_in_context(stored.context) for a in arrays)
            if len(arrays) == 1:
                sums[name] = sums[name].copy()
        self.processes.add_up(list(sums.values()))
        for name, total in sums.items():
            if self._updater is None:
                self._stored[name][...] = total
            else:
                self._updater(name, total, self._stored[name])

    @signed
    def pull(self, key, out=None, priority=0, ignore_sparse=True):
        """Copy the stored value into an array, or into one on each device."""
        for name, arrays in _pairs("pull", key, out):
            stored = self._of("pull", name)
            _fit("pull", name, stored, arrays)
            for array in arrays:
                array[...] = stored.as_in_context(array.context)

    @signed
    def pushpull(self, key, value, out=None, priority=0):
        """`push`, then `pull` into `out`, by default the pushed arrays."""
        self.push(key, value)
        self.pull(key, value if out is None else out)

    @signed
    def broadcast(self, key, value, out, priority=0):
        """`init`, then `pull`."""
        self.init(key, value)
        self.pull(key, out)

    @signed
    def set_optimizer(self, optimizer):
        """Treat pushed values as gradients from now on: each is a step of the optimizer."""
        if not isinstance(optimizer, Optimizer):
            need = "an optimizer is needed, such as mx.optimizer.SGD()"
            raise unfit("KVStore.set_optimizer", "optimizer", optimizer, need)
        self._updater = get_updater(optimizer)

    @staticmethod
    def is_capable(capability):
        """Return whether the store has a capability; it can run an optimizer."""
        return str(capability).lower() == "optimizer"

    @signed
    def set_gradient_compression(self, compression_params):
        """Warn that gradients are sent uncompressed, and so exactly."""
        _not_compressed(compression_params)

    def _barrier(self):
        """Wait until all processes reach this barrier."""
        self.processes.agree([])

    def _of(self, method, name):
        if name not in self._stored:
            raise AttrError(
                f"KVStore.{method}: there is no key {name!r}; call init with it first"
                + (f" (there are {list(self._stored)!s:.200})" if self._stored else "")
            )
        return self._stored[name]


class One:
    """A group of one process, whose values are the sums."""

    rank, size = 0, 1

    def add_up(self, arrays):
        """All-reduce each array in place."""

    def spread(self, arrays):
        """Broadcast rank 0's arrays in place."""

    def agree(self, questions):
        """Return how many processes answer true to each question."""
        return [int(answer) for answer in questions]


class Several:
    """A group of MPI processes, all of which make the same calls in the same order.

    world:  an `MPI.Comm`, which is duplicated to isolate messages from the program's own.
    Raises: HybridError, instead of deadlocking, when another process has ended.
    """

    def __init__(self, world):
        self.world = world.Dup()
        self.rank, self.size = self.world.Get_rank(), self.world.Get_size()
        self.n_calls = 0  # number of collective calls
        self.given_up = False  # whether a collective call was abandoned
        self.ended = {}  # rank -> its n_calls when it ended

    def __reduce__(self):
        return together, ()  # a copy or a pickle refers to the same processes

    def add_up(self, arrays):
        """All-reduce each array in place, with one message per dtype.

        Units:   float16 is summed in float32, bool in int32; any other dtype in its own.
        """
        for buffer, part in _packed(arrays):
            total = np.empty_like(buffer)
            self._wait(self.world.Iallreduce(buffer, total))
            _unpack(total, part)

    def spread(self, arrays):
        """Broadcast rank 0's arrays in place.

        Raises:  ShapeError if this process has arrays of other shapes.
        """
        local = repr([(*a.shape, np.dtype(a.dtype).name) for a in arrays])
        reference = self._text_of_rank_0(local)
        if reference != local:
            raise ShapeError(
                f"kvstore 'dist_sync': rank {self.rank} has arrays of {local:.300}, but rank 0 has "
                f"{reference:.300}; all processes need the same net"
            )
        for buffer, part in _packed(arrays):
            self._wait(self.world.Ibcast(buffer, root=0))
            _unpack(buffer, part)

    def _text_of_rank_0(self, local):
        length = np.array([len(local)])
        self._wait(self.world.Ibcast(length, root=0))
        text = np.frombuffer(local.encode().ljust(length[0])[: length[0]], np.uint8).copy()
        self._wait(self.world.Ibcast(text, root=0))
        return text.tobytes().decode()

    def agree(self, questions):
        """Return how many processes answer true to each question."""
        sent = np.array(list(questions), np.int32)
        total = np.empty_like(sent)
        self._wait(self.world.Iallreduce(sent, total))
        return total.tolist()

    def _wait(self, request):
        """Wait until a request completes, or can't any more.

        MPI would wait forever for a process that has ended, so each sends a message at exit.
        """
        self.n_calls += 1
        begun = time.perf_counter()
        while not request.Test():
            for other in range(self.size):
                if self.world.Iprobe(source=other, tag=LEFT):
                    count = np.zeros(1, np.int64)
                    self.world.Recv(count, source=other, tag=LEFT)
                    self.ended[other] = int(count[0])
            dead = [other for other, count in self.ended.items() if count < self.n_calls]
            if dead:
                self.given_up = True
                raise HybridError(
                    f"kvstore 'dist_sync': rank {dead[0]} has ended, while rank {self.rank} of "
                    f"{self.size} waits for its gradients: it failed, or took fewer steps "
                    "than the others"
                )
            waited = time.perf_counter() - begun
            time.sleep(min(waited / 8, PATIENCE_S))  # frees the core for other processes

    def leave(self):
        """Notify all others of this process's exit; abort them after an abandoned call."""
        if self.given_up:  # MPI_Finalize would wait for it forever
            self.world.Abort(1)
        count = np.array([self.n_calls], np.int64)
        for other in range(self.size):
            if other != self.rank:
                self.world.Isend(count, dest=other, tag=LEFT)


def _packed(arrays):
    """Yield (contiguous buffer, the arrays packed in it), for each dtype."""
    groups = {}
    for array in arrays:
        name = np.dtype(array.dtype).name
        groups.setdefault(SENT_AS.get(name, name), []).append(array)
    for name, part in groups.items():
        yield np.concatenate([a.asnumpy().ravel().astype(name, copy=False) for a in part]), part


def _unpack(buffer, arrays):
    """Copy a buffer's consecutive elements into arrays."""
    begin = 0
    for array in arrays:
        part = buffer[begin : begin + array.size].reshape(array.shape)
        array[...] = part.astype(array.dtype, copy=False)
        begin += array.size


def _pairs(method, key, value):
    """Yield (key, its arrays); a value is an array, or a list with one per device."""
    keys, values = (key, value) if isinstance(key, (list, tuple)) else ([key], [value])
    if not isinstance(values, (list, tuple)) or len(values) != len(keys):
        raise AttrError(
            f"KVStore.{method}: {len(keys)} keys are given, but {described(value)} for them; a "
            "list with one array, or one list of arrays, for each key is needed"
        )
    for name, entry in zip(keys, values, strict=True):
        arrays = list(entry) if isinstance(entry, (list, tuple)) else [entry]
        if not isinstance(name, (str, int)):
            raise unfit(f"KVStore.{method}", "key", name, "a text or a number is needed")
        if not arrays or not all(isinstance(a, NDArray) for a in arrays):
            raise AttrError(
                f"KVStore.{method}: {described(entry)} is given for the key {name!r}, but an "
                "array is needed, or a list of arrays"
            )
        yield name, arrays


def _fit(method, name, stored, arrays):
    """Refuse arrays whose shape differs from the stored value's."""
    for array in arrays:
        if array.shape != stored.shape:
            raise ShapeError(
                f"KVStore.{method}: an array of shape {array.shape} for the key {name!r}, but "
                f"what is stored has shape {stored.shape}"
            )


def _not_compressed(params):
    if params and params.get("type") != "none":
        warnings.warn(
            f"kvstore: gradients are sent as they are, not compressed ({params})",
            UserWarning,
            stacklevel=4,
        )


# -- MPI ---------------------------------------------------------------------------------
def mpi():
    """Return the module mpi4py.MPI.

    Raises:  HybridError if it, or an MPI library, isn't installed.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise HybridError(
            f"kvstore 'dist_sync' needs mpi4py and an MPI library ({error!s:.200}): "
            'python -m pip install "minihybrid[dist]", then mpiexec -n 2 python train.py'
        ) from None
    return MPI


@cache
def together():
    """Return the group of all MPI processes; each notifies the others at exit."""
    processes = Several(mpi().COMM_WORLD)
    if processes.size > 1:
        atexit.register(processes.leave)  # runs before MPI_Finalize
    return processes


@signed
def create(name="local"):
    """Create a store: "local" or "device" for one process, "dist_sync" for several.

    Raises:  AttrError for other kinds; HybridError for "dist_sync" without MPI.

    >>> create("device")
    KVStore('device', rank 0 of 1)
    """
    if not isinstance(name, str):
        raise AttrError(f"kvstore={described(name)}, but a name is needed, such as 'local'")
    kind = name.lower()
    if kind in ALONE:
        return KVStore(kind)
    if kind == "dist_sync":
        return KVStore(kind, together())
    if kind in NOT_HERE:
        raise AttrError(
            f"kvstore '{kind}', {NOT_HERE[kind]}, is not here; 'dist_sync' adds up the gradients "
            "of several processes"
        )
    from difflib import get_close_matches  # imported only on errors

    near = get_close_matches(kind, [*ALONE, "dist_sync", *NOT_HERE], 1)
    meant = f" (did you mean '{near[0]}'?)" if near else ""
    raise AttrError(
        f"there is no kvstore '{name}'{meant}; there are 'local' and 'device' for one process, "
        "and 'dist_sync' for several"
    )


def processes_of(kvstore, compression_params=None):
    """Return the processes that a Trainer sums gradients over, given its `kvstore=`.

    kvstore:  `None`, a store, or the name of one.
    """
    if not isinstance(kvstore, KVStore):
        kvstore = KVStore() if kvstore is None else create(kvstore)
    if kvstore.num_workers > 1:
        _not_compressed(compression_params)
    return kvstore.processes


__dir__ = own_names(globals())
