"""Small programs in the symbolic style, written for MXNet and run on both engines.

Each takes the package (`mxnet` or `minihybrid`) and returns what it found, as lists,
numbers and text; `answers.json` holds what MXNet found.
"""

import contextlib
import copy
import io
import pickle
import tempfile

import numpy as np


def numbers(mx, *shape, scale=4):
    """The same numbers in every run, small enough to be exact in float32."""
    count = int(np.prod(shape))
    return mx.nd.array((np.arange(count) * 7 % 11 - 5).reshape(shape) / scale)


def plain(value):
    """A result as JSON can hold it."""
    if hasattr(value, "asnumpy"):
        return np.round(value.asnumpy().astype("float64"), 5).tolist()
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.__name__ if isinstance(value, type) else value


def perceptron(mx):
    """Two layers: data -> h (4, tanh) -> out (2)."""
    data = mx.sym.Variable("data")
    h = mx.sym.FullyConnected(data, num_hidden=4, name="h")
    h = mx.sym.Activation(h, act_type="tanh", name="act")
    return mx.sym.FullyConnected(h, num_hidden=2, name="out")


# -- executors -------------------------------------------------------------------------
def bind_with_lists(mx):
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    arrays = [numbers(mx, 2, 3), numbers(mx, 2, 3) + 1]
    grads = [mx.nd.zeros((2, 3)), mx.nd.zeros((2, 3))]
    exe = (a * b + a).bind(mx.cpu(), args=arrays, args_grad=grads)
    out = exe.forward(is_train=True)
    exe.backward(numbers(mx, 2, 3) * 2)
    return out, exe.grad_arrays, exe.outputs, len(exe.arg_arrays)


def bind_with_dicts(mx):
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    arrays = {"b": numbers(mx, 3, 2) + 2, "a": numbers(mx, 3, 2), "unused": numbers(mx, 1)}
    exe = (b / (a * a + 1)).bind(mx.cpu(), arrays, {"a": mx.nd.zeros((3, 2))})
    exe.forward(is_train=True)
    exe.backward([mx.nd.ones((3, 2))])
    names = list(exe.output_dict)
    return list(exe.arg_dict), exe.grad_dict["a"], exe.grad_dict["b"], len(names)


def requests(mx):
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    results = []
    for req in ("write", "add", ["add", "null"], {"b": "add"}):
        grads = [mx.nd.ones((2, 2)), mx.nd.ones((2, 2))]
        exe = (a * b).bind(
            mx.cpu(), [numbers(mx, 2, 2), numbers(mx, 2, 2) + 1], grads, grad_req=req
        )
        for _ in range(2):
            exe.forward(is_train=True)
            exe.backward(mx.nd.ones((2, 2)))
        results.append(grads)
    return results


def arrays_changed_in_place(mx):
    a = mx.sym.Variable("a")
    x, g = mx.nd.ones((2,)), mx.nd.zeros((2,))
    exe = (a**3).bind(mx.cpu(), [x], [g])
    held = exe.outputs[0]
    exe.forward()
    first = held.asnumpy().tolist()
    x[:] = 2
    exe.forward()
    second = held.asnumpy().tolist()
    exe.arg_dict["a"][:] = 3
    exe.forward(is_train=False)
    exe.backward(mx.nd.ones((2,)))  # also after a call in prediction
    return first, second, exe.forward(a=mx.nd.ones((2,)) * 4), x, g


def one_array_for_two_arguments(mx):
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    x, g = numbers(mx, 3), mx.nd.zeros((3,))
    exe = (a * 2 + b * 5).bind(mx.cpu(), [x, x], [g, g], grad_req="add")
    exe.forward(is_train=True)
    exe.backward(mx.nd.ones((3,)))
    return exe.outputs, g


