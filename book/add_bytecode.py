"""Compile the modules in wheels and in the standard library's archive, for a Python in a page.

Use: PYTHON add_bytecode.py ARCHIVE ...      (book/make_lite.py; PYTHON has the page's version)

A page keeps no bytecode, so it would compile all that it imports at each visit: half of the time
until a kernel is ready. As in Pyodide's own distribution of bytecode, no source remains; only the
engine's does, which chapters show.
"""

import sys
import warnings
import zipfile
from importlib import util
from importlib._bootstrap_external import _code_to_hash_pyc
from pathlib import Path

# Stubs for other libraries and for Python 2: most of jedi's files, and each takes its time.
JEDI = "jedi/third_party/"
UNUSED = tuple(
    JEDI + name for name in ("django-stubs/", "typeshed/third_party/2", "typeshed/stdlib/2/")
)
ENGINE, STDLIB = "minihybrid-", "python_stdlib.zip"
LIBRARY = f"/lib/python{sys.version_info[0]}{sys.version_info[1]}.zip/"


def add_bytecode(path):
    """Rewrite an archive with the bytecode of its modules, which no date makes stale."""
    new, keeps = path.with_suffix(".new"), path.name.startswith(ENGINE)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        for info in old.infolist():
            name, content = info.filename, old.read(info)
            if name.startswith(UNUSED):
                continue
            path_there = LIBRARY + name if path.name == STDLIB else name  # else import corrects it
            try:
                code = name.endswith(".py") and compile(content, path_there, "exec")
            except (SyntaxError, ValueError):
                code = None  # a template, or a test of the compiler
            if code:
                bytecode = _code_to_hash_pyc(code, util.source_hash(content), checked=False)
                place = util.cache_from_source(name) if keeps else f"{name}c"
                archive.writestr(place, bytecode)
            if keeps or not code:
                archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    new.replace(path)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of other people's modules
    for path in map(Path, sys.argv[1:]):
        add_bytecode(path)
