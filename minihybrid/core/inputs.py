"""Chapter 10. What a block says of inputs that it cannot take.

Takes:   a block, and what it was called or made with.
Gives:   `no_array`, `refuse_inputs`, `check_names`: the errors, one sentence each.

Nothing here runs before something went wrong.
"""

import inspect

from minihybrid.core.mistake import misfit
from minihybrid.core.op import AttrError, HybridError, described
from minihybrid.core.parameter import ParameterDict

Parameter = inspect.Parameter


def no_array(block, args):
    """The error that a block was called without any array."""
    given = ", ".join(map(described, args))
    what = f"the input is {given}" if len(args) == 1 else \
        f"the inputs are {given}" if args else "no input is given"
    return AttrError(f"{block.name}: {what}, but an NDArray or a Symbol is needed; "
                     "wrap it in nd.array(...)")


def refuse_inputs(block, error, args):
    """Raise a sentence if it was the inputs that did not fit what the subclass wrote.

    That is its `forward`, or its `hybrid_forward`, which gets F before the inputs and
    the parameters by name.
    """
    if isinstance(error, HybridError):
        return
    kind, hybrid = type(block).__name__, not block._direct
    function = getattr(block, "hybrid_forward", None) if hybrid else block.forward
    if function is None:
        function, hybrid = block.forward, False
    params, name = dict(block._reg_params) if hybrid else {}, function.__name__
    taken = inspect.signature(function).parameters
    names = list(taken)
    wrong = misfit(name, function, ("F",) * hybrid + args, params)
    if hybrid and names[:1] not in (["F"], ["args"]):
        written = ", ".join(["self", *names])
        raise AttrError(f"{kind}: {name}({written}) gets F, which is mx.nd or mx.sym, "
                        "before its inputs; write "
                        f"{name}({written.replace('self', 'self, F', 1)})") from (
                            error if wrong is None else None)
    if wrong is None:
        return
    given = len(args)
    inputs = [p.name if p.default is Parameter.empty else f"[{p.name}]"
              for p in taken.values() if p.name not in ("F", *params)]
    raise AttrError(f"{block.name}: {given or 'no'} input{'s' * (given != 1)} given, "
                    f"but {kind} takes {', '.join(inputs) or 'none'}; call it with "
                    "these, by their places") from None


def check_names(kind, prefix, params):
    """Refuse what is neither a prefix nor shared parameters, such as a child."""
    if prefix is not None and not isinstance(prefix, str):
        hint = "; a block is added by net.add(block)" * hasattr(prefix, "_children")
        raise AttrError(f"{kind}: prefix={described(prefix)}, but a text is needed, "
                        f"with which the parameters' names begin{hint}")
    if params is not None and not isinstance(params, ParameterDict):
        raise AttrError(f"{kind}: params={described(params)}, but a ParameterDict is "
                        "needed, such as the params of another block")
