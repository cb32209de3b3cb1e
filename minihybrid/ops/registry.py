"""The registry of operators.

Defines: `OPS`, name -> operator definition; `PLACES`, where each was registered;
         `register`.

Importing this module first imports the package `ops`, which registers the engine's
operators, so the table is always complete.
Not supported: removing an operator.
"""

import copyreg
import pathlib
import sys

from minihybrid.core.op import HybridError, Op

OPS = {}  # every name, aliases included -> Op
PLACES = {}  # Op -> (code, instruction) of the statement that registered it
HERE = str(pathlib.Path(__file__).parent.parent)


def called(name):
    """Return the operator of a name.

    >>> called("relu").name
    'relu'
    """
    return OPS[name]


def is_own(name):
    """Return whether a built-in operator has this name.

    >>> is_own("relu"), is_own("no_such")
    (True, False)
    """
    return name in OPS and PLACES[OPS[name]][0].co_filename.startswith(HERE)


def register(name, *aliases, **fields):
    """Define an operator and register it under its name and aliases.

    A user's operator replaces an earlier one of the same name, so that a notebook cell can
    run twice; built-in operators can't be replaced.
    """
    place = _statement()
    if not place[0].co_filename.startswith(HERE):
        from minihybrid.core.definition_checks import judge

        judge(name, aliases, fields)  # user-defined; built-in ones are tested
    op = Op(name=name, **fields)
    for builtin in filter(is_own, (name, *aliases)):
        raise HybridError(f"register: two operators are called {builtin}; choose another name")
    OPS.update(dict.fromkeys((name, *aliases), op))
    PLACES[op] = place
    return op


def _statement():
    """Return (code, instruction) of the module-level statement being executed."""
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>" and frame.f_back:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti  # the line number is computed on demand


def _reduced(op):
    """Pickle an operator by name; a copy is the operator itself."""
    return (called, (op.name,)) if OPS.get(op.name) is op else op.__reduce_ex__(2)


copyreg.pickle(Op, _reduced)
