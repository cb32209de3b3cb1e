"""The chapter's function and net in PyTorch. A line with `# %%` begins a cell."""

# %% write: Write it and call it: define-by-run.
import torch
from torch import nn


def blend(x, y):
    left = x * y
    return torch.tanh(left) + left


net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
x, y = torch.tensor([[0.0, 1, 2]]), torch.tensor([[1.0, 1, 0.5]])
print(blend(x, y))
print(net(x).shape)

# %% trace: `torch.jit.script` compiles the function's source (TorchScript, since 2018).
scripted = torch.jit.script(blend)
print(type(scripted).__name__, scripted(x, y))

# %% trace: `torch.jit.trace` runs the function once and records each operation.
traced = torch.jit.trace(blend, (x, y))
print(type(traced).__name__, traced(x, y))

# %% trace: Both still work, but PyTorch now recommends something else.
import warnings

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    torch.jit.script(net)
print(said[0].category.__name__, said[0].message, sep=": ")

# %% trace: `torch.compile` reads bytecode at the first call (since PyTorch 2, 2023).
compiled = torch.compile(blend)
print(compiled(x, y))

# %% trace: `torch.export` captures a whole module as one graph, for use without Python.
class Blend(nn.Module):
    def forward(self, x, y):
        return blend(x, y)


exported = torch.export.export(Blend(), (x, y))
print(type(exported).__name__, exported.module()(x, y))

# %% steps: Define: one graph. Nothing is computed.
exported = torch.export.export(Blend(), (x, y))

# %% steps: Compile for this processor, into a file that runs without Python.
path = torch._inductor.aoti_compile_and_package(exported, package_path="blend.pt2")

# %% steps: Run.
print(torch._inductor.aoti_load_package(path)(x, y))

# %% look: The graph of `torch.jit.script`.
print(scripted.graph)

# %% look: The graph of `torch.jit.trace` contains shapes, because it ran on arrays.
print(traced.graph)

# %% look: `torch.export` returns a graph of ATen operators.
print(exported.graph)

# %% look: How many graphs does `torch.compile` build, and where does it break them?
report = torch._dynamo.explain(blend)(x, y)
print(report.graph_count, "graph,", report.graph_break_count, "breaks")


# %% print: In `torch.jit.script`, `print` is an operator: it prints each time.
@torch.jit.script
def talking(x):
    print("called with", x.shape)
    return x * 2


for _ in range(2):
    talking(x)


# %% print: `torch.jit.trace` runs Python only once.
def noisy(x):
    x = x + 1
    print("called with", type(x).__name__)
    return x * 2


traced_noisy = torch.jit.trace(noisy, x, check_trace=False)
for _ in range(2):
    traced_noisy(x)

# %% print: `torch.compile` ends its graph, lets Python print, and starts another graph.
compiled_noisy = torch.compile(noisy)
for _ in range(2):
    compiled_noisy(x)

# %% print: How many graphs are there now? (The call that counts them also prints.)
report = torch._dynamo.explain(noisy)(x)
print(report.graph_count, "graphs,", report.graph_break_count, "break")

# %% print: With `fullgraph=True`, the break is an error.
torch.compile(noisy, fullgraph=True)(x)

# %% number: `torch.jit.script` rejects a global Python number.
factor = 2


def scale(x):
    return x * factor


torch.jit.script(scale)

# %% number: `torch.jit.trace` keeps the value from the trace.
traced_scale = torch.jit.trace(scale, x)
factor = 100
print(traced_scale(x))

# %% number: `torch.compile` guards it, and recompiles after a change.
factor = 2
compiled_scale = torch.compile(scale)
print(compiled_scale(x))
factor = 100
print(compiled_scale(x))


# %% branch: `torch.jit.trace` warns, and keeps the branch it took.
def either(x):
    if x.sum() > 0:
        return x
    return -x


traced_either = torch.jit.trace(either, x)
print(traced_either(x), traced_either(-x))

