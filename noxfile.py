"""minihybrid as a wheel beside other versions of Python, NumPy and Numba.

    nox                         # every set of tests/matrix.toml, and a table
    nox -s newest-313 table     # one of them

A set whose Python is not on this machine is not run, and the table says so.
"""

import shutil
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import nox

sys.path.insert(0, "benchmarks")
from envs import NotAvailable, base_python

SETS = tomllib.loads(Path("tests/matrix.toml").read_text())
RESULTS = Path(".nox/results")

# Two minutes a set, yet every stage is in them: records, the tape, passes, plans of
# NumPy, of compiled kernels and of the simulated GPU, C, files, training.
TESTS = [
    f"tests/{name}"
    for name in (
        "engine/test_nd.py",
        "engine/test_np.py",
        "engine/test_autograd.py",
        "gluon/test_gluon.py",
        "gluon/test_optimizers.py",
        "files/test_serial.py",
        "laws/test_programs.py::test_random_programs",
        "laws/test_programs.py::test_random_programs_elsewhere",
        "files/test_standalone.py::test_c_runs_what_threads_share_as_one_part",
    )
]

nox.options.error_on_missing_interpreters = False  # the table says it


def python_path(version):
    """Path of that Python, or None."""
    try:
        return base_python(version)
    except NotAvailable:
        return None


def wheel_sources(folder):
    """Copy what a wheel is made of: `build/` beside it would remember deleted files."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        "minihybrid", folder / "minihybrid", ignore=shutil.ignore_patterns("__pycache__")
    )
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(file, folder)
    return folder


def add_session(name, python, **packages):
    """Our wheel with those versions in an environment of its own, and `TESTS`."""

    @nox.session(name=name, python=python_path(python) or python)
    def run(session):
        result = RESULTS / f"{name}.xml"
        result.unlink(missing_ok=True)
        sources = wheel_sources(Path(session.create_tmp()) / "sources")
        pins = [f"{package}=={version}" for package, version in packages.items()]
        session.install(sources, "pytest", "pytest-timeout", "hypothesis", "onnx", *pins)
        session.run(
            "python",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junit-xml={result}",
            *(session.posargs or TESTS),
            env={"PYTHONSAFEPATH": "1"},
        )  # the wheel, not the folder here


for name, versions in SETS.items():
    add_session(name, **versions)


@nox.session(python=False)
def table(session):
    """Print what each set has shown."""
    rows = [("set", "Python", "NumPy", "Numba", "SciPy", "Matplotlib", "tests")]
    for name, versions in SETS.items():
        columns = ("python", "numpy", "numba", "scipy", "matplotlib")
        rows.append(
            (name, *(versions[column] for column in columns), verdict(name, versions["python"]))
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


def verdict(name, python):
    """One line on a set's last run."""
    if not python_path(python):
        return f"NOT SHOWN: there is no Python {python} on the PATH"
    result = RESULTS / f"{name}.xml"
    if not result.exists():
        return "NOT SHOWN: not run, or not installable"
    suite = ElementTree.parse(result).getroot()[0]
    bad = int(suite.get("failures")) + int(suite.get("errors"))
    good = int(suite.get("tests")) - bad - int(suite.get("skipped"))
    counts = f"{good} passed, {suite.get('skipped')} skipped"
    return f"{counts}, {bad} FAILED" if bad else counts
