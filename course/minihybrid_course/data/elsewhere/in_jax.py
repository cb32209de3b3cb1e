"""The chapter's function and net in JAX. A line with `# %%` begins a cell."""

# %% write: Functions without side effects. A network is also a function of its weights.
import jax
import jax.numpy as jnp


def blend(x, y):
    left = x * y
    return jnp.tanh(left) + left


def net(weights, x):
    (w0, b0), (w1, b1) = weights
    return jax.nn.relu(x @ w0 + b0) @ w1 + b1


def dense(key, n_in, n_out):
    return jax.random.normal(key, (n_in, n_out)), jnp.zeros(n_out)


first, second = jax.random.split(jax.random.key(1))
weights = dense(first, 3, 4), dense(second, 4, 2)
x, y = jnp.array([[0.0, 1, 2]]), jnp.array([[1.0, 1, 0.5]])
print(blend(x, y))
print(net(weights, x).shape)

# %% trace: `jax.jit`: the first call traces, and XLA compiles.
fast = jax.jit(blend)
print(type(fast).__name__, fast(x, y))

# %% steps: Define: the function runs once, on tracers.
traced = fast.trace(x, y)
lowered = traced.lower()
print(type(traced).__name__, type(lowered).__name__)

# %% steps: Compile for this processor, these shapes and dtypes.
compiled = lowered.compile()
print(type(compiled).__name__)

# %% steps: Run. Other shapes raise an error.
print(compiled(x, y))
compiled(jnp.ones((2, 3)), jnp.ones((2, 3)))

# %% look: `jax.make_jaxpr`: the graph before any pass, called a jaxpr.
print(jax.make_jaxpr(blend)(x, y))

# %% look: The same in StableHLO, XLA's input language.
print(lowered.as_text())

# %% look: XLA's result: one kernel for the three operators (a fusion).
import re

text = compiled.as_text()
print(re.sub(", metadata={.*}", "", text[text.index("%fused") :]))


# %% print: `print` runs only while tracing.
@jax.jit
def noisy(x):
    print("called with", x)
    return x * 2


for _ in range(2):
    noisy(x)


# %% print: `jax.debug.print` is part of the graph.
@jax.jit
def talking(x):
    jax.debug.print("called with {}", x)
    return x * 2


for _ in range(2):
    talking(x).block_until_ready()
jax.effects_barrier()

# %% number: A global Python number is read once.
factor = 2


@jax.jit
def scale(x):
    return x * factor


print(scale(x))
factor = 100
print(scale(x))


# %% number: As an argument, it's an input of the graph.
@jax.jit
def scale_by(x, factor):
    print("tracing with", factor)
    return x * factor


print(scale_by(x, 2), scale_by(x, 100))

# %% number: Unless you declare it static: then each value gets its own graph.
static = jax.jit(scale_by.__wrapped__, static_argnames="factor")
print(static(x, factor=2), static(x, factor=100))


# %% branch: A branch on data is an error, which suggests what to do.
@jax.jit
def either(x):
    if x.sum() > 0:
        return x
    return -x


either(x)


# %% branch: The operator for a branch. Only one of the two functions runs.
@jax.jit
def both_ways(x):
    return jax.lax.cond(x.sum() > 0, lambda x: x, lambda x: -x, x)


print(both_ways(x), both_ways(-x))


# %% shape: Each new shape is traced and compiled.
@jax.jit
def counted(x, y):
    print("tracing for", x.shape)
    return blend(x, y)


for rows in (1, 2, 2, 7):
    counted(jnp.ones((rows, 3)), jnp.ones((rows, 3)))

# %% shape: `jax.export` can leave an axis open.
from jax import export

rows = jax.ShapeDtypeStruct(export.symbolic_shape("rows, 3"), x.dtype)
flexible = export.export(fast)(rows, rows)
print(flexible.in_avals)
print(flexible.call(jnp.ones((5, 3)), jnp.ones((5, 3))).shape)

# %% save: `jax.export` writes the program. You save the weights separately.
from pathlib import Path

exported = export.export(jax.jit(net))(weights, x)
Path("net.jax").write_bytes(exported.serialize())
again = export.deserialize(Path("net.jax").read_bytes())
print(type(again).__name__, (again.call(weights, x) == net(weights, x)).all())

# %% save: With the weights as constants, the file contains the whole network.
frozen = export.export(jax.jit(lambda x: net(weights, x)))(x)
print(len(frozen.in_avals), "input,", frozen.platforms)

# %% list: `jax.jit` leaves useless tracers in the list, one per trace.
seen = []


@jax.jit
def remember(x):
    seen.append(x)
    return x * 2


for rows in (1, 2, 1, 2, 1):
    remember(jnp.ones((rows, 3)))
print(seen)
seen[0] + 1


# %% loop: As written, it raises an error.
def halve(x):
    while x.max() > 1:
        x = x * 0.5
    return x


jax.jit(halve)(x)


# %% loop: The operator for a loop takes the condition and the body as functions.
@jax.jit
def halve_too(x):
    return jax.lax.while_loop(lambda x: x.max() > 1, lambda x: x * 0.5, x)


print(halve_too(x), halve_too(50 * x))

# %% race: The tutorials' network, a batch of one, a thousand calls.
import timeit

keys = jax.random.split(jax.random.key(2), 4)
layers = [dense(key, *sizes) for key, sizes in zip(keys, [(512, 256), (256, 128), (128, 2)])]
data = jax.random.normal(keys[3], (1, 512))


def mlp(layers, x):
    *hidden, (last_w, last_b) = layers
    for w, b in hidden:
        x = jax.nn.relu(x @ w + b)
    return x @ last_w + last_b


def time_of(f):
    """The least time of five."""
    f(layers, data).block_until_ready()
    call = lambda: f(layers, data).block_until_ready()
    return min(timeit.repeat(call, number=1000, repeat=5))


eager_s = time_of(mlp)
print(f"jax.jit: about {eager_s / time_of(jax.jit(mlp)):.1f} times as fast as eager")
