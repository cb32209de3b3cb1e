"""The compile cache, threads, fresh results, and what an import costs."""

import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from marks import external

import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.codegen import cache
from minihybrid.codegen.cpu import objects
from minihybrid.codegen.cpu import target as cpu
from minihybrid.gluon import nn

ROOT = Path(mx.__file__).parent.parent
PROGRAM = """
import minihybrid as mx
f = mx.function(lambda a, b: a * b + 7)
y = f(mx.nd.array([1, 2, 3]), mx.nd.array([4, 5, 6]))
(plan,) = f.plans.values()
from minihybrid.codegen.cpu.objects import IDLE  # processes that have compiled
print(y.asnumpy().tolist(), plan.target, "compiled" if IDLE.qsize() else "loaded")
"""
ANSWER = "[11.0, 17.0, 25.0] cpu"


def start(folder, code=PROGRAM, **environment):
    """A new process with its cache in `folder`."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "MINIHYBRID_CACHE_DIR": str(folder), **environment},
    )


def run(folder, code=PROGRAM, **environment):
    """What a new process printed; nothing else may appear on its error channel."""
    process = start(folder, code, **environment)
    out, error = process.communicate(timeout=600)
    assert (process.returncode, error) == (0, ""), error
    return out.strip()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache folder in which one process has left its plan."""
    folder = tmp_path_factory.mktemp("filled")
    assert run(folder) == f"{ANSWER} compiled"
    return folder


def entries(folder):
    """file -> what changes when somebody writes it."""
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.stat().st_size)
        for p in Path(folder).rglob("*")
        if p.is_file()
    }


# -- the cache -------------------------------------------------------------------------
@pytest.mark.slow
def test_a_second_process_loads_and_writes_nothing(filled):
    before = entries(filled)
    assert [Path(name).suffix for name in before] == [".o"] * 2  # kernel and driver
    assert run(filled) == f"{ANSWER} loaded"
    assert entries(filled) == before


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """A folder filled by this process, to be copied and damaged."""
    folder = tmp_path_factory.mktemp("pristine")
    assert load_in(folder) == "compiled 2"
    return folder


def forget_kernels():
    """Load kernels again; those of plans that exist stay where they are."""
    objects.ALIVE.append(objects._engine())
    objects._engine.cache_clear()
    objects.ADDRESSES.clear()


def load_in(folder):
    """Load a plan as a new process would; was it loaded or compiled?"""
    forget_kernels()
    compiled = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIHYBRID_CACHE_DIR", str(folder))
        patch.setattr(
            objects,
            "compile_text",
            lambda text, symbol, real=objects.compile_text: (
                compiled.append(symbol) or real(text, symbol)
            ),
        )
        f = mx.function(lambda a: a * 5 + 3)
        assert f(nd.array([1, 2])).asnumpy().tolist() == [8, 13]
    assert sorted(f"{symbol}.o" for symbol in objects.ADDRESSES) == sorted(
        path.name for path in folder.glob("*.o")
    )
    return f"compiled {len(compiled)}" if compiled else "loaded"


