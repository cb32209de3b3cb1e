"""Random networks of all layers, and what is asked of them.

A net is drawn as names of layers with two numbers each, which choose among what fits
the shape that arrives; what does not fit is left out.
"""

import numpy as np
from hypothesis import note
from hypothesis import strategies as st

from minihybrid import autograd, nd
from minihybrid.gluon import HybridBlock, nn
from minihybrid.gluon.contrib.nn import HybridConcurrent, Identity

few = {"deadline": None, "database": None, "derandomize": True}
# Of the largest number: a norm of numbers that are almost equal makes them far apart.
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}
FORMULAS = ("relu", "sigmoid", "tanh", "softrelu", "softsign")


class Residual(HybridBlock):
    """x + body(x)."""

    def __init__(self, body, **kwargs):
        super().__init__(**kwargs)
        self.body = body

    def hybrid_forward(self, F, x):
        return x + self.body(x)


class TwoHeads(HybridBlock):
    """Two outputs, one made of the other."""

    def __init__(self, body, **kwargs):
        super().__init__(**kwargs)
        self.body = body

    def hybrid_forward(self, F, x):
        y = self.body(x)
        return y, F.tanh(y) * 2


LAYERS = {}


def layer(function):
    LAYERS[function.__name__] = function
    return function


def window(shape, i, j):
    """Lengths of a window that fits, steps and padding for all axes after channels."""
    return {"strides": 1 + j % 2, "padding": j // 2 % 2}, tuple(
        min(1 + i % 3, n) for n in shape[2:]
    )


def pick(kinds, shape):
    """The layer for 1-D or 2-D signals, `None` for other shapes."""
    return kinds.get(len(shape))


@layer
def dense(shape, i, j):
    return nn.Dense(
        1 + i,
        activation=(*FORMULAS, None)[j],
        use_bias=i % 2 == 0,
        flatten=j % 2 == 0,
        bias_initializer="ones",
    )


@layer
def activation(shape, i, j):
    return nn.Activation(FORMULAS[i % 5])


@layer
def leaky(shape, i, j):
    return (nn.LeakyReLU(0.1), nn.PReLU(), nn.ELU(), nn.SELU(), nn.GELU(), nn.Swish(0.5 + j))[i]


@layer
def prelu_of_channels(shape, i, j):
    return nn.PReLU(in_channels=shape[1])


@layer
def dropout(shape, i, j):
    return nn.Dropout((0.0, 0.3, 0.5)[i % 3], axes=(0,) if j == 1 else ())


@layer
def flatten(shape, i, j):
    return nn.Flatten()


@layer
def function(shape, i, j):
    return nn.HybridLambda(("square", "tanh", "negative")[i % 3])


@layer
def scale(shape, i, j):
    return nn.HybridLambda(lambda F, x: x * (i - 2.5) / 2 + 0.5)


@layer
def conv(shape, i, j):
    kind = pick({3: nn.Conv1D, 4: nn.Conv2D}, shape)
    how, kernel = window(shape, i, j)
    groups = shape[1] if j == 5 and shape[1] <= 4 else 1
    return kind and kind(
        groups * (1 + i % 3),
        kernel,
        groups=groups,
        use_bias=i != 2,
        activation="relu" if j == 4 else None,
        **how,
    )


@layer
def conv_dilated(shape, i, j):
    kind = pick({3: nn.Conv1D, 4: nn.Conv2D}, shape)
    return kind and kind(1 + i % 3, 2, dilation=2, padding=1 + j % 2)


@layer
def conv_transposed(shape, i, j):
    kind = pick({3: nn.Conv1DTranspose, 4: nn.Conv2DTranspose}, shape)
    small = kind and max(shape[2:]) <= 7
    padding = j // 2 % 2 if min(shape[2:], default=0) > 1 else 0  # or nothing is left
    return kind(1 + i % 3, 2 + i % 2, strides=1 + j % 2, padding=padding) if small else None


