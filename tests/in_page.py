"""A notebook as the page runs it: with few libraries, no thread, and no process.

Run as `python in_page.py NOTEBOOK [LIBRARY ...]`: prints the outputs of each code cell,
by its id, as JSON. In a page, Python runs in WebAssembly: IPython, NumPy and the
libraries named are there, and what a system lends to a program is missing, as it is here.
"""

import json
import os
import sys
import sysconfig
import threading
import time
from importlib.machinery import PathFinder
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Unless they are named. What IPython and matplotlib need is there, too.
LIBRARIES = {
    *("cuda", "hypothesis", "llvmlite", "matplotlib", "numba", "onnx", "onnxruntime"),
    *("scipy", "torch", "tqdm"),
}
NO_SYSTEM = {"_posixsubprocess", "_multiprocessing", "_posixshmem", "_curses", "resource"}


class Page(PathFinder):
    """Finds what a page has; what it has not is not found, as if nowhere installed."""

    missing = NO_SYSTEM

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """As Python asks every finder."""
        missing = name.partition(".")[0] in cls.missing
        return None if missing else super().find_spec(name, path, target)


def no_thread(*_, **__):
    """As threading says it where none can start."""
    raise RuntimeError("can't start new thread")


def become_a_page(libraries):
    """Make this process one that runs in a browser, as far as Python can tell."""
    Page.missing = NO_SYSTEM | LIBRARIES - set(libraries)
    sysconfig.get_config_vars()  # reads a file whose name has the platform's
    sys.platform = "emscripten"
    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "register_at_fork"):
        delattr(os, name)
    os.cpu_count = lambda: 1
    del os.sched_getaffinity, time.thread_time
    threading._start_new_thread = threading._start_joinable_thread = no_thread
    sys.meta_path[:] = [Page() if f is PathFinder else f for f in sys.meta_path]
    assert not Page.missing & {name.partition(".")[0] for name in sys.modules}
    os.environ |= {"TQDM_DISABLE": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline"}


class Stream:
    """A file that writes into the outputs of the cell that runs."""

    encoding, errors = "utf-8", "strict"

    def __init__(self, name, outputs):
        self.name, self.outputs = name, outputs

    def write(self, text):
        """As files do."""
        last = self.outputs[-1] if self.outputs else {}
        if last.get("name") == self.name:
            last["text"] += text
        else:
            self.outputs.append({"output_type": "stream", "name": self.name, "text": text})
        return len(text)

    def flush(self):
        """Nothing is kept back."""

    def isatty(self):
        """Nobody types here."""
        return False


async def outputs_of(notebook):
    """cell id -> its outputs, of all code cells run one after the other."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    outputs = []

    class Shown(DisplayHook):
        def __call__(self, result=None):
            if result is not None:
                self.update_user_ns(result)
                data, metadata = self.compute_format_data(result)
                outputs.append({"output_type": "execute_result", "data": data})

    class Published(DisplayPublisher):
        def publish(self, data, metadata=None, **_):
            outputs.append({"output_type": "display_data", "data": data})

    class Shell(InteractiveShell):
        displayhook_class, display_pub_class = Shown, Published

        def _showtraceback(self, kind, value, lines):
            outputs.append({"output_type": "error", "ename": kind.__name__, "evalue": str(value)})

    shell, streams = Shell.instance(), (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = Stream("stdout", outputs), Stream("stderr", outputs)
    results = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            source = shell.transform_cell("".join(cell["source"]))
            await shell.run_cell_async(source, store_history=True, transformed_cell=source)
            shell.events.trigger("post_execute")  # shows figures
            results[cell["id"]] = [*outputs]
            outputs.clear()
    sys.stdout, sys.stderr = streams
    return results


if __name__ == "__main__":
    become_a_page(sys.argv[2:])
    sys.path[:0] = ["", str(ROOT)]
    notebook = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        outputs_of(notebook).send(None)  # no cell waits
    except StopIteration as done:
        print(json.dumps(done.value), file=sys.__stdout__)
