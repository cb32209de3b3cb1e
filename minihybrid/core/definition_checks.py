"""Validation of operator definitions when they are registered.

Defines: `judge`, which checks the type of each field, and that each function can be called
         with the arguments it will get.

Limits: whether the functions are correct is left to the property tests.
"""

import inspect
from dataclasses import MISSING
from dataclasses import fields as fields_of
from string import Formatter
from typing import Any, cast

from minihybrid.core.op import AttrError, Op, described, unknown_argument

FIELDS = {f.name: f for f in fields_of(Op) if f.init and f.name != "name"}
LETTERS = "abcdefgh"  # names of the inputs in a scalar expression


def judge(name: object, aliases: tuple, fields: dict) -> None:
    """Validate an operator definition.

    Raises:  AttrError naming the operator and the invalid field.
    """
    owner = f"register {name}"
    for word in (name, *aliases):
        if not isinstance(word, str) or not word.isidentifier():
            raise AttrError(
                f"register: {described(word)} is no name of an operator; needed: letters, digits "
                "and _, such as softstep"
            )
    if unknown := [key for key in fields if key not in FIELDS]:
        raise AttrError(unknown_argument(owner, unknown, [*FIELDS]))
    for key, field in FIELDS.items():
        if key not in fields:
            if field.default is field.default_factory is MISSING:
                raise AttrError(f"{owner}: the field '{key}' is missing; every record has it")
        elif not isinstance(fields[key], cast(Any, field.type)):
            raise AttrError(
                f"{owner}: {key}={described(fields[key])} does not fit; needed: {kinds(field.type)}"
            )
    if not any(fields.get(key) for key in ("eager", "expand")):
        raise AttrError(f"{owner}: nothing says what it computes; add eager, a function of arrays")
    for key, pair in fields.get("attrs", {}).items():
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[0]):
            raise AttrError(
                f"{owner}: attrs[{key!r}] is {described(pair)}, but a kind and a default are "
                f"needed, as in {{{key!r}: (number, 1.0)}}"
            )
    judge_calls(owner, fields)
    if isinstance(fields.get("expr"), str):
        judge_text(owner, fields)


def kinds(annotation: Any) -> str:
    """Return the types of a field in words.

    >>> kinds(FIELDS["inputs"].type)
    'tuple or function'
    """
    names = [kind.__name__ for kind in getattr(annotation, "__args__", [annotation])]
    return " or ".join(names).replace("Callable", "function")


def judge_calls(owner: str, fields: dict) -> None:
    """Check that the functions accept their arguments."""
    attrs, inputs = [*fields.get("attrs", {})], fields.get("inputs", Op.inputs)
    calls: dict[str, list[str]] = {"infer": ["specs"], "expr": []}
    if isinstance(inputs, tuple) and not fields.get("variadic"):
        key = ["key"] * fields.get("random", False)
        calls |= {"eager": [*inputs], "grad": ["g", "out", *inputs]}
        keywords = {field: attrs + key * (field == "eager") for field in calls}
    else:
        keywords = dict.fromkeys(calls, attrs)
    for field, args in calls.items():
        function = fields.get(field)
        try:
            if callable(function):
                inspect.signature(function).bind(*args, **dict.fromkeys(keywords[field]))
        except ValueError:
            pass  # NumPy's functions may have no signature
        except TypeError as error:
            call = ", ".join([*args, *(f"{key}=..." for key in keywords[field])])
            raise AttrError(f"{owner}: its {field} is called as {field}({call}): {error}") from None


def judge_text(owner: str, fields: dict) -> None:
    """Check that a scalar expression reads only the inputs."""
    inputs = fields.get("inputs", Op.inputs)
    letters = LETTERS[: len(inputs)] if isinstance(inputs, tuple) else LETTERS
    try:
        names = [name for _, name, _, _ in Formatter().parse(fields["expr"]) if name is not None]
    except ValueError as error:
        raise AttrError(
            f"{owner}: expr={fields['expr']!r} has no pairs of braces: {error}"
        ) from None
    if unknown := [name for name in names if name not in (*letters, "i")]:
        raise AttrError(
            f"{owner}: expr={fields['expr']!r} reads {{{unknown[0]}}}, but the inputs are "
            f"{', '.join(f'{{{letter}}}' for letter in letters)}; one that has attributes is a "
            "function of them"
        )
