"""The package is read from top to bottom of READING_ORDER, and imports only upwards."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import process_guard
import pytest
from marks import for_each
from reading_order import PACKAGE, READING_ORDER, imports, path_of

# -- the chapter that a module's first line names ----------------------------------------
FILE_NAMES = Counter(path.name for path in PACKAGE.rglob("*.py"))


def chapters_named(source: str) -> list[str]:
    """The chapters in a module's first line: `Chapter 07.`, `Chapters 07 and 08.`, `25 to 28`."""
    match = re.match(r'"""Chapters? ((?:\d\d|, | and | to )+)\. ', source)
    numbers = re.findall(r"\d\d", match[1]) if match else []
    if match and " to " in match[1]:
        numbers = [f"{n:02}" for n in range(int(numbers[0]), int(numbers[1]) + 1)]
    return numbers


def shown_by(path: Path) -> str:
    """All that a chapter says of modules: its cells, but the first, and heads of listings."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    outputs = ["".join(o.get("text", [])) for cell in cells for o in cell.get("outputs", [])]
    heads = re.findall(r"^# minihybrid/.*$", "\n".join(outputs), re.MULTILINE)
    return "\n".join([s for s in sources if "%pip install" not in s] + heads)


def mentions(chapter: str, file: str) -> bool:
    """Whether a chapter names a module: its file, a folder it is in, or by an import.

    file:    below minihybrid/, such as core/op.py.
    """
    path = Path(file)
    folder, module = path.parent.as_posix().replace("/", "."), path.stem
    package = "minihybrid" + f".{folder}" * (folder != ".")
    ways = [
        rf"(?<![\w/])(minihybrid/)?{re.escape(file)}",
        rf"\b{re.escape(package)}\.{module}\b",
        rf"\bmx{re.escape(package.removeprefix('minihybrid'))}\.{module}\b",
        rf"from {re.escape(package)} import [^\n]*\b{module}\b",
        *(rf"`(minihybrid/)?{parent.as_posix()}/`" for parent in [*path.parents][:-1]),
    ]
    if FILE_NAMES[path.name] == 1:
        ways.append(rf"(?<![\w/]){re.escape(path.name)}\b")
    if file.startswith("minihybrid_course/exercises/"):
        ways.append(r"mx\.check\(")
    return any(re.search(way, chapter) for way in ways)


def test_modules_name_the_chapters_that_show_them():
    """So a reader of a module finds the chapter; a module that no chapter shows names none."""
    chapters = {f.name[:2]: shown_by(f) for f in (PACKAGE.parent / "notebooks").glob("*.ipynb")}
    named = {
        path.relative_to(PACKAGE).as_posix(): chapters_named(path.read_text(encoding="utf-8"))
        for path in PACKAGE.rglob("*.py")
    }
    wrong = [
        f"{file} names chapter {number}, which does not show it"
        for file, numbers in named.items()
        for number in numbers
        if not mentions(chapters.get(number, ""), file)
    ]
    assert not wrong, wrong
    assert sum(map(bool, named.values())) > 60


@pytest.mark.parametrize(
    "text, expected",
    [
        ("It opens `core/op.py`.", True),
        ("# minihybrid/core/op.py: Op.applied", True),
        ("mx.show(mx.core.op.Op.applied)", True),
        ("from minihybrid.core import op, sym", True),
        ("from minihybrid.core.op import Op", True),
        ("It opens `core/`.", True),
        ("The operator `op` is in `ops/op.py`, and mx.core.option is another.", False),
        ("from minihybrid.core import operator", False),
    ],
)
def test_a_chapter_mentions_a_module_by_its_file_or_an_import(text, expected):
    assert mentions(text, "core/op.py") == expected


def test_numbers_of_chapters_are_read_from_a_first_line():
    assert chapters_named('"""Chapter 07. What') == ["07"]
    assert chapters_named('"""Chapters 12, 13 and 16. What') == ["12", "13", "16"]
    assert chapters_named('"""Chapters 25 to 28. What') == ["25", "26", "27", "28"]
    assert chapters_named('"""Chapter and verse. What') == []


