"""What is imported when it is first used, and that nothing is lost by it."""

import importlib
import os
import subprocess
import sys

import pytest
from marks import external
from reading_order import READING_ORDER

import minihybrid as mx
from minihybrid import registrations
from minihybrid.core import hooks, lazy
from minihybrid.core.formats import FORMATS
from minihybrid.core.hooks import FACES, INITIALIZERS, WITHOUT_SCIPY, Hook
from minihybrid.core.targets import TARGETS
from minihybrid.gluon import init
from minihybrid.ops import OPS

# What a program imports, stage by stage: the package, an array, a net, its first eager
# call, its first hybridized call, a training step. Each row: the program, the most modules
# of this package, and which of `OURS` it needs. Each file of operators, such as that of
# int8, is one more in all of them.
NET = """
from minihybrid import autograd, gluon, nd
net, x = gluon.nn.Dense(2), nd.ones((2, 3))
net.initialize()
net(x)
"""
ON_NUMPY = f"{NET}net.hybridize(backend='numpy')\nnet(x)\n"
TRAINED = f"{ON_NUMPY}with autograd.record():\n    y = net(x)\ny.backward()\n"
COMPILED = f"{NET}net.hybridize()\nnet(x)\n"
STAGES = {
    "import": ("import minihybrid", 16, ""),
    "array": ("from minihybrid import nd; nd.ones((2, 3)) + 1", 80, ""),
    "gluon": ("from minihybrid import gluon", 109, "gluon"),
    "layer": ("from minihybrid.gluon import nn; nn.Dense(2)", 115, "gluon"),
    "eager call": (NET, 118, "gluon runtime"),
    "NumPy's plan": (ON_NUMPY, 123, "gluon runtime"),
    "training": (TRAINED, 123, "gluon runtime"),
    "compiled plan": (COMPILED, 144, "gluon runtime codegen passes"),
}
OURS = (
    "codegen formats gluon gluon.metric gluon.optimizer mxnet.io np passes runtime simt view"
).split()
OTHERS = (
    "concurrent difflib email html json llvmlite numba numpy.random onnx scipy subprocess".split()
)


def read_by(code):
    """The modules that a program reads; what only stands for one has no specification."""
    code += "\nimport sys\nread = sys.modules.items()"
    code += "\nprint(*(name for name, m in read if getattr(m, '__spec__', None)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_program_imports_what_it_uses(stage):
    """Counts, not times: those are in benchmarks/imports.py."""
    code, most, needed = STAGES[stage]
    read = read_by(code)
    own = [m for m in read if m.startswith("minihybrid.")]
    assert most - 30 <= len(own) <= most, own
    unused = {f"minihybrid.{name}" for name in OURS if name not in needed.split()}
    unused.add("minihybrid_course")
    unused.update(OTHERS if stage != "compiled plan" else ())  # the compiler needs some
    assert unused.isdisjoint(read), unused & {*read}


# The largest array that NumPy makes for modules of this package while they are imported.
LARGEST = """
import sys
import numpy as np

largest = 0

def watched(make):
    def made(*args, **kwargs):
        global largest
        out = make(*args, **kwargs)
        largest = max(largest, out.nbytes)
        return out
    return made

for name in ("arange", "empty", "full", "ones", "zeros"):
    setattr(np, name, watched(getattr(np, name)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["", "np.empty(2**25, np.int8)\n"])
def test_an_import_makes_no_large_array(planted):
    code = f"{LARGEST}from minihybrid import gluon, nd, np as _\n{planted}print(largest)"
    assert (int(read_by(code)[0]) <= 2**16) == (not planted)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape, result, n_requests",
    [((64, 64), "x + 1", 0), ((256, 256), "x + 1", 1), ((256, 1), "nd.broadcast_mul(x, y)", 1)],
)
def test_the_first_large_result_asks_the_c_library_to_keep_memory(shape, result, n_requests):
    code = f"from minihybrid import nd\nx, y = nd.ones({shape}), nd.ones({shape[::-1]})\n"
    code += f"for _ in range(3): {result}\n"
    code += "from minihybrid.ops.eager_cache import keep_freed_memory\n"
    assert int(read_by(f"{code}print(keep_freed_memory.cache_info().misses)")[0]) == n_requests


@pytest.mark.slow
def test_what_is_used_is_read():
    """Planted: the list above would say nothing of names that nobody has."""
    uses = "mx.nd.random.seed(1), mx.viz, mx.onnx.export_model, mx.course, mx.io, mx.metric, "
    uses += "mx.np, mx.gluon.Trainer, mx.gluon.nn.Dense(2).hybridize(), mx.explain, mx.gluon.metric"
    read = read_by(f"import minihybrid as mx\n{uses}, mx.runtime.launch")
    assert {f"minihybrid.{name}" for name in OURS} <= set(read)


@pytest.fixture(scope="module")
def everything():
    """All modules are read."""
    for module in READING_ORDER[:-1]:
        importlib.import_module(f"minihybrid.{module}")


def test_each_hook_has_the_module_that_brings_it(everything):
    brought = {
        name: hook.fetch().__module__.removeprefix("minihybrid.")
        for name, hook in vars(hooks).items()
        if isinstance(hook, Hook)
    }
    assert brought == {
        name: m for m, names in registrations.HOOKS.items() for name in names.split()
    }


def test_the_tables_have_what_modules_enter(everything):
    """Whoever enters a name into a table says in `later` which module does."""
    assert {face: set(names) for face, names in FACES.items()} == {
        face: set(names) for face, names in registrations.NAMESPACES.items()
    }
    assert list(TARGETS) == list(registrations.RUN) and list(FORMATS) == list(registrations.WRITERS)
    assert set(WITHOUT_SCIPY) == set(registrations.SPECIAL)
    kinds = [k for k in vars(init).values() if getattr(k, "__module__", "") == init.__name__]
    simple = {k.__name__.lower() for k in kinds if isinstance(k, type)} - {"mixed", "load"}
    assert simple | {"gaussian"} == set(registrations.INITIAL) < set(INITIALIZERS)
    assert all(TARGETS[name] is lazy.resolve(road) for name, road in registrations.RUN.items())


ASKED = """
import sys
from minihybrid.formats.legacy import operator_of
from minihybrid.ops import OPS
print([name for name in sys.argv[1:] if operator_of(name, OPS) is None])
"""


@pytest.mark.slow
def test_a_file_finds_operators_of_modules_that_were_not_read(everything):
    """Each name in its own process would be the same: only np's are read later."""
    assert "_npi_diff" in OPS
    for names in (sorted(OPS), ["_npi_diff", "_no_such"]):
        run = [sys.executable, "-c", ASKED, *names]
        done = subprocess.run(run, capture_output=True, check=True, text=True)
        assert done.stdout == f"{[name for name in names if name not in OPS]}\n"


