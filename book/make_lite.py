"""Build JupyterLite with all chapters, which run in the reader's browser: _build/lite.

Use: python book/make_lite.py [PYODIDE [TARGET]] [--assignments FOLDER]
     (`make lite` also builds the book)

PYODIDE is a folder with Pyodide's distribution, the file pyodide.mjs and the libraries
of book/in_page.toml; it becomes part of the site, and then no network is needed. Without
it a reader's browser loads Pyodide from its own site, when the reader asks for it.
FOLDER has what students get (`make assignments`).
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path

import make_setup

ROOT = Path(__file__).resolve().parent.parent
LITE = ROOT / "_build/lite"
CHAPTERS = tomllib.loads((ROOT / "book/in_page.toml").read_text(encoding="utf-8"))
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
# Loaded while Python starts; the kernel would install these one after the other.
EARLY = ["micropip", "ssl", "sqlite3", "jedi", "ipython", "numpy"]
# And these, which Pyodide lacks, if it's part of the site: installing each takes a second.
ADDED = ["piplite", "ipykernel", "comm", "pyodide_kernel", "minihybrid"]

BRINGS = """\
import piplite

for library in {libraries}:
    if importlib.util.find_spec(library) is None:
        await piplite.install(library)  # says nothing of what it cannot load
    if importlib.util.find_spec(library) is None:
        raise ImportError(
            f"{{library}} could not be loaded: Pyodide's libraries need the network, or a "
            "site that was built with Pyodide's folder (book/make_lite.py)"
        )
if importlib.util.find_spec("minihybrid") is None:
    await piplite.install("minihybrid", deps=False)
%load_ext minihybrid_course.in_page
"""

# JupyterLab shows MyST's roles as they are written, so their text is enough.
ROLE = re.compile(r"\{(?:download|term)\}`([^`<]+?)(?:\s+<[^`>]*>)?`")


def setup(stem):
    """A chapter's first cell, as it is in a page: the engine comes with the site.

    >>> "for library in ['numpy', 'scipy']:" in setup("12_the_operator_record")
    True
    """
    libraries = ["numpy", *CHAPTERS.get(stem, {}).get("libraries", ["matplotlib"])]
    brings = BRINGS.format(libraries=libraries)
    before, _, after = make_setup.source(stem).partition("import minihybrid as mx\n")
    assert after, f"{stem}: the first cell does not import the engine"
    return f"import importlib.util\nimport os\n\n{brings}\nimport minihybrid as mx\n{after}"


def in_page(text, stem):
    """A notebook's file, with the first cell as it is in a page.

    Its outputs are trusted, and each is one string: JupyterLab would strip the figures of
    untrusted ones, and put commas between the lines of a list.
    """
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = ROLE.sub(r"\1", "".join(cell["source"])).splitlines(keepends=True)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    code[0]["source"] = setup(stem).splitlines(keepends=True)
    for cell in code:
        cell["metadata"]["trusted"] = True
        for output in cell["outputs"]:
            data = output.get("data", {})
            data.update({kind: "".join(text) for kind, text in data.items()})
            if "text" in output:
                output["text"] = "".join(output["text"])
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def assignment(text):
    """A student's notebook, whose setup cell installs the engine of the site in a page only,
    so the grader runs it, too."""
    notebook = json.loads(text)
    (cell,) = [cell for cell in notebook["cells"] if cell.get("id") == "setup"]
    brings = textwrap.indent(BRINGS.format(libraries=["numpy"]), "    ")
    source, n = re.subn(
        r"^ +%pip install .*\n", lambda _: brings, "".join(cell["source"]), flags=re.M
    )
    assert n == 1, "the setup cell doesn't install the engine"
    cell["source"] = source.splitlines(keepends=True)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def build(pyodide=None, target=LITE, assignments=None):
    """Make the folder anew."""
    with tempfile.TemporaryDirectory() as folder:
        contents = Path(folder, "contents")
        contents.mkdir()
        for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
            text = in_page(path.read_text(encoding="utf-8"), path.stem)
            (contents / path.name).write_text(text, encoding="utf-8")
        for path in sorted(Path(assignments).iterdir()) if assignments else ():
            text = path.read_text(encoding="utf-8")
            text = assignment(text) if path.suffix == ".ipynb" else text
            (contents / path.name).write_text(text, encoding="utf-8")
        wheel(folder)
        # The kernel needs comm, which is not in Pyodide's distribution.
        run(folder, "pip", "download", "-q", "--no-deps", "-d", folder, "comm")
        wheels = [w for wheel in Path(folder).glob("*.whl") for w in ("--piplite-wheels", wheel)]
        early = [name for name in EARLY if not pyodide or has(pyodide, name)]
        settings = {"loadPyodideOptions": {"packages": early}}
        if pyodide:
            early += ADDED
            settings |= {"disablePyPIFallback": True, "pyodideUrl": "./static/pyodide/pyodide.mjs"}
        data = {"litePluginSettings": {KERNEL: settings}}
        site = {"jupyter-lite-schema-version": 0, "jupyter-config-data": data}
        Path(folder, "jupyter-lite.json").write_text(json.dumps(site), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        run(
            folder,
            *("jupyterlite_core", "build", "--lite-dir", folder, "--output-dir", target),
            *("--contents", contents, *wheels),
            *("--apps", "lab", "--apps", "notebooks", "--no-sourcemaps"),
        )
    if pyodide:
        whole = shutil.copytree(pyodide, Path(target, "static/pyodide"))
        for path in Path(target).glob("**/pypi/*.whl"):
            if path.name.startswith(tuple(ADDED)):
                add(whole, path)
        compile_libraries(whole)
    keep(Path(target))


def lock_of(pyodide):
    """The list of a distribution's libraries, of which it may have some."""
    return json.loads(Path(pyodide, "pyodide-lock.json").read_text(encoding="utf-8"))


