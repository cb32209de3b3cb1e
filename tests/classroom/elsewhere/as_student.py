"""Run notebooks from top to bottom as a student would, each in a process's fresh names.

python as_student.py notebook        (in the notebook's folder, with the student's Python)

Prints, as JSON, the versions that matter, and of each cell that failed its name and the error.
"""

import json
import linecache
import re
import sys
from importlib.metadata import version
from pathlib import Path

MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)  # the setup cell's %pip


def code_of(text):
    """A cell's code, whose source can be read again: `cuda.jit` needs it."""
    text, name = MAGIC.sub(r"\1pass", text), f"<cell {len(linecache.cache)}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    return compile(text, name, "exec")


def main(path):
    names, failed = {"__name__": "__main__"}, []
    for cell in json.loads(Path(path).read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        try:
            exec(code_of("".join(cell["source"])), names)
        except Exception as error:
            failed.append(
                (
                    cell["metadata"].get("nbgrader", {}).get("grade_id"),
                    f"{type(error).__name__}: {error}",
                )
            )
    versions = {name: version(name) for name in ("numpy", "numba")}
    print(json.dumps({"failed": failed, "python": sys.version_info[:2], **versions}))


if __name__ == "__main__":
    main(sys.argv[1])
