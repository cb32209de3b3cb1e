"""Editors know our names: stubs are those of the records, and pyright and jedi read them."""

import json
import subprocess
from pathlib import Path

import envs
import make_stubs
import pytest

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
    assert path.read_text(encoding="utf-8") == made, "run python book/make_stubs.py"
    compile(made, name, "exec")


def test_stubs_have_the_names_that_there_are():
    """Planted: without them, nothing above would notice that all were lost."""
    assert "def softmax(data, " in STUBS["core/nd.pyi"]
    assert "def softmax(data, " in STUBS["core/sym.pyi"]
    assert STUBS["ops/infix.pyi"].count("    def ") > 150


@pytest.fixture(scope="module")
def python():
    """Python with pyright and jedi."""
    try:
        return envs.python_of("editors")
    except envs.NotAvailable as reason:
        pytest.skip(f"pyright and jedi: {reason}")


@pytest.mark.elsewhere
@pytest.mark.parametrize("planted, errors", [("", 0), ("\nloss.bakward()\nnd.softmx(x)\n", 2)])
def test_pyright_finds_no_error_but_those_that_are_there(planted, errors, python, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.read_text("utf-8") + planted, "utf-8")
    settings = {"extraPaths": [str(ROOT)], "pythonVersion": "3.12"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [python, "-m", "pyright", "--outputjson", "--pythonpath", python, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 1
    assert found["summary"]["errorCount"] == errors, found["generalDiagnostics"]


@pytest.mark.elsewhere
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