def has(pyodide, name):
    """Whether a distribution has a library's file."""
    entry = lock_of(pyodide)["packages"].get(name.replace("_", "-"))
    return entry and Path(pyodide, entry["file_name"]).exists()


def add(pyodide, wheel):
    """Add a wheel to a distribution, without what it depends on."""
    shutil.copy(wheel, pyodide)
    name, version, *_ = wheel.name.split("-")
    lock = lock_of(pyodide)
    lock["packages"][name.replace("_", "-").lower()] = {
        **{"name": name, "version": version, "file_name": wheel.name, "imports": [name]},
        **{"install_dir": "site", "package_type": "package", "unvendored_tests": False},
        **{"sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(), "depends": []},
    }
    Path(pyodide, "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")


def entries(lock, names):
    """name -> its entry of the list, of libraries and all that they depend on."""
    packages, left = {}, list(names)
    while left:
        name = left.pop().replace("_", "-").lower()
        if name not in packages:
            packages[name] = lock["packages"][name]
            left += packages[name]["depends"]
    return packages


def add_bytecode(pyodide, archives):
    """Compile the modules in archives for a distribution's Python, if it's installed here."""
    version = ".".join(lock_of(pyodide)["info"]["python"].split(".")[:2])
    command = [shutil.which(f"python{version}"), ROOT / "book/add_bytecode.py", *archives]
    env = os.environ | {"PYENV_VERSION": version}  # without it, pyenv's shim finds none
    if not command[0] or subprocess.run(command, env=env, check=False).returncode:
        print(f"Python {version} isn't installed, so a page compiles all that it imports itself.")


def compile_libraries(pyodide):
    """Add bytecode to the libraries that chapters load."""
    lock = lock_of(pyodide)
    more = {name for chapter in CHAPTERS.values() for name in chapter["libraries"]}
    packages = entries(lock, [name for name in {*EARLY, *ADDED, *more} if has(pyodide, name)])
    paths = [pyodide / entry["file_name"] for entry in packages.values()]
    wheels = [path for path in paths if path.suffix == ".whl" and path.exists()]
    add_bytecode(pyodide, [*wheels, pyodide / "python_stdlib.zip"])
    for entry in packages.values():
        if (path := pyodide / entry["file_name"]) in wheels:
            entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (pyodide / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")


def keep(target):
    """Let JupyterLite's service worker keep what is loaded, until any file is another."""
    files = sorted(path for path in target.rglob("*") if path.is_file())
    sums = "".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in files)
    version = hashlib.sha256(sums.encode()).hexdigest()[:12]
    ours = (ROOT / "book/keep.js").read_text(encoding="utf-8").replace("VERSION", version)
    worker = target / "service-worker.js"
    worker.write_text(ours + worker.read_text(encoding="utf-8"), encoding="utf-8")


def wheel(folder):
    """Put the wheel of the engine and the course into a folder; gives its path."""
    source = Path(folder, "source")  # pip builds beside what it reads
    for name in ("minihybrid", "course"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(folder, "pip", "wheel", "-q", "--no-deps", "-w", folder, source)
    return next(Path(folder).glob("minihybrid-*.whl"))


def run(folder, module, *arguments):
    """Run a module of Python's in a folder; what it prints is seen only if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{module} failed:\n{done.stdout[-3000:]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("pyodide", nargs="?")
    parser.add_argument("target", nargs="?", default=LITE)
    parser.add_argument("--assignments")
    build(**vars(parser.parse_args()))
