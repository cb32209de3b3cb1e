"""The chapter's function and net in TensorFlow. A line with `# %%` begins a cell."""

# %% write: Write it and call it: eager since TensorFlow 2.
import tensorflow as tf


def blend(x, y):
    left = x * y
    return tf.tanh(left) + left


net = tf.keras.Sequential([tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(2)])
x, y = tf.constant([[0.0, 1, 2]]), tf.constant([[1.0, 1, 0.5]])
print(blend(x, y))
print(net(x).shape)

# %% trace: `tf.function`: the first call traces, after AutoGraph has rewritten the source.
fast = tf.function(blend)
print(type(fast).__name__, fast(x, y))

# %% trace: The graph for one signature is called a concrete function.
concrete = fast.get_concrete_function(x, y)
print(concrete)

# %% trace: With `jit_compile=True`, XLA, JAX's compiler, generates kernels from the graph.
compiled = tf.function(blend, jit_compile=True)
print(compiled(x, y))

# %% steps: Define: in TensorFlow 1, every program looked like this.
v1 = tf.compat.v1
with tf.Graph().as_default() as graph:
    a, b = v1.placeholder(tf.float32, (1, 3)), v1.placeholder(tf.float32, (1, 3))
    result = blend(a, b)
print(result)

# %% steps: Compile: a session prepares the graph for its devices.
session = v1.Session(graph=graph)

# %% steps: Run: name the outputs, and feed the placeholders.
print(session.run(result, feed_dict={a: x.numpy(), b: y.numpy()}))

# %% look: The operators of the graph.
for op in concrete.graph.get_operations():
    print(op.type, op.name, [tensor.name for tensor in op.inputs])

# %% look: XLA's result: one kernel for the three operators (a fusion).
import re

text = compiled.experimental_get_compiler_ir(x, y)(stage="optimized_hlo")
print(re.sub(", metadata={.*}", "", text[text.index("%fused") :]))


# %% look: AutoGraph's input and output: a function with a branch, as it's run.
def either(x):
    if tf.reduce_sum(x) > 0:
        return x
    return -x


print(tf.autograph.to_code(either))


# %% print: `print` runs only while tracing.
@tf.function
def noisy(x):
    print("called with", x)
    return x * 2


for _ in range(2):
    noisy(x)

# %% print: `tf.print` is an operator, so it's part of the graph.
@tf.function
def talking(x):
    tf.print("called with", x)
    return x * 2


for _ in range(2):
    talking(x)

# %% number: A global Python number is read once.
factor = 2


@tf.function
def scale(x):
    return x * factor


print(scale(x))
factor = 100
print(scale(x))

# %% number: As an argument, each value gets its own graph, with a warning.
@tf.function
def scale_by(x, factor):
    print("tracing with", factor)
    return x * factor


for factor in range(5):
    scale_by(x, factor)

# %% number: A tensor is an input of the graph.
scale_by_tensor = tf.function(scale_by.python_function)
for factor in range(3):
    scale_by_tensor(x, tf.constant(float(factor)))

# %% branch: AutoGraph turns it into an operator that decides at run time.
fast_either = tf.function(either)
print(fast_either(x), fast_either(-x))
print([op.type for op in fast_either.get_concrete_function(x).graph.get_operations()])

# %% branch: Without AutoGraph, it's an error.
tf.function(either, autograph=False)(x)

# %% branch: AutoGraph requires both branches to return the same type.
@tf.function
def uneven(x):
    if tf.reduce_sum(x) > 0:
        y = x
    else:
        y = None
    return y


uneven(x)


# %% shape: Each new shape is traced.
@tf.function
def counted(x, y):
    print("tracing for", x.shape)
    return blend(x, y)


for rows in (1, 2, 2, 7):
    counted(tf.ones((rows, 3)), tf.ones((rows, 3)))


# %% shape: With `reduce_retracing=True`, the second trace leaves the changed axis open.
@tf.function(reduce_retracing=True)
def relaxed(x, y):
    print("tracing for", x.shape)
    return blend(x, y)


for rows in (1, 2, 2, 7):
    relaxed(tf.ones((rows, 3)), tf.ones((rows, 3)))

# %% shape: Or declare the shapes up front. Then all others raise an error.
spec = tf.TensorSpec((None, 3), tf.float32)
strict = tf.function(blend, input_signature=(spec, spec))
print(strict(tf.ones((5, 3)), tf.ones((5, 3))).shape)
strict(tf.ones((1, 4)), tf.ones((1, 4)))

# %% save: A module with weights and traced functions becomes a folder, the SavedModel.
from pathlib import Path


class Saved(tf.Module):
    def __init__(self, net):
        self.net = net

    @tf.function(input_signature=[tf.TensorSpec((None, 3), tf.float32)])
    def __call__(self, x):
        return self.net(x)


tf.saved_model.save(Saved(net), "net")
print(*sorted(path.name for path in Path("net").iterdir()))
again = tf.saved_model.load("net")
print(type(again).__name__, bool(tf.reduce_all(again(x) == net(x))))

# %% list: `tf.function` leaves symbols in the list, one per trace.
seen = []


@tf.function
def remember(x):
    seen.append(x)
    return x * 2


for rows in (1, 2, 1, 2, 1):
    remember(tf.ones((rows, 3)))
print(seen)


# %% loop: AutoGraph turns it into an operator.
@tf.function
def halve(x):
    while tf.reduce_max(x) > 1:
        x = x * 0.5
    return x


print(halve(x), halve(50 * x))
print([op.type for op in halve.get_concrete_function(x).graph.get_operations()])

# %% race: The tutorials' network, a batch of one, a thousand calls.
import timeit

mlp = tf.keras.Sequential(
    [tf.keras.layers.Dense(n, "relu") for n in (256, 128)] + [tf.keras.layers.Dense(2)]
)
data = tf.random.normal((1, 512))


def time_of(f):
    """The least time of five."""
    f(data)
    return min(timeit.repeat(lambda: f(data), number=1000, repeat=5))


eager_s = time_of(mlp)
print(f"tf.function: about {eager_s / time_of(tf.function(mlp)):.1f} times as fast as eager")
xla = tf.function(mlp, jit_compile=True)
print(f"with jit_compile=True: about {eager_s / time_of(xla):.1f} times as fast")