DAMAGES = {
    "empty": lambda old: b"",
    "half": lambda old: old[: len(old) // 2],
    "one byte short": lambda old: old[:-1],
    "garbage": lambda old: bytes(range(256)) * 8,
    "another version": lambda old: b"9.9.9" + old[5:],
    "zeros": lambda old: bytes(len(old)),
    "one bit": lambda old: old[:-99] + bytes([old[-99] ^ 1]) + old[-98:],
}


def test_a_damaged_entry_is_none(pristine, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(tmp_path))
    file = Path(shutil.copy(min(pristine.glob("*.o")), tmp_path))
    old = file.read_bytes()
    assert cache.read(file.stem) == old[32:]
    for damage in DAMAGES.values():
        file.write_bytes(damage(old))
        assert cache.read(file.stem) is None


def test_a_damaged_entry_is_compiled_again_silently(pristine, tmp_path):
    folder = tmp_path / "copied"
    shutil.copytree(pristine, folder)
    first, second = folder.glob("*.o")
    first.write_bytes(DAMAGES["one bit"](first.read_bytes()))
    second.unlink()
    assert load_in(folder) == "compiled 2"
    assert load_in(folder) == "loaded"


@pytest.mark.external
def test_two_processes_at_once_on_an_empty_cache(tmp_path):
    folder = tmp_path / "new"
    both = [start(folder), start(folder)]
    for process in both:
        out, error = process.communicate(timeout=600)
        assert (process.returncode, error) == (0, "") and out.startswith(ANSWER)
    assert run(folder) == f"{ANSWER} loaded"
    assert not list(folder.rglob("*.tmp"))


@pytest.mark.slow
def test_the_folder_is_the_one_that_was_chosen_and_private(tmp_path):
    folder = tmp_path / "deep" / "down"
    assert run(folder).startswith(ANSWER)
    assert any(folder.glob("*.o"))
    if os.name != "nt":
        assert folder.stat().st_mode & 0o777 == 0o700


def test_without_a_choice_the_users_cache_folder_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("MINIHYBRID_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_dir() == str(tmp_path / "minihybrid")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert cache.cache_dir() == str(tmp_path / ".cache" / "minihybrid")


@pytest.mark.slow
def test_without_a_folder_nothing_is_kept(tmp_path):
    """A file stands where the folder should be; so even root cannot write there."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert run(blocked) == f"{ANSWER} compiled"
    assert blocked.read_text() == "not a folder"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0,
    reason="root may write anywhere, so a read-only folder does not exist",
)
def test_in_a_read_only_folder_nothing_is_kept(tmp_path):
    tmp_path.chmod(0o500)
    assert run(tmp_path) == f"{ANSWER} compiled"


posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system's files have no modes")
WARNED = (
    """
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("default")
"""
    + PROGRAM.replace("\n", "\n    ")
    + """
print(*(str(w.message) for w in seen), sep="\\n")
"""
)


@pytest.mark.slow
@posix
@pytest.mark.parametrize("mode", [0o702, *external(0o720, 0o777)])
def test_a_folder_that_others_can_write_to_is_not_used(pristine, tmp_path, mode):
    folder = tmp_path / "open"
    shutil.copytree(pristine, folder)
    folder.chmod(mode)
    before = entries(folder)
    lines = run(folder, WARNED).split("\n")
    assert lines[0] == f"{ANSWER} compiled"  # two kernels, not kept, and one warning:
    assert len(lines) == 2 and f"{str(folder)!r}, or one above it, belongs" in lines[1]
    assert entries(folder) == before


@posix
@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_another_user_owns_is_not_loaded(pristine, tmp_path, monkeypatch, what):
    """Other users are played by a false number of this one: only root can give away."""
    folder = tmp_path / "theirs"
    shutil.copytree(pristine, folder)
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(folder))
    (symbol, _) = sorted(path.stem for path in folder.glob("*.o"))
    assert cache.read(symbol)
    if what == "file":
        (folder / f"{symbol}.o").chmod(0o622)
        assert cache.read(symbol) is None
        return
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.read(symbol) is None
    before = entries(folder)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        cache.write("k0", b"code")
    assert entries(folder) == before


@pytest.mark.slow
@posix
def test_the_folder_and_its_files_are_the_owners_alone(tmp_path):
    """Also where the mask of the process would let others in."""
    folder = tmp_path / "new"
    assert run(folder, f"import os\nos.umask(0)\n{PROGRAM}").startswith(ANSWER)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [p.stat().st_mode & 0o777 for p in folder.iterdir()] == [0o600] * 2


@pytest.mark.parametrize("name", ["cache", "./cache", "."])
def test_a_relative_folder_is_refused(monkeypatch, name):
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", name)
    with pytest.raises(mx.base.MXNetError, match="give a whole path, such as '/?.*'"):
        cache.cache_dir()


def test_the_home_folder_has_its_sign_and_empty_means_no_choice(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", os.path.join("~", "kernels"))
    assert cache.cache_dir() == str(tmp_path / "kernels")
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.cache_dir() == str(tmp_path / ".cache" / "minihybrid")


STRANGE = [None, "", ".", "..", "model", "./model", "~", "~nobody-has-this-name"]


@posix
@pytest.mark.parametrize("home", [*STRANGE, "/"])
def test_no_folder_beside_a_model_is_the_cache(pristine, tmp_path, monkeypatch, home):
    """Without a home, or a home without a place, nothing is kept and nothing read."""
    monkeypatch.chdir(tmp_path)
    (symbol, _) = sorted(path.stem for path in pristine.glob("*.o"))
    for name in STRANGE[2:]:  # wherever one might look
        for way in (name, f"{name}/minihybrid", f"{name}/.cache/minihybrid"):
            shutil.copytree(pristine, os.path.normpath(tmp_path / "a" / way), dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path / "a")

    def no_entry(*_):
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("pwd.getpwuid", no_entry)
    seen = set()
    for chosen in STRANGE:
        for xdg in STRANGE:
            for name, value in (
                ("HOME", home),
                ("XDG_CACHE_HOME", xdg),
                ("MINIHYBRID_CACHE_DIR", chosen),
            ):
                monkeypatch.delenv(name, raising=False)
                if value is not None:
                    monkeypatch.setenv(name, value)
            try:
                folder = cache.cache_dir()
            except mx.base.MXNetError as error:
                seen.add(str(error).partition(" is ")[0])
                continue
            if home in ("", "/"):  # which Python takes for the same
                assert folder in ("/", "/model", "/.cache/minihybrid")
            else:
                assert folder is None
                with pytest.warns(RuntimeWarning, match="this user has no home folder"):
                    assert cache.read(symbol) is None
                before = entries(tmp_path)
                with pytest.warns(RuntimeWarning, match="set MINIHYBRID_CACHE_DIR to"):
                    cache.write(symbol, b"code")
                assert entries(tmp_path) == before
                cache.clear_cache()
                assert entries(tmp_path) == before
    assert seen == {"MINIHYBRID_CACHE_DIR"}


@posix
@pytest.mark.parametrize("what", ["open above", "link", "their folder", "their link"])
def test_the_way_to_the_folder_is_closed_to_others(pristine, tmp_path, monkeypatch, what):
    """Who may write above it could put a model's folder, which is ours, in its place."""
    above, models = tmp_path / "above", tmp_path / "models"
    shutil.copytree(pristine, models / "minihybrid")
    (symbol, _) = sorted(path.stem for path in pristine.glob("*.o"))
    if "link" in what:
        above.symlink_to("./models")
    else:
        shutil.copytree(models, above)
    if what == "open above":
        above.chmod(0o777)
    theirs, real = above if "their" in what else None, os.lstat

    def lstat(path):
        fields = list(real(path))
        fields[4] += os.fspath(path) == str(theirs)
        return os.stat_result(fields)

    monkeypatch.setattr(os, "lstat", lstat)
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(above / "minihybrid"))
    if what == "link":
        assert cache.read(symbol)
    else:
        with pytest.warns(RuntimeWarning, match="or one above it, belongs to another"):
            assert cache.read(symbol) is None
    above.chmod(0o1777)  # as /tmp: others cannot touch what is ours
    assert bool(theirs) or cache.read(symbol)


def test_a_write_that_fails_leaves_no_temporary_file(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(tmp_path))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache.write("k0", b"code")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_nothing_is_read_from_the_folder_of_the_model(tmp_path):
    """Modules beside a model, named like what a load imports, are not run."""
    net = nn.Dense(1, in_units=1, prefix="d_")
    net.initialize("ones")
    net.hybridize(backend="numpy")
    net(nd.ones((1, 1)))
    net.export(str(tmp_path / "m"))
    for name in ("numba", "numpy", "scipy", "llvmlite", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("print('this was run')\nraise SystemExit(3)")
    before = set(os.listdir(tmp_path))
    code = (
        "import minihybrid as mx\n"
        f"net = mx.gluon.SymbolBlock.imports({str(tmp_path / 'm-symbol.json')!r}, "
        f"['data'], {str(tmp_path / 'm-0000.params')!r})\n"
        "net.hybridize(); print(net(mx.nd.ones((1, 1))).asscalar())"
    )
    assert run(tmp_path / "cache", code) == "1.0"
    assert set(os.listdir(tmp_path)) == before | {"cache"}


def test_equal_kernels_share_one_entry(tmp_path, monkeypatch):
    """Other shapes and other plans, but the same loop."""
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(tmp_path))
    forget_kernels()
    for n in (2, 7):
        f = mx.function(lambda a: a * 3 - 11)
        assert f(nd.array([5] * n)).asnumpy().tolist() == [4] * n
    f = mx.function(lambda a, b: nd.dot(a * 3 - 11, b))
    assert f(nd.array([[5, 5]]), nd.ones((2, 1))).asscalar() == 8
    (plan,) = f.plans.values()
    assert plan.n_kernels == 2
    assert len(list(tmp_path.glob("*.o"))) == 3  # the loop, the product, the driver


def test_clear_cache_deletes_only_kernels(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(folder))
    assert mx.function(lambda a: a * 3 - 12)(nd.array([5])).asscalar() == 3
    mine = {tmp_path / "mine", folder / "mine.o", folder / "kept"}
    for path in mine:
        path.write_text("stays")
    cache.clear_cache()
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == mine
    assert mx.function(lambda a: a * 3 - 12)(nd.array([6])).asscalar() == 6


# -- threads and memory ----------------------------------------------------------------
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("backend", ["cpu", "numpy"])
def test_threads_on_one_net_get_their_own_answers(backend, warm, tmp_path, monkeypatch):
    net = nn.HybridSequential()
    net.add(nn.Dense(32, activation="relu", in_units=16), nn.Dense(8, in_units=32))
    net.initialize()
    inputs = [nd.random.normal(shape=(4, 16)) for _ in range(4)]
    expected = [net(x).asnumpy() for x in inputs]
    net.hybridize(backend=backend)
    if warm:
        net(inputs[0])
    else:  # the first call of all threads compiles
        forget_kernels()
        monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(tmp_path))
    barrier = threading.Barrier(4)

    def work(i):
        barrier.wait()
        for _ in range(300):
            np.testing.assert_allclose(net(inputs[i]).asnumpy(), expected[i], rtol=1e-4, atol=1e-6)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [True] * 4