def simple_bind_makes_arrays(mx):
    exe = perceptron(mx).simple_bind(
        mx.cpu(), data=(3, 5), grad_req={"h_weight": "write", "out_bias": "add"}
    )
    return (
        [(name, a.shape, np.dtype(a.dtype).name, a) for name, a in exe.arg_dict.items()],
        [(name, g) for name, g in exe.grad_dict.items()],
        exe.outputs[0].shape,
    )


def simple_bind_in_other_types(mx):
    exe = perceptron(mx).simple_bind(
        mx.cpu(), data=(3, 5), type_dict={"data": "float64"}, unknown=(3,)
    )
    exe.forward(is_train=True)
    return [np.dtype(a.dtype).name for a in exe.arg_arrays + exe.grad_arrays + exe.outputs]


def training_by_hand(mx):
    """Ten steps of gradient descent on a squared error, all written out."""
    label = mx.sym.Variable("label")
    loss = mx.sym.make_loss(mx.sym.square(perceptron(mx) - label))
    exe = loss.simple_bind(mx.cpu(), data=(6, 5), label=(6, 2))
    for name, array in exe.arg_dict.items():
        array[:] = numbers(mx, *array.shape, scale=8 if "weight" in name else 16)
    losses = []
    for _ in range(10):
        losses.append(exe.forward(is_train=True)[0].mean())
        exe.backward()
        for name, array in exe.arg_dict.items():
            if name not in ("data", "label"):
                array[:] = array - 0.02 * exe.grad_dict[name]
    return losses, exe.arg_dict


def heads_with_and_without_gradients(mx):
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    group = mx.sym.Group([mx.sym.make_loss(a * b), mx.sym.BlockGrad(a * 3)])
    arrays = [numbers(mx, 2, 2), numbers(mx, 2, 2) + 1]
    exe = group.bind(mx.cpu(), arrays, [mx.nd.zeros((2, 2)), mx.nd.zeros((2, 2))])
    out = exe.forward(is_train=True)
    exe.backward()
    return out, exe.grad_arrays


def reshaped(mx):
    exe = perceptron(mx).simple_bind(mx.cpu(), data=(4, 5))
    for array in exe.arg_arrays:
        array[:] = numbers(mx, *array.shape)
    small = exe.reshape(data=(2, 5))
    small.forward()
    large = exe.reshape(allow_up_sizing=True, data=(6, 5))
    narrow = exe.reshape(partial_shaping=True, data=(4, 3))
    exe.arg_dict["h_bias"][:] = 7
    return (
        small.arg_dict["data"],
        small.outputs,
        small.arg_dict["h_bias"],
        large.arg_dict["data"].shape,
        large.arg_dict["h_bias"],
        [a.shape for a in narrow.arg_arrays],
    )


def copied_parameters(mx):
    exe = perceptron(mx).simple_bind(mx.cpu(), data=(1, 2))
    given = {"h_weight": numbers(mx, 4, 2), "extra": numbers(mx, 3)}
    exe.copy_params_from(given, allow_extra_params=True)
    return exe.arg_dict["h_weight"]


def evaluated(mx):
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    x, y = numbers(mx, 2, 3), numbers(mx, 2, 3) + 1
    return (
        (a + b).eval(a=x, b=y),
        (a - b).eval(ctx=mx.cpu(), a=x, b=y),
        mx.sym.Group([a * b, a]).eval(a=x, b=y),
        mx.sym.ones((2, 2)).eval(),
        a.eval(a=x),
    )


# -- what a symbol knows ---------------------------------------------------------------
def shapes(mx):
    net = perceptron(mx)
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    return (
        net.infer_shape(data=(3, 5)),
        net.infer_shape(data=(3, 5), h_weight=(4, 5)),
        net.infer_shape(),
        net.infer_shape(data=(0, 5)),
        net.infer_shape_partial(),
        net.infer_shape_partial(data=(0, 5)),
        net.infer_shape_partial(h_weight=(4, 7)),
        (a + b).infer_shape(b=(2, 3)),
    )


