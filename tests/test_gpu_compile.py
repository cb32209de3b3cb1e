"""Kernels become machine code of GPUs that are not here, and keep what they promise.

Two toolchains compile them, each in an environment of `benchmarks/envs.py`: the current
one, and Colab's. Where one cannot be made, its test is skipped, and says why.
"""
import json
import os
import pathlib
import shutil
import subprocess

import envs
import pytest
from gpu_texts import PROMISED

REPOSITORY = pathlib.Path(__file__).parent.parent
CAPABILITIES = [(7, 5), (8, 0), (9, 0)]  # T4, A100, H100 and H200


def run_in(environment, script, sent, **variables):
    """The JSON that a script of this folder answers in an environment."""
    try:
        python = envs.python_of(environment)
    except envs.NotAvailable as reason:
        pytest.skip(f"no kernel was compiled: the environment '{environment}' {reason}")
    done = subprocess.run(
        [python, REPOSITORY / "tests" / script], input=json.dumps(sent), text=True,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)} | variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compiled(environment, texts, capabilities=CAPABILITIES):
    """[(text's number, capability, figures or an error's text)] for all of them."""
    answers = run_in(environment, "gpu_compile.py",
                     {"texts": texts, "capabilities": capabilities})
    return [(i, capability, found) for i, row in enumerate(answers)
            for capability, found in zip(capabilities, row, strict=True)]


def broken(found, capability, **wanted):
    """What a kernel does not keep: spills, and the figures that it promised."""
    if isinstance(found, str):
        return found
    if capability >= (9, 0) and found["shared_bytes"]:
        found["shared_bytes"] -= 1024  # of each block, the system's own
    wanted = {"spilled_bytes": 0} | wanted
    # JSON has no whole numbers as keys
    wanted = {name: {str(k): v for k, v in value.items()}
              if isinstance(value, dict) else value for name, value in wanted.items()}
    return {name: (found[name], value) for name, value in wanted.items()
            if found[name] != value}


@pytest.mark.parametrize("environment", envs.TOOLCHAINS)
def test_kernels_by_hand_keep_their_promises(environment):
    names, texts = list(PROMISED), [text for text, _ in PROMISED.values()]
    wrong = {}
    for i, capability, found in compiled(environment, texts):
        if what := broken(found, capability, **PROMISED[names[i]][1]):
            wrong[names[i], capability] = what
    assert wrong == {}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """The folder of a driver that does nothing."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("the calls of a driver were not tried: there is no C compiler (cc)")
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libcuda.so.1",
                    REPOSITORY / "tests" / "null" / "driver.c"], check=True)
    return folder


@pytest.mark.parametrize("environment", envs.TOOLCHAINS)
def test_what_is_launched_reaches_the_driver(environment, driver, tmp_path):
    """Through the real bindings: kernels, graphs, and graphs with other arguments."""
    found = run_in(environment, "gpu_null.py", None, LD_LIBRARY_PATH=str(driver),
                   MINIHYBRID_CACHE_DIR=str(tmp_path))
    first, second = found["arena"]
    assert found["one"] == [11]
    assert found["changed"] == [12]
    assert found["chain"] == [11, first, second, first]
    assert found["changed chain"] == [12, first, second, first]
    assert (found["name"], found["gpus"], found["capability"]) == ("gpu(0)", 1, [7, 5])
    assert found["shape"] == [3, 4]
    assert found["kernels"] == len(list(tmp_path.glob("*.o"))) > 3  # all on disk
