"""The Gluon program that minihybrid and MXNet run alike; `mx` is either of them."""


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
        return net, (x, mx.nd.array(a["label"]))

    def layer_norm(a):
        net = nn.LayerNorm(in_channels=len(a["gamma"]))
        net.initialize()
        net.gamma.set_data(mx.nd.array(a["gamma"]))
        net.beta.set_data(mx.nd.array(a["beta"]))
        return net, arrays(a, ["data"])

    def resnet18(a):
        net = mx.gluon.model_zoo.vision.resnet18_v1()
        net.initialize()
        net(mx.nd.array(a["data"]))
        kinds = {"conv": ["weight"], "batchnorm": ["gamma", "beta", "running_mean", "running_var"]}
        for kind, names in kinds.items():
            layers = [block for block in walk(net) if block.name.split("_")[-1].startswith(kind)]
            for i, layer in enumerate(layers):
                for name in names:
                    number = a[name.replace("running_", "") + str(i)]
                    getattr(layer, name).set_data(mx.nd.array(number))
        net.output.weight.set_data(mx.nd.array(a["weight"]))
        net.output.bias.set_data(mx.nd.array(a["bias"]))
        return net, arrays(a, ["data"])

    return {
        "mlp": mlp,
        "lenet": lenet,
        "train_lenet": train_lenet,
        "plain": function(lambda F, a, b, c: a * b + c, "abc"),
        "elementwise": function(lambda F, a, b, c: F.tanh(a * b + c) * a - F.exp(-c * c), "abc"),
        "softmax": function(lambda F, x: F.softmax(x, axis=-1), ["data"]),
        "layer_norm": layer_norm,
        "resnet18": resnet18,
    }


def walk(block):
    """The block and all that it consists of, in the order in which they were made."""
    yield block
    for child in block._children.values():
        yield from walk(child)


def trained(mx, **options):
    """A mode of training: a step of SGD a call; hybridized if there are options."""

    def prepare(net, data):
        x, label = data
        loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        if options:
            net.hybridize(**options)
            loss.hybridize(**options)

        def call():
            with mx.autograd.record():
                losses = loss(net(x), label)
            losses.backward()
            trainer.step(len(x))
            mx.nd.waitall()
            return losses, net[0].weight.data(), net[6].weight.data()

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
