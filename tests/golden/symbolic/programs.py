"""Small programs in the symbolic style, written for MXNet and run on both engines.

Each takes the package (`mxnet` or `minihybrid`) and returns what it found, as lists,
numbers and text; `answers.json` holds what MXNet found.
"""
import numpy as np


def numbers(mx, *shape, scale=4):
    """The same numbers in every run, small enough to be exact in float32."""
    count = int(np.prod(shape))
    return mx.nd.array((np.arange(count) * 7 % 11 - 5).reshape(shape) / scale)


def told(value):
    """A result as JSON can hold it."""
    if hasattr(value, "asnumpy"):
        return np.round(value.asnumpy().astype("float64"), 5).tolist()
    if isinstance(value, dict):
        return {key: told(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [told(v) for v in value]
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
    arrays = {"b": numbers(mx, 3, 2) + 2, "a": numbers(mx, 3, 2),
              "unused": numbers(mx, 1)}
    exe = (b / (a * a + 1)).bind(mx.cpu(), arrays, {"a": mx.nd.zeros((3, 2))})
    exe.forward(is_train=True)
    exe.backward([mx.nd.ones((3, 2))])
    names = list(exe.output_dict)
    return list(exe.arg_dict), exe.grad_dict["a"], exe.grad_dict["b"], len(names)


def requests(mx):
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    found = []
    for req in ("write", "add", ["add", "null"], {"b": "add"}):
        grads = [mx.nd.ones((2, 2)), mx.nd.ones((2, 2))]
        exe = (a * b).bind(mx.cpu(), [numbers(mx, 2, 2), numbers(mx, 2, 2) + 1], grads,
                           grad_req=req)
        for _ in range(2):
            exe.forward(is_train=True)
            exe.backward(mx.nd.ones((2, 2)))
        found.append(grads)
    return found


def arrays_changed_in_place(mx):
    a = mx.sym.Variable("a")
    x, g = mx.nd.ones((2,)), mx.nd.zeros((2,))
    exe = (a ** 3).bind(mx.cpu(), [x], [g])
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
    exe = perceptron(mx).simple_bind(mx.cpu(), data=(3, 5), grad_req={
        "h_weight": "write", "out_bias": "add"})
    return ([(name, a.shape, np.dtype(a.dtype).name, a)
             for name, a in exe.arg_dict.items()],
            [(name, g) for name, g in exe.grad_dict.items()], exe.outputs[0].shape)


def simple_bind_in_other_types(mx):
    exe = perceptron(mx).simple_bind(mx.cpu(), data=(3, 5),
                                     type_dict={"data": "float64"}, unknown=(3,))
    exe.forward(is_train=True)
    return [np.dtype(a.dtype).name for a in
            exe.arg_arrays + exe.grad_arrays + exe.outputs]


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
    return (small.arg_dict["data"], small.outputs, small.arg_dict["h_bias"],
            large.arg_dict["data"].shape, large.arg_dict["h_bias"],
            [a.shape for a in narrow.arg_arrays])


def copied_parameters(mx):
    exe = perceptron(mx).simple_bind(mx.cpu(), data=(1, 2))
    given = {"h_weight": numbers(mx, 4, 2), "extra": numbers(mx, 3)}
    exe.copy_params_from(given, allow_extra_params=True)
    return exe.arg_dict["h_weight"]


def evaluated(mx):
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    x, y = numbers(mx, 2, 3), numbers(mx, 2, 3) + 1
    return ((a + b).eval(a=x, b=y), (a - b).eval(ctx=mx.cpu(), a=x, b=y),
            mx.sym.Group([a * b, a]).eval(a=x, b=y), mx.sym.ones((2, 2)).eval(),
            a.eval(a=x))


# -- what a symbol knows ---------------------------------------------------------------
def shapes(mx):
    net = perceptron(mx)
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    return (net.infer_shape(data=(3, 5)), net.infer_shape(data=(3, 5), h_weight=(4, 5)),
            net.infer_shape(), net.infer_shape(data=(0, 5)),
            net.infer_shape_partial(), net.infer_shape_partial(data=(0, 5)),
            net.infer_shape_partial(h_weight=(4, 7)), (a + b).infer_shape(b=(2, 3)))


def types(mx):
    net = perceptron(mx)
    return (net.infer_type(data="float64"), net.infer_type(),
            net.infer_type_partial(), net.infer_type_partial(data=np.float16),
            mx.sym.Variable("x").astype("int32").infer_type_partial(),
            mx.sym.Variable("x").astype("int32").infer_type(x=np.float32))


def inner_symbols(mx):
    net = perceptron(mx)
    inner = net.get_internals()
    return (inner.list_outputs(), inner["act_output"].name, inner[0].name, len(inner),
            inner["h_output"].list_arguments(), [s.name for s in inner],
            net.get_children().list_outputs(), net.get_children()[0].name,
            mx.sym.Variable("x").get_children(), repr(inner[1:3]),
            mx.sym.Group([net, inner[0]]).get_children().list_outputs())


def debug_text(mx):
    parts = mx.sym.split(mx.sym.Variable("x"), num_outputs=2, name="s")
    return perceptron(mx).debug_str(), (parts[0] * parts[1]).debug_str()