@pytest.mark.parametrize("package", [mx, mx.gluon, mx.onnx], ids=lambda p: p.__name__)
def test_roads_lead_to_what_was_read_before(package):
    order = READING_ORDER.index(package.__name__.partition(".")[2] or "__init__")
    for name, road in package.LATER.items():
        module = road.partition(":")[0]
        assert module.startswith("minihybrid_course") or READING_ORDER.index(module) < order, road
        assert getattr(package, name) is lazy.resolve(road)
    with pytest.raises(AttributeError, match=rf"{package.__name__} has no 'no_such'; dir\("):
        _ = package.no_such


def test_a_module_that_lacks_another_is_not_said_to_be_missing(monkeypatch):
    """An error inside a module is its own, not that the package lacks a name."""
    monkeypatch.delitem(sys.modules, "minihybrid.view.drawing", raising=False)
    monkeypatch.delitem(sys.modules, "minihybrid.view.viz", raising=False)
    monkeypatch.delattr(mx.view, "viz", raising=False)
    monkeypatch.delattr(mx, "viz", raising=False)
    monkeypatch.setitem(sys.modules, "minihybrid.view.drawing", None)
    with pytest.raises(ModuleNotFoundError, match=r"minihybrid\.view\.drawing"):
        _ = mx.viz


def test_asking_for_a_name_does_not_look_for_others(monkeypatch):
    """`hasattr` takes no time for "did you mean"; who reads the error gets it."""
    monkeypatch.setattr("difflib.get_close_matches", lambda *_: 1 / 0)
    assert not hasattr(mx.nd, "softmx") and not hasattr(mx.sym.linalg, "gem")
    monkeypatch.undo()
    with pytest.raises(AttributeError, match=r"no function 'softmx' \(did you mean 'softmax'\?\)"):
        _ = mx.nd.softmx


# For each module a process in which nothing but the package's own import was done.
FIRST = """
import os, sys
from importlib import import_module
import minihybrid

for name in sys.argv[1:]:
    if os.fork():
        _, status = os.wait()
        if status:
            print(name)
        continue
    try:
        if name.startswith("import "):
            import_module(name.removeprefix("import "))
        else:
            eval(name, {"minihybrid": minihybrid})
    except BaseException:
        os._exit(1)
    os._exit(0)
"""
# The gradient is read with autograd, `npx` as mx.npx, `bundled` by `python -m minihybrid`, and
# bfloat16 with its first array.
UNNAMED = (), ("core.passes.gradient", "gluon.data.bundled", "np.npx", "ops.bfloat16")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="NOT CHECKED: this system has no fork")
@pytest.mark.parametrize(
    ("way", "step"), [("import ", 4), *external(pytest.param("import ", 1), pytest.param("", 1))]
)
def test_every_module_can_be_the_first(way, step):
    """Imported, or named in an expression: no order of reading is needed."""
    read = [m for m in READING_ORDER if m not in ("__main__", *UNNAMED[not way])][::step]
    names = [f"{way}minihybrid.{module}" for module in read]
    statements = [*names, "import minihybrid.nothing", "minihybrid.core.nothing"]
    done = subprocess.run(
        [sys.executable, "-c", FIRST, *statements], capture_output=True, text=True
    )
    assert done.stdout.split("\n") == [*statements[-2:], ""], done.stderr[-2000:]
