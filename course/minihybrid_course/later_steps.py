"""Chapter 34. Checks of the steps of nano in the chapters after 31.

Uses:    the names defined by a step in a notebook.
Defines: `STEPS`, from a step to its names, its check, and the message if it's right.

The checks simulate caches and devices themselves. Not supported: compiled kernels.
"""

import copy
import itertools
import re
from types import SimpleNamespace

import numpy as np

from minihybrid_course.exercises.judging import equal, kind, need
from minihybrid_course.steps import called, raised


def refused(what, error, words, f, *args, **attrs):
    """Check that a call raises an error of a type, whose message contains some words."""
    text = raised(error, what, f, *args, **attrs)
    missing = [word for word in words if word not in text]
    need(not missing, f"the error of {what} doesn't contain {missing}: {text}")


# -- step 20: a loop nest ------------------------------------------------------------------
PRODUCT = "out[i, j] += a[i, k] * b[k, j]"
TWO = {"i": 3, "j": 4}
THREE = {"i": 2, "j": 6, "k": 2}
LEGAL = [  # loops, body, another order in which each element's uses keep theirs
    *((THREE, PRODUCT, order) for order in ("ikj", "kji", "jki")),
    (TWO, "out[i, j] = a[j, i] + 1", "ji"),
    (TWO, "x[i + 1, j + 1] = x[i, j]", "ji"),
    (TWO, "last[0, j] = a[i, j]", "ji"),
    (TWO, "out[i, j] = a[0, 0] + b[j, i]", "ji"),
]
ILLEGAL = [  # loops, body, order, array, what goes wrong
    (TWO, "x[i + 1, j] = x[i, j + 1] + 1", "ji", "x", "an element would be loaded too early"),
    (TWO, "x[i, j + 1] = x[i + 1, j]", "ji", "x", "an element would be stored too early"),
    (TWO, "y[0, 0] = a[i, j]", "ji", "y", "another value would be stored last"),
    ({"i": 2, "k": 2, "k_in": 2}, "s[0, i] += a[i, 2 * k + k_in]", ("i", "k_in", "k"), "s",
     "the terms of a sum would be added in another order"),
]  # fmt: skip


