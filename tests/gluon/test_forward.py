"""Blocks with a plain `forward`: no F, traced directly; beside and inside old ones."""

import numpy as onp
import pytest
from minihybrid.sym import TraceError

import minihybrid as mx
from minihybrid import autograd, gluon, nd, np, npx, sym
from minihybrid.core.op import HybridError
from minihybrid.gluon import HybridBlock, Parameter, nn


@pytest.fixture(autouse=True)
def in_np():
    npx.set_np()
    mx.random.seed(5)
    yield
    npx.reset_np()


class Linear(HybridBlock):
    """A layer as Gluon 2 writes it: the shape is completed by `infer_shape`."""

    def __init__(self, units, in_units=-1):
        super().__init__()
        self.units = units
        self.weight = Parameter("weight", shape=(units, in_units), allow_deferred_init=True)
        self.bias = Parameter(shape=(units,), init="zeros")

    def forward(self, x):
        return np.dot(x, self.weight.data().T) + self.bias.data()

    def infer_shape(self, x):
        self.weight.shape = (self.units, x.shape[1])


class Told(HybridBlock):
    """The same through an operator that tells the weight's shape by itself."""

    def __init__(self, units):
        super().__init__()
        self.units = units
        self.weight = Parameter(shape=(units, -1), allow_deferred_init=True)

    def forward(self, x):
        return npx.fully_connected(x, self.weight.data(), num_hidden=self.units, no_bias=True)


class Branches(HybridBlock):
    """Python decides by shapes; new arrays become part of the graph."""

    def forward(self, x):
        y = np.arange(x.shape[1]) + x if x.ndim == 2 else x
        for i in range(x.shape[0]):
            y = y + i * np.ones(x.shape[-1])
        left, right = np.split(y, 2, axis=-1)
        y = np.concatenate([left * np.array([2.0]), right.reshape(left.shape)], axis=-1)
        return np.where(y > y.mean(), y, np.zeros_like(y)) / x.size


class OldStyle(HybridBlock):
    """A block of Gluon 1, with F."""

    def __init__(self, inner):
        super().__init__()
        with self.name_scope():
            self.inner = inner
            self.scale = self.params.get("scale", shape=(1,), init="ones")

    def hybrid_forward(self, F, x, scale):
        return F.npx.relu(self.inner(x)) * scale


