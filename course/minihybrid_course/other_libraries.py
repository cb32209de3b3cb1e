"""Chapter 10. The same concept in other libraries: run if installed, otherwise recorded.

Uses:    a topic of the scripts `data/elsewhere/in_*.py`.
Defines: `elsewhere`, HTML with a tab for each library, or the same as text: the program
         and its output, either current or recorded, as labeled.

Each library runs its whole script in a separate process.
Limits:  libraries aren't installed automatically.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path

from minihybrid.core.op import HybridError
from minihybrid.view.hybrid_view import page
from minihybrid_course import HERE
from minihybrid_course.cells import cells

FOLDER = HERE / "data" / "elsewhere"
RECORDS = FOLDER / "records.json"
RUNNER = Path(__file__).with_name("cells.py")
LIBRARIES = {"mxnet": "MXNet", "torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
LIMIT_S = 900  # timeout of a script
QUIET = {  # CPU only, without messages about the machine
    "CUDA_VISIBLE_DEVICES": "-1",
    "JAX_PLATFORMS": "cpu",
    "MXNET_SUBGRAPH_VERBOSE": "0",
    **dict.fromkeys(  # one thread, as in the book's benchmarks
        ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "NPROC"), "1"
    ),
    "TORCH_LOGS": "-dynamic",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
}


def script(library):
    """Return the path of a library's script."""
    return FOLDER / f"in_{library}.py"


def script_cells(library):
    """Return the cells of a library's script, in order."""
    return cells(script(library).read_text(encoding="utf-8"))


def recorded():
    """Return library -> its recorded outputs, with versions and date."""
    return json.loads(RECORDS.read_text(encoding="utf-8"))


def ran(library, python=sys.executable):
    """Run a library's script; return its outputs in the recorded format, undated."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        run = subprocess.run(
            [python, "-P", RUNNER, script(library), library, report],
            env=os.environ | QUIET,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if run.returncode:
            reason = (run.stderr.strip() or f"code {run.returncode}").splitlines()[-1]
            raise HybridError(f"elsewhere: the script of {LIBRARIES[library]} stopped: {reason}")
        return json.loads(report.read_text(encoding="utf-8"))


@cache
def record_of(library):
    """Return (a library's outputs, a sentence on when and where they were made)."""
    name, spec, problem = LIBRARIES[library], find_spec(library), "it is not installed"
    if spec and spec.origin:
        try:
            here = ran(library)
            return here, f"Run here and now by {name} {here['version']}, Python {here['python']}."
        except (HybridError, subprocess.TimeoutExpired) as error:
            problem = f"it is installed, but {error}"
    record = recorded()[library]
    return record, (
        f"NOT RUN HERE ({problem}). Recorded on {record['date']} with {name} "
        f"{record['version']}, Python {record['python']}."
    )


class Elsewhere:
    """One topic in some libraries: their programs and outputs."""

    def __init__(self, topic, libraries):
        self.topic, self.parts = topic, []
        for library in libraries:
            chosen = [cell for cell in script_cells(library) if cell.topic == topic]
            if chosen:
                printed, note = record_of(library)
                rows = [(cell, "\n".join(printed["printed"][cell.key])) for cell in chosen]
                self.parts.append((library, LIBRARIES[library], note, rows))

    def __repr__(self):
        lines = []
        for _, name, note, rows in self.parts:
            lines += [f"{name} ".ljust(72, "="), note, ""]
            for cell, output in rows:
                lines += [f"# {cell.sentence}", cell.source, *_quoted(output), ""]
        return "\n".join(lines).rstrip()

    def _repr_html_(self):
        sections = "".join(
            f'<section data-name="{library}" aria-label="{name}">'
            f'<p class="head">{name}</p>'
            f'<p class="note{" recorded" * note.startswith("NOT")}">{escape(note)}</p>'
            f"{''.join(map(_html, rows))}</section>\n"
            for library, name, note, rows in self.parts
        )
        return page(f'<div class="bar"></div>\n{sections}', "tabs", HERE)


def _quoted(output):
    return [f"| {line}".rstrip() for line in output.splitlines()] or ["| (prints nothing)"]


def _html(row):
    """Return a cell as HTML: its sentence, program and output."""
    cell, output = row
    sentence = re.sub("`(.*?)`", r"<code>\1</code>", escape(cell.sentence))
    below = (
        f'<pre class="out" tabindex="0" role="group" aria-label="output">{escape(output)}</pre>'
        if output
        else '<p class="nothing">(prints nothing)</p>'
    )
    return (
        f'<p class="what">{sentence}</p><pre class="code" tabindex="0" role="group" '
        f'aria-label="program">{_marked(cell.source)}</pre>{below}'
    )


def _marked(source):
    """Return Python as HTML that highlights keywords, strings, comments without colors."""
    from pygments.lexers import PythonLexer  # a terminal doesn't need them; notebooks have them
    from pygments.token import Comment, Keyword, Operator, String

    def tag_of(token):
        kind, _ = token
        if kind in Keyword or kind is Operator.Word:
            return "b"
        return "i" if kind in Comment or kind in String else ""

    parts, lexer = [], PythonLexer(stripnl=False, ensurenl=False)
    for tag, tokens in itertools.groupby(lexer.get_tokens(source), tag_of):
        text = escape("".join(text for _, text in tokens))
        parts.append(f"<{tag}>{text}</{tag}>" if tag else text)
    return "".join(parts)


def elsewhere(topic, *libraries):
    """Show the same concept in other libraries, each with its own API.

    topic:      "write", "trace", "steps", "look", "print", "number", "branch", "shape",
                "save", "list", "loop" or "race": a part of the scripts in the folder
                `course/minihybrid_course/data/elsewhere`.
    libraries:  some of "mxnet", "torch", "tensorflow", "jax"; by default, all that cover
                the topic.

    An installed library runs its script on first use, which may take a minute. For others
    the recorded output is shown and labeled.

    >>> elsewhere("write", "mxnet")
    MXNet ==...
    NOT RUN HERE (it is not installed). Recorded on ... with MXNet 1.9.1, Python 3.11...
    ...
    """
    for library in libraries:
        if library not in LIBRARIES:
            raise HybridError(
                f"elsewhere: found the library {library!r:.40}, but one of "
                f"{', '.join(LIBRARIES)} is needed"
            )
    libraries = libraries or tuple(LIBRARIES)
    topics = dict.fromkeys(c.topic for library in libraries for c in script_cells(library))
    if topic not in topics:
        raise HybridError(
            f"elsewhere: found the topic {topic!r:.40}, but one of {', '.join(topics)} is needed"
        )
    return Elsewhere(topic, libraries)
