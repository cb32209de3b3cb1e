"""Printing the engine's source: functions, classes, methods, modules and operators.

The source is printed below its file name and object name, so every notebook shows and
stores it. There are no line numbers, so a stored notebook changes only when the source
does.

An operator is a definition, not a function; `show` prints the statement that registers it.
Not supported: the source of other packages, and of your own code.
"""

import ast
import inspect
from pathlib import Path
from textwrap import dedent
from typing import Any

from minihybrid.core.op import HybridError, Op, described
from minihybrid.ops.registry import PLACES

PACKAGE = Path(__file__).parent.parent


def show(obj: object) -> None:
    """Print the source of a part of minihybrid, below the name of its file.

    obj:     a function, class, method, property or module, an operator such as
             `OPS["relu"]`, or a function generated from one, such as `nd.relu`.
    Raises:  HybridError if the object has no source in this package.

    >>> from minihybrid.passes import dce
    >>> show(dce)
    # minihybrid/core/passes/dce.py: dce
    def dce(graph):
    ...
    """
    path, name, text = _source(obj)
    print(listed(path.relative_to(PACKAGE.parent).as_posix(), name, text))


def listed(file: str, name: str, text: str) -> str:
    """Return source code below a comment with its file and name; a whole file has no name."""
    return f"# {file}{name and f': {name}'}\n{dedent(text).strip()}"


def _source(obj: Any) -> tuple[Path, str, str]:
    """Return (file, name, source) of an object; a module's name is empty."""
    # The `__wrapped__` of an operator's function is only a signature, not a function.
    unwrapped = inspect.unwrap(obj, stop=lambda f: not callable(f.__wrapped__))  # type: ignore[attr-defined]
    obj = obj.fget if isinstance(obj, property) else unwrapped
    op = obj if isinstance(obj, Op) else _operator_of(obj)
    if op is not None:
        return _record(op)
    try:
        path, text = Path(inspect.getsourcefile(obj) or ""), inspect.getsource(obj)
    except TypeError:
        if isinstance(obj, type) or callable(obj) and hasattr(obj, "__name__"):
            raise HybridError(
                f"show: {obj.__name__} is not written in Python, so there is no source to print"
            ) from None
        raise HybridError(
            f"show: found {described(obj)}, but a function, class, module or operator is "
            f"needed; to see how it works, use show({type(obj).__name__})"
        ) from None
    except OSError:
        raise HybridError(f"show: the source of {obj!r:.60} is not in a file") from None
    if not path.is_relative_to(PACKAGE):
        raise HybridError(
            f"show: {obj!r:.60} is not a part of minihybrid; use "
            "inspect.getsource for other packages"
        )
    return path, getattr(obj, "__qualname__", ""), text


def _operator_of(obj: object) -> Op | None:
    """Return the operator that `nd.relu`, `sym.relu` or `NDArray.relu` calls, else `None`."""
    if not inspect.isfunction(obj):
        return None
    op = inspect.getclosurevars(obj).nonlocals.get("op")
    return op if isinstance(op, Op) else None


def _record(op: Op) -> tuple[Path, str, str]:
    """Return (file, name, source) of the statement that registers an operator.

    Some statements register a family: `binary("add", ...)` also registers `broadcast_add`.
    """
    code, at = PLACES.get(op, (None, 0))
    path = Path(code.co_filename if code else "")
    if not path.is_relative_to(PACKAGE):
        raise HybridError(
            f"show: the operator {op.name} is not registered in "
            "minihybrid.ops; if it is yours, you have its source"
        )
    text = path.read_text(encoding="utf-8")
    line = next(line for begin, end, line in code.co_lines() if begin <= at < end)
    first, last = next(
        (s.lineno, s.end_lineno) for s in ast.parse(text).body if s.lineno <= line <= s.end_lineno
    )
    return path, op.name, "\n".join(text.splitlines()[first - 1 : last])
