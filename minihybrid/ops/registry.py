"""All records, by name.

Takes:   what `register` is given.
Gives:   `OPS`, every name -> its record; `PLACES`, where each was entered.

Who imports this module imports the package `ops` before, which enters the engine's
records: the table is full whenever it is seen from outside.
What is left out: removing a record.
"""

import copyreg
import pathlib
import sys

from minihybrid.core.op import HybridError, Op

OPS = {}  # every name, aliases included -> Op
PLACES = {}  # Op -> code and instruction of the statement that entered it
HERE = str(pathlib.Path(__file__).parent.parent)


def called(name):
    """The operator of a name.

    >>> called("relu").name
    'relu'
    """
    return OPS[name]


def is_own(name):
    """Whether an operator of the engine, which stays, has this name.

    >>> is_own("relu"), is_own("no_such")
    (True, False)
    """
    return name in OPS and PLACES[OPS[name]][0].co_filename.startswith(HERE)


def register(name, *aliases, **fields):
    """Make an operator's record and enter it under its name and its aliases.

    A user's own operator takes the place of an earlier one of its name, so that a
    notebook's cell can be run again; the engine's own stay.
    """
    place = _statement()
    if not place[0].co_filename.startswith(HERE):
        from minihybrid.core.definition_checks import judge

        judge(name, aliases, fields)  # a user's; those of the engine are tested
    op = Op(name=name, **fields)
    for taken in filter(is_own, (name, *aliases)):
        raise HybridError(f"register: two operators are called {taken}; choose another name")
    OPS.update(dict.fromkeys((name, *aliases), op))
    PLACES[op] = place
    return op


def _statement():
    """Code and instruction of the module's own statement that is being run."""
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>" and frame.f_back:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti  # lines are counted when they are asked for


def _reduced(op):
    """Pickles have an operator's name, as files do; a copy is the operator itself."""
    return (called, (op.name,)) if OPS.get(op.name) is op else op.__reduce_ex__(2)


copyreg.pickle(Op, _reduced)
