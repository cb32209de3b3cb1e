"""Whole small programs, as tutorials have them: what breaks where features meet."""

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, init, metric, nd, sym
from minihybrid.gluon import nn


def blobs(count=120, seed=3):
    """Points around three centers, and which center it was."""
    rng = np.random.RandomState(seed)
    label = rng.randint(0, 3, count)
    centers = np.array([[2, 0, 0, 1], [0, 2, 1, 0], [-2, -2, 0, 0]])
    data = centers[label] + 0.4 * rng.normal(size=(count, 4))
    return data.astype("float32"), label.astype("float32")


def test_an_mlp_by_gluon(tmp_path):
    mx.random.seed(1)
    data = gluon.data.ArrayDataset(*blobs())
    net = nn.Sequential()
    with net.name_scope():
        net.add(nn.Dense(16, activation="relu"), nn.Dropout(0.1), nn.Dense(3))
    net.initialize(init.Xavier(magnitude=2.24), ctx=mx.cpu())
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), mx.optimizer.Adam(learning_rate=0.02))
    accuracy, means = metric.Accuracy(), metric.Loss()
    for _ in range(8):
        accuracy.reset(), means.reset()
        for x, y in gluon.data.DataLoader(data, batch_size=20, shuffle=True):
            with autograd.record():
                out = net(x)
                errors = loss(out, y)
            errors.backward()
            trainer.step(x.shape[0])
            accuracy.update([y], [out])
            means.update(None, [errors])
    assert accuracy.get()[1] > 0.9 and means.get()[1] < 0.5
    assert all(param.grad_req == "write" for param in trainer._params)
    # Adam counts the updates of each weight
    counts = trainer._optimizer._index_update_count
    assert set(counts.values()) == {8 * 6} and len(counts) == 4
    net.save_parameters(str(tmp_path / "mlp.params"))
    again = nn.Sequential()
    again.add(nn.Dense(16, activation="relu"), nn.Dropout(0.1), nn.Dense(3))
    again.load_parameters(str(tmp_path / "mlp.params"), ctx=mx.cpu())
    x = nd.array(blobs()[0])
    assert net(x).argmax(axis=1).asnumpy().tolist() == again(x).argmax(axis=1).asnumpy().tolist()