def test_the_mode_and_the_tape_belong_to_a_thread():
    seen = {}

    def other():
        seen["other"] = autograd.is_recording(), autograd.is_training()
        with autograd.record():
            pass

    with autograd.record():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        seen["mine"] = autograd.is_recording(), autograd.is_training()
    assert seen == {"other": (False, False), "mine": (True, True)}


def test_two_threads_train_nets_of_their_own():
    def work(scale):
        net = nn.Dense(1, in_units=2, use_bias=False)
        net.initialize("ones")
        net.hybridize(backend="numpy")
        x = nd.array([[1, 2]]) * scale
        for _ in range(50):
            with autograd.record():
                y = net(x)
            y.backward()
            assert net.weight.grad().asnumpy().tolist() == [[scale, 2 * scale]]
        return True

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(work, [1, 10]))


@pytest.mark.parametrize("size", [2, 520])  # large ones are used again when given up
@pytest.mark.parametrize("backend", ["cpu", "numpy"])
def test_results_are_memory_of_their_own(backend, size):
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            y = x * 2
            return y, y.reshape((-1,)), x, F.transpose(y), y + 1

    net = Net()
    net.hybridize(backend=backend, static_alloc=True, static_shape=True)
    x = nd.arange(size * size).reshape((size, size))
    first = net(x)
    kept = [y.asnumpy().copy() for y in first]
    second = net(nd.zeros((size, size)))
    for y, k in zip(first, kept, strict=True):
        np.testing.assert_array_equal(y.asnumpy(), k)
    arrays = [y.data for y in (*first, *second)] + [x.data]
    for i, a in enumerate(arrays):
        for b in arrays[:i]:
            assert not np.shares_memory(a, b)


