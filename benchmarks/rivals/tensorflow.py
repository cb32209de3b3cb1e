"""TensorFlow, CPU build."""
import tensorflow as tf

VERSION = tf.__version__


def mlp(a):
    (w0, b0), (w1, b1), (w2, b2) = (
        (tf.Variable(a[f"weight{i}"].T.copy()), tf.Variable(a[f"bias{i}"]))
        for i in range(3))  # TensorFlow keeps its weights as (inputs, outputs)

    def net(x):
        h = tf.nn.relu(x @ w0 + b0)
        h = tf.nn.relu(h @ w1 + b1)
        return h @ w2 + b2

    return net, tf.constant(a["data"])


def mode(wrap):
    def prepare(net, x):
        fast = wrap(net)
        return lambda: fast(x)
    return prepare


BUILD = {"mlp": mlp}
MODES = {
    "eager": mode(lambda net: net),
    "function": mode(tf.function),
    "function, XLA": mode(tf.function(jit_compile=True)),
}


def to_numpy(result):
    return result.numpy()
