"""Who has only NumPy gets an answer from the NumPy target, or one sentence with the remedy."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy_alone
import pytest

from minihybrid.core.hooks import WITHOUT_SCIPY
from minihybrid.ops import OPS, functions

# What cannot be had, and the words that say what to do.
REFUSED = {
    "export onnx": 'needs the library onnx, which is not installed; pip install "minihybrid[onnx]"',
    "fast simulated_gpu": "needs Numba, which is not installed; use simulated_gpu(fast=False)",
    "target cpu": "needs Numba, which is not installed; pip install numba, or use backend='numpy'",
    "target gpu": "there are cpu and numpy, and for arrays on a GPU that device",
    "import_model": "No such file or directory",  # for nothing was exported
}


@pytest.mark.slow
def test_every_call_gives_an_answer_or_one_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, numpy_alone.__file__, tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    texts = json.loads(done.stdout)
    assert len(texts) > 20
    for name, text in texts.items():
        assert text.endswith(REFUSED[name]) if name in REFUSED else text == "", (name, text)


@pytest.mark.slow
def test_without_numpy_one_sentence_says_so():
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import minihybrid"],  # without what is installed
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: minihybrid computes with NumPy, which is not installed here: "
        "say `python -m pip install numpy`, or `%pip install numpy` in a notebook"
    )


def test_a_planted_bare_error_is_told_by_its_type():
    def planted():
        import no_such_library  # noqa: F401, importing it raises

    assert numpy_alone.answer(planted).startswith("ModuleNotFoundError: ")


@pytest.mark.parametrize("name", ["erf", "erfinv", "gamma", "gammaln", "_polygamma"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_functions_without_scipy_give_the_same(name, dtype, monkeypatch):
    x = np.linspace(0.05, 0.95, 19).astype(dtype)
    orders = [{"order": n} for n in range(4)] if name == "_polygamma" else [{}]
    with_scipy = [OPS[name].eager(x, **order) for order in orders]
    monkeypatch.setattr(functions, "_scipys", WITHOUT_SCIPY.get)
    for order, expected in zip(orders, with_scipy, strict=True):
        actual = OPS[name].eager(x, **order)
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-5 if dtype == "float32" else 1e-12)