# (module, a later one that a function of it imports) -> what for; none is on a hot path.
UPWARD = {
    ("codegen.ir", "codegen.schedule"): "`kernel.schedule`",
    ("core.array", "core.tape"): "`x.backward()`",
    ("core.array", "mxnet.nd_extras"): "a warning",
    ("core.array", "np.array"): "`x.as_np_ndarray()`",
    ("core.array", "runtime.device_eager"): "operators on GPUs",
    ("core.array", "runtime.interop"): "DLPack",
    ("core.block", "formats.outline"): "`net.save` and `net.load`",
    ("core.block", "runtime.op_hooks"): "`net.register_op_hook`",
    ("core.block", "view.layers"): "`net.summary`",
    ("core.checked_call", "core.call_errors"): "the sentence of an error",
    ("core.checked_call", "ops.infix"): "the sentence of an error",
    ("core.compiled", "runtime.donation"): "what `reuse` and `donatable` have entered",
    ("core.context", "runtime.device"): "`num_gpus()`",
    ("core.files", "formats.foreign"): "an existing file is replaced",
    ("core.op", "ops.bfloat16"): "operators on bfloat16",
    ("core.op", "ops.errors"): "the sentence of an error",
    ("ops.infix", "core.tracing"): "the sentence of an error",
    ("core.graph", "view.text"): "`graph.show()`",
    ("core.hybrid", "runtime.guards"): "`net.plans.show()`",
    ("core.numpy_target", "codegen.numpy.whole"): "`plan.source`",
    ("core.params", "formats.sparse"): "files with sparse arrays",
    ("core.passes.gradient", "passes.remat"): "`net.hybridize(remat=...)`",
    ("core.passes.memory", "view.text"): "`memory.show()`",
    ("core.placement", "runtime.device_array"): "memory on GPUs",
    ("core.plan", "runtime.kernel_times"): "`plan.times`",
    ("core.plan", "view.text"): "`plan.show()`",
    ("core.serial", "formats.foreign"): "a warning, and an error's remedy",
    ("core.serial", "formats.legacy"): "files of other MXNet versions",
    ("core.sym", "mxnet.executor"): "`symbol.bind` and `symbol.simple_bind`",
    ("core.sym", "mxnet.sym_extras"): "`symbol.infer_shape`, and a symbol called with others",
    ("core.sym", "np.array"): "`symbol.as_np_ndarray()`",
    ("core.sym", "view.text"): "`symbol.debug_str()`",
    ("formats.legacy", "np"): "operators of `mx.np` in files",
}


def wrong_arrows(module, source):
    """Return what is wrong with the imports of `module`, one sentence each."""
    earlier = READING_ORDER[: READING_ORDER.index(module)]
    tree, wrong = ast.parse(source), []
    allowed = {f"minihybrid.{used}" for m, used in UPWARD if m == module}
    for name in {*imports(tree)} - (allowed - {*imports(tree, in_functions=False)}):
        top, _, used = name.partition(".")
        if name.startswith("."):
            wrong.append(f"{module} imports {name}: write it from the root, minihybrid")
        elif name.endswith(".*"):
            wrong.append(f"{module} imports {name}: name what you import")
        elif name == "minihybrid":
            wrong.append(f"{module} imports the whole package: name the module")
        elif top == "minihybrid" and used in READING_ORDER and used not in (module, *earlier):
            wrong.append(f"{module} imports {used}, which is read later")
        elif (
            top == "minihybrid"
            and used not in READING_ORDER
            and used.rpartition(".")[0] not in READING_ORDER
        ):
            wrong.append(
                f"{module} imports {used}, which is no module's: name the module that defines it"
            )
    return wrong


