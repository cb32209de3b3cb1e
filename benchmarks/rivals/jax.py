"""JAX on the CPU."""
import jax
import jax.numpy as jnp
import numpy as np

VERSION = jax.__version__


def mlp(a):
    # JAX's own layers keep weights as (inputs, outputs); the other way is slower.
    params = [(jnp.asarray(a[f"weight{i}"].T), jnp.asarray(a[f"bias{i}"]))
              for i in range(3)]

    def net(params, x):
        (w0, b0), (w1, b1), (w2, b2) = params
        h = jax.nn.relu(x @ w0 + b0)
        h = jax.nn.relu(h @ w1 + b1)
        return h @ w2 + b2

    return (net, params), jnp.asarray(a["data"])


def lenet(a):
    params = [(jnp.asarray(a[f"weight{i}"]), jnp.asarray(a[f"bias{i}"]))
              for i in range(5)]

    def net(params, x):
        for (w, b), pad in zip(params[:2], ("SAME", "VALID"), strict=True):
            x = jax.lax.conv(x, w, (1, 1), pad) + b[:, None, None]
            x = jax.lax.reduce_window(
                jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2),
                "VALID")
        x = x.reshape(len(x), -1)
        for i, (w, b) in enumerate(params[2:]):
            x = x @ w.T + b
            x = jax.nn.relu(x) if i < 2 else x
        return x

    return (net, params), jnp.asarray(a["data"])


def train_lenet(a):
    net, x = lenet(a)
    return net, (x, jnp.asarray(a["label"], jnp.int32))


def trained_jit(net, data):
    f, params = net
    x, label = data

    def losses(params):
        logits = jax.nn.log_softmax(f(params, x))
        each = -logits[jnp.arange(len(label)), label]
        return each.mean(), each

    @jax.jit
    def step(params):
        (_, each), grads = jax.value_and_grad(losses, has_aux=True)(params)
        return each, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    def call():
        nonlocal params
        each, params = step(params)
        jax.block_until_ready(params)
        return each, params[0][0], params[4][0]

    return call


def jit(net, x):
    f, params = net
    fast = jax.jit(f)
    return lambda: fast(params, x).block_until_ready()


def jit_frozen(net, x):
    f, params = net
    fast = jax.jit(lambda x: f(params, x))  # weights become constants of the program
    return lambda: fast(x).block_until_ready()


BUILD = {"mlp": mlp, "lenet": lenet, "train_lenet": train_lenet}
MODES = {"jit": jit, "jit, weights constant": jit_frozen}
TRAIN = {"jit": trained_jit}
to_numpy = np.asarray