class Logged:
    """Stands for an array, and logs each access."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def __getitem__(self, index):
        self.log.append((self.name, np.index_exp[index], False))
        return 1

    def __setitem__(self, index, value):
        self.log.append((self.name, np.index_exp[index], True))


def uses(body, loops):
    """Return the accesses of a body in loops, or of a program without any, in order."""
    log = []
    arrays = {name: Logged(name, log) for name in re.findall(r"(\w+)\[", body)}
    for point in itertools.product(*map(range, loops.values())):
        try:
            exec(body, arrays | dict(zip(loops, point, strict=True)))
        except Exception as error:
            need(False, f"`{body}` raises {type(error).__name__}: {error}")
    return log


def same_uses(nest, expected, what):
    """Check the accesses of a nest, and that its text makes them in the same order."""
    actual = uses(nest.body, dict(nest.loops))
    k = next((k for k, (a, b) in enumerate(zip(actual, expected, strict=False)) if a != b), None)
    need(len(actual) == len(expected), f"{what} has {len(actual)} accesses, not {len(expected)}")
    if k is not None:
        (a, i, _), (b, j, _) = actual[k], expected[k]
        need(False, f"{what}: access {k + 1} is {a}{[*i]} instead of {b}{[*j]}: `{nest.body}`")
    text = str(nest)
    loops = "[" in text and uses(text, {}) == expected
    need(loops, f"{what}: its text must run its own loops, in their order, but it's `{text}`")


def loaded(log, lines, width, renew=True, whole=True, apart=True):
    """Count the cache lines that some accesses load, or what typical mistakes count."""
    cache, n = [], 0
    for array, (row, column), _ in log:
        line = apart and array, row, column // width if whole else column
        n += line not in cache
        if line in cache and renew:
            cache.remove(line)
        cache = [*cache, line][-lines:] if line not in cache else cache
    return n


def _split(n):
    nest = n.Nest(THREE, PRODUCT)
    one, what = called("split", n.split, nest, "j", 3), 'split(nest, "j", 3)'
    right = [("i", 2), ("j", 2), ("j_in", 3), ("k", 2)]
    need([*one.loops.items()] == right, f"{what} has the loops {one.loops} instead of {right}")
    same_uses(one, uses(PRODUCT, THREE), what)
    unchanged = [*nest.loops] == [*THREE] and nest.body == PRODUCT
    need(unchanged, "split changes its argument: return a new Nest")
    words = n.Nest({"i": 4}, "i_max[0, 2 * i] = pi[i, 0] + i")
    what = f'split(nest, "i", 2) of `{words.body}`'
    same_uses(called(what, n.split, words, "i", 2), uses(words.body, words.loops), what)
    what = 'split(nest, "j", 4), for a loop of 6 iterations,'
    refused(what, ValueError, ["6"], n.split, nest, "j", 4)
    try:
        again = n.split(one, "j", 2)
    except ValueError:
        return
    same_uses(again, uses(PRODUCT, THREE), 'the second split of "j"')


def _reorder(n):
    for loops, body, order in LEGAL:
        what = f"reorder{tuple(order)} of `{body}`"
        nest = n.Nest(loops, body)
        result = called(what, n.reorder, nest, *order)
        need([*result.loops] == [*order], f"{what} has the loops {[*result.loops]}")
        same_uses(result, uses(body, {name: loops[name] for name in order}), what)
        need([*nest.loops] == [*loops], "reorder changes its argument: return a new Nest")
    for loops, body, order, array, why in ILLEGAL:
        what = f"reorder{tuple(order)} of `{body}`: {why}, so it"
        refused(what, ValueError, [array], n.reorder, n.Nest(loops, body), *order)
    refused("reorder without one of the loops", ValueError, [], n.reorder, nest, "i")


def _step_20(n):
    _split(n)
    _reorder(n)
    cube = n.Nest(dict.fromkeys("ijk", 4), PRODUCT)
    tiled = n.split(n.split(cube, "j", 2), "k", 2)
    tiled = called("reorder", n.reorder, tiled, "j", "k", "i", "k_in", "j_in")
    a, b = np.random.default_rng(0).integers(-4, 5, (2, 4, 4))
    out = np.zeros((4, 4), int)
    exec(str(tiled), {"a": a, "b": b, "out": out})
    equal(out, a @ b, "the tiled product")
    for nest, lines, width in itertools.product((tiled, cube), (4, 6), (3,)):
        log = uses(nest.body, dict(nest.loops))
        what = f"traffic(nest, {lines}, {width})"
        actual, right = called(what, n.traffic, nest, lines, width), loaded(log, lines, width)
        why = {
            len(log): "count only lines that aren't in the cache",
            loaded(log, lines, width, whole=False): "an access loads a whole line of elements",
            loaded(log, lines, width, renew=False): "a line that's used again is the newest",
            loaded(log, lines, width, apart=False): "two arrays never share a line",
            loaded(log, lines + 1, width): "the cache has one line more than it may",
        }.get(actual, f"simulate the accesses of `{nest.body}` one by one")
        need(actual == right, f"{what} is {actual} instead of {right}: {why}")


# -- step 21: writes -----------------------------------------------------------------------
def _parts(m, x, y):
    a = x * 10
    v, w = a[0:2], a[1:3]
    s = w * 2
    v += 1
    return s * w


def _names(m, x, y):
    z = x * 1
    also, before = z, z + 1
    z[:] = y * 2
    return also * before


def _argument(m, x, y):
    x += y
    x[0] = 5
    return x * y


def _nested(m, x, y):
    v = x[1:3]
    u = v[1:2]
    u += y[0:1]
    v[0:1] = u * 3
    return x + v[0]


def _exchanged(m, x, y):
    t = x * 1
    x[:] = y
    y[0:2] = t[1:3]
    return t * y


def _temporary(m, x, y):
    s = (x * y).sum(0)
    s += 1
    return s * m.reshape(x, shape=(3, 1))


WRITES = {  # program, of two arrays of shape (3,) -> what it's about
    _parts: "a view is read after a write through another one",
    _names: "two names for an array, and an older value",
    _argument: "an argument is written",
    _nested: "a part of a part is written",
    _exchanged: "two arguments are written",
    _temporary: "the result of `sum`, which nothing else reads, is written",
}


def _stale(m, x):
    h = x * 1
    flat = m.reshape(h, shape=(4,))
    h += 1
    return flat * 1


def _through(m, x):
    h = x * 1
    m.transpose(h)[0] = 7
    return h * 2


def _lost(m, x):
    flat = m.reshape(x, shape=(4,))
    flat += 1
    return flat * 1


def _returned(m, x):
    x += 1
    return x


REFUSED = {  # program, of an array of shape (2, 2) -> what must be refused
    _stale: "the read of a reshaped array after a write to the original",
    _through: "the read of an array after a write to its transpose",
    _lost: "a write to an argument through `reshape`",
    _returned: "the return of an argument",
}


NUMPY = SimpleNamespace(reshape=lambda a, shape: a.reshape(shape))  # as nano calls it


def _step_21(n):
    start = np.float32([[1, 2, 3], [4, -1, 2]])
    for f, what in WRITES.items():
        what = f"a program in which {what}:"
        graph, written = called(
            f"{what} functionalize", n.functionalize, lambda x, y, f=f: f(n, x, y), x=(3,), y=(3,)
        )
        x, y = start.copy()
        expected = f(NUMPY, x, y), x, y
        need(len(graph.variables) == 2, f"{what} the graph needs a new trace, with two variables")
        for one in (graph, n.dce(n.cse(graph))):
            memory = start.copy()
            arrays = [n.NDArray(a) for a in memory]
            n.run(one, *arrays)
            need(
                np.array_equal(memory, start),
                f"{what} the graph overwrites an input; only replay may",
            )
            result = called(f"{what} replay", n.replay, one, written, *arrays)
            for name, z, a in zip(("result", "x", "y"), [result, *arrays], expected, strict=True):
                equal(z.data, a, f"{what} {name}")
            same = np.array_equal(memory, expected[1:])
            need(same, f"{what} replay must overwrite the memory of its arguments, not replace it")
    for f, what in REFUSED.items():
        what = f"functionalize, for {what},"
        refused(what, TypeError, ["x * 1"], n.functionalize, lambda x, f=f: f(n, x), x=(2, 2))
    memory = np.ones((2, 3), "f")
    x, y = n.NDArray(memory[0]), n.NDArray(memory[0])
    graph, written = n.functionalize(lambda x, y: _argument(n, x, y), x=(3,), y=(3,))
    what = "replay, for a written argument that shares memory with another one,"
    refused(what, TypeError, ["x * 1"], n.replay, graph, written, x, y)
    need((memory == 1).all(), f"{what} must raise its error before it writes")
    graph, written = n.functionalize(lambda x, y: x * y, x=(3,), y=(3,))
    y = called("replay of a program that writes no argument", n.replay, graph, written, x, x)
    equal(y.data, np.ones(3), "x * y, of one array")
    _gradients(n)


def _gradients(n):
    """Check the gradient of a program that writes into its own array."""

    def program(x):
        y = x * x
        y[0] = 7
        y[1:3] += x[0:2]
        return y

    graph = n.with_gradient(n.functionalize(program, x=(3,))[0])
    _, actual = n.run(graph, n.NDArray([1, 2, 3]), n.NDArray([1, 1, 1]))
    equal(actual.data, [1, 5, 6], "the gradient of a program that writes")


# -- step 22: devices ----------------------------------------------------------------------
class Ring:
    """Links of a ring, which may add a number to everything that they deliver."""

    def __init__(self, n, plus=0):
        self.sent, self.plus, self.wrong = [0] * n, plus, ""

    def send(self, source, target, data):
        """Count the bytes, and return a copy for the target."""
        n = len(self.sent)
        right = (source + 1) % n
        if target != right:
            self.wrong = f"device {source} sends to {target}; its right neighbor is {right}"
        self.sent[source] += data.nbytes
        return data + data.dtype.type(self.plus)


def same_arrays(actual, expected, what):
    """Check one array for each device."""
    need(isinstance(actual, (list, tuple)), f"{what} must return a list, not {kind(actual)}")
    need(len(actual) == len(expected), f"{what} returns {len(actual)} arrays: one for each device")
    for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
        equal(a, b, f"{what} the result of device {i}")


def sends(links, right, what):
    """Check that the devices send as many bytes as a ring needs."""
    need(not links.wrong, f"{what} {links.wrong}")
    total = sum(links.sent)
    need(total >= right, f"{what} the devices send {total} bytes, but {right} are necessary")
    why = "send one chunk per step, n - 1 times, not a whole array"
    need(total == right, f"{what} the devices send {total} bytes, but {right} are enough: {why}")


def _ring(n):
    for devices, plus in itertools.product((2, 3, 4), (0, 1)):
        adds = " and links that add 1 to everything" * plus
        what = f"reduce_scatter, for {devices} devices{adds}:"
        arrays = [np.arange(7, dtype="f") * 3**i + i for i in range(devices)]
        before, links = [a.copy() for a in arrays], Ring(devices, plus)
        actual = called(what, n.reduce_scatter, arrays, links)
        need(not links.wrong, f"{what} {links.wrong}")
        total = sum(before) + plus * (devices - 1)
        same_arrays(actual, np.array_split(total, devices), what)
        sends(links, (devices - 1) * total.nbytes, what)
        unchanged = np.array_equal(arrays, before)
        need(unchanged, f"{what} the arrays of its argument change: add without `+=`")
        for axis in (0, 1):
            what = f"all_gather, for {devices} devices{adds}, and axis {axis}:"
            whole, links = np.arange(24, dtype="f").reshape(4, 6) + 1, Ring(devices, plus)
            shards = np.array_split(whole, devices, axis)
            expected = [  # a shard has taken as many links as its device is away
                np.concatenate([a + plus * ((i - k) % devices) for k, a in enumerate(shards)], axis)
                for i in range(devices)
            ]
            same_arrays(called(what, n.all_gather, shards, links, axis), expected, what)
            sends(links, (devices - 1) * whole.nbytes, what)


def _step_22(n):
    a, links = np.ones(3, "f"), n.Links(2)
    equal(called("Links.send", links.send, 0, 1, a), a, "the array that Links.send delivers")
    need(links.sent == [12, 0], f"after 12 bytes from device 0, links.sent is {links.sent}")
    _ring(n)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 3)).astype("f"), rng.normal(size=(8, 2)).astype("f")
    seen = []

    class Net(n.Block):
        def __init__(self):
            self.first, self.last = n.Dense(4, activation="relu"), n.Dense(2)

        def forward(self, x):
            seen.append(x.shape)
            return self.last(self.first(x))

    def loss(out, y):
        return (out - y) * (out - y)

    one = Net()
    one.initialize(n.Xavier())
    one(n.NDArray(x))
    for devices in (2, 4):
        nets, links = [copy.deepcopy(one) for _ in range(devices)], Ring(devices)
        alone = copy.deepcopy(one)
        with n.record():
            losses = loss(alone(n.NDArray(x)), n.NDArray(y))
        losses.backward()
        start = _flat(alone)
        n.Trainer(alone.collect_params(), "sgd", {"learning_rate": 0.1}).step(8)
        seen.clear()
        what = f"parallel_step, for {devices} devices:"
        uncalled = lambda *args: (n.parallel_step(*args), True)[1]  # noqa: E731, returns nothing
        called(what, uncalled, nets, loss, n.NDArray(x), n.NDArray(y), 0.1, links)
        right = [(8 // devices, 3)] * devices
        need(seen == right, f"{what} it calls networks with the shapes {seen} instead of {right}")
        actual, expected = [_flat(net) - start for net in nets], _flat(alone) - start
        need(any(map(np.any, actual)), f"{what} the parameters stay as they are")
        same = all(np.array_equal(actual[0], a) for a in actual)
        need(same, f"{what} the copies differ: each needs the sum of all gradients")
        longer = np.linalg.norm(actual[0]) / np.linalg.norm(expected)
        length = abs(longer - 1) < 1e-3
        need(length, f"{what} the step is {longer:.2f} times as long as on one device")
        equal(actual[0], expected, f"{what} the change of the parameters")
        sends(links, 2 * (devices - 1) * start.nbytes, what)
    what = "parallel_step, for 8 examples on 3 devices,"
    nets, arrays = [copy.deepcopy(one) for _ in range(3)], (n.NDArray(x), n.NDArray(y))
    refused(what, ValueError, [], n.parallel_step, nets, loss, *arrays, 0.1, Ring(3))


def _flat(net):
    """Return all parameters of a network in one array."""
    return np.concatenate([p.array.data.ravel() for p in net.collect_params().values()])


STEPS = {
    20: (
        "Nest split reorder traffic",
        _step_20,
        "each illegal order is rejected, and traffic counts like the cache",
    ),
    21: (
        "Place part put current overwrite functionalize replay",
        _step_21,
        "6 programs with writes, and a graph or an error for each alias",
    ),
    22: (
        "Links reduce_scatter all_gather parallel_step",
        _step_22,
        "the step of one device, with the fewest bytes that a ring can send",
    ),
}
