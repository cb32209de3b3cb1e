"""The Gluon program that minihybrid and MXNet run alike; `mx` is either of them."""

import math
from functools import partial

import steps
import walks


class Ops(walks.Named):
    """The operators of a walk, by MXNet's names; weights are pairs (value, shape)."""

    def __init__(self, F, arrays):
        super().__init__(arrays)
        self.F = F
        self.relu, self.add = F.relu, F.broadcast_add

    def conv(self, x, w, stride, groups):
        weight, (n_out, _, *size) = w
        more = {"stride": (stride,) * 2, "pad": (size[0] // 2,) * 2, "num_group": groups}
        return self.F.Convolution(x, weight, no_bias=True, kernel=size, num_filter=n_out, **more)

    def norm(self, x, *weights):
        given = (value for value, _ in weights)
        return self.F.BatchNorm(x, *given, eps=walks.EPSILON, fix_gamma=False)

    def layer_norm(self, x, gamma, beta):
        return self.F.LayerNorm(x, gamma[0], beta[0], axis=-1, eps=walks.EPSILON)

    def relu6(self, x):
        return self.F.clip(x, 0, 6)

    def gelu(self, x):
        return self.F.LeakyReLU(x, act_type="gelu")

    def concat(self, xs):
        return self.F.concat(*xs, dim=1)

    def max_pool(self, x):
        return self.F.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")

    def halve(self, x):
        return self.F.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="avg")

    def mean(self, x):
        F = self.F
        return F.flatten(F.Pooling(x, kernel=(1, 1), global_pool=True, pool_type="avg"))

    def dense(self, x, w, bias):
        return self.F.FullyConnected(x, w[0], bias[0], num_hidden=w[1][0], flatten=False)

    def heads(self, x, n):
        return self.F.transpose(self.F.reshape(x, (0, 0, n, -1)), axes=(0, 2, 1, 3))

    def merge(self, x):
        return self.F.reshape(self.F.transpose(x, axes=(0, 2, 1, 3)), (0, 0, -1))

    def attend(self, q, k, v, c):
        F, n = self.F, walks.N_HEADS
        q, k, v = (F.reshape(x, (-3, 0, 0)) for x in (q, k, v))
        scores = F.batch_dot(q, k, transpose_b=True) / math.sqrt(c)
        return F.reshape(F.batch_dot(F.softmax(scores, axis=-1), v), (-4, -1, n, 0, 0))


def build(mx):
    nn = mx.gluon.nn

    class Function(nn.HybridBlock):
        """A function of arrays as a net without weights."""

        def __init__(self, f):
            super().__init__()
            self.f = f

        def hybrid_forward(self, F, *inputs):
            return self.f(F, *inputs)

    def arrays(a, names):
        return tuple(mx.nd.array(a[name]) for name in names)

    def function(f, names):
        return lambda a: (Function(f), arrays(a, names))

    def fill(net, layers, a, x):
        net.initialize()
        net(x)  # now the shapes of the weights are known
        for i, layer in enumerate(layers):
            layer.weight.set_data(mx.nd.array(a[f"weight{i}"]))
            layer.bias.set_data(mx.nd.array(a[f"bias{i}"]))
        return net, (x,)

    def mlp(a):
        net = nn.HybridSequential()
        net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
        return fill(net, net, a, mx.nd.array(a["data"]))

    def lenet(a):
        net = nn.HybridSequential()
        net.add(
            nn.Conv2D(6, 5, padding=2, activation="relu"),
            nn.MaxPool2D(2, 2),
            nn.Conv2D(16, 5, activation="relu"),
            nn.MaxPool2D(2, 2),
            nn.Dense(120, activation="relu"),
            nn.Dense(84, activation="relu"),
            nn.Dense(10),
        )
        return fill(net, [net[i] for i in (0, 2, 4, 5, 6)], a, mx.nd.array(a["data"]))

    def train_lenet(a):
        net, (x,) = lenet(a)
        return (net, (net[0].weight, net[6].weight), ("sgd", {"learning_rate": 0.1})), (
            x,
            mx.nd.array(a["label"]),
        )

    def layer_norm(a):
        net = nn.LayerNorm(in_channels=len(a["gamma"]))
        net.initialize()
        net.gamma.set_data(mx.nd.array(a["gamma"]))
        net.beta.set_data(mx.nd.array(a["beta"]))
        return net, arrays(a, ["data"])

    class Walk(nn.HybridBlock):
        """The walk over a net is shared; its weights are parameters."""

        def __init__(self, net, a):
            super().__init__()
            self.net, self.shapes = net, walks.shapes_of(net)[0]
            for name, shape in self.shapes.items():
                change = "null" if name.startswith(steps.CONSTANT) else "write"
                setattr(self, name, self.params.get(name, shape=shape, grad_req=change))
            self.initialize()
            for name in self.shapes:
                getattr(self, name).set_data(mx.nd.array(a[name]))

        def hybrid_forward(self, F, x, **weights):
            shapes = self.shapes.items()
            named = {name: (weights[name], shape) for name, shape in shapes}
            return Ops(F, named).walk(self.net, x)

    def walk(net, a):
        return Walk(net, a), arrays(a, ["data"])

    def train_walk(name, a):
        net, optimizer, rate = steps.STEPS[name]
        block, (first, *_, last) = Walk(net, a), steps.trained(a)
        ends = getattr(block, first), getattr(block, last)
        return (block, ends, (optimizer, {"learning_rate": rate})), arrays(a, ["data", "label"])

    def lstm(a):
        net = mx.gluon.rnn.LSTM(a["from_h"].shape[1])
        net.initialize()
        net(mx.nd.array(a["data"]))
        names = ("l0_i2h_weight", "l0_h2h_weight", "l0_i2h_bias", "l0_h2h_bias")
        for name, ours in zip(names, ("from_x", "from_h", "bias_x", "bias_h"), strict=True):
            getattr(net, name).set_data(mx.nd.array(a[ours]))
        return net, arrays(a, ["data"])

    return {
        "mlp": mlp,
        "lenet": lenet,
        "train_lenet": train_lenet,
        "plain": function(lambda F, a, b, c: a * b + c, "abc"),
        "elementwise": function(lambda F, a, b, c: F.tanh(a * b + c) * a - F.exp(-c * c), "abc"),
        "softmax": function(lambda F, x: F.softmax(x, axis=-1), ["data"]),
        "layer_norm": layer_norm,
        "lstm": lstm,
        **{net: partial(walk, net) for net in walks.WALKS},
        **{name: partial(train_walk, name) for name in steps.STEPS},
    }


def trained(mx, **options):
    """A mode of training: a step of an optimizer a call; hybridized if there are options."""

    def prepare(net, data):
        (net, (first, last), optimizer), (x, label) = net, data
        loss = mx.gluon.loss
        losses_of = loss.SoftmaxCrossEntropyLoss() if label.ndim == 1 else loss.L2Loss()
        trainer = mx.gluon.Trainer(net.collect_params(), *optimizer)
        if options:
            net.hybridize(**options)
            losses_of.hybridize(**options)

        def call():
            with mx.autograd.record():
                losses = losses_of(net(x), label)
            losses.backward()
            trainer.step(len(x))
            mx.nd.waitall()
            return losses, first.data(), last.data()

        return call

    return prepare


def eager(net, data):
    def call():
        y = net(*data)
        y.wait_to_read()
        return y

    return call


def hybridized(net, data):
    net.hybridize(static_alloc=True, static_shape=True)
    return eager(net, data)


def to_numpy(result):
    return result.asnumpy()
