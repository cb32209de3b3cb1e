"""The Gluon program that minihybrid and MXNet run alike; `mx` is either of them."""


def build(mx):
    nn = mx.gluon.nn

    def fill(net, layers, a, x):
        net.initialize()
        net(x)  # now the shapes of the weights are known
        for i, layer in enumerate(layers):
            layer.weight.set_data(mx.nd.array(a[f"weight{i}"]))
            layer.bias.set_data(mx.nd.array(a[f"bias{i}"]))
        return net

    def mlp(a):
        net = nn.HybridSequential()
        net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"),
                nn.Dense(2))
        x = mx.nd.array(a["data"])
        return fill(net, net, a, x), x

    def lenet(a):
        net = nn.HybridSequential()
        net.add(nn.Conv2D(6, 5, padding=2, activation="relu"), nn.MaxPool2D(2, 2),
                nn.Conv2D(16, 5, activation="relu"), nn.MaxPool2D(2, 2),
                nn.Dense(120, activation="relu"), nn.Dense(84, activation="relu"),
                nn.Dense(10))
        x = mx.nd.array(a["data"])
        return fill(net, [net[i] for i in (0, 2, 4, 5, 6)], a, x), x

    def train_lenet(a):
        net, x = lenet(a)
        return net, (x, mx.nd.array(a["label"]))

    return {"mlp": mlp, "lenet": lenet, "train_lenet": train_lenet}


def trained(mx, **options):
    """A mode of training: a step of SGD a call; hybridized if there are options."""
    def prepare(net, data):
        x, label = data
        loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
        trainer = mx.gluon.Trainer(
            net.collect_params(), "sgd", {"learning_rate": 0.1})
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


def eager(net, x):
    def call():
        y = net(x)
        y.wait_to_read()
        return y

    return call


def hybridized(**options):
    def prepare(net, x):
        net.hybridize(**options)
        return eager(net, x)

    return prepare


def to_numpy(result):
    return result.asnumpy()
