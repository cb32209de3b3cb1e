"""The Gluon program that minihybrid and MXNet run alike; `mx` is either of them."""


def build(mx):
    nn = mx.gluon.nn

    def mlp(a):
        net = nn.HybridSequential()
        net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"),
                nn.Dense(2))
        net.initialize()
        x = mx.nd.array(a["data"])
        net(x)  # now the shapes of the weights are known
        for i, layer in enumerate(net):
            layer.weight.set_data(mx.nd.array(a[f"weight{i}"]))
            layer.bias.set_data(mx.nd.array(a[f"bias{i}"]))
        return net, x

    return {"mlp": mlp}


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
