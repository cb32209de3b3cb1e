"""Editors know our names: stubs are those of the records, and pyright and jedi read them."""

import inspect
import json
import operator
import subprocess
import sys
from pathlib import Path

import envs
import make_stubs
import pytest

import minihybrid as mx

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "twenty_names.py"
STUBS = dict(make_stubs.stubs())

# What is typed, and the name that an editor must offer then.
TWENTY = {
    "nd.soft": "softmax",
    "nd.linalg.gem": "gemm2",
    "nd.random.nor": "normal",
    "nd.contrib.fore": "foreach",
    "x.resha": "reshape",
    "x.softm": "softmax",
    "part.sha": "shape",
    "best.asn": "asnumpy",
    "loss.backw": "backward",
    "product.as_in_c": "as_in_context",
    "sym.Fully": "FullyConnected",
    "hidden.list_a": "list_arguments",
    "np.aran": "arange",
    "numbers.me": "mean",
    "npx.sig": "sigmoid",
    "nn.Den": "Dense",
    "net.hybr": "hybridize",
    "trainer.st": "step",
    "entropy.exp": "export",
    "mx.simul": "simulated_gpu",
}
CALLS = {
    "nd.softmax(": "softmax(data, length=None, axis: Any=-1, ",
    "x.softmax(": "softmax(length=None, axis: Any=-1, ",
    "sym.FullyConnected(": "FullyConnected(data, weight=None, bias=None, num_hidden: Any=..., ",
    "nd.linalg.gemm2(": "gemm2(A, B, transpose_a: Any=False, ",
    "np.arange(": "arange(start, stop=None, step: Any=1, ",
    "nd.random.normal(": "normal(loc: Any=0.0, scale: Any=1.0, ",
    "nn.Dense(": "Dense(units, activation=None, ",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STUBS)
def test_stubs_are_those_of_the_records(name):
    path = ROOT / "minihybrid" / name
    made = make_stubs.laid_out(path, make_stubs.HEAD + STUBS[name])
    assert path.read_text(encoding="utf-8") == made, "run python tools/make_stubs.py"
    compile(made, name, "exec")


def test_stubs_have_the_names_that_there_are():
    """Planted: without them, nothing above would notice that all were lost."""
    assert "def softmax(data, " in STUBS["core/nd.pyi"]
    assert "def softmax(data, " in STUBS["core/sym.pyi"]
    assert STUBS["ops/infix.pyi"].count("    def ") > 150


# What programs write a point behind; the rooms below `core` are not for programs.
OFFERED = "nd sym np npx autograd gluon gluon.nn gluon.rnn gluon.data gluon.data.vision "
OFFERED += "gluon.data.vision.transforms gluon.loss gluon.utils gluon.contrib image io mod init "
OFFERED += "metric optimizer lr_scheduler kv recordio viz callback bench runtime onnx datasets "
OFFERED += "test_utils contrib nd.linalg nd.contrib sym.linalg"
AS_THEY_ARE = {"_operator", "numpy", "builtins"}  # nd.add, np.float32, np.bool
OURS = {"minihybrid", "minihybrid_course", *AS_THEY_ARE}


def foreign(module):
    """Names that `dir` shows and that are private, or another library's."""
    for name in dir(module):
        value = getattr(module, name)
        home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
        ours = home is None or home.partition(".")[0] in {
            "minihybrid",
            "minihybrid_course",
            *AS_THEY_ARE,
        }
        if not ours or (name.startswith("_") and name != "__version__"):
            yield name


@pytest.mark.parametrize("path", ["", *OFFERED.split()])
def test_only_public_names_of_ours_are_offered(path):
    module = operator.attrgetter(path)(mx) if path else mx
    assert len(dir(module)) > 0 and list(foreign(module)) == []


def test_a_module_without_a_list_shows_foreign_names():
    """Planted: these tests themselves."""
    shown = set(foreign(sys.modules[__name__]))
    assert {"Path", "json", "pytest", "__doc__"} <= shown and "TWENTY" not in shown


@pytest.fixture(scope="module")
def python():
    """Python with pyright and jedi."""
    try:
        return envs.python_of("editors")
    except envs.NotAvailable as reason:
        pytest.skip(f"pyright and jedi: {reason}")


@pytest.mark.external
@pytest.mark.parametrize("planted, errors", [("", 0), ("\nloss.bakward()\nnd.softmx(x)\n", 2)])
def test_pyright_finds_no_error_but_those_that_are_there(planted, errors, python, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.read_text("utf-8") + planted, "utf-8")
    settings = {"extraPaths": [str(ROOT)], "pythonVersion": "3.12"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [python, "-m", "pyright", "--outputjson", "--pythonpath", python, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    actual = json.loads(done.stdout)
    assert actual["summary"]["filesAnalyzed"] == 1
    assert actual["summary"]["errorCount"] == errors, actual["generalDiagnostics"]


@pytest.mark.external
def test_jedi_completes_twenty_names_and_says_how_calls_are_made(python):
    typed = [*TWENTY, *CALLS]
    done = subprocess.run(
        [python, ROOT / "tests" / "ask_jedi.py", PROGRAM],
        input=json.dumps(typed), capture_output=True, text=True, check=True,
    )  # fmt: skip
    answers = dict(zip(typed, json.loads(done.stdout), strict=True))
    assert len(TWENTY) == 20
    assert [line for line, name in TWENTY.items() if name not in answers[line]] == []
    for call, begin in CALLS.items():
        assert answers[call] and answers[call][0].startswith(begin), answers[call]