# -- import ----------------------------------------------------------------------------
@pytest.mark.slow
def test_import_loads_no_compiler_and_no_plotting(tmp_path):
    heavy = {"numba", "llvmlite", "scipy", "matplotlib", "tqdm", "IPython", "torch", "onnx"}
    code = (
        "import sys, minihybrid as mx\n"
        "net = mx.gluon.nn.Dense(2); net.initialize(); net(mx.nd.ones((1, 3)))\n"
        "with mx.autograd.record(): y = net(mx.nd.ones((1, 3)))\n"
        "y.backward()\n"
        f"print(sorted({heavy!r} & sys.modules.keys()))"
    )
    assert run(tmp_path / "cache", code) == "[]"
    assert not (tmp_path / "cache").exists()


@pytest.mark.external
def test_without_docstrings_and_asserts_everything_is_there(tmp_path):
    """`python -OO`, of the compilers, too: no word of a docstring is needed to run."""
    code = (
        """import importlib, pkgutil, minihybrid as mx
names = [found.name for found in pkgutil.walk_packages(mx.__path__, "minihybrid.")]
for name in names:
    importlib.import_module(name)
print(__debug__, len(names) > 150)
try:
    mx.nd.softmax(mx.nd.ones(2), axis="b")
except mx.base.MXNetError as error:
    print(error)
"""
        + PROGRAM
    )
    assert run(tmp_path, code, PYTHONOPTIMIZE="2").split("\n") == [
        "False True",
        "softmax: axis='b' does not fit; needed: integer",
        f"{ANSWER} compiled",
    ]