class NewStyle(HybridBlock):
    """A plain `forward` around any block."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        y = self.inner(x)
        return np.tanh(y) * y.shape[1] + npx.softmax(y)


NETS = {
    "own infer_shape": lambda: Linear(4),
    "known shape": lambda: Linear(4, in_units=6),
    "shape by operator": lambda: Told(4),
    "shapes and constants": Branches,
    "old around new": lambda: OldStyle(Linear(4)),
    "new around old": lambda: NewStyle(nn.Dense(4)),
    "new in old in new": lambda: NewStyle(OldStyle(NewStyle(Told(4)))),
    "in a sequence": lambda: stacked(
        Linear(5),
        nn.Dense(4, activation="relu"),
        Told(2),
        nn.BatchNorm(),
        nn.Dropout(0.4),
        Branches(),
    ),
}
every_net = pytest.mark.parametrize("make", NETS.values(), ids=NETS)


def stacked(*blocks):
    net = nn.HybridSequential()
    net.add(*blocks)
    return net


def made(make):
    """The net with its arrays, and an input."""
    net = make()
    net.initialize(mx.init.Normal(0.5))
    return net, np.random.normal(size=(3, 6))


def step(net, x):
    """(output, gradients by name) of one recorded call."""
    mx.random.seed(9)
    x.attach_grad()
    with autograd.record():
        y = net(x)
        loss = (y * y).sum()
    loss.backward()
    grads = {
        name: p.grad().asnumpy().copy()
        for name, p in net.collect_params().items()
        if p.grad_req != "null"
    }
    return y.asnumpy(), grads | {"x": x.grad.asnumpy().copy()}


def assert_same(one, two):
    onp.testing.assert_allclose(one, two, rtol=2e-5, atol=2e-5)


@every_net
def test_hybridized_gives_what_eager_gives(make):
    net, x = made(make)
    eager = net(x)
    net.hybridize()
    compiled = net(x)
    assert type(eager) is type(compiled) is np.ndarray
    assert_same(compiled.asnumpy(), eager.asnumpy())


@every_net
def test_hybridized_gradients_are_the_tape_s(make):
    net, x = made(make)
    net(x)
    y, grads = step(net, x)
    net.hybridize(backend="numpy")  # the graph is the same, and nothing is compiled
    y2, grads2 = step(net, x)
    assert_same(y2, y)
    assert grads.keys() == grads2.keys()
    for name in grads:
        assert_same(grads2[name], grads[name])


@every_net
def test_shapes_come_from_the_first_call_in_either_mode(make):
    shapes = []
    for hybridize in (False, True):
        net, x = made(make)
        net.hybridize(hybridize, backend="numpy")
        net(x)
        shapes.append([p.shape for p in net.collect_params().values()])
        assert all(-1 not in shape for shape in shapes[-1])
    assert shapes[0] == shapes[1]


@every_net
def test_saved_parameters_come_back_by_structural_names(make, tmp_path):
    net, x = made(make)
    y = net(x)
    net.save_parameters(str(tmp_path / "net"))
    again, _ = made(make)
    again.load_parameters(str(tmp_path / "net"))
    assert_same(again(x).asnumpy(), y.asnumpy())


@pytest.mark.parametrize(
    "make", [m for n, m in NETS.items() if n not in ("shapes and constants", "in a sequence")]
)
def test_exported_file_runs_without_the_class(make, tmp_path):
    net, x = made(make)
    net.hybridize(backend="numpy")
    y = net(x)
    again = gluon.SymbolBlock.imports(
        *(lambda s, p: (s, ["data"], p))(*net.export(str(tmp_path / "net")))
    )
    assert_same(again(x).asnumpy(), y.asnumpy())


def test_parameters_of_attributes_are_named_and_collected():
    net = stacked(Linear(2), Linear(3))
    names = list(net.collect_params())
    assert [n.split("_", 1)[1] for n in names] == ["weight", "bias"] * 2
    assert len(set(names)) == 4
    assert list(net._collect_params_with_prefix()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    shared = net[0].weight
    net[1].weight = shared
    assert shared.name in net.collect_params() and net[1].weight is shared


@pytest.mark.slow
def test_a_trainer_trains_both_styles():
    net = stacked(Linear(8), nn.Activation("relu"), OldStyle(Linear(1)))
    net.initialize()
    net.hybridize()
    x = np.random.normal(size=(32, 3))
    y = (x * np.array([1.0, -2.0, 0.5])).sum(axis=1, keepdims=True) + 3
    loss_of = gluon.loss.L2Loss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    losses = []
    for _ in range(60):
        for batch, label in gluon.data.DataLoader(gluon.data.ArrayDataset(x, y), 16):
            with autograd.record():
                loss = loss_of(net(batch), label)
            loss.backward()
            trainer.step(len(batch))
        losses.append(float(loss.mean()))
    assert type(batch) is np.ndarray and losses[-1] < losses[0] / 10


def test_legacy_arrays_work_in_a_plain_forward_too():
    npx.reset_np()

    class Legacy(HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = Parameter("weight", shape=(2, 0), allow_deferred_init=True)

        def forward(self, x):
            y = nd.FullyConnected(x, self.weight.data(), no_bias=True, num_hidden=2)
            return nd.relu(y) * x.shape[0]

    net = Legacy()
    net.initialize()
    x = nd.array([[1, -2, 3], [4, 5, -6]])
    eager = net(x)
    net.hybridize()
    assert type(net(x)) is nd.NDArray
    assert_same(net(x).asnumpy(), eager.asnumpy())


def test_hooks_see_arrays_of_a_hybridized_plain_forward():
    net, x = made(lambda: Linear(2))
    seen = []
    net.hybridize()
    net.register_forward_hook(lambda block, args, out: seen.append(out.shape))
    net(x)
    assert seen == [(3, 2)] and len(net.plans) == 1


def test_a_plain_forward_on_a_symbol_writes_the_graph():
    net = Linear(2, in_units=3)
    net.initialize()
    y = net(sym.var("x", shape=(4, 3)).as_np_ndarray())
    assert set(y.list_arguments()) == {"x", net.weight.name, net.bias.name}


def test_each_shape_is_a_plan_with_its_own_loop_count():
    net = Branches()
    net.hybridize()
    for n in (2, 4):
        x = np.ones((n, 4))
        assert_same(net(x).asnumpy(), net.forward(x).asnumpy())
    assert len(net.plans) == 2


def test_errors_of_a_plain_forward_say_what_to_do():
    class Reads(HybridBlock):
        def forward(self, x):
            return x * float(x.sum())

    class Foreign(HybridBlock):
        def __init__(self):
            super().__init__()
            self.kept = np.ones(3)

        def forward(self, x):
            return x + self.kept

    x = np.ones((2, 3))
    for net, words in ((Reads(), "float"), (Foreign(), "is an NDArray")):
        net(x)
        net.hybridize()
        with pytest.raises(TraceError, match=words):
            net(x)
    net = Linear(2)
    net.initialize()
    with pytest.raises(HybridError, match="needed|known|unknown"):
        net.weight.data()
