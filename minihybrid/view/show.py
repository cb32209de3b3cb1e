"""Open the engine while you use it: print the source of what you name.

Takes:   a function, class, method or module of this package, or an operator.
Gives:   its source below the names of its file and of itself, as printed text, which
         every notebook shows and keeps. It has no line numbers, so a stored notebook
         changes only when the source itself does.

An operator is a record, not a function; `show` prints the statement that enters it.
What is left out: the source of other packages, and of your own code, which you have.
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

    obj:     a function, class, method, property or module, an operator's record such as
             `OPS["relu"]`, or a function made of one, such as `nd.relu`.
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
    """Source code below a comment with its file and its name; a whole file has no name."""
    return f"# {file}{name and f': {name}'}\n{dedent(text).strip()}"


def _source(obj: Any) -> tuple[Path, str, str]:
    """(file, name, text) of an object's source; a module has no name in its file."""
    # What an operator's function wears tells only how it is called: no function.
    made = inspect.unwrap(obj, stop=lambda f: not callable(f.__wrapped__))  # type: ignore[attr-defined]
    obj = obj.fget if isinstance(obj, property) else made
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
    """The operator that `nd.relu`, `sym.relu` or `NDArray.relu` calls, else `None`."""
    if not inspect.isfunction(obj):
        return None
    op = inspect.getclosurevars(obj).nonlocals.get("op")
    return op if isinstance(op, Op) else None


def _record(op: Op) -> tuple[Path, str, str]:
    """Where the statement stands that enters an operator's record.

    Some statements enter a family: `binary("add", ...)` makes `broadcast_add`, too.
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