# %% branch: `torch.jit.script` has branches in its graphs.
scripted_either = torch.jit.script(either)
print(scripted_either(x), scripted_either(-x))
print(*(node.kind() for node in scripted_either.graph.nodes()))

# %% branch: `torch.compile` with `fullgraph=True` raises an error.
torch.compile(either, fullgraph=True)(x)

# %% branch: Without it, the graph ends there, and Python decides.
torch._dynamo.reset()
compiled_either = torch.compile(either)
print(compiled_either(x), compiled_either(-x))


# %% branch: `torch.export` can't leave the decision to Python.
class Either(nn.Module):
    def forward(self, x):
        return either(x)


torch.export.export(Either(), (x,))

# %% branch: Its operator for a branch.
def both_ways(x):
    return torch.cond(x.sum() > 0, lambda x: x.clone(), lambda x: -x, (x,))


fast = torch.compile(both_ways, fullgraph=True)
print(fast(x), fast(-x))

# %% shape: Two rows instead of one: `torch.jit` accepts any shape.
two = torch.ones(2, 3)
print(scripted(two, two).shape, traced(two, two).shape)

# %% shape: `torch.compile` recompiles, the second time for any number of rows.
torch._dynamo.reset()
counter = torch._dynamo.testing.CompileCounter()
counting = torch.compile(blend, backend=counter)
for rows in (1, 2, 2, 7, 8, 9):
    counting(torch.ones(rows, 3), torch.ones(rows, 3))
    print(rows, "rows:", counter.frame_count, "graphs so far")

# %% shape: `torch.export` accepts only the example's shape.
exported.module()(two, two)

# %% shape: Unless you declare which axis may change.
rows = torch.export.Dim("rows")
flexible = torch.export.export(Blend(), (two, two), dynamic_shapes=({0: rows}, {0: rows}))
print(flexible.module()(torch.ones(5, 3), torch.ones(5, 3)).shape)

# %% save: `torch.jit.save` stores program and weights, which C++ can also load.
torch.jit.save(torch.jit.script(net), "net.pt")
again = torch.jit.load("net.pt")
print(type(again).__name__, torch.equal(again(x), net(x)))

# %% save: `torch.export.save` replaces it.
torch.export.save(torch.export.export(net, (x,)), "net.pt2")
again = torch.export.load("net.pt2").module()
print(type(again).__name__, torch.equal(again(x), net(x)))

# %% list: `torch.compile` records what Python did to the list, and repeats it at each call.
seen = []


def remember(x):
    seen.append(x)
    return x * 2


compiled_remember = torch.compile(remember)
for rows in (1, 2, 1, 2, 1):
    compiled_remember(torch.ones(rows, 3))
print(len(seen), *{type(value).__name__ for value in seen})


# %% loop: `torch.jit.script` has loops in its graphs.
def halve(x):
    while bool(x.max() > 1):
        x = x * 0.5
    return x


scripted_halve = torch.jit.script(halve)
print(scripted_halve(x), scripted_halve(50 * x))
print(*(node.kind() for node in scripted_halve.graph.nodes()))

# %% loop: `torch.compile` returns the right answer, but how many graphs does it build?
torch._dynamo.reset()
counter = torch._dynamo.testing.CompileCounter()
counting = torch.compile(halve, backend=counter)
print(counting(x), counting(50 * x), counter.frame_count)

# %% race: The tutorials' network, a batch of one, a thousand calls.
import timeit

mlp = nn.Sequential(
    nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2)
)
data = torch.randn(1, 512)


def time_of(f):
    """The least time of five, after two calls that may compile."""
    with torch.inference_mode():
        f(data), f(data)
        return min(timeit.repeat(lambda: f(data), number=1000, repeat=5))


eager_s = time_of(mlp)
frozen = torch.jit.freeze(torch.jit.script(mlp.eval()))
print(f"torch.jit.script: about {eager_s / time_of(frozen):.1f} times as fast as eager")
print(f"torch.compile: about {eager_s / time_of(torch.compile(mlp)):.1f} times as fast")