def shapes_of_the_other_world(mx):
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="fc")
    total = mx.sym.Variable("a") + mx.sym.Variable("b")
    results = [
        total.infer_shape(a=()),
        total.infer_shape(a=(0, 3)),
        total.infer_shape_partial(a=(0, 3)),
    ]
    with mx.np_shape(True):
        results += [
            net.infer_shape_partial(),
            net.infer_shape_partial(x=(-1, 5)),
            net.infer_shape(x=(0, 5)),
            net.infer_shape(x=(-1, 5)),
            total.infer_shape(a=()),
            total.infer_shape(),
            mx.sym.Variable("q", shape=(0, -1)).infer_shape_partial(),
        ]
    return results


def types(mx):
    net = perceptron(mx)
    return (
        net.infer_type(data="float64"),
        net.infer_type(),
        net.infer_type_partial(),
        net.infer_type_partial(data=np.float16),
        mx.sym.Variable("x").astype("int32").infer_type_partial(),
        mx.sym.Variable("x").astype("int32").infer_type(x=np.float32),
    )


def inner_symbols(mx):
    net = perceptron(mx)
    inner = net.get_internals()
    return (
        inner.list_outputs(),
        inner["act_output"].name,
        inner[0].name,
        len(inner),
        inner["h_output"].list_arguments(),
        [s.name for s in inner],
        net.get_children().list_outputs(),
        net.get_children()[0].name,
        mx.sym.Variable("x").get_children(),
        repr(inner[1:3]),
        mx.sym.Group([net, inner[0]]).get_children().list_outputs(),
    )


def debug_text(mx):
    parts = mx.sym.split(mx.sym.Variable("x"), num_outputs=2, name="s")
    return perceptron(mx).debug_str(), (parts[0] * parts[1]).debug_str()


# -- names, attributes, composition ----------------------------------------------------
def names(mx):
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    made = [
        x + y,
        x + 1,
        1 + x,
        x - y,
        1 - x,
        x * y,
        x * 2,
        x / y,
        1 / x,
        x % 2,
        x**y,
        x**2,
        2**x,
        x == y,
        x == 1,
        x != y,
        x > y,
        x > 1,
        1 > x,
        x >= y,
        x < y,
        x <= 1,
        abs(x),
        mx.sym.relu(x),
        mx.sym.relu(x),
        mx.sym.relu(x, name="mine"),
        mx.sym.maximum(x, y),
        mx.sym.maximum(x, 2),
        mx.sym.random.uniform(shape=(2,)),
        mx.sym.arange(3),
        x.reshape((2, 3)),
        x.sum(),
        mx.sym.zeros_like(x),
    ]
    with mx.name.Prefix("my_"):
        made += [mx.sym.tanh(x), mx.sym.tanh(x, name="t"), mx.sym.Variable("v")]
        layer = mx.sym.FullyConnected(x, num_hidden=3)
    with mx.name.NameManager() as manager:
        made += [mx.sym.relu(x)]
        drawn = [manager.get(None, "a"), manager.get(None, "a"), manager.get("b", "a")]
    group = mx.sym.Group([x, y])
    return (
        [s.name for s in made],
        layer.list_arguments(),
        drawn,
        group.name,
        repr(group),
        repr(layer),
    )


def attributes(mx):
    data = mx.sym.Variable(
        "data",
        attr={"mood": "angry"},
        lr_mult=2,
        wd_mult=0.5,
        shape=(2, 3),
        dtype="float64",
        __mine__="a",
        init=mx.init.Zero(),
    )
    layer = mx.sym.FullyConnected(
        data, num_hidden=3, name="fc", lr_mult=3, attr={"__mood__": "so so", "wd_mult": "4"}
    )
    results = [
        data.list_attr(),
        layer.list_attr(),
        layer.attr("lr_mult"),
        layer.attr("nothing"),
        data.attr("mood"),
        data.attr("__lr_mult__"),
    ]
    inner = layer.get_internals()
    return results, [inner["fc_weight"].attr(k) for k in ("__mood__", "__lr_mult__")]