def test_every_module_has_its_place_in_the_reading_order():
    """Scripts for other libraries are data."""
    paths = (p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py"))
    files = (p.with_suffix("") for p in paths if p.parts[0] != "data")
    modules = {".".join(f.parts).removesuffix(".__init__") for f in files}
    assert modules == set(READING_ORDER)


@for_each(READING_ORDER)
def test_module_imports_only_what_was_read_before(module):
    assert wrong_arrows(module, path_of(module).read_text(encoding="utf-8")) == []


def test_the_listed_upward_imports_are_all_there():
    for module, used in UPWARD:
        names = imports(ast.parse(path_of(module).read_text(encoding="utf-8")))
        assert f"minihybrid.{used}" in names, f"{module} no longer imports {used}"


# What writes programs down and compiles them, and what it must not need for that.
SYMBOLIC = re.compile(r"core\.(graph|backprop|sym)|(core\.passes|passes|codegen)(\.\w+)*")
CONCRETE = re.compile(r"core\.(array|nd|tape)|(runtime|simt)(\.\w+)*")


def below(module, arrows):
    """All modules that `module` needs; arrows: module -> those that it imports."""
    reached, todo = set(), [module]
    while todo:
        new = arrows[todo.pop()] - reached
        reached |= new
        todo += new
    return reached


def concrete_below(arrows):
    """(module of the symbolic half, what it needs of the other), all of them."""
    return [
        (m, used)
        for m in arrows
        if SYMBOLIC.fullmatch(m)
        for used in below(m, arrows)
        if CONCRETE.fullmatch(used)
    ]


@pytest.fixture(scope="module")
def arrows():
    """module -> the modules of ours that it imports, those of its name included."""
    imported = {}
    for module in READING_ORDER:
        names = imports(ast.parse(path_of(module).read_text(encoding="utf-8")), in_functions=False)
        imported[module] = {name.removeprefix("minihybrid.") for name in names} & set(READING_ORDER)
    return imported


def test_the_symbolic_half_needs_no_arrays(arrows):
    assert sum(bool(SYMBOLIC.fullmatch(m)) for m in arrows) > 40
    assert concrete_below(arrows) == []


def test_a_planted_array_below_the_symbolic_half_is_found(arrows):
    concrete = concrete_below(arrows | {"core.pytree": {"core.array", "runtime.device_array"}})
    assert ("core.sym", "core.array") in concrete
    assert ("core.passes.gradient", "runtime.device") in concrete


@pytest.mark.parametrize(
    "planted",
    [
        "from minihybrid.autograd import record",
        "import minihybrid.sym",
        "from minihybrid import sym",
        "def late():\n    from minihybrid.autograd import record",
        "if TYPE_CHECKING:\n    from minihybrid.gluon.block import Block",
        "import importlib\nimportlib.import_module('minihybrid.core.plan')",
        "import minihybrid",
        "from minihybrid import relu",
        "from minihybrid.core.op import *",
        "from . import op",
        "from .op import Op",
    ],
)
def test_a_planted_wrong_import_is_found(planted):
    assert len(wrong_arrows("core.graph", planted)) >= 1


def test_imports_of_earlier_modules_and_libraries_are_allowed():
    source = """
import numpy as np
from minihybrid.core import pytree
from minihybrid.core.op import Op
from minihybrid.ops.elementwise import relu
def later():
    import numba
"""
    assert wrong_arrows("core.graph", source) == []


# -- the shelf: what is beside the engine, which does without it ------------------------
SHELF = re.compile(r"(minihybrid\.(formats|simt|view|mxnet)|minihybrid_course)(\.\w+)*")
ENGINE = re.compile(r"(core|ops|passes|codegen|runtime|gluon|np)(\.\w+)*")
# (module, what it imports) -> why; only `np.npx` does it before it is asked.
FROM_THE_SHELF = {
    ("gluon.data.dataset", "minihybrid.mxnet.recordio"): "record files, when one is opened",
    ("gluon.data.vision.datasets", "minihybrid.mxnet.recordio"): "the same",
    ("gluon.trainer", "minihybrid.mxnet.kvstore"): "whom a Trainer adds up gradients with",
    ("np.npx", "minihybrid.mxnet.util"): "`npx.set_np` is MXNet's `util.set_np`",
    ("runtime.device", "minihybrid.simt.driver"): "the simulated device",
}


def from_the_shelf(module, source):
    """The modules of the shelf that a module of the engine imports, also in functions."""
    names = {name for name in imports(ast.parse(source)) if SHELF.fullmatch(name)}
    return {(module, name) for name in names if not any(n.startswith(f"{name}.") for n in names)}


def test_the_engine_imports_of_the_shelf_what_is_listed():
    imported = set()
    for module in READING_ORDER:
        if ENGINE.fullmatch(module):
            imported |= from_the_shelf(module, path_of(module).read_text(encoding="utf-8"))
    shortened = {(m, ".".join(name.split(".")[:3])) for m, name in imported}
    upward = {(m, f"minihybrid.{used}") for m, used in UPWARD}
    assert shortened - upward == FROM_THE_SHELF.keys()


@pytest.mark.parametrize(
    "planted", ["import minihybrid.simt.fast", "def f():\n    from minihybrid_course import tape"]
)
def test_a_planted_import_of_the_shelf_is_found(planted):
    assert from_the_shelf("core.graph", planted)


# -- no other road upwards: a module changes no module, class or object but its own ----
# The tables that others enter themselves into; only these grow after they were read.
REGISTRIES = {
    "ops.registry.OPS": "records, by name",
    "ops.registry.PLACES": "where a record stands, for `show`",
    "core.hooks.WITHOUT_SCIPY": "special functions for those who lack SciPy",
    "core.targets.TARGETS": "what makes functions of graphs",
    "core.hooks.INITIALIZERS": "initializers, by name",
    "np.public.FUNCTIONS": "the functions of `mx.np`",
    "core.hooks.FACES": "names of later modules in `nd` and `sym`",
    "core.hooks.FORMATS": "what `net.export` writes",
}
# Of other libraries: the module that assigns to it, and what.
FOREIGN = {
    ("codegen.gpu.cuda", "np.row_stack"),  # numba-cuda wants it, NumPy lost it
    ("minihybrid_course.cells", "warnings.formatwarning"),  # in a process of its own
    ("__init__", "sys.modules[]"),  # the core's modules under MXNet's names
}


def outsiders(tree):
    """The names in a module that stand for modules, classes and functions of others.

    A name in capitals is an object: it may have fields that are written.
    """
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = (alias.asname or alias.name).partition(".")[0]
                if not name.isupper():
                    yield name


def holder(node):
    """The name at the root of `X.a.b`, `vars(X)`, `X.__dict__[...]`; with the road."""
    road = ""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute():
                road, node = f".{node.attr}{road}", node.value
            case ast.Subscript():
                road, node = f"[]{road}", node.value
            case ast.Call(func=ast.Name(id="vars"), args=[thing]):
                road, node = f".__dict__{road}", thing
            case ast.Call(func=ast.Name(id="globals")):
                return "globals()", road
            case _:
                return "", road
    return node.id, road


def changed_in(node):
    """The expressions that a node writes to, as far as they are no plain names."""
    match node:
        case (
            ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del())
        ):
            yield node
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[thing, *_]):
            yield ast.Attribute(thing, "*")
        case ast.Call(func=ast.Attribute(attr="__setattr__" | "__delattr__"), args=[thing, _, *_]):
            yield ast.Attribute(thing, "*")
        case ast.Call(
            func=ast.Attribute(value=table, attr="update" | "pop" | "clear" | "setdefault")
        ):
            yield ast.Subscript(table)