@pytest.mark.slow
def test_the_numpy_target_needs_no_compiler(tmp_path):
    code = (
        "import sys, minihybrid as mx\n"
        "sys.modules['numba'] = None  # importing it is an error from here on\n"
        "f = mx.function(lambda a: a.softmax() * 2, target='numpy')\n"
        "print(f(mx.nd.zeros((1, 2))).asnumpy().tolist())"
    )
    assert run(tmp_path / "cache", code) == "[[1.0, 1.0]]"


@pytest.mark.slow
def test_a_compiled_net_runs_without_numba_in_its_process(tmp_path):
    code = f"import sys{PROGRAM}print({{'numba', 'scipy'}} & sys.modules.keys())"
    for how in ("compiled", "loaded"):
        assert run(tmp_path, code) == f"{ANSWER} {how}\nset()"


# -- compilers -------------------------------------------------------------------------
NUMBA = {
    "OPT": "0",
    "LOOP_VECTORIZE": "0",
    "SLP_VECTORIZE": "1",
    "BOUNDSCHECK": "1",
    "DISABLE_JIT": "1",
    "DEBUGINFO": "1",
    "ENABLE_AVX": "0",
    "FUNCTION_CACHE_SIZE": "1",
    "DISABLE_INTEL_SVML": "1",
    "DEBUG_ARRAY_OPT": "1",
    "CAPTURED_ERRORS": "old_style",
    "DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1",
}


@pytest.mark.external
def test_no_variable_of_numba_reaches_a_kernel_that_its_name_does_not_tell(tmp_path):
    """Else code for one processor, or without vectors, would be kept for ever."""
    strange = {f"NUMBA_{name}": value for name, value in NUMBA.items()}
    answers = {}
    for name, more in (
        ("plain", {}),
        ("strange", strange),
        ("generic", {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}),
    ):
        assert run(tmp_path / name, **more) == f"{ANSWER} compiled"
        answers[name] = {
            path.name: machine_code(path.read_bytes()[32:]) for path in (tmp_path / name).iterdir()
        }
    assert answers["plain"] == answers["strange"]
    assert not answers["plain"].keys() & answers["generic"].keys()
    assert sorted(answers["plain"].values()) != sorted(answers["generic"].values())


def machine_code(code):
    """Without the names, in which Numba counts."""
    from llvmlite import binding

    return b"".join(
        section.data()
        for section in binding.ObjectFileRef.from_data(code).sections()
        if section.is_text()
    )


@pytest.mark.slow
def test_all_that_a_compiler_loads_of_us_is_part_of_the_name():
    """Whoever changes one of these modules gets other kernels under other names."""
    code = (
        objects.PROGRAM.replace("serve(sys.argv[1:])", "")
        + "\n".join(f"import {name}" for name in cpu.IMPORTS if name.startswith("minihybrid"))
        + """
print(*(module.__file__ for name, module in sys.modules.items()
        if name.startswith("minihybrid") and hasattr(module, "__file__")), sep="\\n")
"""
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], text=True, check=True, capture_output=True
    )
    loaded = set(done.stdout.split())
    names = {Path(file).name for file in loaded}
    assert {"interpreter.py", "vector.py", "machine.py", "op.py"} <= names
    assert loaded <= {str(file) for file in cache.sources()}