class Affine(gluon.HybridBlock):
    """A layer with a weight of its own, a constant, and a child."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.scale = self.params.get("scale", shape=(units,), init=init.One())
            self.shift = self.params.get_constant("shift", np.arange(units) * 1.0)
            self.dense = nn.Dense(units)

    def hybrid_forward(self, F, x, scale, shift):
        return F.broadcast_add(F.broadcast_mul(self.dense(x), scale), shift)


def test_a_block_with_parameters_of_its_own():
    net = Affine(3, prefix="affine_")
    assert list(net._reg_params) == ["scale", "shift"]
    assert list(net._collect_params_with_prefix()) == [
        "scale",
        "shift",
        "dense.weight",
        "dense.bias",
    ]
    net.collect_params(".*bias").setattr("grad_req", "null")
    net.initialize(init.Normal(0.5))
    x = nd.random.normal(shape=(2, 5))
    eager = net(x).asnumpy()
    expected = x.asnumpy() @ net.dense.weight.data().asnumpy().T + np.arange(3)
    np.testing.assert_allclose(eager, expected, rtol=1e-4, atol=1e-5)
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), eager, rtol=1e-5, atol=1e-6)
    net.dense = nn.Dense(3, in_units=5, weight_initializer=init.Zero())
    net.dense.initialize()
    np.testing.assert_array_equal(net(x).asnumpy(), [[0, 1, 2]] * 2)
    net.collect_params().reset_ctx(mx.cpu())
    net.scale.reset_ctx(mx.cpu(0))
    assert net.scale.list_ctx()[0].device_type == "cpu"
    with pytest.raises(mx.AttrError, match="'dense' is a Dense and cannot become a"):
        net.dense = "something else"


def symbolic_mlp():
    data, label = sym.Variable("data"), sym.Variable("softmax_label")
    hidden = sym.FullyConnected(data=data, num_hidden=16, name="fc1")
    hidden = sym.Activation(data=hidden, act_type="relu", name="relu1")
    scores = sym.FullyConnected(data=hidden, num_hidden=3, name="fc2")
    return sym.SoftmaxOutput(data=scores, label=label, name="softmax")


@pytest.mark.slow
def test_a_symbolic_mlp_is_bound_and_trained():
    net = sym.load_json(symbolic_mlp().tojson())
    data, label = blobs()
    exe = net.simple_bind(
        mx.cpu(),
        data=data.shape,
        softmax_label=label.shape,
        grad_req={
            n: "null" if n in ("data", "softmax_label") else "write" for n in net.list_arguments()
        },
    )
    assert exe._ctx == mx.cpu()
    rng = np.random.RandomState(5)
    for name, array in zip(net.list_arguments(), exe.arg_arrays, strict=True):
        if name.endswith("weight"):
            array[:] = rng.normal(scale=0.3, size=array.shape)
    exe.arg_dict["data"][:] = data
    exe.arg_dict["softmax_label"][:] = label
    for _ in range(40):
        exe.forward(is_train=True)
        exe.backward()
        for array, grad in zip(exe.arg_arrays, exe.grad_arrays, strict=True):
            if grad is not None:
                array -= 0.1 / len(data) * grad
    actual = exe.forward(is_train=False)[0].asnumpy()
    assert (actual.argmax(1) == label).mean() > 0.95
    np.testing.assert_allclose(actual.sum(1), 1, rtol=1e-5)
    # the same weights by Gluon
    block = gluon.SymbolBlock(net.get_internals()["fc2_output"], sym.var("data"))
    for name, param in block.collect_params().items():
        param.set_data(exe.arg_dict[name])
    scores = block(nd.array(data))
    np.testing.assert_allclose(nd.softmax(scores).asnumpy(), actual, rtol=1e-4, atol=1e-6)


def test_functions_of_symbols_by_name():
    a, b = sym.var("a"), sym.var("b")
    (out,) = sym.pow(a, b).eval(ctx=mx.cpu(), a=nd.array([2, 3]), b=nd.array([3, 2]))
    np.testing.assert_allclose(out.asnumpy(), [8, 9], rtol=1e-6)


class Sigmoid(autograd.Function):
    """A function whose gradient is written by hand, from what it saved."""

    def forward(self, x):
        y = 1 / (1 + nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


def test_a_function_with_a_gradient_of_ones_own():
    x, grads = nd.random.normal(shape=(5,)), []
    for function in (Sigmoid(), nd.sigmoid):
        x.attach_grad()
        with autograd.record():
            y = function(x) * 2
        y.backward()
        grads.append(x.grad.asnumpy())
    np.testing.assert_allclose(*grads, rtol=1e-5)


def test_a_symbol_as_a_compiled_function():
    a, b = sym.var("a"), sym.var("b")
    op = nd.CachedOp(sym.Group([a * b, a - b]))
    x, y = nd.array([1, 2]), nd.array([3, 5])
    x.attach_grad()
    with autograd.record():
        product, difference = op(x, y)
        (product + 2 * difference).backward()
    np.testing.assert_array_equal(product.asnumpy(), [3, 10])
    np.testing.assert_array_equal(x.grad.asnumpy(), [5, 7])
    out = nd.zeros(2)
    assert nd.CachedOp(a + b)(x, y, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), [4, 7])
    with pytest.raises(mx.AttrError, match=r"2 arrays are needed \(a, b\), found 1"):
        op(x)


def test_results_are_written_into_arrays_that_exist():
    x = nd.array([[1, 2], [3, 4]])
    for make, expected in ((nd.ones, 1), (nd.zeros, 0)):
        assert make((2, 2), out=x) is x
        np.testing.assert_array_equal(x.asnumpy(), np.full((2, 2), expected))


def test_softmax_of_lines_of_different_length():
    x = nd.array([[1, 2, 3], [1, 2, 3], [1, 2, 3]])
    out = nd.softmax(x, length=nd.array([2, 3, 0]), use_length=True).asnumpy()
    e = np.exp([1, 2, 3])
    np.testing.assert_allclose(out, [[*e[:2] / e[:2].sum(), 0], e / e.sum(), [0, 0, 0]], rtol=1e-5)
    half = x.astype("float16")
    assert nd.softmax(half, dtype="float32").dtype == np.float32
    assert nd.log_softmax(half, dtype="float32").dtype == np.float32
    with pytest.raises(mx.ShapeError, match=r"length has shape \(2,\), but \(3,\)"):
        nd.softmax(x, length=nd.array([2, 3]), use_length=True)


class TopTwo(metric.EvalMetric):
    """How often the label is among the two highest scores."""

    def __init__(self):
        super().__init__("top_two")

    def update(self, labels, preds):
        for label, pred in zip(labels, preds, strict=True):
            best = nd.topk(pred, k=2, axis=1).asnumpy()
            self.sum_metric += (best == label.asnumpy()[:, None]).any(1).sum()
            self.num_inst += len(label)


@init.register
class Checkered(init.Initializer):
    """1 and -1 in turn."""

    def _init_weight(self, name, arr):
        arr[:] = (-1.0) ** np.arange(arr.size).reshape(arr.shape)


def test_a_metric_and_an_initializer_of_ones_own():
    net = nn.Dense(3, weight_initializer="checkered", bias_initializer=Checkered(), in_units=2)
    net.initialize()
    np.testing.assert_array_equal(net.weight.data().asnumpy(), [[1, -1]] * 3)
    top = TopTwo()
    scores = nd.array([[0.1, 0.2, 0.7], [0.8, 0.15, 0.05], [0.3, 0.3, 0.4]])
    top.update([nd.array([2, 2, 2])], [scores])
    both = metric.CompositeEvalMetric([TopTwo(), metric.Accuracy()])
    both.update([nd.array([2, 2, 2])], [scores])
    assert top.get() == ("top_two", pytest.approx(2 / 3))
    assert both.get() == (["top_two", "accuracy"], [pytest.approx(2 / 3)] * 2)


def test_a_net_is_exported_and_its_first_layers_are_used_again(tmp_path):
    net = nn.HybridSequential(prefix="first_")
    with net.name_scope():
        net.add(nn.Dense(4, activation="tanh"), nn.BatchNorm(), nn.Dense(2))
    net.initialize(init.Xavier())
    net.hybridize()
    x = nd.random.normal(shape=(6, 3))
    with autograd.record():  # so that the running mean is not 0
        net(x)
    expected = net(x).asnumpy()
    net.export(str(tmp_path / "net"), epoch=7)
    loaded = gluon.SymbolBlock.imports(
        str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0007.params"), ctx=mx.cpu()
    )
    np.testing.assert_allclose(loaded(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    symbol = sym.load(str(tmp_path / "net-symbol.json"))
    assert symbol.list_auxiliary_states() == [
        "first_batchnorm0_running_mean",
        "first_batchnorm0_running_var",
    ]
    features = symbol.get_internals()["first_dense0_tanh_fwd_output"]
    body = gluon.SymbolBlock(features, sym.var("data"), params=net.collect_params())
    np.testing.assert_allclose(body(x).asnumpy(), net[0](x).asnumpy(), rtol=1e-5, atol=1e-6)
    head = nn.HybridSequential()
    head.add(body, nn.Dense(1))
    head[1].initialize()
    trainer = gluon.Trainer(head[1].collect_params(), "sgd", {"learning_rate": 0.1})
    before = [head[0](x).asnumpy(), head(x).asnumpy()]
    with autograd.record():
        out = (head(x) ** 2).sum()
    out.backward()
    trainer.step(6)
    np.testing.assert_array_equal(head[0](x).asnumpy(), before[0])
    assert not np.allclose(head(x).asnumpy(), before[1])


def test_layers_of_three_dimensions():
    net = nn.HybridSequential()
    net.add(
        nn.Conv3D(channels=2, kernel_size=3, strides=1, padding=1, activation="relu"),
        nn.MaxPool3D(layout="NCDHW"),
        nn.AvgPool3D(2, count_include_pad=False),
        nn.GlobalAvgPool3D(),
    )
    net.initialize(init.One())
    out = net(nd.ones((1, 1, 8, 8, 8)))
    assert out.shape == (1, 2, 1, 1, 1)
    # ones under a window of 27, of which 8 to 27 lie inside; pooling takes the largest
    np.testing.assert_allclose(out.asnumpy().ravel(), [27, 27])


@pytest.fixture
def numpy_world():
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


def test_linear_regression_in_the_style_of_numpy(numpy_world):
    mx.np.random.seed(4)
    true_w, true_b = mx.np.array([2, -3.4]), 4.2
    x = mx.np.random.normal(0, 1, (200, 2))
    y = mx.np.dot(x, true_w) + true_b
    w, b = mx.np.random.normal(0, 0.01, (2, 1)), mx.np.zeros(1)
    w.attach_grad(), b.attach_grad()
    for _ in range(40):
        with autograd.record():
            loss = ((mx.np.dot(x, w) + b - y.reshape(-1, 1)) ** 2 / 2).mean()
        loss.backward()
        for param in (w, b):
            param[:] = param - 0.3 * param.grad
    assert loss.shape == () and loss.item() < 1e-3
    np.testing.assert_allclose(w.asnumpy().ravel(), [2, -3.4], atol=0.02)
    total = mx.np.ones(3)
    total /= 2
    assert total.sum() == 1.5
    assert (x.clip(min=-0.5, max=0.5) == mx.np.clip(x, -0.5, 0.5)).all()
    mx.npx.random.seed(seed=4)
    assert (mx.np.random.normal(0, 1, (200, 2)) == x).all()


def test_gluon_in_the_style_of_numpy(numpy_world):
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.hidden, self.out = nn.Dense(8), nn.Dense(1)

        def forward(self, x):
            return self.out(mx.npx.relu(self.hidden(x)))

    net, x = Net(), mx.np.random.uniform(size=(4, 3))
    net.initialize()
    eager = net(x)
    net.hybridize()
    assert isinstance(eager, mx.np.ndarray) and isinstance(net(x), mx.np.ndarray)
    np.testing.assert_allclose(net(x).asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-6)


def test_shapes_of_numpy_for_a_while():
    assert not mx.util.is_np_array()
    with mx.np_shape(True):
        assert mx.util.is_np_shape()
        assert nd.zeros(()).shape == ()
    with mx.util.np_shape():
        assert mx.util.is_np_shape()
    assert not mx.util.is_np_shape()