def planted(module, source):
    """What a module writes into others, one sentence each."""
    tree = ast.parse(source)
    others, wrong = {*outsiders(tree), "globals()"}, []
    for node in ast.walk(tree):
        for target in changed_in(node):
            name, road = holder(target)
            line = f"{module}, line {node.lineno}"
            if (module, name + road) in FOREIGN:
                continue
            if name == "sys" and road.startswith(".modules[]"):
                wrong.append(f"{line}: changes a module by sys.modules")
            elif road.endswith(".__class__"):
                wrong.append(f"{line}: changes the class of {name}")
            elif name in others and (
                "__dict__" in road or name == "globals()" or not road.endswith("[]")
            ):
                wrong.append(
                    f"{line}: changes {name}{road}, which is not its own; let "
                    "the class have it, or enter a hook (core/hooks.py)"
                )
    return wrong


@for_each(READING_ORDER)
def test_module_changes_no_other(module):
    assert planted(module, path_of(module).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "NDArray.backward = backward",
        "NDArray.bind, NDArray.save = bind, save",
        "nd.save: object = save",
        "nd.count += 1",
        "del nd.save",
        "for NDArray.sign in '+-': pass",
        "def later():\n    nd.random.seed = 1",
        "if True:\n    setattr(NDArray, 'save', save)",
        "type.__setattr__(NDArray, 'save', save)",
        "object.__setattr__(nd.contrib, 'foreach', save)",
        "nd.__class__ = Front",
        "mine = nd\nmine.__class__ = Front",
        "vars(nd).update(save=save)",
        "vars(nd)['save'] = save",
        "nd.__dict__['save'] = save",
        "nd.contrib.__dict__.update(foreach=save)",
        "sys.modules['minihybrid.nd'].save = save",
        "setattr(sys.modules['minihybrid.nd'], 'save', save)",
        "vars(sys.modules[name])['save'] = save",
        "globals()['save'] = save",
        "globals().update(save=save)",
        "np.row_stack = np.vstack",
        "save.__doc__ = 'text'",
    ],
)
def test_a_planted_change_of_another_module_is_found(line):
    source = (
        "import sys\nimport numpy as np\nfrom minihybrid import nd\n"
        "from minihybrid.core.array import NDArray\n"
        "from minihybrid.core.nd import save\n"
    )
    assert len(planted("runtime.device_eager", source + line)) >= 1


