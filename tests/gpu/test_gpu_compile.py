"""Kernels become machine code of GPUs that are not here, and keep what they promise.

Two toolchains compile them, each in an environment of `benchmarks/envs.py`: the current
one, and Colab's. Where one cannot be made, its test is skipped, and says why.
"""

import importlib.util
import math
import re
import shutil
import subprocess

import envs
import gpu_kernels
import pytest
from gpu_kernels import REPOSITORY
from gpu_texts import PROMISED

from minihybrid.codegen.gpu import block_shape
from minihybrid.codegen.gpu.cuda import build
from minihybrid.core.op import HybridError

pytestmark = pytest.mark.external


def broken(actual, capability, **expected):
    """What a kernel does not keep: spills, and the figures that it promised."""
    if isinstance(actual, str):
        return actual
    if capability >= (9, 0) and actual["shared_bytes"]:
        actual["shared_bytes"] -= 1024  # of each block, the system's own
    expected = {"spilled_bytes": 0} | expected
    # JSON has no whole numbers as keys
    expected = {
        name: {str(k): v for k, v in value.items()} if isinstance(value, dict) else value
        for name, value in expected.items()
    }
    return {
        name: (actual[name], value) for name, value in expected.items() if actual[name] != value
    }


def tried(function, environment, *args, **variables):
    """What a function answers for an environment; a skip, if there is none."""
    try:
        return function(environment, *args, **variables)
    except envs.NotAvailable as reason:
        pytest.skip(f"no kernel was compiled: the environment '{environment}' {reason}")


@pytest.mark.parametrize("environment", envs.TOOLCHAINS)
def test_kernels_by_hand_keep_their_promises(environment):
    promised = {text: (name, figures) for name, (text, figures) in PROMISED.items()}
    wrong = {}
    for text, capability, actual in tried(gpu_kernels.compiled, environment, promised):
        name, figures = promised[text]
        if what := broken(actual, capability, **figures):
            wrong[name, capability] = what
    assert wrong == {}


@pytest.mark.parametrize(
    "environment, capabilities",
    [("cuda13", gpu_kernels.CAPABILITIES[::2]), ("colab", gpu_kernels.CAPABILITIES[:1])],
)
def test_kernels_of_nets_compile(environment, capabilities):
    """No hidden float64, no spilled register, nothing in local memory."""
    texts = gpu_kernels.of_nets()
    assert len(texts) > 100
    assert tried(gpu_kernels.wrong_in, environment, texts, capabilities) == {}


def test_kernels_of_operators_compile():
    """A sample of each, and its gradient; `make cubins` compiles all samples."""
    texts = gpu_kernels.of_samples(gpu_kernels.one_an_operator(), ["float32"])
    assert len(texts) > 300
    assert tried(gpu_kernels.wrong_in, "cuda13", texts, [(7, 5)]) == {}


@pytest.mark.parametrize("n, width", [(1000, 1), (2**26, 4)])
def test_five_operators_load_each_input_once(n, width):
    """As the target "gpu" writes them: one number a thread, or four at once."""
    step = gpu_kernels.five_operators(n)
    for _, capability, actual in tried(gpu_kernels.compiled, "cuda13", [step.kernel]):
        assert broken(actual, capability, f64=0, loads={width: 4}, stores={width: 1}) == {}


def test_large_kernels_fit():
    """A multiprocessor has 65,536 registers, and a block needs its own at once."""
    steps = {step.kernel: step for step in gpu_kernels.of_large()}
    assert max(math.prod(step.block) for step in steps.values()) == block_shape.MAX_THREADS
    for text, capability, actual in tried(gpu_kernels.compiled, "cuda13", steps):
        assert gpu_kernels.faults(text, actual) == [], (steps[text].name, capability)
        assert actual["registers"] * math.prod(steps[text].block) <= 2**16


def test_faults_are_seen():
    """What the laws above look for, planted."""
    head = "from numba import cuda, float32\n\n\n"
    hidden = (
        head
        + """def hidden(a0: float32[64], out: float32[64]):
    i = cuda.threadIdx.x
    out[i] = a0[i] * 0.1
"""
    )
    broken_text = (
        head
        + """def broken(a0: float32[64], out: float32[64]):
    out[cuda.threadIdx.x] = a0[cuda.threadIdx.x] + missing
"""
    )
    wrong = tried(gpu_kernels.wrong_in, "cuda13", {hidden: "h", broken_text: "b"}, [(7, 5)])
    assert wrong["h", (7, 5)][0].endswith("times .f64")
    assert "NameError: name 'missing' is not defined" in wrong["b", (7, 5)][0]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """The folder of a driver that does nothing."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("the calls of a driver were not tried: there is no C compiler (cc)")
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-o",
            folder / "libcuda.so.1",
            REPOSITORY / "tests" / "null" / "driver.c",
        ],
        check=True,
    )
    return folder


@pytest.mark.parametrize("environment", envs.TOOLCHAINS)
def test_what_is_launched_reaches_the_driver(environment, driver, tmp_path):
    """Through the real bindings: kernels, graphs, and graphs with other arguments."""
    actual = tried(
        gpu_kernels.run_in,
        environment,
        "gpu_null.py",
        None,
        LD_LIBRARY_PATH=str(driver),
        MINIHYBRID_CACHE_DIR=str(tmp_path),
    )
    first, second = actual["arena"]
    assert actual["one"] == [11]
    assert actual["changed"] == [12]
    assert actual["chain"] == [11, first, second, first]
    assert actual["changed chain"] == [12, first, second, first]
    assert (actual["name"], actual["gpus"], actual["capability"]) == ("gpu(0)", 1, [7, 5])
    assert actual["shape"] == [3, 4]
    assert actual["kernels"] == len(list(tmp_path.glob("*.o"))) > 3  # all on disk


@pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is not None,
    reason="the toolchain is installed here: nothing is missing",
)
def test_without_a_toolchain_the_error_names_the_extra():
    text, _ = PROMISED["five"]
    with pytest.raises(
        HybridError,
        match=re.escape(
            "GPU kernels need Numba's compiler for CUDA, and numba-cuda is not "
            'installed; say `pip install "minihybrid[cuda13]"`'
        ),
    ):
        build(text, (7, 5))
