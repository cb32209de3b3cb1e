"""Suggestions for names of PyTorch, and of arrays while tracing, in the error of a missing one.

Defines: `instead`, the error message; `HERE`, the table.

It's used only after an attribute lookup failed, so existing names have no overhead.
Not supported: whole PyTorch programs (the book has a page for PyTorch users).
"""

from minihybrid.core import hooks, nd
from minihybrid.core.block import Block
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.parameter import Parameter
from minihybrid.core.sym import NOT_YET, Symbol
from minihybrid.core.tracing import IMPERATIVE, is_tracing, user_line
from minihybrid.ops.infix import Value

DTYPES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64"}
DTYPES |= {"int": "int32", "short": "int16", "byte": "uint8", "bool": "bool"}

ARRAYS = {
    **{name: f"x.astype('{dtype}')" for name, dtype in DTYPES.items()},
    "add_": "x += y",
    "all": "x.min()",
    "any": "x.max()",
    "apply_": "an operator on the whole array, or nd.array(...) of NumPy's result",
    "bmm": "nd.batch_dot(x, y)",
    "chunk": "x.split(num_outputs, axis)",
    "clamp": "x.clip(a_min, a_max)",
    "clone": "x.copy()",
    "contiguous": "- arrays are always contiguous",
    "copy_": "x[:] = y",
    "cpu": "x.as_in_context(mx.cpu()), and x.asnumpy() for NumPy",
    "cuda": "x.as_in_context(mx.gpu())",
    "dim": "x.ndim",
    "div_": "x /= y",
    "expand": "x.broadcast_to(shape)",
    "expand_as": "x.broadcast_like(y)",
    "fill_": "x[:] = value",
    "gather": "x.pick(index, axis), or nd.gather_nd(x, indices)",
    "index_select": "x.take(indices, axis)",
    "is_cuda": "x.context",
    "masked_fill": "nd.where(mask, nd.full(x.shape, value), x)",
    "matmul": "nd.dot(x, y), or nd.batch_dot(x, y) for batches",
    "mm": "nd.dot(x, y)",
    "mul_": "x *= y",
    "ndimension": "x.ndim",
    "numel": "x.size",
    "numpy": "x.asnumpy()",
    "permute": "x.transpose(axes)",
    "pow_": "x[:] = x ** y",
    "requires_grad": "x.attach_grad() before, and x.grad after backward",
    "requires_grad_": "x.attach_grad()",
    "retain_grad": "x.attach_grad() before the array is computed with",
    "select": "x.slice_axis(axis, begin, end)",
    "sub_": "x -= y",
    "t": "x.T",
    "to": "x.as_in_context(ctx) for a device, x.astype(dtype) for a dtype",
    "tolist": "x.asnumpy().tolist()",
    "type_as": "x.astype(y.dtype)",
    "unsqueeze": "x.expand_dims(axis)",
    "view": "x.reshape(shape)",
    "view_as": "x.reshape_like(y)",
    "zero_": "x[:] = 0",
}
BLOCKS = {
    "add_module": "net.register_child(block, name)",
    "children": "net._children.values(), or a loop over a Sequential",
    "compile": "net.hybridize()",
    "cpu": "net.reset_ctx(mx.cpu())",
    "cuda": "net.reset_ctx(mx.gpu())",
    "double": "net.cast('float64')",
    "eval": "- outside of autograd.record() a net predicts",
    "float": "net.cast('float32')",
    "half": "net.cast('float16')",
    "load_state_dict": "net.load_parameters(filename)",
    "modules": "net.apply(function), which visits all blocks",
    "named_children": "net._children.items()",
    "named_modules": "net.apply(function), which visits all blocks",
    "named_parameters": "net.collect_params().items()",
    "parameters": "net.collect_params().values()",
    "register_buffer": "self.params.get_constant(name, value)",
    "register_parameter": "self.params.get(name, shape=shape)",
    "requires_grad_": "net.collect_params().setattr('grad_req', 'null') to freeze it",
    "state_dict": "net.save_parameters(filename), or net.collect_params()",
    "to": "net.reset_ctx(ctx) for a device, net.cast(dtype) for a dtype",
    "train": "- inside autograd.record() a net trains",
    "training": "autograd.is_training()",
    "zero_grad": "net.collect_params().zero_grad(); it is needed only with grad_req = 'add'",
}
PARAMETERS = {
    "device": "param.list_ctx()",
    "numel": "param.data().size",
    "numpy": "param.data().asnumpy()",
    "requires_grad": "param.grad_req, which is 'write', 'add' or 'null'",
    "requires_grad_": "param.grad_req = 'write', or 'null' to freeze it",
    "size": "param.shape",
}
OPTIMIZERS = {
    "load_state_dict": "trainer.load_states(filename)",
    "param_groups": "trainer.set_learning_rate(value), and lr_mult of each parameter",
    "state_dict": "trainer.save_states(filename)",
    "step": "trainer.step(batch_size) of gluon.Trainer(net.collect_params(), optimizer)",
    "zero_grad": "- backward overwrites gradients; with grad_req = 'add', "
    "net.collect_params().zero_grad()",
}
LAYERS = {
    "AdaptiveAvgPool2d": "nn.GlobalAvgPool2D()",
    "AvgPool2d": "nn.AvgPool2D()",
    "BatchNorm1d": "nn.BatchNorm()",
    "BatchNorm2d": "nn.BatchNorm()",
    "BCEWithLogitsLoss": "gluon.loss.SigmoidBCELoss()",
    "Conv1d": "nn.Conv1D(channels, kernel_size)",
    "Conv2d": "nn.Conv2D(channels, kernel_size)",
    "ConvTranspose2d": "nn.Conv2DTranspose(channels, kernel_size)",
    "CrossEntropyLoss": "gluon.loss.SoftmaxCrossEntropyLoss()",
    "Dropout2d": "nn.Dropout(rate, axes=(2, 3))",
    "GRU": "gluon.rnn.GRU(hidden_size)",
    "L1Loss": "gluon.loss.L1Loss()",
    "LSTM": "gluon.rnn.LSTM(hidden_size)",
    "Linear": "nn.Dense(units)",
    "LogSoftmax": "nd.log_softmax(x)",
    "MaxPool2d": "nn.MaxPool2D()",
    "MSELoss": "gluon.loss.L2Loss(), which is half of it",
    "Module": "nn.Block, or nn.HybridBlock, which can be hybridized",
    "ModuleList": "nn.Sequential(), whose layers are reached by their numbers",
    "Parameter": "gluon.Parameter(name, shape=shape), as an attribute of a block",
    "RNN": "gluon.rnn.RNN(hidden_size)",
    "ReLU": "nn.Activation('relu')",
    "Sigmoid": "nn.Activation('sigmoid')",
    "Softmax": "nd.softmax(x)",
    "Tanh": "nn.Activation('tanh')",
    "functional": "nd, whose operators are functions",
}
FUNCTIONS = {
    "bmm": "{F}.batch_dot",
    "cat": "{F}.concat(x, y, dim=axis)",
    "chunk": "{F}.split(x, num_outputs, axis)",
    "clamp": "{F}.clip(x, a_min, a_max)",
    "conv2d": "{F}.Convolution",
    "cross_entropy": "gluon.loss.SoftmaxCrossEntropyLoss()",
    "einsum": "mx.np.einsum",
    "gelu": "{F}.LeakyReLU(x, act_type='gelu')",
    "linear": "{F}.FullyConnected",
    "manual_seed": "mx.random.seed(number)",
    "masked_fill": "{F}.where(mask, value, x)",
    "matmul": "{F}.dot of two matrices, {F}.batch_dot of batches, or mx.np.matmul",
    "max_pool2d": "{F}.Pooling(x, kernel=kernel, pool_type='max')",
    "mm": "{F}.dot",
    "mse_loss": "gluon.loss.L2Loss(), which is half of it",
    "no_grad": "autograd.pause()",
    "numel": "x.size",
    "permute": "{F}.transpose(x, axes)",
    "rand": "{F}.random.uniform(shape=shape)",
    "randint": "{F}.random.randint(low, high, shape)",
    "randn": "{F}.random.normal(shape=shape)",
    "randperm": "{F}.random.shuffle({F}.arange(n))",
    "tensor": "nd.array(values)",
    "unsqueeze": "{F}.expand_dims(x, axis)",
    "view": "{F}.reshape(x, shape)",
}
NUMPY = {
    "bmm": "np.matmul(x, y)",
    "cat": "np.concatenate([x, y], axis)",
    "chunk": "np.array_split(x, number, axis)",
    "clamp": "np.clip(x, a_min, a_max)",
    "from_numpy": "np.array(values)",
    "gelu": "mx.npx.leaky_relu(x, act_type='gelu')",
    "mm": "np.dot(x, y)",
    "no_grad": "autograd.pause()",
    "permute": "np.transpose(x, axes)",
    "rand": "np.random.uniform(size=shape)",
    "randn": "np.random.normal(size=shape)",
    "relu": "mx.npx.relu(x)",
    "sigmoid": "mx.npx.sigmoid(x)",
    "softmax": "mx.npx.softmax(x)",
    "tensor": "np.array(values)",
    "unsqueeze": "np.expand_dims(x, axis)",
}
PACKAGE = {
    **{name: text.format(F="nd") for name, text in FUNCTIONS.items() if name != "view"},
    "Tensor": "nd.NDArray, made by nd.array(values)",
    "backends": "mx.runtime.Features()",
    "compile": "net.hybridize(), or mx.function(f)",
    "cuda": "mx.gpu()",
    "from_numpy": "nd.array(values)",
    "jit": "net.hybridize(), and net.export(path)",
    "load": "nd.load(filename)",
    "nn": "gluon.nn",
    "ones": "nd.ones(shape)",
    "optim": "gluon.Trainer(net.collect_params(), optimizer), or mx.optimizer",
    "save": "nd.save(filename, x)",
    "stack": "nd.stack(x, y, axis=axis)",
    "utils": "gluon.utils, and gluon.data for loaders",
    "zeros": "nd.zeros(shape)",
}
AUTOGRAD = {
    "detect_anomaly": "mx.mon.Monitor(interval)",
    "enable_grad": "autograd.record()",
    "no_grad": "autograd.pause()",
    "set_grad_enabled": "autograd.set_recording(is_recording)",
}
HERE = {  # kind -> PyTorch name -> our equivalent or, after "- ", why none is needed
    "array": ARRAYS,
    "block": BLOCKS,
    "parameter": PARAMETERS,
    "optimizer": OPTIMIZERS,
    "nn": LAYERS,
    "nd": FUNCTIONS,
    "np": NUMPY,
    "autograd": AUTOGRAD,
    "minihybrid": PACKAGE,
}