def test_a_module_may_change_what_is_its_own():
    source = """
from minihybrid.core.array import STATE, NDArray
from minihybrid.formats.writers import FORMATS
class Mine(NDArray):
    def __init__(self, given):
        self.given = given
        setattr(self, "name", given.name)
        vars(self).update(given)
Mine.kind = 1
for name in "ab":
    setattr(Mine, name, 2)
STATE.recording = True
FORMATS["mine"] = Mine
"""
    assert planted("runtime.device_eager", source) == []


@pytest.mark.slow
def test_reading_the_package_changes_only_the_registries():
    """All that happens while it is imported, however it is written."""
    run = subprocess.run(
        [sys.executable, process_guard.__file__, "minihybrid"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
    )
    changes = [
        [name.removeprefix("minihybrid.") for name in change] for change in json.loads(run.stdout)
    ]
    brought = [
        what.split(".")[2] for _, what in changes if re.fullmatch(r"core\.hooks\.\w+\.fetch", what)
    ]
    hooks = ast.parse(path_of("core.hooks").read_text(encoding="utf-8")).body
    assert sorted(brought) == sorted(
        node.targets[0].id
        for node in hooks
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    ), "each hook is brought once"
    others = {
        what for _, what in changes if not what.startswith("core.hooks.") or what in REGISTRIES
    }
    assert others == REGISTRIES.keys()


EARLY = """
TABLE = {"inner": {}}
class Kind:
    old = 1
class Face:
    pass
FACE = Face()
def change():
    globals()["added"] = 1
"""


@pytest.mark.parametrize(
    "line, what",
    [
        ("early.added = 1", ".added"),
        ("early.change()", ".added"),
        ("sys.modules[early.__name__].added = 1", ".added"),
        ("early.Kind.old = 2", ".Kind.old"),
        ("del early.Kind.old", ".Kind.old"),
        ("kind = early.Kind; kind.added = 1", ".Kind.added"),
        ("setattr(early.Kind, 'added', 1)", ".Kind.added"),
        ("vars(early.FACE).update(added=1)", ".FACE.added"),
        ("early.__class__ = type('Front', (type(early),), {})", ".__class__"),
        ("early.TABLE['a'] = 1", ".TABLE"),
        ("early.TABLE['inner']['a'] = 1", ".TABLE"),
        ("early.mine = None; del early.mine", ""),
    ],
)
def test_a_planted_change_is_seen_while_it_is_read(line, what, tmp_path, monkeypatch):
    package = f"planted_{abs(hash(line))}"
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").write_text(f"from {package} import late")
    (folder / "early.py").write_text(EARLY)
    (folder / "late.py").write_text(f"import sys\nfrom {package} import early\n{line}")
    monkeypatch.syspath_prepend(tmp_path)
    changed = process_guard.main(package)
    assert changed == [(f"{package}.late", f"{package}.early{what}")] * bool(what)


# -- the book and the tests share what is in tools/ -----------------------------------------
def from_tests(source: str) -> set[str]:
    """The modules of tests/ that a program imports or puts on the path."""
    tests = PACKAGE.parent / "tests"
    ours = {p.stem for p in tests.glob("*.py")} | {
        p.parent.name for p in tests.glob("*/__init__.py")
    }
    tree = ast.parse(source)
    modules = {name.partition(".")[0] for name in imports(tree)} & ours
    paths = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and "path" in ast.unparse(n.func)]
    return modules | {"tests" for call in paths for n in ast.walk(call) if is_text(n, "tests")}


def is_text(node: ast.AST, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def test_the_book_imports_nothing_from_the_tests():
    root = PACKAGE.parent
    programs = [
        p for folder in ("book", "classroom", "tools") for p in (root / folder).rglob("*.py")
    ]
    imported = {path: from_tests(path.read_text(encoding="utf-8")) for path in programs}
    assert len(imported) > 30
    assert not {path: names for path, names in imported.items() if names}
    for path in (root / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            lines = [line for line in "".join(cell["source"]).splitlines() if "import " in line]
            assert not re.search(r"^\s*(from|import) tests\b", "\n".join(lines), re.MULTILINE), path


@pytest.mark.parametrize(
    "planted, name",
    [
        ("from beside.boxes import DRAWN", "beside"),
        ("def late():\n    import random_nets", "random_nets"),
        ("import sys\nsys.path.append(str(ROOT / 'tests'))", "tests"),
    ],
)
def test_a_planted_import_of_the_tests_is_found(planted, name):
    assert from_tests(planted) == {name}
    assert from_tests("import ast\nfrom samples import CASES") == set()
