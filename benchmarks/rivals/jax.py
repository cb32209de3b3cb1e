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


def jit(net, x):
    f, params = net
    fast = jax.jit(f)
    return lambda: fast(params, x).block_until_ready()


def jit_frozen(net, x):
    f, params = net
    fast = jax.jit(lambda x: f(params, x))  # weights become constants of the program
    return lambda: fast(x).block_until_ready()


BUILD = {"mlp": mlp}
MODES = {"jit": jit, "jit, weights constant": jit_frozen}
to_numpy = np.asarray