@pytest.mark.parametrize(
    "changed, other",
    [
        ("codegen/device_math.py", True),
        ("codegen/cpu/vector.py", True),
        ("codegen/cpu/deeper/new.py", True),
        ("ops/cpu/machine.py", True),
        ("core/op.py", True),
        ("gluon/nn.py", False),
    ],
)
def test_a_change_in_any_folder_of_a_compiler_gives_other_names(
    changed, other, tmp_path, monkeypatch
):
    for file in cache.sources():
        copy = tmp_path / os.path.relpath(file, cache.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    before = cache._makers.__wrapped__()
    monkeypatch.setattr(cache, "ROOT", str(tmp_path))
    assert cache._makers.__wrapped__() == before
    (tmp_path / changed).parent.mkdir(parents=True, exist_ok=True)
    with open(tmp_path / changed, "a") as file:
        file.write("# planted")
    assert (cache._makers.__wrapped__() != before) == other


@pytest.mark.external
def test_a_relative_path_for_modules_does_not_lead_a_compiler_astray(tmp_path):
    """Folders of ours have modules that are called numpy and code."""
    paths = [str(ROOT), ".", "", "codegen", "nowhere"]
    assert run(tmp_path, PYTHONPATH=os.pathsep.join(paths)) == f"{ANSWER} compiled"


@pytest.mark.external
@posix
@pytest.mark.parametrize("channels", ["<&- >&- 2>&-", "2> /dev/full"])
def test_without_channels_kernels_are_compiled(tmp_path, channels):
    """As under a daemon or pythonw: nobody can be shown how far it is."""
    code = PROGRAM.replace("print(", "print(file=open('said', 'w'), *(").rstrip() + ")"
    done = subprocess.run(
        ["sh", "-c", f'exec {sys.executable} -c "$CODE" {channels}'],
        cwd=tmp_path,
        env={
            **os.environ,
            "CODE": f"{code}\n",
            "PYTHONPATH": str(ROOT),
            "MINIHYBRID_CACHE_DIR": str(tmp_path / "cache"),
        },
    )
    assert done.returncode == 0
    assert (tmp_path / "said").read_text() == f"{ANSWER} compiled\n"


def test_a_compiler_with_other_packages_is_not_believed(monkeypatch):
    monkeypatch.setattr(objects, "versions", lambda: ["numba 0.1", "llvmlite 0.1"])
    compiler = objects.Compiler()
    try:
        with pytest.raises(
            mx.base.MXNetError, match="process finds llvmlite .* instead of numba 0.1, llvmlite 0.1"
        ):
            compiler.ask("", "k0")
    finally:
        compiler.end()


def test_a_kernel_that_does_not_compile_says_why():
    with pytest.raises(mx.base.MXNetError, match="did not compile(?s:.)*nowhere"):
        objects.compile_text(
            "from numba import float32\n"
            "from minihybrid.codegen.cpu.flat import kernel\n"
            "@kernel(float32[::1])\ndef k(out):\n    out[0] = nowhere\n",
            "k0",
        )


def test_a_kernel_that_needs_numba_at_run_time_is_refused():
    """Its machine code would jump to where nothing is."""
    with pytest.raises(mx.base.MXNetError, match="numba_gamma lives in Numba"):
        objects.compile_text(
            "import math\nfrom numba import float64\n"
            "from minihybrid.codegen.cpu.flat import kernel\n@kernel(float64[::1])\n"
            "def k(out):\n    out[0] = math.gamma(out[0])\n",
            "k0",
        )


def test_a_compiler_that_has_ended_is_replaced():
    compiler = objects.Compiler()
    compiler.process.kill()
    compiler.process.wait()
    objects.IDLE.put(compiler)
    text = (
        "from numba import float32\n"
        "from minihybrid.codegen.cpu.flat import kernel\n"
        "@kernel(float32[::1])\ndef k(out):\n    out[0] = float32(1)\n"
    )
    assert objects.compile_text(text, "k0")[:4] in (
        b"\x7fELF",
        b"\xcf\xfa\xed\xfe",
        b"d\x86\x03\x00",
    )


@pytest.mark.external
def test_the_folder_in_which_a_compiler_started_may_go_away(tmp_path):
    """Its imports, the later ones too, do not look there."""
    code = PROGRAM.replace(
        "f = mx",
        """import os, tempfile
with tempfile.TemporaryDirectory() as folder:
    home = os.getcwd()
    os.chdir(folder)
    mx.function(lambda a: a + 1)(mx.nd.ones(1))
    os.chdir(home)
from minihybrid.gluon import nn
net = nn.HybridLambda(lambda F, x: x + F.random.normal(shape=(2, 2)))
net.hybridize()
print(net(mx.nd.ones((2, 2))).shape)
f = mx""",
    )
    assert run(tmp_path, code) == f"(2, 2)\n{ANSWER} compiled"


@pytest.mark.slow
def test_without_a_compiler_the_error_names_the_other_target(tmp_path):
    """Where Python is part of another program, it does not know its own."""
    code = (
        "import sys, minihybrid as mx\n"
        "for sys.executable in ('/nowhere/python', '', None):\n    try:\n"
        "        mx.function(lambda a: a + 1)(mx.nd.ones(1))\n"
        "    except mx.base.MXNetError as error:\n        print(error)"
    )
    lines = run(tmp_path, code).split("\n")
    assert (
        len(lines) == 3
        and len(set(lines)) == 2
        and all("use hybridize(backend='numpy')" in line for line in lines)
    )


@pytest.mark.external
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_compiles_with_processes_of_its_own(tmp_path):
    code = (
        PROGRAM
        + """
import os, sys
from minihybrid.codegen import cache
from minihybrid.codegen.cpu import objects
pid = os.fork()
if pid:
    assert os.waitpid(pid, 0)[1] == 0
g = mx.function(lambda a: a * 2 + 5)
print("parent" if pid else "child", g(mx.nd.ones(2)).asnumpy().tolist(), flush=True)
"""
    )
    lines = run(tmp_path, code, PYTHONWARNINGS="ignore").split("\n")
    assert lines[-2:] == ["child [7.0, 7.0]", "parent [7.0, 7.0]"]


# -- the driver ------------------------------------------------------------------------
def test_the_text_of_a_plan_is_what_runs():
    """The text, run by Python and Numba, gives what the driver gives, bit by bit."""
    net = nn.HybridSequential()
    net.add(nn.Dense(5, activation="relu", in_units=7), nn.Dropout(0.5), nn.Dense(3, in_units=5))
    net.initialize()
    net.hybridize()
    x = nd.random.normal(shape=(4, 7))
    plan, arrays, (_, params) = net.plan_for(x)
    scope = {}
    exec(plan.source, scope)
    outs = [np.empty(shape, dtype) for shape, dtype in plan.out_specs]
    scope["plan"](*arrays, *outs, plan._new_arena(), params)
    np.testing.assert_array_equal(outs[0], net(x).asnumpy())


@pytest.mark.parametrize("how", ["transposed", "strided", "backwards", "misaligned"])
def test_arrays_that_do_not_lie_in_plain_order_are_copied_first(how):
    expected = np.arange(12, dtype="float32").reshape(3, 4)
    strange = {
        "transposed": np.ascontiguousarray(expected.T).T,
        "strided": np.repeat(expected, 2, axis=1)[:, ::2],
        "backwards": np.ascontiguousarray(expected[::-1])[::-1],
        "misaligned": np.frombuffer(b"x" + expected.tobytes(), "float32", 12, 1).reshape(3, 4),
    }[how]
    np.testing.assert_array_equal(strange, expected)
    f = mx.function(lambda a: a * 2 + 1)
    x = nd.array(expected)
    x.data = strange
    np.testing.assert_array_equal(f(x).asnumpy(), expected * 2 + 1)


def test_numbers_in_the_other_order_of_bytes_are_not_read_as_ours():
    expected = np.arange(5, dtype="float32")
    f = mx.function(lambda a: a * 2 + 1)
    x = nd.array(expected)
    x.data = expected.astype(expected.dtype.newbyteorder())
    np.testing.assert_array_equal(f(x).asnumpy(), expected * 2 + 1)
    (plan,) = f.plans.values()
    assert plan.target == "numpy" and "has no compiled kernels" in plan.target_note


def test_the_driver_stops_where_it_is_told():
    f = mx.function(lambda a, b: nd.dot(nd.dot(a, b) + 1, b))
    a, b = nd.ones((2, 2)), nd.ones((2, 2))
    f(a, b)
    plan, arrays, bound = f.plan_for(a, b)
    out = np.full((2, 2), -1, np.float32)
    arena = plan._new_arena()
    args = (*arrays, out, arena, bound[0], 0)
    assert plan.function(*args, 1, 0, 0) is True
    assert out.tolist() == [[-1, -1]] * 2
    assert arena[:16].view(np.float32).tolist() == [3] * 4
    assert plan.function(*args, 2, 0, 0) is True
    assert out.tolist() == [[6, 6]] * 2


def test_what_has_no_numbers_is_not_computed():
    f = mx.function(lambda x: nd.sort(x * 2))
    x = mx.np.zeros((0, 3)).as_nd_ndarray()
    assert f(x).shape == (0, 3)
    (plan,) = f.plans.values()
    assert (plan.target, plan.n_kernels) == ("cpu", 0)
