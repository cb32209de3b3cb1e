"""The chapter's function and net in MXNet 1.9.1. A line with `# %%` begins a cell."""

# %% write: Gluon: a `HybridBlock` works on arrays and on symbols.
import mxnet as mx
from mxnet import nd
from mxnet.gluon import nn


class Blend(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x, y):
        left = x * y
        return F.tanh(left) + left


blend = Blend()
net = nn.HybridSequential()
net.add(nn.Dense(4, activation="relu"), nn.Dense(2))
net.initialize()
x, y = nd.array([[0, 1, 2]]), nd.array([[1, 1, 0.5]])
print(blend(x, y))
print(net(x).shape)

# %% trace: `hybridize` requests it, and the first call traces.
blend.hybridize()
print(blend(x, y))

# %% steps: Define: a symbol. Before Gluon, every program looked like this.
a, b = mx.sym.var("x"), mx.sym.var("y")
left = a * b
symbol = mx.sym.tanh(left) + left
print(symbol)

# %% steps: Compile: plan shapes and memory for an executor.
executor = symbol.simple_bind(mx.cpu(), x=(1, 3), y=(1, 3))

# %% steps: Run.
print(executor.forward(x=x, y=y)[0])

# %% look: The graph is a symbol.
print(blend(mx.sym.var("x"), mx.sym.var("y")).debug_str())


# %% print: `print` runs only while tracing.
class Noisy(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        print("called with", x)
        return x * 2


noisy = Noisy()
noisy.hybridize()
for _ in range(2):
    noisy(x)


# %% number: An attribute of the block is also read once.
class Scale(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return x * self.factor


scale = Scale()
scale.factor = 2
scale.hybridize()
print(scale(x))
scale.factor = 100
print(scale(x))


# %% branch: A branch on data is an error.
def either(F, x):
    if x.sum() > 0:
        return x
    return -x


block = nn.HybridLambda(either)
block.hybridize()
block(x)

# %% branch: The operator that selects. Both branches are computed.
block = nn.HybridLambda(lambda F, x: F.where(x.sum() > 0, x, -x))
block.hybridize()
print(block(x), block(-x))


# %% shape: One graph for all shapes. Only its memory is replanned.
class Counted(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x, y):
        print("tracing with", x)
        return F.tanh(x * y) + x * y


counted = Counted()
counted.hybridize()
for rows in (1, 2, 2, 7):
    print(counted(nd.ones((rows, 3)), nd.ones((rows, 3))).shape)

# %% save: Two files: the graph as JSON, and the weights.
from pathlib import Path

net.hybridize()
net(x)
net.export("net")
print(*sorted(path.name for path in Path().iterdir()))
again = mx.gluon.SymbolBlock.imports("net-symbol.json", ["data"], "net-0000.params")
print(type(again).__name__, bool((again(x) == net(x)).min().asscalar()))

# %% race: The tutorials' network, a batch of one, a thousand calls.
import timeit


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
    net.initialize()
    return net


data = nd.random.normal(shape=(1, 512))


def time_of(net):
    """The least time of five."""
    net(data).wait_to_read()
    return min(timeit.repeat(lambda: net(data).wait_to_read(), number=1000, repeat=5))


eager, hybrid = mlp(), mlp()
hybrid.hybridize(static_alloc=True, static_shape=True)
eager_s = time_of(eager)
print(f"hybridized: about {eager_s / time_of(hybrid):.1f} times as fast as eager")
