"""Open the engine while you use it: print the source of what you name.

Takes:   a function, class, method or module of this package, or an operator.
Gives:   its source with file and line numbers, as printed text, which every notebook
         shows and keeps.

An operator is a record, not a function; `show` prints the statement that enters it.
What is left out: the source of other packages, and of your own code, which you have.
"""

import ast
import inspect
from pathlib import Path

from minihybrid.core.op import HybridError, Op, described
from minihybrid.ops.registry import PLACES

PACKAGE = Path(__file__).parent.parent


def show(obj):
    """Print the source of a part of minihybrid, with its file and line numbers.

    obj:     a function, class, method, property or module, an operator's record such as
             `OPS["relu"]`, or a function made of one, such as `nd.relu`.
    Raises:  HybridError if the object has no source in this package.

    >>> from minihybrid.passes import dce
    >>> show(dce)
    minihybrid/core/passes/dce.py, lines ...
    ...  def dce(graph):
    ...
    """
    path, first, lines = _source(obj)
    name = path.relative_to(PACKAGE.parent).as_posix()
    print(f"{name}, lines {first}-{first + len(lines) - 1}")
    for number, line in enumerate(lines, first):
        print(f"{number:>4}  {line.rstrip()}".rstrip())


def _source(obj):
    """(file, number of the first line, lines) of an object's source."""
    # What an operator's function wears tells only how it is called: no function.
    made = inspect.unwrap(obj, stop=lambda f: not callable(f.__wrapped__))
    obj = obj.fget if isinstance(obj, property) else made
    op = obj if isinstance(obj, Op) else _operator_of(obj)
    if op is not None:
        return _record(op)
    try:
        path = Path(inspect.getsourcefile(obj))
        lines, first = inspect.getsourcelines(obj)
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
    return path, max(first, 1), lines


def _operator_of(obj):
    """The operator that `nd.relu`, `sym.relu` or `NDArray.relu` calls, else `None`."""
    if not inspect.isfunction(obj):
        return None
    op = inspect.getclosurevars(obj).nonlocals.get("op")
    return op if isinstance(op, Op) else None


def _record(op):
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
    return path, first, text.splitlines()[first - 1 : last]
