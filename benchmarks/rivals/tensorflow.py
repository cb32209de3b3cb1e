"""TensorFlow, CPU build. Its convolutions take (batch, height, width, channels)."""

from functools import partial

import numpy as np
import tensorflow as tf
import walks

VERSION, KERNELS = tf.__version__, "Eigen, oneDNN"
TO_HWIO = (2, 3, 1, 0)  # of a convolution's weights
TO_OIHW = (3, 2, 0, 1)


def constants(a, *names):
    return tuple(tf.constant(a[name]) for name in names)


def pictures(a):
    return tf.constant(a["data"].transpose(0, 2, 3, 1))


def mlp(a):
    # TensorFlow keeps its weights as (inputs, outputs).
    (w0, b0), (w1, b1), (w2, b2) = (
        (tf.constant(a[f"weight{i}"].T), tf.constant(a[f"bias{i}"])) for i in range(3)
    )

    def net(x):
        h = tf.nn.relu(x @ w0 + b0)
        h = tf.nn.relu(h @ w1 + b1)
        return h @ w2 + b2

    return net, constants(a, "data")


def lenet(a, keep=tf.constant):
    weights = [a[f"weight{i}"] for i in range(5)]
    first_dense = weights[2].reshape(120, 16, 5, 5).transpose(TO_HWIO)
    weights = [
        keep(w)
        for w in (
            weights[0].transpose(TO_HWIO),
            weights[1].transpose(TO_HWIO),
            first_dense.reshape(400, 120),
            weights[3].T,
            weights[4].T,
        )
    ]
    biases = [keep(a[f"bias{i}"]) for i in range(5)]

    def net(x):
        for i, padding in ((0, "SAME"), (1, "VALID")):
            x = tf.nn.conv2d(x, weights[i], 1, padding)
            x = tf.nn.relu(tf.nn.bias_add(x, biases[i]))
            x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.reshape(x, (len(a["data"]), 400))
        for i in (2, 3, 4):
            x = tf.nn.bias_add(x @ weights[i], biases[i])
            x = tf.nn.relu(x) if i < 4 else x
        return x

    net.weights, net.biases = weights, biases
    return net, (pictures(a),)


def train_lenet(a):
    net, (x,) = lenet(a, tf.Variable)
    return net, (x, tf.constant(a["label"].astype("int32")))


def layer_norm(a):
    gamma, beta = constants(a, "gamma", "beta")

    def net(x):
        mean, variance = tf.nn.moments(x, axes=[1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-5)

    return net, constants(a, "data")


class Ops(walks.Named):
    """The operators of ResNet-18; channels are the last axis."""

    def conv(self, x, w, stride, groups):
        pad = [w.shape[0] // 2] * 2
        return tf.nn.conv2d(x, w, stride, [[0, 0], pad, pad, [0, 0]])

    def norm(self, x, *weights):
        norm = tf.compat.v1.nn.fused_batch_norm
        return norm(x, *weights, walks.EPSILON, is_training=False)[0]

    relu = staticmethod(tf.nn.relu)
    add = staticmethod(tf.add)

    def max_pool(self, x):  # XLA's cannot pad; zeros will do, the numbers come from relu
        x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        return tf.nn.max_pool2d(x, 3, 2, "VALID")

    def mean(self, x):
        return tf.reduce_mean(x, axis=(1, 2))

    def dense(self, x, w, bias):
        return tf.linalg.matmul(x, w, transpose_b=True) + bias


def walk(net, a):
    ops = Ops(
        {
            name: tf.constant(v.transpose(TO_HWIO) if v.ndim == 4 else v)
            for name, v in a.items()
            if name != "data"
        }
    )
    return partial(ops.walk, net), (pictures(a),)


def function(f, *names):
    return lambda a: (f, constants(a, *names))


def mode(**options):
    def prepare(net, data):
        fast = tf.function(net, **options)
        return lambda: fast(*data)

    return prepare


def trained(**options):
    """A mode of training: a step of SGD a call."""

    def prepare(net, data):
        parameters = net.weights + net.biases

        @tf.function(**options)
        def step(x, label):
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(label, net(x))
                loss = tf.reduce_mean(losses)
            for p, g in zip(parameters, tape.gradient(loss, parameters), strict=True):
                p.assign_sub(0.1 * g)
            return losses

        first, *_, last = net.weights
        return lambda: (
            step(*data),
            lambda: np.transpose(first, TO_OIHW),
            lambda: np.transpose(last),
        )

    return prepare


BUILD = {
    "mlp": mlp,
    "lenet": lenet,
    "train_lenet": train_lenet,
    "plain": function(lambda a, b, c: a * b + c, *"abc"),
    "elementwise": function(lambda a, b, c: tf.tanh(a * b + c) * a - tf.exp(-c * c), *"abc"),
    "softmax": function(tf.nn.softmax, "data"),
    "layer_norm": layer_norm,
    "resnet18": partial(walk, "resnet18"),
}
MODES = {"function": mode(), "function, XLA": mode(jit_compile=True)}
TRAIN = {"function": trained(), "function, XLA": trained(jit_compile=True)}


def to_numpy(result):
    """Weights come as functions, because they are turned to our order only here."""
    return result() if callable(result) else result.numpy()
