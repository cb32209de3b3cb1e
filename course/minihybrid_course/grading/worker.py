"""The student's process: it runs cells and calls the functions they define.

    python -I worker.py '{"limits": ..., "files": ..., "path": ...}'

It reads one request per line from stdin and answers with one line: {"run": text} runs a cell,
{"call": name, "args": [...], "kwargs": {...}} calls a function. Only numbers, strings and
arrays are exchanged, as JSON. Only the requesting process has the right answers.

Cells run as in Jupyter: an IPython shell handles magics, `!`, `?` and top-level `await`.
Given cells run in a separate namespace, so a test's helper is unaffected if a student reuses
its name.
"""

import base64
import builtins
import itertools
import json
import linecache
import os
import sys
import traceback
from importlib import import_module
from types import FunctionType

import numpy as np
from IPython.core.inputtransformer2 import TransformerManager

PARTS = ("__code__", "__defaults__", "__kwdefaults__")  # assignable parts of a function


def limit(limits):
    """Set the system's limits on memory, CPU time, processes and files."""
    import resource  # not available on Windows

    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


# -- serialization ---------------------------------------------------------------------
def encode(value):
    """Convert a value to JSON-serializable data.

    Raises:  TypeError for anything but numbers, strings, arrays, and lists and dicts of them.
    """
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            return {"number": repr(value)} if value != value or abs(value) > 1e300 else value
        case list() | tuple():
            return [encode(v) for v in value]
        case dict():
            return {"dict": {str(k): encode(v) for k, v in value.items()}}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        a = np.ascontiguousarray(value)
        text = base64.b64encode(a.tobytes()).decode()
        return {"array": text, "dtype": a.dtype.str, "shape": list(value.shape)}
    name = type(value).__name__
    raise TypeError(f"the result is a {name}; an array, a number or a text is needed")


def decode(data, functions=None):
    """Decode the data of `encode`; functions: name -> the student's function."""
    if isinstance(data, list):
        return [decode(v, functions) for v in data]
    if not isinstance(data, dict):
        return data
    if "array" in data:
        dtype = np.dtype(str(data["dtype"]))
        if dtype.kind not in "biuf":
            raise ValueError(f"the result is an array of {dtype}; numbers are needed")
        array = np.frombuffer(base64.b64decode(data["array"]), dtype)
        return array.reshape([int(n) for n in data["shape"]]).copy()
    if "number" in data:
        return float(data["number"])
    if "name" in data:
        if data["name"] not in functions:
            raise NameError(f"{data['name']} is not defined: its cell is empty or has failed")
        return functions[data["name"]]
    return {k: decode(v, functions) for k, v in data["dict"].items()}


# -- cells -----------------------------------------------------------------------------
def shell():
    """Return an IPython shell that prints no tracebacks and keeps no history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    terminal = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    terminal.enable_gui = lambda gui=None: None  # %matplotlib inline calls it
    terminal.showtraceback = terminal.showsyntaxerror = lambda *args, **kwargs: None
    return terminal


class Notebook:
    """The state of one submission's cells, in two namespaces.

    student: the names that the student's cells define, plus the given names.
    given:   the names that given cells define; student cells can't replace them, except
             `solutions`, the names that students must define.
    modules: modules that the course provides, which are restored for given cells.
    """

    def __init__(self, solutions=(), modules=()):
        self.modules = [(module, dict(vars(module))) for module in map(import_module, modules)]
        self.shell, self.solutions = shell(), set(solutions)
        self.student = self.shell.user_ns
        self.given = {"__name__": "__main__", "__builtins__": dict(vars(builtins))}
        self.given_names, self.count = set(), itertools.count()
        self.originals = {}  # name -> a given cell's object, and its code and defaults
        self.transform = TransformerManager().transform_cell
        self.builtin_names = set(self.student)

    def run(self, text):
        """Run a student's cell; propagate its exceptions."""
        result = self.shell.run_cell(text)
        self.share()
        if error := result.error_before_exec or result.error_in_exec:
            raise error

    def run_given(self, text):
        """Run a given cell in its namespace; share its names with the student's cells."""
        text, name = self.transform(text), f"<given cell {next(self.count)}>"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        self.restore()
        before = dict(self.given)
        exec(compile(text, name, "exec"), self.given)
        new = {k: v for k, v in self.given.items() if k not in before or v is not before[k]}
        self.given_names |= new.keys() - self.solutions
        for k in new.keys() - self.solutions:
            if callable(new[k]):
                parts = PARTS if isinstance(new[k], FunctionType) else ()
                self.originals[k] = new[k], {a: getattr(new[k], a) for a in parts}
        self.student.update(new)

    def restore(self):
        """Undo student cells' changes to given functions, their globals and modules."""
        for module, names in self.modules:
            sys.modules[names["__name__"]] = module
            vars(module).update(names)
        for name, (function, parts) in self.originals.items():
            self.given[name] = function
            for part, value in parts.items():
                setattr(function, part, value)

    def share(self):
        """Make the student's names available to given cells, except the given names."""
        hidden = self.given_names | self.builtin_names
        self.given.update({k: v for k, v in self.student.items() if k not in hidden})

    def function(self, request):
        """Return the function that a request names, given or the student's."""
        self.share()
        self.restore()
        return decode({"name": request["call"]}, self.names())

    def names(self):
        """Return name -> value, for tests."""
        return self.student | {name: self.given[name] for name in self.given_names}


def describe(error):
    """Return an error's type and message, and the last cell line in its traceback."""
    line = ""
    for frame in traceback.extract_tb(error.__traceback__)[::-1]:
        if frame.filename.startswith(("<ipython-input", "<given cell")):
            line = f" (line {frame.lineno} of the cell)"
            break
    try:
        text = str(error)
    except BaseException:  # a student's __str__
        text = "its text can't be made"
    return f"{type(error).__name__}: {text}"[:1000] + line


def answer(request, notebook):
    """Process a request; return the response as a dict for JSON."""
    try:
        if "run" in request:
            run = notebook.run_given if request.get("given") else notebook.run
            run(request["run"])
            return {"done": None}
        function, names = notebook.function(request), notebook.names()
        args = [decode(v, names) for v in request["args"]]
        kwargs = {k: decode(v, names) for k, v in request["kwargs"].items()}
        return {"done": encode(function(*args, **kwargs))}
    except BaseException as error:  # includes the student's SystemExit
        return {"error": describe(error)}


def main(settings):
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for k in (0, 1, 2):  # discard cells' output
        os.dup2(null, k)
    if settings["user"] is not None:
        os.setgroups([])
        os.setgid(settings["user"])
        os.setuid(settings["user"])
    if settings["limits"]:
        limit(settings["limits"])
    for name, text in settings["files"].items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    sys.path[:0], sys.argv[1:] = [os.getcwd(), *settings["path"]], []
    notebook = Notebook(settings["solutions"], [name.split(".")[0] for name in settings["files"]])
    for line in os.fdopen(requests, encoding="utf-8"):
        request = json.loads(line)
        data = (json.dumps(answer(request, notebook) | {"id": request["id"]}) + "\n").encode()
        while data:
            data = data[os.write(answers, data) :]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
