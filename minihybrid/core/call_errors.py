"""Explanations of wrong calls, in place of Python's errors.

Defines: `misfit`, which explains wrong arguments; `check_names` and `check_symbols`, for a
         block's constructor; `refuse_inputs`, for inputs that don't match a `forward`.

This code runs only after a call has failed.
"""

import inspect
from collections.abc import Callable
from typing import Any

from minihybrid.core.arguments import arrays_in
from minihybrid.core.graph import topological
from minihybrid.core.op import AttrError, HybridError, described, legible, unfit, unknown_argument
from minihybrid.core.parameter import ParameterDict
from minihybrid.core.sym import Group, Symbol
from minihybrid.ops.errors import said_by_block

Parameter = inspect.Parameter
BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def misfit(
    owner: str, function: Callable, args: tuple, kwargs: dict, parents: Any = (), error: Any = None
) -> str | None:
    """Return why arguments don't match a function's signature; `None` if they do.

    parents:  functions that receive the **kwargs;  error: Python's, if the call raised one.

    >>> misfit("area", lambda width, height=1: 0, (), {"hight": 2})
    "area: no argument is called 'hight' (did you mean 'height'?); it takes width, \
height"
    """
    signature = inspect.signature(function)
    kinds = {p.kind for p in signature.parameters.values()}
    own = [n for n, p in signature.parameters.items() if n != "self" and p.kind not in VARIADIC]
    handed_on = [
        n
        for parent in parents
        for n, p in [*inspect.signature(parent).parameters.items()][1:]
        if p.kind in BY_PLACE
    ]
    accepted = list(dict.fromkeys(own + handed_on))
    unknown = [name for name in kwargs if name not in accepted]
    if unknown and (parents or Parameter.VAR_KEYWORD not in kinds):
        return unknown_argument(owner, unknown, accepted)
    try:
        signature.bind(*args, **{n: v for n, v in kwargs.items() if n in own})
        refused = "positional arguments but" in str(error)  # by a parent, which gets *args
        if not (refused and Parameter.VAR_POSITIONAL in kinds and len(args) > len(accepted)):
            return None
        error = "too many positional arguments"
    except TypeError as wrong:
        error = wrong
    return f"{owner}: {error}; it takes {', '.join(accepted) or 'none'}"


def check_names(kind: str, prefix: object, params: object) -> None:
    """Check that `prefix` and `params` aren't something else, such as a child block."""
    if prefix is not None and not isinstance(prefix, str):
        first = prefix[0] if isinstance(prefix, list) and prefix else prefix
        hint = "; a block is added by net.add(block)" * hasattr(first, "_children")
        need = f"a text is needed, with which the parameters' names begin{hint}"
        raise unfit(kind, "prefix", prefix, need)
    if params is not None and not isinstance(params, ParameterDict):
        need = "a ParameterDict is needed, such as the params of another block"
        raise unfit(kind, "params", params, need)


def check_symbols(outputs: list, inputs: list) -> None:
    """Check that a SymbolBlock's outputs and inputs are symbols, and the inputs variables.

    The error lists similar names first, then likely inputs: variables without
    attributes (a parameter has an initializer), or first operands of an operator.
    """
    for wrong in [s for s in (*outputs, *inputs) if not isinstance(s, Symbol)]:
        raise AttrError(
            f"SymbolBlock: {described(wrong)} stands among its outputs and inputs, but both "
            "are symbols; an input is made by sym.var('data')"
        )
    from difflib import get_close_matches  # slow to import, needed only for errors

    nodes = topological(Group(outputs).refs)
    first = {n.inputs[0][0] for n in nodes if n.inputs}
    variables = [n for n in nodes if n.op is None]
    variables.sort(key=lambda n: (bool(n.info), n not in first))
    variables = [n.name for n in variables]
    for name in [s.name for s in inputs if s.name not in variables]:
        likely = get_close_matches(name, variables, 3) + variables
        names = [f"'{legible(n, 60)}'" for n in dict.fromkeys(likely)]
        raise AttrError(
            f"SymbolBlock: the symbol has no variable '{name}'; it has "
            f"{', '.join(names[:5] + ['...'] * (len(names) > 5))}"
        )


def refuse_inputs(block: Any, error: Exception, args: tuple) -> None:
    """Raise AttrError if the inputs don't match the signature of the subclass's method.

    An operator's error gets the layer's name instead. The method is `forward`, or
    `hybrid_forward`, which takes F before the inputs, and the parameters by name.
    """
    if isinstance(error, HybridError):
        return said_by_block(block, error)
    if "_children" not in vars(block):
        raise AttrError(
            f"{type(block).__name__}: its __init__ did not call super().__init__(); let that be "
            "its first line"
        ) from None
    kind, hybrid = type(block).__name__, not block._direct
    function = getattr(block, "hybrid_forward", None) if hybrid else block.forward
    if function is None:
        function, hybrid = block.forward, False
    params, name = dict(block._reg_params) if hybrid else {}, function.__name__
    signature = inspect.signature(function).parameters
    names = list(signature)
    wrong = misfit(name, function, ("F",) * hybrid + args, params)
    if hybrid and names[:1] not in (["F"], ["args"]):
        written = ", ".join(["self", *names])
        raise AttrError(
            f"{kind}: {name}({written}) gets F, which is mx.nd or mx.sym, before its inputs; "
            f"write {name}({written.replace('self', 'self, F', 1)})"
        ) from (error if wrong is None else None)
    if wrong is None:
        others = [value for value in args if not arrays_in([value])]
        if others and type(block).__module__.startswith("minihybrid."):
            needed = "an NDArray or a Symbol is needed; wrap it in nd.array(...)"
            raise AttrError(f"{kind}: {described(others[0])} is given, but {needed}") from None
        return
    hidden = [name for name in params if name not in signature]
    if hidden and not any(p.kind is Parameter.VAR_KEYWORD for p in signature.values()):
        written = ", ".join(["self", *names])
        raise AttrError(
            f"{kind}: {name}({written}) does not take the block's own {', '.join(hidden)}; "
            f"write {name}({', '.join([written, *hidden])})"
        ) from None
    n_inputs = len(args)
    inputs = [
        p.name if p.default is Parameter.empty else f"[{p.name}]"
        for p in signature.values()
        if p.name not in ("F", *params)
    ]
    raise AttrError(
        f"{block.name}: {n_inputs or 'no'} input{'s' * (n_inputs != 1)} given, but {kind} takes "
        f"{', '.join(inputs) or 'none'}; call it with these, by their places"
    ) from None