def attribute_scopes(mx):
    with mx.AttrScope(group="4", data="great"):
        data = mx.sym.Variable(
            "data", attr={"dtype": "data", "group": "1", "force_mirroring": "True"}, lr_mult=1
        )
        other = mx.sym.Variable("data2")
    with mx.attribute.AttrScope(__group__="4", __data__="great"):
        first = mx.sym.Activation(data, act_type="relu", name="act")
        with mx.AttrScope(__init_bias__="0.0", ctx_group="dev1", __data__="small"):
            second = mx.sym.FullyConnected(first, num_hidden=10, name="fc2")
    third, bias = second + 1, second.get_internals()["fc2_bias"]
    return (
        data.list_attr(),
        other.list_attr(),
        first.list_attr(),
        second.list_attr(),
        [third.attr("__group__"), bias.attr("__data__")],
    )


def composed(mx):
    part = mx.sym.FullyConnected(name="fc3", num_hidden=10)
    part = mx.sym.Activation(part, act_type="relu", name="act3")
    part = mx.sym.FullyConnected(part, name="fc4", num_hidden=20)
    whole = part(fc3_data=perceptron(mx), name="composed")
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    group = mx.sym.Group([x * 2, y * 2])(x=perceptron(mx))
    return (
        part.list_arguments(),
        whole.list_arguments(),
        whole.list_outputs(),
        whole.get_internals().list_outputs(),
        part().list_arguments(),
        part.name,
        whole.infer_shape(data=(2, 3))[1],
        group.list_arguments(),
    )


def files_and_copies(mx):
    net = perceptron(mx)
    group = mx.sym.Group([net, net.get_internals()["act_output"]])
    again = [
        mx.sym.load_json(group.tojson()),
        copy.copy(group),
        copy.deepcopy(group),
        pickle.loads(pickle.dumps(group)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        group.save(folder + "/group.json")
        again.append(mx.sym.load(folder + "/group.json"))
    return [(s.list_outputs(), s.list_arguments(), s.tojson() == group.tojson()) for s in again]


# -- autograd --------------------------------------------------------------------------
def functions_of_your_own(mx):
    states = []

    class Sigmoid(mx.autograd.Function):
        def forward(self, x):
            y = 1 / (1 + mx.nd.exp(-x))
            self.save_for_backward(y)
            states.append((mx.autograd.is_recording(), mx.autograd.is_training()))
            return y

        def backward(self, dy):
            (y,) = self.saved_tensors
            states.append((mx.autograd.is_recording(), mx.autograd.is_training()))
            return dy * y * (1 - y) * 2

    class Both(mx.autograd.Function):
        def forward(self, x, y):
            return x * y, mx.nd.array(np.tanh(y.asnumpy()))

        def backward(self, dx, dy):
            return dx * 3, dy + dx * 0 + 5

    x, y = numbers(mx, 2, 3), numbers(mx, 2, 3) + 1
    x.attach_grad()
    y.attach_grad()
    with mx.autograd.record():
        z = Sigmoid()(x * 2)
    z.backward()
    first = x.grad.copy()
    for _ in range(2):
        with mx.autograd.record():
            product, other = Both()(x, y)
            loss = product * product
        loss.backward()
    return z, first, states, product, other, x.grad, y.grad, Sigmoid()(x)


def gradients_on_request(mx):
    x = numbers(mx, 4) + 3
    x.attach_grad()
    with mx.autograd.record():
        y = x * x * mx.nd.sin(x)
    grads = [
        mx.autograd.grad(y, x, retain_graph=True),
        mx.autograd.grad(y, [x], head_grads=numbers(mx, 4), retain_graph=True),
    ]
    with mx.autograd.record():
        z = mx.nd.sin(x)
        first = mx.autograd.grad(z, x, create_graph=True, retain_graph=True)[0]
    first.backward()
    return grads, first, x.grad


def marked_variables(mx):
    x, g = numbers(mx, 2), mx.nd.zeros((2,))
    mx.autograd.mark_variables([x], [g], "add")
    for _ in range(2):
        with mx.autograd.record():
            y = x * x
        mx.autograd.backward([y], [mx.nd.array([1, 10])])
    return g, x.grad


def symbols_of_tapes(mx):
    x, y = numbers(mx, 1, 4), numbers(mx, 3, 4)
    x.attach_grad()
    y.attach_grad()
    with mx.autograd.record():
        z = mx.nd.FullyConnected(mx.nd.relu(x) * 2, y, no_bias=True, num_hidden=3)
    s = mx.autograd.get_symbol(z)
    return (
        len(s.list_arguments()),
        len(s.get_internals()),
        s.list_outputs()[0][:5],
        s.bind(mx.cpu(), [x, y]).forward(),
        z,
    )


def modes(mx):
    def now():
        return mx.autograd.is_recording(), mx.autograd.is_training()

    states = [now()]
    for scope in (
        mx.autograd.record(),
        mx.autograd.record(train_mode=False),
        mx.autograd.pause(),
        mx.autograd.train_mode(),
        mx.autograd.predict_mode(),
    ):
        with scope:
            states.append(now())
    with mx.autograd.record():
        with mx.autograd.pause(train_mode=True):
            states.append(now())
        with mx.autograd.predict_mode():
            states.append(now())
    states += [mx.autograd.set_recording(True), mx.autograd.set_training(True), now()]
    return [*states, mx.autograd.set_recording(False), mx.autograd.set_training(False)]


# -- summary ---------------------------------------------------------------------------
def summary(mx):
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="norm"), act_type="relu", name="act")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    net = mx.sym.Flatten(net, name="flat")
    net = mx.sym.FullyConnected(net, num_hidden=10, name="fc1") + mx.sym.FullyConnected(
        net, num_hidden=10, name="fc2", no_bias=True
    )
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        mx.viz.print_summary(net, shape={"data": (2, 1, 10, 10)})
        mx.visualization.print_summary(net, {"data": (2, 1, 10, 10)}, 60, [0.4, 0.6, 0.75, 1])
    return text.getvalue()


