"""Pyodide's distribution as far as registries have it: what JupyterLite's kernel needs.

npm has Pyodide's core, the package index the pure Python libraries that the kernel loads
before it is ready. NumPy for Pyodide is in neither: only Pyodide's own site has it.
"""

import hashlib
import json
import shutil
import subprocess
import sys

import envs

# What the kernel installs when it starts (pyodide-kernel's worker).
KERNEL = ["micropip", "ipython", "jedi"]


def wheels(packages, names):
    """name -> its entry of the lock file, of libraries and all that they depend on."""
    found, left = {}, list(names)
    while left:
        name = left.pop()
        if name not in found:
            found[name] = packages[name]
            left += [needed.replace("_", "-") for needed in found[name]["depends"]]
    return found


def bring(folder):
    """Fill a new folder with Pyodide; raises envs.NotAvailable."""
    shutil.copytree(envs.node_package("pyodide"), folder)
    path = folder / "pyodide-lock.json"
    lock = json.loads(path.read_text(encoding="utf-8"))
    wanted = wheels(lock["packages"], KERNEL)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder),
            *("--only-binary=:all:", "--python-version", lock["info"]["python"]),
            *(f"{name}=={entry['version']}" for name, entry in wanted.items()),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise envs.NotAvailable(f"not downloadable: {done.stderr.strip().splitlines()[-1]}")
    for entry in wanted.values():
        # The index's files are not those of Pyodide's site, but of the same version.
        content = (folder / entry["file_name"]).read_bytes()
        entry["sha256"] = hashlib.sha256(content).hexdigest()
    path.write_text(json.dumps(lock), encoding="utf-8")