KINDS = {Block: "block", Parameter: "parameter", Value: "array"}  # all others are optimizers


HELD = "pass arrays as inputs, or hold them as constants (self.params.get_constant)"
TRACED = {"array": HELD, "from_numpy": HELD, "empty": "use F.zeros", "concatenate": "use F.concat"}


def while_tracing(owner, name):
    """Return the message that a name works on arrays only, or `None`."""
    is_method = hasattr(NDArray, name)
    if isinstance(owner, Symbol) and is_method:
        what, why = f"x.{name} on the Symbol '{owner.name}'", NOT_YET
        remedy = "read it outside of the block"
    elif (
        isinstance(owner, str) and owner == "sym" and is_tracing() and hasattr(nd, name) | is_method
    ):
        what, why = f"F.{name}", f"the block is traced, with F = mx.sym, and {NOT_YET}"
        remedy = "return x and convert the result" if is_method else "call it outside of the block"
        remedy = TRACED.get(name, remedy)
    else:
        return None
    return f"{what}{user_line()}: {why}; {remedy}, {IMPERATIVE}"


@hooks.instead.implement
def instead(owner, name):
    """Return the message that an object or namespace lacks a name, or `None`.

    >>> instead(Block(), "eval")
    "Block has no 'eval', as PyTorch has; it isn't needed: outside of autograd.record() a net \
predicts"
    """
    if message := while_tracing(owner, name):
        return message
    if isinstance(owner, str):
        title, kind = owner, "nd" if owner == "sym" else owner
    else:
        title = type(owner).__name__
        kind = next((k for parent, k in KINDS.items() if isinstance(owner, parent)), "optimizer")
    entry = HERE.get(kind, {}).get(name)
    if entry is None and kind in ("nd", "np") and hasattr(NDArray, name):
        part = f"the method; write x.{name}()"
        if not callable(getattr(NDArray, name)):
            part = f"the property; write x.{name}"
        return f"{title} has no function '{name}', but arrays have {part}"
    if entry is None:
        return None
    here = entry.format(F=title)
    remedy = f"it isn't needed: {here[2:]}" if here.startswith("- ") else f"use {here}"
    return f"{title} has no '{name}', as PyTorch has; {remedy}"


def __dir__():
    return own_names(globals())