def training_by_softmax(mx):
    """Logistic regression as old tutorials write it: the loss is the last layer."""
    net = mx.sym.SoftmaxOutput(perceptron(mx), name="softmax")
    exe = net.simple_bind(mx.cpu(), data=(6, 5), softmax_label=(6,))
    for array in exe.arg_arrays:
        array[:] = numbers(mx, *array.shape)
    exe.arg_dict["softmax_label"][:] = mx.nd.array([0, 1, 0, 1, 1, 0])
    for _ in range(5):
        exe.forward(is_train=True)
        exe.backward()
        for name, grad in exe.grad_dict.items():
            if name not in ("data", "softmax_label"):
                exe.arg_dict[name][:] -= 0.1 * grad
    return exe.outputs, exe.arg_dict["out_weight"], exe.grad_dict["h_weight"]


def running_statistics(mx):
    net = mx.sym.BatchNorm(mx.sym.Variable("x"), name="bn", fix_gamma=False)
    exe = net.simple_bind(mx.cpu(), x=(6, 3))
    exe.arg_dict["x"][:] = numbers(mx, 6, 3)
    exe.arg_dict["bn_gamma"][:] = 2
    exe.aux_dict["bn_moving_var"][:] = 1
    before = exe.forward()[0].copy()
    for _ in range(3):
        exe.forward(is_train=True)
        exe.backward(numbers(mx, 6, 3))
    return (
        list(exe.aux_dict),
        before,
        exe.outputs,
        exe.aux_arrays,
        exe.grad_arrays,
        net.list_auxiliary_states(),
        net.infer_shape(x=(6, 3)),
        exe.forward(),
    )