@layer
def pool(shape, i, j):
    kind = pick({3: (nn.MaxPool1D, nn.AvgPool1D), 4: (nn.MaxPool2D, nn.AvgPool2D)}, shape)
    how, kernel = window(shape, i, 0 if min(shape[2:], default=0) < 2 else j)
    how["padding"] *= min(kernel, default=0) > 1
    return kind and kind[i // 3](kernel, ceil_mode=j > 3, **how)


@layer
def pool_all(shape, i, j):
    kind = pick(
        {3: (nn.GlobalMaxPool1D, nn.GlobalAvgPool1D), 4: (nn.GlobalMaxPool2D, nn.GlobalAvgPool2D)},
        shape,
    )
    return kind and kind[i % 2]()


@layer
def batch_norm(shape, i, j):
    kind = nn.BatchNormReLU if i == 5 else nn.BatchNorm
    return kind(
        momentum=(0.9, 0.5)[i % 2], scale=j % 2 == 0, center=j % 3 > 0, use_global_stats=j == 5
    )


@layer
def layer_norm(shape, i, j):
    return nn.LayerNorm(axis=-1 if i % 2 else 1, scale=j % 2 == 0, epsilon=1e-3)


@layer
def group_norm(shape, i, j):
    groups = [n for n in (1, 2, 3) if shape[1] % n == 0]
    return nn.GroupNorm(groups[i % len(groups)]) if len(shape) > 2 else None


@layer
def instance_norm(shape, i, j):
    return nn.InstanceNorm(scale=i % 2 == 0, epsilon=1e-3) if len(shape) > 2 else None


@layer
def residual(shape, i, j):
    body = nn.HybridSequential(prefix="")
    body.add(nn.Activation(FORMULAS[i % 5]), nn.Dropout(0.5), nn.BatchNorm())
    return Residual(body)


@layer
def branches(shape, i, j):
    both = HybridConcurrent(axis=1)
    both.add(Identity(), batch_norm(shape, i, j), leaky(shape, i, j))
    return both


@layer
def nested(shape, i, j):
    inner = nn.HybridSequential()
    with inner.name_scope():
        inner.add(dense(shape, i, j), dropout(shape, i, j), nn.BatchNorm())
    return inner


small = st.integers(0, 5)
STARTS = ((2, 3), (1, 5), (3, 2, 6), (2, 3, 5, 4), "indices")


def nets(most):
    """A start, a dtype, whether there are two outputs, and up to `most` layers."""
    drawn = st.tuples(st.sampled_from(sorted(LAYERS)), small, small)
    return st.tuples(
        st.sampled_from(STARTS),
        st.sampled_from(sorted(TOLERANCE)),
        st.booleans(),
        st.lists(drawn, min_size=1, max_size=most),
    )


def network(net):
    """(initialized block, input, tolerance) of a drawn network."""
    start, dtype, two_heads, drawn = net
    rng = np.random.default_rng(0)
    np.random.seed(1)
    nd.random.seed(1)
    body = nn.HybridSequential()
    if start == "indices":
        x = y = nd.array(rng.integers(0, 5, (3, 4)))
        drawn = [("embedding", 0, 0), *drawn]
    else:
        x = y = nd.array(rng.uniform(-1, 1, start), dtype=dtype)
    for name, i, j in drawn:
        with body.name_scope():
            block = nn.Embedding(5, 3) if name == "embedding" else LAYERS[name](y.shape, i, j)
        if block is None:
            continue
        block.initialize()
        block.cast(dtype)
        y = block(y)  # this tells the next layer its shape, and finds the parameters'
        body.add(block)
    block = TwoHeads(body) if two_heads else body
    for param in block.collect_params().values():  # no zeros, no ones
        param.set_data(param.data() + nd.array(rng.uniform(0.1, 0.5, param.shape), dtype=dtype))
    return block, x, TOLERANCE[dtype]


def results(block, x, states):
    """name -> outputs in prediction and in training, gradients, states after."""

    def outputs():
        out = block(x)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    params = block.collect_params()
    for name, value in states.items():
        params[name].set_data(nd.array(value, dtype=value.dtype))
    actual = {f"predicted {i}": o for i, o in enumerate(outputs())}
    x.attach_grad()
    nd.random.seed(5)
    with autograd.record():
        outs = outputs()
        loss = sum((o * o).mean() for o in outs)
    loss.backward()
    actual |= {f"trained {i}": o for i, o in enumerate(outs)} | {"gradient": x.grad}
    actual |= {f"gradient of {n}": p.grad() for n, p in params.items() if p.grad_req != "null"}
    actual |= {f"{n} afterwards": p.data() for n, p in params.items()}
    return {name: value.asnumpy() for name, value in actual.items()}


def states_of(block):
    return {n: p.data().asnumpy() for n, p in block.collect_params().items()}


def assert_all_close(got, expected, tolerance):
    for name, b in expected.items():
        assert got[name].dtype == b.dtype, name
        size = np.abs(b).max(initial=1.0)
        np.testing.assert_allclose(got[name], b, tolerance, tolerance * size, err_msg=name)


def check(net, backend):
    block, x, tolerance = network(net)
    note(repr(block))  # printed with a failure
    states = states_of(block)
    expected = results(block, x, states)
    block.hybridize(backend=backend)
    for _ in range(2):  # the second time from the plans, with used memory
        assert_all_close(results(block, x, states), expected, tolerance)
    assert all(p.target == backend for p in block.plans.values())
    block.hybridize(False)
    assert_all_close(results(block, x, states), expected, tolerance)
